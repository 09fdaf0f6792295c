/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Programs of the kinds that controls have, which do nothing of their own: what a call costs whatever it does, taken off in the
 * example `costs`. `over_cubic` is the kernel's CUBIC behind struct_ops; `nothing` has a window that stays as it is.
 */
#include "kernel.h"

SEC("struct_ops")
void BPF_PROG(empty_init, struct sock *sk)
{
    cubictcp_init(sk);
}

SEC("struct_ops")
void BPF_PROG(empty_acked, struct sock *sk, const struct ack_sample *sample)
{
    cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(empty_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
void BPF_PROG(empty_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
}

SEC("struct_ops")
__u32 BPF_PROG(empty_ssthresh, struct sock *sk)
{
    return cubictcp_recalc_ssthresh(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(empty_kept, struct sock *sk)
{
    return tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(empty_wide, struct sock *sk)
{
    tcp_sk(sk)->snd_cwnd = 1000;
}

SEC("struct_ops")
void BPF_PROG(empty_set_state, struct sock *sk, __u8 new_state)
{
    cubictcp_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(empty_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
__u32 BPF_PROG(empty_min_tso_segs, struct sock *sk)
{
    return 2;
}

SEC("struct_ops")
__u32 BPF_PROG(empty_undo_cwnd, struct sock *sk)
{
    return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops over_cubic = {
    .init = (void *)empty_init,
    .pkts_acked = (void *)empty_acked,
    .cong_avoid = (void *)empty_cong_avoid,
    .ssthresh = (void *)empty_ssthresh,
    .set_state = (void *)empty_set_state,
    .cwnd_event = (void *)empty_cwnd_event,
    .min_tso_segs = (void *)empty_min_tso_segs,
    .undo_cwnd = (void *)empty_undo_cwnd,
    .name = "ranpace_empty",
};

SEC(".struct_ops.link")
struct tcp_congestion_ops nothing = {
    .init = (void *)empty_wide,
    .cong_control = (void *)empty_cong_control,
    .ssthresh = (void *)empty_kept,
    .undo_cwnd = (void *)empty_undo_cwnd,
    .name = "ranpace_nothing",
};

/* Asks to be called for the headers of segments, which it leaves as they are. */
SEC("sockops")
int empty_sock_ops(struct bpf_sock_ops *ops)
{
    if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
        bpf_sock_ops_cb_flags_set(ops, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
    return 1;
}

SEC("cgroup_skb/ingress")
int empty_ingress(struct __sk_buff *skb)
{
    return 1;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
