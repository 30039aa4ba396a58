// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <workerd/inventory.h>

#include "built.h"
#include "scratch.h"

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

	cr_expect_eq(parse(&inventory, "cpu=3,gpuMemory=48Gi", "zone=or1,camera=left", &err), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/dev", "/nowhere");
	cr_expect_not(inventory.asks_gpus, "there is no GPU");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_CPU], 3000);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(48) << 30);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 0);
	cr_expect_gt(inventory.has[FRAGI_AMOUNT_MEMORY], 1 << 20);
	cr_assert_eq(inventory.label_count, 2);
	cr_expect_str_eq(inventory.labels[0], "zone=or1");
	cr_expect_str_eq(inventory.labels[1], "camera=left");
	wrk_inventory_fini(&inventory);
	cr_expect_eq(parse(&inventory, "gpu=0,memory=0", NULL, &err), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/nowhere", "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 0, "a worker may keep them for others");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_MEMORY], 0);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_SHARED_MEMORY], 0);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_CPU], sysconf(_SC_NPROCESSORS_ONLN) * 1000);
	wrk_inventory_fini(&inventory);
}

/* Keys that begin alike are of several labels, and a worker has so many at most. */
Test(inventory, labels_are_as_many_as_a_worker_may_have)
{
	static const struct {
		const char *labels;
		uint32_t count;
	} rows[] = {{"a=1,ab=2", 2}, {"ab=2,a=1", 2}, {"a=b,b=a", 2}, {"a=1,b=1", 2}};
	char many[1024] = "";
	size_t used = 0;
	struct wrk_inventory inventory;
	struct frag_err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(parse(&inventory, NULL, rows[i].labels, &err), 0, "%s: %s",
			     rows[i].labels, err.text);
		cr_expect_eq(inventory.label_count, rows[i].count, "%s", rows[i].labels);
		wrk_inventory_fini(&inventory);
	}
	for (int i = 0; i <= FW_LABELS_MAX; i++) {
		used += (size_t)snprintf(many + used, sizeof(many) - used, "%sk%d=v",
					 i > 0 ? "," : "", i);
		cr_expect_eq(parse(&inventory, NULL, many, &err), i < FW_LABELS_MAX ? 0 : -EINVAL,
			     "%d labels", i + 1);
		wrk_inventory_fini(&inventory);
	}
	cr_expect_str_eq(err.text, "--label: a worker has at most 64 labels");
}

/*
 * What is read of a machine with GPUs: a folder for each, which the driver of NVIDIA shows, and the
 * driver itself, which fraghost asks. Here that is the driver of tests.
 */
static char program[PATH_MAX];

static void make_gpus(void)
{
	snprintf(program, sizeof(program), "%s", built("libexec/frag/fraghost"));
	setenv("LD_LIBRARY_PATH", built("tests/cuda"), 1);
	setenv("FAKE_CUDA_DEVICES", "3", 1);
	setenv("FAKE_CUDA_MEMORY", "25769803776", 1);
	scratch_make();
	put("driver/nvidia/gpus/0000:01:00.0/information", "");
	put("driver/nvidia/gpus/0000:02:00.0/information", "");
}

TestSuite(inventory_gpus, .init = make_gpus, .fini = scratch_remove);

static int find(struct wrk_inventory *inventory, const char *amounts, const char *asked,
		struct frag_err *err)
{
	cr_assert_eq(parse(inventory, amounts, NULL, err), 0);
	wrk_inventory_find(inventory, scratch, "/nowhere", "/nowhere");
	return wrk_inventory_ask_gpus(inventory, asked, err);
}

