// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <fragctl/promise.h>
#include <fragctl/service.h>
#include <fragctl/table.h>
#include <fragctl/top_window.h>

/*
 * `fragctl explain APP [FRAGMENT|FLOW]` shows what makes an application slow, why fragments run
 * where they do, or nowhere, why other workers were not chosen, and how flows travel.
 */
struct explaining {
	struct ctl_driver driver;
	bool json, no_wait;
	struct ctl_top_window window; /* of one second; empty: not measured */
};

static void print_cause(const struct ctl_top_app *app)
{
	printf("root cause: %s\n", ctl_top_cause(app));
	for (uint32_t i = 0; i < app->cause.chain_count; i++)
		printf("  %s\n", app->cause.chain[i].text);
	if (app->cause.help != NULL && app->cause.kind > FRAGI_CAUSE_UNMEASURED)
		printf("what would help: %s\n", app->cause.help);
}

static void print_placement(const struct fw_placement_row *row)
{
	printf("%s: %s%s\n", row->fragment, row->worker[0] != '\0' ? "worker " : "no worker",
	       row->worker);
	if (row->required[0] != '\0')
		printf("  requires %s\n", row->required);
	printf("  %s\n", row->reason);
	if (row->no_limits[0] != '\0')
		printf("  limits: %s\n", row->no_limits);
	for (uint32_t i = 0; i < row->other_count; i++)
		printf("  not %s: %s\n", row->others[i].worker, row->others[i].reason);
	if (row->others_beyond > 0)
		printf("  and %u workers more\n", row->others_beyond);
}

static void print_all(const struct fw_explanation *all, const struct ctl_top_window *window)
{
	printf("%s: %s\n", all->name, all->state);
	if (window->count > 0) {
		print_cause(&window->apps[0]);
		ctl_promises_print(&window->apps[0].look, stdout);
	}
	for (uint32_t i = 0; i < all->placement_count; i++)
		print_placement(&all->placements[i]);
	for (uint32_t i = 0; i < all->route_count; i++) {
		const struct fw_route_row *row = &all->routes[i];

		printf("%s -> %s: %s%s%s%s\n", row->from, row->to, row->edge,
		       row->encrypted ? ", encrypted" : "", row->edge[0] != '\0' ? ": " : "",
		       row->reason);
	}
	if (all->more > 0)
		printf("and %u rows more; name a fragment or a flow to see it\n", all->more);
}

static const struct ctl_column other_items[] = {
	{"worker", CTL_AT(CTL_TEXT, fw_other_row, worker)},
	{"fits", CTL_AT(CTL_BOOL, fw_other_row, fits)},
	{"reason", CTL_AT(CTL_TEXT, fw_other_row, reason)},
};
static const struct ctl_columns others = CTL_COLUMNS(other_items, fw_other_row);

static const struct ctl_column placement_items[] = {
	{"fragment", CTL_AT(CTL_TEXT, fw_placement_row, fragment)},
	{"worker", CTL_AT(CTL_OPTIONAL, fw_placement_row, worker)},
	{"requires", CTL_AT(CTL_OPTIONAL, fw_placement_row, required)},
	{"reason", CTL_AT(CTL_TEXT, fw_placement_row, reason)},
	{"limits", CTL_AT(CTL_OPTIONAL, fw_placement_row, no_limits)},
	{"others", CTL_AT(CTL_ROWS, fw_placement_row, others), .rows = &others,
	 .count_offset = offsetof(struct fw_placement_row, other_count)},
	{"others_left_out", CTL_AT(CTL_U32, fw_placement_row, others_beyond)},
};
static const struct ctl_columns placements = CTL_COLUMNS(placement_items, fw_placement_row);

static const struct ctl_column route_items[] = {
	{"from", CTL_AT(CTL_TEXT, fw_route_row, from)},
	{"to", CTL_AT(CTL_TEXT, fw_route_row, to)},
	{"edge", CTL_AT(CTL_OPTIONAL, fw_route_row, edge)},
	{"encrypted", CTL_AT(CTL_BOOL, fw_route_row, encrypted)},
	{"reason", CTL_AT(CTL_TEXT, fw_route_row, reason)},
};
static const struct ctl_columns routes = CTL_COLUMNS(route_items, fw_route_row);

static const struct ctl_column explanation_items[] = {
	{"application", CTL_AT(CTL_TEXT, fw_explanation, name)},
	{"state", CTL_AT(CTL_TEXT, fw_explanation, state)},
	{"placements", CTL_AT(CTL_ROWS, fw_explanation, placements), .rows = &placements,
	 .count_offset = offsetof(struct fw_explanation, placement_count)},
	{"flows", CTL_AT(CTL_ROWS, fw_explanation, routes), .rows = &routes,
	 .count_offset = offsetof(struct fw_explanation, route_count)},
	{"left_out", CTL_AT(CTL_U32, fw_explanation, more)},
};
static const struct ctl_columns explanation = CTL_COLUMNS(explanation_items, fw_explanation);

/* The root cause stands before the rows of placement. */
static void print_json(const struct fw_explanation *all, const struct ctl_top_window *window)
{
	struct ctl_json json = ctl_json_begin(stdout);

	if (window->count > 0) {
		ctl_top_json_cause(&json, &window->apps[0]);
		ctl_promises_json(&json, &window->apps[0].look);
	}
	ctl_row_members(&json, &explanation, all);
	ctl_json_end(&json);
}

static int explain(struct explaining *e, const char *name, const char *what)
{
	struct fw_message question = {.kind = FW_EXPLAIN, .explain = {name, what}}, *answer;
	int code = ctl_driver_open_any(&e->driver);

	if (code == CTL_OK)
		code = ctl_service_ask(&e->driver, &question, FW_EXPLANATION, e->json, &answer);
	if (code != CTL_OK)
		return code;
	if (what[0] == '\0' && e->no_wait)
		code = ctl_top_window_unmeasured(&e->driver, name, &e->window);
	else if (what[0] == '\0')
		code = ctl_top_window_next(&e->driver, name, 0, true, true, &e->window);
	if (code == CTL_OK && e->json)
		print_json(&answer->explanation, &e->window);
	else if (code == CTL_OK)
		print_all(&answer->explanation, &e->window);
	fw_message_free(answer);
	ctl_top_window_free(&e->window);
	return code;
}

int ctl_explain(int argc, char **argv)
{
	struct explaining e = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0}, one;
	const char *output = NULL, *name, *what = "";
	const struct fragi_flag table[] = {
		CTL_NO_WAIT_FLAG(e.no_wait),
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(e.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl explain",
		.usage = "NAME [FRAGMENT|FLOW] [flags]",
		.headline =
			"Shows what makes an application slow, why its fragments run where they do, or nowhere, and how its flows travel. A FLOW is one of its ends, as f1.tx, or \"f1.tx.out -> f2.rx.in\".",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		one = operands;
		if (operands.count == 2) {
			what = operands.items[1];
			one.count = 1;
		}
		code = ctl_output(output, &e.json) ? ctl_one_name(&one, flags.program, false, &name)
						   : CTL_USAGE;
		if (code == CTL_OK)
			code = explain(&e, name, what);
	}
	ctl_driver_close(&e.driver);
	fragi_texts_fini(&operands);
	return code;
}
