// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/log.h>
#include <edge/remote/state.h>

/*
 * The protocol between hosts against a peer that may do anything, also one that has the tokens,
 * over a transport that is here: it shows messages as the test says, and what is sent over it is
 * read to the last byte and completes at once or later, also never, as transports' sends do. Three
 * bytes of settings, then a program: a byte says what happens next (enum step), the bytes behind it
 * how. The peer of the program is honest unless a step bends one field of what it sends, so that
 * random bytes get behind the header that authenticates them.
 */
enum step {
	STEP_MESSAGE,  /* DATA, or DESCRIPTORS and DATA in either order */
	STEP_CONTROL,  /* one of the other kinds */
	STEP_RAW,      /* bytes as they are */
	STEP_TAKE,     /* the receiving operator */
	STEP_PROGRESS, /* time goes on */
	STEP_SEND,     /* the sending operator */
	STEP_CLOSE,    /* one of the two operators ends */
	STEP_BREAK,    /* the transport fails, or completes sends otherwise, or memory is short */
	STEP_CREDIT,   /* as an honest receiver gives it back */
	STEP_MAP,      /* from here on bodies come in mapped memory, or do not; or a layout, NEXT */
	STEPS
};

enum { RX_FLOW, TX_FLOW };
#define US 1
#define PEER 2
#define EPOCH 9
#define DESCRIPTORS_MAX 5000

static struct world {
	struct fragi_pump *pump;
	struct fragi_remote *remote;
	struct fragi_remote_endpoint *endpoint;
	struct fragi_rx *rx;
	struct fragi_tx *tx;
	struct fragi_flow_row rows[2];
	struct fragi_edge_config edge;
	int64_t now_ns;
	uint64_t next; /* sequence of the honest peer */
	uint32_t lost, faults;
	uint64_t taken;
	bool rx_closed, tx_closed;
	int64_t fail_after; /* allocations of the protocol until one fails; -1: none fails */
	bool maps;          /* bodies come in mapped memory, */
	uint32_t pieces;    /* in so many pieces */
} world;

/* The transport. */

struct request { /* the room of a send, and of a receive */
	struct request *next;
	bool never;
	struct handle *handle;
	uint32_t count;
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
};

struct handle {
	size_t size;
	uint8_t bytes[];
};

static struct {
	struct fragi_transport base;
	struct fragi_transport_config config;
	struct fragi_endpoint endpoint;
	struct request *sends, *receives;
	uint8_t send_mode; /* over at once, with the next progress, never, or it fails */
	bool closed;
	size_t alive; /* handles and mapped bodies that nobody has given back */
} fake;

/* Every byte that would be sent. */
static void touch(const void *bytes, size_t size)
{
	static volatile uint8_t sum;
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		sum = (uint8_t)(sum + at[i]);
}

static struct handle *handle_create(const void *data, size_t size)
{
	struct handle *handle = malloc(sizeof(*handle) + size);

	fuzz_check(handle != NULL);
	handle->size = size;
	if (size > 0)
		memcpy(handle->bytes, data, size);
	fake.alive++;
	return handle;
}

static void handle_free(void *handle)
{
	fake.alive--;
	free(handle);
}

static struct request **append(struct request **list, struct request *request)
{
	while (*list != NULL)
		list = &(*list)->next;
	request->next = NULL;
	*list = request;
	return list;
}

static int fake_create(const struct fragi_transport_config *config, struct fragi_transport **out,
		       struct frag_err *err);

static int fake_connect(struct fragi_transport *transport, uint32_t host, const void *address,
			size_t size, void *owner, struct fragi_endpoint **out, struct frag_err *err)
{
	(void)host, (void)address, (void)size, (void)err;
	fake.endpoint =
		(struct fragi_endpoint){.transport = transport, .owner = owner, .version = "1"};
	*out = &fake.endpoint;
	return 0;
}

static void fake_break(void)
{
	if (fake.endpoint.owner != NULL && !fake.closed)
		fake.config.events->failed(fake.endpoint.owner, "an error");
}

static void fake_close(struct fragi_endpoint *endpoint, bool silent)
{
	fuzz_check(!fake.closed);
	fake.closed = fake.closed || silent;
}

static void end_sends(bool abandoned)
{
	struct request *request;

	while ((request = fake.sends) != NULL) {
		fake.sends = request->next;
		fake.config.events->sent(
			(struct fragi_send *)(void *)((char *)request -
						      offsetof(struct fragi_send, room)),
			abandoned);
	}
}

