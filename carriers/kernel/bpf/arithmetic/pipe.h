/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * The path as the sender of a client-driven control (DCIC, CQIC-S, CDBE) sees it: the reported bandwidth and the smallest
 * RTT, and the pace and window that follow from them. logic/cc/src/client_driven/pipe.rs.
 *
 * Source: Zhong 2020. Pacing interval PktSize / (G rBW) (equations 5.5 and 6.6), window G rBW RTT_min (5.6 and 6.7), initial
 * rate 1 MB/s (section 6.3.1). Ours: the window never falls below 4 segments, the rate in the pacing interval is at least one
 * segment per RTT_min, RTT_min is the smallest of the connection.
 *
 * Fixed point: rates in bytes/s are whole, and reports in kbit/s are exact in them; windows are kept in 2^-8 segments, so that
 * shares of them lose nothing that counts; gains in 2^-24. Different from Rust: RTTs are at most 16.8 s, rates at most
 * 100 Gbit/s, windows at most 2^20 segments. The kernel's pace counts payload, so the pace of a control that counts packets
 * with their headers is scaled down by them.
 */
#ifndef RANPACE_PIPE_H
#define RANPACE_PIPE_H

#include "report.h"

/* Fractions of windows: 2^-8 segments. */
#define CWND_BITS 8
/* Smallest window in segments. Ours. */
#define MIN_CWND 4u
/* 1 MB/s: before there is a report (section 6.3.1). */
#define INITIAL_RATE 1000000ull
/* Gains, 2^-24. */
#define GAIN_BITS 24
#define GAIN(x) ((__u64)((x) * (1 << GAIN_BITS) + 0.5))
/* 2/ln 2 (section 6.4.1). */
#define HIGH_GAIN GAIN(2.885390081777926815)

/* What the client counts, and so what PktSize is. */
enum unit { UNIT_PAYLOAD, UNIT_WIRE };

/* What a control wants; whether it has it is the guard's decision (guard.h). */
struct wanted {
	__u64 pacing; /* bytes of payload per second */
	__u32 cwnd;   /* 2^-8 segments */
	__u32 unused;
};

struct pipe {
	__u64 bandwidth;  /* in use, rBW, bytes/s */
	__u64 reported;   /* the last report, bytes/s; 0 = none */
	__u32 min_rtt_us; /* 0 = none */
	__u8 collapsed;   /* after a timeout, until the next report */
	__u8 unused[3];
	/* What the pace and window that are wanted were computed from; applied_mss = 0: from nothing. */
	__u64 applied_bandwidth, applied_gains;
	__u32 applied_rtt_us, applied_mss, applied_wire, unused2;
};

static __always_inline __u32 mss_of(const struct flow *f)
{
	return f->mss ? f->mss : 1;
}

static __always_inline __u32 wire_of(const struct flow *f)
{
	return f->wire > mss_of(f) ? f->wire : mss_of(f);
}

/* Bytes in 2^-8 to segments in 2^-8, at most FLOW_MOST_CWND. */
static __always_inline __u32 window_of(const struct flow *f, __u64 bytes)
{
	return (__u32)min_u64(bytes / mss_of(f), (__u64)FLOW_MOST_CWND << CWND_BITS);
}

static __always_inline void pipe_sample_rtt(struct pipe *p, __u32 rtt_us)
{
	__u32 rtt = bounded_rtt(rtt_us);

	if (rtt && (!p->min_rtt_us || rtt < p->min_rtt_us))
		p->min_rtt_us = rtt;
}

static __always_inline void pipe_on_start(struct pipe *p, const struct flow *f)
{
	p->bandwidth = INITIAL_RATE;
	pipe_sample_rtt(p, f->min_rtt_us);
	pipe_sample_rtt(p, f->srtt_us);
}

/* Takes a report in bytes/s. With `keep_higher` a lower one than is in use changes nothing. */
static __always_inline void pipe_on_report(struct pipe *p, __u64 rate, int keep_higher)
{
	if (!(keep_higher && p->reported && rate < p->bandwidth))
		p->bandwidth = rate;
	p->reported = rate;
	p->collapsed = 0;
}

/* Losses are nothing to these controls; after a timeout there is one segment until the next report. */
static __always_inline void pipe_on_timeout(struct pipe *p, struct wanted *w)
{
	p->collapsed = 1;
	p->applied_mss = 0;
	w->cwnd = 1u << CWND_BITS;
}

/* Whether less than half of rBW RTT_min is in flight (gamma, ours); exact. In flight is below 2^24 * 2^16 bytes. */
static __always_inline int pipe_flight_low(const struct pipe *p, const struct flow *f)
{
	__u64 in_flight = min_u64(f->in_flight, 1u << 24) * min_u64(mss_of(f), 1u << 16);

	return 2 * US_PER_S * in_flight < p->bandwidth * p->min_rtt_us;
}

/* Whether pace and window follow from other values than the last ones; these are kept. Most reports repeat the one before. */
static __always_inline int pipe_differs(struct pipe *p, const struct flow *f, __u64 gains)
{
	if (p->applied_bandwidth == p->bandwidth && p->applied_gains == gains && p->applied_rtt_us == p->min_rtt_us &&
		p->applied_mss == mss_of(f) && p->applied_wire == f->wire && !p->collapsed)
		return 0;
	p->applied_bandwidth = p->bandwidth;
	p->applied_gains = gains;
	p->applied_rtt_us = p->min_rtt_us;
	p->applied_mss = p->collapsed ? 0 : mss_of(f);
	p->applied_wire = f->wire;
	return 1;
}

/* Pace and window of these gains (2^-24, at most 4). */
static __always_inline void pipe_apply(struct pipe *p, const struct flow *f, struct wanted *w, enum unit unit,
									   __u64 pacing_gain, __u64 cwnd_gain)
{
	if (!pipe_differs(p, f, pacing_gain << 32 | cwnd_gain))
		return;
	/* Before an RTT is known, a segment per second keeps the pace from zero. */
	__u64 rtt_us = p->min_rtt_us ? p->min_rtt_us : US_PER_S;
	__u64 packet = unit == UNIT_WIRE ? wire_of(f) : mss_of(f);
	__u64 pace = (max_u64(p->bandwidth, US_PER_S * packet / rtt_us) * pacing_gain) >> GAIN_BITS;

	if (unit == UNIT_WIRE)
		pace = pace * mss_of(f) / wire_of(f);
	w->pacing = max_u64(pace, 1);
	if (p->collapsed) {
		w->cwnd = 1u << CWND_BITS;
	} else if (p->min_rtt_us) {
		/* At most 2^38: 1 GB, of which the gain makes less than 2^64. */
		__u64 bdp = min_u64(in_time(p->bandwidth << CWND_BITS, p->min_rtt_us * NS_PER_US), 1ull << 38);

		w->cwnd = (__u32)max_u64(window_of(f, (bdp * cwnd_gain) >> GAIN_BITS), MIN_CWND << CWND_BITS);
	}
}

#endif
