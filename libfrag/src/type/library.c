// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/call.h>
#include <base/units.h>
#include <type/elf.h>
#include <type/library.h>
#include <type/linked.h>
#include <type/pinned.h>

#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define PLUGIN_SYMBOL "frag_plugin_v" STRING(FRAG_ABI_MAJOR)
#define MAJOR_PROBED_MAX 16
#define ENTRIES_MAX 4096u

/*
 * Returns the symbol if the object itself defines it; dlsym also finds symbols of its dependencies.
 */
static const void *own_symbol(void *handle, const char *symbol)
{
	struct link_map *map = NULL, *found = NULL;
	void *address = dlsym(handle, symbol);
	Dl_info info;

	if (address == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 ||
	    dladdr1(address, &info, (void **)&found, RTLD_DL_LINKMAP) == 0)
		return NULL;
	return found == map ? address : NULL;
}

static int refuse_major(struct frag_err *err, const char *file, unsigned int major)
{
	return frag_err_set(err, -EPROTO,
			    "library %s was built for plugin ABI %u, this is frag " FRAG_VERSION
			    " with plugin ABI %d; build it again with this frag's headers",
			    file, major, FRAG_ABI_MAJOR);
}

/* Removes the name of the library with which dlerror's text begins. */
static const char *open_error(const char *path)
{
	const char *text = dlerror();
	size_t length = strlen(path);

	if (text == NULL)
		return "the dynamic linker does not say why";
	if (strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
		return text + length + 2;
	return text;
}

/* Opens the object at path, which is the library's own or leads to a copy of it. */
static int object_open(const struct fragi_library *library, const char *path, void **out_handle,
		       struct frag_err *err)
{
	const char *why, *ending = strrchr(library->file, '.');
	int r;

	if (ending != NULL && strcmp(ending, ".py") == 0)
		return frag_err_set(
			err, -ENOENT,
			"library %s is a module in Python, which only a Python program or a host in Python can load; leave --in-process out",
			library->file);
	r = fragi_elf_check(path, library->file, err);
	if (r < 0)
		return r;
	fragi_call_begin(library->path, FRAGI_CALL_LOAD, 0);
	*out_handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	fragi_call_end();
	if (*out_handle != NULL)
		return 0;
	why = open_error(path);
	return frag_err_set(err, -ENOENT, "library %s cannot be opened: %.600s; %s", library->file,
			    why,
			    strstr(why, "undefined symbol") != NULL
				    ? "link it with the library that defines this symbol"
			    : strstr(why, "version `GLIBC_") != NULL
				    ? "build it on a system that is no newer than this one"
				    : "install what it needs");
}

/*
 * Loads the verified copy. The linker knows it as /proc/self/fd/N, which means nothing in a
 * debugger, in a core file or to a caller of dladdr, so its entry in the linker's list gets the
 * real path. The descriptor stays open, because the linker takes a second object of the same number
 * for the first one. If something closed it nevertheless, the object that was opened is the first
 * one, and has another name than was asked for.
 */
static int pinned_load(const struct fragi_library *library, void **out_handle, struct frag_err *err)
{
	char path[32], *name = strdup(library->path);
	struct link_map *map = NULL;
	int fd, r = name == NULL ? -ENOMEM : 0;

	if (r == 0)
		r = fragi_pinned_open(library->path, library->file, library->sha256, &fd, err);
	if (r < 0)
		goto err_name;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = object_open(library, path, out_handle, err);
	if (r < 0)
		goto err_fd;
	if (dlinfo(*out_handle, RTLD_DI_LINKMAP, &map) != 0 || strcmp(map->l_name, path) != 0) {
		r = frag_err_set(
			err, -EBADF,
			"library %s cannot be loaded: something in this process has closed descriptors of frag; let its libraries close only their own",
			library->file);
		goto err_fd;
	}
	map->l_name = name; /* both names last as long as the process */
	return 0;
err_fd:
	close(fd);
err_name:
	free(name);
	return r;
}

/* Opens the library and finds its table; calls none of the table's functions. */
static int plugin_find(struct fragi_library *library, const struct frag_plugin **out_plugin,
		       struct frag_err *err)
{
	const struct frag_plugin *plugin;
	void *handle;
	char symbol[32];
	int r = library->sha256 != NULL ? pinned_load(library, &handle, err)
					: object_open(library, library->path, &handle, err);

	if (r < 0)
		return r;
	plugin = own_symbol(handle, PLUGIN_SYMBOL);
	if (plugin == NULL) {
		for (unsigned int major = 0; major <= MAJOR_PROBED_MAX; major++) {
			snprintf(symbol, sizeof(symbol), "frag_plugin_v%u", major);
			if (own_symbol(handle, symbol) != NULL)
				return refuse_major(err, library->file, major);
		}
		return frag_err_set(err, -ENOENT,
				    "library %s is not a plugin: it has no symbol " PLUGIN_SYMBOL
				    "; define it with FRAG_PLUGIN(...)",
				    library->file);
	}
	*out_plugin = plugin;
	return 0;
}

/* Has the program's own loader make the table. */
static int plugin_load(struct fragi_library *library, const struct frag_loader *loader,
		       const struct frag_plugin **out_plugin, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	int r;

	if (library->sha256 != NULL)
		return frag_err_set(err, -EINVAL,
				    "library %s: sha256 is for shared objects; leave it out",
				    library->file);
	fragi_call_begin(library->path, FRAGI_CALL_LOAD, 0);
	r = loader->load(library->path, out_plugin, &cause);
	fragi_call_end();
	return r < 0 ? frag_err_set(err, r, "library %s cannot be loaded: %s", library->file,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r))
		     : 0;
}

