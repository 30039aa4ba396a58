/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_TRANSPORTS_H
#define FRAGI_BASE_TRANSPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include <base/diag.h>

/*
 * The transports that frag has, in one table, the one first that connects any two hosts: graphs
 * name them, graph/transport.h chooses one for each flow between hosts, and hosts open them. A new
 * one is a row here and a module of that name (edge/transport.h). What the driver and the graph
 * know of a transport is in its row, because they do not load modules.
 */

/* The i-th one's name; NULL behind the last. */
FRAGI_API const char *fragi_transport_name(size_t i);
/* Whether there is one of that name. */
FRAGI_API bool fragi_transport_exists(const char *name);
/* Whether the one of that name connects only hosts that share memory. */
FRAGI_API bool fragi_transport_shares_memory(const char *name);
/* The name of the one that hosts get by themselves where they share memory. */
FRAGI_API const char *fragi_transport_of_shared_memory(void);

#endif
