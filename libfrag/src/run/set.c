// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <run/state.h>
#include <sched/exec.h>

#define SET_MAX 4096u /* bytes of a change, as text */

static int unknown(const char *kind, const char *name, const char *what, const char *const *names,
		   size_t count, struct frag_err *err)
{
	char advice[512];

	return frag_err_set(err, -EINVAL, "unknown %s \"%s\"%s", kind, name,
			    fragi_advise(advice, sizeof(advice), name, what, names, count));
}

static struct frag_op *find_op(const struct frag_fragment *fragment, const char *name,
			       struct frag_err *err)
{
	const char **names = fragi_calloc(fragment->op_count + 1, sizeof(*names));
	struct frag_op *found = NULL;

	for (uint32_t i = 0; i < fragment->op_count; i++) {
		if (strcmp(fragment->ops[i]->name, name) == 0)
			found = fragment->ops[i];
		if (names != NULL)
			names[i] = fragment->ops[i]->name;
	}
	if (found == NULL)
		unknown("operator", name, "operators", names,
			names != NULL ? fragment->op_count : 0, err);
	fragi_free(names);
	return found;
}

static struct frag_fragment *find_fragment(const struct fragi_run *run, const char *name,
					   struct frag_err *err)
{
	const char **names = fragi_calloc(run->fragment_count + 1, sizeof(*names));
	struct frag_fragment *found = NULL;

	for (size_t i = 0; i < run->fragment_count; i++) {
		if (strcmp(run->fragments[i].fragment->name, name) == 0)
			found = run->fragments[i].fragment;
		if (names != NULL)
			names[i] = run->fragments[i].fragment->name;
	}
	if (found == NULL)
		unknown("fragment", name, "fragments", names,
			names != NULL ? run->fragment_count : 0, err);
	fragi_free(names);
	return found;
}

/* Ends the part at the character, and returns what follows; NULL: it is not there. */
static char *split(char *part, char at)
{
	char *rest = part != NULL ? strchr(part, at) : NULL;

	if (rest != NULL)
		*rest++ = '\0';
	return rest;
}

int fragi_run_set(struct fragi_run *run, const char *text, const char *who, struct frag_err *err)
{
	char copy[SET_MAX];
	const size_t length = strnlen(text, sizeof(copy));
	char *value, *op_name, *param;
	const char *name = copy;
	const struct frag_fragment *fragment;
	struct frag_op *op;

	if (length == sizeof(copy))
		return frag_err_set(err, -EINVAL, "a change is longer than %u bytes; shorten it",
				    SET_MAX - 1);
	memcpy(copy, text, length + 1);
	value = split(copy, '=');
	op_name = split(copy, '.');
	param = split(op_name, '.');
	if (op_name != NULL && param == NULL && run->fragment_count == 1) {
		name = run->fragments[0].fragment->name;
		param = op_name;
		op_name = copy;
	}
	if (value == NULL || param == NULL || !fragi_name_is_valid(name) ||
	    !fragi_name_is_valid(op_name) || !fragi_name_is_valid(param))
		return frag_err_set(
			err, -EINVAL,
			"\"%.80s\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE",
			text);
	fragment = find_fragment(run, name, err);
	op = fragment != NULL ? find_op(fragment, op_name, err) : NULL;
	return op != NULL ? fragi_exec_set(op, param, value, who, err) : -EINVAL;
}