/* Copies the table in this libfrag's size. */
static int plugin_copy(const struct fragi_library *library, const struct frag_plugin *plugin,
		       struct frag_plugin *out_plugin, struct frag_err *err)
{
	if (plugin->struct_size < offsetof(struct frag_plugin, name))
		return frag_err_set(err, -EINVAL,
				    "library %s: its " PLUGIN_SYMBOL
				    " is not filled in; define it with FRAG_PLUGIN(...)",
				    library->file);
	if (plugin->abi_major != FRAG_ABI_MAJOR)
		return refuse_major(err, library->file, plugin->abi_major);
	memset(out_plugin, 0, sizeof(*out_plugin));
	memcpy(out_plugin, plugin,
	       plugin->struct_size < sizeof(*out_plugin) ? plugin->struct_size
							 : sizeof(*out_plugin));
	return 0;
}

static int read_ops(struct fragi_arena *arena, const struct frag_plugin *plugin,
		    struct fragi_library *library, struct frag_err *err)
{
	int r;

	if (plugin->op_count > ENTRIES_MAX || (plugin->ops == NULL && plugin->op_count > 0))
		return frag_err_set(err, -EINVAL, "it lists %u operator types in an invalid table",
				    plugin->op_count);
	library->ops = fragi_arena_alloc(arena, (plugin->op_count + 1) *
							sizeof(const struct frag_op_type *));
	if (library->ops == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plugin->op_count; i++) {
		r = fragi_op_type_copy(arena, plugin->ops[i], &library->ops[i], err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(library->ops[j]->name, library->ops[i]->name) == 0)
				return frag_err_set(err, -EINVAL,
						    "it lists operator type \"%s\" twice",
						    library->ops[i]->name);
		library->op_count = i + 1;
	}
	return 0;
}

static int read_data_loggers(struct fragi_arena *arena, const struct frag_plugin *plugin,
			     struct fragi_library *library, struct frag_err *err)
{
	const struct frag_data_logger_type **types;
	int r;

