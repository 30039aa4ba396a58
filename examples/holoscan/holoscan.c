// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <frag/frag.h>

/* The operators of the graphs in this folder, which follow examples of Holoscan SDK 3.10. */

static const struct frag_port numbers_out[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_port numbers_in[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};

/*
 * Sends 1, 2, 3 ... and chooses who gets it: `odd` or `even`, by messages, and `also`, by
 * execution. With `turns` it ticks itself so often and sends in those ticks only.
 */
struct router {
	int64_t turns, sent;
	const char *odd, *even, *also;
};

static const struct frag_param router_params[] = {
	FRAG_PARAM_STRING(struct router, odd, "", .headline = "Who gets odd numbers"),
	FRAG_PARAM_STRING(struct router, even, "", .headline = "Who gets even numbers"),
	FRAG_PARAM_STRING(struct router, also, "", .headline = "Who is ticked with each number"),
	FRAG_PARAM_I64(struct router, turns, 0, .headline = "How often it ticks itself"),
};

static int choose(struct frag_tick *tick, const char *out_port, const char *next)
{
	struct frag_op *op = frag_tick_op(tick);

	return next[0] == '\0' ? 0
			       : frag_tick_add_dynamic_flow_info(
					 tick, frag_op_find_flow_info(op, out_port, next));
}

static int router_choose(void *state, struct frag_tick *tick, void *arg)
{
	const struct router *router = state;
	int r;

	(void)arg;
	if (router->turns > 0 && router->sent > router->turns)
		return 0;
	r = choose(tick, "out", router->sent % 2 == 1 ? router->odd : router->even);
	if (r == 0)
		r = choose(tick, FRAG_OUTPUT_EXEC, router->also);
	return r < 0 || router->turns == 0
		       ? r
		       : choose(tick, FRAG_OUTPUT_EXEC, frag_op_name(frag_tick_op(tick)));
}

static int router_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, router_choose, NULL);
}

static int router_compute(void *state, struct frag_tick *tick)
{
	struct router *router = state;

	frag_op_log(frag_tick_op(tick), "sending %" PRId64, ++router->sent);
	return frag_tick_emit_i64(tick, 0, router->sent);
}

static const struct frag_op_type router_type = {
	FRAG_OP_TYPE_INIT,
	.name = "router",
	.headline = "Sends numbers, and chooses who gets them",
	.state_size = sizeof(struct router),
	FRAG_PORTS(numbers_out),
	FRAG_PARAMS(router_params),
	.setup = router_setup,
	.compute = router_compute,
};

/* Notes in the metadata what it has received; odd numbers tick the next operator. */
static int detect_choose(void *state, struct frag_tick *tick, void *arg)
{
	const int64_t *value = state;
	const struct frag_flow_info *const *flows;

	(void)arg;
	if (*value % 2 == 0 || frag_op_next_flows(frag_tick_op(tick), &flows) == 0)
		return 0;
	return frag_tick_add_dynamic_flow_info(tick, flows[0]);
}

static int detect_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, detect_choose, NULL);
}

static int detect_compute(void *state, struct frag_tick *tick)
{
	int64_t *value = state;
	int r = frag_tick_receive_i64(tick, 0, value);

	return r < 0 ? r : frag_metadata_set_i64(frag_tick_metadata(tick), "value", *value);
}

static const struct frag_op_type detect_type = {
	FRAG_OP_TYPE_INIT,
	.name = "detect",
	.headline = "Ticks the next operator for odd numbers",
	.state_size = sizeof(int64_t),
	FRAG_PORTS(numbers_in),
	.setup = detect_setup,
	.compute = detect_compute,
};

/* Prints the value in the metadata. */
static int report_compute(void *state, struct frag_tick *tick)
{
	int64_t value = -1;

	(void)state;
	frag_metadata_get_i64(frag_tick_metadata(tick), "value", &value);
	frag_op_log(frag_tick_op(tick), "value %" PRId64, value);
	return 0;
}

