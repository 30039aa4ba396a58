// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <graph/track_path.h>

#define NS_PER_MS 1e6

void fragi_track_path_destroy(struct fragi_track_path *path)
{
	fragi_free(path->name);
	fragi_free(path->ops);
	fragi_free(path->last_ms);
	fragi_free(path->waits);
	fragi_free(path);
}

bool fragi_track_path_is(const struct fragi_track_path *path, const struct fragi_step *steps)
{
	if (path->length != steps->left)
		return false;
	for (uint32_t i = 0; i < path->length; i++)
		if (path->ops[i] != steps[i].op)
			return false;
	return true;
}

struct fragi_track_path *fragi_track_path_create(const struct fragi_label_names *names,
						 const struct fragi_step *steps)
{
	struct fragi_track_path *path = fragi_calloc(1, sizeof(*path));
	size_t size = 0;
	char *at;

	if (path == NULL)
		return NULL;
	for (uint32_t i = 0; i < steps->left; i++)
		size += strlen(names->name_of(names, steps[i].op)) + 1;
	path->length = steps->left;
	path->name = at = fragi_malloc(size);
	path->ops = fragi_calloc(path->length, sizeof(uint32_t));
	path->waits = fragi_calloc(path->length, sizeof(*path->waits));
	if (path->name == NULL || path->ops == NULL || path->waits == NULL) {
		fragi_track_path_destroy(path);
		return NULL;
	}
	for (uint32_t i = 0; i < path->length; i++) {
		path->ops[i] = steps[i].op;
		at = stpcpy(at, names->name_of(names, steps[i].op));
		*at++ = ',';
	}
	at[-1] = '\0';
	return path;
}

void fragi_track_path_add_waits(struct fragi_track_path *path, const struct fragi_step *steps)
{
	path->messages++;
	for (uint32_t i = 0; i < path->length; i++) {
		struct fragi_track_wait *wait = &path->waits[i];

		if (i > 0)
			wait->waited_ns +=
				fragi_stamp_diff_ns(steps[i - 1].published, steps[i].received);
		wait->sent_ns += steps[i].held_ns;
		wait->network_ns += steps[i].network_ns;
		wait->held_ns += fragi_stamp_diff_ns(steps[i].received, steps[i].published);
	}
}

static void count(struct fragi_track_path *path, double ms)
{
	path->counted++;
	fragi_hist_alone_add(&path->latency, (uint64_t)(ms * NS_PER_MS));
	path->mean_ms += (ms - path->mean_ms) / (double)path->counted;
	if (path->counted == 1 || ms >= path->max_ms) {
		path->max_ms = ms;
		path->max_id = path->counted;
	}
	if (path->counted == 1 || ms <= path->min_ms) {
		path->min_ms = ms;
		path->min_id = path->counted;
	}
}

static double take_last(struct fragi_track_path *path)
{
	double ms = path->last_ms[path->last_at];

	path->last_at = (path->last_at + 1) % path->capacity;
	path->last_count--;
	return ms;
}

static int last_grow(struct fragi_track_path *path)
{
	uint32_t capacity = path->capacity > 0 ? path->capacity * 2 : 16;
	double *last_ms = fragi_calloc(capacity, sizeof(*last_ms));

	if (last_ms == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < path->last_count; i++)
		last_ms[i] = path->last_ms[(path->last_at + i) % path->capacity];
	fragi_free(path->last_ms);
	path->last_ms = last_ms;
	path->last_at = 0;
	path->capacity = capacity;
	return 0;
}

/* Those that are not among the last ones any more are counted. */
int fragi_track_path_put(struct fragi_track_path *path, double ms, uint64_t skip, uint64_t discard)
{
	if (path->skipped < skip) {
		path->skipped++;
		return 0;
	}
	if (path->last_count == path->capacity && last_grow(path) < 0)
		return -ENOMEM;
	path->last_ms[(path->last_at + path->last_count++) % path->capacity] = ms;
	while (path->last_count > discard)
		count(path, take_last(path));
	return 0;
}

