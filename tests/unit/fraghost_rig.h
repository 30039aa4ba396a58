/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_FRAGHOST_RIG_H
#define TESTS_UNIT_FRAGHOST_RIG_H

#include <criterion/criterion.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/stamp.h>
#include <text/spec.h>
#include <wire/frame.h>
#include <workerd/page.h>
#include <workerd/spawn.h>

#include "built.h"

/* The real fraghost, with this test as its workerd. */
#define PATIENCE_NS 20000000000ll
#define MS 1000000ll

static pid_t pid;
static int pidfd, control, output;
static struct fw_reader reader;
static struct wrk_page page;
static uint32_t beats;
static char text[65536]; /* what it wrote */
static size_t text_bytes;

static inline void start(void)
{
	int sockets[2], pipes[2];
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	cr_assert_eq(wrk_page_init(&page), 0);
	cr_assert_eq(wrk_spawn(&(struct wrk_spawn){.program = built("libexec/frag/fraghost"),
						   .environment = environ,
						   .control_fd = sockets[1],
						   .ledger_fd = page.fd,
						   .output_fd = pipes[1]},
			       &pid, &pidfd, &err),
		     0, "%s", err.text);
	close(sockets[1]);
	close(pipes[1]);
	control = sockets[0];
	output = pipes[0];
	fcntl(output, F_SETFL, O_NONBLOCK);
	fw_reader_init(&reader, FW_FRAME_MAX);
}

static inline void finish(void)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pidfd);
	close(output);
	if (control >= 0)
		close(control);
	fw_reader_fini(&reader);
	wrk_page_fini(&page);
}
static inline void tell(struct fw_message message)
{
	uint8_t *frame;
	size_t size;

	message.seq = 1;
	if (message.kind != FW_BEAT) {
		message.run = 7;
		message.host = 1;
		message.epoch = 3;
	}
	cr_assert_eq(fw_encode(&message, &frame, &size), 0);
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(control, frame + sent, size - sent, MSG_NOSIGNAL);

		cr_assert_gt(n, 0);
		sent += (size_t)n;
	}
	free(frame);
}

static inline void read_output(void)
{
	ssize_t n;

	char rest[4096]; /* beyond what is kept, so that the writer does not wait */

	while ((n = read(output, text + text_bytes, sizeof(text) - 1 - text_bytes)) > 0)
		text_bytes += (size_t)n;
	while (text_bytes == sizeof(text) - 1 && read(output, rest, sizeof(rest)) > 0)
		;
	text[text_bytes] = '\0';
}

/* The next message but beats; beats back meanwhile. NULL: the socket is closed. */
static inline struct fw_message *hear(void)
{
	int64_t end_ns = fragi_now_ns() + PATIENCE_NS;
	struct fw_message *message;
	const uint8_t *bytes;
	size_t size;

	while (fragi_now_ns() < end_ns) {
		struct pollfd wait = {.fd = control, .events = POLLIN};
		uint8_t buffer[65536];
		ssize_t n;

		while (fw_reader_next(&reader, &bytes, &size, NULL) > 0) {
			cr_assert_eq(fw_decode(bytes, size, &message, NULL), 0);
			if (message->kind != FW_BEAT)
				return message;
			beats++;
			fw_message_free(message);
		}
		read_output();
		tell((struct fw_message){.kind = FW_BEAT});
		if (poll(&wait, 1, 50) <= 0)
			continue;
		n = recv(control, buffer, sizeof(buffer), 0);
		if (n <= 0)
			return NULL;
		cr_assert_eq(fw_reader_feed(&reader, buffer, (size_t)n, fragi_now_ns()), 0);
	}
	read_output();
	cr_assert_fail("the host says nothing; it wrote: %s", text);
	return NULL;
}

#endif
