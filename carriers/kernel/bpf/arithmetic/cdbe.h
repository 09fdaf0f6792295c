/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * CDBE's sender, and CQIC-S's: the reported bandwidth times the gains of a state, and the states follow the downstream delay
 * (DSDL). logic/cc/src/client_driven/cdbe/server.rs; the receiver is cdbe_client.h (CQIC-S: dcic_client.h).
 *
 * Source: Zhong 2020, sections 6.4 and 6.5. Pacing interval and window: equations 6.6 and 6.7 (pipe.h). Once per RTT_min (TW)
 * the mean delay A_i of that time (equation 6.8) is judged, first match wins:
 *
 * | from | condition | to |
 * |---|---|---|
 * | all but STARTUP | less than half a BDP in flight, application has more (`restart`) | STARTUP |
 * | STARTUP | rBW grew by less than 10 % twice in a row, or the count is reached | NORMAL |
 * | NORMAL | first evaluation after DRAIN | NORMAL |
 * | NORMAL | firm growth of the delay | DRAIN |
 * | NORMAL | firm decline | GROW |
 * | GROW | delay goes up | NORMAL |
 * | DRAIN | delay goes down | NORMAL |
 *
 * Gains (pacing, window): STARTUP 2/ln 2 both, NORMAL 1 and 2, DRAIN 0.75 and 2, GROW 1.25 and 2.
 *
 * Fixed point: delays in 2^-20 us (means of whole ticks), compared by products with 9, 10, 11 and with 3, 4, 5, never by
 * divisions. Where a mean is exactly at 1.1 or 0.9 times another, floats decide by their last bit and integers by equality.
 * Different from Rust:
 *   - `dsdl=true` does not exist: clocks of two kernels have an unknown offset, so the smallest delay is always pinned to half
 *     of RTT_min, and only differences of timestamps count (they may wrap);
 *   - a delay that is more than 35 minutes below the connection's first counts as that;
 *   - a mean below zero after the shift (only with `dsdlmin_window`) counts as zero;
 *   - ticks of timestamps are whole (`tick_us`), `ts_granularity=0s` means the kernel's own 1 ms.
 */
#ifndef RANPACE_CDBE_H
#define RANPACE_CDBE_H

#include "driven.h"

/* Consecutive obvious growths and declines that are firm, n and m (section 6.4.2; m is ours). */
#define CDBE_GROWTHS 2
#define CDBE_DECLINES 2
/* Consecutive evaluations without growth of rBW that end STARTUP (section 6.4.1). */
#define CDBE_FLAT 2
/* Longest STARTUP in evaluations where it is entered again. Ours. */
#define CDBE_RESTART_EVALUATIONS 3
/* Fractions of delays: 2^-20 us. */
#define DELAY_BITS 20
/* The first delay of a connection, in ticks: what follows may be that much smaller. */
#define DELAY_ORIGIN (1u << 21)

enum cdbe_state { CDBE_STARTUP, CDBE_NORMAL, CDBE_DRAIN, CDBE_GROW };

struct cdbe_settings {
	struct guard_settings guard;
	__u32 unit;              /* enum unit: UNIT_PAYLOAD for CDBE, UNIT_WIRE for CQIC-S unless `pkt=segment` */
	__u32 tick_us;           /* of the timestamps, 1000 */
	__u32 startup;           /* longest first STARTUP in evaluations, 10 */
	__u32 drain_cap;         /* evaluations after which DRAIN is left; 0 = none */
	__u64 min_window;        /* ns after which the smallest delay is forgotten; 0 = never */
	__u8 growth_alpha;       /* growth is obvious a tenth above the smallest delay, not a quarter */
	__u8 restart_after_limit;/* STARTUP again only after the application was the limit */
	__u8 after_drain;        /* the smallest delay may rise to that of the wait after DRAIN */
	__u8 unused[5];
};

struct cdbe {
	struct pipe pipe;
	__u64 evaluated_at, drained; /* ns; time in DRAIN until the last evaluation */
	/* Delays in ticks above (first - DELAY_ORIGIN): of the ACK at hand, and the smallest of two periods; 0 = none. */
	__u32 first, measured, smallest[2];
	__u64 smallest_since;
	/* The current TW. */
	__u64 begin, sum; /* ns; ticks */
	__u32 samples, least;
	/* Means in 2^-20 us above the same origin: A_i of the last TW, and when GROW or DRAIN was entered; 0 = none. */
	__u64 mean, entered;
	__u64 startup_bandwidth; /* rBW at the last evaluation of STARTUP; 0 = none */
	__u32 ups, downs, evaluations, startup_limit, flat;
	__u8 state, waiting, was_limited, begun, has_first;
	__u8 unused[7];
};

