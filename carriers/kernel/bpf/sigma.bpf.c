/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * SIGMA on a device: uploads by the grants of its own modem, and the kernel's CUBIC while these are missing, stale or contradicted. The
 * arithmetic is in arithmetic/sigma.h.
 *
 * Hints come by the program `hint`, for one connection each. It runs outside of the socket's lock, so it changes the state alone: window
 * and threshold that follow are written by the socket's next event. The device keeps what its modem said last for connections that
 * begin later, and the smallest RTT to each destination.
 *
 * With cong_control the kernel sets no pace: SIGMA has one in Max Start and in trials, and otherwise it is the kernel's usual one.
 */
#include "kernel.h"
#include "arithmetic/sigma.h"

#include "choose.h"
#include "message.h"
#include "parent.h"
#include "turn.h"

struct sigma_settings settings SEC(".data.settings");
OPTIONS_TEXT;

/* Destinations whose smallest RTT is kept. */
#define DESTINATIONS 1024
/* A state that a hint and the socket's own programs work on, one at a time. */
struct uplink {
    struct sigma_state sigma;
    struct sigma_event event;
    struct reduction reduction;
    __u64 told_since;    /* of the path, as the destination's memory has it */
    __u32 told_rtt_us;
    struct turn turn;
    __u32 owed;          /* OWED_..., of a hint */
    __u32 owed_ssthresh;
    __u32 paced;         /* the socket was set to be paced */
    __u32 episode;       /* the kernel asked for a threshold, and SIGMA was not told of the loss yet */
};

#define OWED_WINDOW 1
#define OWED_PARENT 2

STATE_OF(struct uplink);

/* A connection that never begins: what the modem has said up to now. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct uplink);
} device SEC(".maps");

/* The hint at hand. A test run is not interrupted on its processor. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sigma_hint);
} heard SEC(".maps");

/* Network byte order; IPv4 in the first word. */
struct destination {
    __u32 words[4];
    __u32 family;
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, DESTINATIONS);
    __type(key, struct destination);
    __type(value, struct sigma_memory);
} destinations SEC(".maps");

static __always_inline struct destination destination_of(const struct sock *sk)
{
    struct destination to = {};

    to.family = sk->__sk_common.skc_family;
    if (to.family == AF_INET) {
        to.words[0] = sk->__sk_common.skc_daddr;
    } else {
        for (int i = 0; i < 4; i++)
            to.words[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
    }
    return to;
}

static __always_inline bool enter(struct uplink *u)
{
    return take_turn(&u->turn);
}

static __always_inline void leave(struct uplink *u)
{
    give_turn(&u->turn);
}

static __always_inline bool is_plain(const struct uplink *u)
{
    return !u || u->sigma.mode == SIGMA_PLAIN;
}

/* What a hint has decided is done, before anything else is. */
static __always_inline void settle(struct sock *sk, struct uplink *u)
{
    struct tcp_sock *tp = tcp_sk(sk);

    if (!u->owed)
        return;
    tp->snd_ssthresh = u->owed_ssthresh;
    set_cwnd(tp, u->sigma.window >> 32);
    u->sigma.shown = tp->snd_cwnd;
    if (u->owed & OWED_PARENT)
        cubictcp_init(sk);
    u->reduction.prior_cwnd = 0;
    u->owed = 0;
}

static __always_inline struct sigma_event *new_event(struct sock *sk, struct uplink *u)
{
    struct sigma_event *e = &u->event;

    flow_of(&e->flow, sk);
    __builtin_memset(&e->ack, 0, sizeof(e->ack));
    e->idle = 0;
    e->prior = 0;
    e->lost = 0;
    e->first = 0;
    return e;
}

/* The pace of SIGMA where it has one, else the kernel's. */
static __always_inline void pace(struct sock *sk, struct uplink *u)
{
    parent_pace(sk);
    if (u->sigma.pacing)
        sk->sk_pacing_rate = min_u64(u->sigma.pacing, sk->sk_max_pacing_rate);
    set_paced(sk, &u->paced, u->sigma.pacing);
}

/* Tells SIGMA, and does what follows for the window and the parent. */
static __always_inline void tell(struct sock *sk, struct uplink *u, __u32 kind)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct sigma_event *e = &u->event;

    sigma_step_of(&u->sigma, &settings, e, 0, kind);
    tp->snd_ssthresh = e->flow.ssthresh;
    set_cwnd(tp, e->flow.cwnd);
    if (e->parent & SIGMA_PARENT_BEGINS)
        cubictcp_init(sk);
    if ((e->parent & SIGMA_PARENT_ANSWERS) && (e->first || kind == SIGMA_TIMEOUT) && !u->reduction.prior_cwnd) {
        if (kind != SIGMA_TIMEOUT)
            begin_reduction(tp, &u->reduction);
        tp->snd_ssthresh = cubictcp_recalc_ssthresh(sk);
    }
    if (!is_plain(u))
        u->reduction.prior_cwnd = 0;
    e->flow.ssthresh = tp->snd_ssthresh;
    e->flow.cwnd = tp->snd_cwnd;
    u->sigma.shown = tp->snd_cwnd;
}

