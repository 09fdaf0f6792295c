/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * CDBEv2's receiver: bytes that arrived over the time they took, about every 10 ms.
 * logic/cc/src/client_driven/cdbev2/client.rs.
 *
 * Source: Zhong 2020, section 7.2.1, Eq. 7.1. Payload counts, repeated data too, headers do not. The latest value leaves with
 * the next acknowledgement, once. Ours: the packet that opens a window does not count in it and the one that closes it does
 * (`est=boundary`); `est=literal` counts all of a window's packets over the time between the first and the last. A gap of more
 * than 1 s is no measurement.
 *
 * Fixed point: bytes/s, rounded down, where Rust has bit/s. A window holds at most 1 GB, and a rate is at most 100 Gbit/s.
 * Merged packets: see arrivals.h. With `est=literal` a merged packet counts once as a point in time.
 */
#ifndef RANPACE_CDBEV2_CLIENT_H
#define RANPACE_CDBEV2_CLIENT_H

#include "arrivals.h"

/* A longer gap ends what was measured before it. Ours. */
#define CDBEV2_IDLE NS_PER_S

struct cdbev2_client_settings {
	__u64 tw;      /* ns, 10 ms (section 7.2.1) */
	__u32 every;   /* of so many measurements one is reported, 1 */
	__u32 literal; /* `est=literal` */
};

struct cdbev2_client {
	__u64 start, last;   /* ns: arrivals of the window's first packet and of the last there was */
	__u64 bytes, latest; /* of the window; bytes/s to be reported, 0 = none */
	__u32 measured, open;
	struct reporter reporter;
};

/* Takes a packet; bytes/s, if it ends a window (Eq. 7.1), else 0. */
static __always_inline __u64 cdbev2_client_measure(struct cdbev2_client *c, const struct cdbev2_client_settings *s,
												   const struct arrival *a)
{
	__u64 opening = s->literal ? a->bytes : 0, time, rate, last = c->last;
	int over;

	if (!c->open || elapsed_ns(a->now, c->last) > CDBEV2_IDLE) {
		c->open = 1;
		c->start = c->last = a->now;
		c->bytes = opening;
		return 0;
	}
	over = elapsed_ns(a->now, c->start) >= s->tw;
	if (!over || !s->literal)
		c->bytes = min_u64(c->bytes + a->bytes, MAX_ACKED);
	c->last = a->now;
	if (!over)
		return 0;
	time = s->literal && last > c->start ? last - c->start : a->now - c->start;
	/* Below 2^30 * 2^30. */
	rate = min_u64(c->bytes * NS_PER_S / max_u64(time, 1), MAX_RATE);
	c->start = a->now;
	c->bytes = opening;
	return max_u64(rate, 1);
}

static __always_inline void cdbev2_client_on_data(struct cdbev2_client *c, const struct cdbev2_client_settings *s,
												  const struct arrival *a)
{
	__u64 rate = cdbev2_client_measure(c, s, a);

	c->reporter.segments += a->segments;
	if (!rate)
		return;
	c->measured++;
	if (c->measured >= s->every) {
		c->measured = 0;
		c->latest = rate;
	}
}

/* What the acknowledgement that is about to leave is to carry, bytes/s; 0 for nothing. */
static __always_inline __u64 cdbev2_client_peek(const struct cdbev2_client *c)
{
	return c->latest;
}

/* The same, and it has left. */
static __always_inline __u64 cdbev2_client_report(struct cdbev2_client *c)
{
	__u64 rate = c->latest;

	c->latest = 0;
	if (rate)
		c->reporter.reports++;
	return rate;
}

#endif
