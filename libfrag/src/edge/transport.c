// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <edge/transport.h>

#define MODULE_FOLDER "frag/modules"

/*
 * libfrag lies in LIB, its modules in LIB/frag/modules: in the build tree as where it is installed.
 */
static int module_path(const char *name, char *out, size_t size)
{
	char file[PATH_MAX];
	Dl_info info;
	char *slash;
	int n;

	if (dladdr((const void *)(uintptr_t)&fragi_transport_open, &info) == 0 ||
	    info.dli_fname == NULL || realpath(info.dli_fname, file) == NULL)
		return -ENOENT;
	slash = strrchr(file, '/');
	if (slash == NULL)
		return -ENOENT;
	n = snprintf(out, size, "%.*s/" MODULE_FOLDER "/%s.so", (int)(slash - file), file, name);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static bool name_is_sound(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= 32 && name[n] == '\0';
}

int fragi_transport_open(const char *name, const struct fragi_transport_ops **out_ops,
			 struct frag_err *err)
{
	const struct fragi_transport_ops *ops;
	char path[PATH_MAX];
	const char *why;
	void *handle;

	if (!name_is_sound(name))
		return frag_err_set(err, -ENOENT,
				    "there is no transport module of the name \"%.40s\"", name);
	if (module_path(name, path, sizeof(path)) < 0)
		return frag_err_set(
			err, -ENOENT,
			"cannot tell where libfrag lies, so the transport module %s cannot be found beside it; reinstall frag",
			name);
	if (access(path, F_OK) < 0)
		return frag_err_set(
			err, -ENOENT,
			"the transport module %s is not there (%s): this frag was built without it; install frag with it, or run the application in one process",
			name, path);
	/* Never closed: UCX leaves threads and handlers behind that its code must outlive. */
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (handle == NULL) {
		why = dlerror();
		return frag_err_set(
			err, -ENOENT,
			"cannot open the transport module %s: %s; install what is missing", name,
			why != NULL ? why : "unknown error");
	}
	ops = dlsym(handle, FRAGI_TRANSPORT_SYMBOL);
	if (ops == NULL || ops->struct_size != sizeof(*ops) || strcmp(ops->name, name) != 0) {
		dlclose(handle);
		return frag_err_set(
			err, -ENOENT,
			"%s is not a transport module of this version of frag; reinstall frag",
			path);
	}
	*out_ops = ops;
	return 0;
}
