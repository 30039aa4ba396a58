// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "models.h"

/* A file is the same when its inode, size and time of change are. */
struct entry {
	struct entry *next;
	struct inference_model *model;
	struct stat file;
	struct inference_options options;
	size_t users;
};

/*
 * One file is loaded at a time, so that none is loaded twice. That takes up to minutes, in which
 * others give models back: the list has a lock of its own.
 */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct entry *entries;

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A model on a GPU belongs to one stream. */
static bool is_shared(const struct inference_options *a, const struct inference_options *b)
{
	return a->provider == INFERENCE_CPU && b->provider == INFERENCE_CPU &&
	       a->threads == b->threads && a->streams == b->streams && a->half == b->half;
}

static bool is_onnx(const struct inference_backend *backend, const char *path)
{
	size_t length = strlen(path);

	return backend == &inference_onnxruntime ||
	       (length > 5 && strcasecmp(path + length - 5, ".onnx") == 0);
}

static int examine(const struct inference_backend *backend, const char *path, struct stat *out,
		   struct frag_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd >= 0 && fstat(fd, out) == 0 ? 0 : -errno;

	if (fd >= 0)
		close(fd);
	if (r < 0)
		return frag_err_set(err, r, "cannot read %s: %s; check model_path_map", path,
				    frag_strerror(r));
	if (!S_ISREG(out->st_mode))
		return frag_err_set(err, -EINVAL,
				    "%s is not a file; model_path_map names the file of each model",
				    path);
	if (out->st_size == 0)
		return frag_err_set(err, -EBADMSG, "%s is empty; copy or download it again", path);
	/* Engines read all of it, for a minute and more, and refuse it without this reason. */
	if (out->st_size > INT32_MAX && is_onnx(backend, path))
		return frag_err_set(
			err, -EFBIG,
			"%s has %lld bytes, and a file of ONNX has 2 GB at most; export the model with its weights in files beside it (external data)",
			path, (long long)out->st_size);
	return 0;
}

static struct inference_model *find(const struct inference_backend *backend,
				    const struct stat *file,
				    const struct inference_options *options)
{
	struct inference_model *model = NULL;
	struct entry *entry;

	pthread_mutex_lock(&lock);
	for (entry = entries; entry != NULL && model == NULL; entry = entry->next) {
		if (entry->model->backend == backend && is_same(&entry->file, file) &&
		    is_shared(&entry->options, options)) {
			entry->users++;
			model = entry->model;
		}
	}
	pthread_mutex_unlock(&lock);
	return model;
}

static int load(const struct inference_backend *backend, const char *path, const struct stat *file,
		const struct inference_options *options, struct inference_model **out,
		struct frag_err *err)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	int r;

	if (entry == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory for the model %s", path);
	r = backend->load(path, options, &entry->model, err);
	if (r < 0) {
		free(entry);
		return r;
	}
	entry->file = *file;
	entry->options = *options;
	entry->users = 1;
	*out = entry->model;
	pthread_mutex_lock(&lock);
	entry->next = entries;
	entries = entry;
	pthread_mutex_unlock(&lock);
	return 0;
}

int inference_model_open(const struct inference_backend *backend, const char *path,
			 const struct inference_options *options, struct inference_model **out,
			 struct frag_err *err)
{
	struct inference_model *found;
	struct stat file;
	int r = examine(backend, path, &file, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&loading);
	found = find(backend, &file, options);
	if (found != NULL)
		*out = found;
	else
		r = load(backend, path, &file, options, out, err);
	pthread_mutex_unlock(&loading);
	return r;
}

void inference_model_close(struct inference_model *model)
{
	struct entry **at = &entries, *entry;

	if (model == NULL)
		return;
	pthread_mutex_lock(&lock);
	while (*at != NULL && (*at)->model != model)
		at = &(*at)->next;
	entry = *at;
	if (entry == NULL || --entry->users > 0)
		entry = NULL;
	else
		*at = entry->next;
	pthread_mutex_unlock(&lock);
	if (entry != NULL)
		model->backend->unload(model);
	free(entry);
}
