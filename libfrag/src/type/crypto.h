/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_CRYPTO_H
#define FRAGI_TYPE_CRYPTO_H

#include <stdint.h>

#include <base/diag.h>

/*
 * What frag needs of OpenSSL, as the one symbol of the module crypto (modules/crypto), so that
 * neither libfrag.so nor a program that uses none of it loads libcrypto.
 */
#define FRAGI_SHA256_SIZE 32u

struct fragi_crypto_ops {
	size_t struct_size;
	const char *name;
	/* Returns 0, or -EIO: OpenSSL refuses. */
	int (*sha256)(const void *bytes, size_t size, uint8_t out[FRAGI_SHA256_SIZE]);
};

#define FRAGI_CRYPTO_SYMBOL "fragi_crypto_v1"

/*
 * Opens the module. advice: what a person can do where it is not installed, for the sentence.
 * Returns 0 or -ENOENT with a sentence.
 */
FRAGI_API int fragi_crypto_open(const char *advice, const struct fragi_crypto_ops **out_ops,
				struct frag_err *err);

#endif
