// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <built.h>
#include <frag/run.h>
#include <left.h>

/* frag/run.h: applications that run in this process. */

#define SECOND INT64_C(1000000000)
#define LIMIT (60 * SECOND)

static const char *plugins;

static void find_plugins(void)
{
	plugins = built("tests/sample_plugins");
	left_own.descriptors = 2; /* libuv's, of the module that runs applications */
}

TestSuite(run_api, .init = find_plugins);

static void hang_is_left(void)
{
	left_own = (struct left){.descriptors = 10, .threads = 2, .shared_maps = 1};
}

/* Three messages, or as many as the argument says. */
static const char short_one[] =
	"frag: 1\napplication: app\narguments: {count: {default: 3}}\n"
	"operators:\n"
	"  tx: {type: ping_tx, conditions: [{type: count, count: \"${count}\"}]}\n"
	"  rx: {type: ping_rx}\n"
	"flows: [tx -> rx]\n";
static const char endless[] = "frag: 1\napplication: app\n"
			      "operators:\n"
			      "  tx: {type: ping_tx, conditions: [{type: periodic, "
			      "recess_period: 1ms}]}\n"
			      "  rx: {type: forward}\n"
			      "flows: [tx -> rx]\n";

static struct frag_run *load(const char *text)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run = NULL;

	config.text = text;
	config.library_path = plugins;
	cr_assert_eq(frag_run_load(&config, &run, &err), 0, "%s", err.text);
	return run;
}

static struct frag_run *start(const char *text)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run = load(text);

	cr_assert_eq(frag_run_start(run, &err), 0, "%s", err.text);
	return run;
}

static void expect_summary(struct frag_run *run, const char *part)
{
	const char *summary = frag_run_summary(run);

	cr_assert_not_null(summary);
	cr_expect_not_null(strstr(summary, part), "%s: not in %s", part, summary);
}

Test(run_api, an_application_runs_to_its_end)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run = start(short_one);

	cr_expect_eq(frag_run_wait(run, LIMIT, &err), 0, "%s", err.text);
	cr_expect_eq(frag_run_wait(run, 0, NULL), 0, "the answer stays");
	expect_summary(run, "\"application\": \"app\", \"result\": \"done\"");
	expect_summary(run, "\"sent\": 3, \"delivered\": 3,");
	frag_run_stop(run); /* it has ended: nothing happens */
	frag_run_destroy(run);
}

Test(run_api, arguments_files_and_settings_count)
{
	const char *const arguments[] = {"--count", "5", NULL};
	const char *const sets[] = {"app.rx.count=2", NULL};
	char graph[] = "/tmp/run_api_XXXXXX", config_file[] = "/tmp/run_api_XXXXXX";
	int graph_fd = mkstemp(graph), config_fd = mkstemp(config_file);
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;

	cr_assert_gt(graph_fd, 0);
	cr_assert_gt(config_fd, 0);
	dprintf(graph_fd,
		"frag: 1\napplication: app\nextensions: [libtruth.so]\n"
		"arguments: {count: {default: 3}}\n"
		"config: {tx: {file: /dev/null}}\n"
		"operators:\n"
		"  tx: {type: truth_tx, parameters: {from_config: tx, count: \"${count}\"}}\n"
		"  rx: {type: truth_rx, parameters: {file: /dev/null}}\n"
		"flows: [{from: tx, to: rx, capacity: 1}]\n");
	dprintf(config_fd, "tx: {size: 8, pause: 1us}\n");
	config.path = graph;
	config.arguments = arguments;
	config.sets = sets;
	config.configs = (const char *const[]){config_file, NULL};
	config.library_path = plugins;
	cr_assert_eq(frag_run_load(&config, &run, &err), 0, "%s", err.text);
	cr_assert_eq(frag_run_start(run, &err), 0, "%s", err.text);
	cr_expect_eq(frag_run_wait(run, LIMIT, &err), 0, "%s", err.text);
	expect_summary(run, "\"delivered\": 2,"); /* rx.count */
	frag_run_destroy(run);
	close(graph_fd);
	close(config_fd);
	unlink(graph);
	unlink(config_file);
}

