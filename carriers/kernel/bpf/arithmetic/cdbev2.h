/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * CDBEv2's sender: it filters what the receiver measures every 10 ms, probes above it and drains below it.
 * logic/cc/src/client_driven/cdbev2.rs, with filter.rs, floor.rs and machine.rs; the receiver is cdbev2_client.h.
 *
 * Source: Zhong 2020, chapter 7. Filter: Eqs. 7.5 to 7.9; DRAIN and GROW: 7.23 to 7.25; pace and window: 7.2 to 7.4; end of
 * STARTUP: Algorithm 7.2.
 *
 * | state | number | pacing gain | window gain | leaves when |
 * |---|---|---|---|---|
 * | STARTUP | 0 | 2.175 | 2.175 | recovery, or 5 ACKs with a growing RTT and a delay above either threshold, or a plateau |
 * | DRAIN | 1 | 0.75 | 2 | in flight <= BDP + 2 segments |
 * | STEADY | 2 | 1 | 2 | a random 2 to 6 RTT_min |
 * | GROW | 3 | 1.25 | 2 | in flight > max(in flight at entry + C, 125 % of the BDP), or 8 RTT_min |
 * | deep DRAIN, first | 4 | 0.75 | 2 | in flight <= 75 % of the BDP + 2 segments, or 5 RTTs at their minimum and none below it |
 * | STEADY between | 5 | 1 | 2 | 1 RTT_min; an RTT at its minimum makes it an ordinary STEADY |
 * | deep DRAIN, second | 6 | 0.75 | 2 | as the first |
 *
 * Fixed point: bandwidths in 2^-16 bytes/s, amounts in flight in 2^-16 bytes, so that a limit is off by less than a
 * thousandth of a byte; the filter's weight in 2^-32 from a series (error below 2^-28); times in ns. The random number is
 * Xoshiro256++ seeded as in Rust, so that a replay draws the same. Different from Rust:
 *   - `dsdl=true` does not exist (the clocks of two kernels have an unknown offset); thresholds are those of `pinned`;
 *   - RTTs are at most 16.8 s, rates at most 100 Gbit/s, windows at most 2^20 segments; more than 16 GB are never in flight;
 *   - STEADY's random time is off by less than 2 ns.
 */
#ifndef RANPACE_CDBEV2_H
#define RANPACE_CDBEV2_H

#include "driven.h"

/* Fractions of bandwidths and of amounts in flight. */
#define BW_BITS 16
/* Before the first report: 1 Mbit/s (section 7.2.3, Table 7.1). */
#define CDBEV2_INITIAL_BW (125000ull << BW_BITS)
/* The pace is never that of less than 300 kbit/s (Eq. 7.4: minBW). */
#define CDBEV2_MIN_BW (37500ull << BW_BITS)
/* ACKs above a threshold that end STARTUP; Thres1 in smallest delays; Thres2: 1 Mbit in the queue (Algorithm 7.2). */
#define CDBEV2_STARTUP_COUNT 5
#define CDBEV2_THRES1 2
#define CDBEV2_THRES2_BYTES 125000ull
/* Rounds without a growth by a quarter that end STARTUP. Ours. */
#define CDBEV2_PLATEAU_ROUNDS 3
/* Time without a minimal RTT after which a deep DRAIN is due (section 7.2.3). */
#define CDBEV2_DEEP_AFTER_TIME (2500 * NS_PER_MS)
/* Minimal RTTs in a row that end a deep DRAIN (section 7.2.3: FQM). */
#define CDBEV2_FAIR_COUNT 5
/* GROW ends after so many minimal RTTs. Ours. */
#define CDBEV2_GROW_RTTS 8
/* DRAIN ends when so many segments more than the target are in flight (Eq. 7.23). */
#define CDBEV2_SLACK_SEGMENTS 2
/* A flow's least growth: bytes per second of RTT, up to 300 ms (Eq. 7.25). */
#define CDBEV2_COMPENSATION 50000ull
#define CDBEV2_COMPENSATED (300 * NS_PER_MS)
/* The floor: periods between deep DRAINs, smoothing as in RFC 6298, and the tenths of it at which a queue begins. */
#define CDBEV2_PERIODS 3
#define CDBEV2_SMOOTHING 8
#define CDBEV2_CLEAR_TENTHS 11

