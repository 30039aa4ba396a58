/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_CRYPTO_H
#define FRAGI_TYPE_CRYPTO_H

#include <stdbool.h>
#include <stdint.h>

#include <base/diag.h>

/*
 * What frag needs of OpenSSL, as the one symbol of the module crypto (modules/crypto), so that
 * neither libfrag.so nor a program that uses none of it loads libcrypto.
 */
#define FRAGI_SHA256_SIZE 32u
#define FRAGI_AEAD_KEY_SIZE 32u
#define FRAGI_AEAD_NONCE_SIZE 12u
#define FRAGI_AEAD_TAG_SIZE 16u

struct fragi_aead;

struct fragi_crypto_ops {
	size_t struct_size;
	const char *name;
	/* Each of these returns 0, or -EIO: OpenSSL refuses. */
	int (*sha256)(const void *bytes, size_t size, uint8_t out[FRAGI_SHA256_SIZE]);
	/* HKDF-SHA256 (RFC 5869) without salt; out_size: 8160 at most. */
	int (*hkdf)(const void *key, size_t key_size, const void *info, size_t info_size, void *out,
		    size_t out_size);
	/*
	 * AES-256-GCM (NIST SP 800-38D), one message after the other: begin, update for each piece,
	 * end. No two messages may be sealed under one key with the same nonce. NULL: no memory, or
	 * OpenSSL refuses. One thread at a time.
	 */
	struct fragi_aead *(*aead_create)(void);
	void (*aead_destroy)(struct fragi_aead *aead); /* wipes its key; NULL is accepted */
	/* seal: encrypt; else decrypt. extra: authenticated and not encrypted */
	int (*aead_begin)(struct fragi_aead *aead, bool seal,
			  const uint8_t key[FRAGI_AEAD_KEY_SIZE],
			  const uint8_t nonce[FRAGI_AEAD_NONCE_SIZE], const void *extra,
			  size_t extra_size);
	/* out: as long as in, and may be the same memory */
	int (*aead_update)(struct fragi_aead *aead, const void *in, size_t size, void *out);
	/*
	 * Sealing writes the tag. Opening compares it: -EBADMSG means that nothing of what update
	 * has put out may be used.
	 */
	int (*aead_end)(struct fragi_aead *aead, uint8_t tag[FRAGI_AEAD_TAG_SIZE]);
};

#define FRAGI_CRYPTO_SYMBOL "fragi_crypto_v1"

/*
 * Opens the module. advice: what a person can do where it is not installed, for the sentence.
 * Returns 0 or -ENOENT with a sentence.
 */
FRAGI_API int fragi_crypto_open(const char *advice, const struct fragi_crypto_ops **out_ops,
				struct frag_err *err);

#endif
