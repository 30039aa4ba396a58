// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#define LOG_TOPIC "data"
#include <base/alloc.h>
#include <base/log.h>
#include <base/stamp.h>
#include <data/message.h>
#include <data/metadata.h>
#include <res/data_logger.h>

#define QUEUE_MAX (1 << 20)
#define HANGING_TIMEOUT_NS INT64_C(1000000000)

static const char *const queue_policies[] = {"reject", "raise", NULL};

/* As Holoscan's, with their defaults. */
static const struct frag_param logger_params[] = {
	FRAG_PARAM_RESOURCE(struct fragi_data_logger, serializer, NULL,
			    .headline = "A simple_text_serializer", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_BOOL(struct fragi_data_logger, log_inputs, true,
			.headline = "Log what operators receive"),
	FRAG_PARAM_BOOL(struct fragi_data_logger, log_outputs, true,
			.headline = "Log what operators emit"),
	FRAG_PARAM_BOOL(struct fragi_data_logger, log_metadata, true,
			.headline = "Log the metadata of messages"),
	FRAG_PARAM_BOOL(struct fragi_data_logger, log_tensor_data_content, false,
			.headline = "Log the elements of tensors, not only their description"),
	FRAG_PARAM_STRING_LIST(struct fragi_data_logger, allowlist_patterns, NULL,
			       .headline = "Log only ids in which one of these is found",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct fragi_data_logger, denylist_patterns, NULL,
			       .headline = "Do not log ids in which one of these is found",
			       .description = "Only looked at when allowlist_patterns is empty",
			       .flags = FRAG_PARAM_OPTIONAL),
	/* from here on of asynchronous loggers */
	FRAG_PARAM_I64(struct fragi_data_logger, max_queue_size, 50000, .min = 1, .max = QUEUE_MAX,
		       .headline = "Messages that wait to be logged"),
	FRAG_PARAM_DURATION(struct fragi_data_logger, worker_sleep_time, 50000, .min = 1000,
			    .max = 1e9, .headline = "Pause when the queue is empty"),
	FRAG_PARAM_STRING(struct fragi_data_logger, queue_policy, "reject",
			  .choices = queue_policies,
			  .headline = "Of a full queue: count the message, or fail the operator"),
	FRAG_PARAM_I64(struct fragi_data_logger, large_data_max_queue_size, 1000, .min = 1,
		       .max = QUEUE_MAX, .headline = "The same for contents of tensors"),
	FRAG_PARAM_DURATION(struct fragi_data_logger, large_data_worker_sleep_time, 200000,
			    .min = 1000, .max = 1e9,
			    .headline = "Pause when the queue for large data is empty"),
	FRAG_PARAM_STRING(struct fragi_data_logger, large_data_queue_policy, "reject",
			  .choices = queue_policies, .headline = "Of a full queue for large data"),
	FRAG_PARAM_BOOL(struct fragi_data_logger, enable_large_data_queue, true,
			.headline = "Log contents of tensors, on a thread of their own"),
	FRAG_PARAM_DURATION(struct fragi_data_logger, shutdown_timeout, INT64_C(5000000000),
			    .min = 0, .max = 3.6e12,
			    .headline = "How long the end waits for what is queued"),
};
#define CONTENT_PARAM 4
#define SYNC_PARAM_COUNT 7

struct fragi_data_logger *fragi_data_logger_of(const struct frag_resource *resource)
{
	return resource != NULL && resource->is_logger ? resource->allocator.state : NULL;
}

void fragi_data_logger_bind(void *state, const struct frag_data_logger_type *type,
			    const struct frag_resource *resource)
{
	struct fragi_data_logger *logger = state;

	logger->type = type;
	logger->resource = resource;
	logger->own = (char *)state + FRAGI_DATA_LOGGER_OWN;
}

static bool is_async(const struct fragi_data_logger *logger)
{
	return (logger->type->flags & FRAG_DATA_LOGGER_ASYNC) != 0;
}

static bool is_large_separate(const struct fragi_data_logger *logger)
{
	return logger->enable_large_data_queue && logger->log_tensor_data_content;
}

/* Logging. */

static void call(struct fragi_data_logger *logger, const struct fragi_log_item *item,
		 int (*log)(void *state, const struct frag_log_entry *entry))
{
	const struct fragi_log_point *point = item->point;
	const struct frag_log_entry entry = {
		.struct_size = sizeof(entry),
		.logger = logger->resource,
		.id = point->id,
		.dir = point->dir,
		.message = item->message,
		.metadata = logger->log_metadata ? frag_message_metadata(item->message) : NULL,
		.time_unix_ns = item->time_unix_ns,
		.number = atomic_fetch_add_explicit(&logger->number, 1, memory_order_relaxed) + 1,
		.has_content = item->has_content && item->message->tensor_count > 0,
	};
	int r = log(logger->own, &entry);

	if (r == 0)
		atomic_fetch_add_explicit(&logger->logged, 1, memory_order_relaxed);
	else if (atomic_fetch_add_explicit(&logger->failed, 1, memory_order_relaxed) == 0)
		log_error(NULL,
			  "data logger %s has failed at %s: %s; further failures are counted only",
			  logger->resource->name, point->id, frag_strerror(r));
}

static void log_now(void *arg, const struct fragi_log_item *item)
{
	struct fragi_data_logger *logger = arg;

	pthread_mutex_lock(&logger->lock);
	call(logger, item, logger->type->log);
	pthread_mutex_unlock(&logger->lock);
}

static void log_large(void *arg, const struct fragi_log_item *item)
{
	struct fragi_data_logger *logger = arg;

	if (logger->type->log_large != NULL)
		call(logger, item, logger->type->log_large);
	else
		log_now(arg, item);
}

/* A tensor with the same description and no data. */
static struct frag_tensor *without_data(const struct frag_tensor *tensor)
{
	struct frag_tensor *copy;

	if (fragi_tensor_describe(tensor->dl.dtype, tensor->dl.ndim, tensor->dl.shape, &copy) < 0)
		return NULL;
	copy->dl.device = tensor->dl.device;
	copy->dl.data = NULL;
	memcpy(copy->strides, tensor->strides, sizeof(copy->strides));
	return copy;
}

/*
 * A message with the same value, metadata and descriptions of tensors, which keeps no tensor from
 * going back to its pool. Returns NULL when memory is short.
 */
static struct frag_message *description_of(const struct frag_message *message)
{
	struct frag_message *copy = frag_message_create();
	bool has_fini = message->type != NULL && message->type->fini != NULL;
	struct frag_metadata *metadata = NULL;
	struct frag_tensor *tensor;
	int r = 0;

	if (copy == NULL)
		return NULL;
	for (uint32_t i = 0; r == 0 && i < message->tensor_count; i++) {
		tensor = without_data(message->tensors[i].tensor);
		r = tensor != NULL ? frag_message_add_tensor(copy, message->tensors[i].name, tensor)
				   : -ENOMEM;
	}
	/* What a value with a fini holds belongs to it alone. */
	if (r == 0 && message->type != NULL && !has_fini)
		r = frag_message_set_value(copy, message->type, message->value, message->value_size,
					   NULL);
	if (r == 0 && message->metadata != NULL) {
		metadata = fragi_metadata_copy(message->metadata);
		r = metadata != NULL ? 0 : -ENOMEM;
	}
	if (r < 0) {
		frag_message_unref(copy);
		return NULL;
	}
	fragi_message_set_metadata(copy, metadata);
	fragi_message_copy_stamps(copy, message);
	return copy;
}

/* Puts an item into a queue; takes its reference. NULL: memory was short. */
static int put(struct fragi_log_queue *queue, const struct fragi_log_item *item,
	       _Atomic uint64_t *rejected, bool raises)
{
	if (item->message != NULL && fragi_log_queue_put(queue, item))
		return 0;
	frag_message_unref(item->message);
	atomic_fetch_add_explicit(rejected, 1, memory_order_relaxed);
	return raises ? -ENOBUFS : 0;
}

int fragi_data_logger_log(struct fragi_data_logger *logger, const struct fragi_log_point *point,
			  const struct frag_message *message)
{
	struct fragi_log_item item = {.point = point};
	bool has_tensors = message->tensor_count > 0;
	struct timespec now;
	int r = 0, large = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	item.time_unix_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	item.has_content = has_tensors && logger->log_tensor_data_content &&
			   (!is_async(logger) || logger->enable_large_data_queue);
	if (!is_async(logger)) {
		item.message = (struct frag_message *)(uintptr_t)message;
		log_now(logger, &item);
		return 0;
	}
	if (item.has_content && logger->large.slots != NULL) {
		item.message = frag_message_ref(message);
		large = put(&logger->large, &item, &logger->large_rejected, logger->large_raises);
		item.has_content = false;
	}
	item.message = has_tensors && !item.has_content ? description_of(message)
							: frag_message_ref(message);
	r = put(&logger->queue, &item, &logger->rejected, logger->raises);
	return r < 0 ? r : large;
}

bool fragi_data_logger_wants(const struct fragi_data_logger *logger,
			     const struct fragi_log_point *point)
{
	if (!(point->dir == FRAG_IN ? logger->log_inputs : logger->log_outputs))
		return false;
	if (logger->allowed.count > 0)
		return fragi_log_patterns_match(&logger->allowed, point->id);
	return !fragi_log_patterns_match(&logger->denied, point->id);
}

/* Begin and end. */

static void logger_fini(void *state)
{
	struct fragi_data_logger *logger = state;

	fragi_data_logger_stop(logger, false);
	if (logger->hangs)
		return;
	fragi_log_queue_fini(&logger->queue);
	fragi_log_queue_fini(&logger->large);
	fragi_log_patterns_fini(&logger->allowed);
	fragi_log_patterns_fini(&logger->denied);
	pthread_mutex_destroy(&logger->lock);
}

static int logger_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct fragi_data_logger *logger = state;
	int r;

	logger->text = (struct fragi_text_serializer){10, 10};
	if (logger->serializer != NULL) {
		if (logger->serializer->built_in != &fragi_simple_text_serializer)
			return frag_err_set(
				err, -EINVAL,
				"serializer: %s is a %s; name a resource of type simple_text_serializer",
				logger->serializer->name, logger->serializer->type.name);
		logger->text =
			*(const struct fragi_text_serializer *)logger->serializer->allocator.state;
	}
	logger->raises = is_async(logger) && strcmp(logger->queue_policy, "raise") == 0;
	logger->large_raises =
		is_async(logger) && strcmp(logger->large_data_queue_policy, "raise") == 0;
	pthread_mutex_init(&logger->lock, NULL);
	r = fragi_log_patterns_compile(&logger->allowed, &logger->allowlist_patterns,
				       "allowlist_patterns", err);
	if (r == 0)
		r = fragi_log_patterns_compile(&logger->denied, &logger->denylist_patterns,
					       "denylist_patterns", err);
	if (r < 0) {
		logger_fini(logger);
		return r;
	}
	if (logger->allowed.count > 0 && logger->denied.count > 0)
		log_warn(
			NULL,
			"data logger %s has allowlist_patterns and denylist_patterns; only the allowlist counts",
			resource->name);
	return 0;
}

