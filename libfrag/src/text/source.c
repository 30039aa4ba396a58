// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/failure.h>
#include <text/builder.h>

#define READ_STEP ((size_t)65536)

/*
 * Reads all of fd, at most FRAGI_YAML_TEXT_MAX bytes, into the arena. Returns 0, -EFBIG, -EISDIR or
 * an error of read.
 */
static int read_all(struct fragi_arena *arena, int fd, char **out_text, size_t *out_length)
{
	size_t length = 0, capacity = READ_STEP;
	char *buffer = fragi_malloc(capacity), *wider;
	ssize_t n = 1;
	int r = 0;

	while (r == 0 && buffer != NULL && n > 0) {
		if (length == capacity) {
			capacity *= 2;
			wider = fragi_realloc(buffer, capacity);
			if (wider == NULL) {
				r = -ENOMEM;
				break;
			}
			buffer = wider;
		}
		n = read(fd, buffer + length, capacity - length);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			r = -errno;
		else
			length += (size_t)n;
		if (length > FRAGI_YAML_TEXT_MAX)
			r = -EFBIG;
	}
	if (r == 0 && buffer != NULL) {
		*out_text = fragi_arena_alloc(arena, length + 1);
		if (*out_text != NULL) {
			memcpy(*out_text, buffer, length);
			*out_length = length;
		}
	}
	if (r == 0 && (buffer == NULL || *out_text == NULL))
		r = -ENOMEM;
	fragi_free(buffer);
	return r;
}

/*
 * Opens a text. A graph may come through a pipe, but a file that a graph names must be a regular
 * one: a FIFO that nobody writes to would be waited for.
 */
static int open_text(const char *path, bool must_be_file)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (must_be_file ? O_NONBLOCK : 0));
	struct stat status;

	if (fd < 0)
		return -errno;
	if (!must_be_file ||
	    (fstat(fd, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))))
		return fd; /* read refuses a folder */
	close(fd);
	return -ENOTSUP;
}

/*
 * - what: "graph", for the sentence
 * - name: what messages call the text
 * - must_be_file: as open_text
 */
static int read_text(struct fragi_arena *arena, const char *path, const char *name,
		     const char *what, bool must_be_file, struct fragi_spec_text *out_text,
		     struct frag_err *err)
{
	int fd = open_text(path, must_be_file), r = fd < 0 ? fd : 0;
	char *text = NULL;

	if (r == 0) {
		r = read_all(arena, fd, &text, &out_text->length);
		close(fd);
	}
	out_text->text = text;
	out_text->file = fragi_arena_strdup(arena, name);
	if (r == -EFBIG)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GRAPH_INVALID, NULL, r,
			"cannot read %s %s: it is larger than %u MiB; make it smaller", what, path,
			FRAGI_YAML_TEXT_MAX >> 20);
	if (r == -ENOTSUP)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GRAPH_INVALID, NULL, r,
			"cannot read %s %s: it is not a regular file; give the path of one", what,
			path);
	if (r < 0)
		return fragi_err_fail(
			err,
			r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_FILE_MISSING,
			NULL, r, "cannot read %s %s: %s%s", what, path, frag_strerror(r),
			r == -ENOMEM || r == -EMFILE || r == -ENFILE
				? ""
				: "; give the path of a file that exists");
	return out_text->file != NULL ? 0 : frag_err_set(err, -ENOMEM, "out of memory");
}

/*
 * Finds the absolute path of the folder that holds path; NULL when there is none (a pipe). Returns
 * 0 or -ENOMEM.
 */
static int folder_of(struct fragi_arena *arena, const char *path, const char **out_folder)
{
	char *real = realpath(path, NULL), *slash = real != NULL ? strrchr(real, '/') : NULL;

	*out_folder = NULL;
	if (slash != NULL)
		*out_folder = fragi_arena_strndup(arena, real,
						  slash == real ? 1 : (size_t)(slash - real));
	free(real);
	return slash != NULL && *out_folder == NULL ? -ENOMEM : 0;
}

struct files {
	struct fragi_source *source;
	const char *what;              /* "config" or "subgraphs": where the files are named */
	struct fragi_spec_text *texts; /* [FRAGI_SPEC_TEXTS_MAX] */
	size_t count;
	int r;
	struct frag_err *err;
};

