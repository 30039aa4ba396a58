// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>

#include <base/alloc.h>
#include <graph/resolve.h>

/* Inputs that are not optional must be connected: known when all flows are. */

/* Between the begin and the end of checking. */
struct fragi_checking {
	const struct fragi_fragment_info *fragments;
	size_t fragment_count;
	const struct fragi_flow_info *flows;
	size_t count;
	struct fragi_diag *diag;
	size_t *first;    /* of each fragment: the number of its first operator */
	size_t *op_first; /* of each operator: the number of its first port */
	bool *connected;  /* of each port; NULL: they are not counted yet */
	size_t ops, ports;
	/* what comes next: fragments are numbered, flows marked, fragments checked */
	size_t to_number, to_mark, to_check;
	bool failed;
};

struct fragi_checking *fragi_checking_begin(const struct fragi_fragment_info *fragments,
					    size_t fragment_count,
					    const struct fragi_flow_info *flows, size_t count,
					    struct fragi_diag *diag)
{
	struct fragi_checking *checking = fragi_calloc(1, sizeof(*checking));
	size_t ops = 0;

	if (checking == NULL)
		return NULL;
	for (size_t i = 0; i < fragment_count; i++)
		ops += fragments[i].op_count;
	*checking = (struct fragi_checking){
		.fragments = fragments,
		.fragment_count = fragment_count,
		.flows = flows,
		.count = count,
		.diag = diag,
		.first = fragi_calloc(fragment_count + 1, sizeof(*checking->first)),
		.op_first = fragi_calloc(ops + 1, sizeof(*checking->op_first)),
	};
	if (checking->first != NULL && checking->op_first != NULL)
		return checking;
	fragi_checking_end(checking);
	return NULL;
}

static void number_ports(struct fragi_checking *checking, size_t i)
{
	const struct fragi_fragment_info *fragment = &checking->fragments[i];

	checking->first[i] = checking->ops;
	for (size_t k = 0; k < fragment->op_count; k++) {
		checking->op_first[checking->ops++] = checking->ports;
		checking->ports += fragment->ops[k].port_count;
	}
}

static bool *port_mark(struct fragi_checking *checking, size_t fragment, size_t op, size_t port)
{
	return &checking->connected[checking->op_first[checking->first[fragment] + op] + port];
}

static void check_fragment(struct fragi_checking *checking, size_t i)
{
	const struct fragi_fragment_info *fragment = &checking->fragments[i];

	for (size_t j = 0; j < fragment->op_count; j++) {
		const struct fragi_op_info *op = &fragment->ops[j];

		for (size_t k = 0; k < op->port_count; k++) {
			if (op->ports[k].dir != FRAG_IN || *port_mark(checking, i, j, k) ||
			    (op->ports[k].flags & FRAG_PORT_OPTIONAL) != 0)
				continue;
			fragi_node_error(
				checking->diag, op->place, NULL,
				"%s.%s: input \"%s\" is not connected; add a flow that ends there",
				fragment->name, op->name, op->ports[k].name);
			checking->failed = true;
		}
	}
}

int fragi_checking_step(struct fragi_checking *checking, int64_t *items)
{
	while (checking->to_number<checking->fragment_count && * items> 0) {
		*items -= 1 + (int64_t)checking->fragments[checking->to_number].op_count;
		number_ports(checking, checking->to_number++);
	}
	if (checking->to_number < checking->fragment_count)
		return -EAGAIN;
	if (checking->connected == NULL)
		checking->connected =
			fragi_calloc(checking->ports + 1, sizeof(*checking->connected));
	if (checking->connected == NULL)
		return -ENOMEM;
	for (; checking->to_mark<checking->count && * items> 0; --*items) {
		const struct fragi_flow_info *flow = &checking->flows[checking->to_mark++];

		*port_mark(checking, flow->to_fragment, flow->to_op, flow->to_port) = true;
	}
	if (checking->to_mark < checking->count)
		return -EAGAIN;
	while (checking->to_check<checking->fragment_count && * items> 0) {
		*items -= 1 + (int64_t)checking->fragments[checking->to_check].op_count;
		check_fragment(checking, checking->to_check++);
	}
	if (checking->to_check < checking->fragment_count)
		return -EAGAIN;
	return checking->failed ? -EINVAL : 0;
}

void fragi_checking_end(struct fragi_checking *checking)
{
	if (checking == NULL)
		return;
	fragi_free(checking->first);
	fragi_free(checking->op_first);
	fragi_free(checking->connected);
	fragi_free(checking);
}

int fragi_flows_check(const struct fragi_fragment_info *fragments, size_t fragment_count,
		      const struct fragi_flow_info *flows, size_t count, struct fragi_diag *diag)
{
	struct fragi_checking *checking =
		fragi_checking_begin(fragments, fragment_count, flows, count, diag);
	int64_t items = INT64_MAX;
	int r = checking != NULL ? fragi_checking_step(checking, &items) : -ENOMEM;

	fragi_checking_end(checking);
	return r != -ENOMEM ? r
			    : fragi_diag_add(diag, r, NULL, 0, 0,
					     "memory is short while the flows are checked");
}
