/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What the client-driven controls share around their arithmetic: the operations of a sender that owns its window (cong_control), the
 * parent that it falls back to (the kernel's CUBIC), the receiver's half at the ingress of its control group, and the option.
 *
 * A program defines, before it includes this file:
 *   SENDER, SENDER_SETTINGS, SENDER_STEP   types and step of the sender (arithmetic/driven.h)
 *   SENDER_EVENT                           the step where the kind of the event is known
 *   SENDER_NOTES_REPORT                    a report, after which an acknowledgement is told
 *   CLIENT, CLIENT_SETTINGS                types of the receiver's half
 *   CLIENT_ON_DATA(client, settings, arrival)
 *   CLIENT_NEEDS_RTT                       if it reads the receiver's RTT of an arrival
 *   CLIENT_TAKE(client, settings)   bytes/s to be reported with the segment at hand; 0 = none
 *   NAME                                   of the control
 *
 * With cong_control the kernel neither reduces the window in recovery nor sets a pace: for the parent both are done here, as
 * tcp_cwnd_reduction (PRR, RFC 6937) and tcp_update_pacing_rate do.
 */
#ifndef RANPACE_CLIENT_DRIVEN_H
#define RANPACE_CLIENT_DRIVEN_H

#include "arithmetic/driven.h"
#include "option.h"
#include "parent.h"
#include "socket.h"

struct driven {
    SENDER sender;
    CLIENT client;
    struct link link;
    struct reduction reduction;
    struct event event; /* the stack has no room for it */
    __u32 began;        /* the control has been initialised */
};

SENDER_SETTINGS settings SEC(".data.settings");
CLIENT_SETTINGS client SEC(".data.settings");
OPTIONS_TEXT;

STATE_OF(struct driven);

/* The event at hand, in the state: an event of another socket may interrupt one that is handled from the backlog. */
static __always_inline struct event *new_event(struct sock *sk, struct driven *d)
{
    struct event *e = &d->event;

    e->flow.pacing = 0;
    flow_of_event(&e->flow, sk);
    e->rate = 0;
    e->lost = 0;
    return e;
}

/* Does what the sender asks of the parent after an event. */
static __always_inline void obey(struct sock *sk, struct driven *d, struct event *e)
{
    struct tcp_sock *tp = tcp_sk(sk);

    if (e->parent & PARENT_BEGINS) {
        tp->snd_ssthresh = e->flow.ssthresh;
        set_cwnd(tp, e->flow.cwnd);
        cubictcp_init(sk);
    }
    if ((e->parent & PARENT_ANSWERS) && !d->reduction.prior_cwnd) {
        begin_reduction(tp, &d->reduction);
        tp->snd_ssthresh = cubictcp_recalc_ssthresh(sk);
        e->flow.ssthresh = tp->snd_ssthresh;
    }
    if (!(e->parent & PARENT_HAS)) {
        d->reduction.prior_cwnd = 0;
        tp->snd_ssthresh = e->flow.ssthresh;
        set_cwnd(tp, e->flow.cwnd);
        if (e->flow.pacing)
            sk->sk_pacing_rate = e->flow.pacing;
    }
    e->flow.cwnd = tp->snd_cwnd;
}

/* Tells the sender, by the one function that has it all: for the events of an acknowledgement. */
static __always_inline void tell(struct sock *sk, struct driven *d, struct event *e, __u32 kind)
{
    e->kind = kind;
    SENDER_STEP(&d->sender, &settings, e);
    obey(sk, d, e);
}

/* Tells the sender of what is rare, by what that takes alone: the verifier reads each program for itself, and the whole of a sender in
 * each of them makes loading slow.
 */
static __always_inline void tell_rare(struct sock *sk, struct driven *d, struct event *e, __u32 kind)
{
    e->kind = kind;
    SENDER_EVENT(&d->sender, &settings, e, kind);
    obey(sk, d, e);
}

/* The parent's acknowledgement: the reduction, or its growth; and the pace that the kernel would set. */
static __always_inline void parent_acked(struct sock *sk, struct driven *d, __u32 ack, int flag, const struct rate_sample *rs)
{
    if (is_reducing(sk, &d->reduction))
        reduce(tcp_sk(sk), &d->reduction, flag, rs);
    else if (flag & FLAG_DATA_ACKED)
        cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
    parent_pace(sk);
}

SEC("struct_ops")
void BPF_PROG(driven_init, struct sock *sk)
{
    struct driven *d = bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    struct event *e;

    cubictcp_init(sk);
    sk->sk_pacing_status = SK_PACING_NEEDED;
    if (!d || d->began)
        return;
    e = new_event(sk, d);
    d->began = 1;
    /* It may have been idle for long: the kernel's last reading of its clock is no time to begin at. */
    e->flow.now = bpf_ktime_get_ns();
    tell_rare(sk, d, e, EVENT_START);
}

SEC("struct_ops")
void BPF_PROG(driven_acked, struct sock *sk, const struct ack_sample *sample)
{
    cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(driven_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct driven *d = state_of(sk);
    struct event *e;
    bool is_rate;

    mend_window(tp);
    if (!d) {
        /* No memory for a state: the parent's growth; driven_ssthresh reduces the window. */
        if (flag & FLAG_DATA_ACKED)
            cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
        return;
    }
    e = new_event(sk, d);
    if (d->link.consumed != d->link.reports && d->link.agreement.agreed) {
        d->link.consumed = d->link.reports;
        d->link.came = e->flow.now;
        e->rate = d->link.report;
        /* What it changes is written with the acknowledgement, unless something comes between. */
        if (rs->acked_sacked && rs->losses <= 0 && !(flag & FLAG_ECE))
            SENDER_NOTES_REPORT(&d->sender, &settings, e);
        else
            tell(sk, d, e, EVENT_REPORT);
    }
    e->ack.acked = rs->acked_sacked;
    e->ack.delivered = rs->acked_sacked;
    e->ack.bytes = rs->acked_sacked * tp->mss_cache;
    e->ack.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
    e->ack.one_way = tp->rx_opt.rcv_tsval - tp->rx_opt.rcv_tsecr;
    e->ack.has_one_way = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp);
    is_rate = rs->interval_us > 0 && rs->delivered > 0;
    e->ack.rate_delivered = is_rate ? rs->delivered : 0;
    e->ack.rate_interval_us = is_rate ? rs->interval_us : 0;
    e->ack.prior_delivered = rs->prior_delivered;
    e->ack.prior_in_flight = rs->prior_in_flight;
    e->ack.losses = rs->losses;
    e->ack.rate_app_limited = rs->is_app_limited;
    e->ack.ecn_echo = (flag & FLAG_ECE) != 0;
    /* Changes neither window nor pace by itself. */
    if (rs->acked_sacked)
        SENDER_EVENT(&d->sender, &settings, e, EVENT_SAMPLE);
    if (rs->losses > 0) {
        e->lost = rs->losses;
        tell(sk, d, e, EVENT_LOSS);
    }
    if (flag & FLAG_ECE)
        tell(sk, d, e, EVENT_MARK);
    if (d->sender.guard.mode == GUARD_PLAIN && !settings.guard.off) {
        parent_acked(sk, d, ack, flag, rs);
        e->flow.cwnd = tp->snd_cwnd;
        e->flow.ssthresh = tp->snd_ssthresh;
    }
    if (rs->acked_sacked)
        tell(sk, d, e, EVENT_ACK);
}

static __always_inline bool parent_has(const struct driven *d)
{
    return !d || (d->sender.guard.mode == GUARD_PLAIN && !settings.guard.off);
}

SEC("struct_ops")
__u32 BPF_PROG(driven_ssthresh, struct sock *sk)
{
    struct driven *d = state_of(sk);
    __u32 ssthresh;

    if (!parent_has(d))
        return tcp_sk(sk)->snd_ssthresh;
    if (d)
        begin_reduction(tcp_sk(sk), &d->reduction);
    ssthresh = cubictcp_recalc_ssthresh(sk);
    /* Without a state nobody reduces the window acknowledgement by acknowledgement: at once, then. */
    if (!d)
        set_cwnd(tcp_sk(sk), ssthresh);
    return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(driven_set_state, struct sock *sk, __u8 new_state)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct driven *d = state_of(sk);
    struct event *e;
    __u8 old_state = ca_state_of(sk);
    __u32 cwnd;

    cubictcp_state(sk, new_state);
    if (!d)
        return;
    if (new_state == FLOW_LOSS) {
        cwnd = tp->snd_cwnd;
        e = new_event(sk, d);
        tell_rare(sk, d, e, EVENT_TIMEOUT);
        /* What the parent goes on from is no more than what the kernel sends after a timeout. */
        if (parent_has(d))
            tp->snd_cwnd = cwnd;
    } else if (new_state == FLOW_OPEN && old_state != FLOW_DISORDER && old_state != FLOW_OPEN) {
        if (!parent_has(d))
            d->reduction.prior_cwnd = 0;
        end_reduction(tp, &d->reduction, old_state);
        e = new_event(sk, d);
        /* The threshold of the parent stays, unlike in logic/cc, where it begins with slow start after a rival's loss: with hostile reports
         * the burst costs more than a second of CUBIC's (carriers/kernel/tests/hostile.rs).
         */
        tell_rare(sk, d, e, EVENT_RECOVERED);
    }
}

SEC("struct_ops")
void BPF_PROG(driven_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct driven *d;

    cubictcp_cwnd_event(sk, event);
    if (event != CA_EVENT_TX_START)
        return;
    d = state_of(sk);
    if (d)
        tell_rare(sk, d, new_event(sk, d), EVENT_IDLE);
}

SEC("struct_ops")
__u32 BPF_PROG(driven_undo_cwnd, struct sock *sk)
{
    struct driven *d = state_of(sk);

    if (d && !parent_has(d)) {
        tell_rare(sk, d, new_event(sk, d), EVENT_SPURIOUS);
        return tcp_sk(sk)->snd_cwnd;
    }
    return undo_reduction(sk, d ? &d->reduction : 0);
}

SEC("struct_ops")
__u32 BPF_PROG(driven_min_tso_segs, struct sock *sk)
{
    /* Below 1.2 Mbit/s a segment at a time, as BBR; else the kernel's own least. */
    return sk->sk_pacing_rate < 150000 ? 1 : 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)driven_init,
    .pkts_acked = (void *)driven_acked,
    .cong_control = (void *)driven_cong_control,
    .ssthresh = (void *)driven_ssthresh,
    .set_state = (void *)driven_set_state,
    .cwnd_event = (void *)driven_cwnd_event,
    .undo_cwnd = (void *)driven_undo_cwnd,
    .min_tso_segs = (void *)driven_min_tso_segs,
    .name = NAME,
};

