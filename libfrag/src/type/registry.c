// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_TOPIC "plugin"
#include <base/alloc.h>
#include <base/failure.h>
#include <base/log.h>
#include <base/strmap.h>
#include <base/units.h>
#include <text/alias.h>
#include <type/library.h>

#define NAMES_MAX 512

struct folder {
	const char *text; /* as it was given */
	const char *real; /* NULL: it does not exist */
};

struct built_in {
	const char *path; /* real */
	bool tried;
};

struct fragi_registry {
	struct fragi_arena arena;
	struct folder *folders;
	size_t folder_count;
	bool allow_paths;
	const char *app_folder;
	struct fragi_library **libraries; /* open, or tried */
	size_t library_count, library_capacity;
	struct fragi_strmap ops, built_in_ops; /* name: const struct frag_op_type */
	struct fragi_strmap composers, built_in_composers;
	struct built_in *built_in; /* by name */
	size_t built_in_count;
};

/* Adds `length` bytes of text as a folder, unless they are empty or there already. */
static int folder_add(struct fragi_registry *registry, const char *text, size_t length)
{
	struct folder *wider;
	char real[PATH_MAX];

	if (length == 0)
		return 0;
	for (size_t i = 0; i < registry->folder_count; i++)
		if (strncmp(registry->folders[i].text, text, length) == 0 &&
		    registry->folders[i].text[length] == '\0')
			return 0;
	wider = fragi_realloc(registry->folders, (registry->folder_count + 1) * sizeof(*wider));
	if (wider == NULL)
		return -ENOMEM;
	registry->folders = wider;
	wider = &registry->folders[registry->folder_count];
	wider->real = NULL;
	wider->text = fragi_arena_strndup(&registry->arena, text, length);
	if (wider->text == NULL)
		return -ENOMEM;
	if (realpath(wider->text, real) != NULL) {
		wider->real = fragi_arena_strdup(&registry->arena, real);
		if (wider->real == NULL)
			return -ENOMEM;
	}
	registry->folder_count++;
	return 0;
}

static int folders_add(struct fragi_registry *registry, const struct fragi_registry_config *config)
{
	const char *path = getenv("FRAG_LIBRARY_PATH"), *lib = fragi_library_folder();
	static const char *const own[] = {"/frag/extensions", "/frag/plugins"};
	char text[PATH_MAX + 32];
	size_t length;
	int r = 0;

	for (size_t i = 0;
	     r == 0 && config->library_path != NULL && config->library_path[i] != NULL; i++)
		r = folder_add(registry, config->library_path[i], strlen(config->library_path[i]));
	while (r == 0 && path != NULL) {
		length = strcspn(path, ":");
		r = folder_add(registry, path, length);
		path = path[length] == ':' ? path + length + 1 : NULL;
	}
	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(own); i++) {
		snprintf(text, sizeof(text), "%s%s", lib, own[i]);
		r = folder_add(registry, text, strlen(text));
	}
	return r;
}

static int compare_built_in(const void *a, const void *b)
{
	return strcmp(((const struct built_in *)a)->path, ((const struct built_in *)b)->path);
}

/* Lists the built-in libraries; none is opened. A folder that is not there has none. */
static int built_in_list(struct fragi_registry *registry)
{
	char text[PATH_MAX + 32], real[PATH_MAX];
	DIR *dir;
	struct dirent *entry;
	struct built_in *wider;
	size_t length;
	int r = 0;

	snprintf(text, sizeof(text), "%s/frag/plugins", fragi_library_folder());
	dir = realpath(text, real) != NULL ? opendir(real) : NULL;
	if (dir == NULL && errno != ENOENT && errno != ENOTDIR)
		return -errno;
	while (r == 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
		length = strlen(entry->d_name);
		if (length < 4 || entry->d_name[0] == '.' ||
		    strcmp(entry->d_name + length - 3, ".so") != 0)
			continue;
		wider = fragi_realloc(registry->built_in,
				      (registry->built_in_count + 1) * sizeof(*wider));
		if (wider == NULL) {
			r = -ENOMEM;
			break;
		}
		registry->built_in = wider;
		wider = &wider[registry->built_in_count++];
		wider->tried = false;
		wider->path = fragi_arena_printf(&registry->arena, "%s/%s", real, entry->d_name);
		if (wider->path == NULL)
			r = -ENOMEM;
	}
	if (dir != NULL)
		closedir(dir);
	if (r == 0 && registry->built_in_count > 0)
		qsort(registry->built_in, registry->built_in_count, sizeof(*registry->built_in),
		      compare_built_in);
	return r;
}

