// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "track"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/strmap.h>
#include <graph/op.h>
#include <frag/draft.h>
#include <graph/track_path.h>
#include <graph/tracker.h>

#define ELSEWHERE_MAX 4096u  /* operators of other processes */
#define ELSEWHERE (1u << 24) /* their numbers begin here */
#define BUCKETS 2048u        /* of paths, by their hash; a power of two */
#define NS_PER_MS 1e6

struct probe {
	char *op;
	bool is_found;
};

struct source {
	char *name;
	_Atomic uint64_t *messages; /* owned; it stays where it is */
};

struct frag_tracker {
	struct fragi_label_names names;
	_Atomic uint32_t refs;
	/* constant while operators run */
	bool spans;
	char **ops; /* names */
	uint32_t op_count;
	struct source *sources;
	uint32_t source_count;
	struct probe *probes;
	uint32_t probe_count;
	bool limited;
	struct fragi_moment moment; /* with the Unix time of the same moment */
	int64_t unix_ns;
	_Atomic uint64_t missed;
	pthread_mutex_t lock; /* of what follows */
	/* a name stays where it is, and a label has its number from under the lock */
	char *elsewhere[ELSEWHERE_MAX];
	uint32_t elsewhere_count;
	struct fragi_strmap numbers; /* of all names, plus 1 */
	uint64_t skip, discard;
	double threshold_ms;
	struct fragi_track_path *paths[FRAG_TRACK_PATHS_MAX], *buckets[BUCKETS];
	uint32_t path_count;
	FILE *log;
	char *log_name;
	uint64_t log_entries, log_buffered;
	int log_error;
};

static const char *name_of(const struct fragi_label_names *names, uint32_t op)
{
	const struct frag_tracker *tracker = (const struct frag_tracker *)names;

	return op < ELSEWHERE ? tracker->ops[op] : tracker->elsewhere[op - ELSEWHERE];
}

struct frag_tracker *fragi_tracker_create(void)
{
	struct frag_tracker *tracker = fragi_calloc(1, sizeof(*tracker));
	struct timespec now;

	if (tracker == NULL)
		return NULL;
	tracker->names.name_of = name_of;
	atomic_init(&tracker->refs, 1);
	pthread_mutex_init(&tracker->lock, NULL);
	tracker->skip = FRAG_TRACK_SKIP_DEFAULT;
	tracker->discard = FRAG_TRACK_DISCARD_DEFAULT;
	fragi_stamp_refine();
	tracker->moment = fragi_moment_now();
	clock_gettime(CLOCK_REALTIME, &now);
	tracker->unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	return tracker;
}

struct frag_tracker *frag_tracker_ref(struct frag_tracker *tracker)
{
	atomic_fetch_add(&tracker->refs, 1);
	return tracker;
}

static void source_fini(struct source *source)
{
	fragi_free(source->name);
	fragi_free(source->messages);
}

void frag_tracker_unref(struct frag_tracker *tracker)
{
	if (tracker == NULL || atomic_fetch_sub(&tracker->refs, 1) != 1)
		return;
	frag_tracker_flush(tracker);
	if (tracker->log != NULL)
		fclose(tracker->log);
	for (uint32_t i = 0; i < tracker->path_count; i++)
		fragi_track_path_destroy(tracker->paths[i]);
	for (uint32_t i = 0; i < tracker->source_count; i++)
		source_fini(&tracker->sources[i]);
	fragi_free(tracker->sources);
	for (uint32_t i = 0; i < tracker->probe_count; i++)
		fragi_free(tracker->probes[i].op);
	fragi_free(tracker->probes);
	for (uint32_t i = 0; i < tracker->op_count; i++)
		fragi_free(tracker->ops[i]);
	fragi_free(tracker->ops);
	for (uint32_t i = 0; i < tracker->elsewhere_count; i++)
		fragi_free(tracker->elsewhere[i]);
	fragi_strmap_fini(&tracker->numbers);
	fragi_free(tracker->log_name);
	pthread_mutex_destroy(&tracker->lock);
	fragi_free(tracker);
}

