// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "aead.h"

static int crypto_sha256(const void *bytes, size_t size, uint8_t out[FRAGI_SHA256_SIZE])
{
	return EVP_Digest(bytes, size, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -EIO;
}

static int crypto_hkdf(const void *key, size_t key_size, const void *info, size_t info_size,
		       void *out, size_t out_size)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
	EVP_KDF_CTX *context = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key,
						  key_size),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)info,
						  info_size),
		OSSL_PARAM_construct_end(),
	};
	int r = context != NULL && EVP_KDF_derive(context, out, out_size, params) == 1 ? 0 : -EIO;

	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
	return r;
}

__attribute__((visibility("default"))) extern const struct fragi_crypto_ops fragi_crypto_v1;
const struct fragi_crypto_ops fragi_crypto_v1 = {
	.struct_size = sizeof(struct fragi_crypto_ops),
	.name = "crypto",
	.sha256 = crypto_sha256,
	.hkdf = crypto_hkdf,
	.aead_create = crypto_aead_create,
	.aead_destroy = crypto_aead_destroy,
	.aead_begin = crypto_aead_begin,
	.aead_update = crypto_aead_update,
	.aead_end = crypto_aead_end,
};
