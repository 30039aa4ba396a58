/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include <base/arena.h>
#include <fragctl/run.h>

/* The command lines of daemons that `fragctl run` starts. argv grows in an arena. */
struct ctl_command {
	struct fragi_arena *arena;
	const char **words;
	size_t count, capacity;
	bool no_memory; /* it is not complete */
};

/* A driverd that runs the application, at the address of the roles, or at a free port. */
void ctl_command_driver(struct ctl_command *command, const struct ctl_run_options *options);

struct ctl_command_worker {
	const char *address, *name, *fragments; /* NULL: as workerd has it */
	const char *app_root;
	int verbosity;
	bool is_own_user; /* its hosts are those of this user, root too */
	bool is_once;
};
void ctl_command_worker(struct ctl_command *command, const struct ctl_run_options *options,
			const struct ctl_command_worker *worker);

/* A fragctl web at a free port, which a desktop shows. */
void ctl_command_web(struct ctl_command *command, const struct ctl_run_options *options,
		     const char *address);

/* Becomes the program. Returns an exit code, complained, where that fails. */
int ctl_command_execute(const struct ctl_command *command);

#endif
