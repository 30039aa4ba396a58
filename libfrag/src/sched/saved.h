/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_SAVED_H
#define FRAGI_SCHED_SAVED_H

#include <stdatomic.h>

#include <base/saved_bytes.h>
#include <graph/op.h>

/*
 * What operators have saved (save and restore of struct frag_op_type): memory that a host writes,
 * that its workerd keeps when the host is gone, and that the next host of the same fragments reads.
 * Each operator has an entry with two places. A save fills the place that is not the newest, and
 * then makes it the newest, so a host that dies in between leaves the state of the save before. The
 * memory is as trustworthy as the host that wrote it, so whatever is read is checked.
 */
struct fragi_saved_entry {
	char op[2 * FRAG_NAME_MAX + 2]; /* "fragment1.detect" */
	uint64_t capacity;              /* bytes of each place */
	uint64_t offset;                /* of the first place, from the begin of the memory */
	uint64_t size[2];               /* of the state in each place */
	_Atomic uint64_t newest;        /* the number of the place, from 1; 0: nothing was saved */
};

/* Of one operator. */
struct fragi_saved {
	struct fragi_saved_entry *entry;
	char *places[2];
	int64_t due_ns; /* the next save */
	bool has_failed;
};

/* The memory of a host. */
struct fragi_saved_memory {
	void *memory; /* NULL: nothing is kept */
	size_t bytes;
	struct fragi_saved *items; /* of the operators that save */
};

/*
 * Finds the operators of these fragments that save, and gives each its entry (op->saved). What
 * earlier hosts have saved stays, where the same operators saved at most as many bytes.
 * - fd: of the memory, whose size is fixed; it is borrowed. 0, or a file of size 0: nobody keeps
 *   anything, and nothing is saved
 * Returns 0, or a failure with a sentence.
 */
int fragi_saved_open(struct fragi_saved_memory *memory, int fd,
		     struct frag_fragment *const *fragments, size_t fragment_count,
		     struct frag_err *err);
/*
 * Before operators start: what was put there since, by the process before, is theirs only where it
 * has saved the same operators; of another library it may be laid out differently.
 */
void fragi_saved_settle(const struct fragi_saved_memory *memory,
			struct frag_fragment *const *fragments, size_t fragment_count);
void fragi_saved_close(struct fragi_saved_memory *memory);

/* Whether there is something to restore. */
bool fragi_saved_has_state(const struct fragi_saved *saved);
/* Calls restore. Returns 0, or its failure. */
int fragi_saved_restore(struct frag_op *op);
/* Calls save, if it is due. */
void fragi_saved_save(struct frag_op *op);

#endif