struct cdbe_sender {
	struct guard guard;
	struct cdbe control;
};

static __always_inline __u64 cdbe_pacing_gain(__u8 state)
{
	switch (state) {
	case CDBE_STARTUP:
		return HIGH_GAIN;
	case CDBE_DRAIN:
		return GAIN(0.75);
	case CDBE_GROW:
		return GAIN(1.25);
	default:
		return GAIN(1.0);
	}
}

static __always_inline void cdbe_apply(struct cdbe *c, const struct cdbe_settings *s, const struct flow *f,
									   struct wanted *w)
{
	pipe_apply(&c->pipe, f, w, s->unit, cdbe_pacing_gain(c->state), c->state == CDBE_STARTUP ? HIGH_GAIN : GAIN(2.0));
}

/* Mean delays and what they are compared with, in 2^-20 us. */
struct cdbe_delays {
	__u64 mean;    /* A_i */
	__u64 before;  /* A_{i-1}, valid if has_before */
	__u64 min;     /* DSDL_min */
	__u64 entered; /* A when GROW or DRAIN was entered, valid if has_entered */
	__u32 has_before, has_entered, growth_alpha;
};

/* Obvious growth: more than 1.1 A_{i-1}, or more than 1.25 (1.1) DSDL_min. */
static __always_inline int cdbe_up(const struct cdbe_delays *d)
{
	return (d->has_before && 10 * d->mean > 11 * d->before) ||
		   (d->growth_alpha ? 10 * d->mean > 11 * d->min : 4 * d->mean > 5 * d->min);
}

/* Obvious decline: less than 0.9 A_{i-1}, or less than 1.1 DSDL_min. */
static __always_inline int cdbe_down(const struct cdbe_delays *d)
{
	return (d->has_before && 10 * d->mean < 9 * d->before) || 10 * d->mean < 11 * d->min;
}

/* Firm growth and decline, but for consecutive ones; GROW has caused a queue; DRAIN has taken it away. */
static __always_inline int cdbe_jumped(const struct cdbe_delays *d)
{
	return d->has_before && 4 * d->mean >= 5 * d->before;
}

static __always_inline int cdbe_fell(const struct cdbe_delays *d)
{
	return d->has_before && 4 * d->mean < 3 * d->before;
}

static __always_inline int cdbe_up_grow(const struct cdbe_delays *d)
{
	return cdbe_up(d) || (d->has_entered && 4 * d->mean >= 5 * d->entered);
}

static __always_inline int cdbe_down_drain(const struct cdbe_delays *d)
{
	return cdbe_down(d) || (d->has_entered && 4 * d->mean <= 3 * d->entered);
}

/* The smallest delay there is of late; 0 = none. */
static __always_inline __u32 cdbe_smallest(const struct cdbe *c)
{
	__u32 a = c->smallest[0], b = c->smallest[1];

	return !a ? b : !b ? a : (__u32)min_u64(a, b);
}

static __always_inline void cdbe_update_smallest(struct cdbe *c, __u64 now, __u64 period)
{
	if (period && elapsed_ns(now, c->smallest_since) >= period) {
		c->smallest[0] = c->smallest[1];
		c->smallest[1] = 0;
		c->smallest_since = now;
	}
	if (!c->smallest[1] || c->measured < c->smallest[1])
		c->smallest[1] = c->measured;
}

/* Ticks to 2^-20 us: below 2^22 ticks (70 min) of at most 2^10 us. */
static __always_inline __u64 cdbe_delay(const struct cdbe_settings *s, __u32 ticks)
{
	return (__u64)ticks * s->tick_us << DELAY_BITS;
}

/* A measured delay as it is judged: the smallest is half of RTT_min. */
static __always_inline __u64 cdbe_shifted(const struct cdbe *c, const struct cdbe_settings *s, __u64 delay)
{
	__u64 half = (__u64)c->pipe.min_rtt_us << (DELAY_BITS - 1);

	return elapsed_ns(delay + half, cdbe_delay(s, cdbe_smallest(c)));
}

