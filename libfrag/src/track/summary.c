// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/json.h>
#include <base/units.h>
#include <frag/draft.h>
#include <track/late.h>
#include <track/promise.h>
#include <track/summary.h>

static const char *const results[] = {
	[FRAGI_SUMMARY_DONE] = "done",
	[FRAGI_SUMMARY_STOPPED] = "stopped",
	[FRAGI_SUMMARY_FAILED] = "failed",
};

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

static uint64_t dropped_sum(const struct fragi_summary_flow *flow)
{
	uint64_t sum = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		sum += flow->dropped[i];
	return sum;
}

bool fragi_summary_flow_balances(const struct fragi_summary_flow *flow)
{
	return flow->sent == flow->delivered + dropped_sum(flow) + flow->lost + flow->in_flight;
}

/* The table. */

#define COLUMNS 12
#define CELL_BYTES 48
enum {
	COL_FLOW,
	COL_SENT,
	COL_DELIVERED,
	COL_DROPPED,
	COL_LOST,
	COL_IN_FLIGHT,
	COL_COPIED,
	COL_P50,
	COL_P99,
	COL_MAX,
	COL_ERROR,
	COL_EDGE,
};
static const char *const heads[COLUMNS] = {
	"flow",   "sent",        "delivered", "dropped", "lost", "in flight",
	"copied", "latency p50", "p99",       "max",     "+/-",  "edge",
};
/*
 * The tick that receives a message begins at the clock reading that ended the tick before it on
 * its thread. What the scheduler did in between is not measured, so less than this is not a number.
 */
#define LATENCY_LEAST_NS 100

struct table_row {
	char *flow;
	char cells[COLUMNS][CELL_BYTES]; /* all but the first and the last */
	const char *edge;
};

static void put_latency(const struct fragi_summary_flow *flow, uint64_t ns, char *out, size_t size)
{
	if (flow->latency_reason != NULL || flow->latency.count == 0)
		snprintf(out, size, "-");
	else if (ns < LATENCY_LEAST_NS)
		snprintf(out, size, "<%d ns", LATENCY_LEAST_NS);
	else
		fragi_format_duration((int64_t)ns, out, size);
}

/* By either host. */
static uint64_t copied_bytes(const struct fragi_summary_flow *flow)
{
	return flow->copied_out + flow->copied_in;
}

static void put_bytes(uint64_t bytes, char *out, size_t size)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes / 1024;
	int unit = 0;

	for (; value >= 1024; unit++)
		value /= 1024;
	if (bytes < 1024)
		snprintf(out, size, "%" PRIu64 " B", bytes);
	else
		snprintf(out, size, "%.1f %ciB", value, units[unit]);
}

/* "7"; "5-7" or "5+" where the last counts of an end are not known. */
static void put_range(uint64_t least, uint64_t most, char *out, size_t size)
{
	if (least == most)
		snprintf(out, size, "%" PRIu64, most);
	else if (most == FRAGI_SUMMARY_OPEN)
		snprintf(out, size, "%" PRIu64 "+", least);
	else
		snprintf(out, size, "%" PRIu64 "-%" PRIu64, least, most);
}

static void put_counts(const struct fragi_summary_flow *flow, struct table_row *row)
{
	struct fragi_summary_flow f = *flow;

	if (f.exact) {
		f.sent_at_least = f.sent_at_most = f.sent;
		f.delivered_at_least = f.delivered_at_most = f.delivered;
		f.lost_at_least = f.lost;
	}
	put_range(f.sent_at_least, f.sent_at_most, row->cells[COL_SENT], CELL_BYTES);
	put_range(f.delivered_at_least, f.delivered_at_most, row->cells[COL_DELIVERED], CELL_BYTES);
	put_range(f.lost_at_least, f.lost, row->cells[COL_LOST], CELL_BYTES);
	put_range(dropped_sum(&f), dropped_sum(&f), row->cells[COL_DROPPED], CELL_BYTES);
	put_range(f.in_flight, f.in_flight, row->cells[COL_IN_FLIGHT], CELL_BYTES);
}

