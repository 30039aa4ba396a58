/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LOGGER_OPS_H
#define TESTS_UNIT_LOGGER_OPS_H

#include <criterion/criterion.h>

#include "rig_ops.h"

#include <graph/compose.h>

/* Data loggers of whole graphs: what loggers get, in which order, and what becomes of the rest. */

/* A logger that writes down what it gets. */
#define ENTRIES_MAX 4096
static struct {
	char id[64];
	char logger[64];
	enum frag_dir dir;
	int64_t value;
	int has_content;
	int large;
	int64_t metadata; /* "hop"; -1: none */
	int tensors;
	int data;        /* the first byte of the first tensor; -1: not read */
	bool in_compute; /* on the operator's thread, inside its callback */
	char about[160]; /* all else that the message says of itself */
} entries[ENTRIES_MAX];
static _Atomic uint32_t entry_count;
static _Atomic bool gate_is_closed;
static _Atomic uint32_t at_gate, starts, stops;
static _Atomic int fail_with;

struct capture {
	int64_t gate;
};
static const struct frag_param capture_params[] = {FRAG_PARAM_I64(struct capture, gate, 0)};

static inline int capture_start(void *state, const struct frag_resource *logger,
				struct frag_err *err)
{
	const struct capture *capture = state;

	cr_expect_not_null(strstr(frag_resource_name(logger), "log"));
	atomic_fetch_add(&starts, 1);
	return capture->gate == 2 ? frag_err_set(err, -EIO, "it has no paper") : 0;
}

static inline void note_message(const struct frag_message *message, char *out, size_t size)
{
	const char *name = NULL;
	const struct frag_tensor *tensor = frag_message_tensor_at(message, 0, &name);
	uint64_t sequence = 0;
	int n = frag_message_sequence(message, &sequence) == 0
			? snprintf(out, size, "%d: ", (int)sequence)
			: 0;

	n += snprintf(out + n, size - (size_t)n, "at %d, flags %u",
		      (int)frag_message_acquisition_ns(message), frag_message_flags(message));
	if (tensor != NULL)
		snprintf(out + n, size - (size_t)n, ", %s %d.%d of %dx%d by %d, %d", name,
			 tensor->dl.dtype.code, tensor->dl.dtype.bits, (int)tensor->dl.shape[0],
			 (int)tensor->dl.shape[1], (int)tensor->strides[0],
			 (int)tensor->strides[1]);
}

static inline int note(const struct frag_log_entry *entry, int large)
{
	uint32_t i = atomic_fetch_add(&entry_count, 1);
	const struct frag_tensor *tensor = frag_message_tensor(entry->message, NULL);
	const struct frag_type *type;
	const void *value;

	if (i >= ENTRIES_MAX)
		return -ENOSPC;
	snprintf(entries[i].id, sizeof(entries[i].id), "%s", entry->id);
	snprintf(entries[i].logger, sizeof(entries[i].logger), "%s",
		 frag_resource_name(entry->logger));
	entries[i].dir = entry->dir;
	type = frag_message_value(entry->message, &value, NULL);
	entries[i].value = frag_type_equal(type, &frag_type_i64) ? *(const int64_t *)value : -1;
	entries[i].has_content = entry->has_content;
	entries[i].large = large;
	note_message(entry->message, entries[i].about, sizeof(entries[i].about));
	entries[i].tensors = (int)frag_message_tensor_count(entry->message);
	entries[i].data = tensor != NULL && entry->has_content
				  ? *(const uint8_t *)frag_tensor_data(tensor)
				  : -1;
	entries[i].metadata = -1;
	if (entry->metadata != NULL)
		(void)frag_metadata_get_i64(entry->metadata, "hop", &entries[i].metadata);
	entries[i].in_compute = fragi_current()->op != NULL;
	return fail_with;
}

