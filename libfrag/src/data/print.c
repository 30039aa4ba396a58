// SPDX-License-Identifier: Apache-2.0
#include <data/print.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <base/json.h>
#include <data/tensor.h>
#include <data/type.h>
#include <frag/collection.h>

static void print_number(double x, int digits, FILE *out)
{
	if (isfinite(x))
		fprintf(out, "%.*g", digits, x);
	else
		fputs("null", out);
}

/* Half precision, which C has no type for (IEEE 754 binary16). */
static double half(uint16_t bits)
{
	int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
	double x = exponent == 0      ? ldexp(fraction, -24)
		   : exponent == 0x1f ? (fraction != 0 ? (double)NAN : (double)INFINITY)
				      : ldexp(fraction + 0x400, exponent - 25);

	return (bits & 0x8000) != 0 ? -x : x;
}

static double brain_float(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float x;

	memcpy(&x, &wide, sizeof(x));
	return (double)x;
}

static void print_int(const void *at, uint32_t bits, FILE *out)
{
	int8_t i8;
	int16_t i16;
	int32_t i32;
	int64_t i64;

	if (bits == 8) {
		memcpy(&i8, at, sizeof(i8));
		i64 = i8;
	} else if (bits == 16) {
		memcpy(&i16, at, sizeof(i16));
		i64 = i16;
	} else if (bits == 32) {
		memcpy(&i32, at, sizeof(i32));
		i64 = i32;
	} else {
		memcpy(&i64, at, sizeof(i64));
	}
	fprintf(out, "%" PRId64, i64);
}

static void print_uint(const void *at, uint32_t bits, FILE *out)
{
	uint64_t u64 = 0;

	memcpy(&u64, at, bits / 8); /* little-endian, as all machines that frag runs on */
	fprintf(out, "%" PRIu64, u64);
}

static void print_float(const void *at, uint32_t bits, FILE *out)
{
	uint16_t f16;
	float f32;
	double f64;

	if (bits == 16) {
		memcpy(&f16, at, sizeof(f16));
		print_number(half(f16), 5, out);
	} else if (bits == 32) {
		memcpy(&f32, at, sizeof(f32));
		print_number((double)f32, 9, out);
	} else {
		memcpy(&f64, at, sizeof(f64));
		print_number(f64, 17, out);
	}
}

static void print_element(struct frag_dtype dtype, const unsigned char *at, FILE *out)
{
	uint16_t bits16;

	switch (dtype.code) {
	case FRAG_DTYPE_INT:
		print_int(at, dtype.bits, out);
		break;
	case FRAG_DTYPE_UINT:
		print_uint(at, dtype.bits, out);
		break;
	case FRAG_DTYPE_BOOL:
		fputs(*at != 0 ? "true" : "false", out);
		break;
	case FRAG_DTYPE_BFLOAT:
		memcpy(&bits16, at, sizeof(bits16));
		print_number(brain_float(bits16), 4, out);
		break;
	case FRAG_DTYPE_COMPLEX:
		fputc('[', out);
		print_float(at, dtype.bits / 2u, out);
		fputs(", ", out);
		print_float(at + dtype.bits / 16, dtype.bits / 2u, out);
		fputc(']', out);
		break;
	default:
		print_float(at, dtype.bits, out);
	}
}

