// SPDX-License-Identifier: Apache-2.0
/*
 * Shows that CUDA works in a process that is confined as hosts are (workerd/confine.h). It needs
 * libc and the driver's libcuda.so.1 only, so that it can be carried to a machine with a GPU:
 *
 *   make build/tests/cuda_confined && build/tests/cuda_confined
 *
 * One process makes a context, copies, compiles and runs a kernel, registers a mapped memfd and
 * exports memory; another one opens its memory. Both are confined, each by rules of its own. It
 * prints a line for each step, and ends with 0 when all went well, 1 when one failed, and 77 when
 * there is no driver. Arguments are paths that may be written; `free` alone confines nothing, to
 * compare with.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <workerd/confine.h>
#include <workerd/landlock.h>
#include <workerd/seccomp.h>

#define SKIPPED 77
#define COUNT 256u
#define BYTES ((size_t)2 << 20)

static const char kernel[] =
	".version 7.0\n.target sm_50\n.address_size 64\n"
	".visible .entry twice(.param .u64 at) {\n"
	".reg .u64 %rd<4>; .reg .u32 %r<3>;\n"
	"ld.param.u64 %rd1, [at]; cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, %tid.x;\n"
	"mul.wide.u32 %rd3, %r1, 4; add.u64 %rd2, %rd2, %rd3;\n"
	"ld.global.u32 %r2, [%rd2]; add.u32 %r2, %r2, %r2; st.global.u32 [%rd2], %r2; ret;\n}\n";

struct ipc_handle {
	char bytes[64];
};

/* CUmemAllocationProp of cuda.h. */
struct allocation {
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *win32;
	struct {
		unsigned char compression, rdma;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
};

/* name, parameters */
#define FUNCTIONS(X)                                                                               \
	X(cuInit, (unsigned int))                                                                  \
	X(cuDeviceGet, (int *, int))                                                               \
	X(cuCtxCreate_v2, (void **, unsigned int, int))                                            \
	X(cuCtxSynchronize, (void))                                                                \
	X(cuMemAlloc_v2, (uint64_t *, size_t))                                                     \
	X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t))                                       \
	X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))                                             \
	X(cuMemHostAlloc, (void **, size_t, unsigned int))                                         \
	X(cuMemHostRegister_v2, (void *, size_t, unsigned int))                                    \
	X(cuModuleLoadData, (void **, const void *))                                               \
	X(cuModuleGetFunction, (void **, void *, const char *))                                    \
	X(cuLaunchKernel, (void *, unsigned int, unsigned int, unsigned int, unsigned int,         \
			   unsigned int, unsigned int, unsigned int, void *, void **, void **))    \
	X(cuEventCreate, (void **, unsigned int))                                                  \
	X(cuMemCreate, (uint64_t *, size_t, const struct allocation *, unsigned long long))        \
	X(cuMemExportToShareableHandle, (void *, uint64_t, int, unsigned long long))               \
	X(cuIpcGetMemHandle, (struct ipc_handle *, uint64_t))                                      \
	X(cuIpcOpenMemHandle_v2, (uint64_t *, struct ipc_handle, unsigned int))

static struct {
#define MEMBER(name, parameters) int(*name) parameters;
	FUNCTIONS(MEMBER)
#undef MEMBER
} cu;

static const char *who;
static int failures;

static void step(const char *name, int result)
{
	printf("%-8s %-28s %s (%d)\n", who, name, result == 0 ? "ok" : "FAILED", result);
	fflush(stdout);
	failures += result != 0;
}
#define STEP(name, ...) step(#name, cu.name(__VA_ARGS__))

static void load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (library == NULL) {
		printf("skipped: %s\n", dlerror());
		exit(SKIPPED);
	}
#define LOAD(name, parameters) *(void **)&cu.name = dlsym(library, #name);
	FUNCTIONS(LOAD)
#undef LOAD
}

