/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The report on its way: sock_ops programs write it as a TCP option at the receiver, read it at the sender, and agree on it in the
 * handshake (arithmetic/report.h has format and rules). The program `choose` is attached to a control group at both ends.
 *
 * A listener that was there before the attachment has no TCP_LISTEN_CB: its connections stay plain. Where SACK blocks leave no room,
 * the kernel does not ask for the option at all, and the sender keeps the last report.
 */
#ifndef RANPACE_OPTION_H
#define RANPACE_OPTION_H

#include "arithmetic/report.h"
#include "socket.h"

#define TCPHDR_SYN 0x02
#define TCPHDR_ACK 0x10
#define TCPHDR_RST 0x04
#define OPTION_FLAGS (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG)

/* What the option tells one end of a connection of the other. */
struct link {
    struct agreement agreement;
    __u64 report;   /* bytes/s, the last one that came; 0 = none */
    __u64 came;     /* ns, when the control saw it */
    __u32 reports;  /* that came since the connection began */
    __u32 consumed; /* of these, how many the control has seen */
};

static __always_inline void ask_for_options(struct bpf_sock_ops *ops, bool wanted)
{
    __u32 flags = ops->bpf_sock_ops_cb_flags & ~OPTION_FLAGS;

    bpf_sock_ops_cb_flags_set(ops, wanted ? flags | OPTION_FLAGS : flags);
}

/* Reads our option of a segment into `option`; `flags` is BPF_LOAD_HDR_OPT_TCP_SYN for that of the peer's SYN. */
static __always_inline bool load_option(struct bpf_sock_ops *ops, __u8 option[REPORT_LENGTH], __u64 flags)
{
    /* The search is for the kind and the number of the experiment: a length of 4 says that two bytes of it count. */
    option[0] = REPORT_KIND;
    option[1] = 4;
    option[2] = REPORT_EXPERIMENT >> 8;
    option[3] = REPORT_EXPERIMENT & 0xff;
    return bpf_load_hdr_opt(ops, option, REPORT_LENGTH, flags) == REPORT_LENGTH;
}

/* The same where Linux writes it: right behind NOP, NOP and timestamps. Nearly all segments have it there, and no search is needed. */
static __always_inline bool load_usual_option(struct bpf_sock_ops *ops, __u8 option[REPORT_LENGTH])
{
    const __u8 *header = ops->skb_data, *end = ops->skb_data_end;

    /* The end is that of the header. */
    if (header + 32 + REPORT_LENGTH > end || header[20] != 1 || header[21] != 1 || header[22] != 8 || header[23] != 10 ||
        !report_is_option(header + 32))
        return false;
    __builtin_memcpy(option, header + 32, REPORT_LENGTH);
    return true;
}

static __always_inline enum segment_kind kind_of(struct bpf_sock_ops *ops)
{
    __u8 flags = ops->skb_tcp_flags;

    if (!(flags & TCPHDR_SYN))
        return SEGMENT_LATER;
    return flags & TCPHDR_ACK ? SEGMENT_SYN_ACK : SEGMENT_SYN;
}

/* Whether the SYN-ACK at hand was sent before. Its socket is not yet one that could be asked; but the SYN is at hand only where it has
 * just come. (What a listener keeps of SYNs, where its program asked for that, is readable later too.)
 */
static __always_inline bool is_sent_again(struct bpf_sock_ops *ops)
{
    const struct bpf_sock_ops_kern *kern = bpf_cast_to_kern_ctx(ops);

    return !kern->syn_skb;
}

/* Whether the segment at hand is to carry the option; `link` is null before the connection is established. */
static __always_inline bool carries_option(struct bpf_sock_ops *ops, const struct link *link)
{
    struct agreement offered = {};
    __u8 option[REPORT_LENGTH];

    switch (kind_of(ops)) {
    case SEGMENT_SYN:
        return agreement_writes(&offered, SEGMENT_SYN, ops->total_retrans > 0);
    case SEGMENT_SYN_ACK:
        offered.offered = load_option(ops, option, BPF_LOAD_HDR_OPT_TCP_SYN);
        return agreement_writes(&offered, SEGMENT_SYN_ACK, is_sent_again(ops));
    default:
        return link && agreement_writes(&link->agreement, SEGMENT_LATER, 0);
    }
}

/* A segment of the peer came: what it says. */
static __always_inline void read_option(struct bpf_sock_ops *ops, struct link *link, enum segment_kind kind)
{
    __u8 option[REPORT_LENGTH];
    bool had = load_usual_option(ops, option) || load_option(ops, option, 0);
    __u64 rate;

    agreement_read(&link->agreement, kind, had);
    if (!had || !link->agreement.agreed)
        return;
    rate = report_decode(option);
    if (!rate)
        return;
    link->report = rate;
    link->reports++;
}

#endif
