/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_DRIVER_H
#define FAKE_DRIVER_H

/* What the files of the driver of tests (fake_cuda.h) share. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda.h"
#include "fake_kernels.h"
#include "modules/cuda/driver.h"

#define EXPORT __attribute__((visibility("default")))
#define DECLARE(name, parameters) EXPORT CUresult name parameters;
FRAGI_CU_FUNCTIONS(DECLARE)
FRAGI_CU_GREEN_FUNCTIONS(DECLARE)
EXPORT extern __typeof__(fake_cuda_fail) fake_cuda_fail;
EXPORT extern __typeof__(fake_cuda_hold) fake_cuda_hold;
EXPORT extern __typeof__(fake_cuda_used) fake_cuda_used;
EXPORT extern __typeof__(fake_cuda_left) fake_cuda_left;
EXPORT extern __typeof__(fake_cuda_calls) fake_cuda_calls;
EXPORT extern __typeof__(fake_cuda_peek) fake_cuda_peek;
EXPORT extern __typeof__(fake_cuda_poke) fake_cuda_poke;
EXPORT extern __typeof__(fake_cuda_hold_stream) fake_cuda_hold_stream;
EXPORT extern __typeof__(fake_cuda_hold_calls) fake_cuda_hold_calls;
EXPORT extern __typeof__(fake_cuda_write) fake_cuda_write;
EXPORT extern __typeof__(fake_cuda_copy) fake_cuda_copy;
EXPORT extern __typeof__(fake_cuda_reach) fake_cuda_reach;
EXPORT extern __typeof__(fake_cuda_sms) fake_cuda_sms;
EXPORT extern __typeof__(fake_cuda_by_host) fake_cuda_by_host;

#define DEVICES_MAX 8
#define STACK_MAX 8
#define TEXTURE_ALIGNMENT 14 /* CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, which FFmpeg asks for */

enum kind { DEVICE, PINNED, MANAGED, MAPPED, REGISTERED };

#define SHARED_PAGE ((size_t)64 << 10)

/* Memory apart from its addresses; it goes when no handle and no mapping is left. */
struct shared {
	unsigned long long handle;
	int fd, device, refs;
	size_t size;
	struct shared *next;
};

/* A piece of memory: `address` is what the caller gets, `bytes` what streams read and write. */
struct piece {
	enum kind kind;
	int device;
	size_t size;
	char *address, *bytes;
	struct CUmemPoolHandle_st *pool;
	struct shared *shared; /* MAPPED */
	CUmemAccess_flags access;
	bool reached[DEVICES_MAX]; /* MAPPED: by other GPUs, with the same access */
	struct piece *next;
};

struct CUctx_st {
	int device;
	int retained;
	bool reaches[DEVICES_MAX]; /* memory of other GPUs */
};

struct CUmemPoolHandle_st {
	int device;
	bool reached[DEVICES_MAX]; /* by other GPUs */
	bool destroyed;
	struct CUmemPoolHandle_st *next;
};

#define SMS_MAX 256

/* Never freed, so that a later use is noticed. */
struct CUgreenCtx_st {
	unsigned int sms;
	bool has[SMS_MAX]; /* by the number of the SM */
	bool destroyed;
	struct CUgreenCtx_st *next;
};

/* Never freed, so that a later use is noticed. */
struct CUevent_st {
	uint64_t recorded, complete; /* numbers of records */
	bool destroyed;
	struct CUevent_st *next;
};

struct task {
	void (*run)(struct task *task); /* called with the lock */
	CUDA_MEMCPY2D copy;
	bool is_across; /* the copy, which names both contexts */
	char *staged;   /* what it copies of memory that is not pinned; NULL: it is */
	CUdeviceptr memory;
	const struct fake_kernel *kernel;
	unsigned int grid[3], block[3];
	unsigned char argument[512];
	/* an event and the number of its record: run after it, if `waits` */
	CUevent event;
	uint64_t record;
	bool waits;
	CUhostFn fn;
	void *arg;
	unsigned char byte;
	size_t size;
	struct task *next;
};

