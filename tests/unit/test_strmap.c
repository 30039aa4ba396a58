// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include <base/alloc.h>
#include <base/strmap.h>

Test(strmap, holds_what_was_put)
{
	struct fragi_strmap map = {0};
	static char keys[5000][32];

	cr_expect_null(fragi_strmap_get(&map, "k0"));
	for (int i = 0; i < 5000; i++) {
		snprintf(keys[i], sizeof(keys[i]), "key-%d-of-some-length", i);
		cr_assert_eq(fragi_strmap_put(&map, keys[i], keys[i]), 0);
	}
	cr_expect_eq(map.count, 5000);
	for (int i = 0; i < 5000; i++)
		cr_assert_eq(fragi_strmap_get(&map, keys[i]), keys[i]);
	cr_expect_null(fragi_strmap_get(&map, "key-5000-of-some-length"));
	cr_expect_null(fragi_strmap_get(&map, ""));
	fragi_strmap_fini(&map);
	cr_expect_null(fragi_strmap_get(&map, keys[0]));
}

Test(strmap, a_key_twice_is_refused)
{
	struct fragi_strmap map = {0};
	int a, b;

	cr_expect_eq(fragi_strmap_put(&map, "a", &a), 0);
	cr_expect_eq(fragi_strmap_put(&map, "a", &b), -EEXIST);
	cr_expect_eq(fragi_strmap_get(&map, "a"), &a);
	cr_expect_eq(map.count, 1);
	fragi_strmap_fini(&map);
}

Test(strmap, short_memory_leaves_it_as_it_was)
{
	struct fragi_strmap map = {0};
	static char keys[64][8];
	int failed = 0;

	for (int i = 0; i < 64; i++) {
		snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		fragi_alloc_fail_after(0, INT64_MAX);
		if (fragi_strmap_put(&map, keys[i], keys[i]) < 0) {
			failed++;
			fragi_alloc_fail_off();
			cr_assert_null(fragi_strmap_get(&map, keys[i]));
			cr_assert_eq(fragi_strmap_put(&map, keys[i], keys[i]), 0);
		}
		fragi_alloc_fail_off();
	}
	cr_expect_gt(failed, 0);
	for (int i = 0; i < 64; i++)
		cr_assert_eq(fragi_strmap_get(&map, keys[i]), keys[i]);
	fragi_strmap_fini(&map);
}
