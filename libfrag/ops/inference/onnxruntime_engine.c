// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* dladdr, memmem */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu.h"
#include "library.h"
#include "onnxruntime_engine.h"

#define LIBRARY "libonnxruntime.so.1"

static struct ort ort;
static char folder[PATH_MAX]; /* of the library; ONNX Runtime opens its providers from there */
static bool is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

const char *ort_provider_name(enum inference_provider provider)
{
	static const char *const names[] = {"cpu", "cuda", "tensorrt"};

	return names[provider];
}

/* Texts of the engine may begin with a place in its code, and its own names for what failed. */
static const char *without_place(const char *text)
{
	const char *end = text[0] == '/' ? strstr(text, ") ") : NULL;

	text = end != NULL ? end + 2 : text;
	end = strncmp(text, "[ONNXRuntimeError]", 18) == 0 ? strstr(text, "FAIL : ") : NULL;
	return end != NULL ? end + 7 : text;
}

/* The reason is one line: texts of the engine may have several. */
int ort_failed(const struct ort *engine, ort_status_t *status, int code, const char *what,
	       const char *advice, struct frag_err *err)
{
	const char *text = without_place(engine->GetErrorMessage(status));
	char reason[400];

	snprintf(reason, sizeof(reason), "%.*s", (int)strcspn(text, "\n"), text);
	engine->ReleaseStatus(status);
	if (strstr(reason, "Failed to allocate memory") != NULL ||
	    strstr(reason, "is smaller than requested bytes") != NULL ||
	    strstr(reason, "out of memory") != NULL)
		return frag_err_set(
			err, -ENOMEM,
			"%s: %s; give it smaller batches or frames, or use less of this memory elsewhere",
			what, reason);
	return frag_err_set(err, code, "%s: %s; %s", what, reason, advice);
}

/* The numbers of a version, such as 1.31.1, compared by the first two. */
static bool is_old(const char *version)
{
	int major = 0, minor = 0;

	return sscanf(version, "%d.%d", &major, &minor) != 2 || major < 1 ||
	       (major == 1 && minor < ORT_API_VERSION);
}

static int find_functions(void *library, struct frag_err *err)
{
	void *symbol = dlsym(library, "OrtGetApiBase");
	const struct ort_api_base *(*get_base)(void);
	const void *const *table = NULL;
	Dl_info info;

	memcpy(&get_base, &symbol, sizeof(symbol));
	if (get_base == NULL || dladdr(symbol, &info) == 0)
		return frag_err_set(err, -ELIBBAD,
				    "this " LIBRARY " has no function OrtGetApiBase; use ONNX "
				    "Runtime 1.%d or newer (make deps-ai)",
				    ORT_API_VERSION);
	snprintf(ort.version, sizeof(ort.version), "%s", get_base()->get_version());
	if (!is_old(ort.version))
		table = get_base()->get_api(ORT_API_VERSION);
	if (table == NULL)
		return frag_err_set(err, -ELIBBAD,
				    "this " LIBRARY
				    " is of ONNX Runtime %s; use 1.%d or newer (make deps-ai)",
				    ort.version, ORT_API_VERSION);
#define FIND(place, result, name, args)                                                            \
	_Static_assert(place < ORT_PLACES, "the table of that version has this function");         \
	memcpy(&ort.name, &table[place], sizeof(ort.name));
	ORT_FUNCTIONS(FIND)
	snprintf(folder, sizeof(folder), "%s", info.dli_fname);
	*(strrchr(folder, '/') != NULL ? strrchr(folder, '/') : folder) = '\0';
	return 0;
}

static int open_locked(struct frag_err *err)
{
	ort_status_t *status;
	void *library;
	int r;

	if (is_open)
		return 0;
	/*
	 * Microsoft's builds for Linux from 1.29 on send names and hashes of models to it, unless
	 * this is set when the library is loaded.
	 */
	if (setenv("ORT_DISABLE_TELEMETRY", "1", 1) < 0)
		return frag_err_set(err, -ENOMEM, "out of memory for ONNX Runtime");
	library = inference_library_open("FRAG_ONNXRUNTIME", "onnxruntime", LIBRARY);
	if (library == NULL)
		return frag_err_set(
			err, -ELIBACC,
			"the engine ONNX Runtime cannot be loaded: %s; run make deps-ai, or set FRAG_ONNXRUNTIME to the folder that holds " LIBRARY,
			dlerror());
	r = find_functions(library, err);
	if (r < 0) {
		dlclose(library);
		return r;
	}
	/* Failures come as texts, so it need not print them too. */
	status = ort.CreateEnv(ORT_LOG_FATAL, "frag", &ort.env);
	if (status == NULL)
		status = ort.GetAllocatorWithDefaultOptions(&ort.allocator);
	if (status != NULL)
		return ort_failed(&ort, status, -ELIBBAD, "ONNX Runtime does not start",
				  "check that all its libraries are in one folder (make deps-ai)",
				  err);
	is_open = true;
	return 0;
}

