// SPDX-License-Identifier: Apache-2.0
/* An operator that does, in the callback of its choice, what no operator should do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <frag/frag.h>

enum { OUT };

struct culprit {
	const char *at, *deed;
	int64_t spare;
	int64_t ticks;
};

static const char *const callbacks[] = {"setup", "initialize", "start", "compute",
					"stop",  "fini",       NULL};
static const char *const deeds[] = {"crash",     "exit",      "close_all", "open_all",
				    "overwrite", "ucx_fatal", "none",      NULL};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct culprit, at, "compute", .headline = "In which callback",
			  .choices = callbacks),
	FRAG_PARAM_STRING(struct culprit, deed, "none", .headline = "What it does there",
			  .choices = deeds),
	FRAG_PARAM_I64(struct culprit, spare, 0,
		       .headline = "Descriptors that open_all leaves to others"),
};

static void open_all(int64_t spare)
{
	int fd, last = -1;

	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	for (int64_t i = 0; i < spare; i++)
		close(last--);
}

/* Overwrites every memfd of this process with ones, and cuts it. */
static void overwrite(void)
{
	char path[64], target[64], ones[4096];
	ssize_t n;

	memset(ones, 0xff, sizeof(ones));
	for (int fd = 3; fd < 1024; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 0 || strncmp(target, "/memfd:", 7) != 0)
			continue;
		for (off_t at = 0; at < 65536 && pwrite(fd, ones, sizeof(ones), at) > 0;)
			at += (off_t)sizeof(ones);
		(void)!ftruncate(fd, 1);
	}
}

/* As UCX does where an assertion of its own fails; its libraries are there already. */
static void fail_in_ucx(void)
{
	void *ucs = dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
	void (*fatal)(const char *, unsigned int, const char *, const char *, ...) = NULL;

	if (ucs != NULL)
		*(void **)&fatal = dlsym(ucs, "ucs_fatal_error_format");
	if (fatal != NULL)
		fatal("/there/tcp_ep.c", 1404, "progress", "Assertion `%s' failed", "length");
}

static int act(const struct culprit *s, const char *callback)
{
	if (strcmp(s->at, callback) != 0)
		return 0;
	if (strcmp(s->deed, "crash") == 0)
		raise(SIGSEGV);
	if (strcmp(s->deed, "exit") == 0)
		exit(7);
	if (strcmp(s->deed, "close_all") == 0)
		syscall(SYS_close_range, 3u, ~0u, 0u);
	if (strcmp(s->deed, "open_all") == 0)
		open_all(s->spare);
	if (strcmp(s->deed, "overwrite") == 0)
		overwrite();
	if (strcmp(s->deed, "ucx_fatal") == 0)
		fail_in_ucx();
	return 0;
}

static int culprit_setup(void *state, struct frag_op *op)
{
	return act(state, "setup");
}
static int culprit_initialize(void *state, struct frag_op *op)
{
	return act(state, "initialize");
}
static int culprit_start(void *state, struct frag_op *op)
{
	return act(state, "start");
}
static int culprit_compute(void *state, struct frag_tick *tick)
{
	struct culprit *s = state;
	int r = frag_tick_emit_f64(tick, OUT, (double)++s->ticks);

	if (r < 0)
		return r;
	if (s->ticks == 3)
		act(s, "compute");
	return s->ticks == 5 ? FRAG_DONE : 0;
}
static int culprit_stop(void *state, struct frag_op *op)
{
	return act(state, "stop");
}
static void culprit_fini(void *state, struct frag_op *op)
{
	act(state, "fini");
}

static const struct frag_port ports[] = {[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "f64"}};

static const struct frag_op_type culprit = {
	FRAG_OP_TYPE_INIT,        .name = "culprit",
	.headline = "Misbehaves", .state_size = sizeof(struct culprit),
	FRAG_PORTS(ports),        FRAG_PARAMS(params),
	.setup = culprit_setup,   .initialize = culprit_initialize,
	.start = culprit_start,   .compute = culprit_compute,
	.stop = culprit_stop,     .fini = culprit_fini,
};
/* Emits a tensor whose memory is gone. */
struct wild {
	int64_t size;
};

static const struct frag_param wild_params[] = {
	FRAG_PARAM_I64(struct wild, size, 8, .headline = "Bytes of the tensor"),
};
static const struct frag_port wild_ports[] = {[OUT] = {.name = "out", .dir = FRAG_OUT}};

static int wild_compute(void *state, struct frag_tick *tick)
{
	const struct wild *s = state;
	struct frag_message *message = frag_message_create();
	struct frag_tensor *tensor = NULL;
	void *memory = mmap(NULL, (size_t)s->size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct frag_dltensor description = {
		.data = memory,
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = 1,
		.dtype = {FRAG_DTYPE_UINT, 8, 1},
		.shape = (int64_t *)(uintptr_t)&s->size,
	};
	int r = message == NULL ? -ENOMEM : frag_tensor_wrap(&description, NULL, NULL, &tensor);

	munmap(memory, (size_t)s->size);
	if (r == 0)
		r = frag_message_add_tensor(message, "data", tensor);
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	return frag_tick_emit(tick, OUT, message);
}

static const struct frag_op_type wild = {
	FRAG_OP_TYPE_INIT,
	.name = "wild",
	.headline = "Emits a tensor whose memory is gone",
	.state_size = sizeof(struct wild),
	FRAG_PORTS(wild_ports),
	FRAG_PARAMS(wild_params),
	.compute = wild_compute,
};
static const struct frag_op_type *const ops[] = {&culprit, &wild};
FRAG_PLUGIN(.name = "culprit", .version = "1.0.0", FRAG_OPS(ops));