/* Handshake and options, at both ends. */
SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
    struct bpf_sock *sk;
    struct driven *d;
    __u8 option[REPORT_LENGTH];

    switch (ops->op) {
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
        if (is_chosen(ops))
            ask_for_options(ops, true);
        return 1;
    case BPF_SOCK_OPS_TCP_LISTEN_CB:
        ask_for_options(ops, true);
        return 1;
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        if (!is_chosen(ops)) {
            ask_for_options(ops, false);
            return 1;
        }
        sk = ops->sk;
        d = sk ? bpf_sk_storage_get(&state, sk, 0, BPF_SK_STORAGE_GET_F_CREATE) : 0;
        if (d && ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB) {
            read_option(ops, &d->link, SEGMENT_SYN_ACK);
            ask_for_options(ops, d->link.agreement.agreed);
        } else if (d) {
            /* The third segment of the handshake; with TCP Fast Open the SYN, and the peer's acceptance comes later. */
            read_option(ops, &d->link, kind_of(ops));
            ask_for_options(ops, d->link.agreement.offered || d->link.agreement.agreed);
        }
        if (!choice.own)
            bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, choice.name, sizeof(choice.name));
        return 1;
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
        sk = ops->sk;
        d = sk ? bpf_sk_storage_get(&state, sk, 0, 0) : 0;
        if (ops->skb_tcp_flags & TCPHDR_RST || !carries_option(ops, d ? &d->link : 0))
            return 1;
        if (ops->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB) {
            bpf_reserve_hdr_opt(ops, REPORT_LENGTH, 0);
            return 1;
        }
        report_encode(option, d && kind_of(ops) == SEGMENT_LATER ? CLIENT_TAKE(&d->client, &client) : 0);
        bpf_store_hdr_opt(ops, option, REPORT_LENGTH, 0);
        return 1;
    case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
        sk = ops->sk;
        d = sk ? bpf_sk_storage_get(&state, sk, 0, 0) : 0;
        if (d)
            read_option(ops, &d->link, SEGMENT_LATER);
        return 1;
    }
    return 1;
}

