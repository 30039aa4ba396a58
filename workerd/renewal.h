/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_RENEWAL_H
#define WRK_RENEWAL_H

#include <workerd/driver.h>
#include <wire/credentials.h>

/*
 * The exchange of this worker's key while its session goes on. The key file was read again, and the
 * key that this worker uses now is not the session's: a second connection proves the new key to the
 * driver, names the session, and says what the session's own connection is bound by
 * (wire/identity.h). If the driver takes it, the session goes on with the new key. If it has no
 * such session, or has it over another connection, what this worker is attached to is not that
 * driver: the session is lost, and the new key is used for the next one. Else, as after a typing
 * mistake, this worker keeps the keys that it had. Zeroed: nothing is exchanged.
 */
struct wrk_renewal {
	/* constant */
	struct fw_credentials *credentials;
	const struct fragi_address *address; /* of the driver */
	const struct fw_users *users;
	uv_loop_t *loop;
	void (*renewed)(void *arg, const char *proof); /* what the driver has proven (driver.h) */
	void (*refused)(void *arg, const char *why);   /* the session, by who has the new key */
	void *arg;
	/* of the session */
	uint64_t session; /* 0: none yet */
	uint8_t secret[FW_SECRET_BYTES], binding[FW_BINDING_BYTES];
	/* of the exchange */
	struct wrk_driver *driver; /* its connection; NULL: there is none */
	char proof[256];
};

/* There is a new session, over present; an exchange that is under way begins again for it. */
void wrk_renewal_attached(struct wrk_renewal *renewal, const struct fw_welcome *session,
			  struct wrk_driver *present);
/* The keys were read again. present: the connection of the session; NULL: there is none. */
void wrk_renewal_begin(struct wrk_renewal *renewal, struct wrk_driver *present);
/* Lets the loop end. */
void wrk_renewal_end(struct wrk_renewal *renewal);

#endif
