/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_TAP_H
#define FRAGI_SCHED_TAP_H

#include <base/passed.h>
#include <sched/exec.h>

/*
 * A tap on an output of an operator: of the messages that are emitted there, one in a while is
 * copied for people who look at it. The operator's thread copies, at most FRAGI_PASSED_PIXELS_MAX
 * bytes of a picture and some texts, into memory of the tap; it waits for nobody, allocates nothing
 * but the buffer of a stream once, and keeps no reference to the message. The control thread takes
 * the copy. While it has not, messages that are due are counted and left out.
 *
 * Without a tap nothing goes around the operator's emits (around.h).
 */
struct fragi_tap;

/* Returns NULL when memory is short. */
struct fragi_tap *fragi_tap_create(void);
void fragi_tap_destroy(struct fragi_tap *tap); /* once no operator has it; NULL is accepted */

/* The control thread: */
/*
 * Begins on an output of the operator, whose thread takes the tap before its next tick. The tap is
 * free (fragi_tap_is_free). Returns 0; -EAGAIN: the operator does not run yet; -ESRCH: it has
 * ended.
 */
int fragi_tap_begin(struct fragi_tap *tap, struct frag_op *op, uint32_t port, int64_t every_ns,
		    bool pictures);
/* Ends it: the operator's thread gives it back before a later tick. */
void fragi_tap_end(struct fragi_tap *tap);
/* Whether no operator has it, or the one that has it has ended. */
bool fragi_tap_is_free(const struct fragi_tap *tap);
/* The message that was copied, until fragi_tap_next; NULL: none. */
const struct fragi_passed *fragi_tap_passed(const struct fragi_tap *tap);
void fragi_tap_next(struct fragi_tap *tap);

/* Between two ticks, on the thread that works on the exec: takes and gives back taps. */
void fragi_exec_apply_taps(struct fragi_exec *exec);
/* The control thread: makes the exec's thread do so. */
void fragi_exec_change_taps(struct fragi_exec *exec);

#endif
