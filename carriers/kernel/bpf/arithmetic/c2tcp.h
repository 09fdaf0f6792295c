/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * C2TCP: a loss-based control that also answers to its own delay, as if an AQM at the sender dropped packets.
 *
 * Source: Abbasloo, Xu and Chao, "C2TCP: A Flexible Cellular TCP to Meet Stringent Delay Requirements" (IEEE JSAC 2019), "the
 * paper"; the authors' kernel patch and server, Soheil-ab/c2tcp, "the code". logic/cc/src/decorators/c2tcp.rs is the same in
 * floats; its head says what is ours. Names are the same there and here.
 *
 * On each RTT sample, after the parent (the kernel's CUBIC or Reno) had it:
 * - Tuner (Algorithm 3), every cycle: moves alpha by the mean RTT and the target.
 * - Condition Detector (Algorithm 1): Setpoint = alpha MINRTT. Below it Good; above it Normal for an Interval, then Bad again and
 *   again, at distances of Interval, Interval / sqrt 1, Interval / sqrt 2 ...
 * - Action Enforcer (Algorithm 2): Good adds Setpoint / RTT segments per window (equation 1), written to cwnd here; Bad is told
 *   to the glue, which asks the parent for its ssthresh and hands it to c2tcp_cut.
 *
 * Fixed point, and what it changes:
 * - alpha is q32. A tuning is exact to 2^-30, and Setpoint to the nanosecond: in whole milliseconds (clock=ms) that changes no
 *   comparison unless Setpoint is within a nanosecond of a whole one.
 * - Interval / sqrt N is exact to 1 ns.
 * - The window is whole; the fraction that Good has earned (q32 of a segment) is kept in the state, and dropped when somebody
 *   else has lowered the window or slow start has ended at its threshold. logic/cc keeps it in the window, where the parent
 *   sees it: up to one segment.
 *   Over Reno, which counts its own fraction in snd_cwnd_cnt, that makes two fractions: up to three segments.
 * - RTTs count as 16.8 s at most, a sample as 65,536 segments at most, the window as 2^20 segments at most.
 * Left out: deaf (the kernel's CUBIC does not show portably when its epoch began), and a change of path, of which nothing tells.
 */
#ifndef RANPACE_C2TCP_H
#define RANPACE_C2TCP_H

#include "flow.h"

/* How alpha follows the mean RTT. */
#define C2TCP_ALGORITHM3 0 /* moves by a step */
#define C2TCP_EQUATION16 1 /* is multiplied; the later code */
#define C2TCP_MEMORYLESS 2 /* Target / MINRTT is multiplied, whatever alpha was; the earlier code */
#define C2TCP_TUNER_OFF 3

/* What the detector makes of the delay. */
#define C2TCP_GOOD 0
#define C2TCP_NORMAL 1
#define C2TCP_BAD 2

/* What the glue is to do after a sample. */
#define C2TCP_LEAVE 0
#define C2TCP_BOOST 1 /* cwnd is written */
#define C2TCP_CUT 2   /* ask the parent for its ssthresh, then call c2tcp_cut */

/* Largest alpha of the options, as q32. */
#define C2TCP_MOST_ALPHA (100ULL << 32)
/* Samples after which a cycle counts no more: 2^24 of at most 2^24 us fit 64 bits in ns. Ours. */
#define C2TCP_MOST_SAMPLES (1U << 24)

struct c2tcp_settings {
	__u64 alpha;          /* q32, 1 to 100: the first one */
	__u64 min_alpha;      /* q32, 1 to 100 */
	__u64 max_alpha;      /* q32, min_alpha to 100 */
	__u64 cycle;          /* ns between two tunings */
	__u64 min_rtt_expiry; /* ns after which MINRTT is measured anew; 0 = never */
	__u32 target_us;      /* mean RTT to be met; 0 = twice the MINRTT of the first tuning */
	__u8 tuner;           /* C2TCP_ALGORITHM3 ... C2TCP_TUNER_OFF */
	__u8 avoidance_after_bad;
	__u8 integer_boost;
	__u8 strict;          /* an RTT equal to the Setpoint is not Good */
	__u8 whole_ms;        /* RTTs are compared in whole milliseconds */
	__u8 kernel_compat;   /* as the code in what no other option names */
	__u8 pace;            /* at the window per smoothed RTT */
	__u8 unused[5];
};

/* All zero: nothing measured yet. */
struct c2tcp_state {
	__u64 alpha;       /* q32; 0 = that of the settings */
	__u64 setpoint;    /* ns */
	__u64 interval;    /* ns */
	__u64 next_time;   /* ns */
	__u64 min_rtt_at;  /* ns */
	__u64 due;         /* ns, when the next tuning is; 0 = no sample yet */
	__u64 rtt_sum_us;  /* of this cycle */
	__u64 fraction;    /* q32 of a segment that Good has earned */
	__u32 samples;     /* of this cycle */
	__u32 app_limited; /* of these */
	__u32 min_rtt_us;  /* MINRTT; 0 = none */
	__u32 own_target_us; /* twice the MINRTT, where the target is 0; 0 = not yet */
	__u32 n;           /* consecutive Bads, from 1 */
	__u32 boost;       /* integer boost not yet worth a segment */
	__u32 cwnd;        /* as it was left here: a lower one was lowered by somebody else */
	__u32 bads;        /* since the connection began */
	__u32 condition;   /* C2TCP_GOOD ... C2TCP_BAD */
	__u32 ssthresh;    /* as it was left here */
};

static __always_inline __u64 c2tcp_clamp(__u64 alpha, __u64 low, __u64 high)
{
	return alpha < low ? low : alpha > high ? high : alpha;
}

/* 1 - 2 (avg - Target) / avg, at least 0, or 1 + (Target - avg) / (2 avg), as q32. Both in ns and not 0. */
static __always_inline __u64 c2tcp_factor(__u64 mean, __u64 target)
{
	__u64 step;

	if (mean > target) {
		step = ratio_q32(2 * (mean - target), mean);
		return step < 1ULL << 32 ? (1ULL << 32) - step : 0;
	}
	return (1ULL << 32) + ratio_q32(target - mean, 2 * mean);
}

/* The next alpha after a cycle of this mean RTT in ns, which is not 0. */
ARITHMETIC __u64 c2tcp_tuned(const struct c2tcp_settings *set, const struct c2tcp_state *s, __u64 mean,
				    __u32 target_us)
{
	__u64 target = 1000ULL * min_u32(target_us, FLOW_MOST_RTT_US), alpha = s->alpha, step;

	if (!target || !mean)
		return alpha;
	switch (set->tuner) {
	case C2TCP_ALGORITHM3:
		if (mean > target) {
			step = ratio_q32(2 * (mean - target), target);
			alpha = alpha > step ? alpha - step : 0;
		} else {
			alpha += ratio_q32(target - mean, 2 * mean);
		}
		break;
	case C2TCP_EQUATION16:
		alpha = mul_q32(alpha, c2tcp_factor(mean, target));
		break;
	case C2TCP_MEMORYLESS:
		if (s->min_rtt_us)
			alpha = mul_q32(ratio_q32(target, 1000ULL * s->min_rtt_us), c2tcp_factor(mean, target));
		break;
	default:
		return alpha;
	}
	return c2tcp_clamp(alpha, set->min_alpha, min_u64(set->max_alpha, C2TCP_MOST_ALPHA));
}

/* Counts a sample, after the tuning that may be due before it. */
static __always_inline void c2tcp_tune(const struct c2tcp_settings *set, struct c2tcp_state *s, const struct flow *f,
				  __u32 rtt_us)
{
	__u32 target_us;

	if (!s->due) {
		s->due = f->now + set->cycle;
	} else if (f->now >= s->due) {
		if (!set->target_us && !s->own_target_us)
			s->own_target_us = 2 * s->min_rtt_us;
		target_us = set->target_us ? set->target_us : s->own_target_us;
		/* In a cycle without samples, or in which the application was the limit for most of them, nothing is learned. */
		if (s->samples && (s->app_limited * 2 <= s->samples || set->kernel_compat))
			s->alpha = c2tcp_tuned(set, s, s->rtt_sum_us * 1000 / s->samples, target_us);
		s->due = f->now + set->cycle;
		s->rtt_sum_us = 0;
		s->samples = 0;
		s->app_limited = 0;
	}
	if (s->samples < C2TCP_MOST_SAMPLES) {
		s->rtt_sum_us += rtt_us;
		s->samples++;
		s->app_limited += f->app_limited != 0;
	}
}

/* alpha MINRTT in ns, rounded. */
static __always_inline __u64 c2tcp_setpoint(__u64 alpha, __u32 min_rtt_us)
{
	__u64 product = alpha * min_rtt_us; /* below 2^39 and 2^24 */

	return (product >> 32) * 1000 + (((product & 0xffffffff) * 1000 + (1ULL << 31)) >> 32);
}

/* Interval / sqrt N in ns, rounded. */
static __always_inline __u64 c2tcp_shortened(__u64 interval, __u32 n)
{
	__u64 factor;

	if (n <= 1)
		return interval;
	factor = inverse_sqrt_q32(n); /* below 2^32 */
	return (interval >> 32) * factor + (((interval & 0xffffffff) * factor + (1ULL << 31)) >> 32);
}

/* The Condition Detector (Algorithm 1). */
static __always_inline __u32 c2tcp_judge(const struct c2tcp_settings *set, struct c2tcp_state *s, __u64 now, __u32 rtt_us)
{
	_Bool first = !s->min_rtt_us;
	_Bool expired = set->min_rtt_expiry && elapsed_ns(now, s->min_rtt_at) > set->min_rtt_expiry;
	__u64 value, limit;

	if (first || rtt_us <= s->min_rtt_us || expired) {
		s->min_rtt_us = rtt_us;
		s->min_rtt_at = now;
	}
	if (first)
		s->n = 1;
	s->setpoint = c2tcp_setpoint(s->alpha, s->min_rtt_us);
	if (first || set->kernel_compat)
		s->interval = s->setpoint;
	if (set->whole_ms || set->kernel_compat) {
		value = rtt_us / 1000;
		limit = s->setpoint / 1000000;
	} else {
		value = 1000ULL * rtt_us;
		limit = s->setpoint;
	}
	if (value < limit || (value == limit && !set->strict)) {
		s->interval = s->setpoint;
		s->condition = C2TCP_GOOD;
		s->n = 1;
		return C2TCP_BOOST;
	}
	if (s->condition == C2TCP_GOOD) {
		s->condition = C2TCP_NORMAL;
		s->next_time = now + s->interval;
		return C2TCP_LEAVE;
	}
	if (now > s->next_time) {
		s->condition = C2TCP_BAD;
		s->next_time = now + c2tcp_shortened(s->interval, s->n);
		if (s->n != ~0U)
			s->n++;
		return C2TCP_CUT;
	}
	return C2TCP_LEAVE;
}

/* Whether PRR owns the window: it writes whole segments with each acknowledgement. */
static __always_inline _Bool c2tcp_prr_writes(const struct flow *f)
{
	return f->ca_state == FLOW_RECOVERY || f->ca_state == FLOW_CWR;
}

/* The window with the fraction, as q8; cwnd is at most FLOW_MOST_CWND. */
static __always_inline __u64 c2tcp_window_q8(const struct c2tcp_state *s, __u32 cwnd)
{
	return (__u64)cwnd << 8 | s->fraction >> 24;
}

/* Good (equation 1): cwnd += Setpoint / RTT per window. */
static __always_inline void c2tcp_grow(const struct c2tcp_settings *set, struct c2tcp_state *s, struct flow *f, __u32 rtt_us,
				  __u32 delivered)
{
	__u32 cwnd = c2tcp_clamp(f->cwnd, 1, FLOW_MOST_CWND);
	__u64 grown, ratio, window;

	if (!set->kernel_compat) {
		if (c2tcp_prr_writes(f) || !f->cwnd_limited)
			return;
	}
	if (set->integer_boost) {
		/* At most 100 RTTs in a Setpoint, where MINRTT is the smallest one. */
		s->boost += min_u64(s->setpoint / 1000000 / max_u32(rtt_us / 1000, 1), FLOW_MOST_CWND);
		grown = cwnd + (__u64)s->boost / cwnd;
		s->boost %= cwnd;
	} else {
		if (set->kernel_compat)
			delivered = 1;
		/* q22 of at most 100, times 2^16; over a window of q8. */
		ratio = (s->setpoint << 22) / (1000ULL * rtt_us);
		window = c2tcp_window_q8(s, cwnd);
		s->fraction += (ratio * min_u32(delivered, FLOW_MOST_SEGMENTS) << 18) / window;
		grown = cwnd + (s->fraction >> 32);
		s->fraction &= 0xffffffff;
	}
	f->cwnd = min_u64(grown, FLOW_MOST_CWND);
}

/* An RTT sample (pkts_acked), after the parent had it. Returns what the glue is to do. */
static __always_inline __u32 c2tcp_sample(const struct c2tcp_settings *set, struct c2tcp_state *s, struct flow *f,
				     const struct ack *a)
{
	__u32 rtt_us = min_u32(a->rtt_us, FLOW_MOST_RTT_US), verdict;

	if (!rtt_us)
		return C2TCP_LEAVE;
	if (!s->alpha)
		s->alpha = c2tcp_clamp(set->alpha, 1ULL << 32, C2TCP_MOST_ALPHA);
	/* PRR writes the window, somebody lowered it, or slow start stopped at a threshold that it had before. */
	if (c2tcp_prr_writes(f) || f->cwnd < s->cwnd ||
	    (f->cwnd == f->ssthresh && s->cwnd < f->ssthresh && f->ssthresh == s->ssthresh))
		s->fraction = 0;
	c2tcp_tune(set, s, f, rtt_us);
	verdict = c2tcp_judge(set, s, f->now, rtt_us);
	if (verdict == C2TCP_BOOST)
		c2tcp_grow(set, s, f, rtt_us, a->delivered);
	if (c2tcp_prr_writes(f))
		s->fraction = 0;
	s->cwnd = f->cwnd;
	s->ssthresh = f->ssthresh;
	return verdict;
}

/* Bad: the parent's ssthresh for the window before the cut, then one segment. The glue also clears snd_cwnd_cnt. */
static __always_inline void c2tcp_cut(const struct c2tcp_settings *set, struct c2tcp_state *s, struct flow *f,
				      __u32 parents_ssthresh)
{
	f->ssthresh = set->avoidance_after_bad ? 1 : parents_ssthresh;
	f->cwnd = 1;
	s->cwnd = 1;
	s->ssthresh = f->ssthresh;
	s->fraction = 0;
	s->bads++;
}

/* An acknowledgement (cong_avoid), after the parent grew the window: the pace. */
static __always_inline void c2tcp_pace(const struct c2tcp_settings *set, const struct c2tcp_state *s, struct flow *f)
{
	/* q8 of at most 2^20, times 2^16 bytes and 10^6 us: just below 2^64. */
	__u64 window = c2tcp_window_q8(s, c2tcp_clamp(f->cwnd, 1, FLOW_MOST_CWND - 1));

	window = max_u64(window, (__u64)min_u32(f->in_flight, FLOW_MOST_CWND - 1) << 8);
	if (set->pace && f->srtt_us)
		f->pacing = max_u64(window * (f->mss & 0xffff) * 1000000 / f->srtt_us >> 8, 1);
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
#define C2TCP_ON_SAMPLE 0
#define C2TCP_ON_CUT 1
#define C2TCP_ON_ACK 2

struct c2tcp_call {
	struct c2tcp_settings settings;
	struct c2tcp_state state;
	struct flow flow;
	struct ack ack;
	__u32 event;            /* C2TCP_ON_SAMPLE ... C2TCP_ON_ACK */
	__u32 parents_ssthresh; /* C2TCP_ON_CUT */
	__u32 verdict;          /* C2TCP_ON_SAMPLE: written */
	__u32 unused[2];
};

ARITHMETIC void c2tcp_call_step(struct c2tcp_call *call)
{
	if (call->event == C2TCP_ON_SAMPLE)
		call->verdict = c2tcp_sample(&call->settings, &call->state, &call->flow, &call->ack);
	else if (call->event == C2TCP_ON_CUT)
		c2tcp_cut(&call->settings, &call->state, &call->flow, call->parents_ssthresh);
	else if (call->event == C2TCP_ON_ACK)
		c2tcp_pace(&call->settings, &call->state, &call->flow);
}

#endif
