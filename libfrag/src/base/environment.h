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
/*
 * Whether the file that has set the environment of this process, as EnvironmentFile= of a unit, may
 * be believed.
 * - file: NULL, or one that is not there: none has
 * Returns 0; -EINVAL with a sentence: users other than this one and root could change it.
 */
FRAGI_API int fragi_environment_trust(const char *file, struct frag_err *err);
/*
 * The flag that names the file. The environment cannot name it, because then the file could name
 * another one.
 */
#define FRAGI_ENVIRONMENT_FILE_FLAG(variable)                                                           \
	{                                                                                               \
		.name = "env-file", .value = "FILE", .no_env = true,                                    \
		.help = "does not start if others could change this file, which has set its variables", \
		.text = &(variable),                                                                    \
	}

#endif
