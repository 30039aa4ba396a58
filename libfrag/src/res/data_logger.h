/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_DATA_LOGGER_H
#define FRAGI_RES_DATA_LOGGER_H

#include <regex.h>

#include <base/arena.h>
#include <frag/data_logger.h>
#include <res/log_queue.h>
#include <res/resource.h>

/*
 * A data logger is a resource whose state begins with what all loggers have; the state of its type
 * follows. Its resource type is made of the type's table, with the parameters of both.
 *
 * A synchronous logger logs on the thread of the operator, under a lock. An asynchronous one puts a
 * reference to the message into a queue. Messages with tensors may hold blocks of a pool, so a
 * reference to one goes only where its content is to be logged; else a copy without the data goes
 * in its place.
 */
struct fragi_log_patterns {
	regex_t *items;
	size_t count;
};

/* How messages are written as text; the parameters of simple_text_serializer. */
struct fragi_text_serializer {
	int64_t max_elements, max_metadata_items;
};
extern const struct fragi_built_in_resource fragi_simple_text_serializer;

struct fragi_data_logger {
	/* parameters */
	struct frag_resource *serializer; /* NULL: the defaults */
	bool log_inputs, log_outputs, log_metadata, log_tensor_data_content;
	struct frag_string_list allowlist_patterns, denylist_patterns;
	int64_t max_queue_size, worker_sleep_time;
	const char *queue_policy;
	int64_t large_data_max_queue_size, large_data_worker_sleep_time;
	const char *large_data_queue_policy;
	bool enable_large_data_queue;
	int64_t shutdown_timeout;

	/* constant once created */
	const struct frag_data_logger_type *type;
	const struct frag_resource *resource;
	const char *suffix; /* NULL: none */
	const char *scope;  /* the instance whose operators it logs; NULL: all of the fragment */
	void *own;          /* the state of the type */
	struct fragi_text_serializer text;
	struct fragi_log_patterns allowed, denied;
	bool raises, large_raises; /* the policies of the queues */

	/* control thread */
	bool started;
	bool hangs; /* a thread of it, or an operator, is still in a callback: free nothing */

	pthread_mutex_t lock; /* for calls of log */
	_Alignas(64) _Atomic uint64_t number, logged, failed, abandoned;
	_Atomic uint64_t rejected, large_rejected;
	struct fragi_log_queue queue, large;
};
#define FRAGI_DATA_LOGGER_OWN ((sizeof(struct fragi_data_logger) + 63) & ~(size_t)63)

/*
 * Makes the resource type of a logger's type, in arena. Returns NULL when memory is short.
 */
const struct fragi_built_in_resource *
fragi_data_logger_resource_type(struct fragi_arena *arena,
				const struct frag_data_logger_type *type);
/* Called by fragi_resource_create, once the state is zeroed. */
void fragi_data_logger_bind(void *state, const struct frag_data_logger_type *type,
			    const struct frag_resource *resource);
/* The logger that the resource is; NULL: it is none. */
FRAGI_API struct fragi_data_logger *fragi_data_logger_of(const struct frag_resource *resource);

/* One port of an operator, or one flow of a multi-receiver input, to be logged. Constant. */
struct fragi_log_point {
	const char *id;
	enum frag_dir dir;
};

/* Whether the logger logs what passes there, by direction and patterns. */
FRAGI_API bool fragi_data_logger_wants(const struct fragi_data_logger *logger,
				       const struct fragi_log_point *point);
/* Calls start of the type and starts the threads. Returns 0, or a failure with a sentence. */
FRAGI_API int fragi_data_logger_start(struct fragi_data_logger *logger, struct frag_err *err);
/*
 * Logs a message that is shared already, or puts it into a queue.
 * Returns 0; -ENOBUFS: a queue whose policy is raise is full. Thread: the operator's.
 */
int fragi_data_logger_log(struct fragi_data_logger *logger, const struct fragi_log_point *point,
			  const struct frag_message *message);
/*
 * Logs what waits, within shutdown_timeout, calls stop of the type and logs what was lost.
 * operator_hangs: an operator may still come to log, so nothing is stopped or freed but the threads
 * of the queues, within a second; what waits then and never is logged is counted as abandoned.
 */
FRAGI_API void fragi_data_logger_stop(struct fragi_data_logger *logger, bool operator_hangs);

/* log_pattern.c: returns 0; -EINVAL with a sentence, -ENOMEM. */
int fragi_log_patterns_compile(struct fragi_log_patterns *patterns,
			       const struct frag_string_list *texts, const char *what,
			       struct frag_err *err);
bool fragi_log_patterns_match(const struct fragi_log_patterns *patterns, const char *id);
void fragi_log_patterns_fini(struct fragi_log_patterns *patterns);

#endif
