/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of a sender of large tensors, each in a library of its own. A tensor holds one number,
 * over and over: that of the message, and VERSION in the millions. The receiver keeps the first
 * tensors that it gets and reads them again at every later message, until a file exists.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frag/frag.h>

#define BYTES (INT64_C(4) << 20)
#define WORDS (BYTES / (int64_t)sizeof(int64_t))
#define HELD 4
/* Each library defines its own before it includes this. */
#ifndef VERSION
#define VERSION 0
#endif

enum { PORT };

struct large_tx {
	int64_t sent;
};

struct large_rx {
	const char *release;
	int64_t received;
	struct frag_message *held[HELD];
	int64_t numbers[HELD];
};

static const struct frag_port tx_ports[] = {[PORT] = {.name = "out", .dir = FRAG_OUT}};
static const struct frag_port rx_ports[] = {[PORT] = {.name = "in", .dir = FRAG_IN}};
static const struct frag_param rx_params[] = {
	FRAG_PARAM_PATH(struct large_rx, release, NULL,
			.headline = "Lets go of the tensors when this file exists",
			.flags = FRAG_PARAM_REQUIRED),
};

static int tx_compute(void *state, struct frag_tick *tick)
{
	struct large_tx *s = state;
	const struct frag_dtype i64 = {FRAG_DTYPE_INT, 64, 1};
	const int64_t words = WORDS;
	struct frag_tensor *tensor;
	int64_t *out;
	int r = frag_tensor_create(NULL, i64, 1, &words, &tensor);

	if (r < 0)
		return r;
	out = frag_tensor_writable(tensor);
	s->sent++;
	for (int64_t i = 0; i < WORDS; i++)
		out[i] = VERSION * INT64_C(1000000) + s->sent;
	return frag_tick_emit_tensor(tick, PORT, "large", tensor);
}

static int tx_save(void *state, struct frag_op *op, void *bytes, size_t size)
{
	memcpy(bytes, state, size);
	return (int)size;
}

static int tx_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	memcpy(state, bytes, size);
	return 0;
}

/* Fails unless the tensor is that of this number to its last byte. */
static int check(struct frag_op *op, const struct frag_message *m, int64_t number)
{
	const int64_t *in = frag_tensor_data(frag_message_tensor(m, NULL));

	for (int64_t i = 0; i < WORDS; i++)
		if (in[i] != number)
			return frag_op_fail(op, -EBADMSG, "word %lld of tensor %lld is %lld",
					    (long long)i, (long long)number, (long long)in[i]);
	return 0;
}

static void let_go(struct large_rx *s)
{
	for (int i = 0; i < HELD; i++) {
		if (s->held[i] != NULL)
			frag_message_unref(s->held[i]);
		s->held[i] = NULL;
	}
}

static int rx_compute(void *state, struct frag_tick *tick)
{
	struct large_rx *s = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *m;
	int64_t number;
	int r = frag_tick_receive(tick, PORT, &m);

	if (r < 0)
		return r;
	memcpy(&number, frag_tensor_data(frag_message_tensor(m, NULL)), sizeof(number));
	r = check(op, m, number);
	for (int i = 0; r == 0 && i < HELD; i++)
		if (s->held[i] != NULL)
			r = check(op, s->held[i], s->numbers[i]);
	if (r < 0)
		return r;
	printf("large %lld\n", (long long)number);
	if (s->received < HELD) {
		s->numbers[s->received] = number;
		s->held[s->received] = frag_message_ref(m);
	}
	s->received++;
	if (s->held[0] != NULL && access(s->release, F_OK) == 0) {
		printf("large lets go\n");
		let_go(s);
	}
	fflush(stdout);
	return 0;
}

static int rx_stop(void *state, struct frag_op *op)
{
	let_go(state);
	return 0;
}

static const struct frag_op_type large_tx = {
	FRAG_OP_TYPE_INIT,
	.name = "large_tx",
	.state_size = sizeof(struct large_tx),
	FRAG_PORTS(tx_ports),
	.compute = tx_compute,
	.save = tx_save,
	.restore = tx_restore,
	.save_size = sizeof(struct large_tx),
};
static const struct frag_op_type large_rx = {
	FRAG_OP_TYPE_INIT,    .name = "large_rx",     .state_size = sizeof(struct large_rx),
	FRAG_PORTS(rx_ports), FRAG_PARAMS(rx_params), .compute = rx_compute,
	.stop = rx_stop,
};
static const struct frag_op_type *const ops[] = {&large_tx, &large_rx};
FRAG_PLUGIN(.name = "large", .version = "1.0.0", FRAG_OPS(ops));