static bool fake_stop(struct fragi_endpoint *endpoint, int64_t now_ns)
{
	(void)endpoint, (void)now_ns;
	if (fake.closed)
		end_sends(true);
	return true;
}

static void fake_free(struct fragi_endpoint *endpoint)
{
	endpoint->owner = NULL;
}

static bool fake_send(struct fragi_endpoint *endpoint, struct fragi_send *send,
		      const struct fragi_body *bodies, uint32_t count)
{
	struct request *request = (struct request *)(void *)send->room;

	fuzz_check((send->header_bytes >= FRAGI_HEADER_BYTES ||
		    (send->header_bytes == FRAGI_NEXT_BYTES && fake.base.names_sender)) &&
		   send->header_bytes <= fake.base.header_max && !fake.closed);
	touch(send->header, send->header_bytes);
	for (uint32_t i = 0; i < count; i++)
		touch(bodies[i].data, bodies[i].bytes);
	if (fake.send_mode == 3)
		fake_break();
	if (fake.send_mode == 0 || fake.send_mode == 3)
		return false;
	request->never = fake.send_mode == 2;
	append(&fake.sends, request);
	return true;
}

static int fake_receive(struct fragi_transport *transport, void *handle,
			const struct fragi_body *bodies, uint32_t count,
			struct fragi_receive *receive)
{
	struct request *request = (struct request *)(void *)receive->room;

	fuzz_check(handle != NULL && count <= FRAG_MESSAGE_TENSORS_MAX);
	request->handle = handle;
	request->count = count;
	if (count > 0)
		memcpy(request->bodies, bodies, count * sizeof(*bodies));
	append(&fake.receives, request);
	return 0;
}

static void fake_discard(struct fragi_transport *transport, void *handle)
{
	handle_free(handle);
}

/* What the peer sends lands in the buffers; what does not fit is an error. */
static void land(struct request *request)
{
	struct handle *handle = request->handle;
	const uint8_t *from = handle->bytes;
	size_t left = handle->size, size = left, n;

	for (uint32_t i = 0; i < request->count; i++) {
		n = left < request->bodies[i].bytes ? left : request->bodies[i].bytes;
		memcpy(request->bodies[i].data, from, n);
		from += n;
		left -= n;
	}
	handle_free(handle);
	fake.config.events->received(
		(struct fragi_receive *)(void *)((char *)request -
						 offsetof(struct fragi_receive, room)),
		left > 0 ? "an error" : NULL, size);
}

static uint32_t fake_progress(struct fragi_transport *transport, int64_t now_ns)
{
	struct request **at = &fake.sends, *request;
	uint32_t count = 0;

	(void)transport, (void)now_ns;
	while ((request = *at) != NULL) {
		if (request->never) {
			at = &request->next;
			continue;
		}
		*at = request->next;
		fake.config.events->sent(
			(struct fragi_send *)(void *)((char *)request -
						      offsetof(struct fragi_send, room)),
			false);
		at = &fake.sends; /* anything may have happened */
		count++;
	}
	for (; (request = fake.receives) != NULL && count < 1000; count++) {
		fake.receives = request->next;
		land(request);
	}
	return count;
}

static int fake_arm(struct fragi_transport *transport)
{
	return -EBUSY;
}

static int fake_fd(const struct fragi_transport *transport)
{
	return -1;
}

static void fake_wake(struct fragi_transport *transport)
{
}

static void fake_destroy(struct fragi_transport *transport)
{
	struct request *request;

	end_sends(true);
	while ((request = fake.receives) != NULL) {
		fake.receives = request->next;
		handle_free(request->handle);
		fake.config.events->received(
			(struct fragi_receive *)(void *)((char *)request -
							 offsetof(struct fragi_receive, room)),
			"given up", 0);
	}
}

static const struct fragi_transport_ops fake_ops = {
	.struct_size = sizeof(fake_ops),
	.name = "fake",
	.title = "Fake",
	.create = fake_create,
	.destroy = fake_destroy,
	.connect = fake_connect,
	.close = fake_close,
	.stop = fake_stop,
	.free = fake_free,
	.send = fake_send,
	.receive = fake_receive,
	.discard = fake_discard,
	.progress = fake_progress,
	.arm = fake_arm,
	.fd = fake_fd,
	.wake = fake_wake,
};

