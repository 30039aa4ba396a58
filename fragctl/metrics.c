// SPDX-License-Identifier: Apache-2.0
#include <fragctl/metrics.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/strmap.h>
#include <fragctl/samples.h>
#include <track/late.h>

/* What a metric is about. */
enum of {
	OF_NOTHING,
	OF_REPLY,
	OF_APP,
	OF_ENDED,
	OF_WORKER,
	OF_LOOK,
	OF_OPERATOR,
	OF_FLOW,
	OF_HOST,
	OF_POOL,
	TABLES
};

struct row {
	const void *of;
	struct ctl_labels labels;
};

/* Labels of samples of which a row has several. */
struct pairs {
	struct ctl_pair uses[FRAGI_USES], causes[FRAGI_BLAME_CAUSES], reasons[FRAGI_DROP_REASONS],
		ends[FRAGI_HIST_BARS];
};

struct page {
	const struct ctl_metrics_source *source;
	struct ctl_samples samples;
	struct pairs pairs;
	struct row *rows[TABLES];
	uint32_t count[TABLES], room[TABLES];
	uint64_t left_out[TABLES];
};

struct metric {
	const char *name, *type, *help;
	enum of of;
	void (*put)(struct page *page, const struct metric *metric, const struct row *row);
	size_t offset; /* of the number in the row */
};

#define AT(type, metric, row)                                                                      \
	(*(type const *)(const void *)((const char *)(row)->of + (metric)->offset))

static void make_pairs(struct pairs *pairs)
{
#define NAME(NAME, name, what) #name,
	static const char *const uses[FRAGI_USES] = {FRAGI_USE_LIST(NAME)};
#undef NAME
	/* FRAGI_HIST_BAR_NS in seconds */
	static const char *const ends[FRAGI_HIST_BARS] = {
		"0.000004096", "0.000016384", "0.000065536", "0.000262144",
		"0.001048576", "0.004194304", "0.016777216", "0.067108864",
		"0.268435456", "1.073741824", "4.294967296", "+Inf"};

	for (int i = 0; i < FRAGI_USES; i++)
		pairs->uses[i] = ctl_pair_of("use", uses[i]);
	for (int i = 0; i < FRAGI_BLAME_CAUSES; i++)
		pairs->causes[i] =
			ctl_pair_of("cause", fragi_blame_name((enum fragi_blame_cause)i));
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		pairs->reasons[i] = ctl_pair_of("reason", fragi_drop_name((enum fragi_drop)i));
	for (int i = 0; i < FRAGI_HIST_BARS; i++)
		pairs->ends[i] = ctl_pair_of("le", ends[i]);
}

static void put_u64(struct page *page, const struct metric *metric, const struct row *row)
{
	ctl_sample(&page->samples, "", &row->labels, NULL, AT(uint64_t, metric, row));
}

static void put_u32(struct page *page, const struct metric *metric, const struct row *row)
{
	ctl_sample(&page->samples, "", &row->labels, NULL, AT(uint32_t, metric, row));
}

static void put_flag(struct page *page, const struct metric *metric, const struct row *row)
{
	ctl_sample(&page->samples, "", &row->labels, NULL, AT(bool, metric, row));
}

static void put_ns(struct page *page, const struct metric *metric, const struct row *row)
{
	ctl_sample_seconds(&page->samples, "", &row->labels, NULL, AT(uint64_t, metric, row));
}

/* Of what may be unknown: nothing in place of 0. */
static void put_known_ns(struct page *page, const struct metric *metric, const struct row *row)
{
	if (AT(uint64_t, metric, row) != 0)
		put_ns(page, metric, row);
}

static void put_known_u64(struct page *page, const struct metric *metric, const struct row *row)
{
	if (AT(uint64_t, metric, row) != 0)
		put_u64(page, metric, row);
}

static void put_uses(struct page *page, const struct metric *metric, const struct row *row)
{
	const uint64_t *ns = &AT(uint64_t, metric, row);

	for (int i = 0; i < FRAGI_USES; i++)
		ctl_sample_seconds(&page->samples, "", &row->labels, &page->pairs.uses[i], ns[i]);
}