static inline int capture_log(void *state, const struct frag_log_entry *entry)
{
	const struct capture *capture = state;

	while (capture->gate == 1 && atomic_load(&gate_is_closed)) {
		atomic_store(&at_gate, 1);
		usleep(200);
	}
	return note(entry, 0);
}
static inline int capture_log_large(void *state, const struct frag_log_entry *entry)
{
	return note(entry, 1);
}
static inline int capture_stop(void *state)
{
	atomic_fetch_add(&stops, 1);
	return 0;
}

static const struct frag_data_logger_type capture_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,  .name = "capture",      .state_size = sizeof(struct capture),
	FRAG_PARAMS(capture_params), .start = capture_start, .log = capture_log,
	.stop = capture_stop,
};
static const struct frag_data_logger_type async_capture_type = {
	FRAG_DATA_LOGGER_TYPE_INIT,
	.name = "async_capture",
	.flags = FRAG_DATA_LOGGER_ASYNC,
	.state_size = sizeof(struct capture),
	FRAG_PARAMS(capture_params),
	.start = capture_start,
	.log = capture_log,
	.log_large = capture_log_large,
	.stop = capture_stop,
};
static const struct frag_data_logger_type *const loggers[] = {&capture_type, &async_capture_type};

/* Emits numbers with metadata, and changes the metadata after each emit. */
struct tagger {
	int64_t sent;
};
static inline int tagger_compute(void *state, struct frag_tick *tick)
{
	struct tagger *s = state;
	int r;

	(void)frag_metadata_set_i64(frag_tick_metadata(tick), "hop", s->sent);
	r = frag_tick_emit_i64(tick, 0, s->sent);
	return r < 0 ? r : ++s->sent == 5 ? FRAG_DONE : 0;
}
TEST_OP(tagger, .state_size = sizeof(struct tagger), FRAG_PORTS(source_ports));

/* Emits tensors of a pool with room for two. */
struct camera {
	struct frag_resource *pool;
	int64_t sent, refused, count;
};
static const struct frag_port camera_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "tensor"}};
static const struct frag_param camera_params[] = {FRAG_PARAM_RESOURCE(struct camera, pool, NULL),
						  FRAG_PARAM_I64(struct camera, count, 0)};
static _Atomic int64_t camera_refused;
static inline int camera_compute(void *state, struct frag_tick *tick)
{
	static const int64_t shape[] = {2, 3};
	struct camera *s = state;
	struct frag_message *message;
	struct frag_tensor *tensor;
	int r = frag_tensor_create(s->pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 2, shape,
				   &tensor);

	if (r < 0) {
		atomic_fetch_add(&camera_refused, 1);
		return r;
	}
	memset(frag_tensor_writable(tensor), (int)s->sent, 6);
	message = frag_message_create();
	(void)frag_message_set_sequence(message, (uint64_t)s->sent + 100);
	(void)frag_message_set_acquisition_ns(message, s->sent + 7);
	(void)frag_message_set_flags(message, FRAG_MESSAGE_DEGRADED);
	r = frag_message_add_tensor(message, "frame", tensor);
	if (r == 0)
		r = frag_tick_emit(tick, 0, message);
	return r < 0 ? r : ++s->sent == s->count ? FRAG_DONE : 0;
}
TEST_OP(camera, .state_size = sizeof(struct camera), FRAG_PORTS(camera_ports),
	FRAG_PARAMS(camera_params));
static const struct frag_port eye_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "tensor"}};
static inline int eye_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	return r == -ENOMSG ? 0 : r;
}
TEST_OP(eye, FRAG_PORTS(eye_ports));

