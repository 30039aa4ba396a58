// SPDX-License-Identifier: Apache-2.0
#include <workerd/options.h>

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/environment.h>
#include <wire/credentials.h>
#include <wire/message.h>
#include <workerd/environment.h>
#include <workerd/spawn.h>

static bool fragment_name_is_valid(const char *text)
{
	char application[FRAG_NAME_MAX + 2];
	const char *slash = strchr(text, '/');

	if (slash == NULL)
		return fragi_name_is_valid(text);
	if ((size_t)(slash - text) > FRAG_NAME_MAX)
		return false;
	snprintf(application, sizeof(application), "%.*s", (int)(slash - text), text);
	return fragi_name_is_valid(application) && fragi_name_is_valid(slash + 1);
}

/* "a,app/b", or "all" for whatever fits. */
static int parse_fragments(struct wrk_options *options, const char *text, struct frag_err *err)
{
	char *rest, *name;

	if (text == NULL || strcmp(text, "all") == 0)
		return 0;
	options->fragment_texts = fragi_strdup(text);
	options->fragments = fragi_calloc(FW_NAMES_MAX, sizeof(*options->fragments));
	if (options->fragment_texts == NULL || options->fragments == NULL)
		return -ENOMEM;
	for (rest = options->fragment_texts; (name = strsep(&rest, ",")) != NULL;) {
		if (!fragment_name_is_valid(name))
			return frag_err_set(
				err, -EINVAL,
				"--fragments: \"%.80s\" is not a valid name of a fragment; give fragment or application/fragment, with commas between them, or all",
				name);
		if (options->fragment_count == FW_NAMES_MAX)
			return frag_err_set(err, -EINVAL,
					    "--fragments names more than %d fragments",
					    FW_NAMES_MAX);
		options->fragments[options->fragment_count++] = name;
	}
	return 0;
}

static int parse_addresses(struct wrk_options *options, const char *address,
			   const char *worker_address, bool insecure, struct frag_err *err)
{
	bool v6;
	int r = fragi_parse_address(address != NULL ? address : "", "127.0.0.1", FRAGI_PORT_DEFAULT,
				    &options->driver, err);

	if (r < 0)
		return r;
	v6 = strchr(options->driver.host, ':') != NULL;
	snprintf(options->driver_text, sizeof(options->driver_text), "%s%s%s:%u", v6 ? "[" : "",
		 options->driver.host, v6 ? "]" : "", (unsigned int)options->driver.port);
	if (options->driver.port == 0 || options->driver.port_last != options->driver.port)
		return frag_err_set(err, -EINVAL, "--address needs one port, as 127.0.0.1:%d",
				    FRAGI_PORT_DEFAULT);
	r = fw_credentials_check(&options->tls, insecure, err);
	if (r < 0)
		return r;
	if (options->tls.peer_name == NULL && options->tls.certificate != NULL)
		options->tls.peer_name = options->driver.host;
	if (!insecure && !fw_credentials_given(&options->tls) &&
	    !fragi_address_is_loopback(&options->driver))
		return frag_err_set(
			err, -EINVAL,
			"does not connect to %s without a key, since whoever is there could command this worker; `fragctl key new > frag.key` makes a key and `scp -p frag.key NODE:` brings it to a node, then give --key-file frag.key to driverd and workerd (or --insecure on a network that you trust)",
			options->driver_text);
	if (worker_address == NULL)
		return 0;
	r = fragi_parse_address(worker_address, "", 0, &options->worker_address, err);
	if (r < 0)
		return r;
	if (options->worker_address.host[0] == '\0')
		return frag_err_set(
			err, -EINVAL,
			"--worker-address \"%.80s\" has no IP address; give IP[:PORT[-PORT]]",
			worker_address);
	if (options->worker_address.port_last == 0) { /* none, or any */
		options->worker_address.port = WRK_DATA_PORT_FIRST;
		options->worker_address.port_last = WRK_DATA_PORT_LAST;
	}
	if (options->worker_address.port < WRK_DATA_PORT_FIRST ||
	    options->worker_address.port_last > WRK_DATA_PORT_LAST)
		return frag_err_set(
			err, -EINVAL,
			"--worker-address \"%.80s\": the ports of the data plane are between %d and %d; give one of them, a range, or none",
			worker_address, WRK_DATA_PORT_FIRST, WRK_DATA_PORT_LAST);
	options->has_worker_address = true;
	return 0;
}

