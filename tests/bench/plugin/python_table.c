// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <frag/frag.h>

/*
 * Another library that exchanges arrays by DLPack's table (__dlpack_c_exchange_api__), for
 * python_dlpack.py, which calls these functions by ctypes.
 */
struct managed {
	uint32_t major, minor;
	void *context;
	void (*deleter)(struct managed *self);
	uint64_t flags;
	struct frag_dltensor tensor;
};
struct table {
	uint32_t major, minor;
	struct table *previous;
	void *allocate;
	int (*from_object)(void *object, struct managed **out);
	void *to_object, *view, *current_stream;
};

static uint8_t bytes[64];
static int64_t shape[] = {sizeof(bytes)}, strides[] = {1};

static void delete_nothing(struct managed *self)
{
	(void)self;
}

static struct managed array = {
	.major = 1,
	.deleter = delete_nothing,
	.tensor = {.data = bytes,
		   .device = {FRAG_DEVICE_CPU, 0},
		   .ndim = 1,
		   .dtype = {FRAG_DTYPE_UINT, 8, 1},
		   .shape = shape,
		   .strides = strides},
};

static int give_array(void *object, struct managed **out)
{
	(void)object;
	*out = &array;
	return 0;
}

/* The table of the arrays of this library. */
FRAG_API extern struct table bench_table;
struct table bench_table = {.major = 1, .minor = 3, .from_object = give_array};

FRAG_API double bench_table_take_ns(const struct table *of, void *object, int count);
/* The ns of a processor that taking an array by a table, and giving it back, needs; < 0: failed. */
double bench_table_take_ns(const struct table *of, void *object, int count)
{
	struct timespec begin, end;
	struct managed *managed;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	for (int i = 0; i < count; i++) {
		if (of->from_object(object, &managed) < 0)
			return -1;
		managed->deleter(managed);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
	       count;
}
