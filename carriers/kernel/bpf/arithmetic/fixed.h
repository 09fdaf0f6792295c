/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * Integers in place of floats: products that do not overflow, and limits within which they do not.
 *
 * Values from the wire and from the socket are brought below these limits before they are used. BPF has no 128-bit
 * integers, no signed division and no floats.
 */
#ifndef RANPACE_FIXED_H
#define RANPACE_FIXED_H

#include "flow.h"

#define NS_PER_US 1000ull
#define NS_PER_MS 1000000ull
#define NS_PER_S 1000000000ull
#define US_PER_S 1000000ull

/* 100 Gbit/s in bytes per second (below 2^34): larger rates count as this. */
#define MAX_RATE 12500000000ull
/* 2^24 - 1 us, 16.8 s: longer RTTs count as this. In ns it stays below 2^34. */
#define MAX_RTT_US 16777215u
/* 2^30 bytes, TCP's largest window: an acknowledgement covers no more. */
#define MAX_ACKED 1073741824u

/* An RTT within the limits; 0 stays "none". */
static __always_inline __u32 bounded_rtt(__u32 us)
{
	return us > MAX_RTT_US ? MAX_RTT_US : us;
}

/* a * fraction, fraction in 2^-32 and at most 1; rounded down, at most one too low. */
static __always_inline __u64 times_fraction(__u64 a, __u64 fraction)
{
	return (a >> 32) * fraction + (((a & 0xffffffffull) * fraction) >> 32);
}

/* What passes at `rate` in `ns`, rounded down: rate * ns / 10^9. The rate may carry fractions, which the result has too.
 * For rate < 2^50 and ns of at most MAX_RTT_US: 2^50 / 10^9 * 2^34 < 2^55, and 10^9 * 1.68 * 10^10 < 2^64.
 */
static __always_inline __u64 in_time(__u64 rate, __u64 ns)
{
	__u64 whole = rate / NS_PER_S; /* the rest by a product: BPF divides twice for a remainder */

	return whole * ns + (rate - whole * NS_PER_S) * ns / NS_PER_S;
}

/* The upper half of the 128 bits of a * b. */
static __always_inline __u64 upper_product(__u64 a, __u64 b)
{
	__u64 a0 = a & 0xffffffffull, a1 = a >> 32, b0 = b & 0xffffffffull, b1 = b >> 32;
	__u64 middle = a1 * b0 + (a0 * b0 >> 32); /* at most (2^32 - 1)^2 + 2^32 - 2 */
	__u64 other = a0 * b1 + (middle & 0xffffffffull);

	return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* Whether a * b > c * d, exactly. */
static __always_inline int product_exceeds(__u64 a, __u64 b, __u64 c, __u64 d)
{
	__u64 upper = upper_product(a, b), other = upper_product(c, d);

	return upper != other ? upper > other : a * b > c * d;
}

#endif
