/* SPDX-License-Identifier: MIT OR GPL-2.0
 *
 * CUBIC as Linux 6.x has it (net/ipv4/tcp_cubic.c), for controls that need a CUBIC besides the kernel's own or with another way to end
 * slow start: logic/cc/src/classic/cubic/linux.rs, cubic/curve.rs and hystart.rs. Names are the same there and here.
 *
 * Sources: RFC 9438, with C of 410/1024 and beta of 717/1024 as in Linux; HyStart as in Linux; HyStart++ of RFC 9406. Left out: other
 * parameters, ns-3's HyStart, and a pace of the control's own in the allowance for trains.
 *
 * The state is of a socket, the window the caller's. A round of HyStart ends when a segment that left in it is no longer under way: `sent`
 * counts what left, retransmissions too (tp->data_segs_out).
 *
 * Fixed point: windows are q32 segments; CUBIC itself grows by whole ones, and HyStart++ by fractions. Times on the curve are 2^-20 s,
 * K is exact to 2^-16 of itself, and the curve is cut off at 200 s from its centre. A value that is just at a whole number may be
 * one segment lower or higher than with floats, until `cnt` is worked out again 31 ms later.
 */
#ifndef RANPACE_CUBIC_H
#define RANPACE_CUBIC_H

#include "fixed.h"

/* No slow start threshold yet. */
#define CUBIC_INFINITE (~0ULL)
/* Smallest threshold, q32 segments. */
#define CUBIC_MIN_SSTHRESH (2ULL << 32)
/* C and beta over 1024. */
#define CUBIC_C 410
#define CUBIC_BETA 717
/* ACKed windows per segment that a Reno flow gains, in eighths (beta_scale). */
#define CUBIC_BETA_SCALE 15
/* ms for which `cnt` stands while the window does. Fewest segments per segment of growth; windows beyond the curve; without a maximum. */
#define CUBIC_UPDATE_MS 31
#define CUBIC_MIN_CNT 2
#define CUBIC_IDLE_WINDOWS 100
#define CUBIC_UNKNOWN_CNT 20
/* Neither the smallest RTT nor HyStart sees the samples of an epoch's first second. */
#define CUBIC_RECOVERING NS_PER_S
/* Farthest from the centre of the curve, 2^-20 s: beyond it the curve is above any window. */
#define CUBIC_FAR (200ULL << 20)

/* How slow start ends without loss. */
enum hystart_kind { HYSTART_CLASSIC, HYSTART_PLUS_PLUS, HYSTART_OFF };

/* Segments below which the classic form does not look. */
#define HYSTART_LOW_WINDOW (16ULL << 32)
/* Longest distance of two ACKs of one train; largest allowance for aggregation, and the bytes whose sending time it is. */
#define HYSTART_TRAIN_GAP (2 * NS_PER_MS)
#define HYSTART_MAX_ACK_DELAY NS_PER_MS
#define HYSTART_ACK_DELAY_BYTES 262144ULL
/* Samples of a round before its smallest counts. Bounds of the tolerated rise; in between, an eighth. */
#define HYSTART_SAMPLES 8
#define HYSTART_LEAST_RISE (4 * NS_PER_MS)
#define HYSTART_MOST_RISE (16 * NS_PER_MS)
/* HyStart++: growth and rounds of conservative slow start; segments that an ACK may count for without pacing. */
#define HYSTART_CSS_SHIFT 2
#define HYSTART_CSS_ROUNDS 5
#define HYSTART_UNPACED_LIMIT (8ULL << 32)
/* No RTT in this round. */
#define HYSTART_NO_RTT (~0u)

/* The window, q32 segments. */
struct cubic_window {
	__u64 cwnd;
	__u64 ssthresh; /* CUBIC_INFINITE = none yet */
};

/* The connection, or the part of the path that a window is for. */
struct cubic_path {
	__u64 now; /* ns */
	__u32 mss, srtt_us;
	__u32 sent;      /* segments since the connection began, wraps */
	__u32 in_flight; /* of these */
	__u32 cwnd_limited;
	__u32 paced;     /* what is sent is spaced */
};

