// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"

#include <pthread.h>
#include <semaphore.h>
#include <uv.h>

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*run)(void *arg), void *arg);
static int own_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb callback);
#define pthread_create own_thread_create
#define uv_async_init own_async_init
#include <runner/module.c> /* over a runner that this file plays */
#undef pthread_create
#undef uv_async_init

#include "logged.h"

/*
 * An application as a guest of somebody's program: what the program is told of its end, and what
 * it may do meanwhile and afterwards.
 */
static FILE *out;
static int fails_at, calls; /* that call of those that may fail does; 0: none */
static bool is_stuck;       /* the host */

static int may_fail(const char *what, int code)
{
	bool fails = ++calls == fails_at;

	fprintf(out, "  %s%s\n", what, fails ? ": fails" : "");
	return fails ? code : 0;
}

static int own_thread_create(pthread_t *out_thread, const pthread_attr_t *attr,
			     void *(*run)(void *arg), void *arg)
{
	int r = may_fail("thread", EAGAIN);

	return r != 0 ? r : pthread_create(out_thread, attr, run, arg);
}

static int own_async_init(uv_loop_t *loop, uv_async_t *async, uv_async_cb callback)
{
	int r = may_fail("handle", -EMFILE);

	return r < 0 ? r : uv_async_init(loop, async, callback);
}

int fragi_kernel_check(bool runs_hosts, struct frag_err *err)
{
	int r = may_fail("kernel", -EPERM);

	cr_expect(runs_hosts);
	return r < 0 ? frag_err_set(err, r, "no such call") : 0;
}

static struct fragi_spec spec = {.application = "app", .app_folder = "/app"};
static struct fragi_source source; /* of the program */

/* The runner: it ends so, at once or when it is told to stop so many times. */
static struct fragi_summary summary;
static unsigned int stops_needed, stops;
static int broken;
static sem_t is_there;

static void end_so(struct runner *runner)
{
	runner->is_over = true;
	fprintf(out, "  it ends with %d\n",
		broken < 0 ? runner->ops->broken(runner->arg, broken)
			   : runner->ops->ended(runner->arg, &summary));
}

int runner_init(struct runner *runner, uv_loop_t *loop, const struct runner_config *config,
		const struct runner_ops *ops, void *arg)
{
	sigset_t blocked;
	int r;

	cr_expect(loop != NULL && config->source == &source && config->is_guest &&
		  config->host == &runner_guest_thread);
	cr_expect(ops->client == NULL && ops->progress == NULL);
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	fprintf(out, "  a runner %s in %s, libraries %s, gets", config->name, config->app_folder,
		config->library_path);
	for (int i = 1; i < SIGRTMIN; i++)
		if (sigismember(&blocked, i) == 0 && i != SIGKILL && i != SIGSTOP &&
		    sigabbrev_np(i) != NULL)
			fprintf(out, " %s", sigabbrev_np(i));
	fprintf(out, "\n");
	*runner = (struct runner){.ops = ops, .arg = arg};
	r = may_fail("cores", -ENOMEM);
	if (r == 0 && stops_needed == 0)
		end_so(runner);
	sem_post(&is_there);
	return r;
}

void runner_stop(struct runner *runner, int signal)
{
	fprintf(out, "  stop %d by %d\n", (int)++stops, signal);
	if (stops == stops_needed)
		end_so(runner);
}

void runner_fini(struct runner *runner)
{
	(void)runner;
	fprintf(out, "  the runner is given back\n");
}

const struct wrk_spawn_ops runner_guest_thread;

bool runner_thread_join(void)
{
	return !is_stuck;
}

bool runner_thread_is_stuck(void)
{
	return is_stuck;
}

int host_process_main(int *out_status)
{
	return *out_status = 0;
}

int host_set(const char *text, const char *who, struct frag_err *err)
{
	(void)err;
	fprintf(out, "  sets %s for %s\n", text, who);
	return 0;
}

/* The program. */

static void on_error(void *arg, const char *line)
{
	cr_expect_eq(arg, &source);
	fprintf(out, "  program: %s\n", line);
}

static const struct fragi_runner_app app = {.source = &source,
					    .spec = &spec,
					    .library_path = "/lib",
					    .error = on_error,
					    .arg = &source};
static const struct fragi_runner_ops *const api = &fragi_runner_v1;

static void show_error(int r, const struct frag_err *err)
{
	fprintf(out, "  %s: %s (%s, %s)\n", r < 0 ? strerrorname_np(-r) : "0", err->text,
		fragi_failure_name((enum fragi_failure)err->failure),
		err->op[0] != '\0' ? err->op : "no operator");
}

static struct fragi_runner *start(const struct fragi_runner_app *wanted)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_runner *runner = NULL;
	int r;

	stops = 0;
	calls = 0;
	r = api->start(wanted, &runner, &err);
	if (r < 0)
		show_error(r, &err);
	else
		sem_wait(&is_there);
	return runner;
}

static void wait_for(struct fragi_runner *runner, int64_t timeout_ns)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = api->wait(runner, timeout_ns, &err);

	show_error(r, &err);
}

