/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * Multi-Domain congestion control: a window for the wired part of the path, which is CUBIC by what a Lightweight PEP has seen, and one for
 * the radio, which is Scalable TCP with a = 0.1 by what the receiver acknowledges. What may be in flight is the smaller of the two.
 * logic/cc/src/radio/mdcc.rs, mdcc/claim.rs and mdcc/opening.rs; their heads have the rules, the reasons and what is ours. Names are the
 * same there and here.
 *
 * Sources: Krämer, Molnár, Solymos and Mihály, "On the Benefits of Multi-Domain Congestion Control in LTE Networks", sections II-C, III, V.
 *
 * Who tells this header of events keeps the ledger of what the PEP has seen (mdcc/ledger.rs there): how many segments an event covers,
 * up to which number, and which domain a loss belongs to. Segments are numbered in the order of sending, copies too: the number of
 * the newest is tp->data_segs_out - 1.
 *
 * MDCC_ALONE is CUBIC as Linux has it, on the endpoint's own window (`window`), with PRR by the endpoint; in MDCC_BOTH the window is set
 * here, and recovery is nobody else's.
 *
 * Left out: early_retransmit (a program has no word in what the kernel sends again), and changes of path other than a PEP's new epoch.
 * Fixed point: cubic.h; windows are q32 segments, the gains a and b q32, growth_cap and start_cap q16; RTTs whole microseconds, the
 * smoothed one to the PEP ns. The window is at most 2^20 segments. Where both windows are the same but for a rounding, the threshold that is
 * shown may be the other one's; slow start is over there.
 */
#ifndef RANPACE_MDCC_H
#define RANPACE_MDCC_H

#include "cubic.h"

/* RTTs to the PEP of its silence after which CUBIC is alone, if that is longer than the setting. */
#define MDCC_SILENT_RTTS 3
/* Messages in a row after which a PEP is listened to again. */
#define MDCC_RETURN_AFTER 16
/* For how long a PEP is not listened to that contradicts the receiver. */
#define MDCC_DISTRUST (60 * NS_PER_S)
/* Rounds with a loss that is said to be the radio's while there is a queue before the PEP; rounds after which gaps are judged. */
#define MDCC_SUSPICIOUS_ROUNDS 5
#define MDCC_JUDGED_ROUNDS 10
/* What the smallest timeout is beyond the RTT (TCP_RTO_MIN). */
#define MDCC_MIN_TIMEOUT (200 * NS_PER_MS)
/* Segments of a report that count as one acknowledgement in slow start; parts of a report at most, beyond
 * which the rest counts as one. */
#define MDCC_PART 8u
#define MDCC_PARTS 24 /* times as many */
/* Smallest window after a reduction. */
#define MDCC_MIN_WINDOW (2ULL << 32)
/* Halvings in an idle time: a window is at most 2^20. */
#define MDCC_HALVINGS 20

enum mdcc_mode { MDCC_ALONE, MDCC_BOTH };
enum mdcc_start { MDCC_OPEN_RAN, MDCC_LITERAL, MDCC_COUPLED };
/* Which part of the path lost a segment. */
enum mdcc_domain { MDCC_INTERNET, MDCC_RADIO, MDCC_UNKNOWN };
enum mdcc_verdict { MDCC_NO_VERDICT, MDCC_CONFIRMED, MDCC_CONTRADICTED };

struct mdcc_settings {
	__u64 bound;      /* of the radio's window before its first loss, bytes */
	__u64 a, b;       /* gain and loss of the radio's window, q32 */
	__u64 silence;    /* ns */
	__u32 start_cap;  /* so many times what the PEP passes in an RTT, q16; 0 = no bound */
	__u32 growth_cap; /* no window grows beyond so many times the smaller one, q16 */
	__u8 start;       /* enum mdcc_start */
	__u8 count_acks;  /* an ACK brings the gain, not a segment */
	__u8 hystart;     /* enum hystart_kind, where a PEP clocks slow start */
	__u8 listens;
	__u8 unused[4];
};

/* The end of slow start that a PEP's delays have brought about, until the receiver has answered. */
struct mdcc_claim {
	struct cubic cubic; /* what was before */
	__u64 ssthresh;
	__u64 rise;         /* ns */
	__u32 from, until;  /* the segments that were under way to the receiver */
	__u32 least_us;     /* their smallest RTT; 0 = none yet */
	__u32 stands;       /* there is a claim */
};

/* What is taken back if a reduction was a mistake. */
struct mdcc_undo {
	struct cubic cubic;
	struct cubic_window wired, radio;
	__u32 gap;          /* the segment whose report was the cause, if has_gap */
	__u8 has_wired, has_radio, has_gap;
	__u8 unused;
};

