// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "../scratch.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <text/spec.h>
#include <workerd/environment.h>
#include <workerd/examiner.h>
#include <workerd/gpus.h>
#include <workerd/host_limit.h>
#include <workerd/interface.h>
#include <workerd/interpreter.h>
#include <workerd/options.h>
#include <workerd/writer.h>

/* What the parts of workerd's shell make of what is written, set and answered, as one text. */
static FILE *out;
static char *text;
static size_t text_size;

/* In a folder of its own, with an environment that is the same everywhere. */
static void begin(void)
{
	const char *writes = getenv("FRAG_TEST_WRITE_EXPECTED");

	clearenv();
	if (writes != NULL)
		setenv("FRAG_TEST_WRITE_EXPECTED", "1", 1);
	setenv("PATH", "/usr/bin:/bin", 1);
	scratch_make();
	cr_assert_eq(chdir(scratch), 0);
	out = open_memstream(&text, &text_size);
	cr_assert_not_null(out);
}

static char here[4096];

static void end(const char *name)
{
	fclose(out);
	cr_assert_eq(chdir(here), 0);
	expected_compare(name, text);
	free(text);
}

static void start(void)
{
	cr_assert_not_null(getcwd(here, sizeof(here)));
	begin();
}
TestSuite(worker_shell, .init = start, .fini = scratch_remove);

static void show(const char *name, const char *value)
{
	if (value != NULL && value[0] != '\0')
		fprintf(out, "  %s: %s\n", name, value);
}

static void show_number(const char *name, long long value)
{
	if (value != 0)
		fprintf(out, "  %s: %lld\n", name, value);
}

static void show_address(const char *name, const struct fragi_address *address)
{
	if (address->host[0] != '\0' || address->port != 0)
		fprintf(out, "  %s: %s, ports %u-%u\n", name, address->host, address->port,
			address->port_last);
}

static void show_texts(const char *name, const struct fragi_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		show(name, texts->items[i]);
}

static void show_options(const struct wrk_options *o)
{
	show_address("driver", &o->driver);
	show("for people", o->driver_text);
	for (uint32_t i = 0; i < o->fragment_count; i++)
		show("fragment", o->fragments[i]);
	show_number("has worker address", o->has_worker_address);
	show_address("worker address", &o->worker_address);
	show_address("announced", &o->announced);
	show("announced to hosts", o->announced_text);
	show("name", o->name);
	show("library path", o->library_path);
	show("... of rights", o->rights.library_path);
	show("app root", o->app_root);
	show("... of rights", o->rights.app_root);
	show("UCX", o->ucx_folder);
	show("... of rights", o->rights.ucx_folder);
	show_texts("allow write", o->rights.allow_write);
	show_texts("host limit", o->rights.host_limits);
	show("host user", o->rights.host_user);
	show("python", o->rights.python);
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (o->inventory.is_given[i])
			fprintf(out, "  amount %d: %lld\n", i, (long long)o->inventory.has[i]);
	for (uint32_t i = 0; i < o->inventory.label_count; i++)
		show("label", o->inventory.labels[i]);
	show("key file", o->tls.key_file);
	show("certificate", o->tls.certificate);
	show("its key", o->tls.certificate_key);
	show("authority", o->tls.ca);
	show("name of the driver", o->tls.peer_name);
	show_number("users", (long long)o->users.count);
	for (size_t i = 0; i < o->users.count; i++)
		fprintf(out, "  user %u, roles %u\n", o->users.items[i].user,
			o->users.items[i].roles);
	show_number("insecure", o->users.insecure);
	show_number("once", o->once);
	show_number("verbosity", o->verbosity);
}