int fragi_data_logger_start(struct fragi_data_logger *logger, struct frag_err *err)
{
	const char *name = logger->resource->name;
	struct frag_err cause = FRAG_ERR_INIT;
	int r = 0;

	if (is_async(logger))
		r = fragi_log_queue_create(&logger->queue, (uint64_t)logger->max_queue_size,
					   logger->worker_sleep_time, log_now, logger);
	if (r == 0 && is_async(logger) && is_large_separate(logger))
		r = fragi_log_queue_create(&logger->large,
					   (uint64_t)logger->large_data_max_queue_size,
					   logger->large_data_worker_sleep_time, log_large, logger);
	if (r == 0 && logger->type->start != NULL)
		r = logger->type->start(logger->own, logger->resource, &cause);
	if (r > 0)
		r = -EINVAL;
	logger->started = r == 0;
	if (r == 0 && logger->queue.slots != NULL)
		r = fragi_log_queue_start(&logger->queue, name);
	if (r == 0 && logger->large.slots != NULL)
		r = fragi_log_queue_start(&logger->large, name);
	if (r == 0)
		return 0;
	return frag_err_set(err, r, "data logger %s cannot start: %s", name,
			    cause.text[0] != '\0' ? cause.text : frag_strerror(r));
}

static void log_lost(struct fragi_data_logger *logger)
{
	struct frag_data_logger_counts counts;

	(void)frag_data_logger_counts(logger->resource, &counts);
	if (counts.rejected + counts.large_rejected + counts.failed + counts.abandoned == 0) {
		log_debug(NULL, "data logger %s has logged %" PRIu64 " messages",
			  logger->resource->name, counts.logged);
		return;
	}
	log_warn(NULL,
		 "data logger %s: %" PRIu64 " messages logged, %" PRIu64 " rejected and %" PRIu64
		 " contents rejected by full queues, %" PRIu64 " failed, %" PRIu64
		 " not logged within shutdown_timeout",
		 logger->resource->name, counts.logged, counts.rejected, counts.large_rejected,
		 counts.failed, counts.abandoned);
}

