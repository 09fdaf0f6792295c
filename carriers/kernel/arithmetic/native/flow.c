/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "flow.h"
#include "layout.h"

const struct field ranpace_flow_layout[] = {
	FIELD(flow, now), FIELD(flow, pacing), FIELD(flow, mss), FIELD(flow, srtt_us), FIELD(flow, min_rtt_us),
	FIELD(flow, in_flight), FIELD(flow, delivered), FIELD(flow, lost), FIELD(flow, cwnd), FIELD(flow, ssthresh),
	FIELD(flow, ca_state), FIELD(flow, cwnd_limited), FIELD(flow, app_limited), FIELD(flow, unused), FIELD(flow, wire), END(flow),
};

const struct field ranpace_ack_layout[] = {
	FIELD(ack, acked), FIELD(ack, delivered), FIELD(ack, rtt_us), FIELD(ack, one_way), FIELD(ack, has_one_way),
	FIELD(ack, rate_delivered), FIELD(ack, rate_interval_us), FIELD(ack, prior_delivered), FIELD(ack, losses),
	FIELD(ack, prior_in_flight), FIELD(ack, rate_app_limited), FIELD(ack, ecn_echo), FIELD(ack, bytes), END(ack),
};

__u64 ranpace_ratio_q32(__u64 num, __u64 den)
{
	return ratio_q32(num, den);
}

__u64 ranpace_mul_q32(__u64 a, __u64 b)
{
	return mul_q32(a, b);
}

__u64 ranpace_inverse_sqrt_q32(__u32 n)
{
	return inverse_sqrt_q32(n);
}
