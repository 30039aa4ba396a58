/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_CODEC_H
#define FRAGI_DATA_CODEC_H

#include <string.h>

#include <data/message.h>
#include <data/stream.h>
#include <data/type.h>

/*
 * What a message looks like between processes: descriptors, which this file encodes and decodes,
 * and bodies (the bytes of the tensors), which the transport moves. Everything is little-endian,
 * and every length is checked before it is used. The value and the metadata travel in the
 * descriptors:
 *
 * 	u8   version, FRAGI_DESCRIPTOR_VERSION
 * 	u8   stamps: the flags of the message, and which of the stamps below follow (message.h)
 * 	u16  number of tensors
 * 	u32  bytes of the value
 * 	u64  type id of the value; 0: no value
 * 	i64  acquisition time, u32 its clock: with FRAGI_STAMP_ACQUIRED
 * 	u64  sequence: with FRAGI_STAMP_SEQUENCE
 * 	u64  tracking id: with FRAGI_STAMP_TRACKED
 * 	trail: with FRAGI_STAMP_TRAIL (trail.c)
 * 	label: with FRAGI_STAMP_LABEL (label.c)
 * 	for each tensor:
 * 		u8   bytes of the name, and the name
 * 		u8   dtype code
 * 		u8   dtype bits
 * 		u16  dtype lanes
 * 		u8   device type
 * 		u8   ndim
 * 		i64  shape[ndim]
 * 		u64  bytes of the body
 * 	the value
 * 	u16  number of metadata keys
 * 	for each key:
 * 		u8   bytes of the key, and the key
 * 		u64  type id
 * 		u32  bytes of the value, and the value
 *
 * A type id is the 64-bit FNV-1a hash of the type's name and fields, so two builds whose structs
 * differ do not match.
 */
#define FRAGI_DESCRIPTOR_VERSION 2
#define FRAGI_DESCRIPTOR_HEAD_BYTES 16u /* version .. type id */
#define FRAGI_DESCRIPTOR_END_BYTES 2u   /* number of metadata keys */
#define FRAGI_DESCRIPTOR_KIND_BYTES 6u  /* dtype .. ndim */
/* The most bytes of memory that the value and the metadata of one message may take. */
#define FRAGI_DECODED_MAX (128u << 20)
/* The most bytes of descriptors of one message. */
#define FRAGI_DESCRIPTOR_MAX (64u << 20)

/* Bytes of the description of one tensor. */
static inline size_t fragi_descriptor_bytes(const struct fragi_named_tensor *named)
{
	const size_t name_length = named->name[0] == '\0' ? 0 : strlen(named->name);

	return 1 + name_length + FRAGI_DESCRIPTOR_KIND_BYTES +
	       (size_t)named->tensor->dl.ndim * sizeof(int64_t) + sizeof(uint64_t);
}

/*
 * Encodes the message's descriptors, once; later calls return the same blob.
 * - out_blob: owned by the message until it is freed or written to again
 * Returns 0; -EPROTOTYPE: the type of the value or of a metadata value has no codec; -ENOTSUP: a
 * tensor lies on a GPU that nothing here has opened; -EMSGSIZE: more than FRAGI_DESCRIPTOR_MAX;
 * -ENOMEM. Thread: any that holds a reference.
 */
FRAGI_API int fragi_message_encode(const struct frag_message *message,
				   const struct fragi_blob **out_blob);
/*
 * Writes into a copy of descriptors how long their message was held, if it has a trail or a label
 * that travels.
 * - copy: has the bytes of the blob
 */
FRAGI_API void fragi_blob_set_held(const struct fragi_blob *blob, uint8_t *copy,
				   const struct fragi_trail_held *held);

/*
 * Decodes descriptors into a message, which is shared, as every received message is. Its tensors
 * are allocated (compact, in host memory) but not filled: the transport receives the bodies into
 * them, in order.
 * - bytes, size: the descriptors
 * - limit_bytes: the most bytes of all bodies together
 * - out_message: receives a new reference
 * - out_type_id: receives the unknown type id with -ENOENT; NULL is accepted
 * Returns 0; -EBADMSG: the bytes are no descriptors; -EMSGSIZE: more than the limit, than
 * FRAGI_DESCRIPTOR_MAX or than FRAGI_DECODED_MAX; -ENOENT: a type id is unknown here; -ENOMEM; or a
 * failure of the allocator.
 */
FRAGI_API int fragi_message_decode(const void *bytes, size_t size, uint64_t limit_bytes,
				   struct frag_message **out_message, uint64_t *out_type_id);
/* The same, with the tensors' memory from an allocator resource; NULL: the heap. */
FRAGI_API int fragi_message_decode_in(struct frag_resource *allocator, const void *bytes,
				      size_t size, uint64_t limit_bytes,
				      struct frag_message **out_message, uint64_t *out_type_id);

/* The same of what says nothing of bodies: the tensors have no memory. */
FRAGI_API int fragi_message_describe(const void *bytes, size_t size,
				     struct frag_message **out_message);

/*
 * A body: memory that holds a tensor's bytes while they travel.
 *
 * Outgoing: owner is the allocator that the memory came from (NULL: not known), by which a
 * transport recognises memory that it can hand over; release is not used. Incoming, in memory that
 * is mapped already: release(owner) gives the memory back, once, on any thread.
 *
 * fence: of device memory, the event behind which the bytes are valid; NULL: they are now. Whoever
 * still has work queued on the device when it releases a body has recorded it on the fence.
 */
struct fragi_body {
	void *data;
	uint64_t bytes;
	struct frag_device device;
	void *owner;
	void (*release)(void *owner);
	void *fence;
};
/*
 * As fragi_message_decode for bodies that are here already: the tensors that are not empty are made
 * over them, in order, and release them at their end. -EBADMSG when the bodies are not those that
 * are described. On failure the bodies are still the caller's.
 */
FRAGI_API int fragi_message_decode_over(const struct fragi_body *bodies, uint32_t body_count,
					const void *bytes, size_t size,
					struct frag_message **out_message, uint64_t *out_type_id);

/*
 * One value between the descriptors:
 * - a scalar as it is; a plain struct field by field without padding
 * - text and bytes as they are
 * - an array as its elements one after the other; when the size of an element varies, their u32
 *   number comes first
 * - a collection as the u32 number of its elements, then for each one the u32 bytes of the value,
 *   and the value; in a map its key, as a text in the same form, comes before that
 * - any other type as its encode function writes it
 *
 * The functions:
 * - encode: appends the value. Returns 0; -EPROTOTYPE: the type has no codec; or the failure of the
 *   writer or of the type's encode.
 * - measure: computes the bytes of memory that the value in `wire_size` bytes will take. Returns 0;
 *   -EBADMSG; -EMSGSIZE: more than FRAGI_DECODED_MAX.
 * - decode: fills that memory, which was zeroed. Returns 0 or -EBADMSG.
 */
int fragi_value_encode(const struct fragi_type_info *info, const void *value, size_t size,
		       struct frag_writer *writer);
int fragi_value_measure(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
			size_t *out_size);
int fragi_value_decode(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
		       void *value, size_t size);

#endif
