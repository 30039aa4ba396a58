// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include <base/bytes.h>
#include <base/failure.h>

/*
 * The address of a host: UCX's own worker address behind what decides whether two hosts can work
 * together.
 *
 *   0 u32 magic   4 u16 layout   6 u16 bytes of the worker address   8 char[16] UCX version
 *   24 char[64] machine   88 char[64] clock   152 char[16] UCX_TCP_RX_SEG_SIZE
 *   168 char[16] UCX_PROTO_ENABLE   184 char[64] loopback   248 u8[16] identity   264 u8 count of
 *   the addresses that it listens on   265 u8[36] each of them, and where others reach it
 *   worker address
 */
#define ADDRESS_MAGIC 0x41524655u /* "UFRA" */
/*
 * 1: an active message id for each kind; 2: a boot id for the clock too; 3: no gate; 4: nothing is
 * announced
 */
#define ADDRESS_LAYOUT 5u

enum {
	AT_VERSION = 8,
	AT_MACHINE = 24,
	AT_CLOCK = 88,
	AT_RX_SEG = 152,
	AT_PROTO = 168,
	AT_LOOPBACK = 184,
	AT_IDENTITY = 248,
	AT_COUNT = UCX_ADDRESS_ENDS_AT - 1,
	AT_ENDS = UCX_ADDRESS_ENDS_AT,
};

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

static void put_entrance(uint8_t *bytes, const struct ucx_entrance *entrance)
{
	memcpy(bytes + AT_IDENTITY, entrance->identity, UCX_IDENTITY_BYTES);
	bytes[AT_COUNT] = (uint8_t)entrance->count;
	memcpy(bytes + AT_ENDS, entrance->doors, entrance->count * sizeof(entrance->doors[0]));
}

/* What is too short, or says that it is longer than it is, is malformed. */
static bool get_entrance(const uint8_t *bytes, size_t size, struct ucx_entrance *out)
{
	if (size <= AT_ENDS || bytes[AT_COUNT] > UCX_LISTENERS_MAX ||
	    size <= ucx_address_head(bytes) ||
	    fragi_get16(bytes + 6) != size - ucx_address_head(bytes))
		return false;
	memcpy(out->identity, bytes + AT_IDENTITY, UCX_IDENTITY_BYTES);
	out->count = bytes[AT_COUNT];
	memcpy(out->doors, bytes + AT_ENDS, out->count * sizeof(out->doors[0]));
	return true;
}

int ucx_address_make(struct ucx_transport *transport, const void *worker_address, size_t size)
{
	const struct ucx_entrance *entrance = ucx_gate_entrance(transport->gate);
	size_t head = AT_ENDS + entrance->count * sizeof(entrance->doors[0]);
	uint8_t *bytes;
	int r;

	if (head + size > FRAGI_HOST_ADDRESS_MAX)
		return -EMSGSIZE;
	r = fragi_identity_machine(transport->machine);
	if (r == 0)
		r = fragi_identity_clock(false, transport->clock);
	if (r == 0)
		r = fragi_identity_loopback(transport->loopback);
	if (r < 0)
		return r;
	bytes = fragi_calloc(1, head + size);
	if (bytes == NULL)
		return -ENOMEM;
	fragi_put32(bytes, ADDRESS_MAGIC);
	fragi_put16(bytes + 4, ADDRESS_LAYOUT);
	fragi_put16(bytes + 6, (uint16_t)size);
	put_text(bytes + AT_VERSION, 16, transport->base.version);
	put_text(bytes + AT_MACHINE, FRAGI_IDENTITY_SIZE, transport->machine);
	put_text(bytes + AT_CLOCK, FRAGI_IDENTITY_SIZE, transport->clock);
	put_text(bytes + AT_LOOPBACK, FRAGI_IDENTITY_SIZE, transport->loopback);
	for (size_t i = 0; i < FRAG_COUNT_OF(wire_settings); i++)
		put_text(bytes + wire_settings[i].at, 16, setting(wire_settings[i].name));
	put_entrance(bytes, entrance);
	memcpy(bytes + head, worker_address, size);
	transport->address = bytes;
	transport->address_size = head + size;
	return 0;
}

/*
 * Whether one of the addresses where the peer listens belongs to this node too, as docker's bridge
 * on each: UCX may take it for the way there, and would connect to itself. out_text: receives it.
 */
static bool has_own_address(const struct ucx_entrance *peer, char out_text[UCX_END_TEXT])
{
	uint8_t end[UCX_END_BYTES];
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (const struct ifaddrs *i = all; i != NULL && !found; i = i->ifa_next) {
		if (i->ifa_addr == NULL || (i->ifa_flags & IFF_LOOPBACK) != 0 ||
		    ucx_end_of(i->ifa_addr, end) < 0)
			continue;
		for (uint32_t k = 0; k < peer->count && !found; k++)
			found = memcmp(peer->doors[k].dial, end, UCX_END_BYTES - 2) == 0;
		if (found)
			ucx_end_text(end, out_text);
	}
	freeifaddrs(all);
	return found;
}

static int check_addresses(const struct ucx_transport *transport, const char *loopback,
			   const struct ucx_entrance *peer, struct frag_err *err)
{
	const char *interfaces = getenv("UCX_NET_DEVICES");
	char text[UCX_END_TEXT];

	if (fragi_identity_is_same(loopback, transport->loopback) || !has_own_address(peer, text))
		return 0;
	return fragi_err_fail(
		err, FRAGI_FAILURE_EDGE_UNREACHABLE, NULL, -EADDRINUSE,
		"both nodes have the address %s, where the other one listens, so data for it would stay here (UCX_NET_DEVICES is %s here); leave UCX_NET_DEVICES out, or start both workers with --worker-address and an address that only they have",
		text, interfaces != NULL ? interfaces : "not set");
}

int ucx_address_check(const struct ucx_transport *transport, const void *address, size_t size,
		      const void **out_worker_address, struct fragi_endpoint *out_peer,
		      struct ucx_entrance *out_entrance, struct frag_err *err)
{
	const uint8_t *bytes = address;
	char machine[FRAGI_IDENTITY_SIZE], clock[FRAGI_IDENTITY_SIZE];
	char loopback[FRAGI_IDENTITY_SIZE], theirs[16], ours[16];

	if (size <= AT_VERSION || fragi_get32(bytes) != ADDRESS_MAGIC)
		return frag_err_set(err, -EBADMSG, "the other host's data address is malformed");
	if (fragi_get16(bytes + 4) != ADDRESS_LAYOUT)
		return frag_err_set(
			err, -EPROTO,
			"the other host's data address has layout %u, this frag knows %u; install the same frag on both nodes",
			fragi_get16(bytes + 4), ADDRESS_LAYOUT);
	if (!get_entrance(bytes, size, out_entrance))
		return frag_err_set(err, -EBADMSG, "the other host's data address is malformed");
	get_text(bytes + AT_VERSION, 16, out_peer->version);
	get_text(bytes + AT_MACHINE, FRAGI_IDENTITY_SIZE, machine);
	get_text(bytes + AT_CLOCK, FRAGI_IDENTITY_SIZE, clock);
	out_peer->same_node = fragi_identity_is_same(machine, transport->machine);
	out_peer->timeline = fragi_timeline_between(transport->clock, clock);
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
	get_text(bytes + AT_LOOPBACK, FRAGI_IDENTITY_SIZE, loopback);
	*out_worker_address = bytes + ucx_address_head(bytes);
	return check_addresses(transport, loopback, out_entrance, err);
}