	if (plugin->data_logger_count > ENTRIES_MAX ||
	    (plugin->data_loggers == NULL && plugin->data_logger_count > 0))
		return frag_err_set(err, -EINVAL, "it lists %u data loggers in an invalid table",
				    plugin->data_logger_count);
	types = fragi_arena_alloc(arena, (plugin->data_logger_count + 1) * sizeof(*types));
	if (types == NULL)
		return -ENOMEM;
	library->data_loggers = types;
	for (uint32_t i = 0; i < plugin->data_logger_count; i++) {
		r = fragi_data_logger_type_copy(arena, plugin->data_loggers[i], &types[i], err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(types[j]->name, types[i]->name) == 0)
				return frag_err_set(err, -EINVAL,
						    "it lists data logger \"%s\" twice",
						    types[i]->name);
		library->data_logger_count = i + 1;
	}
	return 0;
}

static int read_conditions(struct fragi_arena *arena, const struct frag_plugin *plugin,
			   struct fragi_library *library, struct frag_err *err)
{
	int r;

	if (plugin->condition_count > ENTRIES_MAX ||
	    (plugin->conditions == NULL && plugin->condition_count > 0))
		return frag_err_set(err, -EINVAL, "it lists %u condition types in an invalid table",
				    plugin->condition_count);
	library->conditions = fragi_arena_alloc(arena, (plugin->condition_count + 1) *
							       sizeof(*library->conditions));
	if (library->conditions == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plugin->condition_count; i++) {
		r = fragi_condition_type_copy(arena, plugin->conditions[i], &library->conditions[i],
					      err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(library->conditions[j]->name, library->conditions[i]->name) == 0)
				return frag_err_set(err, -EINVAL,
						    "it lists condition type \"%s\" twice",
						    library->conditions[i]->name);
		library->condition_count = i + 1;
	}
	return 0;
}

static int read_resources(struct fragi_arena *arena, const struct frag_plugin *plugin,
			  struct fragi_library *library, struct frag_err *err)
{
	int r;

	if (plugin->resource_count > ENTRIES_MAX ||
	    (plugin->resources == NULL && plugin->resource_count > 0))
		return frag_err_set(err, -EINVAL, "it lists %u resource types in an invalid table",
				    plugin->resource_count);
	library->resources = fragi_arena_alloc(arena, (plugin->resource_count + 1) *
							      sizeof(*library->resources));
	if (library->resources == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plugin->resource_count; i++) {
		r = fragi_resource_type_copy(arena, plugin->resources[i], &library->resources[i],
					     err);
		if (r < 0)
			return r;
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(library->resources[j]->name, library->resources[i]->name) == 0)
				return frag_err_set(err, -EINVAL,
						    "it lists resource type \"%s\" twice",
						    library->resources[i]->name);
		library->resource_count = i + 1;
	}
	return 0;
}

static int read_composers(struct fragi_arena *arena, const struct frag_plugin *plugin,
			  struct fragi_library *library, struct frag_err *err)
{
	size_t size = plugin->composer_size < sizeof(struct frag_composer)
			      ? plugin->composer_size
			      : sizeof(struct frag_composer);
	struct frag_composer *composer;

	if (plugin->composer_count == 0)
		return 0;
	if (plugin->composer_count > ENTRIES_MAX || plugin->composers == NULL ||
	    plugin->composer_size < sizeof(struct frag_composer) || plugin->composer_size % 8 != 0)
		return frag_err_set(err, -EINVAL,
				    "%u composers in an invalid table; set it with FRAG_COMPOSERS",
				    plugin->composer_count);
	library->composers = fragi_arena_alloc(arena, plugin->composer_count * sizeof(*composer));
	if (library->composers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plugin->composer_count; i++) {
		composer = &library->composers[i];
		memcpy(composer,
		       (const char *)plugin->composers + (size_t)i * plugin->composer_size, size);
		if (composer->name == NULL || !fragi_name_is_valid(composer->name))
			return frag_err_set(err, -EINVAL,
					    "\"%.80s\" is not a valid name of a composer",
					    composer->name != NULL ? composer->name : "");
		if (composer->compose == NULL)
			return frag_err_set(err, -EINVAL, "composer \"%s\" has no function",
					    composer->name);
		library->composer_count = i + 1;
	}
	return 0;
}