/* The smallest RTT, for connections to the same destination that begin later. */
static __always_inline void remember(struct sock *sk, struct uplink *u)
{
    struct sigma_memory memory = {}, *known;
    struct destination to;

    if (!settings.memory || (u->told_rtt_us == u->sigma.min_rtt_us && u->told_since == u->sigma.path_since))
        return;
    u->told_rtt_us = u->sigma.min_rtt_us;
    u->told_since = u->sigma.path_since;
    to = destination_of(sk);
    known = bpf_map_lookup_elem(&destinations, &to);
    if (known)
        memory = *known;
    if (sigma_remember(&u->sigma, &settings, &memory))
        bpf_map_update_elem(&destinations, &to, &memory, BPF_ANY);
}

SEC("struct_ops")
void BPF_PROG(sigma_init, struct sock *sk)
{
    struct destination to = destination_of(sk);
    struct sigma_memory *known;
    struct uplink *u, *all;
    __u32 zero = 0;

    mend_window(tcp_sk(sk));
    cubictcp_init(sk);
    u = begin_state(sk);
    all = bpf_map_lookup_elem(&device, &zero);
    if (!u || !all || !enter(u))
        return;
    if (all->sigma.made && enter(all)) {
        bpf_probe_read_kernel(&u->sigma, sizeof(u->sigma), &all->sigma);
        leave(all);
    }
    known = bpf_map_lookup_elem(&destinations, &to);
    if (known)
        sigma_recall(&u->sigma, &settings, known);
    new_event(sk, u);
    tell(sk, u, SIGMA_START);
    pace(sk, u);
    leave(u);
}

SEC("struct_ops")
void BPF_PROG(sigma_acked, struct sock *sk, const struct ack_sample *sample)
{
    if (is_plain(state_of(sk)))
        cubictcp_acked(sk, sample);
}

/* The parent's acknowledgement: the reduction, or its growth. */
static __always_inline void parent_acked(struct sock *sk, struct uplink *u, __u32 ack, int flag, const struct rate_sample *rs)
{
    if (u && is_reducing(sk, &u->reduction))
        reduce(tcp_sk(sk), &u->reduction, flag, rs);
    else if (flag & FLAG_DATA_ACKED)
        cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
}