static int fake_create(const struct fragi_transport_config *config, struct fragi_transport **out,
		       struct frag_err *err)
{
	memset(&fake, 0, sizeof(fake));
	fake.config = *config;
	fake.base = (struct fragi_transport){.ops = &fake_ops,
					     .version = "1",
					     .header_max = FRAGI_HEADER_MAX,
					     .send_room = sizeof(struct request),
					     .receive_room = sizeof(struct request)};
	*out = &fake.base;
	return 0;
}

/* Shows one message; rendezvous: only a handle of the data. Everything given is copied. */
static void show(const void *header, size_t header_size, const uint8_t *data, size_t size,
		 bool rendezvous)
{
	uint8_t *header_copy = fuzz_copy(header, header_size), *data_copy = NULL;
	struct fragi_arrival arrival = {
		.header = header_copy,
		.header_bytes = header_size,
		.body_bytes = size,
		.from = fake.base.names_sender ? &fake.endpoint : NULL,
	};
	size_t piece = world.pieces > 0 ? size / world.pieces : 0;
	struct fragi_body bodies[3] = {{0}};
	enum fragi_arrival_use use;

	if (rendezvous) {
		arrival.handle = handle_create(data, size);
	} else if (world.maps && piece > 0) {
		for (uint32_t i = 0; i < world.pieces; i++) {
			struct handle *handle = handle_create(data + i * piece, piece);

			bodies[i] = (struct fragi_body){.data = handle->bytes,
							.bytes = piece,
							.device = {FRAG_DEVICE_CPU, 0},
							.owner = handle,
							.release = handle_free};
		}
		arrival.mapped = bodies;
		arrival.mapped_count = world.pieces;
	} else {
		arrival.data = data_copy = fuzz_copy(data, size);
	}
	use = fake.config.events->arrived(fake.config.arg, &arrival);
	fuzz_check(use == FRAGI_ARRIVAL_USED || arrival.data == NULL);
	if (rendezvous && use == FRAGI_ARRIVAL_USED)
		handle_free(arrival.handle);
	for (uint32_t i = 0; i < arrival.mapped_count && use == FRAGI_ARRIVAL_USED; i++)
		handle_free(bodies[i].owner);
	free(header_copy);
	free(data_copy);
}

static const uint8_t token[FRAGI_TOKEN_BYTES] = "the token of it";

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	fuzz_check(failure == FRAGI_FAILURE_EDGE_LOST ||
		   failure == FRAGI_FAILURE_EDGE_UNREACHABLE || failure == FRAGI_FAILURE_PROTOCOL ||
		   failure == FRAGI_FAILURE_OUT_OF_MEMORY);
	fuzz_check(host == PEER && strlen(sentence) > 8);
	fuzz_check(world.lost++ == 0);
}

/* Around what the protocol does by itself: which of its allocations fails. */
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

static void on_fault(void *arg, enum fragi_failure failure, const char *op, const char *sentence)
{
	fuzz_check(failure == FRAGI_FAILURE_OUT_OF_MEMORY || failure == FRAGI_FAILURE_TYPE_UNKNOWN);
	fuzz_check(sentence[0] != '\0');
	world.faults++;
}

static struct frag_message *plain_message_of(uint32_t bytes, uint32_t tensors)
{
	static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_message *message = frag_message_create();
	int64_t shape = bytes;
	struct frag_tensor *tensor;
	char name[8];

	for (uint32_t i = 0; i < tensors; i++) {
		snprintf(name, sizeof(name), "t%u", (unsigned int)i % 10);
		fuzz_check(frag_tensor_create(NULL, u8, 1, &shape, &tensor) == 0);
		if (bytes > 0)
			memset(frag_tensor_writable(tensor), (int)('a' + i), bytes);
		fuzz_check(frag_message_add_tensor(message, name, tensor) == 0);
	}
	return message;
}

static struct frag_message *message_of(uint32_t bytes, uint32_t tensors)
{
	struct frag_message *message = plain_message_of(bytes, tensors);
	int64_t number = bytes;

	fuzz_check(frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL) ==
		   0);
	return message;
}

static struct fragi_header header_of(enum fragi_header_kind kind, uint32_t flow)
{
	struct fragi_header header = {.kind = kind, .flow = flow, .epoch = EPOCH};

	memcpy(header.token, token, sizeof(token));
	return header;
}

/* Makes one field another one. */
static void bend(struct fragi_header *header, struct fuzz_input *input)
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

