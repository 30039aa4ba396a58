// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE 1
#include <base/draft.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>

#define DRAFT_PREFIX ".frag-draft-"
#define DRAFT_NAME_SIZE (sizeof(DRAFT_PREFIX) + 2 * sizeof(uint64_t))

struct frag_draft {
	int folder;
	char *path, *name; /* name: that of the draft, in the folder of path */
	FILE *stream;
};

static void draft_free(struct frag_draft *draft)
{
	fragi_free(draft->path);
	fragi_free(draft->name);
	fragi_free(draft);
}

static struct frag_draft *draft_new(int folder, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t folder_bytes = slash != NULL ? (size_t)(slash - path) + 1 : 0;
	struct frag_draft *draft = fragi_calloc(1, sizeof(*draft));

	if (draft == NULL)
		return NULL;
	draft->folder = folder;
	draft->path = fragi_strdup(path);
	draft->name = fragi_malloc(folder_bytes + DRAFT_NAME_SIZE);
	if (draft->path == NULL || draft->name == NULL) {
		draft_free(draft);
		return NULL;
	}
	memcpy(draft->name, path, folder_bytes);
	memcpy(draft->name + folder_bytes, DRAFT_PREFIX, sizeof(DRAFT_PREFIX));
	return draft;
}

/* Random, so that nobody can put something in its place; a file that is there is never opened. */
static int draft_open(struct frag_draft *draft, mode_t mode)
{
	char *end = draft->name + strlen(draft->name);
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -1;
	snprintf(end, 2 * sizeof(random) + 1, "%016" PRIx64, random);
	return openat(draft->folder, draft->name,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
}

int fragi_draft_create(int folder, const char *path, mode_t mode, struct frag_draft **out_draft)
{
	struct frag_draft *draft = draft_new(folder, path);
	int fd, r;

	if (draft == NULL)
		return -ENOMEM;
	fd = draft_open(draft, mode);
	if (fd < 0) {
		r = -errno;
		goto err_free;
	}
	draft->stream = fdopen(fd, "w");
	if (draft->stream == NULL) {
		r = -errno;
		goto err_close;
	}
	*out_draft = draft;
	return 0;
err_close:
	close(fd);
	unlinkat(folder, draft->name, 0);
err_free:
	draft_free(draft);
	return r;
}

int frag_draft_create(const char *path, struct frag_draft **out_draft)
{
	return fragi_draft_create(AT_FDCWD, path, 0666, out_draft);
}

FILE *frag_draft_stream(struct frag_draft *draft)
{
	return draft->stream;
}

/* Why an earlier write failed, which the stream has forgotten: what a further one says. */
static int why_it_failed(FILE *stream)
{
	static const char page[4096];

	return write(fileno(stream), page, sizeof(page)) < 0 ? -errno : -EIO;
}

int frag_draft_commit(struct frag_draft *draft)
{
	int r = ferror(draft->stream) != 0 ? why_it_failed(draft->stream) : 0;

	if (fclose(draft->stream) != 0 && r == 0)
		r = -errno;
	if (r == 0 && renameat(draft->folder, draft->name, draft->folder, draft->path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(draft->folder, draft->name, 0);
	draft_free(draft);
	return r;
}

void frag_draft_destroy(struct frag_draft *draft)
{
	if (draft == NULL)
		return;
	fclose(draft->stream);
	unlinkat(draft->folder, draft->name, 0);
	draft_free(draft);
}

/* Neither makes nor empties a file, so a link that was changed meanwhile does no harm. */
static int open_in_place(const char *path, FILE **out_stream)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
	int r = stream == NULL ? -errno : 0;

	if (r == 0)
		*out_stream = stream;
	else if (fd >= 0)
		close(fd);
	return r;
}

int frag_output_open(const char *path, FILE **out_stream)
{
	struct frag_draft *draft;
	struct stat at;
	int r;

	if (stat(path, &at) == 0 && !S_ISREG(at.st_mode))
		return open_in_place(path, out_stream);
	r = frag_draft_create(path, &draft);
	if (r < 0)
		return r;
	if (renameat(draft->folder, draft->name, draft->folder, draft->path) < 0) {
		r = -errno;
		frag_draft_destroy(draft);
		return r;
	}
	*out_stream = draft->stream;
	draft_free(draft);
	return 0;
}
