// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/bytes.h>
#include <base/failure.h>

/*
 * The address of a host: where its socket is, the secret that opens it, and what decides whether
 * two hosts can share memory: machine, namespace of the network (abstract sockets belong to one)
 * and user.
 *
 *   0 u32 magic   4 u16 layout   6 u16 0   8 u32 uid   12 u32 0   16 u8[16] name   32 u8[16] secret
 *   48 char[64] machine   112 char[64] loopback   176 char[64] clock
 */
#define ADDRESS_MAGIC 0x41534646u /* "FFSA" */

enum {
	AT_UID = 8,
	AT_NAME = 16,
	AT_SECRET = AT_NAME + SHM_NAME_BYTES,
	AT_MACHINE = AT_SECRET + SHM_SECRET_BYTES,
	AT_LOOPBACK = AT_MACHINE + FRAGI_IDENTITY_SIZE,
	AT_CLOCK = AT_LOOPBACK + FRAGI_IDENTITY_SIZE,
	ADDRESS_BYTES = AT_CLOCK + FRAGI_IDENTITY_SIZE,
};

static void get_text(const uint8_t *at, char out[FRAGI_IDENTITY_SIZE])
{
	memcpy(out, at, FRAGI_IDENTITY_SIZE);
	out[FRAGI_IDENTITY_SIZE - 1] = '\0';
}

int shm_address_make(struct shm_transport *transport, struct frag_err *err)
{
	uint8_t *bytes = fragi_calloc(1, ADDRESS_BYTES);
	int r = bytes == NULL ? -ENOMEM : fragi_identity_machine(transport->machine);

	if (r == 0)
		r = fragi_identity_loopback(transport->loopback);
	if (r == 0)
		r = fragi_identity_clock(false, transport->clock);
	if (r < 0) {
		fragi_free(bytes);
		return frag_err_set(err, r, "cannot tell which machine this is (%s)",
				    frag_strerror(r));
	}
	fragi_put32(bytes, ADDRESS_MAGIC);
	fragi_put16(bytes + 4, SHM_LAYOUT);
	fragi_put32(bytes + AT_UID, (uint32_t)geteuid());
	memcpy(bytes + AT_NAME, transport->name, SHM_NAME_BYTES);
	memcpy(bytes + AT_SECRET, transport->secret, SHM_SECRET_BYTES);
	memcpy(bytes + AT_MACHINE, transport->machine, FRAGI_IDENTITY_SIZE);
	memcpy(bytes + AT_LOOPBACK, transport->loopback, FRAGI_IDENTITY_SIZE);
	memcpy(bytes + AT_CLOCK, transport->clock, FRAGI_IDENTITY_SIZE);
	transport->address = bytes;
	transport->address_size = ADDRESS_BYTES;
	return 0;
}

int shm_address_check(const struct shm_transport *transport, const void *address, size_t size,
		      struct shm_endpoint *out_peer, struct frag_err *err)
{
	const uint8_t *bytes = address;
	char machine[FRAGI_IDENTITY_SIZE], loopback[FRAGI_IDENTITY_SIZE];
	char clock[FRAGI_IDENTITY_SIZE];

	if (size != ADDRESS_BYTES || fragi_get32(bytes) != ADDRESS_MAGIC)
		return frag_err_set(err, -EBADMSG, "the other host's data address is malformed");
	if (fragi_get16(bytes + 4) != SHM_LAYOUT)
		return frag_err_set(
			err, -EPROTO,
			"the other host's data address has layout %u, this frag knows %u; use the same frag for all workers of a node",
			fragi_get16(bytes + 4), SHM_LAYOUT);
	get_text(bytes + AT_MACHINE, machine);
	get_text(bytes + AT_LOOPBACK, loopback);
	get_text(bytes + AT_CLOCK, clock);
	if (!fragi_identity_is_same(machine, transport->machine))
		return fragi_err_fail(err, FRAGI_FAILURE_EDGE_REFUSED, NULL, -EHOSTUNREACH,
				      "the other host is on another machine; use edge: ucx");
	if (!fragi_identity_is_same(loopback, transport->loopback))
		return fragi_err_fail(
			err, FRAGI_FAILURE_EDGE_REFUSED, NULL, -EHOSTUNREACH,
			"the other host is in another network namespace (another container); use edge: ucx");
	if (fragi_get32(bytes + AT_UID) != geteuid())
		return fragi_err_fail(
			err, FRAGI_FAILURE_EDGE_REFUSED, NULL, -EACCES,
			"the other host runs as user %u and this one as user %u, and users do not share memory; run both workers' hosts as one user, or use edge: ucx",
			fragi_get32(bytes + AT_UID), (unsigned int)geteuid());
	memcpy(out_peer->name, bytes + AT_NAME, SHM_NAME_BYTES);
	memcpy(out_peer->secret, bytes + AT_SECRET, SHM_SECRET_BYTES);
	out_peer->base.same_node = true;
	out_peer->base.timeline = fragi_timeline_between(transport->clock, clock);
	return 0;
}
