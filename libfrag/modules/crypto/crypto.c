// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <openssl/evp.h>

#include <type/crypto.h>

static int crypto_sha256(const void *bytes, size_t size, uint8_t out[FRAGI_SHA256_SIZE])
{
	return EVP_Digest(bytes, size, out, NULL, EVP_sha256(), NULL) == 1 ? 0 : -EIO;
}

__attribute__((visibility("default"))) extern const struct fragi_crypto_ops fragi_crypto_v1;
const struct fragi_crypto_ops fragi_crypto_v1 = {
	.struct_size = sizeof(struct fragi_crypto_ops),
	.name = "crypto",
	.sha256 = crypto_sha256,
};
