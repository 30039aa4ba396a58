// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* strcasestr, qsort_r */
#include <fragctl/top_opened.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <base/units.h>

#define NAME_MIN 12
#define NAME_WIDE 28 /* of names, where the width is free, unless they are longer */
#define BAR 8
#define CAUSE_LINES 3 /* of a screen, at most */
#define KEYS "q quit  up/down move  Enter open  / filter  s sort  space pause  Tab next part"
#define KEYS_OPENED "q back  up/down move  e set a parameter  space pause"

static void rate(struct ctl_top_drawing *d, uint32_t width, const struct fragi_look *look,
		 uint64_t count)
{
	double a_second = look->window_ns > 0 ? (double)count * 1e9 / (double)look->window_ns : 0;

	if (look->window_ns == 0)
		ctl_top_cell(d, "-", width, true);
	else if (a_second < 100 && count > 0)
		ctl_top_number(d, width, "%.1f", a_second);
	else
		ctl_top_number(d, width, "%.0f", a_second);
}

static void percent(struct ctl_top_drawing *d, uint32_t width, const struct fragi_look *look,
		    uint64_t ns)
{
	if (look->window_ns == 0)
		ctl_top_cell(d, "-", width, true);
	else
		ctl_top_number(d, width, "%.0f", (double)ns * 100 / (double)look->window_ns);
}

static void duration(struct ctl_top_drawing *d, uint32_t width, uint64_t count, uint64_t ns)
{
	char text[32];

	ctl_top_cell(d, count > 0 ? fragi_format_duration((int64_t)ns, text, sizeof(text)) : "-",
		     width, true);
}

static bool contains(const char *text, const char *part)
{
	return part == NULL || part[0] == '\0' || strcasestr(text, part) != NULL;
}

static uint64_t dropped(const struct fragi_look_flow *flow)
{
	uint64_t sum = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sum += flow->dropped[i];
	return sum;
}

struct sorting {
	const struct ctl_top *top;
	const struct fragi_look *look;
};

