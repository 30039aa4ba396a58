/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "logger.h"

/*
 * Writes each tensor to a file in NumPy's format (NEP 1, version 1.0):
 * FOLDER/fragment.operator.port.TENSOR.NUMBER.npy. Messages without tensors are passed over.
 */
struct npy {
	/* parameters */
	const char *folder;
	uint64_t max_bytes;

	uint64_t written;
};

static const struct frag_param npy_params[] = {
	FRAG_PARAM_PATH(struct npy, folder, NULL,
			.headline = "Folder for the files; it is made if it is not there",
			.flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_SIZE(struct npy, max_bytes, 0,
			.headline = "Bytes after which no more is written; 0: no limit"),
};

static int npy_start(void *state, const struct frag_resource *logger, struct frag_err *err)
{
	const struct npy *npy = state;
	struct stat st;

	(void)logger;
	if (mkdir(npy->folder, 0777) < 0 && errno != EEXIST)
		return frag_err_set(err, -errno, "cannot make the folder %s: %s; name another one",
				    npy->folder, strerror(errno));
	if (stat(npy->folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return frag_err_set(err, -ENOTDIR, "%s is no folder; name another one",
				    npy->folder);
	return 0;
}

/* NumPy has no bfloat16: its bytes are written as what NumPy calls void. */
static void describe_dtype(struct frag_dtype dtype, char *out, size_t size)
{
	static const char letters[] = {
		[FRAG_DTYPE_INT] = 'i',    [FRAG_DTYPE_UINT] = 'u',    [FRAG_DTYPE_FLOAT] = 'f',
		[FRAG_DTYPE_BFLOAT] = 'V', [FRAG_DTYPE_COMPLEX] = 'c', [FRAG_DTYPE_BOOL] = 'b'};

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
	fwrite("\x93NUMPY\x01\x00", 1, 8, out);
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

static int write_file(struct npy *npy, const char *path, const struct frag_tensor *tensor)
{
	FILE *out = fopen(path, "we");
	bool failed;
	int r;

	if (out == NULL)
		return -errno;
	write_header(frag_tensor_dl(tensor), out);
	if (frag_tensor_size_bytes(tensor) > 0)
		npy->written += write_data(tensor, out);
	errno = EIO;
	failed = ferror(out) != 0;
	r = errno;
	if (fclose(out) != 0) {
		failed = true;
		r = errno;
	}
	return failed ? -r : 0;
}

/* Names may hold anything: what is no letter, digit, dot or dash becomes an underscore. */
static void append_name(char *path, size_t size, const char *name)
{
	size_t length = strlen(path);

	for (; *name != '\0' && length + 1 < size; name++)
		path[length++] =
			isalnum((unsigned char)*name) || strchr("._-", *name) != NULL ? *name : '_';
	path[length] = '\0';
}

static int log_tensor(struct npy *npy, const struct frag_log_entry *entry, uint32_t i)
{
	const char *name;
	const struct frag_tensor *tensor = frag_message_tensor_at(entry->message, i, &name);
	int32_t device = frag_tensor_dl(tensor)->device.type;
	char path[PATH_MAX], number[32];
	int length = snprintf(path, sizeof(path), "%s/", npy->folder);

	if (length < 0 || (size_t)length + strlen(entry->id) + 2 * FRAG_NAME_MAX > sizeof(path))
		return -ENAMETOOLONG;
	if (device != FRAG_DEVICE_CPU && device != FRAG_DEVICE_CUDA_HOST)
		return -EOPNOTSUPP;
	if (npy->max_bytes > 0 && npy->written >= npy->max_bytes)
		return -EFBIG;
	snprintf(number, sizeof(number), ".%08" PRIu64 ".npy", entry->number);
	append_name(path, sizeof(path), entry->id);
	append_name(path, sizeof(path), ".");
	append_name(path, sizeof(path), name[0] != '\0' ? name : "tensor");
	append_name(path, sizeof(path), number);
	return write_file(npy, path, tensor);
}

static int npy_log(void *state, const struct frag_log_entry *entry)
{
	int r = 0, one;

	for (uint32_t i = 0;
	     entry->has_content != 0 && i < frag_message_tensor_count(entry->message); i++) {
		one = log_tensor(state, entry, i);
		r = r < 0 ? r : one;
	}
	return r;
}

const struct frag_data_logger_type logger_basic_npy_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "basic_npy_logger",
	.headline = "Writes tensors to .npy files",
	.state_size = sizeof(struct npy),
	FRAG_PARAMS(npy_params),
	.start = npy_start,
	.log = npy_log,
};

const struct frag_data_logger_type logger_async_npy_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_npy_logger",
	.headline = "Writes tensors to .npy files, on threads of its own",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct npy),
	FRAG_PARAMS(npy_params),
	.start = npy_start,
	.log = npy_log,
};
