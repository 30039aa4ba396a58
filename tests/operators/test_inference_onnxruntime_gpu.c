// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include "inference_onnxruntime.h"
#include "inference/inference_state.h"

#define ON_GPU                                                                                     \
	{                                                                                          \
		"provider", "cuda"                                                                 \
	}

/* While streams do nothing, a tick is over and its message is there: nobody waits for the GPU. */
GPU_TEST(ops_onnxruntime, a_tick_gives_its_work_to_the_stream)
{
	struct frag_harness *h;
	struct frag_message *m;
	int waits;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU));
	cr_assert_eq(frag_harness_give_tensor(h, "receivers", "image", rows(GPU, 1, 6.0f)), 0);
	waits = fake.calls("cuStreamSynchronize");
	fake.hold(true);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_expect_eq(fake.calls("cuStreamSynchronize"), waits);
	fake.hold(false);
	cr_assert_eq(frag_harness_take(h, "transmitter", &m), 0);
	cr_expect_eq(dl(m, "boxes")->device.type, FRAG_DEVICE_CUDA);
	cr_expect_float_eq(element(m, "boxes", 1), 6.0f, 0);
	frag_message_unref(m);
	cr_expect(is_logged("session cuda device_id=0 enable_cuda_graph=0 "));
	cr_expect(is_logged("run asynchronous 1\n") && !is_logged("run waits"));
	frag_harness_destroy(h);
}

/* Outputs of known shape are the operator's; another one is taken as the engine has made it. */
GPU_TEST(ops_onnxruntime, shapes_on_a_gpu)
{
	static const char *const models[] = {any, found};
	struct frag_harness *h;
	struct frag_message *m;

	for (size_t i = 0; i < FRAG_COUNT_OF(models); i++) {
		write_model(model_path, models[i]);
		h = make(FRAG_ARGS(ON_GPU));
		for (int64_t count = 1; count < 4; count++) {
			m = run_once(h, rows(GPU, count, 2.0f));
			cr_expect(dl(m, "boxes")->shape[0] == count &&
				  dl(m, "scores")->shape[0] == count);
			cr_expect_float_eq(element(m, "boxes", (size_t)count * 2 - 1), 2.0f, 0);
			cr_expect_float_eq(element(m, "scores", 0), 2.0f, 0);
			frag_message_unref(m);
		}
		frag_harness_destroy(h);
	}
}

GPU_TEST(ops_onnxruntime, batches_on_a_gpu_keep_their_order)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"out_tensor_names", "[boxes]"}));
	m = run_once(h, rows(GPU, 5, 10.0f));
	for (size_t i = 0; i < 5; i++)
		cr_expect_float_eq(element(m, "boxes", 2 * i + 1), 10.0f + (float)i, 0);
	cr_expect_eq(frag_message_tensor_count(m), 1);
	frag_message_unref(m);
	m = run_once(h, host_rows(1, 3.0f));
	cr_expect_float_eq(element(m, "boxes", 0), 3.0f, 0);
	frag_message_unref(m);
	frag_harness_destroy(h);
	write_model(model_path, "engine of tests\ninput image 1 1 3\noutput boxes 1 found 2\n");
	h = make(FRAG_ARGS(ON_GPU, {"inference_map", "{a: boxes}"}));
	tick_fails(h, "image", rows(GPU, 2, 1.0f),
		   "cannot be joined into the tensor \"boxes\" on a GPU");
	frag_harness_destroy(h);
}

GPU_TEST(ops_onnxruntime, outputs_may_be_made_in_host_memory)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"transmit_on_cuda", "false"}));
	m = run_once(h, host_rows(1, 3.0f));
	cr_expect_eq(dl(m, "boxes")->device.type, FRAG_DEVICE_CPU);
	cr_expect_float_eq(element(m, "scores", 0), 4.0f, 0);
	frag_message_unref(m);
	cr_expect(is_logged("run waits 1\n") && !is_logged("run asynchronous"));
	frag_harness_destroy(h);
}

