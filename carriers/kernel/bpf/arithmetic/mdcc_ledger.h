/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * What a Lightweight PEP has seen of a connection, in the sequence space of TCP: the ledger of Multi-Domain control
 * (logic/cc/src/radio/mdcc/ledger.rs) for a sender that cannot tell its segments apart.
 *
 * The kernel's programs are told how many segments were acknowledged and lost, not which, so this differs from logic/cc:
 *   - a report counts by the bytes that are new in it, in whole segments; the rest counts with the next report;
 *   - when a segment left, and its number, are known of the newest one at each event, up to 64 of them; others lie between;
 *   - of segments that are lost, as many count as lost before the PEP as it has reported missing and no loss has accounted for yet. The
 *     others were lost beyond it if it has seen what left three segments after the oldest outstanding one; otherwise nobody knows;
 *   - a gap was none if the receiver has acknowledged it in order, and no loss accounted for it;
 *   - RTTs to the PEP are taken of new data outside of recovery alone.
 */
#ifndef RANPACE_MDCC_LEDGER_H
#define RANPACE_MDCC_LEDGER_H

#include "mdcc.h"

/* Marks that are kept, a power of two; ranges of a report. */
#define LEDGER_MARKS 64
#define LEDGER_RANGES 8
/* Later segments that must have been seen before one that was not counts as lost (RFC 5681). */
#define LEDGER_REORDERING 3

/* What had left at an event. */
struct ledger_mark {
	__u64 at;     /* ns, when the newest segment left */
	__u32 end;    /* sequence number behind it */
	__u32 number; /* segments sent */
};

/* A report, verified: sequence numbers of TCP. */
struct ledger_report {
	__u64 hold;       /* ns from the newest packet's arrival at the PEP to the report */
	__u64 marked;     /* packets with a mark that it counted, if has_marked */
	__u32 cumulative; /* everything below came by; in a new epoch what is below is unknown */
	__u32 count;      /* of ranges */
	__u32 has_marked, new_epoch;
	struct {
		__u32 start, end;
	} ranges[LEDGER_RANGES]; /* what came by above, in order */
};

struct ledger {
	__u32 begun;
	__u32 cumulative, highest; /* the PEP has seen all below, and nothing from there on */
	__u32 above;       /* bytes that it has seen between */
	__u32 rest;        /* bytes that did not make a segment yet */
	__u32 una;         /* oldest outstanding byte at the last acknowledgement */
	__u32 pending;     /* segments reported missing that no loss has accounted for */
	__u32 missing;     /* bytes between that it has reported missing, and were counted */
	__u32 gap, gap_number; /* the first of the pending ones: sequence number, number */
	__u32 first, kept; /* of marks */
	struct ledger_mark marks[LEDGER_MARKS];
};

static __always_inline int ledger_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline __u32 ledger_later(__u32 a, __u32 b)
{
	return ledger_before(a, b) ? b : a;
}

/* At an event: what has left up to now. */
ARITHMETIC_GLOBAL int ledger_mark(struct ledger *l, __u32 una, __u32 end, __u32 number, __u64 at)
{
	struct ledger_mark *m;

	if (!l)
		return 0;
	if (!l->begun) {
		l->begun = 1;
		l->cumulative = una;
		l->highest = una;
		l->una = una;
	}
	if (l->kept) {
		m = &l->marks[(l->first + l->kept - 1) % LEDGER_MARKS];
		if (m->end == end)
			return 0;
		if (l->kept >= LEDGER_MARKS) {
			l->first++;
			l->kept--;
		}
	}
	m = &l->marks[(l->first + l->kept) % LEDGER_MARKS];
	m->at = at;
	m->end = end;
	m->number = number;
	l->kept++;
	return 0;
}

/* The oldest mark that what lies before this sequence number had left by; 0 if none is known. */
ARITHMETIC_GLOBAL int ledger_find(const struct ledger *l, __u32 end, struct ledger_mark *found)
{
	const struct ledger_mark *m;
	int i, any = 0;

	if (!l || !found)
		return 0;
	for (i = 0; i < LEDGER_MARKS; i++) {
		if ((__u32)i >= l->kept)
			break;
		m = &l->marks[(l->first + l->kept - 1 - i) % LEDGER_MARKS];
		if (ledger_before(m->end, end))
			break;
		found->at = m->at;
		found->end = m->end;
		found->number = m->number;
		any = 1;
	}
	return any;
}

/* Segments that the PEP has not been said to have seen. */
static __always_inline __u32 ledger_unseen(const struct ledger *l, __u32 una, __u32 end, __u32 mss)
{
	__u32 from = ledger_later(l->highest, una);

	return ledger_before(from, end) ? (end - from + mss - 1) / max_u32(mss, 1) : 0;
}

/* What a report has brought. */
struct ledger_news {
	__u32 seen, number; /* segments newly seen, and the number of the newest of them */
	__u32 has_gap, gap_number; /* the first newly missing one */
};

