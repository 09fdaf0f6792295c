/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "meld.h"
#include "layout.h"

const struct field ranpace_meld_report_layout[] = {
	FIELD(meld_report, measured_at), FIELD(meld_report, block), FIELD(meld_report, best_block),
	FIELD(meld_report, queue), FIELD(meld_report, queue_limit), FIELD(meld_report, cell),
	FIELD(meld_report, harq_processes), FIELD(meld_report, has_block), FIELD(meld_report, has_limit),
	FIELD(meld_report, handover), END(meld_report),
};

const struct field ranpace_meld_settings_layout[] = {
	FIELD(meld_settings, max_age), FIELD(meld_settings, queue_factor), FIELD(meld_settings, packet),
	FIELD(meld_settings, mixed), FIELD(meld_settings, harq_processes), FIELD(meld_settings, hold_block),
	FIELD(meld_settings, full_after_timeout), FIELD(meld_settings, guards), FIELD(meld_settings, unused),
	END(meld_settings),
};

const struct field ranpace_meld_mark_layout[] = {
	FIELD(meld_mark, at), FIELD(meld_mark, delivered), FIELD(meld_mark, lost), END(meld_mark),
};

const struct field ranpace_meld_user_layout[] = {
	FIELD(meld_user, newest), FIELD(meld_user, scheduled), FIELD(meld_user, gap), FIELD(meld_user, gap_before),
	FIELD(meld_user, gaps), FIELD(meld_user, unused), END(meld_user),
};

const struct field ranpace_meld_state_layout[] = {
	FIELD(meld_state, round), FIELD(meld_state, before), FIELD(meld_state, paced_until), FIELD(meld_state, own_pacing),
	FIELD(meld_state, before_timeout), FIELD(meld_state, restore), FIELD(meld_state, saved_cwnd),
	FIELD(meld_state, saved_ssthresh), FIELD(meld_state, answered), FIELD(meld_state, shown_cwnd),
	FIELD(meld_state, silent_count), FIELD(meld_state, silent_packets), FIELD(meld_state, silent_timeouts),
	FIELD(meld_state, notified), FIELD(meld_state, begun), FIELD(meld_state, silent), FIELD(meld_state, ended),
	FIELD(meld_state, unused), END(meld_state),
};

const struct field ranpace_meld_event_layout[] = {
	FIELD(meld_event, kind), FIELD(meld_event, count), FIELD(meld_event, lost), FIELD(meld_event, largest),
	FIELD(meld_event, first), END(meld_event),
};

const struct field ranpace_meld_call_layout[] = {
	FIELD(meld_call, settings), FIELD(meld_call, user), FIELD(meld_call, state), FIELD(meld_call, flow),
	FIELD(meld_call, report), FIELD(meld_call, loss), FIELD(meld_call, event), FIELD(meld_call, verdict), FIELD(meld_call, unused),
	END(meld_call),
};

void ranpace_meld_step(struct meld_call *call)
{
	meld_call_step(call);
}
