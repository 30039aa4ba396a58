// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <base/arena.h>
#include <workerd/environment.h>
#include <workerd/interface.h>
#include <workerd/options.h>
#include <workerd/spawn.h>

struct child {
	pid_t pid;
	int pidfd, control, output;
	char script[256];
};

/* Of all children; closed at the end. */
static int kept[32];
static size_t kept_count;

static int keep(int fd)
{
	cr_assert_lt(kept_count, FRAG_COUNT_OF(kept));
	kept[kept_count++] = fd;
	return fd;
}

static void end(void)
{
	while (kept_count > 0)
		close(kept[--kept_count]);
}
TestSuite(worker_spawn, .fini = end);

/* A shell script in the place of fraghost. */
static int start(struct child *child, const char *text, struct frag_err *err)
{
	int control[2], output[2], ledger = memfd_create("ledger", MFD_CLOEXEC), script, r,
				   note = memfd_create("note", MFD_CLOEXEC),
				   saved = memfd_create("saved", MFD_CLOEXEC);
	char *environment[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL};

	snprintf(child->script, sizeof(child->script), "/tmp/frag-test-spawn-%d", (int)getpid());
	if (text != NULL) {
		script = open(child->script, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
		cr_assert_geq(script, 0);
		cr_assert_eq(write(script, text, strlen(text)), (ssize_t)strlen(text));
		close(script);
	}
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
	cr_assert_eq(pipe2(output, O_CLOEXEC), 0);
	r = wrk_spawn(&(struct wrk_spawn){.program = child->script,
					  .environment = environment,
					  .control_fd = control[1],
					  .ledger_fd = ledger,
					  .note_fd = note,
					  .output_fd = output[1],
					  .saved_fd = saved},
		      &child->pid, &child->pidfd, err);
	close(control[1]);
	close(output[1]);
	close(ledger);
	close(note);
	close(saved);
	child->control = keep(control[0]);
	child->output = keep(output[0]);
	if (r == 0)
		keep(child->pidfd);
	return r;
}

static void wait_end(struct child *child, int *status, int *number, char *core, size_t size)
{
	struct pollfd wait = {.fd = child->pidfd, .events = POLLIN};

	cr_assert_eq(poll(&wait, 1, 20000), 1);
	cr_assert_eq(wrk_spawn_reap(child->pid, status, number, core, size), 0);
	unlink(child->script);
}

static char *output_of(const struct child *child)
{
	static char text[4096];
	size_t used = 0;
	ssize_t n;

	while ((n = read(child->output, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	return text;
}

Test(worker_spawn, the_child_has_its_descriptors_and_no_others)
{
	struct child child;
	int status = -1, number = -1, stray = open("/dev/null", O_RDONLY); /* not closed on exec */
	char core[128];
	int lines = 0;

	cr_assert_geq(stray, 0);
	cr_assert_eq(start(&child, "#!/bin/sh\nls /proc/$$/fd\necho err >&2; exit 7\n", NULL), 0);
	wait_end(&child, &status, &number, core, sizeof(core));
	cr_expect_eq(status, 7);
	cr_expect_eq(number, 0);
	for (char *line = strtok(output_of(&child), "\n"); line != NULL;
	     line = strtok(NULL, "\n")) {
		lines++; /* 10 or 255 is the shell's own for its script */
		cr_expect(strlen(line) == 1 ? *line <= '6'
					    : strcmp(line, "10") == 0 || strcmp(line, "255") == 0 ||
						      strcmp(line, "err") == 0,
			  "%s", line);
	}
	cr_expect_geq(lines, 7);
	close(stray);
}

Test(worker_spawn, the_socket_is_3_the_ledger_4_the_note_5_and_what_is_saved_6)
{
	struct child child;
	int status, number;
	char core[128];
	const char *text;

	cr_assert_eq(
		start(&child,
		      "#!/bin/sh\nfor i in 0 3 4 5 6; do readlink /proc/$$/fd/$i; done; echo err >&2\n",
		      NULL),
		0);
	text = output_of(&child);
	cr_expect(strstr(text, "/dev/null\nsocket:") == text, "%s", text);
	cr_expect(strstr(text, "/memfd:ledger"), "%s", text);
	cr_expect(strstr(text, "/memfd:note"), "%s", text);
	cr_expect(strstr(text, "/memfd:saved"), "%s", text);
	cr_expect(strstr(text, "err\n"), "%s", text);
	wait_end(&child, &status, &number, core, sizeof(core));
	cr_expect_eq(status, 0);
}

/* Its first argument is what ps shows. */
Test(worker_spawn, a_program_gets_its_arguments)
{
	char *arguments[] = {(char *)(uintptr_t) "shown",
			     (char *)(uintptr_t) "-c",
			     (char *)(uintptr_t) "tr '\\0' '|' </proc/$$/cmdline; exit $3",
			     (char *)(uintptr_t) "x",
			     (char *)(uintptr_t) "y z",
			     (char *)(uintptr_t) "",
			     (char *)(uintptr_t) "9",
			     NULL};
	char *environment[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin", NULL};
	int output[2], status = -1, number = -1;
	struct child child = {.script = ""};
	char core[128];

	cr_assert_eq(pipe2(output, O_CLOEXEC), 0);
	cr_assert_eq(wrk_spawn(&(struct wrk_spawn){.program = "/bin/sh",
						   .arguments = arguments,
						   .environment = environment,
						   .control_fd = 0,
						   .ledger_fd = 0,
						   .note_fd = 0,
						   .output_fd = output[1],
						   .saved_fd = 0},
			       &child.pid, &child.pidfd, NULL),
		     0);
	close(output[1]);
	child.output = output[0];
	wait_end(&child, &status, &number, core, sizeof(core));
	cr_expect_eq(status, 9);
	cr_expect(strncmp(output_of(&child), "shown|-c|tr ", 12) == 0, "%s", output_of(&child));
	close(output[0]);
	close(child.pidfd);
}

Test(worker_spawn, a_signal_is_told_apart_from_a_status)
{
	struct child child;
	int status = -1, number = -1;
	char core[128];

	cr_assert_eq(start(&child, "#!/bin/sh\nulimit -c 0; kill -SEGV $$\n", NULL), 0);
	wait_end(&child, &status, &number, core, sizeof(core));
	cr_expect_eq(number, SIGSEGV);
	cr_expect_str_eq(core, "");
}

/* Where this program says it is; NULL: where it is. */
static const char *own_path;

ssize_t readlink(const char *path, char *out, size_t size)
{
	if (own_path == NULL)
		return syscall(SYS_readlink, path, out, size);
	cr_expect_str_eq(path, "/proc/self/exe");
	if (own_path[0] == '\0') {
		errno = EACCES;
		return -1;
	}
	memcpy(out, own_path, strlen(own_path));
	return (ssize_t)strlen(own_path);
}

Test(worker_spawn, the_host_lies_beside_its_worker)
{
	char folder[] = "/tmp/frag-spawn-XXXXXX", own[64], lib[64], frag[80], host[96], found[128];
	int fd;

	cr_assert_not_null(mkdtemp(folder));
	snprintf(own, sizeof(own), "%s/bin/workerd", folder);
	snprintf(lib, sizeof(lib), "%s/libexec", folder);
	snprintf(frag, sizeof(frag), "%s/frag", lib);
	snprintf(host, sizeof(host), "%s/fraghost", frag);
	own_path = own;
	cr_expect_eq(wrk_spawn_find_host(found, sizeof(found)), -ENOENT);
	cr_expect_str_eq(found, host, "for a sentence");
	cr_assert(mkdir(lib, 0700) == 0 && mkdir(frag, 0700) == 0);
	fd = open(host, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_expect_eq(wrk_spawn_find_host(found, sizeof(found)), -EACCES);
	cr_assert_eq(fchmod(fd, 0700), 0);
	close(fd);
	cr_expect_eq(wrk_spawn_find_host(found, sizeof(found)), 0);
	cr_expect_str_eq(found, host);
	own_path = "workerd";
	cr_expect_eq(wrk_spawn_find_host(found, sizeof(found)), -ENOENT);
	own_path = "";
	cr_expect_eq(wrk_spawn_find_host(found, sizeof(found)), -EACCES);
	own_path = NULL;
	unlink(host);
	rmdir(frag);
	rmdir(lib);
	rmdir(folder);
}

Test(worker_spawn, what_does_not_exist_is_an_error_with_its_name)
{
	struct child child;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(start(&child, NULL, &err), -ENOENT);
	cr_expect(strstr(err.text, child.script), "%s", err.text);
	cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "no child is left");
}

Test(worker_spawn, the_child_dies_with_its_parent)
{
	int report[2];
	pid_t between, grandchild = 0;
	struct pollfd wait;
	int grandchild_fd;
	char path[64];

	cr_assert_eq(pipe(report), 0);
	keep(report[0]);
	keep(report[1]);
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	between = fork();
	if (between == 0) {
		struct child child;

		if (start(&child, "#!/bin/sh\nread x <&3; exec sleep 100\n", NULL) < 0)
			_exit(1);
		(void)!write(report[1], &child.pid, sizeof(child.pid));
		(void)fcntl(child.control, F_SETFD, 0);
		pause();
	}
	cr_assert_eq(read(report[0], &grandchild, sizeof(grandchild)), (ssize_t)sizeof(grandchild));
	grandchild_fd = (int)syscall(434 /* pidfd_open */, grandchild, 0u);
	cr_assert_geq(grandchild_fd, 0);
	keep(grandchild_fd);
	cr_assert_eq(kill(between, SIGKILL), 0);
	wait = (struct pollfd){.fd = grandchild_fd, .events = POLLIN};
	cr_expect_eq(poll(&wait, 1, 10000), 1);
	while (waitpid(-1, NULL, 0) > 0)
		;
	snprintf(path, sizeof(path), "/tmp/frag-test-spawn-%d", (int)between);
	unlink(path);
}

static const char *value_of(char *const *environment, const char *name)
{
	const char *found = NULL;

	for (size_t length = strlen(name); *environment != NULL; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=') {
			cr_expect_null(found, "%s is there once", name);
			found = *environment + length + 1;
		}
	return found;
}

Test(worker_spawn, the_environment_is_the_users_then_the_flags_then_ours)
{
	const struct wrk_environment wanted = {
		.library_path = "/libs", .device = "lo", .port_first = 20000, .port_last = 20010};
	struct fragi_arena arena = {0};
	char *const *environment;

	setenv("FRAG_LIBRARY_PATH", "/of/the/user", 1);
	setenv("FRAG_APP_ROOT", "/root/of/the/user", 1);
	setenv("UCX_TCP_TX_SEG_SIZE", "8K", 1);
	setenv("UCX_SOMETHING_ELSE", "1", 1);
	setenv("FRAG_LIBRARY", "begins alike", 1);
	setenv("FRAG_LIBRARY_PATH_2", "goes on", 1);
	unsetenv("UCX_NET_DEVICES");
	unsetenv("UCX_TCP_PORT_RANGE");
	environment = wrk_environment_make(&wanted, &arena);
	cr_assert_not_null(environment);
	cr_expect_str_eq(value_of(environment, "FRAG_LIBRARY_PATH"), "/libs",
			 "the flag wins over the variable");
	cr_expect_str_eq(value_of(environment, "FRAG_APP_ROOT"), "/root/of/the/user");
	cr_expect_str_eq(value_of(environment, "UCX_TCP_TX_SEG_SIZE"), "8K", "the user's own wins");
	cr_expect_str_eq(value_of(environment, "UCX_SOMETHING_ELSE"), "1");
	cr_expect_str_eq(value_of(environment, "FRAG_LIBRARY"), "begins alike");
	cr_expect_str_eq(value_of(environment, "FRAG_LIBRARY_PATH_2"), "goes on");
	cr_expect_str_eq(value_of(environment, "UCX_NET_DEVICES"), "lo");
	cr_expect_str_eq(value_of(environment, "UCX_TCP_PORT_RANGE"), "20000-20010");
	cr_expect_not_null(value_of(environment, "UCX_HANDLE_ERRORS"));
	fragi_arena_fini(&arena);
}

Test(worker_spawn, loopback_has_a_device_and_a_foreign_address_is_refused_with_what_there_is)
{
	char device[IF_NAMESIZE] = "";
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(wrk_interface_find("127.0.0.1", device, &err), 0);
	cr_expect_str_eq(device, "lo");
	cr_assert_eq(wrk_interface_find("::ffff:127.0.0.1", device, &err), 0);
	cr_assert_eq(wrk_interface_find("192.0.2.77", device, &err), -ENOENT);
	cr_expect(strstr(err.text, "192.0.2.77"));
	cr_expect(strstr(err.text, "127.0.0.1 (lo)"), "%s", err.text);
}

static int parse(struct wrk_options *options, struct frag_err *err, const char *const *words)
{
	char *argv[16] = {(char *)(uintptr_t) "workerd"};
	int argc = 1, r;

	while (*words != NULL)
		argv[argc++] = (char *)(uintptr_t)*words++;
	r = wrk_options_parse(options, argc, argv, err);
	return r;
}
#define PARSE(options, err, ...) parse(options, err, (const char *const[]){__VA_ARGS__, NULL})

Test(worker_options, flags_become_options)
{
	struct wrk_options options;

	cr_assert_eq(PARSE(&options, NULL, "--address", "[::1]:5", "--fragments", "a,app/b",
			   "--worker-address", "127.0.0.1:20000-20010", "--once", "--name=w",
			   "-vvq"),
		     0);
	cr_expect_str_eq(options.driver_text, "[::1]:5");
	cr_assert_eq(options.fragment_count, 2);
	cr_expect_str_eq(options.fragments[1], "app/b");
	cr_expect_eq(options.worker_address.port, 20000);
	cr_expect_eq(options.worker_address.port_last, 20010);
	cr_expect(options.once);
	cr_expect_str_eq(options.name, "w");
	cr_expect_eq(options.verbosity, 1);
	wrk_options_fini(&options);
}

Test(worker_options, defaults_are_those_of_the_contract)
{
	struct wrk_options options;

	cr_assert_eq(PARSE(&options, NULL, "--worker-address", "127.0.0.1", "--fragments", "all"),
		     0);
	cr_expect_str_eq(options.driver_text, "127.0.0.1:57777");
	cr_expect_eq(options.fragment_count, 0);
	cr_expect_eq(options.worker_address.port, 10000);
	cr_expect_eq(options.worker_address.port_last, 32767);
	wrk_options_fini(&options);
}

Test(worker_options, one_port_is_one_port)
{
	static const struct {
		const char *text;
		uint16_t first, last;
	} cases[] = {
		{"127.0.0.1:10000", 10000, 10000},
		{"127.0.0.1:32767", 32767, 32767},
		{"127.0.0.1:10000-10001", 10000, 10001},
		{"127.0.0.1:0", 10000, 32767},
		{"[::1]", 10000, 32767},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct wrk_options options;

		cr_assert_eq(PARSE(&options, NULL, "--worker-address", cases[i].text), 0);
		cr_expect_eq(options.worker_address.port, cases[i].first, "%s", cases[i].text);
		cr_expect_eq(options.worker_address.port_last, cases[i].last, "%s", cases[i].text);
		wrk_options_fini(&options);
	}
}

Test(worker_options, refusals_name_the_flag)
{
	static const char *const cases[][3] = {
		{"--fragments", "a,,b", "--fragments"},
		{"--fragments", "a/b/c", "--fragments"},
		{"--address", "10.1.2.3", "--insecure"},
		{"--address", "h:1:2", "h:1:2"},
		{"--worker-address", ":100", "--worker-address"},
		{"--worker-address", "127.0.0.1:9999", "between 10000 and 32767"},
		{"--worker-address", "127.0.0.1:32768", "between 10000 and 32767"},
		{"--worker-address", "127.0.0.1:32767-32768", "between 10000 and 32767"},
		{"--worker-address", "127.0.0.1:20001-20000", "20001-20000"},
		{"--worker-address", "127.0.0.1:70000", "70000"},
		{"--frgments", "a", "did you mean --fragments"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct wrk_options options;
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(PARSE(&options, &err, cases[i][0], cases[i][1]), -EINVAL, "%s",
			     cases[i][1]);
		cr_expect(strstr(err.text, cases[i][2]), "%s: %s", cases[i][1], err.text);
		wrk_options_fini(&options);
	}
}

/* From now on the kernel refuses a system call to this process, as a container does. */
static void forbid(unsigned int call, unsigned int code)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = {sizeof(rules) / sizeof(rules[0]), rules};

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

Test(worker_spawn, what_the_system_refuses_is_named_with_what_to_do)
{
	static const struct {
		unsigned int call, code;
		const char *sentence;
	} cases[] = {
		{SYS_pidfd_open, ENOSYS,
		 ": pidfd_open: Function not implemented; let its container allow this system call (seccomp profile), or use Linux 5.3 or newer"},
		{SYS_clone, EAGAIN, ": fork: Resource temporarily unavailable; "},
		{SYS_pipe2, EMFILE, ": pipe2: Too many open files (raise the limit: ulimit -n)"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			const struct wrk_spawn spawn = {.program = "/bin/true"};
			struct frag_err err = FRAG_ERR_INIT;
			int pidfd;
			pid_t pid;

			forbid(cases[i].call, cases[i].code);
			_exit(wrk_spawn(&spawn, &pid, &pidfd, &err) == -(int)cases[i].code &&
					      strstr(err.text, cases[i].sentence) != NULL &&
					      strncmp(err.text, "cannot start /bin/true", 22) == 0
				      ? 0
				      : 1);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0, "%s", cases[i].sentence);
	}
}

Test(worker_spawn, a_program_whose_dynamic_linker_is_missing_is_for_another_library)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct child child;

	cr_expect_eq(start(&child, "#!/no/such/interpreter\n", &err), -ENOENT);
	cr_expect_not_null(strstr(err.text, "it could not find the dynamic linker that it names"),
			   "%s", err.text);
	unlink(child.script);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(start(&child, NULL, &err), -ENOENT);
	cr_expect_null(strstr(err.text, "linker"), "%s", err.text);
}
