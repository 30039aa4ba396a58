/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_FRAME_H
#define OPS_FRAME_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <frag/frag.h>

/*
 * The format that all operators on pictures use. A frame is a tensor [rows, columns] or [rows,
 * columns, channels] of u8, f32 or, for some operators, u16 in host memory, with 1 (gray), 3 (RGB)
 * or 4 (RGBA) channels. The channels of a pixel and the pixels of a row are adjacent; rows may have
 * any distance.
 *
 * A frame of a video file carries this metadata:
 * - "frame" (i64): its number from 0, which goes on when the file repeats
 * - "pts_ns" (i64): when it is shown, in nanoseconds after the first frame
 * - "frame_rate" (f64): frames per second
 */
#define FRAME_SIDE_MAX 32767

struct frame {
	const void *data;
	int64_t rows, columns, channels;
	size_t row_bytes; /* from one row to the next */
	bool is_float;    /* f32; else u8 */
	bool is_deep; /* u16; only where frame_deep_anywhere or frame_deep_from_tensor is asked */
};

static inline size_t frame_element_bytes(const struct frame *frame)
{
	return frame->is_float ? sizeof(float) : frame->is_deep ? sizeof(uint16_t) : 1;
}

/*
 * Returns the tensor that the parameter in_tensor_name selects, NULL when there is none. "" selects
 * the tensor without a name, or else the first one.
 */
static inline struct frag_tensor *frame_tensor(const struct frag_message *message, const char *name)
{
	struct frag_tensor *tensor = frag_message_tensor(message, name);

	if (tensor == NULL && name[0] == '\0')
		tensor = frag_message_tensor(message, NULL);
	return tensor;
}

static inline bool frame_dtype_is(struct frag_dtype dtype, int code, int bits)
{
	return dtype.lanes == 1 && dtype.code == code && dtype.bits == bits;
}

/*
 * Describes a tensor as a frame of u8, f32 or u16, wherever it lies. Returns 0; -EINVAL: it is not
 * a frame, *reason says why.
 */
static inline int frame_deep_anywhere(const struct frag_tensor *tensor, struct frame *out,
				      const char **reason)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	struct frame f = {.channels = 1};

	*reason = NULL;
	f.is_float = frame_dtype_is(dl->dtype, FRAG_DTYPE_FLOAT, 32);
	f.is_deep = frame_dtype_is(dl->dtype, FRAG_DTYPE_UINT, 16);
	if (dl->ndim != 2 && dl->ndim != 3)
		*reason =
			"it has neither 2 nor 3 dimensions; frames are [rows, columns] or [rows, columns, channels]";
	else if (!f.is_float && !f.is_deep && !frame_dtype_is(dl->dtype, FRAG_DTYPE_UINT, 8))
		*reason = "its elements are neither u8 nor f32";
	else if (dl->shape[0] < 1 || dl->shape[1] < 1 || dl->shape[0] > FRAME_SIDE_MAX ||
		 dl->shape[1] > FRAME_SIDE_MAX)
		*reason = "its sides are not from 1 to 32767";
	if (*reason != NULL)
		return -EINVAL;
	f.rows = dl->shape[0];
	f.columns = dl->shape[1];
	if (dl->ndim == 3)
		f.channels = dl->shape[2];
	if (f.channels != 1 && f.channels != 3 && f.channels != 4) {
		*reason = "it has neither 1, 3 nor 4 channels";
		return -EINVAL;
	}
	f.row_bytes = (size_t)(f.columns * f.channels) * frame_element_bytes(&f);
	if (dl->strides != NULL) {
		if ((dl->ndim == 3 && f.channels > 1 && dl->strides[2] != 1) ||
		    (f.columns > 1 && dl->strides[1] != f.channels) ||
		    (f.rows > 1 && dl->strides[0] < f.columns * f.channels)) {
			*reason = "the pixels of its rows are not adjacent";
			return -EINVAL;
		}
		if (f.rows > 1)
			f.row_bytes = (size_t)dl->strides[0] * frame_element_bytes(&f);
	}
	f.data = frag_tensor_data(tensor);
	*out = f;
	return 0;
}

/* The same, of a frame of u8 or f32. */
static inline int frame_anywhere(const struct frag_tensor *tensor, struct frame *out,
				 const char **reason)
{
	int r = frame_deep_anywhere(tensor, out, reason);

	if (r < 0 || !out->is_deep)
		return r;
	*reason = "its elements are u16; convert it with format_converter before";
	return -EINVAL;
}

static inline bool frame_is_on_host(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);

	return dl->device.type == FRAG_DEVICE_CPU || dl->device.type == FRAG_DEVICE_CUDA_HOST;
}

