// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "testing.h"

/* Writes what an output emits into a file, one line a message, for fragctl test. */
struct test_sink {
	const char *path;
	FILE *out;
};

enum { IN };
static const struct frag_port sink_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .headline = "what to write"},
};
static const struct frag_param sink_params[] = {
	FRAG_PARAM_STRING(struct test_sink, path, NULL, .flags = FRAG_PARAM_REQUIRED,
			  .headline = "The file"),
};

static int sink_start(void *state, struct frag_op *op)
{
	struct test_sink *s = state;

	s->out = fopen(s->path, "we");
	return s->out != NULL ? 0
			      : frag_op_fail(op, -errno, "cannot write to %s: %s", s->path,
					     strerror(errno));
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

	if (type == NULL)
		fputs("message", out);
	else if (frag_type_equal(type, &frag_type_i64))
		fprintf(out, "i64 %" PRId64, *(const int64_t *)value);
	else if (frag_type_equal(type, &frag_type_f64))
		fprintf(out, "f64 %.17g", *(const double *)value);
	else if (frag_type_equal(type, &frag_type_bool))
		fprintf(out, "bool %s", *(const bool *)value ? "true" : "false");
	else if (frag_type_equal(type, &frag_type_string))
		fputs("string ", out), write_text(value, out);
	else
		fprintf(out, "%s of %zu bytes", type->name, size);
}

/* Its name, shape and bytes; of one with gaps, or on a device, its shape alone. */
static void write_tensor(const struct frag_message *message, uint32_t i, FILE *out)
{
	const char *name = "";
	const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	fprintf(out, " tensor \"%s\" %u:%u[", name, dl->dtype.code, dl->dtype.bits);
	for (int32_t k = 0; k < dl->ndim; k++)
		fprintf(out, "%s%" PRId64, k == 0 ? "" : "x", dl->shape[k]);
	fputc(']', out);
	if (frag_tensor_is_compact(tensor))
		fprintf(out, " %016" PRIx64,
			hash(UINT64_C(0xcbf29ce484222325), frag_tensor_data(tensor),
			     frag_tensor_size_bytes(tensor)));
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
	for (uint32_t i = 0; i < frag_message_tensor_count(message); i++)
		write_tensor(message, i, s->out);
	fputc('\n', s->out);
	return ferror(s->out) ? frag_op_fail(frag_tick_op(tick), -EIO,
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
