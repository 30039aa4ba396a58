// SPDX-License-Identifier: Apache-2.0
#include <graph/transport.h>

#include <string.h>

#include <base/transports.h>

static enum fragi_apart apart(const struct fragi_fragment_info *from,
			      const struct fragi_fragment_info *to)
{
	if (from->host == to->host)
		return FRAGI_APART_NOT;
	return fragi_identity_apart(from->memory != NULL ? from->memory : "",
				    to->memory != NULL ? to->memory : "");
}

struct fragi_choice fragi_transport_choose(const char *edge, const struct fragi_fragment_info *from,
					   const struct fragi_fragment_info *to)
{
	static const char *const reasons[] = {
		[FRAGI_APART_NOT] = "both hosts are on one machine and run as one user",
		[FRAGI_APART_UNKNOWN] = "one of the hosts cannot share memory",
		[FRAGI_APART_MACHINE] = "the hosts are on two machines",
		[FRAGI_APART_NETWORK] = "the hosts are in two network namespaces",
		[FRAGI_APART_USER] = "the hosts run as two users",
	};
	const enum fragi_apart why = apart(from, to);
	struct fragi_choice choice = {0};

	if (edge != NULL && fragi_transport_exists(edge)) {
		choice.transport = edge;
		choice.reason = "the graph asks for it";
		if (fragi_transport_shares_memory(edge))
			choice.apart = why;
	} else if (from->host != to->host) {
		choice.transport = why == FRAGI_APART_NOT ? fragi_transport_of_shared_memory()
							  : fragi_transport_name(0);
		choice.reason = reasons[why];
	}
	return choice;
}