/* A graph has memory of its own, which is copied to and from on the stream. */
GPU_TEST(ops_onnxruntime, graphs_of_cuda)
{
	struct frag_harness *h;
	struct frag_message *m;

	write_model(model_path, small);
	h = make(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", "true"}));
	for (int i = 0; i < 3; i++) {
		m = run_once(h, rows(GPU, 1, (float)i));
		cr_expect_float_eq(element(m, "boxes", 1), (float)i, 0);
		frag_message_unref(m);
	}
	cr_expect(is_logged("enable_cuda_graph=1"));
	frag_harness_destroy(h);
	write_model(model_path, any);
	refused(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", "true"}),
		"enable_cuda_graphs: \"image\" of /tmp/frag-onnxruntime-");
	write_model(model_path, small);
	h = make(FRAG_ARGS({"enable_cuda_graphs", "true"}));
	frag_harness_destroy(h);
}

/* With two GPUs, each has a stream by which the module frees. */
Test(ops_onnxruntime, devices_are_chosen_as_holoscan_does)
{
	char cache[64], made[256], device[16];
	struct frag_harness *h;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	write_model(model_path, small);
	frag_harness_destroy(make(FRAG_ARGS({"infer_on_cpu", "false"}, {"backend", "onnxrt"})));
	cr_expect(is_logged("session cuda device_id=0"));
	cr_assert_eq(unlink(log_path), 0);
	frag_harness_destroy(make(FRAG_ARGS(ON_GPU, {"backend", "trt"})));
	cr_expect(is_logged("session cuda device_id=0"), "provider decides, as the advice says");
	h = make(FRAG_ARGS({"device_map", "{a: 1}"}, {"gpu_memory", "1 MiB"}));
	cr_expect(is_logged("session cuda device_id=1") && is_logged("gpu_mem_limit=1048576"));
	tick_fails(h, "image", rows(GPU, 1, 1.0f),
		   "is in memory of GPU 0, and model a runs on GPU 1; run");
	frag_harness_destroy(h);
	frag_harness_destroy(make(FRAG_ARGS(ON_GPU, {"device_map", "{a: cpu}"})));
	cr_expect(is_logged("session cpu"));
	h = make(NULL);
	tick_fails(h, "image", rows(GPU, 1, 1.0f),
		   "needs it in host memory: run the model there (backend");
	frag_harness_destroy(h);
	refused(FRAG_ARGS({"device_map", "{a: 7}"}), "");
	/* what TensorRT makes for one kind of GPU is no use to another */
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	for (int i = 0; i < 2; i++) {
		snprintf(device, sizeof(device), "{a: %d}", i);
		frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"device_map", device},
						    {"engine_cache", cache})));
		snprintf(made, sizeof(made),
			 "rmdir '%s/Fake_%d-1.31.1' && { [ %d = 0 ] || rmdir '%s'; }", cache, i, i,
			 cache);
		cr_expect_eq(system(made), 0);
	}
}

/* The stream goes on meanwhile, and what the old one has emitted stays. */
GPU_TEST(ops_onnxruntime, a_model_on_a_gpu_is_replaced_while_it_runs)
{
	write_model(model_path, small);
	write_model(other_path, small);
	for (int graphs = 0; graphs < 2; graphs++) {
		struct frag_harness *h =
			make(FRAG_ARGS(ON_GPU, {"enable_cuda_graphs", graphs ? "true" : "false"}));
		struct inference *in = frag_harness_state(h);
		struct frag_message *first = run_once(h, rows(GPU, 1, 7.0f)), *m;

		in->model = 2;
		for (int i = 0; i < 2000 && strcmp(in->networks.items[0].path, other_path) != 0;
		     i++) {
			m = run_once(h, rows(GPU, 1, (float)i));
			cr_assert_float_eq(element(m, "scores", 0), (float)i, 0, "tick %d", i);
			frag_message_unref(m);
			usleep(1000);
		}
		cr_expect_str_eq(in->networks.items[0].path, other_path);
		m = run_once(h, rows(GPU, 1, 5.0f));
		cr_expect_float_eq(element(m, "scores", 0), 5.0f, 0);
		cr_expect_float_eq(element(first, "scores", 0), 7.0f, 0);
		frag_message_unref(first);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

/* A model keeps its part of what the host may have of GPUs, or all that is left. */
GPU_TEST(ops_onnxruntime, models_share_the_limit_of_the_host)
{
	struct frag_harness *first, *second;

	write_model(model_path, small);
	fragi_gpu_limit_set(3000);
	frag_harness_destroy(make(NULL));
	cr_expect_eq(frag_gpu_memory_left(), 3000, "on the CPU it takes none");
	refused(FRAG_ARGS(ON_GPU, {"gpu_memory", "3001"}),
		"3001 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 3000 bytes, and 0 are");
	first = make(FRAG_ARGS(ON_GPU, {"gpu_memory", "1000"}));
	cr_expect(is_logged("gpu_mem_limit=1000 "));
	cr_expect_eq(frag_gpu_memory_left(), 2000);
	second = make(FRAG_ARGS(ON_GPU));
	cr_expect(is_logged("gpu_mem_limit=2000 "));
	cr_expect_eq(frag_gpu_memory_left(), 0);
	refused(FRAG_ARGS(ON_GPU), "and 3000 are in use or kept for models; raise it");
	frag_harness_destroy(second);
	frag_harness_destroy(first);
	cr_expect_eq(frag_gpu_memory_left(), 3000);
	write_model(model_path, "no model");
	refused(FRAG_ARGS(ON_GPU), "");
	cr_expect_eq(frag_gpu_memory_left(), 3000, "a model that was refused keeps nothing");
}

GPU_TEST(ops_onnxruntime, tensorrt_gets_its_options)
{
	char cache[PATH_MAX], made[PATH_MAX + 64];
	struct stat file;

	write_model(model_path, small);
	snprintf(cache, sizeof(cache), "%s/cache", folder);
	frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"enable_fp16", "true"},
					    {"dla_core", "1"}, {"engine_cache", cache})));
	cr_expect(
		is_logged("session tensorrt device_id=0 trt_fp16_enable=1 trt_cuda_graph_enable=0 "
			  "trt_dla_enable=1 trt_dla_core=1 trt_engine_cache_enable=1 "));
	cr_expect(is_logged(", cuda device_id=0"), "what TensorRT leaves is for CUDA");
	cr_assert_eq(stat(cache, &file), 0);
	cr_expect_eq(file.st_mode & 0777, 0700);
	cr_assert_eq(chmod(cache, 0770), 0);
	refused(FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache}),
		"other users may write to the folder /tmp/frag-onnxruntime-");
	refused(FRAG_ARGS({"backend", "trt"}, {"dla_core", "0"}, {"dla_gpu_fallback", "false"}),
		"lets the GPU do what DLA cannot");
	cr_assert_eq(chmod(cache, 0700), 0);
	snprintf(made, sizeof(made), "%s/Fake_0-1.31.1", cache);
	cr_assert_eq(chmod(made, 0777), 0);
	refused(FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache}),
		"Fake_0-1.31.1, or own it, and an");
	snprintf(made, sizeof(made), "rm -r '%s'", cache);
	cr_expect_eq(system(made), 0);
}