struct mdcc_state {
	struct cubic cubic;
	struct cubic_window wired, radio;
	struct mdcc_undo undo;
	struct mdcc_claim claim;
	__u64 initial;        /* the window that the flow began with, q32 */
	__u64 wired_srtt;     /* ns; 0 = none */
	__u64 last_message;   /* ns; 0 = none */
	__u64 unseen_since;   /* when the first segment left that was acknowledged and not seen since the last message, later by the idle time since then; 0 = none */
	__u64 distrusted_until;
	__u64 counted, answered; /* marks of the PEP, if has_marks */
	__u64 delivery_since; /* ns; 0 = nothing is being measured */
	__u64 per_rtt;        /* segments that the PEP passes in the smallest RTT, q16, if has_per_rtt */
	__u32 delivery_segments;
	__u32 wired_min_us;   /* smallest RTT to the PEP; 0 = none */
	__u32 wired_since, radio_since; /* segments from this number on tell of the window after its last reduction */
	__u32 round_end;      /* of the receiver's round */
	__u32 round_rtt_us;   /* smallest RTT to the PEP in it; 0 = none */
	__u32 suspicious, rounds, false_gaps, true_gaps;
	__u32 messages, fallbacks;
	__u32 newly_seen;     /* of the report that is coming */
	__u32 newly_missing;  /* the first, if has_missing */
	__u32 acked_radio, acked_wired, unreported; /* of the acknowledgement */
	__u32 told;           /* segments of the losses that are being told */
	__u8 lost_wired, lost_radio; /* who is to answer */
	__u8 mode;            /* enum mdcc_mode */
	__u8 started, met;    /* congestion was met */
	__u8 has_marks, has_missing, has_per_rtt;
	__u8 radio_loss;      /* a loss of this round was said to be the radio's */
	__u8 verdict;         /* enum mdcc_verdict */
	__u8 unused[2];
};

enum mdcc_event_kind {
	MDCC_START,     /* established; `window` is the initial one */
	MDCC_SAMPLE,    /* an acknowledgement's RTT */
	MDCC_ACKED,     /* the receiver has `segments` up to `number`; before the acknowledgement */
	MDCC_SEEN,      /* the PEP has newly seen them; before its report */
	MDCC_MISSING,   /* it has newly missed `number` */
	MDCC_LOST,      /* they are lost, in `domain`; before the congestion */
	MDCC_LOSS,      /* `lost` segments are newly taken for lost; `first` of an episode */
	MDCC_TIMEOUT,
	MDCC_MARK,
	MDCC_ACK,       /* the acknowledgement; `segments` to grow by */
	MDCC_REPORT,    /* a message of the PEP, after MDCC_SEEN and MDCC_MISSING */
	MDCC_RECOVERED, /* the state is Open again */
	MDCC_SPURIOUS,  /* nothing was lost; not where CUBIC is alone */
	MDCC_IDLE,      /* sending starts again after `idle` */
};

struct mdcc_event {
	struct cubic_path path;
	struct cubic_window window; /* the endpoint's, written */
	__u64 idle;         /* ns */
	__u64 sent_at;      /* MDCC_ACKED: when the first of those that the PEP had not seen left, ns */
	__u64 marked;       /* MDCC_REPORT: marks that the PEP counted, if has_marked */
	__u64 answer;       /* MDCC_LOSS, MDCC_TIMEOUT, MDCC_MARK: the threshold, if answers */
	__u32 kind;         /* enum mdcc_event_kind */
	__u32 number, segments;
	__u32 unseen;       /* segments of which neither the PEP nor the receiver has said anything */
	__u32 rtt_us;       /* 0 = none */
	__u32 min_rtt_us;   /* smallest RTT to the receiver; 0 = none */
	__u32 lost;
	__u32 unreported;   /* MDCC_ACKED: of the segments, those that the PEP had not seen */
	__u8 domain;        /* MDCC_LOST: enum mdcc_domain */
	__u8 first;
	__u8 known;         /* MDCC_ACKED: the ledger did not have them settled */
	__u8 called_missing; /* MDCC_ACKED: the PEP had called `number` missing */
	__u8 has_marked, new_epoch;
	__u8 open;          /* the state is Open or Disorder */
	__u8 answers;       /* written: the endpoint is to reduce to `answer` */
};

/* W. */
static __always_inline __u64 mdcc_effective(const struct mdcc_state *s)
{
	return s->mode == MDCC_BOTH ? min_u64(s->wired.cwnd, s->radio.cwnd) : s->wired.cwnd;
}

