/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Radio information for one connection, from a program of the user: it runs `hint`, which is attached nowhere, on a message in
 * place of a packet. Addresses and ports find the socket in the caller's network namespace.
 *
 * Included after client_driven.h by controls whose receiver is arithmetic/dcic_client.h.
 */
#ifndef RANPACE_FEED_H
#define RANPACE_FEED_H

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

SEC("tc")
int hint(struct __sk_buff *skb)
{
    struct bpf_sock_tuple tuple = {};
    struct message m = {};
    struct bpf_sock *sk;
    struct driven *d;
    __u32 size;

    if (bpf_skb_load_bytes(skb, 0, &m, sizeof(m)))
        return HINT_REFUSED;
    /* The look-up is for a packet that arrives: its source is the peer. */
    if (m.family == AF_INET) {
        size = sizeof(tuple.ipv4);
        tuple.ipv4.saddr = m.remote[0];
        tuple.ipv4.daddr = m.local[0];
        tuple.ipv4.sport = m.remote_port;
        tuple.ipv4.dport = m.local_port;
    } else {
        size = sizeof(tuple.ipv6);
        __builtin_memcpy(tuple.ipv6.saddr, m.remote, sizeof(m.remote));
        __builtin_memcpy(tuple.ipv6.daddr, m.local, sizeof(m.local));
        tuple.ipv6.sport = m.remote_port;
        tuple.ipv6.dport = m.local_port;
    }
    sk = bpf_skc_lookup_tcp(skb, &tuple, size, BPF_F_CURRENT_NETNS, 0);
    if (!sk)
        return HINT_NO_SOCKET;
    d = bpf_sk_storage_get(&state, sk, 0, 0);
    if (d)
        dcic_client_on_hint(&d->client, &client, &m.hint, bpf_ktime_get_ns());
    bpf_sk_release(sk);
    return d ? HINT_TAKEN : HINT_NOT_OURS;
}

#endif
