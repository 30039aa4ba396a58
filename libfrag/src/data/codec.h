/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_CODEC_H
#define FRAGI_DATA_CODEC_H

#include <data/message.h>
#include <data/stream.h>
#include <data/type.h>

/*
 * What a message looks like between processes: descriptors (this file) and bodies (the tensors'
 * bytes, which the transport moves). Little-endian, every length checked before use. Values and
 * metadata travel in the descriptors.
 *
 *   u8 version 1 | u8 flags | u16 tensor count | i64 acquisition_ns | u64 type id (0: no value) |
 *   u32 value
 * bytes | per tensor: u8 name bytes, name, u8 dtype code, u8 bits, u16 lanes, u8 device type, u8
 * ndim, i64 shape[ndim], u64 body bytes | value | metadata: u16 keys, per key: u8 key bytes, key,
 * u64 type id, u32 bytes, value
 *
 * A type id is a 64-bit FNV-1a of the type's name and fields, so two builds that differ in a struct
 * do not match.
 */
#define FRAGI_DESCRIPTOR_VERSION 1
/* bytes of memory for the value and the metadata of one message */
#define FRAGI_DECODED_MAX (128u << 20)
#define FRAGI_DESCRIPTOR_MAX (64u << 20) /* bytes of descriptors of one message */

/*
 * The message's descriptors, encoded at most once; the message owns them until it ends or is
 * written to again. Returns 0; -EPROTOTYPE when the value's or a metadatum's type has no codec;
 * -ENOTSUP for a tensor in device memory, which is not built yet; -EMSGSIZE beyond
 * FRAGI_DESCRIPTOR_MAX; -ENOMEM.
 */
FRAGI_API int fragi_message_encode(const struct frag_message *message,
				   const struct fragi_blob **out_blob);

/*
 * The reverse. Makes a message (shared: it was received) whose tensors are allocated (host memory,
 * compact) but not filled: the transport receives the bodies into them, in order. `limit_bytes`
 * bounds the sum of the bodies. Returns 0; -EBADMSG for bytes that are no descriptors; -EMSGSIZE
 * beyond the limit or FRAGI_DECODED_MAX; -ENOENT for an unknown type id (out_type_id tells which;
 * may be NULL); -ENOMEM.
 */
FRAGI_API int fragi_message_decode(const void *bytes, size_t size, uint64_t limit_bytes,
				   struct frag_message **out_message, uint64_t *out_type_id);
/* The same with the tensors' memory from an allocator; NULL: the process's default. */
FRAGI_API int fragi_message_decode_in(struct frag_resource *allocator, const void *bytes,
				      size_t size, uint64_t limit_bytes,
				      struct frag_message **out_message, uint64_t *out_type_id);
/*
 * One value, as it lies between the descriptors: a scalar or plain struct field by field without
 * padding, text and bytes as they are, an array its elements behind each other (led by their u32
 * number when an element's size varies), any other type what its encode puts. encode returns 0,
 * -EPROTOTYPE for a type without codec, or the writer's or the type's error. measure gives the
 * memory that the value in wire_size bytes will take; decode fills that memory, zeroed before. Both
 * return 0 or -EBADMSG (measure: -EMSGSIZE).
 */
int fragi_value_encode(const struct fragi_type_info *info, const void *value, size_t size,
		       struct frag_writer *writer);
int fragi_value_measure(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
			size_t *out_size);
int fragi_value_decode(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
		       void *value, size_t size);

#endif
