// SPDX-License-Identifier: Apache-2.0
#include <fragctl/table.h>
#include <fragctl/top_lines.h>

#include <inttypes.h>
#include <string.h>

#include <base/units.h>

/* What top writes without a screen: tables, sentences, JSON. */

int ctl_top_print(const struct ctl_top *top, FILE *out)
{
	struct ctl_top_lines body;
	int r = ctl_top_body(top, &body);

	if (r < 0)
		return r;
	for (uint32_t a = 0; a < top->app_count; a++)
		fprintf(out, "%s: %s\n", ctl_top_text(top->apps[a].look.application),
			ctl_top_cause(&top->apps[a]));
	for (uint32_t i = 0; i < body.count && top->app_count > 0; i++)
		fprintf(out, "%s%s\n", body.items[i].is_head ? "\n" : "", body.items[i].text);
	if (top->app_count == 0)
		fputs("no application runs\n", out);
	ctl_top_lines_free(&body);
	return 0;
}

static double a_second(const struct fragi_look *look, uint64_t count)
{
	return look->window_ns > 0 ? (double)count * 1e9 / (double)look->window_ns : 0;
}

static void print_operator(const struct fragi_look *look, const struct fragi_look_operator *op,
			   FILE *out)
{
	static const char *const does[] = {
		[FRAGI_USE_BUSY] = "computes",
		[FRAGI_USE_INPUT] = "waits for messages",
		[FRAGI_USE_ROOM] = "waits for room",
		[FRAGI_USE_MEMORY] = "waits for memory",
		[FRAGI_USE_THREAD] = "waits for a thread",
		[FRAGI_USE_TIME] = "waits for a time",
		[FRAGI_USE_SUSPENDED] = "does not run",
	};
	char text[32], late[CTL_TOP_LATE_SIZE];

	fprintf(out, "Operator %s: %.4g ticks a second", ctl_top_text(op->name),
		a_second(look, op->ticks));
	for (int u = 0; u < FRAGI_USES && look->window_ns > 0; u++)
		if (op->use_ns[u] * 200 >= look->window_ns)
			fprintf(out, ", %s %.0f percent", does[u],
				(double)op->use_ns[u] * 100 / (double)look->window_ns);
	if (op->compute.count > 0)
		fprintf(out, ", half of its ticks below %s",
			fragi_format_duration((int64_t)op->compute.p50, text, sizeof(text)));
	if (ctl_top_late(op, late)[0] != '\0')
		fprintf(out, ", %s", late);
	fprintf(out, "%s.\n", op->has_ended ? ", has ended" : "");
}

static void print_flow(const struct fragi_look *look, const struct fragi_look_flow *flow, FILE *out)
{
	char text[32];
	uint64_t drops = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		drops += flow->dropped[i];
	fprintf(out, "Flow from %s to %s: %.4g messages a second, %" PRIu64 " in flight",
		ctl_top_text(flow->from), ctl_top_text(flow->to), a_second(look, flow->sent),
		flow->depth);
	if (drops > 0)
		fprintf(out, ", %.4g dropped a second", a_second(look, drops));
	if (flow->lost_sum > 0)
		fprintf(out, ", %" PRIu64 " lost", flow->lost_sum);
	if (flow->latency.error_ns > 0) {
		fprintf(out, ", 99 percent within %s",
			fragi_format_duration((int64_t)flow->latency.p99, text, sizeof(text)));
		fprintf(out, " give or take %s",
			fragi_format_duration((int64_t)flow->latency.error_ns, text, sizeof(text)));
	}
	fputs(".\n", out);
}

static void print_pool(const struct fragi_look *look, const struct fragi_look_pool *pool, FILE *out)
{
	char level[100];

	fprintf(out, "Pool %s: %s in use", ctl_top_text(pool->name),
		ctl_top_level(pool, level, sizeof(level)));
	if (pool->empty_ns > 0 && look->window_ns > 0)
		fprintf(out, ", empty %" PRIu64 " percent of the time",
			pool->empty_ns * 100 / look->window_ns);
	if (pool->refused_sum > 0)
		fprintf(out, ", refused %" PRIu64 " times", pool->refused_sum);
	fputs(".\n", out);
}

