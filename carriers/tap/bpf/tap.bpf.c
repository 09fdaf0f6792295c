/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Copies the headers of packets that servers sent into a ring buffer. It is the filter of a packet socket, and keeps nothing for the
 * socket itself: such a program can neither change a packet nor hold it, and it is gone when its process is.
 *
 * The socket is of the type SOCK_DGRAM, so that a packet begins with its IP header here.
 *
 * What a copy has is read and checked by src/packet.rs.
 */
#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_UDP 17
#define PACKET_OUTGOING 4

/* The longest headers that are read (IPv4 with options, or IPv6 with two short extension headers, and UDP), and the beginning of a payload. */
#define HEADERS 96
#define PAYLOAD 64
/* Most datagrams of a merged packet (UDP_MAX_SEGMENTS). */
#define MOST_DATAGRAMS 128

/* Read by src/packet.rs; `COPY_HEADER` there is the offset of `content`. */
struct copy {
    __u64 at;       /* monotonic clock, ns */
    __u32 datagram; /* number of the datagram in a merged packet of UDP */
    __u16 part;     /* payload of each packet that was merged into this one; 0 if it is a single one */
    __u16 bytes;    /* how many follow */
    __u8 content[HEADERS + PAYLOAD];
};

struct address {
    __u8 bytes[16]; /* IPv4 in the last four */
};

/* Numbers of the devices whose incoming packets are copied. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 256);
    __type(key, __u32);
    __type(value, __u8);
} devices SEC(".maps");

/* Servers whose packets are copied. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, struct address);
    __type(value, __u8);
} servers SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} copies SEC(".maps");

/* Packets of which no copy was made because the ring buffer was full. */
__u64 missed = 0;

static __always_inline struct copy *new_copy(struct __sk_buff *skb, __u64 at, __u16 part)
{
    struct copy *c = bpf_ringbuf_reserve(&copies, sizeof(*c), 0);

    if (!c) {
        __sync_fetch_and_add(&missed, 1);
        return 0;
    }
    c->at = at;
    c->datagram = 0;
    c->part = part;
    return c;
}

/* Datagrams of a merged packet of UDP behind the first one: the headers of all, and the beginning of its own payload. */
static __always_inline void copy_datagrams(struct __sk_buff *skb, __u64 at, __u32 headers, __u32 part)
{
    __u32 number, place, length;

    if (headers < 28 || headers > HEADERS)
        return;
    for (number = 1; number < MOST_DATAGRAMS; number++) {
        struct copy *c;

        place = headers + number * part;
        if (place >= skb->len)
            return;
        length = skb->len - place;
        if (length > PAYLOAD)
            length = PAYLOAD;
        c = new_copy(skb, at, part);
        if (!c)
            continue;
        c->datagram = number;
        c->bytes = headers + length;
        /* The bound is told again where the verifier looks for it. */
        headers &= 127;
        if (headers > HEADERS || headers == 0 || length == 0 || length > PAYLOAD ||
            bpf_skb_load_bytes(skb, 0, c->content, headers) ||
            bpf_skb_load_bytes(skb, place, c->content + headers, length)) {
            bpf_ringbuf_discard(c, 0);
            return;
        }
        bpf_ringbuf_submit(c, 0);
    }
}

SEC("socket")
int tap(struct __sk_buff *skb)
{
    struct address source = {};
    __u32 length = skb->len, device = skb->ifindex, headers;
    __u8 first, next;
    struct copy *c;
    __u64 at;
    __u16 part;
    long failed;

    if (skb->pkt_type == PACKET_OUTGOING || !bpf_map_lookup_elem(&devices, &device))
        return 0;
    if (skb->protocol == bpf_htons(ETH_P_IP))
        failed = bpf_skb_load_bytes(skb, 12, source.bytes + 12, 4);
    else if (skb->protocol == bpf_htons(ETH_P_IPV6))
        failed = bpf_skb_load_bytes(skb, 8, source.bytes, 16);
    else
        return 0;
    if (failed || !bpf_map_lookup_elem(&servers, &source))
        return 0;
    at = bpf_ktime_get_ns();
    part = skb->gso_size;
    c = new_copy(skb, at, part);
    if (!c)
        return 0;
    if (length > sizeof(c->content))
        length = sizeof(c->content);
    c->bytes = length;
    if (length == 0 || bpf_skb_load_bytes(skb, 0, c->content, length)) {
        bpf_ringbuf_discard(c, 0);
        return 0;
    }
    first = c->content[0];
    if (first >> 4 == 4) {
        next = c->content[9];
        headers = (first & 15) * 4 + 8;
    } else {
        /* A merged packet has no extension headers. */
        next = c->content[6];
        headers = 40 + 8;
    }
    bpf_ringbuf_submit(c, 0);
    if (part && next == IPPROTO_UDP)
        copy_datagrams(skb, at, headers, part);
    return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