/* Hands the smaller window to the endpoint. */
static __always_inline void mdcc_show(const struct mdcc_state *s, struct mdcc_event *e)
{
	int radio_binds = s->mode == MDCC_BOTH && s->radio.cwnd < s->wired.cwnd;

	e->window.cwnd = max_u64(radio_binds ? s->radio.cwnd : s->wired.cwnd, 1ULL << 32);
	e->window.ssthresh = radio_binds ? s->radio.ssthresh : s->wired.ssthresh;
}

/* The connection as CUBIC sees it beside the radio's window. */
static __always_inline void mdcc_wired_path(const struct mdcc_state *s, const struct mdcc_event *e, struct cubic_path *p)
{
	*p = e->path;
	p->srtt_us = min_u64(s->wired_srtt / NS_PER_US, MAX_RTT_US);
	p->in_flight = e->unseen;
}

/* Of `segments` up to `number`, those from `since` on. */
static __always_inline __u32 mdcc_from(__u32 number, __u32 segments, __u32 since)
{
	__s32 behind = (__s32)(number - since);

	return behind < 0 ? 0 : min_u32(segments, (__u32)behind + 1);
}

static __always_inline int mdcc_is_open(const struct mdcc_state *s, const struct mdcc_settings *set)
{
	return set->start == MDCC_OPEN_RAN && s->radio.ssthresh == CUBIC_INFINITE;
}

static __always_inline int mdcc_is_coupled(const struct mdcc_state *s, const struct mdcc_settings *set)
{
	return set->start == MDCC_COUPLED && s->mode == MDCC_BOTH && !s->met;
}

/* So many times the smaller window, or the window that there is. */
static __always_inline __u64 mdcc_cap(const struct mdcc_state *s, const struct mdcc_settings *set, __u64 window)
{
	/* 2^36 times 2^26. */
	return max_u64((mdcc_effective(s) >> 16) * min_u32(set->growth_cap, 1000u << 16), window);
}

/* One part of `acked` segments. Returns how many are left. */
static __always_inline __u32 mdcc_grow_part(struct mdcc_state *s, const struct cubic_path *path, __u32 acked)
{
	__u32 part = cubic_in_slow_start(&s->wired) ? min_u32(acked, MDCC_PART) : acked;
	cubic_ack(&s->cubic, path, &s->wired, part);
	return acked - part;
}

/* Several parts: of two loops, one in the other, the verifier reads each alone. */
ARITHMETIC_GLOBAL __u32 mdcc_grow_parts(struct mdcc_state *s, const struct cubic_path *path, __u32 acked)
{
	int i;

	if (!s || !path)
		return 0;
	for (i = 0; i < MDCC_PARTS && acked; i++)
		acked = mdcc_grow_part(s, path, acked);
	return acked;
}

/* Slow start or CUBIC, by `acked` segments. */
ARITHMETIC_GLOBAL int mdcc_grow_wired(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e, __u32 acked)
{
	struct cubic_path path;
	__u64 cap;
	int i;

	if (!s || !set || !e || !acked)
		return 0;
	mdcc_wired_path(s, e, &path);
	cap = mdcc_cap(s, set, s->wired.cwnd);
	/* In slow start a report grows the window by all that it covers: it stands for several acknowledgements. */
	for (i = 0; i < MDCC_PARTS && acked; i++)
		acked = mdcc_grow_parts(s, &path, acked);
	if (acked)
		cubic_ack(&s->cubic, &path, &s->wired, acked);
	s->wired.cwnd = min_u64(s->wired.cwnd, cap);
	return 0;
}

/* Slow start, or W_r += a n (section III). */
ARITHMETIC_GLOBAL int mdcc_grow_radio(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e, __u32 acked)
{
	struct cubic_window *w;
	__u64 left, cap;

	if (!s || !set || !e || !acked || !e->path.cwnd_limited || mdcc_is_open(s, set))
		return 0;
	w = &s->radio;
	cap = mdcc_cap(s, set, w->cwnd);
	left = (__u64)min_u32(acked, FLOW_MOST_CWND) << 32;
	if (cubic_in_slow_start(w))
		left = cubic_slow_start(w, left);
	if (left) {
		if (set->count_acks)
			left = min_u64(left, 1ULL << 32);
		/* a per segment, Reno's growth where that is more. */
		w->cwnd += mul_q32(left, max_u64(set->a, ~0ULL / max_u64(w->cwnd, 1ULL << 32)));
	}
	w->cwnd = min_u64(min_u64(w->cwnd, cap), (__u64)FLOW_MOST_CWND << 32);
	return 0;
}

