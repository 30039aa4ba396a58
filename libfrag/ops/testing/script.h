/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTING_SCRIPT_H
#define TESTING_SCRIPT_H

#include <frag/frag.h>

/*
 * The messages of a test, read from files of lines `TIME TYPE VALUE` (docs/CLI.md, "test"). Of
 * several files, one for each port, they are in the order of their times. Those of one time take
 * turns: in one tick leave the first ones of each file, in the next one the second ones.
 */
struct script_tensor {
	char *name;
	struct frag_tensor *tensor;
};

struct script_message {
	int64_t at_ns;
	size_t order;  /* as it was read */
	size_t turn;   /* how many of its file have the same time and stand right before it */
	uint32_t port; /* index in the map of files */
	const struct frag_type *type; /* NULL: no value */
	union {
		bool b;
		int64_t i;
		double f;
		char *text; /* owned; of all other types: a text, or JSON */
	} value;
	struct script_tensor *tensors;
	uint32_t tensor_count;
};

struct script {
	struct script_message *messages;
	size_t count;
};

#define SCRIPT_LINE_MAX 65536u
#define SCRIPT_MESSAGES_MAX 1000000u

/*
 * files: port: path. times_only: what the messages hold is not read. Returns 0 or a negative errno
 * with a sentence; free with script_fini.
 */
int script_read(struct script *script, const struct frag_string_map *files, bool times_only,
		struct frag_err *err);
void script_fini(struct script *script);
/* The first message behind those that leave in one tick with this one. */
size_t script_after(const struct script *script, size_t message);
/* Makes the message. Returns a new reference; NULL: memory is short. */
struct frag_message *script_message_create(const struct script_message *message);

#endif
