// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <base/alloc.h>
#include <driverd/system.h>
#include <workerd/host/control.h>
#include <workerd/page.h>

#include "../expected.h"
#include "transcript.h"

/*
 * Small parts of the shells, with a clock that is played here: what they read, send and keep, as a
 * recorded text.
 */
static int64_t clock_ns = 5000000000, realtime_ns;
static bool is_played;

int clock_gettime(clockid_t id, struct timespec *out)
{
	int64_t ns = id == CLOCK_REALTIME ? realtime_ns : clock_ns;

	if (!is_played)
		return (int)syscall(SYS_clock_gettime, id, out);
	*out = (struct timespec){ns / 1000000000, ns % 1000000000};
	return 0;
}

/* Every number of a host's page is another one. */
static void page_is_read(void)
{
	struct wrk_page page;
	struct fragi_ledger ledger = {0};
	struct fw_message message = {.kind = FW_HOST_STATS};
	uint64_t number = 1000;

	fprintf(transcript, "a page\n");
	cr_assert_eq(wrk_page_init(&page), 0);
	cr_assert_eq(wrk_page_read(&page, &message.stats), -ENOENT);
	cr_assert_eq(fragi_ledger_create(&ledger, page.fd, 3, 2), 0);
	for (uint64_t *at = (uint64_t *)(void *)ledger.ops; at < (uint64_t *)(void *)&ledger.ops[3];
	     at++)
		*at = number++;
	for (uint64_t *at = (uint64_t *)(void *)ledger.flows;
	     at < (uint64_t *)(void *)&ledger.flows[2]; at++)
		*at = number++;
	for (uint64_t *at = (uint64_t *)(void *)ledger.head->pools;
	     at < (uint64_t *)(void *)&ledger.head->pools[3]; at++)
		*at = number++;
	atomic_store(&ledger.head->pools[1].free, 7);
	atomic_store(&ledger.head->pools[2].block_bytes, 0);
	atomic_store(&ledger.head->late_count, 2);
	for (uint64_t *at = (uint64_t *)(void *)ledger.head->lates;
	     at < (uint64_t *)(void *)&ledger.head->lates[3]; at++)
		*at = number++;
	for (uint32_t i = 0; i < 3; i++) {
		atomic_store(&ledger.ops[i].running, i == 1);
		atomic_store(&ledger.ops[i].state, FRAGI_OP_FAILED - 1 + i);
		atomic_store(&ledger.ops[i].sched, (UINT64_C(20) + i) << 32 | (i + 1));
		atomic_store(&ledger.ops[i].ticks, i == 0 ? 51 : 48 + 2 * i);
		atomic_store(&ledger.ops[i].compute.count, 51);
	}
	cr_assert_eq(wrk_page_read(&page, &message.stats), 0);
	message.stats.facts.at_ns = 1;
	transcript_message("has", &message);
	atomic_store(&ledger.head->late_count, UINT64_MAX);
	cr_assert_eq(wrk_page_read(&page, &message.stats), 0);
	fprintf(transcript, "  pools %u, places of late messages %u\n", message.stats.pool_count,
		message.stats.late_count);
	for (int64_t skip = 0, failed = 1; failed > 0; skip++) {
		struct wrk_page other = {.fd = dup(page.fd)};
		int r;

		fragi_alloc_fail_after(skip, 1);
		r = wrk_page_read(&other, &message.stats);
		failed = fragi_alloc_fail_off();
		fprintf(transcript, "  without memory: %d, mapped %d\n", r,
			other.ledger.head != NULL);
		wrk_page_fini(&other);
		cr_expect_eq(other.fd, -1);
	}
	fragi_ledger_close(&ledger);
	wrk_page_fini(&page);
}

static void show_control(const struct host_control *control, const char *what, int r)
{
	fprintf(transcript, "  %s: %d; kept %s, %s\n", what, r,
		control->unsent_bytes > 0 ? "some" : "nothing",
		control->unsent != NULL ? "in memory" : "without memory");
}

