// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

/* Streams, their pools of memory, kernels and events. */

void wake_streams(void)
{
	for (struct CUstream_st *stream = fake.streams; stream != NULL; stream = stream->next)
		pthread_cond_signal(&stream->wake);
	for (struct CUstream_st *stream = fake.left; stream != NULL; stream = stream->next)
		pthread_cond_signal(&stream->wake);
}

static void stream_free(struct CUstream_st *stream)
{
	pthread_cond_destroy(&stream->wake);
	pthread_cond_destroy(&stream->idle);
	free(stream);
}

/* With the lock. */
static void leave(struct CUstream_st *stream)
{
	struct CUstream_st **at = &fake.left;

	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	stream_free(stream);
}

static bool may_run(const struct CUstream_st *stream)
{
	const struct task *task = stream->first;

	return task != NULL && !fake.held && !stream->held &&
	       !(task->fn != NULL && fake.calls_held) &&
	       !(task->waits && task->event->complete < task->record);
}

/* A task stays the first until it is done, so that who waits for the stream waits for it. */
static void *serve(void *arg)
{
	struct CUstream_st *stream = arg;
	struct task *task;

	pthread_mutex_lock(&fake.lock);
	for (;;) {
		while (!may_run(stream) && !(stream->ends && stream->first == NULL))
			pthread_cond_wait(&stream->wake, &fake.lock);
		task = stream->first;
		if (task == NULL)
			break;
		task->run(task);
		stream->first = task->next;
		if (stream->first == NULL)
			stream->last = &stream->first;
		free(task);
		if (stream->first == NULL)
			pthread_cond_broadcast(&stream->idle);
	}
	if (stream->is_left)
		leave(stream);
	pthread_mutex_unlock(&fake.lock);
	return NULL;
}

static bool is_stream(const struct CUstream_st *stream)
{
	for (const struct CUstream_st *known = fake.streams; known != NULL; known = known->next)
		if (known == stream)
			return true;
	return false;
}

CUresult submit(CUstream stream, const struct task *what)
{
	struct task *task;

	if (!is_stream(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	task = malloc(sizeof(*task));
	if (task == NULL)
		abort();
	*task = *what;
	task->next = NULL;
	*stream->last = task;
	stream->last = &task->next;
	pthread_cond_signal(&stream->wake);
	return CUDA_SUCCESS;
}

struct CUstream_st *stream_make(struct CUgreenCtx_st *green)
{
	struct CUstream_st *stream = calloc(1, sizeof(*stream));
	pthread_attr_t small; /* a test makes thousands of them */

	if (stream == NULL || pthread_attr_init(&small) != 0 ||
	    pthread_attr_setstacksize(&small, 256 << 10) != 0)
		abort();
	stream->last = &stream->first;
	stream->green = green;
	pthread_cond_init(&stream->wake, NULL);
	pthread_cond_init(&stream->idle, NULL);
	if (pthread_create(&stream->thread, &small, serve, stream) != 0)
		abort();
	stream->next = fake.streams;
	fake.streams = stream;
	return stream;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
	ENTER(cuStreamCreateWithPriority, true)
	if (flags > CU_STREAM_NON_BLOCKING)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	*out = stream_make(NULL);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	struct CUstream_st **at = &fake.streams;

	ENTER(cuStreamDestroy_v2, true)
	while (*at != NULL && *at != stream)
		at = &(*at)->next;
	if (*at == NULL)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	*at = stream->next;
	stream->ends = true;
	/* The driver does not wait; here that is only so while a test holds the stream. */
	stream->is_left = fake.held || stream->held;
	if (stream->is_left) {
		stream->next = fake.left;
		fake.left = stream;
		pthread_detach(stream->thread);
		LEAVE(CUDA_SUCCESS);
	}
	pthread_cond_signal(&stream->wake);
	pthread_mutex_unlock(&fake.lock);
	pthread_join(stream->thread, NULL);
	stream_free(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
	ENTER(cuStreamSynchronize, true)
	if (stream == (CUstream)1) { /* the default one comes after all others */
		for (CUstream other = fake.streams; other != NULL; other = other->next)
			while (other->first != NULL)
				pthread_cond_wait(&other->idle, &fake.lock);
		LEAVE((CUresult)fake.sticky);
	}
	if (!is_stream(stream))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	while (stream->first != NULL)
		pthread_cond_wait(&stream->idle, &fake.lock);
	LEAVE((CUresult)fake.sticky);
}

CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
	struct CUmemPoolHandle_st *pool;

	ENTER(cuMemPoolCreate, false)
	if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    properties->location.id >= fake.device_count || properties->maxSize != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	pool = calloc(1, sizeof(*pool));
	if (pool == NULL)
		abort();
	pool->device = properties->location.id;
	pool->next = fake.pools;
	fake.pools = pool;
	*out = pool;
	LEAVE(CUDA_SUCCESS);
}

/* Kept, so that a later use is noticed. */
CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(cuMemPoolDestroy, false)
	if (pool->destroyed)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	pool->destroyed = true;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	ENTER(cuMemPoolSetAttribute, false)
	LEAVE(pool->destroyed || attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
		      ? CUDA_ERROR_INVALID_VALUE
		      : CUDA_SUCCESS);
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *access, size_t count)
{
	ENTER(cuMemPoolSetAccess, false)
	if (pool->destroyed || count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (access->location.id == pool->device || !has("peers"))
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	pool->reached[access->location.id] = true;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *memory, size_t size, CUmemoryPool pool,
				 CUstream stream)
{
	char *address = NULL;

	ENTER(cuMemAllocFromPoolAsync, true)
	if (!is_stream(stream) || pool->destroyed)
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	result = piece_make(DEVICE, pool->device, size, pool, &address);
	if (result == CUDA_SUCCESS)
		*memory = (CUdeviceptr)(uintptr_t)address;
	LEAVE(result);
}

static void run_free(struct task *task)
{
	if (piece_free((char *)(uintptr_t)task->memory, false, true) != CUDA_SUCCESS) {
		fprintf(stderr, "fake_cuda: no memory of a pool was freed\n");
		abort();
	}
}

CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream stream)
{
	const struct task task = {.run = run_free, .memory = memory};

	ENTER(cuMemFreeAsync, true)
	LEAVE(submit(stream, &task));
}

/* Kernels. */

#define PTX_VERSION_MAX 8.0 /* of CUDA 12.0 */

struct CUmod_st {
	char *image;
};

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	const char *ptx_version = strstr(image, "\n.version ");
	struct CUmod_st *loaded;

	ENTER(cuModuleLoadData, true)
	if (ptx_version == NULL)
		LEAVE(CUDA_ERROR_INVALID_IMAGE);
	if (atof(ptx_version + strlen("\n.version ")) > PTX_VERSION_MAX)
		LEAVE((CUresult)222); /* CUDA_ERROR_UNSUPPORTED_PTX_VERSION */
	loaded = calloc(1, sizeof(*loaded));
	if (loaded == NULL || (loaded->image = strdup(image)) == NULL)
		abort();
	*module = loaded;
	fake.modules++;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule module)
{
	ENTER(cuModuleUnload, true)
	wait_for_streams();
	free(module->image);
	free(module);
	fake.modules--;
	LEAVE(CUDA_SUCCESS);
}

