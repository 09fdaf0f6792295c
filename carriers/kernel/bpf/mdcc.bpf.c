/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Multi-Domain congestion control on a server, by what a Lightweight PEP says of its connections; CUBIC while there is no PEP, or none
 * that could be relied on. The arithmetic is in arithmetic/mdcc.h, and what the PEP has seen in arithmetic/mdcc_ledger.h.
 *
 * A program of the user verifies the messages of the PEP (keys, sequence numbers, the connection that is meant), and brings each report by
 * the program `pep`. It runs outside of the socket's lock, so it changes the state alone: the window that follows is written by the
 * socket's next acknowledgement.
 *
 * CUBIC alone is arithmetic/cubic.h, as Linux's, with PRR by parent.h; a socket without a state has the kernel's own.
 */
#include "kernel.h"
#include "arithmetic/mdcc.h"
#include "arithmetic/mdcc_ledger.h"

#include "choose.h"
#include "message.h"
#include "parent.h"
#include "turn.h"

struct mdcc_settings settings SEC(".data.settings");
OPTIONS_TEXT;

struct domains {
    struct mdcc_state mdcc;
    struct ledger ledger;
    struct mdcc_event event;
    struct reduction reduction;
    __u64 cwnd;      /* with its fraction, q32, as long as the socket has `shown` */
    __u32 shown;
    struct turn turn;
    __u32 reports, refused;
    __u32 episode;   /* the kernel asked for a threshold, and the arithmetic was not told of the loss yet */
    __u32 unused;
};

STATE_OF(struct domains);

/* The report at hand. A test run is not interrupted on its processor. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ledger_report);
} heard SEC(".maps");

static __always_inline bool enter(struct domains *d)
{
    return take_turn(&d->turn);
}

static __always_inline void leave(struct domains *d)
{
    give_turn(&d->turn);
}

static __always_inline bool is_alone(const struct domains *d)
{
    return !d || d->mdcc.mode == MDCC_ALONE;
}

/* The socket as the arithmetic sees it, now. */
static __always_inline struct mdcc_event *new_event(struct sock *sk, struct domains *d)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct mdcc_event *e = &d->event;

    __builtin_memset(e, 0, sizeof(*e));
    e->path.now = bpf_ktime_get_ns();
    e->path.mss = tp->mss_cache;
    e->path.srtt_us = tp->srtt_us >> 3;
    e->path.sent = tp->data_segs_out;
    e->path.in_flight = in_flight(tp);
    e->path.cwnd_limited = cwnd_limited(tp);
    e->path.paced = sk->sk_pacing_status != SK_PACING_NONE;
    e->window.cwnd = tp->snd_cwnd == d->shown ? d->cwnd : (__u64)tp->snd_cwnd << 32;
    e->window.ssthresh = tp->snd_ssthresh < FLOW_NO_SSTHRESH ? (__u64)tp->snd_ssthresh << 32 : CUBIC_INFINITE;
    e->min_rtt_us = tp->rtt_min.s[0].v == ~0U ? 0 : tp->rtt_min.s[0].v;
    e->open = ca_state_of(sk) <= FLOW_DISORDER;
    e->unseen = ledger_unseen(&d->ledger, tp->snd_una, tp->snd_nxt, tp->mss_cache);
    return e;
}

static __always_inline void mark(struct sock *sk, struct domains *d)
{
    struct tcp_sock *tp = tcp_sk(sk);

    ledger_mark(&d->ledger, tp->snd_una, tp->snd_nxt, tp->data_segs_out, tp->tcp_wstamp_ns);
}

/* Tells the arithmetic, and writes the window. */
static __always_inline void tell(struct sock *sk, struct domains *d, __u32 kind)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct mdcc_event *e = &d->event;

    mdcc_step_of(&d->mdcc, &settings, e, kind);
    tp->snd_ssthresh = e->window.ssthresh == CUBIC_INFINITE ? FLOW_NO_SSTHRESH : e->window.ssthresh >> 32;
    set_cwnd(tp, e->window.cwnd >> 32);
    d->cwnd = e->window.cwnd;
    d->shown = tp->snd_cwnd;
    if (!is_alone(d))
        d->reduction.prior_cwnd = 0;
}

SEC("struct_ops")
void BPF_PROG(mdcc_init, struct sock *sk)
{
    struct domains *d;

    mend_window(tcp_sk(sk));
    cubictcp_init(sk);
    d = begin_state(sk);
    if (!d || !enter(d))
        return;
    mark(sk, d);
    new_event(sk, d);
    tell(sk, d, MDCC_START);
    leave(d);
}