static const char *const command_lines[] = {
	"",
	"--address host.example",
	"--address :4711",
	"--address [::1]:4711",
	"--address 10.0.0.1:4711",
	"--address 10.0.0.1:4711 --insecure",
	"--address 10.0.0.1 --key-file k",
	"--address localhost:1-2",
	"--address localhost:0",
	"--address :70000",
	"--fragments all",
	"--fragments a",
	"--fragments a,app/b",
	"--fragments a,,b",
	"--fragments app/b/c",
	"--fragments /b",
	"--fragments app/",
	"--fragments a23456789012345678901234567890123456789012345678901234567890123/b",
	"--fragments a234567890123456789012345678901234567890123456789012345678901234/b",
	"--worker-address 10.0.0.2",
	"--worker-address 10.0.0.2:0",
	"--worker-address 10.0.0.2:10000",
	"--worker-address 10.0.0.2:9999",
	"--worker-address 10.0.0.2:32767",
	"--worker-address 10.0.0.2:32767-32768",
	"--worker-address 10.0.0.2:20000-20003",
	"--worker-address :20000",
	"--worker-address [fe80::1]:20000-20001",
	"--announce-address 192.0.2.1",
	"--announce-address 192.0.2.1:20000",
	"--announce-address [2001:db8::1]:10000-32767",
	"--announce-address 192.0.2.1:30000-30003 --worker-address 10.0.0.2:20000-20003",
	"--announce-address 192.0.2.1:30000-30002 --worker-address 10.0.0.2:20000-20003",
	"--announce-address 192.0.2.1:10000 --worker-address 10.0.0.2:20000",
	"--announce-address 192.0.2.1 --worker-address 10.0.0.2:20000-20001",
	"--announce-address nat.example:30000",
	"--announce-address :30000",
	"--name n --library-path /l:/m --app-root /r --ucx /u --python py",
	"--allow-write /a:/b --allow-write /c --host-user me --host-limit core=0 --host-limit cpu=7",
	"--inventory cpu=3,memory=2GiB --label a=b,c=d --label e=f",
	"--inventory cpu=3 --inventory gpu=1,sharedMemory=5MiB,gpuMemory=6GiB",
	"--inventory cpu",
	"--inventory speed=3",
	"--label a",
	"--once -v -v -q",
	"-qq",
	"--cert c --cert-key k --ca a --address 10.0.0.1",
	"--cert c --cert-key k --ca a --address 10.0.0.1 --driver-name d",
	"--cert c",
	"--cert c --cert-key k",
	"--key-file k --cert c --cert-key k --ca a",
	"--key-file k --insecure",
	"--allow-user 1234 --allow-user root",
	"--allow-user no.such.user",
	"--onc",
	"--once=1",
	"--name",
	"operand",
};

static void show_line(const char *line)
{
	char words[256], *rest = words, *argv[16] = {(char *)(uintptr_t) "workerd"};
	struct frag_err err = FRAG_ERR_INIT;
	struct wrk_options options;
	int argc = 1, r;

	snprintf(words, sizeof(words), "%s", line);
	while (line[0] != '\0' && (argv[argc] = strsep(&rest, " ")) != NULL)
		argc++;
	r = wrk_options_parse(&options, argc, argv, &err);
	fprintf(out, "workerd %s\n", line);
	if (r < 0)
		fprintf(out, "  %s: %s\n", strerrorname_np(-r), err.text);
	else
		show_options(&options);
	wrk_options_fini(&options);
}

/* As many names as a worker may be given, and one more. */
static void show_many_fragments(void)
{
	static char names[2 * (FW_NAMES_MAX + 1)];
	char *argv[] = {(char *)(uintptr_t) "workerd", (char *)(uintptr_t) "--fragments", names,
			NULL};

	for (int count = FW_NAMES_MAX; count <= FW_NAMES_MAX + 1; count++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct wrk_options options;

		for (int i = 0; i < count; i++)
			memcpy(names + 2 * i, i + 1 < count ? "a," : "a", 2);
		if (wrk_options_parse(&options, 3, argv, &err) < 0)
			fprintf(out, "%d fragments: %s\n", count, err.text);
		else
			fprintf(out, "%d fragments: %u, the last is %s\n", count,
				options.fragment_count,
				options.fragments[options.fragment_count - 1]);
		wrk_options_fini(&options);
	}
}

Test(worker_shell, command_lines)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(command_lines); i++)
		show_line(command_lines[i]);
	show_many_fragments();
	setenv("FRAG_NAME", "from the environment", 1);
	setenv("FRAG_FRAGMENTS", "x,y", 1);
	setenv("FRAG_ONCE", "1", 1);
	fprintf(out, "FRAG_NAME, FRAG_FRAGMENTS, FRAG_ONCE\n");
	show_line("");
	show_line("--name flag --fragments z");
	end("worker/command_lines");
}

