// SPDX-License-Identifier: Apache-2.0
#include "fake_ucp.h"

#include <errno.h>

#include <base/log.h>
#include <modules/ucx/module.h>

/*
 * The whole ucx module against a peer that may do anything, also one that has the tokens. Three
 * bytes of settings, then a program: a byte says what happens next (enum step), the bytes behind it
 * how. The peer of the program is honest unless a step bends one field of what it sends, so that
 * random bytes get behind the door.
 */
enum step {
	STEP_MESSAGE,  /* DATA, or DESCRIPTORS and DATA in either order */
	STEP_CONTROL,  /* one of the other kinds */
	STEP_RAW,      /* bytes as they are */
	STEP_TAKE,     /* the receiving operator */
	STEP_PROGRESS, /* time goes on */
	STEP_SEND,     /* the sending operator */
	STEP_CLOSE,    /* one of the two operators ends */
	STEP_BREAK,    /* UCX reports an error, or completes sends otherwise, or memory is short */
	STEP_CREDIT,   /* as an honest receiver gives it back */
	STEP_ADDRESS,  /* another host's address as the driver says it */
	STEPS
};

extern const struct fragi_transport_ops fragi_transport_v1;

enum { RX_FLOW, TX_FLOW };
#define US 1
#define PEER 2
#define EPOCH 9
#define DESCRIPTORS_MAX 5000

static struct world {
	struct fragi_pump *pump;
	struct fragi_transport *transport;
	struct fragi_peer *peer;
	struct fragi_rx *rx;
	struct fragi_tx *tx;
	struct fragi_flow_row rows[2];
	struct fragi_link link;
	int64_t now_ns;
	uint64_t next; /* sequence of the honest peer */
	uint32_t lost, faults;
	uint64_t taken;
	bool rx_closed, tx_closed;
	int64_t fail_after; /* allocations of the module until one fails; -1: none fails */
} world;

static const uint8_t token[FRAGI_TOKEN_BYTES] = "the token of it";

static void on_lost(void *arg, uint32_t host, const char *sentence)
{
	(void)arg;
	fuzz_check(host == PEER && strlen(sentence) > 8);
	fuzz_check(world.lost++ == 0);
}

/* Around what the module does by itself: which of its allocations fails. */
static void begin(void)
{
	if (world.fail_after >= 0)
		fragi_alloc_fail_after(world.fail_after, 1);
}

static void end(void)
{
	if (world.fail_after >= 0 && fragi_alloc_fail_off() > 0)
		world.fail_after = -1;
}

static void on_fault(void *arg, int code, const char *sentence)
{
	(void)arg;
	fuzz_check(code < 0 && sentence[0] != '\0');
	world.faults++;
}

static struct frag_message *message_of(uint32_t bytes, uint32_t tensors)
{
	static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_message *message = frag_message_create();
	int64_t shape = bytes, number = bytes;
	struct frag_tensor *tensor;
	char name[8];

	fuzz_check(frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL) ==
		   0);
	for (uint32_t i = 0; i < tensors; i++) {
		snprintf(name, sizeof(name), "t%u", (unsigned int)i % 10);
		fuzz_check(frag_tensor_create(NULL, u8, 1, &shape, &tensor) == 0);
		if (bytes > 0)
			memset(frag_tensor_writable(tensor), (int)('a' + i), bytes);
		fuzz_check(frag_message_add_tensor(message, name, tensor) == 0);
	}
	return message;
}

static struct wire_header header_of(enum wire_kind kind, uint32_t flow)
{
	struct wire_header header = {.kind = kind, .flow = flow, .epoch = EPOCH};

	memcpy(header.token, token, sizeof(token));
	return header;
}

/* Makes one field another one. */
static void bend(struct wire_header *header, struct fuzz_input *input)
{
	switch (fuzz_u8(input) % 9) {
	case 0:
		header->sequence += (uint64_t)(int64_t)(int8_t)fuzz_u8(input);
		break;
	case 1:
		header->sequence = fuzz_u64(input);
		break;
	case 2:
		header->body_bytes += (uint64_t)(int64_t)(int16_t)fuzz_u16(input);
		break;
	case 3:
		header->body_bytes = fuzz_u64(input);
		break;
	case 4:
		header->descriptor_bytes ^= fuzz_u8(input);
		break;
	case 5:
		header->flags = fuzz_u8(input);
		break;
	case 6:
		header->flow = fuzz_u8(input) & 3;
		break;
	case 7:
		header->epoch ^= fuzz_u8(input);
		break;
	default:
		header->token[fuzz_u8(input) % FRAGI_TOKEN_BYTES] ^= 1;
		break;
	}
}

