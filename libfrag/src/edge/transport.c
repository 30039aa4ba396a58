// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include <edge/transport.h>
#include <edge/ucx_env.h>
#include <type/module.h>

/* libucm calls libucs, which needs it. */
static const char *const ucx_libraries[] = {"libucm.so.0", "libucs.so.0", "libuct.so.0",
					    "libucp.so.0", NULL};

static const char *folder_of(const char *transport)
{
	const char *folder = strcmp(transport, "ucx") == 0 ? getenv(FRAGI_UCX_FOLDER) : NULL;

	return folder != NULL && *folder != '\0' ? folder : NULL;
}

int fragi_transport_open(const char *name, const struct fragi_transport_ops **out_ops,
			 struct frag_err *err)
{
	const struct fragi_module module = {
		.name = name,
		.kind = "transport module",
		.advice = "run the application in one process",
		.symbol = FRAGI_TRANSPORT_SYMBOL,
		.table_size = sizeof(struct fragi_transport_ops),
		.folder = folder_of(name),
		.libraries = ucx_libraries,
	};
	const void *table;
	int r = fragi_module_open(&module, &table, err);

	if (r == 0)
		*out_ops = table;
	return r;
}
