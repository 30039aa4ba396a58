// SPDX-License-Identifier: Apache-2.0
#include "fake_ucp.h"

#include <modules/ucx/module.h>

/*
 * The ucx module between a UCX that may do anything and a protocol that uses the table in every
 * order it may. Each byte says what happens next (enum step), the bytes behind it how.
 */
enum step {
	STEP_ARRIVE,   /* an active message, and what the protocol says to it */
	STEP_SEND,     /* a header and up to four bodies */
	STEP_PROGRESS, /* requests complete */
	STEP_TAKE,     /* a handle that was kept: received, or discarded */
	STEP_MODE,     /* how sends complete; which allocation fails */
	STEP_BREAK,    /* UCX reports an error */
	STEP_END,      /* one of the three steps of an endpoint's end */
	STEP_CONNECT,  /* again, when it was freed */
	STEP_ADDRESS,  /* another host's address as the driver says it */
	STEPS
};

extern const struct fragi_transport_ops fragi_transport_v1;

#define BODIES_MAX 4
#define BODY_BYTES 64
#define KEPT_MAX 8
#define PENDING_MAX 64

/* A request that the module has, and the memory that it may touch. */
struct pending {
	bool used;
	uint32_t connection; /* that it was sent on; 0: none */
	uint8_t memory[BODIES_MAX][BODY_BYTES];
	union {
		struct fragi_send send;
		struct fragi_receive receive;
		uint8_t room[sizeof(struct fragi_send) + sizeof(struct ucx_send)];
	};
};

static struct world {
	struct fragi_transport *transport;
	struct fragi_endpoint *endpoint;
	struct fuzz_input *input;
	struct pending *pending[PENDING_MAX];
	void *kept[KEPT_MAX];
	int64_t now_ns, close_from_ns, close_to_ns; /* it was closed between these two */
	uint32_t connection; /* the present one, from 1; those before may have sends under way */
	bool failed, closed, cut;
} world;

static struct pending *pending_create(void)
{
	for (int i = 0; i < PENDING_MAX; i++) {
		if (world.pending[i] != NULL)
			continue;
		world.pending[i] = calloc(1, sizeof(struct pending));
		fuzz_check(world.pending[i] != NULL);
		return world.pending[i];
	}
	return NULL;
}

/* Each request ends once. */
static void pending_end(const void *request, bool keep)
{
	for (int i = 0; i < PENDING_MAX; i++) {
		struct pending *pending = world.pending[i];

		if (pending == NULL || (const void *)&pending->send != request)
			continue;
		fuzz_check(!pending->used);
		pending->used = keep;
		if (keep) /* given up: it stays where it is */
			return;
		world.pending[i] = NULL;
		free(pending);
		return;
	}
	fuzz_check(false);
}

static void on_sent(struct fragi_send *send, bool abandoned)
{
	pending_end(send, abandoned);
}

static void on_received(struct fragi_receive *receive, const char *cause, uint64_t bytes)
{
	fuzz_check(cause == NULL || cause[0] != '\0');
	pending_end(receive, false);
}

static void on_failed(void *owner, const char *cause)
{
	fuzz_check(owner == &world && cause[0] != '\0' && !world.failed);
	world.failed = true;
}

static void on_fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	(void)arg, (void)failure, (void)sentence;
}

static bool take(void *handle, uint8_t how)
{
	struct pending *pending = (how & 1) != 0 ? pending_create() : NULL;
	struct fragi_body bodies[BODIES_MAX];
	uint32_t count = how >> 1 & 3;

	if (pending == NULL) {
		fragi_transport_v1.discard(world.transport, handle);
		return true;
	}
	for (uint32_t i = 0; i < count; i++)
		bodies[i] = (struct fragi_body){
			.data = pending->memory[i], .bytes = 1 + (how >> 3), .device = {1, 0}};
	if (fragi_transport_v1.receive(world.transport, handle, bodies, count, &pending->receive) <
	    0)
		pending_end(&pending->receive, false);
	return true;
}