/* CUBIC's reduction of W_i, from `at`. */
static __always_inline void mdcc_reduce_wired(struct mdcc_state *s, const struct mdcc_event *e, __u64 at)
{
	s->undo.cubic = s->cubic;
	s->undo.wired = s->wired;
	s->undo.has_wired = 1;
	s->undo.has_gap = 0;
	s->wired.ssthresh = cubic_recalc_ssthresh(&s->cubic, at);
	s->wired.cwnd = s->wired.ssthresh;
	s->wired_since = e->path.sent;
	s->met = 1;
}

/* What a window keeps: (1 - b) of it. */
static __always_inline __u64 mdcc_kept(const struct mdcc_settings *set, __u64 at)
{
	return max_u64(at - min_u64(mul_q32(at, set->b), at), MDCC_MIN_WINDOW);
}

/* Scalable's reduction of W_r, from `at`. */
static __always_inline void mdcc_reduce_radio(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e, __u64 at)
{
	s->undo.radio = s->radio;
	s->undo.has_radio = 1;
	s->radio.cwnd = mdcc_kept(set, at);
	s->radio.ssthresh = s->radio.cwnd;
	s->radio_since = e->path.sent;
	s->met = 1;
}

static __always_inline void mdcc_undo_wired(struct mdcc_state *s)
{
	if (!s->undo.has_wired)
		return;
	s->undo.has_wired = 0;
	if (s->undo.wired.cwnd > s->wired.cwnd)
		s->cubic = s->undo.cubic;
	s->wired.cwnd = max_u64(s->wired.cwnd, s->undo.wired.cwnd);
	s->wired.ssthresh = max_u64(s->wired.ssthresh, s->undo.wired.ssthresh);
}

/* CUBIC alone from now on, with the window as it is. */
ARITHMETIC_GLOBAL int mdcc_fall_back(struct mdcc_state *s, const struct mdcc_event *e)
{
	if (!s || !e || s->mode == MDCC_ALONE)
		return 0;
	s->wired.cwnd = mdcc_effective(s);
	if (s->radio.cwnd <= s->wired.cwnd)
		s->wired.ssthresh = min_u64(s->wired.ssthresh, s->radio.ssthresh);
	/* What comes back is what was in flight, and the radio's window was a bound too. */
	if (s->undo.has_wired)
		s->undo.wired.cwnd = min_u64(s->undo.wired.cwnd, s->radio.cwnd);
	s->mode = MDCC_ALONE;
	s->claim.stands = 0;
	s->verdict = MDCC_NO_VERDICT;
	s->messages = 0;
	s->fallbacks++;
	cubic_path_change(&s->cubic, &e->path);
	return 0;
}

static __always_inline void mdcc_distrust(struct mdcc_state *s, const struct mdcc_event *e)
{
	s->distrusted_until = e->path.now + MDCC_DISTRUST;
	mdcc_fall_back(s, e);
}

/* Listens to the PEP from now on. */
ARITHMETIC_GLOBAL int mdcc_join(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e)
{
	struct cubic_path path;

	if (!s || !set || !e)
		return 0;
	s->mode = MDCC_BOTH;
	s->wired = e->window;
	cubic_use_hystart(&s->cubic, &e->path, set->hystart);
	s->unseen_since = 0;
	s->wired_srtt = 0;
	s->wired_min_us = 0;
	s->round_rtt_us = 0;
	s->radio_loss = 0;
	s->suspicious = 0;
	s->rounds = 0;
	s->false_gaps = 0;
	s->true_gaps = 0;
	/* What was counted meanwhile CUBIC has answered. */
	s->answered = s->counted;
	/* The window stays as it is: the radio's, where it was left behind meanwhile, begins from there. */
	if (!mdcc_is_open(s, set) && s->radio.cwnd < s->wired.cwnd) {
		s->radio.cwnd = s->wired.cwnd;
		s->radio.ssthresh = min_u64(s->radio.ssthresh, s->wired.cwnd);
	}
	mdcc_wired_path(s, e, &path);
	cubic_path_change(&s->cubic, &path);
	return 0;
}

