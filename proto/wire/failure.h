/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_FAILURE_H
#define FW_FAILURE_H

#include <stdint.h>

#include <base/failure.h>

/* A failure that the sender decided or passes on. */
struct fw_failure {
	enum fragi_failure code; /* NONE: nothing failed */
	const char *sentence;
	const char *op; /* "fragment.operator" that failed; empty: none */
	/* where in the graph's texts; line 0: nowhere */
	const char *file;
	uint32_t line, column;
};

#endif