static int read_subgraphs(struct fragi_arena *arena, const struct frag_plugin *plugin,
			  struct fragi_library *library, struct frag_err *err)
{
	struct frag_subgraph_type *type;

	if (plugin->subgraph_count == 0)
		return 0;
	if (plugin->subgraph_count > ENTRIES_MAX || plugin->subgraphs == NULL ||
	    plugin->subgraph_size < sizeof(*type) || plugin->subgraph_size % 8 != 0)
		return frag_err_set(err, -EINVAL,
				    "%u subgraphs in an invalid table; set it with FRAG_SUBGRAPHS",
				    plugin->subgraph_count);
	library->subgraphs = fragi_arena_alloc(arena, plugin->subgraph_count * sizeof(*type));
	if (library->subgraphs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < plugin->subgraph_count; i++) {
		type = &library->subgraphs[i];
		memcpy(type, (const char *)plugin->subgraphs + (size_t)i * plugin->subgraph_size,
		       sizeof(*type));
		if (type->name == NULL || !fragi_name_is_valid(type->name))
			return frag_err_set(err, -EINVAL,
					    "\"%.80s\" is not a valid name of a subgraph",
					    type->name != NULL ? type->name : "");
		if (type->compose == NULL)
			return frag_err_set(err, -EINVAL, "subgraph \"%s\" has no function",
					    type->name);
		library->subgraph_count = i + 1;
	}
	return 0;
}

int fragi_library_open(struct fragi_arena *arena, struct fragi_library *library,
		       struct frag_err *err)
{
	const struct frag_loader *loader = fragi_linked_loader(library->file);
	const struct frag_plugin *plugin = NULL;
	int r = loader != NULL ? plugin_load(library, loader, &plugin, err)
			       : plugin_find(library, &plugin, err);

	return plugin == NULL ? r : fragi_library_read(arena, library, plugin, err);
}

int fragi_library_read(struct fragi_arena *arena, struct fragi_library *library,
		       const struct frag_plugin *table, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	struct frag_plugin plugin = {0};
	int r = plugin_copy(library, table, &plugin, err);

	if (r < 0)
		return r;
	if (plugin.name == NULL || !fragi_name_is_valid(plugin.name))
		r = frag_err_set(&cause, -EINVAL, "\"%.80s\" is not a valid name of a plugin",
				 plugin.name != NULL ? plugin.name : "");
	if (r == 0)
		r = read_ops(arena, &plugin, library, &cause);
	if (r == 0)
		r = read_conditions(arena, &plugin, library, &cause);
	if (r == 0)
		r = read_resources(arena, &plugin, library, &cause);
	if (r == 0)
		r = read_data_loggers(arena, &plugin, library, &cause);
	if (r == 0)
		r = read_composers(arena, &plugin, library, &cause);
	if (r == 0)
		r = read_subgraphs(arena, &plugin, library, &cause);
	if (r == 0 &&
	    (plugin.type_count > ENTRIES_MAX || (plugin.types == NULL && plugin.type_count > 0)))
		r = frag_err_set(&cause, -EINVAL, "it lists %u types in an invalid table",
				 plugin.type_count);
	if (r < 0)
		return frag_err_set(err, r, "library %s: %s", library->file,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
	library->types = plugin.types;
	library->type_count = plugin.type_count;
	library->name = plugin.name;
	library->version = plugin.version != NULL ? plugin.version : "";
	return 0;
}

int fragi_library_register_types(const struct fragi_library *library, struct frag_err *err)
{
	struct frag_err cause = FRAG_ERR_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < library->type_count; i++)
		r = frag_type_register(library->types[i], &cause);
	return r < 0 ? frag_err_set(err, r, "library %s: %s", library->file,
				    cause.text[0] != '\0' ? cause.text : frag_strerror(r))
		     : 0;
}

bool fragi_library_mentions(const char *path, const char *name)
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
