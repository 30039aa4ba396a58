// SPDX-License-Identifier: Apache-2.0
#include "preface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/secret.h>
#include <edge/transport.h>

/* Another version of the preface gets another label. */
static const char label[] = "frag gate 1";

static int hmac(const uint8_t *key, size_t key_bytes, const void *bytes, size_t size, uint8_t *out)
{
	return HMAC(EVP_sha256(), key, (int)key_bytes, bytes, size, out, NULL) != NULL ? 0
										       : -ENOMEM;
}

int ucx_gate_key(const uint8_t *data_key, uint8_t *out_key)
{
	return hmac(data_key, FRAGI_DATA_KEY_BYTES, label, sizeof(label) - 1, out_key);
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

int ucx_end_of(const struct sockaddr *address, uint8_t *out_end)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;

	if (address->sa_family == AF_INET) {
		memcpy(out_end, mapped, 12);
		memcpy(out_end + 12, &in->sin_addr, 4);
		memcpy(out_end + 16, &in->sin_port, 2);
	} else if (address->sa_family == AF_INET6) {
		memcpy(out_end, &in6->sin6_addr, 16);
		memcpy(out_end + 16, &in6->sin6_port, 2);
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

void ucx_end_text(const uint8_t *end, char out[UCX_END_TEXT])
{
	bool is_ipv4 = memcmp(end, mapped, sizeof(mapped)) == 0;

	(void)inet_ntop(is_ipv4 ? AF_INET : AF_INET6, is_ipv4 ? end + 12 : end, out, UCX_END_TEXT);
}

void ucx_end_port_text(const uint8_t *end, char out[UCX_END_PORT_TEXT])
{
	bool is_ipv4 = memcmp(end, mapped, sizeof(mapped)) == 0;
	char host[UCX_END_TEXT];

	ucx_end_text(end, host);
	snprintf(out, UCX_END_PORT_TEXT, is_ipv4 ? "%s:%u" : "[%s]:%u", host,
		 (unsigned int)(end[16] << 8 | end[17]));
}

int ucx_end_to(const uint8_t *end, struct sockaddr *address)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)address;
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)address;

	if (address->sa_family == AF_INET && memcmp(end, mapped, sizeof(mapped)) == 0) {
		memcpy(&in->sin_addr, end + 12, 4);
		memcpy(&in->sin_port, end + 16, 2);
	} else if (address->sa_family == AF_INET6) {
		memcpy(&in6->sin6_addr, end, 16);
		memcpy(&in6->sin6_port, end + 16, 2);
	} else {
		return -EAFNOSUPPORT;
	}
	return 0;
}

static int prove(const uint8_t *key, const struct ucx_ends *ends, const uint8_t *nonce,
		 uint8_t *out_mac)
{
	uint8_t bytes[UCX_NONCE_BYTES + 2 * UCX_END_BYTES + UCX_IDENTITY_BYTES], *at = bytes;

	at = (uint8_t *)memcpy(at, nonce, UCX_NONCE_BYTES) + UCX_NONCE_BYTES;
	at = (uint8_t *)memcpy(at, ends->from, UCX_END_BYTES) + UCX_END_BYTES;
	at = (uint8_t *)memcpy(at, ends->to, UCX_END_BYTES) + UCX_END_BYTES;
	memcpy(at, ends->identity, UCX_IDENTITY_BYTES);
	return hmac(key, UCX_GATE_KEY_BYTES, bytes, sizeof(bytes), out_mac);
}

int ucx_preface_make(const uint8_t *key, const struct ucx_ends *ends, uint8_t *bytes)
{
	return prove(key, ends, bytes, bytes + UCX_NONCE_BYTES);
}

