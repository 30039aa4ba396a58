// SPDX-License-Identifier: Apache-2.0
#include <driverd/options.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/beat.h>
#include <base/environment.h>
#include <driverd/core/core.h>
#include <wire/credentials.h>
#include <wire/message.h>

/* as they stand on the command line */
struct words {
	const char *address, *start_timeout, *output, *expected, *env_file;
};

static int parse_address(struct drv_options *options, const struct words *words,
			 struct frag_err *err)
{
	int r = fragi_parse_address(words->address != NULL ? words->address : "", "127.0.0.1",
				    FRAGI_PORT_DEFAULT, &options->address, err);

	if (r < 0)
		return r;
	if (options->address.port != options->address.port_last)
		return frag_err_set(err, -EINVAL, "--address needs one port, as 127.0.0.1:%d",
				    FRAGI_PORT_DEFAULT);
	if (!options->insecure && !fw_credentials_given(&options->tls) &&
	    !fragi_address_is_loopback(&options->address))
		return frag_err_set(
			err, -EINVAL,
			"does not listen on %s without a key, since whoever reaches it could take part in its applications; `fragctl key new > frag.key` makes a key and `scp -p frag.key NODE:` brings it to a node, then give --key-file frag.key to driverd and workerd (or --insecure on a network that you trust)",
			options->address.host);
	return 0;
}

static int parse_times(struct drv_options *options, const struct words *words, struct frag_err *err)
{
	const char *beat = getenv("FRAG_BEAT_MS"), *dead = getenv("FRAG_DEAD_MS");
	int64_t beat_ms = FRAGI_BEAT_NS / 1000000, dead_ms = FRAGI_DEAD_NS / 1000000;

	if (words->start_timeout != NULL && fragi_duration_lacks_unit(words->start_timeout))
		return frag_err_set(
			err, -EINVAL,
			"--start-timeout \"%.80s\" has no unit; write for example %.80ss",
			words->start_timeout, words->start_timeout);
	if (words->start_timeout != NULL &&
	    (fragi_parse_time(words->start_timeout, &options->start_timeout_ns) < 0 ||
	     options->start_timeout_ns <= 0))
		return frag_err_set(
			err, -EINVAL,
			"--start-timeout \"%.40s\" is not a valid time; give it as 30s or 500ms",
			words->start_timeout);
	if (beat == NULL && dead == NULL)
		return 0;
	if ((beat != NULL && fragi_parse_i64(beat, &beat_ms) < 0) ||
	    (dead != NULL && fragi_parse_i64(dead, &dead_ms) < 0) ||
	    beat_ms < FRAGI_BEAT_MIN_NS / 1000000 || beat_ms > FRAGI_BEAT_MAX_NS / 1000000 ||
	    dead_ms < 2 * beat_ms || dead_ms > FRAGI_DEAD_MAX_NS / 1000000)
		return frag_err_set(
			err, -EINVAL,
			"FRAG_BEAT_MS and FRAG_DEAD_MS do not fit: give milliseconds, a beat of %d to %d and a time of death of at least two beats and at most %d",
			(int)(FRAGI_BEAT_MIN_NS / 1000000), (int)(FRAGI_BEAT_MAX_NS / 1000000),
			(int)(FRAGI_DEAD_MAX_NS / 1000000));
	options->beat_ns = beat_ms * 1000000;
	options->dead_ns = dead_ms * 1000000;
	return 0;
}

/* Returns a flag that was given and is of use with --app only; NULL: none. */
static const char *needs_app(const struct drv_options *options, const struct words *words)
{
	return options->configs.count != 0    ? "--config"
	       : options->sets.count != 0     ? "--set"
	       : words->start_timeout != NULL ? "--start-timeout"
	       : words->output != NULL        ? "--output"
	       : options->output.file != NULL ? "--summary"
	       : options->arg_count != 0      ? "an argument after --"
					      : NULL;
}

/* "a,b" */
static int parse_expected(struct drv_options *options, const char *text, struct frag_err *err)
{
	char *rest, *name;

	if (text == NULL)
		return 0;
	rest = options->expected_text = fragi_strdup(text);
	while ((name = strsep(&rest, ",")) != NULL) {
		if (name[0] == '\0' || strlen(name) > FW_WORKER_NAME_MAX ||
		    options->expected.count == DRV_WORKERS_MAX)
			return frag_err_set(
				err, -EINVAL,
				"--expect-workers \"%.80s\" is not a list of names of workers; give them with commas between them",
				text);
		if (fragi_texts_add(&options->expected, name) < 0)
			return -ENOMEM;
	}
	return options->expected_text != NULL ? 0 : -ENOMEM;
}

static int check(struct drv_options *options, const struct words *words, struct frag_err *err)
{
	int r;

	options->tls.is_server = true;
	r = fw_credentials_check(&options->tls, options->insecure, err);
	if (r < 0)
		return r;
	if (words->output != NULL && strcmp(words->output, "json") != 0 &&
	    strcmp(words->output, "table") != 0)
		return frag_err_set(err, -EINVAL,
				    "--output \"%.40s\" is not known; give table or json",
				    words->output);
	options->output.json = words->output != NULL && strcmp(words->output, "json") == 0;
	if (options->app == NULL && needs_app(options, words) != NULL)
		return frag_err_set(
			err, -EINVAL,
			"%s is for --app APP.yaml; without --app driverd is a service, to which `fragctl start` brings applications",
			needs_app(options, words));
	r = parse_address(options, words, err);
	if (r == 0)
		r = parse_expected(options, words->expected, err);
	return r < 0 ? r : parse_times(options, words, err);
}

