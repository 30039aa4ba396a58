// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/stamp.h>
#include <driverd/connections.h>
#include <driverd/core/core.h>
#include <wire/connection.h>

#include "logged.h"

/* The streams of connections, as this file plays them. */
struct fw_connection {
	uv_pipe_t pipe;
	bool has_user;
	uid_t user;
	struct fw_identity identity;
	size_t queued, room_asked;
	bool has_room;
};

uv_stream_t *fw_connection_stream(struct fw_connection *connection)
{
	return (uv_stream_t *)&connection->pipe;
}

const char *fw_connection_peer(const struct fw_connection *connection)
{
	return connection->has_user ? "a user" : "a peer";
}

const struct fw_identity *fw_connection_identity(const struct fw_connection *connection)
{
	return &connection->identity;
}

bool fw_connection_user(const struct fw_connection *connection, uid_t *out_user)
{
	*out_user = connection->user;
	return connection->has_user;
}

size_t fw_connection_queued(const struct fw_connection *connection)
{
	return connection->queued;
}

bool fw_connection_has_room(const struct fw_connection *connection, size_t most)
{
	((struct fw_connection *)(uintptr_t)connection)->room_asked = most;
	return connection->has_room;
}

static struct drv_connections table;

static struct drv_connection *add(uid_t user)
{
	struct drv_connection *connection = drv_connections_add(&table);

	cr_assert_not_null(connection);
	connection->source = (struct drv_source){.is_user = true, .user = user};
	return connection;
}

static void finish(void)
{
	while (table.count > 0)
		drv_connections_remove(&table, table.items[0]);
	cr_expect_eq(table.strangers, 0);
	drv_connections_fini(&table);
}
TestSuite(driver_connections, .fini = finish);

Test(driver_connections, the_oldest_of_the_source_with_most_strangers_is_displaced)
{
	struct drv_connection *oldest, *crowd[3];

	cr_expect_null(drv_connections_displaced(&table));
	oldest = add(1);
	for (int i = 0; i < 3; i++)
		crowd[i] = add(2);
	cr_expect_eq(drv_connections_displaced(&table), crowd[0]);
	drv_connections_cut(&table, crowd[0]);
	cr_expect_eq(drv_connections_displaced(&table), crowd[1]);
	drv_connections_admit(&table, crowd[1]);
	cr_expect_eq(drv_connections_displaced(&table), oldest, "one each: the oldest of all");
}

Test(driver_connections, one_that_reads_why_it_was_refused_takes_room_until_it_is_cut)
{
	struct drv_connection *first = add(1), *second = add(1);

	first->closing = true;
	cr_expect_eq(table.strangers, 2);
	cr_expect_eq(drv_connections_displaced(&table), first);
	drv_connections_cut(&table, first);
	drv_connections_cut(&table, first);
	cr_expect_eq(table.strangers, 1);
	cr_expect_eq(drv_connections_displaced(&table), second);
}

/* More than there is room for at first, twice. */
Test(driver_connections, each_is_found_by_its_number_as_long_as_it_is_there)
{
	static const uint64_t gone[] = {1, 64, 65, 66, 129, 130};
	const uint64_t count = 130;
	bool is_gone[132] = {[0] = true, [131] = true};

	for (uint64_t id = 1; id <= count; id++)
		cr_assert_eq(add((uid_t)id)->id, id);
	for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); i++) {
		drv_connections_remove(&table, drv_connections_find(&table, gone[i]));
		is_gone[gone[i]] = true;
		cr_expect_eq(table.count, count - 1 - i);
		cr_expect_eq(table.strangers, count - 1 - i);
		for (uint64_t id = 0; id <= count + 1; id++) {
			const struct drv_connection *found = drv_connections_find(&table, id);

			cr_expect_eq(found == NULL, is_gone[id], "%d", (int)id);
			cr_expect(found == NULL || (found->id == id && found->source.user == id));
		}
	}
	cr_expect_eq(add(7)->id, count + 1, "numbers are never used again");
}

Test(driver_connections, a_message_says_who_sent_it)
{
	static struct fw_user other = {54321, FW_ROLE_BIT(FW_ROLE_OBSERVER)};
	const struct fw_users users = {.items = &other, .count = 1};
	static const struct {
		enum fw_kind kind;
		bool has_user;
		uid_t user;
		const char *name;
		uint32_t roles;
		bool is_admin;
	} rows[] = {
		{FW_HELLO, true, 54321, "54321", FW_ROLE_BIT(FW_ROLE_OBSERVER), false},
		{FW_HELLO, true, 54322, "54322", 0, false},
		{FW_HELLO, true, 0, "root", UINT32_MAX, true},
		{FW_HELLO, false, 54321, NULL, 0, false},
		{FW_BEAT, true, 54321, NULL, 0, false},
	};
	struct fw_connection stream = {.identity.name = "k"};
	struct drv_connection *connection = add(1);

	connection->stream = &stream;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct fw_message message = {.kind = rows[i].kind};
		struct drv_event event = {.text = "of another"};
		char user[FW_USER_NAME_MAX];

		stream.has_user = rows[i].has_user;
		stream.user = rows[i].user;
		connection->is_local = i % 2 == 1;
		cr_assert(drv_connection_message(connection, &message, &users, user, &event));
		cr_expect_eq(event.kind, DRV_EVENT_MESSAGE);
		cr_expect_eq(event.connection, connection->id);
		cr_expect_str_eq(event.peer, rows[i].has_user ? "a user" : "a peer");
		cr_expect_eq(event.identity, &stream.identity);
		cr_expect_eq(event.is_local, i % 2 == 1);
		cr_expect_eq(event.message, &message);
		cr_expect_null(event.text);
		cr_expect_eq(event.user == NULL, rows[i].name == NULL, "%zu", i);
		cr_expect(rows[i].name == NULL || strcmp(event.user, rows[i].name) == 0, "%zu", i);
		cr_expect(event.user_roles == rows[i].roles ||
				  (rows[i].roles == UINT32_MAX && event.user_roles != 0),
			  "%zu", i);
		cr_expect_eq(event.is_admin, rows[i].is_admin, "%zu", i);
	}
}

