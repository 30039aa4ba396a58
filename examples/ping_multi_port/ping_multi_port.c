// SPDX-License-Identifier: Apache-2.0
#include <frag/frag.h>

struct value_data {
	int32_t data;
};
static const struct frag_field value_fields[] = {FRAG_FIELD(struct value_data, data, "i32")};
static const struct frag_type value_type = {
	FRAG_TYPE_INIT,
	.name = "value_data",
	.size = sizeof(struct value_data),
	FRAG_FIELDS(value_fields),
};

struct tx {
	int32_t index;
};
enum { TX_OUT1, TX_OUT2 };
static const struct frag_port tx_ports[] = {
	[TX_OUT1] = {.name = "out1", .dir = FRAG_OUT, .type = "value_data"},
	[TX_OUT2] = {.name = "out2", .dir = FRAG_OUT, .type = "value_data"},
};

static int tx_compute(void *state, struct frag_tick *tick)
{
	struct tx *tx = state;
	struct value_data value1 = {++tx->index}, value2 = {++tx->index};
	int r = frag_tick_emit_value(tick, TX_OUT1, &value_type, &value1, sizeof(value1));

	if (r < 0)
		return r;
	return frag_tick_emit_value(tick, TX_OUT2, &value_type, &value2, sizeof(value2));
}

static const struct frag_op_type tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "multi_port_tx",
	.headline = "Sends two numbers",
	.state_size = sizeof(struct tx),
	FRAG_PORTS(tx_ports),
	.compute = tx_compute,
};

struct mx {
	int64_t multiplier;
};
enum { MX_IN1, MX_IN2, MX_OUT1, MX_OUT2 };
static const struct frag_port mx_ports[] = {
	[MX_IN1] = {.name = "in1", .dir = FRAG_IN, .type = "value_data"},
	[MX_IN2] = {.name = "in2", .dir = FRAG_IN, .type = "value_data"},
	[MX_OUT1] = {.name = "out1", .dir = FRAG_OUT, .type = "value_data"},
	[MX_OUT2] = {.name = "out2", .dir = FRAG_OUT, .type = "value_data"},
};
static const struct frag_param mx_params[] = {
	FRAG_PARAM_I64(struct mx, multiplier, 2, .headline = "Multiplies the numbers"),
};

static int mx_compute(void *state, struct frag_tick *tick)
{
	const struct mx *mx = state;

	for (uint32_t i = 0; i < 2; i++) {
		struct value_data product;
		const void *value;
		int r = frag_tick_receive_value(tick, MX_IN1 + i, &value_type, &value, NULL);

		if (r < 0)
			return r;
		product = *(const struct value_data *)value;
		product.data *= (int32_t)mx->multiplier;
		r = frag_tick_emit_value(tick, MX_OUT1 + i, &value_type, &product, sizeof(product));
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct frag_op_type mx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "multi_port_mx",
	.headline = "Multiplies two numbers",
	.state_size = sizeof(struct mx),
	FRAG_PORTS(mx_ports),
	FRAG_PARAMS(mx_params),
	.compute = mx_compute,
};

enum { RX_RECEIVERS };
static const struct frag_port rx_ports[] = {
	[RX_RECEIVERS] = {.name = "receivers",
			  .dir = FRAG_IN,
			  .type = "value_data",
			  .flags = FRAG_PORT_MULTI},
};

static int rx_compute(void *state, struct frag_tick *tick)
{
	const void *const *values;
	int count = frag_tick_receive_all_values(tick, RX_RECEIVERS, &value_type, &values);

	(void)state;
	for (int i = 0; i < count; i++)
		if (values[i] != NULL)
			frag_op_log(frag_tick_op(tick), "value%d: %d", i + 1,
				    ((const struct value_data *)values[i])->data);
	return count < 0 ? count : 0;
}

static const struct frag_op_type rx_type = {
	FRAG_OP_TYPE_INIT,    .name = "multi_port_rx", .headline = "Prints all numbers it gets",
	FRAG_PORTS(rx_ports), .compute = rx_compute,
};

static const struct frag_op_type *const ops[] = {&tx_type, &mx_type, &rx_type};
static const struct frag_type *const types[] = {&value_type};
FRAG_PLUGIN(.name = "ping_multi_port", .version = "1.0.0", FRAG_OPS(ops), FRAG_TYPES(types));