/* Only where there are any: most operators end no path. */
static void put_late(struct page *page, const struct metric *metric, const struct row *row)
{
	const uint64_t *late = &AT(uint64_t, metric, row);

	for (int i = 0; i < FRAGI_BLAME_CAUSES && fragi_late_sum(late) > 0; i++)
		ctl_sample(&page->samples, "", &row->labels, &page->pairs.causes[i], late[i]);
}

/* By place, those that there were: a host has FRAGI_LATE_PLACES_MAX of them at most. */
static void put_late_places(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct fragi_look_operator *op = row->of;
	char at[FRAGI_LATE_PLACE_SIZE];

	(void)metric;
	for (uint32_t i = 0; i < op->late_place_count; i++)
		for (int k = 0; k < FRAGI_BLAME_CAUSES; k++) {
			struct fragi_late_place place = op->late_places[i];
			struct ctl_labels labels;

			if (place.late[k] == 0)
				continue;
			place.worker = NULL; /* it may move */
			fragi_late_place(&place, (enum fragi_blame_cause)k, at);
			labels = ctl_labels_begin(&page->samples, &row->labels);
			ctl_labels_add(&page->samples, &labels, "at", at);
			ctl_sample(&page->samples, "", &labels, &page->pairs.causes[k],
				   place.late[k]);
		}
}

/* Zeros of reasons that a flow cannot have would be an eighth of the page. */
static void put_drops(struct page *page, const struct metric *metric, const struct row *row)
{
	const uint64_t *dropped = &AT(uint64_t, metric, row);
	const struct fragi_look_flow *flow = row->of;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		if (i < FRAGI_DROP_STALE || flow->is_timed || dropped[i] != 0)
			ctl_sample(&page->samples, "", &row->labels, &page->pairs.reasons[i],
				   dropped[i]);
}

/* Nobody has looked yet: nothing is known of it. */
static void put_histogram(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct fragi_quantiles *q = &AT(struct fragi_quantiles, metric, row);
	uint64_t count = 0;

	if (q->total_ns == 0)
		return;
	for (int bar = 0; bar < FRAGI_HIST_BARS; bar++) {
		count += q->bars[bar];
		ctl_sample(&page->samples, "_bucket", &row->labels, &page->pairs.ends[bar], count);
	}
	ctl_sample_seconds(&page->samples, "_sum", &row->labels, NULL, q->total_ns);
	ctl_sample(&page->samples, "_count", &row->labels, NULL, count);
}

/* One clock has no error. */
static void put_error(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct fragi_quantiles *q = &AT(struct fragi_quantiles, metric, row);

	if (q->error_ns != 0)
		ctl_sample_seconds(&page->samples, "", &row->labels, NULL, q->error_ns);
}

static void put_state(struct page *page, const struct metric *metric, const struct row *row)
{
	struct ctl_labels labels = ctl_labels_begin(&page->samples, &row->labels);

	ctl_labels_add(&page->samples, &labels, "state", AT(const char *, metric, row));
	ctl_sample(&page->samples, "", &labels, NULL, 1);
}

static void put_rate(struct page *page, const struct metric *metric, const struct row *row)
{
	uint64_t mhz = AT(uint64_t, metric, row);

	if (mhz != 0)
		ctl_sample_seconds(&page->samples, "", &row->labels, NULL, mhz * 1000000);
}

static void put_up(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct fw_worker_row *worker = row->of;

	(void)metric;
	ctl_sample(&page->samples, "", &row->labels, NULL, strcmp(worker->state, "live") == 0);
}

static void put_suspended(struct page *page, const struct metric *metric, const struct row *row)
{
	ctl_sample(&page->samples, "", &row->labels, NULL, AT(const char *, metric, row) != NULL);
}

static void put_slow(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct ctl_top_app *app = row->of;

	(void)metric;
	ctl_sample(&page->samples, "", &row->labels, NULL,
		   app->cause.kind > FRAGI_CAUSE_UNMEASURED);
}