static int row_fill(struct table_row *row, const struct fragi_summary_flow *flow)
{
	size_t size = strlen(or_empty(flow->from)) + strlen(or_empty(flow->to)) + 8;

	row->flow = fragi_malloc(size);
	if (row->flow == NULL)
		return -ENOMEM;
	snprintf(row->flow, size, "%s -> %s", or_empty(flow->from), or_empty(flow->to));
	put_counts(flow, row);
	put_bytes(copied_bytes(flow), row->cells[COL_COPIED], CELL_BYTES);
	put_latency(flow, flow->latency.p50, row->cells[COL_P50], CELL_BYTES);
	put_latency(flow, flow->latency.p99, row->cells[COL_P99], CELL_BYTES);
	put_latency(flow, flow->latency.max, row->cells[COL_MAX], CELL_BYTES);
	snprintf(row->cells[COL_ERROR], CELL_BYTES, "-");
	if (flow->latency.error_ns > 0)
		fragi_format_duration((int64_t)flow->latency.error_ns, row->cells[COL_ERROR],
				      CELL_BYTES);
	row->edge = flow->edge_detail != NULL ? flow->edge_detail : or_empty(flow->edge);
	return 0;
}

static const char *cell(const struct table_row *row, int column)
{
	if (column == COL_FLOW)
		return row->flow;
	return column == COL_EDGE ? row->edge : row->cells[column];
}

/*
 * The columns "in flight", "copied" and "+/-" are shown when there is something in them: after an
 * orderly end nothing is in flight, over shared memory nothing is copied, and one clock has no
 * error.
 */
static void print_rows(const struct table_row *rows, size_t count, const bool shown[COLUMNS],
		       FILE *out)
{
	int widths[COLUMNS];

	for (int c = 0; c < COLUMNS; c++) {
		widths[c] = (int)strlen(heads[c]);
		for (size_t i = 0; i < count; i++)
			if ((int)strlen(cell(&rows[i], c)) > widths[c])
				widths[c] = (int)strlen(cell(&rows[i], c));
	}
	for (size_t i = 0; i <= count; i++) {
		for (int c = 0; c < COLUMNS; c++) {
			const char *text = i == 0 ? heads[c] : cell(&rows[i - 1], c);

			if (!shown[c])
				continue;
			if (c == COL_FLOW)
				fprintf(out, "%-*s", widths[c], text);
			else if (c == COL_EDGE)
				fprintf(out, "  %s", text);
			else
				fprintf(out, "  %*s", widths[c], text);
		}
		fputc('\n', out);
	}
}

/* A line for each input that ticks went without (frag/timing.h); nothing where none did. */
static void print_absences(const struct fragi_summary *summary, FILE *out)
{
	static const char *const names[] = {"late",
					    "stale",
					    "window timed out",
					    "dropped upstream",
					    "source ended",
					    "clocks not comparable"};

	for (size_t i = 0; i < summary->flow_count; i++) {
		const struct fragi_summary_flow *flow = &summary->flows[i];
		const uint64_t counts[] = {flow->absent_late,   flow->absent_stale,
					   flow->absent_window, flow->absent_dropped,
					   flow->absent_ended,  flow->absent_clocks};
		uint64_t sum = 0;
		const char *between = "";

		for (size_t k = 0; k < FRAG_COUNT_OF(counts); k++)
			sum += counts[k];
		if (sum == 0)
			continue;
		fprintf(out, "%s -> %s: absent in %" PRIu64 " tick%s (", or_empty(flow->from),
			or_empty(flow->to), sum, sum == 1 ? "" : "s");
		for (size_t k = 0; k < FRAG_COUNT_OF(counts); k++)
			if (counts[k] > 0) {
				fprintf(out, "%s%" PRIu64 " %s", between, counts[k], names[k]);
				between = ", ";
			}
		fputc(')', out);
		if (flow->reused > 0)
			fprintf(out, ", reused in %" PRIu64, flow->reused);
		fputc('\n', out);
	}
}

static void put_misses(uint64_t count, const char *what, const char **between, FILE *out)
{
	if (count == 0)
		return;
	fprintf(out, "%s%" PRIu64 " %s", *between, count, what);
	*between = ", ";
}

/*
 * A line for each operator that missed deadlines, was the slowest of a path that did, or counted
 * something itself.
 */