struct hystart {
	__u64 round_start, last_ack; /* ns */
	__u32 round_end;             /* segments sent when the round began */
	__u32 round_min_us, last_round_min_us;
	__u32 samples;
	__u32 baseline_us, rounds;   /* of conservative slow start */
	__u8 kind;                   /* enum hystart_kind */
	__u8 found;
	__u8 conservative;
	__u8 unused[5];
};

struct cubic {
	__u64 epoch;  /* ns; valid if has_epoch */
	__u64 last_ms;
	__u64 k;      /* 2^-20 s */
	__u64 est_acked;
	__u64 w_est;
	__u64 origin;
	__u32 w_max;  /* segments; 0 = none */
	__u32 min_delay_us;
	__u32 cnt, counter;
	__u32 last_cwnd;
	__u32 has_epoch;
	struct hystart hystart;
};

static __always_inline int cubic_in_slow_start(const struct cubic_window *w)
{
	return w->cwnd < w->ssthresh;
}

/* -- HyStart -- */

static __always_inline void hystart_begin_round(struct hystart *h, const struct cubic_path *p)
{
	h->round_end = p->sent;
	h->round_start = p->now;
	h->last_ack = p->now;
	h->round_min_us = HYSTART_NO_RTT;
	h->samples = 0;
}

/* Forgets everything: at the start, after a timeout, on another path. */
static __always_inline void hystart_reset(struct hystart *h, const struct cubic_path *p)
{
	h->found = 0;
	h->last_round_min_us = HYSTART_NO_RTT;
	h->conservative = 0;
	hystart_begin_round(h, p);
}

static __always_inline int hystart_round_is_over(const struct hystart *h, const struct cubic_path *p)
{
	return (__s32)(p->sent - p->in_flight - h->round_end) > 0;
}

/* The RTT from which on there is a queue, in ns: with the rise of an RTT that is not yet one. */
static __always_inline __u64 hystart_risen(__u32 delay_us)
{
	__u64 delay = delay_us * NS_PER_US;

	return delay + min_u64(max_u64(delay / 8, HYSTART_LEAST_RISE), HYSTART_MOST_RISE);
}

/* What aggregation may add to a train (hystart_ack_delay), ns: 2^18 bytes at 2 or 1.2 windows per RTT. */
static __always_inline __u64 hystart_ack_delay(const struct cubic_path *p, const struct cubic_window *w)
{
	/* 2^24 us times 10^4 times 2^18 below 2^56; tenths of 2^20 segments of 2^16 bytes below 2^41. */
	__u64 tenths = w->cwnd < w->ssthresh >> 1 ? 20 : 12;
	__u64 window = tenths * min_u64(w->cwnd >> 24, 1ULL << 28) * (p->mss & 0xffff);

	return min_u64(bounded_rtt(p->srtt_us) * (10000 * HYSTART_ACK_DELAY_BYTES) / max_u64(window >> 8, 1), HYSTART_MAX_ACK_DELAY);
}

static __always_inline void hystart_classic(struct hystart *h, const struct cubic_path *p, struct cubic_window *w, __u32 rtt_us, __u32 path_us)
{
	__u64 threshold;

	if (hystart_round_is_over(h, p))
		hystart_begin_round(h, p);
	if (w->cwnd < HYSTART_LOW_WINDOW)
		return;
	if (elapsed_ns(p->now, h->last_ack) <= HYSTART_TRAIN_GAP) {
		h->last_ack = p->now;
		threshold = path_us * NS_PER_US + hystart_ack_delay(p, w);
		if (!p->paced)
			threshold /= 2;
		if (elapsed_ns(p->now, h->round_start) > threshold)
			h->found = 1;
	}
	h->round_min_us = min_u32(h->round_min_us, rtt_us);
	if (h->samples < HYSTART_SAMPLES)
		h->samples++;
	else if (h->round_min_us * NS_PER_US > hystart_risen(path_us))
		h->found = 1;
	if (h->found)
		w->ssthresh = w->cwnd;
}

