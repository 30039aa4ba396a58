// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <frag/frag.h>

/* An operator that writes two shared variables, and one that waits for them and uses them. */
struct calibrator {
	const char *camera;
	struct frag_f64_list gain;
	struct frag_variable *camera_variable, *gain_variable;
};

static const struct frag_param calibrator_params[] = {
	FRAG_PARAM_STRING(struct calibrator, camera, "", .headline = "Name of the camera"),
	FRAG_PARAM_F64_LIST(struct calibrator, gain, NULL, .headline = "Gain of each channel",
			    .flags = FRAG_PARAM_REQUIRED),
};

static int calibrator_initialize(void *state, struct frag_op *op)
{
	struct calibrator *c = state;
	int r = frag_variable_open(op, "camera", &c->camera_variable);

	return r < 0 ? r : frag_variable_open(op, "gain", &c->gain_variable);
}

/* A string has no fixed length: the writer allocates it. */
static int write_camera(const struct calibrator *c)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const int64_t length = (int64_t)strlen(c->camera);
	const struct frag_dltensor *text;
	int r = frag_variable_allocate(c->camera_variable, u8, 1, &length);

	if (r == 0)
		r = frag_variable_map(c->camera_variable, FRAG_VARIABLE_WRITE, 0, &text);
	if (r < 0)
		return r;
	memcpy(text->data, c->camera, (size_t)length);
	frag_variable_unmap(c->camera_variable);
	return frag_variable_publish(c->camera_variable);
}

static int write_gain(const struct calibrator *c, struct frag_op *op)
{
	const struct frag_dltensor *gain;
	int r = frag_variable_map(c->gain_variable, FRAG_VARIABLE_WRITE, 0, &gain);

	if (r < 0)
		return r;
	if (gain->shape[0] != (int64_t)c->gain.count)
		r = frag_op_fail(op, -EINVAL, "the graph wants %lld gains; give as many",
				 (long long)gain->shape[0]);
	for (size_t i = 0; r == 0 && i < c->gain.count; i++)
		((float *)gain->data)[i] = (float)c->gain.items[i];
	frag_variable_unmap(c->gain_variable);
	return r < 0 ? r : frag_variable_publish(c->gain_variable);
}

static int calibrator_compute(void *state, struct frag_tick *tick)
{
	const struct calibrator *c = state;
	int r = write_camera(c);

	if (r == 0)
		r = write_gain(c, frag_tick_op(tick));
	return r < 0 ? r : FRAG_DONE;
}

static const struct frag_op_type calibrator_type = {
	FRAG_OP_TYPE_INIT,
	.name = "calibrator",
	.headline = "Writes the shared variables camera and gain",
	.state_size = sizeof(struct calibrator),
	FRAG_PARAMS(calibrator_params),
	.initialize = calibrator_initialize,
	.compute = calibrator_compute,
};

struct corrector {
	int64_t patience;
	struct frag_variable *camera, *gain;
};

static const struct frag_param corrector_params[] = {
	FRAG_PARAM_DURATION(struct corrector, patience, 1000000000,
			    .headline = "How long to wait for a variable"),
};

static int corrector_initialize(void *state, struct frag_op *op)
{
	struct corrector *c = state;
	int r = frag_variable_open(op, "camera", &c->camera);

	return r < 0 ? r : frag_variable_open(op, "gain", &c->gain);
}

static int correct(struct frag_op *op, const char *path, const struct frag_dltensor *gain)
{
	FILE *scan = path != NULL ? fopen(path, "r") : NULL;
	double value;

	if (scan == NULL)
		return frag_op_fail(op, -errno, "cannot read %s", path != NULL ? path : "scan");
	for (int64_t i = 0; i < gain->shape[0] && fscanf(scan, "%lf", &value) == 1; i++)
		frag_op_log(op, "channel %lld: %g", (long long)i,
			    value * (double)((const float *)gain->data)[i]);
	fclose(scan);
	return 0;
}

static int corrector_compute(void *state, struct frag_tick *tick)
{
	const struct corrector *c = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_dltensor *camera, *gain;
	int r = frag_variable_map(c->camera, FRAG_VARIABLE_READ, c->patience, &camera);

	if (r == -ECANCELED) /* the application stops */
		return FRAG_DONE;
	if (r < 0)
		return r;
	frag_op_log(op, "camera %.*s", (int)camera->shape[0], (const char *)camera->data);
	frag_variable_unmap(c->camera);
	r = frag_variable_map(c->gain, FRAG_VARIABLE_READ, c->patience, &gain);
	if (r == -ECANCELED)
		return FRAG_DONE;
	if (r < 0)
		return r;
	r = correct(op, frag_variable_path(op, "scan"), gain);
	frag_variable_unmap(c->gain);
	return r < 0 ? r : FRAG_DONE;
}

static const struct frag_op_type corrector_type = {
	FRAG_OP_TYPE_INIT,
	.name = "corrector",
	.headline = "Multiplies the numbers of the path scan by the shared variable gain",
	.state_size = sizeof(struct corrector),
	FRAG_PARAMS(corrector_params),
	.initialize = corrector_initialize,
	.compute = corrector_compute,
};

static const struct frag_op_type *const shared_variables_ops[] = {&calibrator_type,
								  &corrector_type};
FRAG_PLUGIN(.name = "shared_variables", .version = "1.0.0", FRAG_OPS(shared_variables_ops));
