/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_OPTIONS_H
#define DRV_OPTIONS_H

#include <base/flags.h>
#include <base/units.h>
#include <driverd/result.h>
#include <wire/tls.h>
#include <wire/users.h>

struct drv_options {
	struct fragi_address address;
	const char *app; /* the graph */
	struct fragi_texts configs, sets;
	const char *const *args; /* after `--` */
	size_t arg_count;
	int64_t start_timeout_ns; /* 0: none */
	int64_t beat_ns, dead_ns; /* 0: the core's defaults; FRAG_BEAT_MS, FRAG_DEAD_MS */
	struct fw_users users;    /* whose workers and clients may take part without a key */
	bool insecure;
	bool encrypt_data;
	struct fw_tls_config tls;    /* keys or certificates */
	struct drv_output output;    /* of the summary */
	struct fragi_texts expected; /* names of workers */
	char *expected_text;         /* holds these */
	const char *state_dir;       /* NULL: no state is kept */
	int verbosity;
};

/*
 * Reads the command line and the environment. Prints what --help and --version ask for. Returns 0;
 * 1 when that was all; negative errno with a sentence. options is to be finished in every case.
 */
int drv_options_parse(struct drv_options *options, int argc, char **argv, struct frag_err *err);
void drv_options_fini(struct drv_options *options);

#endif
