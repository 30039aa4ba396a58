// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"

#include <unistd.h>

#include <base/alloc.h>
#include <driverd/connections.h>
#include <driverd/options.h>
#include <driverd/store.h>
#include <text/spec.h>
#include <wire/connection.h>
#include <wire/credentials.h>
#include <workerd/driver.h>
#include <workerd/environment.h>
#include <workerd/interpreter.h>
#include <workerd/lines.h>
#include <workerd/options.h>
#include <workerd/process.h>
#include <workerd/rights.h>
#include <workerd/saved.h>
#include <workerd/strays.h>
#include <workerd/writer.h>

#include "key_file.h"

/*
 * Each allocation of the parts of the daemons' shells fails once: what they return and say. What
 * they keep is a matter of LeakSanitizer.
 */
static FILE *out;
static uv_loop_t loop;

#define COUNT(argv) ((int)(sizeof(argv) / sizeof(*(argv))) - 1)

static int driver_options(struct frag_err *err)
{
	static const char *const argv[] = {"driverd", "--app",        "a",     "--config",
					   "c",       "--set",        "x=1",   "--expect-workers",
					   "a,b",     "--allow-user", "54321", NULL};
	struct drv_options options;
	int r = drv_options_parse(&options, COUNT(argv), (char **)(uintptr_t)argv, err);

	cr_expect(r < 0 || (options.expected.count == 2 && options.users.count == 1 &&
			    options.configs.count == 1 && options.sets.count == 1));
	drv_options_fini(&options);
	return r;
}

static int worker_options(struct frag_err *err)
{
	static const char *const argv[] = {"workerd", "--fragments",   "a,b/c", "--label",
					   "k=v",     "--allow-write", "/a:/b", "--host-limit",
					   "core=0",  "--allow-user",  "54321", NULL};
	struct wrk_options options;
	int r = wrk_options_parse(&options, COUNT(argv), (char **)(uintptr_t)argv, err);

	cr_expect(r < 0 || (options.fragment_count == 2 && options.users.count == 1 &&
			    options.inventory.label_count == 1));
	wrk_options_fini(&options);
	return r;
}

static int environment(struct frag_err *err)
{
	const struct wrk_environment wanted = {
		.library_path = "/l", .device = "lo", .port_first = 1, .port_last = 2};
	struct fragi_arena arena = {0};
	char *const *made = wrk_environment_make(&wanted, &arena), *const *before = made;
	int r = made == NULL ? -ENOMEM : wrk_environment_set(&made, "A", "b", &arena);

	cr_expect(r < 0 ? made == before : made != before);
	fragi_arena_fini(&arena);
	return r < 0 ? frag_err_set(err, r, "an environment") : 0;
}

static void *packed;
static size_t packed_bytes;

static int interpreter(struct frag_err *err)
{
	static const char *fragments[] = {"f"};
	const struct fw_host_create create = {.source = packed,
					      .source_bytes = (uint32_t)packed_bytes,
					      .fragments = fragments,
					      .fragment_count = 1};
	struct fragi_arena arena = {0};
	char *const *arguments;
	int r = wrk_interpreter_choose(&create, "/bin/sh", &arena, &arguments, err);

	cr_expect(r < 0 || arguments == NULL || strcmp(arguments[0], "/bin/sh") == 0);
	fragi_arena_fini(&arena);
	return r;
}

static int rights(struct frag_err *err)
{
	const char *allowed = "/tmp:/usr";
	struct fragi_texts allow = {.items = &allowed, .count = 1}, none = {.count = 0};
	const struct wrk_rights_config config = {.allow_write = &allow, .host_limits = &none};
	static struct wrk_rights own;
	struct fragi_arena arena = {0};
	const char *const *paths;
	const char *list = NULL;
	size_t count;
	int r = wrk_rights_init(&own, &config, err);

	if (r == 0)
		r = wrk_rights_writable(&own, true, NULL, &arena, &paths, &count);
	if (r == 0)
		list = wrk_rights_list(&arena, paths, count);
	cr_expect(list == NULL || strcmp(list, "below /tmp, /usr only") == 0 ||
		  strcmp(list, "nowhere") == 0);
	fragi_arena_fini(&arena);
	wrk_rights_fini(&own);
	return r;
}

