// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/rights.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/failure.h>
#include <base/log.h>
#include <base/trusted_path.h>
#include <workerd/interpreter.h>
#include <workerd/landlock.h>

/* Far more than hosts start, far less than a machine has numbers for. */
#define NPROC_OF_OTHER_USER 16384

static bool is_same_or_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	if (strcmp(folder, "/") == 0)
		return true;
	return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Whether what is written into one of them can come to lie in the other. */
static bool overlap(const char *a, const char *b)
{
	char real_a[PATH_MAX], real_b[PATH_MAX];

	if (realpath(a, real_a) == NULL || realpath(b, real_b) == NULL)
		return false;
	return is_same_or_below(real_a, real_b) || is_same_or_below(real_b, real_a);
}

/* The next part of "DIR:DIR", which is not empty; NULL: there is none. */
static const char *next_part(const char **rest, char *out, size_t size)
{
	size_t length;

	while (**rest == ':')
		++*rest;
	length = strcspn(*rest, ":");
	if (length == 0)
		return NULL;
	snprintf(out, size, "%.*s", (int)length, *rest);
	*rest += length;
	return out;
}

/* The folder of libraries that overlaps with a path; NULL: none does. */
static const char *library_folder_at(const struct wrk_rights *rights, const char *path, char *out,
				     size_t size)
{
	const char *rest = rights->config->library_path, *app_root = rights->config->app_root;

	const char *ucx = rights->config->ucx_folder;

	while (rest != NULL && next_part(&rest, out, size) != NULL)
		if (overlap(path, out))
			return out;
	if (ucx != NULL && overlap(path, ucx))
		return ucx;
	return app_root != NULL && overlap(path, app_root) ? app_root : NULL;
}

static int check_allow_write(const struct wrk_rights_config *config, struct frag_err *err)
{
	char part[PATH_MAX];

	for (size_t i = 0; i < config->allow_write->count; i++) {
		const char *rest = config->allow_write->items[i];

		while (next_part(&rest, part, sizeof(part)) != NULL)
			if (access(part, F_OK) < 0)
				return fragi_err_fail(
					err, FRAGI_FAILURE_FILE_MISSING, NULL, -errno,
					"--allow-write %.300s: %s; make the folder before workerd starts",
					part, frag_strerror(-errno));
	}
	return 0;
}

/* What is missing may be made later; each start of a host checks again. */
static int refuse(int r, const char *flag, const struct frag_err *why, struct frag_err *err)
{
	if (r == 0 || r == -ENOENT)
		return 0;
	return fragi_err_fail(err, FRAGI_FAILURE_FILE_MISSING, NULL, r, "%s: workerd %s", flag,
			      why->text);
}

int wrk_rights_check_python(const struct wrk_rights *rights, const char *path, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = fragi_trusted_path_check(path, rights->user.uid, &why);

	return refuse(r, "--python", &why, err);
}

static int check_library_folder(const struct wrk_rights *rights, const char *flag,
				const char *folder, struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r = fragi_trusted_path_check(folder, rights->user.uid, &why);

	return refuse(r, flag, &why, err);
}

static int check_python(const struct wrk_rights *rights, struct frag_err *err)
{
	const char *python = rights->config->python;
	char path[PATH_MAX];

	if (python == NULL || !wrk_interpreter_find(python, path))
		return 0;
	return wrk_rights_check_python(rights, path, err);
}

static int check_library_folders(const struct wrk_rights *rights, struct frag_err *err)
{
	const char *rest = rights->config->library_path, *ucx = rights->config->ucx_folder;
	char part[PATH_MAX];
	int r = ucx != NULL && ucx[0] != '\0' ? check_library_folder(rights, "--ucx", ucx, err) : 0;

	while (r == 0 && rest != NULL && next_part(&rest, part, sizeof(part)) != NULL)
		r = check_library_folder(rights, "--library-path", part, err);
	return r;
}

static int take_limits(struct wrk_rights *rights, struct frag_err *err)
{
	const struct fragi_texts *texts = rights->config->host_limits;
	struct rlimit processes = wrk_host_limits_get(&rights->limits, RLIMIT_NPROC);
	int r = 0;

	if (rights->user.is_other && processes.rlim_max > NPROC_OF_OTHER_USER)
		rights->limits.items[rights->limits.count++] = (struct wrk_host_limit){
			.resource = RLIMIT_NPROC,
			.value = {NPROC_OF_OTHER_USER, NPROC_OF_OTHER_USER},
		};
	for (size_t i = 0; r == 0 && i < texts->count; i++)
		r = wrk_host_limits_add(&rights->limits, texts->items[i], err);
	return r;
}