static const struct frag_op_type report_type = {
	FRAG_OP_TYPE_INIT,
	.name = "report",
	.headline = "Prints the value in the metadata",
	.compute = report_compute,
};

/* Reads a sensor ten times: what is beyond 20 to 80 goes to the alert. */
static int sensor_choose(void *state, struct frag_tick *tick, void *arg)
{
	int64_t value = -1;

	(void)state;
	(void)arg;
	if (frag_tick_count(tick) >= 10)
		return 0;
	frag_metadata_get_i64(frag_tick_metadata(tick), "value", &value);
	return choose(tick, NULL, value < 20 || value > 80 ? "alert" : "preprocess");
}

static int sensor_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, sensor_choose, NULL);
}

static int sensor_compute(void *state, struct frag_tick *tick)
{
	static const int64_t readings[] = {50, 7, 91, 44, 12, 63};
	int64_t value = readings[frag_tick_count(tick) % FRAG_COUNT_OF(readings)];

	(void)state;
	return frag_metadata_set_i64(frag_tick_metadata(tick), "value", value);
}

static const struct frag_op_type sensor_type = {
	FRAG_OP_TYPE_INIT,     .name = "sensor",          .headline = "Chooses by what it has read",
	.setup = sensor_setup, .compute = sensor_compute,
};

/* Counts: each third alert goes to the recovery, the others back to the sensor. */
static int alert_choose(void *state, struct frag_tick *tick, void *arg)
{
	(void)state;
	(void)arg;
	return choose(tick, NULL, frag_tick_count(tick) % 3 == 2 ? "recovery" : "sensor");
}

static int alert_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, alert_choose, NULL);
}

static const struct frag_op_type alert_type = {
	FRAG_OP_TYPE_INIT,
	.name = "alert",
	.headline = "Prints the value in the metadata, and chooses by how often it did",
	.setup = alert_setup,
	.compute = report_compute,
};

/* Multiplies whatever number it receives: the port has no type, the message says which it is. */
static const struct frag_port any_ports[] = {
	{.name = "in", .dir = FRAG_IN},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};

static int any_times_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r = frag_tick_receive_i64(tick, 0, &value);

	(void)state;
	return r < 0 ? r : frag_tick_emit_i64(tick, 1, value * 3);
}

static const struct frag_op_type any_times_type = {
	FRAG_OP_TYPE_INIT,
	.name = "any_times",
	.headline = "Multiplies a number by 3; it accepts any message",
	FRAG_PORTS(any_ports),
	.compute = any_times_compute,
};

/* Is ticked whether there is a message or not. */
static int maybe_rx_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r = frag_tick_receive_i64(tick, 0, &value);

	(void)state;
	if (r == 0)
		frag_op_log(frag_tick_op(tick), "received %" PRId64, value);
	else if (r == -ENOMSG)
		frag_op_log(frag_tick_op(tick), "received nothing");
	return r == -ENOMSG ? 0 : r;
}

static const struct frag_op_type maybe_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "maybe_rx",
	.headline = "Prints a number, or that there was none",
	FRAG_PORTS(numbers_in),
	.compute = maybe_rx_compute,
};

/* Arrays of numbers as values. */
enum { VECTOR_MAX = 64 };
static const struct frag_port vector_out[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64[]"}};

struct vector_tx {
	int64_t size, impulse;
};

static const struct frag_param vector_tx_params[] = {
	FRAG_PARAM_I64(struct vector_tx, size, 5, .min = 1, .max = VECTOR_MAX),
	FRAG_PARAM_I64(struct vector_tx, impulse, 0,
		       .headline = "0: numbers in a row; else the height of one that moves"),
};

static int vector_tx_compute(void *state, struct frag_tick *tick)
{
	const struct vector_tx *tx = state;
	const int64_t n = (int64_t)frag_tick_count(tick);
	int64_t values[VECTOR_MAX];

	for (int64_t i = 0; i < tx->size; i++)
		values[i] = tx->impulse == 0 ? n + i + 1 : i == n % tx->size ? tx->impulse : 0;
	return frag_tick_emit_value(tick, 0, frag_type_find("i64[]"), values,
				    (size_t)tx->size * sizeof(*values));
}

static const struct frag_op_type vector_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "vector_tx",
	.headline = "Sends arrays of numbers",
	.state_size = sizeof(struct vector_tx),
	FRAG_PORTS(vector_out),
	FRAG_PARAMS(vector_tx_params),
	.compute = vector_tx_compute,
};