static void put_cause(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct ctl_top_app *app = row->of;
	const struct fragi_cause *cause = &app->cause;
	const struct fragi_look *look = &app->look;
	const char *op = NULL, *flow = NULL;
	struct ctl_labels labels;

	(void)metric;
	if (cause->kind <= FRAGI_CAUSE_UNMEASURED)
		return;
	if (cause->op < look->operator_count)
		op = look->operators[cause->op].name;
	if (cause->flow < look->flow_count)
		flow = look->flows[cause->flow].from;
	labels = ctl_labels_begin(&page->samples, &row->labels);
	ctl_labels_add(&page->samples, &labels, "kind", fragi_cause_name(cause->kind));
	ctl_labels_add(&page->samples, &labels, "operator", op);
	ctl_labels_add(&page->samples, &labels, "flow_from", flow);
	ctl_sample(&page->samples, "", &labels, NULL, 1);
}

static void put_ended(struct page *page, const struct metric *metric, const struct row *row)
{
	static const char *const results[] = {
		[FRAGI_SUMMARY_DONE] = "done",
		[FRAGI_SUMMARY_STOPPED] = "stopped",
		[FRAGI_SUMMARY_FAILED] = "failed",
	};
	const struct fw_ended_row *ended = row->of;

	const struct ctl_pair result = ctl_pair_of("result", results[ended->result]);

	(void)metric;
	ctl_sample_seconds(&page->samples, "", &row->labels, &result,
			   ended->age_ns > 0 ? (uint64_t)ended->age_ns : 0);
}

static void put_build(struct page *page, const struct metric *metric, const struct row *row)
{
	const struct ctl_pair version = ctl_pair_of("version", FRAG_VERSION);

	(void)metric;
	ctl_sample(&page->samples, "", &row->labels, &version, 1);
}

static void put_driver(struct page *page, const struct metric *metric, const struct row *row)
{
	(void)metric;
	ctl_sample(&page->samples, "", &row->labels, NULL, page->source->state != NULL);
}

static void put_events(struct page *page, const struct metric *metric, const struct row *row)
{
	const uint64_t *count = &AT(uint64_t, metric, row);

	for (int kind = FW_NOTICE_NONE + 1; kind < FW_NOTICE_KINDS; kind++) {
		const struct ctl_pair pair =
			ctl_pair_of("kind", fw_notice_name((enum fw_notice_kind)kind));

		ctl_sample(&page->samples, "", &row->labels, &pair, count[kind]);
	}
}

/* A full disk has none; where there is no folder, nothing is known. */
static void put_state_free(struct page *page, const struct metric *metric, const struct row *row)
{
	if (((const struct fw_reply *)row->of)->state_bytes != 0)
		put_u64(page, metric, row);
}

static void put_left_out(struct page *page, const struct metric *metric, const struct row *row)
{
	static const struct {
		const char *name;
		enum of of;
	} tables[] = {{"operator", OF_OPERATOR}, {"flow", OF_FLOW}, {"state", OF_APP}};

	(void)metric;
	for (size_t i = 0; i < FRAG_COUNT_OF(tables); i++) {
		const struct ctl_pair pair = ctl_pair_of("of", tables[i].name);

		ctl_sample(&page->samples, "", &row->labels, &pair, page->left_out[tables[i].of]);
	}
}

/* --- the table of metrics; docs/OBSERVE.md shows it --- */