static inline int compose(struct frag_fragment *fragment)
{
	struct frag_resource *logger =
		frag_make_resource(fragment, "log", "capture", FRAG_ARGS({"log_inputs", "false"}));
	struct frag_op *tx = frag_make_operator(fragment, "tx", "source",
						FRAG_ARGS({"count", "3"})),
		       *rx = frag_make_operator(fragment, "rx", "sink", FRAG_NO_ARGS);
	int r = frag_add_data_logger(fragment, logger);

	if (r == 0)
		r = frag_add_data_logger(fragment, logger); /* which changes nothing */
	return r < 0 ? r : frag_add_flow(fragment, tx, NULL, rx, NULL);
}
static inline int compose_badly(struct frag_fragment *fragment)
{
	cr_expect_eq(frag_add_data_logger(fragment,
					  frag_make_resource(fragment, "pool",
							     "unbounded_allocator", FRAG_NO_ARGS)),
		     -EINVAL);
	return -EINVAL;
}
/* A subgraph of a library with a data logger and one of the graph in it. */
static inline int compose_logged(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	struct frag_op *head = frag_make_operator(fragment, "h", "middle", FRAG_NO_ARGS);
	struct frag_subgraph *leaf = frag_make_subgraph(fragment, "p", "leaf", FRAG_NO_ARGS);
	int r = frag_add_data_logger(fragment,
				     frag_make_resource(fragment, "log", "capture", FRAG_NO_ARGS));

	if (r == 0)
		r = frag_add_interface_port(subgraph, head, "in", NULL);
	if (r == 0)
		r = frag_add_interface_port_of(subgraph, leaf, "out", NULL);
	return r < 0 ? r
		     : frag_add_named_flow(fragment, "h", "out", "p", "in", 0, FRAG_POLICY_DEFAULT);
}
/* The logger of its fragment, which has it already. */
static inline int compose_again(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	(void)subgraph;
	return frag_add_data_logger(fragment, fragi_resource_find(fragment, "log"));
}
static const struct frag_subgraph_type subgraph_types[] = {{"logged_in_c", NULL, compose_logged},
							   {"logged_again", NULL, compose_again}};

static inline int compose_shared(struct frag_fragment *fragment)
{
	int r = frag_add_data_logger(fragment,
				     frag_make_resource(fragment, "log", "capture", FRAG_NO_ARGS));

	frag_make_subgraph(fragment, "cam", "logged_again", FRAG_NO_ARGS);
	return r;
}

static inline int compose_two(struct frag_fragment *fragment)
{
	static const char *const names[] = {"tx", "cam", "cam_2", "rx"};
	int r = 0;

	frag_make_operator(fragment, "tx", "source", FRAG_ARGS({"count", "10"}));
	frag_make_subgraph(fragment, "cam", "logged_in_c", FRAG_NO_ARGS);
	frag_make_subgraph(fragment, "cam_2", "logged_in_c", FRAG_NO_ARGS);
	frag_make_operator(fragment, "rx", "sink", FRAG_NO_ARGS);
	for (int i = 0; r == 0 && i < 3; i++)
		r = frag_add_named_flow(fragment, names[i], "out", names[i + 1], "in", 0,
					FRAG_POLICY_DEFAULT);
	return r;
}

static const struct frag_composer composers[] = {{.name = "logged", .compose = compose},
						 {.name = "two", .compose = compose_two},
						 {.name = "shared", .compose = compose_shared},
						 {.name = "badly", .compose = compose_badly}};

static const struct frag_op_type *const types[] = {&source_type, &middle_type, &sink_type,
						   &gather_type, &tagger_type, &camera_type,
						   &eye_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT,
					  .name = "rig",
					  FRAG_OPS(types),
					  FRAG_DATA_LOGGERS(loggers),
					  FRAG_SUBGRAPHS(subgraph_types),
					  FRAG_COMPOSERS(composers)};

static inline void clear(void)
{
	memset(entries, 0, sizeof(entries));
	atomic_store(&entry_count, 0);
	atomic_store(&gate_is_closed, false);
	atomic_store(&at_gate, 0);
	atomic_store(&starts, 0);
	atomic_store(&stops, 0);
	atomic_store(&fail_with, 0);
	atomic_store(&camera_refused, 0);
}

#define CHAIN                                                                                      \
	"operators:\n"                                                                             \
	"  tx: {type: source, parameters: {count: 20}}\n"                                          \
	"  mx: {type: middle, parameters: {add: 100}}\n"                                           \
	"  rx: {type: sink}\n"                                                                     \
	"flows: [tx -> mx, mx -> rx]\n"

#endif
