/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_UCX_PREFACE_H
#define FRAGI_UCX_PREFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * The preface is what the side that connects sends first on a connection to another host's data
 * port: 16 random bytes (the nonce), then HMAC-SHA256 over the nonce, the addresses of both ends
 * and the identity of the host that is connected to. The key is derived from the application's data
 * key. So it proves that a host of the same application opened this very connection: it is worth
 * nothing on another connection, at another host, or a second time.
 *
 * Nothing here does I/O.
 */
#define UCX_PREFACE_BYTES 48u
#define UCX_NONCE_BYTES 16u
#define UCX_GATE_KEY_BYTES 32u
#define UCX_END_BYTES 18u      /* an IPv6 address, or an IPv4 one mapped to it; the port */
#define UCX_IDENTITY_BYTES 16u /* random, of each host */
/*
 * The most that one host admits in its life: so many nonces are kept, 2 MiB. Peers connect once,
 * and again after they were restarted.
 */
#define UCX_ADMITTED_MAX 65536u

struct ucx_ends {
	/* from: zeros where the sender's address is translated on the way, so nobody can know it */
	uint8_t from[UCX_END_BYTES], to[UCX_END_BYTES];
	uint8_t identity[UCX_IDENTITY_BYTES]; /* of the host at `to` */
};

enum ucx_verdict {
	UCX_ADMITTED,
	UCX_REFUSED_SILENT,   /* nothing came in time */
	UCX_REFUSED_SHORT,    /* less than a preface came */
	UCX_REFUSED_FORGED,   /* made without the key, or for another connection */
	UCX_REFUSED_REPLAYED, /* seen before */
	UCX_REFUSED_FULL,     /* UCX_ADMITTED_MAX */
	UCX_REFUSED_MEMORY,
	UCX_REFUSED_DESCRIPTORS, /* there was none left to take it */
};

struct ucx_judge {
	const uint8_t *key;                 /* UCX_GATE_KEY_BYTES; borrowed */
	uint8_t (*nonces)[UCX_NONCE_BYTES]; /* a hash table of those admitted; zeros: free */
	uint32_t capacity, count;
};

/* Returns 0 or -ENOMEM. */
int ucx_gate_key(const uint8_t *data_key, uint8_t *out_key);
/* Returns 0, or -EAFNOSUPPORT for an address that is neither IPv4 nor IPv6. */
int ucx_end_of(const struct sockaddr *address, uint8_t *out_end);
/* "10.0.0.9": without the port. */
#define UCX_END_TEXT 46
void ucx_end_text(const uint8_t *end, char out[UCX_END_TEXT]);
/* "10.0.0.9:11022" */
#define UCX_END_PORT_TEXT (UCX_END_TEXT + 8)
void ucx_end_port_text(const uint8_t *end, char out[UCX_END_PORT_TEXT]);
/* The reverse of ucx_end_of, in that family. Returns 0 or -EAFNOSUPPORT. */
int ucx_end_to(const uint8_t *end, struct sockaddr *address);
/* bytes: UCX_PREFACE_BYTES that begin with the nonce; receives the rest. Returns 0 or -ENOMEM. */
int ucx_preface_make(const uint8_t *key, const struct ucx_ends *ends, uint8_t *bytes);
/* bytes: what came first on the connection between these ends, up to UCX_PREFACE_BYTES. */
enum ucx_verdict ucx_judge(struct ucx_judge *judge, const struct ucx_ends *ends,
			   const uint8_t *bytes, size_t size);
void ucx_judge_fini(struct ucx_judge *judge);
/* "it does not have the application's key": why it was refused, for a sentence. */
const char *ucx_verdict_text(enum ucx_verdict verdict);

#endif