int fragi_registry_create(const struct fragi_registry_config *config,
			  struct fragi_registry **out_registry)
{
	struct fragi_registry *registry = fragi_calloc(1, sizeof(*registry));
	int r;

	if (registry == NULL)
		return -ENOMEM;
	registry->allow_paths = config->allow_paths;
	r = folders_add(registry, config);
	if (r == 0)
		r = built_in_list(registry);
	if (r == 0 && config->app_folder != NULL) {
		registry->app_folder = fragi_arena_strdup(&registry->arena, config->app_folder);
		if (registry->app_folder == NULL)
			r = -ENOMEM;
	}
	if (r < 0) {
		fragi_registry_destroy(registry);
		return r;
	}
	*out_registry = registry;
	return 0;
}

void fragi_registry_destroy(struct fragi_registry *registry)
{
	if (registry == NULL)
		return;
	fragi_strmap_fini(&registry->ops);
	fragi_strmap_fini(&registry->built_in_ops);
	fragi_strmap_fini(&registry->composers);
	fragi_strmap_fini(&registry->built_in_composers);
	fragi_free(registry->libraries);
	fragi_free(registry->built_in);
	fragi_free(registry->folders);
	fragi_arena_fini(&registry->arena);
	fragi_free(registry);
}

/* The folders for a sentence: "/a, /b". */
static const char *folders_text(const struct fragi_registry *registry, char *out, size_t size)
{
	size_t used = 0;
	int n;

	out[0] = '\0';
	for (size_t i = 0; i < registry->folder_count && used < size; i++) {
		n = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
			     registry->folders[i].text);
		used += n > 0 ? (size_t)n : 0;
	}
	return out;
}

