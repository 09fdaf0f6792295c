/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * MELD: tells a loss-based control only of those losses that congestion explains, by what the base station says.
 *
 * Source: Diarra 2022, chapter 4; Diarra, Turletti, Dabbous and Ismail, "Cross-layer Loss Discrimination Algorithms for MEC in 4G
 * networks", equations 1 and 2 and Algorithm 1. logic/cc/src/decorators/meld.rs and meld/decision.rs are the same; their heads say
 * what is ours. Names are the same there and here.
 *
 * For each loss event:
 * - condition 4.1: the user's block is at least S_TB = T_PDU / N_HARQ. If not, the radio is bad and the parent is notified.
 * - condition 4.2, MELD-ME only: the queue is below Q_th = S_TBm N_HARQ. If not, it is standing and the parent is notified.
 * - guards: a handover, many losses in an RTT, a buffer that is nearly full: the parent is notified.
 * - Else the loss is silent: what is lost is sent again, and window, threshold and the parent's own state stay.
 *
 * What the kernel does with a silent loss. A program with `cong_control` owns the window and leaves it alone. One with `cong_avoid`
 * answers `ssthresh` with the window itself, so that nothing is to be reduced; PRR may lower the window all the same, and at the
 * end of recovery the kernel sets it to that threshold, after `set_state(Open)`. So meld_recovered only notes the end, and
 * meld_ack, in the first `cong_avoid` in Open, brings window and threshold back. The glue asks meld_loss once for each call of
 * `ssthresh` (in a silent episode: for each acknowledgement that finds further losses, where it has `cong_control`), hands
 * s->shown_cwnd to the parent if it is notified, and shows the parent FLOW_OPEN and no `set_state` while s->silent.
 *
 * Fixed point: the multiple of Q_th is q20. The largest S_TBm comes with the report (it takes the tables of 3GPP), and with it the
 * PRBs and layers of a block that is held from an earlier report. Windows are whole segments.
 * Left out: radio_at=loss, for which 256 reports would have to be kept.
 */
#ifndef RANPACE_MELD_H
#define RANPACE_MELD_H

#include "flow.h"

/* How a loss was noticed. */
#define MELD_LOSS 0
#define MELD_TIMEOUT 1
#define MELD_ECN 2

/* What is made of it: 0 is silent, the others are why the parent is notified, in the order in which they are asked. */
#define MELD_HIDE 0
#define MELD_MARK 1          /* a mark of the network, not a loss */
#define MELD_TIMEOUT_AGAIN 2 /* a second timeout without any acknowledgement */
#define MELD_UNKNOWN 3       /* nothing is known of the user, or no block was scheduled */
#define MELD_STALE 4         /* what is known is too old */
#define MELD_SMALL_BLOCK 5   /* condition 4.1 */
#define MELD_LONG_QUEUE 6    /* condition 4.2 */
#define MELD_HANDOVER 7
#define MELD_MANY_LOST 8
#define MELD_NEAR_OVERFLOW 9
#define MELD_REASONS 10

/* Oldest report that is used: three periods, but never less than 50 ms. Ours. */
#define MELD_PERIODS 3
#define MELD_LEAST_MAX_AGE 50000000ULL
/* Longest period that counts, an hour. Ours: three of them fit. */
#define MELD_MOST_PERIOD 3600000000000ULL
/* Most that is lost in an RTT without being congestion, in percent. Ours. */
#define MELD_HEAVY_PERCENT 5
/* Largest block, in bytes: 64 MB. Ours: products fit 64 bits. */
#define MELD_MOST_BLOCK (1U << 26)
/* Most HARQ processes. */
#define MELD_MOST_HARQ 32

/* A report on the user's radio. The feed fills it. */
struct meld_report {
	__u64 measured_at;     /* ns; 0 = no report */
	__u32 block;           /* the largest block of its period, bytes; if has_block */
	__u32 best_block;      /* S_TBm: the block that its PRBs would carry at CQI 15, bytes */
	__u32 queue;           /* bytes that wait for the user */
	__u32 queue_limit;     /* bytes that may; if has_limit */
	__u32 cell;            /* number of the cell, with its technology: equal if both are */
	__u8 harq_processes;
	__u8 has_block;
	__u8 has_limit;
	__u8 handover;
};

