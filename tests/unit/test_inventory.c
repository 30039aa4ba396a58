/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <workerd/inventory.h>

static int parse(struct wrk_inventory *inventory, const char *amounts, const char *labels,
		 struct frag_err *err)
{
	const struct fragi_texts none = {0};
	const struct fragi_texts given = {&amounts, 1}, marks = {&labels, 1};

	*err = (struct frag_err)FRAG_ERR_INIT;
	return wrk_inventory_parse(inventory, amounts != NULL ? &given : &none,
				   labels != NULL ? &marks : &none, err);
}

Test(inventory, what_is_given_counts_and_the_rest_is_found)
{
	struct wrk_inventory inventory;
	struct frag_err err;
	char proc[] = "/tmp/test_inventory.XXXXXX", path[128];

	cr_assert_not_null(mkdtemp(proc));
	for (int i = 0; i < 5; i++) {
		static const char *const folders[] = {
			"driver", "driver/nvidia", "driver/nvidia/gpus",
			"driver/nvidia/gpus/0000:01:00.0", "driver/nvidia/gpus/0000:02:00.0"};

		snprintf(path, sizeof(path), "%s/%s", proc, folders[i]);
		cr_assert_eq(mkdir(path, 0700), 0);
	}
	cr_expect_eq(parse(&inventory, "cpu=3,gpuMemory=48Gi", "zone=or1,camera=left", &err), 0);
	wrk_inventory_find(&inventory, proc, "/dev/shm");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_CPU], 3000);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(48) << 30);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 2000);
	cr_expect_gt(inventory.has[FRAGI_AMOUNT_MEMORY], 1 << 20);
	cr_assert_eq(inventory.label_count, 2);
	cr_expect_str_eq(inventory.labels[0], "zone=or1");
	cr_expect_str_eq(inventory.labels[1], "camera=left");
	wrk_inventory_fini(&inventory);
	cr_expect_eq(parse(&inventory, "gpu=0,memory=0", NULL, &err), 0);
	wrk_inventory_find(&inventory, proc, "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 0, "a worker may keep them for others");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_MEMORY], 0);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_SHARED_MEMORY], 0);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_CPU], sysconf(_SC_NPROCESSORS_ONLN) * 1000);
	wrk_inventory_fini(&inventory);
	for (int i = 4; i >= 0; i--) {
		static const char *const folders[] = {
			"driver", "driver/nvidia", "driver/nvidia/gpus",
			"driver/nvidia/gpus/0000:01:00.0", "driver/nvidia/gpus/0000:02:00.0"};

		snprintf(path, sizeof(path), "%s/%s", proc, folders[i]);
		rmdir(path);
	}
	rmdir(proc);
}

Test(inventory, what_is_wrong_is_refused)
{
	static const struct {
		const char *amounts, *labels, *sentence;
	} cases[] = {
		{"cores=3", NULL,
		 "--inventory: \"cores=3\" names none of cpu, gpu, memory, sharedMemory, gpuMemory; write for example cpu=8,memory=16Gi"},
		{"cpu", NULL,
		 "--inventory: \"cpu\" names none of cpu, gpu, memory, sharedMemory, gpuMemory; write for example cpu=8,memory=16Gi"},
		{"cpu=1.5", NULL, "--inventory: cpu=1.5 is not a whole number from 0 up"},
		{"cpu=-1", NULL, "--inventory: cpu=-1 is not a whole number from 0 up"},
		{"memory=lots", NULL,
		 "--inventory: memory=lots is not a valid size; write for example 512Mi or 2GB"},
		{"memory=900Ti", NULL, "--inventory: memory=900Ti is too much; give at most 8 TiB"},
		{"cpu=1,cpu=2", NULL, "--inventory: cpu is given twice; give it once"},
		{NULL, "zone",
		 "--label: \"zone\" is not KEY=VALUE; a key is a name (letters, digits, - and _), a value has 1 to 63 characters without blanks"},
		{NULL, "zone=",
		 "--label: \"zone=\" is not KEY=VALUE; a key is a name (letters, digits, - and _), a value has 1 to 63 characters without blanks"},
		{NULL, "zone=a,zone=b", "--label: zone is given twice; give it once"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct wrk_inventory inventory;
		struct frag_err err;

		cr_expect_eq(parse(&inventory, cases[i].amounts, cases[i].labels, &err), -EINVAL);
		cr_expect_str_eq(err.text, cases[i].sentence);
		wrk_inventory_fini(&inventory);
	}
}
