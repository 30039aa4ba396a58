// SPDX-License-Identifier: Apache-2.0
/*
 * Floors of a GPU, and the kernel of format_converter alone. Prints lines "NAME UNIT VALUE".
 *   gpu floors        kernel launches, copies, and the conversion beside a copy of its bytes
 *   gpu peer          copies from GPU 0 to GPU 1: frag's, and cuMemcpyPeer
 *   gpu serve PORT BYTES   receives messages of so many bytes over one TCP connection, each into
 *       memory of its own, as many as a flow has on its way, until the other side ends
 *   gpu send ADDRESS PORT BYTES COUNT PIECE   sends so many, in writes of PIECE bytes; prints MB/s
 *       of the last nine tenths
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <frag/frag.h>
#include <frag/harness.h>
#include <type/cuda.h>

#include "plugin/gpu_kernels.h"
#include "plugin/gpu_ptx.h"
#include "vision/convert_gpu.h"
#include "vision/vision.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define PINNED ((struct frag_device){FRAG_DEVICE_CUDA_HOST, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define SERIES 7
#define LAUNCHES 200
#define SKIPPED 77
#define WINDOW 4u /* messages on their way, as a flow between hosts has that says nothing */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what, const struct frag_err *err)
{
	fprintf(stderr, "gpu: %s: %s\n", what, err->text);
	exit(1);
}

static struct frag_tensor *bytes_on(struct frag_device device, int64_t size)
{
	struct frag_tensor *tensor;
	int r = frag_tensor_create_on(NULL, device, U8, 1, &size, &tensor);

	if (r < 0) {
		fprintf(stderr, "gpu: %lld bytes: %s\n", (long long)size, frag_strerror(r));
		exit(1);
	}
	return tensor;
}

static void *address(const struct frag_tensor *tensor)
{
	return (void *)(uintptr_t)frag_tensor_data(tensor);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_median(const char *name, const char *unit, double *values)
{
	qsort(values, SERIES, sizeof(*values), by_size);
	printf("%s %s %.3f\n", name, unit, values[SERIES / 2]);
}

static void launch_copy(const struct frag_kernel *copy, const struct frag_tensor *from,
			const struct frag_tensor *to, uint64_t bytes)
{
	struct bench_job job = {frag_tensor_data(from), address(to), bytes / 16};
	const struct frag_launch launch = {FRAG_LAUNCH_INIT, .grid = {BENCH_BLOCKS, 1, 1},
					   .block = {BENCH_THREADS, 1, 1}};
	struct frag_err err = FRAG_ERR_INIT;

	if (frag_kernel_launch(copy, &launch, (void *[]){&job}, &err) < 0)
		die("launch", &err);
}

static void wait_for(const struct frag_kernel *kernel)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (frag_kernel_wait(kernel, NULL, &err) < 0)
		die("wait", &err);
}

/* A kernel's time: of so many, one behind the other. */
static void measure_copy(const struct frag_kernel *copy, const char *name, int64_t bytes)
{
	struct frag_tensor *from = bytes_on(GPU, bytes), *to = bytes_on(GPU, bytes);
	double values[SERIES], began;

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < LAUNCHES; i++)
			launch_copy(copy, from, to, (uint64_t)bytes);
		wait_for(copy);
		if (s >= 0)
			values[s] = (now_us() - began) / LAUNCHES;
	}
	print_median(name, "us", values);
	frag_tensor_unref(from);
	frag_tensor_unref(to);
}

static void measure_launch(const struct frag_kernel *copy)
{
	struct frag_tensor *from = bytes_on(GPU, 4096), *to = bytes_on(GPU, 4096);
	double values[SERIES], began;

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < LAUNCHES; i++) {
			launch_copy(copy, from, to, 4096);
			wait_for(copy);
		}
		if (s >= 0)
			values[s] = (now_us() - began) / LAUNCHES;
	}
	print_median("floor.launch_and_wait", "us", values);
	frag_tensor_unref(from);
	frag_tensor_unref(to);
}

