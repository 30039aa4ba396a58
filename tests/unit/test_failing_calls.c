// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"
#include "failing_calls.h"

#include <signal.h>
#include <sys/wait.h>

#include <driverd/local_socket.h>
#include <driverd/store.h>
#include <workerd/examiner.h>
#include <workerd/gpus.h>
#include <workerd/process.h>
#include <workerd/saved.h>
#include <workerd/strays.h>

/*
 * Each system call of the parts of the daemons' shells fails once: what they return and say, and
 * that every descriptor is given back.
 */
static FILE *out;
static uv_loop_t loop;

static int open_socket(struct frag_err *err)
{
	struct fw_users users = {.program = "driverd", .count = 1, .has_group = false};
	struct drv_local_socket local;
	int fd, r = drv_local_socket_open(&local, 7, &users, &fd, err);

	cr_expect(r == 0 || access(at("run/frag/7.sock"), F_OK) < 0 || failing_name == NULL);
	if (r < 0)
		return r;
	drv_local_socket_close(&local);
	close(fd);
	return 0;
}

/* In the place of one whose driver is gone. */
static int open_socket_again(struct frag_err *err)
{
	struct fw_users users = {.program = "driverd"};
	struct drv_local_socket local;
	int fd, left = atomic_load(&failing_left), r;

	failing_left = -1;
	cr_assert_eq(drv_local_socket_open(&local, 8, &users, &fd, err), 0);
	close(fd);
	close(local.folder);
	failing_left = left;
	r = drv_local_socket_open(&local, 8, &users, &fd, err);
	if (r == 0) {
		drv_local_socket_close(&local);
		close(fd);
	}
	(void)unlink(at("run/frag/8.sock"));
	return r;
}

static void on_kept(void *arg, uint64_t change, const char *why_not)
{
	(void)arg, (void)change, (void)why_not;
}

static int open_store(struct frag_err *err)
{
	struct drv_store store;
	int r = drv_store_open(&store, at("state"), &loop, on_kept, NULL, err);

	if (r == 0)
		drv_store_finish(&store);
	uv_run(&loop, UV_RUN_DEFAULT);
	drv_store_close(&store);
	return r;
}

/* Whose file has its name only once it is whole. */
static int open_new_store(struct frag_err *err)
{
	int r;

	(void)unlink(at("state/state.db"));
	r = open_store(err);
	cr_expect_lt(access(at("state/state.db-new"), F_OK), 0);
	return r;
}

static int survey(struct frag_err *err)
{
	uint32_t count = 0;
	uint64_t bytes = 0;
	char mig[WRK_MIG_TEXT_MAX];
	int r = wrk_gpus_survey("./fraghost", &count, &bytes, mig, err);

	cr_expect(r < 0 || count == 2);
	return r;
}

static void on_examined(void *arg, const struct fw_message *answer)
{
	if (answer->examined.why_not[0] != '\0')
		frag_err_set(arg, -EIO, "%s", answer->examined.why_not);
}

static int examine(struct frag_err *err)
{
	struct wrk_examiner *examiner = calloc(1, sizeof(*examiner));

	snprintf(examiner->program, sizeof(examiner->program), "./fraghost");
	wrk_examiner_begin(examiner, &loop, on_examined, err);
	uv_run(&loop, UV_RUN_DEFAULT);
	cr_expect_not(examiner->is_busy);
	free(examiner);
	return err->code;
}

static int keep_saved(struct frag_err *err)
{
	static struct wrk_saved saved;
	const struct fw_host_saved part = {.offset = 8, .bytes = "saved", .size = 5};
	int fd = wrk_saved_of(&saved, 1, 1, 0), r = fd < 0 ? fd : 0;

	if (r == 0)
		r = wrk_saved_take(&saved, 1, 2, 3, &part);
	wrk_saved_forget(&saved, 0, 0, 0);
	cr_expect_eq(saved.count, 0);
	return r < 0 ? frag_err_set(err, r, "%s", frag_strerror(r)) : 0;
}

static int be_host(void)
{
	return 0;
}

static void on_message(void *arg, uint32_t host, struct fw_message *message)
{
	(void)arg, (void)host;
	fw_message_free(message);
}

