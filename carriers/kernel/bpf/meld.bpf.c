/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * MELD over the kernel's own CUBIC or Reno. The arithmetic is in arithmetic/meld.h; here are the operations that the kernel calls. What
 * is known of users' radio comes from the map of users.h.
 *
 * Why `cong_control`. With `cong_avoid` the kernel owns recovery: a hidden loss would be answered by a threshold as high as the window,
 * and both brought back in the first `cong_avoid` in Open (`set_state(Open)` comes before the kernel writes the window for the last
 * time). Both forms were measured, Mbit/s and mean RTT in ms:
 *
 *                                        cong_avoid    cong_control  simulator
 *   20 Mbit/s, 100 KB, 0.5 % lost        19.1, 76      19.1, 71      19.2, 72
 *   40 Mbit/s, 1 MB, 0.2 % lost          37.2, 151     37.4, 187     37.5, 194
 *   20 Mbit/s, 100 KB, bursts of ten     19.0, 71      15.7, 53      15.7, 53
 *
 * With `cong_avoid` the window does not grow while a hole is open, and the kernel does not ask about further losses of an episode, so
 * that what the guards would tell the parent in its middle stays hidden. PRR also takes from the window where much is lost at once.
 * With `cong_control` reduction, pace and the restart after an idle time are ours to do: parent.h.
 *
 * What the kernel does not say:
 * - Where its recovery ends is fixed when it begins. What was lost behind that, when the parent was told in the middle, begins a new
 *   recovery, which is not answered a second time (`until`).
 * - A loss that a probe repaired (TLP) looks like a mark of ECN until the first recovery of a connection: the parent is told.
 */
#include "kernel.h"
#include "arithmetic/meld.h"

#include "choose.h"
#include "parent.h"
#include "users.h"

#define PARENT_RENO 1

/* What options set; the loader and `ranpace kernel set` write it. */
struct meld_settings settings SEC(".data.settings");
__u32 parent SEC(".data.settings");
OPTIONS_TEXT;

struct melded {
    struct meld_state meld;
    struct reduction reduction;
    __u64 until;     /* so many bytes will have been acknowledged when all that was sent is, as the parent was told last */
    __u64 pace;      /* rto=full: bytes/s, while the window that came back leaves */
    __u32 cwnd;      /* after the last acknowledgement: a timeout overwrites it before it is told */
    __u32 lost;      /* what tp->lost was when losses were judged last */
    __u32 paced;     /* the socket was set to be paced */
    __u8 hidden;     /* these were hidden */
    __u8 asked;      /* `ssthresh` has judged the timeout that is about to be told */
};

STATE_OF(struct melded);

static __always_inline __u32 parents_ssthresh(struct sock *sk)
{
    return parent == PARENT_RENO ? tcp_reno_ssthresh(sk) : cubictcp_recalc_ssthresh(sk);
}

static __always_inline void parents_state(struct sock *sk, __u8 new_state)
{
    if (parent != PARENT_RENO)
        cubictcp_state(sk, new_state);
}

/* Why the kernel asks for a threshold. It forgets the threshold of before where the reduction is never to be undone: after an echo of a
 * mark, and where a queue of this host is full. No timer is set while the retransmission timer's expiry is handled.
 */
static __always_inline __u32 cause_of(const struct sock *sk)
{
    if (!tcp_sk(sk)->prior_ssthresh)
        return MELD_ECN;
    return ((struct inet_connection_sock *)sk)->icsk_pending ? MELD_LOSS : MELD_TIMEOUT;
}

