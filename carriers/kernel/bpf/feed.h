/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Radio information for one connection, from a program of the user: it runs `hint`, which is attached nowhere, on a message in
 * place of a packet. Addresses and ports find the socket in the caller's network namespace.
 *
 * Included after client_driven.h by controls whose receiver is arithmetic/dcic_client.h.
 */
#ifndef RANPACE_FEED_H
#define RANPACE_FEED_H

#include "message.h"

SEC("tc")
int hint(struct __sk_buff *skb)
{
    struct message m = {};
    struct bpf_sock *sk;
    struct driven *d;

    if (bpf_skb_load_bytes(skb, 0, &m, sizeof(m)))
        return HINT_REFUSED;
    sk = addressed(skb, &m);
    if (!sk)
        return HINT_NO_SOCKET;
    d = bpf_sk_storage_get(&state, sk, 0, 0);
    if (d)
        dcic_client_on_hint(&d->client, &client, &m.hint, bpf_ktime_get_ns());
    bpf_sk_release(sk);
    return d ? HINT_TAKEN : HINT_NOT_OURS;
}

#endif