Test(worker_shell, limits_of_hosts)
{
	static const char *const texts[] = {"core=0",   "nofile=64",  "nofile=65",  "cpu=1Ki",
					    "rttime=0", "stack=8MiB", "corer=0",    "cor=0",
					    "core",     "=0",         "core=",      "core=x",
					    "core=-1",  "data=4096",  "fsize=4096", "nproc=1",
					    "rtprio=0", "memlock=0",  "as=1GiB"};
	struct wrk_host_limits limits = {0};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++) {
		err = (struct frag_err)FRAG_ERR_INIT;
		r = wrk_host_limits_add(&limits, texts[i], &err);
		fprintf(out, "%s: %s\n", texts[i], r < 0 ? err.text : "taken");
	}
	for (size_t i = 0; i < limits.count; i++)
		fprintf(out, "%d: %llu, %llu\n", limits.items[i].resource,
			(unsigned long long)limits.items[i].value.rlim_cur,
			(unsigned long long)limits.items[i].value.rlim_max);
	err = (struct frag_err)FRAG_ERR_INIT;
	while ((r = wrk_host_limits_add(&limits, "core=0", &err)) == 0)
		;
	fprintf(out, "one more than %zu: %s\n", limits.count, err.text);
	fprintf(out, "nofile is %llu, rtprio %llu\n",
		(unsigned long long)wrk_host_limits_get(&limits, RLIMIT_NOFILE).rlim_cur,
		(unsigned long long)wrk_host_limits_get(&limits, RLIMIT_RTPRIO).rlim_max);
	limits.count = 2;
	fprintf(out, "applied: %d\n", wrk_host_limits_apply(&limits));
	fprintf(out, "nofile is %llu\n",
		(unsigned long long)wrk_host_limits_get(&(struct wrk_host_limits){0}, RLIMIT_NOFILE)
			.rlim_max);
	end("worker/host_limits");
}

static void show_environment(const char *what, const struct wrk_environment *environment)
{
	struct fragi_arena arena = {0};
	char *const *entries = wrk_environment_make(environment, &arena);

	fprintf(out, "%s\n", what);
	for (; entries != NULL && *entries != NULL; entries++)
		if (strncmp(*entries, "FRAG_TEST", 9) != 0)
			fprintf(out, "  %s\n", *entries);
	fragi_arena_fini(&arena);
}

Test(worker_shell, environments_of_hosts)
{
	const struct wrk_host_user same = {.name = "me", .home = "/home/me"},
				   other = {.is_other = true, .name = "frag", .home = "/home/frag"};
	struct wrk_environment e = {.device = "eth0", .port_first = 10000, .port_last = 10009};

	show_environment("least", &e);
	e.library_path = "/l";
	e.is_own_user = true;
	e.user = &same;
	e.ucx_folder = "";
	e.may_write = "below /a only";
	show_environment("own user", &e);
	e.app_root = "/r";
	e.user = &other;
	e.ucx_folder = "/u";
	e.announced = "192.0.2.1/20000";
	show_environment("other user", &e);
	e.is_own_user = false;
	setenv("FRAG_APP_ROOT", "/mine", 1);
	setenv("FRAG_APP_ROO", "/shorter", 1);
	setenv("FRAG_APP_ROOTS", "/longer", 1);
	setenv("UCX_NET_DEVICES", "lo", 1);
	setenv("UCX_TCP_PORT_RANGE", "10000-10009", 1);
	show_environment("with variables of the user", &e);
	end("worker/environments");
}

/* The fragments of a host are separated by spaces. */
static void show_interpreter(const char *graph, const char *fragment, const char *python)
{
	struct fragi_spec_source source = {.graph = {"app.yaml", graph, strlen(graph)}};
	char copy[32], *rest = copy, *name;
	const char *fragments[4];
	struct fw_host_create create = {.fragments = fragments};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_arena arena = {0};
	char *const *arguments = NULL;
	size_t bytes;
	void *packed;
	int r;

	snprintf(copy, sizeof(copy), "%s", fragment);
	while ((name = strsep(&rest, " ")) != NULL)
		fragments[create.fragment_count++] = name;
	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	create.source = packed;
	create.source_bytes = (uint32_t)bytes;
	r = wrk_interpreter_choose(&create, python, &arena, &arguments, &err);
	fprintf(out, "fragment %s by %s: %s\n", fragment, python != NULL ? python : "none",
		r < 0               ? err.text
		: arguments == NULL ? "fraghost"
				    : "");
	for (; r == 0 && arguments != NULL && *arguments != NULL; arguments++)
		fprintf(out, "  %s\n", *arguments);
	fragi_arena_fini(&arena);
	free(packed);
}