static __always_inline void hystart_plus_plus(struct hystart *h, const struct cubic_path *p, struct cubic_window *w, __u32 rtt_us)
{
	if (hystart_round_is_over(h, p)) {
		h->last_round_min_us = h->round_min_us;
		hystart_begin_round(h, p);
		if (h->conservative && ++h->rounds >= HYSTART_CSS_ROUNDS) {
			h->conservative = 0;
			h->found = 1;
			w->ssthresh = w->cwnd;
			return;
		}
	}
	h->round_min_us = min_u32(h->round_min_us, rtt_us);
	h->samples++;
	if (h->samples < HYSTART_SAMPLES)
		return;
	if (!h->conservative) {
		if (h->last_round_min_us != HYSTART_NO_RTT && h->round_min_us * NS_PER_US >= hystart_risen(h->last_round_min_us)) {
			h->conservative = 1;
			h->baseline_us = h->round_min_us;
			h->rounds = 0;
		}
	} else if (h->round_min_us < h->baseline_us) {
		h->conservative = 0; /* the rise was jitter: slow start goes on */
	}
}

/* -- CUBIC -- */

/* A fresh one; its round begins with cubic_start. */
static __always_inline void cubic_make(struct cubic *c, __u32 kind)
{
	__builtin_memset(c, 0, sizeof(*c));
	c->cnt = CUBIC_MIN_CNT;
	c->hystart.kind = kind;
	c->hystart.round_min_us = HYSTART_NO_RTT;
	c->hystart.last_round_min_us = HYSTART_NO_RTT;
}

static __always_inline void cubic_start(struct cubic *c, const struct cubic_path *p)
{
	hystart_reset(&c->hystart, p);
}

/* Slow start ends in this way from now on. */
static __always_inline void cubic_use_hystart(struct cubic *c, const struct cubic_path *p, __u32 kind)
{
	if (c->hystart.kind == kind)
		return;
	c->hystart.kind = kind;
	hystart_reset(&c->hystart, p);
}

/* Forgets everything (bictcp_reset). */
static __always_inline void cubic_reset(struct cubic *c, const struct cubic_path *p)
{
	hystart_reset(&c->hystart, p);
	c->w_max = 0;
	c->min_delay_us = 0;
	c->has_epoch = 0;
	c->last_cwnd = 0;
	c->last_ms = 0;
	c->counter = 0;
}

/* Forgets the RTT of the old path. */
static __always_inline void cubic_path_change(struct cubic *c, const struct cubic_path *p)
{
	c->min_delay_us = 0;
	hystart_reset(&c->hystart, p);
}

/* Shifts the epoch by an idle time: time without growth is not on the curve. */
static __always_inline void cubic_idle(struct cubic *c, __u64 now, __u64 idle)
{
	if (c->has_epoch)
		c->epoch = min_u64(c->epoch + min_u64(idle, now), now);
}

/* Cube root, cut off; without branches, of which the verifier would follow every combination. */
ARITHMETIC __u64 cubic_root(__u64 n)
{
	__u64 root = 0, probe, fits;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		probe = root | 1ULL << bit;
		/* Below 2^63 both. */
		fits = (probe * probe * probe - n - 1) >> 63;
		root |= fits << bit;
	}
	return root;
}

/* K = cbrt((W_max - cwnd) / C) in 2^-20 s (RFC 9438, equation 2). */
static __always_inline __u64 cubic_k(__u32 distance)
{
	__u64 cubed = (__u64)min_u32(distance, FLOW_MOST_CWND) * 1024;
	__u64 whole = cubed / CUBIC_C;

	__u64 n = (cubed << 30) / CUBIC_C << 9;
	__u32 shift = 7;

	/* As many bits as fit 62: of a third of them the root is exact. */
	if (whole < 1ULL << 2) {
		n = (cubed << 50) / CUBIC_C << 10;
		shift = 0;
	} else if (whole < 1ULL << 11) {
		n = (cubed << 41) / CUBIC_C << 10;
		shift = 3;
	}
	return cubic_root(n) << shift;
}

