/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "mdcc.h"
#include "layout.h"

const struct field ranpace_mdcc_settings_layout[] = {
	FIELD(mdcc_settings, bound), FIELD(mdcc_settings, a), FIELD(mdcc_settings, b), FIELD(mdcc_settings, silence),
	FIELD(mdcc_settings, start_cap), FIELD(mdcc_settings, growth_cap), FIELD(mdcc_settings, start),
	FIELD(mdcc_settings, count_acks), FIELD(mdcc_settings, hystart), FIELD(mdcc_settings, listens),
	FIELD(mdcc_settings, unused), END(mdcc_settings),
};

const struct field ranpace_mdcc_event_layout[] = {
	FIELD(mdcc_event, path), FIELD(mdcc_event, window), FIELD(mdcc_event, idle), FIELD(mdcc_event, sent_at),
	FIELD(mdcc_event, marked), FIELD(mdcc_event, answer), FIELD(mdcc_event, kind), FIELD(mdcc_event, number),
	FIELD(mdcc_event, segments), FIELD(mdcc_event, unseen), FIELD(mdcc_event, rtt_us), FIELD(mdcc_event, min_rtt_us),
	FIELD(mdcc_event, lost), FIELD(mdcc_event, unreported), FIELD(mdcc_event, domain), FIELD(mdcc_event, first),
	FIELD(mdcc_event, known), FIELD(mdcc_event, called_missing), FIELD(mdcc_event, has_marked),
	FIELD(mdcc_event, new_epoch), FIELD(mdcc_event, open), FIELD(mdcc_event, answers), END(mdcc_event),
};

const struct field ranpace_mdcc_call_layout[] = {
	FIELD(mdcc_call, settings), FIELD(mdcc_call, state), FIELD(mdcc_call, event), END(mdcc_call),
};

void ranpace_mdcc_step(struct mdcc_call *call)
{
	mdcc_call_step(call);
}

__u32 ranpace_mdcc_mode(const struct mdcc_call *call)
{
	return call->state.mode;
}

__u32 ranpace_mdcc_fallbacks(const struct mdcc_call *call)
{
	return call->state.fallbacks;
}

__u64 ranpace_mdcc_distrusted_until(const struct mdcc_call *call)
{
	return call->state.distrusted_until;
}
