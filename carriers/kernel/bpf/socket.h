/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What every control has: the state that each socket carries, the socket as arithmetic sees it, which sockets of a control group are
 * meant, and the program that prints sockets.
 */
#ifndef RANPACE_SOCKET_H
#define RANPACE_SOCKET_H

#include "kernel.h"
#include "arithmetic/flow.h"

/* Written as the map `state`, one TYPE for each socket; it goes with the socket. */
#define STATE_OF(TYPE)                                                                                                                \
    struct {                                                                                                                          \
        __uint(type, BPF_MAP_TYPE_SK_STORAGE);                                                                                        \
        __uint(map_flags, BPF_F_NO_PREALLOC);                                                                                         \
        __type(key, int);                                                                                                             \
        __type(value, TYPE);                                                                                                          \
    } state SEC(".maps");                                                                                                             \
    typedef TYPE state_type;                                                                                                          \
    static __always_inline TYPE *state_of(struct sock *sk)                                                                            \
    {                                                                                                                                 \
        return bpf_sk_storage_get(&state, sk, 0, 0);                                                                                  \
    }                                                                                                                                 \
    /* A state of zeros, where memory allows; a socket without one is left to the parent. */                                          \
    static __always_inline TYPE *begin_state(struct sock *sk)                                                                         \
    {                                                                                                                                 \
        bpf_sk_storage_delete(&state, sk);                                                                                            \
        return bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);                                                        \
    }

/* The options as they were written, for `ranpace kernel list`, beside the settings that they make. */
#define OPTIONS_TEXT                                                                                                                  \
    char options[192] SEC(".data.settings");                                                                                          \
    __u32 layout SEC(".data.settings") /* of this section: another version of the loader must not write it */

/* Limit of any window that is written, in segments: what the kernel's own controls never reach either. */
#define CWND_MAX (1 << 20)

static __always_inline void set_cwnd(struct tcp_sock *tp, __u32 cwnd)
{
    __u32 clamp = tp->snd_cwnd_clamp < CWND_MAX ? tp->snd_cwnd_clamp : CWND_MAX;

    if (cwnd > clamp)
        cwnd = clamp;
    tp->snd_cwnd = cwnd ? cwnd : 1;
}

/* The initial window (RFC 6928); a route may set another, which is not seen here. */
#define INITIAL_WINDOW 10

/* Replaces a window and a threshold that no control writes. A kernel that leaves programs out at times takes what lies on its stack for what
 * `undo_cwnd` and `ssthresh` did not return (docs/kernel.md). The window becomes the one of before the reduction, which an undo brings
 * back, and the threshold CUBIC's for that window.
 */
static __always_inline void mend_window(struct tcp_sock *tp)
{
    __u32 before = tp->prior_cwnd - 1 < CWND_MAX ? tp->prior_cwnd : INITIAL_WINDOW;

    if (tp->snd_cwnd - 1 >= CWND_MAX)
        set_cwnd(tp, before);
    if (tp->snd_ssthresh > FLOW_NO_SSTHRESH)
        tp->snd_ssthresh = max_u32(before * 7 / 10, 2);
}

/* The socket as arithmetic sees it at this time, ns. */
static __always_inline void flow_at(struct flow *flow, struct sock *sk, __u64 now)
{
    struct tcp_sock *tp = tcp_sk(sk);

    flow->now = now;
    flow->mss = tp->mss_cache;
    flow->srtt_us = tp->srtt_us >> 3;
    flow->min_rtt_us = tp->rtt_min.s[0].v == ~0U ? 0 : tp->rtt_min.s[0].v;
    flow->in_flight = in_flight(tp);
    flow->delivered = tp->delivered;
    flow->lost = tp->lost;
    flow->cwnd = tp->snd_cwnd;
    flow->ssthresh = tp->snd_ssthresh;
    flow->ca_state = BPF_CORE_READ_BITFIELD((struct inet_connection_sock *)sk, icsk_ca_state);
    flow->cwnd_limited = cwnd_limited(tp);
    flow->app_limited = tp->app_limited != 0;
    flow->wire = tp->mss_cache + tp->tcp_header_len + (sk->__sk_common.skc_family == AF_INET6 ? 40 : 20);
}

/* The same, now. */
static __always_inline void flow_of(struct flow *flow, struct sock *sk)
{
    flow_at(flow, sk, bpf_ktime_get_ns());
}

/* The same at the time of the acknowledgement, timer or transmission that is being worked on. The kernel has just read its clock for
 * it, the one of bpf_ktime_get_ns; to read it again takes as long as all the rest.
 */
static __always_inline void flow_of_event(struct flow *flow, struct sock *sk)
{
    flow_at(flow, sk, tcp_sk(sk)->tcp_clock_cache);
}