void fragi_data_logger_stop(struct fragi_data_logger *logger, bool operator_hangs)
{
	struct fragi_log_queue *queues[] = {&logger->queue, &logger->large};
	int64_t timeout_ns = logger->shutdown_timeout, give_up_ns, left;
	int r;

	if (!logger->started)
		return;
	if (operator_hangs && timeout_ns > HANGING_TIMEOUT_NS)
		timeout_ns = HANGING_TIMEOUT_NS;
	give_up_ns = fragi_now_ns() + timeout_ns;
	logger->started = false;
	for (size_t i = 0; i < FRAG_COUNT_OF(queues); i++) {
		left = fragi_log_queue_stop(queues[i], give_up_ns);
		if (left < 0)
			logger->hangs = true;
		else
			atomic_fetch_add_explicit(&logger->abandoned, (uint64_t)left,
						  memory_order_relaxed);
	}
	if (logger->hangs) {
		log_error(NULL, "data logger %s does not return from log: what it holds is left",
			  logger->resource->name);
		return;
	}
	if (operator_hangs) {
		logger->hangs = true;
		log_lost(logger);
		return;
	}
	r = logger->type->stop != NULL ? logger->type->stop(logger->own) : 0;
	if (r != 0)
		log_error(NULL, "data logger %s could not end well: %s", logger->resource->name,
			  frag_strerror(r));
	log_lost(logger);
}