static void deliver(const struct wire_header *header, const void *behind, size_t behind_size,
		    const void *data, size_t size, bool rendezvous)
{
	uint8_t bytes[WIRE_FIXED_BYTES + DESCRIPTORS_MAX];

	wire_pack(header, bytes);
	if (behind_size > 0)
		memcpy(bytes + WIRE_FIXED_BYTES, behind, behind_size);
	begin();
	fake_ucp_deliver((unsigned int)header->kind, bytes, WIRE_FIXED_BYTES + behind_size, data,
			 size, rendezvous);
	end();
}

/*
 * Puts credit of our sending flow, all of it or what the input says, in front of the descriptors
 * (taken).
 */
static uint8_t *with_credit(struct fuzz_input *input, uint8_t *descriptors, size_t size)
{
	const struct ucx_tx *tx = (const struct ucx_tx *)world.transport->links[TX_FLOW];
	struct wire_credit credit = {TX_FLOW, tx->window.sent, tx->window.sent_bytes};
	uint8_t *all = malloc(WIRE_CREDIT_BYTES + size), how = fuzz_u8(input);

	if ((how & 1) != 0)
		credit.flow = how >> 4;
	if ((how & 2) != 0)
		credit.messages -= how >> 4;
	if ((how & 4) != 0)
		credit.bytes -= fuzz_u8(input);
	wire_credit_pack(&credit, all);
	memcpy(all + WIRE_CREDIT_BYTES, descriptors, size);
	free(descriptors);
	return all;
}

/*
 * how: 1 bent, 2 rendezvous, 4 descriptors apart, 8 behind the data, 16 other bytes of descriptors,
 * 32 of bodies, 128 with credit
 */
static void step_message(struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input), shape = fuzz_u8(input);
	struct frag_message *message = message_of((uint32_t)(shape >> 2) * 4, shape & 3);
	struct wire_header header = header_of(WIRE_DATA, RX_FLOW), ahead;
	size_t credit_bytes = (how & 128) != 0 ? WIRE_CREDIT_BYTES : 0;
	static uint8_t bodies[64 * 4 * 3 + 256];
	size_t size = (size_t)(shape >> 2) * 4 * (shape & 3);
	const struct fragi_blob *blob;
	uint8_t *descriptors;
	size_t descriptor_bytes;

	fuzz_check(fragi_message_encode(message, &blob) == 0);
	descriptors = fuzz_copy(blob->bytes, blob->size);
	descriptor_bytes = blob->size;
	frag_message_unref(message);
	if ((how & 16) != 0)
		descriptors[fuzz_u8(input) % descriptor_bytes] ^= fuzz_u8(input);
	header.sequence = world.next++;
	header.descriptor_bytes = (uint32_t)descriptor_bytes;
	header.body_bytes = size;
	header.publish_ns = world.now_ns;
	if ((how & 32) != 0)
		size = fuzz_u8(input);
	if ((how & 4) != 0)
		header.flags = WIRE_AHEAD;
	if ((how & 128) != 0) {
		header.flags |= WIRE_CREDITED;
		descriptors = with_credit(input, descriptors, descriptor_bytes);
	}
	if ((how & 1) != 0)
		bend(&header, input);
	ahead = header;
	ahead.kind = WIRE_DESCRIPTORS;
	memset(bodies, 0x5a, sizeof(bodies));
	if ((how & 12) == 4)
		deliver(&ahead, NULL, 0, descriptors + credit_bytes, descriptor_bytes,
			(how & 64) != 0);
	deliver(&header, descriptors, credit_bytes + ((how & 4) != 0 ? 0 : descriptor_bytes),
		bodies, size, (how & 2) != 0);
	if ((how & 12) == 12)
		deliver(&ahead, NULL, 0, descriptors + credit_bytes, descriptor_bytes,
			(how & 64) != 0);
	free(descriptors);
}