SEC("struct_ops")
void BPF_PROG(sigma_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct uplink *u = state_of(sk);
    struct sigma_event *e;

    mend_window(tp);
    if (!u) {
        /* No memory for a state: the parent's growth; sigma_ssthresh reduces the window. */
        parent_acked(sk, 0, ack, flag, rs);
        return;
    }
    if (!enter(u))
        return;
    settle(sk, u);
    e = new_event(sk, u);
    e->ack.acked = flag & FLAG_SND_UNA_ADVANCED ? rs->acked_sacked : 0;
    e->ack.delivered = rs->acked_sacked;
    e->ack.bytes = min_u32(rs->acked_sacked, FLOW_MOST_SEGMENTS) * (tp->mss_cache & 0xffff);
    e->ack.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
    if (rs->acked_sacked)
        tell(sk, u, SIGMA_SAMPLE);
    if (rs->losses > 0 || u->episode) {
        e->lost = rs->losses > 0 ? rs->losses : 0;
        e->first = u->episode;
        u->episode = 0;
        if (e->flow.ca_state == FLOW_CWR && !e->lost)
            tell(sk, u, SIGMA_MARK);
        else
            tell(sk, u, SIGMA_LOSS);
    }
    e->parent = 0;
    if (rs->acked_sacked)
        tell(sk, u, SIGMA_ACK);
    if (is_plain(u) && !(e->parent & SIGMA_PARENT_WAITS))
        parent_acked(sk, u, ack, flag, rs);
    pace(sk, u);
    remember(sk, u);
    leave(u);
}

SEC("struct_ops")
__u32 BPF_PROG(sigma_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct uplink *u = state_of(sk);
    __u32 ssthresh;

    if (u)
        u->episode = 1;
    if (!is_plain(u))
        return tp->snd_ssthresh;
    if (u)
        begin_reduction(tp, &u->reduction);
    ssthresh = cubictcp_recalc_ssthresh(sk);
    /* Without a state nobody reduces the window acknowledgement by acknowledgement: at once, then. */
    if (!u)
        set_cwnd(tp, ssthresh);
    return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(sigma_set_state, struct sock *sk, __u8 new_state)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct uplink *u = state_of(sk);
    __u8 old_state = ca_state_of(sk);

    if (is_plain(u))
        cubictcp_state(sk, new_state);
    if (!u)
        return;
    if (new_state == FLOW_LOSS) {
        if (!enter(u))
            return;
        /* Not `settle`: the window of before is nobody's any more. */
        if (u->owed & OWED_PARENT)
            cubictcp_init(sk);
        u->owed = 0;
        u->episode = 0;
        u->sigma.shown = 0;
        new_event(sk, u);
        u->event.first = 1;
        tell(sk, u, SIGMA_TIMEOUT);
        u->reduction.prior_cwnd = 0;
        pace(sk, u);
        leave(u);
    } else if (new_state <= FLOW_DISORDER && old_state > FLOW_DISORDER) {
        if (!enter(u))
            return;
        settle(sk, u);
        if (!is_plain(u))
            u->reduction.prior_cwnd = 0;
        end_reduction(tp, &u->reduction, old_state);
        u->episode = 0;
        new_event(sk, u);
        tell(sk, u, SIGMA_RECOVERED);
        leave(u);
    }
}

SEC("struct_ops")
void BPF_PROG(sigma_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    __u32 idle = (__u32)bpf_jiffies64() - tcp_sk(sk)->lsndtime, rto = ((struct inet_connection_sock *)sk)->icsk_rto;
    struct uplink *u = state_of(sk);

    if (is_plain(u))
        cubictcp_cwnd_event(sk, event);
    if (event != CA_EVENT_TX_START || !u || !enter(u))
        return;
    settle(sk, u);
    new_event(sk, u);
    /* How long a jiffy is is not known here: a timeout of the kernel's own counts as the one of the arithmetic. */
    u->event.idle = (__s32)(idle - rto) > 0 ? u->event.flow.srtt_us * NS_PER_US + SIGMA_MIN_RTO + 1 : 0;
    tell(sk, u, SIGMA_IDLE);
    if (is_plain(u))
        parent_restart(sk);
    pace(sk, u);
    leave(u);
}

