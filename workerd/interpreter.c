// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/interpreter.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <text/spec.h>

#define SUFFIX ".py"

static bool is_of_host(const struct fw_host_create *create, const char *fragment)
{
	for (uint32_t i = 0; i < create->fragment_count; i++)
		if (strcmp(create->fragments[i], fragment) == 0)
			return true;
	return false;
}

/*
 * Finds the first such module of the host's fragments, in arena; NULL: none. What is no graph has
 * none: the host says so. Returns 0 or -ENOMEM.
 */
static int find_module(const struct fw_host_create *create, struct fragi_arena *arena,
		       const char **out_module)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	struct fragi_source source;
	const char *module;
	int r;

	*out_module = NULL;
	if (create->source_bytes == 0 ||
	    memmem(create->source, create->source_bytes, SUFFIX, strlen(SUFFIX)) == NULL)
		return 0;
	r = fragi_source_unpack(create->source, create->source_bytes, &source);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = fragi_spec_parse(&source.source, &diag, &spec);
	for (size_t i = 0; r == 0 && *out_module == NULL && i < spec->fragment_count; i++) {
		module = is_of_host(create, spec->fragments[i].name)
				 ? fragi_spec_python_module(&spec->fragments[i])
				 : NULL;
		if (module == NULL)
			continue;
		*out_module = fragi_arena_strdup(arena, module);
		r = *out_module != NULL ? 0 : -ENOMEM;
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	fragi_source_fini(&source);
	return r == -ENOMEM ? r : 0;
}

bool wrk_interpreter_find(const char *name, char out_path[PATH_MAX])
{
	const char *folder = getenv("PATH");

	if (strchr(name, '/') != NULL) {
		snprintf(out_path, PATH_MAX, "%s", name);
		return access(name, X_OK) == 0;
	}
	while (folder != NULL) {
		size_t length = strcspn(folder, ":");

		snprintf(out_path, PATH_MAX, "%.*s/%s", (int)length, folder, name);
		if (length > 0 && access(out_path, X_OK) == 0)
			return true;
		folder = folder[length] == ':' ? folder + length + 1 : NULL;
	}
	return false;
}

int wrk_interpreter_choose(const struct fw_host_create *create, const char *python,
			   struct fragi_arena *arena, char *const **out_arguments,
			   struct frag_err *err)
{
	static const char *const rest[] = {"-m", "frag.host", NULL};
	const char *module;
	const char **arguments;
	char program[PATH_MAX];

	if (find_module(create, arena, &module) < 0)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	if (module == NULL) {
		*out_arguments = NULL;
		return 0;
	}
	if (python == NULL)
		return frag_err_set(
			err, -ENOENT,
			"cannot start a host for %.200s: this worker has no Python; start it with --python python3, of an environment where frag is installed",
			module);
	if (!wrk_interpreter_find(python, program))
		return frag_err_set(
			err, -ENOENT,
			"cannot start a host for %.200s: there is no program %.200s; install it, or name another one (--python, FRAG_PYTHON)",
			module, python);
	arguments = fragi_arena_alloc(arena, (1 + FRAG_COUNT_OF(rest)) * sizeof(*arguments));
	if (arguments != NULL)
		arguments[0] = fragi_arena_strdup(arena, program);
	if (arguments == NULL || arguments[0] == NULL)
		return frag_err_set(err, -ENOMEM, "cannot start a host: out of memory");
	memcpy(arguments + 1, rest, sizeof(rest));
	*out_arguments = (char *const *)(uintptr_t)arguments;
	return 0;
}
