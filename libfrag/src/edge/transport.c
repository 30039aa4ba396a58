// SPDX-License-Identifier: Apache-2.0
#include <edge/transport.h>
#include <type/module.h>

int fragi_transport_open(const char *name, const struct fragi_transport_ops **out_ops,
			 struct frag_err *err)
{
	const struct fragi_module module = {
		.name = name,
		.kind = "transport module",
		.advice = "run the application in one process",
		.symbol = FRAGI_TRANSPORT_SYMBOL,
		.table_size = sizeof(struct fragi_transport_ops),
	};
	const void *table;
	int r = fragi_module_open(&module, &table, err);

	if (r == 0)
		*out_ops = table;
	return r;
}
