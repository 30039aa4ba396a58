// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>

#define LOG_TOPIC "cuda"
#include <base/log.h>
#include <data/gpu_limit.h>
#include <frag/cuda.h>

static uint64_t limit; /* constant once memory of a GPU is taken; 0: none */
static _Atomic uint64_t used;

void fragi_gpu_limit_set(uint64_t bytes)
{
	limit = bytes;
}

uint64_t fragi_gpu_limit(void)
{
	return limit;
}

/* An allocator that is asked in a tick has no room for a sentence, so the first one is logged. */
static int refuse(uint64_t bytes, uint64_t now, struct frag_err *err)
{
	static _Atomic bool is_logged;
	struct frag_err own = FRAG_ERR_INIT;
	int r = frag_err_set(
		&own, -ENOMEM,
		"%llu bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is %llu bytes, and %llu are in use or kept for models; raise it, or use smaller pools and gpu_memory",
		(unsigned long long)bytes, (unsigned long long)limit, (unsigned long long)now);

	if (err != NULL)
		*err = own;
	else if (!atomic_exchange(&is_logged, true))
		log_warn(NULL, "%s", own.text);
	return r;
}

int frag_gpu_memory_take(uint64_t bytes, struct frag_err *err)
{
	uint64_t now = atomic_load_explicit(&used, memory_order_relaxed);

	if (limit == 0)
		return 0;
	do {
		if (bytes > limit - now)
			return refuse(bytes, now, err);
	} while (!atomic_compare_exchange_weak_explicit(
		&used, &now, now + bytes, memory_order_relaxed, memory_order_relaxed));
	return 0;
}

/* An operator may give back more than it has taken: the limit stays what it is. */
void frag_gpu_memory_give(uint64_t bytes)
{
	uint64_t now = atomic_load_explicit(&used, memory_order_relaxed), rest;

	if (limit == 0)
		return;
	do {
		rest = bytes < now ? now - bytes : 0;
	} while (!atomic_compare_exchange_weak_explicit(&used, &now, rest, memory_order_relaxed,
							memory_order_relaxed));
}

uint64_t frag_gpu_memory_left(void)
{
	return limit == 0 ? UINT64_MAX : limit - atomic_load_explicit(&used, memory_order_relaxed);
}