/* Which sockets of a control group take the control; the loader writes it. */
struct choice {
    char name[16];
    __u32 family;      /* AF_INET or AF_INET6 where only peers of a prefix are meant, 0 for all */
    __u32 prefix_bits; /* of `prefix` */
    __u32 prefix[4];   /* network byte order, the first word alone for AF_INET */
    __u32 own;         /* 1 = only sockets whose program has chosen this very control by TCP_CONGESTION */
};

struct choice choice SEC(".data.choice");

static __always_inline __u32 mask_of(__u32 bits)
{
    return bits == 0 ? 0 : bits >= 32 ? ~0U : bpf_htonl(~0U << (32 - bits));
}

/* Whether the program of the socket has chosen this control itself. */
static __always_inline bool has_chosen(struct bpf_sock_ops *ops)
{
    char name[sizeof(choice.name)] = {};

    if (bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
        return false;
    for (unsigned int i = 0; i < sizeof(name); i++) {
        if (name[i] != choice.name[i])
            return false;
        if (!name[i])
            break;
    }
    return true;
}

static __always_inline bool is_chosen(struct bpf_sock_ops *ops)
{
    __u32 remote[4] = {ops->remote_ip6[0], ops->remote_ip6[1], ops->remote_ip6[2], ops->remote_ip6[3]};
    bool v4 = ops->family == AF_INET || (remote[0] == 0 && remote[1] == 0 && remote[2] == bpf_htonl(0xffff));
    __u32 bits = choice.prefix_bits;

    if (choice.own)
        return has_chosen(ops);
    if (choice.family == 0)
        return true;
    if (choice.family == AF_INET)
        /* A listener of both families sees IPv4 peers as AF_INET6, with the address in the last word. */
        return v4 && !((ops->remote_ip4 ^ choice.prefix[0]) & mask_of(bits));
    if (v4)
        return false;
    for (int i = 0; i < 4; i++) {
        if ((remote[i] ^ choice.prefix[i]) & mask_of(bits))
            return false;
        bits = bits > 32 ? bits - 32 : 0;
    }
    return true;
}

/*
 * Prints the sockets of the reader's network namespace that have this control, a line each: what `ranpace kernel show` reads, and
 * `cat` on the pinned iterator too. The body that follows the macro adds the control's own figures, of the state `s`.
 */
#define SHOW_SOCKETS()                                                                                                               \
    static __always_inline void show_state(struct seq_file *seq, struct sock_common *common, state_type *s);                          \
    SEC("iter/tcp")                                                                                                                   \
    int show(struct bpf_iter__tcp *ctx)                                                                                               \
    {                                                                                                                                 \
        struct sock_common *common = ctx->sk_common;                                                                                  \
        struct seq_file *seq = ctx->meta->seq;                                                                                        \
        struct tcp_sock *tp;                                                                                                          \
        state_type *s;                                                                                                                \
                                                                                                                                      \
        if (!common || common->skc_state != TCP_ESTABLISHED)                                                                          \
            return 0;                                                                                                                 \
        s = bpf_sk_storage_get(&state, common, 0, 0);                                                                                 \
        tp = bpf_skc_to_tcp_sock(common);                                                                                             \
        if (!s || !tp)                                                                                                                \
            return 0;                                                                                                                 \
        show_socket(seq, common, tp);                                                                                                 \
        show_state(seq, common, s);                                                                                                   \
        BPF_SEQ_PRINTF(seq, "\n");                                                                                                    \
        return 0;                                                                                                                     \
    }                                                                                                                                 \
    static __always_inline void show_state(struct seq_file *seq, struct sock_common *common, state_type *s)

static __always_inline void show_socket(struct seq_file *seq, struct sock_common *common, struct tcp_sock *tp)
{
    __u32 port = bpf_ntohs(common->skc_dport);

    if (common->skc_family == AF_INET)
        BPF_SEQ_PRINTF(seq, "local=%pI4:%u peer=%pI4:%u", &common->skc_rcv_saddr, common->skc_num, &common->skc_daddr, port);
    else
        BPF_SEQ_PRINTF(seq, "local=[%pI6c]:%u peer=[%pI6c]:%u", &common->skc_v6_rcv_saddr, common->skc_num, &common->skc_v6_daddr,
                       port);
    BPF_SEQ_PRINTF(seq, " cwnd=%u ssthresh=%u in_flight=%u mss=%u srtt_us=%u rtt_min_us=%u", tp->snd_cwnd, tp->snd_ssthresh,
                   in_flight(tp), tp->mss_cache, tp->srtt_us >> 3, tp->rtt_min.s[0].v);
    BPF_SEQ_PRINTF(seq, " pacing_Bps=%lu delivered=%u lost=%u", BPF_CORE_READ((struct sock *)tp, sk_pacing_rate), tp->delivered,
                   tp->lost);
}

#endif