/* The place of the nonce, or the free one where it would be. There is always one that is free. */
static uint8_t *place_of(const struct ucx_judge *judge, const uint8_t *nonce)
{
	static const uint8_t none[UCX_NONCE_BYTES];
	uint32_t at;

	memcpy(&at, nonce, sizeof(at));
	for (;; at++) {
		uint8_t *place = judge->nonces[at & (judge->capacity - 1)];

		if (memcmp(place, none, sizeof(none)) == 0 ||
		    memcmp(place, nonce, UCX_NONCE_BYTES) == 0)
			return place;
	}
}

/* At most half of the places are taken. */
static bool make_room(struct ucx_judge *judge)
{
	struct ucx_judge larger = *judge;

	if (judge->count < judge->capacity / 2)
		return true;
	larger.capacity = judge->capacity == 0 ? 64 : 2 * judge->capacity;
	larger.nonces = fragi_calloc(larger.capacity, UCX_NONCE_BYTES);
	if (larger.nonces == NULL)
		return false;
	for (uint32_t i = 0; i < judge->capacity; i++)
		memcpy(place_of(&larger, judge->nonces[i]), judge->nonces[i], UCX_NONCE_BYTES);
	fragi_free(judge->nonces);
	*judge = larger;
	return true;
}

enum ucx_verdict ucx_judge(struct ucx_judge *judge, const struct ucx_ends *ends,
			   const uint8_t *bytes, size_t size)
{
	static const uint8_t none[UCX_NONCE_BYTES];
	uint8_t mac[UCX_PREFACE_BYTES - UCX_NONCE_BYTES], *place;
	struct ucx_ends translated = *ends;

	if (size == 0)
		return UCX_REFUSED_SILENT;
	if (size < UCX_PREFACE_BYTES)
		return UCX_REFUSED_SHORT;
	memset(translated.from, 0, sizeof(translated.from));
	if (prove(judge->key, ends, bytes, mac) < 0)
		return UCX_REFUSED_MEMORY;
	if (!fragi_secret_equal(mac, bytes + UCX_NONCE_BYTES, sizeof(mac)) &&
	    prove(judge->key, &translated, bytes, mac) < 0)
		return UCX_REFUSED_MEMORY;
	if (!fragi_secret_equal(mac, bytes + UCX_NONCE_BYTES, sizeof(mac)) ||
	    memcmp(bytes, none, sizeof(none)) == 0) /* which marks a free place */
		return UCX_REFUSED_FORGED;
	/* Only a host that has the key comes this far, so nobody else can fill the table. */
	if (judge->count == UCX_ADMITTED_MAX)
		return UCX_REFUSED_FULL;
	if (!make_room(judge))
		return UCX_REFUSED_MEMORY;
	place = place_of(judge, bytes);
	if (memcmp(place, bytes, UCX_NONCE_BYTES) == 0)
		return UCX_REFUSED_REPLAYED;
	memcpy(place, bytes, UCX_NONCE_BYTES);
	judge->count++;
	return UCX_ADMITTED;
}

void ucx_judge_fini(struct ucx_judge *judge)
{
	fragi_free(judge->nonces);
	judge->nonces = NULL;
	judge->capacity = judge->count = 0;
}

const char *ucx_verdict_text(enum ucx_verdict verdict)
{
	switch (verdict) {
	case UCX_ADMITTED:
		break;
	case UCX_REFUSED_SILENT:
		return "it sent nothing";
	case UCX_REFUSED_SHORT:
	case UCX_REFUSED_FORGED:
		return "it did not prove that it has the application's key (a host of it whose address is translated on the way needs workerd --announce-address)";
	case UCX_REFUSED_REPLAYED:
		return "it repeated the proof of an earlier connection";
	case UCX_REFUSED_FULL:
		return "this host has admitted as many connections as it can remember; restart it";
	case UCX_REFUSED_MEMORY:
		return "there is no memory left to judge it";
	case UCX_REFUSED_DESCRIPTORS:
		return "this host has no descriptor left; raise the limit (ulimit -n), or look for an operator that opens many";
	}
	return "it was admitted";
}