/* A function is what runs in its place. */
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	const struct fake_kernel *kernel = fake_kernel_find(name);
	char entry[128];

	ENTER(cuModuleGetFunction, true)
	snprintf(entry, sizeof(entry), ".entry %s(", name);
	if (kernel == NULL || strstr(module->image, entry) == NULL)
		LEAVE(CUDA_ERROR_NOT_FOUND);
	*function = (CUfunction)(uintptr_t)kernel;
	LEAVE(CUDA_SUCCESS);
}

static char *reach_for_kernel(unsigned long long address, size_t size)
{
	return reach(address, size);
}

static void run_kernel(struct task *task)
{
	const useconds_t ms = (useconds_t)number("FAKE_CUDA_KERNEL_MS", 0);

	if (ms > 0) { /* as long as it runs, others call the driver */
		pthread_mutex_unlock(&fake.lock);
		usleep(ms * 1000);
		pthread_mutex_lock(&fake.lock);
	}
	task->kernel->run(task->grid, task->block, task->argument, reach_for_kernel);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			unsigned int block_z, unsigned int shared_bytes, CUstream stream,
			void **arguments, void **extra)
{
	const struct fake_kernel *kernel = (const struct fake_kernel *)(uintptr_t)function;
	struct task task = {.run = run_kernel,
			    .kernel = kernel,
			    .grid = {grid_x, grid_y, grid_z},
			    .block = {block_x, block_y, block_z}};

	ENTER(cuLaunchKernel, true)
	if (extra != NULL || shared_bytes > 48u << 10 || grid_x * grid_y * grid_z == 0 ||
	    block_x * block_y * block_z == 0 || block_x * block_y * block_z > 1024 ||
	    kernel->argument_bytes > sizeof(task.argument))
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	/* As the real driver does: the values are its own from here on. */
	memcpy(task.argument, arguments[0], kernel->argument_bytes);
	LEAVE(submit(stream, &task));
}

/* Events. */

static bool is_event(const struct CUevent_st *event)
{
	for (const struct CUevent_st *known = fake.events; known != NULL; known = known->next)
		if (known == event)
			return !known->destroyed;
	return false;
}

CUresult cuEventCreate(CUevent *out, unsigned int flags)
{
	struct CUevent_st *event;

	ENTER(cuEventCreate, true)
	if ((flags & ~(unsigned int)(CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC)) != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	event = calloc(1, sizeof(*event));
	if (event == NULL)
		abort();
	event->next = fake.events;
	fake.events = event;
	*out = event;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	ENTER(cuEventDestroy_v2, true)
	if (!is_event(event))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	event->destroyed = true;
	LEAVE(CUDA_SUCCESS);
}

static void run_record(struct task *task)
{
	task->event->complete = task->record;
	pthread_cond_broadcast(&fake.completed);
	wake_streams();
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	struct task task = {.run = run_record, .event = event};

	ENTER(cuEventRecord, true)
	if (!is_event(event) || !is_stream(stream))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	task.record = ++event->recorded;
	LEAVE(submit(stream, &task));
}

CUresult cuEventQuery(CUevent event)
{
	ENTER(cuEventQuery, true)
	if (!is_event(event))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	LEAVE(event->complete == event->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent event)
{
	uint64_t record;

	ENTER(cuEventSynchronize, true)
	if (!is_event(event))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	record = event->recorded;
	while (event->complete < record)
		pthread_cond_wait(&fake.completed, &fake.lock);
	LEAVE(CUDA_SUCCESS);
}

static void run_nothing(struct task *task)
{
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
	struct task task = {.run = run_nothing, .event = event, .waits = true};

	ENTER(cuStreamWaitEvent, true)
	if (flags != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (!is_event(event))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	task.record = event->recorded;
	LEAVE(submit(stream, &task));
}

static void run_host_function(struct task *task)
{
	pthread_mutex_unlock(&fake.lock);
	in_host_function = true;
	task->fn(task->arg);
	in_host_function = false;
	pthread_mutex_lock(&fake.lock);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void *arg)
{
	const struct task task = {.run = run_host_function, .fn = fn, .arg = arg};

	ENTER(cuLaunchHostFunc, true)
	LEAVE(submit(stream, &task));
}