/* Settings. */

bool fragi_tracker_is_limited(const struct frag_tracker *tracker)
{
	return tracker->limited;
}

void fragi_tracker_set_limited(struct frag_tracker *tracker, bool limited)
{
	tracker->limited = limited;
}

int fragi_tracker_add_op(struct frag_tracker *tracker, const char *name)
{
	char **ops = fragi_realloc(tracker->ops, (tracker->op_count + 1) * sizeof(char *));

	if (ops == NULL)
		return -ENOMEM;
	tracker->ops = ops;
	ops[tracker->op_count] = fragi_strdup(name);
	return ops[tracker->op_count] != NULL ? (int)tracker->op_count++ : -ENOMEM;
}

void fragi_tracker_set_spans(struct frag_tracker *tracker)
{
	tracker->spans = true;
}

const struct fragi_label_names *fragi_tracker_names(const struct frag_tracker *tracker)
{
	return tracker->spans ? &tracker->names : NULL;
}

static int put_number(struct frag_tracker *tracker, const char *name, uint32_t op)
{
	int r = fragi_strmap_put(&tracker->numbers, name, (void *)((uintptr_t)op + 1));

	return r == -EEXIST ? 0 : r;
}

/* The lock is held. The names of this process are put into the map when the first is asked for. */
static int64_t number_of(struct frag_tracker *tracker, const char *name)
{
	uint32_t count = tracker->elsewhere_count;
	const void *found;
	char *copy;

	if (tracker->numbers.count == 0)
		for (uint32_t i = 0; i < tracker->op_count; i++)
			if (put_number(tracker, tracker->ops[i], i) < 0)
				return -ENOMEM;
	found = fragi_strmap_get(&tracker->numbers, name);
	if (found != NULL)
		return (int64_t)(uintptr_t)found - 1;
	copy = count < ELSEWHERE_MAX ? fragi_strdup(name) : NULL;
	if (copy == NULL || put_number(tracker, copy, ELSEWHERE + count) < 0) {
		fragi_free(copy);
		return -ENOMEM;
	}
	tracker->elsewhere[tracker->elsewhere_count++] = copy;
	return ELSEWHERE + count;
}

int64_t fragi_tracker_number_of(struct frag_tracker *tracker, const char *name)
{
	int64_t number;

	pthread_mutex_lock(&tracker->lock);
	number = number_of(tracker, name);
	pthread_mutex_unlock(&tracker->lock);
	return number;
}

_Atomic uint64_t *fragi_tracker_add_source(struct frag_tracker *tracker, const char *op,
					   const char *port)
{
	size_t size = strlen(op) + strlen(port) + sizeof("->");
	struct source source = {.name = fragi_malloc(size),
				.messages = fragi_calloc(1, sizeof(*source.messages))};
	struct source *sources =
		fragi_realloc(tracker->sources, (tracker->source_count + 1) * sizeof(*sources));

	if (sources != NULL)
		tracker->sources = sources;
	if (source.name == NULL || source.messages == NULL || sources == NULL) {
		source_fini(&source);
		return NULL;
	}
	snprintf(source.name, size, "%s->%s", op, port);
	sources[tracker->source_count++] = source;
	return source.messages;
}

int frag_tracker_add_probe_operator(struct frag_tracker *tracker, const char *op)
{
	struct probe *probes;
	char *name;

	if (op == NULL || op[0] == '\0')
		return -EINVAL;
	for (uint32_t i = 0; i < tracker->probe_count; i++)
		if (strcmp(tracker->probes[i].op, op) == 0)
			return 0;
	probes = fragi_realloc(tracker->probes, (tracker->probe_count + 1) * sizeof(*probes));
	if (probes == NULL)
		return -ENOMEM;
	tracker->probes = probes;
	name = fragi_strdup(op);
	if (name == NULL)
		return -ENOMEM;
	probes[tracker->probe_count++] = (struct probe){.op = name};
	return 0;
}

