/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * Sockets of a control group take the control when their connection is established: its `init` then sees RTT and segment size.
 * For controls without an option of their own; the others do it in client_driven.h.
 */
#ifndef RANPACE_CHOOSE_H
#define RANPACE_CHOOSE_H

#include "socket.h"

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
    bool established = ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB || ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB;

    if (established && is_chosen(ops))
        bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, choice.name, sizeof(choice.name));
    return 1;
}

#endif
