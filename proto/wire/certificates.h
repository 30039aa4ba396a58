/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_CERTIFICATES_H
#define FW_CERTIFICATES_H

#include <openssl/ssl.h>

#include <wire/tls.h>

/*
 * Certificates of control connections: both sides have one, signed by an authority of their own
 * (--ca); the authorities of the system do not count. The name of a driver is among the alternative
 * names (SAN) of its certificate. The role of a worker or client is an organizational unit (OU) of
 * its subject, one of FW_KEY_ROLES; its name is the common name (CN).
 */

/*
 * Makes ssl use the files of config. Returns 0, or negative errno with a sentence and its class: a
 * file that cannot be read, that others may read, or that does not belong to the others.
 */
int fw_certificates_load(SSL_CTX *ssl, const struct fw_tls_config *config, struct frag_err *err);
/* A client expects this name, or IP address, in the certificate of its peer. 0 or -ENOMEM. */
int fw_certificates_expect(SSL *ssl, const char *name);
/* What the verified certificate of the peer says. Returns 0; -EKEYREJECTED with a sentence. */
int fw_certificates_identify(SSL *ssl, struct fw_identity *out_identity, struct frag_err *err);
/* Why the peer's certificate was refused. ctx: as the callback of SSL_CTX_set_verify has it. */
void fw_certificates_explain(X509_STORE_CTX *ctx, const struct fw_tls_config *config,
			     struct frag_err *err);
/* Seconds until the own certificate expires; negative: since. INT64_MAX: there is none. */
int64_t fw_certificates_left_s(const SSL_CTX *ssl);

#endif
