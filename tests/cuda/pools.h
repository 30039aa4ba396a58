/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_POOLS_H
#define TESTS_CUDA_POOLS_H

#include <criterion/criterion.h>
#include <string.h>

#include <res/resource.h>
#include <type/cuda.h>

/* GPUs and allocators that tests make without a graph. */

static inline void use(struct frag_device device)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_cuda_use(device, &ops, &err), 0, "%s", err.text);
}

static inline void set(const struct frag_resource_type *type, unsigned char *state,
		       const char *name, int64_t value)
{
	for (uint32_t i = 0; i < type->param_count; i++)
		if (strcmp(type->params[i].name, name) == 0)
			memcpy(state + type->params[i].offset, &value, sizeof(value));
}

/* A resource with parameters {name, value, ..., NULL}, set up and initialised. */
static inline int make(const char *type_name, struct frag_resource **out, struct frag_err *err,
		       const char *const *names, const int64_t *values)
{
	const struct fragi_built_in_resource *built_in = fragi_built_in_resource(type_name);
	struct frag_resource *resource;
	int r;

	cr_assert_eq(fragi_resource_create(&built_in->type, built_in, "pool", &resource), 0);
	for (size_t i = 0; names != NULL && names[i] != NULL; i++)
		set(&built_in->type, fragi_resource_state(resource), names[i], values[i]);
	r = fragi_resource_set_up(resource, err);
	if (r == 0 && built_in->type.initialize != NULL)
		r = built_in->type.initialize(fragi_resource_state(resource), resource, err);
	if (r < 0)
		fragi_resource_unref(resource);
	else
		*out = resource;
	return r;
}

#endif
