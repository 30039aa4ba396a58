/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_ROLES_H
#define CTL_ROLES_H

#include <fragctl/ctl.h>

/*
 * The flags of `fragctl run` that make this process a driver, a worker or both, as those of an
 * application of Holoscan do (Holoscan SDK user guide, "Creating a Distributed Application").
 */
struct ctl_roles {
	bool driver, worker, insecure;
	const char *address, *fragments, *worker_address, *key_file, *start_timeout;
	struct fragi_texts allow_write;
};

#define CTL_ROLE_FLAGS(roles)                                                                      \
	{.name = "driver",                                                                         \
	 .no_env = true,                                                                           \
	 .help = "is the driver of the application, as driverd --app; also with --worker",         \
	 .on = &(roles).driver},                                                                   \
		{.name = "worker",                                                                 \
		 .no_env = true,                                                                   \
		 .help = "is a worker, as workerd --once; also with --driver",                     \
		 .on = &(roles).worker},                                                           \
		{.name = "address",                                                                \
		 .no_env = true,                                                                   \
		 .value = "[HOST][:PORT]",                                                         \
		 .help = "--driver, --worker: where the driver is; default 127.0.0.1:57777",       \
		 .text = &(roles).address},                                                        \
		{.name = "fragments",                                                              \
		 .no_env = true,                                                                   \
		 .value = "a,b|all",                                                               \
		 .help = "--worker: the fragments it takes; default: whatever no worker names",    \
		 .text = &(roles).fragments},                                                      \
		{.name = "worker-address",                                                         \
		 .no_env = true,                                                                   \
		 .value = "IP[:PORT[-PORT]]",                                                      \
		 .help = "--worker: interface and ports of the data plane",                        \
		 .text = &(roles).worker_address},                                                 \
		{.name = "allow-write",                                                            \
		 .no_env = true,                                                                   \
		 .value = "DIR:DIR",                                                               \
		 .help = "--worker: where hosts may write; default: the app folder and the "       \
			 "working folder",                                                         \
		 .texts = &(roles).allow_write},                                                   \
		{.name = "start-timeout",                                                          \
		 .no_env = true,                                                                   \
		 .value = "TIME",                                                                  \
		 .help = "--driver: fails with 4 when the application does not run by then",       \
		 .text = &(roles).start_timeout},                                                  \
		{.name = "key-file",                                                               \
		 .no_env = true,                                                                   \
		 .value = "FILE",                                                                  \
		 .help = "--driver, --worker: their common key (fragctl key new)",                 \
		 .text = &(roles).key_file},                                                       \
	{                                                                                          \
		.name = "insecure", .no_env = true,                                                \
		.help = "--driver, --worker: without a key on an address that is not loopback",    \
		.on = &(roles).insecure                                                            \
	}

/*
 * A command line, divided: Holoscan's applications take their own flags beside those of roles, so
 * if a role is given, what fragctl does not know and stands behind the graph is the application's.
 */
struct ctl_line {
	char **own; /* argv for fragi_flags_parse */
	int own_count;
	char **args; /* of the application, also what follows `--` */
	int arg_count;
};
/* Returns CTL_OK or, complained, CTL_FAILED. The texts are argv's. */
int ctl_line_divide(const struct fragi_flags *flags, int argc, char **argv, struct ctl_line *out);
void ctl_line_fini(struct ctl_line *line);

/* Refuses flags that the roles do not have. Returns CTL_OK or, complained, CTL_USAGE. */
int ctl_roles_check(const struct ctl_roles *roles);
void ctl_roles_fini(struct ctl_roles *roles);

#endif
