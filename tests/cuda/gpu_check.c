// SPDX-License-Identifier: Apache-2.0
/*
 * The module cuda with the real driver and a GPU (make gpu-check). It needs libc, libfrag.so and
 * the driver, so that it can be carried to a machine with a GPU. It prints a line for each check
 * and ends with 0 when all went well, 1 when one failed, and 77 when no GPU can be used. With the
 * argument `free` it prints how many KiB of the GPU are free, with `write` it writes to memory that
 * is mapped for reading, and with `limit` it checks that what it may have of the GPU is counted.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <data/gpu_limit.h>
#include <data/memory.h>
#include <frag/cuda.h>
#include <frag/tensor.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "cuda/convert_cases.h"
#include "cuda/twin_cases.h"
#include "gpu_check.h"
#include "vision/convert_gpu.h"

#define SKIPPED 77
#define CASES_A_ROUND 25
#define MIB ((size_t)1 << 20)
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define PINNED ((struct frag_device){FRAG_DEVICE_CUDA_HOST, 0})
#define MANAGED ((struct frag_device){FRAG_DEVICE_CUDA_MANAGED, 0})
#define CPU ((struct frag_device){FRAG_DEVICE_CPU, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define I32 ((struct frag_dtype){FRAG_DTYPE_INT, 32, 1})

static int failures;
static bool is_quiet; /* prints only what failed */

bool check(bool ok, const char *what, const char *why)
{
	if (!ok || !is_quiet)
		printf("%s %s%s%s\n", ok ? "ok  " : "FAIL", what, ok || why[0] == '\0' ? "" : ": ",
		       ok ? "" : why);
	failures += !ok;
	return ok;
}

double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/*
 * The driver itself, beside frag: what it runs on, and how much memory is free. The driver of tests
 * lacks some of these functions.
 */
static struct {
	int (*version)(int *version);
	int (*name)(char *name, int size, int device);
	int (*context)(void **context, int device);
	int (*set)(void *context);
	int (*info)(size_t *free_bytes, size_t *all_bytes);
	int (*wait)(void);
} driver;

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	*(void **)&driver.version = dlsym(library, "cuDriverGetVersion");
	*(void **)&driver.name = dlsym(library, "cuDeviceGetName");
	*(void **)&driver.context = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&driver.set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&driver.info = dlsym(library, "cuMemGetInfo_v2");
	*(void **)&driver.wait = dlsym(library, "cuCtxSynchronize");
}

static void print_machine(double opened_us)
{
	char name[100] = "?";
	int version = 0;
	size_t unused, all = 0;

	driver.version(&version);
	driver.name(name, sizeof(name), 0);
	if (driver.info != NULL)
		driver.info(&unused, &all);
	printf("on: GPU 0 is %s, %zu MiB; driver for CUDA %d.%d; opened in %.0f ms\n", name,
	       all / MIB, version / 1000, version % 1000 / 10, opened_us / 1e3);
}

static size_t free_bytes(void)
{
	size_t unused = 0, all;

	if (driver.info != NULL && driver.wait() == 0)
		driver.info(&unused, &all);
	return unused;
}

static struct frag_tensor *counting(void)
{
	struct frag_tensor *tensor = NULL;
	int32_t *at;

	if (frag_tensor_create(NULL, I32, 3, (const int64_t[]){20, 30, 40}, &tensor) < 0)
		exit(1);
	at = frag_tensor_writable(tensor);
	for (int i = 0; i < 20 * 30 * 40; i++)
		at[i] = i;
	return tensor;
}

static bool same(const struct frag_tensor *a, const struct frag_tensor *b)
{
	return frag_tensor_size_bytes(a) == frag_tensor_size_bytes(b) &&
	       memcmp(frag_tensor_data(a), frag_tensor_data(b), frag_tensor_size_bytes(a)) == 0;
}

