/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_NPP_H
#define TESTS_BENCH_NPP_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* NPP 13: what is used of its headers. */
struct npp_size {
	int width, height;
};
struct npp_rect {
	int x, y, width, height;
};
struct npp_image {
	const void *data;
	int step;
	struct npp_size size;
};
struct npp_part {
	struct npp_rect from, to;
};
struct npp_context {
	void *stream;
	int device, multiprocessors, threads_of_one, threads_of_block;
	size_t shared_of_block;
	int major, minor;
	unsigned int flags, workspace;
};
#define NPP_LINEAR 2  /* NPPI_INTER_LINEAR */
#define NPP_GREATER 4 /* NPP_CMP_GREATER */
#define NPP_RGGB 1    /* NPPI_BAYER_RGGB */

/* One H100 or H200. */
static const struct npp_context npp = {NULL, 0, 132, 2048, 1024, 48 << 10, 9, 0, 0, 0};

static inline void *npp_function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *function = handle != NULL ? dlsym(handle, name) : NULL;

	if (function == NULL)
		printf("lacks %s of %s\n", name, library);
	return function;
}

static inline void npp_check(int status)
{
	if (status != 0) {
		fprintf(stderr, "twins: NPP refuses: %d\n", status);
		exit(1);
	}
}

#endif
