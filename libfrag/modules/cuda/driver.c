// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

#include "driver.h"

#define DRIVER_VERSION_MIN 12000
#define GREEN_VERSION_MIN 12050

#ifdef FRAG_CUDA_TOOLKIT
/* What the table calls is what the toolkit declares. */
#define SAME(name, parameters)                                                                     \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), CUresult(*) parameters),    \
		       #name);
FRAGI_CU_FUNCTIONS(SAME)
#if CUDA_VERSION >= GREEN_VERSION_MIN
FRAGI_CU_GREEN_FUNCTIONS(SAME)
#endif
#undef SAME
#endif

struct cuda_driver cu;

static int find_functions(void *library, struct cuda_driver *out, struct frag_err *err)
{
#define FIND(function, parameters)                                                                 \
	*(void **)(void *)&out->function = dlsym(library, #function);                              \
	if (out->function == NULL)                                                                 \
		return frag_err_set(err, -ENODEV,                                                  \
				    "libcuda.so.1 has no function " #function                      \
				    ": install a driver of NVIDIA for CUDA 12.0 or newer");
	FRAGI_CU_FUNCTIONS(FIND)
#undef FIND
	return 0;
}

static void find_green_functions(void *library)
{
#define FIND(function, parameters) *(void **)(void *)&cu.function = dlsym(library, #function);
	FRAGI_CU_GREEN_FUNCTIONS(FIND)
#undef FIND
}

static int initialise(void *library, struct frag_err *err)
{
	int version = 0, r;

	r = cuda_check(cu.cuInit(0), err, "the driver of NVIDIA cannot be used: cuInit");
	if (r == 0)
		r = cuda_check(cu.cuDriverGetVersion(&version), err, "cuDriverGetVersion");
	if (r == 0 && version < DRIVER_VERSION_MIN)
		r = frag_err_set(
			err, -ENODEV,
			"the driver of NVIDIA is for CUDA %d.%d: install one for 12.0 or newer",
			version / 1000, version % 1000 / 10);
	if (r == 0 && version >= GREEN_VERSION_MIN)
		find_green_functions(library);
	return r < 0 ? -ENODEV : 0;
}

int cuda_driver_open(struct frag_err *err)
{
	static bool found, ready;
	static void *library;
	const char *why;
	int r = 0;

	if (ready)
		return 0;
	if (!found) {
		/* Never closed: the driver leaves threads behind. */
		library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
		if (library == NULL) {
			why = dlerror();
			return frag_err_set(err, -ENODEV, "there is no driver of NVIDIA here (%s)",
					    why != NULL ? why : "libcuda.so.1");
		}
		r = find_functions(library, &cu, err);
		found = r == 0;
	}
	if (r == 0)
		r = initialise(library, err);
	ready = r == 0;
	return r;
}

int cuda_check(CUresult result, struct frag_err *err, const char *what, ...)
{
	const char *name = NULL, *text = NULL;
	char call[256];
	va_list args;
	int code;

	if (result == CUDA_SUCCESS)
		return 0;
	code = result == CUDA_ERROR_OUT_OF_MEMORY    ? -ENOMEM
	       : result == CUDA_ERROR_NO_DEVICE      ? -ENODEV
	       : result == CUDA_ERROR_INVALID_DEVICE ? -ENODEV
						     : -EIO;
	if (err == NULL)
		return code;
	va_start(args, what);
	vsnprintf(call, sizeof(call), what, args);
	va_end(args);
	if (cu.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL)
		name = "error";
	if (cu.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == NULL)
		text = "unknown to the driver";
	return frag_err_set(err, code, "%s: %s (%d): %s", call, name, (int)result, text);
}