static enum fragi_arrival_use on_arrived(void *arg, const struct fragi_arrival *arrival)
{
	uint8_t how = fuzz_u8(world.input);

	fuzz_check((arrival->data == NULL) != (arrival->handle == NULL) ||
		   arrival->body_bytes == 0);
	if (arrival->handle == NULL || (how & 3) == 0)
		return FRAGI_ARRIVAL_USED;
	if ((how & 3) == 1)
		return take(arrival->handle, fuzz_u8(world.input)) ? FRAGI_ARRIVAL_KEPT
								   : FRAGI_ARRIVAL_USED;
	for (int i = 0; i < KEPT_MAX; i++) {
		if (world.kept[i] != NULL)
			continue;
		world.kept[i] = arrival->handle;
		return FRAGI_ARRIVAL_KEPT;
	}
	return FRAGI_ARRIVAL_USED;
}

static void step_arrive(struct fuzz_input *input)
{
	const uint8_t *header, *data;
	size_t header_size, size;
	uint8_t how = fuzz_u8(input);

	header = fuzz_bytes(input, how & 63, &header_size);
	data = fuzz_bytes(input, fuzz_u8(input), &size);
	fake_ucp_deliver(header, header_size, data, size, (how & 0x80) != 0);
}

static void step_send(struct fuzz_input *input)
{
	uint8_t how = fuzz_u8(input);
	struct fragi_body bodies[BODIES_MAX];
	struct pending *pending = pending_create();
	uint32_t count = how & 3;

	if (pending == NULL)
		return;
	if (world.endpoint == NULL || world.closed || world.failed) {
		pending_end(&pending->send, false);
		return;
	}
	pending->connection = world.connection;
	pending->send.header_bytes = how >> 2;
	for (uint32_t i = 0; i < count; i++)
		bodies[i] = (struct fragi_body){.data = pending->memory[i],
						.bytes = fuzz_u8(input) % BODY_BYTES,
						.device = {1, 0}};
	if (!fragi_transport_v1.send(world.endpoint, &pending->send, bodies, count))
		pending_end(&pending->send, false);
	memset(bodies, 0xff, sizeof(bodies)); /* it is read during the call only */
}

static bool is_sending(void)
{
	for (int i = 0; i < PENDING_MAX; i++)
		if (world.pending[i] != NULL && !world.pending[i]->used &&
		    world.pending[i]->connection == world.connection)
			return true;
	return false;
}

/* A connection that was cut is waited for, but not for ever; then nothing is under way on it. */
static void step_stop(void)
{
	bool closes = world.cut && fake_ucp_closes(), is_over;

	world.now_ns += UCX_CLOSE_NS / 2;
	is_over = fragi_transport_v1.stop(world.endpoint, world.now_ns);
	fuzz_check(is_over ? !closes || world.now_ns >= world.close_from_ns + UCX_CLOSE_NS
			   : closes && world.now_ns < world.close_to_ns + UCX_CLOSE_NS);
	fuzz_check(!is_over || !world.cut || (!is_sending() && !fake_ucp_closes()));
}

static void step_end(uint8_t how)
{
	if (world.endpoint == NULL)
		return;
	if (!world.closed) {
		world.closed = true;
		world.cut = (how & 1) != 0;
		world.close_from_ns = fragi_now_ns();
		fragi_transport_v1.close(world.endpoint, world.cut);
		world.now_ns = world.close_to_ns = fragi_now_ns();
	} else if ((how & 2) != 0) {
		step_stop();
	} else {
		fragi_transport_v1.free(world.endpoint);
		world.endpoint = NULL;
	}
}

