// SPDX-License-Identifier: Apache-2.0
/*
 * A driverd and N workerd as children of this process, on loopback and a free port, or at the
 * address of the roles; the driver reports it through a pipe. When the driver ends, all end, and
 * its exit code is this one's. Every child is in a process group of its own, so that a terminal's
 * Ctrl-C comes here alone and is passed to the driver once; and dies with this process
 * (PR_SET_PDEATHSIG), so that nothing is left whatever happens.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/environment.h>
#include <base/arena.h>
#include <base/kernel.h>
#include <base/signals.h>
#include <base/stamp.h>
#include <fragctl/command.h>
#include <fragctl/run_top.h>
#include <fragctl/trace.h>

#define WORKERS_END_NS INT64_C(2000000000) /* for workers to end once the driver has */
#define DRIVER_END_NS INT64_C(5000000000)  /* for the driver to act on a worker's end */
#define ADDRESS_FD 3
#define DRIVER_FILES 24 /* that the driver needs beside a connection to each worker */

struct daemons {
	const struct ctl_run_options *options;
	struct fragi_arena arena;
	pid_t driver;   /* 0: not running */
	pid_t *workers; /* 0: ended */
	pid_t web;      /* of --web; 0: none, or ended */
	pid_t tracer;   /* of --trace; the same */
	int tracer_code;
	bool is_stopping;
	uint32_t worker_count;
	int driver_status;
	uint32_t lost; /* number of a worker that ended before the driver; 0: none */
	int lost_status;
	int64_t lost_ns; /* when */
	int signal_fd;
	sigset_t signals, before;
	struct ctl_run_top top; /* of --top */
};

/* In the child: nothing but what a new program needs. Does not return. */
static void become(const struct daemons *daemons, const struct ctl_command *command, pid_t parent,
		   int address_fd)
{
	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(CTL_FAILED);
	sigprocmask(SIG_SETMASK, &daemons->before, NULL);
	if (address_fd >= 0) {
		if (address_fd == ADDRESS_FD)
			fcntl(address_fd, F_SETFD, 0);
		else
			dup2(address_fd, ADDRESS_FD);
		setenv("FRAG_ADDRESS_FD", "3", 1);
	}
	ctl_run_top_hide(&daemons->top);
	_exit(ctl_command_execute(command));
}