const char *frag_data_logger_suffix(const struct frag_resource *resource)
{
	const struct fragi_data_logger *logger = fragi_data_logger_of(resource);

	return logger != NULL && logger->suffix != NULL ? logger->suffix : "";
}

int frag_data_logger_counts(const struct frag_resource *resource,
			    struct frag_data_logger_counts *out)
{
	const struct fragi_data_logger *logger = fragi_data_logger_of(resource);

	if (logger == NULL)
		return -EINVAL;
	*out = (struct frag_data_logger_counts){
		.logged = atomic_load_explicit(&logger->logged, memory_order_relaxed),
		.rejected = atomic_load_explicit(&logger->rejected, memory_order_relaxed),
		.large_rejected =
			atomic_load_explicit(&logger->large_rejected, memory_order_relaxed),
		.failed = atomic_load_explicit(&logger->failed, memory_order_relaxed),
		.abandoned = atomic_load_explicit(&logger->abandoned, memory_order_relaxed),
	};
	return 0;
}

const struct fragi_built_in_resource *
fragi_data_logger_resource_type(struct fragi_arena *arena, const struct frag_data_logger_type *type)
{
	uint32_t base = (type->flags & FRAG_DATA_LOGGER_ASYNC) != 0
				? (uint32_t)FRAG_COUNT_OF(logger_params)
				: SYNC_PARAM_COUNT;
	struct frag_param *params =
		fragi_arena_alloc(arena, (base + type->param_count) * sizeof(*params));
	struct fragi_built_in_resource *made = fragi_arena_alloc(arena, sizeof(*made));

	if (params == NULL || made == NULL)
		return NULL;
	memcpy(params, logger_params, base * sizeof(*params));
	params[CONTENT_PARAM].def_int = (type->flags & FRAG_DATA_LOGGER_CONTENT) != 0;
	for (uint32_t i = 0; i < type->param_count; i++) {
		params[base + i] = type->params[i];
		params[base + i].offset += (uint32_t)FRAGI_DATA_LOGGER_OWN;
	}
	*made = (struct fragi_built_in_resource){
		.type = {FRAG_RESOURCE_TYPE_INIT, .name = type->name, .headline = type->headline,
			 .description = type->description, .params = params,
			 .param_count = base + type->param_count,
			 .state_size = FRAGI_DATA_LOGGER_OWN + type->state_size,
			 .setup = logger_setup, .fini = logger_fini},
		.logger = type,
	};
	return made;
}
