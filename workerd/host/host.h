/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_HOST_H
#define HOST_HOST_H

/*
 * A host: one process's fragments, driven by frames of its workerd. Runs until it is told to end,
 * its workerd is gone, or the workerd is silent for the time of death. control_fd and ledger_fd are
 * taken; when stop_fd (an eventfd) becomes readable, the host ends as if told so. Returns the exit
 * status.
 */
int host_run(int control_fd, int ledger_fd, int stop_fd);

#endif
