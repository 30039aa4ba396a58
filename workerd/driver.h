/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_DRIVER_H
#define WRK_DRIVER_H

#include <uv.h>

#include <base/units.h>
#include <wire/connection.h>

/*
 * The connection to the driver: looks the name up, tries its addresses one after the other, then
 * carries frames. One object an attempt. It calls failed or lost once, or nothing any more after
 * finish, and then freed, after which it is gone.
 */
struct wrk_driver;

struct wrk_driver_ops {
	/* proof: the key, certificate or user that the driver has proven; empty: none */
	void (*connected)(void *arg, uint64_t id, const char *local_address, const char *proof);
	/*
	 * failure: KEY_REFUSED when the driver has no key in common with this worker, USER_REFUSED
	 * when it is a process of a user that is not trusted; else NONE
	 */
	void (*failed)(void *arg, uint64_t id, enum fragi_failure failure, const char *why);
	/* Takes message (fw_message_free). */
	void (*message)(void *arg, uint64_t id, struct fw_message *message);
	void (*lost)(void *arg, uint64_t id, enum fragi_failure failure, const char *why);
	void (*freed)(void *arg, struct wrk_driver *driver);
};

/* options: of its connection. Returns 0, -ENOMEM, or what libuv says. */
int wrk_driver_open(uv_loop_t *loop, const struct fragi_address *address, uint64_t id,
		    const struct fw_connection_options *options, const struct wrk_driver_ops *ops,
		    void *arg, struct wrk_driver **out_driver);
int wrk_driver_fd(const struct wrk_driver *driver); /* its socket, once it is connected */
uint64_t wrk_driver_id(const struct wrk_driver *driver);
/* Its session goes on with the key that is used now. */
void wrk_driver_renew(struct wrk_driver *driver);
/* What the driver has proven by a key or certificate; no name: nothing, or not yet. */
const struct fw_identity *wrk_driver_identity(const struct wrk_driver *driver);
/* Ends it as lost. */
void wrk_driver_lose(struct wrk_driver *driver, const char *why);
/* Whether it is a process of this user on this machine (wire/peer_user.h). */
bool wrk_driver_is_own_user(const struct wrk_driver *driver);
void wrk_driver_send(struct wrk_driver *driver, const struct fw_message *message);
/* Ends it after what was sent has left, 1 s at most. */
void wrk_driver_finish(struct wrk_driver *driver);

#endif