static void print_misses(const struct fragi_summary *summary, FILE *out)
{
	for (size_t i = 0; i < summary->fragment_count; i++)
		for (size_t k = 0; k < summary->fragments[i].operator_count; k++) {
			const struct fragi_summary_operator *op =
				&summary->fragments[i].operators[k];
			char late[FRAGI_LATE_TEXT_SIZE];
			const char *between = "";

			if (op->deadline_misses + op->path_misses + op->slowest + op->path_clocks +
				    op->skipped + op->removed + op->held_back + op->outdated ==
			    0)
				continue;
			fprintf(out, "%s.%s: ", or_empty(summary->fragments[i].name),
				or_empty(op->name));
			put_misses(op->deadline_misses, "past its deadline", &between, out);
			put_misses(op->path_misses, "past the deadline of a path", &between, out);
			if (fragi_late_text(fragi_late_of(op->counters), op->late_places,
					    op->late_place_count, late)[0] != '\0')
				fprintf(out, " (%s)", late);
			put_misses(op->slowest, "times the slowest of a path that was late",
				   &between, out);
			put_misses(
				op->path_clocks,
				"not checked against the deadline of a path: clocks not comparable",
				&between, out);
			put_misses(op->skipped, "damaged pieces skipped", &between, out);
			put_misses(op->removed, "files removed to keep to a limit of disk",
				   &between, out);
			put_misses(op->held_back, "live frames held back by slow receivers",
				   &between, out);
			put_misses(op->outdated, "live frames that had waited in queues", &between,
				   out);
			fputc('\n', out);
		}
}

/* A line for each real-time operator. */
static void print_realtime(const struct fragi_summary *summary, FILE *out)
{
	char text[96];

	for (size_t i = 0; i < summary->fragment_count; i++)
		for (size_t k = 0; k < summary->fragments[i].operator_count; k++) {
			const struct fragi_summary_operator *op =
				&summary->fragments[i].operators[k];

			if (op->realtime.policy == FRAGI_SCHED_NONE)
				continue;
			fprintf(out, "%s.%s ran under %s%s\n", or_empty(summary->fragments[i].name),
				or_empty(op->name),
				fragi_realtime_text(&op->realtime, text, sizeof(text)),
				op->realtime.policy == FRAGI_SCHED_OTHER
					? ", because real time was refused"
					: "");
		}
}

/* What the first write that failed said; errno was 0 when printing began. */
static int print_result(FILE *out)
{
	return !ferror(out) ? 0 : errno != 0 ? -errno : -EIO;
}

int fragi_summary_print_table(const struct fragi_summary *summary, FILE *out)
{
	struct table_row *rows = NULL;
	bool shown[COLUMNS];
	char duration[32];
	size_t count = 0;

	for (int c = 0; c < COLUMNS; c++)
		shown[c] = c != COL_IN_FLIGHT && c != COL_COPIED && c != COL_ERROR;
	errno = 0;
	fprintf(out, "%s: %s %s %s", or_empty(summary->application), results[summary->result],
		summary->result == FRAGI_SUMMARY_DONE ? "in" : "after",
		fragi_format_duration(summary->duration_ns, duration, sizeof(duration)));
	fputc('\n', out);
	if (summary->flow_count != 0)
		rows = fragi_calloc(summary->flow_count, sizeof(*rows));
	while (rows != NULL && count < summary->flow_count &&
	       row_fill(&rows[count], &summary->flows[count]) == 0) {
		shown[COL_IN_FLIGHT] |= summary->flows[count].in_flight != 0;
		shown[COL_COPIED] |= copied_bytes(&summary->flows[count]) != 0;
		shown[COL_ERROR] |= summary->flows[count].latency.error_ns != 0;
		count++;
	}
	if (count != 0)
		print_rows(rows, count, shown, out);
	print_absences(summary, out);
	print_misses(summary, out);
	print_realtime(summary, out);
	for (size_t i = 0; i < count; i++)
		fragi_free(rows[i].flow);
	fragi_free(rows);
	fragi_summary_print_promises(summary, out);
	return count != summary->flow_count ? -ENOMEM : print_result(out);
}

/* The JSON. */

static void json_late(const uint64_t late[FRAGI_BLAME_CAUSES], FILE *out)
{
	for (uint32_t i = 0; i < FRAGI_BLAME_CAUSES; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i > 0 ? ", " : ", \"late\": {",
			fragi_blame_name((enum fragi_blame_cause)i), late[i]);
	fputc('}', out);
}