/* Between pinned memory and the GPU. */
static void measure_pcie(int64_t mib)
{
	struct frag_tensor *host = bytes_on(PINNED, mib << 20), *there = bytes_on(GPU, mib << 20);
	const struct fragi_memory *memory = fragi_memory_of(GPU);
	double to[SERIES], from[SERIES], began;
	char name[64];

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		memory->copy(GPU, address(there), frag_tensor_data(host), (size_t)mib << 20, NULL);
		memory->wait(GPU, NULL);
		if (s >= 0)
			to[s] = (double)(mib << 20) / (now_us() - began);
		began = now_us();
		memory->copy(GPU, address(host), frag_tensor_data(there), (size_t)mib << 20, NULL);
		memory->wait(GPU, NULL);
		if (s >= 0)
			from[s] = (double)(mib << 20) / (now_us() - began);
	}
	snprintf(name, sizeof(name), "floor.pcie.%lldMiB.to_gpu", (long long)mib);
	print_median(name, "MB/s", to);
	snprintf(name, sizeof(name), "floor.pcie.%lldMiB.from_gpu", (long long)mib);
	print_median(name, "MB/s", from);
	frag_tensor_unref(host);
	frag_tensor_unref(there);
}

struct conversion {
	const char *name;
	enum resize_mode mode;
	int64_t rows, columns;
	bool is_planar;
};

static void measure_kernel(const struct conversion *c, struct frag_tensor *in,
			   struct frag_tensor *out)
{
	const struct convert convert = {.channels = 3,
					.is_float = true,
					.is_planar = c->is_planar,
					.scale_max = 1,
					.alpha = 255,
					.order = {0, 1, 2, 3}};
	const struct frame frame = {.data = frag_tensor_data(in),
				    .rows = 1080,
				    .columns = 1920,
				    .channels = 3,
				    .row_bytes = 1920 * 3};
	const struct convert_place place = {.rows = c->rows,
					    .columns = c->columns,
					    .picture_rows = c->rows,
					    .picture_columns = c->columns};
	struct convert_gpu gpu = {0};
	struct frag_err err = FRAG_ERR_INIT;
	double values[SERIES], began;
	char name[64];

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < LAUNCHES; i++)
			if (vision_convert_gpu(&gpu, &convert, GPU, &frame, c->mode, &place,
					       address(out), NULL, &err) < 0)
				die("convert", &err);
		if (vision_convert_gpu_wait(&gpu, &err) < 0)
			die("wait", &err);
		if (s >= 0)
			values[s] = (now_us() - began) / LAUNCHES;
	}
	snprintf(name, sizeof(name), "convert.kernel.%s", c->name);
	print_median(name, "us", values);
	vision_convert_gpu_fini(&gpu);
}

/* A tick of the operator: receive, convert, wait, emit. */
static void measure_operator(const struct conversion *c, struct frag_tensor *in)
{
	char rows[24], columns[24], mode[24], name[64];
	const struct frag_arg args[] = {{"out_dtype", "float32"},
					{"resize_height", rows},
					{"resize_width", columns},
					{"resize_mode", mode},
					{"out_layout", c->is_planar ? "chw" : "hwc"},
					{"pool", "$pool"},
					{NULL, NULL}};
	const struct frag_harness_resource pools[] = {
		{"pool", "block_memory_pool",
		 FRAG_ARGS({"storage_type", "1"}, {"block_size", "25M"}, {"num_blocks", "2"})},
		{NULL, NULL, NULL}};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	struct frag_message *message;
	double values[SERIES], began;

	snprintf(rows, sizeof(rows), "%lld", (long long)c->rows);
	snprintf(columns, sizeof(columns), "%lld", (long long)c->columns);
	snprintf(mode, sizeof(mode), "%d", (int)c->mode);
	h = frag_harness_create_with(&vision_format_converter_type, args, pools, &err);
	if (h == NULL)
		die("format_converter", &err);
	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < LAUNCHES; i++) {
			if (frag_harness_give_tensor(h, "source_video", "", frag_tensor_ref(in)) <
				    0 ||
			    frag_harness_tick(h) < 0 ||
			    frag_harness_take(h, "tensor", &message) < 0) {
				fprintf(stderr, "gpu: %s\n", frag_harness_error(h));
				exit(1);
			}
			frag_message_unref(message);
		}
		if (s >= 0)
			values[s] = (now_us() - began) / LAUNCHES;
	}
	snprintf(name, sizeof(name), "convert.tick.%s", c->name);
	print_median(name, "us", values);
	frag_harness_destroy(h);
}