/* As a worker does for a host of its own user. */
static void confine(const char *const *paths, size_t path_count)
{
	static const struct wrk_host_limits limits;
	static struct wrk_host_user user;
	struct frag_err err = FRAG_ERR_INIT;
	struct wrk_seccomp seccomp;
	struct wrk_confine rules = {.user = &user, .limits = &limits, .rules_fd = -1};
	const char *what = "";
	int abi = wrk_landlock_abi();
	int r = wrk_host_user_find(geteuid() == 0 ? "root" : NULL, &user, &err);

	if (r == 0 && abi > 0)
		rules.rules_fd = wrk_landlock_create(abi, paths, path_count, &err);
	if (r == 0)
		r = wrk_seccomp_init(&seccomp, &err);
	if (r == 0 && wrk_seccomp_probe() == 0)
		rules.filter = &seccomp.program;
	if (r == 0)
		r = wrk_confine(&rules, &what);
	printf("%-8s Landlock %d, seccomp %s; confined: %d %s%s\n", who, abi,
	       rules.filter != NULL ? "yes" : "no", r, r < 0 ? what : "", err.text);
	failures += r != 0;
}

static uint64_t make_context(void)
{
	void *context;
	uint64_t memory = 0;
	int device = 0;

	STEP(cuInit, 0);
	STEP(cuDeviceGet, &device, 0);
	STEP(cuCtxCreate_v2, &context, 0, device);
	STEP(cuMemAlloc_v2, &memory, BYTES);
	return memory;
}

static void run_kernel(uint64_t memory)
{
	uint32_t numbers[COUNT];
	void *module = NULL, *function = NULL, *parameters[] = {&memory};

	for (uint32_t i = 0; i < COUNT; i++)
		numbers[i] = i;
	STEP(cuMemcpyHtoD_v2, memory, numbers, sizeof(numbers));
	STEP(cuModuleLoadData, &module, kernel);
	STEP(cuModuleGetFunction, &function, module, "twice");
	STEP(cuLaunchKernel, function, 1, 1, 1, COUNT, 1, 1, 0, NULL, parameters, NULL);
	STEP(cuCtxSynchronize);
	STEP(cuMemcpyDtoH_v2, numbers, memory, sizeof(numbers));
	step("the kernel's result", numbers[COUNT - 1] == 2 * (COUNT - 1) ? 0 : -1);
}

static void share_memory(void)
{
	int fd = memfd_create("confined", MFD_CLOEXEC), exported = -1;
	struct allocation wanted = {.type = 1, .handle_types = 1, .location = {.type = 1}};
	uint64_t memory = 0;
	void *mapped, *event, *pinned;

	step("memfd", fd >= 0 && ftruncate(fd, (off_t)BYTES) == 0 ? 0 : -1);
	mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	STEP(cuMemHostRegister_v2, mapped, BYTES, 0);
	STEP(cuMemHostAlloc, &pinned, BYTES, 0);
	STEP(cuEventCreate, &event, 6); /* without timing, interprocess */
	STEP(cuMemCreate, &memory, BYTES, &wanted, 0);
	STEP(cuMemExportToShareableHandle, &exported, memory, 1, 0);
}

/* The second process: opens what the first one has made. */
static int open_other(int socket)
{
	struct ipc_handle handle;
	uint32_t number = 0;
	uint64_t theirs = 0;

	load();
	(void)make_context();
	if (read(socket, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
		return 1;
	STEP(cuIpcOpenMemHandle_v2, &theirs, handle, 1);
	STEP(cuMemcpyDtoH_v2, &number, theirs + sizeof(number), sizeof(number));
	step("the memory of the first", number == 2 ? 0 : -1);
	return failures != 0;
}

int main(int argc, char **argv)
{
	int is_free = argc > 1 && strcmp(argv[1], "free") == 0, sockets[2], status = 0;
	struct ipc_handle handle = {{0}};
	uint64_t memory;
	pid_t other;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		return 1;
	other = fork(); /* before CUDA, which does not survive it */
	who = other == 0 ? "second" : "first";
	if (!is_free)
		confine((const char *const *)argv + 1, (size_t)argc - 1);
	if (other == 0) {
		close(sockets[0]);
		return open_other(sockets[1]);
	}
	close(sockets[1]);
	load();
	memory = make_context();
	run_kernel(memory);
	share_memory();
	STEP(cuIpcGetMemHandle, &handle, memory);
	if (write(sockets[0], &handle, sizeof(handle)) < 0 || waitpid(other, &status, 0) < 0)
		return 1;
	return failures != 0 || status != 0;
}
