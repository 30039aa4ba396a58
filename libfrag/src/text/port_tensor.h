/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_PORT_TENSOR_H
#define FRAGI_TEXT_PORT_TENSOR_H

#include <stdbool.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * One declaration of the member tensors of a struct frag_port: "KIND: TEXT | CONVERTER", whose last
 * part may be missing. The texts are not NUL-ended.
 */
struct fragi_port_tensor {
	const char *kind, *text, *converter;
	size_t kind_length, text_length, converter_length; /* the last is 0 where there is none */
};

/*
 * Reads the next declaration.
 * - rest: where it begins; moves behind its ";", or to the end
 * Returns false at the end, or when what is there is no declaration.
 */
FRAGI_API bool fragi_port_tensor_next(const char **rest, struct fragi_port_tensor *out);
/* True if tensors is a list of declarations of different kinds, of a length that is allowed. */
bool fragi_port_tensors_are_valid(const char *tensors);
/*
 * Finds the first kind that both ends of a flow declare with different texts. NULL stands for no
 * declaration.
 */
bool fragi_port_tensors_differ(const char *sent, const char *taken,
			       struct fragi_port_tensor *out_sent,
			       struct fragi_port_tensor *out_taken);

#endif