/* There and back. */
static void check_crossing(struct frag_resource *allocator, struct frag_device device,
			   const char *what)
{
	struct frag_tensor *host = counting(), *there = NULL, *back = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	bool ok = frag_tensor_copy(host, allocator, device, &there, &err) == 0 &&
		  frag_tensor_copy(there, NULL, CPU, &back, &err) == 0;

	check(ok && same(host, back), what, err.text);
	frag_tensor_unref(host);
	frag_tensor_unref(there);
	frag_tensor_unref(back);
}

static void check_strides(void)
{
	static const int64_t shapes[][3] = {
		{20, 30, 7}, {20, 15, 40}, {20, 30, 20}, {30, 20, 40}, {5, 30, 40}};
	static const int64_t strides[][3] = {
		{1200, 40, 1}, {1200, 80, 1}, {1200, 40, 2}, {40, 1200, 1}, {0, 40, 1}};
	struct frag_tensor *host = counting(), *there = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	if (!check(frag_tensor_copy(host, NULL, GPU, &there, &err) == 0, "a tensor to pack",
		   err.text))
		return;
	for (size_t i = 0; i < FRAG_COUNT_OF(shapes); i++) {
		struct frag_tensor *from_gpu = NULL, *from_host = NULL, *packed = NULL,
				   *want = NULL;
		struct frag_dltensor dl = *frag_tensor_dl(there);
		char what[64];
		bool ok;

		dl.shape = (int64_t *)(uintptr_t)shapes[i];
		dl.strides = (int64_t *)(uintptr_t)strides[i];
		ok = frag_tensor_wrap(&dl, NULL, NULL, &from_gpu) == 0;
		dl.data = frag_tensor_dl(host)->data;
		dl.device = CPU;
		ok = ok && frag_tensor_wrap(&dl, NULL, NULL, &from_host) == 0 &&
		     frag_tensor_copy(from_gpu, NULL, CPU, &packed, &err) == 0 &&
		     frag_tensor_copy(from_host, NULL, CPU, &want, &err) == 0;
		snprintf(what, sizeof(what), "a strided tensor is packed, layout %zu", i);
		check(ok && same(packed, want), what, err.text);
		frag_tensor_unref(from_gpu);
		frag_tensor_unref(from_host);
		frag_tensor_unref(packed);
		frag_tensor_unref(want);
	}
	frag_tensor_unref(there);
	frag_tensor_unref(host);
}

static void set(const struct frag_resource_type *type, unsigned char *state, const char *name,
		int64_t value)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			memcpy(state + type->params[i].offset, &value, sizeof(value));
}

/* names, values: ended by NULL */
static struct frag_resource *make(const char *type_name, const char *const *names,
				  const int64_t *values)
{
	const struct fragi_built_in_resource *built_in = fragi_built_in_resource(type_name);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_resource *resource = NULL;
	int r = fragi_resource_create(&built_in->type, built_in, type_name, &resource);

	for (size_t i = 0; names[i] != NULL; i++)
		set(&built_in->type, fragi_resource_state(resource), names[i], values[i]);
	if (r == 0)
		r = fragi_resource_set_up(resource, &err);
	if (r == 0)
		r = built_in->type.initialize(fragi_resource_state(resource), resource, &err);
	check(r == 0, type_name, err.text);
	return r == 0 ? resource : NULL;
}

