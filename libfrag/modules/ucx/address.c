// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "module.h"
#include <base/bytes.h>

/*
 * The address of a host: UCX's own worker address behind what decides whether two hosts can work
 * together.
 *
 *   0 u32 magic   4 u16 layout   6 u16 bytes of the worker address   8 char[16] UCX version
 *   24 char[40] boot id   64 char[16] UCX_TCP_RX_SEG_SIZE   80 char[16] UCX_PROTO_ENABLE   96
 *   worker address
 */
#define ADDRESS_MAGIC 0x41524655u /* "UFRA" */
#define ADDRESS_LAYOUT 2u         /* 1: an active message id for each kind */
#define ADDRESS_HEAD_BYTES 96u

enum { AT_VERSION = 8, AT_BOOT_ID = 24, AT_RX_SEG = 64, AT_PROTO = 80 };

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

/* Without one a node is like no other. */
static int read_boot_id(char out[40])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd >= 0) {
		n = read(fd, out, 36);
		close(fd);
	}
	out[n == 36 ? 36 : 0] = '\0';
	return 0;
}

int ucx_address_make(struct ucx_transport *transport, const void *worker_address, size_t size)
{
	uint8_t *bytes;
	int r;

	if (ADDRESS_HEAD_BYTES + size > FRAGI_HOST_ADDRESS_MAX)
		return -EMSGSIZE;
	r = read_boot_id(transport->boot_id);
	if (r < 0)
		return r;
	bytes = fragi_calloc(1, ADDRESS_HEAD_BYTES + size);
	if (bytes == NULL)
		return -ENOMEM;
	fragi_put32(bytes, ADDRESS_MAGIC);
	fragi_put16(bytes + 4, ADDRESS_LAYOUT);
	fragi_put16(bytes + 6, (uint16_t)size);
	put_text(bytes + AT_VERSION, 16, transport->base.version);
	put_text(bytes + AT_BOOT_ID, 40, transport->boot_id);
	for (size_t i = 0; i < FRAG_COUNT_OF(wire_settings); i++)
		put_text(bytes + wire_settings[i].at, 16, setting(wire_settings[i].name));
	memcpy(bytes + ADDRESS_HEAD_BYTES, worker_address, size);
	transport->address = bytes;
	transport->address_size = ADDRESS_HEAD_BYTES + size;
	return 0;
}

int ucx_address_check(const struct ucx_transport *transport, const void *address, size_t size,
		      const void **out_worker_address, bool *out_same_node, char version[16],
		      struct frag_err *err)
{
	const uint8_t *bytes = address;
	char boot_id[40], theirs[16], ours[16];

	if (size <= ADDRESS_HEAD_BYTES || fragi_get32(bytes) != ADDRESS_MAGIC ||
	    fragi_get16(bytes + 6) != size - ADDRESS_HEAD_BYTES)
		return frag_err_set(err, -EBADMSG, "the other host's data address is malformed");
	if (fragi_get16(bytes + 4) != ADDRESS_LAYOUT)
		return frag_err_set(
			err, -EPROTO,
			"the other host's data address has layout %u, this frag knows %u; install the same frag on both nodes",
			fragi_get16(bytes + 4), ADDRESS_LAYOUT);
	get_text(bytes + AT_VERSION, 16, version);
	get_text(bytes + AT_BOOT_ID, 40, boot_id);
	*out_same_node = boot_id[0] != '\0' && strcmp(boot_id, transport->boot_id) == 0;
	for (size_t i = 0; i < FRAG_COUNT_OF(wire_settings); i++) {
		get_text(bytes + wire_settings[i].at, 16, theirs);
		get_text(transport->address + wire_settings[i].at, 16, ours);
		if (strcmp(theirs, ours) != 0)
			return frag_err_set(
				err, -EPROTO,
				"%s is %s here and %s on the other host; UCX needs it equal on both: set it on both or on none",
				wire_settings[i].name, ours, theirs);
	}
	if (*out_same_node && strcmp(version, transport->base.version) != 0)
		return frag_err_set(
			err, -EPROTO,
			"UCX is %s here and %s in the other host on the same node, and these two do not connect; use one UCX for all workers of a node",
			transport->base.version, version);
	*out_worker_address = bytes + ADDRESS_HEAD_BYTES;
	return 0;
}
