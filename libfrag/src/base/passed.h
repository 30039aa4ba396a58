/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_PASSED_H
#define FRAGI_BASE_PASSED_H

#include <stdint.h>

/*
 * A message of a flow, as a tap has copied it (sched/tap.h): what people look at, and not what an
 * operator could receive. The wire carries it, fragctl and the page show it. value, metadata and
 * the text of a tensor are JSON; texts are borrowed.
 */
#define FRAGI_PASSED_TENSORS_MAX 8
#define FRAGI_PASSED_PIXELS_MAX (96u << 10)

struct fragi_passed_tensor {
	const char *name;
	const char *text; /* as fragi_tensor_print (data/print.h) writes it */
};

struct fragi_passed {
	uint64_t number;      /* of those that were due, from 1; what is missing was dropped */
	uint64_t seen;        /* messages of the flow since the tap began, with this one */
	int64_t unix_ns;      /* when it was emitted */
	const char *type;     /* of the value; NULL: it has none */
	const char *value;    /* "" without one */
	const char *metadata; /* "" without any */
	struct fragi_passed_tensor *tensors;
	uint32_t tensor_count, tensors_left_out;
	/* a tensor of bytes whose shape is that of a picture; NULL: none, or nobody asked for it */
	const char *picture_of;
	uint32_t width, height, channels; /* channels: 1, 3 or 4, as they lie in the tensor */
	uint32_t step;                    /* every so many rows and columns were taken */
	const void *pixels;
	uint32_t pixel_bytes;
};

#endif