static void json_operator(const struct fragi_summary_operator *op, FILE *out)
{
	fputs("{\"name\": ", out);
	fragi_json_text(or_empty(op->name), out);
	fputs(", \"type\": ", out);
	fragi_json_text(or_empty(op->type), out);
	fprintf(out,
		", \"ticks\": %" PRIu64 ", \"compute_ns\": {\"p50\": %" PRIu64 ", \"p99\": %" PRIu64
		", \"max\": %" PRIu64 "}, \"job\": {\"count\": %" PRIu64 ", \"time_ns\": %" PRIu64
		", \"waiting_ns\": %" PRIu64 "}",
		op->ticks, op->compute.p50, op->compute.p99, op->compute.max, op->compute.count,
		op->time_ns, op->waiting_ns);
#define PRINT_SHOWN(name) fprintf(out, ", \"" #name "\": %" PRIu64, op->name);
#define PRINT_INTERNAL(name)
#define PRINT_LATE(name)
#define PRINT(name, shown, what) PRINT_##shown(name)
	FRAGI_OP_LIST(PRINT)
#undef PRINT
#undef PRINT_LATE
#undef PRINT_INTERNAL
#undef PRINT_SHOWN
	if (op->path_misses > 0) {
		json_late(fragi_late_of(op->counters), out);
		fputs(", \"late_places\": ", out);
		fragi_late_json(op->late_places, op->late_place_count, out);
	}
	if (op->realtime.policy != FRAGI_SCHED_NONE) {
		fputs(", \"realtime\": ", out);
		fragi_realtime_json(&op->realtime, out);
	}
	fragi_summary_json_promise(op, out);
	fputc('}', out);
}

static void json_fragment(const struct fragi_summary_fragment *fragment, FILE *out)
{
	fputs("{\"name\": ", out);
	fragi_json_text(or_empty(fragment->name), out);
	fputs(", \"worker\": ", out);
	fragi_json_text(fragment->worker, out);
	fprintf(out, ", \"host_pid\": %" PRId64 ", \"state\": ", fragment->host_pid);
	fragi_json_text(or_empty(fragment->state), out);
	fprintf(out, ", \"epoch\": %" PRIu64 ", \"restarts\": %" PRIu32 ",\n   \"operators\": [",
		fragment->epoch, fragment->restarts);
	for (size_t i = 0; i < fragment->operator_count; i++) {
		if (i != 0)
			fputs(",\n     ", out);
		json_operator(&fragment->operators[i], out);
	}
	fputs("]}", out);
}

/* But for those of the sum, which stand beside what was dropped. */
static void json_other_counters(const struct fragi_summary_flow *flow, FILE *out)
{
	for (int i = 0; i < FRAGI_COUNTERS; i++)
		if (fragi_counter_infos[i].shown && &flow->counters[i] != &flow->sent &&
		    &flow->counters[i] != &flow->delivered)
			fprintf(out, ", \"%s\": %" PRIu64, fragi_counter_infos[i].name,
				flow->counters[i]);
}

static void json_flow(const struct fragi_summary_flow *flow, FILE *out)
{
	fputs("{\"from\": ", out);
	fragi_json_text(or_empty(flow->from), out);
	fputs(", \"to\": ", out);
	fragi_json_text(or_empty(flow->to), out);
	fputs(", \"edge\": ", out);
	fragi_json_text(or_empty(flow->edge), out);
	fprintf(out, ", \"encrypted\": %s, \"capacity\": %" PRIu32 ", \"policy\": ",
		flow->encrypted ? "true" : "false", flow->capacity);
	fragi_json_text(or_empty(flow->policy), out);
	fprintf(out, ",\n   \"sent\": %" PRIu64 ", \"delivered\": %" PRIu64 ", \"dropped\": {",
		flow->sent, flow->delivered);
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		fprintf(out, "%s\"%s\": %" PRIu64, i != 0 ? ", " : "",
			fragi_drop_name((enum fragi_drop)i), flow->dropped[i]);
	fprintf(out, "}, \"lost\": %" PRIu64 ", \"in_flight\": %" PRIu64 ", \"exact\": %s",
		flow->lost, flow->in_flight, flow->exact ? "true" : "false");
	if (!flow->exact)
		fprintf(out, ", \"lost_at_least\": %" PRIu64 ", \"delivered_at_least\": %" PRIu64,
			flow->lost_at_least, flow->delivered_at_least);
	if (flow->lost_because != NULL) {
		fputs(", \"lost_because\": ", out);
		fragi_json_text(flow->lost_because, out);
	}
	json_other_counters(flow, out);
	fprintf(out, ", \"copied_bytes\": %" PRIu64, copied_bytes(flow));
	fputs(",\n   \"latency_ns\": ", out);
	if (flow->latency_reason != NULL) {
		fputs("null, \"latency_reason\": ", out);
		fragi_json_text(flow->latency_reason, out);
		fputc('}', out);
		return;
	}
	fprintf(out,
		"{\"count\": %" PRIu64 ", \"p50\": %" PRIu64 ", \"p99\": %" PRIu64
		", \"p999\": %" PRIu64 ", \"max\": %" PRIu64,
		flow->latency.count, flow->latency.p50, flow->latency.p99, flow->latency.p999,
		flow->latency.max);
	if (flow->latency.error_ns > 0)
		fprintf(out, ", \"error\": %" PRIu64, flow->latency.error_ns);
	fputs("}}", out);
}

