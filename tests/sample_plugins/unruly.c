// SPDX-License-Identifier: Apache-2.0
/*
 * An operator without ports that misbehaves in one of its callbacks: `deed` says how, `where` in
 * which. It is ticked every 10 ms, `ticks` times (0: for ever).
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <frag/frag.h>

struct unruly {
	const char *where, *deed, *file;
	int64_t ticks;
	int64_t seen;
};

static const char *const callbacks[] = {"nowhere", "setup", "initialize", "start",
					"compute", "stop",  "fini",       NULL};
static const char *const deeds[] = {"hang",     "last", "leave_thread", "end_thread", "exit",
				    "positive", "fork", "leave",        "exec",       NULL};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct unruly, where, "nowhere", .headline = "In which callback",
			  .choices = callbacks),
	FRAG_PARAM_STRING(struct unruly, deed, "hang", .headline = "What it does there",
			  .choices = deeds),
	FRAG_PARAM_PATH(struct unruly, file, NULL, .headline = "Written once it is about to"),
	FRAG_PARAM_I64(struct unruly, ticks, 0, .headline = "Done after that many; 0: never"),
};

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

static void write_file(const struct unruly *s)
{
	FILE *file = s->file != NULL ? fopen(s->file, "we") : NULL;

	if (file == NULL)
		return;
	fprintf(file, "%d\n", (int)getpid());
	fclose(file);
}

/* A process that nobody of this session waits for: setsid and a second fork. */
static void leave(void)
{
	pid_t pid = fork();

	if (pid > 0)
		return;
	if (pid == 0) {
		(void)setsid();
		if (fork() == 0)
			sleep_for_ever();
	}
	_exit(0);
}

/* The deed `last` ends when the file is removed. */
static void last(const char *file)
{
	while (access(file, F_OK) == 0)
		usleep(10000);
}

static int misbehave(const struct unruly *s)
{
	write_file(s);
	if (strcmp(s->deed, "hang") == 0)
		sleep_for_ever();
	if (strcmp(s->deed, "last") == 0)
		last(s->file);
	if (strcmp(s->deed, "leave_thread") == 0)
		pthread_exit(NULL);
	if (strcmp(s->deed, "end_thread") == 0)
		syscall(SYS_exit, 0);
	if (strcmp(s->deed, "exit") == 0)
		exit(0);
	if (strcmp(s->deed, "positive") == 0)
		return 1;
	if (strcmp(s->deed, "fork") == 0 && fork() == 0)
		sleep_for_ever();
	if (strcmp(s->deed, "leave") == 0)
		leave();
	if (strcmp(s->deed, "exec") == 0 && fork() == 0) {
		(void)setsid();
		execlp("sleep", "sleep", "3600", (char *)NULL);
		_exit(1);
	}
	return 0;
}

static int act(const struct unruly *s, const char *callback)
{
	return strcmp(s->where, callback) == 0 ? misbehave(s) : 0;
}

static int setup(void *state, struct frag_op *op)
{
	return act(state, "setup");
}

static int initialize(void *state, struct frag_op *op)
{
	return act(state, "initialize");
}

static int start(void *state, struct frag_op *op)
{
	return act(state, "start");
}

static int compute(void *state, struct frag_tick *tick)
{
	struct unruly *s = state;
	const struct timespec pause = {.tv_nsec = 10000000};

	s->seen++;
	nanosleep(&pause, NULL);
	if (s->seen == 5)
		return act(s, "compute");
	return s->ticks != 0 && s->seen >= s->ticks ? FRAG_DONE : 0;
}

static int stop(void *state, struct frag_op *op)
{
	return act(state, "stop");
}

static void fini(void *state, struct frag_op *op)
{
	(void)act(state, "fini");
}

static const struct frag_op_type unruly = {
	FRAG_OP_TYPE_INIT,
	.name = "unruly",
	.headline = "Misbehaves",
	.state_size = sizeof(struct unruly),
	FRAG_PARAMS(params),
	.setup = setup,
	.initialize = initialize,
	.start = start,
	.compute = compute,
	.stop = stop,
	.fini = fini,
};

static const struct frag_op_type *const ops[] = {&unruly};
FRAG_PLUGIN(.name = "unruly", .version = "1.0.0", FRAG_OPS(ops));
