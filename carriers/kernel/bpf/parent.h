/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the kernel does by itself around a control with `cong_avoid`, and leaves to one with `cong_control`: the reduction of the window
 * in recovery (PRR, RFC 6937; tcp_cwnd_reduction) and the pace (tcp_update_pacing_rate). For controls with `cong_control` that leave
 * the window to a parent of the kernel's, always or at times.
 */
#ifndef RANPACE_PARENT_H
#define RANPACE_PARENT_H

#include "arithmetic/reduction.h"
#include "socket.h"

/* Flags of an acknowledgement, as the kernel passes them (net/ipv4/tcp_input.c). */
#define FLAG_DATA_ACKED 0x04
#define FLAG_DATA_SACKED 0x20
#define FLAG_ECE 0x40
#define FLAG_SND_UNA_ADVANCED 0x400

/* The parent answered a sign of congestion with a threshold, for this window. */
static __always_inline void begin_reduction(struct tcp_sock *tp, struct reduction *r)
{
    r->prior_cwnd = tp->snd_cwnd;
    r->delivered = 0;
    r->sent = tp->prr_out;
}

static __always_inline __u8 ca_state_of(const struct sock *sk)
{
    return BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
}

/* Whether a reduction has the window. The kernel's state alone does not say so: a parent that gets the window in the middle of a recovery,
 * without a sign of congestion of its own, has begun none, and grows instead.
 */
static __always_inline bool is_reducing(const struct sock *sk, const struct reduction *r)
{
    __u8 ca_state = ca_state_of(sk);

    return r && r->prior_cwnd && (ca_state == FLOW_RECOVERY || ca_state == FLOW_CWR);
}

/* An acknowledgement during the reduction. */
static __always_inline void reduce(struct tcp_sock *tp, struct reduction *r, int flag, const struct rate_sample *rs)
{
    set_cwnd(tp, reduction_window(r, tp->snd_cwnd, tp->snd_ssthresh, in_flight(tp), tp->prr_out, rs->acked_sacked,
                                  flag & FLAG_SND_UNA_ADVANCED, rs->losses > 0));
}

/* Recovery is over: the window is at the threshold (tcp_end_cwnd_reduction). */
static __always_inline void end_reduction(struct tcp_sock *tp, struct reduction *r, __u8 old_state)
{
    if (r->prior_cwnd && old_state != FLOW_LOSS && tp->snd_ssthresh < FLOW_NO_SSTHRESH)
        set_cwnd(tp, tp->snd_ssthresh);
    r->prior_cwnd = 0;
}

/* A reduction was a mistake: the window of before. The threshold is the kernel's to bring back; end_reduction follows it no more. */
static __always_inline __u32 undo_reduction(struct sock *sk, struct reduction *r)
{
    if (r)
        r->prior_cwnd = 0;
    return tcp_reno_undo_cwnd(sk);
}

/* The window is halved at most so often: it is at most CWND_MAX. */
#define MOST_HALVINGS 20

/* Data are sent again after an idle time (CA_EVENT_TX_START): half of the window for each timeout that passed (tcp_cwnd_restart). */
static __always_inline void parent_restart(struct sock *sk)
{
    struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
    struct tcp_sock *tp = tcp_sk(sk);
    __u32 idle = (__u32)bpf_jiffies64() - tp->lsndtime, cwnd = tp->snd_cwnd, restart = min_u32(cwnd, INITIAL_WINDOW), rto = icsk->icsk_rto;

    if (!rto || (__s32)idle <= (__s32)rto || ca_state_of(sk) >= FLOW_CWR ||
        !BPF_CORE_READ(sk, __sk_common.skc_net.net, ipv4.sysctl_tcp_slow_start_after_idle))
        return;
    tp->snd_ssthresh = max_u32(tp->snd_ssthresh, (cwnd >> 1) + (cwnd >> 2));
    for (int i = 0; i < MOST_HALVINGS && idle > rto && cwnd > restart; i++) {
        idle -= rto;
        cwnd >>= 1;
    }
    set_cwnd(tp, max_u32(cwnd, restart));
}

/* The pace that the kernel would set: twice the window per RTT in slow start, 1.2 times afterwards (tcp_pacing_ss_ratio, _ca_ratio). */
static __always_inline void parent_pace(struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    __u64 rate;

    if (!tp->srtt_us)
        return;
    rate = (__u64)tp->mss_cache * max_u32(tp->snd_cwnd, tp->packets_out) * 8 * US_PER_S / tp->srtt_us;
    rate = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 2 * rate : rate + rate / 5;
    sk->sk_pacing_rate = min_u64(rate, sk->sk_max_pacing_rate);
}

/* Whether segments leave at the socket's pace. The kernel's own controls set a rate and leave that to the queue (fq): a control that needs it
 * has the kernel pace without one, and `paced` keeps that it does.
 */
static __always_inline void set_paced(struct sock *sk, __u32 *paced, bool is_wanted)
{
    if (is_wanted && sk->sk_pacing_status == SK_PACING_NONE) {
        sk->sk_pacing_status = SK_PACING_NEEDED;
        *paced = 1;
    } else if (!is_wanted && *paced) {
        sk->sk_pacing_status = SK_PACING_NONE;
        *paced = 0;
    }
}

#endif
