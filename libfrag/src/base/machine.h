/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_MACHINE_H
#define FRAGI_MACHINE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A state machine: its states, the transitions between them that are legal, and what holds in every
 * state. One constant table for each kind of object; docs/ARCHITECTURE.md shows these tables.
 *
 * With asserts (the default build) an illegal transition or a broken invariant aborts the program
 * at the line that caused it. Without (NDEBUG, packages) the transition is refused: the object
 * keeps its state, and the caller logs an error and goes on.
 */
struct fragi_machine {
	/* what it is a machine of: "application" */
	const char *name;
	/* [count] */
	const char *const *state_names;
	/* [count]; bit b of transitions[a] is set when a may become b */
	const uint32_t *transitions;
	uint32_t count;
	/*
	 * Asserts what must hold of the object in the state that it has now; NULL: nothing to
	 * check.
	 */
	void (*check)(const void *object);
};

/* The bit of a state in a row of transitions. */
#define FRAGI_TO(state) (1u << (state))

static inline bool fragi_machine_may(const struct fragi_machine *machine, uint32_t from,
				     uint32_t to)
{
	return from < machine->count && to < machine->count &&
	       (machine->transitions[from] & FRAGI_TO(to)) != 0;
}

static inline const char *fragi_machine_state_name(const struct fragi_machine *machine,
						   uint32_t state)
{
	return state < machine->count ? machine->state_names[state] : "unknown";
}

/* Asserts the object's invariants. Call it when a step of a core ends. */
static inline void fragi_machine_check(const struct fragi_machine *machine, const void *object)
{
#ifndef NDEBUG
	if (machine->check != 0)
		machine->check(object);
#else
	(void)machine, (void)object;
#endif
}

/*
 * Changes from one state to another. Returns true when the transition is legal; the caller then
 * stores `to`. An illegal transition aborts with asserts, and returns false without.
 */
static inline bool fragi_machine_transition(const struct fragi_machine *machine, uint32_t from,
					    uint32_t to)
{
	bool legal = fragi_machine_may(machine, from, to);

	assert(legal && "this transition is not in the table of the state machine");
	return legal;
}

/* What a line of the log about a transition ends with. */
static inline const char *fragi_machine_remark(bool legal)
{
	return legal ? "" : ": this transition is not in the table; please report it";
}

#endif