/* Waits until an operator has written into a file. */
static void await_text(const char *path)
{
	struct stat status;

	for (int i = 0; i < 60000; i++) {
		if (stat(path, &status) == 0 && status.st_size > 0)
			return;
		usleep(1000);
	}
	cr_assert_fail("nothing was written into %s", path);
}

Test(run_api, stop_ends_it_in_order)
{
	char sent[] = "/tmp/run_api_XXXXXX", text[1000];
	int fd = mkstemp(sent);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;

	cr_assert_gt(fd, 0);
	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\nextensions: [libtruth.so]\n"
		 "operators:\n"
		 "  tx: {type: truth_tx, parameters: {file: %s, pause: 1ms}}\n"
		 "  rx: {type: truth_rx, parameters: {file: /dev/null}}\n"
		 "flows: [{from: tx, to: rx, capacity: 16}]\n",
		 sent);
	run = start(text);
	await_text(sent);
	cr_expect_eq(frag_run_wait(run, 0, &err), -ETIMEDOUT);
	cr_expect_not_null(strstr(err.text, "app still runs"));
	cr_expect_null(frag_run_summary(run), "there is none before the end");
	frag_run_stop(run);
	cr_expect_eq(frag_run_wait(run, LIMIT, NULL), 0);
	expect_summary(run, "\"result\": \"stopped\", \"reason\": null, \"exit_code\": 0");
	expect_summary(run,
		       "\"dropped\": {\"queue_full\": 0, \"no_room\": 0, \"receiver_done\": 0, "
		       "\"stopped\": 0, ");
	expect_summary(run, "\"lost\": 0, \"in_flight\": 0");
	frag_run_destroy(run);
	close(fd);
	unlink(sent);
}

static void *wait_for_it(void *run)
{
	return (void *)(intptr_t)frag_run_wait(run, LIMIT, NULL);
}

Test(run_api, several_threads_wait_for_one_run)
{
	struct frag_run *run = start(endless);
	pthread_t threads[3];
	void *result;

	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, wait_for_it, run), 0);
	frag_run_stop(run);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		cr_expect_eq((intptr_t)result, 0);
	}
	frag_run_destroy(run);
}

/* A wait takes as long as it may, across the end of a second too. */
Test(run_api, a_wait_lasts_as_long_as_it_says)
{
	static const int64_t limits_ns[] = {0, 5000000, SECOND - 1};
	struct frag_run *run = start(endless);

	for (size_t i = 0; i < FRAG_COUNT_OF(limits_ns); i++) {
		struct timespec before, after;
		int64_t took_ns;

		clock_gettime(CLOCK_MONOTONIC, &before);
		cr_expect_eq(frag_run_wait(run, limits_ns[i], NULL), -ETIMEDOUT);
		clock_gettime(CLOCK_MONOTONIC, &after);
		took_ns = (after.tv_sec - before.tv_sec) * SECOND + after.tv_nsec - before.tv_nsec;
		cr_expect_geq(took_ns, limits_ns[i], "%d ns of %d", (int)took_ns,
			      (int)limits_ns[i]);
	}
	frag_run_destroy(run);
}

Test(run_api, destroy_stops_what_runs)
{
	frag_run_destroy(NULL);
	frag_run_destroy(load(endless)); /* never started */
	frag_run_destroy(start(endless));
	frag_run_destroy(start(endless));
}