/* An RTT to the PEP. */
ARITHMETIC_GLOBAL int mdcc_sample_wired(struct mdcc_state *s, const struct mdcc_event *e)
{
	struct cubic_path path;
	struct cubic before;
	__u32 rtt_us;

	if (!s || !e)
		return 0;
	rtt_us = max_u32(bounded_rtt(e->rtt_us), 1);
	s->wired_srtt = s->wired_srtt ? (7 * s->wired_srtt + rtt_us * NS_PER_US) / 8 : rtt_us * NS_PER_US;
	s->wired_min_us = s->wired_min_us ? min_u32(s->wired_min_us, rtt_us) : rtt_us;
	s->round_rtt_us = s->round_rtt_us ? min_u32(s->round_rtt_us, rtt_us) : rtt_us;
	mdcc_wired_path(s, e, &path);
	if (s->wired.ssthresh != CUBIC_INFINITE) {
		cubic_sample(&s->cubic, &path, &s->wired, rtt_us);
		return 0;
	}
	before = s->cubic;
	cubic_sample(&s->cubic, &path, &s->wired, rtt_us);
	if (s->wired.ssthresh != CUBIC_INFINITE) {
		s->claim.cubic = before;
		s->claim.stands = 1;
		s->claim.ssthresh = CUBIC_INFINITE;
		s->claim.from = e->path.sent - e->path.in_flight;
		s->claim.until = e->path.sent;
		s->claim.least_us = 0;
		s->claim.rise = (hystart_risen(s->wired_min_us) - s->wired_min_us * NS_PER_US) / 2;
	}
	return 0;
}

/* At the end of a round of the receiver's: does what the PEP says agree with what the receiver says? */
ARITHMETIC_GLOBAL int mdcc_judge(struct mdcc_state *s, const struct mdcc_event *e)
{
	int invented = 0;

	if (!s || !e || (__s32)(e->path.sent - e->path.in_flight - s->round_end) <= 0)
		return 0;
	s->round_end = e->path.sent;
	if (s->radio_loss && s->wired_min_us) {
		if (s->round_rtt_us && s->round_rtt_us * NS_PER_US > hystart_risen(s->wired_min_us))
			s->suspicious++;
		else
			s->suspicious = 0;
	}
	s->radio_loss = 0;
	s->round_rtt_us = 0;
	s->rounds++;
	if (s->rounds >= MDCC_JUDGED_ROUNDS) {
		invented = s->false_gaps && s->false_gaps >= s->true_gaps;
		s->rounds = 0;
		s->false_gaps = 0;
		s->true_gaps = 0;
	}
	if (s->mode == MDCC_BOTH && (invented || s->suspicious >= MDCC_SUSPICIOUS_ROUNDS)) {
		s->suspicious = 0;
		mdcc_distrust(s, e);
	}
	return 0;
}

/* The receiver has segments. */
ARITHMETIC_GLOBAL int mdcc_on_acked(struct mdcc_state *s, struct mdcc_event *e)
{
	struct mdcc_claim *c;
	__u32 wired;

	if (!s || !e)
		return 0;
	c = &s->claim;
	if (c->stands && !s->verdict && e->rtt_us && (__s32)(e->number - c->from) >= 0) {
		if ((__s32)(e->number - c->until) < 0)
			c->least_us = c->least_us ? min_u32(c->least_us, e->rtt_us) : e->rtt_us;
		else if (c->least_us)
			s->verdict = c->least_us * NS_PER_US < e->min_rtt_us * NS_PER_US + c->rise ? MDCC_CONTRADICTED : MDCC_CONFIRMED;
	}
	if (!e->known)
		return 0;
	wired = mdcc_from(e->number, e->segments, s->wired_since);
	s->acked_radio += mdcc_from(e->number, e->segments, s->radio_since);
	s->acked_wired += wired;
	if (e->unreported) {
		s->unreported += min_u32(wired, e->unreported);
		if (!s->unseen_since)
			s->unseen_since = max_u64(e->sent_at, 1);
	}
	if (!e->called_missing)
		return 0;
	s->false_gaps++;
	if (!s->undo.has_wired || !s->undo.has_gap || s->undo.gap != e->number)
		return 0;
	if (s->mode == MDCC_ALONE) {
		/* The window is the endpoint's, and the PEP's RTTs mean nothing to CUBIC. */
		s->wired = e->window;
		mdcc_undo_wired(s);
		cubic_path_change(&s->cubic, &e->path);
		mdcc_show(s, e);
	} else {
		mdcc_undo_wired(s);
	}
	return 0;
}

static __always_inline void mdcc_on_lost(struct mdcc_state *s, const struct mdcc_event *e)
{
	int wired = mdcc_from(e->number, e->segments, s->wired_since) > 0;
	int radio = mdcc_from(e->number, e->segments, s->radio_since) > 0;

	s->told += e->segments;
	/* A loss would have ended slow start by now. */
	s->claim.stands = 0;
	if (s->mode == MDCC_ALONE)
		return;
	if (e->domain == MDCC_INTERNET)
		s->true_gaps += e->segments;
	if (e->domain == MDCC_RADIO)
		s->radio_loss = 1;
	if (e->domain != MDCC_RADIO)
		s->lost_wired |= wired;
	if (e->domain != MDCC_INTERNET)
		s->lost_radio |= radio;
}