const struct ort *ort_open(struct frag_err *err)
{
	int r;

	pthread_mutex_lock(&lock);
	r = open_locked(err);
	pthread_mutex_unlock(&lock);
	return r == 0 ? &ort : NULL;
}

/* Finds a text such as "1.31.1" that stands alone. Returns its length; 0: there is none. */
static size_t find_version(const char *data, size_t size, const char **out)
{
	const char *at = data, *end = data + size;

	while (at < end && (at = memmem(at, (size_t)(end - at), "\0001.", 3)) != NULL) {
		size_t length = 0, dots = 0;

		at++;
		while (at + length < end && length < 12 && strchr("0123456789.", at[length]) &&
		       at[length] != '\0')
			dots += at[length++] == '.';
		if (at + length < end && at[length] == '\0' && dots == 2 && at[length - 1] != '.') {
			*out = at;
			return length;
		}
	}
	return 0;
}

/*
 * A provider of another version may crash, and nothing in it is meant to be asked for its version
 * before it is loaded: but the one for CUDA, which comes with all others, contains it as a text.
 */
static int check_version(const char *path, struct frag_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	char own[sizeof(ort.version) + 2] = "";
	const char *data = MAP_FAILED, *found;
	struct stat file = {0};
	size_t length;

	if (fd >= 0 && fstat(fd, &file) == 0 && file.st_size > 0)
		data = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (data == MAP_FAILED)
		return frag_err_set(
			err, -ELIBACC,
			"ONNX Runtime in %s has no provider for GPUs: %s cannot be read; set FRAG_ONNXRUNTIME to the folder of the wheel onnxruntime-gpu %s (onnxruntime/capi), or use provider: cpu",
			folder, path, ort.version);
	snprintf(own + 1, sizeof(own) - 1, "%s", ort.version);
	if (memmem(data, (size_t)file.st_size, own, strlen(ort.version) + 2) == NULL) {
		length = find_version(data, (size_t)file.st_size, &found);
		r = frag_err_set(
			err, -ELIBBAD,
			"ONNX Runtime in %s is %s, and its provider %s is %.*s; take both from one wheel onnxruntime-gpu",
			folder, ort.version, path, length > 0 ? (int)length : 13,
			length > 0 ? found : "of another one");
	}
	munmap((void *)(uintptr_t)data, (size_t)file.st_size);
	return r;
}

/*
 * An engine is a program, so nobody else may write to its folder, nor exchange it or one above it.
 * A sticky folder above keeps others from exchanging what belongs to this user or root.
 */
