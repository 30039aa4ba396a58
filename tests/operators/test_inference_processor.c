// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <unistd.h>

#include "postprocessors.h"
#include "inference/inference.h"

static const struct frag_op_type *const processor = &inference_inference_processor_type;

Test(ops_inference_processor, what_each_operation_makes)
{
	static const float heat[] = {
		9, 0, 1, 9, 0, 5, 9, 7, 0, /* 3 columns of 3 channels */
		9, 0, 0, 9, 0, 0, 9, 0, 6,
	};
	struct frag_harness *h =
		make(processor,
		     FRAG_ARGS({"process_operations",
				"{heat: [max_per_channel_scaled, print, argmax], odds: softmax}"},
			       {"processed_map", "{heat: [places, largest], odds: [chance]}"}));
	struct frag_message *m = message("heat", FLOATS(4, SIDES(1, 2, 3, 3), heat));
	const float *places, *chance;

	cr_assert_eq(frag_message_add_tensor(m, "odds",
					     FLOATS(1, SIDES(2), ((const float[]){1000, 1000}))),
		     0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = tick(h, "transmitter");
	places = data(m, "places", 2);
	cr_expect_float_eq(places[0], 2.0f / 3.0f, 1e-6f);
	cr_expect_float_eq(places[1], 0.0f, 1e-6f);
	cr_expect_float_eq(places[2], 2.0f / 3.0f, 1e-6f);
	cr_expect_float_eq(places[3], 0.5f, 1e-6f);
	cr_expect_eq(((const int32_t *)data(m, "largest", 1))[0], 0);
	chance = data(m, "chance", 2);
	cr_expect_float_eq(chance[0], 0.5f, 1e-6f);
	finish(h, m);
}

/* A result that is left out does not give its name to the next one. */
Test(ops_inference_processor, results_may_be_left_out)
{
	static const struct {
		const char *names;
		bool first, second;
	} rows[] = {{"[]", true, true}, {"[first]", true, false}, {"[second]", false, true}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h =
			make(processor, FRAG_ARGS({"process_operations", "{a: [softmax, argmax]}"},
						  {"processed_map", "{a: [first, second]}"},
						  {"out_tensor_names", rows[i].names}));
		struct frag_message *m;

		give_tensor(h, "receivers", "a", FLOATS(2, SIDES(1, 2), ((const float[]){1, 3})));
		m = tick(h, "transmitter");
		cr_expect_eq(frag_message_tensor_count(m), 0u + rows[i].first + rows[i].second);
		if (rows[i].first)
			cr_expect_eq(frag_tensor_dl(frag_message_tensor(m, "first"))->ndim, 2);
		if (rows[i].second)
			cr_expect_eq(((const int32_t *)data(m, "second", 1))[0], 1);
		finish(h, m);
	}
}

Test(ops_inference_processor, numbers_that_are_none_have_their_sentence)
{
	static const float scores[] = {0.1f, NAN};
	struct frag_harness *h =
		make(processor, FRAG_ARGS({"process_operations", "{a: [print, argmax]}"},
					  {"processed_map", "{a: [b]}"}));

	give_tensor(h, "receivers", "a", FLOATS(1, SIDES(2), scores));
	tick_fails(h, "\"a\" of the network holds numbers that are none (NaN); check");
	frag_harness_destroy(h);
}

/* The line is printed on stderr. */
Test(ops_inference_processor, which_of_two_classes_is_printed)
{
	static const float scores[][2] = {{0, -3}, {-3, 0}, {0, 0}};
	static const char *const lines[] = {"inside. Confidence: 0.5\n",
					    "out, side. Confidence: 0.5\n",
					    "out, side. Confidence: 0.5\n"};
	char path[] = "/tmp/frag-classes-XXXXXX", text[4096];
	int file = mkstemp(path), before = dup(STDERR_FILENO);
	struct frag_harness *h = make(
		processor,
		FRAG_ARGS(
			{"process_operations",
			 "{a: [\"print_custom_binary_classification,   inside,   out, side\"]}"}));

	cr_assert_geq(file, 0);
	for (size_t i = 0; i < 3; i++) {
		ssize_t size;

		cr_assert_eq(ftruncate(file, 0), 0);
		cr_assert_eq(lseek(file, 0, SEEK_SET), 0);
		dup2(file, STDERR_FILENO);
		give_tensor(h, "receivers", "a", FLOATS(1, SIDES(2), scores[i]));
		cr_assert_eq(frag_harness_tick(h), 0);
		dup2(before, STDERR_FILENO);
		size = pread(file, text, sizeof(text) - 1, 0);
		cr_assert_geq(size, 0);
		text[size] = '\0';
		cr_expect(strstr(text, lines[i]) != NULL, "%s", text);
	}
	give_tensor(h, "receivers", "a", FLOATS(1, SIDES(3), ((const float[]){1, 2, 3})));
	tick_fails(h, "takes a tensor of 2 numbers, and \"a\" has 3");
	frag_harness_destroy(h);
	close(before);
	close(file);
	unlink(path);
}

Test(ops_inference_processor, wrong_parameters_are_refused)
{
	refused(processor, FRAG_ARGS({"process_operations", "{a: [guess]}"}),
		"there is no operation \"guess\"; use max_per_channel_scaled, softmax");
	for (size_t i = 0; i < 3; i++)
		refused(processor,
			FRAG_ARGS(
				{"process_operations",
				 ((const char *[]){
					 "{a: [\"print, in\"]}",
					 "{a: [print_custom_binary_classification]}",
					 "{a: [\"print_custom_binary_classification, in\"]}"})[i]}),
			"or \"print_custom_binary_classification, TEXT, TEXT\"");
	refused(processor, FRAG_ARGS({"process_operations", "{a: [softmax]}"}),
		"make 1 results, and processed_map names 0");
	refused(processor,
		FRAG_ARGS({"process_operations", "{a: [print]}"}, {"in_tensor_names", "[b]"}),
		"which in_tensor_names lacks");
}
