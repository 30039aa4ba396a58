// SPDX-License-Identifier: Apache-2.0
/*
 * Each test is a run of the application in a process of its own, `fragctl run`, under a manual
 * clock: inputs replace operators, and what ports emit is recorded and compared with the expected
 * files.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/sentence.h>
#include <base/stamp.h>
#include <fragctl/json.h>
#include <fragctl/test.h>

#define TIMEOUT_NS INT64_C(60000000000)
#define REASON_MAX 4096

struct testing {
	const char *app, *file;
	bool json, update;
	struct ctl_tests tests;
	char folder[64]; /* of what was recorded */
	uint32_t passed, failed;
};

struct outcome {
	char reason[REASON_MAX]; /* of a test that could not be run; "": it was */
	size_t messages, differing;
	int64_t lasted_ns;
	struct ctl_differences *outputs; /* of each */
};

/* Words of a command line, in the arena. */
struct words {
	struct fragi_arena *arena;
	char **items;
	size_t count;
};

static void word(struct words *words, const char *text)
{
	words->items[words->count++] = fragi_arena_strdup(words->arena, text);
}

static void set(struct words *words, const char *kind, const char *port, const char *value)
{
	word(words, "--set");
	words->items[words->count++] =
		fragi_arena_printf(words->arena, "%s%s=%s", kind, port, value);
}

static const char *recorded(struct testing *testing, size_t output)
{
	return fragi_arena_printf(&testing->tests.arena, "%s/%zu", testing->folder, output);
}

static char **command_of(struct testing *testing, const struct ctl_test *test)
{
	struct fragi_arena *arena = &testing->tests.arena;
	size_t most = 16 + test->argument_count +
		      2 * (test->set_count + test->input_count + test->output_count);
	struct words words = {.arena = arena,
			      .items = fragi_arena_alloc(arena, most * sizeof(char *))};

	if (words.items == NULL)
		return NULL;
	word(&words, "fragctl");
	word(&words, "run");
	set(&words, "clock", "", "manual");
	if (test->duration_ms > 0)
		set(&words, "duration", "",
		    fragi_arena_printf(arena, "%lld", (long long)test->duration_ms));
	for (size_t i = 0; i < test->input_count; i++)
		set(&words, "input:", test->inputs[i].port, test->inputs[i].path);
	for (size_t i = 0; i < test->output_count; i++)
		set(&words, "output:", test->outputs[i].port, recorded(testing, i));
	for (size_t i = 0; i < test->set_count; i++) {
		word(&words, "--set");
		word(&words, test->sets[i]);
	}
	word(&words, testing->app);
	word(&words, "--");
	for (size_t i = 0; i < test->argument_count; i++)
		word(&words, test->arguments[i]);
	words.items[words.count] = NULL;
	return words.items;
}

/* The child: what it prints goes into a file, which is the reason if it fails. */
static void become(char **command, int log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
	    dup2(log, STDERR_FILENO) >= 0)
		execv("/proc/self/exe", command);
	_exit(CTL_FAILED);
}