static void read_file(void *context, struct fragi_node *map, const struct fragi_node *path)
{
	struct files *files = context;
	const char *folder = files->source->source.app_folder;
	struct frag_err err = FRAG_ERR_INIT;
	char full[PATH_MAX], what[32];
	size_t i;

	(void)map;
	snprintf(what, sizeof(what), "%s: from_file", files->what);
	for (i = 0; i < files->count && strcmp(files->texts[i].file, path->text) != 0; i++)
		;
	if (files->r < 0 || i < files->count)
		return;
	if (files->count == FRAGI_SPEC_TEXTS_MAX) {
		files->r = fragi_err_fail(&err, FRAGI_FAILURE_GRAPH_INVALID, NULL, -E2BIG,
					  "%s: more than %d files in from_file; merge some of them",
					  files->what, FRAGI_SPEC_TEXTS_MAX);
	} else if ((size_t)snprintf(full, sizeof(full), "%s%s%s",
				    path->text[0] == '/' || folder == NULL ? "" : folder,
				    path->text[0] == '/' || folder == NULL ? "" : "/",
				    path->text) >= sizeof(full)) {
		files->r = fragi_err_fail(&err, FRAGI_FAILURE_FILE_MISSING, NULL, -ENAMETOOLONG,
					  "%s: the path in from_file is too long", files->what);
	} else {
		files->r = read_text(&files->source->arena, full, path->text, what, true,
				     &files->texts[files->count], &err);
		files->count += files->r == 0;
	}
	if (files->r < 0 && files->err != NULL && files->err->text[0] == '\0') {
		*files->err = err;
		snprintf(files->err->file, sizeof(files->err->file), "%s", path->file);
		files->err->line = path->line;
		files->err->column = path->column;
	}
}

/* Arguments and configs decide which files these are, so the source is parsed that far. */
static int read_files(struct fragi_source *source, struct frag_err *err)
{
	struct files files = {.source = source, .what = "config"};
	bool is_invalid;
	struct fragi_diag diag = {0};
	struct fragi_builder builder;
	struct fragi_spec *spec = fragi_calloc(1, sizeof(*spec));

	files.texts =
		fragi_arena_alloc(&source->arena, FRAGI_SPEC_TEXTS_MAX * sizeof(*files.texts));
	if (spec == NULL || files.texts == NULL) {
		fragi_free(spec);
		return frag_err_set(err, -ENOMEM, "out of memory");
	}
	fragi_builder_init(&builder, &source->source, spec, &diag);
	fragi_builder_begin(&builder);
	/* Parsing the source reports these errors; those of files would hide them. */
	is_invalid = fragi_builder_failed(&builder);
	files.err = is_invalid ? NULL : err;
	if (builder.no_memory)
		files.r = frag_err_set(err, -ENOMEM,
				       "out of memory, or the graph needs more than %zu MiB of it",
				       FRAGI_SPEC_MEMORY_MAX >> 20);
	else {
		fragi_config_each_file(&builder, builder.config, read_file, &files);
		files.what = "subgraphs";
		fragi_subgraphs_each_file(&builder, read_file, &files);
	}
	if (is_invalid)
		files.r = files.r == -ENOMEM ? frag_err_set(err, -ENOMEM, "out of memory") : 0;
	fragi_builder_fini(&builder);
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	source->source.files = files.texts;
	source->source.file_count = files.count;
	return files.r;
}

static int check_size(const struct fragi_spec_source *source, struct frag_err *err)
{
	size_t size = source->graph.length;

	for (size_t i = 0; i < source->config_count; i++)
		size += source->configs[i].length;
	for (size_t i = 0; i < source->file_count; i++)
		size += source->files[i].length;
	for (size_t i = 0; i < source->set_count; i++)
		size += strlen(source->sets[i]) + 8;
	for (size_t i = 0; i < source->arg_count; i++)
		size += strlen(source->args[i]) + 8;
	if (size <= FRAGI_SOURCE_MAX - 65536)
		return 0;
	return fragi_err_fail(
		err, FRAGI_FAILURE_GRAPH_INVALID, NULL, -EFBIG,
		"the graph, its configurations and files have %zu bytes in all; at most %u MiB can be sent; make them smaller",
		size, FRAGI_SOURCE_MAX >> 20);
}

