/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What is known of the radio of users, by address: written by the program of radio.bpf.c for each report, read by meld.bpf.c. The least
 * recently used entry makes room for a new one.
 *
 * An entry is replaced as a whole, never changed in place: who reads one reads one report.
 */
#ifndef RANPACE_USERS_H
#define RANPACE_USERS_H

#include "kernel.h"
#include "arithmetic/meld.h"

/* Users at once. Ours: 2.5 MB of memory for each control. */
#define MOST_USERS 16384

/* Network byte order; IPv4 as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2). */
struct address {
    __u32 words[4];
};

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, MOST_USERS);
    __type(key, struct address);
    __type(value, struct meld_user);
} users SEC(".maps");

/* What is known of the user at the other end; NULL if nothing is. */
static __always_inline struct meld_user *user_of(const struct sock_common *common)
{
    struct address peer = {};

    if (common->skc_family == AF_INET) {
        peer.words[2] = bpf_htonl(0xffff);
        peer.words[3] = common->skc_daddr;
    } else {
        for (int i = 0; i < 4; i++)
            peer.words[i] = common->skc_v6_daddr.in6_u.u6_addr32[i];
    }
    return bpf_map_lookup_elem(&users, &peer);
}

#endif
