/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_SAMPLES_H
#define TESTS_OPERATORS_SAMPLES_H

#include <criterion/criterion.h>
#include <ctype.h>
#include <frag/harness.h>
#include <frag/value.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Messages as texts, to give them to operators and to record what these emit. A message is a list
 * of words:
 *
 *   NAME=f32[2x4]              a tensor of numbers that look random; its name may be empty
 *   NAME=f32[2x4]{0.5,1,-2}    these first, then zeros
 *   NAME=f32[2x4]~             with gaps between its rows
 *   NAME=u8[8x9x3]@2,3,4,5,200 zeros, but 200 from row 2 and column 3 to before row 4 and column 5
 *   i64:3  f64:0.5  bool:1  string:text (+ is the end of a line)
 *   meta:KEY=TEXT  f64meta:KEY=NUMBER
 *   at:MS                      it was acquired then
 *   empty                      nothing of this
 */
static const struct {
	const char *name;
	struct frag_dtype dtype;
} sample_types[] = {
	{"u8", {FRAG_DTYPE_UINT, 8, 1}},      {"u16", {FRAG_DTYPE_UINT, 16, 1}},
	{"u32", {FRAG_DTYPE_UINT, 32, 1}},    {"u64", {FRAG_DTYPE_UINT, 64, 1}},
	{"i8", {FRAG_DTYPE_INT, 8, 1}},       {"i16", {FRAG_DTYPE_INT, 16, 1}},
	{"i32", {FRAG_DTYPE_INT, 32, 1}},     {"i64", {FRAG_DTYPE_INT, 64, 1}},
	{"f32", {FRAG_DTYPE_FLOAT, 32, 1}},   {"f64", {FRAG_DTYPE_FLOAT, 64, 1}},
	{"f16", {FRAG_DTYPE_FLOAT, 16, 1}},   {"bool", {FRAG_DTYPE_BOOL, 8, 1}},
	{"c64", {FRAG_DTYPE_COMPLEX, 64, 1}}, {"c128", {FRAG_DTYPE_COMPLEX, 128, 1}},
	{"f32x2", {FRAG_DTYPE_FLOAT, 32, 2}},
};

static inline uint32_t sample_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static inline void sample_set(void *data, int64_t i, struct frag_dtype dtype, double x)
{
	if (dtype.code == FRAG_DTYPE_FLOAT && dtype.bits == 32)
		((float *)data)[i] = (float)x;
	else if (dtype.code == FRAG_DTYPE_FLOAT && dtype.bits == 64)
		((double *)data)[i] = x;
	else if (dtype.bits == 8)
		((uint8_t *)data)[i] = (uint8_t)(int64_t)x;
	else if (dtype.bits == 16)
		((uint16_t *)data)[i] = (uint16_t)(int64_t)x;
	else if (dtype.bits == 32)
		((uint32_t *)data)[i] = (uint32_t)(int64_t)x;
	else if (dtype.bits == 64)
		((uint64_t *)data)[i] = (uint64_t)(int64_t)x;
}

/* What fits the type: floats are multiples of 1/64 from 0 to 1, so that sums of them are exact. */
static inline double sample_draw(struct frag_dtype dtype, uint32_t *seed)
{
	uint32_t x = sample_random(seed);

	if (dtype.code == FRAG_DTYPE_FLOAT)
		return (double)(x % 65) / 64;
	if (dtype.code == FRAG_DTYPE_UINT)
		return x % (dtype.bits == 8 ? 256 : 65536);
	return (double)(x % 7) - (dtype.code == FRAG_DTYPE_INT ? 2 : 0);
}

static inline void sample_free(void *context)
{
	free(context);
}

/* Fills rectangles of a picture. */
static inline void sample_fill(const struct frag_dltensor *dl, const int64_t *shape,
			       const char *text)
{
	for (text = strchr(text, '@'); text != NULL; text = strchr(text + 1, '@')) {
		int64_t top, left, bottom, right, channels = dl->ndim > 2 ? shape[2] : 1, x;

		cr_assert_eq(sscanf(text,
				    "@%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64 ",%" SCNd64,
				    &top, &left, &bottom, &right, &x),
			     5);
		for (int64_t i = 0; i < shape[0] * shape[1] * channels; i++) {
			int64_t row = i / channels / shape[1], column = i / channels % shape[1];

			if (row >= top && row < bottom && column >= left && column < right)
				sample_set(dl->data, i, dl->dtype, (double)x);
		}
	}
}

/* Where the tensors of messages lie. */
static struct frag_device sample_device = {FRAG_DEVICE_CPU, 0};

