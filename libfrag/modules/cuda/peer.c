// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#define LOG_TOPIC "cuda"
#include <base/alloc.h>
#include <base/log.h>

#include "peer.h"

struct entry {
	struct cuda_own_memory memory;
	struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of entries, and while access is given */
static struct entry *entries;

static void say_by_host(const struct cuda_own_memory *memory, const struct cuda_device *other,
			const struct frag_err *err)
{
	log_info(NULL, "GPU %d does not reach a pool of GPU %d, %s: copies go by the host",
		 (int)other->id, (int)memory->gpu->id, err->text);
}

/* In the context of the memory's GPU. */
static void give(const struct cuda_own_memory *memory, const struct cuda_device *other)
{
	const CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = other->device},
		.flags = memory->flags,
	};
	struct frag_err err = FRAG_ERR_INIT;
	int can = 0;
	int r = cuda_check(cu.cuDeviceCanAccessPeer(&can, other->device, memory->gpu->device), &err,
			   "cuDeviceCanAccessPeer");

	if (r == 0 && can == 0)
		return;
	if (r == 0 && memory->pool != NULL)
		r = cuda_check(cu.cuMemPoolSetAccess(memory->pool, &access, 1), &err,
			       "cuMemPoolSetAccess");
	else if (r == 0)
		r = cuda_check(cu.cuMemSetAccess(memory->at, memory->bytes, &access, 1), &err,
			       "cuMemSetAccess of %zu bytes", memory->bytes);
	if (r < 0)
		say_by_host(memory, other, &err);
}

void cuda_peer_add(const struct cuda_own_memory *memory)
{
	struct entry *entry = fragi_calloc(1, sizeof(*entry));

	if (entry == NULL) {
		log_info(NULL,
			 "out of memory: copies between a pool of GPU %d and others go by the host",
			 (int)memory->gpu->id);
		return;
	}
	entry->memory = *memory;
	pthread_mutex_lock(&lock);
	entry->next = entries;
	entries = entry;
	for (int32_t id = 0; id < CUDA_DEVICES_MAX; id++) {
		const struct cuda_device *other = cuda_device_of(id);

		if (other != NULL && other != memory->gpu)
			give(memory, other);
	}
	pthread_mutex_unlock(&lock);
}

void cuda_peer_remove(CUmemoryPool pool, CUdeviceptr at)
{
	struct entry **next = &entries, *entry;

	pthread_mutex_lock(&lock);
	while (*next != NULL && ((*next)->memory.pool != pool || (*next)->memory.at != at))
		next = &(*next)->next;
	entry = *next;
	if (entry != NULL)
		*next = entry->next;
	pthread_mutex_unlock(&lock);
	fragi_free(entry);
}

void cuda_peer_opened(const struct cuda_device *gpu)
{
	pthread_mutex_lock(&lock);
	for (const struct entry *entry = entries; entry != NULL; entry = entry->next) {
		struct frag_err err = FRAG_ERR_INIT;

		if (entry->memory.gpu == gpu)
			continue;
		if (cuda_device_enter(entry->memory.gpu, &err) < 0) {
			say_by_host(&entry->memory, gpu, &err);
			continue;
		}
		give(&entry->memory, gpu);
		cuda_device_leave();
	}
	pthread_mutex_unlock(&lock);
}