/* DSDL_min as it is judged, at least a tick. */
static __always_inline __u64 cdbe_min(const struct cdbe *c, const struct cdbe_settings *s)
{
	return max_u64((__u64)c->pipe.min_rtt_us << (DELAY_BITS - 1), cdbe_delay(s, 1));
}

/* Whether STARTUP's growth has ended (END). */
static __always_inline int cdbe_startup_over(struct cdbe *c)
{
	__u64 before = c->startup_bandwidth;

	c->startup_bandwidth = c->pipe.bandwidth;
	if (before)
		c->flat = 10 * c->pipe.bandwidth < 11 * before ? c->flat + 1 : 0;
	return c->flat >= CDBE_FLAT || c->evaluations >= c->startup_limit;
}

static __always_inline void cdbe_enter(struct cdbe *c, const struct cdbe_settings *s, __u8 state)
{
	if (state == CDBE_STARTUP) {
		c->was_limited = 0;
		c->startup_limit = (__u32)min_u64(CDBE_RESTART_EVALUATIONS, s->startup);
		c->flat = 0;
		c->startup_bandwidth = c->pipe.bandwidth;
	}
	if (state == CDBE_GROW || state == CDBE_DRAIN || c->state == CDBE_DRAIN)
		c->ups = c->downs = 0;
	c->waiting = c->state == CDBE_DRAIN && state == CDBE_NORMAL;
	c->entered = c->mean;
	c->state = state;
	c->evaluations = 0;
}

/* The mean of the TW in 2^-20 us: below 2^42 ticks over below 2^20 samples. */
static __always_inline __u64 cdbe_mean(const struct cdbe *c, const struct cdbe_settings *s)
{
	__u64 samples = max_u64(c->samples, 1), us = c->sum * s->tick_us, whole = us / samples;

	return (whole << DELAY_BITS) + ((us - whole * samples) << DELAY_BITS) / samples;
}

/* Judges the TW that has ended. */
ARITHMETIC_GLOBAL int cdbe_evaluate(struct cdbe *c, const struct cdbe_settings *s, const struct flow *f)
{
	if (!c || !s || !f)
		return 0;
	int flight_low = 0, startup_over = 0, firm_up = 0, firm_down = 0, up_grow = 0, down_drain = 0, drained_long = 0;
	int waiting = 0, waited;
	__u8 state = c->state;

	if (c->state == CDBE_DRAIN)
		c->drained += elapsed_ns(f->now, max_u64(c->evaluated_at, c->begin));
	c->evaluated_at = f->now;
	if (!c->samples && c->state != CDBE_STARTUP)
		return 0;
	c->evaluations++;
	if (c->state == CDBE_STARTUP)
		startup_over = cdbe_startup_over(c);
	if (c->samples) {
		__u64 mean = cdbe_mean(c, s);
		struct cdbe_delays d = {
			.mean = cdbe_shifted(c, s, mean),
			.before = cdbe_shifted(c, s, c->mean),
			.min = cdbe_min(c, s),
			.entered = cdbe_shifted(c, s, c->entered),
			.has_before = c->mean != 0,
			.has_entered = c->entered != 0,
			.growth_alpha = s->growth_alpha,
		};

		c->ups = cdbe_up(&d) ? c->ups + 1 : 0;
		c->downs = cdbe_down(&d) ? c->downs + 1 : 0;
		c->mean = mean;
		flight_low = pipe_flight_low(&c->pipe, f);
		c->was_limited = f->app_limited || (c->was_limited && flight_low);
		flight_low = flight_low && (!s->restart_after_limit || c->was_limited) && !f->app_limited;
		waiting = c->waiting;
		firm_up = cdbe_jumped(&d) || c->ups >= CDBE_GROWTHS;
		firm_down = cdbe_fell(&d) || c->downs >= CDBE_DECLINES;
		up_grow = cdbe_up_grow(&d);
		down_drain = cdbe_down_drain(&d);
		drained_long = s->drain_cap && c->state == CDBE_DRAIN && c->evaluations >= s->drain_cap;
	}
	/* The state diagram (figure 6.5); rows of the table in the file's head, in their order. */
	if (state != CDBE_STARTUP && flight_low)
		state = CDBE_STARTUP;
	else if (state == CDBE_STARTUP && startup_over)
		state = CDBE_NORMAL;
	else if (state == CDBE_NORMAL && waiting)
		state = CDBE_NORMAL;
	else if (state == CDBE_NORMAL && firm_up)
		state = CDBE_DRAIN;
	else if (state == CDBE_NORMAL && firm_down)
		state = CDBE_GROW; /* Printed as DRAIN; only GROW has a gain that captures a growth of bandwidth. */
	else if (state == CDBE_GROW && up_grow)
		state = CDBE_NORMAL;
	else if (state == CDBE_DRAIN && (down_drain || drained_long))
		state = CDBE_NORMAL;
	waited = c->state == CDBE_NORMAL && c->waiting;
	if (c->state == CDBE_NORMAL)
		c->waiting = 0;
	if (((waited && s->after_drain) || (drained_long && state == CDBE_NORMAL)) && c->samples) {
		/* The delay has not come back: perhaps this is the smallest there is now. */
		if (10 * cdbe_shifted(c, s, cdbe_delay(s, c->least)) > 11 * cdbe_min(c, s))
			c->smallest[0] = c->smallest[1] = c->least;
	}
	if (state != c->state)
		cdbe_enter(c, s, state);
	return 0;
}

