/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* Takes a report on a user's radio: a program of the user runs `report` on a message. It shares the map `users` with a control. */
#include "users.h"

/* As src/radio.rs writes it. */
struct message {
    struct address user;
    struct meld_report report;
};

#define REPORT_TAKEN 0
#define REPORT_NO_ROOM 1

SEC("syscall")
int report(struct message *m)
{
    struct meld_report report = m->report;
    struct address user = m->user;
    struct meld_user known = {};
    struct meld_user *before = bpf_map_lookup_elem(&users, &user);

    if (before)
        known = *before;
    meld_radio(&known, bpf_ktime_get_ns(), &report);
    return bpf_map_update_elem(&users, &user, &known, BPF_ANY) ? REPORT_NO_ROOM : REPORT_TAKEN;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
