/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_FACTS_H
#define WRK_FACTS_H

#include <wire/message.h>

extern const char *wrk_facts_proc; /* the folder of procfs, for tests */

/* Reads what a process and this machine have used; what cannot be read stays as it is. */
void wrk_facts_read(int pid, struct fw_facts *out);

#endif
