// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <driverd/connections.h>

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