Test(run_api, one_runs_at_a_time_and_only_once)
{
	struct frag_err err = FRAG_ERR_INIT, other_err = FRAG_ERR_INIT;
	struct frag_run *run = start(endless), *other = load(short_one);

	cr_expect_eq(frag_run_start(run, &err), -EALREADY);
	cr_expect_not_null(strstr(err.text, "app was started before; load it again"));
	cr_expect_eq(frag_run_wait(other, 0, NULL), -EINVAL, "it was not started");
	frag_run_stop(other);
	cr_expect_null(frag_run_summary(other));
	cr_expect_eq(frag_run_start(other, &other_err), -EBUSY);
	cr_expect_not_null(strstr(other_err.text, "another application runs in this process"));
	frag_run_stop(run);
	cr_expect_eq(frag_run_wait(run, LIMIT, NULL), 0);
	cr_expect_eq(frag_run_start(other, NULL), 0, "now it may run");
	cr_expect_eq(frag_run_wait(other, LIMIT, NULL), 0);
	frag_run_destroy(other);
	frag_run_destroy(run);
}

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int n = 0;

	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n;
}

Test(run_api, many_runs_leave_nothing_behind)
{
	int descriptors = 0, threads = 0;

	for (int i = 0; i < 30; i++) {
		struct frag_run *run = start(short_one);

		cr_assert_eq(frag_run_wait(run, LIMIT, NULL), 0);
		expect_summary(run, "\"delivered\": 3,");
		frag_run_destroy(run);
		if (i == 1) { /* what is opened once is open */
			descriptors = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
		}
	}
	cr_expect_eq(entries("/proc/self/fd"), descriptors);
	cr_expect_eq(entries("/proc/self/task"), threads);
}

static void refused(struct frag_run *run, const char *text, int code, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(frag_run_set(run, text, &err), code, "%s: %s", text, err.text);
	cr_expect_str_eq(err.text, sentence);
}

/* Operators run as soon as a change is not refused with -EAGAIN any more. */
static void set(struct frag_run *run, const char *text)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < 60000; i++) {
		err = (struct frag_err)FRAG_ERR_INIT;
		r = frag_run_set(run, text, &err);
		usleep(r == -EAGAIN ? 1000 : 0);
	}
	cr_assert_eq(r, 0, "%s: %s", text, err.text);
}

Test(run_api, a_parameter_is_set_while_it_runs)
{
	static const char text[] = "frag: 1\napplication: app\n"
				   "extensions: [libgood.so, libnumbers.so]\n"
				   "operators:\n"
				   "  tx: {type: numbers, parameters: {count: 1000000000}, "
				   "conditions: [{type: periodic, recess_period: 1ms}]}\n"
				   "  scale: {type: scale}\n"
				   "flows: [tx -> scale]\n";
	struct frag_run *run = load(text);

	refused(run, "app.scale.factor=3", -EAGAIN, "app was not started");
	cr_assert_eq(frag_run_start(run, NULL), 0);
	set(run, "app.scale.factor=3");
	refused(run, "app.scale.factor=three", -EINVAL,
		"app.scale: parameter \"factor\": \"three\" is not a valid number; write one such as 0.5");
	refused(run, "app.scala.factor=3", -EINVAL,
		"unknown operator \"scala\"; did you mean \"scale\"?");
	refused(run, "factor=3", -EINVAL,
		"\"factor=3\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE");
	frag_run_stop(run);
	cr_expect_eq(frag_run_wait(run, LIMIT, NULL), 0);
	refused(run, "app.scale.factor=3", -EAGAIN, "app has ended");
	frag_run_destroy(run);
}

static void collect(void *arg, const char *line)
{
	char *all = arg;

	strncat(all, line, 4000 - strlen(all));
	strcat(all, "\n");
}

static struct frag_run_config collecting(const char *text, char *all)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;

	all[0] = '\0';
	config.text = text;
	config.error = collect;
	config.arg = all;
	config.library_path = plugins;
	return config;
}