static void measure_conversions(const struct frag_kernel *copy)
{
	static const struct conversion conversions[] = {
		{"1080p.to720p.linear.chw", RESIZE_LINEAR, 720, 1280, true},
		{"1080p.to720p.linear.hwc", RESIZE_LINEAR, 720, 1280, false},
		{"1080p.to720p.cubic.chw", RESIZE_CUBIC, 720, 1280, true},
		{"1080p.to720p.area.chw", RESIZE_SUPER, 720, 1280, true},
		{"1080p.same.chw", RESIZE_LINEAR, 1080, 1920, true},
	};
	const int64_t shape[] = {1080, 1920, 3};
	struct frag_tensor *host, *in, *out = bytes_on(GPU, 1080 * 1920 * 12);
	struct frag_err err = FRAG_ERR_INIT;
	char name[64];

	if (frag_tensor_create(NULL, U8, 3, shape, &host) < 0)
		exit(1);
	memset(frag_tensor_writable(host), 99, frag_tensor_size_bytes(host));
	if (frag_tensor_copy(host, NULL, GPU, &in, &err) < 0)
		die("copy", &err);
	for (size_t i = 0; i < FRAG_COUNT_OF(conversions); i++) {
		const struct conversion *c = &conversions[i];

		/* as many bytes are read and written in all */
		snprintf(name, sizeof(name), "floor.copy.%s", c->name);
		measure_copy(copy, name, (1080 * 1920 * 3 + c->rows * c->columns * 12) / 2);
		measure_kernel(c, in, out);
		measure_operator(c, in);
	}
	frag_tensor_unref(host);
	frag_tensor_unref(in);
	frag_tensor_unref(out);
}

static int floors(void)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_kernel *copy;
	double began = now_us();

	if (fragi_cuda_use(GPU, &ops, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return SKIPPED;
	}
	printf("open.gpu ms %.1f\n", (now_us() - began) / 1e3);
	if (bench_ptx == NULL || !vision_convert_gpu_is_built()) {
		printf("skipped: built without nvcc\n");
		return SKIPPED;
	}
	began = now_us();
	if (frag_kernel_create(GPU, bench_ptx, "bench_copy", &copy, &err) < 0)
		die("bench_copy", &err);
	printf("load.kernel ms %.1f\n", (now_us() - began) / 1e3);
	measure_launch(copy);
	measure_copy(copy, "floor.copy.64MiB", 64 << 20);
	measure_pcie(8);
	measure_pcie(64);
	measure_conversions(copy);
	frag_kernel_destroy(copy);
	return 0;
}

static struct {
	int (*retain)(void **context, int device);
	int (*set)(void *context);
	int (*wait)(void);
	int (*copy)(uint64_t to, void *to_context, uint64_t from, void *from_context, size_t bytes);
} driver;

static void *contexts[2];

static void copy_by_frag(struct frag_tensor *to, struct frag_tensor *from, size_t bytes)
{
	const struct frag_device device = frag_tensor_dl(from)->device;
	const struct fragi_memory *memory = fragi_memory_of(device);
	struct frag_err err = FRAG_ERR_INIT;

	if (memory->copy_across(device, address(from), frag_tensor_dl(to)->device, address(to),
				bytes, &err) < 0 ||
	    memory->wait(device, &err) < 0)
		die("copy", &err);
}

