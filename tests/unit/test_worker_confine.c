// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <workerd/confine.h>
#include <workerd/landlock.h>
#include <workerd/spawn.h>

/*
 * What a child gives up before it is a host, call by call, over a kernel and users that this file
 * plays; each call fails once. What the machine has is left out.
 */
static FILE *out;
static bool is_played;
static int fails_at, fail_code, calls; /* fails_at 0: none */
static uint32_t permitted;
static int landlock_abi;
static const char *core_pattern;
static bool has_cuda;

/* Returns whether this call fails, with errno set. */
static bool call_fails(void)
{
	if (++calls != fails_at)
		return false;
	errno = fail_code;
	return true;
}

static int played(const char *name, long a, long b, long c)
{
	bool fails = call_fails();

	if (fails_at == 0 || fails) /* else they are as when none fails */
		fprintf(out, "  %s %ld %ld %ld%s\n", name, a, b, c, fails ? ": fails" : "");
	return fails ? -1 : 0;
}

int prctl(int what, ...)
{
	static const struct {
		int what;
		const char *name;
	} names[] = {{PR_CAP_AMBIENT, "ambient"},
		     {PR_SET_KEEPCAPS, "keep capabilities"},
		     {PR_SET_NO_NEW_PRIVS, "no new privileges"}};
	va_list args;
	long a, b;

	va_start(args, what);
	a = va_arg(args, long);
	b = va_arg(args, long);
	va_end(args);
	if (what == PR_CAPBSET_READ)
		return a <= CAP_LAST_CAP ? 1 : -1;
	if (what == PR_CAPBSET_DROP) {
		if (fails_at == 0 && (a == 0 || a == CAP_SYS_NICE || a == CAP_LAST_CAP))
			fprintf(out, "  drop %s\n",
				a == 0              ? "the first"
				: a == CAP_LAST_CAP ? "the last"
						    : "that of real time");
		return 0;
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		if (names[i].what == what)
			return played(names[i].name, a, b, 0);
	return 0;
}

int setgroups(size_t count, const gid_t *groups)
{
	return played("groups", (long)count, groups[0], groups[count - 1]);
}

int setresgid(gid_t a, gid_t b, gid_t c)
{
	return played("group", a, b, c);
}

int setresuid(uid_t a, uid_t b, uid_t c)
{
	return played("user", a, b, c);
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *value)
{
	return played("limit", (long)resource, (long)value->rlim_cur, (long)value->rlim_max);
}

/* Those of the scratch folder, and two that are on every machine. */
static void show_rule(const struct landlock_path_beneath_attr *rule)
{
	char link[64], path[256];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", rule->parent_fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (strncmp(path, scratch, strlen(scratch)) == 0)
		fprintf(out, "  may 0x%llx below SCRATCH%s\n",
			(unsigned long long)rule->allowed_access, path + strlen(scratch));
	else if (strcmp(path, "/dev/null") == 0 || strcmp(path, "/dev/shm") == 0)
		fprintf(out, "  may 0x%llx below %s\n", (unsigned long long)rule->allowed_access,
			path);
	else if (strstr(path, "/task") != NULL && (fails_at == 0 || fail_code == EINVAL))
		fprintf(out, "  may 0x%llx below its threads\n",
			(unsigned long long)rule->allowed_access);
}

static long play_landlock(long number, va_list args)
{
	const struct ruleset {
		uint64_t handled, net, scoped;
	} *ruleset = va_arg(args, const struct ruleset *);

	if (number == SYS_landlock_create_ruleset && ruleset == NULL) {
		errno = ENOSYS;
		return landlock_abi;
	}
	if (number == SYS_landlock_create_ruleset) {
		fprintf(out, "  rules 0x%llx 0x%llx 0x%llx of %zu bytes\n",
			(unsigned long long)ruleset->handled, (unsigned long long)ruleset->net,
			(unsigned long long)ruleset->scoped, va_arg(args, size_t));
		return call_fails() ? -1 : memfd_create("rules", MFD_CLOEXEC);
	}
	(void)va_arg(args, int);
	show_rule(va_arg(args, const struct landlock_path_beneath_attr *));
	return call_fails() ? -1 : 0;
}

static void show_sets(const struct __user_cap_data_struct *sets)
{
	if (fails_at != 0)
		return;
	fprintf(out, "  capabilities 0x%x 0x%x 0x%x, and 0x%x\n", sets[0].effective,
		sets[0].permitted, sets[0].inheritable,
		sets[1].effective | sets[1].permitted | sets[1].inheritable);
}

long syscall(long number, ...)
{
	struct __user_cap_data_struct *sets;
	long r = 0, a[3];
	va_list args;

	va_start(args, number);
	if (number == SYS_capget || number == SYS_capset) {
		(void)va_arg(args, void *);
		sets = va_arg(args, struct __user_cap_data_struct *);
		if (number == SYS_capget)
			sets[0].permitted = permitted;
		else
			show_sets(sets);
		r = call_fails() ? -1 : 0;
	} else if (number == SYS_landlock_create_ruleset || number == SYS_landlock_add_rule) {
		r = play_landlock(number, args);
	} else if (number == SYS_landlock_restrict_self) {
		a[0] = va_arg(args, int);
		r = played("restrict", a[0] >= 0, va_arg(args, unsigned int), 0);
	} else if (number == SYS_seccomp) {
		a[0] = va_arg(args, int);
		a[1] = va_arg(args, int);
		r = played("filter", a[0], a[1], va_arg(args, const struct sock_fprog *)->len);
	} else {
		errno = ENOSYS;
		r = -1;
	}
	va_end(args);
	return r;
}

FILE *fopen(const char *path, const char *mode)
{
	static FILE *(*real)(const char *, const char *);

	if (is_played && strcmp(path, "/proc/sys/kernel/core_pattern") == 0)
		return core_pattern == NULL ? NULL
					    : fmemopen((void *)(uintptr_t)core_pattern,
						       strlen(core_pattern), "r");
	if (real == NULL)
		*(void **)(void *)&real = dlsym(RTLD_NEXT, "fopen");
	return real(path, mode);
}

int access(const char *path, int mode)
{
	return strcmp(path, "/dev/nvidiactl") == 0 ? (has_cuda ? 0 : -1)
						   : faccessat(AT_FDCWD, path, mode, 0);
}

static void begin(void)
{
	scratch_make();
	put("group/cgroup.procs", "");
	put("folder/x", "");
	put("file", "");
	is_played = true;
	permitted = CAP_TO_MASK(CAP_SYS_NICE);
	landlock_abi = 7;
}
TestSuite(worker_confine, .init = begin, .fini = scratch_remove);

static int lowest_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

static void show_confined(const struct wrk_confine *confine, int at, int code)
{
	const char *what = NULL;
	int r;

	calls = 0;
	fails_at = at;
	fail_code = code;
	r = wrk_confine(confine, &what);
	fprintf(out, "  %s\n", r == 0 ? "is confined" : strerrorname_np(-r));
	if (r < 0)
		fprintf(out, "  it could not %s\n", what);
}

static void show_group(void)
{
	char text[16] = "";
	int fd = open(at("group/cgroup.procs"), O_RDONLY | O_CLOEXEC);

	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	fprintf(out, "  in its control group: '%s'\n", text);
	truncate(at("group/cgroup.procs"), 0);
}

static void end(const char *name, char **text)
{
	fclose(out);
	is_played = false;
	expected_compare(name, *text);
	free(*text);
}

Test(worker_confine, a_child_gives_up_its_rights_in_order)
{
	static const struct wrk_host_user same = {.uid = 7}, other = {.is_other = true,
								      .uid = 70,
								      .gid = 71,
								      .groups = {71, 72, 73},
								      .group_count = 3};
	static const struct wrk_host_limits limits = {{{RLIMIT_NOFILE, {64, 65}},
						       {RLIMIT_CORE, {0, 1}}},
						      2},
					    none = {.count = 0};
	static const struct sock_fprog filter = {.len = 9};
	struct wrk_confine all = {&other, &limits, -1, -1, &filter},
			   least = {&same, &none, -1, -1, NULL};
	int before = lowest_descriptor(), last;
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	all.group_fd = open(at("group"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	all.rules_fd = memfd_create("rules", MFD_CLOEXEC);
	fprintf(out, "all\n");
	show_confined(&all, 0, 0);
	show_group();
	last = calls;
	for (int i = 1; i <= last; i++) {
		fprintf(out, "the call %d fails\n", i);
		show_confined(&all, i, EPERM);
	}
	/* An older kernel does not know the right to truncate. */
	fprintf(out, "without a right\n");
	show_confined(&all, last - 2, EINVAL);
	fprintf(out, "without the capability\n");
	permitted = ~CAP_TO_MASK(CAP_SYS_NICE);
	show_confined(&all, 0, 0);
	fprintf(out, "the least\n");
	show_confined(&least, 0, 0);
	unlink(at("group/cgroup.procs"));
	fprintf(out, "without a group\n");
	show_confined(&all, 0, 0);
	wrk_confine_end(&all);
	cr_expect(all.group_fd == -1 && all.rules_fd == -1);
	wrk_confine_end(&all);
	cr_expect_eq(lowest_descriptor(), before);
	end("worker/confined", &text);
}

static void show_rules(int abi, int at_call, int code)
{
	const char *paths[] = {at("folder"), at("none"), at("file"), at("file/below")};
	struct frag_err err = FRAG_ERR_INIT;
	int before = lowest_descriptor(), fd;

	calls = 0;
	fails_at = at_call;
	fail_code = code;
	fd = wrk_landlock_create(abi, paths, FRAG_COUNT_OF(paths), &err);
	cr_expect(fd < 0 || fd >= 10);
	if (fd < 0)
		fprintf(out, "  %s: %.36s\n", strerrorname_np(-fd), err.text);
	cr_expect(fd < 0 || (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	if (fd >= 0)
		close(fd);
	cr_expect_eq(lowest_descriptor(), before);
}

Test(worker_confine, the_rules_of_each_version_and_pattern_of_core_files)
{
	static const char *const patterns[] = {"core", "/core", "|/usr/bin/keep %p", ""};
	char cores[128];
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	snprintf(cores, sizeof(cores), "%s/core.%%p\n", at("folder"));
	for (int abi = 1; abi <= 7; abi++) {
		fprintf(out, "version %d\n", abi);
		show_rules(abi, 0, 0);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(patterns); i++) {
		core_pattern = patterns[i];
		fprintf(out, "core files: %s\n", core_pattern);
		show_rules(7, 0, 0);
	}
	core_pattern = cores;
	has_cuda = true;
	fprintf(out, "core files in the folder, and CUDA\n");
	show_rules(7, 0, 0);
	fprintf(out, "it has none\n");
	show_rules(7, 1, EOPNOTSUPP);
	fprintf(out, "the first device fails\n");
	show_rules(7, 2, ENOMEM);
	cr_expect_eq(wrk_landlock_abi(), 7);
	landlock_abi = -1;
	cr_expect_eq(wrk_landlock_abi(), -ENOSYS);
	end("worker/rules", &text);
}

/* Users, as the machine's data base would have them. */
static uid_t own_user;
static int group_count;

uid_t geteuid(void)
{
	return own_user;
}

gid_t getegid(void)
{
	return own_user + 1;
}

static struct passwd *entry_of(const char *name, uid_t uid)
{
	static struct passwd entry;
	static char names[3][80];

	snprintf(names[0], sizeof(names[0]), "%s", name);
	snprintf(names[1], sizeof(names[1]), "/home/%s", name);
	entry = (struct passwd){
		.pw_name = names[0], .pw_dir = names[1], .pw_uid = uid, .pw_gid = uid + 10};
	return &entry;
}

struct passwd *getpwnam(const char *name)
{
	if (strcmp(name, "broken") == 0)
		errno = EIO;
	return strcmp(name, "me") == 0     ? entry_of(name, 1000)
	       : strcmp(name, "frag") == 0 ? entry_of(name, 300)
					   : NULL;
}

struct passwd *getpwuid(uid_t uid)
{
	return uid == 1000 ? entry_of("me", uid) : NULL;
}

int getgrouplist(const char *name, gid_t group, gid_t *groups, int *count)
{
	cr_expect(strcmp(name, "me") == 0 || strcmp(name, "frag") == 0);
	for (int i = 0; i < *count && i < group_count; i++)
		groups[i] = group + (gid_t)i;
	if (*count < group_count)
		return -1;
	*count = group_count;
	return group_count;
}

static void show_user(uid_t own, const char *name)
{
	struct wrk_host_user user = {.uid = 77};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	own_user = own;
	errno = EINTR; /* of something before */
	r = wrk_host_user_find(name, &user, &err);
	fprintf(out, "%s of %u: ", name != NULL ? name : "none", own);
	if (r < 0) {
		cr_expect_eq(user.uid, 77);
		fprintf(out, "%s, %s\n", strerrorname_np(-r), err.text);
		return;
	}
	fprintf(out, "%s, %u, %u, other %d, at '%s', %zu groups%s\n", user.name, user.uid, user.gid,
		user.is_other, user.home, user.group_count,
		user.group_count > 0 && user.groups[user.group_count - 1] ==
						user.gid + (gid_t)user.group_count - 1
			? ""
			: ", none");
}

Test(worker_confine, the_user_of_hosts)
{
	static const uid_t own[] = {0, 300, 1000, 4711};
	static const char *const names[] = {NULL, "me", "frag", "nobody here", "broken"};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	group_count = 2;
	for (size_t i = 0; i < FRAG_COUNT_OF(own); i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(names); k++)
			show_user(own[i], names[k]);
	group_count = WRK_HOST_USER_GROUPS_MAX;
	show_user(0, "me");
	group_count++;
	show_user(0, "me");
	end("worker/host_users", &text);
}

/* How a child has ended. */
static int waited;
static bool is_gone;

pid_t waitpid(pid_t pid, int *status, int flags)
{
	if (!is_played)
		return wait4(pid, status, flags, NULL);
	if (waited < 0) {
		errno = is_gone ? ECHILD : EINTR;
		return -1;
	}
	*status = waited;
	return waited == 0x1234 ? 0 : pid;
}

static void show_reaped(int status)
{
	char core[64] = "before";
	int exited = 77, number = 77, r;

	waited = status;
	r = wrk_spawn_reap(4321, &exited, &number, core, sizeof(core));
	fprintf(out, "  %s: %d, %d, '%s'\n", r < 0 ? strerrorname_np(-r) : "0", exited, number,
		core);
}

Test(worker_confine, a_core_file_is_where_the_pattern_says)
{
	static const char *const patterns[] = {
		NULL,
		"core\n",
		"/cores/%p.%P\n",
		"/cores/core.%e.%p",
		"|/usr/lib/keep-core %P %u",
		"core.%",
		"|",
		"/a/folder/whose/name/is/longer/than/there/is/room/for/it.%p"};
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(patterns); i++) {
		core_pattern = patterns[i];
		fprintf(out, "%s\n",
			core_pattern == NULL                 ? "none"
			: strchr(core_pattern, '\n') != NULL ? "with a newline"
							     : core_pattern);
		show_reaped(SIGSEGV | 0x80);
	}
	fprintf(out, "other ends\n");
	show_reaped(SIGSEGV);
	show_reaped(7 << 8);
	show_reaped(0x1234);
	show_reaped(-1);
	is_gone = true;
	show_reaped(-1);
	end("worker/core_files", &text);
}