Test(run_api, what_is_wrong_with_a_graph_is_reported_all_at_once)
{
	char all[4096];
	struct frag_run_config config =
		collecting("frag: 1\napplication: app\noperatorz: {}\nflowz: []\n", all);
	struct frag_err err = FRAG_ERR_INIT, second = FRAG_ERR_INIT;
	struct frag_run *run = NULL;

	cr_expect_eq(frag_run_load(&config, &run, &err), -EINVAL);
	cr_expect_null(run);
	cr_expect_eq(err.line, 3);
	cr_expect_not_null(strstr(err.text, "did you mean \"operators\"?"), "%s", err.text);
	cr_expect_not_null(strstr(all, "graph:3:1: "), "%s", all);
	cr_expect_not_null(strstr(all, "graph:4:1: "), "%s", all);
	config.path = "/nowhere/app.yaml";
	cr_expect_eq(frag_run_load(&config, &run, NULL), -EINVAL, "a path and a text");
	config.text = NULL;
	cr_expect_eq(frag_run_load(&config, &run, &second), -ENOENT);
	cr_expect_not_null(strstr(second.text, "cannot read graph /nowhere/app.yaml"));
	config.path = NULL;
	cr_expect_eq(frag_run_load(&config, &run, NULL), -EINVAL);
}

/* The last report. */
static void keep_last(void *arg, const char *text)
{
	snprintf(arg, 80, "%s", text);
}

Test(run_api, errors_beyond_a_hundred_are_counted)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	char text[4096], last[80];
	size_t used = (size_t)snprintf(text, sizeof(text), "frag: 1\napplication: app\n");
	struct frag_run *run;

	for (int i = 0; i < 103; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "x%d: 1\n", i);
	snprintf(text + used, sizeof(text) - used, "operators: {tx: {type: ping_tx}}\n");
	config.text = text;
	config.error = keep_last;
	config.arg = last;
	cr_expect_eq(frag_run_load(&config, &run, NULL), -EINVAL);
	cr_expect_str_eq(last, "and 3 more errors");
}

Test(run_api, what_only_libraries_show_is_the_answer_of_wait)
{
	char all[4096];
	struct frag_run_config config =
		collecting("frag: 1\napplication: app\n"
			   "operators: {tx: {type: ping_txx}, rx: {type: ping_rx}}\n",
			   all);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;

	cr_assert_eq(frag_run_load(&config, &run, NULL), 0);
	cr_assert_eq(frag_run_start(run, NULL), 0);
	cr_expect_eq(frag_run_wait(run, LIMIT, &err), -EINVAL);
	cr_expect_not_null(strstr(err.text, "did you mean \"ping_tx\"?"), "%s", err.text);
	cr_expect_not_null(strstr(all, "unknown operator type \"ping_txx\""), "%s", all);
	cr_expect_not_null(strstr(all, "input \"in\" is not connected"), "%s", all);
	expect_summary(run, "\"result\": \"failed\"");
	frag_run_destroy(run);
}

#define TRUTH(parameters)                                                                          \
	"frag: 1\napplication: app\nextensions: [libtruth.so]\n"                                   \
	"operators:\n"                                                                             \
	"  tx: {type: truth_tx, parameters: {file: /dev/null, " parameters "}}\n"                  \
	"  rx: {type: forward}\n"                                                                  \
	"flows: [tx -> rx]\n"

Test(run_api, wait_returns_the_error_of_the_run_and_another_may_follow)
{
	for (int i = 0; i < 3; i++) {
		char all[4096];
		struct frag_run_config config = collecting(TRUTH("fail: error"), all);
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_run *run;

		cr_assert_eq(frag_run_load(&config, &run, NULL), 0);
		cr_assert_eq(frag_run_start(run, NULL), 0);
		cr_expect_eq(frag_run_wait(run, LIMIT, &err), -EIO);
		cr_expect_not_null(strstr(err.text, "the test asked for an error at message 10"),
				   "%s", err.text);
		cr_expect_str_eq(err.op, "app.tx");
		cr_expect_not_null(strstr(all, "the test asked for an error"), "%s", all);
		expect_summary(run, "\"failure\": {\"code\": \"operator_failed\"");
		frag_run_destroy(run);
		run = start(short_one);
		cr_expect_eq(frag_run_wait(run, LIMIT, NULL), 0);
		frag_run_destroy(run);
	}
}

