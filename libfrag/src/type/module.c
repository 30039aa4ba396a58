// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "module"
#include <base/log.h>
#include <type/module.h>

static bool name_is_sound(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= 32 && name[n] == '\0';
}

static int module_path(const char *name, char *out, size_t size)
{
	char file[PATH_MAX];
	Dl_info info;
	char *slash;
	int n;

	if (dladdr((const void *)(uintptr_t)&fragi_module_open, &info) == 0 ||
	    info.dli_fname == NULL || realpath(info.dli_fname, file) == NULL)
		return -ENOENT;
	slash = strrchr(file, '/');
	if (slash == NULL)
		return -ENOENT;
	n = snprintf(out, size, "%.*s/frag/modules/%s.so", (int)(slash - file), file, name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int open_library(const char *folder, const char *name, struct frag_err *err)
{
	char path[PATH_MAX];
	const char *why;
	void *handle, *known;
	int n = snprintf(path, sizeof(path), "%s/%s", folder, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return frag_err_set(err, -ENAMETOOLONG, "the path of the folder %.80s is too long",
				    folder);
	/*
	 * Global, so that libraries which call each other find each other; a symbol is looked up
	 * when it is called, because some come with later ones.
	 */
	handle = dlopen(path, RTLD_LAZY | RTLD_GLOBAL | RTLD_NODELETE);
	if (handle == NULL) {
		why = dlerror();
		return frag_err_set(err, -ENOENT, "%s", why != NULL ? why : "unknown error");
	}
	/* What is known by that name is what the module will be linked with. */
	known = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	if (known == handle)
		return 0;
	return frag_err_set(
		err, -ENOENT,
		known != NULL ? "another %s is loaded already" : "%s is none by its name", name);
}

static int open_libraries(const struct fragi_module *module, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;

	if (module->folder == NULL)
		return 0;
	if (module->folder[0] != '/')
		return frag_err_set(
			err, -ENOENT,
			"the folder \"%.200s\" of the libraries of %s is no absolute path",
			module->folder, module->name);
	for (size_t i = 0; module->libraries[i] != NULL; i++)
		if (open_library(module->folder, module->libraries[i], &why) < 0)
			return frag_err_set(
				err, -ENOENT,
				"cannot open the libraries of %s in %s: %s; name a folder with all of %s, or none",
				module->name, module->folder, why.text, module->name);
	log_debug(NULL, "the libraries of %s are those in %s", module->name, module->folder);
	return 0;
}

int fragi_module_open(const struct fragi_module *module, const void **out_table,
		      struct frag_err *err)
{
	const struct fragi_module_head *head;
	char path[PATH_MAX];
	const char *why;
	void *handle;

	if (!name_is_sound(module->name))
		return frag_err_set(err, -ENOENT, "there is no %s of the name \"%.40s\"",
				    module->kind, module->name);
	if (module_path(module->name, path, sizeof(path)) < 0)
		return frag_err_set(
			err, -ENOENT,
			"cannot tell where libfrag lies, so the %s %s cannot be found beside it; reinstall frag",
			module->kind, module->name);
	if (access(path, F_OK) < 0)
		return frag_err_set(
			err, -ENOENT,
			"the %s %s is not there (%s): this frag was built without it; install frag with it, or %s",
			module->kind, module->name, path, module->advice);
	if (open_libraries(module, err) < 0)
		return -ENOENT;
	/* Never closed: UCX leaves threads and handlers behind that its code must outlive. */
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (handle == NULL) {
		why = dlerror();
		return frag_err_set(
			err, -ENOENT, "cannot open the %s %s: %s; install what is missing",
			module->kind, module->name, why != NULL ? why : "unknown error");
	}
	head = dlsym(handle, module->symbol);
	if (head == NULL || head->struct_size != module->table_size ||
	    strcmp(head->name, module->name) != 0) {
		dlclose(handle);
		return frag_err_set(err, -ENOENT,
				    "%s is not a %s of this version of frag; reinstall frag", path,
				    module->kind);
	}
	*out_table = head;
	return 0;
}