static void step_control(struct fuzz_input *input)
{
	static const enum wire_kind kinds[] = {WIRE_HELLO, WIRE_CREDIT, WIRE_BEAT,
					       WIRE_CLOSE, WIRE_DONE,   WIRE_SYNC};
	uint8_t which = fuzz_u8(input);
	enum wire_kind kind = kinds[which % FRAG_COUNT_OF(kinds)];
	struct wire_header header =
		header_of(kind, kind == WIRE_CREDIT || kind == WIRE_DONE ? TX_FLOW : RX_FLOW);

	header.flags = fuzz_u8(input);
	header.sequence = kind == WIRE_HELLO   ? PEER
			  : kind == WIRE_CLOSE ? world.next
					       : fuzz_u8(input);
	header.body_bytes = fuzz_u8(input);
	if ((which & 0x80) != 0)
		bend(&header, input);
	deliver(&header, "x", (which & 0x40) != 0, "y", (which & 0x20) != 0, false);
}

static void step_raw(struct fuzz_input *input)
{
	const uint8_t *header, *data;
	size_t header_size, size;
	uint8_t kind = fuzz_u8(input);

	header = fuzz_bytes(input, fuzz_u8(input), &header_size);
	data = fuzz_bytes(input, fuzz_u8(input), &size);
	fake_ucp_deliver(kind, header, header_size, data, size, (kind & 0x80) != 0);
}

static void take(void)
{
	struct frag_message *message = fragi_rx_take(world.rx, fragi_stamp());
	const void *value;
	size_t size;

	if (message == NULL)
		return;
	world.taken++;
	(void)frag_message_value(message, &value, &size);
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		const uint8_t *body = fragi_tensor_body(message->tensors[i].tensor, &size);

		for (size_t k = 0; k < size; k++) /* all of it arrived, whatever was announced */
			fuzz_check(body[k] == 0x5a);
	}
	frag_message_unref(message);
}

static void progress(int64_t ns)
{
	world.now_ns += ns;
	fragi_pump_lock(world.pump);
	begin();
	(void)fragi_transport_v1.progress(world.transport, world.now_ns);
	end();
	fragi_pump_unlock(world.pump);
}

static void step_send(struct fuzz_input *input)
{
	uint8_t shape = fuzz_u8(input);
	struct frag_message *message = message_of((uint32_t)(shape >> 2) * 16, shape & 3);
	int r;

	if (shape == 255) /* descriptors that need a message of their own */
		for (int i = 0; i < 60; i++) {
			static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
			static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
			struct frag_tensor *tensor;
			char name[80];

			snprintf(name, sizeof(name), "tensor_with_a_name_that_takes_room_%d", i);
			fuzz_check(frag_tensor_create(NULL, u8, 8, ones, &tensor) == 0);
			memset(frag_tensor_writable(tensor), 1, 1);
			fuzz_check(frag_message_add_tensor(message, name, tensor) == 0);
		}
	if (world.tx_closed) {
		frag_message_unref(message);
		return;
	}
	(void)world.tx->ops->room(world.tx);
	fragi_message_share(message);
	begin();
	r = world.tx->ops->send(world.tx, message, fragi_stamp());
	end();
	fuzz_check(r == 0 || r == -ENOBUFS || r == -EOVERFLOW || r == -EMSGSIZE || r == -ENOMEM);
}

static void step_address(struct fuzz_input *input)
{
	uint8_t address[FRAGI_HOST_ADDRESS_MAX], how = fuzz_u8(input);
	size_t size = world.transport->address_size;
	const void *theirs;
	struct frag_err err = FRAG_ERR_INIT;
	char version[16];
	bool same;
	int r;

	memcpy(address, world.transport->address, size);
	for (int i = 0; i < (how & 7); i++)
		address[fuzz_u8(input) % size] = fuzz_u8(input);
	if ((how & 8) != 0)
		size = fuzz_u8(input) % (size + 1);
	r = ucx_address_check(world.transport, address, size, &theirs, &same, version, &err);
	fuzz_check(r == 0 || err.text[0] != '\0');
	fuzz_check(r < 0 || ((const uint8_t *)theirs >= address &&
			     (const uint8_t *)theirs < address + size));
}

static void step_trouble(uint8_t which)
{
	if (which < 128)
		fake_ucp_send_mode(which & 3);
	else
		world.fail_after = which & 15;
}