/* Sends what it received, and its multiples, on three ports. */
static const struct frag_port vector_times_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64[]"},
	{.name = "out1", .dir = FRAG_OUT, .type = "i64[]"},
	{.name = "out2", .dir = FRAG_OUT, .type = "i64[]"},
	{.name = "out3", .dir = FRAG_OUT, .type = "i64[]"},
};

static int vector_times_compute(void *state, struct frag_tick *tick)
{
	const struct frag_type *type = frag_type_find("i64[]");
	const void *value;
	int64_t values[VECTOR_MAX];
	size_t size;
	int r = frag_tick_receive_value(tick, 0, type, &value, &size);

	(void)state;
	if (r < 0 || size > sizeof(values))
		return r < 0 ? r : -EMSGSIZE;
	memcpy(values, value, size);
	for (uint32_t port = 1; r == 0 && port <= 3; port++) {
		r = frag_tick_emit_value(tick, port, type, values, size);
		for (size_t i = 0; i < size / sizeof(*values); i++)
			values[i] *= 3;
	}
	return r;
}

static const struct frag_op_type vector_times_type = {
	FRAG_OP_TYPE_INIT,
	.name = "vector_times",
	.headline = "Sends an array, and two multiples of it",
	FRAG_PORTS(vector_times_ports),
	.compute = vector_times_compute,
};

/* Convolves with a box; the output has as many values as the input. */
static const struct frag_port convolve_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64[]"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64[]"},
};

static int convolve_compute(void *state, struct frag_tick *tick)
{
	const struct frag_type *type = frag_type_find("i64[]");
	const int64_t width = 4;
	const void *value;
	int64_t sums[VECTOR_MAX];
	size_t size;
	int r = frag_tick_receive_value(tick, 0, type, &value, &size);
	int64_t n = (int64_t)(size / sizeof(*sums));

	(void)state;
	if (r < 0 || n > VECTOR_MAX)
		return r < 0 ? r : -EMSGSIZE;
	for (int64_t i = 0; i < n; i++) {
		sums[i] = 0;
		for (int64_t k = i - width / 2; k < i - width / 2 + width; k++)
			sums[i] += k >= 0 && k < n ? ((const int64_t *)value)[k] : 0;
	}
	return frag_tick_emit_value(tick, 1, type, sums, size);
}

static const struct frag_op_type convolve_type = {
	FRAG_OP_TYPE_INIT,
	.name = "convolve",
	.headline = "Convolves an array with a box of 4 ones",
	FRAG_PORTS(convolve_ports),
	.compute = convolve_compute,
};

/* Prints the arrays of all its flows. */
static const struct frag_port vector_in[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64[]", .flags = FRAG_PORT_MULTI}};

static int vector_rx_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *const *messages;
	int count = frag_tick_receive_all(tick, 0, &messages);
	char text[VECTOR_MAX * 22];

	(void)state;
	for (int i = 0; i < count; i++) {
		const void *value = NULL;
		size_t size = 0;
		int length = 0;

		text[0] = '\0';
		if (messages[i] != NULL)
			frag_message_value(messages[i], &value, &size);
		for (size_t k = 0; k < size / sizeof(int64_t); k++)
			length += sprintf(text + length, " %" PRId64, ((const int64_t *)value)[k]);
		frag_op_log(frag_tick_op(tick), "received%s", text);
	}
	return count < 0 ? count : 0;
}

static const struct frag_op_type vector_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "vector_rx",
	.headline = "Prints the arrays that it receives",
	FRAG_PORTS(vector_in),
	.compute = vector_rx_compute,
};

