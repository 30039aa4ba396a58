/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_DRIVER_H
#define CTL_DRIVER_H

#include <uv.h>

#include <base/units.h>
#include <fragctl/ctl.h>
#include <fragctl/tls/tls.h>
#include <wire/connection.h>

/*
 * A session with a driver as its client. Calls block; beats are sent meanwhile. On this machine,
 * and without --address of another one, it is the driver's unix socket, else TCP. Zeroed, and with
 * the flags of CTL_DRIVER_FLAGS: not open.
 */
struct ctl_driver {
	/* flags */
	const char *address_text, *timeout_text;
	struct fw_tls_config keys; /* what proves over TCP who this is */
	struct fragi_texts allowed;
	bool insecure;
	char found[16]; /* by ctl_driver_find */
	/* the session */
	struct fragi_address address;
	char where[300]; /* for sentences: the address, or the path of the socket */
	struct fw_users users;
	const struct ctl_tls_module *tls_module;
	struct fw_tls *tls; /* NULL: without */
	uv_loop_t loop;
	bool has_loop;
	uv_timer_t beat, timeout;
	int64_t timeout_ns; /* 0: none */
	bool follows;       /* the verb connects again when the driver is lost */
	bool timed_out;     /* --timeout is over */
	bool is_reached;    /* somebody has taken the connection */
	bool has_refused;   /* a driver has, so no other one is looked for */
	bool is_busy;       /* the driver's socket is there, and it has said nothing */
	bool retries;       /* it is time to ask again for a place at the driver */
	bool is_denied;     /* a socket of a driver is there, and may not be used */
	uv_connect_t connect;
	bool is_connecting;
	struct fw_connection *connection; /* NULL: there is none */
	bool is_welcome;
	char version[32];                   /* of the driver */
	struct ctl_received *first, **last; /* messages that nobody has taken */
	uint64_t seq;
	int64_t beat_ns, dead_ns;
	int silent_beats;
	int asked;  /* requests since the driver's last beat */
	int failed; /* negative errno: why it ended */
	enum fragi_failure failure;
	char why[FW_TEXT_MAX];
	bool is_quiet; /* why it did not connect is not printed, and in `sentence` */
	char sentence[FW_TEXT_MAX + 700];
};

/* Of verbs that show what a driver does until a person ends them. */
#define CTL_VIEWER_FLAGS(driver)                                                                     \
	{.name = "address",                                                                          \
	 .value = "[HOST][:PORT]",                                                                   \
	 .help = "of the driver; default 127.0.0.1:57777",                                           \
	 .text = &(driver).address_text},                                                            \
		{.name = "allow-user",                                                               \
		 .value = "NAME|UID",                                                                \
		 .no_env = true,                                                                     \
		 .help = "also takes a driver on this machine that runs as this user; repeatable",   \
		 .texts = &(driver).allowed},                                                        \
		{.name = "key-file",                                                                 \
		 .value = "FILE",                                                                    \
		 .help = "its first key for a client is used, on another machine (fragctl key new)", \
		 .text = &(driver).keys.key_file},                                                   \
	{                                                                                            \
		.name = "insecure", .help = "connects to another machine without a key",             \
		.on = &(driver).insecure                                                             \
	}
/* Of all others: each of them may wait for the driver. */
#define CTL_DRIVER_FLAGS(driver)                                                                   \
	{.name = "timeout",                                                                        \
	 .value = "TIME",                                                                          \
	 .no_env = true,                                                                           \
	 .help = "gives up with 4 after that; what was asked for goes on",                         \
	 .text = &(driver).timeout_text},                                                          \
		CTL_VIEWER_FLAGS(driver)

/*
 * Without --address, and where no driver of this machine has the default port: takes the driver of
 * this user that was started last, such as that of `fragctl run`. Before it is opened.
 */
void ctl_driver_find(struct ctl_driver *driver);
/* Whether the address is one of this machine. */
bool ctl_driver_is_near(const struct fragi_address *address);
#define CTL_FOLDERS 3
/* The folders of driverd/local_socket.h, of this user and of the system. Empty: there is none. */
void ctl_driver_folders(char folders[CTL_FOLDERS][200]);
/* Connects. Returns CTL_OK, or the exit code, complained. ctl_driver_close in every case. */
int ctl_driver_open(struct ctl_driver *driver);
/* The same after ctl_driver_find: for verbs that show something, and change nothing. */
int ctl_driver_open_any(struct ctl_driver *driver);
/* As ctl_driver_open, but for the connection: ctl_driver_reopen makes it. */
int ctl_driver_begin(struct ctl_driver *driver);
/* Sends a request, and waits for nothing. Returns 0 or a negative errno. */
int ctl_driver_send(struct ctl_driver *driver, struct fw_message *request);
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
/*
 * While a verb follows what happens: the driver closes the connection of a client that does not
 * read. Connects again. Returns CTL_OK, or the exit code, complained.
 */
int ctl_driver_reopen(struct ctl_driver *driver);
void ctl_driver_close(struct ctl_driver *driver);

#endif
