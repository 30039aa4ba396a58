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
