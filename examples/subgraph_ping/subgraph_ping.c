// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <frag/frag.h>

#define STAGES_MAX 100

/* A chain of forward operators: first, stage1, stage2, ... The ends of the chain are its ports. */
static int relay_compose(struct frag_subgraph *relay, struct frag_fragment *fragment)
{
	const char *text = frag_subgraph_argument(relay, "stages");
	struct frag_op *last, *next;
	int stages = text != NULL ? atoi(text) : 1, r;
	char name[16];

	if (stages < 0 || stages > STAGES_MAX)
		return frag_fragment_fail(fragment, -EINVAL, "stages is %d; give 0 to %d", stages,
					  STAGES_MAX);
	last = frag_make_operator(fragment, "first", "forward", FRAG_NO_ARGS);
	r = frag_add_operator(fragment, last);
	if (r == 0)
		r = frag_add_interface_port(relay, last, "in", NULL);
	for (int i = 1; r == 0 && i <= stages; i++, last = next) {
		snprintf(name, sizeof(name), "stage%d", i);
		next = frag_make_operator(fragment, name, "forward", FRAG_NO_ARGS);
		r = frag_add_flow(fragment, last, "out", next, "in");
	}
	return r < 0 ? r : frag_add_interface_port(relay, last, "out", NULL);
}

static const struct frag_subgraph_type subgraphs[] = {
	{.name = "ping_relay", .headline = "A chain of forwards", .compose = relay_compose},
};

FRAG_PLUGIN(.name = "subgraph_ping", .version = "1.0.0", FRAG_SUBGRAPHS(subgraphs));
