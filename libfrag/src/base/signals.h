/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_SIGNALS_H
#define FRAGI_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* Whether whoever started this process has it ignore a signal, as nohup does with SIGHUP. */
static inline bool fragi_signal_is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

#endif