SEC("struct_ops")
void BPF_PROG(mdcc_acked, struct sock *sk, const struct ack_sample *sample)
{
    /* The arithmetic hears it in cong_control. */
    if (!state_of(sk))
        cubictcp_acked(sk, sample);
}

SEC("struct_ops")
void BPF_PROG(mdcc_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
    __u32 lost = rs->losses > 0 ? rs->losses : 0, before;
    struct tcp_sock *tp = tcp_sk(sk);
    struct domains *d = state_of(sk);
    __u8 ca_state = ca_state_of(sk);
    struct mdcc_event *e;
    bool reducing;

    mend_window(tp);
    if (!d) {
        /* No memory for a state: the kernel's CUBIC; mdcc_ssthresh reduces the window. */
        if (flag & FLAG_DATA_ACKED)
            cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
        return;
    }
    if (!enter(d))
        return;
    mark(sk, d);
    e = new_event(sk, d);
    if (rs->acked_sacked) {
        e->rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
        tell(sk, d, MDCC_SAMPLE);
        ledger_acked(&d->ledger, e, tp->snd_una, rs->acked_sacked);
        tell(sk, d, MDCC_ACKED);
    }
    if (lost || d->episode) {
        before = ledger_lost(&d->ledger, e, tp->snd_una, lost);
        e->number = e->path.sent - e->path.in_flight - 1;
        e->lost = lost;
        e->first = d->episode;
        d->episode = 0;
        /* Where CUBIC is alone the kernel has asked for the threshold already. */
        if (!is_alone(d)) {
            e->segments = lost - before;
            if (e->segments)
                tell(sk, d, MDCC_LOST);
            e->domain = MDCC_INTERNET;
            e->segments = before;
            if (before)
                tell(sk, d, MDCC_LOST);
            if (ca_state == FLOW_CWR && !lost)
                tell(sk, d, MDCC_MARK);
            else
                tell(sk, d, MDCC_LOSS);
        }
    }
    reducing = is_alone(d) && is_reducing(sk, &d->reduction);
    if (rs->acked_sacked) {
        e->segments = (flag & FLAG_SND_UNA_ADVANCED) && !reducing ? rs->acked_sacked : 0;
        e->rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 0;
        tell(sk, d, MDCC_ACK);
    }
    if (reducing && is_alone(d))
        reduce(tp, &d->reduction, flag, rs);
    parent_pace(sk);
    leave(d);
}

SEC("struct_ops")
__u32 BPF_PROG(mdcc_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct domains *d = state_of(sk);
    struct mdcc_event *e;
    __u32 ssthresh;

    if (!d) {
        /* Nobody reduces the window acknowledgement by acknowledgement: at once, then. */
        ssthresh = cubictcp_recalc_ssthresh(sk);
        set_cwnd(tp, ssthresh);
        return ssthresh;
    }
    d->episode = 1;
    if (!is_alone(d) || !enter(d))
        return tp->snd_ssthresh;
    begin_reduction(tp, &d->reduction);
    e = new_event(sk, d);
    e->lost = 1;
    e->first = 1;
    mdcc_step_of(&d->mdcc, &settings, e, MDCC_LOSS);
    ssthresh = e->answers ? e->answer >> 32 : tp->snd_ssthresh;
    leave(d);
    return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(mdcc_set_state, struct sock *sk, __u8 new_state)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct domains *d = state_of(sk);
    __u8 old_state = ca_state_of(sk);
    struct mdcc_event *e;

    if (!d) {
        cubictcp_state(sk, new_state);
        return;
    }
    if (new_state == FLOW_LOSS && enter(d)) {
        e = new_event(sk, d);
        /* Where CUBIC is alone its threshold was asked for, and only what it knew is forgotten. */
        e->first = is_alone(d) ? 0 : d->episode;
        d->episode = 0;
        d->reduction.prior_cwnd = 0;
        tell(sk, d, MDCC_TIMEOUT);
        leave(d);
    } else if (new_state <= FLOW_DISORDER && old_state > FLOW_DISORDER && enter(d)) {
        if (!is_alone(d))
            d->reduction.prior_cwnd = 0;
        end_reduction(tp, &d->reduction, old_state);
        d->episode = 0;
        new_event(sk, d);
        tell(sk, d, MDCC_RECOVERED);
        leave(d);
    }
}

