/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * What a control is told and what it sets, in the kernel's units: Context, Sample, Ack and Window of logic/cc.
 *
 * These headers call nothing. They are compiled for BPF, and natively beside logic/cc (package ranpace-kernel-arithmetic).
 * No floats, no signed division, no loop without a constant bound. Divisors are checked, and values from the wire are
 * bounded before they are multiplied.
 *
 * Units: now and times in ns; RTTs in us, 0 = none; rates in bytes of payload a second; windows in whole segments. Fixed point
 * is named by its fraction: q32 counts 2^-32.
 */
#ifndef RANPACE_FLOW_H
#define RANPACE_FLOW_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
/* A function large enough to be called, not repeated; at most five arguments. A program need not use all of a header. */
#define ARITHMETIC static __attribute__((noinline, unused))
/* One that the verifier checks once, by itself, and not again for each of its callers: a third of the time for a client-driven
 * sender. To the verifier its pointers may be NULL and what they point to is written, so it checks for the one, and settings may
 * not be read-only. It returns a number. (A static function must not return nothing either: R0 may come back with a pointer to
 * the stack, which is refused, and clang drops a value that nobody uses.)
 */
#ifdef __bpf__
#define ARITHMETIC_GLOBAL __attribute__((noinline))
#else
#define ARITHMETIC_GLOBAL static __attribute__((noinline, unused))
#endif

/* Keeps clang from dropping a range check that the verifier needs: it no longer knows what `value` is. */
#define KEEP_CHECK(value) __asm__ volatile("" : "+r"(value))

/* Loss recovery's state, as the kernel numbers it (enum tcp_ca_state). */
#define FLOW_OPEN 0
#define FLOW_DISORDER 1
#define FLOW_CWR 2
#define FLOW_RECOVERY 3
#define FLOW_LOSS 4

/* No slow start threshold yet (TCP_INFINITE_SSTHRESH). */
#define FLOW_NO_SSTHRESH 0x7fffffffU
/* Largest window that is written, in segments; 1.5 GB. Ours: products of windows fit 64 bits. */
#define FLOW_MOST_CWND (1U << 20)
/* Longest RTT that is told from a longer one, 16.8 s. Ours: products of RTTs fit 64 bits. */
#define FLOW_MOST_RTT_US (1U << 24)
/* Most segments that one acknowledgement counts. Ours. */
#define FLOW_MOST_SEGMENTS (1U << 16)

/* The connection and its window. The glue fills it from struct tcp_sock, and writes back cwnd, ssthresh and pacing. */
struct flow {
	__u64 now;           /* ns, bpf_ktime_get_ns */
	__u64 pacing;        /* bytes of payload a second, written; 0 = the control does not pace */
	__u32 mss;           /* payload of a segment, bytes (mss_cache) */
	__u32 srtt_us;       /* smoothed RTT; 0 = none */
	__u32 min_rtt_us;    /* smallest RTT of 300 s (rtt_min); 0 = none */
	__u32 in_flight;     /* segments */
	__u32 delivered;     /* segments since the connection began, wraps */
	__u32 lost;          /* segments since the connection began, wraps */
	__u32 cwnd;          /* segments, written */
	__u32 ssthresh;      /* segments, written; FLOW_NO_SSTHRESH = infinite */
	__u8 ca_state;       /* FLOW_OPEN ... FLOW_LOSS */
	__u8 cwnd_limited;   /* tcp_is_cwnd_limited */
	__u8 app_limited;    /* the application has nothing more to send */
	__u8 unused;
	__u32 wire;          /* a full segment with its headers, bytes; 0 = as mss */
};

/* One acknowledgement: struct ack_sample and struct rate_sample. */
struct ack {
	__u32 acked;            /* segments to grow by */
	__u32 delivered;        /* segments newly delivered */
	__u32 rtt_us;           /* 0 = none */
	__u32 one_way;          /* ticks of the timestamps (ms) from sender to receiver, up to a constant; if has_one_way */
	__u32 has_one_way;
	__u32 rate_delivered;   /* segments over rate_interval_us */
	__u32 rate_interval_us; /* 0 = no valid sample */
	__u32 prior_delivered;  /* delivered when the newest packet covered was sent */
	__u32 losses;           /* segments newly taken for lost */
	__u32 prior_in_flight;
	__u32 rate_app_limited;
	__u32 ecn_echo;
	__u32 bytes;            /* payload newly delivered */
};

static __always_inline __u32 min_u32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static __always_inline __u32 max_u32(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

static __always_inline __u64 min_u64(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

static __always_inline __u64 max_u64(__u64 a, __u64 b)
{
	return a > b ? a : b;
}

/* Time from `earlier` to `later`; 0 if that is the other way round. */
static __always_inline __u64 elapsed_ns(__u64 later, __u64 earlier)
{
	return later > earlier ? later - earlier : 0;
}

/* num / den as q32, cut off; exact to 2^-30. num below 2^34, den not 0. */
static __always_inline __u64 ratio_q32(__u64 num, __u64 den)
{
	return ((num / den) << 32) | (((num % den) << 30) / den) << 2;
}

/* a b 2^-32, cut off: one of two q32 gives the other's unit. From 2^61 on 2^63 stands for it. Both below 2^61. */
ARITHMETIC __u64 mul_q32(__u64 a, __u64 b)
{
	__u64 a_low = a & 0xffffffff, b_low = b & 0xffffffff, high = (a >> 32) * (b >> 32);

	if (high >= 1ULL << 29)
		return 1ULL << 63;
	return (high << 32) + (a >> 32) * b_low + a_low * (b >> 32) + (a_low * b_low >> 32);
}

/* 1 / sqrt(n) as q32, cut off; n not 0. Newton's method for the root of 2^64 / n from above; without branches, of which the
 * verifier would follow every combination. 16 steps halve the distance at most, 8 double the exact digits.
 */
ARITHMETIC __u64 inverse_sqrt_q32(__u32 n)
{
	__u64 square = ~0ULL / n, root = 1ULL << 32;
	int i;

	if (n <= 1)
		return root;
	for (i = 0; i < 24; i++)
		root = (root + square / root) >> 1;
	return root - (root * root > square);
}

#endif
