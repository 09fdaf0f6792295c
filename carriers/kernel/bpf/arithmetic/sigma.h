/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * SIGMA: uploads at the rate of the grants that the device's own modem hears. logic/cc/src/radio/sigma.rs and sigma/radio.rs; their
 * heads have the rules, the reasons and what is ours. Names are the same there and here. The trials and the police are in
 * sigma_guards.h.
 *
 * Source: Diarra 2022 (thesis), sections 3.2.1 to 3.2.6, equations 3.7 to 3.12, Algorithm 1.
 *
 * What a hint says comes in units of the kernel: resources in 2^-16, rates in bytes a second. How much a number of resources carries with
 * the MCS of the last grant stands in a row of the hint, one rate for each whole number: the tables of 3GPP stay outside.
 *
 * The parent (the kernel's CUBIC) has the window in SIGMA_PLAIN. A program has `cong_control`, tells every event to sigma_step, and
 * does what `parent` asks for (PARENT_BEGINS and its neighbours). A state of zeros is one of a connection that has not begun; hints may come
 * before it begins.
 *
 * Fixed point: windows are q32 segments in the state and whole ones, cut off, outside; means of resources q32; capacities are whole bytes
 * a second of at most 34 Gbit/s; RTTs whole microseconds; granted bytes 2^-8. Utz is compared with `full` exactly. Different from
 * Rust:
 *   - means are over at most 512 hints (4096 there): 51 ms of the shortest TTI, 0.5 s of LTE's;
 *   - rounds of the police end by segments delivered and lost, since segments have no numbers;
 *   - RTTs count as at most 16.8 s, windows as at most 2^20 segments, a cell as at most 4095 resources;
 *   - there is no change of path: TCP has none.
 */
#ifndef RANPACE_SIGMA_H
#define RANPACE_SIGMA_H

#include "sigma_guards.h"

/* Who has the window, as `mode`. */
enum sigma_mode { SIGMA_PLAIN, SIGMA_MAX_START, SIGMA_PROPORTIONAL, SIGMA_SAFE, SIGMA_HOLD };
/* How P_max is worked out. */
enum sigma_reach { SIGMA_REACHABLE, SIGMA_EQ37, SIGMA_OWN_PLUS_UNUSED };

/* Smallest window of Max Start in segments (RFC 6928). Ours. */
#define SIGMA_LEAST_START 10ULL
/* RTT over RTTmin from which on PA has the window (Algorithm 1, line 14). */
#define SIGMA_QUEUE 2
/* Largest window over W_max. Ours. */
#define SIGMA_MOST 2
/* Age of a hint at which it is stale, unless four RTTmin are more. For how long a window is kept on one. Ours. */
#define SIGMA_STALE (100 * NS_PER_MS)
#define SIGMA_KEEP NS_PER_S
/* Fresh hints in a row that end CUBIC's time. Ours. */
#define SIGMA_FRESH_TO_RETURN 10
/* A user without a grant for so long is not counted among the active ones. */
#define SIGMA_ACTIVE (100 * NS_PER_MS)
/* A retransmission timeout is this beyond the RTT at least (TCP_RTO_MIN). */
#define SIGMA_MIN_RTO (200 * NS_PER_MS)
/* TTIs of the mean at least; hints that are kept at most, a power of two. */
#define SIGMA_LEAST_TTIS 8ULL
#define SIGMA_HINTS 512
/* Largest number of resources that a row has a rate for (TS 38.101-1: 273 PRBs), and of a cell. */
#define SIGMA_UNITS 275
#define SIGMA_MOST_CELL 4095
/* 1e-6 of a resource in q32: a mean of whole numbers may miss one by a rounding. */
#define SIGMA_ROUNDING 4295ULL
/* No W_max. */
#define SIGMA_NONE (~0ULL)

struct sigma_settings {
	__u64 efficiency;    /* factor of C_max, q32, at most 1 */
	__u64 full;          /* Utz that counts as 1, q32, rounded down */
	__u32 sr_offset_us;  /* added to RTTmin */
	__u32 known_rtt_us;  /* RTTmin that the device knows already; 0 = none */
	__u8 reach;          /* enum sigma_reach */
	__u8 last_tti;       /* the last hint, not a mean */
	__u8 least_of_four;  /* RTT_last is the smallest of the last four */
	__u8 memory;         /* connections to a destination share RTTmin */
	__u8 cap;            /* the window is at most 2 W_max */
	__u8 guards;         /* losses, marks, idle times, limits of the application */
	__u8 trials;         /* tries whether more goes through than is told */
	__u8 unused;
};

/* How much so many resources carry with one MCS, as a rate. */
struct sigma_row {
	__u16 prbs;      /* of the cell, not 0 */
	__u16 steps;     /* last index of `rates` that counts */
	__u8 by_symbols; /* steps are symbols, each over all PRBs; between whole ones the rate rises evenly */
	__u8 unused[3];
	__u32 rates[SIGMA_UNITS + 1]; /* bytes a second */
} __attribute__((aligned(8)));

/* About half of a row, whole words. */
#define SIGMA_HALF (sizeof(struct sigma_row) / 16 * 8)

/* A hint of the modem (RadioHint of logic/rnis, uplink). */
struct sigma_hint {
	__u64 at;     /* ns, when it was measured */
	__u32 own;    /* resources granted to the device, 2^-16 */
	__u32 unused; /* granted to nobody, 2^-16 */
	__u32 ahead;  /* bytes a second that the device sends before this connection's */
	__u32 tti;    /* ns */
	__u16 cell;   /* resources in all; 0 = of no use */
	__u16 number; /* of the cell */
	__u16 users;  /* granted something in the last 100 ms */
	__u8 granted; /* the device was granted something: the row is its MCS's */
	__u8 handover;
	struct sigma_row row;
};

struct sigma_kept {
	__u64 at;
	__u32 own, unused;
};

/* The radio as SIGMA sees it. */
struct sigma_inputs {
	__u64 own, unused;      /* sums of `recent` */
	__u64 at;               /* when the last hint was measured; 0 = none */
	__u64 granted_at;       /* when there was a grant of one's own; 0 = none */
	__u64 p_max;            /* q32 */
	__u64 utilisation;      /* q32; 1 before anything is known */
	__u32 run;              /* hints in a row, none of which came late */
	__u32 capacity;         /* C_max, bytes a second */
	__u32 granted;          /* of the last hint, bytes a second */
	__u32 whole;            /* rate of the whole cell by the last hint */
	__u16 number;           /* of the last hint's cell */
	__u8 has_capacity;
	__u8 unused8[5];
	__u32 first, count;     /* of `recent` */
	struct sigma_row row;   /* of the last grant */
	struct sigma_kept recent[SIGMA_HINTS];
};

/* What one connection has learned of the path to a destination, for the next ones. */
struct sigma_memory {
	__u64 since;      /* ns; 0 = the path never was another one */
	__u32 min_rtt_us; /* 0 = nothing */
	__u16 cell;
	__u8 has_cell;
	__u8 unused;
};

struct sigma_state {
	__u64 window;       /* q32 segments */
	__u64 pacing;       /* bytes of payload a second; 0 = none */
	__u64 repairing;    /* window to go back to once what is lost has been repaired, q32; 0 = nothing is */
	__u64 path_since;
	__u64 held_since;   /* when the information became stale */
	__u64 judge_rtt_after; /* of a timeout after which an RTT is still to be judged; 0 = none */
	__u64 start, started_with; /* Max Start: bytes acknowledged, IW in bytes */
	__u32 shown;        /* window as the socket had it after the last event: another one is somebody else's */
	__u32 min_rtt_us;   /* 0 = none */
	__u32 rtts[4];      /* the last ones, newest last; 0 = none */
	__u16 recalled_in;  /* cell of an RTTmin that others told of, until the first hint */
	__u8 recalled;
	__u8 made;          /* these are not the zeros of the beginning */
	__u8 mode;          /* enum sigma_mode */
	__u8 started;
	__u8 renew_min;     /* the next RTT is RTTmin */
	__u8 timed_out;     /* nothing new was acknowledged since a timeout */
	struct sigma_police police;
	struct sigma_trials trials;
	struct sigma_inputs inputs;
};

/* What happened, as `kind`. */
enum sigma_event_kind {
	SIGMA_START,     /* established; flow.cwnd is the initial window */
	SIGMA_SAMPLE,    /* an acknowledgement's RTT, before the parent */
	SIGMA_LOSS,      /* `lost` segments are newly taken for lost; `first` of an episode */
	SIGMA_TIMEOUT,   /* the timer fired */
	SIGMA_MARK,      /* the peer echoes a mark of the network */
	SIGMA_ACK,       /* the acknowledgement, after loss detection and before the parent */
	SIGMA_RECOVERED, /* the state is Open again */
	SIGMA_SPURIOUS,  /* nothing was lost; `prior` was the window */
	SIGMA_IDLE,      /* sending starts again after `idle` */
	SIGMA_HINT,      /* radio information */
};

/* What the parent (CUBIC) is to do after an event. */
#define SIGMA_PARENT_ANSWERS 1 /* to this congestion */
#define SIGMA_PARENT_BEGINS 2  /* anew: its init, at flow.cwnd and flow.ssthresh; before anything else */
#define SIGMA_PARENT_HAS 4     /* the window is the parent's: it is told of this event too ... */
#define SIGMA_PARENT_WAITS 8   /* ... but not of this one */

struct sigma_event {
	struct flow flow;
	struct ack ack;
	__u32 kind;   /* enum sigma_event_kind */
	__u64 idle;   /* ns */
	__u32 prior;  /* segments */
	__u32 lost;
	__u32 first;
	__u32 parent; /* written */
};

/* -- From hints to P_max, C_max and Utz (section 3.2.4) -- */

/* The rate of so many resources, q32, in bytes a second. */
ARITHMETIC_GLOBAL __u32 sigma_rate(const struct sigma_row *r, __u64 units)
{
	if (!r)
		return 0;
	__u64 count = r->by_symbols ? units * r->steps / max_u32(r->prbs, 1) : units;
	__u64 whole = (count + SIGMA_ROUNDING) >> 32, rate, next, part;
	__u32 steps = min_u32(r->steps, SIGMA_UNITS);
	__u32 at = whole < steps ? whole : steps, then;

	KEEP_CHECK(at);
	if (at > SIGMA_UNITS)
		return 0;
	rate = r->rates[at];
	if (r->by_symbols && at < steps) {
		then = at + 1;
		KEEP_CHECK(then);
		if (then > SIGMA_UNITS)
			return rate;
		next = r->rates[then];
		part = count > whole << 32 ? count - (whole << 32) : 0;
		if (next > rate)
			rate += (next - rate) * (part & 0xffffffff) >> 32;
	}
	return rate;
}

/* P_max, C_max and Utz of the hints that are kept, the last of which is `h`. */
ARITHMETIC_GLOBAL int sigma_work_out(struct sigma_inputs *in, const struct sigma_settings *set, const struct sigma_hint *h)
{
	if (!in || !set || !h)
		return 0;
	__u64 count = max_u32(in->count, 1), cell = (__u64)h->cell << 32, fair, rate;
	__u64 own = (in->own << 16) / count, reachable = ((in->own + in->unused) << 16) / count;
	/* Whoever was idle is not among the active users, and will be. */
	int is_counted = in->granted_at && h->at - in->granted_at <= SIGMA_ACTIVE;
	__u32 users = max_u32(h->users, 1) + (!is_counted && h->users);

	fair = cell / users;
	if (set->reach == SIGMA_EQ37)
		reachable = fair + (in->unused << 16) / count;
	else if (set->reach == SIGMA_REACHABLE)
		reachable = max_u64(fair, reachable);
	in->p_max = min_u64(reachable, cell);
	in->utilisation = 1ULL << 32;
	if (in->p_max && product_exceeds(set->full, in->p_max, own, 1ULL << 32))
		/* Below 2^33, since a cell has at most 4095 resources. */
		in->utilisation = ratio_q32(own >> 11, max_u64(in->p_max >> 11, 1));
	in->has_capacity = 0;
	if (!in->granted_at)
		return 0;
	rate = sigma_rate(&in->row, in->p_max);
	/* No block of the whole cell: there is no such MCS. */
	if (!rate && !sigma_rate(&in->row, cell))
		return 0;
	rate = times_fraction(rate, set->efficiency);
	/* What goes first on the device is not this connection's. */
	in->capacity = rate > h->ahead ? rate - h->ahead : 0;
	in->has_capacity = 1;
	return 0;
}

/* The oldest hint leaves the mean, if it lies so far back or there is no room. Whether it did. */
ARITHMETIC_GLOBAL int sigma_drop_oldest(struct sigma_inputs *in, __u64 at, __u64 span)
{
	const struct sigma_kept *k;

	if (!in || !in->count)
		return 0;
	k = &in->recent[in->first % SIGMA_HINTS];
	if (at - k->at < span && in->count < SIGMA_HINTS)
		return 0;
	in->own -= k->own;
	in->unused -= k->unused;
	in->first++;
	in->count--;
	return 1;
}

/* Times in a row that the oldest hint is dropped; the square of it is SIGMA_HINTS or more. */
#define SIGMA_DROPS 23

/* Hints that lie so far back leave the mean. Whether there may be more: of two loops, one in the other, the verifier reads each alone. */
ARITHMETIC_GLOBAL int sigma_drop_some(struct sigma_inputs *in, __u64 at, __u64 span)
{
	int i;

	if (!in)
		return 0;
	for (i = 0; i < SIGMA_DROPS; i++)
		if (!sigma_drop_oldest(in, at, span))
			return 0;
	return 1;
}

/* The window of the mean moves on. */
ARITHMETIC_GLOBAL int sigma_keep(struct sigma_inputs *in, const struct sigma_hint *h, __u64 span)
{
	struct sigma_kept *k;
	int i;

	if (!in || !h)
		return 0;
	for (i = 0; i < SIGMA_DROPS; i++)
		if (!sigma_drop_some(in, h->at, span))
			break;
	k = &in->recent[(in->first + in->count) % SIGMA_HINTS];
	k->at = h->at;
	k->own = h->own;
	k->unused = h->unused;
	in->own += k->own;
	in->unused += k->unused;
	in->count++;
	return 0;
}

/* In two parts: clang copies no more at once. */
ARITHMETIC_GLOBAL int sigma_copy_row(struct sigma_inputs *in, const struct sigma_hint *h)
{
	if (!in || !h)
		return 0;
	__builtin_memcpy(&in->row, &h->row, SIGMA_HALF);
	__builtin_memcpy((char *)&in->row + SIGMA_HALF, (const char *)&h->row + SIGMA_HALF, sizeof(in->row) - SIGMA_HALF);
	return 0;
}

#define SIGMA_IGNORED 0
#define SIGMA_TAKEN 1
#define SIGMA_MOVED 2 /* the cell is another one than before */

/* Takes a hint, which was brought within its bounds. RTTmin in us, 0 = none. */
ARITHMETIC_GLOBAL int sigma_on_hint(struct sigma_inputs *in, const struct sigma_settings *set, const struct sigma_hint *h,
				    __u32 base_us, __u64 stale_after)
{
	__u64 span = 0;
	int moved, late;

	if (!in || !set || !h)
		return SIGMA_IGNORED;
	moved = h->handover || (in->at && in->number != h->number);
	late = in->at && h->at - in->at > stale_after;
	if (moved || late) {
		in->own = 0;
		in->unused = 0;
		in->count = 0;
		in->run = 0;
	}
	if (moved)
		in->granted_at = 0;
	in->at = h->at;
	in->number = h->number;
	if (in->run < 0x7fffffff)
		in->run++;
	if (h->granted) {
		in->granted_at = h->at;
		sigma_copy_row(in, h);
	}
	/* In proportion to the whole cell: sizes of grants that do not exist are not rounded down. */
	in->whole = sigma_rate(&h->row, (__u64)h->cell << 32);
	in->granted = (__u64)in->whole * h->own / ((__u64)h->cell << 16 ? (__u64)h->cell << 16 : 1);
	if (!set->last_tti)
		span = max_u64(SIGMA_LEAST_TTIS * h->tti, base_us * NS_PER_US / 2);
	sigma_keep(in, h, span);
	sigma_work_out(in, set, h);
	return moved ? SIGMA_MOVED : SIGMA_TAKEN;
}

/* -- The control -- */

/* RTTmin with the offset; 0 before the first RTT. */
static __always_inline __u32 sigma_base_us(const struct sigma_state *s, const struct sigma_settings *set)
{
	return s->min_rtt_us ? bounded_rtt(s->min_rtt_us + bounded_rtt(set->sr_offset_us)) : 0;
}

/* RTT_last. */
static __always_inline __u32 sigma_last_us(const struct sigma_state *s, const struct sigma_settings *set)
{
	__u32 least = s->rtts[3], i;

	if (set->least_of_four)
		for (i = 0; i < 3; i++)
			if (s->rtts[i])
				least = min_u32(least, s->rtts[i]);
	return least;
}

/* W_max in q16 segments (3.9), below 2^37; SIGMA_NONE while capacity or RTT are unknown. */
ARITHMETIC_GLOBAL __u64 sigma_w_max(const struct sigma_state *s, const struct sigma_settings *set, const struct flow *f)
{
	if (!s || !set || !f)
		return SIGMA_NONE;
	__u64 base = sigma_base_us(s, set), millionths;

	if (!s->inputs.has_capacity || !base)
		return SIGMA_NONE;
	/* 2^32 bytes/s times 2^24 us; then 2^16 over 10^6. */
	millionths = min_u64(s->inputs.capacity * base / max_u32(f->mss, 1), 1ULL << 41);
	return millionths * 1024 / 15625;
}

/* A window in q16 times `min(1, RTTmin / RTT_last)`, as q32. */
static __always_inline __u64 sigma_shrunk(const struct sigma_state *s, const struct sigma_settings *set, __u64 window)
{
	__u64 base = sigma_base_us(s, set), last = sigma_last_us(s, set);

	return (base && last > base ? window * base / last : window) << 16;
}

static __always_inline __u64 sigma_stale_after(const struct sigma_state *s, const struct sigma_settings *set)
{
	return max_u64(SIGMA_STALE, 4 * NS_PER_US * sigma_base_us(s, set));
}

static __always_inline int sigma_is_fresh(const struct sigma_state *s, const struct sigma_settings *set, __u64 now)
{
	return s->inputs.at && elapsed_ns(now, s->inputs.at) <= sigma_stale_after(s, set) && s->inputs.has_capacity;
}

/* The window in q32 segments, within its bounds. */
ARITHMETIC_GLOBAL __u64 sigma_bounded(const struct sigma_state *s, const struct sigma_settings *set, const struct flow *f, __u64 window)
{
	if (!s || !set || !f)
		return SIGMA_MIN_CWND;
	__u64 w_max = sigma_w_max(s, set, f);

	if (w_max != SIGMA_NONE && set->cap)
		window = min_u64(window, max_u64(SIGMA_MOST * w_max << 16, SIGMA_MIN_CWND));
	window = max_u64(window, s->trials.trying ? s->trials.window : 0);
	if (s->police.cap)
		window = min_u64(window, s->police.cap);
	return max_u64(min_u64(window, (__u64)FLOW_MOST_CWND << 32), SIGMA_MIN_CWND);
}

/* So many q32 segments per RTTmin, as bytes of payload a second. */
ARITHMETIC_GLOBAL __u64 sigma_per_rtt(const struct flow *f, __u64 window, __u32 base_us)
{
	if (!f)
		return 1;
	/* 2^28 of q8, times 2^16 bytes, times 10^6 us below 2^64. */
	__u64 q8 = min_u64(window >> 24, (1ULL << 28) - 1);

	return max_u64((q8 * (f->mss & 0xffff) >> 8) * US_PER_S / max_u32(base_us, 1), 1);
}

/* Max Start's pace: `max(W_max, 10 MSS) / RTTmin`, and so C_max as it changes. */
static __always_inline void sigma_pace(struct sigma_state *s, const struct sigma_settings *set, const struct flow *f)
{
	__u64 w_max = sigma_w_max(s, set, f);

	if (w_max != SIGMA_NONE)
		s->pacing = sigma_per_rtt(f, max_u64(w_max, SIGMA_LEAST_START << 16) << 16, sigma_base_us(s, set));
}

/* Max Start, with the W_max of now; as it is without one. */
ARITHMETIC_GLOBAL int sigma_max_start(struct sigma_state *s, const struct sigma_settings *set, struct flow *f)
{
	if (!s || !set || !f)
		return 0;
	__u64 w_max = sigma_w_max(s, set, f);

	if (w_max == SIGMA_NONE)
		return 0;
	w_max = max_u64(w_max, SIGMA_LEAST_START << 16);
	s->mode = SIGMA_MAX_START;
	s->started_with = (w_max * (f->mss & 0xffff) + 0xffff) >> 16;
	s->start = 0;
	s->window = min_u64(w_max << 16, (__u64)FLOW_MOST_CWND << 32);
	f->ssthresh = SIGMA_MIN_CWND >> 32; /* growth is never slow start's */
	sigma_pace(s, set, f);
	return 0;
}

/* CUBIC goes on from here. */
static __always_inline void sigma_fall_back(struct sigma_state *s, struct sigma_event *e)
{
	s->mode = SIGMA_PLAIN;
	s->inputs.run = 0;
	s->repairing = 0;
	s->pacing = 0;
	e->parent |= SIGMA_PARENT_BEGINS;
}

/* A trial that is under way is over. */
static __always_inline void sigma_end_trial(struct sigma_state *s, const struct sigma_settings *set, const struct flow *f)
{
	__u64 before = s->trials.before;

	if (!set->trials || !s->trials.trying)
		return;
	sigma_stop(&s->trials, f->now);
	s->pacing = 0;
	s->window = sigma_bounded(s, set, f, min_u64(s->window, before));
}

/* Whether the information has become stale, or is fresh again, since this was asked last. */
ARITHMETIC_GLOBAL int sigma_look(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e)
{
	if (!s || !set || !e)
		return 0;
	struct flow *f = &e->flow;
	int fresh = sigma_is_fresh(s, set, f->now);
	__u64 w_max, stale_at;

	if (s->mode == SIGMA_HOLD && fresh && s->inputs.run >= SIGMA_FRESH_TO_RETURN) {
		s->mode = SIGMA_SAFE;
	} else if (s->mode == SIGMA_HOLD && elapsed_ns(f->now, s->held_since) >= SIGMA_KEEP) {
		/* From `min(cwnd, last W_max)`, which may be that of a fade: slow start, until HyStart sees a queue, up to the
		 * largest window that SIGMA itself would have. From there on CUBIC's own growth.
		 */
		if (s->repairing)
			s->window = s->repairing;
		w_max = sigma_w_max(s, set, f);
		w_max = w_max == SIGMA_NONE ? s->window : w_max << 16;
		s->window = max_u64(min_u64(s->window, w_max), SIGMA_MIN_CWND);
		f->ssthresh = min_u64((set->guards ? max_u64(SIGMA_MOST * w_max, s->window) : s->window) >> 32, FLOW_MOST_CWND);
		sigma_fall_back(s, e);
	} else if (s->mode != SIGMA_PLAIN && s->mode != SIGMA_HOLD && !fresh) {
		s->mode = SIGMA_HOLD;
		/* It was stale from then on, whenever that is noticed. */
		stale_at = s->inputs.at + sigma_stale_after(s, set);
		s->held_since = min_u64(stale_at, f->now);
		s->pacing = 0;
		sigma_end_trial(s, set, f);
	}
	return 0;
}

static __always_inline void sigma_forget_path(struct sigma_state *s, const struct sigma_settings *set)
{
	if (set->trials)
		sigma_forget(&s->trials);
	s->renew_min = 1;
	s->rtts[0] = s->rtts[1] = s->rtts[2] = s->rtts[3] = 0;
	s->judge_rtt_after = 0;
}

/* An RTT in us, not 0. */
ARITHMETIC_GLOBAL int sigma_on_rtt(struct sigma_state *s, __u64 now, __u32 rtt_us)
{
	if (!s)
		return 0;
	rtt_us = max_u32(bounded_rtt(rtt_us), 1);
	s->rtts[0] = s->rtts[1];
	s->rtts[1] = s->rtts[2];
	s->rtts[2] = s->rtts[3];
	s->rtts[3] = rtt_us;
	/* Only packets that left after the timeout tell of the path there is now. */
	if (s->judge_rtt_after && elapsed_ns(now, s->judge_rtt_after) >= rtt_us * NS_PER_US) {
		s->judge_rtt_after = 0;
		if (s->min_rtt_us && 2ULL * rtt_us >= 3ULL * s->min_rtt_us)
			s->renew_min = 1;
	}
	if (s->renew_min)
		s->path_since = now;
	if (!s->min_rtt_us || s->renew_min)
		s->min_rtt_us = rtt_us;
	else
		s->min_rtt_us = min_u32(s->min_rtt_us, rtt_us);
	s->renew_min = 0;
	return 0;
}

/* New data were acknowledged: PA or SI. */
ARITHMETIC_GLOBAL int sigma_adjust(struct sigma_state *s, const struct sigma_settings *set, const struct flow *f, __u32 bytes)
{
	if (!s || !set || !f)
		return 0;
	__u64 w_max = sigma_w_max(s, set, f), acked;

	if (w_max == SIGMA_NONE)
		return 0;
	if (sigma_last_us(s, set) >= SIGMA_QUEUE * sigma_base_us(s, set)) {
		s->mode = SIGMA_PROPORTIONAL;
		s->window = sigma_shrunk(s, set, w_max);
	} else {
		s->mode = SIGMA_SAFE;
		if (f->cwnd_limited || !set->guards) {
			acked = ((__u64)min_u32(bytes, 1U << 28) << 32) / max_u32(f->mss, 1);
			s->window += mul_q32(acked, (1ULL << 32) - min_u64(s->inputs.utilisation, 1ULL << 32));
		}
	}
	s->window = sigma_bounded(s, set, f, s->window);
	return 0;
}

/* What was acknowledged is held against the hints. */
static __always_inline void sigma_try_hints(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e)
{
	struct flow *f = &e->flow;
	__u32 base = sigma_base_us(s, set), who;
	int open = f->ca_state == FLOW_OPEN || f->ca_state == FLOW_DISORDER, found;

	if (!base || !set->trials)
		return;
	if (s->mode == SIGMA_PLAIN)
		who = SIGMA_OWNER_PLAIN;
	else if ((s->mode == SIGMA_PROPORTIONAL || s->mode == SIGMA_SAFE) && open && !s->repairing && !s->timed_out && !s->police.cap)
		who = SIGMA_OWNER_READY;
	else
		who = SIGMA_OWNER_SIGMA;
	/* CUBIC does not take over in the middle of a repair. */
	if (who == SIGMA_OWNER_SIGMA && !open)
		return;
	s->trials.who = who;
	found = sigma_trials_ack(&s->trials, f, e->ack.bytes, base, s->window);
	if (found == SIGMA_FOUND_BEGIN) {
		s->window = max_u64(s->window, s->trials.window);
		s->pacing = sigma_per_rtt(f, s->trials.window + s->trials.window / 4, base);
	} else if (found == SIGMA_FOUND_END) {
		s->pacing = 0;
		s->window = sigma_bounded(s, set, f, min_u64(s->window, s->trials.before));
	} else if ((found == SIGMA_FOUND_LOW || found == SIGMA_FOUND_QUEUE) && who != SIGMA_OWNER_PLAIN) {
		s->timed_out = 0;
		s->window = max_u64(min_u64((__u64)min_u32(f->in_flight, FLOW_MOST_CWND) << 32, s->window), SIGMA_LEAST_START << 32);
		/* Without a queue slow start finds what there is. */
		f->ssthresh = found == SIGMA_FOUND_QUEUE ? s->window >> 32 : FLOW_NO_SSTHRESH;
		sigma_fall_back(s, e);
	}
}

ARITHMETIC_GLOBAL int sigma_on_loss(struct sigma_state *s, const struct sigma_settings *set, const struct sigma_event *e)
{
	if (!s || !set || !e)
		return 0;
	const struct flow *f = &e->flow;
	__u64 w_max;

	s->police.lost += min_u32(e->lost, FLOW_MOST_CWND);
	if (s->mode == SIGMA_MAX_START) {
		s->mode = SIGMA_SAFE;
		s->pacing = 0;
	}
	if (!set->guards || !e->first || f->ca_state == FLOW_LOSS)
		return 0;
	w_max = sigma_w_max(s, set, f);
	w_max = sigma_shrunk(s, set, w_max == SIGMA_NONE ? min_u64(s->window >> 16, 1ULL << 37) : w_max);
	if (!s->repairing)
		s->repairing = s->window;
	s->repairing = max_u64(min_u64(s->repairing, w_max), SIGMA_MIN_CWND);
	s->window = ((__u64)min_u32(f->in_flight, FLOW_MOST_CWND) + 1) << 32;
	s->window = max_u64(min_u64(s->window, s->repairing), 1ULL << 32);
	return 0;
}

ARITHMETIC_GLOBAL int sigma_on_mark(struct sigma_state *s, const struct sigma_settings *set, const struct flow *f)
{
	if (!s || !set || !f)
		return 0;
	__u64 w_max = sigma_w_max(s, set, f), step;

	if (!set->guards)
		return 0;
	w_max = w_max == SIGMA_NONE ? min_u64(s->window >> 16, 1ULL << 37) : w_max;
	step = min_u64(sigma_shrunk(s, set, w_max), w_max << 16 >> 1);
	step = sigma_bounded(s, set, f, min_u64(step, s->repairing ? s->repairing : s->window));
	if (s->repairing)
		s->repairing = step;
	else
		s->window = step;
	return 0;
}

ARITHMETIC_GLOBAL int sigma_on_congestion(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e)
{
	if (!s || !set || !e)
		return 0;
	struct flow *f = &e->flow;

	sigma_look(s, set, e);
	if (s->mode == SIGMA_PLAIN) {
		if (e->kind == SIGMA_TIMEOUT)
			s->judge_rtt_after = f->now;
		e->parent |= SIGMA_PARENT_ANSWERS;
		return 0;
	}
	sigma_end_trial(s, set, f);
	if (e->kind == SIGMA_LOSS) {
		sigma_on_loss(s, set, e);
	} else if (e->kind == SIGMA_MARK) {
		sigma_on_mark(s, set, f);
	} else {
		if (s->mode == SIGMA_MAX_START)
			s->mode = SIGMA_SAFE;
		s->pacing = 0;
		s->timed_out = 1;
		s->judge_rtt_after = f->now;
		s->repairing = 0;
		s->window = 1ULL << 32;
	}
	return 0;
}

ARITHMETIC_GLOBAL int sigma_on_ack(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e)
{
	if (!s || !set || !e)
		return 0;
	struct flow *f = &e->flow;
	__u64 w_max;
	__u32 base;

	sigma_try_hints(s, set, e);
	if (s->mode == SIGMA_PLAIN)
		return 0;
	base = sigma_base_us(s, set);
	if (set->guards)
		sigma_police_ack(&s->police, f, e->ack.delivered, base && sigma_last_us(s, set) >= SIGMA_QUEUE * base,
				 s->repairing ? s->repairing : s->window);
	if (s->timed_out) {
		if (!e->ack.acked)
			return 0;
		s->timed_out = 0;
		if (sigma_is_fresh(s, set, f->now)) {
			sigma_max_start(s, set, f);
		} else {
			/* Slow start up to W_max / 2. */
			w_max = sigma_w_max(s, set, f);
			f->ssthresh = max_u64(w_max == SIGMA_NONE ? 0 : w_max >> 17, SIGMA_MIN_CWND >> 32);
			sigma_fall_back(s, e);
			e->parent |= SIGMA_PARENT_WAITS;
		}
		return 0;
	}
	if (s->repairing) {
		/* What leaves is what has arrived (RFC 6937's packet conservation). */
		w_max = (__u64)min_u32(f->in_flight, FLOW_MOST_CWND) + max_u32(min_u32(e->ack.delivered, FLOW_MOST_CWND), 1);
		s->window = max_u64(min_u64(w_max << 32, s->repairing), 1ULL << 32);
		return 0;
	}
	if (s->mode == SIGMA_MAX_START) {
		s->start += e->ack.bytes;
		if (s->start < s->started_with)
			return 0;
		s->pacing = 0;
		sigma_adjust(s, set, f, e->ack.bytes);
	} else if (s->mode != SIGMA_HOLD && e->ack.acked) {
		sigma_adjust(s, set, f, e->ack.bytes);
	}
	return 0;
}

/* Radio information, whose content is brought within its bounds. */
ARITHMETIC_GLOBAL int sigma_radio(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e, struct sigma_hint *h)
{
	if (!s || !set || !e || !h)
		return 0;
	struct flow *f = &e->flow;
	struct sigma_inputs *in = &s->inputs;
	__u32 base;
	int taken;

	if (s->started)
		sigma_look(s, set, e); /* whether it was stale until now */
	h->at = max_u64(min_u64(h->at, f->now), 1); /* 0 is none */
	h->cell = min_u32(h->cell, SIGMA_MOST_CELL);
	h->own = min_u64(h->own, (__u64)h->cell << 16);
	h->unused = min_u64(h->unused, (__u64)h->cell << 16);
	h->tti = min_u32(h->tti, 1000000000);
	if (!h->cell || !h->row.prbs || h->at <= in->at || elapsed_ns(f->now, h->at) > sigma_stale_after(s, set))
		return 0;
	base = sigma_base_us(s, set);
	taken = sigma_on_hint(in, set, h, base, sigma_stale_after(s, set));
	if (s->recalled && s->recalled_in != h->number)
		s->renew_min = 1; /* what others know is of another cell */
	s->recalled = 0;
	if (taken == SIGMA_MOVED && s->started) {
		sigma_end_trial(s, set, f);
		sigma_forget_path(s, set);
	}
	if (set->trials) {
		sigma_on_report(&s->trials, in->at, in->granted, base, sigma_stale_after(s, set));
		if (in->granted)
			sigma_on_grant(&s->trials, in->at, in->whole);
	}
	if (!s->started)
		return 0;
	sigma_look(s, set, e);
	if (s->mode == SIGMA_PLAIN && in->run >= SIGMA_FRESH_TO_RETURN && (!set->trials || f->now >= s->trials.hold_until) &&
	    (f->ca_state == FLOW_OPEN || f->ca_state == FLOW_DISORDER) && in->has_capacity && s->min_rtt_us) {
		/* Safe Increase goes on from the window as it is. */
		s->mode = SIGMA_SAFE;
		sigma_police_begin(&s->police);
		s->repairing = 0;
		s->timed_out = 0;
		s->pacing = 0;
		f->ssthresh = SIGMA_MIN_CWND >> 32;
		sigma_drive(&s->trials, f->now);
		s->window = sigma_bounded(s, set, f, s->window);
	} else if (s->mode == SIGMA_MAX_START) {
		sigma_pace(s, set, f);
	}
	return 0;
}

/* The values that are not zero at the beginning. */
static __always_inline void sigma_make(struct sigma_state *s, const struct sigma_settings *set)
{
	s->made = 1;
	s->min_rtt_us = set->known_rtt_us;
	s->inputs.utilisation = 1ULL << 32;
	sigma_trials_begin(&s->trials);
}

/* What others have learned of the path, before the connection begins. */
static __always_inline void sigma_recall(struct sigma_state *s, const struct sigma_settings *set, const struct sigma_memory *m)
{
	if (!s->made)
		sigma_make(s, set);
	if (!set->memory || !m->min_rtt_us || s->started)
		return;
	s->min_rtt_us = s->min_rtt_us ? min_u32(s->min_rtt_us, m->min_rtt_us) : m->min_rtt_us;
	s->path_since = m->since;
	s->recalled = m->has_cell;
	s->recalled_in = m->cell;
}

/* What is known of a path by `m` and by this connection: of the newer path, or the smaller RTT of the same one. Whether `m` is another
 * one now.
 */
static __always_inline int sigma_remember(const struct sigma_state *s, const struct sigma_settings *set, struct sigma_memory *m)
{
	if (!set->memory || !s->min_rtt_us || s->renew_min)
		return 0;
	if (m->min_rtt_us && (m->since > s->path_since || (m->since == s->path_since && m->min_rtt_us <= s->min_rtt_us)))
		return 0;
	m->min_rtt_us = s->min_rtt_us;
	m->since = s->path_since;
	m->has_cell = s->inputs.at != 0;
	m->cell = s->inputs.number;
	return 1;
}

/* One event, for a place that knows its kind: of the whole only that part is left there, and the verifier reads no more. `h` is needed
 * for SIGMA_HINT alone. What the window is stands in flow.cwnd, and the glue writes into `shown` what became of it.
 */
static __always_inline void sigma_step_of(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e,
					  struct sigma_hint *h, __u32 kind)
{
	struct flow *f = &e->flow;

	e->kind = kind;
	e->parent = 0;
	f->cwnd = max_u32(min_u32(f->cwnd, FLOW_MOST_CWND), 1);
	if (!s->made)
		sigma_make(s, set);
	if (f->cwnd != s->shown)
		s->window = (__u64)f->cwnd << 32;
	switch (kind) {
	case SIGMA_START:
		s->started = 1;
		if (f->srtt_us || f->min_rtt_us)
			sigma_on_rtt(s, f->now, f->srtt_us ? f->srtt_us : f->min_rtt_us);
		/* After lost SYNs the window is one segment (RFC 5681, 3.1). */
		if (sigma_is_fresh(s, set, f->now) && s->min_rtt_us && f->cwnd > 1) {
			sigma_max_start(s, set, f);
			sigma_drive(&s->trials, f->now);
		}
		break;
	case SIGMA_SAMPLE:
		if (e->ack.rtt_us) {
			sigma_on_rtt(s, f->now, e->ack.rtt_us);
			if (set->trials)
				sigma_trials_rtt(&s->trials, bounded_rtt(e->ack.rtt_us));
		}
		sigma_look(s, set, e);
		break;
	case SIGMA_LOSS:
	case SIGMA_TIMEOUT:
	case SIGMA_MARK:
		sigma_on_congestion(s, set, e);
		break;
	case SIGMA_ACK:
		sigma_on_ack(s, set, e);
		break;
	case SIGMA_RECOVERED:
		if (s->mode != SIGMA_PLAIN && s->repairing) {
			s->window = sigma_bounded(s, set, f, s->repairing);
			s->repairing = 0;
		}
		break;
	case SIGMA_SPURIOUS:
		if (s->mode == SIGMA_PLAIN)
			break;
		if (s->mode == SIGMA_MAX_START) {
			s->mode = SIGMA_SAFE;
			s->pacing = 0;
		}
		s->timed_out = 0;
		s->window = max_u64(s->repairing ? s->repairing : s->window, (__u64)min_u32(e->prior, FLOW_MOST_CWND) << 32);
		s->window = sigma_bounded(s, set, f, s->window);
		s->repairing = 0;
		break;
	case SIGMA_IDLE:
		sigma_look(s, set, e);
		if (s->mode == SIGMA_PLAIN)
			break;
		sigma_end_trial(s, set, f);
		if (e->idle > f->srtt_us * NS_PER_US + SIGMA_MIN_RTO && set->guards && s->mode != SIGMA_HOLD) {
			s->repairing = 0;
			s->timed_out = 0;
			sigma_max_start(s, set, f);
		}
		break;
	case SIGMA_HINT:
		if (h)
			sigma_radio(s, set, e, h);
		break;
	}
	s->window = max_u64(min_u64(s->window, (__u64)FLOW_MOST_CWND << 32), 1ULL << 32);
	f->cwnd = s->window >> 32;
	f->pacing = s->pacing;
	if (s->mode == SIGMA_PLAIN)
		e->parent |= SIGMA_PARENT_HAS;
}

/* One event of any kind. */
ARITHMETIC_GLOBAL int sigma_step(struct sigma_state *s, const struct sigma_settings *set, struct sigma_event *e, struct sigma_hint *h)
{
	if (s && set && e)
		sigma_step_of(s, set, e, h, e->kind);
	return 0;
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
struct sigma_call {
	struct sigma_settings settings;
	struct sigma_state state;
	struct sigma_event event;
	struct sigma_hint hint;
};

static __always_inline void sigma_call_step(struct sigma_call *call)
{
	sigma_step(&call->state, &call->settings, &call->event, &call->hint);
	call->state.shown = call->event.flow.cwnd;
}

#endif
