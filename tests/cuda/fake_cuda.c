// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

#define NAME(name, parameters) #name,
static const char *const names[] = {FRAGI_CU_FUNCTIONS(NAME) FRAGI_CU_GREEN_FUNCTIONS(NAME)};

struct fake_driver fake = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .next_handle = 1, .completed = PTHREAD_COND_INITIALIZER};

static __thread struct CUctx_st *stack[STACK_MAX];
static __thread int depth;
__thread bool in_host_function;

static int index_of(const char *name, size_t length)
{
	for (int i = 0; i < CALLS; i++)
		if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
			return i;
	fprintf(stderr, "fake_cuda: no function %.*s\n", (int)length, name);
	abort();
}

long long number(const char *variable, long long otherwise)
{
	const char *text = getenv(variable);

	return text != NULL ? atoll(text) : otherwise;
}

/* With the lock. */
void configure(void)
{
	const char *fail = getenv("FAKE_CUDA_FAIL");
	int nth, result, i;

	if (fake.configured)
		return;
	fake.configured = true;
	fake.device_count = (int)number("FAKE_CUDA_DEVICES", 1);
	fake.memory_max = (size_t)number("FAKE_CUDA_MEMORY", 256 << 20);
	fake.version = (int)number("FAKE_CUDA_VERSION", 13000);
	for (i = 0; i < DEVICES_MAX; i++)
		fake.contexts[i].device = i;
	if (fail != NULL && sscanf(strchr(fail, ':'), ":%d:%d", &nth, &result) == 2) {
		i = index_of(fail, strcspn(fail, ":"));
		fake.functions[i].fails_in = nth;
		fake.functions[i].result = result;
	}
}

CUresult count_call(int function)
{
	fake.functions[function].calls++;
	if (fake.sticky != 0)
		return (CUresult)fake.sticky;
	return fake.functions[function].fails_in > 0 && --fake.functions[function].fails_in == 0
		       ? (CUresult)fake.functions[function].result
		       : CUDA_SUCCESS;
}

struct CUctx_st *current(void)
{
	return depth > 0 ? stack[depth - 1] : NULL;
}