static void on_lost(void *arg, uint32_t host, const char *sentence, bool cut)
{
	(void)arg, (void)host, (void)sentence, (void)cut;
}

static void on_exited(void *arg, uint32_t host, const struct wrk_exited *exited)
{
	(void)arg, (void)host;
	cr_expect_eq(exited->status, 0);
}

static bool takes_lines(void *arg)
{
	(void)arg;
	return false;
}

static void on_freed(void *arg, struct wrk_process *process)
{
	(void)arg, (void)process;
}

static int start_process(struct frag_err *err)
{
	static const struct wrk_process_ops ops = {.message = on_message,
						   .connection_lost = on_lost,
						   .exited = on_exited,
						   .takes_lines = takes_lines,
						   .freed = on_freed};
	const struct wrk_launch launch = {.ops = &wrk_spawn_process,
					  .main = be_host,
					  .environment = environ,
					  .writer = {.application = "app"}};
	struct wrk_process *process;
	int r = wrk_process_start(&loop, 1, &launch, &ops, NULL, &process, err);

	uv_run(&loop, UV_RUN_DEFAULT);
	return r;
}

static const struct {
	const char *name;
	int (*does)(struct frag_err *err);
} parts[] = {
	{"the socket of a driver", open_socket},
	{"the same in the place of one that is left", open_socket_again},
	{"a store", open_store},
	{"a new store", open_new_store},
	{"a survey of GPUs", survey},
	{"an examination", examine},
	{"what operators save", keep_saved},
	{"a host", start_process},
};

/* Without the names that the machine has chosen. */
static void show_sentence(const char *sentence)
{
	size_t length = strlen(scratch);

	for (; *sentence != '\0'; sentence++)
		if (strncmp(sentence, scratch, length) == 0) {
			fprintf(out, "SCRATCH");
			sentence += length - 1;
		} else {
			fputc(*sentence, out);
		}
}

/* What is the same several times in a row, as for each part of a path, is shown once. */
static void show_once(const char *failed, int r, const struct frag_err *err, bool keeps)
{
	static char last[2048];
	char line[2048];

	snprintf(line, sizeof(line), "  %s: %s%s%s%s\n", failed, r < 0 ? strerrorname_np(-r) : "",
		 r < 0 ? ", " : "it goes on", r < 0 ? err->text : "",
		 keeps ? ", AND KEEPS DESCRIPTORS" : "");
	if (strcmp(line, last) != 0)
		show_sentence(line);
	snprintf(last, sizeof(last), "%s", line);
}

static void fail_each(const char *name, int (*does)(struct frag_err *err))
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *failed;

	fprintf(out, "%s\n", name);
	cr_expect_eq(does(&err), 0, "%s: %s", name, err.text);
	for (int calls = 0;; calls++) {
		int before = descriptor_count(), r;

		err = (struct frag_err)FRAG_ERR_INIT;
		fail_after(calls);
		r = does(&err);
		failed = fail_off();
		if (failed == NULL && r == 0)
			break;
		show_once(failed != NULL ? failed : "in a child", r, &err,
			  descriptor_count() != before);
	}
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(does(&err), 0, "%s again: %s", name, err.text);
}

Test(failing_calls, are_told_and_keep_nothing)
{
	char here[4096], *text;
	size_t size;

	cr_assert_not_null(getcwd(here, sizeof(here)));
	scratch_make();
	cr_assert_eq(chdir(scratch), 0);
	put("run/none", "");
	put("fraghost", "#!/bin/sh\necho 2 7\n");
	cr_assert_eq(chmod(at("fraghost"), 0700), 0);
	cr_assert_eq(chmod(at("run"), 0700), 0);
	unsetenv("RUNTIME_DIRECTORY");
	setenv("XDG_RUNTIME_DIR", at("run"), 1);
	wrk_strays_adopt();
	cr_assert_eq(uv_loop_init(&loop), 0);
	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(parts); i++)
		fail_each(parts[i].name, parts[i].does);
	fclose(out);
	cr_expect_eq(uv_loop_close(&loop), 0);
	cr_assert_eq(chdir(here), 0);
	scratch_remove();
	expected_compare("daemons/failing_calls", text);
	free(text);
}