/* The curve's window, the smallest RTT ahead of `elapsed` ns, in whole segments. */
static __always_inline __u64 cubic_target(const struct cubic *c, __u64 elapsed)
{
	__u64 ns = min_u64(elapsed, 3600 * NS_PER_S) + c->min_delay_us * NS_PER_US;
	/* ns times 2^20 over 10^9: 2^42 times 2^11 over 5^9, from which nothing is lost. */
	__u64 t = ns * 2048 / 1953125;
	int below = t < c->k;
	__u64 away = min_u64(below ? c->k - t : t - c->k, CUBIC_FAR), offset;

	/* 2^28 squared, over 2^20; 2^36 times 2^28, over 2^20; then C, and whole segments: cut off, as the cast of a float is. */
	offset = (away * away >> 20) * away >> 20;
	offset = offset * CUBIC_C >> 30;
	if (below)
		return c->origin > offset ? c->origin - offset : 0;
	return c->origin + offset;
}

/* Works out `cnt` again (bictcp_update). */
ARITHMETIC_GLOBAL int cubic_update(struct cubic *c, __u64 now, __u32 cwnd, __u32 acked)
{
	__u64 ms = now / NS_PER_MS, target, per_segment, gained;

	if (!c)
		return 0;
	c->est_acked += acked;
	if (c->last_cwnd == cwnd && elapsed_ns(ms, c->last_ms) <= CUBIC_UPDATE_MS)
		return 0;
	if (!c->has_epoch || ms != c->last_ms) {
		c->last_cwnd = cwnd;
		c->last_ms = ms;
		if (!c->has_epoch) {
			c->est_acked = acked;
			c->has_epoch = 1;
			c->epoch = now;
			c->w_est = cwnd;
			c->k = c->w_max > cwnd ? cubic_k(c->w_max - cwnd) : 0;
			c->origin = max_u32(c->w_max, cwnd);
		}
		target = cubic_target(c, elapsed_ns(now, c->epoch));
		c->cnt = target > cwnd ? cwnd / max_u64(target - cwnd, 1) : CUBIC_IDLE_WINDOWS * cwnd;
		if (!c->w_max)
			c->cnt = min_u32(c->cnt, CUBIC_UNKNOWN_CNT);
	}
	/* What was ACKed is credited to W_est; growth is at least that of a Reno flow that is ahead. */
	per_segment = max_u64((__u64)cwnd * CUBIC_BETA_SCALE / 8, 1);
	if (c->est_acked > per_segment) {
		gained = (c->est_acked - 1) / per_segment;
		c->est_acked -= gained * per_segment;
		c->w_est += gained;
	}
	if (c->w_est > cwnd)
		c->cnt = min_u32(c->cnt, cwnd / max_u64(c->w_est - cwnd, 1));
	c->cnt = max_u32(c->cnt, CUBIC_MIN_CNT);
	return 0;
}

/* An RTT in us, not 0, unless the epoch is in its first second. */
ARITHMETIC_GLOBAL int cubic_sample(struct cubic *c, const struct cubic_path *p, struct cubic_window *w, __u32 rtt_us)
{
	struct hystart *h;

	if (!c || !p || !w || (c->has_epoch && elapsed_ns(p->now, c->epoch) < CUBIC_RECOVERING))
		return 0;
	rtt_us = max_u32(bounded_rtt(rtt_us), 1);
	if (!c->min_delay_us || rtt_us < c->min_delay_us)
		c->min_delay_us = rtt_us;
	h = &c->hystart;
	if (!cubic_in_slow_start(w))
		return 0;
	if (h->kind == HYSTART_CLASSIC && !h->found)
		hystart_classic(h, p, w, rtt_us, c->min_delay_us);
	else if (h->kind == HYSTART_PLUS_PLUS && w->ssthresh != CUBIC_INFINITE)
		h->conservative = 0;
	else if (h->kind == HYSTART_PLUS_PLUS)
		hystart_plus_plus(h, p, w, rtt_us);
	return 0;
}

/* Slow start by `acked` q32 segments; what is left over for congestion avoidance. */
static __always_inline __u64 cubic_slow_start(struct cubic_window *w, __u64 acked)
{
	__u64 grown = min_u64(w->cwnd + acked, max_u64(w->ssthresh, w->cwnd));
	__u64 used = grown - w->cwnd;

	w->cwnd = grown;
	return acked - used;
}

