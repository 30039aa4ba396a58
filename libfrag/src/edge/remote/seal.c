// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include <base/secret.h>
#include <edge/remote/state.h>

/*
 * Sealed messages: those of a flow that is encrypted. header.h shows how they look.
 *
 * Every message that one end of a flow sends has the next number of that end: data, credit, close,
 * and what is sent in the name of its endpoint. The receiver takes only the number that follows, so
 * that nothing is repeated, left out or moved; while HELLO is said again and again to a host that
 * may not be wired yet, some may be missing. The number is the nonce. It never comes twice under
 * one key: a send is sealed once and never sent again; a message for several flows is sealed for
 * each by itself; the numbers outlive the ends of a flow, and stay with its keys in this process;
 * and the key is made from the data key of the run, the flow's token, the epochs of both hosts (one
 * of which is new after every restart), and the direction.
 *
 * A key is for GENERATION messages. Of 1 GiB each these are 2^42 blocks, of which an observer
 * learns something with a probability of 2^-45; a flow that runs for weeks under one key would not
 * have this bound.
 *
 * The keys lie in memory for secrets, and the module forgets its key with each message.
 */
#define GENERATION 65536u
#define LABEL "frag edge 1"

/* What is derived from the data key. */
struct derivation {
	uint8_t label[sizeof(LABEL)];
	uint8_t token[FRAGI_TOKEN_BYTES];
	uint8_t sender[8], receiver[8]; /* epochs of the flow's ends */
	uint8_t back;
	uint8_t generation[8];
};

/* One direction of a flow, as its sender or its receiver sees it. */
struct lane {
	uint64_t number; /* of the next message */
	uint64_t generation;
	bool has_key, in_use;
	uint8_t key[FRAGI_AEAD_KEY_SIZE];
};

/* In memory for secrets. */
struct fragi_remote_seal {
	struct derivation derivation;
	struct lane out[2], in[2]; /* by whether it goes back, from the flow's receiver */
};

static int module_prepare(struct fragi_remote *remote)
{
	if (remote->crypto == NULL || remote->config.data_key == NULL)
		return -EINVAL;
	if (remote->aead == NULL)
		remote->aead = remote->crypto->aead_create();
	if (remote->opened == NULL)
		remote->opened = fragi_malloc(FRAGI_HEADER_MAX);
	return remote->aead == NULL || remote->opened == NULL ? -ENOMEM : 0;
}

/* Of a flow without ends. */
static void forget(struct fragi_remote_flow *flow)
{
	if (flow->endpoint != NULL && flow->endpoint->seal == flow->seal)
		flow->endpoint->seal = NULL;
	fragi_remote_seal_free(flow->seal);
	flow->seal = NULL;
}

int fragi_remote_seal_prepare(struct fragi_remote_flow *flow,
			      const struct fragi_remote_endpoint *endpoint,
			      const struct fragi_edge_config *config, bool is_tx)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);
	uint64_t own = remote->config.epoch, peer = endpoint->peer->epoch;
	bool has_ends = flow->tx != NULL || flow->rx != NULL;
	struct derivation derivation = {.label = LABEL};
	int r;

	if (has_ends && config->encrypt != (flow->seal != NULL))
		return -EEXIST;
	if (!config->encrypt) {
		forget(flow);
		return 0;
	}
	r = module_prepare(remote);
	if (r < 0)
		return r;
	memcpy(derivation.token, config->token, sizeof(derivation.token));
	fragi_put64(derivation.sender, is_tx ? own : peer);
	fragi_put64(derivation.receiver, is_tx ? peer : own);
	/* One that comes back goes on with its numbers. */
	if (flow->seal != NULL && !has_ends &&
	    memcmp(&derivation, &flow->seal->derivation, offsetof(struct derivation, back)) != 0)
		forget(flow);
	if (flow->seal == NULL) {
		flow->seal = fragi_secret_alloc(sizeof(*flow->seal));
		if (flow->seal == NULL)
			return -ENOMEM;
		flow->seal->derivation = derivation;
	}
	flow->seal->in[is_tx].in_use = true;
	return 0;
}

