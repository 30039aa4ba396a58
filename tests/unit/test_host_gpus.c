// SPDX-License-Identifier: Apache-2.0
/* Whether the driver of NVIDIA is asked once, and again when its answer may be another one. */
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <sys/wait.h>

#include <workerd/host/gpus.c> /* it is a part of fraghost alone */

#include "scratch.h"

static char name[64];
static int asked;
static uint32_t count_is = 2;

static int survey(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err)
{
	asked++;
	if (count_is == 0)
		return frag_err_set(err, -ENODEV, "cuInit fails");
	*out_count = count_is;
	*out_bytes = UINT64_C(48) << 30;
	return 0;
}

static void make(void)
{
	scratch_make();
	cr_assert_eq(mkdir(at("driver"), 0700), 0);
	cr_assert_eq(mkdir(at("driver/nvidia"), 0700), 0);
	snprintf(name, sizeof(name), "/%s", scratch + strlen("/tmp/"));
}

static void clear(void)
{
	shm_unlink(name);
	scratch_remove();
}

TestSuite(host_gpus, .init = make, .fini = clear);

/* Finds so many, and has asked so often by then. */
static void finds(uint32_t expected, int times)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint32_t count = 0;
	uint64_t bytes = 0;

	cr_expect_eq(host_gpus_find(scratch, name, survey, &count, &bytes, &err),
		     expected == 0 ? -ENODEV : 0);
	cr_expect_eq(count, expected);
	cr_expect_eq(bytes, expected == 0 ? 0 : UINT64_C(48) << 30);
	cr_expect_eq(asked, times);
}

Test(host_gpus, the_driver_is_asked_once_until_something_is_another)
{
	char path[128];

	put("driver/nvidia/version", "580.1\n");
	finds(2, 1);
	finds(2, 1);
	put("driver/nvidia/version", "580.2\n");
	finds(2, 2);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	count_is = 1;
	finds(1, 3);
	finds(1, 3);
	snprintf(path, sizeof(path), "%s/driver/nvidia/gpus", scratch);
	cr_assert_eq(mkdir(path, 0700), 0);
	finds(1, 4);
}

/* Parts of a GPU (MIG) are made and removed while the driver runs, with other sizes each time. */
Test(host_gpus, where_gpus_are_divided_the_driver_is_asked_each_time)
{
	const char *const folders[] = {"driver/nvidia/capabilities",
				       "driver/nvidia/capabilities/gpu1",
				       "driver/nvidia/capabilities/gpu1/mig"};
	const char *part = "driver/nvidia/capabilities/gpu1/mig/gi7";

	put("driver/nvidia/version", "580.1\n");
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		cr_assert_eq(mkdir(at(folders[i]), 0700), 0);
	finds(2, 1);
	finds(2, 1);
	cr_assert_eq(mkdir(at(part), 0700), 0);
	count_is = 1;
	finds(1, 2);
	finds(1, 3);
	cr_assert_eq(rmdir(at(part)), 0);
	count_is = 3;
	finds(2, 3); /* what was kept before */
}

Test(host_gpus, what_fails_is_asked_again)
{
	put("driver/nvidia/version", "580.1\n");
	count_is = 0;
	finds(0, 1);
	count_is = 2;
	finds(2, 2);
	finds(2, 2);
}

Test(host_gpus, without_a_version_nothing_is_kept)
{
	finds(2, 1);
	finds(2, 2);
}

Test(host_gpus, what_others_may_have_written_is_not_believed)
{
	int fd;

	put("driver/nvidia/version", "580.1\n");
	finds(2, 1);
	fd = shm_open(name, O_RDWR, 0);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fchmod(fd, 0666), 0);
	finds(2, 2);
	cr_assert_eq(fchmod(fd, 0600), 0);
	finds(2, 2);
	cr_assert_eq(ftruncate(fd, 20), 0);
	finds(2, 3);
	finds(2, 3);
	if (geteuid() == 0) {
		cr_assert_eq(fchown(fd, 65534, 65534), 0);
		finds(2, 4);
	}
	close(fd);
}

