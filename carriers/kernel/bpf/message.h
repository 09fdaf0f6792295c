/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A message of a program of the user about one connection, for a program that is attached nowhere and run on it in place of a packet.
 * Addresses and ports find the socket in the caller's network namespace.
 */
#ifndef RANPACE_MESSAGE_H
#define RANPACE_MESSAGE_H

#include "kernel.h"
#include "arithmetic/dcic_client.h"

/* As src/feed.rs writes it; ports and addresses in network byte order. */
struct message {
    __u8 ethernet[14]; /* a test run takes it for the header of a frame */
    __be16 local_port;
    __be16 remote_port;
    __u16 family; /* AF_INET or AF_INET6 */
    __u32 unused;
    __be32 local[4]; /* the receiver's own address; the first word alone for AF_INET */
    __be32 remote[4];
    struct dcic_hint hint;
};

#define HINT_TAKEN 0
#define HINT_REFUSED 1 /* what was given is no message */
#define HINT_NO_SOCKET 2
#define HINT_NOT_OURS 3 /* its connection has not this control */

/* The connection's socket, to be released; NULL if there is none. */
static __always_inline struct bpf_sock *addressed(struct __sk_buff *skb, const struct message *m)
{
    struct bpf_sock_tuple tuple = {};
    __u32 size;

    /* The look-up is for a packet that arrives: its source is the peer. */
    if (m->family == AF_INET) {
        size = sizeof(tuple.ipv4);
        tuple.ipv4.saddr = m->remote[0];
        tuple.ipv4.daddr = m->local[0];
        tuple.ipv4.sport = m->remote_port;
        tuple.ipv4.dport = m->local_port;
    } else {
        size = sizeof(tuple.ipv6);
        __builtin_memcpy(tuple.ipv6.saddr, m->remote, sizeof(m->remote));
        __builtin_memcpy(tuple.ipv6.daddr, m->local, sizeof(m->local));
        tuple.ipv6.sport = m->remote_port;
        tuple.ipv6.dport = m->local_port;
    }
    return bpf_skc_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
}

#endif
