// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/log.h>
#include <edge/remote/state.h>

/*
 * Two hosts with an encrypted flow, and somebody between them who does with its messages what the
 * input says. Whatever he does, what the receiver gets are the first of the messages that were
 * sent, unchanged and in order, and who does anything but wait ends the edge.
 *
 * A byte of input: what happens next (enum step); the bytes behind it how.
 */
enum step {
	STEP_SEND,    /* a message: how long */
	STEP_TAKE,    /* the receiving operator */
	STEP_CARRY,   /* the oldest message on the way arrives */
	STEP_FLIP,    /* the same, with a byte changed: where, how */
	STEP_CUT,     /* the same, without its last bytes: how many */
	STEP_REPEAT,  /* the same, and it arrives once more */
	STEP_REMOVE,  /* it does not arrive */
	STEP_REPLACE, /* other bytes arrive in its place, behind its header: how many, and these */
	STEPS
};

#define FLOW 3
#define FRAMES_MAX 64
#define BODY_MAX 600

extern const struct fragi_crypto_ops fragi_crypto_v1;

struct frame {
	struct frame *next;
	int to;
	size_t header_bytes, body_bytes;
	uint8_t bytes[];
};

struct host {
	struct fragi_transport base;
	struct fragi_transport_config config;
	struct fragi_endpoint endpoint;
	struct fragi_remote *remote;
	struct fragi_pump *pump;
};

static struct {
	struct host hosts[2];
	struct frame *frames; /* on the way, oldest first */
	int creating;
	uint32_t lost;
	bool meddled;
	int64_t now_ns, sent, taken;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
} world;

static struct host *host_of(const struct fragi_transport *transport)
{
	return (struct host *)(void *)(uintptr_t)transport;
}

static bool fake_send(struct fragi_endpoint *endpoint, struct fragi_send *send,
		      const struct fragi_body *bodies, uint32_t count)
{
	struct frame **last = &world.frames, *frame;
	size_t size = 0;

	for (uint32_t i = 0; i < count; i++)
		size += bodies[i].bytes;
	frame = malloc(sizeof(*frame) + send->header_bytes + size);
	fuzz_check(frame != NULL && count <= 1);
	frame->next = NULL;
	frame->to = 1 - (int)(host_of(endpoint->transport) - world.hosts);
	frame->header_bytes = send->header_bytes;
	frame->body_bytes = size;
	memcpy(frame->bytes, send->header, send->header_bytes);
	if (count > 0)
		memcpy(frame->bytes + send->header_bytes, bodies[0].data, size);
	while (*last != NULL)
		last = &(*last)->next;
	*last = frame;
	return false;
}

static int fake_create(const struct fragi_transport_config *config, struct fragi_transport **out,
		       struct frag_err *err);

static void fake_destroy(struct fragi_transport *transport)
{
}

static int fake_connect(struct fragi_transport *transport, uint32_t number, const void *address,
			size_t size, void *owner, struct fragi_endpoint **out, struct frag_err *err)
{
	struct host *host = host_of(transport);

	(void)number, (void)address, (void)size, (void)err;
	host->endpoint =
		(struct fragi_endpoint){.transport = transport, .owner = owner, .version = "1"};
	*out = &host->endpoint;
	return 0;
}

static void fake_close(struct fragi_endpoint *endpoint, bool silent)
{
	(void)endpoint, (void)silent;
}

static bool fake_stop(struct fragi_endpoint *endpoint, int64_t now_ns)
{
	(void)endpoint, (void)now_ns;
	return true;
}

static void fake_free(struct fragi_endpoint *endpoint)
{
	endpoint->owner = NULL;
}

static uint32_t fake_progress(struct fragi_transport *transport, int64_t now_ns)
{
	(void)transport, (void)now_ns;
	return 0;
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
	.progress = fake_progress,
	.arm = fake_arm,
	.fd = fake_fd,
	.wake = fake_wake,
};

static int fake_create(const struct fragi_transport_config *config, struct fragi_transport **out,
		       struct frag_err *err)
{
	struct host *host = &world.hosts[world.creating];

	host->config = *config;
	host->base = (struct fragi_transport){
		.ops = &fake_ops, .version = "1", .header_max = FRAGI_HEADER_MAX};
	*out = &host->base;
	return 0;
}

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	(void)arg, (void)host;
	fuzz_check(failure == FRAGI_FAILURE_DATA_TAMPERED || failure == FRAGI_FAILURE_EDGE_LOST ||
		   failure == FRAGI_FAILURE_EDGE_UNREACHABLE);
	fuzz_check(failure != FRAGI_FAILURE_DATA_TAMPERED || world.meddled);
	fuzz_check(sentence[0] != '\0');
	world.lost++;
}

static void arrive(const struct frame *frame)
{
	struct host *host = &world.hosts[frame->to];
	uint8_t *header = fuzz_copy(frame->bytes, frame->header_bytes);
	uint8_t *data = fuzz_copy(frame->bytes + frame->header_bytes, frame->body_bytes);
	struct fragi_arrival arrival = {.header = header,
					.header_bytes = frame->header_bytes,
					.body_bytes = frame->body_bytes,
					.data = data};

	host->config.events->arrived(host->config.arg, &arrival);
	free(header);
	free(data);
}

static void turn(void)
{
	world.now_ns += 1000000;
	for (int i = 0; i < 2; i++)
		fragi_remote_pump_ops.progress(world.hosts[i].remote, world.now_ns);
}

static struct frame *next_frame(void)
{
	struct frame *frame = world.frames;

	if (frame != NULL)
		world.frames = frame->next;
	return frame;
}