struct meld_settings {
	__u64 max_age;         /* ns; 0 = three periods, at least 50 ms */
	__u64 queue_factor;    /* q20: Q_th over its formula */
	__u32 packet;          /* T_PDU in bytes; 0 = the IP packet that was lost */
	__u8 mixed;            /* MELD-ME: condition 4.2 too */
	__u8 harq_processes;   /* N_HARQ; 0 = the cell's */
	__u8 hold_block;       /* the newest block that is known stands in for one that a report does not have */
	__u8 full_after_timeout;
	__u8 guards;
	__u8 unused[7];
};

/* Counts of a connection at some time. */
struct meld_mark {
	__u64 at;        /* ns */
	__u32 delivered; /* wraps */
	__u32 lost;      /* wraps */
};

/* What is known of a user's radio, whichever connections lead to it. All zero: nothing. */
struct meld_user {
	struct meld_report newest;
	struct meld_report scheduled; /* the newest with a block */
	__u64 gap;             /* ns between the newest report and the one before */
	__u64 gap_before;      /* and between the two before */
	__u32 gaps;            /* so many of the two gaps are known */
	__u32 unused;
};

/* A connection. All zero: not begun. */
struct meld_state {
	struct meld_mark round;       /* the beginning of this RTT */
	struct meld_mark before;      /* and of the one before */
	__u64 paced_until;     /* ns: the window that came back is paced; 0 = not */
	__u64 own_pacing;      /* what f->pacing was before that */
	__u32 before_timeout;  /* window before a silent timeout; 0 = none */
	__u32 restore;         /* window that the next acknowledgement brings back (rto=full); 0 = none */
	__u32 saved_cwnd;      /* window and threshold before a silent episode, which recovery may change; 0 = none */
	__u32 saved_ssthresh;
	__u32 answered;        /* what `ssthresh` was answered with */
	__u32 shown_cwnd;      /* window that a notified parent is to see */
	__u32 silent_count;
	__u32 silent_packets;
	__u32 silent_timeouts;
	__u32 notified[MELD_REASONS]; /* by reason */
	__u8 begun;
	__u8 silent;           /* the parent does not know of this episode */
	__u8 ended;            /* a silent episode ended: what it changed is brought back in Open */
	__u8 unused;
};

/* A sign of congestion. */
struct meld_event {
	__u32 kind;    /* MELD_LOSS ... MELD_ECN */
	__u32 count;   /* of a timeout: consecutive ones, with this one */
	__u32 lost;    /* segments newly taken for lost */
	__u32 largest; /* IP packet of the largest of them, bytes */
	__u32 first;   /* it begins an episode: `ssthresh` was called */
};

/* A new report (from the feed). One that was overtaken on its way is dropped. */
ARITHMETIC void meld_radio(struct meld_user *u, __u64 now, const struct meld_report *report)
{
	__u64 measured_at = report->measured_at;

	/* Nothing is measured after it was told: with another's clock, age counts from the arrival. */
	if (measured_at > now)
		measured_at = now;
	if (!measured_at)
		measured_at = 1;
	if (u->newest.measured_at) {
		if (measured_at < u->newest.measured_at)
			return;
		u->gap_before = u->gap;
		u->gap = measured_at - u->newest.measured_at;
		if (u->gaps < 2)
			u->gaps++;
	}
	u->newest = *report;
	u->newest.measured_at = measured_at;
	if (report->has_block)
		u->scheduled = u->newest;
}

/* The reporting period: the shorter of the last two, so that a pause of the feed does not count as one. */
static __always_inline __u64 meld_max_age(const struct meld_settings *set, const struct meld_user *u)
{
	__u64 period = u->gaps == 0 ? 0 : u->gaps == 1 ? u->gap : min_u64(u->gap, u->gap_before);

	if (set->max_age)
		return set->max_age;
	return max_u64(min_u64(period, MELD_MOST_PERIOD) * MELD_PERIODS, MELD_LEAST_MAX_AGE);
}

/* Whether more was lost in an RTT than the air explains: above 5 %, and above what one block that HARQ gave up takes with it. */
static __always_inline _Bool meld_is_heavy(__u32 lost, __u32 delivered, __u32 block, __u32 packet)
{
	__u64 of_one_block = 1 + ((__u64)block + packet - 1) / packet;

	return (__u64)lost * 100 > ((__u64)lost + delivered) * MELD_HEAVY_PERCENT && lost > of_one_block;
}

