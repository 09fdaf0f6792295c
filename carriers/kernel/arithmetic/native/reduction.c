/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "reduction.h"
#include "layout.h"

const struct field ranpace_reduction_layout[] = {
	FIELD(reduction, prior_cwnd), FIELD(reduction, delivered), FIELD(reduction, sent), END(reduction),
};

__u32 ranpace_reduction_window(struct reduction *r, __u32 cwnd, __u32 ssthresh, __u32 flight, __u32 prr_out, __u32 delivered,
							   int advanced, int lost)
{
	return reduction_window(r, cwnd, ssthresh, flight, prr_out, delivered, advanced, lost);
}
