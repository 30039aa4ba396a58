// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static int examine(const char *path, struct stat *out, struct frag_err *err)
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
	return 0;
}

static int open_locked(const struct inference_backend *backend, const char *path,
		       const struct stat *file, const struct inference_options *options,
		       struct inference_model **out, struct frag_err *err)
{
	struct entry *entry;
	int r;

	for (entry = entries; entry != NULL; entry = entry->next) {
		if (entry->model->backend == backend && is_same(&entry->file, file) &&
		    is_shared(&entry->options, options)) {
			entry->users++;
			*out = entry->model;
			return 0;
		}
	}
	entry = calloc(1, sizeof(*entry));
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
	entry->next = entries;
	entries = entry;
	*out = entry->model;
	return 0;
}

int inference_model_open(const struct inference_backend *backend, const char *path,
			 const struct inference_options *options, struct inference_model **out,
			 struct frag_err *err)
{
	struct stat file;
	int r = examine(path, &file, err);

	if (r < 0)
		return r;
	pthread_mutex_lock(&lock);
	r = open_locked(backend, path, &file, options, out, err);
	pthread_mutex_unlock(&lock);
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
	if (entry != NULL && --entry->users == 0) {
		*at = entry->next;
		model->backend->unload(model);
		free(entry);
	}
	pthread_mutex_unlock(&lock);
}