/* Waits until the child is gone, or for too long. Returns its status. */
static int await(pid_t pid, int ended, bool *out_timed_out)
{
	struct pollfd p = {.fd = ended, .events = POLLIN};
	int64_t end_ns = fragi_now_ns() + TIMEOUT_NS, left_ns = TIMEOUT_NS;
	int status = 0;

	while (left_ns > 0 && poll(&p, 1, (int)(left_ns / 1000000) + 1) == 0)
		left_ns = end_ns - fragi_now_ns();
	*out_timed_out = left_ns <= 0;
	if (*out_timed_out)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* The end of what was printed: there stands why it failed. */
static void read_reason(int log, char *reason)
{
	off_t size = lseek(log, 0, SEEK_END);
	ssize_t n = pread(log, reason, REASON_MAX - 1,
			  size > REASON_MAX - 1 ? size - (REASON_MAX - 1) : 0);

	reason[n > 0 ? n : 0] = '\0';
	while (n > 0 && reason[n - 1] == '\n')
		reason[--n] = '\0';
}

static void run_child(struct testing *testing, const struct ctl_test *test, struct outcome *outcome)
{
	char **command = command_of(testing, test);
	int ends[2] = {-1, -1}, log = open(testing->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bool timed_out = false;
	int status;
	pid_t pid;

	if (command == NULL || log < 0 || pipe2(ends, O_CLOEXEC) < 0) {
		snprintf(outcome->reason, sizeof(outcome->reason), "cannot start it: %s",
			 strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		(void)fcntl(ends[1], F_SETFD, 0); /* it closes when all of it have ended */
		become(command, log);
	}
	close(ends[1]);
	status = pid > 0 ? await(pid, ends[0], &timed_out) : -1;
	close(ends[0]);
	if (pid < 0)
		snprintf(outcome->reason, sizeof(outcome->reason), "cannot start it: %s",
			 strerror(errno));
	else if (timed_out)
		snprintf(outcome->reason, sizeof(outcome->reason),
			 "has not ended in %d s; give it a duration, or inputs that end",
			 (int)(TIMEOUT_NS / 1000000000));
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != CTL_OK)
		read_reason(log, outcome->reason);
	if (status != 0 && outcome->reason[0] == '\0')
		snprintf(outcome->reason, sizeof(outcome->reason), "ended with status %d", status);
	close(log);
}

static void compare(struct testing *testing, const struct ctl_test *test, struct outcome *outcome)
{
	for (size_t i = 0; i < test->output_count; i++) {
		const char *got = recorded(testing, i), *expected = test->outputs[i].path;
		struct frag_err err = FRAG_ERR_INIT;
		int r = testing->update ? ctl_test_update(got, expected) : 0;

		if (r < 0)
			frag_err_set(&err, r, "%s cannot be written: %s", expected,
				     frag_strerror(r));
		else
			r = ctl_compare(expected, got, test->tolerance, &outcome->outputs[i], &err);
		if (r < 0)
			fragi_sentence(outcome->reason, sizeof(outcome->reason), "%s", err.text);
		outcome->messages += outcome->outputs[i].messages;
		outcome->differing += outcome->outputs[i].total;
	}
}

static const char *or_nothing(const char *text)
{
	return text != NULL ? text : "nothing";
}

static void print_table(const struct ctl_test *test, const struct outcome *outcome, bool passed)
{
	printf("%s %s: %zu messages of %zu outputs in %.0f ms\n", passed ? "ok  " : "FAIL",
	       test->name, outcome->messages, test->output_count, (double)outcome->lasted_ns / 1e6);
	if (outcome->reason[0] != '\0')
		printf("  %s\n", outcome->reason);
	for (size_t i = 0; i < test->output_count; i++) {
		const struct ctl_differences *all = &outcome->outputs[i];

		for (size_t k = 0; k < all->count; k++)
			printf("  %s, message %zu, %s:\n  - %s\n  + %s\n", test->outputs[i].port,
			       all->items[k].message, all->items[k].field,
			       or_nothing(all->items[k].expected), or_nothing(all->items[k].got));
		if (all->total > all->count)
			printf("  %s: %zu more differ\n", test->outputs[i].port,
			       all->total - all->count);
	}
}

static void json_differences(struct ctl_json *json, const char *port,
			     const struct ctl_differences *all)
{
	for (size_t k = 0; k < all->count; k++) {
		const struct ctl_difference *one = &all->items[k];

		ctl_json_gap(json, "\n    ");
		ctl_json_open(json, NULL, '{');
		ctl_json_text(json, "output", port);
		ctl_json_unsigned(json, "message", one->message);
		ctl_json_text(json, "field", one->field);
		ctl_json_text(json, "expected", one->expected);
		ctl_json_text(json, "got", one->got);
		ctl_json_close(json, '}');
	}
}

static void print_json(struct ctl_json *json, const struct ctl_test *test,
		       const struct outcome *outcome, bool passed)
{
	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "name", test->name);
	ctl_json_text(json, "result", passed ? "passed" : "failed");
	ctl_json_optional(json, "reason", outcome->reason);
	ctl_json_unsigned(json, "messages", outcome->messages);
	ctl_json_unsigned(json, "differing", outcome->differing);
	ctl_json_number(json, "duration_ns", outcome->lasted_ns);
	ctl_json_open(json, "differences", '[');
	for (size_t i = 0; i < test->output_count; i++)
		json_differences(json, test->outputs[i].port, &outcome->outputs[i]);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

/* What ports have emitted, and their tensors. */
static void remove_recorded(const struct testing *testing)
{
	DIR *folder = opendir(testing->folder);
	const struct dirent *entry;

	while (folder != NULL && (entry = readdir(folder)) != NULL)
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(folder), entry->d_name, 0);
	if (folder != NULL)
		closedir(folder);
}

static void run_test(struct testing *testing, const struct ctl_test *test, struct ctl_json *json)
{
	struct outcome outcome = {.outputs = calloc(test->output_count, sizeof(*outcome.outputs))};
	int64_t start_ns = fragi_now_ns();
	bool passed;

	if (outcome.outputs == NULL)
		return;
	run_child(testing, test, &outcome);
	outcome.lasted_ns = fragi_now_ns() - start_ns;
	if (outcome.reason[0] == '\0')
		compare(testing, test, &outcome);
	passed = outcome.reason[0] == '\0' && outcome.differing == 0;
	testing->passed += passed;
	testing->failed += !passed;
	if (testing->json)
		print_json(json, test, &outcome, passed);
	else
		print_table(test, &outcome, passed);
	fflush(stdout);
	for (size_t i = 0; i < test->output_count; i++)
		ctl_differences_fini(&outcome.outputs[i]);
	remove_recorded(testing);
	free(outcome.outputs);
}

static int run(struct testing *testing)
{
	const char *tmp = getenv("TMPDIR");
	int exit_code = ctl_tests_read(&testing->tests, testing->file);
	struct ctl_json json = {0};

	if (exit_code != CTL_OK)
		return exit_code;
	if (snprintf(testing->folder, sizeof(testing->folder), "%s/frag-test-XXXXXX",
		     tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp") < 0 ||
	    mkdtemp(testing->folder) == NULL)
		return ctl_fail(CTL_MISSING, "cannot make a folder for what is recorded: %s",
				strerror(errno));
	if (testing->json) {
		json = ctl_json_begin(stdout);
		ctl_json_open(&json, "tests", '[');
	}
	for (size_t i = 0; i < testing->tests.count; i++)
		run_test(testing, &testing->tests.items[i], &json);
	if (testing->json) {
		ctl_json_close(&json, ']');
		ctl_json_gap(&json, "\n ");
		ctl_json_unsigned(&json, "passed", testing->passed);
		ctl_json_unsigned(&json, "failed", testing->failed);
		ctl_json_end(&json);
	} else {
		printf("%u passed, %u failed\n", testing->passed, testing->failed);
	}
	(void)rmdir(testing->folder);
	return testing->failed + (testing->passed == 0) > 0 ? CTL_FAILED : CTL_OK;
}

/* app.yaml is tested by app.test.yaml beside it. */
static int default_file(struct testing *testing)
{
	size_t length = strlen(testing->app);

	length -= length > 5 && strcmp(testing->app + length - 5, ".yaml") == 0 ? 5 : 0;
	testing->file = fragi_arena_printf(&testing->tests.arena, "%.*s.test.yaml", (int)length,
					   testing->app);
	return testing->file != NULL ? CTL_OK : ctl_fail(CTL_FAILED, "out of memory");
}

int ctl_test(int argc, char **argv)
{
	struct testing testing = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "tests",
		 .value = "FILE",
		 .help = "the tests; default: app.test.yaml beside app.yaml",
		 .text = &testing.file},
		{.name = "update",
		 .no_env = true,
		 .help = "writes what ports emit as what is expected",
		 .on = &testing.update},
		CTL_OUTPUT_FLAG(output),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl test",
		.usage = "APP.yaml [flags]",
		.headline =
			"Runs an application under a manual clock, with inputs from files in place of operators, and compares what ports emit with files.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	if (operands.count != 1)
		exit_code = ctl_fail(CTL_USAGE, "name one APP.yaml to test");
	else if (!ctl_output(output, &testing.json))
		exit_code = CTL_USAGE;
	if (exit_code == CTL_OK) {
		testing.app = operands.items[0];
		exit_code = testing.file == NULL ? default_file(&testing) : CTL_OK;
	}
	if (exit_code == CTL_OK)
		exit_code = run(&testing);
out:
	fragi_texts_fini(&operands);
	ctl_tests_fini(&testing.tests);
	return exit_code;
}