static void carry(enum step how, struct fuzz_input *input)
{
	struct frame *frame = next_frame();
	uint32_t times = how == STEP_REPEAT ? 2 : how == STEP_REMOVE ? 0 : 1;
	size_t size, n;

	if (frame == NULL)
		return;
	size = frame->header_bytes + frame->body_bytes;
	world.meddled = world.meddled || how != STEP_CARRY;
	if (how == STEP_FLIP)
		frame->bytes[fuzz_u16(input) % size] ^= (uint8_t)(fuzz_u8(input) | 1);
	if (how == STEP_CUT) {
		n = 1 + fuzz_u8(input);
		if (frame->body_bytes > 0)
			frame->body_bytes -= n < frame->body_bytes ? n : frame->body_bytes;
		else
			frame->header_bytes -= n < frame->header_bytes ? n : frame->header_bytes;
	}
	if (how == STEP_REPLACE) {
		n = fuzz_u8(input);
		for (size_t at = FRAGI_HEADER_BYTES; n > 0 && at < size; at++, n--)
			frame->bytes[at] = fuzz_u8(input);
	}
	for (; times > 0; times--)
		arrive(frame);
	free(frame);
	turn();
}

static void send_one(size_t bytes)
{
	static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_message *message = frag_message_create();
	int64_t shape = (int64_t)(bytes % BODY_MAX), number = world.sent;
	struct frag_tensor *tensor;

	if (world.tx->ops->room(world.tx) == 0 || world.lost > 0) {
		frag_message_unref(message);
		return;
	}
	fuzz_check(frag_message_set_value(message, &frag_type_i64, &number, sizeof(number), NULL) ==
		   0);
	fuzz_check(frag_tensor_create(NULL, u8, 1, &shape, &tensor) == 0);
	if (shape > 0)
		memset(frag_tensor_writable(tensor), (int)(number & 0xff), (size_t)shape);
	fuzz_check(frag_message_add_tensor(message, "t", tensor) == 0);
	fragi_message_share(message);
	fuzz_check(world.tx->ops->send(world.tx, message, fragi_stamp()) == 0);
	world.sent++;
	turn();
}

static void take_one(void)
{
	struct frag_message *message = fragi_rx_take(world.rx, fragi_stamp());
	const struct frag_tensor *tensor;
	const uint8_t *data;
	const void *value;

	if (message == NULL)
		return;
	fuzz_check(frag_message_value(message, &value, NULL) == &frag_type_i64);
	fuzz_check(memcmp(value, &world.taken, sizeof(world.taken)) == 0);
	tensor = frag_message_tensor(message, "t");
	fuzz_check(tensor != NULL);
	data = frag_tensor_data(tensor);
	for (size_t i = 0; i < frag_tensor_size_bytes(tensor); i++)
		fuzz_check(data[i] == (uint8_t)world.taken);
	world.taken++;
	frag_message_unref(message);
	turn();
}

static void host_init(int i)
{
	static const uint8_t data_key[FRAGI_DATA_KEY_BYTES] = "a key";
	const struct fragi_remote_config config = {
		.host = (uint32_t)i + 1,
		.epoch = 5 + (uint64_t)i,
		.data_key = data_key,
		.peer_lost = on_lost,
		.pump = world.hosts[i].pump,
	};
	struct fragi_edge_config edge = {
		.flow = FLOW,
		.token = "the token of it",
		.window_messages = 4,
		.window_bytes = 4096,
		.message_bytes_max = 4096,
		.policy = FRAG_POLICY_BLOCK,
		.encrypt = true,
	};
	static struct fragi_flow_row rows[2];
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	struct frag_err err = FRAG_ERR_INIT;
	struct host *host = &world.hosts[i];

	memset(&rows[i], 0, sizeof(rows[i]));
	world.creating = i;
	fuzz_check(fragi_remote_create(&config, &host->remote) == 0);
	fragi_remote_set_crypto(host->remote, &fragi_crypto_v1);
	fuzz_check(fragi_remote_open(host->remote, &fake_ops, &err) == 0);
	fuzz_check(fragi_remote_peer_create(host->remote, 2 - (uint32_t)i, 6 - (uint64_t)i,
					    &peer) == 0);
	fuzz_check(fragi_remote_connect(peer, "fake", "", 0, &endpoint, &err) == 0);
	fuzz_check((i == 0 ? fragi_remote_tx_create(endpoint, &edge, &rows[0], &world.tx)
			   : fragi_remote_rx_create(endpoint, &edge, &rows[1], &world.rx)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	struct frame *frame;

	fragi_log_threshold = FRAGI_LOG_OFF;
	memset(&world, 0, sizeof(world));
	world.now_ns = fragi_now_ns();
	for (int i = 0; i < 2; i++)
		fuzz_check(fragi_pump_create(&world.hosts[i].pump) == 0);
	for (int i = 0; i < 2; i++)
		host_init(i);
	turn();
	for (int steps = 0; steps < 500 && fuzz_left(&input) > 0; steps++) {
		enum step step = (enum step)(fuzz_u8(&input) % STEPS);

		if (step == STEP_SEND)
			send_one(fuzz_u16(&input));
		else if (step == STEP_TAKE)
			take_one();
		else
			carry(step, &input);
	}
	for (int i = 0; i < 2; i++) {
		fragi_pump_lock(world.hosts[i].pump);
		fragi_remote_endpoint_fail(world.hosts[i].remote->peers->endpoints,
					   FRAGI_FAILURE_EDGE_LOST, "is over");
		fragi_pump_unlock(world.hosts[i].pump);
	}
	turn();
	for (int i = 0; i < 2; i++) {
		fragi_remote_destroy(world.hosts[i].remote);
		fragi_pump_destroy(world.hosts[i].pump);
	}
	while ((frame = next_frame()) != NULL)
		free(frame);
	fuzz_check(world.taken <= world.sent);
	return 0;
}