/* Segments to grow by. */
ARITHMETIC_GLOBAL int cubic_ack(struct cubic *c, const struct cubic_path *p, struct cubic_window *w, __u32 segments)
{
	__u64 acked = (__u64)min_u32(segments, FLOW_MOST_CWND) << 32;
	__u32 whole, gained;

	if (!c || !p || !w || !p->cwnd_limited)
		return 0;
	if (cubic_in_slow_start(w)) {
		if (c->hystart.kind == HYSTART_PLUS_PLUS && w->ssthresh == CUBIC_INFINITE) {
			if (!p->paced)
				acked = min_u64(acked, HYSTART_UNPACED_LIMIT);
			if (c->hystart.conservative)
				acked >>= HYSTART_CSS_SHIFT;
		}
		acked = cubic_slow_start(w, acked);
	}
	whole = acked >> 32;
	if (whole) {
		cubic_update(c, p->now, min_u64(w->cwnd >> 32, FLOW_MOST_CWND), whole);
		/* One segment per `cnt` ACKed (tcp_cong_avoid_ai). */
		if (c->counter >= c->cnt) {
			c->counter = 0;
			w->cwnd += 1ULL << 32;
		}
		c->counter += whole;
		if (c->counter >= c->cnt) {
			gained = c->counter / max_u32(c->cnt, 1);
			w->cwnd += (__u64)gained << 32;
			c->counter -= gained * c->cnt;
		}
	}
	w->cwnd = min_u64(w->cwnd, (__u64)FLOW_MOST_CWND << 32);
	return 0;
}

/* Ends the epoch and sets W_max (cubictcp_recalc_ssthresh): the threshold for this window, q32. */
static __always_inline __u64 cubic_recalc_ssthresh(struct cubic *c, __u64 window)
{
	__u64 cwnd = min_u64(window >> 32, FLOW_MOST_CWND);

	c->has_epoch = 0;
	c->counter = 0;
	/* Fast convergence: (1 + beta) / 2 of it. */
	c->w_max = cwnd < c->w_max ? cwnd * (1024 + CUBIC_BETA) / 2048 : cwnd;
	return max_u64(cwnd * CUBIC_BETA / 1024 << 32, CUBIC_MIN_SSTHRESH);
}

/* The threshold after a loss, mark or timeout; `first` of an episode. */
static __always_inline __u64 cubic_congestion(struct cubic *c, const struct cubic_path *p, const struct cubic_window *w, int first, int timeout)
{
	__u64 ssthresh = first ? cubic_recalc_ssthresh(c, w->cwnd) : max_u64(w->ssthresh, CUBIC_MIN_SSTHRESH);

	if (timeout)
		cubic_reset(c, p);
	return ssthresh;
}

/* One event as a flat structure: for a run beside logic/cc, natively or by a `syscall` program. */
#define CUBIC_ON_START 0
#define CUBIC_ON_SAMPLE 1
#define CUBIC_ON_LOSS 2
#define CUBIC_ON_TIMEOUT 3
#define CUBIC_ON_ACK 4
#define CUBIC_ON_IDLE 5

struct cubic_call {
	struct cubic state;
	struct cubic_path path;
	struct cubic_window window;
	__u64 idle;
	__u64 answer;    /* CUBIC_ON_LOSS, CUBIC_ON_TIMEOUT: written */
	__u32 event;     /* CUBIC_ON_START ... */
	__u32 kind;      /* CUBIC_ON_START: enum hystart_kind */
	__u32 acked, rtt_us;
	__u32 first;
	__u32 unused;
};

ARITHMETIC_GLOBAL int cubic_call_step(struct cubic_call *call)
{
	if (!call)
		return 0;
	switch (call->event) {
	case CUBIC_ON_START:
		cubic_make(&call->state, call->kind);
		cubic_start(&call->state, &call->path);
		break;
	case CUBIC_ON_SAMPLE:
		cubic_sample(&call->state, &call->path, &call->window, call->rtt_us);
		break;
	case CUBIC_ON_LOSS:
	case CUBIC_ON_TIMEOUT:
		call->answer = cubic_congestion(&call->state, &call->path, &call->window, call->first, call->event == CUBIC_ON_TIMEOUT);
		break;
	case CUBIC_ON_ACK:
		cubic_ack(&call->state, &call->path, &call->window, call->acked);
		break;
	case CUBIC_ON_IDLE:
		cubic_idle(&call->state, call->path.now, call->idle);
		break;
	}
	return 0;
}

#endif
