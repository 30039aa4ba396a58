/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTING_SCRIPT_H
#define TESTING_SCRIPT_H

#include <frag/frag.h>

/*
 * The messages of a test, read from files of lines `TIME TYPE VALUE` (docs/CLI.md, "test"). Of
 * several files, one for each port, they are in the order of their times; of equal times in that of
 * the files.
 */
struct script_message {
	int64_t at_ns;
	size_t order;  /* as it was read */
	uint32_t port; /* index in the map of files */
	const struct frag_type *type;
	union {
		bool b;
		int64_t i;
		double f;
		char *text; /* owned */
	} value;
};

struct script {
	struct script_message *messages;
	size_t count;
};

#define SCRIPT_LINE_MAX 65536u
#define SCRIPT_MESSAGES_MAX 1000000u

/* files: port: path. Returns 0 or a negative errno with a sentence; free with script_fini. */
int script_read(struct script *script, const struct frag_string_map *files, struct frag_err *err);
void script_fini(struct script *script);

#endif