Test(run_api, an_operator_that_hangs_is_left_behind)
{
	struct frag_err err = FRAG_ERR_INIT, other_err = FRAG_ERR_INIT;
	struct frag_run *run, *other = load(short_one);
	char all[4096];
	struct frag_run_config config =
		collecting("frag: 1\napplication: app\nextensions: [libunruly.so]\n"
			   "operators:\n"
			   "  op: {type: unruly, watchdog: 100ms, "
			   "parameters: {where: compute, deed: hang}}\n",
			   all);

	hang_is_left();
	cr_assert_eq(frag_run_load(&config, &run, &err), 0, "%s", err.text);
	cr_assert_eq(frag_run_start(run, NULL), 0);
	cr_expect_eq(frag_run_wait(run, LIMIT, &err), -EIO);
	cr_expect_str_eq(err.op, "app.op", "%s", err.text);
	frag_run_destroy(run);
	cr_expect_eq(frag_run_start(other, &other_err), -EBUSY);
	cr_expect_not_null(strstr(other_err.text, "still hangs in this process"));
	frag_run_destroy(other);
}

/* The first stop waits for the operator, whose hang is then a failure; the second one does not. */
Test(run_api, the_second_stop_does_not_wait)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_run *run;
	char all[4096];
	struct frag_run_config config =
		collecting("frag: 1\napplication: app\nextensions: [libunruly.so]\n"
			   "operators:\n"
			   "  op: {type: unruly, parameters: {where: compute, deed: hang}}\n",
			   all);

	hang_is_left();
	cr_assert_eq(frag_run_load(&config, &run, &err), 0, "%s", err.text);
	cr_assert_eq(frag_run_start(run, NULL), 0);
	cr_expect_eq(frag_run_wait(run, SECOND / 2, NULL), -ETIMEDOUT);
	frag_run_stop(run);
	frag_run_stop(run);
	cr_expect_eq(frag_run_wait(run, LIMIT, &err), 0, "%s", err.text);
	frag_run_destroy(run);
}

static void on_signal(int number)
{
}

Test(run_api, the_process_stays_as_it_was)
{
	static const int numbers[] = {SIGINT,  SIGTERM, SIGTSTP, SIGCHLD, SIGPIPE,
				      SIGSEGV, SIGABRT, SIGHUP,  SIGXFSZ};
	struct sigaction action = {.sa_handler = on_signal}, now;
	FILE *out = stdout, *errors = stderr;
	char *variable = environ[0];
	int status, pipe_fds[2];
	struct frag_run *run;
	sigset_t before, after;
	pid_t child;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	cr_assert_eq(pipe(pipe_fds), 0);
	child = fork();
	if (child == 0) {
		char byte;

		_exit(read(pipe_fds[0], &byte, 1) == 1 ? 7 : 8);
	}
	run = start(short_one);
	cr_expect_eq(frag_run_wait(run, LIMIT, NULL), 0);
	cr_expect_eq(kill(child, 0), 0, "a child of the program is not ours to end");
	cr_assert_eq(write(pipe_fds[1], "x", 1), 1);
	cr_expect_eq(waitpid(child, &status, 0), child, "nor to wait for");
	cr_expect_eq(WEXITSTATUS(status), 7);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	frag_run_destroy(run);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaction(numbers[i], NULL, &now);
		cr_expect_eq(now.sa_handler, on_signal, "signal %d", numbers[i]);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int number = 1; number < NSIG; number++)
		cr_expect_eq(sigismember(&before, number), sigismember(&after, number));
	cr_expect_eq(environ[0], variable);
	cr_expect_null(getenv("FRAG_LIBRARY_PATHS"));
	cr_expect(stdout == out && stderr == errors);
}

Test(run_api, a_config_of_an_earlier_version_has_fewer_members)
{
	struct frag_run_config config = FRAG_RUN_CONFIG_INIT;
	struct frag_run *run;

	config.text = short_one;
	config.library_path = (const char *)1; /* would crash, if it were looked at */
	config.struct_size = offsetof(struct frag_run_config, library_path);
	cr_assert_eq(frag_run_load(&config, &run, NULL), 0);
	frag_run_destroy(run);
}
