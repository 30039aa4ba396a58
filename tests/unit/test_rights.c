// SPDX-License-Identifier: Apache-2.0
/* What hosts may do: the rights of each version of Landlock, the folders, the limits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include <workerd/landlock.h>
#include <workerd/rights.h>

#include "logged.h"
#include "scratch.h"

#define NEWEST 7

static void make_folders(void)
{
	scratch_make();
	mkdir(at("app"), 0700);
	mkdir(at("app/lib"), 0700);
	mkdir(at("work"), 0700);
	mkdir(at("work-2"), 0700);
	mkdir(at("wor"), 0700);
	cr_assert_eq(chdir(at("work")), 0);
}

TestSuite(rights, .init = make_folders, .fini = scratch_remove);

Test(rights, a_newer_landlock_refuses_more_and_never_less)
{
	uint64_t before = 0;

	for (int abi = 1; abi <= NEWEST + 3; abi++) {
		struct wrk_landlock_rights rights = wrk_landlock_rights_of(abi);

		cr_expect_eq(rights.handled & before, before, "version %d", abi);
		cr_expect_eq(rights.handled &
				     (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
				      LANDLOCK_ACCESS_FS_READ_DIR),
			     0, "reading stays free");
		/* A kernel refuses bits that it does not know: 13 rights, then 14, then 15. */
		cr_expect_lt(rights.handled, UINT64_C(1) << (abi < 2 ? 13 : abi < 3 ? 14 : 15));
		cr_expect_eq(rights.scoped, abi < 6 ? 0u : 2u);
		before = rights.handled;
	}
	cr_expect_eq(before, UINT64_C(0x7ff2), "all that change something, but ioctl");
}

Test(rights, what_a_kernel_lacks_is_reported_for_each_version)
{
	char lacks[WRK_RIGHTS_LACKS_MAX][WRK_RIGHTS_LACK_SIZE];

	cr_expect_eq(wrk_rights_lacks(NEWEST, 0, lacks), 0);
	cr_expect_eq(wrk_rights_lacks(5, 0, lacks), 1);
	cr_expect_str_eq(
		lacks[0],
		"version 6 of Landlock (it has 5): hosts may signal processes of their user");
	cr_expect_eq(wrk_rights_lacks(2, 0, lacks), 2);
	cr_expect_eq(wrk_rights_lacks(1, 0, lacks), 3);
	cr_expect_eq(wrk_rights_lacks(-ENOSYS, -EINVAL, lacks), 2);
	cr_expect_not_null(strstr(lacks[0], "seccomp"));
	cr_expect_str_eq(
		lacks[1],
		"Landlock (Function not implemented): hosts may write wherever their user may");
}

struct place {
	const char *allow_write, *library_path, *app_root, *graph_folder, *ucx_folder;
	bool is_own_user;
};

/* "/app /work": what a host may write, from top on. */
static const char *writable(const struct place *place)
{
	struct fragi_texts allow = {.items = (const char **)(uintptr_t)&place->allow_write,
				    .count = place->allow_write != NULL},
			   none = {0};
	const struct wrk_rights_config config = {.allow_write = &allow,
						 .host_limits = &none,
						 .library_path = place->library_path,
						 .app_root = place->app_root,
						 .ucx_folder = place->ucx_folder};
	static char out[512];
	struct fragi_arena arena = {0};
	const char *const *paths;
	struct wrk_rights rights;
	struct frag_err err = FRAG_ERR_INIT;
	size_t count;

	cr_assert_eq(wrk_rights_init(&rights, &config, &err), 0, "%s", err.text);
	cr_assert_eq(wrk_rights_writable(&rights, place->is_own_user, place->graph_folder, &arena,
					 &paths, &count),
		     0);
	out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *path = paths[i];

		if (strncmp(path, scratch, strlen(scratch)) == 0)
			path += strlen(scratch);
		strcat(strcat(out, i > 0 ? " " : ""), path);
	}
	fragi_arena_fini(&arena);
	wrk_rights_fini(&rights);
	return out;
}