/* Who may rename the folder of the cache may put another one in its place. */
GPU_TEST(ops_onnxruntime, the_folders_above_the_engines_are_looked_at)
{
	static const struct {
		mode_t mode;
		const char *words; /* NULL: it is taken */
	} cases[] = {
		{0777, "write to the folder /tmp/frag-onnxruntime-"}, {01777, NULL}, {0755, NULL}};
	char above[PATH_MAX], cache[PATH_MAX + 16], link[PATH_MAX], text[2 * PATH_MAX + 64];

	write_model(model_path, small);
	snprintf(above, sizeof(above), "%s/above", folder);
	snprintf(cache, sizeof(cache), "%s/cache", above);
	snprintf(link, sizeof(link), "%s/link", folder);
	cr_assert(mkdir(above, 0700) == 0 && symlink(cache, link) == 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct frag_arg *args =
			FRAG_ARGS({"backend", "trt"}, {"engine_cache", cache});

		cr_assert_eq(chmod(above, cases[i].mode), 0);
		if (cases[i].words != NULL)
			refused(args, cases[i].words);
		else
			frag_harness_destroy(make(args));
	}
	frag_harness_destroy(make(FRAG_ARGS({"backend", "trt"}, {"engine_cache", link})));
	snprintf(text, sizeof(text), "trt_engine_cache_path=%s/Fake_0-1.31.1", link);
	cr_expect(!is_logged(text), "who owns the link cannot change it afterwards");
	snprintf(text, sizeof(text), "rm -r '%s' '%s'", above, link);
	cr_expect_eq(system(text), 0);
}

GPU_TEST(ops_onnxruntime, what_is_missing_is_named)
{
	struct frag_harness *h;
	char text[256];

	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_WITHOUT", "cuda", 1);
	refused(FRAG_ARGS(ON_GPU), "provider cuda does not load: Failed to load library");
	refused(FRAG_ARGS(ON_GPU), "(LD_LIBRARY_PATH), or use provider: cpu");
	unsetenv("FRAG_TEST_ENGINE_WITHOUT");
	fake.fail("cuStreamSynchronize", 1, 719);
	refused(FRAG_ARGS(ON_GPU), "cuStreamSynchronize: CUDA_ERROR_FAKE (719)");
	snprintf(text, sizeof(text), "%smemory\n", small);
	write_model(model_path, text);
	refused(FRAG_ARGS(ON_GPU), "bytes of 99; give it smaller batches or frames");
	snprintf(text, sizeof(text), "%sfails\n", any);
	write_model(model_path, text);
	h = make(FRAG_ARGS(ON_GPU));
	tick_fails(h, "image", rows(GPU, 1, 1.0f), "the model failed: Non-zero status code");
	frag_harness_destroy(h);
}

GPU_TEST(ops_onnxruntime, a_provider_of_another_version_is_refused)
{
	write_model(model_path, small);
	setenv("FRAG_TEST_ENGINE_VERSION", "1.32.0", 1);
	refused(FRAG_ARGS(ON_GPU), "is 1.32.0, and its provider /");
	refused(FRAG_ARGS(ON_GPU), "_cuda.so is 1.31.1; take both from one wheel onnxruntime-gpu");
}
