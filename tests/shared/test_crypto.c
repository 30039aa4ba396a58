// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <type/crypto.h>

/* Published results: FIPS 180-4, RFC 5869, and the specification of GCM (McGrew and Viega). */

static const struct fragi_crypto_ops *open_crypto(void)
{
	const struct fragi_crypto_ops *crypto = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	if (fragi_crypto_open("leave it out", &crypto, &err) < 0) {
		cr_expect_not_null(strstr(err.text, "the module crypto is not there"), "%s",
				   err.text);
		cr_skip_test("this build has no module crypto");
	}
	return crypto;
}

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = strlen(hex) / 2;
	unsigned int byte;

	for (size_t i = 0; i < n; i++) {
		cr_assert_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
		out[i] = (uint8_t)byte;
	}
	return n;
}

static void is_hex(const uint8_t *bytes, size_t n, const char *hex)
{
	char text[256];

	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	cr_expect_str_eq(text, hex);
}

Test(crypto, sha256_of_abc)
{
	uint8_t out[FRAGI_SHA256_SIZE];

	cr_assert_eq(open_crypto()->sha256("abc", 3, out), 0);
	is_hex(out, sizeof(out),
	       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

Test(crypto, hkdf_without_salt_and_info)
{
	uint8_t key[22], out[42];

	memset(key, 0x0b, sizeof(key));
	cr_assert_eq(open_crypto()->hkdf(key, sizeof(key), "", 0, out, sizeof(out)), 0);
	is_hex(out, sizeof(out),
	       "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

static const struct gcm {
	const char *key, *nonce, *extra, *plain, *sealed, *tag;
} gcms[] = {
	{"0000000000000000000000000000000000000000000000000000000000000000",
	 "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
	{"0000000000000000000000000000000000000000000000000000000000000000",
	 "000000000000000000000000", "", "00000000000000000000000000000000",
	 "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
	{"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
	 "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
	 "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
	 "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
	 "76fc6ece0f4e1768cddf8853bb2d551b"},
};

/* Twice, so that nothing of one message is left for the next. */
Test(crypto, aes_256_gcm)
{
	const struct fragi_crypto_ops *crypto = open_crypto();
	struct fragi_aead *aead = crypto->aead_create();
	uint8_t key[32], nonce[12], extra[64], plain[64], out[64], tag[16];

	cr_assert_not_null(aead);
	for (size_t i = 0; i < 2 * sizeof(gcms) / sizeof(gcms[0]); i++) {
		const struct gcm *gcm = &gcms[i / 2];
		size_t n = from_hex(gcm->plain, plain), extra_size = from_hex(gcm->extra, extra);
		size_t first = n / 3;

		from_hex(gcm->key, key);
		from_hex(gcm->nonce, nonce);
		cr_assert_eq(crypto->aead_begin(aead, true, key, nonce, extra, extra_size), 0);
		cr_assert_eq(crypto->aead_update(aead, plain, first, out), 0);
		cr_assert_eq(crypto->aead_update(aead, plain + first, n - first, out + first), 0);
		cr_assert_eq(crypto->aead_end(aead, tag), 0);
		if (n > 0)
			is_hex(out, n, gcm->sealed);
		is_hex(tag, sizeof(tag), gcm->tag);
		cr_assert_eq(crypto->aead_begin(aead, false, key, nonce, extra, extra_size), 0);
		cr_assert_eq(crypto->aead_update(aead, out, n, out), 0);
		cr_assert_eq(crypto->aead_end(aead, tag), 0);
		cr_expect_arr_eq(out, plain, n);
		tag[5] ^= 1;
		cr_assert_eq(crypto->aead_begin(aead, false, key, nonce, extra, extra_size), 0);
		cr_assert_eq(crypto->aead_update(aead, out, n, out), 0);
		cr_expect_eq(crypto->aead_end(aead, tag), -EBADMSG);
	}
	crypto->aead_destroy(aead);
	crypto->aead_destroy(NULL);
}
