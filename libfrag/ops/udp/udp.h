/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UDP_UDP_H
#define UDP_UDP_H

#include <frag/frag.h>

/*
 * Packets in a message: tensor "data", u8 [bytes], holds them one after the other, and tensor
 * "lengths", i32 [packets], their lengths.
 *
 * With the parameter `sequence` every packet begins with a header of 16 bytes, two big-endian u64:
 * the number of the packet, and when it was sent, in nanoseconds since the Unix epoch.
 */
#define UDP_DATA "data"
#define UDP_LENGTHS "lengths"
#define UDP_HEADER_BYTES 16
#define UDP_PAYLOAD_MAX 65507 /* of IPv4; a datagram is at most 65535 bytes with its headers */
#define UDP_BATCH_MAX 1024

static inline void udp_put_u64(uint8_t *to, uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		to[i] = (uint8_t)value;
}

static inline uint64_t udp_get_u64(const uint8_t *from)
{
	uint64_t value = 0;

	for (int i = 0; i < 8; i++)
		value = value << 8 | from[i];
	return value;
}

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type udp_source_type;
extern const struct frag_op_type udp_sink_type;

/* Returns the port that a source receives on, from start on. */
int udp_source_bound_port(const void *state);

#endif
