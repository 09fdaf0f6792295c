/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * The events of a client-driven sender, one by one, as a test or a `syscall` program replays them.
 *
 * Each sender's header ends with `X_step(struct X_sender *, const struct X_settings *, struct event *)` (DRIVEN_STEP): the control
 * first, the guard after it, and what the parent has to do is left in `parent`. The glue between the kernel's hooks and the arithmetic
 * calls the same function, so that what is tested is what runs; `struct X_call` has all three for a test.
 */
#ifndef RANPACE_DRIVEN_H
#define RANPACE_DRIVEN_H

#include "guard.h"

enum event_kind {
	EVENT_START,     /* established; flow.cwnd is the initial window */
	EVENT_REPORT,    /* a report of the peer: `rate` bytes/s, not 0 */
	EVENT_SAMPLE,    /* an acknowledgement delivered something: before losses are looked for */
	EVENT_LOSS,      /* `lost` segments are newly taken for lost */
	EVENT_TIMEOUT,   /* the timer fired */
	EVENT_MARK,      /* the peer echoes a mark of the network */
	EVENT_ACK,       /* the acknowledgement, after loss detection and after the parent, if that has the window */
	EVENT_RECOVERED, /* the state is Open again; after the parent */
	EVENT_SPURIOUS,  /* nothing was lost; after the parent */
	EVENT_IDLE,      /* sending starts again with nothing in flight; after the parent */
};

/* What the parent (CUBIC) is to do after an event. */
#define PARENT_ANSWERS 1 /* to this congestion, as the first sign of an episode if it begins */
#define PARENT_BEGINS 2  /* anew: its init, at flow.cwnd and flow.ssthresh; before it answers */
#define PARENT_HAS 4     /* the window is the parent's from now on: it is told of what comes */

struct event {
	struct flow flow;
	struct ack ack;
	__u32 kind;
	__u64 rate;
	__u32 lost;
	__u32 parent; /* written */
};

/* The guard's part of an event, after the control's. */
static __always_inline void driven_event(struct guard *g, const struct guard_settings *s, struct event *e, __u32 kind)
{
	struct flow *f = &e->flow;

	e->parent = 0;
	switch (kind) {
	case EVENT_REPORT:
		guard_on_report(g, s, f, e->rate);
		break;
	case EVENT_SAMPLE:
		guard_on_sample(g, &e->ack);
		break;
	case EVENT_LOSS:
	case EVENT_TIMEOUT:
	case EVENT_MARK:
		if (guard_on_congestion(g, s, f,
								kind == EVENT_LOSS      ? SIGNAL_LOSS
								: kind == EVENT_TIMEOUT ? SIGNAL_TIMEOUT
														: SIGNAL_MARK,
								e->lost))
			e->parent = PARENT_ANSWERS;
		break;
	case EVENT_ACK:
		guard_on_ack(g, s, f, &e->ack);
		break;
	case EVENT_RECOVERED:
		guard_on_recovered(g, s, f);
		break;
	case EVENT_SPURIOUS:
		guard_on_spurious(g, s, f);
		break;
	case EVENT_IDLE:
		guard_on_idle_restart(g, s, f);
		break;
	default: /* EVENT_START: the guard begins before the control */
		if (s->off)
			guard_publish_wanted(g, f);
	}
	if (g->restart_parent) {
		g->restart_parent = 0;
		e->parent |= PARENT_BEGINS;
	}
	if (!s->off && guard_is_plain(g))
		e->parent |= PARENT_HAS;
}

/* The same for any event but an acknowledgement, which is the only one that is frequent. */
ARITHMETIC_GLOBAL int driven_guard(struct guard *g, const struct guard_settings *s, struct event *e)
{
	if (!g || !s || !e)
		return 0;
	if (e->kind != EVENT_ACK)
		driven_event(g, s, e, e->kind);
	return 0;
}

/* X_step, and X_step_of for a place that knows the kind: of all that is in X_step only its part is left there. X_note_report is a report
 * after which an acknowledgement is told at once.
 */
#define DRIVEN_STEP(x)                                                                                                    \
	static __always_inline void x##_note_report(struct x##_sender *d, const struct x##_settings *s, struct event *e)         \
	{                                                                                                                     \
		x##_control(d, s, e, EVENT_REPORT);                                                                               \
		guard_note_report(&d->guard, &s->guard, &e->flow, e->rate);                                                       \
	}                                                                                                                     \
	static __always_inline void x##_step_of(struct x##_sender *d, const struct x##_settings *s, struct event *e, __u32 kind) \
	{                                                                                                                     \
		x##_control(d, s, e, kind);                                                                                       \
		driven_event(&d->guard, &s->guard, e, kind);                                                                      \
	}                                                                                                                     \
	ARITHMETIC_GLOBAL int x##_step(struct x##_sender *d, const struct x##_settings *s, struct event *e)                   \
	{                                                                                                                     \
		if (!d || !s || !e)                                                                                               \
			return 0;                                                                                                     \
		if (e->kind == EVENT_ACK) {                                                                                       \
			x##_step_of(d, s, e, EVENT_ACK);                                                                                \
		} else {                                                                                                          \
			x##_control(d, s, e, e->kind);                                                                                \
			driven_guard(&d->guard, &s->guard, e);                                                                        \
		}                                                                                                                 \
		return 0;                                                                                                         \
	}

#endif
