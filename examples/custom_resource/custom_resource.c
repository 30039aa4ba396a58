// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <frag/frag.h>

/* A resource of our own: a calibration that several operators share. */
struct calibration {
	/* parameters */
	double gain, offset;
	double (*curve)(const struct calibration *calibration, double x);
};

static const struct frag_param calibration_params[] = {
	FRAG_PARAM_F64(struct calibration, gain, 1.0, .headline = "Factor"),
	FRAG_PARAM_F64(struct calibration, offset, 0.0, .headline = "Added after the factor"),
};

static double line(const struct calibration *calibration, double x)
{
	return calibration->gain * x + calibration->offset;
}

/* The parameters are there: what is wrong with them is reported with all else of the graph. */
static int calibration_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct calibration *s = state;

	if (s->gain == 0.0)
		return frag_err_set(err, -EINVAL, "a gain of 0 makes all values equal; give %s one",
				    frag_resource_name(resource));
	return 0;
}

/* Just before anything runs: here a device would be opened, or a file be read. */
static int calibration_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	(void)resource;
	(void)err;
	((struct calibration *)state)->curve = line;
	return 0;
}

static const struct frag_resource_type calibration_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "calibration",
	.headline = "Turns raw values into measured ones",
	.state_size = sizeof(struct calibration),
	FRAG_PARAMS(calibration_params),
	.setup = calibration_setup,
	.initialize = calibration_initialize,
};

/* Emits 1, 2, 3 ..., calibrated. The resource comes by a parameter. */
struct sensor {
	struct frag_resource *calibration;
	const struct calibration *c;
};

static const struct frag_port sensor_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "f64"}};
static const struct frag_param sensor_params[] = {
	FRAG_PARAM_RESOURCE(struct sensor, calibration, NULL, .headline = "A calibration",
			    .flags = FRAG_PARAM_REQUIRED),
};

static int sensor_initialize(void *state, struct frag_op *op)
{
	struct sensor *s = state;

	s->c = frag_resource_state(s->calibration, "calibration");
	return s->c != NULL ? 0
			    : frag_op_fail(op, -EINVAL, "%s is no calibration; name one",
					   frag_resource_name(s->calibration));
}

static int sensor_compute(void *state, struct frag_tick *tick)
{
	const struct sensor *s = state;

	return frag_tick_emit_f64(tick, 0, s->c->curve(s->c, (double)frag_tick_count(tick) + 1));
}

static const struct frag_op_type sensor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "sensor",
	.headline = "Emits calibrated values",
	.state_size = sizeof(struct sensor),
	FRAG_PORTS(sensor_ports),
	FRAG_PARAMS(sensor_params),
	.initialize = sensor_initialize,
	.compute = sensor_compute,
};

/* Prints values with what they were before. The resource comes by position. */
struct show {
	const struct calibration *c;
};

static const struct frag_port show_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "f64"}};

static int show_initialize(void *state, struct frag_op *op)
{
	struct show *s = state;

	s->c = frag_resource_state(frag_op_resource_at(op, 0), "calibration");
	return s->c != NULL ? 0
			    : frag_op_fail(op, -EINVAL,
					   "there is no calibration; write resources: [$name]");
}

static int show_compute(void *state, struct frag_tick *tick)
{
	const struct show *s = state;
	double x;
	int r = frag_tick_receive_f64(tick, 0, &x);

	if (r < 0)
		return r;
	frag_op_log(frag_tick_op(tick), "%g, raw %g", x, (x - s->c->offset) / s->c->gain);
	return 0;
}

static const struct frag_op_type show_type = {
	FRAG_OP_TYPE_INIT,
	.name = "show",
	.headline = "Prints values and what they were before they were calibrated",
	.state_size = sizeof(struct show),
	FRAG_PORTS(show_ports),
	.initialize = show_initialize,
	.compute = show_compute,
};

static const struct frag_resource_type *const resources[] = {&calibration_type};
static const struct frag_op_type *const ops[] = {&sensor_type, &show_type};
FRAG_PLUGIN(.name = "custom_resource", .version = "1.0.0", FRAG_OPS(ops),
	    FRAG_RESOURCES(resources));