/* Takes what has come: messages without a gap. Returns the number of the last one. */
static uint64_t receive_all(struct fw_reader *reader, int fd, uint64_t last)
{
	uint8_t bytes[4096];
	const uint8_t *frame;
	struct fw_message *message;
	size_t size;
	ssize_t n;

	while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		cr_assert_eq(fw_reader_feed(reader, bytes, (size_t)n, 0), 0);
		while (fw_reader_next(reader, &frame, &size, NULL) > 0) {
			cr_assert_eq(fw_decode(frame, size, &message, NULL), 0);
			cr_expect_eq(message->seq, last + 1);
			last = message->seq;
			fw_message_free(message);
		}
	}
	return last;
}

/* A workerd that reads nothing, one that is gone, and one that says what is no frame. */
static void host_talks(void)
{
	static const uint8_t bytes[FW_SAVED_BYTES_MAX];
	const struct fw_message large = {.kind = FW_HOST_SAVED,
					 .saved = {.bytes = bytes, .size = sizeof(bytes)}};
	struct fw_message beat = {.kind = FW_BEAT}, *message;
	struct host_control control;
	struct fw_reader reader;
	uint64_t last;
	int fds[2], r;

	fprintf(transcript, "a host's end of its socket\n");
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	host_control_init(&control, fds[0]);
	fw_reader_init(&reader, FW_FRAME_MAX);
	show_control(&control, "sends", host_control_send(&control, &beat));
	show_control(&control, "sends the rest", host_control_flush(&control));
	for (r = 0; r == 0 && control.unsent_bytes < 1000;)
		r = host_control_send(&control, &beat);
	show_control(&control, "sends to one that reads nothing", r);
	show_control(&control, "sends the rest", host_control_flush(&control));
	for (last = 0; control.unsent_bytes > 0 && (r == 0 || r == -EAGAIN);) {
		last = receive_all(&reader, fds[1], last);
		r = host_control_flush(&control);
	}
	cr_expect_eq(receive_all(&reader, fds[1], last), control.seq);
	show_control(&control, "then", r);
	fragi_alloc_fail_after(1, 1);
	r = host_control_send(&control, &beat);
	fragi_alloc_fail_off();
	show_control(&control, "sends without memory", r);
	show_control(&control, "reads nothing", host_control_read(&control, 1));
	show_control(&control, "has a message", host_control_next(&control, &message));
	cr_assert_eq(send(fds[1], "\1\0\0\0\377", 5, 0), 5);
	show_control(&control, "reads garbage", host_control_read(&control, 1));
	show_control(&control, "has a message", host_control_next(&control, &message));
	for (r = 0; r == 0;)
		r = host_control_send(&control, &large);
	show_control(&control, "sends too much", r);
	r = host_control_send(&control, &large);
	show_control(&control, "sends one more", r);
	cr_expect_leq(control.unsent_bytes, HOST_UNSENT_MAX);
	close(fds[1]);
	show_control(&control, "reads after the end, with messages that it has not read",
		     host_control_read(&control, 1));
	show_control(&control, "reads after the end", host_control_read(&control, 1));
	show_control(&control, "sends to nobody", host_control_flush(&control));
	fw_reader_fini(&reader);
	host_control_fini(&control);
	host_control_fini(&control);
	close(fds[0]);
}

Test(shell_parts, are_as_recorded)
{
	uint8_t bytes[64] = {0}, zeros[8] = {0};

	transcript_begin();
	is_played = true;
	realtime_ns = clock_ns + INT64_C(1795788180250000000);
	cr_expect_eq(drv_system_realtime_offset_ns(), INT64_C(1795788180250000000));
	page_is_read();
	host_talks();
	is_played = false;
	for (size_t size = 0; size <= sizeof(bytes); size += 8) {
		drv_system_random(NULL, bytes, size);
		cr_expect(size == sizeof(bytes) || memcmp(bytes + size, zeros, 8) == 0);
		cr_expect(size == 0 || memcmp(bytes + size - 8, zeros, 8) != 0);
	}
	fclose(transcript);
	expected_compare("daemons/parts", transcript_text);
	free(transcript_text);
}