bool fragi_tracker_is_probe(struct frag_tracker *tracker, const struct frag_op *op)
{
	bool is_probe = false;

	for (uint32_t i = 0; i < tracker->probe_count; i++) {
		struct probe *probe = &tracker->probes[i];

		if (strcmp(probe->op, op->name) == 0 || strcmp(probe->op, op->subject) == 0)
			is_probe = probe->is_found = true;
	}
	return is_probe;
}

const char *fragi_tracker_lost_probe(const struct frag_tracker *tracker)
{
	for (uint32_t i = 0; i < tracker->probe_count; i++)
		if (!tracker->probes[i].is_found)
			return tracker->probes[i].op;
	return NULL;
}

int frag_tracker_set_skip_starting_messages(struct frag_tracker *tracker, uint64_t num)
{
	pthread_mutex_lock(&tracker->lock);
	tracker->skip = num;
	pthread_mutex_unlock(&tracker->lock);
	return 0;
}

int frag_tracker_set_discard_last_messages(struct frag_tracker *tracker, uint64_t num)
{
	if (num > FRAG_TRACK_DISCARD_MAX)
		return -EINVAL;
	pthread_mutex_lock(&tracker->lock);
	tracker->discard = num;
	pthread_mutex_unlock(&tracker->lock);
	return 0;
}

int frag_tracker_set_skip_latencies(struct frag_tracker *tracker, int64_t threshold_ms)
{
	pthread_mutex_lock(&tracker->lock);
	tracker->threshold_ms = (double)threshold_ms;
	pthread_mutex_unlock(&tracker->lock);
	return 0;
}

/* Counting. The lock is held. */

static uint32_t bucket_of(const struct fragi_step *steps)
{
	uint32_t hash = 2166136261u;

	for (uint32_t i = 0; i < steps->left; i++)
		hash = (hash ^ steps[i].op) * 16777619u;
	return (hash ^ hash >> 16) & (BUCKETS - 1);
}

static struct fragi_track_path *path_of(struct frag_tracker *tracker,
					const struct fragi_step *steps)
{
	struct fragi_track_path **bucket = &tracker->buckets[bucket_of(steps)], *path = *bucket;

	while (path != NULL && !fragi_track_path_is(path, steps))
		path = path->next;
	if (path != NULL || tracker->path_count == FRAG_TRACK_PATHS_MAX)
		return path;
	path = fragi_track_path_create(&tracker->names, steps);
	if (path == NULL)
		return NULL;
	path->next = *bucket;
	*bucket = path;
	tracker->paths[tracker->path_count++] = path;
	return path;
}

void fragi_tracker_count(struct frag_tracker *tracker, const struct fragi_step *steps,
			 uint64_t latency_ns)
{
	double ms = (double)latency_ns / NS_PER_MS;
	const char *why = NULL;
	struct fragi_track_path *path;

	pthread_mutex_lock(&tracker->lock);
	path = path_of(tracker, steps);
	if (path == NULL)
		why = tracker->path_count == FRAG_TRACK_PATHS_MAX ? "more than 1024 different paths"
								  : "out of memory";
	else if (ms >= tracker->threshold_ms &&
		 fragi_track_path_put(path, ms, tracker->skip, tracker->discard) < 0)
		why = "out of memory";
	pthread_mutex_unlock(&tracker->lock);
	if (why != NULL)
		fragi_tracker_miss(tracker, why);
}

void fragi_tracker_record(struct frag_tracker *tracker, const struct fragi_step *steps)
{
	struct fragi_track_path *path;

	fragi_tracker_count(tracker, steps,
			    fragi_stamp_diff_ns(steps->received, steps[steps->left - 1].published));
	pthread_mutex_lock(&tracker->lock);
	path = path_of(tracker, steps);
	if (path != NULL)
		fragi_track_path_add_waits(path, steps);
	pthread_mutex_unlock(&tracker->lock);
}