/* A timeout: both from the beginning, up to where they would have been reduced to. */
static __always_inline void mdcc_time_out(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e)
{
	__u64 at = mdcc_effective(s);
	struct cubic_path path;
	struct cubic_window view;

	if (e->first) {
		s->undo.cubic = s->cubic;
		s->undo.wired = s->wired;
		s->undo.radio = s->radio;
		s->undo.has_wired = 1;
		s->undo.has_radio = 1;
		s->undo.has_gap = 0;
		mdcc_wired_path(s, e, &path);
		view.cwnd = at;
		view.ssthresh = s->wired.ssthresh;
		s->wired.ssthresh = cubic_congestion(&s->cubic, &path, &view, 1, 1);
		s->radio.ssthresh = mdcc_kept(set, at);
	}
	s->claim.stands = 0;
	s->wired.cwnd = MDCC_MIN_WINDOW;
	s->radio.cwnd = MDCC_MIN_WINDOW;
	s->wired_since = e->path.sent;
	s->radio_since = e->path.sent;
	s->met = 1;
}

ARITHMETIC_GLOBAL int mdcc_on_congestion(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	__u32 told, oldest;
	int wired, radio, due_wired, due_radio;
	__u64 at;

	if (!s || !set || !e)
		return 0;
	told = s->told;
	wired = s->lost_wired;
	radio = s->lost_radio;
	s->told = 0;
	s->lost_wired = 0;
	s->lost_radio = 0;
	if (s->mode == MDCC_ALONE) {
		s->met = 1;
		/* A reduction of the endpoint's own takes the place of the last one. */
		if (e->first)
			s->undo.has_wired = 0;
		e->answer = cubic_congestion(&s->cubic, &e->path, &e->window, e->first, e->kind == MDCC_TIMEOUT);
		e->answers = 1;
		return 0;
	}
	/* Whose last reduction lies a round back. */
	oldest = e->path.sent - e->path.in_flight;
	due_wired = (__s32)(oldest - s->wired_since) >= 0;
	due_radio = (__s32)(oldest - s->radio_since) >= 0;
	if (e->kind == MDCC_TIMEOUT) {
		mdcc_time_out(s, set, e);
		wired = 0;
		radio = 0;
	} else if (e->kind == MDCC_MARK) {
		/* The PEP's count says where it was set; without one it is the domain of the smaller window. */
		wired = s->has_marks ? s->counted > s->answered : s->wired.cwnd <= s->radio.cwnd;
		s->answered = s->counted;
		radio = !wired && due_radio;
		wired = wired && due_wired;
	} else if (!told && e->lost) {
		/* What a loss probe has repaired comes without its segment: nobody knows where it was lost. */
		wired = due_wired;
		radio = due_radio;
	}
	at = mdcc_effective(s);
	if (wired)
		mdcc_reduce_wired(s, e, at);
	if (radio)
		mdcc_reduce_radio(s, set, e, at);
	mdcc_show(s, e);
	return 0;
}

ARITHMETIC_GLOBAL int mdcc_on_ack(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	__u32 radio, wired, unreported, acked;
	__u64 heard;

	if (!s || !set || !e)
		return 0;
	/* An acknowledgement that does not advance grows nothing, as in Linux. */
	radio = min_u32(s->acked_radio, e->segments);
	wired = min_u32(s->acked_wired, e->segments);
	unreported = min_u32(s->unreported, e->segments);
	s->acked_radio = 0;
	s->acked_wired = 0;
	s->unreported = 0;
	if (s->mode == MDCC_BOTH) {
		heard = max_u64(s->last_message, s->unseen_since);
		if (s->unseen_since && elapsed_ns(e->path.now, heard) > max_u64(set->silence, MDCC_SILENT_RTTS * s->wired_srtt)) {
			mdcc_fall_back(s, e);
		} else if (s->verdict) {
			/* The receiver has said what it thinks of the end of slow start. */
			if (s->verdict == MDCC_CONTRADICTED && s->claim.stands) {
				s->cubic = s->claim.cubic;
				s->wired.ssthresh = s->claim.ssthresh;
				mdcc_distrust(s, e);
			}
			s->claim.stands = 0;
			s->verdict = MDCC_NO_VERDICT;
		}
		if (s->mode == MDCC_BOTH) {
			mdcc_grow_wired(s, set, e, mdcc_is_coupled(s, set) ? wired : unreported);
			mdcc_grow_radio(s, set, e, radio);
			mdcc_judge(s, e);
		}
		mdcc_show(s, e);
		return 0;
	}
	/* A reduction of both windows that still is to show has no PRR. */
	acked = (__s32)(e->path.sent - e->path.in_flight - s->wired_since) >= 0 ? e->segments : wired;
	cubic_ack(&s->cubic, &e->path, &e->window, acked);
	s->wired = e->window;
	return 0;
}