static void check_allocators(void)
{
	static const char *const block[] = {"storage_type", "block_size", "num_blocks", NULL};
	static const char *const pool[] = {"device_memory_initial_size", "device_memory_max_size",
					   "host_memory_initial_size",   "host_memory_max_size",
					   "release_threshold",          NULL};
	const int64_t sizes[] = {8 << 20, 16 << 20, 8 << 20, 16 << 20, 0};
	struct frag_resource *pinned =
				     make("block_memory_pool", block, (const int64_t[]){0, MIB, 4}),
			     *device =
				     make("block_memory_pool", block, (const int64_t[]){1, MIB, 4}),
			     *rmm = make("rmm_allocator", pool, sizes),
			     *ordered = make("stream_ordered_allocator", pool, sizes);
	struct frag_tensor *tensor = NULL;

	if (pinned == NULL || device == NULL || rmm == NULL || ordered == NULL)
		return;
	check_crossing(pinned, PINNED, "through a block of pinned memory");
	check_crossing(device, GPU, "through a block of device memory");
	check_crossing(rmm, PINNED, "through pinned memory of rmm_allocator");
	check_crossing(rmm, GPU, "through device memory of rmm_allocator");
	check_crossing(ordered, GPU, "through stream_ordered_allocator");
	check(frag_tensor_create_on(rmm, GPU, U8, 1, (const int64_t[]){(16 << 20) + 1}, &tensor) ==
		      -ENOMEM,
	      "a pool has a maximum", "");
	fragi_resource_unref(pinned);
	fragi_resource_unref(device);
	fragi_resource_unref(rmm);
	fragi_resource_unref(ordered);
}

static void check_refusals(void)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor = NULL;

	check(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){INT64_C(1) << 50},
				    &tensor) == -ENOMEM,
	      "more memory than the GPU has is refused", "");
	check(fragi_cuda_use((struct frag_device){FRAG_DEVICE_CUDA, 63}, &ops, &err) == -ENODEV,
	      "a GPU that is not there is refused", "");
	printf("     %s\n", err.text);
	check_crossing(NULL, GPU, "the GPU goes on after that");
}

/* Random tensors and parameters; the results are those of the CPU. */
static void check_cases(const char *name, twin_case_fn run, uint64_t cases)
{
	char why[1024], what[120];
	uint64_t same = 0;

	for (uint64_t seed = 0; seed < cases; seed++)
		if (run(seed, why, sizeof(why)))
			same++;
		else if (same + 5 > seed)
			printf("     %s\n", why);
	snprintf(what, sizeof(what), "%s as on the CPU, bit for bit, in %llu cases", name,
		 (unsigned long long)cases);
	snprintf(why, sizeof(why), "only in %llu", (unsigned long long)same);
	check(same == cases, what, why);
}

/* Not judged: the machine may have other work. */
static void measure(void)
{
	static const size_t sizes[] = {1 << 10, 1 << 20, 8 << 20, 64 << 20};
	const struct fragi_memory *memory = fragi_memory_of(GPU);
	struct frag_tensor *pinned = NULL, *device = NULL;
	double best, began;

	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++) {
		const int64_t shape[] = {(int64_t)sizes[i]};

		if (frag_tensor_create_on(NULL, PINNED, U8, 1, shape, &pinned) < 0 ||
		    frag_tensor_create_on(NULL, GPU, U8, 1, shape, &device) < 0)
			return;
		best = 1e12;
		for (int k = 0; k < 20; k++) {
			began = now_us();
			memory->copy(GPU, frag_tensor_dl(device)->data,
				     frag_tensor_dl(pinned)->data, sizes[i], NULL);
			memory->wait(GPU, NULL);
			best = now_us() - began < best ? now_us() - began : best;
		}
		printf("     %8zu KiB to the GPU: %8.1f us, %6.2f GB/s\n", sizes[i] >> 10, best,
		       (double)sizes[i] / best / 1e3);
		frag_tensor_unref(pinned);
		frag_tensor_unref(device);
	}
}

/* Memory as another process would map it, here for once in the process that made it. */
static bool map_own(void **out_made, void **out_mapped, size_t *out_bytes, struct frag_err *err)
{
	const struct fragi_shared_memory *shared = fragi_memory_of(GPU)->shared;
	uint8_t gpu[FRAGI_GPU_NAME_BYTES];
	struct frag_device device;
	int fd, r = shared->alloc(GPU, MIB, out_made, out_bytes, err);

	if (r == 0)
		r = shared->show(GPU, *out_made, &fd, gpu, err);
	if (r == 0) {
		r = shared->map(fd, gpu, *out_bytes, &device, out_mapped, err);
		close(fd);
	}
	return r == 0;
}

