/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_ENVIRONMENT_H
#define WRK_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <base/arena.h>
#include <workerd/host_user.h>

/* The ports that the data plane may use. */
#define WRK_DATA_PORT_FIRST 10000
#define WRK_DATA_PORT_LAST 32767

/*
 * The environment of a host: this process's own, what its flags say (FRAG_LIBRARY_PATH,
 * FRAG_APP_ROOT, FRAG_LOG_LEVEL, FRAG_UCX), which paths of libraries are accepted
 * (FRAG_LIBRARY_PATHS), and the UCX_ variables of the data plane, which UCX reads before main.
 * Variables that the user has set win and are logged.
 */
struct wrk_environment {
	const char *library_path, *app_root; /* NULL: not given */
	bool is_own_user;                    /* the driver is a process of this user, here */
	const char *ucx_folder;              /* of another UCX; NULL or "": the system's */
	const char *device;                  /* network device of the data plane */
	uint16_t port_first, port_last;
	const char *announced;            /* where others reach these ports; NULL or empty: there */
	const char *may_write;            /* for sentences; NULL: hosts are not restricted */
	const struct wrk_host_user *user; /* NULL: that of this process */
};

/* NULL-ended, in arena; NULL when memory is short. */
char *const *wrk_environment_make(const struct wrk_environment *environment,
				  struct fragi_arena *arena);

/*
 * Sets a variable in such an environment, in arena. Returns 0; -ENOMEM, and it is as it was.
 */
int wrk_environment_set(char *const **environment, const char *name, const char *value,
			struct fragi_arena *arena);

#endif