SEC("struct_ops")
void BPF_PROG(mdcc_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    __u32 idle = (__u32)bpf_jiffies64() - tcp_sk(sk)->lsndtime, rto = ((struct inet_connection_sock *)sk)->icsk_rto;
    struct domains *d = state_of(sk);
    struct mdcc_event *e;

    if (!d)
        cubictcp_cwnd_event(sk, event);
    if (event != CA_EVENT_TX_START || !d || (__s32)idle <= 0 || !rto || !enter(d))
        return;
    e = new_event(sk, d);
    /* How long a jiffy is is not known here: the kernel's own timeout counts as the one of the arithmetic. */
    e->idle = min_u32(idle, 1 << 24) * (e->path.srtt_us * NS_PER_US + MDCC_MIN_TIMEOUT) / rto;
    tell(sk, d, MDCC_IDLE);
    if (is_alone(d))
        parent_restart(sk);
    leave(d);
}

SEC("struct_ops")
__u32 BPF_PROG(mdcc_undo_cwnd, struct sock *sk)
{
    struct domains *d = state_of(sk);

    if (is_alone(d) || !enter(d))
        return undo_reduction(sk, d ? &d->reduction : 0);
    new_event(sk, d);
    tell(sk, d, MDCC_SPURIOUS);
    leave(d);
    return tcp_sk(sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)mdcc_init,
    .pkts_acked = (void *)mdcc_acked,
    .cong_control = (void *)mdcc_cong_control,
    .ssthresh = (void *)mdcc_ssthresh,
    .set_state = (void *)mdcc_set_state,
    .cwnd_event = (void *)mdcc_cwnd_event,
    .undo_cwnd = (void *)mdcc_undo_cwnd,
    .name = "mdcc",
};

/* Besides those of a message. */
#define PEP_IMPOSSIBLE 4 /* of data that were never sent */

/* A verified report of a PEP: struct message, whose hint is unused, and struct ledger_report behind it. */
SEC("tc")
int pep(struct __sk_buff *skb)
{
    struct ledger_news news = {};
    struct ledger_report *r;
    struct message m = {};
    struct domains *d = 0;
    struct mdcc_event *e;
    struct tcp_sock *tp;
    struct bpf_sock *sk;
    __u32 zero = 0, done = PEP_IMPOSSIBLE, number;

    r = bpf_map_lookup_elem(&heard, &zero);
    if (!r || bpf_skb_load_bytes(skb, 0, &m, sizeof(m)) || bpf_skb_load_bytes(skb, sizeof(m), r, sizeof(*r)))
        return HINT_REFUSED;
    sk = addressed(skb, &m);
    if (!sk)
        return HINT_NO_SOCKET;
    tp = bpf_skc_to_tcp_sock(sk);
    d = tp ? bpf_sk_storage_get(&state, tp, 0, 0) : 0;
    if (!d) {
        bpf_sk_release(sk);
        return HINT_NOT_OURS;
    }
    if (enter(d)) {
        mark((struct sock *)tp, d);
        e = new_event((struct sock *)tp, d);
        if (ledger_report(&d->ledger, r, e, &news, tp->snd_nxt)) {
            number = news.number;
            e->number = number;
            e->segments = news.seen;
            if (news.seen)
                mdcc_step_of(&d->mdcc, &settings, e, MDCC_SEEN);
            e->number = news.gap_number;
            if (news.has_gap)
                mdcc_step_of(&d->mdcc, &settings, e, MDCC_MISSING);
            e->unseen = ledger_unseen(&d->ledger, tp->snd_una, tp->snd_nxt, tp->mss_cache);
            mdcc_step_of(&d->mdcc, &settings, e, MDCC_REPORT);
            d->reports++;
            done = HINT_TAKEN;
        } else {
            d->refused++;
        }
        leave(d);
    } else {
        done = HINT_TAKEN; /* and lost: reports are cumulative */
    }
    bpf_sk_release(sk);
    return done;
}

SHOW_SOCKETS()
{
    BPF_SEQ_PRINTF(seq, " both=%u w_i=%llu/4294967296 w_r=%llu/4294967296 rtt_i_us=%llu reports=%u refused=%u", s->mdcc.mode,
                   s->mdcc.wired.cwnd, s->mdcc.radio.cwnd, s->mdcc.wired_srtt / 1000, s->reports, s->refused);
    BPF_SEQ_PRINTF(seq, " seen=%u sent=%u fallbacks=%u missed=%u", s->ledger.highest,
                   s->ledger.marks[(s->ledger.first + s->ledger.kept - 1) % LEDGER_MARKS].end, s->mdcc.fallbacks, s->turn.missed);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
