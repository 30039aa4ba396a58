// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <edge/transport.h>

Test(transport, a_module_that_is_not_installed_is_told_with_its_place)
{
	const struct fragi_transport_ops *ops = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(fragi_transport_open("carrier_pigeon", &ops, &err), -ENOENT);
	cr_expect_null(ops);
	cr_expect_not_null(strstr(err.text, "the transport module carrier_pigeon is not there (/"),
			   "%s", err.text);
	cr_expect_not_null(
		strstr(err.text,
		       "/lib/frag/modules/carrier_pigeon.so): this frag was built without it; install frag with it, or run the application in one process"),
		"%s", err.text);
}

Test(transport, a_name_leads_to_no_other_file)
{
	static const char *const names[] = {"", "../ucx", "UCX", "a/b",
					    "a_name_that_is_longer_than_a_module_s"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct fragi_transport_ops *ops = NULL;
		struct frag_err err = FRAG_ERR_INIT;

		cr_expect_eq(fragi_transport_open(names[i], &ops, &err), -ENOENT, "%s", names[i]);
		cr_expect_null(ops);
		cr_expect_eq(strncmp(err.text, "there is no transport module of the name \"", 42),
			     0, "%s", err.text);
	}
}
