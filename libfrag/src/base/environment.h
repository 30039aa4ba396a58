/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_ENVIRONMENT_H
#define FRAGI_BASE_ENVIRONMENT_H

#include <base/diag.h>

/*
 * Set, for the programs that a program of frag starts, when it has looked at the environment and at
 * the graph: what is odd about them is logged once.
 */
#define FRAGI_ENVIRONMENT_CHECKED "FRAG_ENVIRONMENT_CHECKED"

/*
 * Warns of each variable FRAG_... that no program of frag reads, with the name that may have been
 * meant. All programs know all names, because one file of settings may serve several of them. Call
 * after fragi_log_init.
 */
FRAGI_API void fragi_environment_check(void);

#endif
