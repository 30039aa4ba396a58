/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_IDENTITY_H
#define FW_IDENTITY_H

#include <wire/keys.h>

/* What the peer of a control connection has proven about itself (wire/tls.h). */
struct fw_identity {
	char name[FW_KEY_NAME_MAX + 1]; /* of its key, or in its certificate */
	uint32_t roles;                 /* FW_ROLE_BIT of each that it may take */
	uint64_t serial;                /* of its key (wire/keys.h); 0: it has a certificate */
	/*
	 * The same at both ends of one connection, and at no end of another one (tls-exporter, RFC
	 * 9266): a man in the middle, who has a connection to each, gets two that differ.
	 */
	uint8_t binding[FW_BINDING_BYTES];
};

#endif