/* Another PEP, perhaps: the RTT to the old one means nothing, W_i stays. */
static __always_inline void mdcc_new_epoch(struct mdcc_state *s, struct mdcc_event *e)
{
	struct cubic_path path;

	s->wired_srtt = 0;
	s->wired_min_us = 0;
	mdcc_wired_path(s, e, &path);
	cubic_path_change(&s->cubic, s->mode == MDCC_ALONE ? &e->path : &path);
}

/* Bounds the open radio's window by what the PEP passes. */
static __always_inline void mdcc_bound_opening(struct mdcc_state *s, const struct mdcc_settings *set, const struct mdcc_event *e, __u32 seen)
{
	__u64 took, most;

	if (!s->delivery_since || !e->path.cwnd_limited) {
		s->delivery_since = e->path.cwnd_limited ? max_u64(e->path.now, 1) : 0;
		s->delivery_segments = 0;
	} else {
		s->delivery_segments += seen;
		took = elapsed_ns(e->path.now, s->delivery_since);
		if (e->min_rtt_us && took >= e->min_rtt_us * NS_PER_US) {
			s->per_rtt = ((__u64)min_u32(s->delivery_segments, FLOW_MOST_CWND) * bounded_rtt(e->min_rtt_us) << 16) /
				     max_u64(took / NS_PER_US, 1);
			s->has_per_rtt = 1;
			s->delivery_since = e->path.now;
			s->delivery_segments = 0;
		}
	}
	if (!s->has_per_rtt)
		return;
	most = min_u64(set->bound / max_u32(e->path.mss, 1), FLOW_MOST_CWND) << 32;
	/* 2^36 of q16, times 2^26 of q16. */
	s->radio.cwnd = max_u64(min_u64(min_u64(s->per_rtt, 1ULL << 36) * min_u32(set->start_cap, 1000u << 16), most), s->initial);
}

ARITHMETIC_GLOBAL int mdcc_on_report(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	__u32 seen, gap;
	int has_gap, coupled;

	if (!s || !set || !e)
		return 0;
	seen = s->newly_seen;
	gap = s->newly_missing;
	has_gap = s->has_missing;
	s->newly_seen = 0;
	s->has_missing = 0;
	if (!s->started || !set->listens || e->path.now < s->distrusted_until)
		return 0;
	if (e->new_epoch) {
		mdcc_new_epoch(s, e);
		if (s->mode == MDCC_BOTH)
			mdcc_show(s, e);
	}
	s->last_message = max_u64(e->path.now, 1);
	s->unseen_since = 0;
	if (s->messages < 0x7fffffff)
		s->messages++;
	if (e->has_marked) {
		s->answered = s->has_marks ? min_u64(s->answered, e->marked) : e->marked;
		s->counted = e->marked;
		s->has_marks = 1;
	}
	if (s->mode == MDCC_ALONE) {
		/* From the beginning a PEP is taken at its word; afterwards it has to be there for a while. PRR, or slow start after a
		 * timeout, is not interrupted.
		 */
		if ((s->met && s->messages < MDCC_RETURN_AFTER) || !e->open)
			return 0;
		mdcc_join(s, set, e);
	}
	if (set->start_cap && mdcc_is_open(s, set))
		mdcc_bound_opening(s, set, e, seen);
	if (e->rtt_us)
		mdcc_sample_wired(s, e);
	if (has_gap && (__s32)(gap - s->wired_since) >= 0) {
		mdcc_reduce_wired(s, e, mdcc_effective(s));
		s->undo.has_gap = 1;
		s->undo.gap = gap;
	} else {
		coupled = mdcc_is_coupled(s, set);
		mdcc_grow_wired(s, set, e, seen);
		if (coupled)
			mdcc_grow_radio(s, set, e, seen);
	}
	mdcc_show(s, e);
	return 0;
}

/* As in Linux an idle time shifts the epoch, and windows, which nothing has tested meanwhile, are halved per timeout. */
static __always_inline void mdcc_halve(struct cubic_window *w, __u64 initial)
{
	w->ssthresh = max_u64(w->ssthresh, w->cwnd / 4 * 3);
	w->cwnd = max_u64(w->cwnd / 2, min_u64(initial, w->cwnd));
}

/* An idle timeout, if both windows are not where they began. Whether they were halved. */
ARITHMETIC_GLOBAL int mdcc_halve_both(struct mdcc_state *s, int radio)
{
	if (!s || mdcc_effective(s) <= s->initial)
		return 0;
	mdcc_halve(&s->wired, s->initial);
	if (radio)
		mdcc_halve(&s->radio, s->initial);
	return 1;
}

