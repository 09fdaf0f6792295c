/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* CDBE with its guard: arithmetic/cdbe.h and cdbe_client.h, inside client_driven.h. */
#include "kernel.h"
#include "arithmetic/cdbe.h"
#include "arithmetic/cdbe_client.h"

#define NAME "cdbe"
#define SENDER struct cdbe_sender
#define SENDER_SETTINGS struct cdbe_settings
#define SENDER_STEP cdbe_step
#define SENDER_EVENT cdbe_step_of
#define SENDER_NOTES_REPORT cdbe_note_report
#define CLIENT struct cdbe_client
#define CLIENT_SETTINGS struct cdbe_client_settings
#define CLIENT_NEEDS_RTT
#define CLIENT_ON_DATA cdbe_client_on_data
#define CLIENT_TAKE cdbe_client_report

#include "client_driven.h"
