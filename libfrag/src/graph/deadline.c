// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <graph/compose.h>

/*
 * Deadlines (frag/deadline.h): what composers and operators have asked for, then what the graph
 * says.
 */

static int check_budget(struct frag_fragment *fragment, const char *subject, int64_t budget_ns,
			enum frag_on_miss on_miss)
{
	if (budget_ns < 0)
		return fragi_making_fail(fragment, -EINVAL, NULL, subject,
					 "the budget of a deadline is negative; give nanoseconds");
	if (budget_ns == 0)
		return fragi_making_fail(fragment, -EINVAL, NULL, subject,
					 FRAGI_DEADLINE_NO_BUDGET);
	if ((unsigned int)on_miss > FRAG_ON_MISS_STOP)
		return fragi_making_fail(
			fragment, -EINVAL, NULL, subject,
			"%d is not a valid on_miss of a deadline; take one of FRAG_ON_MISS_...",
			(int)on_miss);
	return 0;
}

int frag_set_deadline(struct frag_op *op, int64_t budget_ns, enum frag_deadline_from from,
		      enum frag_on_miss on_miss)
{
	int r;

	if (op == NULL)
		return -EINVAL;
	if (!op->in_setup && !fragi_making_is_open(op->fragment))
		return -EBUSY;
	r = check_budget(op->fragment, op->subject, budget_ns, on_miss);
	if (r < 0)
		return r;
	if ((unsigned int)from > FRAG_DEADLINE_FROM_ACQUISITION)
		return fragi_making_fail(
			op->fragment, -EINVAL, NULL, op->subject,
			"%d is not a valid begin of a deadline; take one of FRAG_DEADLINE_FROM_...",
			(int)from);
	if (on_miss == FRAG_ON_MISS_DROP && from != FRAG_DEADLINE_FROM_ACQUISITION)
		return fragi_making_fail(op->fragment, -EINVAL, NULL, op->subject,
					 FRAGI_DEADLINE_DROPS_TICK);
	op->deadline = (struct fragi_deadline){
		.budget_ns = budget_ns,
		.from_acquisition = from == FRAG_DEADLINE_FROM_ACQUISITION,
		.on_miss = on_miss,
	};
	return 0;
}

static int take_path(struct frag_fragment *fragment, struct frag_op *const *path, size_t count,
		     struct fragi_spec_path *out)
{
	struct fragi_spec_end *ops =
		fragi_arena_alloc(&fragment->arena, count * sizeof(struct fragi_spec_end));

	if (ops == NULL)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL,
					 "out of memory for a deadline");
	for (size_t i = 0; i < count; i++) {
		if (path[i] == NULL || path[i]->fragment != fragment)
			return fragi_making_fail(
				fragment, -EINVAL, NULL, NULL,
				"frag_add_path_deadline: operator %zu of the path is %s", i + 1,
				path[i] == NULL ? "NULL" : "of another fragment");
		ops[i] = (struct fragi_spec_end){.fragment = fragment->name, .op = path[i]->name};
	}
	out->ops = ops;
	out->op_count = count;
	return 0;
}

int frag_add_path_deadline(struct frag_fragment *fragment, struct frag_op *const *path,
			   size_t count, int64_t budget_ns, enum frag_on_miss on_miss)
{
	struct fragi_spec_path deadline = {.budget_ns = budget_ns, .on_miss = on_miss}, *paths;
	int r;

	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	r = check_budget(fragment, NULL, budget_ns, on_miss);
	if (r < 0)
		return r;
	if (count < 2 || count > FRAGI_SPEC_PATH_MAX)
		return fragi_making_fail(fragment, -EINVAL, NULL, NULL, FRAGI_DEADLINE_PATH_LENGTH,
					 FRAGI_SPEC_PATH_MAX);
	r = take_path(fragment, path, count, &deadline);
	if (r < 0)
		return r;
	paths = fragi_making_room(fragment, fragment->paths, fragment->path_count,
				  &fragment->making->path_capacity, sizeof(*paths));
	if (paths == NULL)
		return -ENOMEM;
	fragment->paths = paths;
	paths[fragment->path_count++] = deadline;
	return 0;
}

static bool drops_at(const struct fragi_spec_path *paths, size_t count, const struct frag_op *op)
{
	for (size_t i = 0; i < count; i++) {
		const struct fragi_spec_end *last = &paths[i].ops[paths[i].op_count - 1];

		if (paths[i].on_miss == FRAG_ON_MISS_DROP && strcmp(last->op, op->name) == 0 &&
		    strcmp(last->fragment, op->fragment->name) == 0)
			return true;
	}
	return false;
}

void fragi_deadline_complete(struct frag_op *op)
{
	const struct frag_fragment *fragment = op->fragment;
	const struct fragi_spec_operator *own = op->made->own;

	if (own != NULL && own->deadline.budget_ns > 0)
		op->deadline = own->deadline;
	op->drops_late = drops_at(fragment->paths, fragment->path_count, op) ||
			 (fragment->own != NULL &&
			  drops_at(fragment->own->deadlines, fragment->own->deadline_count, op)) ||
			 (fragment->spec != NULL &&
			  drops_at(fragment->spec->deadlines, fragment->spec->deadline_count, op));
}