Test(inventory_gpus, the_driver_of_nvidia_says_how_many_and_how_much)
{
	struct wrk_inventory inventory;
	struct frag_err err;
	char text[256];

	cr_assert_eq(find(&inventory, "cpu=1,memory=0", program, &err), 0, "%s", err.text);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 3000);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(72) << 30);
	wrk_inventory_text(&inventory, text, sizeof(text));
	cr_expect_str_eq(
		text,
		"cpu 1, gpu 3, memory 0 B, sharedMemory 0 B, gpuMemory 72 GiB, gpuThreads 0%");
	wrk_inventory_fini(&inventory);
	cr_assert_eq(find(&inventory, "gpuMemory=8Gi", program, &err), 0);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 3000);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(8) << 30, "given");
	wrk_inventory_fini(&inventory);
	cr_assert_eq(find(&inventory, "gpu=1,gpuMemory=8Gi", "/nowhere", &err), 0,
		     "nothing is left to ask for");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 1000);
	wrk_inventory_fini(&inventory);
}

/* Shares of threads, where a daemon of MPS would share them out. */
Test(inventory_gpus, threads_are_offered_where_mps_is)
{
	static const struct {
		const char *own; /* of the worker's environment; NULL: none */
		int64_t has;
	} cases[] = {{NULL, 100000}, {"40", 40000}, {"0", 100000}, {"101", 100000}, {"x", 100000}};
	struct sockaddr_un at_control = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct wrk_inventory inventory;
	struct frag_err err;

	setenv("CUDA_MPS_PIPE_DIRECTORY", scratch, 1);
	cr_assert_eq(find(&inventory, NULL, program, &err), 0, "%s", err.text);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_THREADS], 0, "no daemon");
	wrk_inventory_fini(&inventory);
	snprintf(at_control.sun_path, sizeof(at_control.sun_path), "%s/control", scratch);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&at_control, sizeof(at_control)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (cases[i].own != NULL)
			setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", cases[i].own, 1);
		cr_assert_eq(find(&inventory, NULL, program, &err), 0, "%s", err.text);
		cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_THREADS], cases[i].has, "%s",
			     cases[i].own);
		wrk_inventory_fini(&inventory);
	}
	cr_assert_eq(find(&inventory, "gpuThreads=30%", program, &err), 0, "%s", err.text);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_THREADS], 30000, "given");
	wrk_inventory_fini(&inventory);
	cr_assert_eq(parse(&inventory, NULL, NULL, &err), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/nowhere", "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_THREADS], 0, "without a GPU there are none");
	wrk_inventory_fini(&inventory);
	close(fd);
}

Test(inventory_gpus, without_an_answer_they_are_counted)
{
	struct wrk_inventory inventory;
	struct frag_err err;

	setenv("FAKE_CUDA_FAIL", "cuInit:1:100", 1);
	cr_assert_lt(find(&inventory, NULL, program, &err), 0);
	cr_expect_not_null(strstr(err.text, "cuInit"), "%s", err.text);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], 2000);
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU_MEMORY], 0);
	wrk_inventory_fini(&inventory);
	cr_assert_lt(find(&inventory, NULL, "/nowhere", &err), 0);
	cr_expect_str_eq(err.text, "/nowhere: No such file or directory");
	wrk_inventory_fini(&inventory);
	cr_assert_lt(find(&inventory, NULL, "/bin/true", &err), 0);
	cr_expect_str_eq(err.text, "fraghost --gpus failed");
	wrk_inventory_fini(&inventory);
}

