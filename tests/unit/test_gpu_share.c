// SPDX-License-Identifier: Apache-2.0
/* Which part of GPUs a host gets: MIG instances, which one host has at a time, and MPS. */
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/mps.h>
#include <workerd/gpu_share.h>

#include "scratch.h"

#define GIB (INT64_C(1) << 30)

static char parts[1024];

/* UUIDs of this process alone: a lock is of the machine. */
static const char *uuid(char letter)
{
	static char text[4][48];
	static int next;
	char *out = text[next++ % 4];

	snprintf(out, sizeof(text[0]), "MIG-%d-%c", (int)getpid(), letter);
	return out;
}

static void make(void)
{
	scratch_make();
	setenv("CUDA_MPS_PIPE_DIRECTORY", scratch, 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
	snprintf(parts, sizeof(parts),
		 "gpu GPU-0\nmig %s 1g.10gb\nmig %s 1g.10gb\nwhat is this\nmig MIG-9\n"
		 "mig MIG-8 all\ngpu GPU-3\nmig %s 3g.40gb\n",
		 uuid('a'), uuid('b'), uuid('c'));
}

TestSuite(gpu_share, .init = make, .fini = scratch_remove);

struct taking {
	struct fragi_arena arena;
	char *const *environment;
	uint32_t instance;
	struct frag_err err;
	int r;
};

static struct taking take(struct wrk_gpu_share *share, uint64_t run, uint32_t host,
			  struct fw_host_create create)
{
	static char home[] = "HOME=/x", all[] = "CUDA_VISIBLE_DEVICES=0,1",
		    like[] = "CUDA_VISIBLE=7";
	static char *none[] = {home, all, like, NULL};
	const struct fw_message message = {.run = run, .host = host, .create = create};
	struct taking t = {.environment = none, .err = FRAG_ERR_INIT};

	t.r = wrk_gpu_share_take(share, &message, 2, &t.arena, &t.environment, &t.instance, &t.err);
	return t;
}

/* What a variable is; NULL: it is not set. It is set once at most. */
static const char *value_of(const struct taking *t, const char *name)
{
	const char *found = NULL;

	for (size_t i = 0; t->environment[i] != NULL; i++)
		if (strncmp(t->environment[i], name, strlen(name)) == 0 &&
		    t->environment[i][strlen(name)] == '=') {
			cr_expect_null(found, "%s is set once", name);
			found = t->environment[i] + strlen(name) + 1;
		}
	return found;
}

static void gets(struct wrk_gpu_share *share, uint64_t run, uint32_t host, const char *profile,
		 const char *visible, uint32_t *out_instance)
{
	struct taking t = take(share, run, host, (struct fw_host_create){.mig = profile});

	cr_assert_eq(t.r, 0, "%s", t.err.text);
	cr_expect_str_eq(value_of(&t, "CUDA_VISIBLE_DEVICES"), visible);
	cr_expect_str_eq(value_of(&t, "HOME"), "/x");
	cr_expect_str_eq(value_of(&t, "CUDA_VISIBLE"), "7");
	*out_instance = t.instance;
	fragi_arena_fini(&t.arena);
}

static struct fw_host_create share_of(int64_t percent, int64_t bytes)
{
	return (struct fw_host_create){
		.limits = {[FRAGI_AMOUNT_GPU_THREADS] = percent * FRAGI_AMOUNT_ONE,
			   [FRAGI_AMOUNT_GPU_MEMORY] = bytes}};
}

static void is_refused(struct wrk_gpu_share *share, struct fw_host_create create, int code,
		       const char *sentence)
{
	struct taking t = take(share, 99, 9, create);

	cr_expect_eq(t.r, code);
	cr_expect_str_eq(t.err.text, sentence);
	cr_expect_eq(t.instance, 0);
	fragi_arena_fini(&t.arena);
}

Test(gpu_share, an_instance_is_of_one_host_until_its_last_process_is_gone)
{
	struct wrk_gpu_share share = {0};
	uint32_t first, second, again, whole, large;

	cr_assert_eq(wrk_gpu_share_offer(&share, parts), 0);
	gets(&share, 1, 1, "1g.10gb", uuid('a'), &first);
	gets(&share, 1, 2, "1g.10gb", uuid('b'), &second);
	gets(&share, 1, 1, "1g.10gb", uuid('a'), &again); /* its next epoch */
	gets(&share, 2, 1, "3g.40gb", uuid('c'), &large);
	gets(&share, 2, 2, "", "GPU-0,GPU-3", &whole);
	cr_expect_eq(whole, 0);
	is_refused(
		&share, (struct fw_host_create){.mig = "1g.10gb"}, -EBUSY,
		"cannot start a host: all 2 MIG instances 1g.10gb of this worker are in use by hosts that have not ended yet");
	wrk_gpu_share_give(&share, first);
	is_refused(
		&share, (struct fw_host_create){.mig = "1g.10gb"}, -EBUSY,
		"cannot start a host: all 2 MIG instances 1g.10gb of this worker are in use by hosts that have not ended yet");
	wrk_gpu_share_give(&share, again);
	gets(&share, 3, 1, "1g.10gb", uuid('a'), &first);
	wrk_gpu_share_give(&share, second);
	wrk_gpu_share_give(&share, 0);
	/* the other order, and the host of another run with the same number */
	gets(&share, 4, 1, "1g.10gb", uuid('b'), &second);
	is_refused(&share, (struct fw_host_create){.mig = "2g.20gb"}, -ENODEV,
		   "cannot start a host: this worker has no MIG instance 2g.20gb");
	wrk_gpu_share_fini(&share);
}

Test(gpu_share, workers_of_one_machine_see_what_others_have_given_away)
{
	struct wrk_gpu_share one = {0}, other = {0};
	uint32_t first, second;

	cr_assert_eq(wrk_gpu_share_offer(&one, parts), 0);
	cr_assert_eq(wrk_gpu_share_offer(&other, parts), 0);
	gets(&one, 1, 1, "1g.10gb", uuid('a'), &first);
	gets(&other, 1, 1, "1g.10gb", uuid('b'), &second);
	is_refused(
		&one, (struct fw_host_create){.mig = "1g.10gb"}, -EBUSY,
		"cannot start a host: of 2 MIG instances 1g.10gb, 1 are in use by other workers of this machine, and no other one is free; give each worker its own by CUDA_VISIBLE_DEVICES=MIG-...,MIG-...");
	wrk_gpu_share_fini(&other);
	gets(&one, 1, 2, "1g.10gb", uuid('b'), &second);
	wrk_gpu_share_fini(&one);
}

/* What keeps a worker from looking is not taken for another worker. */
Test(gpu_share, a_socket_that_cannot_be_made_is_no_instance_in_use)
{
	struct wrk_gpu_share share = {0};
	struct rlimit files, none;
	uint32_t instance;

	cr_assert_eq(wrk_gpu_share_offer(&share, parts), 0);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	none = files;
	none.rlim_cur = 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	is_refused(
		&share, (struct fw_host_create){.mig = "1g.10gb"}, -EMFILE,
		"cannot start a host: its MIG instance 1g.10gb cannot be reserved, because workerd can open no socket: Too many open files (raise the limit: ulimit -n)");
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	gets(&share, 1, 1, "1g.10gb", uuid('a'), &instance);
	wrk_gpu_share_fini(&share);
}

Test(gpu_share, hello_has_the_number_of_each_profile)
{
	char text[WRK_MIG_TEXT_MAX];

	wrk_gpu_share_text(parts, text);
	cr_expect_str_eq(text, "1g.10gb=2,3g.40gb=1");
	wrk_gpu_share_text("", text);
	cr_expect_str_eq(text, "");
	wrk_gpu_share_text("gpu GPU-0\n", text);
	cr_expect_str_eq(text, "");
	wrk_gpu_share_text("mig MIG-1 2g.20gb\nmig MIG-2 1g.10gb+me\nmig MIG-3 2g.20gb", text);
	cr_expect_str_eq(text, "2g.20gb=2,1g.10gb+me=1");
}

Test(gpu_share, a_worker_without_instances_leaves_the_environment_as_it_is)
{
	struct wrk_gpu_share share = {0};
	struct taking t;

	cr_assert_eq(wrk_gpu_share_offer(&share, ""), 0);
	t = take(&share, 1, 1, (struct fw_host_create){.mig = ""});
	cr_expect_eq(t.r, 0);
	cr_expect_str_eq(value_of(&t, "CUDA_VISIBLE_DEVICES"), "0,1");
	fragi_arena_fini(&t.arena);
	t = take(&share, 1, 1, (struct fw_host_create){0}); /* of a driver that knows no MIG */
	cr_expect_eq(t.r, 0);
	fragi_arena_fini(&t.arena);
	wrk_gpu_share_fini(&share);
}

/* A daemon of MPS, as far as it is looked for. Returns a descriptor. */
static int listen_at(const char *path, int type)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	cr_assert_eq(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	if (type != SOCK_DGRAM)
		cr_assert_eq(listen(fd, 1), 0);
	return fd;
}

Test(gpu_share, a_daemon_of_mps_is_found_and_sees_nothing_of_it)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/control", scratch);
	cr_expect_not(fragi_mps_runs(scratch));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		fd = listen_at(path, types[i]);
		cr_expect(fragi_mps_runs(scratch));
		if (types[i] != SOCK_DGRAM) {
			cr_assert_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
			cr_expect_eq(accept(fd, NULL, NULL), -1);
		}
		close(fd);
		cr_expect_not(fragi_mps_runs(scratch), "it has ended, and left its socket");
		cr_assert_eq(unlink(path), 0);
	}
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_not(fragi_mps_runs(scratch));
	fd = open(path, O_RDONLY | O_NONBLOCK);
	cr_expect(fragi_mps_runs(scratch));
	close(fd);
	cr_assert_eq(unlink(path), 0);
	put("control", "");
	cr_expect_not(fragi_mps_runs(scratch), "a file is no daemon");
	cr_expect_str_eq(fragi_mps_folder(), scratch);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "", 1);
	cr_expect_str_eq(fragi_mps_folder(), "/tmp/nvidia-mps");
}

