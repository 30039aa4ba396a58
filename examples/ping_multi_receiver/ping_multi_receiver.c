// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <frag/frag.h>

/* Sends `count` numbers from `first` on. */
struct count_tx {
	int64_t first, count, sent;
};

enum { OUT };
static const struct frag_port count_tx_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param count_tx_params[] = {
	FRAG_PARAM_I64(struct count_tx, first, 0, .headline = "First number"),
	FRAG_PARAM_I64(struct count_tx, count, 1, .headline = "How many", .min = 1, .max = 1e6),
};

static int count_tx_compute(void *state, struct frag_tick *tick)
{
	struct count_tx *tx = state;
	int r = frag_tick_emit_i64(tick, OUT, tx->first + tx->sent);

	if (r < 0)
		return r;
	return ++tx->sent < tx->count ? 0 : FRAG_DONE;
}

static const struct frag_op_type count_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "count_tx",
	.headline = "Sends some numbers",
	.state_size = sizeof(struct count_tx),
	FRAG_PORTS(count_tx_ports),
	FRAG_PARAMS(count_tx_params),
	.compute = count_tx_compute,
};

/* Receives one number of each flow that still has some, and prints them with their sum. */
enum { RECEIVERS };
static const struct frag_port sum_rx_ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "i64",
		       .flags = FRAG_PORT_MULTI},
};

static int sum_rx_compute(void *state, struct frag_tick *tick)
{
	const int64_t *const *values; /* in the order of the flows; NULL: this one has no message */
	int count = frag_tick_receive_all_i64(tick, RECEIVERS, &values);
	char text[128] = "";
	int length = 0;
	int64_t sum = 0;

	(void)state;
	if (count < 0)
		return count;
	for (int i = 0; i < count && length < (int)sizeof(text) - 24; i++) {
		if (values[i] == NULL) {
			length += sprintf(text + length, "- ");
			continue;
		}
		length += sprintf(text + length, "%lld ", (long long)*values[i]);
		sum += *values[i];
	}
	frag_op_log(frag_tick_op(tick), "%ssum %lld", text, (long long)sum);
	return 0;
}

static const struct frag_op_type sum_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "sum_rx",
	.headline = "Adds a number of each flow",
	FRAG_PORTS(sum_rx_ports),
	.compute = sum_rx_compute,
};

static const struct frag_op_type *const ops[] = {&count_tx_type, &sum_rx_type};
FRAG_PLUGIN(.name = "ping_multi_receiver", .version = "1.0.0", FRAG_OPS(ops));