static int check_rights(const char *path, struct frag_err *err)
{
	char above[PATH_MAX];
	struct stat file;

	for (const char *end = path; *end != '\0';) {
		bool is_last;

		end += 1 + strcspn(end + 1, "/");
		is_last = *end == '\0';
		snprintf(above, sizeof(above), "%.*s", (int)(end - path), path);
		if (stat(above, &file) < 0)
			return frag_err_set(err, -errno, "engine_cache: cannot look at %s: %s",
					    above, frag_strerror(-errno));
		if (S_ISDIR(file.st_mode) && (file.st_uid == geteuid() || file.st_uid == 0) &&
		    ((file.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
		     ((file.st_mode & S_ISVTX) != 0 && !is_last)))
			continue;
		return frag_err_set(
			err, -EPERM,
			"engine_cache: other users may write to the folder %s, or own it, and an engine from there can be any program; chmod go-w it, or name a folder of your own",
			above);
	}
	return 0;
}

/* Makes the folder of engines for a kind of GPU. out: without links, which others may change. */
static int make_cache(const char *cache, const char *name, char out[PATH_MAX], struct frag_err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s-%s", cache, name, ort.version);
	for (char *at = path + strlen(cache) + 1; *at != '\0'; at++)
		if (strchr(" /", *at) != NULL)
			*at = '_';
	if ((mkdir(cache, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(path, 0700) < 0 && errno != EEXIST) || realpath(path, out) == NULL)
		return frag_err_set(err, -errno,
				    "engine_cache: cannot make the folder %s: %s; name another one",
				    path, frag_strerror(-errno));
	return check_rights(out, err);
}

/* Options of a provider as it takes them: texts, but the stream. */
struct option_list {
	const char *keys[12], *values[12];
	char numbers[4][24];
	char cache[PATH_MAX];
	size_t count, number_count;
};

static void add(struct option_list *list, const char *key, const char *value)
{
	list->keys[list->count] = key;
	list->values[list->count++] = value;
}

static void add_number(struct option_list *list, const char *key, int64_t value)
{
	char *text = list->numbers[list->number_count++];

	snprintf(text, sizeof(list->numbers[0]), "%lld", (long long)value);
	add(list, key, text);
}

static int tensorrt_options(const struct inference_options *options, struct option_list *list,
			    struct frag_err *err)
{
	char name[128];
	int r = 0;

	add_number(list, "device_id", options->gpu);
	add(list, "trt_fp16_enable", options->half ? "1" : "0");
	add(list, "trt_cuda_graph_enable", options->graphs ? "1" : "0");
	if (options->dla_core >= 0) {
		add(list, "trt_dla_enable", "1");
		add_number(list, "trt_dla_core", options->dla_core);
	}
	if (options->engine_cache == NULL)
		return 0;
	/* An engine fits one kind of GPU and one version, so each pair has a folder of its own. */
	r = inference_gpu_name(options->gpu, name, sizeof(name), err);
	if (r == 0)
		r = make_cache(options->engine_cache, name, list->cache, err);
	add(list, "trt_engine_cache_enable", "1");
	add(list, "trt_engine_cache_path", list->cache);
	add(list, "trt_timing_cache_enable", "1");
	add(list, "trt_timing_cache_path", list->cache);
	return r;
}

static ort_status_t *add_tensorrt(const struct inference_options *options,
				  ort_session_options_t *session, const struct option_list *list)
{
	ort_tensorrt_options_t *provider = NULL;
	ort_status_t *status = ort.CreateTensorRTProviderOptions(&provider);

	if (status == NULL)
		status = ort.UpdateTensorRTProviderOptions(provider, list->keys, list->values,
							   list->count);
	if (status == NULL)
		status = ort.UpdateTensorRTProviderOptionsWithValue(provider, "user_compute_stream",
								    options->stream);
	if (status == NULL)
		status = ort.SessionOptionsAppendExecutionProvider_TensorRT_V2(session, provider);
	if (provider != NULL)
		ort.ReleaseTensorRTProviderOptions(provider);
	return status;
}

static ort_status_t *add_cuda(const struct inference_options *options,
			      ort_session_options_t *session)
{
	ort_cuda_options_t *provider = NULL;
	struct option_list list = {0};
	ort_status_t *status;

	add_number(&list, "device_id", options->gpu);
	/* With graphs of TensorRT, what it leaves to CUDA is not in them. */
	add(&list, "enable_cuda_graph",
	    options->graphs && options->provider == INFERENCE_CUDA ? "1" : "0");
	add(&list, "do_copy_in_default_stream", "1");
	if (options->memory_bytes > 0) {
		add_number(&list, "gpu_mem_limit", options->memory_bytes);
		add(&list, "arena_extend_strategy", "kSameAsRequested");
	}
	status = ort.CreateCUDAProviderOptions(&provider);
	if (status == NULL)
		status =
			ort.UpdateCUDAProviderOptions(provider, list.keys, list.values, list.count);
	if (status == NULL)
		status = ort.UpdateCUDAProviderOptionsWithValue(provider, "user_compute_stream",
								options->stream);
	if (status == NULL)
		status = ort.SessionOptionsAppendExecutionProvider_CUDA_V2(session, provider);
	if (provider != NULL)
		ort.ReleaseCUDAProviderOptions(provider);
	return status;
}

int ort_add_provider(const struct ort *engine, const struct inference_options *options,
		     ort_session_options_t *session, struct frag_err *err)
{
	char path[PATH_MAX + 64], what[64];
	struct option_list list = {0};
	ort_status_t *status = NULL;
	int r;

	if (options->provider == INFERENCE_CPU)
		return 0;
	snprintf(path, sizeof(path), "%s/libonnxruntime_providers_cuda.so", folder);
	r = check_version(path, err);
	if (r == 0 && options->provider == INFERENCE_TENSORRT) {
		r = tensorrt_options(options, &list, err);
		if (r == 0)
			status = add_tensorrt(options, session, &list);
	}
	if (r == 0 && status == NULL) /* also for what TensorRT leaves */
		status = add_cuda(options, session);
	if (status == NULL)
		return r;
	snprintf(what, sizeof(what), "ONNX Runtime's provider %s does not load",
		 ort_provider_name(options->provider));
	return ort_failed(
		engine, status, -ELIBACC, what,
		options->provider == INFERENCE_TENSORRT
			? "put TensorRT 10, CUDA and cuDNN where the dynamic linker looks (LD_LIBRARY_PATH), or use provider: cuda"
			: "put the libraries of CUDA and cuDNN 9 where the dynamic linker looks (LD_LIBRARY_PATH), or use provider: cpu",
		err);
}
