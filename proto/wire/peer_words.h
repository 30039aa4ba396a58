/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_PEER_WORDS_H
#define FW_PEER_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* A peer in words, for sentences about it: its address, and what it sent if that is no frame. */

#define FW_PEER_NAME_MAX 64
#define FW_QUOTE_MAX 48

/* Writes "10.0.0.7:41234" or "[::1]:41234" into out, which stays untouched if it is unknown. */
void fw_peer_name(const uv_tcp_t *tcp, char out[FW_PEER_NAME_MAX]);
/* Of a unix socket: "process 4711 of user 1000", which connected, or made the pair. */
void fw_process_name(const uv_pipe_t *pipe, char out[FW_PEER_NAME_MAX]);
/* The first line of a text in quotes; of anything else the first bytes. */
void fw_bytes_quote(const uint8_t *bytes, size_t size, char out[FW_QUOTE_MAX]);
/* A record of TLS 1.x with a handshake or an alert; no frame before HELLO is that long. */
bool fw_bytes_begin_tls(const uint8_t *bytes, size_t size);

#endif