int fragi_remote_seal_restart(struct fragi_remote_edge *edge)
{
	struct fragi_remote *remote = fragi_remote_of(edge->endpoint);
	struct fragi_remote_flow *flow = &remote->flows[edge->config.flow];
	uint64_t own = remote->config.epoch, peer = edge->endpoint->peer->epoch;
	struct fragi_remote_seal *seal;

	if (flow->seal == NULL)
		return 0;
	seal = fragi_secret_alloc(sizeof(*seal));
	if (seal == NULL)
		return -ENOMEM;
	memcpy(seal->derivation.label, LABEL, sizeof(LABEL));
	memcpy(seal->derivation.token, edge->config.token, FRAGI_TOKEN_BYTES);
	fragi_put64(seal->derivation.sender, edge->is_tx ? own : peer);
	fragi_put64(seal->derivation.receiver, edge->is_tx ? peer : own);
	seal->in[edge->is_tx].in_use = true;
	if (edge->endpoint->seal == flow->seal)
		edge->endpoint->seal = seal;
	fragi_remote_seal_free(flow->seal);
	flow->seal = edge->seal = seal;
	return 0;
}

void fragi_remote_seal_free(struct fragi_remote_seal *seal)
{
	fragi_secret_free(seal, sizeof(*seal));
}

/* Returns the key of a number; NULL: OpenSSL refuses. */
static const uint8_t *key_of(struct fragi_remote *remote, struct fragi_remote_seal *seal,
			     struct lane *lane, bool back, uint64_t number)
{
	uint64_t generation = number / GENERATION;

	if (lane->has_key && lane->generation == generation)
		return lane->key;
	seal->derivation.back = back;
	fragi_put64(seal->derivation.generation, generation);
	lane->generation = generation;
	lane->has_key = remote->crypto->hkdf(remote->config.data_key, FRAGI_DATA_KEY_BYTES,
					     &seal->derivation, sizeof(seal->derivation), lane->key,
					     sizeof(lane->key)) == 0;
	return lane->has_key ? lane->key : NULL;
}

enum piece { PIECE_HEADER, PIECE_BODY };

static int begin(struct fragi_remote *remote, bool seals, const uint8_t *key, uint64_t number,
		 enum piece piece, const uint8_t *extra, size_t extra_size)
{
	uint8_t nonce[FRAGI_AEAD_NONCE_SIZE];

	fragi_put64(nonce, number);
	fragi_put32(nonce + 8, piece);
	return key == NULL ? -EIO
			   : remote->crypto->aead_begin(remote->aead, seals, key, nonce, extra,
							extra_size);
}

/* Out. */

/* Encrypts the bodies into one that belongs to the send. */
static int seal_bodies(struct fragi_remote_send *send, const uint8_t *key, uint64_t number,
		       const struct fragi_body *bodies, uint32_t count, uint8_t *out_tag,
		       struct fragi_body *out_body)
{
	struct fragi_remote *remote = send->transport->remote;
	const struct fragi_crypto_ops *crypto = remote->crypto;
	uint64_t bytes = 0, at = 0;
	int r;

	for (uint32_t i = 0; i < count; i++)
		bytes += bodies[i].bytes;
	send->sealed = fragi_remote_bodies_take(remote->bodies, bytes);
	if (send->sealed == NULL)
		return -ENOMEM;
	r = begin(remote, true, key, number, PIECE_BODY, NULL, 0);
	for (uint32_t i = 0; r == 0 && i < count; at += bodies[i++].bytes)
		r = crypto->aead_update(remote->aead, bodies[i].data, bodies[i].bytes,
					(uint8_t *)send->sealed + at);
	if (r == 0)
		r = crypto->aead_end(remote->aead, out_tag);
	*out_body = (struct fragi_body){
		.data = send->sealed,
		.bytes = bytes,
		.device = {FRAG_DEVICE_CPU, 0},
	};
	return r;
}

int fragi_remote_seal_send(struct fragi_remote_send *send, size_t header_bytes,
			   const struct fragi_body *bodies, uint32_t count,
			   struct fragi_body *out_body)
{
	struct fragi_remote *remote = send->transport->remote;
	const struct fragi_crypto_ops *crypto = remote->crypto;
	uint8_t *head = send->base.header, *seal = head + FRAGI_HEADER_BYTES;
	uint8_t *rest = seal + FRAGI_SEAL_BYTES;
	struct lane *lane = &send->seal->out[send->back];
	uint64_t number = lane->number++;
	const uint8_t *key = key_of(remote, send->seal, lane, send->back, number);
	int r = 0;

	assert(header_bytes >= FRAGI_HEADER_BYTES + fragi_remote_seal_room(send->seal, count > 0));
	if (send->back)
		head[FRAGI_HEADER_FLAGS_AT] |= FRAGI_FLAG_BACK;
	fragi_put64(seal, number);
	if (count > 0)
		r = seal_bodies(send, key, number, bodies, count, rest, out_body);
	if (r == 0)
		r = begin(remote, true, key, number, PIECE_HEADER, head, FRAGI_HEADER_BYTES + 8);
	if (r == 0)
		r = crypto->aead_update(remote->aead, rest, header_bytes - (size_t)(rest - head),
					rest);
	return r == 0 ? crypto->aead_end(remote->aead, seal + 8) : r;
}

