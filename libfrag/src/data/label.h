/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_LABEL_H
#define FRAGI_DATA_LABEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/timeline.h>
#include <data/stream.h>

/*
 * A label: the paths that a tracked message has taken so far, one behind the other. It is made when
 * the message is emitted and never changed afterwards, so copies of a message may share it. That of
 * an application over several hosts goes with the message.
 */
struct fragi_step {
	uint32_t op;   /* number by which fragi_label_name finds its name */
	uint32_t left; /* steps of its path from this one to the end, itself included */
	uint64_t received, published; /* stamps; received: when the tick began */
	/*
	 * Of the time between the step before and this one, where another process was the sender:
	 * how long it held the message, and from sending to arrival.
	 */
	uint64_t held_ns, network_ns;
};

/* Who has numbered the operators. */
struct fragi_label_names {
	/* Returns the name of an operator, which stays as long as these do. Thread: any. */
	const char *(*name_of)(const struct fragi_label_names *names, uint32_t op);
};

struct fragi_label {
	_Atomic uint32_t refs;
	uint32_t step_count; /* 0: there are paths, but beyond a bound */
	/* who made it, and in which tick; NULL: another process */
	const void *maker;
	uint64_t tick;
	const struct fragi_label_names *names; /* NULL: it stays in this process */
	struct fragi_label_names own;          /* of one from another process */
	uint64_t error_ns; /* times of other clocks are at most so far from the truth */
	/* of one from another process: stamp, when it was here; how long its sender held it */
	uint64_t arrived, held_ns;
	struct fragi_step steps[];
};

/* The most that goes to another process; of a longer one, that there are paths. */
#define FRAGI_LABEL_STEPS_MAX 4096u
#define FRAGI_LABEL_NAME_MAX 512u

/*
 * Creates a label with one reference, its steps not filled in; NULL: memory is short. The maker has
 * to be set, and nothing else.
 */
FRAGI_API struct fragi_label *fragi_label_create(size_t step_count);
FRAGI_API void fragi_label_unref(struct fragi_label *label);
/* The name of the operator of a step, in a label that has names. */
FRAGI_API const char *fragi_label_name(const struct fragi_label *label,
				       const struct fragi_step *step);

/* Converts its times, which are a peer's; where that cannot be done it has no paths any more. */
void fragi_label_convert_times(struct fragi_label *label, const struct fragi_timeline *peer);
/*
 * Between the descriptors (codec.h). Stamps travel as CLOCK_MONOTONIC. Failures stay in the writer.
 */
void fragi_label_encode(const struct fragi_label *label, struct frag_writer *writer);
/* Returns 0, -EBADMSG or -ENOMEM. */
int fragi_label_decode(struct frag_reader *reader, struct fragi_label **out_label);

#endif
