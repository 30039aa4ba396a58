/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_TRANSPORT_H
#define FRAGI_GRAPH_TRANSPORT_H

#include <base/identity.h>
#include <graph/resolve.h>

/*
 * Which transport carries a flow. The driver asks when it has placed the fragments, so that each
 * host opens what its flows need and nothing else, and whoever resolves flows asks again.
 */
struct fragi_choice {
	const char *transport; /* NULL: both ends are in one process, and a pointer is passed */
	const char *reason;    /* of the transport, for people; NULL without one */
	/* why the transport that the graph asks for cannot carry it; NOT: it can */
	enum fragi_apart apart;
};

/* edge: what the graph says; NULL: nothing. Of the fragments only host and memory count. */
FRAGI_API struct fragi_choice fragi_transport_choose(const char *edge,
						     const struct fragi_fragment_info *from,
						     const struct fragi_fragment_info *to);

#endif