Test(inventory_gpus, those_that_cannot_be_seen_are_not_offered)
{
	static const struct {
		const char *visible, *limited;
		int64_t count;
	} cases[] = {{"", "0 of 2 GPUs (CUDA_VISIBLE_DEVICES)", 0},
		     {"-1", "0 of 2 GPUs (CUDA_VISIBLE_DEVICES)", 0},
		     {"1", "1 of 2 GPUs (CUDA_VISIBLE_DEVICES)", 1},
		     {"1,0,2", "", 2}};
	struct wrk_inventory inventory;
	struct frag_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
		/* without an answer they are counted */
		cr_expect_eq(find(&inventory, "cpu=1,memory=0", "/nowhere", &err) < 0,
			     cases[i].count > 0);
		cr_expect_eq(inventory.has[FRAGI_AMOUNT_GPU], cases[i].count * 1000);
		cr_expect_str_eq(inventory.limited, cases[i].limited);
		wrk_inventory_fini(&inventory);
	}
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* whose memory is above it */
Test(inventory, a_limit_is_offered_and_named)
{
	struct rlimit least = {1 << 28, RLIM_INFINITY};
	struct wrk_inventory inventory;
	struct frag_err err;

	cr_assert_eq(parse(&inventory, "cpu=1", NULL, &err), 0);
	cr_assert_eq(setrlimit(RLIMIT_DATA, &least), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/dev", "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_MEMORY], 1 << 28);
	cr_expect_leq(inventory.has[FRAGI_AMOUNT_SHARED_MEMORY], 1 << 28);
	cr_expect_eq(strncmp(inventory.limited, "256 MiB of ", 11), 0, "%s", inventory.limited);
	cr_expect_not_null(strstr(inventory.limited, " memory (ulimit -d)"), "%s",
			   inventory.limited);
	wrk_inventory_fini(&inventory);
	cr_assert_eq(parse(&inventory, "cpu=1,memory=64Gi", NULL, &err), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/dev", "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_MEMORY], INT64_C(64) << 30, "it was given");
	cr_expect_str_eq(inventory.limited, "");
	wrk_inventory_fini(&inventory);
}
#endif

Test(inventory, cores_that_may_be_used_stand_before_those_of_the_machine)
{
	long all = sysconf(_SC_NPROCESSORS_ONLN);
	struct wrk_inventory inventory;
	char limited[FW_LIMITED_MAX];
	struct frag_err err;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	snprintf(limited, sizeof(limited), "1 of %ld cores (its affinity)", all);
	cr_assert_eq(parse(&inventory, "memory=1Gi", NULL, &err), 0);
	wrk_inventory_find(&inventory, "/nowhere", "/dev", "/nowhere");
	cr_expect_eq(inventory.has[FRAGI_AMOUNT_CPU], 1000);
	cr_expect_str_eq(inventory.limited, all > 1 ? limited : "");
	wrk_inventory_fini(&inventory);
}

Test(inventory, what_is_wrong_is_refused)
{
	static const struct {
		const char *amounts, *labels, *sentence;
	} cases[] = {
		{"cores=3", NULL,
		 "--inventory: \"cores=3\" names none of cpu, gpu, memory, sharedMemory, gpuMemory, gpuThreads; write for example cpu=8,memory=16Gi"},
		{"cpu", NULL,
		 "--inventory: \"cpu\" names none of cpu, gpu, memory, sharedMemory, gpuMemory, gpuThreads; write for example cpu=8,memory=16Gi"},
		{"cpu=1.5", NULL, "--inventory: cpu=1.5 is not a whole number from 0 up"},
		{"cpu=-1", NULL, "--inventory: cpu=-1 is not a whole number from 0 up"},
		{"memory=lots", NULL,
		 "--inventory: memory=lots is not a valid size; write for example 512Mi or 2GB"},
		{"memory=900Ti", NULL, "--inventory: memory=900Ti is too much; give at most 8 TiB"},
		{"gpuThreads=50", NULL,
		 "--inventory: gpuThreads=50 is not a whole percentage; write for example 25%"},
		{"gpuThreads=101%", NULL,
		 "--inventory: gpuThreads=101% is too much; give at most 100%"},
		{"cpu=1,cpu=2", NULL, "--inventory: cpu is given twice; give it once"},
		{NULL, "zone",
		 "--label: \"zone\" is not KEY=VALUE; a key is a name (letters, digits, - and _), a value has 1 to 63 characters without spaces"},
		{NULL, "zone=",
		 "--label: \"zone=\" is not KEY=VALUE; a key is a name (letters, digits, - and _), a value has 1 to 63 characters without spaces"},
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
