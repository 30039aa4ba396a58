// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <base/handover.h>

#include "descriptors.h"
#include "left.h"
#include "variables_world.h"

/* How a process serves the memory of its variables to guests, and what guests believe. */
TestSuite(variables_server, .init = world_init, .fini = world_fini);

static void fetch_again(void)
{
	fragi_variable_memory_fini(&fragi_variables_find(world.b.variables, "gain")->memory);
	fetch(&world.b, "gain");
}

Test(variables_server, who_does_not_know_the_secret_gets_nothing)
{
	struct fragi_variable_memory memory;
	struct frag_variable *handle;
	uint8_t key[FRAGI_VARIABLES_KEY_BYTES];
	struct side c = {0};

	memcpy(key, world.key, sizeof(key));
	key[sizeof(key) - 1] ^= 1;
	make_side(&c, "f2", "rx", "stranger");
	c.variables->config.key = key;
	fragi_variable_memory_init(&memory);
	cr_expect_eq(fragi_variable_request(c.variables, "gain", &memory), -ECONNRESET);
	cr_expect_eq(memory.fd, -1);
	cr_expect_eq(frag_variable_create(&c.op, "mine", &handle), 0);
	fragi_variables_destroy(c.variables);
	fetch_again();
}

/* The socket of a variable. */
static void socket_of(const char *variable, char out[128])
{
	char hex[64] = "";

	for (size_t i = 0; i < FRAGI_VARIABLES_SECRET_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", world.key[i]);
	snprintf(out, 128, "frag-var-%s-%s", hex, variable);
}

static void connect_all(int *fds, size_t count)
{
	char name[128];
	int r;

	socket_of("gain", name);
	for (size_t i = 0; i < count; i++) {
		do
			r = fragi_handover_connect(name, &fds[i]);
		while (r == -EAGAIN);
		cr_assert_eq(r, 0);
	}
}

/* As many as are served at a time, none of which is closed for another. */
Test(variables_server, guests_that_are_slow_are_served_too)
{
	const uint8_t *secret =
		world.key + FRAGI_VARIABLES_KEY_BYTES - FRAGI_VARIABLES_SECRET_BYTES;
	int fds[FRAGI_VARIABLE_CLIENTS_MAX - 1], memory, r;
	uint32_t magic;

	need_descriptors(5 * FRAGI_VARIABLE_CLIENTS_MAX);
	connect_all(fds, FRAG_COUNT_OF(fds));
	fetch_again(); /* behind them: all have been accepted */
	for (size_t i = 0; i < FRAG_COUNT_OF(fds); i++) {
		cr_assert_eq(
			fragi_handover_send(fds[i], secret, FRAGI_VARIABLES_SECRET_BYTES, NULL, 0),
			0, "%zu", i);
		do
			r = fragi_handover_receive(fds[i], &magic, sizeof(magic), &memory, 1);
		while (r == -EAGAIN);
		cr_assert_eq(r, 0, "%zu: %s", i, frag_strerror(r));
		close(memory);
		close(fds[i]);
	}
}

/* A host hands a descriptor over with an answer of something else, or one that is cut short. */
static uint32_t false_magic;
static size_t false_bytes;

static void *answer_falsely(void *arg)
{
	const int listener = *(const int *)arg;
	uint8_t secret[FRAGI_VARIABLES_SECRET_BYTES];
	int fd, r;

	while (fragi_handover_accept(listener, &fd) == -EAGAIN)
		usleep(1000);
	do
		r = fragi_handover_receive(fd, secret, sizeof(secret), NULL, 0);
	while (r == -EAGAIN);
	(void)fragi_handover_send(fd, &false_magic, false_bytes, &fd, 1);
	close(fd);
	return NULL;
}

Test(variables_server, an_answer_that_is_none_leaves_nothing_open)
{
	static const struct {
		uint32_t magic;
		size_t bytes;
	} rows[] = {{0x12345678, 4}, {0x31564647, 4}, {0x31564646, 3}};
	struct fragi_variable_memory memory;
	unsigned int before;
	pthread_t thread;
	char name[128];
	int listener;

	socket_of("false", name);
	cr_assert_eq(fragi_handover_listen(name, &listener), 0);
	fragi_variable_memory_init(&memory);
	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		false_magic = rows[i].magic;
		false_bytes = rows[i].bytes;
		before = left_entries("/proc/self/fd");
		cr_assert_eq(pthread_create(&thread, NULL, answer_falsely, &listener), 0);
		cr_expect_eq(fragi_variable_request(world.b.variables, "false", &memory), -EBADMSG);
		cr_expect_eq(memory.fd, -1);
		pthread_join(thread, NULL);
		/* Those of guests before it may only be closed now. */
		cr_expect_leq(left_entries("/proc/self/fd"), before, "row %zu", i);
	}
	close(listener);
}

Test(variables_server, guests_that_say_nothing_do_not_hold_up_others)
{
	int fds[3 * FRAGI_VARIABLE_CLIENTS_MAX];

	need_descriptors(5 * FRAGI_VARIABLE_CLIENTS_MAX); /* those that are served, too */
	connect_all(fds, FRAG_COUNT_OF(fds));
	fetch_again();
	for (size_t i = 0; i < FRAG_COUNT_OF(fds); i++)
		close(fds[i]);
}

Test(variables_server, other_memory_is_not_mapped)
{
	struct fragi_variable_memory memory;
	char path[] = "/tmp/frag-test-XXXXXX";
	int fd = memfd_create("unsealed", MFD_ALLOW_SEALING);

	fragi_variable_memory_init(&memory);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	cr_expect_eq(fragi_variable_memory_open(&memory, fd), -EBADMSG);
	cr_expect_eq(memory.fd, -1);
	fd = mkstemp(path);
	cr_assert_eq(unlink(path), 0);
	cr_assert_eq(ftruncate(fd, 1 << 20), 0);
	cr_expect_eq(fragi_variable_memory_open(&memory, fd), -EBADMSG);
	fd = memfd_create("short", MFD_ALLOW_SEALING);
	cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE), 0);
	cr_expect_eq(fragi_variable_memory_open(&memory, fd), -EBADMSG);
}
