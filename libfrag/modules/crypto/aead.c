// SPDX-License-Identifier: Apache-2.0
#include "aead.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define PIECE_MAX ((size_t)1 << 30) /* of one call, whose length is an int */

struct fragi_aead {
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *context;
	bool seal;
};

struct fragi_aead *crypto_aead_create(void)
{
	struct fragi_aead *aead = calloc(1, sizeof(*aead));

	if (aead == NULL)
		return NULL;
	aead->cipher = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	aead->context = EVP_CIPHER_CTX_new();
	if (aead->cipher != NULL && aead->context != NULL &&
	    EVP_CipherInit_ex2(aead->context, aead->cipher, NULL, NULL, 1, NULL) == 1)
		return aead;
	crypto_aead_destroy(aead);
	return NULL;
}

void crypto_aead_destroy(struct fragi_aead *aead)
{
	if (aead == NULL)
		return;
	EVP_CIPHER_CTX_free(aead->context);
	EVP_CIPHER_free(aead->cipher);
	free(aead);
}

int crypto_aead_begin(struct fragi_aead *aead, bool seal, const uint8_t key[FRAGI_AEAD_KEY_SIZE],
		      const uint8_t nonce[FRAGI_AEAD_NONCE_SIZE], const void *extra,
		      size_t extra_size)
{
	int n;

	aead->seal = seal;
	if (EVP_CipherInit_ex2(aead->context, NULL, key, nonce, seal, NULL) != 1)
		return -EIO;
	return extra_size == 0 || EVP_CipherUpdate(aead->context, NULL, &n, extra,
						   (int)extra_size) == 1
		       ? 0
		       : -EIO;
}

int crypto_aead_update(struct fragi_aead *aead, const void *in, size_t size, void *out)
{
	const uint8_t *from = in;
	uint8_t *to = out;
	int n;

	for (size_t piece; size > 0; size -= piece, from += piece, to += piece) {
		piece = size < PIECE_MAX ? size : PIECE_MAX;
		if (EVP_CipherUpdate(aead->context, to, &n, from, (int)piece) != 1)
			return -EIO;
	}
	return 0;
}

/* The key schedule goes with the message: a core file has none of a message that is over. */
static void forget_key(struct fragi_aead *aead)
{
	static const uint8_t zeros[FRAGI_AEAD_KEY_SIZE];

	(void)EVP_CipherInit_ex2(aead->context, NULL, zeros, zeros, 1, NULL);
}

int crypto_aead_end(struct fragi_aead *aead, uint8_t tag[FRAGI_AEAD_TAG_SIZE])
{
	uint8_t none[16];
	int n, r = 0;

	if (!aead->seal && EVP_CIPHER_CTX_ctrl(aead->context, EVP_CTRL_AEAD_SET_TAG,
					       FRAGI_AEAD_TAG_SIZE, tag) != 1)
		r = -EIO;
	if (r == 0 && EVP_CipherFinal_ex(aead->context, none, &n) != 1)
		r = aead->seal ? -EIO : -EBADMSG;
	if (r == 0 && aead->seal &&
	    EVP_CIPHER_CTX_ctrl(aead->context, EVP_CTRL_AEAD_GET_TAG, FRAGI_AEAD_TAG_SIZE, tag) !=
		    1)
		r = -EIO;
	forget_key(aead);
	return r;
}
