/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * SIGMA's guards: trials of whether more goes through than the modem says (logic/cc/src/radio/sigma/trial.rs), and the police where
 * the radio is not the bottleneck (sigma/police.rs). Their heads have the rules and the reasons. All of it is ours.
 *
 * Fixed point: the account counts 2^-8 bytes, an instant between two of its points is q32 of the way, windows are q32 segments. Rates are
 * compared as products. Sums stand for less than 2^40 bytes.
 */
#ifndef RANPACE_SIGMA_GUARDS_H
#define RANPACE_SIGMA_GUARDS_H

#include "fixed.h"

/* Smallest window, q32 segments. Ours. */
#define SIGMA_MIN_CWND (2ULL << 32)

/* -- Police -- */

/* Share of segments lost in an RTT that is no radio's: one of 50. */
#define SIGMA_POLICED 50
/* Window kept. */
#define SIGMA_CUT_NUM 7
#define SIGMA_CUT_DEN 10
/* RTTs in a row with such losses; without, after which the bound goes. */
#define SIGMA_BAD 2
#define SIGMA_QUIET 10

struct sigma_police {
	__u64 cap;       /* q32 segments; 0 = none */
	__u64 lost, delivered;
	__u32 round_end; /* segments that had left when the round began: delivered, lost and in flight; wraps */
	__u32 bad, quiet;
	__u32 unused;
};

static __always_inline void sigma_police_begin(struct sigma_police *p)
{
	p->cap = 0;
	p->lost = 0;
	p->delivered = 0;
	p->round_end = 0;
	p->bad = 0;
	p->quiet = 0;
}

/* `queue` says whether the last RTT shows one; `window` is q32 segments. */
ARITHMETIC_GLOBAL int sigma_police_ack(struct sigma_police *p, const struct flow *f, __u32 delivered, int queue, __u64 window)
{
	if (!p || !f)
		return 0;
	__u32 settled = f->delivered + f->lost;

	p->delivered += delivered;
	/* A segment that left in this round has been delivered or lost. */
	if ((__s32)(settled - p->round_end) <= 0)
		return 0;
	p->round_end = settled + f->in_flight;
	if (!queue && SIGMA_POLICED * p->lost > p->lost + p->delivered) {
		p->bad++;
		p->quiet = 0;
	} else {
		p->bad = 0;
		p->quiet++;
	}
	p->lost = 0;
	p->delivered = 0;
	if (p->bad >= SIGMA_BAD) {
		p->bad = 0;
		p->cap = max_u64(window / SIGMA_CUT_DEN * SIGMA_CUT_NUM, SIGMA_MIN_CWND);
	} else if (p->quiet >= SIGMA_QUIET) {
		p->cap = 0;
	} else if (p->cap) {
		p->cap += 1ULL << 32;
	}
	return 0;
}

/* -- Trials -- */

/* Delivered over granted that is a contradiction: 3/2. */
#define SIGMA_LOW_NUM 3
#define SIGMA_LOW_DEN 2
/* Rounds, time and reports that are judged together. */
#define SIGMA_ROUNDS 4
#define SIGMA_SPAN (400 * NS_PER_MS)
#define SIGMA_REPORTS 64
/* Reports that are held against those before them, and how many may be like neither. */
#define SIGMA_TOLD 256
#define SIGMA_UNLIKE (SIGMA_TOLD / 3)
/* Time for which a radio's rate holds. */
#define SIGMA_COHERENT (20 * NS_PER_MS)
/* Longest time for which something granted is held back. */
#define SIGMA_HELD (200 * NS_PER_MS)
/* First trial after SIGMA got the window, and the longest time from one to the next. */
#define SIGMA_FIRST NS_PER_S
#define SIGMA_LONGEST_WAIT (5 * NS_PER_S)
/* Window of a trial over what is delivered or granted in RTTmin; at least so many segments; at most over what is delivered. */
#define SIGMA_GAIN 2
#define SIGMA_LEAST (10ULL << 32)
#define SIGMA_MOST_GAIN 4
/* Smallest RTT of a round over RTTmin that is a queue: 3/2. */
#define SIGMA_QUEUE_NUM 3
#define SIGMA_QUEUE_DEN 2
/* A trial that finds nothing is over after this. */
#define SIGMA_LONGEST (2 * NS_PER_S)
/* Time without a contradiction after which SIGMA has the window again, and the longest. */
#define SIGMA_HOLD_FOR (10 * NS_PER_S)
#define SIGMA_LONGEST_HOLD (60 * NS_PER_S)
/* A round is this long at least. */
#define SIGMA_LEAST_ROUND (20 * NS_PER_MS)
/* Points of the account, rounds that are judged or wait for it; powers of two. Points per RTTmin of at least so long. */
#define SIGMA_POINTS 256
#define SIGMA_MOST_ROUNDS 64
#define SIGMA_POINTS_PER_RTT 16
#define SIGMA_LEAST_ACCOUNT (40 * NS_PER_MS)

