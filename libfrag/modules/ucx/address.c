// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include <base/bytes.h>

/*
 * The address of a host: UCX's own worker address behind what decides whether two hosts can work
 * together.
 *
 *   0 u32 magic   4 u16 layout   6 u16 bytes of the worker address   8 char[16] UCX version
 *   24 char[64] machine   88 char[64] clock   152 char[16] UCX_TCP_RX_SEG_SIZE
 *   168 char[16] UCX_PROTO_ENABLE   184 worker address
 */
#define ADDRESS_MAGIC 0x41524655u /* "UFRA" */
/* 1: an active message id for each kind; 2: a boot id for the clock too */
#define ADDRESS_LAYOUT 3u
#define ADDRESS_HEAD_BYTES 184u

enum { AT_VERSION = 8, AT_MACHINE = 24, AT_CLOCK = 88, AT_RX_SEG = 152, AT_PROTO = 168 };

static const struct {
	const char *name;
	size_t at;
	/* what must be equal on both sides: a difference aborts or garbles the peer */
} wire_settings[] = {{"UCX_TCP_RX_SEG_SIZE", AT_RX_SEG}, {"UCX_PROTO_ENABLE", AT_PROTO}};

static void put_text(uint8_t *at, size_t size, const char *text)
{
	memset(at, 0, size);
	memcpy(at, text, strnlen(text, size - 1));
}

static void get_text(const uint8_t *at, size_t size, char *out)
{
	memcpy(out, at, size);
	out[size - 1] = '\0';
	for (char *c = out; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static const char *setting(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && *value != '\0' ? value : "default";
}

int ucx_address_make(struct ucx_transport *transport, const void *worker_address, size_t size)
{
	uint8_t *bytes;
	int r;

	if (ADDRESS_HEAD_BYTES + size > FRAGI_HOST_ADDRESS_MAX)
		return -EMSGSIZE;
	r = fragi_identity_machine(transport->machine);
	if (r == 0)
		r = fragi_identity_clock(false, transport->clock);
	if (r < 0)
		return r;
	bytes = fragi_calloc(1, ADDRESS_HEAD_BYTES + size);
	if (bytes == NULL)
		return -ENOMEM;
	fragi_put32(bytes, ADDRESS_MAGIC);
	fragi_put16(bytes + 4, ADDRESS_LAYOUT);
	fragi_put16(bytes + 6, (uint16_t)size);
	put_text(bytes + AT_VERSION, 16, transport->base.version);
	put_text(bytes + AT_MACHINE, FRAGI_IDENTITY_SIZE, transport->machine);
	put_text(bytes + AT_CLOCK, FRAGI_IDENTITY_SIZE, transport->clock);
	for (size_t i = 0; i < FRAG_COUNT_OF(wire_settings); i++)
		put_text(bytes + wire_settings[i].at, 16, setting(wire_settings[i].name));
	memcpy(bytes + ADDRESS_HEAD_BYTES, worker_address, size);
	transport->address = bytes;
	transport->address_size = ADDRESS_HEAD_BYTES + size;
	return 0;
}

int ucx_address_check(const struct ucx_transport *transport, const void *address, size_t size,
		      const void **out_worker_address, struct fragi_endpoint *out_peer,
		      struct frag_err *err)
{
	const uint8_t *bytes = address;
	char machine[FRAGI_IDENTITY_SIZE], clock[FRAGI_IDENTITY_SIZE], theirs[16], ours[16];

	if (size <= ADDRESS_HEAD_BYTES || fragi_get32(bytes) != ADDRESS_MAGIC ||
	    fragi_get16(bytes + 6) != size - ADDRESS_HEAD_BYTES)
		return frag_err_set(err, -EBADMSG, "the other host's data address is malformed");
	if (fragi_get16(bytes + 4) != ADDRESS_LAYOUT)
		return frag_err_set(
			err, -EPROTO,
			"the other host's data address has layout %u, this frag knows %u; install the same frag on both nodes",
			fragi_get16(bytes + 4), ADDRESS_LAYOUT);
	get_text(bytes + AT_VERSION, 16, out_peer->version);
	get_text(bytes + AT_MACHINE, FRAGI_IDENTITY_SIZE, machine);
	get_text(bytes + AT_CLOCK, FRAGI_IDENTITY_SIZE, clock);
	out_peer->same_node = fragi_identity_is_same(machine, transport->machine);
	out_peer->same_clock = fragi_identity_is_same(clock, transport->clock);
	for (size_t i = 0; i < FRAG_COUNT_OF(wire_settings); i++) {
		get_text(bytes + wire_settings[i].at, 16, theirs);
		get_text(transport->address + wire_settings[i].at, 16, ours);
		if (strcmp(theirs, ours) != 0)
			return frag_err_set(
				err, -EPROTO,
				"%s is %s here and %s on the other host; UCX needs it equal on both: set it on both or on none",
				wire_settings[i].name, ours, theirs);
	}
	if (out_peer->same_node && strcmp(out_peer->version, transport->base.version) != 0)
		return frag_err_set(
			err, -EPROTO,
			"UCX is %s here and %s in the other host on the same node, and these two do not connect; use one UCX for all workers of a node",
			transport->base.version, out_peer->version);
	*out_worker_address = bytes + ADDRESS_HEAD_BYTES;
	return 0;
}