Test(worker_shell, interpreters)
{
	static const char graph[] =
		"frag: 1\n"
		"application: app\n"
		"fragments:\n"
		"  one: {extensions: [b.so], operators: {a: {type: t}}}\n"
		"  two: {extensions: [a.so, m.py, n.py], operators: {a: {type: t}}}\n"
		"  three: {extensions: [o.py], operators: {a: {type: t}}}\n";
	static const char without[] = "frag: 1\n"
				      "application: app\n"
				      "fragments: {one: {operators: {a: {type: t}}}}\n";
	static char longest[2 * PATH_MAX], path[PATH_MAX];

	put("bin/py", "");
	put("empty/other", "");
	cr_assert_eq(chmod(at("bin/py"), 0700), 0);
	show_interpreter(graph, "one", "py");
	show_interpreter(graph, "two", NULL);
	show_interpreter(graph, "one two three", NULL);
	show_interpreter(graph, "three one", NULL);
	show_interpreter(graph, "two", "py");
	show_interpreter(graph, "two", "bin/py");
	show_interpreter(graph, "two", "empty/other");
	show_interpreter(without, "one", NULL);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[0] = '/';
	cr_expect_not(wrk_interpreter_find(longest, path));
	cr_expect_eq(strlen(path), PATH_MAX - 1);
	setenv("PATH", "empty::bin", 1);
	show_interpreter(graph, "two", "py");
	show_interpreter(graph, "two", "other");
	unsetenv("PATH");
	show_interpreter(graph, "two", "py");
	end("worker/interpreters");
}

static void script(const char *name, const char *body)
{
	char whole[1024];

	snprintf(whole, sizeof(whole), "#!/bin/sh\n%s\n", body);
	put(name, whole);
	cr_assert_eq(chmod(at(name), 0700), 0);
}

static void show_examined(void *arg, const struct fw_message *answer)
{
	const struct fw_examined *e = &answer->examined;
	char last[32];

	(void)arg;
	fprintf(out, "  %s\n", fw_kind_name(answer->kind));
	show("why not", e->why_not);
	for (uint32_t i = 0; i < e->finding_count; i++) {
		const struct fw_finding *f = &e->findings[i];

		if (i >= 6 && i + 1 < e->finding_count)
			continue;
		snprintf(last, sizeof(last), "%u", i);
		fprintf(out, "  %s: %.40s, %s, found %s, costs %s, mend %s\n", last, f->check,
			f->is_wrong ? "wrong" : "ok", f->found, f->cost, f->mend);
	}
}

/* Each is the body of a shell script in place of fragctl. */
static const char *const examinations[] = {
	"printf 'disk\\tok\\tfree\\t\\t\\nnet\\twrong\\tslow\\tall\\tmend it\\n'",
	"printf 'a\\tok\\tone\\ttwo\\tthree\\tfour\\nb\\n\\nc\\tOK\\n'",
	"printf 'cut\\tok\\tno newline'",
	"echo \"$@\" | tr ' ' '\\t'",
	"exit 3",
	"printf 'begun\\tok\\n'; kill -ALRM $$",
	"printf 'begun\\tok\\n'; kill -KILL $$",
	"i=0; while [ $i -lt 300 ]; do printf '%s\\tok\\n' $i; i=$((i+1)); done",
	"head -c 2000 /dev/zero | tr '\\0' y; echo", /* what it said before is over */
	"head -c 70000 /dev/zero | tr '\\0' x; exec sleep 100",
	"cat; printf 'stdin\\tok\\tis empty\\n'",
};

static int lowest_descriptor(void)
{
	int fd = dup(STDIN_FILENO);

	close(fd);
	return fd;
}

