/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_LABEL_H
#define FRAGI_DATA_LABEL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A label: the paths that a tracked message has taken so far, one behind the other. It is made when
 * the message is emitted and never changed afterwards, so copies of a message may share it.
 */
struct fragi_step {
	uint32_t op;   /* number in the tracker */
	uint32_t left; /* steps of its path from this one to the end, itself included */
	uint64_t received, published; /* stamps; received: when the tick began */
};

struct fragi_label {
	_Atomic uint32_t refs;
	uint32_t step_count;
	/* who made it, and in which tick */
	const void *maker;
	uint64_t tick;
	struct fragi_step steps[];
};

/* Creates a label with one reference, its steps not filled in; NULL: memory is short. */
struct fragi_label *fragi_label_create(size_t step_count);
void fragi_label_unref(struct fragi_label *label);

#endif
