// SPDX-License-Identifier: Apache-2.0
/*
 * run_model MODEL OUTPUTS IN OUT BACKEND: runs a model once by the operator inference. IN has its
 * inputs, OUT receives its outputs: for each tensor, in native byte order, code, bits and
 * dimensions as i32, the sides as i64, and the elements. Exit codes: 0; 1: the run failed; 2: the
 * model was refused before it ran; the sentence is on stderr.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/harness.h>

#include "inference/inference.h"

#define TENSORS_MAX 64

static struct frag_tensor *read_tensor(FILE *file)
{
	int64_t shape[FRAG_TENSOR_NDIM_MAX] = {0};
	struct frag_tensor *tensor = NULL;
	int32_t head[3];
	size_t size;

	if (fread(head, sizeof(head), 1, file) != 1)
		return NULL;
	if (head[2] < 0 || head[2] > FRAG_TENSOR_NDIM_MAX ||
	    fread(shape, sizeof(*shape), (size_t)head[2], file) != (size_t)head[2] ||
	    frag_tensor_create(NULL, (struct frag_dtype){(uint8_t)head[0], (uint8_t)head[1], 1},
			       head[2], shape, &tensor) < 0)
		exit(3);
	size = frag_tensor_size_bytes(tensor);
	if (size > 0 && fread(frag_tensor_writable(tensor), size, 1, file) != 1)
		exit(3);
	return tensor;
}

static void write_tensor(const struct frag_tensor *tensor, FILE *file)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	const int32_t head[] = {dl->dtype.code, dl->dtype.bits, dl->ndim};

	fwrite(head, sizeof(head), 1, file);
	fwrite(dl->shape, sizeof(*dl->shape), (size_t)dl->ndim, file);
	fwrite(frag_tensor_data(tensor), 1, frag_tensor_size_bytes(tensor), file);
}

/* "{m: [i0, i1]}" */
static const char *map_of(char prefix, int count, char text[1024])
{
	size_t n = (size_t)snprintf(text, 1024, "{m: [");

	for (int i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, 1024 - n, "%s%c%d", i > 0 ? ", " : "", prefix, i);
	snprintf(text + n, 1024 - n, "]}");
	return text;
}

int main(int argc, char **argv)
{
	struct frag_message *given = frag_message_create(), *taken = NULL;
	char path[4096], inputs[1024], outputs[1024], name[8];
	struct frag_err err = FRAG_ERR_INIT;
	int count = 0, made = argc == 6 ? atoi(argv[2]) : 0;
	struct frag_tensor *tensor;
	struct frag_harness *h;
	FILE *file;

	if (made < 1 || made > TENSORS_MAX)
		return 3;
	file = fopen(argv[3], "rb");
	while (file != NULL && count < TENSORS_MAX && (tensor = read_tensor(file)) != NULL) {
		snprintf(name, sizeof(name), "i%d", count++);
		if (frag_message_add_tensor(given, name, tensor) < 0)
			return 3;
	}
	snprintf(path, sizeof(path), "{m: %s}", argv[1]);
	h = frag_harness_create(&inference_inference_type,
				FRAG_ARGS({"backend", argv[5]}, {"model_path_map", path},
					  {"pre_processor_map", map_of('i', count, inputs)},
					  {"inference_map", map_of('o', made, outputs)}),
				&err);
	if (h == NULL) {
		fprintf(stderr, "%s\n", err.text);
		return 2;
	}
	if (frag_harness_give(h, "receivers", given) < 0)
		return 3;
	if (frag_harness_tick(h) < 0 || frag_harness_take(h, "transmitter", &taken) < 0) {
		fprintf(stderr, "%s\n", frag_harness_error(h));
		return 1;
	}
	file = fopen(argv[4], "wb");
	for (int i = 0; file != NULL && i < made; i++) {
		snprintf(name, sizeof(name), "o%d", i);
		write_tensor(frag_message_tensor(taken, name), file);
	}
	frag_message_unref(taken);
	frag_harness_destroy(h);
	return file != NULL && fclose(file) == 0 ? 0 : 3;
}
