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

/* This program exports no socket calls, as none but frag's own do. */
Test(transport, ucx_is_not_opened_where_strangers_would_reach_it)
{
	static const struct fragi_transport_events events; /* of nothing that comes so far */
	static const uint8_t key[FRAGI_DATA_KEY_BYTES];
	const struct fragi_transport_config config = {
		.struct_size = sizeof(config), .events = &events, .data_key = key};
	const struct fragi_transport_ops *ops = NULL;
	struct fragi_transport *made = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_transport_open("ucx", &ops, &err);

	if (r == -ENOENT) /* a build without it */
		return;
	cr_assert_eq(r, 0, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(ops->create(&config, &made, &err), -ENOTSUP);
		cr_expect_null(made);
		cr_expect_not_null(strstr(err.text, "cannot keep strangers out of UCX: it exports "
						    "no socket calls; run the application with"),
				   "%s", err.text);
	}
}
