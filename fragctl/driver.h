/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_DRIVER_H
#define CTL_DRIVER_H

#include <uv.h>

#include <base/units.h>
#include <fragctl/ctl.h>
#include <wire/connection.h>

/*
 * A session with a driver as its client. Calls block; beats are sent meanwhile. On this machine,
 * and without --address of another one, it is the driver's unix socket, else TCP. Zeroed, and with
 * the flags of CTL_DRIVER_FLAGS: not open.
 */
struct ctl_driver {
	/* flags */
	const char *address_text;
	struct fragi_texts allowed;
	bool insecure;
	/* the session */
	struct fragi_address address;
	char where[300]; /* for sentences: the address, or the path of the socket */
	struct fw_users users;
	uv_loop_t loop;
	bool has_loop;
	uv_timer_t beat;
	uv_connect_t connect;
	bool is_connecting;
	struct fw_connection *connection; /* NULL: there is none */
	bool is_welcome;
	struct ctl_received *first, **last; /* messages that nobody has taken */
	uint64_t seq;
	int64_t beat_ns, dead_ns;
	int silent_beats;
	int failed; /* negative errno: why it ended */
	enum fragi_failure failure;
	char why[FW_TEXT_MAX];
};

#define CTL_DRIVER_FLAGS(driver)                                                                   \
	{.name = "address",                                                                        \
	 .value = "[HOST][:PORT]",                                                                 \
	 .help = "of the driver; default 127.0.0.1:57777",                                         \
	 .text = &(driver).address_text},                                                          \
		{.name = "allow-user",                                                             \
		 .value = "NAME|UID",                                                              \
		 .no_env = true,                                                                   \
		 .help = "also takes a driver on this machine that runs as this user; repeatable", \
		 .texts = &(driver).allowed},                                                      \
	{                                                                                          \
		.name = "insecure", .help = "connects to another machine without a key",           \
		.on = &(driver).insecure                                                           \
	}

/* Connects. Returns CTL_OK, or the exit code, complained. ctl_driver_close in every case. */
int ctl_driver_open(struct ctl_driver *driver);
/*
 * Sends a request and waits for what answers it; what else comes before is dropped.
 * - out_reply: freed with fw_message_free
 * Returns CTL_OK, or the exit code, complained.
 */
int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply);
/* Waits for what else answers a request that was sent. The same. */
int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply);
/* Waits for the next message, whatever it answers. The same. */
int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message);
void ctl_driver_close(struct ctl_driver *driver);

#endif