/* Judges a sign of congestion that a flow with this window had. Returns the threshold: the parent's, if it is told. */
static __always_inline __u32 judge(struct sock *sk, struct melded *m, __u32 kind, __u32 cwnd, __u32 first)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct meld_event event = {
        .kind = kind,
        .count = ((struct inet_connection_sock *)sk)->icsk_retransmits + 1,
        .lost = tp->lost - m->lost,
        .first = first,
    };
    struct flow flow = {};
    __u32 cut, ssthresh;

    flow_of(&flow, sk);
    flow.cwnd = cwnd;
    event.largest = flow.wire;
    m->lost = tp->lost;
    m->hidden = meld_loss(&settings, user_of(&sk->__sk_common), &m->meld, &flow, &event) == MELD_HIDE;
    if (!first)
        return tp->snd_ssthresh;
    if (m->hidden) {
        m->reduction.prior_cwnd = 0;
        /* Slow start leads back from a timeout to the window of before. */
        return kind == MELD_TIMEOUT ? max_u32(tp->snd_ssthresh, m->meld.answered) : tp->snd_ssthresh;
    }
    /* The parent sees the window that a hidden timeout has taken. */
    cut = tp->snd_cwnd;
    set_cwnd(tp, m->meld.shown_cwnd);
    begin_reduction(tp, &m->reduction);
    m->until = tp->bytes_acked + (tp->snd_nxt - tp->snd_una);
    ssthresh = parents_ssthresh(sk);
    tp->snd_cwnd = cut;
    return ssthresh;
}

SEC("struct_ops")
void BPF_PROG(meld_init, struct sock *sk)
{
    if (parent != PARENT_RENO)
        cubictcp_init(sk);
    begin_state(sk);
}

SEC("struct_ops")
void BPF_PROG(meld_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct melded *m = state_of(sk);
    struct flow flow = {};

    if (parent != PARENT_RENO)
        cubictcp_acked(sk, sample);
    if (!m)
        return;
    flow.now = tp->tcp_mstamp * NS_PER_US;
    flow.srtt_us = tp->srtt_us >> 3;
    flow.delivered = tp->delivered;
    flow.lost = tp->lost;
    meld_sample(&m->meld, &flow);
}

/* What a silent episode or timeout took from the window is brought back, and leaves over an RTT. */
static __always_inline void bring_back(struct sock *sk, struct melded *m)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct flow flow = {};

    flow_of(&flow, sk);
    flow.pacing = m->pace;
    meld_ack(&m->meld, &flow);
    m->pace = flow.pacing;
    set_cwnd(tp, flow.cwnd);
    tp->snd_ssthresh = flow.ssthresh;
    if (m->meld.paced_until)
        sk->sk_pacing_rate = min_u64(m->pace, sk->sk_max_pacing_rate);
    set_paced(sk, &m->paced, m->meld.paced_until);
}

SEC("struct_ops")
void BPF_PROG(meld_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct melded *m = state_of(sk);
    __u8 ca_state = ca_state_of(sk);
    int grows = FLAG_DATA_ACKED;

    mend_window(tp);
    if (m && m->meld.silent) {
        grows |= FLAG_DATA_SACKED;
        /* Further losses of the episode, which the kernel does not ask about; and marks. */
        if (ca_state == FLOW_RECOVERY && (tp->lost != m->lost || flag & FLAG_ECE))
            tp->snd_ssthresh = judge(sk, m, flag & FLAG_ECE ? MELD_ECN : MELD_LOSS, tp->snd_cwnd, 1);
    }
    if (m && is_reducing(sk, &m->reduction))
        reduce(tp, &m->reduction, flag, rs);
    else if (flag & grows && parent == PARENT_RENO)
        tcp_reno_cong_avoid(sk, ack, rs->acked_sacked);
    else if (flag & grows)
        cubictcp_cong_avoid(sk, ack, rs->acked_sacked);
    parent_pace(sk);
    if (!m)
        return;
    if (m->meld.ended || m->meld.restore || m->meld.paced_until)
        bring_back(sk, m);
    m->cwnd = tp->snd_cwnd;
}