static bool is_inside(const struct fragi_registry *registry, const char *real)
{
	const char *folder;
	size_t length;

	for (size_t i = 0; i < registry->folder_count; i++) {
		folder = registry->folders[i].real;
		length = folder != NULL ? strlen(folder) : 0;
		if (length > 0 && strncmp(real, folder, length) == 0 && real[length] == '/')
			return true;
	}
	return false;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/*
 * A library given as a path: only where everything runs in one process, and its author is its user.
 */
static int find_path(const struct fragi_registry *registry, const char *library, char *real,
		     struct frag_err *err)
{
	char path[PATH_MAX];
	int n;

	if (!registry->allow_paths)
		return frag_err_set(
			err, -EINVAL,
			"library %.200s: a path is only accepted where everything runs in one process; write the name alone and put its folder into --library-path",
			library);
	n = snprintf(path, sizeof(path), "%s%s%s",
		     library[0] != '/' && registry->app_folder != NULL ? registry->app_folder : "",
		     library[0] != '/' && registry->app_folder != NULL ? "/" : "", library);
	if (n < 0 || (size_t)n >= sizeof(path))
		return frag_err_set(err, -EINVAL, "library %.200s: the path is too long", library);
	if (realpath(path, real) == NULL)
		return frag_err_set(err, -ENOENT, "library %.200s cannot be found: %.400s: %s",
				    library, path, strerror(errno));
	if (!is_file(real))
		return frag_err_set(err, -ENOENT, "library %.200s is no file", library);
	return 0;
}

/* The real path of a library; real has PATH_MAX bytes. */
static int find_library(const struct fragi_registry *registry, const char *library, char *real,
			struct frag_err *err)
{
	char path[PATH_MAX], folders[600];

	if (strchr(library, '/') != NULL)
		return find_path(registry, library, real, err);
	for (size_t i = 0; i < registry->folder_count; i++) {
		if (registry->folders[i].real == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", registry->folders[i].real, library);
		if (realpath(path, real) == NULL || !is_file(real))
			continue;
		if (is_inside(registry, real))
			return 0;
		return frag_err_set(
			err, -ENOENT,
			"library %.200s: %.300s leads to %.300s, outside the folders that libraries may come from; put the file itself there",
			library, path, real);
	}
	if (registry->allow_paths && registry->app_folder != NULL) {
		snprintf(path, sizeof(path), "%s/%s", registry->app_folder, library);
		if (is_file(path))
			return frag_err_set(
				err, -ENOENT,
				"library %.200s is not in %s; for the one in the app folder write ./%.200s",
				library, folders_text(registry, folders, sizeof(folders)), library);
	}
	return frag_err_set(
		err, -ENOENT,
		"library %.200s is not in %s; put it there, or its folder into --library-path or FRAG_LIBRARY_PATH",
		library, folders_text(registry, folders, sizeof(folders)));
}

/* Which library a name came from. */
static const char *owner_of(const struct fragi_registry *registry, const void *entry)
{
	const struct fragi_library *library;

	for (size_t i = 0; i < registry->library_count; i++) {
		library = registry->libraries[i];
		for (size_t j = 0; j < library->op_count; j++)
			if (library->ops[j] == entry)
				return library->file;
		for (size_t j = 0; j < library->composer_count; j++)
			if (&library->composers[j] == entry)
				return library->file;
	}
	return "another library";
}

/* Puts the library's names into the maps; nothing when one is taken. */
static int library_register(struct fragi_registry *registry, const struct fragi_library *library,
			    struct frag_err *err)
{
	struct fragi_strmap *ops = library->built_in ? &registry->built_in_ops : &registry->ops;
	struct fragi_strmap *composers =
		library->built_in ? &registry->built_in_composers : &registry->composers;
	struct frag_err cause = FRAG_ERR_INIT;
	const void *taken;
	int r = 0;

	for (size_t i = 0; i < library->op_count; i++) {
		taken = fragi_strmap_get(ops, library->ops[i]->name);
		if (taken != NULL)
			return frag_err_set(
				err, -EEXIST,
				"library %s: operator type \"%s\" is already that of %s",
				library->file, library->ops[i]->name, owner_of(registry, taken));
	}
	for (size_t i = 0; i < library->composer_count; i++) {
		taken = fragi_strmap_get(composers, library->composers[i].name);
		if (taken != NULL)
			return frag_err_set(err, -EEXIST,
					    "library %s: composer \"%s\" is already that of %s",
					    library->file, library->composers[i].name,
					    owner_of(registry, taken));
	}
	for (size_t i = 0; r == 0 && i < library->type_count; i++) {
		r = frag_type_register(library->types[i], &cause);
		if (r < 0)
			return frag_err_set(err, r, "library %s: %s", library->file,
					    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	}
	for (size_t i = 0; r == 0 && i < library->op_count; i++)
		r = fragi_strmap_put(ops, library->ops[i]->name,
				     (void *)(uintptr_t)library->ops[i]);
	for (size_t i = 0; r == 0 && i < library->composer_count; i++)
		r = fragi_strmap_put(composers, library->composers[i].name, &library->composers[i]);
	if (r < 0)
		return frag_err_set(err, r, "library %s: %s", library->file, frag_strerror(r));
	return 0;
}

static bool is_built_in(const struct fragi_registry *registry, const char *real)
{
	for (size_t i = 0; i < registry->built_in_count; i++)
		if (strcmp(registry->built_in[i].path, real) == 0)
			return true;
	return false;
}

/* Makes room for one library. */
static struct fragi_library *library_add(struct fragi_registry *registry, const char *real)
{
	size_t capacity = registry->library_capacity == 0 ? 8 : registry->library_capacity * 2;
	struct fragi_library **wider,
		*library = fragi_arena_alloc(&registry->arena, sizeof(*library));

	if (library == NULL)
		return NULL;
	library->path = fragi_arena_strdup(&registry->arena, real);
	if (library->path == NULL)
		return NULL;
	library->file = strrchr(library->path, '/') + 1;
	library->built_in = is_built_in(registry, real);
	if (registry->library_count == registry->library_capacity) {
		wider = fragi_realloc(registry->libraries,
				      capacity * sizeof(struct fragi_library *));
		if (wider == NULL)
			return NULL;
		registry->libraries = wider;
		registry->library_capacity = capacity;
	}
	registry->libraries[registry->library_count++] = library;
	return library;
}

/*
 * Opens and registers the library at a real path (its table, when there is one already); what was
 * tried once has the same result again.
 */
static int library_load(struct fragi_registry *registry, const char *real,
			const struct frag_plugin *table, struct frag_err *err)
{
	struct fragi_library *library = NULL;
	struct frag_err cause = FRAG_ERR_INIT;
	int r;

	for (size_t i = 0; i < registry->library_count; i++) {
		library = registry->libraries[i];
		if (strcmp(library->path, real) != 0)
			continue;
		return library->error != NULL
			       ? frag_err_set(err, library->error_code, "%s", library->error)
			       : 0;
	}
	library = library_add(registry, real);
	if (library == NULL)
		return frag_err_set(err, -ENOMEM, "memory is short for library %.200s", real);
	r = table != NULL ? fragi_library_read(&registry->arena, library, table, &cause)
			  : fragi_library_open(&registry->arena, library, &cause);
	if (r == 0)
		r = library_register(registry, library, &cause);
	if (r < 0) {
		library->op_count = library->composer_count = 0;
		library->error_code = r;
		library->error = fragi_arena_strdup(
			&registry->arena, cause.text[0] != '\0' ? cause.text : frag_strerror(r));
		if (library->error == NULL)
			library->error = "memory is short";
		return frag_err_set(err, r, "%s", library->error);
	}
	log_debug(NULL, "opened %s: plugin %s %s, %zu operator types, %zu composers", real,
		  library->name, library->version, library->op_count, library->composer_count);
	return 0;
}

int fragi_registry_load(struct fragi_registry *registry, const char *library, struct frag_err *err)
{
	char real[PATH_MAX];
	struct frag_err cause = FRAG_ERR_INIT;
	int r = find_library(registry, library, real, &cause);

	if (r == 0)
		r = library_load(registry, real, NULL, &cause);
	if (r == 0)
		return 0;
	return fragi_err_fail(err,
			      r == -ENOENT   ? FRAGI_FAILURE_LIBRARY_MISSING
			      : r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY
					     : FRAGI_FAILURE_LIBRARY_REFUSED,
			      NULL, r, "%s", cause.text);
}

int fragi_registry_add(struct fragi_registry *registry, const char *name,
		       const struct frag_plugin *plugin, struct frag_err *err)
{
	char path[PATH_MAX];

	if (!fragi_name_is_valid(name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is no name of a library", name);
	snprintf(path, sizeof(path), "linked/%s", name);
	return library_load(registry, path, plugin, err);
}

/*
 * Whether the file holds name as a text that ends there. A plugin's tables are made by the
 * compiler, so a library without the text cannot list the name, and need not be opened with all
 * that it links.
 */
static bool file_mentions(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = false;
	struct stat st;
	void *map;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map != MAP_FAILED) {
			found = memmem(map, (size_t)st.st_size, name, strlen(name) + 1) != NULL;
			munmap(map, (size_t)st.st_size);
		}
	}
	close(fd);
	return found;
}

/* Opens what is built in, mentions name (NULL: all of them) and was not tried yet. */
static void open_built_in(struct fragi_registry *registry, const char *name)
{
	for (size_t i = 0; i < registry->built_in_count; i++) {
		if (registry->built_in[i].tried ||
		    (name != NULL && !file_mentions(registry->built_in[i].path, name)))
			continue;
		registry->built_in[i].tried = true;
		library_load(registry, registry->built_in[i].path, NULL, NULL);
	}
}

static void *look_up(struct fragi_registry *registry, const struct fragi_strmap *own,
		     const struct fragi_strmap *built_in, const char *name)
{
	void *found = fragi_strmap_get(own, name);

	if (found == NULL)
		found = fragi_strmap_get(built_in, name);
	if (found != NULL)
		return found;
	open_built_in(registry, name);
	found = fragi_strmap_get(built_in, name);
	if (found == NULL)
		open_built_in(registry, NULL); /* for the names that are near */
	return found;
}

/* The built-in library that would have the name, had it been possible to open it. */
static const struct fragi_library *broken_built_in(const struct fragi_registry *registry,
						   const char *name)
{
	const struct fragi_library *library;

	for (size_t i = 0; i < registry->library_count; i++) {
		library = registry->libraries[i];
		if (library->built_in && library->error != NULL &&
		    file_mentions(library->path, name))
			return library;
	}
	return NULL;
}

static void refuse_name(const struct fragi_registry *registry, const char *what, const char *name,
			const char *const *names, size_t count, struct frag_err *err)
{
	const struct fragi_library *broken = broken_built_in(registry, fragi_alias(name));
	char advice[600];

	if (broken != NULL)
		fragi_err_fail(err, FRAGI_FAILURE_LIBRARY_MISSING, NULL, -ENOENT,
			       "%s \"%.80s\" cannot be had: %s", what, name, broken->error);
	else
		frag_err_set(err, -EINVAL, "unknown %s \"%.80s\"%s", what, name,
			     count == 0 ? "; no library that is loaded has one"
					: fragi_advise(advice, sizeof(advice), name, "valid", names,
						       count));
}

const struct frag_op_type *fragi_registry_op(struct fragi_registry *registry, const char *name,
					     struct frag_err *err)
{
	const struct frag_op_type *type =
		look_up(registry, &registry->ops, &registry->built_in_ops, fragi_alias(name));
	const char *names[NAMES_MAX];
	size_t count = 0;

	if (type != NULL)
		return type;
	for (size_t i = 0; i < registry->library_count; i++)
		for (size_t j = 0; j < registry->libraries[i]->op_count && count < NAMES_MAX; j++)
			names[count++] = registry->libraries[i]->ops[j]->name;
	refuse_name(registry, "operator type", name, names, count, err);
	return NULL;
}

const struct frag_composer *fragi_registry_composer(struct fragi_registry *registry,
						    const char *name, struct frag_err *err)
{
	const struct frag_composer *composer =
		look_up(registry, &registry->composers, &registry->built_in_composers, name);
	const char *names[NAMES_MAX];
	size_t count = 0;

	if (composer != NULL)
		return composer;
	for (size_t i = 0; i < registry->library_count; i++)
		for (size_t j = 0; j < registry->libraries[i]->composer_count && count < NAMES_MAX;
		     j++)
			names[count++] = registry->libraries[i]->composers[j].name;
	refuse_name(registry, "composer", name, names, count, err);
	return NULL;
}

const struct fragi_library *const *fragi_registry_libraries(struct fragi_registry *registry,
							    bool built_in, size_t *out_count)
{
	if (built_in)
		open_built_in(registry, NULL);
	*out_count = registry->library_count;
	return (const struct fragi_library *const *)registry->libraries;
}
