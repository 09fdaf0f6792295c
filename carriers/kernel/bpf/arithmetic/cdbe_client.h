/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * CDBE's receiver: the bandwidth from the arrivals of data. logic/cc/src/client_driven/cdbe/client.rs.
 *
 * Source: Zhong 2020, section 6.3, equations 6.1 to 6.5. Arrivals of W_s = W_l / 5 are a sample, bytes over time; samples of
 * W_l, the RTT, are averaged and smoothed with the previous report, whose weight shrinks with the pause before them.
 *
 * Ours: W_l is the receiver's RTT, smoothed by an eighth, at least 10 ms, 100 ms before it is known, and stands for as long as
 * the long window does; the time of a sample is at least 2 ms; the pause of equation 6.5 is counted in W_s (`gap_unit`); after
 * a pause of four W_l the open windows are discarded; a sample ends with the arrival that closes it (`fence=next_arrival`),
 * which the thesis ends with its own last packet (`literal`).
 *
 * Fixed point: rates in whole bytes/s; the old report's weight in 2^-16; the smoothed RTT in ns as in Rust. Timestamps have the
 * kernel's ticks: `ts_granularity` coarser than these divides them. A sample holds at most 4 GB. Merged packets: arrivals.h.
 */
#ifndef RANPACE_CDBE_CLIENT_H
#define RANPACE_CDBE_CLIENT_H

#include "arrivals.h"

/* Samples per long window (section 6.3.1). */
#define CDBE_SAMPLES 5
/* Floor of the divisor, dt_min (equation 6.3). */
#define CDBE_MIN_TIME (2 * NS_PER_MS)
/* Smallest W_l, and W_l before there is an RTT. Ours. */
#define CDBE_MIN_RTT (10 * NS_PER_MS)
#define CDBE_FIRST_RTT (100 * NS_PER_MS)
/* Pause, in W_l, after which the open windows are discarded. Ours. */
#define CDBE_IDLE 4
/* The first report (section 6.3.1). */
#define CDBE_INITIAL 1000000ull

enum cdbe_gap_unit { CDBE_GAP_WS, CDBE_GAP_S, CDBE_GAP_MS };

struct cdbe_client_settings {
	__u64 window;   /* W_l in ns; 0 = the RTT */
	__u32 tick_us;  /* of the timestamps, 1000 */
	__u32 every;    /* acknowledgements per report, 1 */
	__u8 literal;   /* `fence=literal` */
	__u8 gap_unit;  /* enum cdbe_gap_unit */
	__u8 unused[6];
};

struct cdbe_client {
	__u64 rtt;                       /* smoothed, ns; 0 = none */
	__u64 first, last;               /* the current sample: arrivals, ns */
	__u64 bytes;
	__u32 first_stamp, last_stamp;
	__u64 long_begin, length, short_length; /* the long window and its W_l and W_s, ns */
	__u64 sum;                       /* of its samples, bytes/s */
	__u32 samples;
	__u8 open, ended;                /* a sample is open; a long window has ended */
	__u8 unused[2];
	__u64 previous_end;              /* last arrival of the previous long window */
	__u64 bandwidth;                 /* rBW, bytes/s; 0 = the initial one */
	struct reporter reporter;
};

/* Weight of the previous report after a pause of `gap` ns, 2^-16 (equation 6.5): 0.4, or 0.4 / (0.4 + gap/unit). */
static __always_inline __u64 cdbe_old_weight(__u64 gap, __u64 sample_window, __u8 gap_unit)
{
	__u64 unit = gap_unit == CDBE_GAP_S ? NS_PER_S : gap_unit == CDBE_GAP_MS ? NS_PER_MS : sample_window;

	if (gap <= sample_window)
		return (2ull << 16) / 5;
	/* gap below 2^44 ns, units below 2^36. */
	unit = min_u64(unit, 1ull << 36);
	return (2 * unit << 16) / max_u64(2 * unit + 5 * min_u64(gap, 1ull << 44), 1);
}