Test(gpu_share, a_share_of_threads_needs_mps)
{
	struct wrk_gpu_share share = {0};
	char path[128], sentence[512];
	struct taking t;
	int fd;

	snprintf(path, sizeof(path), "%s/control", scratch);
	snprintf(
		sentence, sizeof(sentence),
		"cannot start a host: it is to have 25%% of the threads of GPUs (gpuThreads), and NVIDIA's MPS does not answer at %s; start `nvidia-cuda-mps-control -d`",
		path);
	is_refused(&share, share_of(25, 0), -ENODEV, sentence);
	fd = listen_at(path, SOCK_STREAM);
	t = take(&share, 1, 1, share_of(25, 0));
	cr_assert_eq(t.r, 0, "%s", t.err.text);
	cr_expect_str_eq(value_of(&t, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "25");
	cr_expect_null(value_of(&t, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "no limit was given");
	cr_expect_str_eq(value_of(&t, "CUDA_VISIBLE_DEVICES"), "0,1");
	fragi_arena_fini(&t.arena);
	t = take(&share, 1, 1, share_of(100, 2 * GIB + 1));
	cr_expect_str_eq(value_of(&t, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), "100");
	cr_expect_str_eq(value_of(&t, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "0=2049M,1=2049M");
	fragi_arena_fini(&t.arena);
	setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G", 1); /* the worker's own */
	t = take(&share, 1, 1, share_of(7, GIB));
	cr_expect_null(value_of(&t, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"), "it is inherited");
	fragi_arena_fini(&t.arena);
	t = take(&share, 1, 1, share_of(0, GIB));
	cr_expect_null(value_of(&t, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"));
	fragi_arena_fini(&t.arena);
	close(fd);
	wrk_gpu_share_fini(&share);
}
