/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_REPORTER_LINK_H
#define WRK_REPORTER_LINK_H

#include <sys/socket.h>

#include <wire/connection.h>

/*
 * The crash reporter's own connection to the driver. It sends HELLO for its workerd's session and,
 * once the driver has answered WELCOME, calls `counts`, which sends what there is to report. A
 * connection that ends before WELCOME is made again: the driver may have had no room for strangers.
 * A connection that cannot be made is not tried again: then the driver is gone.
 */
struct wrk_reporter_link {
	const struct sockaddr *driver;
	uint64_t session;
	const uint8_t *secret;        /* FW_SECRET_BYTES */
	struct fw_tls *tls;           /* NULL: in clear, as its workerd's connection was */
	const struct fw_users *users; /* as in fw_connection_options */
	void (*counts)(void *arg, struct fw_connection *connection);
	void *arg;
	int64_t until_ns; /* when it gives up */
};

/* Returns when the driver has read all and closed the connection, or nothing is left to try. */
void wrk_reporter_link_run(const struct wrk_reporter_link *wanted);

#endif