/* The same, of a tensor that the CPU reads. */
static inline int frame_deep_from_tensor(const struct frag_tensor *tensor, struct frame *out,
					 const char **reason)
{
	if (frame_is_on_host(tensor))
		return frame_deep_anywhere(tensor, out, reason);
	*reason = "its memory is on a device; frames must be in host memory";
	return -EINVAL;
}

static inline int frame_from_tensor(const struct frag_tensor *tensor, struct frame *out,
				    const char **reason)
{
	if (frame_is_on_host(tensor))
		return frame_anywhere(tensor, out, reason);
	return frame_deep_from_tensor(tensor, out, reason);
}

/*
 * Finds the frame in a message.
 * - describe: one of the four functions above
 * Returns 0, or a failure that is worded in the operator.
 */
static inline int frame_receive_by(struct frag_op *op, const struct frag_message *message,
				   const char *name,
				   int (*describe)(const struct frag_tensor *tensor,
						   struct frame *out, const char **reason),
				   struct frag_tensor **out_tensor, struct frame *out)
{
	struct frag_tensor *tensor = frame_tensor(message, name);
	const char *reason;
	int r;

	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			name);
	r = describe(tensor, out, &reason);
	if (r < 0)
		return frag_op_fail(op, r, "tensor \"%s\" is not a valid frame: %s", name, reason);
	*out_tensor = tensor;
	return 0;
}

static inline int frame_receive(struct frag_op *op, const struct frag_message *message,
				const char *name, struct frag_tensor **out_tensor,
				struct frame *out)
{
	return frame_receive_by(op, message, name, frame_from_tensor, out_tensor, out);
}

#define FRAME_U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define FRAME_U16 ((struct frag_dtype){FRAG_DTYPE_UINT, 16, 1})
#define FRAME_F32 ((struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1})

/* Creates a frame. Returns 0, or a failure that is worded in the operator. */
static inline int frame_create(struct frag_op *op, struct frag_resource *pool,
			       struct frag_dtype dtype, const int64_t shape[3],
			       struct frag_tensor **out)
{
	int r = frag_tensor_create(pool, dtype, 3, shape, out);

	if (r == 0)
		return 0;
	return frag_op_fail(
		op, r,
		"cannot make a frame of %lld x %lld x %lld: %s; give the pool larger or more blocks",
		(long long)shape[0], (long long)shape[1], (long long)shape[2], frag_strerror(r));
}

/*
 * Emits a frame that was made of the message `from`, with its stamps: when it was taken, and which
 * one it is. Takes the tensor; from may be NULL.
 */
static inline int frame_emit(struct frag_tick *tick, uint32_t port, const char *name,
			     struct frag_tensor *tensor, const struct frag_message *from)
{
	struct frag_message *message = frag_message_create();
	int r = -ENOMEM;

	if (message != NULL)
		r = frag_message_add_tensor(message, name, tensor);
	else
		frag_tensor_unref(tensor);
	if (r == 0 && from != NULL)
		r = frag_message_copy_stamps(message, from);
	if (r == 0)
		return frag_tick_emit(tick, port, message);
	frag_message_unref(message);
	return r;
}

/*
 * A frame of other sides is made: where metadata states the shape of its pixels, states the one
 * that they have now. What rounding alone has changed stays. Returns 0 or a negative errno.
 */
static inline int frame_change_sides(struct frag_tick *tick, const struct frame *from, int64_t rows,
				     int64_t columns)
{
	struct frag_metadata *metadata = frag_tick_metadata(tick);
	double stretched = (double)(from->columns * rows) / (double)(from->rows * columns), aspect;

	if (frag_metadata_get_f64(metadata, "sample_aspect_ratio", &aspect) < 0 ||
	    (stretched > 0.99 && stretched < 1.01))
		return 0;
	frag_metadata_erase(metadata, "sample_aspect_ratio"); /* the policy may refuse another */
	return frag_metadata_set_f64(metadata, "sample_aspect_ratio", aspect * stretched);
}

/*
 * Refuses a URL, such as http://host/a.png, where a file is to be written: as a path it would name
 * folders. Returns 0 or -EINVAL with a sentence.
 */
static inline int frame_check_path(struct frag_op *op, const char *path)
{
	const char *url = strstr(path, "://"), *begin = url;

	while (begin != NULL && begin > path && begin[-1] != '/')
		begin--;
	return url == NULL || begin == url
		       ? 0
		       : frag_op_fail(op, -EINVAL,
				      "path is the URL %s, and this operator writes files only; "
				      "give it the path of one",
				      begin);
}

#endif
