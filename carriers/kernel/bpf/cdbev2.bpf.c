/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* CDBEv2 with its guard: arithmetic/cdbev2.h and cdbev2_client.h, inside client_driven.h. */
#include "kernel.h"
#include "arithmetic/cdbev2.h"
#include "arithmetic/cdbev2_client.h"

#define NAME "cdbev2"
#define SENDER struct cdbev2_sender
#define SENDER_SETTINGS struct cdbev2_settings
#define SENDER_STEP cdbev2_step
#define SENDER_EVENT cdbev2_step_of
#define SENDER_NOTES_REPORT cdbev2_note_report
#define CLIENT struct cdbev2_client
#define CLIENT_SETTINGS struct cdbev2_client_settings
#define CLIENT_ON_DATA cdbev2_client_on_data
#define CLIENT_TAKE(c, s) cdbev2_client_report(c)

#include "client_driven.h"
