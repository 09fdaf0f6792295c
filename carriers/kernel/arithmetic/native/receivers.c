/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#include "cdbe_client.h"
#include "cdbev2_client.h"
#include "dcic_client.h"
#include "layout.h"

const struct field ranpace_arrival_layout[] = {
	FIELD(arrival, now), FIELD(arrival, bytes), FIELD(arrival, segments), FIELD(arrival, stamp),
	FIELD(arrival, rtt_us), END(arrival),
};

const struct field ranpace_dcic_hint_layout[] = {
	FIELD(dcic_hint, at), FIELD(dcic_hint, bits), FIELD(dcic_hint, slot_ns), FIELD(dcic_hint, prbs),
	FIELD(dcic_hint, cell), FIELD(dcic_hint, cqi), FIELD(dcic_hint, layers), FIELD(dcic_hint, has_dci),
	FIELD(dcic_hint, has_cqi), FIELD(dcic_hint, unused), END(dcic_hint),
};

const struct field ranpace_cdbe_client_settings_layout[] = {
	FIELD(cdbe_client_settings, window), FIELD(cdbe_client_settings, tick_us), FIELD(cdbe_client_settings, every),
	FIELD(cdbe_client_settings, literal), FIELD(cdbe_client_settings, gap_unit),
	FIELD(cdbe_client_settings, unused), END(cdbe_client_settings),
};

const struct field ranpace_cdbev2_client_settings_layout[] = {
	FIELD(cdbev2_client_settings, tw), FIELD(cdbev2_client_settings, every),
	FIELD(cdbev2_client_settings, literal), END(cdbev2_client_settings),
};

const struct field ranpace_dcic_client_settings_layout[] = {
	FIELD(dcic_client_settings, estimator), FIELD(dcic_client_settings, every), END(dcic_client_settings),
};

size_t ranpace_cdbe_client_size(void)
{
	return sizeof(struct cdbe_client);
}

size_t ranpace_cdbev2_client_size(void)
{
	return sizeof(struct cdbev2_client);
}

size_t ranpace_dcic_client_size(void)
{
	return sizeof(struct dcic_client);
}

void ranpace_cdbe_client_on_data(struct cdbe_client *c, const struct cdbe_client_settings *s, const struct arrival *a)
{
	cdbe_client_on_data(c, s, a);
}

__u64 ranpace_cdbe_client_report(struct cdbe_client *c, const struct cdbe_client_settings *s)
{
	__u64 before = cdbe_client_peek(c), report = cdbe_client_report(c, s);

	return before == report ? report : ~0ull;
}

void ranpace_cdbev2_client_on_data(struct cdbev2_client *c, const struct cdbev2_client_settings *s,
				   const struct arrival *a)
{
	cdbev2_client_on_data(c, s, a);
}

__u64 ranpace_cdbev2_client_report(struct cdbev2_client *c)
{
	__u64 before = cdbev2_client_peek(c), report = cdbev2_client_report(c);

	return before == report ? report : ~0ull;
}

void ranpace_dcic_client_on_start(struct dcic_client *c, __u64 now)
{
	dcic_client_on_start(c, now);
}

void ranpace_dcic_client_on_hint(struct dcic_client *c, const struct dcic_client_settings *s, const struct dcic_hint *h,
				 __u64 now)
{
	dcic_client_on_hint(c, s, h, now);
}

__u64 ranpace_dcic_client_report(struct dcic_client *c, const struct dcic_client_settings *s, __u64 now)
{
	__u64 before = dcic_client_peek(c, s, now), report = dcic_client_report(c, s, now);

	return before == report ? report : ~0ull;
}