static inline struct frag_tensor *on_sample_device(struct frag_tensor *host)
{
	struct frag_tensor *there;

	if (sample_device.type == FRAG_DEVICE_CPU)
		return host;
	cr_assert_eq(frag_tensor_copy(host, NULL, sample_device, &there, NULL), 0);
	frag_tensor_unref(host);
	return there;
}

/* Of the text behind the name. */
static inline struct frag_tensor *sample_tensor(const char *text, uint32_t *seed)
{
	struct frag_dltensor dl = {.device = {FRAG_DEVICE_CPU, 0}};
	int64_t shape[8], strides[8], count = 1, room;
	size_t word = strcspn(text, "["), type = 0;
	struct frag_tensor *tensor = NULL;
	bool has_gaps = strchr(text, '~') != NULL;
	char *at;
	void *data;

	while (type < FRAG_COUNT_OF(sample_types) &&
	       (strlen(sample_types[type].name) != word ||
		strncmp(sample_types[type].name, text, word) != 0))
		type++;
	cr_assert(type < FRAG_COUNT_OF(sample_types) && text[word] == '[', "%s", text);
	dl.dtype = sample_types[type].dtype;
	for (at = (char *)(uintptr_t)text + word; *at != ']'; dl.ndim++)
		shape[dl.ndim] = strtoll(at + 1, &at, 10);
	for (int32_t i = dl.ndim; i-- > 0;) {
		strides[i] = count;
		count *= shape[i] + (has_gaps && i == dl.ndim - 1);
	}
	room = count * dl.dtype.bits / 8 * dl.dtype.lanes;
	data = calloc(1, room > 0 ? (size_t)room : 1);
	at += at[1] == '{' ? 1 : 0;
	for (int64_t i = 0; i < count; i++) {
		if (*at == ']' && strchr(at, '@') == NULL)
			sample_set(data, i, dl.dtype, sample_draw(dl.dtype, seed));
		else if (*at != '}' && *at != ']')
			sample_set(data, i, dl.dtype, strtod(at + 1, &at));
	}
	dl.data = data;
	sample_fill(&dl, shape, at);
	dl.shape = shape;
	dl.strides = has_gaps ? strides : NULL;
	cr_assert_eq(frag_tensor_wrap(&dl, sample_free, data, &tensor), 0, "%s", text);
	return on_sample_device(tensor);
}