/* Reads its clock and sleeps by it. */
static int clock_rx_compute(void *state, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	struct frag_clock *clock = frag_op_clock(op);
	int64_t value, begin;
	int r = frag_tick_receive_i64(tick, 0, &value);

	(void)state;
	if (r < 0)
		return r;
	begin = frag_clock_timestamp(clock);
	r = frag_clock_sleep_for(clock, 100000000);
	if (r == 0)
		r = frag_clock_sleep_until(clock, begin + 350000000);
	frag_op_log(op, "value %" PRId64 ", slept %.2f s", value,
		    (double)(frag_clock_timestamp(clock) - begin) / 1e9);
	return r;
}

static const struct frag_op_type clock_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "clock_rx",
	.headline = "Sleeps by the clock of its fragment",
	FRAG_PORTS(numbers_in),
	.compute = clock_rx_compute,
};

/*
 * Operators that one of them controls: each has an asynchronous condition `event`. The controller
 * lets the others run in its order and ends when the last one has.
 */
struct controller {
	struct frag_string_list order;
	size_t next;
};

static const struct frag_param controller_params[] = {
	FRAG_PARAM_STRING_LIST(struct controller, order, NULL, .flags = FRAG_PARAM_REQUIRED),
};

static int set_event(const struct frag_op *op, enum frag_event_state event)
{
	return frag_condition_set_event_state(op != NULL ? frag_op_condition(op, "event") : NULL,
					      event);
}

static int controller_compute(void *state, struct frag_tick *tick)
{
	struct controller *controller = state;
	struct frag_op *op = frag_tick_op(tick);
	int r;

	if (controller->next == controller->order.count) {
		for (size_t i = 0; i < controller->order.count; i++)
			set_event(frag_op_find(op, controller->order.items[i]), FRAG_EVENT_NEVER);
		return FRAG_DONE;
	}
	r = set_event(op, FRAG_EVENT_WAITING);
	return r < 0 ? r
		     : set_event(frag_op_find(op, controller->order.items[controller->next++]),
				 FRAG_EVENT_DONE);
}

static const struct frag_op_type controller_type = {
	FRAG_OP_TYPE_INIT,
	.name = "controller",
	.headline = "Lets others run in its order",
	.state_size = sizeof(struct controller),
	FRAG_PARAMS(controller_params),
	.compute = controller_compute,
};

static int controlled_start(void *state, struct frag_op *op)
{
	(void)state;
	return set_event(op, FRAG_EVENT_WAIT);
}

static int controlled_compute(void *state, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	int r = set_event(op, FRAG_EVENT_WAIT);

	(void)state;
	frag_op_log(op, "running");
	return r < 0 ? r : set_event(frag_op_find(op, "controller"), FRAG_EVENT_DONE);
}

static const struct frag_op_type controlled_type = {
	FRAG_OP_TYPE_INIT,
	.name = "controlled",
	.headline = "Runs when the controller says so",
	.start = controlled_start,
	.compute = controlled_compute,
};

/* Poses in the plane: x, y and an angle in quarters of a turn. A pose within another one. */
struct pose {
	int64_t x, y, quarters;
};
static const struct frag_field pose_fields[] = {FRAG_FIELD(struct pose, x, "i64"),
						FRAG_FIELD(struct pose, y, "i64"),
						FRAG_FIELD(struct pose, quarters, "i64")};
static const struct frag_type pose_type = {FRAG_TYPE_INIT, .name = "flat_pose",
					   .size = sizeof(struct pose), FRAG_FIELDS(pose_fields)};

/* Goes round what it circles, a quarter of a turn in so many ticks. */
struct orbit {
	int64_t radius, ticks;
};
static const struct frag_port pose_out[] = {{.name = "out", .dir = FRAG_OUT, .type = "flat_pose"}};
static const struct frag_param orbit_params[] = {
	FRAG_PARAM_I64(struct orbit, radius, 1),
	FRAG_PARAM_I64(struct orbit, ticks, 1, .min = 1),
};