/* Who has the window. */
#define SIGMA_OWNER_PLAIN 0 /* CUBIC */
#define SIGMA_OWNER_SIGMA 1 /* SIGMA, at a time that is not one for a trial */
#define SIGMA_OWNER_READY 2 /* SIGMA, and nothing speaks against a trial */

/* What a round's end has brought. */
#define SIGMA_FOUND_NOTHING 0
#define SIGMA_FOUND_BEGIN 1 /* a trial begins */
#define SIGMA_FOUND_END 2   /* the trial is over; the window is `before` again */
#define SIGMA_FOUND_LOW 3   /* the reports are contradicted, without a queue */
#define SIGMA_FOUND_QUEUE 4 /* the same with one */

/* What has been granted up to a time. */
struct sigma_point {
	__u64 at;
	__u64 bytes; /* 2^-8 */
	__u32 reports;
	__u32 unused;
};

/* A round that is over; its times are those at which what it delivered was granted. */
struct sigma_finished {
	__u64 from, to;
	__u64 bytes;
	__u64 held; /* ns before `from` at which some of it may have been granted */
};

/* One that has been compared, or several. */
struct sigma_compared {
	__u64 span;      /* ns */
	__u64 delivered; /* bytes */
	__u64 granted;   /* 2^-8 bytes */
	__u64 before;    /* granted before it, 2^-8 bytes */
	__u32 reports;
	__u32 unused;
};

struct sigma_trials {
	__u64 told_at[2];     /* the last two reports of a grant, newest first */
	__u32 told[2];        /* the whole cell's rate, bytes a second; 0 = none */
	__u32 held_against, unlike, share; /* reports, those like neither, and of the last 256 */
	__u32 contradictions;
	__u64 begin, bytes;   /* the round that is not over yet */
	__u32 least_rtt_us, most_rtt_us; /* of it; 0 = none */
	__u8 open, limited;
	__u8 trying;          /* a trial is under way */
	__u8 says_nothing;    /* the reports contradict each other */
	__u32 who;            /* SIGMA_OWNER_...: written before sigma_trials_ack */
	__u64 since, window, before; /* the trial; q32 segments */
	__u64 due, wait, hold_until, hold, driven_since;
	__u32 point_first, point_count;
	__u32 waiting_first, waiting_count;
	__u32 compared_first, compared_count;
	struct sigma_point account[SIGMA_POINTS];
	struct sigma_finished waiting[SIGMA_MOST_ROUNDS];
	struct sigma_compared compared[SIGMA_MOST_ROUNDS];
};

static __always_inline void sigma_trials_begin(struct sigma_trials *t)
{
	t->due = ~0ULL;
	t->wait = SIGMA_FIRST;
	t->hold = SIGMA_HOLD_FOR;
}

/* SIGMA has the window from now on. */
static __always_inline void sigma_drive(struct sigma_trials *t, __u64 now)
{
	t->wait = SIGMA_FIRST;
	t->driven_since = now;
	t->due = now + SIGMA_FIRST;
	t->trying = 0;
}

/* The trial is over, whatever it found. */
static __always_inline void sigma_stop(struct sigma_trials *t, __u64 now)
{
	t->trying = 0;
	t->wait = min_u64(2 * t->wait, SIGMA_LONGEST_WAIT);
	t->due = now + t->wait;
}

/* The path, the cell or the account are others: rounds begin anew. */
static __always_inline void sigma_forget(struct sigma_trials *t)
{
	t->open = 0;
	t->waiting_count = 0;
	t->compared_count = 0;
	t->point_count = 0;
	t->told[0] = 0;
	t->told[1] = 0;
	t->held_against = 0;
	t->unlike = 0;
	t->says_nothing = 0;
}

static __always_inline int sigma_is_unlike(__u64 a, __u64 b)
{
	return SIGMA_LOW_DEN * max_u64(a, b) > SIGMA_LOW_NUM * min_u64(a, b);
}