/* What is made of a loss that is no mark and no repeated timeout. `u` may be NULL: nothing is known. */
ARITHMETIC __u32 meld_judge(const struct meld_settings *set, const struct meld_user *u, const struct meld_state *s,
			    const struct flow *f, const struct meld_event *e)
{
	__u32 packet = max_u32(set->packet ? set->packet : e->largest, 1), block, best, processes;
	const struct meld_report *r;
	__u64 oldest, limit;
	_Bool has_block;

	if (!u || !u->newest.measured_at)
		return MELD_UNKNOWN;
	r = &u->newest;
	oldest = meld_max_age(set, u);
	block = r->block;
	best = r->best_block;
	has_block = r->has_block;
	if (elapsed_ns(f->now, r->measured_at) > oldest)
		return MELD_STALE;
	if (!has_block && set->hold_block && u->scheduled.measured_at &&
	    elapsed_ns(f->now, u->scheduled.measured_at) <= oldest && u->scheduled.cell == r->cell) {
		has_block = 1;
		block = u->scheduled.block;
		best = u->scheduled.best_block;
	}
	if (!has_block)
		return MELD_UNKNOWN;
	block = min_u32(block, MELD_MOST_BLOCK);
	best = min_u32(best, MELD_MOST_BLOCK);
	processes = set->harq_processes ? set->harq_processes : r->harq_processes;
	processes = min_u32(max_u32(processes, 1), MELD_MOST_HARQ);
	/* Equation 4.1, rounded up; a block as large as its limit passes. */
	if (block < ((__u64)packet + processes - 1) / processes)
		return MELD_SMALL_BLOCK;
	/* Equation 4.2: 2^26 bytes, 2^5 processes and a factor of 2^30 fit. A queue as long as its limit does not pass. */
	limit = ((__u64)best * processes * min_u64(set->queue_factor, 1ULL << 30) + (1U << 19)) >> 20;
	if (set->mixed && r->queue >= limit)
		return MELD_LONG_QUEUE;
	if (!set->guards)
		return MELD_HIDE;
	if (r->handover)
		return MELD_HANDOVER;
	if (meld_is_heavy(f->lost - s->before.lost, f->delivered - s->before.delivered, block, packet))
		return MELD_MANY_LOST;
	/* At 90 % of the buffer. Ours. */
	if (r->has_limit && r->queue >= (__u64)r->queue_limit * 9 / 10)
		return MELD_NEAR_OVERFLOW;
	return MELD_HIDE;
}

/* A sign of congestion. Returns MELD_HIDE, or why the parent is to be asked, for a window of s->shown_cwnd. */
ARITHMETIC __u32 meld_loss(const struct meld_settings *set, const struct meld_user *u, struct meld_state *s,
			   const struct flow *f, const struct meld_event *e)
{
	__u32 verdict, before;

	if (e->kind == MELD_ECN)
		verdict = MELD_MARK;
	else if (e->kind == MELD_TIMEOUT && e->count > 1)
		verdict = MELD_TIMEOUT_AGAIN;
	else
		verdict = meld_judge(set, u, s, f, e);
	if (verdict == MELD_HIDE) {
		s->silent_count++;
		s->silent_packets += e->lost;
		if (e->kind == MELD_TIMEOUT) {
			s->silent_timeouts++;
			/* While PRR works, the window is on its way down to the threshold. */
			before = f->cwnd;
			if (!s->silent && (f->ca_state == FLOW_RECOVERY || f->ca_state == FLOW_CWR))
				before = f->ssthresh;
			before = max_u32(before, s->saved_cwnd);
			s->before_timeout = before;
			s->restore = set->full_after_timeout ? before : 0;
			/* Slow start leads back from one segment: nothing is brought back in Open. */
			s->saved_cwnd = 0;
		} else if (e->first && !s->before_timeout && !s->silent) {
			s->saved_cwnd = f->cwnd;
			s->saved_ssthresh = f->ssthresh;
		}
		/* A threshold as high as the window leaves it where it is. */
		s->answered = max_u32(f->cwnd, s->saved_cwnd);
		if (e->first) {
			s->silent = 1;
			s->ended = 0;
		}
		return MELD_HIDE;
	}
	KEEP_CHECK(verdict);
	if (verdict < MELD_REASONS)
		s->notified[verdict]++;
	s->restore = 0;
	s->shown_cwnd = max_u32(f->cwnd, s->saved_cwnd);
	if (e->kind == MELD_TIMEOUT)
		s->shown_cwnd = max_u32(s->shown_cwnd, s->before_timeout);
	if (e->first) {
		s->silent = 0;
		s->ended = 0;
		s->before_timeout = 0;
		s->saved_cwnd = 0;
	}
	return verdict;
}