static void step_connect(void)
{
	struct frag_err err = FRAG_ERR_INIT;
	const void *address;
	size_t size;

	if (world.endpoint != NULL)
		return;
	address = fragi_transport_v1.address(world.transport, &size);
	world.closed = world.failed = world.cut = false;
	world.connection++;
	if (fragi_transport_v1.connect(world.transport, 2, address, size, &world, &world.endpoint,
				       &err) < 0)
		world.endpoint = NULL;
}

static void step_address(struct fuzz_input *input)
{
	uint8_t changed[FRAGI_HOST_ADDRESS_MAX], how = fuzz_u8(input), *address;
	const struct ucx_transport *transport = ucx_of(world.transport);
	size_t size = transport->address_size;
	struct frag_err err = FRAG_ERR_INIT;
	const void *theirs;
	struct fragi_endpoint peer = {0};
	struct ucx_entrance entrance;
	int r;

	memcpy(changed, transport->address, size);
	for (int i = 0; i < (how & 7); i++)
		changed[fuzz_u8(input) % size] = fuzz_u8(input);
	if ((how & 8) != 0)
		size = fuzz_u8(input) % (size + 1);
	address = fuzz_copy(changed, size); /* nothing behind its end is readable */
	r = ucx_address_check(transport, address, size, &theirs, &peer, &entrance, &err);
	fuzz_check(r == 0 || err.text[0] != '\0');
	fuzz_check(r < 0 || ((const uint8_t *)theirs >= address &&
			     (const uint8_t *)theirs < address + size));
	free(address);
}

static void step(struct fuzz_input *input)
{
	uint8_t which = fuzz_u8(input), how;

	switch (which % STEPS) {
	case STEP_ARRIVE:
		step_arrive(input);
		break;
	case STEP_SEND:
		step_send(input);
		break;
	case STEP_PROGRESS:
		(void)fragi_transport_v1.progress(world.transport, world.now_ns);
		(void)fragi_transport_v1.arm(world.transport);
		break;
	case STEP_TAKE:
		how = fuzz_u8(input);
		if (world.kept[how % KEPT_MAX] != NULL)
			(void)take(world.kept[how % KEPT_MAX], fuzz_u8(input));
		world.kept[how % KEPT_MAX] = NULL;
		break;
	case STEP_MODE:
		how = fuzz_u8(input);
		if ((how & 0x80) != 0)
			fragi_alloc_fail_after(how & 7, 1);
		else
			fake_ucp_send_mode(how & 3);
		break;
	case STEP_BREAK:
		if (world.endpoint != NULL)
			fake_ucp_break();
		break;
	case STEP_END:
		step_end(fuzz_u8(input));
		break;
	case STEP_CONNECT:
		step_connect();
		break;
	default:
		step_address(input);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct fragi_transport_events events = {.arrived = on_arrived,
							     .sent = on_sent,
							     .received = on_received,
							     .failed = on_failed,
							     .fault = on_fault};
	const struct fragi_transport_config config = {.struct_size = sizeof(config),
						      .events = &events};
	struct fuzz_input input = {bytes, bytes + size};
	struct frag_err err = FRAG_ERR_INIT;

	memset(&world, 0, sizeof(world));
	fake_ucp_reset();
	world.input = &input;
	fuzz_check(fragi_transport_v1.create(&config, &world.transport, &err) == 0);
	step_connect();
	for (int steps = 0; steps < 500 && fuzz_left(&input) > 0; steps++)
		step(&input);
	(void)fragi_alloc_fail_off();
	for (int i = 0; i < KEPT_MAX; i++)
		if (world.kept[i] != NULL)
			fragi_transport_v1.discard(world.transport, world.kept[i]);
	if (world.endpoint != NULL)
		fragi_transport_v1.free(world.endpoint);
	fragi_transport_v1.destroy(world.transport);
	for (int i = 0; i < PENDING_MAX; i++) {
		fuzz_check(world.pending[i] == NULL || world.pending[i]->used);
		free(world.pending[i]);
	}
	fuzz_check(fake_ucp_alive() == 0);
	return 0;
}