/* A report. 0 if it is impossible: of data that were never sent (`end` is behind what was), or in disorder. RTT, marks and epoch are written
 * into `e`, for MDCC_REPORT.
 */
ARITHMETIC_GLOBAL int ledger_report(struct ledger *l, const struct ledger_report *r, struct mdcc_event *e, struct ledger_news *news,
				    __u32 end)
{
	__u32 i, highest, above = 0, missing = 0, gap = 0, from, to, bytes = 0, mss, advances = 0;
	struct ledger_mark mark = {};
	__u64 took;

	if (!l || !r || !e || !news || !l->begun || ledger_before(end, r->cumulative))
		return 0;
	mss = max_u32(e->path.mss, 1);
	highest = r->cumulative;
	for (i = 0; i < LEDGER_RANGES; i++) {
		if (i >= r->count)
			break;
		from = r->ranges[i].start;
		to = r->ranges[i].end;
		if (!ledger_before(highest, from) || !ledger_before(from, to) || ledger_before(end, to))
			return 0;
		if (!missing)
			gap = highest;
		missing += from - highest;
		above += to - from;
		highest = to;
	}
	if (r->new_epoch) {
		l->cumulative = r->cumulative;
		l->highest = r->cumulative;
		l->above = 0;
		l->missing = 0;
		l->pending = 0;
	}
	news->has_gap = 0;
	/* One that is older than the last brings nothing. */
	if (!ledger_before(r->cumulative, l->cumulative) && !ledger_before(highest, l->highest)) {
		advances = ledger_before(l->highest, highest);
		bytes = r->cumulative - l->cumulative + above;
		bytes = bytes > l->above ? bytes - l->above : 0;
		l->cumulative = r->cumulative;
		l->highest = highest;
		l->above = above;
		/* More is missing than was: the first gap is the one that is told. */
		if (missing > l->missing) {
			if (!l->pending) {
				l->gap = gap;
				/* 0 where it is not known: of before any reduction. */
				l->gap_number = ledger_find(l, gap + 1, &mark) ? mark.number - (mark.end - gap + mss - 1) / mss : 0;
			}
			l->pending += (missing - l->missing + mss - 1) / mss;
			news->has_gap = 1;
		}
		l->missing = missing;
	}
	news->gap_number = l->gap_number;
	bytes += l->rest;
	news->seen = bytes / mss;
	l->rest = bytes - news->seen * mss;
	news->number = e->path.sent - 1;
	e->rtt_us = 0;
	if (ledger_find(l, l->highest, &mark)) {
		news->number = mark.number - (mark.end - l->highest) / mss - 1;
		/* Karn: of what was sent twice nobody knows which copy came by. */
		took = elapsed_ns(e->path.now, mark.at);
		if (advances && e->open && took > r->hold)
			e->rtt_us = max_u32(min_u64((took - r->hold) / NS_PER_US, MAX_RTT_US), 1);
	}
	e->has_marked = r->has_marked != 0;
	e->marked = r->marked;
	e->new_epoch = r->new_epoch != 0;
	return 1;
}

/* An acknowledgement of `segments`, up to `una` in order: fills in what MDCC_ACKED needs. */
ARITHMETIC_GLOBAL int ledger_acked(struct ledger *l, struct mdcc_event *e, __u32 una, __u32 segments)
{
	__u32 mss, from;
	struct ledger_mark mark = {};

	if (!l || !e)
		return 0;
	mss = max_u32(e->path.mss, 1);
	e->known = 1;
	e->segments = segments;
	e->number = e->path.sent - e->path.in_flight - 1;
	e->called_missing = 0;
	/* What the receiver has, and the PEP was not said to have seen. */
	from = ledger_later(l->highest, l->una);
	e->unreported = ledger_before(from, una) ? min_u32((una - from + mss - 1) / mss, segments) : 0;
	e->sent_at = e->unreported && ledger_find(l, from + 1, &mark) ? mark.at : e->path.now;
	if (l->pending && ledger_before(l->gap, una)) {
		/* The gap was none. */
		e->called_missing = 1;
		e->number = l->gap_number;
		l->pending--;
	}
	l->una = una;
	/* What the receiver has is no news any more; so nothing here falls half the sequence space behind. */
	if (ledger_before(l->cumulative, una)) {
		l->cumulative = una;
		l->highest = ledger_later(l->highest, una);
		l->above = min_u32(l->above, l->highest - una);
		l->missing = min_u32(l->missing, l->highest - una - l->above);
	}
	return 0;
}

/* Of so many segments that are lost, those lost before the PEP; `e->domain` is that of the others. */
ARITHMETIC_GLOBAL int ledger_lost(struct ledger *l, struct mdcc_event *e, __u32 una, __u32 segments)
{
	__u32 before;

	if (!l || !e)
		return 0;
	before = min_u32(l->pending, segments);
	l->pending -= before;
	e->domain = ledger_before(l->highest, una + LEDGER_REORDERING * e->path.mss) ? MDCC_UNKNOWN : MDCC_RADIO;
	return before;
}

#endif
