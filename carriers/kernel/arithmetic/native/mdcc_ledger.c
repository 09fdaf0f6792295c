/* SPDX-License-Identifier: MIT OR GPL-2.0 */
#include "mdcc_ledger.h"
#include "layout.h"

const struct field ranpace_ledger_report_layout[] = {
	FIELD(ledger_report, hold), FIELD(ledger_report, marked), FIELD(ledger_report, cumulative), FIELD(ledger_report, count),
	FIELD(ledger_report, has_marked), FIELD(ledger_report, new_epoch), FIELD(ledger_report, ranges), END(ledger_report),
};

const struct field ranpace_ledger_news_layout[] = {
	FIELD(ledger_news, seen), FIELD(ledger_news, number), FIELD(ledger_news, has_gap), FIELD(ledger_news, gap_number),
	END(ledger_news),
};

size_t ranpace_ledger_size(void)
{
	return sizeof(struct ledger);
}

int ranpace_ledger_mark(struct ledger *l, __u32 una, __u32 end, __u32 number, __u64 at)
{
	return ledger_mark(l, una, end, number, at);
}

int ranpace_ledger_report(struct ledger *l, const struct ledger_report *r, struct mdcc_event *e, struct ledger_news *news, __u32 end)
{
	return ledger_report(l, r, e, news, end);
}

int ranpace_ledger_acked(struct ledger *l, struct mdcc_event *e, __u32 una, __u32 segments)
{
	return ledger_acked(l, e, una, segments);
}

int ranpace_ledger_lost(struct ledger *l, struct mdcc_event *e, __u32 una, __u32 segments)
{
	return ledger_lost(l, e, una, segments);
}

__u32 ranpace_ledger_unseen(const struct ledger *l, __u32 una, __u32 end, __u32 mss)
{
	return ledger_unseen(l, una, end, mss);
}