void ctl_top_print_plain(const struct ctl_top *top, FILE *out)
{
	for (uint32_t a = 0; a < top->app_count; a++) {
		const struct fragi_look *look = &top->apps[a].look;

		fprintf(out, "Application %s is %s: %s.\n", ctl_top_text(look->application),
			ctl_top_text(look->state), ctl_top_cause(&top->apps[a]));
		for (uint32_t i = 0; i < look->operator_count; i++)
			print_operator(look, &look->operators[i], out);
		for (uint32_t i = 0; i < look->flow_count; i++)
			print_flow(look, &look->flows[i], out);
		for (uint32_t i = 0; i < look->pool_count; i++)
			print_pool(look, &look->pools[i], out);
		if (look->operators_left_out + look->flows_left_out > 0)
			fprintf(out, "%u operators and %u flows that do less are left out.\n",
				look->operators_left_out, look->flows_left_out);
	}
	if (top->app_count == 0)
		fputs("No application runs.\n", out);
}

/* --- JSON --- */

#define AT(KIND, TYPE, FIELD) CTL_AT(KIND, fragi_look_##TYPE, FIELD)
#define QUANTILES(TYPE, FIELD, NAME)                                                               \
	{NAME "_p50_ns", AT(CTL_U64, TYPE, FIELD.p50)},                                            \
		{NAME "_p99_ns", AT(CTL_U64, TYPE, FIELD.p99)},                                    \
		{NAME "_p999_ns", AT(CTL_U64, TYPE, FIELD.p999)},                                  \
		{NAME "_max_ns", AT(CTL_U64, TYPE, FIELD.max)},                                    \
	{                                                                                          \
		NAME "_count", AT(CTL_U64, TYPE, FIELD.count)                                      \
	}

/* An index of another table, or null. */
static void index_json(struct ctl_json *json, const char *name, uint32_t index)
{
	if (index == FRAGI_LOOK_NONE)
		ctl_json_text(json, name, NULL);
	else
		ctl_json_unsigned(json, name, index);
}

static void operator_indices(const void *row, struct ctl_json *json)
{
	const struct fragi_look_operator *op = row;

	index_json(json, "host_index", op->host);
	index_json(json, "input_flow_index", op->input_flow);
	index_json(json, "room_flow_index", op->room_flow);
}

static void flow_indices(const void *row, struct ctl_json *json)
{
	const struct fragi_look_flow *flow = row;

	index_json(json, "sender_index", flow->sender);
	index_json(json, "receiver_index", flow->receiver);
}

/* Of causes that there were. */
static void late_json(const void *row, struct ctl_json *json)
{
	const uint64_t *late = ((const struct fragi_look_operator *)row)->late_sums;

	ctl_json_open(json, "late", '{');
	for (int i = 0; i < FRAGI_BLAME_CAUSES; i++)
		if (late[i] > 0)
			ctl_json_unsigned(json, fragi_blame_name((enum fragi_blame_cause)i),
					  late[i]);
	ctl_json_close(json, '}');
}

static void late_places_json(const void *row, struct ctl_json *json)
{
	const struct fragi_look_operator *op = row;

	fragi_late_json(op->late_places, op->late_place_count, ctl_json_value(json, "late_places"));
}

