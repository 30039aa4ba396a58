// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <frag/frag.h>

/* Sends its samples 1, 2, 3 ..., each with the time of the sensor's clock at which it was taken. */
struct sensor {
	struct frag_i64_list taken_ms;
	size_t sent;
};

static const struct frag_port sensor_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param sensor_params[] = {
	FRAG_PARAM_I64_LIST(struct sensor, taken_ms, NULL, .headline = "When samples are taken"),
};

static int sensor_compute(void *state, struct frag_tick *tick)
{
	struct sensor *sensor = state;
	struct frag_message *sample;
	int64_t number, taken_ns;
	int r;

	if (sensor->sent == sensor->taken_ms.count)
		return FRAG_DONE;
	sample = frag_message_create();
	if (sample == NULL)
		return -ENOMEM;
	taken_ns = sensor->taken_ms.items[sensor->sent++] * 1000000;
	number = (int64_t)sensor->sent;
	frag_message_set_value(sample, &frag_type_i64, &number, sizeof(number), NULL);
	frag_message_set_acquisition(sample, taken_ns, FRAG_CLOCK_OWN);
	r = frag_tick_emit(tick, 0, sample);
	if (r < 0)
		return r;
	return sensor->sent == sensor->taken_ms.count ? FRAG_DONE : 0;
}

static const struct frag_op_type sensor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "sensor",
	.headline = "Sends samples with the time at which they were taken",
	.state_size = sizeof(struct sensor),
	FRAG_PORTS(sensor_ports),
	FRAG_PARAMS(sensor_params),
	.compute = sensor_compute,
};

/* Says which samples a tick got. What it gets is declared in the graph. */
enum { A, B };
static const struct frag_port report_ports[] = {
	[A] = {.name = "a", .dir = FRAG_IN, .type = "i64"},
	[B] = {.name = "b", .dir = FRAG_IN, .type = "i64"},
};

static int report_compute(void *state, struct frag_tick *tick)
{
	int64_t a, b;
	int r = frag_tick_receive_i64(tick, A, &a);

	(void)state;
	if (r == 0)
		r = frag_tick_receive_i64(tick, B, &b);
	if (r == 0)
		frag_op_log(frag_tick_op(tick), "a %lld, b %lld", (long long)a, (long long)b);
	return r;
}

static const struct frag_op_type report_type = {
	FRAG_OP_TYPE_INIT,
	.name = "report",
	.headline = "Says which samples a tick got",
	FRAG_PORTS(report_ports),
	.compute = report_compute,
};

static const struct frag_op_type *const ops[] = {&sensor_type, &report_type};
FRAG_PLUGIN(.name = "timing", .version = "1.0.0", FRAG_OPS(ops));
