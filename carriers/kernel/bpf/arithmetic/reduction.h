/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * Proportional rate reduction of a window, as Linux's tcp_cwnd_reduction: logic/tcp/src/prr.rs.
 *
 * Source: RFC 6937, with the slow-start reduction bound unless losses go on.
 */
#ifndef RANPACE_REDUCTION_H
#define RANPACE_REDUCTION_H

#include "fixed.h"

struct reduction {
	__u32 prior_cwnd; /* segments, when it began; 0 = no reduction goes on */
	__u32 delivered;  /* segments since then */
	__u32 sent;       /* what the kernel had counted as sent in this recovery (prr_out); not 0 in the middle of one */
};

/* The window after an acknowledgement that delivered segments: when all of the flight was delivered it is the threshold. `prr_out` is
 * what the kernel has counted as sent in this recovery. Without a reduction, and where nothing was delivered, the window stays.
 */
static __always_inline __u32 reduction_window(struct reduction *r, __u32 cwnd, __u32 ssthresh, __u32 flight, __u32 prr_out,
											  __u32 delivered, int advanced, int lost)
{
	__u32 sent = prr_out - r->sent, send;

	if (!r->prior_cwnd || !delivered)
		return cwnd;
	r->delivered += delivered;
	if (flight > ssthresh) {
		__u64 target = ((__u64)ssthresh * r->delivered + r->prior_cwnd - 1) / r->prior_cwnd;

		send = target > sent ? min_u64(target - sent, FLOW_MOST_CWND) : 0;
	} else {
		send = r->delivered > sent ? r->delivered - sent : 0;
		send = max_u32(send, delivered);
		if (advanced && !lost)
			send++;
		send = min_u32(send, ssthresh - flight);
	}
	/* The first retransmission is always sent. */
	return flight + max_u32(send, sent ? 0 : 1);
}

#endif
