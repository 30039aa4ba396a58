/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_RUN_CLIENTS_H
#define CTL_RUN_CLIENTS_H

#include <driverd/connections.h>
#include <driverd/listener.h>
#include <runner/runner.h>

/*
 * Clients of a run without daemons, such as `fragctl top` in a second terminal: the unix socket of
 * a driver that listens on no port. Its file is named like that of one that does, and the number is
 * held meanwhile, so that no driver gets the same.
 */
struct ctl_run_clients {
	struct runner *runner; /* NULL: nobody can come */
	uv_loop_t *loop;
	struct fw_users users;
	struct drv_listener listener;
	struct drv_connections connections;
	int port_fd;
};

/* After runner_init. Where it cannot be, the run goes on without. */
void ctl_run_clients_open(struct ctl_run_clients *clients, uv_loop_t *loop, struct runner *runner);
/* What the driver's core does about one of them; the frame may be taken. */
void ctl_run_clients_act(struct ctl_run_clients *clients, struct drv_action *action);
/*
 * No new ones come, and those that there are get what was sent. Then the loop runs out. Zeroed:
 * nothing.
 */
void ctl_run_clients_close(struct ctl_run_clients *clients);
/* After the loop. */
void ctl_run_clients_fini(struct ctl_run_clients *clients);

#endif
