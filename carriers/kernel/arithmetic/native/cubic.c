/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "cubic.h"
#include "layout.h"

const struct field ranpace_cubic_path_layout[] = {
	FIELD(cubic_path, now), FIELD(cubic_path, mss), FIELD(cubic_path, srtt_us), FIELD(cubic_path, sent),
	FIELD(cubic_path, in_flight), FIELD(cubic_path, cwnd_limited), FIELD(cubic_path, paced), END(cubic_path),
};

const struct field ranpace_cubic_window_layout[] = {
	FIELD(cubic_window, cwnd), FIELD(cubic_window, ssthresh), END(cubic_window),
};

const struct field ranpace_cubic_call_layout[] = {
	FIELD(cubic_call, state), FIELD(cubic_call, path), FIELD(cubic_call, window), FIELD(cubic_call, idle),
	FIELD(cubic_call, answer), FIELD(cubic_call, event), FIELD(cubic_call, kind), FIELD(cubic_call, acked),
	FIELD(cubic_call, rtt_us), FIELD(cubic_call, first), FIELD(cubic_call, unused), END(cubic_call),
};

void ranpace_cubic_step(struct cubic_call *call)
{
	cubic_call_step(call);
}

__u64 ranpace_cubic_k(__u32 distance)
{
	return cubic_k(distance);
}