CUresult cuInit(unsigned int flags)
{
	ENTER(cuInit, false)
	if (flags != 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (fake.device_count == 0)
		LEAVE(CUDA_ERROR_NO_DEVICE);
	fake.initialised = true;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *out)
{
	ENTER(cuDriverGetVersion, false)
	*out = fake.version;
	LEAVE(CUDA_SUCCESS);
}

static const char *text_of(CUresult error)
{
	switch ((int)error) {
	case CUDA_ERROR_OUT_OF_MEMORY:
		return "CUDA_ERROR_OUT_OF_MEMORY\0out of memory";
	case CUDA_ERROR_NO_DEVICE:
		return "CUDA_ERROR_NO_DEVICE\0no CUDA-capable device is detected";
	case CUDA_ERROR_NOT_PERMITTED:
		return "CUDA_ERROR_NOT_PERMITTED\0operation not permitted";
	case CUDA_ERROR_ILLEGAL_ADDRESS:
		return "CUDA_ERROR_ILLEGAL_ADDRESS\0an illegal memory access was encountered";
	default:
		return "CUDA_ERROR_FAKE\0an error of the tests";
	}
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
	*name = text_of(error);
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	*text = text_of(error) + strlen(text_of(error)) + 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	ENTER(cuDeviceGetCount, false)
	*count = fake.device_count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(cuDeviceGet, false)
	if (ordinal < 0 || ordinal >= fake.device_count)
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	*device = ordinal;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	ENTER(cuDeviceTotalMem_v2, false)
	*bytes = fake.memory_max;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	ENTER(cuDeviceGetName, false)
	snprintf(name, (size_t)size, "Fake %d", device);
	LEAVE(CUDA_SUCCESS);
}

bool has(const char *kind)
{
	const char *without = getenv("FAKE_CUDA_WITHOUT");

	return without == NULL || strstr(without, kind) == NULL;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	ENTER(cuDeviceGetAttribute, false)
	*value = (attribute == CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY && has("managed")) ||
		 (attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED && has("pools")) ||
		 (attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED &&
		  has("shared"));
	if ((int)attribute == TEXTURE_ALIGNMENT)
		*value = 512;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice other)
{
	ENTER(cuDeviceCanAccessPeer, false)
	if (device == other || device >= fake.device_count || other >= fake.device_count)
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	*can = has("peers");
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxEnablePeerAccess(CUcontext other, unsigned int flags)
{
	ENTER(cuCtxEnablePeerAccess, true)
	if (other == NULL || other == current() || flags != 0)
		LEAVE(CUDA_ERROR_INVALID_CONTEXT);
	if (current()->reaches[other->device])
		LEAVE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	current()->reaches[other->device] = true;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	ENTER(cuDevicePrimaryCtxRetain, false)
	if (device < 0 || device >= fake.device_count || device >= DEVICES_MAX)
		LEAVE(CUDA_ERROR_INVALID_DEVICE);
	fake.contexts[device].retained++;
	*context = &fake.contexts[device];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	ENTER(cuCtxPushCurrent_v2, false)
	if (context == NULL || depth == STACK_MAX)
		LEAVE(CUDA_ERROR_INVALID_CONTEXT);
	stack[depth++] = context;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	ENTER(cuCtxPopCurrent_v2, true)
	*context = stack[--depth];
	LEAVE(CUDA_SUCCESS);
}

/* With the lock: waits until all streams have done what they were given. */
void wait_for_streams(void)
{
	for (struct CUstream_st *stream = fake.streams; stream != NULL;)
		if (stream->first != NULL) {
			pthread_cond_wait(&stream->idle, &fake.lock);
			stream = fake.streams;
		} else {
			stream = stream->next;
		}
}

/* What tests do. */

static void run_write(struct task *task)
{
	char *at = reach(task->memory, task->size);

	if (at == NULL) {
		fprintf(stderr, "fake_cuda: a kernel wrote beyond an allocation\n");
		abort();
	}
	memset(at, task->byte, task->size);
}

static int launch(void *stream, const struct task *task)
{
	CUresult result;

	pthread_mutex_lock(&fake.lock);
	result = submit(stream, task);
	pthread_mutex_unlock(&fake.lock);
	return result == CUDA_SUCCESS ? 0 : -1;
}

int fake_cuda_write(void *stream, unsigned long long address, unsigned char byte, size_t size)
{
	const struct task task = {.run = run_write, .memory = address, .byte = byte, .size = size};

	return launch(stream, &task);
}

int fake_cuda_copy(void *stream, unsigned long long to, unsigned long long from, size_t size)
{
	const struct task task = {
		.run = run_copy,
		.copy = {.srcDevice = from, .dstDevice = to, .WidthInBytes = size, .Height = 1}};

	return launch(stream, &task);
}

/* Not of those that frag calls: for gpu_check, which has no kernels of its own. */
EXPORT CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char byte, size_t size,
				CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr memory, unsigned char byte, size_t size, CUstream stream)
{
	return fake_cuda_write(stream, memory, byte, size) == 0 ? CUDA_SUCCESS
								: CUDA_ERROR_INVALID_HANDLE;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context)
{
	depth = depth > 0 ? depth : 1;
	stack[depth - 1] = context;
	return CUDA_SUCCESS;
}

void fake_cuda_hold_stream(void *stream, bool hold)
{
	pthread_mutex_lock(&fake.lock);
	((struct CUstream_st *)stream)->held = hold;
	wake_streams();
	pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_hold_calls(bool hold)
{
	pthread_mutex_lock(&fake.lock);
	fake.calls_held = hold;
	wake_streams();
	pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_fail(const char *name, int nth, int result)
{
	int i = index_of(name, strlen(name));

	pthread_mutex_lock(&fake.lock);
	configure();
	fake.functions[i].fails_in = nth;
	fake.functions[i].result = result;
	pthread_mutex_unlock(&fake.lock);
}

void fake_cuda_hold(bool hold)
{
	pthread_mutex_lock(&fake.lock);
	fake.held = hold;
	wake_streams();
	pthread_mutex_unlock(&fake.lock);
}

size_t fake_cuda_used(void)
{
	size_t sum = 0;

	pthread_mutex_lock(&fake.lock);
	for (int i = 0; i < DEVICES_MAX; i++)
		sum += fake.used[i];
	pthread_mutex_unlock(&fake.lock);
	return sum;
}

int fake_cuda_calls(const char *name)
{
	int i = index_of(name, strlen(name)), calls;

	pthread_mutex_lock(&fake.lock);
	calls = fake.functions[i].calls;
	pthread_mutex_unlock(&fake.lock);
	return calls;
}

int fake_cuda_peek(unsigned long long address, void *out, size_t size)
{
	const char *at;

	pthread_mutex_lock(&fake.lock);
	at = reach(address, size);
	if (at != NULL)
		memcpy(out, at, size);
	pthread_mutex_unlock(&fake.lock);
	return at != NULL ? 0 : -1;
}

void *fake_cuda_reach(const void *address)
{
	void *at = NULL;

	pthread_mutex_lock(&fake.lock);
	for (const struct piece *piece = fake.pieces; piece != NULL && at == NULL;
	     piece = piece->next)
		if (piece->address != piece->bytes && (const char *)address >= piece->address &&
		    (const char *)address < piece->address + piece->size)
			at = piece->bytes + ((const char *)address - piece->address);
	pthread_mutex_unlock(&fake.lock);
	return at;
}

int fake_cuda_poke(unsigned long long address, const void *from, size_t size)
{
	char *at;

	pthread_mutex_lock(&fake.lock);
	at = reach(address, size);
	if (at != NULL)
		memcpy(at, from, size);
	pthread_mutex_unlock(&fake.lock);
	return at != NULL ? 0 : -1;
}

size_t fake_cuda_left(void)
{
	size_t count = (size_t)depth;

	pthread_mutex_lock(&fake.lock);
	count += fake.reserved + fake.modules;
	for (const struct CUstream_st *stream = fake.streams; stream != NULL; stream = stream->next)
		count++;
	for (const struct CUmemPoolHandle_st *pool = fake.pools; pool != NULL; pool = pool->next)
		count += !pool->destroyed;
	for (const struct CUevent_st *event = fake.events; event != NULL; event = event->next)
		count += !event->destroyed;
	for (const struct CUgreenCtx_st *green = fake.greens; green != NULL; green = green->next)
		count += !green->destroyed;
	pthread_mutex_unlock(&fake.lock);
	return count;
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("FAKE_CUDA_REPORT");
	FILE *file = path != NULL ? fopen(path, "a") : NULL;

	if (file == NULL)
		return;
	fprintf(file, "left %zu\n", fake_cuda_used());
	fclose(file);
}