static int by_number(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int compare_operators(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct fragi_look_operator *x = &s->look->operators[i], *y = &s->look->operators[k];
	int order = 0;

	if (s->top->order == CTL_TOP_BUSY)
		order = by_number(x->use_ns[FRAGI_USE_BUSY], y->use_ns[FRAGI_USE_BUSY]);
	else if (s->top->order == CTL_TOP_RATE)
		order = by_number(x->ticks, y->ticks);
	else if (s->top->order == CTL_TOP_P99)
		order = by_number(x->compute.p99, y->compute.p99);
	else if (s->top->order == CTL_TOP_NAME)
		order = strcmp(ctl_top_text(x->name), ctl_top_text(y->name));
	return order != 0 ? order : i < k ? -1 : i > k;
}

static int compare_flows(const void *a, const void *b, void *context)
{
	const struct sorting *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct fragi_look_flow *x = &s->look->flows[i], *y = &s->look->flows[k];
	int order = 0;

	if (s->top->order == CTL_TOP_BUSY)
		order = by_number(x->full_ns, y->full_ns);
	else if (s->top->order == CTL_TOP_RATE)
		order = by_number(x->sent, y->sent);
	else if (s->top->order == CTL_TOP_P99)
		order = by_number(x->latency.p99, y->latency.p99);
	else if (s->top->order == CTL_TOP_NAME)
		order = strcmp(ctl_top_text(x->from), ctl_top_text(y->from));
	return order != 0 ? order : i < k ? -1 : i > k;
}

/* Indices in the order that was chosen. NULL: memory is short, or there are none. */
static uint32_t *sorted(struct ctl_top_drawing *d, const struct fragi_look *look, uint32_t count,
			int (*compare)(const void *, const void *, void *))
{
	struct sorting sorting = {d->top, look};
	uint32_t *order = count > 0 ? malloc(count * sizeof(*order)) : NULL;

	if (order == NULL) {
		d->is_short |= count > 0;
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	if (d->top->order != CTL_TOP_GRAPH)
		qsort_r(order, count, sizeof(*order), compare, &sorting);
	return order;
}

/* Of the first column: what the others, which take so many, leave of the screen. */
static uint32_t name_width(const struct ctl_top_drawing *d, uint32_t others, uint32_t longest)
{
	if (d->top->width == 0)
		return longest > NAME_WIDE ? longest : NAME_WIDE;
	return d->top->width > others + NAME_MIN ? d->top->width - others : NAME_MIN;
}

static void head(struct ctl_top_drawing *d, const char *name, uint32_t width, const char *others)
{
	ctl_top_cell(d, name, width, false);
	fputs(others, d->out);
	ctl_top_line(d, CTL_TOP_HEAD, FRAGI_LOOK_NONE, FRAGI_LOOK_NONE);
	if (d->count > 0)
		d->items[d->count - 1].is_head = true;
}

static const char *flow_text(const struct fragi_look_flow *flow, char *out, size_t size)
{
	snprintf(out, size, "%s -> %s", ctl_top_text(flow->from), ctl_top_text(flow->to));
	return out;
}

static void draw_applications(struct ctl_top_drawing *d)
{
	uint32_t longest = 0, width;

	for (uint32_t a = 0; a < d->top->app_count; a++)
		if (ctl_top_width(ctl_top_text(d->top->apps[a].look.application)) > longest)
			longest = ctl_top_width(ctl_top_text(d->top->apps[a].look.application));
	width = name_width(d, 56, longest);
	head(d, "APPLICATION", width, " STATE         OPERATORS  TICKS/S   SENT/S  DROP/S  LOST");
	for (uint32_t a = 0; a < d->top->app_count; a++) {
		const struct fragi_look *look = &d->top->apps[a].look;
		uint64_t ticks = 0, sent = 0, drops = 0, lost = 0;

		for (uint32_t i = 0; i < look->operator_count; i++)
			ticks += look->operators[i].ticks;
		for (uint32_t i = 0; i < look->flow_count; i++) {
			sent += look->flows[i].sent;
			drops += dropped(&look->flows[i]);
			lost += look->flows[i].lost_sum;
		}
		ctl_top_cell(d, ctl_top_text(look->application), width, false);
		ctl_top_cell(d, ctl_top_text(look->state), 12, false);
		ctl_top_number(d, 10, "%u", look->operator_count + look->operators_left_out);
		rate(d, 8, look, ticks);
		rate(d, 8, look, sent);
		rate(d, 7, look, drops);
		ctl_top_number(d, 5, "%" PRIu64, lost);
		ctl_top_line(d,
			     d->top->apps[a].cause.kind > FRAGI_CAUSE_UNMEASURED ? CTL_TOP_WRONG
										 : CTL_TOP_NORMAL,
			     a, FRAGI_LOOK_NONE);
	}
}

static void draw_operator(struct ctl_top_drawing *d, uint32_t a, uint32_t i, uint32_t width)
{
	const struct ctl_top_app *app = &d->top->apps[a];
	const struct fragi_look_operator *op = &app->look.operators[i];
	bool is_wrong = app->cause.kind > FRAGI_CAUSE_UNMEASURED && app->cause.op == i;
	char name[300], late[CTL_TOP_LATE_SIZE];

	snprintf(name, sizeof(name), "%s%s", is_wrong ? "!" : " ", ctl_top_text(op->name));
	ctl_top_cell(d, name, width, false);
	rate(d, 7, &app->look, op->ticks);
	percent(d, 4, &app->look, op->use_ns[FRAGI_USE_BUSY]);
	percent(d, 3, &app->look, op->use_ns[FRAGI_USE_INPUT]);
	percent(d, 4, &app->look, op->use_ns[FRAGI_USE_ROOM]);
	percent(d, 3, &app->look, op->use_ns[FRAGI_USE_MEMORY]);
	percent(d, 3, &app->look, op->use_ns[FRAGI_USE_THREAD]);
	percent(d, 4, &app->look, op->use_ns[FRAGI_USE_TIME]);
	percent(d, 3, &app->look, op->use_ns[FRAGI_USE_SUSPENDED]);
	duration(d, 7, op->compute.count, op->compute.p50);
	duration(d, 7, op->compute.count, op->compute.p99);
	ctl_top_line(d, is_wrong ? CTL_TOP_WRONG : CTL_TOP_NORMAL, a, i);
	if (ctl_top_late(op, late)[0] != '\0')
		ctl_top_put(d, CTL_TOP_NORMAL, "    %s", late);
}

static void left_out(struct ctl_top_drawing *d, uint32_t count, const char *what)
{
	if (count > 0)
		ctl_top_put(d, CTL_TOP_NORMAL, " and %u %s more, which do less", count, what);
}

static void draw_operators(struct ctl_top_drawing *d, uint32_t a)
{
	const struct fragi_look *look = &d->top->apps[a].look;
	uint32_t *order = sorted(d, look, look->operator_count, compare_operators), longest = 0;
	uint32_t width;

	for (uint32_t i = 0; i < look->operator_count; i++)
		if (ctl_top_width(ctl_top_text(look->operators[i].name)) + 1 > longest)
			longest = ctl_top_width(ctl_top_text(look->operators[i].name)) + 1;
	width = name_width(d, 55, longest);
	head(d, d->top->app_count > 1 ? ctl_top_text(look->application) : " OPERATOR", width,
	     "  TICK/S BUSY  IN ROOM MEM THR TIME OFF     P50     P99");
	for (uint32_t i = 0; order != NULL && i < look->operator_count; i++)
		if (contains(ctl_top_text(look->operators[order[i]].name), d->top->filter))
			draw_operator(d, a, order[i], width);
	left_out(d, look->operators_left_out, "operators");
	free(order);
}

static void draw_flow(struct ctl_top_drawing *d, uint32_t a, uint32_t i, uint32_t width,
		      bool has_bounds)
{
	const struct ctl_top_app *app = &d->top->apps[a];
	const struct fragi_look_flow *flow = &app->look.flows[i];
	bool is_wrong = app->cause.kind > FRAGI_CAUSE_UNMEASURED && app->cause.flow == i;
	char name[600], bar[BAR + 3];
	uint64_t full = app->look.window_ns > 0 ? flow->full_ns * BAR / app->look.window_ns : 0;

	name[0] = is_wrong ? '!' : ' ';
	flow_text(flow, name + 1, sizeof(name) - 1);
	bar[0] = '[';
	for (uint64_t k = 0; k < BAR; k++)
		bar[k + 1] = k < full ? '#' : ' ';
	bar[BAR + 1] = ']';
	bar[BAR + 2] = '\0';
	ctl_top_cell(d, name, width, false);
	rate(d, 7, &app->look, flow->sent);
	ctl_top_cell(d, bar, BAR + 2, false);
	ctl_top_number(d, 5, "%" PRIu64, flow->depth);
	rate(d, 6, &app->look, dropped(flow));
	ctl_top_number(d, 4, "%" PRIu64, flow->lost_sum);
	duration(d, 7, flow->latency.count, flow->latency.p99);
	if (has_bounds)
		duration(d, 7, flow->latency.error_ns, flow->latency.error_ns);
	ctl_top_line(d, is_wrong ? CTL_TOP_WRONG : CTL_TOP_NORMAL, a, FRAGI_LOOK_NONE);
}

static void draw_flows(struct ctl_top_drawing *d, uint32_t a)
{
	const struct fragi_look *look = &d->top->apps[a].look;
	uint32_t *order = sorted(d, look, look->flow_count, compare_flows), longest = 0, width;
	char name[600];
	bool has_bounds = false; /* two clocks have measured a latency */

	for (uint32_t i = 0; i < look->flow_count; i++) {
		uint32_t has = ctl_top_width(flow_text(&look->flows[i], name, sizeof(name))) + 1;

		has_bounds |= look->flows[i].latency.error_ns != 0;
		if (has > longest)
			longest = has;
	}
	width = name_width(d, has_bounds ? 53 : 45, longest);
	head(d, " FLOW", width,
	     has_bounds ? "  SENT/S       FULL DEPTH DROP/S LOST     P99     +/-"
			: "  SENT/S       FULL DEPTH DROP/S LOST     P99");
	for (uint32_t i = 0; order != NULL && i < look->flow_count; i++)
		if (contains(flow_text(&look->flows[order[i]], name, sizeof(name)), d->top->filter))
			draw_flow(d, a, order[i], width, has_bounds);
	left_out(d, look->flows_left_out, "flows");
	free(order);
}

static void draw_pools(struct ctl_top_drawing *d, const struct fragi_look *look, uint32_t host)
{
	char level[100];

	for (uint32_t i = 0; i < look->pool_count; i++) {
		const struct fragi_look_pool *pool = &look->pools[i];
		uint64_t window = look->window_ns > 0 ? look->window_ns : 1;

		if (pool->host == host)
			ctl_top_put(d, CTL_TOP_NORMAL,
				    "   pool %s: %s in use, empty %" PRIu64 " %%, refused %" PRIu64,
				    ctl_top_text(pool->name),
				    ctl_top_level(pool, level, sizeof(level)),
				    pool->empty_ns * 100 / window, pool->refused_sum);
	}
}

static void draw_hosts(struct ctl_top_drawing *d, uint32_t a)
{
	const struct ctl_top_app *app = &d->top->apps[a];
	uint32_t width = name_width(d, 61, 0);
	char text[32];

	head(d, " HOST", width, " WORKER            PID THREADS CPU% LATE%  DISK%     RSS REST");
	for (uint32_t i = 0; i < app->look.host_count; i++) {
		const struct fragi_look_host *host = &app->look.hosts[i];
		bool is_wrong = app->cause.kind > FRAGI_CAUSE_UNMEASURED && app->cause.host == i;
		char name[300];

		snprintf(name, sizeof(name), "%s%s", is_wrong ? "!" : " ",
			 ctl_top_text(host->name));
		if (!contains(name, d->top->filter))
			continue;
		ctl_top_cell(d, name, width, false);
		ctl_top_cell(d, ctl_top_text(host->worker), 12, false);
		ctl_top_number(d, 8, "%" PRId64, host->pid);
		ctl_top_number(d, 7, "%u", host->threads);
		percent(d, 4, &app->look, host->cpu_ns);
		percent(d, 5, &app->look, host->starved_ns);
		percent(d, 6, &app->look, host->io_ns);
		ctl_top_cell(d, ctl_top_size(host->rss_bytes, text, sizeof(text)), 7, true);
		ctl_top_number(d, 4, "%u", host->restarts);
		ctl_top_line(d, is_wrong ? CTL_TOP_WRONG : CTL_TOP_NORMAL, a, FRAGI_LOOK_NONE);
		draw_pools(d, &app->look, i);
	}
}

/* Those of an application; each of them once, since applications share them. */
static bool was_shown(const struct ctl_top *top, uint32_t app, uint32_t worker)
{
	const char *name = ctl_top_text(top->apps[app].look.workers[worker].name);

	for (uint32_t a = 0; a < app; a++)
		for (uint32_t i = 0; i < top->apps[a].look.worker_count; i++)
			if (strcmp(ctl_top_text(top->apps[a].look.workers[i].name), name) == 0)
				return true;
	return false;
}

static void draw_gpus(struct ctl_top_drawing *d, const struct fragi_look_worker *worker)
{
	char used[32], all[32];

	if (worker->gpus > 0)
		ctl_top_put(d, CTL_TOP_NORMAL, "   %" PRIu64 " GPU%s %.0f %% busy, %s of %s",
			    worker->gpus, worker->gpus == 1 ? "" : "s",
			    (double)worker->gpu_busy_permille / 10,
			    ctl_top_size(worker->gpu_memory_used_bytes, used, sizeof(used)),
			    ctl_top_size(worker->gpu_memory_bytes, all, sizeof(all)));
}

static void draw_workers(struct ctl_top_drawing *d)
{
	uint32_t width = name_width(d, 52, 0);
	char used[32], all[32], text[80];

	head(d, " WORKER", width, " CORES  CPU%              MEMORY      IN/S     OUT/S");
	for (uint32_t a = 0; a < d->top->app_count; a++) {
		const struct fragi_look *look = &d->top->apps[a].look;

		for (uint32_t i = 0; i < look->worker_count; i++) {
			const struct fragi_look_worker *worker = &look->workers[i];
			uint64_t window = look->window_ns > 0 ? look->window_ns : 1000000000;

			if (was_shown(d->top, a, i) ||
			    !contains(ctl_top_text(worker->name), d->top->filter))
				continue;
			snprintf(text, sizeof(text), " %s", ctl_top_text(worker->name));
			ctl_top_cell(d, text, width, false);
			ctl_top_number(d, 5, "%u", worker->cores);
			percent(d, 5, look,
				worker->cpu_ns / (worker->cores > 0 ? worker->cores : 1));
			snprintf(text, sizeof(text), "%s of %s",
				 ctl_top_size(worker->memory_used_bytes, used, sizeof(used)),
				 ctl_top_size(worker->memory_bytes, all, sizeof(all)));
			ctl_top_cell(d, text, 19, true);
			ctl_top_cell(
				d,
				ctl_top_size(worker->received_bytes * 1000000 / (window / 1000),
					     text, sizeof(text)),
				9, true);
			ctl_top_cell(d,
				     ctl_top_size(worker->sent_bytes * 1000000 / (window / 1000),
						  text, sizeof(text)),
				     9, true);
			ctl_top_line(d, CTL_TOP_NORMAL, FRAGI_LOOK_NONE, FRAGI_LOOK_NONE);
			draw_gpus(d, worker);
		}
	}
}

/* --- an operator that is opened --- */

static void draw_use(struct ctl_top_drawing *d, const struct fragi_look *look,
		     const struct fragi_look_operator *op, enum fragi_use use, const char *name)
{
	char bar[33];
	uint64_t ns = op->use_ns[use], window = look->window_ns > 0 ? look->window_ns : 1;
	uint64_t marks = ns >= window ? 32 : ns * 32 / window;
	uint32_t flow = use == FRAGI_USE_INPUT ? op->input_flow : FRAGI_LOOK_NONE;
	char of[700] = "", text[600];

	if (use == FRAGI_USE_ROOM)
		flow = op->room_flow;
	if (ns > 0 && flow < look->flow_count)
		snprintf(of, sizeof(of), "  %s", flow_text(&look->flows[flow], text, sizeof(text)));
	if (ns > 0 && use == FRAGI_USE_MEMORY && op->pool != NULL)
		snprintf(of, sizeof(of), "  %s", op->pool);
	for (uint64_t i = 0; i < 32; i++)
		bar[i] = i < marks ? '#' : '.';
	bar[32] = '\0';
	ctl_top_put(d, CTL_TOP_NORMAL, "  %-9s %5.1f %% %s%s", name,
		    (double)ns * 100 / (double)window, bar, of);
}

static void draw_opened(struct ctl_top_drawing *d)
{
	const struct ctl_top_app *app = &d->top->apps[d->top->app];
	const struct fragi_look *look = &app->look;
	const struct fragi_look_operator *op = &look->operators[d->top->op];
	const struct fragi_quantiles *q = &op->compute;
	char p[5][32], text[600], rates[80] = "", late[CTL_TOP_LATE_SIZE];

	ctl_top_put(d, CTL_TOP_HEAD, "%s, a %s of %s", ctl_top_text(op->name),
		    ctl_top_text(op->type), ctl_top_text(look->application));
	if (op->host < look->host_count)
		ctl_top_put(d, CTL_TOP_NORMAL, "  host %s, process %" PRId64 "%s%s",
			    ctl_top_text(look->hosts[op->host].name), look->hosts[op->host].pid,
			    look->hosts[op->host].worker != NULL ? ", worker " : "",
			    ctl_top_text(look->hosts[op->host].worker));
	if (op->promised_mhz > 0)
		snprintf(rates, sizeof(rates), ", promised %.4g", (double)op->promised_mhz / 1000);
	if (op->period_ns > 0)
		snprintf(rates + strlen(rates), sizeof(rates) - strlen(rates), ", period %s",
			 fragi_format_duration((int64_t)op->period_ns, text, sizeof(text)));
	ctl_top_put(d, CTL_TOP_NORMAL, "  ticks a second: %.4g%s%s",
		    look->window_ns > 0 ? (double)op->ticks * 1e9 / (double)look->window_ns : 0,
		    rates, op->has_ended ? ", has ended" : "");
	if (q->count > 0)
		ctl_top_put(d, CTL_TOP_NORMAL,
			    "  a tick since its start: p50 %s  p99 %s  p99.9 %s  max %s%s%s",
			    fragi_format_duration((int64_t)q->p50, p[0], sizeof(p[0])),
			    fragi_format_duration((int64_t)q->p99, p[1], sizeof(p[1])),
			    fragi_format_duration((int64_t)q->p999, p[2], sizeof(p[2])),
			    fragi_format_duration((int64_t)q->max, p[3], sizeof(p[3])),
			    op->budget_ns > 0 ? "  budget " : "",
			    op->budget_ns > 0 ? fragi_format_duration((int64_t)op->budget_ns, p[4],
								      sizeof(p[4]))
					      : "");
	if (ctl_top_late(op, late)[0] != '\0')
		ctl_top_wrap(d, CTL_TOP_NORMAL, CAUSE_LINES, late);
	ctl_top_put(d, CTL_TOP_HEAD, "TIME");
#define USE(NAME, name, what) draw_use(d, look, op, FRAGI_USE_##NAME, #name);
	FRAGI_USE_LIST(USE)
#undef USE
	ctl_top_put(d, CTL_TOP_HEAD, "FLOWS");
	for (uint32_t i = 0; i < look->flow_count; i++)
		if (look->flows[i].sender == d->top->op || look->flows[i].receiver == d->top->op)
			ctl_top_put(d, CTL_TOP_NORMAL,
				    "  %s: %s, %s, capacity %u, %" PRIu64 " in flight, %" PRIu64
				    " dropped",
				    flow_text(&look->flows[i], text, sizeof(text)),
				    ctl_top_text(look->flows[i].edge),
				    ctl_top_text(look->flows[i].policy), look->flows[i].capacity,
				    look->flows[i].depth, look->flows[i].dropped_sum);
	if (d->top->opened != NULL)
		ctl_top_opened_draw(d, d->top->opened);
	if (app->cause.kind <= FRAGI_CAUSE_UNMEASURED)
		return;
	ctl_top_put(d, CTL_TOP_HEAD, "ROOT CAUSE");
	for (uint32_t i = 0; i < app->cause.chain_count; i++)
		ctl_top_wrap(d, CTL_TOP_NORMAL, 3, ctl_top_text(app->cause.chain[i].text));
	if (app->cause.help != NULL)
		ctl_top_wrap(d, CTL_TOP_NORMAL, 4, app->cause.help);
}

static bool is_opened(const struct ctl_top *top)
{
	return top->op != FRAGI_LOOK_NONE && top->app < top->app_count &&
	       top->op < top->apps[top->app].look.operator_count;
}

int ctl_top_body(const struct ctl_top *top, struct ctl_top_lines *out)
{
	struct ctl_top_drawing d;
	int r = ctl_top_begin(&d, top);

	if (r < 0)
		return r;
	if (is_opened(top)) {
		draw_opened(&d);
		return ctl_top_end(&d, out);
	}
	draw_applications(&d);
	for (uint32_t a = 0; a < top->app_count; a++) {
		draw_operators(&d, a);
		draw_flows(&d, a);
		draw_hosts(&d, a);
	}
	draw_workers(&d);
	return ctl_top_end(&d, out);
}

const char *ctl_top_cause(const struct ctl_top_app *app)
{
	if (app->cause.sentence != NULL)
		return app->cause.sentence;
	return app->look.window_ns > 0 ? "nothing is wrong" : "nothing was measured yet";
}

/* The application whose root cause stands on top: the opened one, or the first with one. */
static const struct ctl_top_app *worst(const struct ctl_top *top)
{
	if (is_opened(top))
		return &top->apps[top->app];
	for (uint32_t a = 0; a < top->app_count; a++)
		if (top->apps[a].cause.kind > FRAGI_CAUSE_UNMEASURED)
			return &top->apps[a];
	return top->app_count > 0 ? &top->apps[0] : NULL;
}

static void draw_cause(struct ctl_top_drawing *d)
{
	const struct ctl_top_app *app = worst(d->top);
	char text[2048];

	if (d->top->lost != NULL) {
		ctl_top_wrap(d, CTL_TOP_WRONG, CAUSE_LINES, d->top->lost);
		return;
	}
	if (app == NULL) {
		ctl_top_put(d, CTL_TOP_NORMAL, "%s",
			    d->top->is_measuring ? "measures the first second"
						 : "no application runs");
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", ctl_top_text(app->look.application),
		 ctl_top_cause(app));
	ctl_top_wrap(d, app->cause.kind > FRAGI_CAUSE_UNMEASURED ? CTL_TOP_WRONG : CTL_TOP_NORMAL,
		     CAUSE_LINES, text);
	if (d->top->event != NULL)
		ctl_top_put(d, CTL_TOP_NORMAL, "%s", d->top->event);
}

static const char *order_name(enum ctl_top_order order)
{
	static const char *const names[] = {
#define NAME(NAME, name) #name,
		CTL_TOP_ORDER_LIST(NAME)
#undef NAME
	};

	return names[order];
}

int ctl_top_screen(struct ctl_top *top, const struct ctl_top_lines *body, struct ctl_top_lines *out)
{
	struct ctl_top_drawing d;
	uint32_t room;
	int r = ctl_top_begin(&d, top);

	if (r < 0)
		return r;
	ctl_top_put(&d, CTL_TOP_TITLE, "frag top  %u application%s  sorted by %s%s%s%s  at %s",
		    top->app_count, top->app_count == 1 ? "" : "s", order_name(top->order),
		    ctl_top_text(top->filter)[0] != '\0' ? "  filter " : "",
		    ctl_top_text(top->filter), top->is_paused ? "  PAUSED" : "",
		    ctl_top_text(top->where));
	draw_cause(&d);
	room = top->height > d.count + 1 ? top->height - d.count - 1 : 1;
	if (top->cursor >= body->count)
		top->cursor = body->count > 0 ? body->count - 1 : 0;
	if (top->first > top->cursor)
		top->first = top->cursor;
	if (top->cursor - top->first >= room)
		top->first = top->cursor - room + 1;
	if (top->first + room > body->count)
		top->first = body->count > room ? body->count - room : 0;
	for (uint32_t i = top->first; i < top->first + room; i++) {
		const struct ctl_top_line *line = i < body->count ? &body->items[i] : NULL;

		ctl_top_put(&d,
			    line == NULL       ? CTL_TOP_NORMAL
			    : i == top->cursor ? CTL_TOP_SELECTED
					       : line->style,
			    "%s", line != NULL ? line->text : "");
	}
	ctl_top_put(&d, CTL_TOP_TITLE, "%s",
		    top->message != NULL ? top->message
		    : is_opened(top)     ? KEYS_OPENED
					 : KEYS);
	if (d.count > top->height)
		d.count = top->height; /* of a screen for which even these are too many */
	return ctl_top_end(&d, out);
}