void fragi_tracker_note_error(struct frag_tracker *tracker, const struct fragi_step *steps,
			      uint64_t error_ns)
{
	const double ms = (double)error_ns / NS_PER_MS;
	struct fragi_track_path *path;

	pthread_mutex_lock(&tracker->lock);
	path = path_of(tracker, steps);
	if (path != NULL && path->error_ms < ms)
		path->error_ms = ms;
	pthread_mutex_unlock(&tracker->lock);
}

void fragi_tracker_miss(struct frag_tracker *tracker, const char *why)
{
	if (atomic_fetch_add(&tracker->missed, 1) == 0)
		log_warn(NULL, "%s: what is beyond is not tracked, and counted", why);
}

uint64_t frag_tracker_untracked(struct frag_tracker *tracker)
{
	return atomic_load(&tracker->missed);
}

/* Reading. */

uint32_t frag_tracker_num_paths(struct frag_tracker *tracker)
{
	uint32_t n;

	pthread_mutex_lock(&tracker->lock);
	n = tracker->path_count;
	pthread_mutex_unlock(&tracker->lock);
	return n;
}

const char *frag_tracker_path(struct frag_tracker *tracker, uint32_t i)
{
	const char *name;

	pthread_mutex_lock(&tracker->lock);
	name = i < tracker->path_count ? tracker->paths[i]->name : NULL;
	pthread_mutex_unlock(&tracker->lock);
	return name;
}

int frag_tracker_metric(struct frag_tracker *tracker, const char *path,
			enum frag_track_metric metric, double *out_value)
{
	int r = -ENOENT;

	pthread_mutex_lock(&tracker->lock);
	for (uint32_t i = 0; r == -ENOENT && i < tracker->path_count; i++)
		if (strcmp(tracker->paths[i]->name, path) == 0)
			r = fragi_track_path_metric(tracker->paths[i], metric, out_value);
	pthread_mutex_unlock(&tracker->lock);
	return r;
}

const char *frag_tracker_source(struct frag_tracker *tracker, uint32_t i, uint64_t *out_messages)
{
	if (i >= tracker->source_count)
		return NULL;
	*out_messages = atomic_load_explicit(tracker->sources[i].messages, memory_order_relaxed);
	return tracker->sources[i].name;
}

static void describe(struct frag_tracker *tracker, FILE *out)
{
	uint64_t messages = frag_tracker_untracked(tracker);
	const char *name;

	pthread_mutex_lock(&tracker->lock);
	fprintf(out, "Data Flow Tracking Results:\nTotal paths: %u\n\n", tracker->path_count);
	for (uint32_t i = 0; i < tracker->path_count; i++) {
		fprintf(out, "Path %u: %s\n", i + 1, tracker->paths[i]->name);
		fragi_track_path_describe(tracker->paths[i], out);
	}
	pthread_mutex_unlock(&tracker->lock);
	if (messages > 0)
		fprintf(out, "Not tracked, being beyond a bound: %llu\n\n",
			(unsigned long long)messages);
	fputs(tracker->source_count == 0
		      ? "No source messages found.\n"
		      : "Number of source messages [format: source operator->transmitter name: number of messages]:\n",
	      out);
	for (uint32_t i = 0; (name = frag_tracker_source(tracker, i, &messages)) != NULL; i++)
		fprintf(out, "%s: %llu\n", name, (unsigned long long)messages);
}

char *frag_tracker_describe(struct frag_tracker *tracker)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool failed;

	if (out == NULL)
		return NULL;
	describe(tracker, out);
	failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

void frag_tracker_print(struct frag_tracker *tracker)
{
	char *text = frag_tracker_describe(tracker);

	if (text != NULL)
		fputs(text, stdout);
	fflush(stdout);
	free(text);
}

/* The log. */