static void step(struct fuzz_input *input)
{
	struct wire_header header;
	uint8_t which = fuzz_u8(input);

	switch (which % STEPS) {
	case STEP_MESSAGE:
		step_message(input);
		break;
	case STEP_CONTROL:
		step_control(input);
		break;
	case STEP_RAW:
		step_raw(input);
		break;
	case STEP_TAKE:
		if (!world.rx_closed)
			take();
		break;
	case STEP_PROGRESS:
		progress((int64_t)fuzz_u8(input) * 20000000);
		break;
	case STEP_SEND:
		step_send(input);
		break;
	case STEP_CLOSE:
		if ((which & 0x80) != 0 && !world.rx_closed) {
			world.rx_closed = true;
			fragi_rx_close(world.rx);
		} else if ((which & 0x80) == 0 && !world.tx_closed) {
			world.tx_closed = true;
			world.tx->ops->close(world.tx);
		}
		break;
	case STEP_BREAK:
		if ((which & 0x80) != 0)
			fake_ucp_break();
		else
			step_trouble(fuzz_u8(input));
		break;
	case STEP_CREDIT:
		header = header_of(WIRE_CREDIT, TX_FLOW);
		header.sequence = ((struct ucx_tx *)world.transport->links[TX_FLOW])->window.sent;
		header.body_bytes =
			((struct ucx_tx *)world.transport->links[TX_FLOW])->window.sent_bytes;
		deliver(&header, NULL, 0, NULL, 0, false);
		break;
	case STEP_ADDRESS:
	default:
		step_address(input);
		break;
	}
}

static void world_init(struct fuzz_input *input)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_BLOCK, FRAG_POLICY_POP,
						    FRAG_POLICY_REJECT, FRAG_POLICY_FAULT,
						    FRAG_POLICY_LATEST};
	struct fragi_transport_config config = {.struct_size = sizeof(config),
						.host = US,
						.epoch = 7,
						.peer_lost = on_lost,
						.fault = on_fault};
	struct wire_header hello = header_of(WIRE_HELLO, RX_FLOW);
	uint8_t kind = fuzz_u8(input);
	struct frag_err err = FRAG_ERR_INIT;

	fragi_log_threshold = FRAGI_LOG_OFF;
	memset(&world, 0, sizeof(world));
	world.fail_after = -1;
	fake_ucp_reset();
	world.link = (struct fragi_link){
		.flow = RX_FLOW,
		.window_messages = 1 + fuzz_u8(input) % 8,
		.window_bytes = 1 + (uint64_t)fuzz_u8(input) * 16,
		.message_bytes_max = 4096,
		.policy = policies[kind % FRAG_COUNT_OF(policies)],
	};
	memcpy(world.link.token, token, sizeof(token));
	fuzz_check(fragi_pump_create(&world.pump) == 0);
	config.pump = world.pump;
	fuzz_check(fragi_transport_v1.create(&config, &world.transport, &err) == 0);
	fuzz_check(
		fragi_transport_v1.peer_add(world.transport, PEER, EPOCH, world.transport->address,
					    world.transport->address_size, &world.peer, &err) == 0);
	fuzz_check(fragi_transport_v1.rx_create(world.peer, &world.link, &world.rows[0],
						&world.rx) == 0);
	world.link.flow = TX_FLOW;
	fuzz_check(fragi_transport_v1.tx_create(world.peer, &world.link, &world.rows[1],
						&world.tx) == 0);
	world.now_ns = fragi_now_ns();
	if ((kind & 0x80) != 0)
		return; /* it says HELLO itself, or does not */
	hello.sequence = PEER;
	hello.flags = WIRE_HEARD;
	deliver(&hello, NULL, 0, NULL, 0, false);
}

static void world_fini(void)
{
	const struct fragi_flow_row *in = &world.rows[0], *out = &world.rows[1];
	uint64_t dropped = 0;

	world.fail_after = -1;
	fragi_pump_lock(world.pump);
	ucx_peer_fail(world.peer, "is over");
	fragi_pump_unlock(world.pump);
	progress(1);
	progress(UCX_CLOSE_NS);
	fragi_transport_v1.destroy(world.transport);
	fragi_pump_destroy(world.pump);
	/*
	 * What reached the queue was delivered or dropped; what was sent has left or was dropped.
	 */
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		dropped += in->rx_dropped[i];
	fuzz_check(in->arrived == in->delivered + dropped && in->delivered == world.taken);
	dropped = 0;
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		dropped += out->tx_dropped[i];
	fuzz_check(out->confirmed + dropped <= out->sent);
	fuzz_check(fake_ucp_alive() == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};

	world_init(&input);
	for (int steps = 0; steps < 500 && fuzz_left(&input) > 0; steps++)
		step(&input);
	world_fini();
	return 0;
}
