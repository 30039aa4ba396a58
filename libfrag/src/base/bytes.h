/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_BYTES_H
#define FRAGI_BASE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Little-endian integers at any address. */

static inline void fragi_put16(uint8_t *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof(v));
}

static inline void fragi_put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static inline void fragi_put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static inline uint16_t fragi_get16(const uint8_t *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return le16toh(v);
}

static inline uint32_t fragi_get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline uint64_t fragi_get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}

#endif
