/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * C2TCP over the kernel's own CUBIC or Reno. The arithmetic is in arithmetic/c2tcp.h; here are the operations that the kernel calls.
 *
 * The kernel tells the parent first, then the detector sees the sample of the RTT: as in the simulator, and as in the authors' patch.
 */
#include "kernel.h"
#include "arithmetic/c2tcp.h"

#include "choose.h"
#include "socket.h"

#define PARENT_RENO 1

/* What options set; the loader and `ranpace kernel set` write it. */
struct c2tcp_settings settings SEC(".data.settings");
__u32 parent SEC(".data.settings");
OPTIONS_TEXT;

STATE_OF(struct c2tcp_state);

SEC("struct_ops")
void BPF_PROG(c2tcp_init, struct sock *sk)
{
    if (parent != PARENT_RENO)
        cubictcp_init(sk);
    begin_state(sk);
    if (settings.pace)
        sk->sk_pacing_status = SK_PACING_NEEDED;
}

static __always_inline __u32 parents_ssthresh(struct sock *sk)
{
    return parent == PARENT_RENO ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
}

/* Whether the kernel reduces the window after a loss or a mark. */
static __always_inline bool is_reducing(const struct flow *flow)
{
    return flow->ca_state == FLOW_RECOVERY || flow->ca_state == FLOW_CWR;
}

SEC("struct_ops")
void BPF_PROG(c2tcp_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct c2tcp_state *state;
    struct flow flow = {};
    struct ack ack = {};

    mend_window(tp);
    if (parent != PARENT_RENO)
        cubictcp_acked(sk, sample);
    if (sample->rtt_us <= 0)
        return;
    state = state_of(sk);
    if (!state)
        return;
    flow_of_event(&flow, sk);
    ack.rtt_us = sample->rtt_us;
    ack.delivered = sample->pkts_acked;
    switch (c2tcp_sample(&settings, state, &flow, &ack)) {
    case C2TCP_CUT:
        c2tcp_cut(&settings, state, &flow, parents_ssthresh(sk));
        /*
         * During a reduction the kernel makes the window by ssthresh (tcp_cwnd_reduction): it writes cwnd with this very acknowledgement,
         * and sends what ssthresh over the window before the loss allows of all that was delivered since. A larger ssthresh would send
         * a burst, from whose window the next cut would take a still larger one. So it may only fall.
         */
        if (!is_reducing(&flow) || flow.ssthresh < tp->snd_ssthresh)
            tp->snd_ssthresh = flow.ssthresh;
        set_cwnd(tp, flow.cwnd);
        tp->snd_cwnd_cnt = 0;
        break;
    case C2TCP_BOOST:
        set_cwnd(tp, flow.cwnd);
        break;
    }
}

SEC("struct_ops")
void BPF_PROG(c2tcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
    mend_window(tcp_sk(sk));
    if (parent == PARENT_RENO)
        tcp_reno_cong_avoid(sk, ack, acked);
    else
        cubictcp_cong_avoid(sk, ack, acked);
}

SEC("struct_ops")
__u32 BPF_PROG(c2tcp_ssthresh, struct sock *sk)
{
    return parents_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(c2tcp_set_state, struct sock *sk, __u8 new_state)
{
    if (parent != PARENT_RENO)
        cubictcp_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(c2tcp_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    if (parent != PARENT_RENO)
        cubictcp_cwnd_event(sk, event);
}

SEC("struct_ops")
__u32 BPF_PROG(c2tcp_undo_cwnd, struct sock *sk)
{
    return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)c2tcp_init,
    .pkts_acked = (void *)c2tcp_acked,
    .cong_avoid = (void *)c2tcp_cong_avoid,
    .ssthresh = (void *)c2tcp_ssthresh,
    .set_state = (void *)c2tcp_set_state,
    .cwnd_event = (void *)c2tcp_cwnd_event,
    .undo_cwnd = (void *)c2tcp_undo_cwnd,
    .name = "c2tcp",
};

SHOW_SOCKETS()
{
    BPF_SEQ_PRINTF(seq, " alpha=%llu/4294967296 setpoint_us=%llu condition=%u bads=%u", s->alpha, s->setpoint / 1000, s->condition,
                   s->bads);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