static int orbit_compute(void *state, struct frag_tick *tick)
{
	static const int64_t x[] = {1, 0, -1, 0}, y[] = {0, 1, 0, -1};
	const struct orbit *orbit = state;
	const int64_t quarters = ((int64_t)frag_tick_count(tick) / orbit->ticks) % 4;
	const struct pose pose = {orbit->radius * x[quarters], orbit->radius * y[quarters],
				  quarters};

	return frag_tick_emit_value(tick, 0, &pose_type, &pose, sizeof(pose));
}

static const struct frag_op_type orbit_type = {
	FRAG_OP_TYPE_INIT,
	.name = "orbit",
	.headline = "Sends poses on a circle",
	.state_size = sizeof(struct orbit),
	FRAG_PORTS(pose_out),
	FRAG_PARAMS(orbit_params),
	.compute = orbit_compute,
};

static const struct frag_port pose_in[] = {
	{.name = "earth", .dir = FRAG_IN, .type = "flat_pose"},
	{.name = "moon", .dir = FRAG_IN, .type = "flat_pose"},
};

static int pose_rx_compute(void *state, struct frag_tick *tick)
{
	static const int64_t cosine[] = {1, 0, -1, 0}, sine[] = {0, 1, 0, -1};
	const void *value;
	struct pose earth, moon;
	int r = frag_tick_receive_value(tick, 0, &pose_type, &value, NULL);

	(void)state;
	if (r < 0)
		return r;
	earth = *(const struct pose *)value;
	r = frag_tick_receive_value(tick, 1, &pose_type, &value, NULL);
	if (r < 0)
		return r;
	moon = *(const struct pose *)value;
	frag_op_log(frag_tick_op(tick), "sun to moon: %" PRId64 ", %" PRId64,
		    earth.x + cosine[earth.quarters] * moon.x - sine[earth.quarters] * moon.y,
		    earth.y + sine[earth.quarters] * moon.x + cosine[earth.quarters] * moon.y);
	return 0;
}

static const struct frag_op_type pose_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "pose_rx",
	.headline = "Prints where the moon is, from its pose at the earth and the earth's",
	FRAG_PORTS(pose_in),
	.compute = pose_rx_compute,
};

/* Forwards messages with `boxes`, each behind a text that says how they are drawn. */
enum { COLOR_IN, COLOR_OUT, COLOR_SPECS };
static const struct frag_port color_ports[] = {
	[COLOR_IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor", .tensors = FRAG_BOXES},
	[COLOR_OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor", .tensors = FRAG_BOXES},
	[COLOR_SPECS] = {.name = "specs", .dir = FRAG_OUT, .type = "string"},
};

static int color_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	const struct frag_tensor *boxes;
	int r = frag_tick_receive(tick, COLOR_IN, &message);

	(void)state;
	if (r < 0)
		return r;
	boxes = frag_message_tensor(message, "boxes");
	r = frag_tick_emit_string(
		tick, COLOR_SPECS,
		boxes != NULL && frag_tensor_dl(boxes)->shape[0] > 1
			? "[{name: boxes, type: rectangles, color: [1, 0.2, 0], line_width: 5}]"
			: "[{name: boxes, type: rectangles, color: [0, 1, 0], line_width: 3}]");
	return r < 0 ? r : frag_tick_emit(tick, COLOR_OUT, frag_message_ref(message));
}

static const struct frag_op_type color_type = {
	FRAG_OP_TYPE_INIT,
	.name = "color_by_count",
	.headline = "Says that one box is drawn in green, and several in red",
	FRAG_PORTS(color_ports),
	.compute = color_compute,
};

static const struct frag_op_type *const ops[] = {
	&router_type,     &detect_type,   &report_type,    &sensor_type,   &alert_type,
	&any_times_type,  &maybe_rx_type, &vector_tx_type, &convolve_type, &vector_times_type,
	&vector_rx_type,  &clock_rx_type, &orbit_type,     &pose_rx_type,  &controller_type,
	&controlled_type, &color_type,
};
static const struct frag_type *const types[] = {&pose_type};
FRAG_PLUGIN(.name = "holoscan", .version = "1.0.0", FRAG_OPS(ops), FRAG_TYPES(types));
