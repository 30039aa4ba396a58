/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UCX_STRANGER_H
#define UCX_STRANGER_H

#include <criterion/criterion.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "../../libfrag/modules/ucx/module.h"
#include "pair.h"
#include <edge/remote/state.h>

/* A stranger sends messages made by hand to the receiving host, beside a healthy edge. */

#define FLOW 7
#define SENDER_EPOCH 10
#define RECEIVER_EPOCH 11

struct stranger {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
};

static inline const void *pair_address(const struct pair *pair, int i, size_t *out_size)
{
	const struct fragi_transport *transport = pair_transport(pair, i, 0);

	return transport->ops->address(transport, out_size);
}

/* Connects to side i of the pair. */
static inline void stranger_open(struct stranger *stranger, struct pair *pair, int i)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_AM};
	ucp_worker_params_t worker_params = {0};
	ucp_ep_params_t ep_params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_config_t *config;
	const char *address;
	size_t size;

	address = pair_address(pair, i, &size);
	ep_params.address = (const void *)(address + ucx_address_head(address));
	cr_assert_eq(ucp_config_read(NULL, NULL, &config), UCS_OK);
	cr_assert_eq(ucp_init(&params, config, &stranger->context), UCS_OK);
	ucp_config_release(config);
	cr_assert_eq(ucp_worker_create(stranger->context, &worker_params, &stranger->worker),
		     UCS_OK);
	cr_assert_eq(ucp_ep_create(stranger->worker, &ep_params, &stranger->ep), UCS_OK);
}

static inline void stranger_close(struct stranger *stranger)
{
	ucp_worker_destroy(stranger->worker);
	ucp_cleanup(stranger->context);
}

/* Sends, and lets both sides turn until it has arrived. */
static inline void stranger_send(struct stranger *stranger, struct pair *pair, const void *header,
				 size_t header_bytes, const void *body, size_t body_bytes)
{
	ucp_request_param_t param = {0};
	ucs_status_ptr_t request =
		ucp_am_send_nbx(stranger->ep, 0, header, header_bytes, body, body_bytes, &param);

	cr_assert_not(UCS_PTR_IS_ERR(request));
	for (int quiet = 0; quiet < 20;) {
		if (ucp_worker_progress(stranger->worker) + pair_turn(pair) > 0)
			quiet = 0;
		else
			quiet++;
		if (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS)
			quiet = 0;
	}
	if (UCS_PTR_IS_PTR(request))
		ucp_request_free(request);
	pair_settle(pair);
}

/* What the sender of the pair's first flow would send as its next message: an i64, no tensor. */
struct forged {
	uint8_t bytes[8192];
	size_t header_bytes;
	struct fragi_header header;
	uint8_t body[65536];
	size_t body_bytes;
	size_t flip_at; /* a byte of the packed header, and the bits that are flipped there */
	uint8_t flip;
};

static inline void forge(struct forged *forged, const struct frag_message *message)
{
	const struct fragi_blob *blob;

	memset(forged, 0, sizeof(*forged));
	cr_assert_eq(fragi_message_encode(message, &blob), 0);
	forged->header = (struct fragi_header){
		.kind = FRAGI_KIND_DATA,
		.token = "0123456789abcde",
		.flow = FLOW,
		.epoch = SENDER_EPOCH,
		.descriptor_bytes = blob->size,
		.publish_ns = fragi_now_ns(),
	};
	for (uint32_t i = 0; i < message->tensor_count; i++)
		forged->body_bytes += message->tensors[i].tensor->compact_bytes;
	forged->header.body_bytes = forged->body_bytes;
	memcpy(forged->bytes + FRAGI_HEADER_BYTES, blob->bytes, blob->size);
	forged->header_bytes = FRAGI_HEADER_BYTES + blob->size;
}

static inline void forge_value(struct forged *forged)
{
	struct frag_message *message = message_of(1);

	forge(forged, message);
	frag_message_unref(message);
}

static inline void forge_tensor(struct forged *forged, size_t size)
{
	struct frag_message *message = frag_message_create();

	frag_message_add_tensor(message, "t", bytes_tensor(size, 1));
	fragi_message_share(message);
	forge(forged, message);
	frag_message_unref(message);
}

static inline void send_forged(struct stranger *stranger, struct pair *pair, struct forged *forged)
{
	fragi_header_pack(&forged->header, forged->bytes);
	forged->bytes[forged->flip_at] ^= forged->flip;
	stranger_send(stranger, pair, forged->bytes, forged->header_bytes, forged->body,
		      forged->body_bytes);
}

/* The edge still works: ten messages cross. */
static inline void check_alive(struct pair *pair)
{
	for (int i = 0; i < 10; i++) {
		cr_assert_eq(send_value(pair, i), 0);
		pair_settle(pair);
		cr_assert_eq(take_value(pair), i);
		pair_settle(pair);
	}
	cr_assert_eq(atomic_load(&pair->lost[0]), 0);
	cr_assert_eq(atomic_load(&pair->lost[1]), 0);
	cr_assert_eq(atomic_load(&pair->faults[1]), 0);
}

#endif