/* Returns the child's id, or 0 after a sentence. */
static pid_t spawn(struct daemons *daemons, const struct ctl_command *command, int address_fd)
{
	char remedy[FRAGI_KERNEL_REMEDY_MAX];
	pid_t parent = getpid(), pid;
	int r;

	if (command->no_memory) {
		ctl_fail(CTL_FAILED, "out of memory");
		return 0;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		become(daemons, command, parent, address_fd);
	if (pid < 0) {
		r = -errno;
		ctl_fail(CTL_MISSING, "cannot start a process: %s%s", frag_strerror(r),
			 fragi_kernel_remedy(r, remedy));
		return 0;
	}
	setpgid(pid, pid);
	return pid;
}

static int start_driver(struct daemons *daemons, int *out_address_fd)
{
	struct ctl_command command = {.arena = &daemons->arena};
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return ctl_fail(CTL_MISSING, "cannot make a pipe: %s", frag_strerror(-errno));
	ctl_command_driver(&command, daemons->options);
	daemons->driver = spawn(daemons, &command, fds[1]);
	close(fds[1]);
	*out_address_fd = fds[0];
	return daemons->driver > 0 ? CTL_OK : CTL_MISSING;
}

/*
 * Gives every fragment to a worker: shares of equal size, in the order of the file; fragments that
 * name one host go together. Returns how many workers have any; lists: their --fragments.
 */
static uint32_t share(struct daemons *daemons, const char **lists)
{
	const struct fragi_spec *spec = daemons->options->graph.spec;
	uint32_t groups = 0, used = 0, worker, workers = daemons->worker_count;
	uint32_t *group =
		fragi_arena_alloc(&daemons->arena, (spec->fragment_count + 1) * sizeof(*group));

	if (group == NULL)
		return 0;
	for (size_t i = 0; i < spec->fragment_count; i++) {
		const char *host = spec->fragments[i].host;
		size_t j = 0;

		while (j < i && (host == NULL || spec->fragments[j].host == NULL ||
				 strcmp(spec->fragments[j].host, host) != 0))
			j++;
		group[i] = j < i ? group[j] : groups++;
	}
	workers = workers < groups ? workers : groups;
	for (size_t i = 0; i < spec->fragment_count; i++) {
		worker = (uint32_t)((uint64_t)group[i] * workers / groups);
		lists[worker] = fragi_arena_printf(
			&daemons->arena, "%s%s%s", lists[worker] != NULL ? lists[worker] : "",
			lists[worker] != NULL ? "," : "", spec->fragments[i].name);
		if (lists[worker] == NULL)
			return 0;
		used = worker + 1 > used ? worker + 1 : used;
	}
	return used;
}

/* Several need names; one that is a part of a role has that of its machine, as any other. */
static const char *worker_name(struct daemons *daemons, uint32_t i)
{
	return daemons->options->workers > 0
		       ? fragi_arena_printf(&daemons->arena, "worker%u", i + 1)
		       : NULL;
}

static int start_workers(struct daemons *daemons, const char *address)
{
	const struct ctl_graph *graph = &daemons->options->graph;
	const char **lists =
		fragi_arena_alloc(&daemons->arena, (daemons->worker_count + 1) * sizeof(*lists));
	int verbosity = daemons->options->verbosity;
	struct rlimit files;

	daemons->workers =
		fragi_arena_alloc(&daemons->arena, (daemons->worker_count + 1) * sizeof(pid_t));
	if (lists == NULL || daemons->workers == NULL)
		return ctl_fail(CTL_FAILED, "out of memory");
	if (daemons->options->workers > 0) {
		daemons->worker_count = share(daemons, lists);
		if (daemons->worker_count == 0)
			return ctl_fail(CTL_FAILED, "out of memory");
	} else {
		lists[0] = daemons->options->roles.fragments;
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	    files.rlim_cur < DRIVER_FILES + daemons->worker_count)
		return ctl_fail(
			CTL_MISSING,
			"a driver of %u workers needs %u open files, and may have %llu; raise the limit (ulimit -n), or give fewer --workers",
			daemons->worker_count, DRIVER_FILES + daemons->worker_count,
			(unsigned long long)files.rlim_cur);
	for (uint32_t i = 0; i < daemons->worker_count; i++) {
		struct ctl_command command = {.arena = &daemons->arena};
		/*
		 * On the same terminal the driver's log shows what they run, and how it ended; what
		 * they warn of is shown. Their users are as without workers.
		 */
		const struct ctl_command_worker worker = {
			.address = address,
			.name = worker_name(daemons, i),
			.fragments = lists[i],
			.app_root = graph->spec->app_folder,
			.verbosity =
				verbosity == 0 && getenv("FRAG_LOG_LEVEL") == NULL ? -1 : verbosity,
			.is_own_user = true,
		};

		ctl_command_worker(&command, daemons->options, &worker);
		daemons->workers[i] = spawn(daemons, &command, -1);
		if (daemons->workers[i] == 0)
			return CTL_MISSING;
	}
	return CTL_OK;
}

/* What it prints goes where logs go: stdout is for the summary. The run goes on without it. */
static void start_web(struct daemons *daemons, const char *address)
{
	struct ctl_command command = {.arena = &daemons->arena};

	if (!daemons->options->web)
		return;
	ctl_command_web(&command, daemons->options, address);
	daemons->web = spawn(daemons, &command, -1);
}

/* Once: in order. Again: at once. */
static void stop(struct daemons *daemons)
{
	daemons->is_stopping = true;
	if (daemons->driver > 0)
		kill(daemons->driver, SIGTERM);
}

/* Reaps what has ended. */
static void reap(struct daemons *daemons)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == daemons->driver) {
			daemons->driver = 0;
			daemons->driver_status = status;
			continue;
		}
		daemons->web = pid == daemons->web ? 0 : daemons->web;
		if (pid == daemons->tracer) {
			daemons->tracer = 0;
			daemons->tracer_code = WIFEXITED(status) ? WEXITSTATUS(status) : CTL_FAILED;
			continue;
		}
		if (pid == daemons->top.pid) { /* the person has seen enough */
			daemons->top.pid = 0;
			if (!daemons->is_stopping)
				stop(daemons);
			continue;
		}
		for (uint32_t i = 0; daemons->workers != NULL && i < daemons->worker_count; i++) {
			if (daemons->workers[i] != pid)
				continue;
			daemons->workers[i] = 0;
			if (daemons->driver == 0 || daemons->lost > 0)
				continue;
			daemons->lost = i + 1;
			daemons->lost_status = status;
			daemons->lost_ns = fragi_now_ns();
		}
	}
}

