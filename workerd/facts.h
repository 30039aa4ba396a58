/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_FACTS_H
#define WRK_FACTS_H

#include <wire/message.h>

extern const char *wrk_facts_proc; /* the folder of procfs, for tests */

/* Of the last read of a process; zero at first. */
struct wrk_facts_past {
	uint64_t at_ns, io_ns;
};

/*
 * Reads what a process and this machine have used; what cannot be read stays as it is. out->at_ns
 * says when.
 */
void wrk_facts_read(int pid, struct wrk_facts_past *past, struct fw_facts *out);

#endif
