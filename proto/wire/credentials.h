/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_CREDENTIALS_H
#define FW_CREDENTIALS_H

#include <uv.h>

#include <wire/tls.h>

/*
 * The key file or the certificates of a daemon on its loop: SIGHUP reads them again, and a
 * certificate that expires within 30 days is warned of each day. Zeroed: there are none.
 */
struct fw_credentials {
	struct fw_tls *tls; /* NULL: there are none */
	struct fw_tls_config config;
	/* They were read again, into next, which it takes: they are not used yet. */
	void (*changed)(void *arg, struct fw_tls *next);
	void (*kept)(void *arg); /* those before hold: why_kept; NULL: nobody */
	void *arg;
	char why_kept[1200]; /* for people; empty: what the files hold is used */
	uv_signal_t hangup;
	uv_timer_t daily;
};

/*
 * Reads what config names; nothing: 0, and tls stays NULL. Returns 0, or negative errno with a
 * sentence and its class. Texts of config are borrowed.
 */
int fw_credentials_open(struct fw_credentials *credentials, uv_loop_t *loop,
			const struct fw_tls_config *config,
			void (*changed)(void *arg, struct fw_tls *next), void (*kept)(void *arg),
			void *arg, struct frag_err *err);
/* What was read again is used from now on. Takes next. */
void fw_credentials_use(struct fw_credentials *credentials, struct fw_tls *next);
/*
 * Logs that the keys or certificates from before the last SIGHUP hold, and why; kept is called. So
 * it is when the files cannot be read, and when nobody takes what they hold.
 */
void fw_credentials_keep(struct fw_credentials *credentials, const char *why);
/*
 * Whether the flags of a command line fit together: a key file or all three files of certificates,
 * and not insecure with them. Returns 0, or -EINVAL with a sentence.
 */
int fw_credentials_check(const struct fw_tls_config *config, bool insecure, struct frag_err *err);
/* Whether config names any. */
bool fw_credentials_given(const struct fw_tls_config *config);
void fw_credentials_close(struct fw_credentials *credentials); /* lets the loop end */
void fw_credentials_fini(struct fw_credentials *credentials);  /* after the loop and sessions */

#endif