SEC("struct_ops")
__u32 BPF_PROG(sigma_undo_cwnd, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct uplink *u = state_of(sk);

    if (is_plain(u) || !enter(u))
        return undo_reduction(sk, u ? &u->reduction : 0);
    settle(sk, u);
    new_event(sk, u);
    u->event.prior = tp->prior_cwnd;
    tell(sk, u, SIGMA_SPURIOUS);
    leave(u);
    return tp->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)sigma_init,
    .pkts_acked = (void *)sigma_acked,
    .cong_control = (void *)sigma_cong_control,
    .ssthresh = (void *)sigma_ssthresh,
    .set_state = (void *)sigma_set_state,
    .cwnd_event = (void *)sigma_cwnd_event,
    .undo_cwnd = (void *)sigma_undo_cwnd,
    .name = "sigma",
};

/* What the modem says, for a connection or for the device. */
static __always_inline void hear(struct uplink *u, struct sigma_hint *h)
{
    struct sigma_event *e = &u->event;
    __u32 cwnd = e->flow.cwnd, ssthresh = e->flow.ssthresh;

    sigma_step_of(&u->sigma, &settings, e, h, SIGMA_HINT);
    if (e->flow.cwnd != cwnd || e->flow.ssthresh != ssthresh || (e->parent & SIGMA_PARENT_BEGINS)) {
        u->owed |= OWED_WINDOW | (e->parent & SIGMA_PARENT_BEGINS ? OWED_PARENT : 0);
        u->owed_ssthresh = e->flow.ssthresh;
    }
}

SEC("tc")
int hint(struct __sk_buff *skb)
{
    struct message m = {};
    struct uplink *u = 0, *all;
    struct sigma_hint *h;
    struct tcp_sock *tp;
    struct bpf_sock *sk;
    __u32 zero = 0;

    h = bpf_map_lookup_elem(&heard, &zero);
    all = bpf_map_lookup_elem(&device, &zero);
    if (!h || !all || bpf_skb_load_bytes(skb, 0, &m, sizeof(m)) || bpf_skb_load_bytes(skb, sizeof(m), h, sizeof(*h)))
        return HINT_REFUSED;
    if (enter(all)) {
        all->event.flow.now = bpf_ktime_get_ns();
        hear(all, h);
        all->owed = 0;
        leave(all);
    }
    sk = addressed(skb, &m);
    if (!sk)
        return HINT_NO_SOCKET;
    tp = bpf_skc_to_tcp_sock(sk);
    u = tp ? bpf_sk_storage_get(&state, tp, 0, 0) : 0;
    if (u && enter(u)) {
        /* What a hint before this one has decided is not written yet. */
        flow_of(&u->event.flow, (struct sock *)tp);
        if (u->owed)
            u->event.flow.ssthresh = u->owed_ssthresh;
        hear(u, h);
        leave(u);
    }
    bpf_sk_release(sk);
    return u ? HINT_TAKEN : HINT_NOT_OURS;
}

SHOW_SOCKETS()
{
    __u64 now = bpf_ktime_get_ns(), capacity = s->sigma.inputs.has_capacity ? s->sigma.inputs.capacity : 0;

    BPF_SEQ_PRINTF(seq, " state=%u utz=%llu/4294967296 p_max_prbs=%llu/4294967296 c_max_Bps=%llu w_max_bytes=%llu", s->sigma.mode,
                   s->sigma.inputs.utilisation, s->sigma.inputs.p_max, capacity, capacity * s->sigma.min_rtt_us / US_PER_S);
    BPF_SEQ_PRINTF(seq, " hints=%u hint_age_us=%llu min_rtt_us=%u contradictions=%u missed=%u", s->sigma.inputs.run,
                   s->sigma.inputs.at ? elapsed_ns(now, s->sigma.inputs.at) / 1000 : 0, s->sigma.min_rtt_us,
                   s->sigma.trials.contradictions, s->turn.missed);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
