// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdlib.h>

#include <wire/message.h>
#include <workerd/options.h>

#include "../expected.h"
#include "logged.h"

/* All that comes of command lines of workerd, as recorded. */
static FILE *out;

static const char *const lines[] = {
	"",
	"--address :700 --once -v -v",
	"--address 10.1.2.3:700 --insecure",
	"--address [::1]:5 -q",
	"--address :0",
	"--address :5-6",
	"--address 10.1.2.3:5",
	"--address node7:5 --key-file k",
	"--address node7:5 --key-file k --insecure",
	"--address node7:5 --cert c --cert-key ck --ca a",
	"--address node7:5 --cert c --cert-key ck --ca a --driver-name other",
	"--cert c",
	"--worker-address 10.0.0.1",
	"--worker-address 10.0.0.1:0",
	"--worker-address 10.0.0.1:10000",
	"--worker-address 10.0.0.1:9999",
	"--worker-address 10.0.0.1:32767",
	"--worker-address 10.0.0.1:32768",
	"--worker-address 10.0.0.1:20000-32768",
	"--worker-address [2001:db8::1]:20000-20009",
	"--worker-address :20000",
	"--announce-address 203.0.113.9",
	"--announce-address 203.0.113.9:0",
	"--announce-address 203.0.113.9:10000-32767",
	"--announce-address 203.0.113.9:10001-32767",
	"--worker-address 10.0.0.1:20000-20009 --announce-address 203.0.113.9",
	"--worker-address 10.0.0.1:20000-20009 --announce-address 203.0.113.9:30000-30009",
	"--worker-address 10.0.0.1:20000-20009 --announce-address [2001:db8::2]:11000-11009",
	"--worker-address 10.0.0.1:20000-20009 --announce-address 203.0.113.9:30000-30008",
	"--worker-address 10.0.0.1:20000 --announce-address 203.0.113.9:30000-30001",
	"--announce-address node7:30000",
	"--fragments all",
	"--fragments a",
	"--fragments a,b/c,d",
	"--fragments a,",
	"--fragments a/b/c",
	"--fragments 1a",
	"--name w1 --library-path /l1:/l2 --app-root /app --ucx /ucx --python py",
	"--allow-write /w1:/w2 --allow-write /w3 --host-user nobody --host-limit nproc=5",
	"--inventory cpu=2,gpu=3,memory=4Mi,sharedMemory=5Mi,gpuMemory=6Mi",
	"--inventory cpu=x",
	"--inventory lamps=3",
	"--label a=b,c=d",
	"--label a",
	"--allow-user 4711 --allow-user 12",
	"--allow-user no-such-user",
	"--nothing",
	"operand",
};

static void show_text(const char *name, const char *text)
{
	if (text != NULL && text[0] != '\0')
		fprintf(out, ", %s %s", name, text);
}

static void show_address(const char *name, const struct fragi_address *address)
{
	fprintf(out, ", %s %s %u-%u", name, address->host, address->port, address->port_last);
}

static void show(const struct wrk_options *o)
{
	struct wrk_config config = {0};
	char offer[256];

	wrk_inventory_text(&o->inventory, offer, sizeof(offer));
	fprintf(out, "  driver %s %u-%u, shown as %s", o->driver.host, o->driver.port,
		o->driver.port_last, o->driver_text);
	if (strpbrk(offer, "123456789") != NULL)
		show_text("offers", offer);
	wrk_inventory_offer(&o->inventory, &config);
	for (uint32_t i = 0; i < config.label_count; i++)
		show_text("label", config.labels[i]);
	if (o->has_worker_address)
		show_address("worker address", &o->worker_address);
	if (o->announced.host[0] != '\0')
		show_address("announced", &o->announced);
	show_text("shown as", o->announced_text);
	for (uint32_t i = 0; i < o->fragment_count; i++)
		show_text("fragment", o->fragments[i]);
	show_text("name", o->name);
	show_text("libraries", o->library_path);
	show_text("hosts' libraries", o->rights.library_path);
	show_text("app root", o->app_root);
	show_text("hosts' app root", o->rights.app_root);
	show_text("ucx", o->ucx_folder);
	show_text("hosts' ucx", o->rights.ucx_folder);
	show_text("python", o->rights.python);
	show_text("host user", o->rights.host_user);
	for (size_t i = 0; i < o->rights.allow_write->count; i++)
		show_text("writes", o->rights.allow_write->items[i]);
	for (size_t i = 0; i < o->rights.host_limits->count; i++)
		show_text("limit", o->rights.host_limits->items[i]);
	show_text("key file", o->tls.key_file);
	show_text("certificate", o->tls.certificate);
	show_text("its key", o->tls.certificate_key);
	show_text("authority", o->tls.ca);
	show_text("peer", o->tls.peer_name);
	for (size_t i = 0; i < o->users.count; i++)
		fprintf(out, ", user %u roles %x", o->users.items[i].user, o->users.items[i].roles);
	fprintf(out, "%s%s, verbosity %d\n", o->users.insecure ? ", insecure" : "",
		o->once ? ", once" : "", o->verbosity);
}

static void parse(const char *line)
{
	char copy[256], *argv[32] = {(char *)(uintptr_t) "workerd"}, *rest = copy;
	struct wrk_options options;
	struct frag_err err = FRAG_ERR_INIT;
	int argc = 1, r;

	fprintf(out, "workerd %s\n", line);
	snprintf(copy, sizeof(copy), "%s", line);
	while (line[0] != '\0' && (argv[argc] = strsep(&rest, " ")) != NULL)
		cr_assert_lt(++argc, 32);
	r = wrk_options_parse(&options, argc, argv, &err);
	if (r < 0)
		fprintf(out, "  %d, %s\n", r, err.text);
	else
		show(&options);
	wrk_options_fini(&options);
}

Test(worker_options, what_comes_of_command_lines)
{
	char *text;
	size_t size;

	unsetenv("FRAG_BUILD");
	out = open_memstream(&text, &size);
	for (size_t i = 0; i < FRAG_COUNT_OF(lines); i++)
		parse(lines[i]);
	fclose(out);
	expected_compare("worker/options", text);
	free(text);
}

static void expect_printed(const char *flag, const char *more, const char *expected)
{
	char *argv[] = {(char *)(uintptr_t) "workerd", (char *)(uintptr_t)flag,
			(char *)(uintptr_t)more, NULL};
	struct wrk_options options;
	struct frag_err err = FRAG_ERR_INIT;
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	logged_begin();
	cr_expect_eq(wrk_options_parse(&options, more != NULL ? 3 : 2, argv, &err), 1, "%s",
		     err.text);
	logged_end(out);
	fclose(out);
	cr_expect_eq(strncmp(text, expected, strlen(expected)), 0, "%s", text);
	wrk_options_fini(&options);
	free(text);
}

/* What the machine has differs. */
Test(worker_options, what_is_asked_for_is_printed)
{
	char version[128];

	snprintf(version, sizeof(version), "  prints workerd %s, protocol %d.%d\n", FRAG_VERSION,
		 FW_PROTOCOL_MAJOR, FW_PROTOCOL_MINOR);
	expect_printed("--version", NULL, version);
	strcat(version, "  prints this worker offers cpu ");
	expect_printed("--version", "-v", version);
	expect_printed("--help", NULL, "  prints ");
}