static const struct ctl_column operator_items[] = {
	{"name", AT(CTL_TEXT, operator, name)},
	{"type", AT(CTL_TEXT, operator, type)},
	{"ticks", AT(CTL_U64, operator, ticks)},
#define USE(NAME, name, what) {#name "_ns", AT(CTL_U64, operator, use_ns[FRAGI_USE_##NAME])},
	FRAGI_USE_LIST(USE)
#undef USE
		{"pool", AT(CTL_TEXT, operator, pool)},
	{"promised_mhz", AT(CTL_U64, operator, promised_mhz)},
	{"budget_ns", AT(CTL_U64, operator, budget_ns)},
	{"period_ns", AT(CTL_U64, operator, period_ns)},
	QUANTILES(operator, compute, "compute"),
	{"has_ended", AT(CTL_BOOL, operator, has_ended)},
	{"late", .kind = CTL_ELSE, .write = late_json},
	{"late_places", .kind = CTL_ELSE, .write = late_places_json},
	{"host_index", .kind = CTL_ELSE, .write = operator_indices},
};
static const struct ctl_columns operators = CTL_COLUMNS(operator_items, fragi_look_operator);

static const struct ctl_column flow_items[] = {
	{"from", AT(CTL_TEXT, flow, from)},
	{"to", AT(CTL_TEXT, flow, to)},
	{"edge", AT(CTL_TEXT, flow, edge)},
	{"policy", AT(CTL_TEXT, flow, policy)},
	{"capacity_messages", AT(CTL_U32, flow, capacity)},
	{"sent", AT(CTL_U64, flow, sent)},
	{"delivered", AT(CTL_U64, flow, delivered)},
	{"lost", AT(CTL_U64, flow, lost)},
	{"bytes", AT(CTL_U64, flow, bytes)},
#define DROP(NAME, name, when) {"dropped_" #name, AT(CTL_U64, flow, dropped[FRAGI_DROP_##NAME])},
	FRAGI_DROP_LIST(DROP)
#undef DROP
		{"full_ns", AT(CTL_U64, flow, full_ns)},
	{"depth_messages", AT(CTL_U64, flow, depth)},
	{"sent_sum", AT(CTL_U64, flow, sent_sum)},
	{"delivered_sum", AT(CTL_U64, flow, delivered_sum)},
	{"dropped_sum", AT(CTL_U64, flow, dropped_sum)},
	{"lost_sum", AT(CTL_U64, flow, lost_sum)},
	QUANTILES(flow, latency, "latency"),
	{"latency_error_ns", AT(CTL_U64, flow, latency.error_ns)},
	{"sender_index", .kind = CTL_ELSE, .write = flow_indices},
};
static const struct ctl_columns flows = CTL_COLUMNS(flow_items, fragi_look_flow);

static const struct ctl_column host_items[] = {
	{"name", AT(CTL_TEXT, host, name)},
	{"worker", AT(CTL_TEXT, host, worker)},
	{"pid", AT(CTL_I64, host, pid)},
	{"epoch", AT(CTL_U64, host, epoch)},
	{"restarts", AT(CTL_U32, host, restarts)},
	{"threads", AT(CTL_U32, host, threads)},
	{"cores", AT(CTL_U32, host, cores)},
	{"cpu_ns", AT(CTL_U64, host, cpu_ns)},
	{"starved_ns", AT(CTL_U64, host, starved_ns)},
	{"io_ns", AT(CTL_U64, host, io_ns)},
	{"rss_bytes", AT(CTL_U64, host, rss_bytes)},
	{"major_faults", AT(CTL_U64, host, major_faults)},
	{"suspended_because", AT(CTL_TEXT, host, suspended_because)},
};
static const struct ctl_columns hosts = CTL_COLUMNS(host_items, fragi_look_host);

static void pool_indices(const void *row, struct ctl_json *json)
{
	const struct fragi_look_pool *pool = row;

	index_json(json, "host_index", pool->host);
}

static const struct ctl_column pool_items[] = {
	{"name", AT(CTL_TEXT, pool, name)},
	{"blocks", AT(CTL_U64, pool, blocks)},
	{"block_bytes", AT(CTL_U64, pool, block_bytes)},
	{"used_blocks", AT(CTL_U64, pool, used)},
	{"empty_ns", AT(CTL_U64, pool, empty_ns)},
	{"refused_sum", AT(CTL_U64, pool, refused_sum)},
	{"host_index", .kind = CTL_ELSE, .write = pool_indices},
};
static const struct ctl_columns pools = CTL_COLUMNS(pool_items, fragi_look_pool);

