// SPDX-License-Identifier: Apache-2.0
#include "extension.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Who keeps tensors: each operator in Python has a holder, which counts the tensors that it has
 * received or made and that Python, or a library that Python has given them to, still holds. When a
 * pool is exhausted they are named. The list is guarded by the interpreter's lock.
 */
struct fpy_holder {
	_Atomic unsigned int references; /* tensors, and 1 of the operator */
	struct fpy_holder *next;
	char name[2 * 64];
};

static struct fpy_holder *holders;

struct fpy_holder *fpy_holder_create(const char *fragment, const char *op)
{
	struct fpy_holder *holder = calloc(1, sizeof(*holder));

	if (holder == NULL) {
		PyErr_NoMemory();
		return NULL;
	}
	atomic_init(&holder->references, 1);
	snprintf(holder->name, sizeof(holder->name), "%s.%s", fragment, op);
	holder->next = holders;
	holders = holder;
	return holder;
}

struct fpy_holder *fpy_holder_ref(struct fpy_holder *holder)
{
	if (holder != NULL)
		atomic_fetch_add_explicit(&holder->references, 1, memory_order_relaxed);
	return holder;
}

void fpy_holder_unref(struct fpy_holder *holder)
{
	if (holder != NULL &&
	    atomic_fetch_sub_explicit(&holder->references, 1, memory_order_acq_rel) == 1)
		free(holder);
}

void fpy_holder_end(struct fpy_holder *holder)
{
	for (struct fpy_holder **at = &holders; *at != NULL; at = &(*at)->next)
		if (*at == holder) {
			*at = holder->next;
			break;
		}
	fpy_holder_unref(holder);
}

void fpy_holders_list(char *out, size_t size)
{
	size_t length = 0;

	out[0] = '\0';
	for (const struct fpy_holder *holder = holders; holder != NULL && length < size;
	     holder = holder->next) {
		unsigned int count = atomic_load(&holder->references) - 1;

		if (count > 0)
			length += (size_t)snprintf(out + length, size - length, "%s%s keeps %u",
						   length > 0 ? ", " : "", holder->name, count);
	}
}