int drv_options_parse(struct drv_options *options, int argc, char **argv, struct frag_err *err)
{
	struct words words = {0};
	struct fragi_texts allowed = {0};
	bool help = false, version = false;
	int verbose = 0, quiet = 0, rest, r;
	const struct fragi_flag table[] = {
		{.name = "address",
		 .value = "[HOST][:PORT]",
		 .help = "where workers connect; default 127.0.0.1:57777, port 0: any free one",
		 .text = &words.address},
		{.name = "app",
		 .value = "APP.yaml",
		 .help = "runs this application and exits with its result; default: serves until SIGTERM",
		 .text = &options->app},
		{.name = "config",
		 .value = "FILE",
		 .help = "YAML with the keys below the graph's config:, merged over them; repeatable",
		 .texts = &options->configs},
		{.name = "set",
		 .value = "f.op.param=value",
		 .help = "a parameter; wins over the graph; repeatable",
		 .texts = &options->sets},
		{.name = "start-timeout",
		 .value = "TIME",
		 .help = "fails with 4 when the application does not run by then; default: waits",
		 .text = &words.start_timeout},
		{.name = "output",
		 .letter = 'o',
		 .value = "table|json",
		 .help = "the summary on stdout; default table",
		 .text = &words.output},
		{.name = "summary",
		 .value = "FILE",
		 .help = "also writes the summary, as JSON, into a file",
		 .text = &options->output.file},
		{.name = "state-dir",
		 .value = "DIR",
		 .help = "keeps applications here, and starts them again after its own end; default: keeps no state",
		 .text = &options->state_dir},
		{.name = "expect-workers",
		 .value = "NAME,NAME",
		 .help = "fragctl workers shows these also before they have come",
		 .text = &words.expected},
		{.name = "encrypt-data",
		 .help = "encrypts all flows between hosts, as `encrypt: on` does for one flow",
		 .on = &options->encrypt_data},
		{.name = "key-file",
		 .value = "FILE",
		 .help = "keys of those who may connect (fragctl key new); SIGHUP reads it again",
		 .text = &options->tls.key_file},
		{.name = "cert",
		 .value = "FILE",
		 .help = "certificate of this driver, in place of a key file; with --cert-key and --ca",
		 .text = &options->tls.certificate},
		{.name = "cert-key",
		 .value = "FILE",
		 .help = "private key of the certificate",
		 .text = &options->tls.certificate_key},
		{.name = "ca",
		 .value = "FILE",
		 .help = "certificate of the authority that signs those of both sides",
		 .text = &options->tls.ca},
		{.name = "allow-user",
		 .value = "NAME|UID[=ROLE]",
		 .help = "also takes workers and clients on this machine that run as this user; ROLE as of keys; repeatable",
		 .texts = &allowed},
		{.name = "insecure",
		 .help = "listens on an address that is not loopback, without encryption or keys",
		 .on = &options->insecure},
		FRAGI_ENVIRONMENT_FILE_FLAG(words.env_file),
		{.name = "verbose",
		 .letter = 'v',
		 .help = "more log lines; again: still more",
		 .times = &verbose},
		{.name = "quiet",
		 .letter = 'q',
		 .help = "fewer log lines, no progress",
		 .times = &quiet},
		{.name = "help", .letter = 'h', .no_env = true, .help = "prints this", .on = &help},
		{.name = "version", .no_env = true, .help = "prints the version", .on = &version},
	};
	const struct fragi_flags flags = {
		.program = "driverd",
		.usage = "[--address [HOST][:PORT]] [--app APP.yaml] [flags] [-- ARGS]",
		.operand = "app",
		.headline =
			"Parses graphs of applications, places their fragments on workers, supervises them and accounts for every message. Without --app it is a service: fragctl start brings it applications.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};

	*options = (struct drv_options){.output.json = fragi_flags_want_json(&flags, argc, argv)};
	r = fragi_flags_parse(&flags, argc, argv, NULL, &rest, err);
	if (r == 0)
		r = fragi_environment_trust(words.env_file, err);
	if (r == 0)
		r = fw_users_init(&options->users, flags.program, allowed.items, allowed.count,
				  true, err);
	fragi_texts_fini(&allowed);
	if (r < 0)
		return r;
	options->users.insecure = options->insecure;
	if (help)
		fragi_flags_help(&flags, stdout);
	else if (version)
		printf("driverd %s, protocol %d.%d\n", FRAG_VERSION, FW_PROTOCOL_MAJOR,
		       FW_PROTOCOL_MINOR);
	if (help || version)
		return 1;
	options->args = (const char *const *)argv + rest;
	options->arg_count = (size_t)(argc - rest);
	options->verbosity = verbose - quiet;
	return check(options, &words, err);
}

void drv_options_fini(struct drv_options *options)
{
	fragi_texts_fini(&options->configs);
	fragi_texts_fini(&options->sets);
	fragi_texts_fini(&options->expected);
	fragi_free(options->expected_text);
	fw_users_fini(&options->users);
}