static void copy_by_driver(struct frag_tensor *to, struct frag_tensor *from, size_t bytes)
{
	if (driver.copy((uintptr_t)address(to), contexts[1], (uintptr_t)address(from), contexts[0],
			bytes) != 0 ||
	    driver.wait() != 0) {
		fprintf(stderr, "gpu: cuMemcpyPeer fails\n");
		exit(1);
	}
}

static void measure_peer(const char *what, struct frag_tensor *to, struct frag_tensor *from,
			 int mib, void (*copy)(struct frag_tensor *, struct frag_tensor *, size_t))
{
	double values[SERIES], began;
	char name[64];

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < 20; i++)
			copy(to, from, (size_t)mib << 20);
		if (s >= 0)
			values[s] = (now_us() - began) / 20;
	}
	snprintf(name, sizeof(name), "peer.%dMiB.%s", mib, what);
	print_median(name, "us", values);
}

/* Memory that other hosts can map, as pools have it; it stays until the end. */
static struct frag_tensor *mappable_on(struct frag_device device, size_t bytes)
{
	struct frag_dltensor dl = {.device = device, .ndim = 1, .dtype = U8};
	int64_t shape[] = {(int64_t)bytes};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;

	dl.shape = shape;
	if (fragi_memory_of(device)->shared->alloc(device, bytes, &dl.data, &bytes, &err) < 0)
		die("memory that hosts share", &err);
	if (frag_tensor_wrap(&dl, NULL, NULL, &tensor) < 0)
		exit(1);
	return tensor;
}

/* Of a pool of the driver, which stays until the end. */
static struct frag_tensor *pooled_on(struct frag_device device, size_t bytes)
{
	struct frag_dltensor dl = {.device = device, .ndim = 1, .dtype = U8};
	int64_t shape[] = {(int64_t)bytes};
	const struct fragi_cuda_ops *ops;
	struct fragi_cuda_pool *pool;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;

	dl.shape = shape;
	if (fragi_cuda_use(device, &ops, &err) < 0 ||
	    ops->pool_create(device.id, 0, 0, &pool, &err) < 0 ||
	    ops->pool_alloc(pool, bytes, &dl.data, &err) < 0)
		die("a pool of the driver", &err);
	if (frag_tensor_wrap(&dl, NULL, NULL, &tensor) < 0)
		exit(1);
	return tensor;
}

/* A pool that was there before the second GPU, and what it takes to open that. */
static struct frag_tensor *open_second(struct frag_device other)
{
	struct frag_tensor *early = mappable_on(GPU, 64 << 20);
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	double began = now_us();

	if (fragi_cuda_use(other, &ops, &err) < 0) {
		printf("skipped: %s\n", err.text);
		exit(SKIPPED);
	}
	printf("peer.open_second ms %.1f\n", (now_us() - began) / 1e3);
	return early;
}

static void measure_pools(int mib, struct frag_device other)
{
	const size_t bytes = (size_t)mib << 20;
	double began = now_us();
	struct frag_tensor *mapped = mappable_on(GPU, bytes), *to, *pooled;

	printf("peer.%dMiB.map us %.1f\n", mib, now_us() - began);
	to = mappable_on(other, bytes);
	measure_peer("frag.mapped", to, mapped, mib, copy_by_frag);
	frag_tensor_unref(to);
	pooled = pooled_on(GPU, bytes);
	to = pooled_on(other, bytes);
	measure_peer("frag.pooled", to, pooled, mib, copy_by_frag);
	frag_tensor_unref(to);
	frag_tensor_unref(pooled);
	frag_tensor_unref(mapped);
}