/* Workers that start together wait for one answer. */
Test(host_gpus, one_process_asks_for_all)
{
	struct frag_err err = FRAG_ERR_INIT;
	int pipe_of[2], all = 0, status;
	uint32_t count = 0;
	uint64_t bytes;

	put("driver/nvidia/version", "580.1\n");
	cr_assert_eq(pipe(pipe_of), 0);
	for (int i = 0; i < 8; i++) {
		if (fork() != 0)
			continue;
		(void)host_gpus_find(scratch, name, survey, &count, &bytes, &err);
		_exit(write(pipe_of[1], "x", (size_t)asked) != asked || count != 2);
	}
	while (wait(&status) > 0)
		cr_expect_eq(status, 0);
	close(pipe_of[1]);
	for (char c; read(pipe_of[0], &c, 1) == 1;)
		all++;
	cr_expect_eq(all, 1);
	close(pipe_of[0]);
}

static struct fragi_gpu_part list[4];
static size_t list_count;

static int parts(struct fragi_gpu_part out[FRAGI_GPU_PARTS_MAX], size_t *out_count)
{
	memcpy(out, list, list_count * sizeof(*list));
	*out_count = list_count;
	return list_count > 0 ? 0 : -ENODEV;
}

static struct fragi_gpu_part part(unsigned int gpu, const char *uuid, const char *profile)
{
	struct fragi_gpu_part out = {.gpu = gpu, .memory_bytes = UINT64_C(80) << 30};

	snprintf(out.gpu_uuid, sizeof(out.gpu_uuid), "GPU-%u", gpu + 70);
	snprintf(out.uuid, sizeof(out.uuid), "%s", uuid);
	snprintf(out.profile, sizeof(out.profile), "%s", profile);
	return out;
}

/* What fraghost --gpus prints where CUDA_VISIBLE_DEVICES is so; NULL: not set. */
static void prints(const char *visible, const char *expected)
{
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (visible != NULL)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	cr_expect_eq(host_gpus_write(scratch, name, survey, parts, out), 0);
	fclose(out);
	cr_expect_str_eq(text, expected, "%s: %s", visible, text);
}

/* A machine with a whole GPU, and one that is divided, of which CUDA would show one instance. */
Test(host_gpus, instances_are_listed_beside_whole_gpus)
{
	const char *by_cuda = "2 51539607552\n";

	put("driver/nvidia/version", "580.1\n");
	list[0] = part(0, "GPU-70", "");
	list[1] = part(1, "MIG-a1", "1g.10gb");
	list[2] = part(1, "MIG-a2", "3g.40gb");
	list_count = 3;
	prints(NULL, by_cuda); /* no file of NVIDIA says that any is divided */
	put("driver/nvidia/capabilities/gpu1/mig/gi7/access", "");
	prints(NULL, "1 85899345920\ngpu GPU-70\nmig MIG-a1 1g.10gb\nmig MIG-a2 3g.40gb\n");
	prints("1", "0 0\nmig MIG-a1 1g.10gb\nmig MIG-a2 3g.40gb\n");
	prints("GPU-71", "0 0\nmig MIG-a1 1g.10gb\nmig MIG-a2 3g.40gb\n");
	prints("MIG-a2,GPU-7",
	       "1 85899345920\ngpu GPU-70\nmig MIG-a1 1g.10gb\nmig MIG-a2 3g.40gb\n");
	prints("MIG-a2,0", "1 85899345920\ngpu GPU-70\nmig MIG-a2 3g.40gb\n");
	prints("MIG-a1,MIG-a2", "0 0\nmig MIG-a1 1g.10gb\nmig MIG-a2 3g.40gb\n");
	/* as before: CUDA shows a single instance as a GPU, and a GPU that is whole */
	prints("MIG-a1", by_cuda);
	prints("0", by_cuda);
	prints("11", by_cuda);
	list_count = 0; /* no management library, or an old one */
	prints(NULL, by_cuda);
	list[0] = part(0, "MIG-a1", "1g.10gb");
	list_count = 1;
	prints(NULL, "0 0\nmig MIG-a1 1g.10gb\n");
}
