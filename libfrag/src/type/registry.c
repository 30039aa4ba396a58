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
#include <type/search_path.h>

#define NAMES_MAX 512

struct built_in {
	const char *path; /* real */
	bool tried;
};

/* What a library lists under names of its own. */
enum kind { OP, CONDITION, COMPOSER, KINDS };
static const char *const kind_names[] = {"operator type", "condition type", "composer"};

struct entry {
	const char *name;
	const void *table;
};

struct fragi_registry {
	struct fragi_arena arena;
	struct fragi_search_path search;
	struct fragi_library **libraries; /* open, or tried */
	size_t library_count, library_capacity;
	struct fragi_strmap names[KINDS][2]; /* [1]: of built-in libraries; name: its table */
	struct built_in *built_in;           /* by path */
	size_t built_in_count;
};

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
	r = fragi_search_path_init(&registry->search, config);
	if (r == 0)
		r = built_in_list(registry);
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
	for (int kind = 0; kind < KINDS; kind++) {
		fragi_strmap_fini(&registry->names[kind][0]);
		fragi_strmap_fini(&registry->names[kind][1]);
	}
	fragi_free(registry->libraries);
	fragi_free(registry->built_in);
	fragi_search_path_fini(&registry->search);
	fragi_arena_fini(&registry->arena);
	fragi_free(registry);
}

static size_t entry_count(const struct fragi_library *library, enum kind kind)
{
	return kind == OP          ? library->op_count
	       : kind == CONDITION ? library->condition_count
				   : library->composer_count;
}

static struct entry entry_at(const struct fragi_library *library, enum kind kind, size_t i)
{
	if (kind == OP)
		return (struct entry){library->ops[i]->name, library->ops[i]};
	if (kind == CONDITION)
		return (struct entry){library->conditions[i]->name, library->conditions[i]};
	return (struct entry){library->composers[i].name, &library->composers[i]};
}

/* Which library a table came from. */
static const char *owner_of(const struct fragi_registry *registry, enum kind kind,
			    const void *table)
{
	for (size_t i = 0; i < registry->library_count; i++)
		for (size_t j = 0; j < entry_count(registry->libraries[i], kind); j++)
			if (entry_at(registry->libraries[i], kind, j).table == table)
				return registry->libraries[i]->file;
	return "another library";
}

/* Whether the library's names of one kind are free. Returns 0, or -EEXIST with a sentence. */
static int names_check(const struct fragi_registry *registry, const struct fragi_library *library,
		       enum kind kind, struct frag_err *err)
{
	const char *name;
	const void *taken;

	for (size_t i = 0; i < entry_count(library, kind); i++) {
		name = entry_at(library, kind, i).name;
		taken = fragi_strmap_get(&registry->names[kind][library->built_in], name);
		if (taken != NULL)
			return frag_err_set(err, -EEXIST,
					    "library %s: %s \"%s\" is already that of %s",
					    library->file, kind_names[kind], name,
					    owner_of(registry, kind, taken));
	}
	return 0;
}

static int names_put(struct fragi_registry *registry, const struct fragi_library *library,
		     enum kind kind)
{
	struct fragi_strmap *names = &registry->names[kind][library->built_in];
	struct entry entry;
	int r = 0;

	for (size_t i = 0; r == 0 && i < entry_count(library, kind); i++) {
		entry = entry_at(library, kind, i);
		r = fragi_strmap_put(names, entry.name, (void *)(uintptr_t)entry.table);
	}
	return r;
}

/* Puts the library's names into the maps; nothing when one is taken. */
static int library_register(struct fragi_registry *registry, const struct fragi_library *library,
			    struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	int r = 0;

	for (enum kind kind = 0; kind < KINDS; kind++) {
		r = names_check(registry, library, kind, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; r == 0 && i < library->type_count; i++)
		r = frag_type_register(library->types[i], &cause);
	for (enum kind kind = 0; r == 0 && kind < KINDS; kind++)
		r = names_put(registry, library, kind);
	if (r < 0)
		return frag_err_set(err, r, "library %s: %s", library->file,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
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
		library->op_count = library->condition_count = library->composer_count = 0;
		library->error_code = r;
		library->error = fragi_arena_strdup(
			&registry->arena, cause.text[0] != '\0' ? cause.text : frag_strerror(r));
		if (library->error == NULL)
			library->error = "memory is short";
		return frag_err_set(err, r, "%s", library->error);
	}
	log_debug(NULL,
		  "opened %s: plugin %s %s, %zu operator types, %zu condition types, %zu composers",
		  real, library->name, library->version, library->op_count,
		  library->condition_count, library->composer_count);
	return 0;
}

int fragi_registry_load(struct fragi_registry *registry, const char *library, struct frag_err *err)
{
	char real[PATH_MAX];
	struct frag_err cause = FRAG_ERR_INIT;
	int r = fragi_search_path_find(&registry->search, library, real, &cause);

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

static const void *look_up(struct fragi_registry *registry, enum kind kind, const char *name)
{
	const struct fragi_strmap *own = &registry->names[kind][0],
				  *built_in = &registry->names[kind][1];
	const void *found = fragi_strmap_get(own, name);

	if (found == NULL)
		found = fragi_strmap_get(built_in, name);
	if (found != NULL)
		return found;
	open_built_in(registry, name);
	return fragi_strmap_get(built_in, name);
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

static void refuse_name(struct fragi_registry *registry, enum kind kind, const char *name,
			struct frag_err *err)
{
	const struct fragi_library *broken;
	const char *names[NAMES_MAX];
	size_t count = 0;
	char advice[600];

	open_built_in(registry, NULL); /* for the names that are near */
	broken = broken_built_in(registry, fragi_alias(name));
	for (size_t i = 0; i < registry->library_count; i++)
		for (size_t j = 0;
		     j < entry_count(registry->libraries[i], kind) && count < NAMES_MAX; j++)
			names[count++] = entry_at(registry->libraries[i], kind, j).name;
	if (broken != NULL)
		fragi_err_fail(err, FRAGI_FAILURE_LIBRARY_MISSING, NULL, -ENOENT,
			       "%s \"%.80s\" cannot be had: %s", kind_names[kind], name,
			       broken->error);
	else
		frag_err_set(err, -EINVAL, "unknown %s \"%.80s\"%s", kind_names[kind], name,
			     count == 0 ? "; no library that is loaded has one"
					: fragi_advise(advice, sizeof(advice), name, "valid", names,
						       count));
}

const struct frag_op_type *fragi_registry_op(struct fragi_registry *registry, const char *name,
					     struct frag_err *err)
{
	const struct frag_op_type *type = look_up(registry, OP, fragi_alias(name));

	if (type == NULL)
		refuse_name(registry, OP, name, err);
	return type;
}

const struct frag_composer *fragi_registry_composer(struct fragi_registry *registry,
						    const char *name, struct frag_err *err)
{
	const struct frag_composer *composer = look_up(registry, COMPOSER, name);

	if (composer == NULL)
		refuse_name(registry, COMPOSER, name, err);
	return composer;
}

const struct frag_condition_type *fragi_registry_condition(struct fragi_registry *registry,
							   const char *name, bool built_in)
{
	return built_in ? look_up(registry, CONDITION, name)
			: fragi_strmap_get(&registry->names[CONDITION][0], name);
}

const struct fragi_library *const *fragi_registry_libraries(struct fragi_registry *registry,
							    bool built_in, size_t *out_count)
{
	if (built_in)
		open_built_in(registry, NULL);
	*out_count = registry->library_count;
	return (const struct fragi_library *const *)registry->libraries;
}
