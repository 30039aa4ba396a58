// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/sentence.h>
#include <data/tensor.h>
#include <frag/draft.h>
#include <frag/npy.h>

#define MAGIC "\x93NUMPY"
#define MAGIC_LENGTH 6u
#define HEADER_MAX 4096u /* of the files that are read: one dtype and 8 dimensions take far less */

static const char letters[] = {
	[FRAG_DTYPE_INT] = 'i',    [FRAG_DTYPE_UINT] = 'u',    [FRAG_DTYPE_FLOAT] = 'f',
	[FRAG_DTYPE_BFLOAT] = 'V', [FRAG_DTYPE_COMPLEX] = 'c', [FRAG_DTYPE_BOOL] = 'b'};

/* Writing. */

static void describe_dtype(struct frag_dtype dtype, char *out, size_t size)
{
	snprintf(out, size, "%c%c%d", dtype.bits == 8 || letters[dtype.code] == 'V' ? '|' : '<',
		 letters[dtype.code], dtype.bits / 8);
}

static void write_header(const struct frag_dltensor *dl, FILE *out)
{
	char header[512], dtype[8];
	unsigned int length;
	int n;

	describe_dtype(dl->dtype, dtype, sizeof(dtype));
	n = snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (",
		     dtype);
	for (int32_t d = 0; d < dl->ndim; d++)
		n += snprintf(header + n, sizeof(header) - (size_t)n, "%" PRId64 ",", dl->shape[d]);
	if (dl->dtype.lanes > 1)
		n += snprintf(header + n, sizeof(header) - (size_t)n, "%d,", dl->dtype.lanes);
	n += snprintf(header + n, sizeof(header) - (size_t)n, "), }");
	/* The data begins at a multiple of 64 bytes, behind spaces and a newline. */
	length = ((unsigned int)n + 1 + 10 + 63) / 64 * 64 - 10;
	fwrite(MAGIC "\x01\x00", 1, MAGIC_LENGTH + 2, out);
	fputc((int)(length & 0xff), out);
	fputc((int)(length >> 8), out);
	fprintf(out, "%s%*s\n", header, (int)length - n - 1, "");
}

/* Writes the elements in row-major order. Returns their bytes. */
static uint64_t write_data(const struct frag_tensor *tensor, FILE *out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	const unsigned char *data = frag_tensor_data(tensor);
	size_t element = (size_t)dl->dtype.bits / 8 * dl->dtype.lanes;
	int64_t index[FRAG_TENSOR_NDIM_MAX] = {0}, count = 1, offset;

	if (frag_tensor_size_bytes(tensor) == 0)
		return 0;
	if (frag_tensor_is_compact(tensor))
		return fwrite(data, 1, frag_tensor_size_bytes(tensor), out);
	for (int32_t d = 0; d < dl->ndim; d++)
		count *= dl->shape[d];
	for (int64_t i = 0; i < count; i++) {
		offset = 0;
		for (int32_t d = 0; d < dl->ndim; d++)
			offset += index[d] * dl->strides[d];
		fwrite(data + (size_t)offset * element, 1, element, out);
		for (int32_t d = dl->ndim - 1; d >= 0 && ++index[d] == dl->shape[d]; d--)
			index[d] = 0;
	}
	return (uint64_t)count * element;
}

int frag_npy_write(const char *path, const struct frag_tensor *tensor, uint64_t *out_bytes)
{
	int32_t device = frag_tensor_dl(tensor)->device.type;
	struct frag_draft *draft;
	uint64_t bytes;
	FILE *out;
	int r;

	if (device != FRAG_DEVICE_CPU && device != FRAG_DEVICE_CUDA_HOST)
		return -EOPNOTSUPP;
	r = fragi_tensor_wait(tensor, NULL);
	if (r < 0)
		return r;
	r = frag_draft_create(path, &draft);
	if (r < 0)
		return r;
	out = frag_draft_stream(draft);
	errno = 0;
	write_header(frag_tensor_dl(tensor), out);
	bytes = write_data(tensor, out);
	if (ferror(out) != 0) {
		r = errno > 0 ? -errno : -EIO;
		frag_draft_destroy(draft);
	} else {
		r = frag_draft_commit(draft);
	}
	if (r == 0 && out_bytes != NULL)
		*out_bytes = bytes;
	return r;
}

/* Reading. */

struct reading {
	const char *path;
	FILE *in;
	struct frag_err *err;
};

#define refuse(reading, ...) refuse_(reading, __VA_ARGS__)
static int FRAG_PRINTF(2, 3) refuse_(const struct reading *reading, const char *format, ...)
{
	char sentence[200];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(sentence, sizeof(sentence), format, args);
	va_end(args);
	return frag_err_set(reading->err, -EINVAL, "%s: %s", reading->path, sentence);
}