enum cdbev2_mode {
	CDBEV2_STARTUP,
	CDBEV2_DRAIN,
	CDBEV2_STEADY,
	CDBEV2_GROW,
	CDBEV2_DEEP_FIRST,
	CDBEV2_PAUSE,
	CDBEV2_DEEP_SECOND,
};

enum cdbev2_deep { CDBEV2_DEEP_DUAL, CDBEV2_DEEP_SINGLE, CDBEV2_DEEP_OFF };
enum cdbev2_compensation { CDBEV2_GC_BIF, CDBEV2_GC_BDP, CDBEV2_GC_OFF };
enum cdbev2_reference { CDBEV2_REF_ROBUST, CDBEV2_REF_LIVE, CDBEV2_REF_PRE, CDBEV2_REF_FILT, CDBEV2_REF_PAST };
enum cdbev2_recovery { CDBEV2_RECOVERY_RUNNING, CDBEV2_RECOVERY_ASSIGNED, CDBEV2_RECOVERY_LAST };

struct cdbev2_settings {
	struct guard_settings guard;
	__u64 seed;         /* of STEADY's random times; 0 = the instant of the beginning, another for each connection */
	__u32 interval_us;  /* time between reports, `tw` times `report-every`; at most 2^24 - 1 */
	__u32 k;            /* 2^-16: smallest RTTs that the filter takes for 90 %, 0.5 to 8 */
	__u32 deep_after;   /* GROWs without a minimal RTT after which a deep DRAIN is due, 5 */
	__u8 deep;          /* enum cdbev2_deep */
	__u8 compensation;  /* enum cdbev2_compensation */
	__u8 reference;     /* enum cdbev2_reference */
	__u8 recovery;      /* enum cdbev2_recovery */
	__u8 no_fair_quit;  /* `fqm=off` */
	__u8 thres1_rtt;    /* Thres1 is twice the smallest RTT, not twice the smallest one-way delay */
	__u8 unused[2];
	__u32 tick_us;      /* of the timestamps, 1000 */
};

struct cdbev2 {
	/* 2^-16 bytes/s: BW(t) of Eq. 7.5, the cycle's largest report, that of the cycle before, what DRAIN's target is computed
	 * with, BW(t) when GROW began, BW_max when STARTUP's round began. */
	__u64 bw_filt, bw_max, bw_last, bw_ref, bw_before_grow, round_bw;
	__u64 since, round_began, last_hit; /* ns */
	__u64 pending;                      /* a report that waits for its acknowledgement, 2^-16 bytes/s; 0 = none */
	__u64 weight;                       /* of a report, 2^-32, for weight_rtt_us */
	__u64 steady_for;                   /* ns */
	__u64 in_flight_before_grow;        /* bytes */
	__u64 random[4];                    /* Xoshiro256++ */
	/* The floor (ns): the smoothed RTT, and its smallest since the last deep DRAINs, newest first; 0 = none. */
	__u64 smoothed, smallest[CDBEV2_PERIODS];
	__u64 excess; /* delay above the smallest that the ACK at hand measured, ns */
	__u32 weight_rtt_us, rtt_min_us, previous_rtt_us;
	__u32 one_way_min;
	__u32 above[2]; /* ACKs above the thresholds in STARTUP */
	__u32 flat_rounds, grows, fair_hits, deep_drains, hits;
	__u8 mode, seen, growing, has_one_way_min;
	__u8 round_reported, paused_hit;
	__u8 unused[2];
	/* What the window that is wanted was computed from; sized_mss = 0: from nothing. */
	__u64 sized_bw;
	__u32 sized_rtt_us, sized_mss, sized_startup, unused2;
};

struct cdbev2_sender {
	struct guard guard;
	struct cdbev2 control;
};

