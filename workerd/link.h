/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_LINK_H
#define WRK_LINK_H

#include <uv.h>

#include <base/units.h>
#include <wire/message.h>

/*
 * The connection to the driver: looks the name up, tries its addresses one after the other, then
 * carries frames. One object an attempt. It calls failed or lost once, or nothing any more after
 * finish, and then freed, after which it is gone.
 */
struct wrk_link;

struct wrk_link_ops {
	void (*connected)(void *arg, uint64_t id, const char *local_address);
	void (*failed)(void *arg, uint64_t id, const char *why);
	/* Takes message (fw_message_free). */
	void (*message)(void *arg, uint64_t id, struct fw_message *message);
	void (*lost)(void *arg, uint64_t id, const char *why);
	void (*freed)(void *arg, struct wrk_link *link);
};

/* Returns 0, -ENOMEM, or what libuv says. */
int wrk_link_open(uv_loop_t *loop, const struct fragi_address *address, uint64_t id,
		  const struct wrk_link_ops *ops, void *arg, struct wrk_link **out_link);
uint64_t wrk_link_id(const struct wrk_link *link);
void wrk_link_send(struct wrk_link *link, const struct fw_message *message);
/* Ends it after what was sent has left, 1 s at most. */
void wrk_link_finish(struct wrk_link *link);

#endif