#define REPLY(m) OF_REPLY, .offset = offsetof(struct fw_reply, m)
#define APP(m) OF_APP, .offset = offsetof(struct fw_application_row, m)
#define WORKER(m) OF_WORKER, .offset = offsetof(struct fw_worker_row, m)
#define OPERATOR(m) OF_OPERATOR, .offset = offsetof(struct fragi_look_operator, m)
#define FLOW(m) OF_FLOW, .offset = offsetof(struct fragi_look_flow, m)
#define POOL(m) OF_POOL, .offset = offsetof(struct fragi_look_pool, m)
#define HOST(m) OF_HOST, .offset = offsetof(struct fragi_look_host, m)
static const struct metric metrics[] = {
	{"frag_build_info", "gauge", "1; the label is the version of fragctl.", OF_NOTHING,
	 put_build},
	{"frag_driver_up", "gauge", "Whether the driver has answered.", OF_NOTHING, put_driver},
	{"frag_driver_start_time_seconds", "gauge",
	 "When the driver started, in unix time; with a later one, frag_events_total began at 0.",
	 REPLY(started_unix_s), .put = put_known_u64},
	{"frag_left_out_rows", "gauge",
	 "Operators, flows, and rows of applications and workers that this page leaves out.",
	 OF_NOTHING, put_left_out},
	{"frag_events_total", "counter",
	 "What happened at the driver since it started, by kind; `fragctl events` shows it.",
	 REPLY(notices), .put = put_events},
	{"frag_driver_state_bytes", "gauge",
	 "Size of the disk that holds the driver's state folder.", REPLY(state_bytes),
	 .put = put_known_u64},
	{"frag_driver_state_free_bytes", "gauge", "What is free there.", REPLY(state_free_bytes),
	 .put = put_state_free},
	{"frag_driver_certificate_expiry_timestamp_seconds", "gauge",
	 "When the driver's certificate ends, in unix time.", REPLY(certificate_ends_unix_s),
	 .put = put_known_u64},
	{"frag_application_state", "gauge", "1 for the state in which an application is.",
	 APP(state), .put = put_state},
	{"frag_application_run", "gauge",
	 "Number of the run; a higher one: it was started anew, and its counters began at 0.",
	 APP(run), .put = put_u64},
	{"frag_application_age_seconds", "gauge", "Since it was given to the driver.", APP(age_ns),
	 .put = put_ns},
	{"frag_application_ended_age_seconds", "gauge",
	 "Since the last run of that name ended, and how: done, stopped or failed.", OF_ENDED,
	 put_ended},
	{"frag_application_slow", "gauge",
	 "Whether there is a root cause of being slow or of loss.", OF_LOOK, put_slow},
	{"frag_application_root_cause", "gauge",
	 "1; the labels are the kind of the root cause and what is to blame.", OF_LOOK, put_cause},
	{"frag_worker_up", "gauge", "Whether the worker is connected and answers.", OF_WORKER,
	 put_up},
	{"frag_worker_drained", "gauge", "Whether it is given no more fragments.", WORKER(drained),
	 .put = put_flag},
	{"frag_worker_fragments", "gauge", "Fragments that hold a place on it.", WORKER(fragments),
	 .put = put_u32},
	{"frag_worker_cores", "gauge", "Cores that it has.", WORKER(cores), .put = put_u32},
	{"frag_host_restarts_total", "counter", "How often the process was started again.",
	 HOST(restarts), .put = put_u32},
	{"frag_host_suspended", "gauge", "Whether its operators do not run now.",
	 HOST(suspended_because), .put = put_suspended},
	{"frag_host_cpu_seconds_total", "counter", "Time on CPUs.", HOST(cpu_sum_ns),
	 .put = put_known_ns},
	{"frag_host_resident_memory_bytes", "gauge", "Resident memory.", HOST(rss_bytes),
	 .put = put_known_u64},
	{"frag_pool_blocks", "gauge", "Blocks of a pool of memory.", POOL(blocks), .put = put_u64},
	{"frag_pool_block_bytes", "gauge",
	 "Size of one of them; 1 for memory of a GPU without blocks.", POOL(block_bytes),
	 .put = put_u64},
	{"frag_pool_used_blocks", "gauge", "Blocks that are in use.", POOL(used), .put = put_u64},
	{"frag_pool_empty_seconds_total", "counter",
	 "For how long no block was free, while somebody looked.", POOL(empty_sum_ns),
	 .put = put_ns},
	{"frag_pool_refused_total", "counter", "Blocks that were asked for and not there.",
	 POOL(refused_sum), .put = put_u64},
	{"frag_operator_ticks_total", "counter", "Ticks that have begun.", OPERATOR(ticks_sum),
	 .put = put_u64},
	{"frag_operator_time_seconds_total", "counter",
	 "What it did while somebody looked: busy, input, room, memory, thread, time, suspended.",
	 OPERATOR(use_sums), .put = put_uses},
	{"frag_operator_compute_seconds", "histogram", "Time of a tick.", OPERATOR(compute),
	 .put = put_histogram},
#define LIVE(name, unit, metric, help)                                                             \
	{metric, "counter", help, OPERATOR(name##_sum), .put = put_##unit},
	FRAGI_OP_LIVE_LIST(LIVE)
#undef LIVE
		{"frag_operator_late_messages_total", "counter",
		 "Messages that were late on a path with a deadline that ends here, by what is to blame.",
		 OPERATOR(late_sums), .put = put_late},
	{"frag_operator_late_messages_at_total", "counter",
	 "The same, where an operator or a flow of the path is to blame.", OF_OPERATOR,
	 .put = put_late_places},
	{"frag_operator_promised_hertz", "gauge", "The rate that the graph promises.",
	 OPERATOR(promised_mhz), .put = put_rate},
	{"frag_operator_ended", "gauge", "Whether it is done or failed, and will not tick again.",
	 OPERATOR(has_ended), .put = put_flag},
	{"frag_flow_messages_sent_total", "counter", "Messages emitted.", FLOW(sent_sum),
	 .put = put_u64},
	{"frag_flow_messages_delivered_total", "counter", "Messages received by the operator.",
	 FLOW(delivered_sum), .put = put_u64},
	{"frag_flow_messages_dropped_total", "counter", "Messages dropped, by reason.",
	 FLOW(dropped_sums), .put = put_drops},
	{"frag_flow_messages_lost_total", "counter", "Messages lost with a process or a link.",
	 FLOW(lost_sum), .put = put_u64},
	{"frag_flow_messages_in_flight", "gauge", "Messages that are sent and not settled.",
	 FLOW(depth), .put = put_u64},
#define LIVE(name, unit, metric, help)                                                             \
	{metric, "counter", help, FLOW(name##_sum), .put = put_##unit},
	FRAGI_FLOW_LIVE_LIST(LIVE)
#undef LIVE
		{"frag_flow_capacity_messages", "gauge", "Messages that its queue holds.",
		 FLOW(capacity), .put = put_u32},
	{"frag_flow_latency_seconds", "histogram", "From emit to receive.", FLOW(latency),
	 .put = put_histogram},
	{"frag_flow_latency_error_seconds", "gauge",
	 "Between two clocks: each latency is at most so far from the truth.", FLOW(latency),
	 .put = put_error},
};

/* --- rows --- */

static struct row *new_row(struct page *page, enum of of, const void *at)
{
	struct row *rows = page->rows[of];
	uint32_t capacity = page->room[of] != 0 ? page->room[of] : 16;

	if (page->count[of] == page->room[of]) {
		capacity *= 2;
		rows = reallocarray(rows, capacity, sizeof(*rows));
		if (rows == NULL) {
			page->samples.labels.is_short = true;
			return NULL;
		}
		page->rows[of] = rows;
		page->room[of] = capacity;
	}
	rows[page->count[of]] = (struct row){at, ctl_labels_begin(&page->samples, NULL)};
	return &rows[page->count[of]++];
}

/* name2 NULL: it has one label */
static void add_row(struct page *page, enum of of, const void *at, const char *name,
		    const char *value, const char *name2, const char *value2)
{
	struct row *row = new_row(page, of, at);

	if (row == NULL)
		return;
	if (name != NULL)
		ctl_labels_add(&page->samples, &row->labels, name, value);
	if (name2 != NULL)
		ctl_labels_add(&page->samples, &row->labels, name2, value2);
}

/* Of several rows of that name only the first one is shown. */
static bool is_new(struct page *page, struct fragi_strmap *names, const char *name)
{
	int r = fragi_strmap_put(names, name, page);

	page->samples.labels.is_short |= r == -ENOMEM;
	return r == 0;
}

static void add_state(struct page *page, const struct fw_reply *state)
{
	struct fragi_strmap workers = {0}, ended = {0};

	add_row(page, OF_REPLY, state, NULL, NULL, NULL, NULL);
	for (uint32_t i = 0; i < state->application_count; i++)
		add_row(page, OF_APP, &state->applications[i], "app", state->applications[i].name,
			NULL, NULL);
	for (uint32_t i = 0; i < state->worker_count; i++)
		if (strcmp(state->workers[i].state, "left") != 0 && /* it was told to end */
		    is_new(page, &workers, state->workers[i].name))
			add_row(page, OF_WORKER, &state->workers[i], "worker",
				state->workers[i].name, NULL, NULL);
	for (uint32_t i = 0; i < state->ended_count; i++) /* the newest first */
		if (is_new(page, &ended, state->ended[i].name))
			add_row(page, OF_ENDED, &state->ended[i], "app", state->ended[i].name, NULL,
				NULL);
	page->left_out[OF_APP] = state->more;
	fragi_strmap_fini(&workers);
	fragi_strmap_fini(&ended);
}

/* Whether there is room for another row of that table; counts it otherwise. */
static bool has_room(struct page *page, enum of of)
{
	if (page->count[of] < CTL_METRICS_ROWS_MAX)
		return true;
	page->left_out[of]++;
	return false;
}

static void add_flow(struct page *page, const char *app, const struct fragi_look_flow *flow)
{
	char name[1024];

	snprintf(name, sizeof(name), "%s -> %s", flow->from, flow->to);
	add_row(page, OF_FLOW, flow, "app", app, "flow", name);
}

static void add_look(struct page *page, const struct ctl_top_app *app)
{
	const struct fragi_look *look = &app->look;
	const char *name = look->application;

	add_row(page, OF_LOOK, app, "app", name, NULL, NULL);
	for (uint32_t i = 0; i < look->operator_count; i++)
		if (has_room(page, OF_OPERATOR))
			add_row(page, OF_OPERATOR, &look->operators[i], "app", name, "operator",
				look->operators[i].name);
	for (uint32_t i = 0; i < look->flow_count; i++)
		if (has_room(page, OF_FLOW))
			add_flow(page, name, &look->flows[i]);
	for (uint32_t i = 0; i < look->host_count; i++)
		add_row(page, OF_HOST, &look->hosts[i], "app", name, "host", look->hosts[i].name);
	for (uint32_t i = 0; i < look->pool_count; i++)
		add_row(page, OF_POOL, &look->pools[i], "app", name, "pool", look->pools[i].name);
	page->left_out[OF_OPERATOR] += look->operators_left_out;
	page->left_out[OF_FLOW] += look->flows_left_out;
}

/* --- the page --- */

static void write_metric(struct page *page, const struct metric *metric)
{
	ctl_samples_begin(&page->samples, metric->name, metric->type, metric->help);
	for (uint32_t i = 0; i < page->count[metric->of] && !page->samples.labels.is_short; i++)
		metric->put(page, metric, &page->rows[metric->of][i]);
}

int ctl_metrics_write(const struct ctl_metrics_source *source, char **out_text, size_t *out_size)
{
	struct page page = {.source = source};
	bool failed;

	make_pairs(&page.pairs);
	add_row(&page, OF_NOTHING, NULL, NULL, NULL, NULL, NULL);
	if (source->state != NULL)
		add_state(&page, source->state);
	for (uint32_t i = 0; i < source->app_count; i++)
		add_look(&page, &source->apps[i]);
	for (size_t i = 0; i < FRAG_COUNT_OF(metrics); i++)
		write_metric(&page, &metrics[i]);
	failed = page.samples.out.is_short || page.samples.labels.is_short;
	for (int of = 0; of < TABLES; of++)
		free(page.rows[of]);
	free(page.samples.labels.at);
	if (failed) {
		free(page.samples.out.at);
		return -ENOMEM;
	}
	*out_text = page.samples.out.at;
	*out_size = page.samples.out.size;
	return 0;
}
