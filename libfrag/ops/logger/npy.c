// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <frag/npy.h>

#include "../folders.h"
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
	char path[PATH_MAX];
	struct stat st;
	int r;

	(void)logger;
	r = snprintf(path, sizeof(path), "%s/", npy->folder) < (int)sizeof(path)
		    ? folders_make(path)
		    : -ENAMETOOLONG;
	if (r < 0)
		return frag_err_set(err, r, "cannot make the folder %s: %s; name another one",
				    npy->folder, frag_strerror(r));
	if (stat(npy->folder, &st) < 0 || !S_ISDIR(st.st_mode))
		return frag_err_set(err, -ENOTDIR, "%s is no folder; name another one",
				    npy->folder);
	return 0;
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
	char path[PATH_MAX], number[32];
	uint64_t bytes = 0;
	int length = snprintf(path, sizeof(path), "%s/", npy->folder), r;

	if (length < 0 || (size_t)length + strlen(entry->id) + 2 * FRAG_NAME_MAX > sizeof(path))
		return -ENAMETOOLONG;
	if (npy->max_bytes > 0 && npy->written >= npy->max_bytes)
		return -EFBIG;
	snprintf(number, sizeof(number), ".%08" PRIu64 ".npy", entry->number);
	append_name(path, sizeof(path), entry->id);
	append_name(path, sizeof(path), ".");
	append_name(path, sizeof(path), name[0] != '\0' ? name : "tensor");
	append_name(path, sizeof(path), number);
	r = frag_npy_write(path, tensor, &bytes);
	npy->written += bytes;
	return r;
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
	.flags = FRAG_DATA_LOGGER_CONTENT,
	.state_size = sizeof(struct npy),
	FRAG_PARAMS(npy_params),
	.start = npy_start,
	.log = npy_log,
};

const struct frag_data_logger_type logger_async_npy_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_npy_logger",
	.headline = "Writes tensors to .npy files, on threads of its own",
	.flags = FRAG_DATA_LOGGER_ASYNC | FRAG_DATA_LOGGER_CONTENT,
	.state_size = sizeof(struct npy),
	FRAG_PARAMS(npy_params),
	.start = npy_start,
	.log = npy_log,
};