static void check_shared(void)
{
	const struct fragi_memory *gpu = fragi_memory_of(GPU);
	struct frag_err err = FRAG_ERR_INIT;
	void *made = NULL, *mapped = NULL;
	static char sent[MIB], got[MIB];
	size_t bytes = 0;
	bool ok = map_own(&made, &mapped, &bytes, &err);

	memset(sent, 'x', sizeof(sent));
	if (ok)
		ok = gpu->copy(GPU, made, sent, MIB, &err) == 0 && gpu->wait(GPU, &err) == 0 &&
		     gpu->copy(GPU, got, mapped, MIB, &err) == 0 && gpu->wait(GPU, &err) == 0;
	check(ok && memcmp(sent, got, MIB) == 0, "memory that is shown and mapped", err.text);
	if (made == NULL)
		return;
	/* The mapping keeps the memory, also when the one who made it has given it back. */
	gpu->shared->free(GPU, made, bytes);
	memset(got, 0, sizeof(got));
	if (ok)
		ok = gpu->copy(GPU, got, mapped, MIB, &err) == 0 && gpu->wait(GPU, &err) == 0;
	check(ok && memcmp(sent, got, MIB) == 0, "memory stays while it is mapped", err.text);
	if (mapped != NULL)
		gpu->shared->unmap(GPU, mapped, bytes);
}

/* Memory that hosts share, which is pinned: nobody waits for a copy to it. */
static void check_pinned(void)
{
	const struct fragi_memory *gpu = fragi_memory_of(GPU);
	const size_t bytes = 64 * MIB;
	const int64_t shape[] = {(int64_t)bytes};
	const int fd = memfd_create("gpu_check", MFD_CLOEXEC);
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_stream *stream = NULL;
	struct frag_tensor *tensor = NULL;
	double call_us = 0, all_us = 0, began;
	unsigned char *memory;
	char why[200];
	bool ok;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		exit(1);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ok = memory != MAP_FAILED && gpu->pin(memory, bytes, &err) == 0 &&
	     frag_tensor_create_on(NULL, GPU, U8, 1, shape, &tensor) == 0 &&
	     gpu->streams->open(GPU, NULL, &stream, &err) == 0;
	for (int i = 0; i < 3 && ok; i++) {
		memset(memory, 'a' + i, bytes);
		ok = gpu->copy(GPU, frag_tensor_dl(tensor)->data, memory, bytes, &err) == 0 &&
		     gpu->wait(GPU, &err) == 0;
		memset(memory, 0, bytes);
		began = now_us();
		ok = ok && gpu->streams->copy(stream, frag_tensor_dl(tensor), 1, memory, &err) == 0;
		call_us = now_us() - began;
		ok = ok && gpu->streams->finish(stream, &err) == 0;
		all_us = now_us() - began;
		for (size_t k = 0; k < bytes && ok; k++)
			ok = memory[k] == 'a' + i;
	}
	check(ok, "memory that hosts share, pinned", err.text);
	snprintf(why, sizeof(why), "the call took %.0f us of %.0f", call_us, all_us);
	/* The driver of tests takes no calls while it copies. */
	check(ok && (call_us < all_us / 2 || driver.info == NULL), "a copy to it makes nobody wait",
	      why);
	printf("     %s\n", why);
	frag_tensor_unref(tensor);
	gpu->streams->close(stream);
	gpu->unpin(memory);
	munmap(memory, bytes);
	close(fd);
}

/* In a process of its own, because the GPU's context may be of no use afterwards. */
static int check_write(void)
{
	const struct fragi_memory *gpu = fragi_memory_of(GPU);
	struct frag_err err = FRAG_ERR_INIT;
	void *made = NULL, *mapped = NULL;
	size_t bytes = 0;
	bool refused;

	if (!map_own(&made, &mapped, &bytes, &err)) {
		check(false, "memory that is shown and mapped", err.text);
		return 1;
	}
	refused = gpu->copy(GPU, mapped, "overwritten", 11, &err) < 0 || gpu->wait(GPU, &err) < 0;
	check(refused, "memory that is mapped cannot be written", "");
	printf("     %s\n", err.text);
	return failures != 0;
}