struct CUstream_st {
	pthread_t thread;
	pthread_cond_t wake, idle;
	struct task *first, **last;
	bool ends, held, is_left; /* left: it ends by itself */
	struct CUgreenCtx_st *green;
	struct CUstream_st *next;
};

#define NUMBER(name, parameters) CALL_##name,
enum { FRAGI_CU_FUNCTIONS(NUMBER) FRAGI_CU_GREEN_FUNCTIONS(NUMBER) CALLS };

extern struct fake_driver {
	pthread_mutex_t lock; /* of everything below */
	struct {
		int calls, fails_in, result;
	} functions[CALLS];
	struct piece *pieces;
	struct shared *shares;
	unsigned long long next_handle;
	int sticky;                         /* what the context answers from now on */
	struct CUstream_st *streams, *left; /* left: destroyed while held */
	struct CUmemPoolHandle_st *pools;
	struct CUevent_st *events;
	struct CUgreenCtx_st *greens;
	pthread_cond_t completed; /* an event */
	struct CUctx_st contexts[DEVICES_MAX];
	size_t used[DEVICES_MAX], memory_max, reserved; /* reserved: ranges of addresses */
	size_t modules;                                 /* that are loaded */
	int device_count, version;
	int by_host; /* copies */
	bool held, calls_held, initialised, configured;
} fake;
extern __thread bool in_host_function; /* which may not call the driver */

/* A number of the environment. */
long long number(const char *variable, long long otherwise);
/* Whether the GPUs have a kind of memory, or peers. */
bool has(const char *kind);
/* All others with the lock. */
void configure(void);
CUresult count_call(int function);
struct CUctx_st *current(void);
/* Waits until all streams have done what they were given. */
void wait_for_streams(void);

CUresult piece_make(enum kind kind, int device, size_t size, struct CUmemPoolHandle_st *pool,
		    char **out);
CUresult piece_free(char *address, bool pinned, bool of_pool);
/*
 * Where streams reach an address: memory of this driver by its own mapping, and NULL when the range
 * is not within one piece; other addresses are of the host.
 */
char *reach(CUdeviceptr address, size_t size);
/* Registered memory in a range; NULL: there is none. */
const struct piece *registered_in(const char *at, size_t size);
/* Whether a stream may write there. */
bool is_writable(CUdeviceptr address);

void wake_streams(void);
struct CUstream_st *stream_make(struct CUgreenCtx_st *green); /* NULL: of the whole GPU */
CUresult submit(CUstream stream, const struct task *what);
void run_copy(struct task *task);

/* Takes the lock; it is left by LEAVE. A failure that was ordered is returned. */
#define ENTER(name, needs_context)                                                                 \
	CUresult result;                                                                           \
	pthread_mutex_lock(&fake.lock);                                                            \
	configure();                                                                               \
	result = count_call(CALL_##name);                                                          \
	if (result == CUDA_SUCCESS && in_host_function)                                            \
		result = CUDA_ERROR_NOT_PERMITTED;                                                 \
	if (result == CUDA_SUCCESS && !fake.initialised && CALL_##name != CALL_cuInit)             \
		result = (CUresult)3;                                                              \
	if (result == CUDA_SUCCESS && (needs_context) && current() == NULL)                        \
		result = CUDA_ERROR_INVALID_CONTEXT;                                               \
	if (result != CUDA_SUCCESS) {                                                              \
		pthread_mutex_unlock(&fake.lock);                                                  \
		return result;                                                                     \
	}
#define LEAVE(value)                                                                               \
	do {                                                                                       \
		result = (value);                                                                  \
		pthread_mutex_unlock(&fake.lock);                                                  \
		return result;                                                                     \
	} while (0)

#endif
