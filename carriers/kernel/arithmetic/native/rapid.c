/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "rapid.h"
#include "layout.h"

const struct field ranpace_rapid_settings_layout[] = {
	FIELD(rapid_settings, pacing), END(rapid_settings),
};

const struct field ranpace_rapid_allocation_layout[] = {
	FIELD(rapid_allocation, rate), FIELD(rapid_allocation, window), FIELD(rapid_allocation, valid),
	FIELD(rapid_allocation, unused), END(rapid_allocation),
};

const struct field ranpace_rapid_state_layout[] = {
	FIELD(rapid_state, allocation), FIELD(rapid_state, driven), FIELD(rapid_state, collapsed), END(rapid_state),
};

const struct field ranpace_rapid_call_layout[] = {
	FIELD(rapid_call, settings), FIELD(rapid_call, event), FIELD(rapid_call, state), FIELD(rapid_call, flow),
	FIELD(rapid_call, allocation), FIELD(rapid_call, ack), FIELD(rapid_call, verdict),
	END(rapid_call),
};

void ranpace_rapid_step(struct rapid_call *call)
{
	rapid_call_step(call);
}
