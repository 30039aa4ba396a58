// SPDX-License-Identifier: Apache-2.0
/* What rates and budgets promise, beside what was measured: as a person and a program read it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include <fragctl/promise.h>

#define SECOND UINT64_C(1000000000)

/* What is printed about these operators and flows, or their documents; the caller frees it. */
static char *text_of(const struct fragi_look *look, bool is_json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	struct ctl_json json;

	cr_assert_not_null(out);
	if (is_json) {
		json = ctl_json_begin(out);
		ctl_promises_json(&json, look);
		ctl_json_end(&json);
	} else {
		ctl_promises_print(look, out);
	}
	fclose(out);
	return text;
}

static void expect_text(const struct fragi_look *look, const char *printed, const char *json)
{
	char *text = text_of(look, false);

	cr_expect_str_eq(text, printed, "got:\n%s", text);
	free(text);
	text = text_of(look, true);
	cr_expect_str_eq(text, json, "got:\n%s", text);
	free(text);
}

/*
 * A rate that differs by 20 % or less is as promised, and so is one of which there were too few
 * ticks to be sure.
 */
Test(promise, rates_and_budgets_of_operators)
{
	static const struct {
		uint64_t window_s, ticks, promised_mhz, budget_ms, count, p50_ms;
		const char *printed; /* NULL: nothing is promised */
	} cases[] = {
		{2, 80, 50000, 0, 9, 0, "50 ticks a second, and it had 40"},
		{2, 79, 50000, 0, 9, 0, "50 ticks a second, and it had 39.5, more than 20 % less"},
		{2, 120, 50000, 0, 9, 0, "50 ticks a second, and it had 60"},
		{2, 121, 50000, 0, 9, 0, "50 ticks a second, and it had 60.5, more than 20 % more"},
		{2, 0, 5000, 0, 9, 0, "5 ticks a second, and it had 0, more than 20 % less"},
		{2, 0, 4999, 0, 9, 0, "4.999 ticks a second, and it had 0"},
		{1, 7, 0, 20, 9, 15,
		 "a tick in 20.0 ms, and half of them took 15.0 ms, more than 20 % less"},
		{1, 7, 0, 20, 9, 17, "a tick in 20.0 ms, and half of them took 17.0 ms"},
		{1, 7, 0, 20, 9, 25,
		 "a tick in 20.0 ms, and half of them took 25.0 ms, more than 20 % more"},
		{1, 20, 20000, 30, 1, 28,
		 "20 ticks a second, and it had 20; a tick in 30.0 ms, and half of them took 28.0 ms"},
		{1, 20, 20000, 30, 0, 0, "20 ticks a second, and it had 20"},
		{1, 7, 0, 20, 0, 0, NULL},
		{1, 7, 0, 0, 9, 20, NULL},
		{0, 7, 50000, 20, 9, 20, NULL},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		const struct fragi_look_operator ops[] = {
			{.name = "quiet", .ticks = 3},
			{.name = "f.op",
			 .ticks = cases[i].ticks,
			 .promised_mhz = cases[i].promised_mhz,
			 .budget_ns = cases[i].budget_ms * 1000000,
			 .compute = {.count = cases[i].count, .p50 = cases[i].p50_ms * 1000000}},
		};
		const struct fragi_look look = {.window_ns = cases[i].window_s * SECOND,
						.operators = ops,
						.operator_count = 2};
		char *text = text_of(&look, false), wanted[300] = "";

		if (cases[i].printed != NULL)
			snprintf(wanted, sizeof(wanted), "rates and budgets promise:\n  f.op: %s\n",
				 cases[i].printed);
		cr_expect_str_eq(text, wanted, "%zu: got:\n%swanted:\n%s", i, text, wanted);
		free(text);
	}
}

/*
 * A flow between hosts has the time in which its sender fills it; one within a host, of a sender
 * without a rate, without a message or of an operator that is left out is not listed.
 */
Test(promise, flows_between_hosts)
{
	static const struct fragi_look_operator ops[] = {
		{.name = "a.tx", .host = 0, .ticks = 41, .promised_mhz = 20000},
		{.name = "b.rx",
		 .host = 1,
		 .ticks = 26,
		 .budget_ns = 7000000,
		 .compute = {.count = 2, .p50 = 6000000}},
		{.name = "a.near", .host = 0, .ticks = 3},
	};
	static const struct fragi_look_flow flows[] = {
		{.from = "a.tx.out",
		 .to = "b.rx.in",
		 .sender = 0,
		 .receiver = 1,
		 .capacity = 3,
		 .latency = {.count = 4, .p50 = 150000000}},
		{.from = "a.tx.far",
		 .to = "b.rx.late",
		 .sender = 0,
		 .receiver = 1,
		 .capacity = 1,
		 .latency = {.count = 4, .p50 = 50000001, .error_ns = 2000000}},
		{.from = "a.tx.out",
		 .to = "a.near.in",
		 .sender = 0,
		 .receiver = 2,
		 .capacity = 3,
		 .latency = {.count = 4}},
		{.from = "b.rx.out",
		 .to = "a.tx.in",
		 .sender = 1,
		 .receiver = 0,
		 .capacity = 3,
		 .latency = {.count = 4}},
		{.from = "a.tx.out", .to = "b.rx.in", .sender = 0, .receiver = 1, .capacity = 3},
		{.from = "c.x", .to = "b.y", .sender = 3, .receiver = 1, .latency = {.count = 4}},
		{.from = "a.x", .to = "c.y", .sender = 0, .receiver = 3, .latency = {.count = 4}},
	};
	struct fragi_look look = {
		.window_ns = 2 * SECOND,
		.operators = ops,
		.operator_count = FRAG_COUNT_OF(ops),
		.flows = flows,
		.flow_count = FRAG_COUNT_OF(flows),
	};

	expect_text(
		&look,
		"rates and budgets promise:\n"
		"  a.tx: 20 ticks a second, and it had 20.5\n"
		"  b.rx: a tick in 7.0 ms, and half of them took 6.0 ms\n"
		"  a.tx.out -> b.rx.in: 150 ms until a message is received and its credit is back, and half of them were received after 150 ms\n"
		"  a.tx.far -> b.rx.late: 50.0 ms until a message is received and its credit is back, and half of them were received after 50.0 ms +/- 2.0 ms, which is too late\n",
		"{\"promises\": [{\"operator\": \"a.tx\", \"promised_mhz\": 20000, \"measured_mhz\": 20500, \"budget_ns\": 0, \"compute_p50_ns\": 0},"
		" {\"operator\": \"b.rx\", \"promised_mhz\": 0, \"measured_mhz\": 13000, \"budget_ns\": 7000000, \"compute_p50_ns\": 6000000}],"
		" \"flow_promises\": [{\"from\": \"a.tx.out\", \"to\": \"b.rx.in\", \"allowed_ns\": 150000000, \"latency_p50_ns\": 150000000, \"latency_error_ns\": 0},"
		" {\"from\": \"a.tx.far\", \"to\": \"b.rx.late\", \"allowed_ns\": 50000000, \"latency_p50_ns\": 50000001, \"latency_error_ns\": 2000000}]}\n");
	look.window_ns = 0;
	expect_text(&look, "", "{\"promises\": [], \"flow_promises\": []}\n");
}