/* In. */

void fragi_remote_tampered(struct fragi_remote_endpoint *endpoint, uint32_t flow)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);

	remote->refused++;
	fragi_remote_endpoint_fail(
		endpoint, FRAGI_FAILURE_DATA_TAMPERED,
		"cannot be trusted any more: a message of the encrypted flow %u was changed, repeated or removed on its way here, and nothing of it was delivered; find out what stands between the two hosts",
		flow);
}

bool fragi_remote_open_header(struct fragi_remote_flow *flow, const struct fragi_arrival *arrival,
			      struct fragi_header *header, struct fragi_sealed *out)
{
	struct fragi_remote_endpoint *endpoint = flow->endpoint;
	struct fragi_remote *remote = fragi_remote_of(endpoint);
	const struct fragi_crypto_ops *crypto = remote->crypto;
	const uint8_t *head = arrival->header, *seal = head + FRAGI_HEADER_BYTES;
	bool back = (header->flags & FRAGI_FLAG_BACK) != 0, may_skip;
	struct lane *lane = &flow->seal->in[back];
	size_t room = fragi_remote_seal_room(flow->seal, fragi_header_body_bytes(header) > 0);
	uint8_t tag[FRAGI_AEAD_TAG_SIZE];
	uint64_t number;
	int r;

	if (!lane->in_use || arrival->header_bytes < FRAGI_HEADER_BYTES + room ||
	    arrival->header_bytes > FRAGI_HEADER_MAX ||
	    arrival->body_bytes != fragi_header_body_bytes(header))
		return false;
	number = fragi_get64(seal);
	may_skip = header->kind == FRAGI_KIND_HELLO &&
		   fragi_remote_endpoint_state(endpoint) == FRAGI_ENDPOINT_CONNECTING;
	if (number < lane->number || (number > lane->number && !may_skip))
		return false;
	out->rest = remote->opened;
	out->rest_bytes = arrival->header_bytes - FRAGI_HEADER_BYTES - FRAGI_SEAL_BYTES;
	memcpy(tag, seal + 8, sizeof(tag));
	r = begin(remote, false, key_of(remote, flow->seal, lane, back, number), number,
		  PIECE_HEADER, head, FRAGI_HEADER_BYTES + 8);
	if (r == 0)
		r = crypto->aead_update(remote->aead, seal + FRAGI_SEAL_BYTES, out->rest_bytes,
					remote->opened);
	if (r == 0)
		r = crypto->aead_end(remote->aead, tag);
	if (r < 0)
		return false;
	lane->number = number + 1;
	out->mark.number = number;
	if (fragi_header_body_bytes(header) > 0) {
		memcpy(out->mark.tag, out->rest, sizeof(out->mark.tag));
		out->rest += sizeof(out->mark.tag);
		out->rest_bytes -= sizeof(out->mark.tag);
	}
	return true;
}

bool fragi_remote_open_body(struct fragi_remote_rx *rx, struct fragi_seal_mark *mark,
			    const struct fragi_body *from, const struct fragi_body *to,
			    uint32_t count)
{
	struct fragi_remote *remote = fragi_remote_of(rx->edge.endpoint);
	const struct fragi_crypto_ops *crypto = remote->crypto;
	struct fragi_remote_seal *seal = rx->edge.seal;
	uint64_t at = 0, n;
	int r = begin(remote, false, key_of(remote, seal, &seal->in[0], false, mark->number),
		      mark->number, PIECE_BODY, NULL, 0);

	for (uint32_t i = 0; r == 0 && i < count; i++)
		for (uint64_t done = 0; r == 0 && done < to[i].bytes; done += n) {
			for (; at == from->bytes; at = 0)
				from++;
			n = to[i].bytes - done < from->bytes - at ? to[i].bytes - done
								  : from->bytes - at;
			r = crypto->aead_update(remote->aead, (const uint8_t *)from->data + at, n,
						(uint8_t *)to[i].data + done);
			at += n;
		}
	if (r == 0)
		r = crypto->aead_end(remote->aead, mark->tag);
	if (r == 0)
		return true;
	fragi_remote_tampered(rx->edge.endpoint, rx->edge.config.flow);
	return false;
}