SEC("struct_ops")
__u32 BPF_PROG(meld_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct melded *m = state_of(sk);
    __u32 cause = cause_of(sk), ssthresh;

    if (!m) {
        /* No memory for a state: nobody reduces the window acknowledgement by acknowledgement, so at once. */
        ssthresh = parents_ssthresh(sk);
        set_cwnd(tp, ssthresh);
        return ssthresh;
    }
    if (cause == MELD_LOSS && m->hidden && tp->lost_out && tp->lost == m->lost) {
        /* Found, and hidden, during the last episode: not judged again. (Nothing is taken for lost where a probe repaired it.) */
        m->meld.silent = 1;
        return tp->snd_ssthresh;
    }
    if (cause == MELD_LOSS && !m->hidden && tp->bytes_acked < m->until) {
        /* The parent was told in the middle of an episode that the kernel took to be over: it has answered these losses. */
        begin_reduction(tp, &m->reduction);
        return tp->snd_ssthresh;
    }
    m->asked = cause == MELD_TIMEOUT;
    return judge(sk, m, cause, tp->snd_cwnd, 1);
}

SEC("struct_ops")
void BPF_PROG(meld_set_state, struct sock *sk, __u8 new_state)
{
    struct tcp_sock *tp = tcp_sk(sk);
    struct melded *m = state_of(sk);
    __u8 old_state = ca_state_of(sk);

    if (m && new_state == FLOW_LOSS) {
        /* Within an episode, and where a timeout repeats, the kernel asks for no threshold. */
        if (!m->asked)
            tp->snd_ssthresh = judge(sk, m, MELD_TIMEOUT, m->cwnd, m->meld.silent);
        m->asked = 0;
        m->reduction.prior_cwnd = 0;
        if (m->hidden)
            return;
    } else if (m && new_state <= FLOW_DISORDER && old_state > FLOW_DISORDER) {
        end_reduction(tp, &m->reduction, old_state);
        if (!meld_recovered(&m->meld))
            return;
    } else if (m && m->meld.silent) {
        return;
    }
    parents_state(sk, new_state);
}

SEC("struct_ops")
void BPF_PROG(meld_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    if (parent != PARENT_RENO)
        cubictcp_cwnd_event(sk, event);
    if (event == CA_EVENT_TX_START)
        parent_restart(sk);
}

SEC("struct_ops")
__u32 BPF_PROG(meld_undo_cwnd, struct sock *sk)
{
    struct melded *m = state_of(sk);

    return undo_reduction(sk, m ? &m->reduction : 0);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops control = {
    .init = (void *)meld_init,
    .pkts_acked = (void *)meld_acked,
    .cong_control = (void *)meld_cong_control,
    .ssthresh = (void *)meld_ssthresh,
    .set_state = (void *)meld_set_state,
    .cwnd_event = (void *)meld_cwnd_event,
    .undo_cwnd = (void *)meld_undo_cwnd,
    .name = "meld",
};

SHOW_SOCKETS()
{
    struct meld_user *user = user_of(common);
    __u64 now = bpf_ktime_get_ns();

    BPF_SEQ_PRINTF(seq, " meld_silent=%u meld_silent_packets=%u meld_silent_timeouts=%u", s->meld.silent_count, s->meld.silent_packets,
                   s->meld.silent_timeouts);
    BPF_SEQ_PRINTF(seq, " meld_notified_mark=%u meld_notified_timeout_again=%u meld_notified_unknown=%u meld_notified_stale=%u",
                   s->meld.notified[MELD_MARK], s->meld.notified[MELD_TIMEOUT_AGAIN], s->meld.notified[MELD_UNKNOWN],
                   s->meld.notified[MELD_STALE]);
    BPF_SEQ_PRINTF(seq, " meld_notified_small_block=%u meld_notified_long_queue=%u meld_notified_handover=%u",
                   s->meld.notified[MELD_SMALL_BLOCK], s->meld.notified[MELD_LONG_QUEUE], s->meld.notified[MELD_HANDOVER]);
    BPF_SEQ_PRINTF(seq, " meld_notified_many_lost=%u meld_notified_near_overflow=%u", s->meld.notified[MELD_MANY_LOST],
                   s->meld.notified[MELD_NEAR_OVERFLOW]);
    if (user)
        BPF_SEQ_PRINTF(seq, " report_block=%u report_queue=%u report_age_us=%llu", user->newest.block, user->newest.queue,
                       elapsed_ns(now, user->newest.measured_at) / NS_PER_US);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
