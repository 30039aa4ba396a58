/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_REPORTER_NOTE_H
#define WRK_REPORTER_NOTE_H

#include <stdint.h>

#include <wire/message.h>

/* Notes that workerd sends to its crash reporter, one datagram each. */
#define WRK_NOTE_FDS_MAX 2

enum wrk_note_kind {
	WRK_NOTE_ATTACHED, /* connection, session, secret; its socket */
	WRK_NOTE_DISCONNECTED,
	WRK_NOTE_HOST,         /* host, and what names it in frames; its ledger, its process */
	WRK_NOTE_HOST_ADOPTED, /* host: it belongs to the session that was attached last */
	WRK_NOTE_HOST_REPORTED,
};
struct wrk_note {
	enum wrk_note_kind kind;
	uint32_t host, number;
	uint64_t connection, run, epoch, session;
	uint8_t secret[FW_SECRET_BYTES];
};

#endif