static void run_once(const char *what)
{
	struct fragi_runner *runner;
	const char *text;

	fprintf(out, "%s\n", what);
	runner = start(&app);
	if (runner == NULL)
		return;
	for (unsigned int i = 0; i < stops_needed; i++)
		api->stop(runner);
	wait_for(runner, -1);
	text = api->summary(runner);
	fprintf(out, "  %s", text != NULL ? text : "no summary\n");
	cr_expect(api->destroy(runner));
}

static void begin(char **text, size_t *size)
{
	out = open_memstream(text, size);
	sem_init(&is_there, 0, 0);
	summary = (struct fragi_summary){.application = "app"};
}

static void compare(const char *name, char **text)
{
	fclose(out);
	expected_compare(name, *text);
	free(*text);
}

Test(runner_module, ends_of_all_kinds)
{
	size_t size;
	char *text;

	begin(&text, &size);
	run_once("done");
	summary.exit_code = 3;
	run_once("done, and the code of the summary");
	summary.result = FRAGI_SUMMARY_STOPPED;
	stops_needed = 1;
	run_once("stopped");
	stops_needed = 2;
	run_once("stopped twice");
	stops_needed = 0;
	summary.result = FRAGI_SUMMARY_FAILED;
	summary.failure = (struct fragi_summary_failure){
		.code = FRAGI_FAILURE_OPERATOR_FAILED, .sentence = "it broke", .op = "f.tx"};
	run_once("failed");
	summary.failure.sentence = NULL;
	summary.failure.op = NULL;
	run_once("failed, and nobody knows why");
	broken = -ENOMEM;
	run_once("short memory");
	broken = 0;
	for (int i = 1; i <= 4; i++) {
		char name[32];

		snprintf(name, sizeof(name), "the call %d fails", i);
		fails_at = i;
		run_once(name);
	}
	for (enum fragi_failure code = 0; code < FRAGI_FAILURES; code++)
		fprintf(out, "%s: %s\n", fragi_failure_name(code),
			strerrorname_np(-errno_of(code)));
	compare("runner/ends", &text);
}

Test(runner_module, what_the_program_may_do)
{
	struct fragi_runner *runner, *second;
	struct frag_err err = FRAG_ERR_INIT;
	size_t size;
	char *text;

	begin(&text, &size);
	stops_needed = 1;
	runner = start(&app);
	fprintf(out, "a second one\n");
	second = start(&app);
	cr_expect_null(second);
	cr_expect_null(api->summary(runner));
	wait_for(runner, 0);
	wait_for(runner, 1000000);
	cr_expect_eq(api->set(runner, "a=1", &err), 0);
	api->stop(runner);
	wait_for(runner, INT64_C(20000000000));
	fprintf(out, "after its end\n");
	api->stop(runner);
	api->stop(runner);
	api->stop(runner);
	show_error(api->set(runner, "a=2", &err), &err);
	wait_for(runner, 0);
	cr_expect(api->destroy(runner));
	fprintf(out, "an error that the program has set before\n");
	summary.result = FRAGI_SUMMARY_FAILED;
	summary.failure.code = FRAGI_FAILURE_OUT_OF_MEMORY;
	stops_needed = 0;
	runner = start(&app);
	snprintf(err.text, sizeof(err.text), "own");
	cr_expect_eq(api->wait(runner, -1, &err), -ENOMEM);
	cr_expect_str_eq(err.text, "own");
	cr_expect_eq(api->wait(runner, -1, NULL), -ENOMEM);
	cr_expect(api->destroy(runner));
	compare("runner/program", &text);
}

Test(runner_module, what_it_logs)
{
	const struct fragi_runner_app quiet = {.source = &source, .spec = &spec, .arg = &source};
	struct fragi_runner runner = {.app = app};
	size_t size;
	char *text;

	begin(&text, &size);
	for (int i = 0; i < 2; i++, runner.app = quiet) {
		logged_begin();
		for (enum fragi_log_level level = FRAGI_LOG_DEBUG; level <= FRAGI_LOG_ERROR;
		     level++)
			on_log(&runner, &(struct drv_action){
						.level = level, .subject = "app", .text = "so"});
		logged_end(out);
	}
	compare("runner/logged", &text);
}

/* The thread of its host uses what is its own; nothing is given back. */
Test(runner_module, a_host_that_hangs)
{
	static struct fragi_runner *runner; /* not lost */
	size_t size;
	char *text;

	begin(&text, &size);
	stops_needed = 1;
	runner = start(&app);
	is_stuck = true;
	api->stop(runner);
	wait_for(runner, -1);
	cr_expect_not(api->destroy(runner));
	fprintf(out, "another one\n");
	cr_expect_null(start(&app));
	compare("runner/hangs", &text);
}

Test(runner_module, times)
{
	static const int64_t timeouts[] = {0, 1, 999999999, 1000000000, 2500000001};

	for (size_t i = 0; i < FRAG_COUNT_OF(timeouts); i++) {
		int64_t before = fragi_now_ns();
		struct timespec until = after(timeouts[i]);
		int64_t ns = until.tv_sec * INT64_C(1000000000) + until.tv_nsec;

		cr_expect(until.tv_nsec >= 0 && until.tv_nsec < 1000000000);
		cr_expect(ns >= before + timeouts[i] && ns <= fragi_now_ns() + timeouts[i]);
	}
}
