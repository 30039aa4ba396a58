// SPDX-License-Identifier: Apache-2.0
/*
 * What Holoscan's InferenceOp asks of TensorRT with backend onnxrt, where there is no TensorRT. As
 * libnvinfer_plugin.so.10 and libnvonnxparser.so.10 it has the functions that libholoscan_infer.so
 * is linked with and does not call. As libonnxruntime.so.1 it gives the library that the variable
 * ONNXRUNTIME names, but for the provider TensorRT, which Holoscan adds before that of CUDA: that
 * is accepted and left out.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 300 /* of the table, in the version that Holoscan asks for, and some more */

void *createInferBuilder_INTERNAL(void *logger, int version);
void *createInferRuntime_INTERNAL(void *logger, int version);
void *createNvOnnxParser_INTERNAL(void *network, void *logger, int version);
int initLibNvInferPlugins(void *logger, const char *names);
const void *OrtGetApiBase(void);

void *createInferBuilder_INTERNAL(void *logger, int version)
{
	(void)logger;
	(void)version;
	return NULL;
}

void *createInferRuntime_INTERNAL(void *logger, int version)
{
	(void)logger;
	(void)version;
	return NULL;
}

void *createNvOnnxParser_INTERNAL(void *network, void *logger, int version)
{
	(void)network;
	(void)logger;
	(void)version;
	return NULL;
}

int initLibNvInferPlugins(void *logger, const char *names)
{
	(void)logger;
	(void)names;
	return 0;
}

struct api_base {
	const void *(*get_api)(uint32_t version);
	const char *(*get_version)(void);
};

static const struct api_base *real;

static void *succeed(void)
{
	return NULL;
}

static void *make_options(void **out)
{
	static long options[8];

	*out = options;
	return NULL;
}

static const void *get_api(uint32_t version)
{
	static const void *table[PLACES];
	const void *api = real->get_api(version);

	if (api == NULL)
		return NULL;
	memcpy(table, api, sizeof(table));
	table[170] = (const void *)succeed; /* SessionOptionsAppendExecutionProvider_TensorRT_V2 */
	table[171] = (const void *)make_options; /* CreateTensorRTProviderOptions */
	table[172] = (const void *)succeed;      /* UpdateTensorRTProviderOptions */
	table[174] = (const void *)succeed;      /* ReleaseTensorRTProviderOptions */
	return table;
}

const void *OrtGetApiBase(void)
{
	static struct api_base base;
	const char *name = getenv("ONNXRUNTIME");
	void *library = name != NULL ? dlopen(name, RTLD_NOW | RTLD_LOCAL) : NULL;
	const struct api_base *(*get)(void) = NULL;

	if (library != NULL)
		*(void **)&get = dlsym(library, "OrtGetApiBase");
	if (get == NULL) {
		fprintf(stderr, "ONNXRUNTIME=%s: %s\n", name != NULL ? name : "", dlerror());
		abort();
	}
	real = get();
	base = (struct api_base){get_api, real->get_version};
	return &base;
}