ARITHMETIC_GLOBAL int mdcc_on_idle(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	__u64 timeout, left;
	int i, radio;

	if (!s || !set || !e)
		return 0;
	/* The PEP is silent only while acknowledgements arrive, so the time after the last one does not count. */
	if (s->unseen_since) {
		left = e->path.srtt_us * NS_PER_US;
		left = e->idle > left ? e->idle - left : 0;
		s->unseen_since = min_u64(max_u64(s->unseen_since, s->last_message) + left, e->path.now);
	}
	cubic_idle(&s->cubic, e->path.now, e->idle);
	if (s->mode == MDCC_ALONE)
		return 0;
	timeout = e->path.srtt_us * NS_PER_US + MDCC_MIN_TIMEOUT;
	left = e->idle;
	radio = !mdcc_is_open(s, set);
	for (i = 0; i < MDCC_HALVINGS; i++) {
		if (left <= timeout || !mdcc_halve_both(s, radio))
			break;
		left -= timeout;
	}
	mdcc_show(s, e);
	return 0;
}

ARITHMETIC_GLOBAL int mdcc_on_start(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	if (!s || !set || !e)
		return 0;
	cubic_make(&s->cubic, set->hystart);
	s->wired = e->window;
	s->radio = e->window;
	s->initial = e->window.cwnd;
	s->started = 1;
	if (set->start == MDCC_OPEN_RAN)
		s->radio.cwnd = max_u64(min_u64(set->bound / max_u32(e->path.mss, 1), FLOW_MOST_CWND) << 32, e->window.cwnd);
	cubic_start(&s->cubic, &e->path);
	s->round_end = e->path.sent;
	return 0;
}

/* One event, for a place that knows its kind: of the whole only that part is left there, and the verifier reads no more. */
static __always_inline void mdcc_step_of(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e, __u32 kind)
{
	e->kind = kind;
	e->answers = 0;
	switch (kind) {
	case MDCC_START:
		mdcc_on_start(s, set, e);
		break;
	case MDCC_SAMPLE:
		if (s->mode != MDCC_ALONE)
			break;
		cubic_use_hystart(&s->cubic, &e->path, set->hystart == HYSTART_OFF ? HYSTART_OFF : HYSTART_CLASSIC);
		if (e->rtt_us)
			cubic_sample(&s->cubic, &e->path, &e->window, e->rtt_us);
		break;
	case MDCC_ACKED:
		mdcc_on_acked(s, e);
		break;
	case MDCC_SEEN:
		s->newly_seen += mdcc_from(e->number, e->segments, s->wired_since);
		break;
	case MDCC_MISSING:
		if (!s->has_missing && mdcc_from(e->number, 1, s->wired_since)) {
			s->has_missing = 1;
			s->newly_missing = e->number;
		}
		break;
	case MDCC_LOST:
		mdcc_on_lost(s, e);
		break;
	case MDCC_LOSS:
	case MDCC_TIMEOUT:
	case MDCC_MARK:
		mdcc_on_congestion(s, set, e);
		break;
	case MDCC_ACK:
		mdcc_on_ack(s, set, e);
		break;
	case MDCC_REPORT:
		mdcc_on_report(s, set, e);
		break;
	case MDCC_RECOVERED:
		s->undo.has_radio = 0;
		/* A reduction on the PEP's word alone can still turn out to be wrong. */
		if (!s->undo.has_gap)
			s->undo.has_wired = 0;
		break;
	case MDCC_SPURIOUS:
		if (s->mode == MDCC_ALONE)
			break;
		mdcc_undo_wired(s);
		if (s->undo.has_radio) {
			s->undo.has_radio = 0;
			s->radio.cwnd = max_u64(s->radio.cwnd, s->undo.radio.cwnd);
			s->radio.ssthresh = max_u64(s->radio.ssthresh, s->undo.radio.ssthresh);
		}
		mdcc_show(s, e);
		break;
	case MDCC_IDLE:
		mdcc_on_idle(s, set, e);
		break;
	}
}

/* One event of any kind. */
ARITHMETIC_GLOBAL int mdcc_step(struct mdcc_state *s, const struct mdcc_settings *set, struct mdcc_event *e)
{
	if (s && set && e)
		mdcc_step_of(s, set, e, e->kind);
	return 0;
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
struct mdcc_call {
	struct mdcc_settings settings;
	struct mdcc_state state;
	struct mdcc_event event;
};

static __always_inline void mdcc_call_step(struct mdcc_call *call)
{
	mdcc_step(&call->state, &call->settings, &call->event);
}

#endif
