/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "sigma.h"
#include "layout.h"

const struct field ranpace_sigma_settings_layout[] = {
	FIELD(sigma_settings, efficiency), FIELD(sigma_settings, full), FIELD(sigma_settings, sr_offset_us),
	FIELD(sigma_settings, known_rtt_us), FIELD(sigma_settings, reach), FIELD(sigma_settings, last_tti),
	FIELD(sigma_settings, least_of_four), FIELD(sigma_settings, memory), FIELD(sigma_settings, cap),
	FIELD(sigma_settings, guards), FIELD(sigma_settings, trials), FIELD(sigma_settings, unused), END(sigma_settings),
};

const struct field ranpace_sigma_row_layout[] = {
	FIELD(sigma_row, prbs), FIELD(sigma_row, steps), FIELD(sigma_row, by_symbols), FIELD(sigma_row, unused),
	FIELD(sigma_row, rates), END(sigma_row),
};

const struct field ranpace_sigma_hint_layout[] = {
	FIELD(sigma_hint, at), FIELD(sigma_hint, own), FIELD(sigma_hint, unused), FIELD(sigma_hint, ahead),
	FIELD(sigma_hint, tti), FIELD(sigma_hint, cell), FIELD(sigma_hint, number), FIELD(sigma_hint, users),
	FIELD(sigma_hint, granted), FIELD(sigma_hint, handover), FIELD(sigma_hint, row), END(sigma_hint),
};

const struct field ranpace_sigma_event_layout[] = {
	FIELD(sigma_event, flow), FIELD(sigma_event, ack), FIELD(sigma_event, kind), FIELD(sigma_event, idle),
	FIELD(sigma_event, prior), FIELD(sigma_event, lost), FIELD(sigma_event, first), FIELD(sigma_event, parent),
	END(sigma_event),
};

const struct field ranpace_sigma_call_layout[] = {
	FIELD(sigma_call, settings), FIELD(sigma_call, state), FIELD(sigma_call, event), FIELD(sigma_call, hint),
	END(sigma_call),
};

void ranpace_sigma_step(struct sigma_call *call)
{
	sigma_call_step(call);
}

__u32 ranpace_sigma_mode(const struct sigma_call *call)
{
	return call->state.mode;
}

__u32 ranpace_sigma_contradictions(const struct sigma_call *call)
{
	return call->state.trials.contradictions;
}
