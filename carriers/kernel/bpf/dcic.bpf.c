/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* DCIC with its guard: arithmetic/dcic.h and dcic_client.h, inside client_driven.h. Grants come from a feed. */
#include "kernel.h"
#include "arithmetic/dcic.h"
#include "arithmetic/dcic_client.h"

#define NAME "dcic"
#define SENDER struct dcic_sender
#define SENDER_SETTINGS struct dcic_settings
#define SENDER_STEP dcic_step
#define SENDER_EVENT dcic_step_of
#define SENDER_NOTES_REPORT dcic_note_report
#define CLIENT struct dcic_client
#define CLIENT_SETTINGS struct dcic_client_settings
/* The modem tells what was granted; arrivals are counted alone. */
#define CLIENT_ON_DATA(c, s, a) ((c)->reporter.segments += (a)->segments)
#define CLIENT_TAKE(c, s) dcic_client_report(c, s, bpf_ktime_get_ns())

#include "client_driven.h"
#include "feed.h"
