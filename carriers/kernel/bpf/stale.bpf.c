/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A control that leaves to its successor on a socket what the kernel makes of operations whose programs it has left out: a window and a
 * threshold that are an old word of its stack. For tests.
 */
#include "kernel.h"

SEC("struct_ops")
void BPF_PROG(stale_init, struct sock *sk)
{
    tcp_sk(sk)->snd_cwnd = 0x822028e5;
    tcp_sk(sk)->snd_ssthresh = 0x822028e5;
}

SEC("struct_ops")
void BPF_PROG(stale_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
}

SEC("struct_ops")
__u32 BPF_PROG(stale_ssthresh, struct sock *sk)
{
    return tcp_sk(sk)->snd_ssthresh;
}

SEC("struct_ops")
__u32 BPF_PROG(stale_undo_cwnd, struct sock *sk)
{
    return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops stale = {
    .init = (void *)stale_init,
    .cong_control = (void *)stale_cong_control,
    .ssthresh = (void *)stale_ssthresh,
    .undo_cwnd = (void *)stale_undo_cwnd,
    .name = "ranpace_stale",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