static int writer(struct frag_err *err)
{
	const char *fragments[] = {"f", "g"};
	const struct wrk_writer from = {"app", fragments, 2, true};
	struct fragi_arena arena = {0};
	struct wrk_writer own = {NULL, NULL, 0, false};
	int r = wrk_writer_copy(&from, &arena, &own);

	cr_expect(r < 0 ? own.count == 0
			: own.count == 2 && own.names_plain && own.fragments != fragments &&
				  strcmp(own.fragments[1], "g") == 0 &&
				  strcmp(own.application, "app") == 0);
	fragi_arena_fini(&arena);
	return r < 0 ? frag_err_set(err, r, "a writer of lines") : 0;
}

static void on_part(void *arg, uint64_t offset, const void *bytes, uint32_t size)
{
	*(uint64_t *)arg += offset + size;
	cr_expect_eq(memcmp(bytes, "saved", 5), 0);
}

static int saved(struct frag_err *err)
{
	static struct wrk_saved own;
	const struct fw_host_saved part = {.bytes = "saved", .size = 5};
	uint64_t sum = 0;
	int r = wrk_saved_take(&own, 1, 2, 0, &part);

	if (r == 0)
		r = wrk_saved_read(&own, 1, 2, on_part, &sum);
	cr_expect(r < 0 || sum > 0);
	wrk_saved_forget(&own, 0, 0, 0);
	return r < 0 ? frag_err_set(err, r, "what was saved") : 0;
}

static int credentials(struct frag_err *err)
{
	const struct fw_tls_config config = {.is_server = true, .key_file = at("keys")};
	static struct fw_credentials own;
	void *session = NULL;
	int r;

	memset(&own, 0, sizeof(own));
	r = fw_credentials_open(&own, &loop, &config, NULL, NULL, NULL, err);
	if (r == 0)
		r = own.tls->ops->begin(own.tls, &session);
	if (session != NULL)
		own.tls->ops->end(session);
	fw_credentials_close(&own);
	fw_credentials_close(&own);
	uv_run(&loop, UV_RUN_DEFAULT);
	fw_credentials_fini(&own);
	return r;
}

static void on_closed(struct fw_connection *connection, int reason, const char *sentence, void *arg)
{
	(void)connection, (void)reason, (void)sentence, (void)arg;
}

static int connection(struct frag_err *err)
{
	static const struct fw_connection_ops ops = {.closed = on_closed};
	struct drv_connections table = {0};
	struct drv_connection *added = drv_connections_add(&table);
	int r = added == NULL ? -ENOMEM
			      : fw_connection_create(&loop, FW_STREAM_TCP, &ops, NULL, NULL,
						     &added->stream);

	cr_expect_eq(table.count, added != NULL);
	cr_expect_eq(table.strangers, added != NULL);
	if (r == 0)
		fw_connection_close(added->stream);
	if (added != NULL)
		drv_connections_remove(&table, added);
	drv_connections_fini(&table);
	uv_run(&loop, UV_RUN_DEFAULT);
	return r < 0 ? frag_err_set(err, r, "a connection") : 0;
}

static void on_failed(void *arg, uint64_t id, enum fragi_failure failure, const char *why)
{
	(void)id, (void)failure;
	frag_err_set(arg, -ENOMEM, "%s", why);
}

static void on_freed(void *arg, struct wrk_driver *driver)
{
	(void)arg, (void)driver;
}

/* To a port at which nobody listens: the address is that of a network that is not there. */
static int driver(struct frag_err *err)
{
	static const struct wrk_driver_ops ops = {.failed = on_failed, .freed = on_freed};
	const struct fragi_address address = {.host = "127.0.0.1", .port = 1};
	const struct fw_connection_options options = {.users = NULL};
	struct wrk_driver *own;
	int r = wrk_driver_open(&loop, &address, 7, &options, &ops, err, &own);

	uv_run(&loop, UV_RUN_DEFAULT);
	if (strstr(err->text, "refused") != NULL) /* as without a failure */
		*err = (struct frag_err)FRAG_ERR_INIT;
	return r < 0 ? frag_err_set(err, r, "no driver at all") : err->code;
}

static int refuse_start(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
			struct frag_err *err)
{
	(void)spawn, (void)out_pid, (void)out_exit_fd;
	return frag_err_set(err, -EPERM, "it is not to start");
}