static void signal_workers(const struct daemons *daemons, int number)
{
	for (uint32_t i = 0; daemons->workers != NULL && i < daemons->worker_count; i++)
		if (daemons->workers[i] > 0)
			kill(daemons->workers[i], number);
	if (daemons->web > 0)
		kill(daemons->web, number);
}

static bool any_worker(const struct daemons *daemons)
{
	if (daemons->web > 0)
		return true;
	for (uint32_t i = 0; daemons->workers != NULL && i < daemons->worker_count; i++)
		if (daemons->workers[i] > 0)
			return true;
	return false;
}

/* Stops the daemons, whose process groups are not the terminal's, and this process. */
static void suspend(const struct daemons *daemons)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	if (daemons->driver > 0)
		kill(daemons->driver, SIGTSTP);
	signal_workers(daemons, SIGTSTP);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL); /* stops here */
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal_workers(daemons, SIGCONT);
	if (daemons->driver > 0)
		kill(daemons->driver, SIGCONT);
}

/*
 * Takes the signals that have come: children's ends, and a person's wish to stop, which is the
 * driver's to grant.
 */
static void take_signals(struct daemons *daemons)
{
	struct signalfd_siginfo info;

	while (read(daemons->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGTSTP)
			suspend(daemons);
		else if (info.ssi_signo == SIGHUP && daemons->is_stopping)
			continue; /* both the shell and the kernel send it for a closed terminal */
		else if (info.ssi_signo != SIGCHLD)
			stop(daemons);
	}
	reap(daemons);
}

/* Waits for the driver's one line. false: it ended without one. */
static bool read_address(struct daemons *daemons, int fd, char *address, size_t size)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = daemons->signal_fd, .events = POLLIN}};
	size_t used = 0;
	ssize_t n;

	while (memchr(address, '\n', used) == NULL) {
		if (poll(fds, FRAG_COUNT_OF(fds), -1) < 0 && errno != EINTR)
			return false;
		if (fds[1].revents != 0)
			take_signals(daemons);
		if (fds[0].revents == 0)
			continue;
		n = read(fd, address + used, size - 1 - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || used + (size_t)n >= size - 1)
			return false;
		used += (size_t)n;
	}
	*(char *)memchr(address, '\n', used) = '\0';
	return true;
}

static void wait_signal(struct daemons *daemons, int timeout_ms)
{
	struct pollfd fds[] = {{.fd = daemons->signal_fd, .events = POLLIN}};

	(void)poll(fds, 1, timeout_ms);
	take_signals(daemons);
}

/* Does not return. */
static void become_tracer(struct daemons *daemons, const char *address, pid_t parent, int ready_fd)
{
	const struct ctl_trace_wish wish = {
		.application = daemons->options->graph.spec->application,
		.file = daemons->options->trace,
		.on_failure = daemons->options->trace_on_failure,
		.is_of_run = true,
		.ready_fd = ready_fd,
	};
	int code;

	setpgid(0, 0);
	/* as by an interrupt, what has come is written */
	if (prctl(PR_SET_PDEATHSIG, SIGINT) < 0 || getppid() != parent)
		_exit(CTL_FAILED);
	sigprocmask(SIG_SETMASK, &daemons->before, NULL);
	ctl_run_top_hide(&daemons->top);
	code = ctl_trace_run(&wish, address);
	fflush(NULL);
	_exit(code);
}

/* It writes what it has once the application has ended, which may take a while. */
static int end_tracer(struct daemons *daemons)
{
	while (daemons->tracer > 0)
		wait_signal(daemons, 1000);
	return daemons->tracer_code;
}

/* Before the workers: nothing runs until the trace is under way. Returns an exit code. */
static int start_tracer(struct daemons *daemons, const char *address)
{
	pid_t parent = getpid();
	char none;
	ssize_t n;
	int fds[2];

	if (daemons->options->trace == NULL)
		return CTL_OK;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ctl_fail(CTL_MISSING, "cannot make a pipe: %s", frag_strerror(-errno));
	fflush(NULL);
	daemons->tracer = fork();
	if (daemons->tracer == 0) {
		close(fds[0]);
		become_tracer(daemons, address, parent, fds[1]);
	}
	close(fds[1]);
	if (daemons->tracer < 0) {
		daemons->tracer = 0;
		close(fds[0]);
		return ctl_fail(CTL_MISSING, "cannot start a process: %s", frag_strerror(-errno));
	}
	while ((n = read(fds[0], &none, 1)) < 0 && errno == EINTR)
		;
	close(fds[0]);
	return n == 1 ? CTL_OK : end_tracer(daemons); /* it has said why */
}