/* The delay of an acknowledgement in ticks above the connection's origin, at least 1. */
static __always_inline void cdbe_on_sample(struct cdbe *c, const struct cdbe_settings *s, const struct flow *f,
										   const struct ack *a)
{
	pipe_sample_rtt(&c->pipe, a->rtt_us);
	c->measured = 0;
	if (!a->has_one_way)
		return;
	if (!c->has_first) {
		c->has_first = 1;
		c->first = a->one_way;
	}
	{
		/* Wraps: above 2^31 the delay is below the first one. */
		__u32 ticks = a->one_way - c->first;

		if (ticks < 1u << 31)
			ticks = (__u32)min_u64(ticks, DELAY_ORIGIN - 1) + DELAY_ORIGIN;
		else
			ticks = (__u32)max_u64(elapsed_ns(DELAY_ORIGIN, 0u - ticks), 1);
		c->measured = ticks;
	}
	cdbe_update_smallest(c, f->now, s->min_window);
}

static __always_inline void cdbe_on_ack(struct cdbe *c, const struct cdbe_settings *s, const struct flow *f,
										struct wanted *w)
{
	if (f->app_limited)
		c->was_limited = 1;
	if (!c->begun) {
		c->begun = 1;
		c->begin = f->now;
	}
	if (c->pipe.min_rtt_us && elapsed_ns(f->now, c->begin) >= c->pipe.min_rtt_us * NS_PER_US) {
		cdbe_evaluate(c, s, f);
		c->begin = f->now;
		c->sum = 0;
		c->samples = c->least = 0;
		cdbe_apply(c, s, f, w);
	}
	if (c->measured) {
		c->least = c->samples ? (__u32)min_u64(c->least, c->measured) : c->measured;
		c->sum += c->measured;
		c->samples++;
		c->measured = 0;
	}
}

/* The control's part of an event. */
static __always_inline void cdbe_control(struct cdbe_sender *d, const struct cdbe_settings *s, struct event *e, __u32 kind)
{
	struct wanted *w = &d->guard.wanted;
	struct cdbe *c = &d->control;
	struct flow *f = &e->flow;

	switch (kind) {
	case EVENT_START:
		guard_on_start(&d->guard, f);
		pipe_on_start(&c->pipe, f);
		c->startup_limit = s->startup;
		cdbe_apply(c, s, f, w);
		break;
	case EVENT_REPORT:
		pipe_on_report(&c->pipe, e->rate, f->app_limited);
		cdbe_apply(c, s, f, w);
		break;
	case EVENT_SAMPLE:
		cdbe_on_sample(c, s, f, &e->ack);
		break;
	case EVENT_TIMEOUT:
		pipe_on_timeout(&c->pipe, w);
		break;
	case EVENT_ACK:
		cdbe_on_ack(c, s, f, w);
		break;
	default:
		break;
	}
}

DRIVEN_STEP(cdbe)

struct cdbe_call {
	struct cdbe_settings settings;
	struct cdbe_sender state;
	struct event event;
};

static __always_inline void cdbe_call_step(struct cdbe_call *call)
{
	cdbe_step(&call->state, &call->settings, &call->event);
}

#endif