/* Bandwidth of the sample in bytes/s (equations 6.2 and 6.3); `next` is the arrival that closes it. */
static __always_inline __u64 cdbe_sample_bandwidth(const struct cdbe_client *c, const struct cdbe_client_settings *s,
												   __u64 next)
{
	__u64 time = max_u64(elapsed_ns(s->literal ? c->last : next, c->first), CDBE_MIN_TIME);
	__u32 ticks = c->last_stamp - c->first_stamp;
	/* Timestamps wrap; one that goes backwards says nothing. */
	__u64 sent = ticks < 1u << 31 ? ticks * (__u64)s->tick_us * NS_PER_US : 0;

	/* Much was sent over a longer time than it took to arrive: it was held up before. */
	if (sent >= 2 * time)
		time = c->short_length;
	/* Below 2^32 * 2^30. */
	return min_u64(c->bytes * NS_PER_S / max_u64(time, 1), MAX_RATE);
}

static __always_inline void cdbe_client_open_long(struct cdbe_client *c, const struct cdbe_client_settings *s, __u64 now)
{
	c->long_begin = now;
	c->length = max_u64(s->window ? s->window : c->rtt ? c->rtt : CDBE_FIRST_RTT, CDBE_MIN_RTT);
	c->short_length = c->length / CDBE_SAMPLES;
	c->sum = 0;
	c->samples = 0;
}

/* Closes the long window (equation 6.4). */
static __always_inline void cdbe_client_close_long(struct cdbe_client *c, const struct cdbe_client_settings *s, __u64 last)
{
	__u64 gap = c->ended ? elapsed_ns(c->long_begin, c->previous_end) : 0;
	__u64 old = cdbe_old_weight(gap, c->short_length, s->gap_unit);
	__u64 before = c->bandwidth ? c->bandwidth : CDBE_INITIAL;
	__u64 mean = c->sum / max_u64(c->samples, 1);

	/* Both below 2^34. */
	c->bandwidth = max_u64((old * before + ((1ull << 16) - old) * mean) >> 16, 1);
	c->previous_end = last;
	c->ended = 1;
}

static __always_inline void cdbe_client_fresh(struct cdbe_client *c, const struct arrival *a)
{
	c->open = 1;
	c->first = c->last = a->now;
	c->first_stamp = c->last_stamp = a->stamp;
	c->bytes = a->bytes;
}

ARITHMETIC_GLOBAL int cdbe_client_on_data(struct cdbe_client *c, const struct cdbe_client_settings *s,
										   const struct arrival *a)
{
	if (!c || !s || !a)
		return 0;
	__u64 rtt = bounded_rtt(a->rtt_us) * NS_PER_US;

	if (rtt)
		c->rtt = c->rtt ? (c->rtt * 7 + rtt) / 8 : rtt;
	c->reporter.segments += a->segments;
	if (!c->open || elapsed_ns(a->now, c->last) > CDBE_IDLE * c->length) {
		cdbe_client_fresh(c, a);
		cdbe_client_open_long(c, s, a->now);
		return 0;
	}
	if (elapsed_ns(a->now, c->first) < c->short_length) {
		c->bytes = min_u64(c->bytes + a->bytes, 0xffffffffull);
		c->last = a->now;
		c->last_stamp = a->stamp;
		return 0;
	}
	c->sum += cdbe_sample_bandwidth(c, s, a->now);
	c->samples++;
	if (c->samples >= CDBE_SAMPLES || elapsed_ns(a->now, c->long_begin) >= c->length) {
		cdbe_client_close_long(c, s, c->last);
		cdbe_client_open_long(c, s, a->now);
	}
	cdbe_client_fresh(c, a);
	return 0;
}

/* The bandwidth to be reported, bytes/s. */
static __always_inline __u64 cdbe_client_estimate(const struct cdbe_client *c)
{
	return c->bandwidth ? c->bandwidth : CDBE_INITIAL;
}

/* What the acknowledgement that is about to leave is to carry, bytes/s; 0 for nothing. */
static __always_inline __u64 cdbe_client_peek(const struct cdbe_client *c)
{
	return reporter_is_due(&c->reporter) ? cdbe_client_estimate(c) : 0;
}

/* The same, and it leaves. */
static __always_inline __u64 cdbe_client_report(struct cdbe_client *c, const struct cdbe_client_settings *s)
{
	return reporter_take(&c->reporter, s->every) ? cdbe_client_estimate(c) : 0;
}

#endif
