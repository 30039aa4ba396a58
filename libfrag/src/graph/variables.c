// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <graph/compose.h>

/*
 * Operators that the variables of the graph name, and that this fragment lacks. Those of the YAML
 * were checked with the text; those of a composer are known only now.
 */
static bool has_op(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (strcmp(fragment->ops[i]->name, name) == 0)
			return true;
	return fragment->info.has_gaps;
}

/* Whether the graph has it, and what kept it from being made was reported. */
static bool is_declared(const struct frag_fragment *fragment, const char *name)
{
	const struct fragi_spec_fragment *own = fragment->own;

	for (size_t i = 0; own != NULL && i < own->operator_count; i++)
		if (strcmp(own->operators[i].name, name) == 0)
			return true;
	return false;
}

static void check_party(struct frag_fragment *fragment, const struct fragi_spec_variable *variable,
			const struct fragi_spec_party *party, const char *what)
{
	const char *names[64];
	size_t count = 0;
	char advice[512], subject[FRAG_NAME_MAX + 16];

	if (party->op == NULL || strcmp(party->fragment, fragment->name) != 0 ||
	    has_op(fragment, party->op) || is_declared(fragment, party->op))
		return;
	while (count < FRAG_COUNT_OF(names) && count < fragment->op_count) {
		names[count] = fragment->ops[count]->name;
		count++;
	}
	snprintf(subject, sizeof(subject), "variables.%s", variable->name);
	fragi_making_fail(
		fragment, -EINVAL, party->place, subject,
		"%s %s.%s: fragment %s has no operator \"%s\"%s", what, party->fragment, party->op,
		party->fragment, party->op,
		fragi_advise(advice, sizeof(advice), party->op, "operators", names, count));
}

void fragi_fragment_check_variables(struct frag_fragment *fragment)
{
	const struct fragi_spec *spec = fragment->spec;

	for (size_t i = 0; i < spec->variable_count; i++) {
		const struct fragi_spec_variable *variable = &spec->variables[i];

		if (variable->writer.fragment != NULL)
			check_party(fragment, variable, &variable->writer, "writer");
		for (size_t k = 0; k < variable->reader_count; k++)
			check_party(fragment, variable, &variable->readers[k], "reader");
	}
}
