// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

#include "recorded.h"

#include "engine/calls.h"
#include "inference/inference.h"
#include "inference/inference_state.h"
#include "open_gpu.h"

/* The operator inference with the engines of tests, on the CPU and over the driver of tests. */
static struct engine_calls *engine;

static void open_engine(const char *library)
{
	cpu_set_t all, one;
	void *opened;
	size_t cpu = 0;

	setenv("FRAG_OPENVINO", built("tests/engine"), 1);
	setenv("FRAG_ONNXRUNTIME", built("tests/engine"), 1);
	opened = dlopen(built(library), RTLD_NOW);
	cr_assert_not_null(opened, "%s", dlerror());
	engine = dlsym(opened, "engine_calls");
	cr_assert_not_null(engine);
	open_gpu();
	/* ONNX Runtime gets as many threads as the process may have processors. */
	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/* An engine that does not start is refused, and may start later. */
static void start_late(const char *backend, const char *library, int calls, const char *words)
{
	open_engine(library);
	for (engine->until = 1; engine->until <= calls; engine->until++) {
		struct frag_err err = FRAG_ERR_INIT;

		engine->made = 0;
		cr_expect_null(frag_harness_create(
			&inference_inference_type,
			FRAG_ARGS({"backend", backend}, {"model_path_map", "{a: /etc/passwd}"},
				  {"pre_processor_map", "{a: b}"}, {"inference_map", "{a: c}"}),
			&err));
		cr_expect_not_null(strstr(err.text, words), "call %d: %s", engine->until, err.text);
		cr_expect_eq(err.code, -ELIBBAD);
		cr_expect_eq(engine->live, 0);
	}
	engine->until = 0;
}

Test(inference_engines, openvino_may_start_late)
{
	start_late("openvino", "tests/engine/libopenvino_c.so", 1,
		   "OpenVINO does not start: the tests let this call fail; check that all its");
}

Test(inference_engines, onnxruntime_may_start_late)
{
	start_late("onnxruntime", "tests/engine/libonnxruntime.so.1", 2,
		   "ONNX Runtime does not start: the tests let this call fail; check that all its");
}

/* A model that is being made ready at the end is given back, too. */
Test(inference_engines, a_model_that_comes_too_late_is_given_back)
{
	char path[] = "/tmp/frag-late-XXXXXX";
	struct frag_harness *h;
	struct inference *in;
	char text[128];
	int fd = mkstemp(path);

	open_engine("tests/engine/libonnxruntime.so.1");
	cr_assert_geq(dprintf(fd, "engine of tests\ninput b 1 1 3\noutput c 1 1 2\n"), 0);
	close(fd);
	snprintf(text, sizeof(text), "{a: [%s, %s/../%s]}", path, "/tmp", path + 5);
	memory.is_on = true;
	h = frag_harness_create(&inference_inference_type,
				FRAG_ARGS({"backend", "onnxruntime"}, {"model_path_map", text},
					  {"pre_processor_map", "{a: b}"},
					  {"inference_map", "{a: c}"}),
				NULL);
	cr_assert_not_null(h);
	in = frag_harness_state(h);
	in->model = 2;
	cr_expect_lt(frag_harness_tick(h), 0, "nothing came");
	cr_expect(in->loader.is_begun);
	frag_harness_destroy(h);
	memory.is_on = false;
	unlink(path);
	cr_expect_eq(engine->live, 0);
	for (size_t i = 0; i < LIVE_MAX; i++)
		cr_expect_null(memory.live[i]);
}

static int engine_left(void)
{
	return atomic_exchange(&engine->live, 0);
}

/* Each call of the engine fails once. */
static void run_engine(const struct subject *s)
{
	for (int n = 1; n < 400; n++) {
		char head[64];

		engine->until = n;
		engine->made = 0;
		snprintf(head, sizeof(head), "call %d of the engine fails", n);
		run_case(s, "", s->feed, true, head);
		if (engine->made < n)
			break;
	}
	engine->until = 0;
}

#define WITH_ENGINE(name_, library_, on_gpu_)                                                      \
	Test(recorded, name_)                                                                      \
	{                                                                                          \
		setenv("FRAG_TEST_ENGINE_LOG", "log", 1); /* which is in the text */               \
		open_engine(library_);                                                             \
		record(&(struct subject){.type = &inference_inference_type,                        \
					 .name = #name_,                                           \
					 .on_gpu = (on_gpu_),                                      \
					 .run_own = run_engine,                                    \
					 .left = engine_left});                                    \
	}

WITH_ENGINE(inference_openvino, "tests/engine/libopenvino_c.so", false)
WITH_ENGINE(inference_onnxruntime, "tests/engine/libonnxruntime.so.1", false)
WITH_ENGINE(inference_gpu, "tests/engine/libonnxruntime.so.1", true)