static double best_copy_us(const struct frag_tensor *to, const struct frag_tensor *from,
			   size_t size)
{
	const struct fragi_memory *memory = fragi_memory_of(GPU);
	double best = 1e12, began;

	for (int k = 0; k < 20; k++) {
		began = now_us();
		memory->copy(GPU, frag_tensor_dl(to)->data, frag_tensor_dl(from)->data, size, NULL);
		memory->wait(GPU, NULL);
		best = now_us() - began < best ? now_us() - began : best;
	}
	return best;
}

/* Memory of each way, of sizes that are no multiples of pages, is counted to the byte. */
static int check_limit(const struct fragi_cuda_ops *ops)
{
	const struct fragi_memory *memory = fragi_memory_of(GPU);
	const struct frag_device devices[] = {GPU, MANAGED};
	struct fragi_cuda_pool *pool = NULL;
	void *taken[64], *all, *more;
	size_t bytes[64], limit = 256 * MIB;
	bool ok = true;

	for (size_t i = 0; i < 64; i++)
		ok = memory->alloc(devices[i % 2], 1 + i * i * 577, &taken[i], NULL) == 0 && ok;
	check(ok && frag_gpu_memory_left() < limit, "memory is counted", "");
	for (size_t i = 0; i < 64; i++)
		memory->free(devices[i % 2], taken[i]);
	check(frag_gpu_memory_left() == limit, "all of it is given back", "");
	ok = ops->pool_create(0, MIB, 0, &pool, NULL) == 0;
	for (size_t i = 0; i < 64 && ok; i++)
		ok = ops->pool_alloc(pool, 1 + i * i * 577, &taken[i], NULL) == 0;
	for (size_t i = 0; i < 64 && ok; i++)
		(void)ops->pool_free(pool, taken[i]);
	check(ok && frag_gpu_memory_left() == limit, "that of a pool of the driver too", "");
	ops->pool_destroy(pool);
	for (size_t i = 0; i < 8; i++)
		ok = memory->shared->alloc(GPU, 1 + i * 577, &taken[i], &bytes[i], NULL) == 0 && ok;
	for (size_t i = 0; i < 8 && ok; i++)
		memory->shared->free(GPU, taken[i], bytes[i]);
	check(ok && frag_gpu_memory_left() == limit, "that which hosts share too", "");
	ok = memory->alloc(GPU, limit, &all, NULL) == 0;
	check(ok && memory->alloc(GPU, 1, &more, NULL) == -ENOMEM,
	      "all of it can be taken, and no byte more", "");
	if (ok)
		memory->free(GPU, all);
	return failures > 0;
}

static void print_floor(const char *what, size_t size, double us)
{
	printf("     %8zu KiB %-26s %9.1f us, %6.2f GB/s\n", size >> 10, what, us,
	       (double)size / us / 1e3);
}

static void measure_copies(size_t size)
{
	const int64_t shape[] = {(int64_t)size};
	struct frag_tensor *pinned, *plain, *device;

	if (frag_tensor_create_on(NULL, PINNED, U8, 1, shape, &pinned) < 0 ||
	    frag_tensor_create_on(NULL, CPU, U8, 1, shape, &plain) < 0 ||
	    frag_tensor_create_on(NULL, GPU, U8, 1, shape, &device) < 0)
		exit(1);
	print_floor("pinned memory to the GPU", size, best_copy_us(device, pinned, size));
	print_floor("GPU to pinned memory", size, best_copy_us(pinned, device, size));
	print_floor("ordinary memory to the GPU", size, best_copy_us(device, plain, size));
	print_floor("GPU to ordinary memory", size, best_copy_us(plain, device, size));
	frag_tensor_unref(pinned);
	frag_tensor_unref(plain);
	frag_tensor_unref(device);
}

