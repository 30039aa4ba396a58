/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_DATA_LOGGER_H
#define FRAG_DATA_LOGGER_H

#include <stdio.h>

#include <frag/operator.h>
#include <frag/resource.h>

FRAG_BEGIN_DECLS

/*
 * Data loggers: resources that get every message which the operators of a fragment receive and
 * emit. A graph lists them under data_loggers, a composer adds them with frag_add_data_logger. The
 * built-in ones write to the console, to JSON lines and to .npy files (docs/GRAPH.md, "Data
 * loggers"); a plugin lists its own with FRAG_DATA_LOGGERS. (Semantics: Holoscan SDK user guide,
 * "Data Logging".)
 *
 * A logger is synchronous: compute waits until it has logged; or asynchronous: messages go into
 * bounded queues, which threads of the logger empty. Then compute never waits, and a message for
 * which there is no room is rejected and counted.
 */

/* A message, as a logger gets it. Everything is borrowed until the call returns. */
struct frag_log_entry {
	/* set by frag: bytes of this struct that it knows */
	size_t struct_size;
	/* the logger */
	const struct frag_resource *logger;
	/*
	 * "fragment.operator.port"; of a flow of a multi-receiver input "fragment.operator.port:i",
	 * with i from 0
	 */
	const char *id;
	/* FRAG_IN: the operator has received it; FRAG_OUT: it has emitted it */
	enum frag_dir dir;
	const struct frag_message *message;
	/* NULL: the message has none, or log_metadata is off */
	const struct frag_metadata *metadata;
	/* when it was received or emitted: nanoseconds since 1970-01-01 UTC */
	int64_t time_unix_ns;
	/* of this message among all that the logger has taken, from 1 */
	uint64_t number;
	/*
	 * 1: the data of its tensors may be read; 0: it has none, or only their description is to
	 * be logged, and their data must not be read
	 */
	int has_content;
};

/* The logger is asynchronous. */
#define FRAG_DATA_LOGGER_ASYNC 1u
/* It is there for the contents of tensors: log_tensor_data_content is true unless it is set. */
#define FRAG_DATA_LOGGER_CONTENT 2u

/*
 * The table of a type of data logger. Besides its own parameters it has those of all loggers:
 * serializer, log_inputs, log_outputs, log_metadata, log_tensor_data_content, allowlist_patterns
 * and denylist_patterns, and of an asynchronous one those of its queues. frag applies them: log
 * gets what is to be logged.
 *
 * state is `state_size` zeroed bytes, aligned to 64, with the parameters filled in.
 */
struct frag_data_logger_type {
	/* set by FRAG_DATA_LOGGER_TYPE_INIT */
	size_t struct_size;
	/* in graphs */
	const char *name;
	/* one line for people; NULL: none */
	const char *headline;
	/* more lines for people; NULL: none */
	const char *description;
	/* FRAG_DATA_LOGGER_... */
	uint32_t flags;
	size_t state_size;
	/* see FRAG_PARAMS */
	const struct frag_param *params;
	uint32_t param_count;
	uint32_t param_size;
	/*
	 * Called once before anything runs. Returns 0; or a negative errno, which refuses the
	 * application with the sentence in err. NULL: nothing is to be done.
	 */
	int (*start)(void *state, const struct frag_resource *logger, struct frag_err *err);
	/*
	 * Logs one message. One call at a time. Of a synchronous logger on the thread of the
	 * operator, of an asynchronous one on the thread of its queue. Returns 0 or a negative
	 * errno, which is counted; the first one is logged.
	 */
	int (*log)(void *state, const struct frag_log_entry *entry);
	/*
	 * Logs a message of the queue for large data, with the content of its tensors; log has got
	 * its description before. Only one call of log_large runs at a time, but it may overlap
	 * with one of log. NULL: log gets these messages too, and no two calls overlap.
	 */
	int (*log_large)(void *state, const struct frag_log_entry *entry);
	/*
	 * Called once if start succeeded, after the last message. Returns 0 or a negative errno,
	 * which is logged. NULL: nothing is to be done.
	 */
	int (*stop)(void *state);
};

/* Begins the table of a type of data logger. */
#define FRAG_DATA_LOGGER_TYPE_INIT .struct_size = sizeof(struct frag_data_logger_type)

/*
 * Writes the value, the metadata and the tensors of a message on one line, without a newline, with
 * as many elements as the logger's serializer says: as text for people, or as members of a JSON
 * object with id, time and direction ("{...}").
 * Returns 0; -EIO: `out` has failed. Thread: the one that called log. Blocks: as `out` does.
 */
FRAG_API int frag_log_entry_print(const struct frag_log_entry *entry, FILE *out);
FRAG_API int frag_log_entry_print_json(const struct frag_log_entry *entry, FILE *out);
/*
 * Logs a line about the message at level info: its id, then the text. As with frag_op_log,
 * FRAG_LOG_LEVEL may silence it, -q does not.
 * Thread: any. Blocks: while stderr does. RT-safe: no.
 */
FRAG_API void frag_log_entry_log(const struct frag_log_entry *entry, const char *text);

/*
 * Returns what a logger that writes files is to add to their names, borrowed as long as the logger
 * lives: ".fragment" for a logger that is given at the top of a graph with several fragments, each
 * of which has one of its own, maybe in another process; ".instance" for one of an instance of a
 * subgraph, behind ".fragment" if there are several fragments; else "".
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const char *frag_data_logger_suffix(const struct frag_resource *logger);

/* Counts of what became of the messages that a logger was to log. */
struct frag_data_logger_counts {
	/* log or log_large has returned 0 */
	uint64_t logged;
	/* there was no room in the queue, in the queue for large data */
	uint64_t rejected, large_rejected;
	/* log or log_large has returned a failure */
	uint64_t failed;
	/* still queued when shutdown_timeout was over, or a second after an operator hung */
	uint64_t abandoned;
};
/*
 * Reads the counts of a logger.
 * Returns 0; -EINVAL: the resource is no data logger. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_data_logger_counts(const struct frag_resource *logger,
				     struct frag_data_logger_counts *out);

/*
 * Adds a data logger, made by frag_make_resource, to the fragment: it gets the messages of all
 * operators; in the compose of a subgraph, of those in the instance. Adding it again does nothing.
 * Only inside a composer.
 * Returns 0; -EINVAL: logger is NULL, of another fragment, or no data logger; -EBUSY: not inside a
 * composer; -ENOMEM. A failure is worded in the fragment.
 * Thread: the composer's. Blocks: no. RT-safe: no.
 * Source: Holoscan SDK, Fragment::add_data_logger.
 */
FRAG_API int frag_add_data_logger(struct frag_fragment *fragment, struct frag_resource *logger);

FRAG_END_DECLS

#endif
