/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* CQIC-S with its guard: CDBE's sender and DCIC's receiver, arithmetic/cdbe.h and dcic_client.h. Grants come from a feed. */
#include "kernel.h"
#include "arithmetic/cdbe.h"
#include "arithmetic/dcic_client.h"

#define NAME "cqic_s"
#define SENDER struct cdbe_sender
#define SENDER_SETTINGS struct cdbe_settings
#define SENDER_STEP cdbe_step
#define SENDER_EVENT cdbe_step_of
#define SENDER_NOTES_REPORT cdbe_note_report
#define CLIENT struct dcic_client
#define CLIENT_SETTINGS struct dcic_client_settings
/* The modem tells what was granted; arrivals are counted alone. */
#define CLIENT_ON_DATA(c, s, a) ((c)->reporter.segments += (a)->segments)
#define CLIENT_TAKE(c, s) dcic_client_report(c, s, bpf_ktime_get_ns())

#include "client_driven.h"
#include "feed.h"