/* The scalars as elements of tensors: the same bytes. */
static bool scalar_dtype(const struct frag_type *type, struct frag_dtype *out)
{
	static const struct {
		const char *prefix;
		uint8_t code;
	} kinds[] = {{"bool", FRAG_DTYPE_BOOL},
		     {"i", FRAG_DTYPE_INT},
		     {"u", FRAG_DTYPE_UINT},
		     {"f", FRAG_DTYPE_FLOAT},
		     {"complex", FRAG_DTYPE_COMPLEX}};

	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (strncmp(type->name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0) {
			*out = (struct frag_dtype){kinds[i].code, (uint8_t)(type->size * 8), 1};
			return true;
		}
	return false;
}

static void print_left_out(uint64_t count, uint64_t max, FILE *out)
{
	if (count > max)
		fprintf(out, "%s\"... %" PRIu64 " in all\"", max > 0 ? ", " : "", count);
}

static void print_info(const struct fragi_type_info *info, const void *value, size_t size,
		       uint64_t max, FILE *out);

static void print_array(const struct fragi_type_info *element, const unsigned char *value,
			size_t count, uint64_t max, FILE *out)
{
	size_t width = element->type->size;

	fputc('[', out);
	for (size_t i = 0; i < count && i < max; i++) {
		fputs(i > 0 ? ", " : "", out);
		print_info(element, value + i * width, width, max, out);
	}
	print_left_out(count, max, out);
	fputc(']', out);
}

static void print_collection(const struct fragi_type_info *info, const void *value, uint64_t max,
			     FILE *out)
{
	uint32_t count = frag_collection_count(value);
	bool is_map = info->kind == FRAGI_TYPE_MAP;
	const void *element;
	size_t size;

	fputc(is_map ? '{' : '[', out);
	for (uint32_t i = 0; i < count && i < max; i++) {
		element = frag_collection_at(value, i, &size);
		fputs(i > 0 ? ", " : "", out);
		if (is_map) {
			fragi_json_text(frag_collection_key(value, i), out);
			fputs(": ", out);
		}
		print_info(info->element, element, size, max, out);
	}
	if (is_map && count > max)
		fprintf(out, "%s\"...\": %" PRIu32, max > 0 ? ", " : "", count);
	else
		print_left_out(count, max, out);
	fputc(is_map ? '}' : ']', out);
}

static void print_struct(const struct fragi_type_info *info, const unsigned char *value,
			 uint64_t max, FILE *out)
{
	const struct fragi_type_field *field;

	fputc('{', out);
	for (uint32_t i = 0; i < info->field_count; i++) {
		field = &info->fields[i];
		fputs(i > 0 ? ", " : "", out);
		fragi_json_text(info->type->fields[i].name, out);
		fputs(": ", out);
		if (field->count == 1)
			print_info(field->of, value + field->offset, field->of->type->size, max,
				   out);
		else
			print_array(field->of, value + field->offset, field->count, max, out);
	}
	fputc('}', out);
}

static void print_info(const struct fragi_type_info *info, const void *value, size_t size,
		       uint64_t max, FILE *out)
{
	struct frag_dtype dtype;

	switch (info->kind) {
	case FRAGI_TYPE_STRING:
		fragi_json_text(value, out);
		return;
	case FRAGI_TYPE_ARRAY:
		print_array(info->element, value, size / info->element->type->size, max, out);
		return;
	case FRAGI_TYPE_LIST:
	case FRAGI_TYPE_MAP:
		print_collection(info, value, max, out);
		return;
	case FRAGI_TYPE_PLAIN:
		print_struct(info, value, max, out);
		return;
	case FRAGI_TYPE_SCALAR:
		if (scalar_dtype(info->type, &dtype)) {
			print_element(dtype, value, out);
			return;
		}
		break;
	default:
		break;
	}
	fprintf(out, "\"%zu bytes\"", size);
}

void fragi_value_print(const struct frag_type *type, const void *value, size_t size,
		       uint64_t max_elements, FILE *out)
{
	const struct fragi_type_info *info = fragi_type_resolve(type);

	if (type == &frag_type_tensor)
		fragi_tensor_print(*(struct frag_tensor *const *)value, true, max_elements, out);
	else if (info == NULL)
		fprintf(out, "\"%zu bytes\"", size);
	else
		print_info(info, value, size, max_elements, out);
}

/* "float32", "uint8"; as NumPy calls it. */
static void write_dtype(struct frag_dtype dtype, char *out, size_t size)
{
	static const char *const names[] = {"int", "uint", "float", "", "bfloat", "complex"};

	if (dtype.code == FRAG_DTYPE_BOOL)
		snprintf(out, size, "bool");
	else
		snprintf(out, size, "%s%u",
			 dtype.code < FRAG_COUNT_OF(names) ? names[dtype.code] : "", dtype.bits);
}

static bool is_in_host_memory(const struct frag_dltensor *dl)
{
	return dl->device.type == FRAG_DEVICE_CPU || dl->device.type == FRAG_DEVICE_CUDA_HOST;
}

/* The first elements in row-major order, whatever the strides. */
static void print_data(const struct frag_tensor *tensor, uint64_t max, FILE *out)
{
	const struct frag_dltensor *dl = &tensor->dl;
	const unsigned char *data = frag_tensor_data(tensor);
	int64_t index[FRAG_TENSOR_NDIM_MAX] = {0}, offset;
	size_t element = fragi_tensor_wait(tensor, NULL) == 0 ? fragi_dtype_size(dl->dtype) : 0,
	       count = element > 0 ? tensor->compact_bytes / element : 0;

	fputs(", \"data\": [", out);
	for (size_t i = 0; i < count && i < max; i++) {
		offset = 0;
		for (int32_t d = 0; d < dl->ndim; d++)
			offset += index[d] * dl->strides[d];
		fputs(i > 0 ? ", " : "", out);
		print_element(dl->dtype, data + (size_t)offset * element, out);
		for (int32_t d = dl->ndim - 1; d >= 0 && ++index[d] == dl->shape[d]; d--)
			index[d] = 0;
	}
	print_left_out(count, max, out);
	fputc(']', out);
}

void fragi_tensor_print(const struct frag_tensor *tensor, bool with_content, uint64_t max_elements,
			FILE *out)
{
	const struct frag_dltensor *dl = &tensor->dl;
	char dtype[16];

	write_dtype(dl->dtype, dtype, sizeof(dtype));
	fprintf(out, "{\"dtype\": \"%s\", \"shape\": [", dtype);
	for (int32_t d = 0; d < dl->ndim; d++)
		fprintf(out, "%s%" PRId64, d > 0 ? ", " : "", dl->shape[d]);
	fprintf(out, "], \"device\": \"%s\"", is_in_host_memory(dl) ? "cpu" : "cuda");
	if (with_content && is_in_host_memory(dl))
		print_data(tensor, max_elements, out);
	fputc('}', out);
}