Test(worker_shell, examinations)
{
	struct wrk_examiner *examiner = calloc(1, sizeof(*examiner));
	uv_loop_t loop;
	int before;

	cr_assert_eq(uv_loop_init(&loop), 0);
	wrk_examiner_init(examiner, "driver:1", "cert.pem");
	cr_expect_str_eq(strrchr(examiner->program, '/'), "/fragctl");
	for (size_t i = 0; i < FRAG_COUNT_OF(examinations); i++) {
		snprintf(examiner->program, sizeof(examiner->program), "./fragctl");
		fprintf(out, "%s\n", examinations[i]);
		script("fragctl", examinations[i]);
		wrk_examiner_begin(examiner, &loop, show_examined, NULL);
		cr_expect(examiner->is_busy);
		wrk_examiner_begin(examiner, &loop, NULL, NULL);
		uv_run(&loop, UV_RUN_DEFAULT);
		cr_expect_not(examiner->is_busy);
	}
	fprintf(out, "not there\n");
	snprintf(examiner->program, sizeof(examiner->program), "./none");
	before = lowest_descriptor();
	wrk_examiner_begin(examiner, &loop, show_examined, NULL);
	cr_expect_not(examiner->is_busy);
	cr_expect_eq(lowest_descriptor(), before);
	fprintf(out, "none\n");
	examiner->program[0] = '\0';
	wrk_examiner_begin(examiner, &loop, show_examined, NULL);
	fprintf(out, "ended before it has answered\n");
	snprintf(examiner->program, sizeof(examiner->program), "./fragctl");
	script("fragctl", "exec sleep 100");
	wrk_examiner_begin(examiner, &loop, show_examined, NULL);
	wrk_examiner_end(examiner);
	wrk_examiner_end(examiner);
	uv_run(&loop, UV_RUN_DEFAULT);
	fprintf(out, "  busy: %d, child: %d\n", examiner->is_busy, kill(examiner->pid, 0));
	cr_expect_eq(uv_loop_close(&loop), 0);
	free(examiner);
	end("worker/examinations");
}

/* Each is the body of a shell script in place of fraghost. */
static const char *const surveys[] = {
	"echo 2 85899345920",
	"echo 0 0",
	"printf '2 5'",
	"echo 2",
	"echo 2 x",
	"echo 'the driver is gone'; exit 1",
	"printf 'first\\nsecond\\n'; exit 1",
	"printf 'a\\001b\\n'",
	"exit 1",
	"echo \"$@\"",
	"head -c 600 /dev/zero | tr '\\0' y",
	"echo 1 7; echo 2 8",
};

Test(worker_shell, surveys_of_gpus)
{
	struct frag_err err = FRAG_ERR_INIT;
	uint32_t count;
	uint64_t bytes;
	char mig[WRK_MIG_TEXT_MAX];
	int r, before;

	for (size_t i = 0; i < FRAG_COUNT_OF(surveys); i++) {
		err = (struct frag_err)FRAG_ERR_INIT;
		script("fraghost", surveys[i]);
		count = 17;
		bytes = 19;
		r = wrk_gpus_survey("./fraghost", &count, &bytes, mig, &err);
		fprintf(out, "%s: %u, %llu", surveys[i], count, (unsigned long long)bytes);
		fprintf(out, "%s%s %s\n", r < 0 ? ", " : "", r < 0 ? strerrorname_np(-r) : "",
			r < 0 ? err.text : "");
	}
	err = (struct frag_err)FRAG_ERR_INIT;
	before = lowest_descriptor();
	r = wrk_gpus_survey("./none", &count, &bytes, mig, &err);
	cr_expect_eq(lowest_descriptor(), before);
	fprintf(out, "not there: %s %s\n", strerrorname_np(-r), err.text);
	end("worker/surveys");
}

/* The interfaces of a machine that this file makes up. */
static const struct {
	const char *name, *address;
	unsigned int flags;
} interfaces[] = {{"lo", "127.0.0.1", IFF_RUNNING},   {"none", NULL, IFF_RUNNING},
		  {"eth0", "192.0.2.7", IFF_RUNNING}, {"eth1", "192.0.2.8", IFF_UP},
		  {"lo", "::1", IFF_RUNNING},         {"eth0", "2001:db8::7", IFF_RUNNING}};
static struct ifaddrs entries[FRAG_COUNT_OF(interfaces)];
static struct sockaddr_in6 places[FRAG_COUNT_OF(interfaces)];
static int lists; /* that are not given back */

