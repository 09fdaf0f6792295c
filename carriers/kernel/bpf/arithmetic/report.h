/* SPDX-License-Identifier: GPL-2.0 OR MIT
 *
 * The bandwidth that a receiver reports, as an option of 8 bytes on its segments.
 *
 * Source: RFC 6994 (shared experimental options); Zhong 2020, section 7.2.1, for the report itself. The format is `exp` of
 * logic/cc/src/client_driven/bw_report.rs:
 *
 *     kind 254 | length 8 | experiment 0x5250, "RP" | u32, kbit/s        all big endian
 *
 * A report of 0 says that there is no estimate: it is what SYN, SYN-ACK and the first acknowledgements carry, so that both
 * ends know that the other understands. 1 kbit/s is 125 bytes/s, so the value needs no rounding on its way in.
 *
 * Negotiation. `struct agreement` follows it, the glue asks what to do:
 *   - the client puts the option on its SYN, but not on one that is sent again (a middlebox may drop SYNs that have it);
 *   - the server answers on the SYN-ACK if the SYN had it, but not on one that is sent again;
 *   - the client has agreed when it reads it on the SYN-ACK, and repeats it on its segments;
 *   - the server has agreed when it reads it on any later segment: an option on the SYN alone proves nothing, since the
 *     SYN-ACK's may have been stripped.
 * Who has not agreed writes nothing.
 *
 * Different from Rust: rates above 100 Gbit/s count as that much (fixed.h).
 */
#ifndef RANPACE_REPORT_H
#define RANPACE_REPORT_H

#include "fixed.h"

#define REPORT_KIND 254
#define REPORT_LENGTH 8
#define REPORT_EXPERIMENT 0x5250
/* Bytes per second in a kbit/s. */
#define REPORT_UNIT 125ull

/* The option for a rate in bytes/s: rounded, but never to the zero that says "no estimate". */
static __always_inline void report_encode(__u8 option[REPORT_LENGTH], __u64 rate)
{
	__u64 kbit = rate == 0 ? 0 : max_u64((min_u64(rate, 0xffffffffull * REPORT_UNIT) + REPORT_UNIT / 2) / REPORT_UNIT, 1);

	kbit = min_u64(kbit, 0xffffffffull);
	option[0] = REPORT_KIND;
	option[1] = REPORT_LENGTH;
	option[2] = REPORT_EXPERIMENT >> 8;
	option[3] = REPORT_EXPERIMENT & 0xff;
	option[4] = (__u8)(kbit >> 24);
	option[5] = (__u8)(kbit >> 16);
	option[6] = (__u8)(kbit >> 8);
	option[7] = (__u8)kbit;
}

/* Whether these bytes are the option at all, with or without an estimate. */
static __always_inline int report_is_option(const __u8 option[REPORT_LENGTH])
{
	return option[0] == REPORT_KIND && option[1] == REPORT_LENGTH && option[2] == REPORT_EXPERIMENT >> 8 &&
		   option[3] == (REPORT_EXPERIMENT & 0xff);
}

/* The rate in bytes/s that the option reports; 0 if it is another option, or says that there is no estimate. */
static __always_inline __u64 report_decode(const __u8 option[REPORT_LENGTH])
{
	__u64 kbit = (__u64)option[4] << 24 | (__u64)option[5] << 16 | (__u64)option[6] << 8 | option[7];

	return report_is_option(option) ? min_u64(kbit * REPORT_UNIT, MAX_RATE) : 0;
}

/* What is known of the peer. All zero: nothing. */
struct agreement {
	__u8 active;  /* this end sends the SYN */
	__u8 offered; /* the peer's SYN had the option (passive end) */
	__u8 agreed;  /* reports may be written, and are believed */
	__u8 unused[5];
};

/* Where a segment with the option, or without it, stands in the handshake. */
enum segment_kind { SEGMENT_SYN, SEGMENT_SYN_ACK, SEGMENT_LATER };

/* Whether a segment that is about to leave is to carry the option. `again`: a SYN or SYN-ACK that is sent again. */
static __always_inline int agreement_writes(const struct agreement *a, enum segment_kind kind, int again)
{
	switch (kind) {
	case SEGMENT_SYN:
		return !again;
	case SEGMENT_SYN_ACK:
		return a->offered && !again;
	default:
		return a->agreed;
	}
}

/* A segment of the peer, and whether it had the option. */
static __always_inline void agreement_read(struct agreement *a, enum segment_kind kind, int had_option)
{
	switch (kind) {
	case SEGMENT_SYN:
		a->offered = had_option ? 1 : 0;
		break;
	case SEGMENT_SYN_ACK:
		a->active = 1;
		a->agreed = had_option ? 1 : 0;
		break;
	default:
		/* The active end believes the SYN-ACK alone: one that had none was stripped, or the peer does not know the option. */
		if (had_option && !a->active)
			a->agreed = 1;
	}
}

#endif