/* Reads the text of the header, which ends with a NUL then. */
static int read_header(const struct reading *reading, char header[HEADER_MAX + 1])
{
	unsigned char begin[12];
	size_t length, wide;

	if (fread(begin, 1, 10, reading->in) != 10 || memcmp(begin, MAGIC, MAGIC_LENGTH) != 0)
		return refuse(reading, "is no .npy file; write it with numpy.save");
	if (begin[6] < 1 || begin[6] > 3)
		return refuse(reading, "is of version %d of .npy; 1 to 3 are known", begin[6]);
	wide = begin[6] == 1 ? 0 : 2;
	if (fread(begin + 10, 1, wide, reading->in) != wide)
		return refuse(reading, "ends within its header");
	length = begin[8] | (size_t)begin[9] << 8;
	if (wide > 0)
		length |= (size_t)begin[10] << 16 | (size_t)begin[11] << 24;
	if (length > HEADER_MAX)
		return refuse(reading, "has a header of %zu bytes; %u are allowed", length,
			      HEADER_MAX);
	if (fread(header, 1, length, reading->in) != length)
		return refuse(reading, "ends within its header");
	header[length] = '\0';
	return strlen(header) == length ? 0 : refuse(reading, "has a byte 0 in its header");
}

/* What stands behind 'key': ; NULL: nothing. */
static const char *value_of(const char *header, const char *key)
{
	char quoted[32];
	const char *at;

	snprintf(quoted, sizeof(quoted), "'%s'", key);
	at = strstr(header, quoted);
	if (at == NULL)
		return NULL;
	at += strlen(quoted);
	at += strspn(at, " ");
	if (*at++ != ':')
		return NULL;
	return at + strspn(at, " ");
}

static int read_dtype(const struct reading *reading, const char *text, struct frag_dtype *out)
{
	unsigned int bytes = 0;
	char order = 0, letter = 0;
	int length = 0;

	if (text == NULL || sscanf(text, "'%c%c%2u'%n", &order, &letter, &bytes, &length) != 3 ||
	    length == 0)
		return refuse(reading,
			      "has no type of elements that can be read; structured arrays cannot");
	if (order == '>' && bytes > 1)
		return refuse(reading, "is big-endian; write it little-endian");
	for (uint8_t code = 0; code < sizeof(letters); code++)
		if (letters[code] == letter && letter != 'V' && bytes >= 1 && bytes <= 16) {
			*out = (struct frag_dtype){code, (uint8_t)(8 * bytes), 1};
			return 0;
		}
	return refuse(reading,
		      "has elements of type %c%u; use b1, i1 to i8, u1 to u8, f2 to f8, c8 or c16",
		      letter, bytes);
}

static int read_shape(const struct reading *reading, const char *text, int32_t *out_ndim,
		      int64_t shape[FRAG_TENSOR_NDIM_MAX])
{
	int32_t ndim = 0;
	char *end;

	if (text == NULL || *text++ != '(')
		return refuse(reading, "has no shape");
	for (;;) {
		text += strspn(text, " ,");
		if (*text == ')')
			break;
		if (ndim == FRAG_TENSOR_NDIM_MAX)
			return refuse(reading, "has more than %d dimensions", FRAG_TENSOR_NDIM_MAX);
		errno = 0;
		shape[ndim] = strtoll(text, &end, 10);
		if (end == text || errno != 0 || shape[ndim++] < 0)
			return refuse(reading, "has no shape that can be read");
		text = end;
	}
	*out_ndim = ndim;
	return 0;
}

static int read_tensor(const struct reading *reading, struct frag_tensor **out)
{
	char header[HEADER_MAX + 1];
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_tensor *tensor;
	struct frag_dtype dtype = {0};
	const char *order;
	int32_t ndim = 0;
	long begin, end;
	size_t size;
	int r = read_header(reading, header);

	if (r == 0)
		r = read_dtype(reading, value_of(header, "descr"), &dtype);
	if (r == 0)
		r = read_shape(reading, value_of(header, "shape"), &ndim, shape);
	if (r < 0)
		return r;
	order = value_of(header, "fortran_order");
	if (order == NULL || strncmp(order, "False", 5) != 0)
		return refuse(reading,
			      "is in Fortran order; write it with numpy.ascontiguousarray");
	/* before memory is taken for what a header says */
	begin = ftell(reading->in);
	if (begin < 0 || fseek(reading->in, 0, SEEK_END) < 0 || (end = ftell(reading->in)) < 0 ||
	    fseek(reading->in, begin, SEEK_SET) < 0)
		return frag_err_set(reading->err, -errno, "%s: %s", reading->path, strerror(errno));
	r = fragi_tensor_measure(dtype, ndim, shape, &size);
	if (r < 0)
		return refuse(reading, "has a type or shape that tensors do not have");
	if (size > (size_t)(end - begin))
		return refuse(reading, "has %ld bytes of elements; its header says %zu",
			      end - begin, size);
	r = frag_tensor_create(NULL, dtype, ndim, shape, &tensor);
	if (r < 0)
		return frag_err_set(reading->err, r, "%s: %s", reading->path, frag_strerror(r));
	if (size > 0 && fread(frag_tensor_writable(tensor), 1, size, reading->in) != size) {
		frag_tensor_unref(tensor);
		return frag_err_set(reading->err, -EIO, "%s: cannot be read to its end",
				    reading->path);
	}
	*out = tensor;
	return 0;
}

int frag_npy_read(const char *path, struct frag_tensor **out, struct frag_err *err)
{
	struct reading reading = {path, fopen(path, "re"), err};
	int r;

	if (reading.in == NULL)
		return frag_err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	r = read_tensor(&reading, out);
	fclose(reading.in);
	return r;
}
