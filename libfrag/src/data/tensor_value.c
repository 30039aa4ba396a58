// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <data/memory.h>
#include <data/stream.h>
#include <data/tensor.h>
#include <frag/type.h>

/*
 * A tensor as a value: a reference to it. Between processes its description and its data travel
 * among the descriptors of the message:
 *
 * 	u8   dtype code
 * 	u8   dtype bits
 * 	u16  dtype lanes
 * 	u8   ndim
 * 	i64  shape[ndim]
 * 	the elements, without gaps
 */
#define HEAD_BYTES 5u

static int tensor_encode(const void *value, struct frag_writer *writer)
{
	struct frag_tensor *tensor = *(struct frag_tensor *const *)value;
	size_t dims, size = 0;
	const void *body;
	uint8_t *head;

	if (tensor == NULL)
		return -EPROTOTYPE;
	if (!fragi_memory_can_be_sent(tensor->dl.device))
		return -ENOTSUP;
	dims = (size_t)tensor->dl.ndim;
	head = fragi_writer_reserve(writer, HEAD_BYTES + dims * sizeof(tensor->shape[0]));
	if (head == NULL)
		return writer->error;
	head[0] = tensor->dl.dtype.code;
	head[1] = tensor->dl.dtype.bits;
	memcpy(head + 2, &tensor->dl.dtype.lanes, sizeof(tensor->dl.dtype.lanes));
	head[4] = (uint8_t)dims;
	if (dims > 0)
		memcpy(head + HEAD_BYTES, tensor->shape, dims * sizeof(tensor->shape[0]));
	body = fragi_tensor_body(tensor, &size);
	if (body == NULL && tensor->compact_bytes > 0)
		return -ENOMEM;
	return frag_writer_put(writer, body, tensor->compact_bytes);
}

/* Gives a tensor its memory, with the next bytes of the reader in it. */
static int tensor_fill(struct frag_tensor *tensor, struct frag_reader *reader)
{
	size_t size = tensor->compact_bytes;
	int r;

	if (size > frag_reader_left(reader))
		return -EBADMSG;
	r = size > 0 && size <= FRAGI_SMALL_BODY_BYTES ? fragi_tensor_allocate_small(tensor)
						       : fragi_tensor_allocate(tensor, NULL);
	if (r == 0 && size > 0)
		r = frag_reader_get(reader, (char *)tensor->dl.data + tensor->dl.byte_offset, size);
	fragi_tensor_freeze(tensor);
	return r;
}

static int tensor_decode(void *value, struct frag_reader *reader)
{
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_tensor *tensor;
	struct frag_dtype dtype;
	uint8_t head[HEAD_BYTES];
	int r;

	if (frag_reader_get(reader, head, sizeof(head)) < 0 || head[4] > FRAG_TENSOR_NDIM_MAX ||
	    frag_reader_get(reader, shape, head[4] * sizeof(shape[0])) < 0)
		return -EBADMSG;
	dtype = (struct frag_dtype){.code = head[0], .bits = head[1]};
	memcpy(&dtype.lanes, head + 2, sizeof(dtype.lanes));
	r = fragi_tensor_describe(dtype, head[4], shape, &tensor);
	if (r < 0)
		return r;
	r = tensor_fill(tensor, reader);
	if (r < 0)
		frag_tensor_unref(tensor);
	else
		*(struct frag_tensor **)value = tensor;
	return r;
}

static void tensor_fini(void *value)
{
	frag_tensor_unref(*(struct frag_tensor **)value);
}

const struct frag_type frag_type_tensor = {
	FRAG_TYPE_INIT,
	.name = "tensor",
	.headline = "A tensor, as a value of metadata",
	.size = sizeof(struct frag_tensor *),
	.align = _Alignof(struct frag_tensor *),
	.encode = tensor_encode,
	.decode = tensor_decode,
	.fini = tensor_fini,
};
