// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>

#include <base/transports.h>
#include <graph/transport.h>

Test(transport_choice, one_rule_for_every_flow)
{
	static const struct {
		const char *edge;
		uint32_t to_host;
		const char *from, *to; /* memory */
		const char *transport, *reason;
		enum fragi_apart apart;
	} cases[] = {
		{NULL, 1, "m.1.1.7", "m.1.1.7", NULL, NULL, FRAGI_APART_NOT},
		{"auto", 1, "", "", NULL, NULL, FRAGI_APART_NOT},
		{"inproc", 1, "", "", NULL, NULL, FRAGI_APART_NOT},
		{"ucx", 1, "m.1.1.7", "m.1.1.7", "ucx", "the graph asks for it", FRAGI_APART_NOT},
		{"shm", 1, "", "", "shm", "the graph asks for it", FRAGI_APART_NOT},
		{NULL, 2, "m.1.1.7", "m.1.1.7", "shm",
		 "both hosts are on one machine and run as one user", FRAGI_APART_NOT},
		{"auto", 2, "m.1.1.7", "m.1.1.7", "shm",
		 "both hosts are on one machine and run as one user", FRAGI_APART_NOT},
		{"ucx", 2, "m.1.1.7", "m.1.1.7", "ucx", "the graph asks for it", FRAGI_APART_NOT},
		{"shm", 2, "m.1.1.7", "m.1.1.7", "shm", "the graph asks for it", FRAGI_APART_NOT},
		{NULL, 2, "m.1.1.7", "m.1.1.8", "ucx", "the hosts run as two users",
		 FRAGI_APART_NOT},
		{NULL, 2, "m.1.1.7", "m.2.1.7", "ucx", "the hosts are in two network namespaces",
		 FRAGI_APART_NOT},
		{NULL, 2, "m.1.1.7", "n.1.1.7", "ucx", "the hosts are on two machines",
		 FRAGI_APART_NOT},
		{NULL, 2, "m.1.1.7", "", "ucx", "one of the hosts cannot share memory",
		 FRAGI_APART_NOT},
		{NULL, 2, NULL, NULL, "ucx", "one of the hosts cannot share memory",
		 FRAGI_APART_NOT},
		{"shm", 2, "m.1.1.7", "m.1.1.8", "shm", "the graph asks for it", FRAGI_APART_USER},
		{"shm", 2, "m.1.1.7", "n.1.1.7", "shm", "the graph asks for it",
		 FRAGI_APART_MACHINE},
		{"shm", 2, "", "", "shm", "the graph asks for it", FRAGI_APART_UNKNOWN},
		{"ucx", 2, "m.1.1.7", "n.1.1.7", "ucx", "the graph asks for it", FRAGI_APART_NOT},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fragi_fragment_info from = {.host = 1, .memory = cases[i].from};
		const struct fragi_fragment_info to = {.host = cases[i].to_host,
						       .memory = cases[i].to};
		const struct fragi_choice choice =
			fragi_transport_choose(cases[i].edge, &from, &to);

		cr_expect_eq(choice.apart, cases[i].apart, "%zu", i);
		if (cases[i].transport == NULL) {
			cr_expect_null(choice.transport, "%zu", i);
			continue;
		}
		cr_expect_str_eq(choice.transport, cases[i].transport, "%zu", i);
		cr_expect_str_eq(choice.reason, cases[i].reason, "%zu", i);
	}
}

Test(transport_choice, one_transport_shares_memory)
{
	cr_expect(fragi_transport_shares_memory("shm"));
	cr_expect(!fragi_transport_shares_memory("ucx"));
	cr_expect(!fragi_transport_shares_memory("inproc"));
	cr_expect_str_eq(fragi_transport_of_shared_memory(), "shm");
	cr_expect_str_eq(fragi_transport_name(0), "ucx", "it connects any two hosts");
}