#define WRITABLE(...) writable(&(struct place){__VA_ARGS__})

Test(rights, the_folders_of_a_driver_of_the_same_user)
{
	cr_expect_str_eq(WRITABLE(.is_own_user = true), "/work");
	cr_expect_str_eq(WRITABLE(.is_own_user = true, .graph_folder = at("app")), "/app /work");
	cr_expect_str_eq(WRITABLE(.is_own_user = true, .graph_folder = at("work")), "/work");
	cr_expect_str_eq(WRITABLE(.is_own_user = true, .graph_folder = "/"), "/work");
	cr_expect_str_eq(WRITABLE(.is_own_user = true, .app_root = at("app"),
				  .graph_folder = scratch, .library_path = at("app/lib")),
			 "/app /work");
	cr_expect_str_eq(
		WRITABLE(.is_own_user = true, .allow_write = at("app"), .app_root = scratch),
		"/app");
	cr_assert_eq(chdir("/"), 0);
	cr_expect_str_eq(WRITABLE(.is_own_user = true), "");
}

/* What is tried is undone. */
Test(rights, a_limit_above_that_of_the_worker_leaves_it)
{
	struct wrk_host_limits limits = {0};
	const struct rlimit before = {1024, 4096};
	struct rlimit after;

	cr_assert_eq(setrlimit(RLIMIT_CORE, &before), 0);
	(void)wrk_host_limits_add(&limits, "core=8192", NULL);
	cr_assert_eq(getrlimit(RLIMIT_CORE, &after), 0);
	cr_expect(after.rlim_cur == 1024 && after.rlim_max == 4096);
}

Test(rights, each_folder_that_a_flag_names_must_be_there)
{
	static char missing[300];
	char second[700], sentence[700];
	const char *items[2] = {missing, at("app")}, *there = strdup(at("app"));
	struct fragi_texts allow = {.items = items, .count = 2}, none = {0};
	const struct wrk_rights_config config = {.allow_write = &allow, .host_limits = &none};
	struct wrk_rights rights;

	snprintf(missing, sizeof(missing), "%s", at("none"));
	snprintf(second, sizeof(second), "%s:%s", there, missing);
	snprintf(
		sentence, sizeof(sentence),
		"--allow-write %s: No such file or directory; make the folder before workerd starts",
		missing);
	for (int i = 0; i < 4; i++) {
		struct frag_err err = FRAG_ERR_INIT;

		items[0] = i == 0 ? missing : there;
		items[1] = i == 1 ? missing : i == 2 ? second : there;
		cr_expect_eq(wrk_rights_init(&rights, &config, &err), i < 3 ? -ENOENT : 0);
		cr_expect_str_eq(err.text, i < 3 ? sentence : "");
		wrk_rights_fini(&rights);
	}
	free((char *)(uintptr_t)there);
}

Test(rights, another_driver_gets_no_folder_that_libraries_come_from)
{
	char both[256];

	cr_expect_str_eq(WRITABLE(.graph_folder = at("app")), "/work");
	cr_expect_str_eq(WRITABLE(.app_root = at("app")), "/work");
	cr_expect_str_eq(WRITABLE(.app_root = at("work")), "");
	cr_expect_str_eq(WRITABLE(.library_path = at("work")), "");
	cr_expect_str_eq(WRITABLE(.library_path = at("app/lib")), "/work");
	snprintf(both, sizeof(both), "%s:%s", at("app/lib"), at("work"));
	cr_expect_str_eq(WRITABLE(.library_path = both), "");
	cr_expect_str_eq(WRITABLE(.library_path = scratch), "");
	/* Names that begin alike are of other folders. */
	cr_expect_str_eq(WRITABLE(.library_path = at("work-2")), "/work");
	cr_expect_str_eq(WRITABLE(.library_path = at("wor")), "/work");
	cr_expect_str_eq(WRITABLE(.ucx_folder = at("work")), "");
	cr_expect_str_eq(WRITABLE(.ucx_folder = at("app/lib")), "/work");
	cr_assert_eq(symlink(at("work"), at("link")), 0);
	cr_expect_str_eq(WRITABLE(.library_path = at("link")), "");
	cr_assert_eq(chdir(scratch), 0);
	cr_expect_str_eq(WRITABLE(.library_path = at("app/lib")), "");
	cr_expect_str_eq(WRITABLE(.library_path = at("app"), .allow_write = at("app")), "/app",
			 "what the flag names is meant");
}

