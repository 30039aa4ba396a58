// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <workerd/worker.h>

#define FD_COUNT 8192        /* of the worker's processes, and of those that stand for them */
#define FIRST_PID 0x3fffff00 /* nobody has these */

/* A worker whose hosts are descriptors, and the driver that it answers. */
static struct wrk_worker worker;
static uv_loop_t loop;
static struct fw_message create;
static struct host {
	int ends[3]; /* of its control, its output, and its exit */
} hosts[WRK_PROCESSES_MAX];
static uint32_t host_count, exits, connection;
static char refusal[200];

static int host_start(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
		      struct frag_err *err)
{
	struct host *host = &hosts[host_count];

	host->ends[0] = dup(spawn->control_fd);
	host->ends[1] = dup(spawn->output_fd);
	host->ends[2] = eventfd(0, EFD_CLOEXEC);
	*out_exit_fd = dup(host->ends[2]);
	cr_assert_geq(*out_exit_fd, 0);
	*out_pid = FIRST_PID + (pid_t)host_count++;
	return 0;
}

static void host_end(struct host *host)
{
	cr_assert_eq(eventfd_write(host->ends[2], 1), 0);
	for (int i = 0; i < 3; i++)
		close(host->ends[i]);
}

static void host_signal(pid_t pid, int number)
{
}

static int host_reap(pid_t pid, int *out_status, int *out_signal, char *core_file, size_t size)
{
	*out_status = *out_signal = 0;
	core_file[0] = '\0';
	return 0;
}

static const struct wrk_spawn_ops host_ops = {host_start, host_signal, host_reap};

static int on_launch(void *arg, const struct fw_message *message, struct fragi_arena *arena,
		     struct wrk_launch *out_launch, struct frag_err *err)
{
	static char *const environment[] = {NULL};

	*out_launch = (struct wrk_launch){
		.ops = &host_ops, .program = "host", .environment = environment};
	return 0;
}

static void on_connect(void *arg, uint64_t number)
{
	connection = (uint32_t)number;
}

static void on_disconnect(void *arg, uint64_t number)
{
}

static void from_driver(const struct fw_message *message)
{
	wrk_worker_raise(&worker, &(struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
						      .connection = connection,
						      .message = message});
}

/* The driver wants the next one as soon as one has ended, of which not all is closed yet. */
static void on_send(void *arg, uint64_t number, const struct fw_message *message)
{
	if (message->kind != FW_HOST_EXIT)
		return;
	if (exits++ > 0) {
		snprintf(refusal, sizeof(refusal), "%s", message->exit.failure.sentence);
		return;
	}
	create.host++;
	from_driver(&create);
}

static void on_log(void *arg, enum fragi_log_level level, const char *subject, const char *text)
{
}

static void on_ended(void *arg, int exit_code)
{
}

static const struct wrk_worker_ops worker_ops = {
	.is_guest = true,
	.connect = on_connect,
	.disconnect = on_disconnect,
	.send = on_send,
	.launch = on_launch,
	.log = on_log,
	.ended = on_ended,
};

static void begin(void)
{
	static const char *fragments[] = {"f"};
	static const struct fw_message welcome = {
		.kind = FW_WELCOME,
		.welcome = {.session = 7,
			    .name = "a",
			    .beat_ns = 250000000,
			    .dead_ns = 3000000000,
			    .version = "0.1.0"},
	};
	const struct wrk_config config = {.name = "a",
					  .fragments = fragments,
					  .fragment_count = 1,
					  .driver = "driver",
					  .worker_address = "",
					  .node = "boot",
					  .clock = "clock",
					  .memory = "memory",
					  .version = "0.1.0"};

	uv_loop_init(&loop);
	cr_assert_eq(wrk_worker_init(&worker, &loop, &config, &worker_ops, NULL), 0);
	wrk_worker_raise(&worker, &(struct wrk_event){.kind = WRK_EVENT_START});
	wrk_worker_raise(&worker, &(struct wrk_event){.kind = WRK_EVENT_CONNECTED,
						      .connection = connection,
						      .text = ""});
	from_driver(&welcome);
	create = (struct fw_message){
		.kind = FW_HOST_CREATE,
		.run = 1,
		.epoch = 1,
		.create = {.application = "app", .fragments = fragments, .fragment_count = 1},
	};
}

Test(worker_full, a_host_starts_while_one_that_has_ended_is_cleared_away)
{
	struct rlimit files;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_max < FD_COUNT)
		cr_skip_test("fewer than %d files may be open here", FD_COUNT);
	files.rlim_cur = files.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	begin();
	while (host_count < WRK_HOSTS_MAX) {
		create.host++;
		from_driver(&create);
		cr_assert_eq(host_count, create.host, "%s", refusal);
	}
	host_end(&hosts[0]);
	while (exits == 0)
		uv_run(&loop, UV_RUN_ONCE);
	cr_expect_str_eq(refusal, "");
	cr_expect_eq(exits, 1);
	cr_expect_eq(host_count, WRK_HOSTS_MAX + 1);
	wrk_worker_end(&worker, 0);
	for (uint32_t i = 1; i < host_count; i++)
		host_end(&hosts[i]);
	uv_run(&loop, UV_RUN_DEFAULT);
	wrk_worker_fini(&worker);
	cr_expect_eq(uv_loop_close(&loop), 0);
}
