/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TLS_H
#define CTL_TLS_H

#include <type/module.h>
#include <wire/tls.h>

/* TLS as a module, since OpenSSL would slow down the start of each fragctl that needs none. */
struct ctl_tls_module {
	struct fragi_module_head head;
	int (*create)(const struct fw_tls_config *config, struct fw_tls **out_tls,
		      struct frag_err *err);
	void (*destroy)(struct fw_tls *tls);
	/* as fw_certificate_left_s */
	int (*certificate_left_s)(const char *file, int64_t *out_left_s, struct frag_err *err);
};
#define CTL_TLS_SYMBOL "ctl_tls_v1"
FRAGI_API extern const struct ctl_tls_module ctl_tls_v1;

#endif