/* A report of a grant gives the whole cell this rate. */
ARITHMETIC_GLOBAL int sigma_on_grant(struct sigma_trials *t, __u64 at, __u32 whole)
{
	if (!t)
		return 0;
	__u64 oldest_at = t->told_at[1];
	__u32 last = t->told[0], oldest = t->told[1];

	t->told_at[1] = t->told_at[0];
	t->told[1] = last;
	t->told_at[0] = at;
	t->told[0] = whole;
	if (!last || !oldest || at - oldest_at > SIGMA_COHERENT)
		return 0;
	t->held_against++;
	t->unlike += sigma_is_unlike(last, whole) && sigma_is_unlike(oldest, whole);
	if (t->held_against >= SIGMA_TOLD) {
		t->says_nothing = t->unlike > SIGMA_UNLIKE;
		t->share = t->unlike;
		t->held_against = 0;
		t->unlike = 0;
	}
	return 0;
}

/* A report was measured at `at`: so many bytes a second were granted since the one before. RTTmin in us. */
ARITHMETIC_GLOBAL int sigma_on_report(struct sigma_trials *t, __u64 at, __u32 granted, __u32 base_us, __u64 stale_after)
{
	if (!t)
		return 0;
	struct sigma_point *last, *before, *p;
	__u64 since = 0, bytes = 0, apart;
	__u32 reports = 0;

	if (t->point_count) {
		last = &t->account[(t->point_first + t->point_count - 1) % SIGMA_POINTS];
		since = at - last->at;
		if (since > stale_after) {
			t->point_count = 0;
			t->compared_count = 0;
		} else {
			/* in_time's limit; a gap of more than 16.8 s needs an RTT of 4.2 s. */
			bytes = last->bytes + in_time((__u64)granted << 8, min_u64(since, MAX_RTT_US * NS_PER_US));
			reports = last->reports + 1;
		}
	}
	/* Points lie as far apart as they need to: one that is nearer to the one before the last takes its place. */
	apart = max_u64(base_us * NS_PER_US, SIGMA_LEAST_ACCOUNT) / SIGMA_POINTS_PER_RTT;
	if (t->point_count >= 2) {
		before = &t->account[(t->point_first + t->point_count - 2) % SIGMA_POINTS];
		if (at - before->at < apart)
			t->point_count--;
	}
	if (t->point_count >= SIGMA_POINTS) {
		t->point_first++;
		t->point_count--;
	}
	p = &t->account[(t->point_first + t->point_count) % SIGMA_POINTS];
	p->at = at;
	p->bytes = bytes;
	p->reports = reports;
	t->point_count++;
	return 0;
}

#define SIGMA_KNOWN 0
#define SIGMA_TO_COME 1
#define SIGMA_FORGOTTEN 2

/* One halving: `place` points lie before `at`, or `step` more. */
ARITHMETIC_GLOBAL __u32 sigma_halve(const struct sigma_trials *t, __u64 at, __u32 count, __u32 place, __u32 step)
{
	__u32 probe = place + step;

	if (!t || probe > count)
		return place;
	return t->account[(t->point_first + probe - 1) % SIGMA_POINTS].at < at ? probe : place;
}

/* The account at a time, as `found`. Returns SIGMA_KNOWN, or why it is not. */
ARITHMETIC_GLOBAL int sigma_granted_by(const struct sigma_trials *t, __u64 at, struct sigma_point *found)
{
	const struct sigma_point *before, *after;
	__u32 count, place = 0, step;
	__u64 gap;

	if (!t || !found)
		return SIGMA_FORGOTTEN;
	count = min_u32(t->point_count, SIGMA_POINTS);
	/* Points before `at`. A call has no branches here, of which the verifier would follow every combination. */
	for (step = SIGMA_POINTS; step; step >>= 1)
		place = sigma_halve(t, at, count, place, step);
	if (place >= count)
		return SIGMA_TO_COME;
	after = &t->account[(t->point_first + place) % SIGMA_POINTS];
	found->at = at;
	found->bytes = after->bytes;
	found->reports = after->reports;
	if (!place)
		return after->at == at ? SIGMA_KNOWN : SIGMA_FORGOTTEN;
	before = &t->account[(t->point_first + place - 1) % SIGMA_POINTS];
	/* In 16 ns: what ratio_q32 takes. A gap is at most four RTTs. */
	gap = max_u64((after->at - before->at) >> 4, 1);
	found->bytes = before->bytes + mul_q32(after->bytes - before->bytes, ratio_q32(min_u64((at - before->at) >> 4, gap), gap));
	return SIGMA_KNOWN;
}

