/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The arithmetic alone, one event a run: what the test `arithmetic` drives beside logic/cc inside the kernel. Each algorithm has
 * a map of one event, NAME_event, and a program, run_NAME.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "arithmetic/c2tcp.h"
#include "arithmetic/cdbe.h"
#include "arithmetic/cdbev2.h"
#include "arithmetic/cubic.h"
#include "arithmetic/dcic.h"
#include "arithmetic/mdcc.h"
#include "arithmetic/meld.h"
#include "arithmetic/rapid.h"
#include "arithmetic/sigma.h"

#define STEP(name)                                                                                                                     \
    struct {                                                                                                                           \
        __uint(type, BPF_MAP_TYPE_ARRAY);                                                                                              \
        __uint(max_entries, 1);                                                                                                        \
        __type(key, __u32);                                                                                                            \
        __type(value, struct name##_call);                                                                                             \
    } name##_event SEC(".maps");                                                                                                       \
                                                                                                                                       \
    SEC("syscall")                                                                                                                     \
    int run_##name(void *context)                                                                                                       \
    {                                                                                                                                  \
        __u32 first = 0;                                                                                                               \
        struct name##_call *call = bpf_map_lookup_elem(&name##_event, &first);                                                         \
                                                                                                                                       \
        if (!call)                                                                                                                     \
            return 1;                                                                                                                  \
        name##_call_step(call);                                                                                                        \
        return 0;                                                                                                                      \
    }

STEP(c2tcp)
STEP(cdbe)
STEP(cdbev2)
STEP(dcic)
STEP(meld)
STEP(rapid)
STEP(sigma)
STEP(cubic)
STEP(mdcc)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