static int process(struct frag_err *err)
{
	static const struct wrk_spawn_ops never = {.start = refuse_start};
	static const struct wrk_process_ops ops = {.freed = NULL};
	static char *environment[] = {NULL};
	const struct wrk_launch launch = {
		.ops = &never, .environment = environment, .writer = {.application = "app"}};
	struct wrk_process *own = NULL;
	int r = wrk_process_start(&loop, 1, &launch, &ops, NULL, &own, err);

	uv_run(&loop, UV_RUN_DEFAULT);
	if (r != -EPERM)
		return r;
	*err = (struct frag_err)FRAG_ERR_INIT;
	return 0;
}

static void on_kept(void *arg, uint64_t change, const char *why_not)
{
	(void)arg, (void)change, (void)why_not;
}

static int store(struct frag_err *err)
{
	const struct drv_record record = {
		.kind = DRV_RECORD_RUN, .run = 1, .name = "app", .who = "me", .text = "it"};
	struct drv_store own;
	int r = drv_store_open(&own, at("state"), &loop, on_kept, NULL, err);

	if (r < 0)
		return r;
	r = drv_store_put(&own, &record, 1);
	cr_expect_eq(own.waiting.count, r == 0);
	drv_store_finish(&own);
	uv_run(&loop, UV_RUN_DEFAULT);
	drv_store_close(&own);
	return r < 0 ? frag_err_set(err, r, "a record") : 0;
}

static const struct {
	const char *name;
	int (*does)(struct frag_err *err);
} parts[] = {
	{"the command line of driverd", driver_options},
	{"the command line of workerd", worker_options},
	{"the environment of a host", environment},
	{"an interpreter", interpreter},
	{"rights of hosts", rights},
	{"a writer of lines", writer},
	{"what operators save", saved},
	{"keys", credentials},
	{"a connection", connection},
	{"a driver", driver},
	{"a process", process},
	{"a store", store},
};

/* What is the same several times in a row is shown once. */
static void show_once(int r, const struct frag_err *err)
{
	static char last[2048];
	char line[2048];
	const char *path;

	snprintf(line, sizeof(line), "  %s%s%s\n", r < 0 ? strerrorname_np(-r) : "it goes on",
		 r < 0 ? ", " : "", r < 0 ? err->text : "");
	path = strstr(line, scratch);
	if (strcmp(line, last) != 0 && path != NULL)
		fprintf(out, "%.*sSCRATCH%s", (int)(path - line), line, path + strlen(scratch));
	else if (strcmp(line, last) != 0)
		fputs(line, out);
	snprintf(last, sizeof(last), "%s", line);
}

static void fail_each(const char *name, int (*does)(struct frag_err *err))
{
	struct frag_err err = FRAG_ERR_INIT;
	int64_t failed = 1;

	fprintf(out, "%s\n", name);
	cr_expect_eq(does(&err), 0, "%s: %s", name, err.text);
	for (int64_t skip = 0; failed > 0; skip++) {
		int r;

		err = (struct frag_err)FRAG_ERR_INIT;
		fragi_alloc_fail_after(skip, 1);
		r = does(&err);
		failed = fragi_alloc_fail_off();
		if (failed > 0)
			show_once(r, &err);
		else
			cr_expect_eq(r, 0, "%s: %s", name, err.text);
	}
}

Test(short_memory, is_reported_by_each_part, .init = scratch_make, .fini = scratch_remove)
{
	static const char graph[] = "frag: 1\napplication: app\nfragments:\n"
				    "  f: {extensions: [m.py], operators: {a: {type: t}}}\n";
	const struct fragi_spec_source source = {.graph = {"app.yaml", graph, strlen(graph)}};
	char *text;
	size_t size;

	put("keys", "frag-key-1 a any " SECRET_A "\n");
	cr_assert_eq(chmod(at("keys"), 0600), 0);
	cr_assert_eq(fragi_source_pack(&source, &packed, &packed_bytes), 0);
	unsetenv("FRAG_BUILD");
	cr_assert_eq(uv_loop_init(&loop), 0);
	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(parts); i++)
		fail_each(parts[i].name, parts[i].does);
	fclose(out);
	cr_expect_eq(uv_loop_close(&loop), 0);
	fragi_free(packed);
	expected_compare("daemons/short_memory", text);
	free(text);
}