static __always_inline __u64 cdbev2_pacing_gain(__u8 mode)
{
	switch (mode) {
	case CDBEV2_STARTUP:
		return GAIN(2.175);
	case CDBEV2_DRAIN:
	case CDBEV2_DEEP_FIRST:
	case CDBEV2_DEEP_SECOND:
		return GAIN(0.75);
	case CDBEV2_GROW:
		return GAIN(1.25);
	default:
		return GAIN(1.0);
	}
}

static __always_inline int cdbev2_is_deep(__u8 mode)
{
	return mode == CDBEV2_DEEP_FIRST || mode == CDBEV2_DEEP_SECOND;
}

/* e^-y for y below 0.6, in 2^-31: twelve terms of the series; what is left out is below 2^-41. */
static __always_inline __u64 exp_minus(__u64 y)
{
	__u64 sum = 1ull << 31;

#pragma GCC unroll 16
	for (__u32 k = 12; k > 0; k--)
		sum = (1ull << 31) - ((y * sum) >> 31) / k;
	return sum;
}

/* Weight beta of a new report in 2^-32: 1 - 0.1^(1/n) with n = k RTT_min / interval, at least 1 (Eqs. 7.8 and 7.9). */
ARITHMETIC __u64 cdbev2_weight(__u32 rtt_us, __u32 k, __u32 interval_us)
{
	/* 1/n in 2^-32: interval below 2^24, k at most 2^19, RTT below 2^24. */
	__u64 reports = (__u64)min_u64(k, 8u << 16) * bounded_rtt(rtt_us) >> 8;
	__u64 interval = (__u64)min_u64(interval_us, (1u << 24) - 1) << 40;
	__u64 share = reports ? min_u64(interval / reports, 1ull << 32) : 1ull << 32;
	/* 0.1^share = (e^(-ln 10 share / 4))^4, so that the series has at most 0.576. ln(10)/4 in 2^-31. */
	__u64 quarter = (share * 1236190959ull) >> 32;
	__u64 root = exp_minus(quarter);
	__u64 square = (root * root) >> 31;
	__u64 left = (square * square) >> 31;

	return ((1ull << 31) - left) << 1;
}

/* BW(t) = (1 - beta) BW(t-1) + beta rBW (Eq. 7.5), rounded towards the report: equal reports are reached, as in floats. */
static __always_inline __u64 cdbev2_filtered(__u64 bw, __u64 report, __u64 beta)
{
	if (report >= bw)
		return bw + min_u64(report - bw, times_fraction(report - bw, beta) + 1);
	return bw - min_u64(bw - report, times_fraction(bw - report, beta) + 1);
}

/* Bandwidth-delay product in 2^-16 bytes. */
static __always_inline __u64 cdbev2_bdp(__u64 bw, __u64 rtt)
{
	return in_time(bw, rtt);
}

/* Bytes in flight (2^-16) down to which DRAIN goes (Eq. 7.23). */
static __always_inline __u64 cdbev2_drain_limit(int deep, __u64 bw_ref, __u64 rtt, __u32 mss)
{
	__u64 bdp = cdbev2_bdp(bw_ref, rtt);

	return (deep ? bdp - bdp / 4 : bdp) + ((__u64)CDBEV2_SLACK_SEGMENTS * mss << BW_BITS);
}

/* Bytes in flight (2^-16) above which GROW ends (Eq. 7.24). `at_entry` in bytes. */
static __always_inline __u64 cdbev2_grow_limit(__u8 compensation, __u64 at_entry, __u64 bw_max, __u64 rtt)
{
	__u64 bdp = cdbev2_bdp(bw_max, rtt);
	__u64 growth = in_time(CDBEV2_COMPENSATION << BW_BITS, min_u64(rtt, CDBEV2_COMPENSATED));
	__u64 compensated = compensation == CDBEV2_GC_BIF   ? (at_entry << BW_BITS) + growth
						: compensation == CDBEV2_GC_BDP ? bdp + growth
														: 0;

	return max_u64(compensated, bdp + bdp / 4);
}

/* Xoshiro256++ (Blackman and Vigna 2019), in the public domain. */
static __always_inline __u64 rotate_left(__u64 x, __u32 by)
{
	return x << by | x >> (64 - by);
}

