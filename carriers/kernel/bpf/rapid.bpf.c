/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * RAPID's sender towards the user: the window that a proxy allocates, and the kernel's CUBIC without an allocation. The arithmetic is in
 * arithmetic/rapid.h.
 *
 * The proxy owns the socket. It gives the connection a place in the array `allocations`, by the socket's own descriptor (`places`), and
 * writes what it allocates there: the array is mapped into its memory, so that an allocation takes no system call. The next
 * acknowledgement applies it, or the first segment after an idle time.
 */
#include "kernel.h"
#include "arithmetic/rapid.h"

#include "choose.h"
#include "parent.h"

struct rapid_settings settings SEC(".data.settings");
OPTIONS_TEXT;

struct proxied {
    struct rapid_state rapid;
    struct reduction reduction;
    __u32 paced; /* the socket was set to be paced */
};

STATE_OF(struct proxied);

/* The places of connections in `allocations`; a connection without one has no allocation. */
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, __u32);
} places SEC(".maps");

/*
 * What the proxy allocates; as src/allocations.rs writes it, while this reads. Each half is written at once, so that a reader may find
 * one half that is new and one that is a moment older, but never half a number.
 */
struct place {
    __u64 rate;   /* payload, bytes a second */
    __u64 window; /* payload, bytes; 0: no allocation */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 131072); /* more than a proxy has connections; 2 MB */
    __type(key, __u32);
    __type(value, struct place);
} allocations SEC(".maps");

/* What the proxy has written for this connection. */
static __always_inline struct rapid_allocation allocation_of(struct sock *sk)
{
    struct rapid_allocation allocation = {};
    __u32 *number = bpf_sk_storage_get(&places, sk, 0, 0);
    struct place *place = number ? bpf_map_lookup_elem(&allocations, number) : 0;

    if (place) {
        allocation.rate = *(volatile __u64 *)&place->rate;
        allocation.window = *(volatile __u64 *)&place->window;
        allocation.valid = allocation.window > 0;
    }
    return allocation;
}

/* What the proxy wrote is applied, if it is new; the parent begins afresh where it took its allocation back. */
static __always_inline void hear(struct sock *sk, struct proxied *p, struct flow *flow)
{
    struct rapid_allocation wanted = allocation_of(sk), *last = &p->rapid.allocation;

    if (wanted.valid == last->valid && wanted.window == last->window && wanted.rate == last->rate)
        return;
    if (rapid_allocated(&settings, &p->rapid, flow, &wanted)) {
        tcp_sk(sk)->snd_ssthresh = flow->ssthresh;
        p->reduction.prior_cwnd = 0;
        cubictcp_init(sk);
    }
}

/* The window of a flow that is driven, and the pace. */
static __always_inline void apply(struct sock *sk, struct proxied *p, const struct flow *flow)
{
    struct tcp_sock *tp = tcp_sk(sk);

    if (p->rapid.driven) {
        set_cwnd(tp, flow->cwnd);
        p->reduction.prior_cwnd = 0;
    }
    parent_pace(sk);
    if (flow->pacing)
        sk->sk_pacing_rate = min_u64(flow->pacing, sk->sk_max_pacing_rate);
    set_paced(sk, &p->paced, flow->pacing);
}

/* What is no acknowledgement: a new allocation counts, and the present one again. */
static __always_inline void tell(struct sock *sk, struct proxied *p)
{
    struct flow flow = {};

    flow_of(&flow, sk);
    hear(sk, p, &flow);
    rapid_apply(&settings, &p->rapid, &flow);
    apply(sk, p, &flow);
}

SEC("struct_ops")
void BPF_PROG(rapid_init, struct sock *sk)
{
    struct proxied *p;

    cubictcp_init(sk);
    p = begin_state(sk);
    if (p)
        tell(sk, p);
}

static __always_inline bool is_driven(const struct proxied *p)
{
    return p && p->rapid.driven;
}

SEC("struct_ops")
void BPF_PROG(rapid_acked, struct sock *sk, const struct ack_sample *sample)
{
    if (!is_driven(state_of(sk)))
        cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(rapid_cong_control, struct sock *sk, __u32 acknowledged, int flag, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct proxied *p = state_of(sk);
    struct flow flow = {};
    struct ack ack = {};

    mend_window(tp);
    if (p) {
        flow_of(&flow, sk);
        hear(sk, p, &flow);
    }
    if (!is_driven(p)) {
        if (p && is_reducing(sk, &p->reduction))
            reduce(tp, &p->reduction, flag, rs);
        else if (flag & FLAG_DATA_ACKED)
            cubictcp_cong_avoid(sk, acknowledged, rs->acked_sacked);
    }
    if (!p)
        return;
    flow.cwnd = tp->snd_cwnd;
    flow.ssthresh = tp->snd_ssthresh;
    ack.delivered = rs->acked_sacked;
    rapid_ack(&settings, &p->rapid, &flow, &ack);
    apply(sk, p, &flow);
}

SEC("struct_ops")
__u32 BPF_PROG(rapid_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct proxied *p = state_of(sk);
    __u32 ssthresh;

    if (is_driven(p))
        return tp->snd_ssthresh;
    if (p)
        begin_reduction(tp, &p->reduction);
    ssthresh = cubictcp_recalc_ssthresh(sk);
    /* Without a state nobody reduces the window acknowledgement by acknowledgement: at once, then. */
    if (!p)
        set_cwnd(tp, ssthresh);
    return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(rapid_set_state, struct sock *sk, __u8 new_state)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct proxied *p = state_of(sk);
    __u8 old_state = ca_state_of(sk);
    struct flow flow = {};

    if (!is_driven(p))
        cubictcp_state(sk, new_state);
    if (!p)
        return;
    if (new_state == FLOW_LOSS) {
        p->reduction.prior_cwnd = 0;
        flow.cwnd = tp->snd_cwnd;
        rapid_loss(&p->rapid, &flow, 1);
        set_cwnd(tp, flow.cwnd);
    } else if (new_state <= FLOW_DISORDER && old_state > FLOW_DISORDER) {
        end_reduction(tp, &p->reduction, old_state);
    }
}

SEC("struct_ops")
void BPF_PROG(rapid_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct proxied *p = state_of(sk);

    if (!is_driven(p)) {
        cubictcp_cwnd_event(sk, event);
        if (event == CA_EVENT_TX_START)
            parent_restart(sk);
    }
    if (p && event == CA_EVENT_TX_START)
        tell(sk, p);
}

SEC("struct_ops")
__u32 BPF_PROG(rapid_undo_cwnd, struct sock *sk)
{
    struct proxied *p = state_of(sk);
    struct flow flow = {};

    if (is_driven(p)) {
        flow_of(&flow, sk);
        rapid_spurious(&settings, &p->rapid, &flow);
        return flow.cwnd;
    }
    return undo_reduction(sk, p ? &p->reduction : 0);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)rapid_init,
    .pkts_acked = (void *)rapid_acked,
    .cong_control = (void *)rapid_cong_control,
    .ssthresh = (void *)rapid_ssthresh,
    .set_state = (void *)rapid_set_state,
    .cwnd_event = (void *)rapid_cwnd_event,
    .undo_cwnd = (void *)rapid_undo_cwnd,
    .name = "rapid",
};

SHOW_SOCKETS()
{
    BPF_SEQ_PRINTF(seq, " driven=%u allocation_valid=%u allocation_Bps=%llu allocation_bytes=%llu", s->rapid.driven,
                   s->rapid.allocation.valid, s->rapid.allocation.rate, s->rapid.allocation.window);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
