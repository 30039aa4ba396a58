/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_CODEC_H
#define FRAGI_DATA_CODEC_H

#include <data/message.h>

/*
 * What a message looks like between processes: descriptors (this file) and bodies (the tensors' bytes, which
 * the transport moves). Little-endian, every length checked before use. Values and metadata travel in the
 * descriptors.
 *
 *   u8 version 1 | u8 flags | u16 tensor count | i64 acquisition_ns | u64 type id (0: no value) | u32 value
 * bytes | per tensor: u8 name bytes, name, u8 dtype code, u8 bits, u16 lanes, u8 device type, u8 ndim, i64
 * shape[ndim], u64 body bytes | value | metadata: u16 keys, per key: u8 key bytes, key, u64 type id, u32
 * bytes, value
 *
 * A type id is a 64-bit FNV-1a of the type's name and fields, so two builds that differ in a struct do not
 * match.
 */
#define FRAGI_DESCRIPTOR_MAX (64u << 20) /* bytes of descriptors of one message */

/* Id of a type; never 0. Constant for a type: kept, not computed on the hot path. */
FRAGI_API uint64_t fragi_type_id(const struct frag_type *type);
/* The registered type with that id, NULL when there is none. No string is compared. */
FRAGI_API const struct frag_type *fragi_type_by_id(uint64_t id);
/* Whether values of the type can leave the process. */
FRAGI_API bool fragi_type_has_codec(const struct frag_type *type);

/*
 * The message's descriptors, encoded at most once and kept in the message; a new reference for the caller.
 * Returns 0; -EPROTOTYPE when the value's or a metadatum's type has no codec; -EMSGSIZE beyond
 * FRAGI_DESCRIPTOR_MAX; -ENOMEM.
 */
FRAGI_API int fragi_message_encode(const struct frag_message *message, struct fragi_blob **out_blob);
FRAGI_API void fragi_blob_unref(struct fragi_blob *blob);

/*
 * The reverse. Makes a message whose tensors are allocated (host memory, compact) but not filled: the
 * transport receives the bodies into them, in order. `limit_bytes` bounds the sum of the bodies. Returns 0;
 * -EBADMSG for bytes that are no descriptors; -EMSGSIZE beyond the limit; -ENOENT for an unknown type id
 * (out_type_id tells which; may be NULL); -ENOMEM.
 */
FRAGI_API int fragi_message_decode(const void *bytes, size_t size, uint64_t limit_bytes,
				   struct frag_message **out_message, uint64_t *out_type_id);
/* Body of the i-th tensor: compact bytes in row-major order. */
FRAGI_API void *fragi_tensor_body(struct frag_tensor *tensor, size_t *out_size);

#endif
