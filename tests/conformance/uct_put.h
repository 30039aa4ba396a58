/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_UCT_PUT_H
#define TESTS_CONFORMANCE_UCT_PUT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What a stranger may do with the layer below UCX's protocols: connects to the port (network order)
 * on loopback and asks the process there to write bytes at an address of its own. For a process
 * that ends afterwards: nothing is freed. Returns whether that was sent.
 */
bool uct_put(in_port_t port, uint64_t remote, const void *bytes, size_t size);

#endif
