/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * RAPID's sender towards the user: the window that the proxy allocates. The parent (the kernel's CUBIC) without an allocation.
 *
 * Source: Diarra 2022, 5.2.1 ("always sets its congestion window to the estimated flow BDP") and 5.3.3 (no answer to random losses).
 * The proxy works out rate and window; it writes them into the socket's storage. logic/cc/src/radio/rapid.rs is the same; its head
 * says what is ours. Names are the same there and here.
 *
 * Two states, `driven`:
 * - 1: the window is the allocated one, set anew with each allocation and acknowledgement. Losses and marks change nothing.
 * - 0: no allocation: the parent decides. A program has `cong_control`, and calls the parent's operations then.
 *
 * After a timeout the window is one segment until the next acknowledgement. The first allocation waits for the end of a loss
 * episode of the parent's. When it is withdrawn, the parent begins afresh from the window, in slow start.
 *
 * Fixed point: windows are whole segments, cut off; logic/cc lets whole segments leave of a window with a fraction. The window is
 * at most 2^20 segments.
 */
#ifndef RANPACE_RAPID_H
#define RANPACE_RAPID_H

#include "flow.h"

/* Largest rate, bytes a second: 1 Tbit/s. Ours. */
#define RAPID_MOST_RATE 125000000000ULL

struct rapid_settings {
	__u32 pacing; /* pace at the allocated rate */
};

/* What the proxy writes. */
struct rapid_allocation {
	__u64 rate;   /* payload, bytes a second */
	__u64 window; /* payload, bytes */
	__u32 valid;  /* 0: withdrawn, no bound */
	__u32 unused;
};

/* All zero: the parent decides. */
struct rapid_state {
	struct rapid_allocation allocation;
	__u32 driven;
	__u32 collapsed; /* nothing has been acknowledged since a timeout */
};

/* Window and pace of the allocation. */
ARITHMETIC void rapid_apply(const struct rapid_settings *set, struct rapid_state *s, struct flow *f)
{
	__u64 segments, least;

	if (!s->allocation.valid)
		return;
	if (!s->driven) {
		/* PRR has the window until the parent's episode is over. */
		if (f->ca_state != FLOW_OPEN && f->ca_state != FLOW_DISORDER)
			return;
		s->driven = 1;
	}
	segments = s->collapsed ? 1 : s->allocation.window / max_u32(f->mss, 1);
	f->cwnd = min_u64(max_u64(segments, 1), FLOW_MOST_CWND);
	if (set->pacing) {
		/* A segment per RTT keeps the pace from zero. */
		least = 1000000ULL * max_u32(f->mss, 1) / (f->srtt_us ? f->srtt_us : 1000000);
		f->pacing = max_u64(min_u64(s->allocation.rate, RAPID_MOST_RATE), max_u64(least, 1));
	} else {
		f->pacing = 0;
	}
}

/* What the proxy wrote has changed. Returns 1 if the parent has to begin afresh from this window (init). */
ARITHMETIC __u32 rapid_allocated(const struct rapid_settings *set, struct rapid_state *s, struct flow *f,
				 const struct rapid_allocation *allocation)
{
	s->allocation = *allocation;
	if (s->allocation.valid) {
		rapid_apply(set, s, f);
		return 0;
	}
	if (!s->driven)
		return 0;
	s->driven = 0;
	s->collapsed = 0;
	f->ssthresh = FLOW_NO_SSTHRESH;
	f->pacing = 0;
	return 1;
}

/* Lost segments, a mark or a timeout. Returns 1 if the parent is to answer. */
static __always_inline __u32 rapid_loss(struct rapid_state *s, struct flow *f, __u32 timeout)
{
	if (!s->driven)
		return 1;
	if (timeout) {
		s->collapsed = 1;
		f->cwnd = 1;
	}
	return 0;
}

/* An acknowledgement, after the parent had it where it decides. */
static __always_inline void rapid_ack(const struct rapid_settings *set, struct rapid_state *s, struct flow *f,
				      const struct ack *a)
{
	if (a->delivered)
		s->collapsed = 0;
	rapid_apply(set, s, f);
}

/* A reduction was a mistake (undo_cwnd). Returns 1 if the parent is to answer. */
static __always_inline __u32 rapid_spurious(const struct rapid_settings *set, struct rapid_state *s, struct flow *f)
{
	if (!s->driven)
		return 1;
	s->collapsed = 0;
	rapid_apply(set, s, f);
	return 0;
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
#define RAPID_ON_ALLOCATION 0
#define RAPID_ON_LOSS 1
#define RAPID_ON_TIMEOUT 2
#define RAPID_ON_ACK 3
#define RAPID_ON_SPURIOUS 4
#define RAPID_ON_OTHER 5 /* the beginning, the end of a recovery or of an idle time */

struct rapid_call {
	struct rapid_settings settings;
	__u32 event;   /* RAPID_ON_ALLOCATION ... RAPID_ON_OTHER */
	struct rapid_state state;
	struct flow flow;
	struct rapid_allocation allocation;
	struct ack ack;
	__u32 verdict; /* written: 1 if the parent is to answer, or to begin afresh */
};

ARITHMETIC void rapid_call_step(struct rapid_call *call)
{
	call->verdict = 0;
	switch (call->event) {
	case RAPID_ON_ALLOCATION:
		call->verdict = rapid_allocated(&call->settings, &call->state, &call->flow, &call->allocation);
		break;
	case RAPID_ON_LOSS:
	case RAPID_ON_TIMEOUT:
		call->verdict = rapid_loss(&call->state, &call->flow, call->event == RAPID_ON_TIMEOUT);
		break;
	case RAPID_ON_ACK:
		rapid_ack(&call->settings, &call->state, &call->flow, &call->ack);
		break;
	case RAPID_ON_SPURIOUS:
		call->verdict = rapid_spurious(&call->settings, &call->state, &call->flow);
		break;
	case RAPID_ON_OTHER:
		rapid_apply(&call->settings, &call->state, &call->flow);
		break;
	}
}

#endif
