/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_OPTIONS_H
#define WRK_OPTIONS_H

#include <base/flags.h>
#include <base/units.h>
#include <wire/tls.h>
#include <wire/users.h>
#include <workerd/inventory.h>
#include <workerd/rights.h>

/* workerd's command line and environment. */

struct wrk_options {
	struct fragi_address driver;
	char driver_text[300];  /* the same, for people */
	const char **fragments; /* owned array, texts in fragment_texts; none: whatever fits */
	uint32_t fragment_count;
	char *fragment_texts;
	bool has_worker_address;
	struct fragi_address worker_address;
	struct fragi_address announced;      /* host empty: none */
	char announced_text[320];            /* of FRAG_DATA_ANNOUNCED; empty: nothing */
	const char *name;                    /* NULL: the host name */
	const char *library_path, *app_root; /* NULL: not given */
	const char *ucx_folder;              /* the same */
	struct fragi_texts allow_write, host_limits;
	struct wrk_inventory inventory;  /* what the flags say of it */
	struct wrk_rights_config rights; /* the same, and what belongs to it */
	struct fw_tls_config tls;        /* keys or certificates */
	struct fw_users users;           /* whose driver it obeys without a key */
	bool once;
	int verbosity;
};

/*
 * Returns 0; 1 when --help or --version has been answered; -EINVAL with a sentence (exit code 2);
 * -ENOMEM. fini in every case.
 */
int wrk_options_parse(struct wrk_options *out_options, int argc, char **argv, struct frag_err *err);
void wrk_options_fini(struct wrk_options *options);

#endif