/* The graph: a file, or a text in memory; where its relative paths start. */
static int read_graph(struct fragi_source *source, const char *path, const char *text,
		      struct frag_err *err)
{
	char cwd[PATH_MAX];
	int r = 0;

	if (text == NULL) {
		r = read_text(&source->arena, path, path, "graph", false, &source->source.graph,
			      err);
		if (r == 0 && folder_of(&source->arena, path, &source->source.app_folder) < 0)
			r = frag_err_set(err, -ENOMEM, "out of memory");
		return r;
	}
	source->source.graph.length = strlen(text);
	if (source->source.graph.length > FRAGI_YAML_TEXT_MAX)
		return fragi_err_fail(err, FRAGI_FAILURE_GRAPH_INVALID, NULL, -EFBIG,
				      "the graph %s is larger than %u MiB; make it smaller", path,
				      FRAGI_YAML_TEXT_MAX >> 20);
	source->source.graph.text = fragi_arena_strdup(&source->arena, text);
	source->source.graph.file = fragi_arena_strdup(&source->arena, path);
	if (getcwd(cwd, sizeof(cwd)) != NULL)
		source->source.app_folder = fragi_arena_strdup(&source->arena, cwd);
	if (source->source.graph.text == NULL || source->source.graph.file == NULL)
		r = frag_err_set(err, -ENOMEM, "out of memory");
	return r;
}

static int read_source(struct fragi_source *out_source, const char *path, const char *text,
		       const char *const *configs, size_t config_count, const char *const *sets,
		       size_t set_count, const char *const *args, size_t arg_count,
		       struct frag_err *err)
{
	struct fragi_source source = {0};
	const char *from_environment = getenv("FRAG_CONFIG_PATH");
	struct fragi_spec_text *texts;
	int r;

	if (config_count == 0 && from_environment != NULL && from_environment[0] != '\0') {
		configs = &from_environment;
		config_count = 1;
	}
	if (config_count > FRAGI_SPEC_TEXTS_MAX)
		return fragi_err_fail(err, FRAGI_FAILURE_USAGE, NULL, -E2BIG,
				      "more than %d configurations; merge some of them",
				      FRAGI_SPEC_TEXTS_MAX);
	r = read_graph(&source, path, text, err);
	if (r < 0)
		goto err_fini;
	texts = fragi_arena_alloc(&source.arena, (config_count + 1) * sizeof(*texts));
	if (texts == NULL) {
		r = frag_err_set(err, -ENOMEM, "out of memory");
		goto err_fini;
	}
	for (size_t i = 0; i < config_count; i++) {
		r = read_text(&source.arena, configs[i], configs[i], "configuration", false,
			      &texts[i], err);
		if (r < 0)
			goto err_fini;
	}
	source.source.configs = texts;
	source.source.config_count = config_count;
	source.source.sets = sets;
	source.source.set_count = set_count;
	source.source.args = args;
	source.source.arg_count = arg_count;
	r = read_files(&source, err);
	if (r == 0)
		r = check_size(&source.source, err);
	if (r < 0)
		goto err_fini;
	*out_source = source;
	return 0;

err_fini:
	fragi_source_fini(&source);
	return r;
}

int fragi_source_read(struct fragi_source *out_source, const char *path, const char *const *configs,
		      size_t config_count, const char *const *sets, size_t set_count,
		      const char *const *args, size_t arg_count, struct frag_err *err)
{
	return read_source(out_source, path, NULL, configs, config_count, sets, set_count, args,
			   arg_count, err);
}

int fragi_source_read_text(struct fragi_source *out_source, const char *text, const char *file,
			   const char *const *configs, size_t config_count, const char *const *sets,
			   size_t set_count, const char *const *args, size_t arg_count,
			   struct frag_err *err)
{
	return read_source(out_source, file, text, configs, config_count, sets, set_count, args,
			   arg_count, err);
}

void fragi_source_fini(struct fragi_source *source)
{
	fragi_arena_fini(&source->arena);
	memset(source, 0, sizeof(*source));
}
