/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * DCIC (TCP-CQIC in LTE), the sender: it sends at the rate of the downlink grants that the device reports.
 * logic/cc/src/client_driven/dcic.rs; the receiver is dcic_client.h.
 *
 * Source: Zhong 2020, sections 5.3 and 5.4. Pacing interval of equation 5.5, window of equation 5.6, nothing else: no slow
 * start, no probing, no gain but the 2 of equation 5.6, no reaction to loss. State: 0 before the first report (1 MB/s), 1
 * after it. Fixed point and differences: pipe.h, guard.h.
 */
#ifndef RANPACE_DCIC_H
#define RANPACE_DCIC_H

#include "driven.h"

/* Equations 5.5 and 5.6. */
#define DCIC_PACING_GAIN GAIN(1.0)
#define DCIC_CWND_GAIN GAIN(2.0)

struct dcic_settings {
	struct guard_settings guard;
	__u32 unit; /* enum unit; UNIT_WIRE: reports count blocks of the radio link, headers included */
	__u32 unused;
};

struct dcic_sender {
	struct guard guard;
	struct pipe pipe;
};

/* The control's part of an event. */
static __always_inline void dcic_control(struct dcic_sender *d, const struct dcic_settings *s, struct event *e, __u32 kind)
{
	struct wanted *w = &d->guard.wanted;
	struct flow *f = &e->flow;

	switch (kind) {
	case EVENT_START:
		guard_on_start(&d->guard, f);
		pipe_on_start(&d->pipe, f);
		pipe_apply(&d->pipe, f, w, s->unit, DCIC_PACING_GAIN, DCIC_CWND_GAIN);
		break;
	case EVENT_REPORT:
		pipe_on_report(&d->pipe, e->rate, 0);
		pipe_apply(&d->pipe, f, w, s->unit, DCIC_PACING_GAIN, DCIC_CWND_GAIN);
		break;
	case EVENT_SAMPLE:
		pipe_sample_rtt(&d->pipe, e->ack.rtt_us);
		break;
	case EVENT_TIMEOUT:
		pipe_on_timeout(&d->pipe, w);
		break;
	default:
		break;
	}
}

DRIVEN_STEP(dcic)

struct dcic_call {
	struct dcic_settings settings;
	struct dcic_sender state;
	struct event event;
};

static __always_inline void dcic_call_step(struct dcic_call *call)
{
	dcic_step(&call->state, &call->settings, &call->event);
}

#endif