/* The oldest round that waits is compared, if reports have come. Whether it was. */
ARITHMETIC_GLOBAL int sigma_compare_one(struct sigma_trials *t)
{
	struct sigma_point earliest = {}, from = {}, to = {};
	const struct sigma_finished *w;
	struct sigma_compared *c;
	int known[3];

	if (!t || !t->waiting_count)
		return 0;
	w = &t->waiting[t->waiting_first % SIGMA_MOST_ROUNDS];
	known[0] = sigma_granted_by(t, w->from > w->held ? w->from - w->held : 0, &earliest);
	known[1] = sigma_granted_by(t, w->from, &from);
	known[2] = sigma_granted_by(t, w->to, &to);
	if (known[0] == SIGMA_TO_COME || known[1] == SIGMA_TO_COME || known[2] == SIGMA_TO_COME)
		return 0;
	if (known[0] == SIGMA_KNOWN && known[1] == SIGMA_KNOWN && known[2] == SIGMA_KNOWN) {
		if (t->compared_count >= SIGMA_MOST_ROUNDS) {
			t->compared_first++;
			t->compared_count--;
		}
		c = &t->compared[(t->compared_first + t->compared_count) % SIGMA_MOST_ROUNDS];
		c->span = w->to - w->from;
		c->delivered = w->bytes;
		c->granted = to.bytes - from.bytes;
		c->before = from.bytes - earliest.bytes;
		c->reports = to.reports - from.reports;
		t->compared_count++;
	}
	t->waiting_first++;
	t->waiting_count--;
	return 1;
}

/* Adds the round that lies so many before the newest one. */
ARITHMETIC_GLOBAL int sigma_add_round(const struct sigma_trials *t, struct sigma_compared *sum, __u32 back)
{
	const struct sigma_compared *c;

	if (!t || !sum)
		return 0;
	c = &t->compared[(t->compared_first + t->compared_count - 1 - back) % SIGMA_MOST_ROUNDS];
	sum->span += c->span;
	sum->delivered += c->delivered;
	sum->granted += c->granted;
	sum->before = c->before;
	sum->reports += c->reports;
	return 0;
}

/* Sums over the newest rounds that are enough to be judged, or over all. Whether there are enough. */
ARITHMETIC_GLOBAL int sigma_sum(const struct sigma_trials *t, struct sigma_compared *sum, int all)
{
	__u32 i;

	if (!t || !sum)
		return 0;
	sum->span = 0;
	sum->delivered = 0;
	sum->granted = 0;
	sum->before = 0;
	sum->reports = 0;
	for (i = 0; i < SIGMA_MOST_ROUNDS; i++) {
		if (i >= t->compared_count)
			break;
		sigma_add_round(t, sum, i);
		if (!all && i + 1 >= SIGMA_ROUNDS && sum->span >= SIGMA_SPAN && sum->reports >= SIGMA_REPORTS)
			return 1;
	}
	return 0;
}

static __always_inline int sigma_is_contradiction(const struct sigma_compared *c)
{
	return SIGMA_LOW_DEN * (min_u64(c->delivered, 1ULL << 50) << 8) > SIGMA_LOW_NUM * (c->granted + c->before);
}

/* Bytes (2^-8) of a time as q32 segments per RTTmin. */
ARITHMETIC_GLOBAL __u64 sigma_in_rtt(const struct flow *f, __u64 bytes, __u64 span, __u32 base_us)
{
	if (!f)
		return 0;
	/* 2^40 times 2^24 us; then 2^44 at most, times 2^16. */
	__u64 per_rtt = min_u64(bytes, (1ULL << 40) - 1) * base_us / max_u64(span / NS_PER_US, 1);

	return (min_u64(per_rtt, (1ULL << 40) - 1) << 24) / max_u32(f->mss, 1);
}

