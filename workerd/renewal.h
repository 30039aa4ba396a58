/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_RENEWAL_H
#define WRK_RENEWAL_H

#include <workerd/driver.h>
#include <wire/credentials.h>

/*
 * The exchange of this worker's key or certificate while its session goes on. The files were read
 * again, and what they hold is not what the session holds by: a second connection proves it to the
 * driver, names the session, and says what the session's own connection is bound by
 * (wire/identity.h). Until the driver takes it, no other connection uses it. How it ends:
 *
 * - WELCOME: the session goes on, and what was read is used from now on.
 * - The driver has no such session, or has it over another connection: what this worker is attached
 *   to is not that driver. The session is lost, and the next one is by what was read.
 * - The driver does not take it, as after a typing mistake: it is forgotten.
 * - The connection is lost: it is tried again with the next session.
 *
 * Between two sessions what was read waits for the next one, since a session by something else is
 * one with another driver for the hosts. If what is used is refused then, that may be a stranger's
 * word. So a second connection looks whether there is a driver that proves what was read. If so,
 * and what is used is refused once more, it is given up for what was read.
 *
 * Before the first session no driver has taken anything: what was read is used with the next
 * connection, and exchanged if the one that is under way becomes a session. Zeroed: nothing is
 * exchanged.
 */
struct wrk_renewal {
	/* constant */
	struct fw_credentials *credentials;
	const struct fragi_address *address; /* of the driver */
	const struct fw_users *users;
	uv_loop_t *loop;
	void (*renewed)(void *arg, const char *proof); /* what the driver has proven (driver.h) */
	/* The session of that connection is refused. Returns whether it was the present one. */
	bool (*refused)(void *arg, uint64_t connection, const char *why);
	void *arg;
	/* of the session */
	uint64_t session, connection; /* 0: none yet */
	uint8_t secret[FW_SECRET_BYTES], binding[FW_BINDING_BYTES];
	bool is_unsure; /* the driver may hold it by what was read before */
	/* of the exchange */
	struct fw_tls *next;       /* what was read, owned; NULL: it is in use, or forgotten */
	struct wrk_driver *driver; /* the second connection; NULL: there is none */
	bool looks;                /* it is made without a session, after a refusal */
	bool is_there;             /* since the last session, a driver has proven next so */
	char proof[256];
};

/* There is a new session, over present; an exchange that is under way begins again for it. */
void wrk_renewal_attached(struct wrk_renewal *renewal, const struct fw_welcome *session,
			  struct wrk_driver *present);
/* They were read again. Takes next. present: the connection to the driver; NULL: there is none. */
void wrk_renewal_begin(struct wrk_renewal *renewal, struct fw_tls *next,
		       const struct wrk_driver *present);
/*
 * The connection to the driver has failed, is lost or is left. Returns failure; NONE for a refusal
 * that says nothing, as the next connection proves something else.
 */
enum fragi_failure wrk_renewal_lost(struct wrk_renewal *renewal, enum fragi_failure failure);
/* Lets the loop end. */
void wrk_renewal_end(struct wrk_renewal *renewal);

#endif