/* The ports that are forwarded belong to the data ports one by one. */
static int parse_announced(struct wrk_options *options, const char *text, struct frag_err *err)
{
	const struct fragi_address *own = &options->worker_address;
	struct fragi_address *announced = &options->announced;
	uint16_t first = options->has_worker_address ? own->port : WRK_DATA_PORT_FIRST;
	uint16_t last = options->has_worker_address ? own->port_last : WRK_DATA_PORT_LAST;
	unsigned char bytes[16];
	int r;

	if (text == NULL)
		return 0;
	r = fragi_parse_address(text, "", 0, announced, err);
	if (r < 0)
		return r;
	if (inet_pton(strchr(announced->host, ':') != NULL ? AF_INET6 : AF_INET, announced->host,
		      bytes) != 1)
		return frag_err_set(
			err, -EINVAL,
			"--announce-address \"%.80s\" has no IP address; give IP[:PORT[-PORT]]",
			text);
	if (announced->port_last == 0) { /* the same ports */
		announced->port = first;
		announced->port_last = last;
	}
	if (announced->port_last - announced->port != last - first)
		return frag_err_set(
			err, -EINVAL,
			"--announce-address \"%.80s\" has %d ports, and the data ports %u-%u are %d; each of them needs one: give --worker-address IP:PORT-PORT with as many",
			text, announced->port_last - announced->port + 1, (unsigned int)first,
			(unsigned int)last, last - first + 1);
	snprintf(options->announced_text, sizeof(options->announced_text), "%s/%d", announced->host,
		 announced->port - first);
	return 0;
}

static void print_machine(struct wrk_inventory *inventory)
{
	char program[PATH_MAX] = "", offer[256];
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	(void)wrk_spawn_find_host(program, sizeof(program));
	wrk_inventory_find(inventory, "/proc", "/dev", "/sys/fs/cgroup");
	r = wrk_inventory_ask_gpus(inventory, program, &err);
	wrk_inventory_text(inventory, offer, sizeof(offer));
	printf("this worker offers %s\n", offer);
	if (inventory->limited[0] != '\0')
		printf("it may use %s\n", inventory->limited);
	if (r < 0)
		printf("the memory of GPUs is not known: %s\n", err.text);
	wrk_rights_print_kernel(stdout);
}

