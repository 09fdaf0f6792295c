/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * The guard of client-driven controls: CUBIC has the window while the peer's reports are missing or contradicted.
 * logic/cc/src/client_driven/guard.rs; its head has the rules and the reasons.
 *
 * Source: none, all of it is ours. Two modes:
 *
 * - plain: the parent, the kernel's own CUBIC, has the window, as if there were no reports. The control behind sees
 *   everything and sets a window that nobody uses (`wanted`). A connection begins so, and stays so without a report;
 * - driven: the control's window and pace hold, within FLIGHT and PACE of what the path has delivered.
 *
 * The glue calls, in this order for an acknowledgement: guard_on_report (if it had one), guard_on_sample, guard_on_loss (if
 * segments were newly taken for lost), the parent's cong_avoid if guard_is_plain, guard_on_ack. Control first, guard after it.
 * When `restart_parent` is set the guard has fallen back: flow.cwnd and flow.ssthresh are where the parent begins, and the
 * glue calls the parent's init and clears the flag. When `restart` was taken in guard_on_recovered, ssthresh is infinite.
 *
 * Fixed point: rates in bit/s as in Rust, so that maxima are the same; times that bytes have taken at a reported rate in
 * 2^-16 ns; the mean rates are compared as 128-bit products, so no contradiction flips by rounding. Different from Rust:
 *   - lengths of rounds are taken in us where a rate is computed from them (1 us of 10 ms: 0.01 % of a lift's rate);
 *   - the delivered rate counts as at most 100 Gbit/s where bounds follow from it, RTTs as at most 10 s there;
 *   - an acknowledgement covers at most 1 GB, as TCP's window does;
 *   - there is no change of path: TCP has none.
 */
#ifndef RANPACE_GUARD_H
#define RANPACE_GUARD_H

#include "pipe.h"

/* What contradicts a report: it and the delivered rate differ by more than 3/2. */
#define CONTRADICTS_NUM 3
#define CONTRADICTS_DEN 2
/* Rounds that rates are compared over and losses counted, and that a contradiction lasts. A power of two. */
#define GUARD_ROUNDS 8
/* In flight, over the largest delivered rate times the smallest RTT. */
#define FLIGHT 2
/* Pace over the largest delivered rate: 2/ln 2. */
#define PACE HIGH_GAIN
/* In flight in a check over FLIGHT BDPs: 0.6 / 2. At least so many segments. */
#define CHECK_NUM 3
#define CHECK_DEN 10
#define LEAST_CHECK_FLIGHT 4u
#define CHECK_ROUNDS 2
/* Rounds without a loss or a deep queue before a check; from one check to the next. */
#define CALM 64
#define CHECK_EVERY (10 * NS_PER_S)
#define CHECK_EVERY_RTTS 64
/* Segments that may be in flight whatever was delivered: an initial window. */
#define LEAST_FLIGHT 10u
/* Rounds of which the largest delivered rate counts. */
#define RATE_ROUNDS 10
/* Pace over the delivered rate in a lift: 5/4. Rounds after it in which its losses come in. */
#define LIFT_NUM 5
#define LIFT_DEN 4
#define LIFT_LOSES_FOR 2
/* A queue: the smallest RTT of a round above 5/4 of the connection's, 5 ms and two segments. */
#define QUEUE_SLACK (5 * NS_PER_MS)
#define QUEUE_SEGMENTS 2
/* A round takes at most so many smallest RTTs, and at least so many segments. */
#define ROUND_RTTS 2
#define ROUND_SEGMENTS 4
/* After a lift that overflowed the buffer: 0.95 of the largest delivered rate, for 10 s. */
#define BELOW_NUM 19
#define BELOW_DEN 20
#define CEILING (10 * NS_PER_S)
/* Time that bytes can have taken at a reported rate, over the time since the report before. */
#define MOST_CLAIMED 2
/* More than a twentieth lost, at least so many over the last rounds and in one. */
#define LOSS_ONE_OF 20
#define LEAST_LOST 8
#define LEAST_LOST_IN_ROUND 3
/* Good rounds in a row before the control has the window. */
#define GOOD_ROUNDS 4
/* Age of a report at which it is stale, unless four smoothed RTTs are more. */
#define STALE NS_PER_S
/* First holds: contradicted or marked, losses; the longest. */
#define HOLD (10 * NS_PER_S)
#define LOSS_HOLD NS_PER_S
#define LONGEST_HOLD (60 * NS_PER_S)
/* RTTs that bounds are computed with are at most 10 s. */
#define BOUND_RTT_US 10000000ull
/* 100 Gbit/s in bit/s. */
#define MAX_BITS (8 * MAX_RATE)
/* Longest time between two reports that counts, 18 minutes in ns: sums fit 64 bits with 16 of a fraction. */
#define MAX_CLAIM (1ull << 40)

enum guard_mode { GUARD_PLAIN, GUARD_DRIVEN };

/* Why CUBIC has the window. */
enum guard_reason {
	REASON_NONE, /* it has never been driven */
	REASON_STALE,
	REASON_HIGH,
	REASON_LOW,
	REASON_LOSS,
	REASON_TIMEOUT,
	REASON_MARK,
	REASON_RIVAL,
};

/* Signs of congestion. */
enum guard_signal { SIGNAL_LOSS, SIGNAL_TIMEOUT, SIGNAL_MARK };

struct guard_settings {
	__u32 off; /* the control has the window always, as published */
	__u32 unused;
};

/* What is kept of a round. */
struct guard_past {
	__u64 bytes, ns;                   /* delivered, and the round's length */
	__u64 reported_bytes, reported_ns; /* acknowledged under a report, and the 2^-16 ns it took at the reported rate */
	__u32 delivered, lost;             /* segments */
};

/* A value of the windowed maximum (logic/cc/src/filter.rs, as Linux's lib/minmax.c). */
struct guard_seen {
	__u64 value; /* bit/s */
	__u64 at;    /* rounds */
};

struct guard {
	struct wanted wanted; /* what the control sets */
	__u64 hold_until, hold, since; /* ns */
	__u64 report_at, report;       /* ns; bit/s, 0 = none */
	/* The current round. */
	__u64 begin;
	__u64 round_bits;  /* delivered in round_us by its newest sample, times 10^6; round_us = 0: none */
	__u32 round_us, unused2;
	__u64 reported_bytes, reported_ns;
	__u32 round_delivered, round_lost, round_rtt_us;
	__u8 round_open, round_limited;
	__u8 mode, reason;
	struct guard_seen delivered[3];
	__u64 rounds;
	__u64 most_pace;   /* bytes of payload per second */
	__u64 bound_rate;  /* what most_flight was computed from: bit/s, and below; bound_mss = 0: from nothing */
	__u32 bound_rtt_us, bound_mss;
	__u32 most_flight; /* 2^-8 segments */
	__u32 deep_us;     /* smallest RTT of the last round, if longer than this flow alone makes it; 0 = not */
	struct guard_past past[GUARD_ROUNDS], total; /* the last rounds, and their sum */
	__u64 unreported; /* bytes acknowledged since the last new report */
	__u64 acked_at, news_at;
	__u64 compared;   /* delivered rate of the last rounds in bit/s, as it was compared */
	__u64 lift;       /* bit/s of payload; valid if lifting */
	__u64 sized_lift; /* what lift_cwnd was computed from: bit/s, and below; sized_mss = 0: from nothing */
	__u32 sized_rtt_us, sized_mss;
	__u32 lift_cwnd;  /* 2^-8 segments */
	__u32 unused;
	__u64 ceiling, ceiling_until;
	__u64 check_at;
	__u32 past_at;    /* the oldest of `past` */
	__u32 good, high, low;
	__u32 calm, checking, since_lift;
	__u8 came, came_before, differs;
	__u8 queue, lifting, checked, restart;
	__u8 restart_parent; /* for the glue, see the head */
};

static __always_inline int guard_is_plain(const struct guard *g)
{
	return g->mode == GUARD_PLAIN;
}

/* The windowed maximum over RATE_ROUNDS. */
static __always_inline void guard_rate_update(struct guard_seen *best, __u64 at, __u64 value)
{
	struct guard_seen seen = { value, at };
	__u64 age;

	if (value >= best[0].value || at - best[2].at > RATE_ROUNDS) {
		best[0] = seen; /* a new maximum, or nothing of the window is left */
		best[1] = seen;
		best[2] = seen;
		return;
	}
	if (value >= best[1].value) {
		best[1] = seen;
		best[2] = seen;
	} else if (value >= best[2].value) {
		best[2] = seen;
	}
	age = at - best[0].at;
	if (age > RATE_ROUNDS) {
		/* The best has left the window: the others move up, perhaps twice. */
		best[0] = best[1];
		best[1] = best[2];
		best[2] = seen;
		if (at - best[0].at > RATE_ROUNDS) {
			best[0] = best[1];
			best[1] = best[2];
			best[2] = seen;
		}
	} else if (best[1].at == best[0].at && age > RATE_ROUNDS / 4) {
		/* A quarter of the window without a second choice: take one from the second quarter. */
		best[1] = seen;
		best[2] = seen;
	} else if (best[2].at == best[1].at && age > RATE_ROUNDS / 2) {
		best[2] = seen;
	}
}

/* The windowed maximum takes bits 10^-6 / us at this time, which is divided only where that changes it. us is not 0. */
static __always_inline void guard_sample_rate(struct guard_seen *best, __u64 at, __u64 bits, __u32 us, int is_limited)
{
	__u64 age = at - best[0].at, least = best[2].value, value;
	int ages = age > RATE_ROUNDS || (best[1].at == best[0].at && age > RATE_ROUNDS / 4) ||
			   (best[2].at == best[1].at && age > RATE_ROUNDS / 2);

	/* The product is below 2^64. */
	if (!ages && least < 1ull << 37 && us < 1u << 27 && bits < least * us)
		return;
	value = bits / us;
	if (!is_limited || value > best[0].value)
		guard_rate_update(best, at, value);
}

static __always_inline int guard_is_stale(const struct guard *g, const struct flow *f)
{
	return !g->report || f->now >= g->report_at + max_u64(STALE, 4 * NS_PER_US * f->srtt_us);
}

/* What a round's smallest RTT must exceed for a queue, besides its share of the connection's smallest: ns, at a delivered rate in bit/s. */
static __always_inline __u64 guard_queue_slack(const struct flow *f, __u64 delivered)
{
	__u64 rate = max_u64(delivered, 1);

	return QUEUE_SLACK + min_u64((8ull * QUEUE_SEGMENTS * wire_of(f) * NS_PER_S + rate / 2) / rate, 10 * NS_PER_S);
}

/* Whether a round with this smallest RTT had a queue, beyond so many smallest RTTs and the slack. */
static __always_inline int guard_is_queue(const struct flow *f, __u32 rtt_us, __u32 beyond, __u64 slack)
{
	/* 5/4 of min_rtt: 1250 ns a us. */
	return f->min_rtt_us && rtt_us && rtt_us * NS_PER_US > 1250ull * beyond * f->min_rtt_us + slack;
}

/* What may be in flight and what the pace may be, after what has been delivered. */
static __always_inline void guard_bound(struct guard *g, const struct flow *f)
{
	__u64 delivered = min_u64(g->delivered[0].value, MAX_BITS);
	/* What of a queue this flow cannot have made is no reason to send less. */
	__u64 rtt_us = g->deep_us ? g->deep_us : f->min_rtt_us ? f->min_rtt_us : BOUND_RTT_US;
	__u64 srtt = max_u64(f->srtt_us, 1000), pace = (delivered * PACE) >> (GAIN_BITS + 3);
	__u64 least = US_PER_S * LEAST_FLIGHT * mss_of(f);

	/* Most acknowledgements leave these as they are. */
	if (g->bound_rate != delivered || g->bound_rtt_us != rtt_us || g->bound_mss != mss_of(f)) {
		/* bit/s / 8 * 2^8 */
		__u64 bdp = in_time(delivered << (CWND_BITS - 3), min_u64(rtt_us, BOUND_RTT_US) * NS_PER_US);

		g->most_flight = (__u32)max_u64(window_of(f, FLIGHT * bdp), LEAST_FLIGHT << CWND_BITS);
		g->bound_rate = delivered;
		g->bound_rtt_us = (__u32)rtt_us;
		g->bound_mss = mss_of(f);
	}
	/* The larger of `pace` and least / srtt, without a division where that is clear: pace is below 2^36. */
	if (pace * min_u64(srtt, 1u << 24) < least)
		pace = max_u64(pace, least / srtt);
	g->most_pace = pace;
}

/* The window of a lift to this rate in bit/s, in 2^-8 segments. */
static __always_inline __u32 guard_lift_cwnd(struct guard *g, const struct flow *f, __u64 rate)
{
	__u64 rtt_us = min_u64(f->min_rtt_us ? f->min_rtt_us : BOUND_RTT_US, BOUND_RTT_US);

	/* It follows from one round's rate until the next ends. */
	if (g->sized_lift != rate || g->sized_rtt_us != rtt_us || g->sized_mss != mss_of(f)) {
		g->lift_cwnd = window_of(f, FLIGHT * in_time(rate << (CWND_BITS - 3), rtt_us * NS_PER_US));
		g->sized_lift = rate;
		g->sized_rtt_us = (__u32)rtt_us;
		g->sized_mss = mss_of(f);
	}
	return g->lift_cwnd;
}

/* The control's window and pace, within these bounds. */
static __always_inline void guard_publish(struct guard *g, struct flow *f)
{
	__u64 cwnd = g->wanted.cwnd, pace = g->wanted.pacing;

	if (g->mode == GUARD_PLAIN)
		return;
	if (g->lifting) {
		__u64 rate = min_u64(g->lift, MAX_BITS);

		cwnd = max_u64(cwnd, guard_lift_cwnd(g, f, rate));
		pace = max_u64(pace, rate >> 3);
	}
	cwnd = max_u64(min_u64(cwnd, g->most_flight), 1u << CWND_BITS);
	if (g->checking)
		cwnd = min_u64(cwnd, max_u64((__u64)g->most_flight * CHECK_NUM / CHECK_DEN, LEAST_CHECK_FLIGHT << CWND_BITS));
	f->cwnd = (__u32)(cwnd >> CWND_BITS);
	f->ssthresh = FLOW_NO_SSTHRESH;
	f->pacing = max_u64(min_u64(pace, g->most_pace), 1);
}

/* The control has the window without a guard. */
static __always_inline void guard_publish_wanted(const struct guard *g, struct flow *f)
{
	f->cwnd = (__u32)max_u64(g->wanted.cwnd >> CWND_BITS, 1);
	f->ssthresh = FLOW_NO_SSTHRESH;
	f->pacing = g->wanted.pacing;
}

ARITHMETIC_GLOBAL int guard_drive(struct guard *g, struct flow *f)
{
	if (!g || !f)
		return 0;
	g->mode = GUARD_DRIVEN;
	g->since = f->now;
	g->high = g->low = 0;
	g->lifting = g->restart = 0;
	g->checking = 0;
	/* What was lost was CUBIC's. */
	for (int i = 0; i < GUARD_ROUNDS; i++)
		g->past[i].lost = 0;
	g->total.lost = 0;
	guard_bound(g, f);
	guard_publish(g, f);
	return 0;
}

/* CUBIC goes on from the current flight. */
ARITHMETIC_GLOBAL int guard_fall_back(struct guard *g, struct flow *f, __u32 reason)
{
	if (!g || !f)
		return 0;
	__u64 first = 0;

	if (reason == REASON_LOSS)
		first = LOSS_HOLD;
	else if (reason == REASON_HIGH || reason == REASON_LOW || reason == REASON_MARK)
		first = HOLD;
	else if (reason == REASON_RIVAL)
		g->hold_until = f->now + LONGEST_HOLD;
	if (first) {
		if (elapsed_ns(f->now, g->since) >= max_u64(g->hold, HOLD))
			g->hold = first;
		g->hold = max_u64(g->hold, first);
		g->hold_until = f->now + g->hold;
		g->hold = min_u64(2 * g->hold, LONGEST_HOLD);
	}
	g->mode = GUARD_PLAIN;
	g->reason = (__u8)reason;
	g->since = f->now;
	g->good = 0;
	g->lifting = 0;
	g->checking = 0;
	/* A flow that begins beside others begins with slow start; the loss was of the others' making. */
	g->restart = reason == REASON_RIVAL;
	f->cwnd = (__u32)min_u64(max_u64(f->in_flight, LEAST_FLIGHT), max_u64(f->cwnd, LEAST_FLIGHT));
	/* After reports that were too low slow start finds what there is; otherwise what is in flight is about right. */
	f->ssthresh = reason == REASON_LOW && !g->queue ? FLOW_NO_SSTHRESH : f->cwnd;
	f->pacing = 0;
	g->restart_parent = 1;
	return 0;
}

/* What a comparison of the last rounds says. */
enum guard_verdict { VERDICT_NONE, VERDICT_AGREES, VERDICT_CONTRADICTED };

/* Whether the delivered rate contradicts the reports of the last rounds. */
ARITHMETIC_GLOBAL int guard_contradicted(struct guard *g)
{
	if (!g)
		return VERDICT_NONE;
	__u64 bytes = g->total.bytes, ns = g->total.ns;
	__u64 reported_bytes = g->total.reported_bytes, reported_ns = g->total.reported_ns;
	int high, low;

	if (!reported_bytes)
		return VERDICT_NONE;
	ns = max_u64(ns, 1);
	reported_ns = max_u64(reported_ns, 1ull << 16);
	g->compared = min_u64(bytes, 1ull << 40) * 8 * US_PER_S / max_u64((ns + 500) / NS_PER_US, 1);
	/* delivered = bytes / ns, reported = reported_bytes 2^16 / reported_ns; counts below 2^40, so nothing overflows.
	 * reported > 3/2 delivered: 2 * reported_bytes 2^16 * ns > 3 * bytes * reported_ns. */
	reported_bytes = min_u64(reported_bytes, 1ull << 40) << 16;
	bytes = min_u64(bytes, 1ull << 40);
	high = g->queue && product_exceeds(CONTRADICTS_DEN * reported_bytes, ns, CONTRADICTS_NUM * bytes, reported_ns);
	low = product_exceeds(CONTRADICTS_DEN * bytes, reported_ns, CONTRADICTS_NUM * reported_bytes, ns);
	g->high = high ? g->high + 1 : 0;
	g->low = low ? g->low + 1 : 0;
	return low || high ? VERDICT_CONTRADICTED : VERDICT_AGREES;
}

/* Counts the rounds of a check, and begins one where it is time and there is room. Whether the next round is one of it. */
static __always_inline int guard_advance_check(struct guard *g, const struct flow *f, int is_free)
{
	if (g->checking) {
		g->checking--;
		if (!g->checking)
			g->check_at = f->now + max_u64(CHECK_EVERY, CHECK_EVERY_RTTS * NS_PER_US * f->srtt_us);
	} else if (is_free && g->calm >= CALM && f->now >= g->check_at) {
		g->checking = CHECK_ROUNDS;
	}
	return g->checking > 0;
}

static __always_inline void guard_round_begin(struct guard *g, __u64 now)
{
	g->begin = now;
	g->round_delivered = g->round_lost = g->round_rtt_us = 0;
	g->round_limited = 0;
	g->round_us = 0;
	g->reported_bytes = g->reported_ns = 0;
	g->round_open = 1;
}

static __always_inline __u32 one_more(__u32 count)
{
	return count == 0xffffffffu ? count : count + 1;
}

/* The round that has ended takes the place of the oldest one in the sums. */
ARITHMETIC_GLOBAL int guard_record(struct guard *g, __u64 bytes, __u64 ns, int lifted, int left_out)
{
	if (!g)
		return 0;
	struct guard_past *past = &g->past[g->past_at & (GUARD_ROUNDS - 1)], *sum = &g->total;

	g->past_at = (g->past_at + 1) & (GUARD_ROUNDS - 1);
	sum->delivered -= past->delivered;
	sum->lost -= past->lost;
	sum->bytes -= past->bytes;
	sum->ns -= past->ns;
	sum->reported_bytes -= past->reported_bytes;
	sum->reported_ns -= past->reported_ns;
	past->delivered = g->round_delivered;
	/* What a lift loses speaks against the lift, not against the reports. */
	past->lost = lifted ? 0 : g->round_lost;
	past->bytes = left_out ? 0 : bytes;
	past->ns = left_out ? 0 : ns;
	past->reported_bytes = left_out ? 0 : g->reported_bytes;
	past->reported_ns = left_out ? 0 : g->reported_ns;
	sum->delivered += past->delivered;
	sum->lost += past->lost;
	sum->bytes += past->bytes;
	sum->ns += past->ns;
	sum->reported_bytes += past->reported_bytes;
	sum->reported_ns += past->reported_ns;
	return 0;
}

/* Judges the round that has ended. */
ARITHMETIC_GLOBAL int guard_judge(struct guard *g, struct flow *f)
{
	if (!g || !f)
		return 0;
	__u64 bytes = min_u64((__u64)mss_of(f) * g->round_delivered, 1ull << 40);
	__u64 ns = max_u64(elapsed_ns(f->now, g->begin), 1000);
	__u64 delivered = bytes * 8 * US_PER_S / ((ns + 500) / NS_PER_US);
	__u64 total = (__u64)g->round_delivered + g->round_lost;
	int overflows = g->round_lost >= LEAST_LOST_IN_ROUND && (__u64)g->round_lost * LOSS_ONE_OF > total;
	int lifted, was_checked = g->checked, left_out, is_free;
	int verdict;
	__u64 arrived, lost, sampled, slack = guard_queue_slack(f, delivered);

	g->queue = guard_is_queue(f, g->round_rtt_us, 1, slack) ? 1 : 0;
	g->deep_us = guard_is_queue(f, g->round_rtt_us, FLIGHT, slack) ? g->round_rtt_us : 0;
	g->since_lift = g->lifting ? 0 : one_more(g->since_lift);
	lifted = g->since_lift <= LIFT_LOSES_FOR;
	g->calm = g->round_lost == 0 && !g->deep_us ? one_more(g->calm) : 0;
	g->checked = g->checking > 0;
	/* What was held back, by the application or by a check, says nothing about reports. */
	left_out = g->round_limited || g->checked || was_checked;
	guard_record(g, bytes, ns, lifted, left_out);
	g->rounds++;
	if (lifted && overflows) {
		g->ceiling = min_u64(g->delivered[0].value, MAX_BITS) * BELOW_NUM / BELOW_DEN;
		g->ceiling_until = f->now + CEILING;
	}
	verdict = g->round_limited ? VERDICT_NONE : guard_contradicted(g);
	if (g->mode == GUARD_PLAIN) {
		int good = verdict == VERDICT_AGREES && !guard_is_stale(g, f);
		int started = g->queue || f->cwnd >= f->ssthresh;

		g->good = good ? g->good + 1 : 0;
		if (g->good >= GOOD_ROUNDS && started && f->now >= g->hold_until && f->ca_state == FLOW_OPEN)
			guard_drive(g, f);
		return 0;
	}
	arrived = g->total.delivered;
	lost = g->total.lost;
	if (lost >= LEAST_LOST && lost * LOSS_ONE_OF > arrived + lost) {
		guard_fall_back(g, f, REASON_LOSS);
	} else if (g->high >= GUARD_ROUNDS) {
		guard_fall_back(g, f, REASON_HIGH);
	} else if (g->low >= GUARD_ROUNDS) {
		guard_fall_back(g, f, REASON_LOW);
	} else {
		is_free = !g->queue && !overflows && !g->round_limited;
		g->lifting = !guard_advance_check(g, f, is_free) && is_free;
		sampled = g->round_us ? g->round_bits / g->round_us : 0;
		delivered = min_u64(max_u64(max_u64(delivered, g->compared), sampled), MAX_BITS);
		g->lift = delivered * LIFT_NUM / LIFT_DEN;
		if (f->now < g->ceiling_until)
			g->lift = min_u64(g->lift, g->ceiling);
	}
	return 0;
}

static __always_inline void guard_on_start(struct guard *g, const struct flow *f)
{
	g->wanted.cwnd = (__u32)min_u64(f->cwnd, FLOW_MOST_CWND) << CWND_BITS;
	g->wanted.pacing = 0;
	g->most_flight = LEAST_FLIGHT << CWND_BITS;
	g->since_lift = 0xffffffffu;
}

/* A report in bytes/s, not 0; after the control has had it. Window and pace follow with the acknowledgement that is told next. */
static __always_inline void guard_note_report(struct guard *g, const struct guard_settings *s, const struct flow *f, __u64 rate)
{
	__u64 bits = 8 * rate;

	if (s->off)
		return;
	g->came = 1;
	if (!g->report || g->report != bits)
		g->differs = 1;
	g->report_at = f->now;
	g->report = bits;
}

/* The same, and window and pace follow now. */
static __always_inline void guard_on_report(struct guard *g, const struct guard_settings *s, struct flow *f, __u64 rate)
{
	guard_note_report(g, s, f, rate);
	if (s->off)
		guard_publish_wanted(g, f);
	else
		guard_publish(g, f);
}

static __always_inline void guard_on_sample(struct guard *g, const struct ack *a)
{
	__u32 rtt = a->rtt_us;

	if (rtt && g->round_open && (!g->round_rtt_us || rtt < g->round_rtt_us))
		g->round_rtt_us = rtt;
}

/* Segments newly taken for lost, a timeout or a mark; after the control has had it. Whether the parent answers: if so it is
 * the first sign of an episode to it, whatever there was before.
 */
static __always_inline int guard_on_congestion(struct guard *g, const struct guard_settings *s, struct flow *f,
											   enum guard_signal signal, __u32 lost)
{
	if (s->off) {
		guard_publish_wanted(g, f);
		return 0;
	}
	if (g->round_open)
		g->round_lost += lost;
	if (g->mode == GUARD_DRIVEN) {
		if (signal == SIGNAL_LOSS && !g->deep_us) {
			guard_publish(g, f);
			return 0;
		}
		guard_fall_back(g, f,
						signal == SIGNAL_LOSS      ? REASON_RIVAL
						: signal == SIGNAL_TIMEOUT ? REASON_TIMEOUT
												   : REASON_MARK);
		return 1;
	}
	/* Another sign of congestion has its own answer. */
	g->restart = g->restart && signal == SIGNAL_LOSS;
	return 1;
}

/* An acknowledgement; after the control has had it, and in plain mode the parent. */
ARITHMETIC_GLOBAL int guard_on_ack(struct guard *g, const struct guard_settings *s, struct flow *f, const struct ack *a)
{
	if (!g || !s || !f || !a)
		return 0;
	__u64 srtt = NS_PER_US * f->srtt_us;
	/* A silence of the link says nothing of rates: more than two RTTs of one do not count. */
	__u64 silence = elapsed_ns(elapsed_ns(f->now, g->acked_at), 2 * srtt);
	int over, is_new;

	if (s->off) {
		guard_publish_wanted(g, f);
		return 0;
	}
	g->acked_at = f->now;
	g->news_at = min_u64(g->news_at + silence, f->now);
	if (!g->round_open)
		guard_round_begin(g, f->now);
	g->begin = min_u64(g->begin + silence, f->now);
	if (a->rate_interval_us) {
		/* At most 2^16 * 2^20 * 2^23. */
		__u64 bytes = min_u64(mss_of(f), 1u << 16) * min_u64(a->rate_delivered, FLOW_MOST_CWND);

		g->round_bits = bytes * 8 * US_PER_S;
		g->round_us = a->rate_interval_us;
		guard_sample_rate(g->delivered, g->rounds, g->round_bits, g->round_us, a->rate_app_limited != 0);
	}
	g->round_delivered += a->delivered;
	g->unreported = min_u64(g->unreported + a->bytes, MAX_ACKED);
	/* A report that stays the same holds for all that is acknowledged. */
	over = f->srtt_us && g->round_delivered >= ROUND_SEGMENTS &&
		   elapsed_ns(f->now, g->begin) >=
			   min_u64(srtt, f->min_rtt_us ? ROUND_RTTS * NS_PER_US * f->min_rtt_us : ~0ull);
	is_new = g->came && (g->differs || !g->came_before);
	if (g->came)
		g->differs = 0;
	g->came_before = g->came;
	g->came = 0;
	if (g->report && (is_new || (over && !g->reported_bytes))) {
		__u64 elapsed = min_u64(elapsed_ns(f->now, g->news_at), MAX_CLAIM) * MOST_CLAIMED;
		/* Bytes up to 2^30 times 8 * 10^9: below 2^63. */
		__u64 bits_ns = g->unreported * 8 * NS_PER_S;
		__u64 ns = bits_ns / g->report;

		g->news_at = f->now;
		g->reported_bytes += g->unreported;
		g->unreported = 0;
		/* One report that speaks of a silence, with what came after it, shall not weigh more than the silence. */
		if (ns >= elapsed)
			g->reported_ns += elapsed << 16;
		else
			g->reported_ns += (ns << 16) + ((bits_ns - ns * g->report) << 16) / g->report;
	}
	if (a->rate_app_limited || f->app_limited)
		g->round_limited = 1;
	if (over) {
		guard_judge(g, f);
		guard_round_begin(g, f->now);
	}
	if (g->mode == GUARD_DRIVEN && guard_is_stale(g, f))
		guard_fall_back(g, f, REASON_STALE);
	guard_bound(g, f);
	guard_publish(g, f);
	return 0;
}

/* Recovery is over. Whether the parent's slow start begins: ssthresh is infinite then. */
static __always_inline void guard_on_recovered(struct guard *g, const struct guard_settings *s, struct flow *f)
{
	if (s->off) {
		guard_publish_wanted(g, f);
		return;
	}
	if (g->mode == GUARD_PLAIN && g->restart)
		f->ssthresh = FLOW_NO_SSTHRESH;
	if (g->mode == GUARD_PLAIN)
		g->restart = 0;
	guard_publish(g, f);
}

/* The reduction was a mistake. */
static __always_inline void guard_on_spurious(struct guard *g, const struct guard_settings *s, struct flow *f)
{
	if (s->off) {
		guard_publish_wanted(g, f);
		return;
	}
	g->restart = 0;
	guard_publish(g, f);
}

/* Sending starts again with nothing in flight. */
static __always_inline void guard_on_idle_restart(struct guard *g, const struct guard_settings *s, struct flow *f)
{
	if (s->off) {
		guard_publish_wanted(g, f);
		return;
	}
	g->round_open = 0;
	/* Nobody reports while nothing is sent. */
	if (g->mode == GUARD_DRIVEN && guard_is_stale(g, f)) {
		guard_fall_back(g, f, REASON_STALE);
		g->reason = REASON_NONE;
		return;
	}
	guard_publish(g, f);
}

#endif