int frag_tracker_enable_logging(struct frag_tracker *tracker, const char *path,
				uint64_t num_buffered_messages)
{
	char *name = path != NULL ? fragi_strdup(path) : NULL;
	FILE *log = NULL, *old;
	int r;

	if (path == NULL || path[0] == '\0' || num_buffered_messages == 0) {
		fragi_free(name);
		return -EINVAL;
	}
	r = name != NULL ? frag_output_open(path, &log) : -ENOMEM;
	if (r < 0) {
		fragi_free(name);
		return r;
	}
	pthread_mutex_lock(&tracker->lock);
	old = tracker->log;
	tracker->log = log;
	fragi_free(tracker->log_name);
	tracker->log_name = name;
	tracker->log_buffered = num_buffered_messages;
	tracker->log_entries = 0;
	tracker->log_error = 0;
	pthread_mutex_unlock(&tracker->lock);
	if (old != NULL)
		fclose(old);
	return 0;
}

/* The lock is held. The first failure is kept, and logged. */
static void log_write(struct frag_tracker *tracker)
{
	if ((fflush(tracker->log) == 0 && !ferror(tracker->log)) || tracker->log_error != 0)
		return;
	tracker->log_error = errno != 0 ? -errno : -EIO;
	log_warn(NULL, "cannot write %s: %s; it is not complete", tracker->log_name,
		 frag_strerror(tracker->log_error));
}

int frag_tracker_flush(struct frag_tracker *tracker)
{
	int r = 0;

	pthread_mutex_lock(&tracker->lock);
	if (tracker->log != NULL) {
		log_write(tracker);
		r = tracker->log_error;
	}
	pthread_mutex_unlock(&tracker->lock);
	return r;
}

static long long unix_us(const struct frag_tracker *tracker, uint64_t stamp)
{
	return (tracker->unix_ns + fragi_moment_ns_at(&tracker->moment, stamp) -
		tracker->moment.ns) /
	       1000;
}

void fragi_tracker_log(struct frag_tracker *tracker, const struct fragi_step *steps, size_t n)
{
	pthread_mutex_lock(&tracker->lock);
	if (tracker->log != NULL && tracker->log_error == 0) {
		fprintf(tracker->log, "%llu:\n", (unsigned long long)++tracker->log_entries);
		for (const struct fragi_step *step = steps; step < steps + n; step++)
			fprintf(tracker->log, "(%s,%lld,%lld)%s",
				name_of(&tracker->names, step->op),
				unix_us(tracker, step->received), unix_us(tracker, step->published),
				step->left > 1 ? " -> " : "\n");
		fputc('\n', tracker->log);
		if (tracker->log_entries % tracker->log_buffered == 0)
			log_write(tracker);
	}
	pthread_mutex_unlock(&tracker->lock);
}

/* Of a fragment. */

struct frag_tracker *frag_fragment_track(struct frag_fragment *fragment,
					 uint64_t num_start_messages_to_skip,
					 uint64_t num_last_messages_to_discard,
					 int64_t latency_threshold_ms, int is_limited_tracking)
{
	struct frag_tracker *tracker = fragment->tracker;

	if (num_last_messages_to_discard > FRAG_TRACK_DISCARD_MAX) {
		frag_fragment_fail(fragment, -EINVAL,
				   "cannot track: %llu messages to discard are more than %d",
				   (unsigned long long)num_last_messages_to_discard,
				   FRAG_TRACK_DISCARD_MAX);
		return NULL;
	}
	if (tracker == NULL)
		tracker = fragi_tracker_create();
	if (tracker == NULL) {
		frag_fragment_fail(fragment, -ENOMEM, "cannot track: out of memory");
		return NULL;
	}
	frag_tracker_set_skip_starting_messages(tracker, num_start_messages_to_skip);
	frag_tracker_set_discard_last_messages(tracker, num_last_messages_to_discard);
	frag_tracker_set_skip_latencies(tracker, latency_threshold_ms);
	fragi_tracker_set_limited(tracker, is_limited_tracking != 0);
	fragment->tracker = tracker;
	return tracker;
}

struct frag_tracker *frag_fragment_tracker(const struct frag_fragment *fragment)
{
	return fragment->tracker;
}