ARITHMETIC_GLOBAL int sigma_judge(struct sigma_trials *t, const struct flow *f, __u32 base_us, __u64 cwnd, int queue)
{
	struct sigma_compared newest = {}, all = {};
	int judged, cleared, says_nothing;
	__u64 delivered;

	if (!t || !f)
		return SIGMA_FOUND_NOTHING;
	judged = sigma_sum(t, &newest, 0);
	/* Said once for each batch: where grants are rare no other one comes to take it back. */
	says_nothing = t->says_nothing;
	t->says_nothing = 0;
	if (says_nothing || (judged && sigma_is_contradiction(&newest))) {
		t->compared_count = 0;
		if (t->who != SIGMA_OWNER_PLAIN) {
			/* Not doubled after a time of SIGMA's that was as long as the hold. */
			if (!t->contradictions || elapsed_ns(f->now, t->driven_since) >= t->hold)
				t->hold = SIGMA_HOLD_FOR;
			else
				t->hold = min_u64(2 * t->hold, SIGMA_LONGEST_HOLD);
			t->contradictions++;
		}
		t->hold_until = f->now + t->hold;
		t->trying = 0;
		return queue ? SIGMA_FOUND_QUEUE : SIGMA_FOUND_LOW;
	}
	if (t->trying) {
		sigma_sum(t, &all, 1);
		cleared = queue && !sigma_is_contradiction(&all);
		if (!judged && !cleared && elapsed_ns(f->now, t->since) < SIGMA_LONGEST)
			return SIGMA_FOUND_NOTHING;
		sigma_stop(t, f->now);
		return SIGMA_FOUND_END;
	}
	if (t->who != SIGMA_OWNER_READY || f->now < t->due || !f->cwnd_limited || !judged)
		return SIGMA_FOUND_NOTHING;
	delivered = sigma_in_rtt(f, newest.delivered << 8, newest.span, base_us);
	t->window = SIGMA_GAIN * max_u64(delivered, sigma_in_rtt(f, newest.granted, newest.span, base_us));
	t->window = max_u64(min_u64(t->window, SIGMA_MOST_GAIN * delivered), SIGMA_LEAST);
	t->window = min_u64(t->window, (__u64)FLOW_MOST_CWND << 32);
	t->before = cwnd;
	t->since = f->now;
	t->trying = 1;
	t->waiting_count = 0;
	t->compared_count = 0;
	return SIGMA_FOUND_BEGIN;
}

/* An RTT was measured, in us. */
static __always_inline void sigma_trials_rtt(struct sigma_trials *t, __u32 rtt_us)
{
	if (!t->open)
		return;
	t->least_rtt_us = t->least_rtt_us ? min_u32(t->least_rtt_us, rtt_us) : rtt_us;
	t->most_rtt_us = max_u32(t->most_rtt_us, rtt_us);
}

static __always_inline void sigma_open(struct sigma_trials *t, __u64 now)
{
	t->open = 1;
	t->begin = now;
	t->bytes = 0;
	t->limited = 1;
	t->least_rtt_us = 0;
	t->most_rtt_us = 0;
}

/* Bytes were acknowledged. RTTmin in us, the window in q32 segments. */
ARITHMETIC_GLOBAL int sigma_trials_ack(struct sigma_trials *t, const struct flow *f, __u32 bytes, __u32 base_us, __u64 cwnd)
{
	if (!t || !f)
		return 0;
	__u64 base = base_us * NS_PER_US, begin = t->begin, acked;
	__u32 least = t->least_rtt_us, most = t->most_rtt_us;
	struct sigma_finished *w;
	int limited, i;

	if (!t->open) {
		/* What this brings was granted before the round. */
		sigma_open(t, f->now);
		return SIGMA_FOUND_NOTHING;
	}
	t->bytes += min_u32(bytes, MAX_ACKED);
	t->limited = t->limited && (f->cwnd_limited || (t->trying && !f->app_limited));
	acked = t->bytes;
	limited = t->limited;
	if (elapsed_ns(f->now, begin) < max_u64(base, SIGMA_LEAST_ROUND))
		return SIGMA_FOUND_NOTHING;
	/* Rounds follow each other without a gap: what comes at once after a silence was granted in the silence. */
	sigma_open(t, f->now);
	if (limited) {
		if (t->waiting_count >= SIGMA_MOST_ROUNDS) {
			t->waiting_first++;
			t->waiting_count--;
		}
		/* The trial's first round still brings in what left before. */
		if (!t->trying || begin >= t->since + base) {
			w = &t->waiting[(t->waiting_first + t->waiting_count) % SIGMA_MOST_ROUNDS];
			w->from = elapsed_ns(begin, base);
			w->to = elapsed_ns(f->now, base);
			w->bytes = acked;
			w->held = min_u64(elapsed_ns(most * NS_PER_US, base), SIGMA_HELD);
			t->waiting_count++;
		}
	} else {
		t->waiting_count = 0;
		t->compared_count = 0;
	}
	for (i = 0; i < SIGMA_MOST_ROUNDS; i++)
		if (!sigma_compare_one(t))
			break;
	return sigma_judge(t, f, base_us, cwnd, least && SIGMA_QUEUE_DEN * (__u64)least >= SIGMA_QUEUE_NUM * (__u64)base_us);
}

#endif