static void json_failure(const struct fragi_summary_failure *failure, FILE *out)
{
	fprintf(out, "\"failure\": {\"code\": \"%s\", \"scope\": \"%s\", \"sentence\": ",
		fragi_failure_name(failure->code), fragi_failure_scope(failure->code));
	fragi_json_text(failure->sentence, out);
	fputs(", \"operator\": ", out);
	fragi_json_text(failure->op, out);
	fputs(", \"worker\": ", out);
	fragi_json_text(failure->worker, out);
	fputs("},\n ", out);
}

int fragi_summary_print_json(const struct fragi_summary *summary, FILE *out)
{
	errno = 0;
	fputs("{\"application\": ", out);
	fragi_json_text(or_empty(summary->application), out);
	fprintf(out, ", \"result\": \"%s\", \"reason\": ", results[summary->result]);
	fragi_json_text(summary->failure.sentence, out);
	fprintf(out, ", \"exit_code\": %d,\n ", summary->exit_code);
	if (summary->failure.code != FRAGI_FAILURE_NONE)
		json_failure(&summary->failure, out);
	fprintf(out,
		"\"started_unix_ns\": %" PRId64 ", \"first_message_ns\": %" PRId64
		", \"duration_ns\": %" PRId64 ", \"shutdown_ns\": %" PRId64 ",\n \"fragments\": [",
		summary->started_unix_ns, summary->first_message_ns, summary->duration_ns,
		summary->shutdown_ns);
	for (size_t i = 0; i < summary->fragment_count; i++) {
		fputs(i == 0 ? "\n  " : ",\n  ", out);
		json_fragment(&summary->fragments[i], out);
	}
	fputs("],\n \"flows\": [", out);
	for (size_t i = 0; i < summary->flow_count; i++) {
		fputs(i == 0 ? "\n  " : ",\n  ", out);
		json_flow(&summary->flows[i], out);
	}
	fputs("]}\n", out);
	return print_result(out);
}

static int write_in_place(const struct fragi_summary *summary, const char *path)
{
	FILE *out;
	int r = frag_output_open(path, &out);

	if (r < 0)
		return r;
	r = fragi_summary_print_json(summary, out);
	if (fclose(out) != 0 && r == 0)
		r = -errno;
	return r;
}

static int write_file(const struct fragi_summary *summary, const char *path)
{
	struct frag_draft *draft;
	int r = frag_draft_create(path, &draft);

	if (r < 0)
		return r;
	r = fragi_summary_print_json(summary, frag_draft_stream(draft));
	if (r == 0)
		return frag_draft_commit(draft);
	frag_draft_destroy(draft);
	return r;
}

static int cannot_write(struct frag_err *err, int r, const char *path)
{
	return frag_err_set(
		err, r,
		"cannot write the summary to %s: %s; give --summary a file in a folder that can be written",
		path, frag_strerror(r));
}

int fragi_summary_check(const char *path, struct frag_err *err)
{
	const char *slash = strrchr(path, '/');
	char *folder = NULL;
	struct stat st;
	int r = 0;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode))
			r = -EISDIR;
		else if (access(path, W_OK) != 0)
			r = -errno;
	} else {
		folder = fragi_strdup(slash != NULL ? path : ".");
		if (folder == NULL)
			return cannot_write(err, -ENOMEM, path);
		if (slash != NULL)
			folder[slash - path + 1] = '\0';
		if (access(folder, W_OK | X_OK) != 0)
			r = -errno;
		fragi_free(folder);
	}
	return r < 0 ? cannot_write(err, r, path) : 0;
}

int fragi_summary_write(const struct fragi_summary *summary, const char *path, struct frag_err *err)
{
	struct stat st;
	int r;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a pipe or a device stays what it is */
		r = write_in_place(summary, path);
	else
		r = write_file(summary, path);
	return r < 0 ? cannot_write(err, r, path) : 0;
}