/* The connection begins (init). */
static __always_inline void meld_begin(struct meld_state *s, const struct flow *f)
{
	s->round.at = f->now;
	s->round.delivered = f->delivered;
	s->round.lost = f->lost;
	s->before = s->round;
	s->begun = 1;
}

/* An acknowledgement's measurements (pkts_acked): rounds of an RTT, for the guard. */
static __always_inline void meld_sample(struct meld_state *s, const struct flow *f)
{
	if (!s->begun) {
		meld_begin(s, f);
	} else if (elapsed_ns(f->now, s->round.at) >= 1000ULL * f->srtt_us) {
		s->before = s->round;
		s->round.at = f->now;
		s->round.delivered = f->delivered;
		s->round.lost = f->lost;
	}
}

/* Recovery is over (set_state to Open or Disorder). The parent is told only if this returns 1. */
static __always_inline __u32 meld_recovered(struct meld_state *s)
{
	__u32 was_silent = s->silent;

	s->before_timeout = 0;
	s->silent = 0;
	s->ended = was_silent && s->saved_cwnd;
	return !was_silent;
}

/* An acknowledgement (cong_avoid, cong_control), after the parent grew the window. */
ARITHMETIC void meld_ack(struct meld_state *s, struct flow *f)
{
	if (s->ended && f->ca_state == FLOW_OPEN) {
		f->cwnd = min_u32(max_u32(f->cwnd, s->saved_cwnd), FLOW_MOST_CWND);
		if (f->ssthresh == s->answered)
			f->ssthresh = s->saved_ssthresh;
		s->ended = 0;
		s->saved_cwnd = 0;
	}
	if (s->restore) {
		/* rto=full: the window is back, and leaves over an RTT. */
		f->cwnd = min_u32(max_u32(f->cwnd, s->restore), FLOW_MOST_CWND);
		s->restore = 0;
		if (f->srtt_us) {
			if (!s->paced_until)
				s->own_pacing = f->pacing;
			s->paced_until = f->now + 1000ULL * f->srtt_us;
			f->pacing = max_u64((__u64)f->cwnd * (f->mss & 0xffff) * 1000000 / f->srtt_us, 1);
		}
	} else if (s->paced_until && f->now >= s->paced_until) {
		f->pacing = s->own_pacing;
		s->paced_until = 0;
	}
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
#define MELD_ON_START 0
#define MELD_ON_RADIO 1
#define MELD_ON_SAMPLE 2
#define MELD_ON_LOSS 3
#define MELD_ON_RECOVERED 4
#define MELD_ON_ACK 5

struct meld_call {
	struct meld_settings settings;
	struct meld_user user;
	struct meld_state state;
	struct flow flow;
	struct meld_report report;
	struct meld_event loss;
	__u32 event;   /* MELD_ON_START ... MELD_ON_ACK */
	__u32 verdict; /* MELD_ON_LOSS, MELD_ON_RECOVERED: written */
	__u32 unused;
};

ARITHMETIC void meld_call_step(struct meld_call *call)
{
	switch (call->event) {
	case MELD_ON_START:
		meld_begin(&call->state, &call->flow);
		break;
	case MELD_ON_RADIO:
		meld_radio(&call->user, call->flow.now, &call->report);
		break;
	case MELD_ON_SAMPLE:
		meld_sample(&call->state, &call->flow);
		break;
	case MELD_ON_LOSS:
		call->verdict = meld_loss(&call->settings, &call->user, &call->state, &call->flow, &call->loss);
		break;
	case MELD_ON_RECOVERED:
		call->verdict = meld_recovered(&call->state);
		break;
	case MELD_ON_ACK:
		meld_ack(&call->state, &call->flow);
		break;
	}
}

#endif
