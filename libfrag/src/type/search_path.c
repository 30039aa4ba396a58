// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/trusted_path.h>
#include <type/search_path.h>

/* Adds `length` bytes of text as a folder, unless they are empty or there already. */
static int folder_add(struct fragi_search_path *search, const char *text, size_t length,
		      bool is_installed)
{
	struct fragi_folder *wider;
	char real[PATH_MAX];

	if (length == 0)
		return 0;
	for (size_t i = 0; i < search->folder_count; i++)
		if (strncmp(search->folders[i].text, text, length) == 0 &&
		    search->folders[i].text[length] == '\0') {
			search->folders[i].is_installed |= is_installed;
			return 0;
		}
	wider = fragi_realloc(search->folders, (search->folder_count + 1) * sizeof(*wider));
	if (wider == NULL)
		return -ENOMEM;
	search->folders = wider;
	wider = &search->folders[search->folder_count];
	wider->real = NULL;
	wider->is_installed = is_installed;
	wider->text = fragi_arena_strndup(&search->arena, text, length);
	if (wider->text == NULL)
		return -ENOMEM;
	if (realpath(wider->text, real) != NULL) {
		wider->real = fragi_arena_strdup(&search->arena, real);
		if (wider->real == NULL)
			return -ENOMEM;
	}
	search->folder_count++;
	return 0;
}

/* Adds the folders of a text DIR:DIR; NULL: none. */
static int folders_add(struct fragi_search_path *search, const char *text)
{
	int r = 0;

	while (r == 0 && text != NULL) {
		size_t length = strcspn(text, ":");

		r = folder_add(search, text, length, false);
		text = text[length] == ':' ? text + length + 1 : NULL;
	}
	return r;
}

int fragi_search_path_init(struct fragi_search_path *search,
			   const struct fragi_registry_config *config)
{
	const char *lib = fragi_library_folder();
	static const char *const own[] = {"/frag/extensions", "/frag/plugins"};
	char text[PATH_MAX + 32];
	int r = 0;

	*search = (struct fragi_search_path){.paths = config->paths,
					     .trusted_only = config->trusted_only};
	for (size_t i = 0;
	     r == 0 && config->library_path != NULL && config->library_path[i] != NULL; i++)
		r = folder_add(search, config->library_path[i], strlen(config->library_path[i]),
			       false);
	if (r == 0)
		r = folders_add(search, config->library_folders);
	if (r == 0)
		r = folders_add(search, getenv("FRAG_LIBRARY_PATH"));
	for (size_t i = 0; r == 0 && i < FRAG_COUNT_OF(own); i++) {
		snprintf(text, sizeof(text), "%s%s", lib, own[i]);
		r = folder_add(search, text, strlen(text), true);
	}
	if (r == 0 && config->app_folder != NULL) {
		search->app_folder = fragi_arena_strdup(&search->arena, config->app_folder);
		if (search->app_folder == NULL)
			r = -ENOMEM;
	}
	return r;
}

void fragi_search_path_fini(struct fragi_search_path *search)
{
	fragi_free(search->folders);
	fragi_arena_fini(&search->arena);
}

/* Lists the folders for an error: "/a, /b". */
static const char *folders_text(const struct fragi_search_path *search, char *out, size_t size)
{
	size_t used = 0;
	int n;

	out[0] = '\0';
	for (size_t i = 0; i < search->folder_count && used < size; i++) {
		n = snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "",
			     search->folders[i].text);
		used += n > 0 ? (size_t)n : 0;
	}
	return out;
}

static bool is_below(const char *real, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(real, folder, length) == 0 && real[length] == '/';
}

static bool is_inside(const struct fragi_search_path *search, const char *real)
{
	for (size_t i = 0; i < search->folder_count; i++)
		if (search->folders[i].real != NULL && is_below(real, search->folders[i].real))
			return true;
	return false;
}