/* Ends what still runs. */
static void end_all(struct daemons *daemons)
{
	int64_t end_ns = fragi_now_ns() + WORKERS_END_NS;

	if (daemons->driver > 0) {
		kill(daemons->driver, SIGKILL);
		while (daemons->driver > 0)
			wait_signal(daemons, 100);
	}
	signal_workers(daemons, SIGTERM);
	while (any_worker(daemons) && fragi_now_ns() < end_ns)
		wait_signal(daemons, 50);
	signal_workers(daemons, SIGKILL);
	while (any_worker(daemons))
		wait_signal(daemons, 100);
}

/*
 * Until the driver has ended. It knows of a worker's end when the worker had joined; for one that
 * could not even start it would wait for ever.
 */
static int watch(struct daemons *daemons)
{
	bool is_known;
	int status;

	while (daemons->driver > 0) {
		wait_signal(daemons, daemons->lost > 0 ? 100 : -1);
		if (daemons->driver == 0 || daemons->lost == 0 ||
		    fragi_now_ns() - daemons->lost_ns < DRIVER_END_NS)
			continue;
		status = daemons->lost_status;
		/* Why, it has printed itself. */
		is_known = WIFEXITED(status) && WEXITSTATUS(status) != CTL_OK &&
			   WEXITSTATUS(status) <= FRAGI_EXIT_REFUSED;
		return ctl_fail(is_known ? WEXITSTATUS(status) : CTL_FAILED,
				"worker%u ended by itself (%s %d), so the application cannot run",
				daemons->lost, WIFEXITED(status) ? "status" : "signal",
				WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	}
	status = daemons->driver_status;
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : ctl_fail(FRAGI_EXIT_SIGNAL + WTERMSIG(status),
					    "driverd was ended by signal %d", WTERMSIG(status));
}

static int prepare(struct daemons *daemons)
{
	sigemptyset(&daemons->signals);
	sigaddset(&daemons->signals, SIGINT);
	sigaddset(&daemons->signals, SIGTERM);
	sigaddset(&daemons->signals, SIGCHLD);
	if (!fragi_signal_is_ignored(SIGHUP))
		sigaddset(&daemons->signals, SIGHUP);
	if (!fragi_signal_is_ignored(SIGTSTP))
		sigaddset(&daemons->signals, SIGTSTP);
	sigprocmask(SIG_BLOCK, &daemons->signals, &daemons->before);
	daemons->signal_fd = signalfd(-1, &daemons->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemons->signal_fd < 0)
		return ctl_fail(CTL_FAILED, "cannot wait for signals: %s", strerror(errno));
	return CTL_OK;
}

int ctl_run_daemons(const struct ctl_run_options *options)
{
	struct daemons daemons = {.options = options,
				  .worker_count = options->workers > 0 ? options->workers : 1,
				  .signal_fd = -1,
				  .top = {0, -1, -1}};
	char address[300] = "";
	int address_fd = -1, exit_code = prepare(&daemons), trace_code;

	if (exit_code == CTL_OK && options->top)
		exit_code = ctl_run_top_init(&daemons.top);
	if (exit_code == CTL_OK)
		exit_code = start_driver(&daemons, &address_fd);
	if (exit_code == CTL_OK && read_address(&daemons, address_fd, address, sizeof(address))) {
		exit_code = start_tracer(&daemons, address);
		if (exit_code == CTL_OK)
			exit_code = start_workers(&daemons, address);
	}
	if (exit_code == CTL_OK && address[0] != '\0')
		start_web(&daemons, address);
	if (exit_code == CTL_OK && daemons.top.out_fd >= 0 && address[0] != '\0')
		exit_code = ctl_run_top_start(&daemons.top, address, &daemons.before);
	if (exit_code == CTL_OK)
		exit_code = watch(&daemons);
	end_all(&daemons);
	trace_code = end_tracer(&daemons);
	exit_code = exit_code == CTL_OK ? trace_code : exit_code;
	ctl_run_top_end(&daemons.top);
	if (address_fd >= 0)
		close(address_fd);
	if (daemons.signal_fd >= 0)
		close(daemons.signal_fd);
	fragi_arena_fini(&daemons.arena);
	return exit_code;
}
