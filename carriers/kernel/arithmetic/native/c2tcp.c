/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "c2tcp.h"
#include "layout.h"

const struct field ranpace_c2tcp_settings_layout[] = {
	FIELD(c2tcp_settings, alpha), FIELD(c2tcp_settings, min_alpha), FIELD(c2tcp_settings, max_alpha),
	FIELD(c2tcp_settings, cycle), FIELD(c2tcp_settings, min_rtt_expiry), FIELD(c2tcp_settings, target_us),
	FIELD(c2tcp_settings, tuner), FIELD(c2tcp_settings, avoidance_after_bad), FIELD(c2tcp_settings, integer_boost),
	FIELD(c2tcp_settings, strict), FIELD(c2tcp_settings, whole_ms), FIELD(c2tcp_settings, kernel_compat),
	FIELD(c2tcp_settings, pace), FIELD(c2tcp_settings, unused), END(c2tcp_settings),
};

const struct field ranpace_c2tcp_state_layout[] = {
	FIELD(c2tcp_state, alpha), FIELD(c2tcp_state, setpoint), FIELD(c2tcp_state, interval),
	FIELD(c2tcp_state, next_time), FIELD(c2tcp_state, min_rtt_at), FIELD(c2tcp_state, due),
	FIELD(c2tcp_state, rtt_sum_us), FIELD(c2tcp_state, fraction), FIELD(c2tcp_state, samples),
	FIELD(c2tcp_state, app_limited), FIELD(c2tcp_state, min_rtt_us), FIELD(c2tcp_state, own_target_us),
	FIELD(c2tcp_state, n), FIELD(c2tcp_state, boost), FIELD(c2tcp_state, cwnd), FIELD(c2tcp_state, bads),
	FIELD(c2tcp_state, condition), FIELD(c2tcp_state, ssthresh), END(c2tcp_state),
};

const struct field ranpace_c2tcp_call_layout[] = {
	FIELD(c2tcp_call, settings), FIELD(c2tcp_call, state), FIELD(c2tcp_call, flow), FIELD(c2tcp_call, ack),
	FIELD(c2tcp_call, event), FIELD(c2tcp_call, parents_ssthresh), FIELD(c2tcp_call, verdict),
	FIELD(c2tcp_call, unused), END(c2tcp_call),
};

void ranpace_c2tcp_step(struct c2tcp_call *call)
{
	c2tcp_call_step(call);
}
