/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * DCIC's receiver, and CQIC-S's: the bandwidth from the downlink control information (DCI) that the device's modem decodes. It
 * comes from a feed. logic/cc/src/client_driven/dcic/client.rs.
 *
 * Source: Zhong 2020, section 5.3.2. Each DCI gives a transport block, HARQ's repetitions included; windows of 50 ms tumble from
 * the connection's beginning, and the last complete one is reported (equations 5.7 and 5.8). A window without any DCI reports
 * rBW_0 instead, the running mean of what the CQI promises (equation 5.9).
 *
 * | estimator | over a window | |
 * |---|---|---|
 * | `window` | sum of blocks / 50 ms | what is really served |
 * | `per_dci` | mean of block / slot | equation 5.8 literally: one served slot in k gives k times what is served |
 * | `gap` | mean of block / time since the last DCI | irregular reception enters through the interval |
 *
 * Ours: the mean of rBW_0 begins with the connection and goes on after the first DCI; two DCIs of one slot (and the first of
 * all) count as one slot apart; a hint's own time counts, as far as it does not go backwards.
 *
 * Fixed point: bit/s and bits, whole; PRBs in 2^-8; spectral efficiencies in 10^-4, as the table has them. A slot takes at least
 * 1 us. A feed sends one message for a DCI and one for a CQI.
 */
#ifndef RANPACE_DCIC_CLIENT_H
#define RANPACE_DCIC_CLIENT_H

#include "arrivals.h"

/* Length of a window, T_i (section 5.3.2). */
#define DCIC_WINDOW (50 * NS_PER_MS)
/* Equation 5.9: OFDM symbols per subframe that carry data, 14 less 3 of control; subcarriers per PRB; subframes per second. */
#define DCIC_SYMBOLS_PER_PRB (11ull * 12 * 1000)
/* Where a DCI does not say how long its slot is: a subframe of LTE. */
#define DCIC_SUBFRAME NS_PER_MS
#define DCIC_LAYERS 8u

enum dcic_estimator { DCIC_WINDOW_SUM, DCIC_PER_DCI, DCIC_GAP };

struct dcic_client_settings {
	__u32 estimator; /* enum dcic_estimator */
	__u32 every;     /* acknowledgements per report, 1 */
};

/* What a feed says of a connection's device. */
struct dcic_hint {
	__u64 at;       /* measured, ns on the kernel's clock */
	__u32 bits;     /* of a transport block; valid if has_dci */
	__u32 slot_ns;  /* 0 = a subframe */
	__u32 prbs;     /* granted, 2^-8 */
	__u16 cell;     /* PRBs of the cell */
	__u8 cqi;       /* valid if has_cqi */
	__u8 layers;
	__u8 has_dci, has_cqi;
	__u8 unused[6];
};

struct dcic_client {
	__u64 end;      /* of the current window, ns; 0 = none has begun */
	__u64 now;      /* of the newest hint */
	__u64 last_dci; /* 0 = none */
	__u64 sum;      /* bits (`window`) or bit/s in the current window */
	__u64 estimate; /* bit/s of the last complete window; valid if has_estimate */
	__u64 initial;  /* sum of eBW_0, bit/s */
	__u64 initials; /* number of them */
	__u32 dcis;
	__u32 prbs;     /* of the last DCI, 2^-8; 0 = none */
	__u8 has_estimate;
	__u8 unused[7];
	struct reporter reporter;
};

/* Bits per symbol in 10^-4 by CQI; TS 36.213 Table 7.2.3-1. A switch, since constants of a program cannot be indexed natively
 * and in BPF in the same way without a map. */
static __always_inline __u64 dcic_efficiency(__u8 cqi)
{
	switch (cqi) {
	case 0:
		return 0;
	case 1:
		return 1523;
	case 2:
		return 2344;
	case 3:
		return 3770;
	case 4:
		return 6016;
	case 5:
		return 8770;
	case 6:
		return 11758;
	case 7:
		return 14766;
	case 8:
		return 19141;
	case 9:
		return 24063;
	case 10:
		return 27305;
	case 11:
		return 33223;
	case 12:
		return 39023;
	case 13:
		return 45234;
	case 14:
		return 51152;
	default:
		return 55547;
	}
}

/* eCapacity of equation 5.9 in bit/s; PRBs in 2^-8, at most 2^24. Below 2^16 * 2^18 * 2^24 * 2^3. */
static __always_inline __u64 dcic_capacity(__u8 cqi, __u32 prbs, __u8 layers)
{
	__u64 efficiency = dcic_efficiency(cqi) * DCIC_SYMBOLS_PER_PRB;

	return efficiency * min_u64(prbs, 1u << 24) * min_u64(max_u64(layers, 1), DCIC_LAYERS) / (10000ull << 8);
}

