// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "plugin"
#include <base/alloc.h>
#include <base/failure.h>
#include <base/log.h>
#include <base/units.h>
#include <data/type.h>
#include <text/holoscan.h>
#include <type/library.h>
#include <type/pinned.h>
#include <type/registry_state.h>

static const char *const kind_names[] = {"operator type", "condition type", "resource type",
					 "data logger",   "composer",       "subgraph"};

struct entry {
	const char *name;
	const void *table;
};

static int compare_built_in(const void *a, const void *b)
{
	return strcmp(((const struct fragi_built_in_library *)a)->path,
		      ((const struct fragi_built_in_library *)b)->path);
}

/* Lists the built-in libraries without opening them. A missing folder has none. */
static int built_in_list(struct fragi_registry *registry)
{
	char text[PATH_MAX + 32], real[PATH_MAX];
	DIR *dir;
	struct dirent *entry;
	struct fragi_built_in_library *wider;
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
	registry->root = registry;
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

int fragi_registry_create_within(struct fragi_registry *outer, struct fragi_registry **out_registry)
{
	struct fragi_registry *registry = fragi_calloc(1, sizeof(*registry));

	if (registry == NULL)
		return -ENOMEM;
	registry->root = outer->root;
	*out_registry = registry;
	return 0;
}

void fragi_registry_destroy(struct fragi_registry *registry)
{
	if (registry == NULL)
		return;
	for (int kind = 0; kind < FRAGI_ENTRY_KINDS; kind++) {
		fragi_strmap_fini(&registry->names[kind]);
		fragi_strmap_fini(&registry->built_in_names[kind]);
	}
	fragi_free(registry->used.items);
	if (registry->root == registry) {
		fragi_free(registry->opened.items);
		fragi_free(registry->built_in);
		fragi_search_path_fini(&registry->search);
		fragi_arena_fini(&registry->arena);
	}
	fragi_free(registry);
}

static int libraries_add(struct fragi_libraries *libraries, struct fragi_library *library)
{
	size_t capacity = libraries->capacity == 0 ? 8 : libraries->capacity * 2;
	struct fragi_library **wider;

	if (libraries->count == libraries->capacity) {
		wider = fragi_realloc(libraries->items, capacity * sizeof(struct fragi_library *));
		if (wider == NULL)
			return -ENOMEM;
		libraries->items = wider;
		libraries->capacity = capacity;
	}
	libraries->items[libraries->count++] = library;
	return 0;
}

static bool libraries_have(const struct fragi_libraries *libraries,
			   const struct fragi_library *library)
{
	for (size_t i = 0; i < libraries->count; i++)
		if (libraries->items[i] == library)
			return true;
	return false;
}

static size_t entry_count(const struct fragi_library *library, enum fragi_entry_kind kind)
{
	const size_t counts[] = {library->op_count,       library->condition_count,
				 library->resource_count, library->data_logger_count,
				 library->composer_count, library->subgraph_count};

	return counts[kind];
}

static struct entry entry_at(const struct fragi_library *library, enum fragi_entry_kind kind,
			     size_t i)
{
	assert(i < entry_count(library, kind));
	if (kind == FRAGI_ENTRY_OP)
		return (struct entry){library->ops[i]->name, library->ops[i]};
	if (kind == FRAGI_ENTRY_CONDITION)
		return (struct entry){library->conditions[i]->name, library->conditions[i]};
	if (kind == FRAGI_ENTRY_RESOURCE)
		return (struct entry){library->resources[i]->name, library->resources[i]};
	if (kind == FRAGI_ENTRY_DATA_LOGGER)
		return (struct entry){library->data_loggers[i]->name, library->data_loggers[i]};
	if (kind == FRAGI_ENTRY_COMPOSER)
		return (struct entry){library->composers[i].name, &library->composers[i]};
	return (struct entry){library->subgraphs[i].name, &library->subgraphs[i]};
}

/* Finds the library that a table came from. */
static const char *owner_of(const struct fragi_registry *registry, enum fragi_entry_kind kind,
			    const void *table)
{
	const struct fragi_libraries *opened = &registry->root->opened;

	for (size_t i = 0; i < opened->count; i++)
		for (size_t j = 0; j < entry_count(opened->items[i], kind); j++)
			if (entry_at(opened->items[i], kind, j).table == table)
				return opened->items[i]->file;
	return "another library";
}

static struct fragi_strmap *names_of(struct fragi_registry *registry, enum fragi_entry_kind kind,
				     bool built_in)
{
	return built_in ? &registry->built_in_names[kind] : &registry->names[kind];
}

/* Checks that the library's names of one kind are free. Returns 0, or -EEXIST with a sentence. */
static int names_check(struct fragi_registry *registry, const struct fragi_library *library,
		       enum fragi_entry_kind kind, struct frag_err *err)
{
	const char *name;
	const void *taken;

	for (size_t i = 0; i < entry_count(library, kind); i++) {
		name = entry_at(library, kind, i).name;
		taken = fragi_strmap_get(names_of(registry, kind, library->built_in), name);
		if (taken != NULL)
			return frag_err_set(err, -EEXIST,
					    "library %s: %s \"%s\" is already that of %s",
					    library->file, kind_names[kind], name,
					    owner_of(registry, kind, taken));
	}
	return 0;
}

static int names_put(struct fragi_registry *registry, const struct fragi_library *library,
		     enum fragi_entry_kind kind)
{
	struct fragi_strmap *names = names_of(registry, kind, library->built_in);
	struct entry entry;
	int r = 0;

	for (size_t i = 0; r == 0 && i < entry_count(library, kind); i++) {
		entry = entry_at(library, kind, i);
		r = fragi_strmap_put(names, entry.name, (void *)(uintptr_t)entry.table);
	}
	return r;
}

/* From now on the library's names count in the registry; none of them when one is taken. */
static int library_use(struct fragi_registry *registry, struct fragi_library *library,
		       struct frag_err *err)
{
	int r = 0;

	if (libraries_have(&registry->used, library))
		return 0;
	for (enum fragi_entry_kind kind = 0; kind < FRAGI_ENTRY_KINDS; kind++) {
		r = names_check(registry, library, kind, err);
		if (r < 0)
			return r;
	}
	if (!library->built_in)
		r = libraries_add(&registry->used, library);
	for (enum fragi_entry_kind kind = 0; r == 0 && kind < FRAGI_ENTRY_KINDS; kind++)
		r = names_put(registry, library, kind);
	return r < 0 ? frag_err_set(err, r, "library %s: out of memory", library->file) : 0;
}

bool fragi_registry_is_built_in(const struct fragi_registry *root, const char *real)
{
	for (size_t i = 0; i < root->built_in_count; i++)
		if (strcmp(root->built_in[i].path, real) == 0)
			return true;
	return false;
}

/* Makes room for one library. */
static struct fragi_library *library_add(struct fragi_registry *root, const char *real,
					 const char *sha256)
{
	struct fragi_library *library = fragi_arena_alloc(&root->arena, sizeof(*library));

	assert(strchr(real, '/') != NULL && root->root == root);
	if (library == NULL)
		return NULL;
	library->path = fragi_arena_strdup(&root->arena, real);
	library->sha256 = fragi_arena_strdup(&root->arena, sha256);
	if (library->path == NULL || (library->sha256 == NULL && sha256 != NULL) ||
	    libraries_add(&root->opened, library) < 0)
		return NULL;
	library->file = strrchr(library->path, '/') + 1;
	library->built_in = fragi_registry_is_built_in(root, real);
	return library;
}

/* What was wrong with a library has the same result again. */
static int library_refuse(struct fragi_registry *root, struct fragi_library *library, int r,
			  const struct frag_err *cause)
{
	library->op_count = library->condition_count = library->resource_count = 0;
	library->data_logger_count = library->composer_count = library->subgraph_count = 0;
	library->error_code = r;
	library->error = fragi_arena_strdup(
		&root->arena, cause->text[0] != '\0' ? cause->text : frag_strerror(r));
	if (library->error == NULL)
		library->error = "out of memory";
	return r;
}

/*
 * Opens the library at a real path (its table, when there is one already), unless that was tried
 * before. Returns 0; the library's error with its sentence; -ENOMEM.
 */
static int library_open(struct fragi_registry *root, const char *real, const char *sha256,
			const struct frag_plugin *table, struct fragi_library **out_library,
			struct frag_err *err)
{
	struct fragi_library *library = NULL;
	struct frag_err cause = FRAG_ERR_INIT;
	int r;

	for (size_t i = 0; i < root->opened.count && library == NULL; i++)
		if (strcmp(root->opened.items[i]->path, real) == 0)
			library = root->opened.items[i];
	if (library == NULL) {
		library = library_add(root, real, sha256);
		if (library == NULL)
			return frag_err_set(err, -ENOMEM, "out of memory for library %.200s", real);
		r = table != NULL ? fragi_library_read(&root->arena, library, table, &cause)
				  : fragi_library_open(&root->arena, library, &cause);
		if (r == 0)
			r = fragi_library_register_types(library, &cause);
		if (r < 0)
			library_refuse(root, library, r, &cause);
		else
			log_debug(
				NULL,
				"opened %s: plugin %s %s, %zu operator types, %zu condition types, %zu composers",
				real, library->name, library->version, library->op_count,
				library->condition_count, library->composer_count);
	}
	*out_library = library;
	if (library->error != NULL)
		return frag_err_set(err, library->error_code, "%s", library->error);
	return sha256 != NULL ? fragi_pinned_check(library, sha256, err) : 0;
}

int fragi_registry_use(struct fragi_registry *registry, const char *real, const char *sha256,
		       const struct frag_plugin *table, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct fragi_library *library = NULL;
	int r = library_open(registry->root, real, sha256, table, &library, &cause);

	assert((r < 0 || library != NULL) && "what was opened is there");
	if (r == 0) {
		r = library_use(registry, library, &cause);
		if (r < 0 && registry->root == registry) /* nobody else uses it */
			library_refuse(registry, library, r, &cause);
	}
	return r < 0 ? frag_err_set(err, r, "%s", cause.text) : 0;
}

int fragi_registry_load_pinned(struct fragi_registry *registry, const char *library,
			       const char *sha256, struct frag_err *err)
{
	char real[PATH_MAX];
	struct frag_err cause = FRAG_ERR_INIT;
	int r = fragi_search_path_find(&registry->root->search, library, real, &cause);

	if (r == 0)
		r = fragi_registry_use(registry, real, sha256, NULL, &cause);
	if (r == 0)
		return 0;
	return fragi_err_fail(err,
			      r == -ENOENT    ? FRAGI_FAILURE_LIBRARY_MISSING
			      : r == -EBADMSG ? FRAGI_FAILURE_LIBRARY_DIFFERS
			      : r == -ENOMEM  ? FRAGI_FAILURE_OUT_OF_MEMORY
					      : FRAGI_FAILURE_LIBRARY_REFUSED,
			      NULL, r, "%s", cause.text);
}

int fragi_registry_add(struct fragi_registry *registry, const char *name,
		       const struct frag_plugin *plugin, struct frag_err *err)
{
	char path[PATH_MAX];

	if (!fragi_name_is_valid(name))
		return frag_err_set(err, -EINVAL, "\"%.80s\" is not a valid name of a library",
				    name);
	snprintf(path, sizeof(path), "linked/%s", name);
	return fragi_registry_use(registry, path, NULL, plugin, err);
}

/* Opens the built-in libraries that contain name (NULL: all) and were not tried yet. */
static void open_built_in(struct fragi_registry *root, const char *name)
{
	for (size_t i = 0; i < root->built_in_count; i++) {
		if (root->built_in[i].tried ||
		    (name != NULL && !fragi_library_mentions(root->built_in[i].path, name)))
			continue;
		root->built_in[i].tried = true;
		fragi_registry_use(root, root->built_in[i].path, NULL, NULL, NULL);
	}
}

/* Of the libraries that were loaded into this registry, or linked. */
static const void *look_up_loaded(const struct fragi_registry *registry, enum fragi_entry_kind kind,
				  const char *name)
{
	const void *found = fragi_strmap_get(&registry->names[kind], name);

	return found != NULL ? found : fragi_strmap_get(&registry->root->names[kind], name);
}

const void *fragi_registry_look_up(struct fragi_registry *registry, enum fragi_entry_kind kind,
				   const char *name)
{
	const struct fragi_strmap *built_in = &registry->root->built_in_names[kind];
	const void *found = look_up_loaded(registry, kind, name);

	if (found == NULL)
		found = fragi_strmap_get(built_in, name);
	if (found != NULL)
		return found;
	open_built_in(registry->root, name);
	return fragi_strmap_get(built_in, name);
}

static bool is_visible(const struct fragi_registry *registry, const struct fragi_library *library)
{
	return library->built_in || libraries_have(&registry->used, library) ||
	       libraries_have(&registry->root->used, library);
}

/* Finds the built-in library that contains the name but could not be opened. */
static const struct fragi_library *broken_built_in(const struct fragi_registry *root,
						   const char *name)
{
	const struct fragi_libraries *opened = &root->opened;

	for (size_t i = 0; i < opened->count; i++)
		if (opened->items[i]->built_in && opened->items[i]->error != NULL &&
		    fragi_library_mentions(opened->items[i]->path, name))
			return opened->items[i];
	return NULL;
}

size_t fragi_registry_names(struct fragi_registry *registry, enum fragi_entry_kind kind,
			    const char **names, size_t count)
{
	const struct fragi_libraries *opened = &registry->root->opened;

	open_built_in(registry->root, NULL);
	for (size_t i = 0; i < opened->count; i++)
		for (size_t j = 0;
		     is_visible(registry, opened->items[i]) &&
		     j < entry_count(opened->items[i], kind) && count < FRAGI_ENTRY_NAMES_MAX;
		     j++)
			names[count++] = entry_at(opened->items[i], kind, j).name;
	return count;
}

static void refuse_name(struct fragi_registry *registry, enum fragi_entry_kind kind,
			const char *name, struct frag_err *err)
{
	const char *names[FRAGI_ENTRY_NAMES_MAX];
	size_t count = fragi_registry_names(registry, kind, names, 0);
	const struct fragi_library *broken;
	char advice[600];

	broken = broken_built_in(registry->root, fragi_alias(FRAGI_HOLOSCAN_OPERATOR, name));
	if (broken != NULL)
		fragi_err_fail(err, FRAGI_FAILURE_LIBRARY_MISSING, NULL, -ENOENT,
			       "%s \"%.80s\" is not available: %s", kind_names[kind], name,
			       broken->error);
	else if (kind == FRAGI_ENTRY_OP)
		frag_err_set(err, -EINVAL, "%s",
			     fragi_refuse_type(advice, sizeof(advice), FRAGI_HOLOSCAN_OPERATOR,
					       name, names, count));
	else
		frag_err_set(err, -EINVAL, "unknown %s \"%.80s\"%s", kind_names[kind], name,
			     count == 0 ? "; no library that is loaded has one"
					: fragi_advise(advice, sizeof(advice), name, "valid", names,
						       count));
}

static const void *look_up_or_refuse(struct fragi_registry *registry, enum fragi_entry_kind kind,
				     const char *name, struct frag_err *err)
{
	const void *table = fragi_registry_look_up(
		registry, kind,
		kind == FRAGI_ENTRY_OP ? fragi_alias(FRAGI_HOLOSCAN_OPERATOR, name) : name);

	if (table == NULL)
		refuse_name(registry, kind, name, err);
	return table;
}

const struct frag_op_type *fragi_registry_op(struct fragi_registry *registry, const char *name,
					     struct frag_err *err)
{
	return look_up_or_refuse(registry, FRAGI_ENTRY_OP, name, err);
}

const struct frag_composer *fragi_registry_composer(struct fragi_registry *registry,
						    const char *name, struct frag_err *err)
{
	return look_up_or_refuse(registry, FRAGI_ENTRY_COMPOSER, name, err);
}

const struct frag_subgraph_type *fragi_registry_subgraph(struct fragi_registry *registry,
							 const char *name, struct frag_err *err)
{
	return look_up_or_refuse(registry, FRAGI_ENTRY_SUBGRAPH, name, err);
}

const struct frag_condition_type *fragi_registry_condition(struct fragi_registry *registry,
							   const char *name, bool built_in)
{
	return built_in ? fragi_registry_look_up(registry, FRAGI_ENTRY_CONDITION, name)
			: look_up_loaded(registry, FRAGI_ENTRY_CONDITION, name);
}

const struct frag_resource_type *fragi_registry_resource(struct fragi_registry *registry,
							 const char *name, bool built_in)
{
	return built_in ? fragi_registry_look_up(registry, FRAGI_ENTRY_RESOURCE, name)
			: look_up_loaded(registry, FRAGI_ENTRY_RESOURCE, name);
}

const struct frag_data_logger_type *fragi_registry_data_logger(struct fragi_registry *registry,
							       const char *name, bool built_in)
{
	return built_in ? fragi_registry_look_up(registry, FRAGI_ENTRY_DATA_LOGGER, name)
			: look_up_loaded(registry, FRAGI_ENTRY_DATA_LOGGER, name);
}

/* Whether the library lists the type, or the one that it is an array or a map of. */
static bool has_type(const struct fragi_library *library, const char *name)
{
	size_t stem = fragi_type_stem_length(name);

	for (size_t i = 0; library->error == NULL && i < library->type_count; i++)
		if (strlen(library->types[i]->name) == stem &&
		    memcmp(library->types[i]->name, name, stem) == 0)
			return true;
	return false;
}

const struct frag_type *fragi_registry_type(struct fragi_registry *registry, const char *name)
{
	const struct fragi_libraries *opened = &registry->root->opened;
	const struct frag_type *type = frag_type_find(name);

	if (type == NULL) {
		open_built_in(registry->root, name);
		type = frag_type_find(name);
	}
	for (size_t i = 0; type != NULL && i < opened->count; i++)
		if (has_type(opened->items[i], name) && !is_visible(registry, opened->items[i]))
			return NULL;
	return type;
}

const struct fragi_library *const *fragi_registry_libraries(struct fragi_registry *registry,
							    bool built_in, size_t *out_count)
{
	const struct fragi_libraries *libraries =
		registry->root == registry ? &registry->opened : &registry->used;

	if (built_in)
		open_built_in(registry->root, NULL);
	*out_count = libraries->count;
	return (const struct fragi_library *const *)libraries->items;
}