int wrk_rights_init(struct wrk_rights *rights, const struct wrk_rights_config *config,
		    struct frag_err *err)
{
	int r = check_allow_write(config, err);

	*rights =
		(struct wrk_rights){.config = config, .confine = {.group_fd = -1, .rules_fd = -1}};
	if (r == 0)
		r = wrk_host_user_find(config->host_user, &rights->user, err);
	if (r == 0)
		r = check_library_folders(rights, err);
	if (r == 0)
		r = check_python(rights, err);
	if (r == 0)
		r = take_limits(rights, err);
	if (r < 0)
		return fragi_err_classify(
			err, r == -ENOENT ? FRAGI_FAILURE_FILE_MISSING : FRAGI_FAILURE_USAGE, NULL);
	if (getcwd(rights->working_folder, sizeof(rights->working_folder)) == NULL ||
	    rights->working_folder[1] == '\0')
		rights->working_folder[0] = '\0';
	rights->landlock_abi = wrk_landlock_abi();
	rights->seccomp_refused = wrk_seccomp_probe();
	rights->confine.user = &rights->user;
	rights->confine.limits = &rights->limits;
	if (rights->seccomp_refused < 0)
		return 0;
	r = wrk_seccomp_init(&rights->seccomp, err);
	if (r < 0)
		return fragi_err_classify(err, FRAGI_FAILURE_SYSTEM_REFUSED, NULL);
	rights->confine.filter = &rights->seccomp.program;
	return 0;
}

void wrk_rights_fini(struct wrk_rights *rights)
{
	wrk_confine_end(&rights->confine);
	wrk_seccomp_fini(&rights->seccomp);
}

size_t wrk_rights_lacks(int abi, int seccomp,
			char out_texts[WRK_RIGHTS_LACKS_MAX][WRK_RIGHTS_LACK_SIZE])
{
	size_t count = 0;

	if (seccomp < 0)
		snprintf(out_texts[count++], WRK_RIGHTS_LACK_SIZE,
			 "filters of system calls (seccomp: %s): hosts may make any",
			 frag_strerror(seccomp));
	if (abi < 0) {
		snprintf(out_texts[count++], WRK_RIGHTS_LACK_SIZE,
			 "Landlock (%s): hosts may write wherever their user may",
			 frag_strerror(abi));
		return count;
	}
	if (wrk_landlock_rights_of(abi).scoped == 0)
		snprintf(
			out_texts[count++], WRK_RIGHTS_LACK_SIZE,
			"version 6 of Landlock (it has %d): hosts may signal processes of their user",
			abi);
	if (abi < 3)
		snprintf(
			out_texts[count++], WRK_RIGHTS_LACK_SIZE,
			"version 3 of Landlock (it has %d): hosts may truncate any file of their user",
			abi);
	if (abi < 2)
		snprintf(
			out_texts[count++], WRK_RIGHTS_LACK_SIZE,
			"version 2 of Landlock (it has %d): hosts cannot move files between folders",
			abi);
	return count;
}

void wrk_rights_print_kernel(FILE *out)
{
	char lacks[WRK_RIGHTS_LACKS_MAX][WRK_RIGHTS_LACK_SIZE];
	int abi = wrk_landlock_abi(), seccomp = wrk_seccomp_probe();
	size_t count = wrk_rights_lacks(abi, seccomp, lacks);

	if (abi > 0)
		fprintf(out, "this kernel has Landlock, version %d\n", abi);
	if (seccomp == 0)
		fprintf(out, "this kernel has filters of system calls (seccomp)\n");
	for (size_t i = 0; i < count; i++)
		fprintf(out, "this kernel lacks %s\n", lacks[i]);
	if (count == 0)
		fprintf(out, "this kernel lacks nothing that workerd restricts hosts with\n");
}

static void warn_of_libraries(const struct wrk_rights *rights)
{
	char part[PATH_MAX], folder[PATH_MAX];

	for (size_t i = 0; i < rights->config->allow_write->count; i++) {
		const char *rest = rights->config->allow_write->items[i], *found;

		while (next_part(&rest, part, sizeof(part)) != NULL) {
			found = library_folder_at(rights, part, folder, sizeof(folder));
			if (found != NULL)
				log_warn(
					NULL,
					"hosts may write below %s, and graphs may name libraries of %s: a driver can bring code of its own that way; keep the two apart",
					part, found);
		}
	}
}

