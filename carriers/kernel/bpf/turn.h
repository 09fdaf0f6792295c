/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * A state that the socket's own programs and a program of the user work on, one at a time.
 */
#ifndef RANPACE_TURN_H
#define RANPACE_TURN_H

#include "kernel.h"

/* Turns of waiting for the other program: several times what a message of the user takes. */
#define PATIENCE 512

/* An open-coded iterator, of which the verifier reads one turn alone (Linux 6.4). */
struct bpf_iter_num {
    __u64 opaque[1];
} __attribute__((aligned(8)));

struct turn {
    __u32 busy;
    __u32 missed; /* events that found it busy, and were left out */
};

static __always_inline bool take_turn(struct turn *turn)
{
    bpf_repeat(PATIENCE)
        if (!__sync_val_compare_and_swap(&turn->busy, 0, 1))
            return true;
    __sync_fetch_and_add(&turn->missed, 1);
    return false;
}

static __always_inline void give_turn(struct turn *turn)
{
    __sync_lock_test_and_set(&turn->busy, 0);
}

#endif
