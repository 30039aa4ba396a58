/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_KEEPER_LINK_H
#define WRK_KEEPER_LINK_H

#include <sys/socket.h>

#include <wire/connection.h>

/*
 * The keeper's own connection to the driver: says HELLO for a session that was its workerd's, and
 * once the driver has answered WELCOME, has `counts` send what there is to report. A connection
 * that ends before WELCOME is tried again: the driver may have had no room for strangers. One that
 * cannot be made is not: then the driver is gone.
 */
struct wrk_keeper_link {
	const struct sockaddr *driver;
	uint64_t session;
	const uint8_t *secret;        /* FW_SECRET_BYTES */
	struct fw_tls *tls;           /* NULL: in clear, as its workerd's connection was */
	const struct fw_users *users; /* as in fw_connection_options */
	void (*counts)(void *arg, struct fw_connection *connection);
	void *arg;
	int64_t until_ns; /* when it gives up */
};

/* Returns when the driver has read all and closed the connection, or there is nothing to try. */
void wrk_keeper_link_run(const struct wrk_keeper_link *wanted);

#endif