int wrk_options_parse(struct wrk_options *out_options, int argc, char **argv, struct frag_err *err)
{
	const char *address = NULL, *fragments = NULL, *worker_address = NULL, *env_file = NULL;
	const char *announced = NULL;
	char offers[192];
	struct fragi_texts allowed = {0}, amounts = {0}, labels = {0};
	bool insecure = false, help = false, version = false;
	int verbose = 0, quiet = 0, r;
	const struct fragi_flag table[] = {
		{.name = "address",
		 .value = "[HOST][:PORT]",
		 .help = "where the driver listens; default 127.0.0.1:57777",
		 .text = &address},
		{.name = "fragments",
		 .value = "a,app/b|all",
		 .help = "the fragments this worker takes; default: whatever no worker names",
		 .text = &fragments},
		{.name = "worker-address",
		 .value = "IP[:PORT[-PORT]]",
		 .help = "interface and ports (10000-32767) of the data plane; default: as the control connection",
		 .text = &worker_address},
		{.name = "announce-address",
		 .value = "IP[:PORT[-PORT]]",
		 .help = "where other workers reach these ports, if somebody forwards them (NAT, containers)",
		 .text = &announced},
		{.name = "name",
		 .value = "NAME",
		 .help = "what the driver calls this worker; default: the host name",
		 .text = &out_options->name},
		{.name = "inventory",
		 .value = "NAME=AMOUNT,...",
		 .help = offers,
		 .texts = &amounts},
		{.name = "label",
		 .value = "KEY=VALUE,...",
		 .help = "labels that fragments may require",
		 .texts = &labels},
		{.name = "library-path",
		 .value = "DIR:DIR",
		 .help = "folders of the libraries that graphs may name",
		 .text = &out_options->library_path},
		{.name = "python",
		 .value = "PROGRAM",
		 .help = "the Python that runs fragments with modules in Python; default: none",
		 .text = &out_options->rights.python},
		{.name = "app-root",
		 .value = "DIR",
		 .help = "the app folder that relative paths of a graph start from",
		 .text = &out_options->app_root},
		{.name = "ucx",
		 .value = "DIR",
		 .help = "the folder with libucp.so.0 and the rest of the UCX that hosts use; default: the system's",
		 .text = &out_options->ucx_folder},
		{.name = "allow-write",
		 .value = "DIR:DIR",
		 .help = "where hosts may write; default: the app folder and the working folder",
		 .texts = &out_options->allow_write},
		{.name = "host-user",
		 .value = "NAME",
		 .help = "the user that hosts run as, when workerd is root; default: frag if there is such a user",
		 .text = &out_options->rights.host_user},
		{.name = "host-limit",
		 .value = "NAME=N",
		 .help = "a limit of each host, such as nproc=512 or core=0",
		 .texts = &out_options->host_limits},
		{.name = "once",
		 .help = "ends with the first application that was served, with its result",
		 .on = &out_options->once},
		{.name = "key-file",
		 .value = "FILE",
		 .help = "its first key for a worker is used (fragctl key new); SIGHUP reads it again",
		 .text = &out_options->tls.key_file},
		{.name = "cert",
		 .value = "FILE",
		 .help = "certificate of this worker, in place of a key file; with --cert-key and --ca",
		 .text = &out_options->tls.certificate},
		{.name = "cert-key",
		 .value = "FILE",
		 .help = "private key of the certificate",
		 .text = &out_options->tls.certificate_key},
		{.name = "ca",
		 .value = "FILE",
		 .help = "certificate of the authority that signs those of both sides",
		 .text = &out_options->tls.ca},
		{.name = "driver-name",
		 .value = "NAME",
		 .help = "name or IP that the driver's certificate must have; default: the host of --address",
		 .text = &out_options->tls.peer_name},
		{.name = "allow-user",
		 .value = "NAME|UID",
		 .help = "also obeys a driver on this machine that runs as this user; repeatable",
		 .texts = &allowed},
		{.name = "insecure",
		 .help = "allows a driver that is not on this machine",
		 .on = &insecure},
		FRAGI_ENVIRONMENT_FILE_FLAG(env_file),
		{.name = "verbose",
		 .letter = 'v',
		 .help = "more log lines; again: still more",
		 .times = &verbose},
		{.name = "quiet", .letter = 'q', .help = "fewer log lines", .times = &quiet},
		{.name = "help", .letter = 'h', .no_env = true, .help = "prints this", .on = &help},
		{.name = "version",
		 .no_env = true,
		 .help = "prints the version; with -v also what this machine offers and how its kernel can restrict hosts",
		 .on = &version},
	};
	const struct fragi_flags flags = {
		.program = "workerd",
		.usage = "[--address [HOST][:PORT]] [--fragments a,app/b|all] [flags]",
		.headline =
			"A node's agent: takes fragments from a driver and runs them in processes of their own.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};

	snprintf(offers, sizeof(offers),
		 "what this worker offers in place of what its machine has: %s",
		 fragi_amount_names());
	memset(out_options, 0, sizeof(*out_options));
	r = fragi_flags_parse(&flags, argc, argv, NULL, NULL, err);
	if (r == 0)
		r = fragi_environment_trust(env_file, err);
	if (r == 0)
		r = fw_users_init(&out_options->users, flags.program, allowed.items, allowed.count,
				  false, err);
	if (r == 0)
		r = wrk_inventory_parse(&out_options->inventory, &amounts, &labels, err);
	fragi_texts_fini(&allowed);
	fragi_texts_fini(&amounts);
	fragi_texts_fini(&labels);
	if (r < 0)
		return r;
	out_options->users.insecure = insecure;
	if (help)
		fragi_flags_help(&flags, stdout);
	if (version)
		printf("workerd %s, protocol %d.%d\n", FRAG_VERSION, FW_PROTOCOL_MAJOR,
		       FW_PROTOCOL_MINOR);
	if (version && verbose > 0)
		print_machine(&out_options->inventory);
	if (help || version)
		return 1;
	out_options->verbosity = verbose - quiet;
	out_options->rights.allow_write = &out_options->allow_write;
	out_options->rights.host_limits = &out_options->host_limits;
	out_options->rights.library_path = out_options->library_path;
	out_options->rights.app_root = out_options->app_root;
	out_options->rights.ucx_folder = out_options->ucx_folder;
	r = parse_addresses(out_options, address, worker_address, insecure, err);
	if (r == 0)
		r = parse_announced(out_options, announced, err);
	return r < 0 ? r : parse_fragments(out_options, fragments, err);
}

void wrk_options_fini(struct wrk_options *options)
{
	fragi_texts_fini(&options->allow_write);
	fragi_texts_fini(&options->host_limits);
	wrk_inventory_fini(&options->inventory);
	fw_users_fini(&options->users);
	fragi_free(options->fragments);
	fragi_free(options->fragment_texts);
	memset(options, 0, sizeof(*options));
}