static void send_all(int fd, const char *memory, size_t size, int rounds)
{
	ssize_t n;

	for (int i = 0; i < rounds; i++)
		for (size_t at = 0; at < size; at += (size_t)n) {
			n = write(fd, memory + at, size - at);
			if (n <= 0)
				_exit(1);
		}
	_exit(0);
}

/* A process writes, and another reads, over a TCP connection on loopback. */
static void measure_tcp(size_t size, int rounds)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	char *memory = calloc(1, size);
	double began = 0;
	ssize_t n;

	if (memory == NULL || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&at, &length) < 0)
		exit(1);
	if (fork() == 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
			_exit(1);
		send_all(fd, memory, size, rounds + 1);
	}
	fd = accept(listener, NULL, NULL);
	for (int i = 0; i <= rounds; i++) {
		if (i == 1)
			began = now_us();
		for (size_t had = 0; had < size; had += (size_t)n) {
			n = read(fd, memory + had, size - had);
			if (n <= 0)
				exit(1);
		}
	}
	print_floor("over TCP on loopback", size, (now_us() - began) / rounds);
	close(fd);
	close(listener);
	free(memory);
	wait(NULL);
}

static int floors(void)
{
	static const size_t sizes[] = {1 << 10, 2 << 20, 8 << 20, 64 << 20};

	for (size_t i = 0; i < FRAG_COUNT_OF(sizes); i++) {
		measure_copies(sizes[i]);
		measure_tcp(sizes[i], sizes[i] > MIB ? 20 : 2000);
	}
	return 0;
}

/*
 * gpu_check floors: prints what copies and TCP take
 * gpu_check [ROUNDS]: as often memory is taken and given back; 20. Each is 25 cases of an operator.
 */
int main(int argc, char **argv)
{
	const bool wants_floors = argc > 1 && strcmp(argv[1], "floors") == 0;
	const int rounds = argc > 1 ? atoi(argv[1]) : 20;
	const uint64_t cases = (uint64_t)rounds * CASES_A_ROUND;
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	void *context = NULL;
	double began = now_us();
	size_t before = 0, after;
	char why[96];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && strcmp(argv[1], "limit") == 0)
		fragi_gpu_limit_set(256 * MIB);
	if (fragi_cuda_use(GPU, &ops, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return SKIPPED;
	}
	if (wants_floors)
		return floors();
	if (fragi_gpu_limit() != 0)
		return check_limit(ops);
	began = now_us() - began;
	find_driver();
	driver.context(&context, 0);
	if (driver.set != NULL)
		driver.set(context);
	if (argc > 1 && strcmp(argv[1], "free") == 0) {
		printf("%zu\n", free_bytes() / 1024);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "write") == 0)
		return check_write();
	print_machine(began);
	check_crossing(NULL, GPU, "through device memory");
	check_crossing(NULL, PINNED, "through pinned memory");
	check_crossing(NULL, MANAGED, "through managed memory");
	check_strides();
	check_allocators();
	check_refusals();
	check_streams();
	if (vision_convert_gpu_is_built()) {
		check_cases("format_converter", convert_case, cases);
		for (const struct twin_cases *c = twin_cases; c->name != NULL; c++)
			check_cases(c->name, c->run, cases);
	} else {
		printf("     operators were built without their kernels: no nvcc\n");
	}
	check_shared();
	check_pinned();
	/* The driver keeps some for itself: from the first rounds on, no more. */
	is_quiet = true;
	for (int i = 0; i < 2 * rounds; i++) {
		if (i == rounds)
			before = free_bytes();
		check_strides();
		check_allocators();
	}
	is_quiet = false;
	after = free_bytes();
	snprintf(why, sizeof(why), "of %zu free bytes %zu are left after %d rounds", before, after,
		 rounds);
	check(after >= before, "the GPU has all of its memory back", why);
	measure();
	printf("%s\n", failures == 0 ? "gpu-check: all is well" : "gpu-check: FAILED");
	return failures != 0;
}
