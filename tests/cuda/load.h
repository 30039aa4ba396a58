/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_LOAD_H
#define TESTS_CUDA_LOAD_H

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <unistd.h>

#include "built.h"
#include "cuda/fake_cuda.h"
#include "left.h"

/* The driver of tests, for test programs in build/tests/KIND. */
static struct {
	__typeof__(&fake_cuda_fail) fail;
	__typeof__(&fake_cuda_hold) hold;
	__typeof__(&fake_cuda_hold_stream) hold_stream;
	__typeof__(&fake_cuda_hold_calls) hold_calls;
	__typeof__(&fake_cuda_write) write;
	__typeof__(&fake_cuda_copy) copy;
	__typeof__(&fake_cuda_used) used;
	__typeof__(&fake_cuda_left) left;
	__typeof__(&fake_cuda_calls) calls;
	__typeof__(&fake_cuda_peek) peek;
	__typeof__(&fake_cuda_poke) poke;
	__typeof__(&fake_cuda_sms) sms;
	__typeof__(&fake_cuda_by_host) by_host;
} fake;

/* Loads it under the name by which the module asks for it. */
static void load_fake(void)
{
	void *library = dlopen(built("tests/cuda/libcuda.so.1"), RTLD_NOW | RTLD_LOCAL);

	cr_assert_not_null(library, "%s", dlerror());
	left_own.threads = 8; /* the module's, and the driver's, which counts its streams itself */
#define FIND(name) fake.name = (__typeof__(fake.name))dlsym(library, "fake_cuda_" #name)
	FIND(fail);
	FIND(hold);
	FIND(hold_stream);
	FIND(hold_calls);
	FIND(write);
	FIND(copy);
	FIND(used);
	FIND(left);
	FIND(calls);
	FIND(peek);
	FIND(poke);
	FIND(sms);
	FIND(by_host);
#undef FIND
}

/*
 * After the test all memory, streams, pools, events, green contexts and modules were given back,
 * but for the stream by which the module frees.
 */
#define GPU_TEST(suite, name)                                                                      \
	static void suite##_##name(void);                                                          \
	Test(suite, name)                                                                          \
	{                                                                                          \
		suite##_##name();                                                                  \
		expect_nothing_left();                                                             \
	}                                                                                          \
	static void suite##_##name(void)

static inline void expect_nothing_left(void)
{
	for (int i = 0; i < 2000 && (fake.used() > 0 || fake.left() > 1); i++)
		usleep(1000);
	cr_expect_eq(fake.used(), 0, "%zu bytes of memory are left", fake.used());
	cr_expect_leq(fake.left(), 1, "%zu streams, pools, events, contexts or modules are left",
		      fake.left());
}

#endif
