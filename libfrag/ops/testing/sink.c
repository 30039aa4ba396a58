// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <frag/draft.h>
#include <frag/npy.h>
#include <frag/value.h>

#include "testing.h"

/* Writes what an output emits into a file, one line a message, for fragctl test. */
struct test_sink {
	const char *path;
	uint64_t max_tensor_bytes;
	FILE *out;
	uint64_t messages, tensor_bytes;
};

enum { IN };
static const struct frag_port sink_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .headline = "what to write"},
};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_STRING(struct test_sink, path, NULL, .flags = FRAG_PARAM_REQUIRED,
			  .headline = "The file"),
	FRAG_PARAM_SIZE(
		struct test_sink, max_tensor_bytes, UINT64_C(1) << 28,
		.headline = "Bytes of tensors after which none gets a file of its own any more"),
};

static int sink_start(void *state, struct frag_op *op)
{
	struct test_sink *s = state;
	int r = frag_output_open(s->path, &s->out);

	return r == 0 ? 0 : frag_op_fail(op, r, "cannot write to %s: %s", s->path, strerror(-r));
}

/* FNV-1a: what cannot be written as a line is compared by its content's number. */
static uint64_t hash(uint64_t sum, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* A line break within a text would look like another message. */
static void write_text(const char *text, FILE *out)
{
	for (; *text != '\0'; text++)
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
}

static void write_value(const struct frag_message *message, FILE *out)
{
	const void *value = NULL;
	size_t size = 0;
	const struct frag_type *type = frag_message_value(message, &value, &size);

	if (type == NULL && frag_message_tensor_count(message) == 0)
		fputs("message", out);
	else if (type == NULL)
		return;
	else if (frag_type_equal(type, &frag_type_i64))
		fprintf(out, "i64 %" PRId64, *(const int64_t *)value);
	else if (frag_type_equal(type, &frag_type_f64))
		fprintf(out, "f64 %.17g", *(const double *)value);
	else if (frag_type_equal(type, &frag_type_bool))
		fprintf(out, "bool %s", *(const bool *)value ? "true" : "false");
	else if (frag_type_equal(type, &frag_type_string))
		fputs("string ", out), write_text(value, out);
	else if (type->fields != NULL || strchr(type->name, '[') != NULL || type->size <= 16)
		fprintf(out, "%s ", type->name), (void)frag_value_print(type, value, size, out);
	else
		fprintf(out, "%s of %zu bytes", type->name, size);
}

/* A quotation mark would end the name. */
static void write_name(const char *name, FILE *out)
{
	fputc('"', out);
	for (; *name != '\0'; name++)
		fputc(*name == '"' || (unsigned char)*name < ' ' ? '_' : *name, out);
	fputc('"', out);
}

/* Its file beside that of the lines, as long as there is room for it. */
static int write_file(struct test_sink *s, const struct frag_tensor *tensor, uint32_t i)
{
	const char *slash = strrchr(s->path, '/');
	char path[PATH_MAX];
	uint64_t bytes = 0;
	int r;

	if (s->tensor_bytes >= s->max_tensor_bytes ||
	    snprintf(path, sizeof(path), "%s.%" PRIu64 ".%u.npy", s->path, s->messages, i) >=
		    (int)sizeof(path))
		return 0;
	r = frag_npy_write(path, tensor, &bytes);
	if (r == -EOPNOTSUPP)
		return 0;
	s->tensor_bytes += bytes;
	if (r == 0)
		fprintf(s->out, " @%s", slash != NULL ? path + (slash - s->path) + 1 : path);
	return r;
}

/*
 * Its name, shape and the sum of its bytes; of one with gaps, or on a device, its shape alone. And
 * its file.
 */
static int write_tensor(struct test_sink *s, const struct frag_message *message, uint32_t i)
{
	const char *name = "";
	const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	fputs(i == 0 && frag_message_value(message, NULL, NULL) == NULL ? "tensor " : " tensor ",
	      s->out);
	write_name(name, s->out);
	fprintf(s->out, " %u:%u[", dl->dtype.code, dl->dtype.bits);
	for (int32_t k = 0; k < dl->ndim; k++)
		fprintf(s->out, "%s%" PRId64, k == 0 ? "" : "x", dl->shape[k]);
	fputc(']', s->out);
	if (frag_tensor_is_compact(tensor) && dl->device.type != FRAG_DEVICE_CUDA)
		fprintf(s->out, " %016" PRIx64,
			hash(UINT64_C(0xcbf29ce484222325), frag_tensor_data(tensor),
			     frag_tensor_size_bytes(tensor)));
	return write_file(s, tensor, i);
}

static int sink_compute(void *state, struct frag_tick *tick)
{
	struct test_sink *s = state;
	const struct frag_message *message;
	int64_t at_ns = frag_tick_time_ns(tick);
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	if (at_ns % 1000000 == 0)
		fprintf(s->out, "%" PRId64 "ms ", at_ns / 1000000);
	else
		fprintf(s->out, "%" PRId64 "ns ", at_ns);
	write_value(message, s->out);
	s->messages++;
	r = 0;
	for (uint32_t i = 0; r == 0 && i < frag_message_tensor_count(message); i++)
		r = write_tensor(s, message, i);
	fputc('\n', s->out);
	return ferror(s->out) || r < 0 ? frag_op_fail(frag_tick_op(tick), -EIO,
						      "cannot write to %s; free space", s->path)
				       : 0;
}

static int sink_stop(void *state, struct frag_op *op)
{
	struct test_sink *s = state;
	FILE *out = s->out;

	s->out = NULL;
	return fclose(out) == 0 ? 0 : frag_op_fail(op, -errno, "cannot write to %s", s->path);
}

const struct frag_op_type testing_sink_type = {
	FRAG_OP_TYPE_INIT,
	.name = "test_sink",
	.headline = "Writes messages as lines into a file, for fragctl test",
	.state_size = sizeof(struct test_sink),
	FRAG_PORTS(sink_ports),
	FRAG_PARAMS(sink_params),
	.start = sink_start,
	.compute = sink_compute,
	.stop = sink_stop,
};