/* It is freed: LeakSanitizer looks. */
Test(driver_connections, nothing_is_heard_of_one_that_closes)
{
	struct fw_message message = {.kind = FW_BEAT}, *copy;
	struct drv_event event = {.text = "as it was"};
	struct drv_connection *connection = add(1);
	char user[FW_USER_NAME_MAX];
	size_t size;

	connection->closing = true;
	cr_assert_eq(fw_message_copy(&message, &copy, &size), 0);
	cr_expect_not(drv_connection_message(connection, copy, NULL, user, &event));
	cr_expect_str_eq(event.text, "as it was");
}

Test(driver_connections, what_may_be_dropped_is_where_much_waits)
{
	struct fw_connection stream = {.queued = 500};
	struct drv_connection *connection = add(1);

	connection->stream = &stream;
	cr_expect_not(drv_connection_drops(connection, &(struct drv_action){.may_drop = false}));
	cr_expect(drv_connection_drops(connection, &(struct drv_action){.may_drop = true}));
	cr_expect_eq(stream.room_asked, FW_CONNECTION_IDLE_BYTES);
	stream.has_room = true;
	cr_expect_not(drv_connection_drops(connection, &(struct drv_action){.may_drop = true}));
	for (uint32_t room = 499; room <= 500; room++)
		cr_expect_eq(
			drv_connection_drops(connection, &(struct drv_action){.may_drop = true,
									      .room_bytes = room}),
			room == 499);
}

#define OWN_FD 40
Test(driver_connections, the_last_descriptors_are_kept)
{
	struct fw_connection stream = {.has_user = false};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	uv_loop_t loop;
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	cr_assert_eq(dup2(fds[0], OWN_FD), OWN_FD);
	close(fds[0]);
	close(fds[1]);
	cr_assert_eq(uv_loop_init(&loop), 0);
	cr_assert_eq(uv_pipe_init(&loop, &stream.pipe, 0), 0);
	cr_expect_not(drv_connections_has_one_too_many(&table, &stream, 1), "it has none");
	cr_assert_eq(uv_pipe_open(&stream.pipe, OWN_FD), 0);
	logged_begin();
	for (int max = OWN_FD + 10; max > OWN_FD + 6; max--)
		cr_expect_eq(drv_connections_has_one_too_many(&table, &stream, max),
			     max <= OWN_FD + 8, "%d", max);
	logged_end(out);
	fclose(out);
	cr_expect_str_eq(
		text,
		"  logs warn  driver: closed the connection of a peer: this process may have 48 files open and has no more than it needs itself; raise the limit (ulimit -n)\n",
		"once a second");
	free(text);
	uv_close((uv_handle_t *)&stream.pipe, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_eq(uv_loop_close(&loop), 0);
}

Test(driver_connections, strangers_who_only_go_are_no_news_and_others_once_a_second)
{
	static const int news[] = {-EPROTOTYPE, -EACCES, -ETIMEDOUT, -EKEYREJECTED},
			 none[] = {0, -ECONNRESET, -ESHUTDOWN, -ENOENT, -ECANCELED};
	int64_t now_ns;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	logged_begin();
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		drv_connections_log_stranger(&table, "it", none[i], "it went");
	cr_expect_eq(table.complain_at_ns, 0);
	for (size_t i = 0; i < sizeof(news) / sizeof(*news); i++) {
		table.complain_at_ns = 0;
		drv_connections_log_stranger(&table, "it", news[i], "it is odd");
		now_ns = fragi_now_ns();
		cr_expect(table.complain_at_ns > now_ns + 500000000 &&
			  table.complain_at_ns <= now_ns + 1000000000);
		drv_connections_log_stranger(&table, "it", news[i], "it is odd again");
	}
	logged_end(out);
	fclose(out);
	for (const char *at = text; *at != '\0'; at = strchr(at, '\n') + 1)
		cr_expect_eq(
			strncmp(at, "  logs warn  driver: closed the connection of it: it is odd\n",
				60),
			0, "%s", at);
	cr_expect_eq(strlen(text), 4 * 60, "%s", text);
	free(text);
}