static double quantile_ms(const struct fragi_track_path *path, uint32_t per_mille)
{
	return (double)fragi_hist_quantile(&path->latency.hist,
					   fragi_hist_alone_buckets(&path->latency), per_mille) /
	       NS_PER_MS;
}

int fragi_track_path_metric(const struct fragi_track_path *path, enum frag_track_metric metric,
			    double *out_value)
{
	double value = 0;

	switch (metric) {
	case FRAG_TRACK_MAX_MESSAGE_ID:
		value = (double)path->max_id;
		break;
	case FRAG_TRACK_MIN_MESSAGE_ID:
		value = (double)path->min_id;
		break;
	case FRAG_TRACK_MAX_E2E_LATENCY:
		value = path->max_ms;
		break;
	case FRAG_TRACK_AVG_E2E_LATENCY:
		value = path->mean_ms;
		break;
	case FRAG_TRACK_MIN_E2E_LATENCY:
		value = path->min_ms;
		break;
	case FRAG_TRACK_P50_E2E_LATENCY:
		value = quantile_ms(path, 500);
		break;
	case FRAG_TRACK_P99_E2E_LATENCY:
		value = quantile_ms(path, 990);
		break;
	case FRAG_TRACK_P999_E2E_LATENCY:
		value = quantile_ms(path, 999);
		break;
	case FRAG_TRACK_CLOCK_ERROR:
		value = path->error_ms;
		break;
	case FRAG_TRACK_NUM_DST_MESSAGES:
		*out_value = (double)path->counted;
		return 0;
	case FRAG_TRACK_NUM_SRC_MESSAGES:
	default:
		return -EINVAL;
	}
	if (path->counted == 0)
		return -ENODATA;
	*out_value = value;
	return 0;
}

static double mean_ms(const struct fragi_track_path *path, uint64_t sum_ns)
{
	return (double)sum_ns / NS_PER_MS / (double)path->messages;
}

/* "tx 0.010, mx 0.001 (0.004), rx 0.002 (0.100: sent after 0.020, network 0.070)" */
static void describe_waits(const struct fragi_track_path *path, FILE *out)
{
	const char *at = path->name;

	fputs("Mean time (ms) in each operator, and of the wait in front of it:", out);
	for (uint32_t i = 0; i < path->length; i++) {
		const struct fragi_track_wait *wait = &path->waits[i];
		int length = (int)strcspn(at, ",");

		fprintf(out, "%s %.*s %.3f", i > 0 ? "," : "", length, at,
			mean_ms(path, wait->held_ns));
		if (i > 0)
			fprintf(out, " (%.3f", mean_ms(path, wait->waited_ns));
		if (wait->sent_ns + wait->network_ns > 0)
			fprintf(out, ": sent after %.3f, network %.3f",
				mean_ms(path, wait->sent_ns), mean_ms(path, wait->network_ns));
		fputs(i > 0 ? ")" : "", out);
		at += length + 1;
	}
	fputc('\n', out);
}

void fragi_track_path_describe(const struct fragi_track_path *path, FILE *out)
{
	if (path->counted == 0) {
		fputs("No messages tracked for this path.\n\n", out);
		return;
	}
	fprintf(out,
		"Number of messages: %llu\n"
		"Max Latency Message No: %llu\n"
		"Max end-to-end Latency (ms): %.3f\n"
		"Avg end-to-end Latency (ms): %.3f\n"
		"Min Latency Message No: %llu\n"
		"Min end-to-end Latency (ms): %.3f\n"
		"p50, p99, p99.9 end-to-end Latency (ms): %.3f, %.3f, %.3f\n",
		(unsigned long long)path->counted, (unsigned long long)path->max_id, path->max_ms,
		path->mean_ms, (unsigned long long)path->min_id, path->min_ms,
		quantile_ms(path, 500), quantile_ms(path, 990), quantile_ms(path, 999));
	if (path->error_ms > 0)
		fprintf(out, "Clocks of several nodes, each latency within (ms): %.3f\n",
			path->error_ms);
	if (path->messages > 0)
		describe_waits(path, out);
	fputc('\n', out);
}