const char *wrk_rights_list(struct fragi_arena *arena, const char *const *paths, size_t count)
{
	const char *list = count > 0 ? paths[0] : NULL;

	for (size_t i = 1; list != NULL && i < count; i++)
		list = fragi_arena_printf(arena, "%s, %s", list, paths[i]);
	if (list != NULL)
		list = fragi_arena_printf(arena, "below %s only", list);
	return list != NULL ? list : "nowhere";
}

void wrk_rights_log(const struct wrk_rights *rights)
{
	char lacks[WRK_RIGHTS_LACKS_MAX][WRK_RIGHTS_LACK_SIZE], calls[64] = "none";
	size_t count = wrk_rights_lacks(rights->landlock_abi, rights->seccomp_refused, lacks);
	struct fragi_arena arena = {0};
	const char *const *paths;
	size_t path_count;

	if (rights->seccomp_refused == 0)
		snprintf(calls, sizeof(calls), "%zu", rights->seccomp.denied);
	if (wrk_rights_writable(rights, true, NULL, &arena, &paths, &path_count) == 0)
		log_info(
			NULL,
			"hosts run as %s, without privileges; they may write %s; system calls refused to them: %s",
			rights->user.name,
			rights->landlock_abi < 0 ? "wherever their user may"
						 : wrk_rights_list(&arena, paths, path_count),
			calls);
	fragi_arena_fini(&arena);
	for (size_t i = 0; i < count; i++)
		log_warn(NULL, "this kernel lacks %s", lacks[i]);
	if (rights->user.uid == 0 && rights->config->host_user == NULL)
		log_warn(
			NULL,
			"hosts run as root: what operators do to files is not limited to a user; start workerd as another user, or give it --host-user NAME (root if that is meant)");
	warn_of_libraries(rights);
}

static int add_path(struct fragi_arena *arena, const char **paths, size_t *count, const char *path)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(paths[i], path) == 0)
			return 0;
	paths[*count] = fragi_arena_strdup(arena, path);
	return paths[(*count)++] == NULL ? -ENOMEM : 0;
}

static int add_default(const struct wrk_rights *rights, bool is_own_user, const char *folder,
		       struct fragi_arena *arena, const char **paths, size_t *count)
{
	char library_folder[PATH_MAX];

	if (folder == NULL || folder[0] == '\0' || strcmp(folder, "/") == 0)
		return 0;
	if (!is_own_user &&
	    library_folder_at(rights, folder, library_folder, sizeof(library_folder)) != NULL)
		return 0;
	return add_path(arena, paths, count, folder);
}

int wrk_rights_writable(const struct wrk_rights *rights, bool is_own_user, const char *graph_folder,
			struct fragi_arena *arena, const char *const **out_paths, size_t *out_count)
{
	const struct wrk_rights_config *config = rights->config;
	size_t count = 0, most = 2;
	char part[PATH_MAX];
	const char **paths;
	int r = 0;

	for (size_t i = 0; i < config->allow_write->count; i++)
		most += strlen(config->allow_write->items[i]);
	paths = fragi_arena_alloc(arena, most * sizeof(*paths));
	if (paths == NULL)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < config->allow_write->count; i++) {
		const char *rest = config->allow_write->items[i];

		while (r == 0 && next_part(&rest, part, sizeof(part)) != NULL)
			r = add_path(arena, paths, &count, part);
	}
	if (config->allow_write->count == 0) {
		const char *app = config->app_root != NULL ? config->app_root
				  : is_own_user            ? graph_folder
							   : NULL;

		r = add_default(rights, is_own_user, app, arena, paths, &count);
		if (r == 0)
			r = add_default(rights, is_own_user, rights->working_folder, arena, paths,
					&count);
	}
	if (r < 0)
		return r;
	*out_paths = paths;
	*out_count = count;
	return 0;
}

int wrk_rights_apply(struct wrk_rights *rights, const char *const *paths, size_t count,
		     struct frag_err *err)
{
	int fd;

	if (rights->landlock_abi < 0)
		return 0;
	fd = wrk_landlock_create(rights->landlock_abi, paths, count, err);
	if (fd < 0)
		return fd;
	wrk_confine_end(&rights->confine);
	rights->confine.rules_fd = fd;
	return 0;
}