Test(rights, limits)
{
	struct wrk_host_limits limits = {0};
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(wrk_host_limits_add(&limits, "nofile=100", &err), 0);
	cr_expect_eq(limits.items[0].resource, RLIMIT_NOFILE);
	cr_expect_eq(limits.items[0].value.rlim_max, 100);
	cr_expect_eq(wrk_host_limits_add(&limits, "fsize=1MiB", &err), 0);
	cr_expect_eq(limits.items[1].value.rlim_cur, 1048576);
	for (const char *const *text = (const char *const[]){"", "=", "=1", "nofile",
							     "nofile=", "no=1", "nofile=-1", NULL};
	     *text != NULL; text++) {
		err = (struct frag_err)FRAG_ERR_INIT;
		cr_expect_eq(wrk_host_limits_add(&limits, *text, &err), -EINVAL, "%s", *text);
	}
	while (limits.count < WRK_HOST_LIMITS_MAX)
		cr_assert_eq(wrk_host_limits_add(&limits, "core=0", &err), 0);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(wrk_host_limits_add(&limits, "core=0", &err), -EINVAL);
}

/* As for the root of most containers. */
Test(rights, a_limit_is_within_that_of_the_worker)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct own[2];
	struct wrk_host_limits limits = {0};
	struct frag_err err = FRAG_ERR_INIT;
	struct rlimit before = {1024, 4096}, after;

	cr_assert_eq(setrlimit(RLIMIT_CORE, &before), 0);
	cr_assert_eq(syscall(SYS_capget, &head, own), 0);
	own[0].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	cr_assert_eq(syscall(SYS_capset, &head, own), 0);
	cr_expect_eq(wrk_host_limits_add(&limits, "core=4095", &err), 0);
	cr_expect_eq(wrk_host_limits_add(&limits, "core=4096", &err), 0);
	cr_expect_eq(wrk_host_limits_add(&limits, "core=4097", &err), -EPERM);
	cr_expect_not_null(strstr(err.text, "is more than this worker has itself"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(wrk_host_limits_add(&limits, "core=unlimited", &err), -EPERM);
	cr_expect_eq(limits.count, 2);
	cr_assert_eq(getrlimit(RLIMIT_CORE, &after), 0);
	cr_expect_eq(memcmp(&before, &after, sizeof(before)), 0);
}

/* With the right to more, it is tried, and the worker's own limit stays. */
Test(rights, a_limit_may_be_more_than_that_of_the_worker)
{
	struct wrk_host_limits limits = {0};
	struct frag_err err = FRAG_ERR_INIT;
	struct rlimit before = {1024, 4096}, raised = {1024, 4097}, after;
	bool may;

	cr_assert_eq(setrlimit(RLIMIT_CORE, &before), 0);
	may = setrlimit(RLIMIT_CORE, &raised) == 0;
	cr_assert_eq(setrlimit(RLIMIT_CORE, &before), 0);
	cr_expect_eq(wrk_host_limits_add(&limits, "core=4097", &err), may ? 0 : -EPERM);
	cr_assert_eq(getrlimit(RLIMIT_CORE, &after), 0);
	cr_expect_eq(memcmp(&before, &after, sizeof(before)), 0);
}

/* What is logged, from top on, with the name of the scratch folder left out. */
static void expect_logged(const struct wrk_rights *rights, const char *expected)
{
	char *text, *at_scratch;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	logged_begin();
	wrk_rights_log(rights);
	logged_end(out);
	fclose(out);
	while ((at_scratch = strstr(text, scratch)) != NULL)
		memmove(at_scratch, at_scratch + strlen(scratch),
			strlen(at_scratch + strlen(scratch)) + 1);
	cr_expect_str_eq(text, expected, "%s", text);
	free(text);
}

Test(rights, what_hosts_may_do_is_logged)
{
	static char folders[512];
	const char *folder = folders;
	struct fragi_texts allow = {.items = &folder, .count = 1};
	struct wrk_rights_config config = {.allow_write = &allow, .host_user = "someone"};
	struct wrk_rights rights = {.config = &config,
				    .landlock_abi = 7,
				    .seccomp = {.denied = 40},
				    .user = {.uid = 7, .name = "someone"}};

	snprintf(folders, sizeof(folders), "%s:%s", at("app"), at("work"));
	expect_logged(
		&rights,
		"  logs info  worker: hosts run as someone, without privileges; they may write below /app, /work only; system calls refused to them: 40\n");
	config.library_path = at("app/lib");
	rights.seccomp_refused = -EINVAL;
	rights.landlock_abi = -ENOSYS;
	expect_logged(
		&rights,
		"  logs info  worker: hosts run as someone, without privileges; they may write wherever their user may; system calls refused to them: none\n"
		"  logs warn  worker: this kernel lacks filters of system calls (seccomp: invalid argument): hosts may make any\n"
		"  logs warn  worker: this kernel lacks Landlock (Function not implemented): hosts may write wherever their user may\n"
		"  logs warn  worker: hosts may write below /app, and graphs may name libraries of /app/lib: a driver can bring code of its own that way; keep the two apart\n");
	config.library_path = config.host_user = NULL;
	config.app_root = at("work");
	folder = "/none";
	rights.seccomp_refused = 0;
	rights.landlock_abi = 7;
	rights.user.uid = 0;
	expect_logged(
		&rights,
		"  logs info  worker: hosts run as someone, without privileges; they may write below /none only; system calls refused to them: 40\n"
		"  logs warn  worker: hosts run as root: what operators do to files is not limited to a user; start workerd as another user, or give it --host-user NAME (root if that is meant)\n");
	config.host_user = "root";
	allow.count = 0;
	config.app_root = NULL;
	expect_logged(
		&rights,
		"  logs info  worker: hosts run as someone, without privileges; they may write nowhere; system calls refused to them: 40\n");
}

/* What is missing may be made later; what others may change is refused, with its flag. */
Test(rights, folders_that_others_may_write_bring_no_libraries)
{
	static const struct {
		const char *flag;
		bool is_library, is_ucx, is_python;
	} rows[] = {{"--library-path", true, false, false},
		    {"--ucx", false, true, false},
		    {"--python", false, false, true}};
	struct fragi_texts none = {0};

	mkdir(at("open"), 0700);
	put("open/py", "");
	cr_assert_eq(chmod(at("open/py"), 0755), 0);
	for (int is_open = 0; is_open < 2; is_open++) {
		cr_assert_eq(chmod(at("open"), is_open ? 0777 : 0755), 0);
		for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
			char library[600], start[64];
			const struct wrk_rights_config config = {
				.allow_write = &none,
				.host_limits = &none,
				.library_path = rows[i].is_library ? library : NULL,
				.ucx_folder = rows[i].is_ucx ? at("open") : NULL,
				.python = rows[i].is_python ? at("open/py") : NULL};
			struct frag_err err = FRAG_ERR_INIT;
			struct wrk_rights rights;

			snprintf(library, sizeof(library), "%s:%s", at("none"), at("open"));
			snprintf(start, sizeof(start), "%s: workerd does not rely on ",
				 rows[i].flag);
			cr_expect_eq(wrk_rights_init(&rights, &config, &err), is_open ? -EPERM : 0,
				     "%s", rows[i].flag);
			cr_expect(!is_open || strncmp(err.text, start, strlen(start)) == 0, "%s",
				  err.text);
			wrk_rights_fini(&rights);
		}
	}
}
