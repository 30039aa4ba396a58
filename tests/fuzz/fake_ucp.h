/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FAKE_UCP_H
#define TESTS_FUZZ_FAKE_UCP_H

#include "fuzz.h"

#include <ucp/api/ucp.h>

/*
 * What the module uses of UCX, without a network: active messages are given to its handler by the
 * test, its own sends are read to the last byte and complete at once or later, also never, as UCX's
 * do. One worker.
 */
void fake_ucp_reset(void);
/* How sends and closes complete: 0 at once, 1 with the next progress, 2 never, 3 by an error. */
void fake_ucp_send_mode(int mode);
/*
 * Delivers one active message; rendezvous: only a handle of the data is shown. Everything given is
 * copied.
 */
void fake_ucp_deliver(const void *header, size_t header_size, const void *data, size_t size,
		      bool rendezvous);
/* The endpoint reports an error. */
void fake_ucp_break(void);
/* Whether the endpoint that was closed last is still closing. */
bool fake_ucp_closes(void);
/* Handles and requests that nobody has given back. */
size_t fake_ucp_alive(void);
uint64_t fake_ucp_sent(void); /* active messages since reset */

#endif
