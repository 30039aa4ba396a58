// SPDX-License-Identifier: Apache-2.0
#include <type/crypto.h>
#include <type/module.h>

int fragi_crypto_open(const char *advice, const struct fragi_crypto_ops **out_ops,
		      struct frag_err *err)
{
	const struct fragi_module module = {
		.name = "crypto",
		.kind = "module",
		.advice = advice,
		.symbol = FRAGI_CRYPTO_SYMBOL,
		.table_size = sizeof(struct fragi_crypto_ops),
	};
	const void *table;
	int r = fragi_module_open(&module, &table, err);

	if (r == 0)
		*out_ops = table;
	return r;
}