static void deliver(const struct fragi_header *header, const void *behind, size_t behind_size,
		    const void *data, size_t size, bool rendezvous)
{
	uint8_t bytes[FRAGI_HEADER_BYTES + DESCRIPTORS_MAX];

	fragi_header_pack(header, bytes);
	if (behind_size > 0)
		memcpy(bytes + FRAGI_HEADER_BYTES, behind, behind_size);
	begin();
	show(bytes, FRAGI_HEADER_BYTES + behind_size, data, size, rendezvous);
	end();
}

/*
 * Puts credit of our sending flow, all of it or what the input says, in front of the descriptors
 * (taken).
 */
static uint8_t *with_credit(struct fuzz_input *input, uint8_t *descriptors, size_t size)
{
	const struct fragi_remote_tx *tx = world.remote->flows[TX_FLOW].tx;
	struct fragi_credit credit = {TX_FLOW, tx->window.sent, tx->window.sent_bytes};
	uint8_t *all = malloc(FRAGI_CREDIT_BYTES + size), how = fuzz_u8(input);

	if ((how & 1) != 0)
		credit.flow = how >> 4;
	if ((how & 2) != 0)
		credit.messages -= how >> 4;
	if ((how & 4) != 0)
		credit.bytes -= fuzz_u8(input);
	fragi_credit_pack(&credit, all);
	memcpy(all + FRAGI_CREDIT_BYTES, descriptors, size);
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
	struct fragi_header header = header_of(FRAGI_KIND_DATA, RX_FLOW), ahead;
	size_t credit_bytes = (how & 128) != 0 ? FRAGI_CREDIT_BYTES : 0;
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
		header.flags = FRAGI_FLAG_AHEAD;
	if ((how & 128) != 0) {
		header.flags |= FRAGI_FLAG_CREDITED;
		descriptors = with_credit(input, descriptors, descriptor_bytes);
	}
	if ((how & 1) != 0)
		bend(&header, input);
	ahead = header;
	ahead.kind = FRAGI_KIND_DESCRIPTORS;
	memset(bodies, 0x5a, sizeof(bodies));
	world.pieces = shape & 3;
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

/* how: 1 bent, 2 rendezvous, 4 no NEXT, but the message that announces its layout */
static void step_layout(struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input), shape = fuzz_u8(input), bytes[FRAGI_NEXT_BYTES];
	struct frag_message *message = plain_message_of((uint32_t)(shape >> 2) * 4, shape & 3);
	struct fragi_header header = header_of(FRAGI_KIND_DATA, RX_FLOW);
	struct fragi_next next = {RX_FLOW, world.next++, world.now_ns};
	size_t size = (size_t)(shape >> 2) * 4 * (shape & 3);
	static uint8_t bodies[64 * 4 * 3];
	const struct fragi_blob *blob;

	memset(bodies, 0x5a, sizeof(bodies));
	world.pieces = shape & 3;
	if ((how & 4) != 0) {
		fuzz_check(fragi_message_encode(message, &blob) == 0);
		header.flags = FRAGI_FLAG_LAYOUT;
		header.sequence = next.sequence;
		header.descriptor_bytes = blob->size;
		header.body_bytes = size;
		if ((how & 1) != 0)
			bend(&header, input);
		deliver(&header, blob->bytes, blob->size, bodies, size, (how & 2) != 0);
	} else {
		if ((how & 1) != 0) {
			next.flow ^= fuzz_u8(input) & 3;
			next.sequence += (uint64_t)(int64_t)(int8_t)fuzz_u8(input);
		}
		fragi_next_pack(&next, bytes);
		begin();
		show(bytes, sizeof(bytes), bodies, size, (how & 2) != 0);
		end();
	}
	frag_message_unref(message);
}

static void step_control(struct fuzz_input *input)
{
	static const enum fragi_header_kind kinds[] = {FRAGI_KIND_HELLO, FRAGI_KIND_CREDIT,
						       FRAGI_KIND_BEAT,  FRAGI_KIND_CLOSE,
						       FRAGI_KIND_DONE,  FRAGI_KIND_SYNC};
	uint8_t which = fuzz_u8(input);
	enum fragi_header_kind kind = kinds[which % FRAG_COUNT_OF(kinds)];
	struct fragi_header header = header_of(
		kind, kind == FRAGI_KIND_CREDIT || kind == FRAGI_KIND_DONE ? TX_FLOW : RX_FLOW);

	header.flags = fuzz_u8(input);
	header.sequence = kind == FRAGI_KIND_HELLO   ? PEER
			  : kind == FRAGI_KIND_CLOSE ? world.next
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
	show(header, header_size, data, size, (kind & 0x80) != 0);
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
	(void)fragi_remote_pump_ops.progress(world.remote, world.now_ns);
	end();
	fragi_pump_unlock(world.pump);
}

