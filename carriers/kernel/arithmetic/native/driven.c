/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "cdbe.h"
#include "cdbev2.h"
#include "dcic.h"
#include "layout.h"

const struct field ranpace_event_layout[] = {
	FIELD(event, flow), FIELD(event, ack), FIELD(event, kind), FIELD(event, rate), FIELD(event, lost),
	FIELD(event, parent), END(event),
};

const struct field ranpace_guard_settings_layout[] = {
	FIELD(guard_settings, off), FIELD(guard_settings, unused), END(guard_settings),
};

const struct field ranpace_dcic_settings_layout[] = {
	FIELD(dcic_settings, guard), FIELD(dcic_settings, unit), FIELD(dcic_settings, unused), END(dcic_settings),
};

const struct field ranpace_cdbe_settings_layout[] = {
	FIELD(cdbe_settings, guard), FIELD(cdbe_settings, unit), FIELD(cdbe_settings, tick_us),
	FIELD(cdbe_settings, startup), FIELD(cdbe_settings, drain_cap), FIELD(cdbe_settings, min_window),
	FIELD(cdbe_settings, growth_alpha), FIELD(cdbe_settings, restart_after_limit),
	FIELD(cdbe_settings, after_drain), FIELD(cdbe_settings, unused), END(cdbe_settings),
};

const struct field ranpace_cdbev2_settings_layout[] = {
	FIELD(cdbev2_settings, guard), FIELD(cdbev2_settings, seed), FIELD(cdbev2_settings, interval_us),
	FIELD(cdbev2_settings, k), FIELD(cdbev2_settings, deep_after), FIELD(cdbev2_settings, deep),
	FIELD(cdbev2_settings, compensation), FIELD(cdbev2_settings, reference), FIELD(cdbev2_settings, recovery),
	FIELD(cdbev2_settings, no_fair_quit), FIELD(cdbev2_settings, thres1_rtt), FIELD(cdbev2_settings, unused),
	FIELD(cdbev2_settings, tick_us), END(cdbev2_settings),
};

#define CALL(x) FIELD(x, settings), FIELD(x, state), FIELD(x, event), END(x)
const struct field ranpace_dcic_call_layout[] = { CALL(dcic_call) };
const struct field ranpace_cdbe_call_layout[] = { CALL(cdbe_call) };
const struct field ranpace_cdbev2_call_layout[] = { CALL(cdbev2_call) };

void ranpace_dcic_step(struct dcic_call *call)
{
	dcic_call_step(call);
}

void ranpace_cdbe_step(struct cdbe_call *call)
{
	cdbe_call_step(call);
}

void ranpace_cdbev2_step(struct cdbev2_call *call)
{
	cdbev2_call_step(call);
}

void ranpace_report_encode(__u8 *option, __u64 rate)
{
	report_encode(option, rate);
}

__u64 ranpace_report_decode(const __u8 *option)
{
	return report_decode(option);
}

__u64 ranpace_cdbev2_weight(__u32 rtt_us, __u32 k, __u32 interval_us)
{
	return cdbev2_weight(rtt_us, k, interval_us);
}

int ranpace_product_exceeds(__u64 a, __u64 b, __u64 c, __u64 d)
{
	return product_exceeds(a, b, c, d);
}

__u64 ranpace_in_time(__u64 rate, __u64 ns)
{
	return in_time(rate, ns);
}