static __always_inline __u64 cdbev2_random(__u64 s[4])
{
	__u64 result = rotate_left(s[0] + s[3], 23) + s[0];
	__u64 t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

/* SplitMix64 makes the state from the seed. */
static __always_inline void cdbev2_seed(__u64 s[4], __u64 seed)
{
	for (int i = 0; i < 4; i++) {
		__u64 z;

		seed += 0x9e3779b97f4a7c15ull;
		z = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9ull;
		z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		s[i] = z ^ z >> 31;
	}
}

/* A time as the thesis's clock of milliseconds shows it. */
static __always_inline __u32 cdbev2_millis(__u32 us)
{
	return (us + 500) / 1000;
}

/* An RTT of full segments, for the floor. */
static __always_inline void cdbev2_floor_take(struct cdbev2 *c, __u64 rtt)
{
	c->smoothed = c->smoothed ? (c->smoothed * (CDBEV2_SMOOTHING - 1) + rtt) / CDBEV2_SMOOTHING : rtt;
	if (!c->smallest[0] || c->smoothed < c->smallest[0])
		c->smallest[0] = c->smoothed;
}

/* A deep DRAIN begins: what it shows is for the next period. */
static __always_inline void cdbev2_floor_begin_period(struct cdbev2 *c)
{
	c->smallest[2] = c->smallest[1];
	c->smallest[1] = c->smallest[0];
	c->smallest[0] = c->smoothed;
}

/* The RTT to compute with where there is no queue, ns; 0 where there is one. */
static __always_inline __u64 cdbev2_floor_clear(const struct cdbev2 *c)
{
	__u64 floor = c->smallest[0];

	for (int i = 1; i < CDBEV2_PERIODS; i++)
		if (c->smallest[i] && (!floor || c->smallest[i] < floor))
			floor = c->smallest[i];
	return floor && 10 * c->smoothed <= CDBEV2_CLEAR_TENTHS * floor ? floor : 0;
}

/* The smallest RTT in us; 0 before there is any. */
static __always_inline __u32 cdbev2_rtt_min(const struct cdbev2 *c, const struct flow *f)
{
	return c->rtt_min_us ? c->rtt_min_us : bounded_rtt(f->min_rtt_us);
}

static __always_inline int cdbev2_recovering(const struct flow *f)
{
	return f->ca_state == FLOW_RECOVERY || f->ca_state == FLOW_LOSS;
}

/* Bandwidth in use (section 7.2.2). */
static __always_inline __u64 cdbev2_bandwidth(const struct cdbev2 *c, const struct cdbev2_settings *s,
											  const struct flow *f)
{
	if (c->mode == CDBEV2_STARTUP || c->mode == CDBEV2_GROW)
		return max_u64(c->bw_max, c->bw_filt);
	if (cdbev2_recovering(f) && s->recovery == CDBEV2_RECOVERY_RUNNING)
		return max_u64(c->bw_max, c->bw_filt);
	if (cdbev2_recovering(f) && s->recovery == CDBEV2_RECOVERY_LAST)
		return max_u64(c->bw_last, c->bw_filt);
	return c->bw_filt;
}

/* A report in 2^-16 bytes/s, Algorithm 7.1 and Eq. 7.5. */
static __always_inline void cdbev2_take_report(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
											   __u64 report)
{
	__u32 rtt_min;

	c->round_reported = 1;
	if (f->app_limited && report < c->bw_filt)
		return;
	c->bw_max = max_u64(c->bw_max, report);
	if (c->mode == CDBEV2_STARTUP ||
		(cdbev2_recovering(f) && s->recovery == CDBEV2_RECOVERY_ASSIGNED)) {
		c->bw_filt = c->bw_max;
		return;
	}
	rtt_min = cdbev2_rtt_min(c, f);
	if (!c->weight || c->weight_rtt_us != rtt_min) {
		/* Without an RTT Rust has an endless one: no weight. */
		c->weight = rtt_min ? cdbev2_weight(rtt_min, s->k, s->interval_us) : 0;
		c->weight_rtt_us = rtt_min;
	}
	c->bw_filt = cdbev2_filtered(c->bw_filt, report, c->weight);
}

/* The RTT of full segments: RTT_min, and what minimal RTTs are good for. */
static __always_inline void cdbev2_take_full_rtt(struct cdbev2 *c, const struct flow *f, __u32 rtt)
{
	__u32 record = c->rtt_min_us;
	/* The first is the record, but no record is undercut. */
	int undercut = record && cdbev2_millis(rtt) < cdbev2_millis(record);
	int hit = !record || cdbev2_millis(rtt) <= cdbev2_millis(record);

	cdbev2_floor_take(c, rtt * NS_PER_US);
	if (!record || rtt < record)
		c->rtt_min_us = rtt;
	c->hits += hit;
	if (cdbev2_is_deep(c->mode)) {
		c->fair_hits = undercut ? 0 : c->fair_hits + hit;
	} else if (c->mode == CDBEV2_PAUSE) {
		c->paused_hit |= hit;
	} else if (hit) {
		c->grows = 0;
		c->last_hit = f->now;
	}
}

static __always_inline void cdbev2_on_sample(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
											 const struct ack *a)
{
	__u32 rtt = bounded_rtt(a->rtt_us);

	if (!rtt)
		return;
	if (a->delivered && a->bytes == mss_of(f) * a->delivered)
		cdbev2_take_full_rtt(c, f, rtt);
	if (a->has_one_way) {
		/* Wraps: only differences count. */
		if (!c->has_one_way_min || a->one_way - c->one_way_min >= 1u << 31)
			c->one_way_min = a->one_way;
		c->has_one_way_min = 1;
		c->excess = (__u64)(a->one_way - c->one_way_min) * s->tick_us * NS_PER_US;
	} else {
		c->excess = elapsed_ns(rtt, cdbev2_rtt_min(c, f)) * NS_PER_US;
	}
	c->seen = 1;
	c->growing = c->previous_rtt_us && rtt > c->previous_rtt_us;
	c->previous_rtt_us = rtt;
}

/* Algorithm 7.2, and the plateau. */
static __always_inline int cdbev2_startup_over(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
											   __u32 rtt_min)
{
	__u64 rtt = NS_PER_US * (c->previous_rtt_us ? c->previous_rtt_us : f->srtt_us);

	if (c->seen && c->growing) {
		/* Half of RTT_min is the pinned smallest delay. */
		__u64 thres1 = (__u64)CDBEV2_THRES1 * (s->thres1_rtt ? 1000 : 500) * rtt_min;
		__u64 bw = max_u64(c->bw_max, 1);
		/* 125000 * 10^9 * 2^16 < 2^63 */
		__u64 thres2 = ((CDBEV2_THRES2_BYTES * NS_PER_S << BW_BITS) + bw / 2) / bw;

		c->above[0] += c->excess > thres1;
		c->above[1] += c->excess > thres2;
	}
	if (elapsed_ns(f->now, c->round_began) >= rtt && c->round_reported) {
		if (4 * c->bw_max >= 5 * c->round_bw)
			c->flat_rounds = 0;
		else if (!f->app_limited)
			c->flat_rounds++;
		c->round_began = f->now;
		c->round_reported = 0;
		c->round_bw = c->bw_max;
	}
	return cdbev2_recovering(f) || c->above[0] >= CDBEV2_STARTUP_COUNT || c->above[1] >= CDBEV2_STARTUP_COUNT ||
		   c->flat_rounds >= CDBEV2_PLATEAU_ROUNDS;
}

static __always_inline void cdbev2_enter(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f, __u8 mode,
										 __u32 rtt_min, __u64 in_flight)
{
	__u8 from = c->mode;
	__u64 random, spread;

	c->mode = mode;
	c->since = f->now;
	switch (mode) {
	case CDBEV2_DRAIN:
	case CDBEV2_DEEP_FIRST:
	case CDBEV2_DEEP_SECOND:
		c->bw_ref = s->reference == CDBEV2_REF_PAST || from == CDBEV2_STARTUP ? c->bw_max
					: from == CDBEV2_GROW                                     ? c->bw_before_grow
																			  : c->bw_filt;
		c->bw_last = c->bw_max;
		c->bw_max = c->bw_filt;
		c->fair_hits = 0;
		if (mode == CDBEV2_DEEP_FIRST) {
			c->deep_drains++;
			cdbev2_floor_begin_period(c);
		}
		break;
	case CDBEV2_PAUSE:
		c->paused_hit = 0;
		break;
	case CDBEV2_STEADY:
		/* 2 RTT_min, and up to 4 more: 53 random bits make a number in [0, 1), as in Rust. */
		random = cdbev2_random(c->random);
		spread = 4 * NS_PER_US * rtt_min;
		c->steady_for = spread / 2 + times_fraction(spread, random >> 32) +
						(times_fraction(spread, random & 0xfffff800ull) >> 32);
		if (from != CDBEV2_DRAIN) {
			c->grows = 0; /* a deep DRAIN is over */
			c->last_hit = f->now;
		}
		break;
	case CDBEV2_GROW:
		if (c->grows != 0xffffffffu)
			c->grows++;
		c->in_flight_before_grow = in_flight;
		c->bw_before_grow = c->bw_filt;
		break;
	default:
		break;
	}
}

/* The state table: at most one transition for an acknowledgement. */
ARITHMETIC_GLOBAL int cdbev2_transit(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f)
{
	if (!c || !s || !f)
		return 0;
	__u32 rtt_min = cdbev2_rtt_min(c, f);
	/* Below 2^34 bytes, 2^50 with fractions. */
	__u64 in_flight = min_u64((__u64)f->in_flight * mss_of(f), (1ull << 34) - 1);
	__u64 clear = s->reference == CDBEV2_REF_ROBUST ? cdbev2_floor_clear(c) : 0;
	__u64 path_rtt = max_u64(rtt_min * NS_PER_US, clear);
	__u64 since = elapsed_ns(f->now, c->since);
	__u64 reference = s->reference == CDBEV2_REF_LIVE || clear ? c->bw_max
					  : s->reference == CDBEV2_REF_FILT        ? c->bw_filt
															   : c->bw_ref;
	int drained = (c->mode == CDBEV2_DRAIN || cdbev2_is_deep(c->mode)) &&
				  in_flight << BW_BITS <= cdbev2_drain_limit(cdbev2_is_deep(c->mode), reference, path_rtt, mss_of(f));
	int deep_due = c->grows >= s->deep_after || elapsed_ns(f->now, c->last_hit) >= CDBEV2_DEEP_AFTER_TIME;
	int fair_quit = !s->no_fair_quit && c->fair_hits >= CDBEV2_FAIR_COUNT;
	__u8 mode = c->mode;

	switch (c->mode) {
	case CDBEV2_STARTUP:
		if (cdbev2_startup_over(c, s, f, rtt_min))
			mode = CDBEV2_DRAIN;
		break;
	case CDBEV2_DRAIN:
		if (drained)
			mode = CDBEV2_STEADY;
		break;
	case CDBEV2_STEADY:
		if (since >= c->steady_for)
			mode = CDBEV2_GROW;
		break;
	case CDBEV2_GROW:
		if (in_flight << BW_BITS > cdbev2_grow_limit(s->compensation, c->in_flight_before_grow, c->bw_max, path_rtt) ||
			since >= CDBEV2_GROW_RTTS * NS_PER_US * rtt_min)
			mode = deep_due && s->deep != CDBEV2_DEEP_OFF ? CDBEV2_DEEP_FIRST : CDBEV2_DRAIN;
		break;
	case CDBEV2_DEEP_FIRST:
		if (drained || fair_quit)
			mode = s->deep == CDBEV2_DEEP_DUAL ? CDBEV2_PAUSE : CDBEV2_STEADY;
		break;
	case CDBEV2_PAUSE:
		if (c->paused_hit)
			mode = CDBEV2_STEADY;
		else if (since >= NS_PER_US * rtt_min)
			mode = CDBEV2_DEEP_SECOND;
		break;
	default:
		if (drained || fair_quit)
			mode = CDBEV2_STEADY;
	}
	if (mode != c->mode)
		cdbev2_enter(c, s, f, mode, rtt_min, in_flight);
	c->seen = 0;
	return 0;
}

/* Eq. 7.2 for payload. */
static __always_inline void cdbev2_set_pace(const struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
											struct wanted *w)
{
	__u64 bw = max_u64(cdbev2_bandwidth(c, s, f), CDBEV2_MIN_BW) >> BW_BITS;

	w->pacing = (bw * cdbev2_pacing_gain(c->mode)) >> GAIN_BITS;
}

static __always_inline void cdbev2_on_ack(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
										  struct wanted *w)
{
	__u32 rtt_min, startup;
	__u64 bdp, bw;

	if (c->pending) {
		cdbev2_take_report(c, s, f, c->pending);
		c->pending = 0;
	}
	rtt_min = cdbev2_rtt_min(c, f);
	if (!rtt_min)
		return; /* nothing has been measured: the initial window stays */
	cdbev2_transit(c, s, f);
	cdbev2_set_pace(c, s, f, w);
	startup = c->mode == CDBEV2_STARTUP;
	bw = cdbev2_bandwidth(c, s, f);
	/* Reports are rarer than acknowledgements. */
	if (c->sized_bw == bw && c->sized_rtt_us == rtt_min && c->sized_mss == mss_of(f) && c->sized_startup == startup)
		return;
	c->sized_bw = bw;
	c->sized_rtt_us = rtt_min;
	c->sized_mss = mss_of(f);
	c->sized_startup = startup;
	/* Eq. 7.3. At most 2^38 in 2^-8 bytes, of which the gain makes less than 2^64. */
	bdp = min_u64(cdbev2_bdp(bw, rtt_min * NS_PER_US) >> (BW_BITS - CWND_BITS), 1ull << 38);
	w->cwnd = (__u32)max_u64(
		window_of(f, (bdp * (startup ? GAIN(2.175) : GAIN(2.0))) >> GAIN_BITS),
		MIN_CWND << CWND_BITS);
}

static __always_inline void cdbev2_on_start(struct cdbev2 *c, const struct cdbev2_settings *s, const struct flow *f,
											struct wanted *w)
{
	c->bw_filt = c->bw_max = c->bw_last = c->bw_ref = c->bw_before_grow = c->round_bw = CDBEV2_INITIAL_BW;
	c->since = c->last_hit = c->round_began = f->now;
	cdbev2_seed(c->random, s->seed ? s->seed : f->now);
	cdbev2_set_pace(c, s, f, w);
}

/* The control's part of an event. */
static __always_inline void cdbev2_control(struct cdbev2_sender *d, const struct cdbev2_settings *s, struct event *e,
										   __u32 kind)
{
	struct wanted *w = &d->guard.wanted;
	struct cdbev2 *c = &d->control;
	struct flow *f = &e->flow;

	switch (kind) {
	case EVENT_START:
		guard_on_start(&d->guard, f);
		cdbev2_on_start(c, s, f, w);
		break;
	case EVENT_REPORT:
		/* It counts with the RTT of its acknowledgement, which is told next. */
		if (c->pending)
			cdbev2_take_report(c, s, f, c->pending);
		c->pending = min_u64(e->rate, MAX_RATE) << BW_BITS;
		break;
	case EVENT_SAMPLE:
		cdbev2_on_sample(c, s, f, &e->ack);
		break;
	case EVENT_TIMEOUT:
		/* Empties the path until the next acknowledgement; other losses change the bandwidth in use at most. */
		w->cwnd = (__u32)min_u64(f->in_flight + 1ull, FLOW_MOST_CWND) << CWND_BITS;
		c->sized_mss = 0;
		break;
	case EVENT_ACK:
		cdbev2_on_ack(c, s, f, w);
		break;
	default:
		break;
	}
}

DRIVEN_STEP(cdbev2)

struct cdbev2_call {
	struct cdbev2_settings settings;
	struct cdbev2_sender state;
	struct event event;
};

static __always_inline void cdbev2_call_step(struct cdbev2_call *call)
{
	cdbev2_step(&call->state, &call->settings, &call->event);
}

#endif