static void step_send(struct fuzz_input *input)
{
	uint8_t shape = fuzz_u8(input);
	struct frag_message *message =
		fake.base.names_sender ? plain_message_of((uint32_t)(shape >> 2) * 16, shape & 3)
				       : message_of((uint32_t)(shape >> 2) * 16, shape & 3);
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

static void step_trouble(uint8_t which)
{
	if (which < 128)
		fake.send_mode = which & 3;
	else
		world.fail_after = which & 15;
}

static void step(struct fuzz_input *input)
{
	struct fragi_header header;
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
			fake_break();
		else
			step_trouble(fuzz_u8(input));
		break;
	case STEP_CREDIT:
		header = header_of(FRAGI_KIND_CREDIT, TX_FLOW);
		header.sequence = world.remote->flows[TX_FLOW].tx->window.sent;
		header.body_bytes = world.remote->flows[TX_FLOW].tx->window.sent_bytes;
		deliver(&header, NULL, 0, NULL, 0, false);
		break;
	case STEP_MAP:
	default:
		if (which >= 128)
			step_layout(input);
		else
			world.maps = !world.maps;
		break;
	}
}

static void world_init(struct fuzz_input *input)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_BLOCK, FRAG_POLICY_POP,
						    FRAG_POLICY_REJECT, FRAG_POLICY_FAULT,
						    FRAG_POLICY_LATEST};
	struct fragi_remote_config config = {
		.host = US, .epoch = 7, .peer_lost = on_lost, .fault = on_fault};
	struct fragi_remote_peer *peer;
	struct fragi_header hello = header_of(FRAGI_KIND_HELLO, RX_FLOW);
	uint8_t kind = fuzz_u8(input);
	struct frag_err err = FRAG_ERR_INIT;

	fragi_log_threshold = FRAGI_LOG_OFF;
	memset(&world, 0, sizeof(world));
	world.fail_after = -1;
	world.edge = (struct fragi_edge_config){
		.flow = RX_FLOW,
		.window_messages = 1 + fuzz_u8(input) % 8,
		.window_bytes = 1 + (uint64_t)fuzz_u8(input) * 16,
		.message_bytes_max = 4096,
		.policy = policies[kind % FRAG_COUNT_OF(policies)],
	};
	memcpy(world.edge.token, token, sizeof(token));
	fuzz_check(fragi_pump_create(&world.pump) == 0);
	config.pump = world.pump;
	fuzz_check(fragi_remote_create(&config, &world.remote) == 0);
	fuzz_check(fragi_remote_open(world.remote, &fake_ops, &err) == 0);
	fake.base.names_sender = (kind & 0x40) != 0;
	fuzz_check(fragi_remote_peer_create(world.remote, PEER, EPOCH, &peer) == 0);
	fuzz_check(fragi_remote_connect(peer, "fake", "", 0, &world.endpoint, &err) == 0);
	fuzz_check(fragi_remote_rx_create(world.endpoint, &world.edge, &world.rows[0], &world.rx) ==
		   0);
	world.edge.flow = TX_FLOW;
	fuzz_check(fragi_remote_tx_create(world.endpoint, &world.edge, &world.rows[1], &world.tx) ==
		   0);
	world.now_ns = fragi_now_ns();
	if ((kind & 0x80) != 0)
		return; /* it says HELLO itself, or does not */
	hello.sequence = PEER;
	hello.flags = FRAGI_FLAG_HEARD;
	hello.body_bytes = FRAGI_TAKES_NEXT;
	deliver(&hello, NULL, 0, NULL, 0, false);
}

static void world_fini(void)
{
	const struct fragi_flow_row *in = &world.rows[0], *out = &world.rows[1];
	uint64_t dropped = 0;

	world.fail_after = -1;
	fragi_pump_lock(world.pump);
	fragi_remote_endpoint_fail(world.endpoint, FRAGI_FAILURE_EDGE_LOST, "is over");
	fragi_pump_unlock(world.pump);
	progress(1);
	progress(FRAGI_TRANSPORTS_STOP_NS);
	fragi_remote_destroy(world.remote);
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
	fuzz_check(fake.alive == 0 && fake.sends == NULL);
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
