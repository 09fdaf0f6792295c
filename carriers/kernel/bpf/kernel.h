/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The few structures of the kernel that the programs read, with the few fields that they use. Their places are filled in when the
 * programs are loaded (CO-RE), from the running kernel's own type information: no header of a kernel is needed to build them.
 */
#ifndef RANPACE_KERNEL_H
#define RANPACE_KERNEL_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define AF_INET 2
#define AF_INET6 10
#define TCP_ESTABLISHED 1
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1
/* Errors that helpers return, negative. */
#define ENOENT 2
#define ENOMSG 42
/* Levels and names of socket options, for bpf_setsockopt. */
#define SOL_TCP 6
#define TCP_CONGESTION 13
#define IPPROTO_TCP 6

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct in6_addr {
    union {
        __u32 u6_addr32[4];
    } in6_u;
};

struct netns_ipv4 {
    __u8 sysctl_tcp_slow_start_after_idle;
};

struct net {
    struct netns_ipv4 ipv4;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    unsigned char skc_state;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
    struct sock_common __sk_common;
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    __u32 sk_pacing_status;
};

struct inet_sock {
    struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    const struct tcp_congestion_ops *icsk_ca_ops;
    __u8 icsk_ca_state : 5;
    __u8 icsk_retransmits; /* timeouts since anything was acknowledged */
    __u8 icsk_pending;     /* the timer that is set; 0 = none */
    __u32 icsk_rto;        /* jiffies */
};

struct minmax_sample {
    __u32 t;
    __u32 v;
};

struct minmax {
    struct minmax_sample s[3];
};

struct tcp_options_received {
    __u32 rcv_tsval;
    __u32 rcv_tsecr;
    __u16 saw_tstamp : 1;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 mss_cache;
    __u16 tcp_header_len;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 snd_cwnd;
    __u32 snd_cwnd_cnt;
    __u32 snd_cwnd_clamp;
    __u32 snd_ssthresh;
    __u32 lsndtime; /* jiffies: when data were sent last */
    __u32 prior_ssthresh;
    __u32 packets_out;
    __u32 max_packets_out;
    __u32 data_segs_out; /* segments of data sent, copies too */
    __u64 tcp_wstamp_ns; /* when the newest segment left, or is to leave */
    __u32 sacked_out;
    __u32 lost_out;
    __u32 retrans_out;
    __u32 srtt_us; /* eight times the smoothed RTT */
    __u32 delivered;
    __u32 lost;
    __u32 app_limited;
    __u64 bytes_acked;
    struct minmax rtt_min;
    __u32 prr_out;
    __u32 prior_cwnd; /* before the last reduction */
    struct {
        __u32 rtt_us; /* eight times the receiver's RTT */
    } rcv_rtt_est;
    __u8 is_cwnd_limited : 1;
    __u64 tcp_mstamp;
    __u64 tcp_clock_cache;
    struct tcp_options_received rx_opt;
};

struct ack_sample {
    __u32 pkts_acked;
    __s32 rtt_us;
    __u32 in_flight;
};

struct rate_sample {
    __u32 prior_delivered;
    __s32 delivered;
    long interval_us;
    long rtt_us;
    int losses;
    __u32 acked_sacked;
    __u32 prior_in_flight;
    bool is_app_limited;
    bool is_retrans;
    bool is_ack_delayed;
};

enum tcp_ca_event { CA_EVENT_TX_START };

struct tcp_congestion_ops {
    char name[16]; /* first, where the loader finds it: fields are matched by name */
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    void (*set_state)(struct sock *sk, __u8 new_state);
    void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
    void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
    __u32 (*min_tso_segs)(struct sock *sk);
    void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
    __u32 (*undo_cwnd)(struct sock *sk);
    __u32 flags;
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
};

struct sk_buff;

/* What is behind a sock_ops program's context. */
struct bpf_sock_ops_kern {
    struct sk_buff *syn_skb; /* the SYN that a SYN-ACK answers, when it is written for the first time */
};

struct seq_file;

struct bpf_iter_meta {
    struct seq_file *seq;
};

struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
};

#pragma clang attribute pop

extern void *bpf_cast_to_kern_ctx(void *context) __ksym;
/* The kernel's own CUBIC and Reno, which decorators wrap. CUBIC keeps its state in the socket's private area. */
extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
    return (struct tcp_sock *)sk;
}

static __always_inline __u32 in_flight(const struct tcp_sock *tp)
{
    return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

/* Whether the window, not the application, holds the sender back (tcp_is_cwnd_limited). */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
    if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
        return true;
    return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

#endif