/* The contexts are those of frag, which enables access between GPUs. */
static int peer(void)
{
	const struct frag_device other = {FRAG_DEVICE_CUDA, 1};
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *early, *late;
	void *library;

	if (fragi_cuda_use(GPU, &ops, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return SKIPPED;
	}
	early = open_second(other);
	library = dlopen("libcuda.so.1", RTLD_NOW);
	*(void **)&driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&driver.set = dlsym(library, "cuCtxSetCurrent");
	*(void **)&driver.wait = dlsym(library, "cuCtxSynchronize");
	*(void **)&driver.copy = dlsym(library, "cuMemcpyPeer");
	if (driver.copy == NULL || driver.retain(&contexts[0], 0) != 0 ||
	    driver.retain(&contexts[1], 1) != 0 || driver.set(contexts[1]) != 0)
		return 1;
	for (int mib = 1; mib <= 256; mib *= 4) {
		struct frag_tensor *from = bytes_on(GPU, (int64_t)mib << 20);
		struct frag_tensor *to = bytes_on(other, (int64_t)mib << 20);

		measure_peer("frag", to, from, mib, copy_by_frag);
		measure_peer("driver", to, from, mib, copy_by_driver);
		frag_tensor_unref(from);
		frag_tensor_unref(to);
		measure_pools(mib, other);
	}
	late = mappable_on(other, 64 << 20);
	measure_peer("frag.early", late, early, 64, copy_by_frag);
	frag_tensor_unref(late);
	frag_tensor_unref(early);
	return 0;
}

static int socket_at(const char *ip, int port, struct sockaddr_in *out)
{
	*out = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (inet_pton(AF_INET, ip, &out->sin_addr) != 1)
		return -1;
	return socket(AF_INET, SOCK_STREAM, 0);
}

/* Returns false at the end of the connection. */
static bool receive(int peer, char *to, size_t bytes)
{
	ssize_t n;

	for (size_t got = 0; got < bytes; got += (size_t)n) {
		n = read(peer, to + got, bytes - got);
		if (n <= 0)
			return false;
	}
	return true;
}

static int serve(int port, size_t bytes)
{
	struct sockaddr_in at;
	int fd = socket_at("0.0.0.0", port, &at), peer, one = 1;
	char *memory = calloc(WINDOW, bytes);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (memory == NULL || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(fd, 1) < 0)
		return 1;
	memset(memory, 1, WINDOW * bytes);
	peer = accept(fd, NULL, NULL);
	for (size_t i = 0; receive(peer, memory + i % WINDOW * bytes, bytes); i++)
		;
	free(memory);
	/* The sender waits for the end, so that all has arrived. */
	return 0;
}

static bool send_message(int fd, const char *from, size_t bytes, size_t piece)
{
	ssize_t n;

	for (size_t sent = 0; sent < bytes; sent += (size_t)n) {
		n = write(fd, from + sent, bytes - sent < piece ? bytes - sent : piece);
		if (n <= 0)
			return false;
	}
	return true;
}

static int send_all(const char *ip, int port, size_t bytes, int count, size_t piece)
{
	struct sockaddr_in at;
	int fd = socket_at(ip, port, &at), first = count / 10;
	char *message = malloc(bytes), end;
	double began = 0;

	if (message == NULL || fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		fprintf(stderr, "gpu: connect: %s\n", strerror(errno));
		return 1;
	}
	memset(message, 7, bytes);
	for (int i = 0; i < count; i++) {
		if (i == first)
			began = now_us();
		if (!send_message(fd, message, bytes, piece))
			return 1;
	}
	shutdown(fd, SHUT_WR);
	while (read(fd, &end, 1) > 0)
		;
	printf("%.1f\n", (count - first) * (double)bytes / (now_us() - began));
	free(message);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && strcmp(argv[1], "floors") == 0)
		return floors();
	if (argc == 2 && strcmp(argv[1], "peer") == 0)
		return peer();
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		return serve(atoi(argv[2]), (size_t)atoll(argv[3]));
	if (argc == 7 && strcmp(argv[1], "send") == 0)
		return send_all(argv[2], atoi(argv[3]), (size_t)atoll(argv[4]), atoi(argv[5]),
				(size_t)atoll(argv[6]));
	fprintf(stderr,
		"usage: gpu floors | peer | serve PORT BYTES | send ADDRESS PORT BYTES COUNT PIECE\n");
	return 2;
}