int getifaddrs(struct ifaddrs **out_all)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(interfaces); i++) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&places[i];

		entries[i] = (struct ifaddrs){.ifa_name = (char *)(uintptr_t)interfaces[i].name,
					      .ifa_flags = interfaces[i].flags};
		if (i + 1 < FRAG_COUNT_OF(interfaces))
			entries[i].ifa_next = &entries[i + 1];
		if (interfaces[i].address == NULL)
			continue;
		entries[i].ifa_addr = (struct sockaddr *)&places[i];
		if (inet_pton(AF_INET, interfaces[i].address, &v4->sin_addr) == 1)
			v4->sin_family = AF_INET;
		else if (inet_pton(AF_INET6, interfaces[i].address, &places[i].sin6_addr) == 1)
			places[i].sin6_family = AF_INET6;
	}
	*out_all = entries;
	lists++;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	cr_expect_eq(all, entries);
	lists--;
}

Test(worker_shell, interfaces)
{
	static const char *const addresses[] = {
		"127.0.0.1", "::ffff:127.0.0.1", "127.0.0.9",   "x",           "127.0.0.1:1", "",
		"192.0.2.7", "192.0.2.8",        "2001:db8::7", "2001:db8::8", "::1",
	};
	struct frag_err err = FRAG_ERR_INIT;
	char device[IF_NAMESIZE];
	int r;

	for (size_t i = 0; i < FRAG_COUNT_OF(addresses); i++) {
		err = (struct frag_err)FRAG_ERR_INIT;
		snprintf(device, sizeof(device), "none");
		r = wrk_interface_find(addresses[i], device, &err);
		fprintf(out, "%s: %s %s\n", addresses[i], device, r < 0 ? strerrorname_np(-r) : "");
		if (r < 0)
			fprintf(out, "  %s\n", err.text);
	}
	cr_expect_eq(lists, 0);
	end("worker/interfaces");
}

/* Who writes them is said in front, unless they say so. */
static const char *const lines[] = {
	"plain",
	"",
	"f.tx: of an operator",
	"h.tx: of another host",
	"2026-11-22T20:24:04.159Z warn  run app/f.tx: its own",
	"2026-11-22T20:24:04.159Z warn  run app/g: also its own",
	"2026-11-22T20:24:04.159Z info  run app: of all",
	"2026-11-22T20:24:04.159Z info  run other/f: of another",
	"2026-11-22T20:24:04.159Z info  run app/h: of another",
	"2026-11-22T20:24:04.159Z info  driver app/f: of a daemon",
	"2026-11-22T20:24:04.159Z info  worker : of a daemon",
	"2026-11-22T20:24:04.159Z info  service keys: of a daemon",
	"2026-11-22T20:24:04.159Z error data",
	"2026-11-22T20:24:04.159Z error",
	"\033[31mred\a",
	"\xff\xfe",
};

Test(worker_shell, lines_are_signed)
{
	static const char *const fragments[] = {"f", "g", "third"};
	struct wrk_writer writer = {.application = "app", .fragments = fragments};
	char line[WRK_SIGNED_MAX], large[WRK_SIGNED_MAX + 9];
	size_t n;

	for (size_t count = 0; count <= FRAG_COUNT_OF(fragments); count++) {
		writer.count = count;
		writer.names_plain = count % 2 == 1;
		fprintf(out, "%zu fragments%s\n", count, writer.names_plain ? ", plain too" : "");
		for (size_t i = 0; i < FRAG_COUNT_OF(lines); i++) {
			n = wrk_writer_sign(&writer, lines[i], strlen(lines[i]), line);
			cr_expect_eq(n, strlen(line));
			fprintf(out, "  %s\n", line);
		}
	}
	fprintf(out, "nobody\n");
	for (size_t i = 0; i < FRAG_COUNT_OF(lines); i++) {
		wrk_writer_sign(NULL, lines[i], strlen(lines[i]), line);
		fprintf(out, "  %s\n", line);
	}
	memset(large, 'x', sizeof(large));
	for (size_t size = WRK_SIGNED_MAX - 22; size < WRK_SIGNED_MAX + 2; size++) {
		n = wrk_writer_sign(&writer, large, size, line);
		fprintf(out, "%zu bytes: %zu, ends with %s", size, n, line + n - 5);
		n = wrk_writer_sign(NULL, large, size, line);
		fprintf(out, "; of nobody: %zu, ends with %s\n", n, line + n - 5);
	}
	end("worker/signed");
}
