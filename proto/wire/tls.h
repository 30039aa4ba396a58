/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_TLS_H
#define FW_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include <base/diag.h>
#include <wire/identity.h>

/*
 * TLS 1.3 for control connections: a pre-shared key with an ephemeral key exchange (psk_dhe_ke), or
 * certificates on both sides. No I/O: bytes go in and come out. One thread.
 *
 * A connection reaches it through the table of functions at the head of struct fw_tls, so a program
 * that never calls fw_tls_create does not link OpenSSL.
 */

struct fw_tls {
	const struct fw_tls_ops *ops;
};

/* A session is the TLS of one connection. Those that fail give a sentence in err. */
struct fw_tls_ops {
	/* Returns 0 or -ENOMEM. */
	int (*begin)(struct fw_tls *tls, void **out_session);
	/* Bytes of the stream. Returns 0 or negative errno; -EKEYREJECTED: no key in common. */
	int (*take)(void *session, const uint8_t *bytes, size_t size, struct frag_err *err);
	/*
	 * What the peer sent, in clear. Returns how many bytes; 0: more of the stream is needed;
	 * -ESHUTDOWN: the peer has ended it in order; else as take. Also makes the handshake
	 * advance, so it is called after begin and after each take until it returns 0 or less.
	 */
	ssize_t (*read)(void *session, uint8_t *out, size_t size, struct frag_err *err);
	/* Only once identity is there. Returns 0 or -ENOMEM. */
	int (*write)(void *session, const uint8_t *bytes, size_t size);
	/*
	 * Sets out_bytes to what the stream is to carry, which the caller frees. Returns its size;
	 * 0: nothing; -ENOMEM.
	 */
	ssize_t (*output)(void *session, uint8_t **out_bytes);
	/* NULL: the handshake is not over. */
	const struct fw_identity *(*identity)(const void *session);
	void (*finish)(void *session); /* nothing follows: the output ends with close_notify */
	void (*end)(void *session);
};

/* With key_file, or with the three files of certificates. Texts are borrowed for its life. */
struct fw_tls_config {
	bool is_server;
	/* of a client: FW_ROLE_BIT of the roles whose first key it uses; 0: a worker's */
	uint32_t roles;
	const char *key_file;
	const char *certificate, *certificate_key, *ca;
	const char *peer_name; /* of a client with certificates: in its server's certificate */
};

/* Returns 0, or negative errno with a sentence and its class. */
int fw_tls_create(const struct fw_tls_config *config, struct fw_tls **out_tls,
		  struct frag_err *err);
/*
 * Reads the files again, into another one: its sessions prove what they hold now, those of tls what
 * they held. Returns as create does.
 */
int fw_tls_read_again(struct fw_tls *tls, struct fw_tls **out_next, struct frag_err *err);
/*
 * tls holds what next has read, which it takes. Sessions whose handshake is over are not touched
 * (fw_tls_accepts). A server ends a handshake whose key is gone.
 */
void fw_tls_replace(struct fw_tls *tls, struct fw_tls *next);
/* The key that a client uses for its next session; NULL: it has a certificate. */
const struct fw_key *fw_tls_own_key(const struct fw_tls *tls);
/* Seconds until the own certificate expires; INT64_MAX: there is none. */
int64_t fw_tls_left_s(const struct fw_tls *tls);
/* The same of a certificate in a file (PEM). Returns 0, or negative errno with a sentence. */
int fw_certificate_left_s(const char *file, int64_t *out_left_s, struct frag_err *err);
/* Whether the key that this peer has proven, or that this side has used, is still in the file. */
bool fw_tls_accepts(const struct fw_tls *tls, const struct fw_identity *identity);
void fw_tls_destroy(struct fw_tls *tls); /* its sessions go on; NULL is accepted */

#endif