static const struct ctl_column worker_items[] = {
	{"name", AT(CTL_TEXT, worker, name)},
	{"cores", AT(CTL_U32, worker, cores)},
	{"cpu_ns", AT(CTL_U64, worker, cpu_ns)},
	{"memory_bytes", AT(CTL_U64, worker, memory_bytes)},
	{"memory_used_bytes", AT(CTL_U64, worker, memory_used_bytes)},
	{"received_bytes", AT(CTL_U64, worker, received_bytes)},
	{"sent_bytes", AT(CTL_U64, worker, sent_bytes)},
	{"gpus", AT(CTL_U64, worker, gpus)},
	{"gpu_busy_permille", AT(CTL_U64, worker, gpu_busy_permille)},
	{"gpu_memory_bytes", AT(CTL_U64, worker, gpu_memory_bytes)},
	{"gpu_memory_used_bytes", AT(CTL_U64, worker, gpu_memory_used_bytes)},
};
static const struct ctl_columns workers = CTL_COLUMNS(worker_items, fragi_look_worker);

/* The name of a row of another table; NULL: there is none. */
#define NAME_AT(table, count, index) ((index) < (count) ? (table)[index].name : NULL)

void ctl_top_json_cause(struct ctl_json *json, const struct ctl_top_app *app)
{
	const struct fragi_cause *cause = &app->cause;
	const struct fragi_look *look = &app->look;

	ctl_json_open(json, "cause", '{');
	ctl_json_text(json, "kind", fragi_cause_name(cause->kind));
	ctl_json_text(json, "sentence", ctl_top_cause(app));
	ctl_json_text(json, "operator", NAME_AT(look->operators, look->operator_count, cause->op));
	ctl_json_text(json, "from",
		      cause->flow < look->flow_count ? look->flows[cause->flow].from : NULL);
	ctl_json_text(json, "to",
		      cause->flow < look->flow_count ? look->flows[cause->flow].to : NULL);
	ctl_json_text(json, "host", NAME_AT(look->hosts, look->host_count, cause->host));
	ctl_json_text(json, "help", cause->help);
	ctl_json_open(json, "chain", '[');
	for (uint32_t i = 0; i < cause->chain_count; i++)
		ctl_json_text(json, NULL, cause->chain[i].text);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

void ctl_top_print_json(const struct ctl_top *top, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_json_open(&json, "applications", '[');
	for (uint32_t a = 0; a < top->app_count; a++) {
		const struct fragi_look *look = &top->apps[a].look;

		ctl_json_open(&json, NULL, '{');
		ctl_json_text(&json, "application", look->application);
		ctl_json_text(&json, "state", look->state);
		ctl_json_number(&json, "unix_ns", look->unix_ns);
		ctl_json_unsigned(&json, "window_ns", look->window_ns);
		ctl_top_json_cause(&json, &top->apps[a]);
		ctl_rows_json(&json, "operators", &operators, look->operators,
			      look->operator_count);
		ctl_rows_json(&json, "flows", &flows, look->flows, look->flow_count);
		ctl_rows_json(&json, "hosts", &hosts, look->hosts, look->host_count);
		ctl_rows_json(&json, "workers", &workers, look->workers, look->worker_count);
		ctl_rows_json(&json, "pools", &pools, look->pools, look->pool_count);
		ctl_json_unsigned(&json, "operators_left_out", look->operators_left_out);
		ctl_json_unsigned(&json, "flows_left_out", look->flows_left_out);
		ctl_json_close(&json, '}');
	}
	ctl_json_close(&json, ']');
	ctl_json_end(&json);
}