/* Whoever may change what is installed can change frag itself. */
static int check_trust(const struct fragi_search_path *search, const char *library,
		       const char *path, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = search->trusted_only ? fragi_trusted_path_check(path, geteuid(), &why) : 0;

	return r < 0 ? frag_err_set(err, r, "library %.200s: this host %s", library, why.text) : 0;
}

static bool is_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Whether paths are accepted at all, and this one before it is looked at; says so otherwise. */
static int check_path(const struct fragi_search_path *search, const char *library,
		      struct frag_err *err)
{
	if (search->paths == FRAGI_LIBRARY_PATHS_NONE)
		return frag_err_set(
			err, -EINVAL,
			"library %.200s: a path is only accepted from a driver of the same user on the same machine, or below workerd's --app-root; write the name alone and put its folder into --library-path",
			library);
	if (search->paths == FRAGI_LIBRARY_PATHS_IN_APP &&
	    (library[0] == '/' || search->app_folder == NULL))
		return frag_err_set(
			err, -EINVAL,
			"library %.200s: only a relative path below --app-root is accepted here, because the driver is another user's or on another machine; write one, or the name alone",
			library);
	return 0;
}

/* A library given as a path, relative to the app folder. */
static int find_path(const struct fragi_search_path *search, const char *library, char *real,
		     struct frag_err *err)
{
	bool is_relative = library[0] != '/' && search->app_folder != NULL;
	char path[PATH_MAX], folder[PATH_MAX];
	int n, r = check_path(search, library, err);

	if (r < 0)
		return r;
	n = snprintf(path, sizeof(path), "%s%s%s", is_relative ? search->app_folder : "",
		     is_relative ? "/" : "", library);
	if (n < 0 || (size_t)n >= sizeof(path))
		return frag_err_set(err, -EINVAL, "library %.200s: the path is too long", library);
	if (realpath(path, real) == NULL)
		return frag_err_set(err, -ENOENT, "library %.200s cannot be found: %.400s: %s",
				    library, path, strerror(errno));
	if (!is_file(real))
		return frag_err_set(err, -ENOENT, "library %.200s is not a file", library);
	r = check_trust(search, library, path, err);
	if (r < 0)
		return r;
	if (search->paths == FRAGI_LIBRARY_PATHS_IN_APP &&
	    (realpath(search->app_folder, folder) == NULL || !is_below(real, folder)))
		return frag_err_set(
			err, -EINVAL,
			"library %.200s: %.300s leads to %.300s, outside --app-root; put the file itself there",
			library, path, real);
	return 0;
}

int fragi_search_path_find(const struct fragi_search_path *search, const char *library, char *real,
			   struct frag_err *err)
{
	char path[PATH_MAX], folders[600], machine[HOST_NAME_MAX + 1];

	if (strchr(library, '/') != NULL)
		return find_path(search, library, real, err);
	for (size_t i = 0; i < search->folder_count; i++) {
		if (search->folders[i].real == NULL)
			continue;
		snprintf(path, sizeof(path), "%s/%s", search->folders[i].real, library);
		if (realpath(path, real) == NULL || !is_file(real))
			continue;
		if (is_inside(search, real))
			return search->folders[i].is_installed
				       ? 0
				       : check_trust(search, library, path, err);
		return frag_err_set(
			err, -ENOENT,
			"library %.200s: %.300s leads to %.300s, outside the folders that libraries may come from; put the file itself there",
			library, path, real);
	}
	if (search->paths != FRAGI_LIBRARY_PATHS_NONE && search->app_folder != NULL) {
		snprintf(path, sizeof(path), "%s/%s", search->app_folder, library);
		if (is_file(path))
			return frag_err_set(
				err, -ENOENT,
				"library %.200s is not in %s; for the one in the app folder write ./%.200s",
				library, folders_text(search, folders, sizeof(folders)), library);
	}
	if (gethostname(machine, sizeof(machine)) < 0)
		strcpy(machine, "this machine");
	return frag_err_set(
		err, -ENOENT,
		"library %.200s is not in %s on %.64s; put it there, or its folder into --library-path or FRAG_LIBRARY_PATH",
		library, folders_text(search, folders, sizeof(folders)), machine);
}