/* n stamps it, so that no two messages have the same. */
static inline struct frag_message *sample_message(const char *text, int n)
{
	struct frag_message *m = frag_message_create();
	struct frag_metadata *metadata = NULL;
	int64_t acquired_ns = 1000 + n * 17;
	uint32_t seed = (uint32_t)n * 77 + 5;
	char *copy = strdup(text), *rest = NULL;

	cr_assert_not_null(m);
	cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
	for (char *w = strtok_r(copy, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
		char *equals = strchr(w, '=');
		int64_t i64 = strtoll(w + strcspn(w, ":") + (strchr(w, ':') != NULL), NULL, 10);

		if (strncmp(w, "meta:", 5) == 0) {
			*equals = '\0';
			frag_metadata_set_string(metadata, w + 5, equals + 1);
		} else if (strncmp(w, "f64meta:", 8) == 0) {
			*equals = '\0';
			frag_metadata_set_f64(metadata, w + 8, strtod(equals + 1, NULL));
		} else if (strncmp(w, "at:", 3) == 0) {
			acquired_ns = i64 * 1000000;
		} else if (strncmp(w, "i64:", 4) == 0) {
			frag_message_set_value(m, &frag_type_i64, &i64, sizeof(i64), NULL);
		} else if (strncmp(w, "f64:", 4) == 0) {
			double f64 = strtod(w + 4, NULL);

			frag_message_set_value(m, &frag_type_f64, &f64, sizeof(f64), NULL);
		} else if (strncmp(w, "bool:", 5) == 0) {
			bool is = i64 != 0;

			frag_message_set_value(m, &frag_type_bool, &is, sizeof(is), NULL);
		} else if (strncmp(w, "string:", 7) == 0) {
			for (char *c = w; (c = strchr(c, '+')) != NULL;)
				*c = '\n';
			frag_message_set_value(m, &frag_type_string, w + 7, strlen(w + 7), NULL);
		} else if (equals != NULL) {
			*equals = '\0';
			cr_assert_eq(
				frag_message_add_tensor(m, w, sample_tensor(equals + 1, &seed)), 0,
				"%s", text);
		}
	}
	frag_message_set_acquisition_ns(m, acquired_ns);
	frag_message_set_sequence(m, (uint64_t)n * 3 + 100);
	frag_message_set_metadata(m, metadata);
	frag_metadata_destroy(metadata);
	free(copy);
	return m;
}

/*
 * Floats with three digits, because compilers may compute the last ones differently; of a number in
 * the middle between two the same one.
 */
static inline void sample_number(FILE *out, double x, bool is_float)
{
	double moved = x + (x < 0 ? -1e-5 : 1e-5);

	if (x != x)
		fputs(" nan", out);
	else if (is_float)
		fprintf(out, x < 1e5 && x > -1e5 ? " %.3f" : " %.4g",
			x > -0.0004 && x < 0.0004 ? 0.0 : moved);
	else
		fprintf(out, " %.0f", x);
}

static inline double sample_get(const void *data, int64_t i, struct frag_dtype dtype)
{
	bool is_signed = dtype.code == FRAG_DTYPE_INT;

	if (dtype.code == FRAG_DTYPE_FLOAT && dtype.bits == 32)
		return (double)((const float *)data)[i];
	if (dtype.code == FRAG_DTYPE_FLOAT && dtype.bits == 64)
		return ((const double *)data)[i];
	if (dtype.bits == 8)
		return is_signed ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
	if (dtype.bits == 16)
		return is_signed ? ((const int16_t *)data)[i] : ((const uint16_t *)data)[i];
	if (dtype.bits == 32)
		return is_signed ? (double)((const int32_t *)data)[i]
				 : (double)((const uint32_t *)data)[i];
	return dtype.bits == 64 ? (double)((const int64_t *)data)[i] : 0.0;
}

/* Its type, shape and place, the first numbers, and a sum in which each place has its weight. */
static inline void print_sample_tensor(FILE *out, const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	bool is_float = dl->dtype.code == FRAG_DTYPE_FLOAT;
	int64_t count = 1, index[8] = {0};
	double sum = 0;

	fprintf(out, "%c%u%.*s[", "iuf?bc?"[dl->dtype.code % 7], dl -> dtype.bits,
		dl->dtype.lanes > 1 ? 2 : 0, "x2");
	for (int32_t i = 0; i < dl->ndim; i++) {
		fprintf(out, "%s%" PRId64, i > 0 ? "x" : "", dl->shape[i]);
		count *= dl->shape[i];
	}
	fprintf(out, "]%s", frag_tensor_is_compact(tensor) ? "" : "~");
	if (dl->device.type != FRAG_DEVICE_CPU) {
		const struct frag_device cpu = {FRAG_DEVICE_CPU, 0};
		struct frag_tensor *host;

		fprintf(out, " on %d:%d", dl->device.type, dl->device.id);
		if (frag_tensor_copy(tensor, NULL, cpu, &host, NULL) < 0)
			return;
		fputs(" of ", out);
		print_sample_tensor(out, host);
		frag_tensor_unref(host);
		return;
	}
	for (int64_t i = 0; i < count; i++) {
		int64_t at = 0;
		double x;

		for (int32_t k = 0; k < dl->ndim; k++)
			at += index[k] * dl->strides[k];
		x = sample_get(frag_tensor_data(tensor), at, dl->dtype);
		if (i < 5)
			sample_number(out, x, is_float);
		sum += x * (double)(i % 13 + 1);
		for (int32_t k = dl->ndim; k-- > 0 && ++index[k] == dl->shape[k];)
			index[k] = 0;
	}
	fputs(" sum", out);
	sample_number(out, sum, is_float);
}

static inline void print_sample_metadata(FILE *out, const struct frag_metadata *metadata)
{
	for (uint32_t i = 0; metadata != NULL && i < frag_metadata_count(metadata); i++) {
		const char *key = frag_metadata_key(metadata, i);
		const struct frag_type *type;
		const void *value;
		size_t size;

		fprintf(out, " | %s=", key);
		if (frag_metadata_get(metadata, key, &type, &value, &size) == 0)
			(void)frag_value_print(type, value, size, out);
	}
}

static inline void print_sample_message(FILE *out, const struct frag_message *m)
{
	const void *value = NULL;
	size_t size = 0;
	const struct frag_type *type = frag_message_value(m, &value, &size);
	uint64_t sequence = 0;

	if (type != NULL) {
		fprintf(out, " %s ", type->name);
		(void)frag_value_print(type, value, size, out);
	}
	for (uint32_t i = 0; i < frag_message_tensor_count(m); i++) {
		const char *name = NULL;
		const struct frag_tensor *tensor = frag_message_tensor_at(m, i, &name);

		fprintf(out, "%s \"%s\" ", i > 0 ? "," : "", name);
		print_sample_tensor(out, tensor);
	}
	print_sample_metadata(out, frag_message_metadata(m));
	(void)frag_message_sequence(m, &sequence);
	fprintf(out, " | at %" PRId64 " #%" PRIu64 " flags %u\n", frag_message_acquisition_ns(m),
		sequence, frag_message_flags(m));
}

#endif
