/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CRYPTO_AEAD_H
#define CRYPTO_AEAD_H

#include <type/crypto.h>

/* The aead_ functions of the table. */
struct fragi_aead *crypto_aead_create(void);
void crypto_aead_destroy(struct fragi_aead *aead);
int crypto_aead_begin(struct fragi_aead *aead, bool seal, const uint8_t key[FRAGI_AEAD_KEY_SIZE],
		      const uint8_t nonce[FRAGI_AEAD_NONCE_SIZE], const void *extra,
		      size_t extra_size);
int crypto_aead_update(struct fragi_aead *aead, const void *in, size_t size, void *out);
int crypto_aead_end(struct fragi_aead *aead, uint8_t tag[FRAGI_AEAD_TAG_SIZE]);

#endif