/* Closes the windows that have ended. */
static __always_inline void dcic_move_to(struct dcic_client *c, const struct dcic_client_settings *s, __u64 now)
{
	__u64 ended;

	c->now = max_u64(c->now, now);
	if (!c->end)
		c->end = c->now + DCIC_WINDOW;
	if (c->now < c->end)
		return;
	ended = (c->now - c->end) / DCIC_WINDOW + 1;
	c->end += ended * DCIC_WINDOW;
	/* After more than one, the last complete window is an empty one. */
	c->has_estimate = ended == 1 && c->dcis > 0;
	if (c->has_estimate)
		c->estimate = s->estimator == DCIC_WINDOW_SUM ? c->sum * (NS_PER_S / DCIC_WINDOW) : c->sum / c->dcis;
	c->sum = 0;
	c->dcis = 0;
}

static __always_inline void dcic_client_on_start(struct dcic_client *c, __u64 now)
{
	if (!c->end)
		c->end = now + DCIC_WINDOW;
}

/* A DCI with a transport block (equation 5.7). */
static __always_inline void dcic_observe_dci(struct dcic_client *c, const struct dcic_client_settings *s,
											 const struct dcic_hint *h, __u64 at)
{
	__u64 slot = max_u64(h->slot_ns ? h->slot_ns : DCIC_SUBFRAME, NS_PER_US);
	__u64 gap;

	dcic_move_to(c, s, at);
	gap = c->last_dci ? max_u64(elapsed_ns(c->now, c->last_dci), slot) : slot;
	/* Below 2^32 * 2^30. */
	c->sum += s->estimator == DCIC_WINDOW_SUM ? h->bits
			  : s->estimator == DCIC_PER_DCI  ? h->bits * NS_PER_S / slot
											  : h->bits * NS_PER_S / max_u64(gap, 1);
	c->dcis++;
	c->last_dci = c->now;
	if (h->prbs)
		c->prbs = h->prbs;
}

/* A CQI, measured in a cell of so many PRBs (equation 5.9): half of the cell's is assumed before the first DCI, and half of the
 * subframes. */
static __always_inline void dcic_observe_cqi(struct dcic_client *c, const struct dcic_client_settings *s,
											 const struct dcic_hint *h, __u64 at)
{
	dcic_move_to(c, s, at);
	c->initial += dcic_capacity(h->cqi, c->prbs ? c->prbs : (__u32)h->cell << 7, h->layers) / 2;
	c->initials++;
}

/* A message of the feed. */
ARITHMETIC_GLOBAL int dcic_client_on_hint(struct dcic_client *c, const struct dcic_client_settings *s,
										   const struct dcic_hint *h, __u64 now)
{
	if (!c || !s || !h)
		return 0;
	__u64 at = min_u64(h->at, now);

	if (h->has_dci)
		dcic_observe_dci(c, s, h, at);
	if (h->has_cqi)
		dcic_observe_cqi(c, s, h, at);
	return 0;
}

/* Whether there is anything to report. */
static __always_inline int dcic_is_known(const struct dcic_client *c)
{
	return c->has_estimate || c->initials;
}

/* The bandwidth to be reported now in bytes/s: of the last complete window, else rBW_0; 0 while neither is known. */
static __always_inline __u64 dcic_client_estimate(struct dcic_client *c, const struct dcic_client_settings *s, __u64 now)
{
	__u64 bits;

	dcic_move_to(c, s, now);
	bits = c->has_estimate ? c->estimate : c->initials ? c->initial / c->initials : 0;
	return min_u64((bits + 4) / 8, MAX_RATE);
}

/* What the acknowledgement that is about to leave is to carry, bytes/s; 0 for nothing. */
static __always_inline __u64 dcic_client_peek(struct dcic_client *c, const struct dcic_client_settings *s, __u64 now)
{
	return reporter_is_due(&c->reporter) ? dcic_client_estimate(c, s, now) : 0;
}

/* The same, and it leaves. What is not known takes no turn; a bandwidth of zero does (CQI 0). */
static __always_inline __u64 dcic_client_report(struct dcic_client *c, const struct dcic_client_settings *s, __u64 now)
{
	__u64 rate = dcic_client_estimate(c, s, now);

	return dcic_is_known(c) && reporter_take(&c->reporter, s->every) ? rate : 0;
}

#endif