/* Data that arrives at a socket of the control group, as GRO has merged it. */
SEC("cgroup_skb/ingress")
int arrive(struct __sk_buff *skb)
{
    const __u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *tcp;
    struct bpf_sock *sk = skb->sk;
    struct arrival a = {};
    struct driven *d;
    __u32 headers, size;

    /* Options of IPv4 and headers between IPv6's and TCP's are rare: such packets are not measured. TCP has looked at its header, so
     * it is not in fragments of the buffer.
     */
    if (!sk || data + 40 > end)
        return 1;
    if (data[0] == 0x45 && data[9] == IPPROTO_TCP)
        tcp = data + 20;
    else if (data[0] >> 4 == 6 && data[6] == IPPROTO_TCP)
        tcp = data + 40;
    else
        return 1;
    if (tcp + 20 > end)
        return 1;
    headers = tcp - data + (tcp[12] >> 4) * 4;
    if (skb->len <= headers)
        return 1;
    d = bpf_sk_storage_get(&state, sk, 0, 0);
    if (!d || !d->link.agreement.agreed)
        return 1;
    a.now = bpf_ktime_get_ns();
    a.bytes = skb->len - headers;
    size = skb->gso_size;
    a.segments = size ? (a.bytes + size - 1) / size : 1;
    /* Linux writes NOP, NOP, timestamps first; our option stands behind. */
    if (tcp[12] >> 4 >= 8 && tcp + 32 <= end && tcp[22] == 8 && tcp[23] == 10)
        a.stamp = (__u32)tcp[24] << 24 | (__u32)tcp[25] << 16 | (__u32)tcp[26] << 8 | tcp[27];
#ifdef CLIENT_NEEDS_RTT
    struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

    if (tp)
        a.rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
#endif
    CLIENT_ON_DATA(&d->client, &client, &a);
    return 1;
}

SHOW_SOCKETS()
{
    __u64 now = bpf_ktime_get_ns();

    BPF_SEQ_PRINTF(seq, " driven=%u reason=%u agreed=%u reports=%u report_Bps=%llu report_age_us=%llu", s->sender.guard.mode,
                   s->sender.guard.reason, s->link.agreement.agreed, s->link.reports, s->link.report,
                   s->link.came ? (now - s->link.came) / 1000 : 0);
    BPF_SEQ_PRINTF(seq, " reported=%u arrived=%llu", s->client.reporter.reports, s->client.reporter.segments);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#endif
