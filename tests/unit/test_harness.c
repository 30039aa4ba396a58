// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <frag/frag.h>
#include <data/pool.h>
#include <frag/harness.h>
#include <ops.h>

struct scale {
	double factor;
	int64_t started, stops_at;
	int *stopped;
};
enum { IN, OUT };
static const struct frag_port scale_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "f64"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "f64"},
};
static const struct frag_param scale_params[] = {
	FRAG_PARAM_F64(struct scale, factor, 2.0),
	FRAG_PARAM_I64(struct scale, stops_at, -1),
};

static int scale_start(void *state, struct frag_op *op)
{
	struct scale *s = state;

	if (s->factor == 0.0)
		return frag_op_fail(op, -EDOM, "a factor of 0 loses everything; give another");
	s->started++;
	return 0;
}

static int scale_compute(void *state, struct frag_tick *tick)
{
	struct scale *s = state;
	double x;
	int r = frag_tick_receive_f64(tick, IN, &x);

	if (r < 0)
		return r;
	if (x < 0)
		return frag_op_fail(frag_tick_op(tick), -EDOM, "%g is negative", x);
	if ((int64_t)frag_tick_count(tick) == s->stops_at)
		return FRAG_DONE;
	return frag_tick_emit_f64(tick, OUT, s->factor * x);
}

static int scale_stop(void *state, struct frag_op *op)
{
	struct scale *s = state;

	if (s->stopped != NULL)
		(*s->stopped)++;
	return 0;
}

TEST_OP(scale, .state_size = sizeof(struct scale), FRAG_PORTS(scale_ports),
	FRAG_PARAMS(scale_params), .start = scale_start, .stop = scale_stop);

Test(harness, gives_ticks_and_takes)
{
	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_ARGS({"factor", "3"}), NULL);
	int stopped = 0;
	double x = 0;

	cr_assert_not_null(h);
	((struct scale *)frag_harness_state(h))->stopped = &stopped;
	cr_expect_eq(((struct scale *)frag_harness_state(h))->started, 1);
	cr_expect_eq(frag_harness_ready(h), 0);
	cr_expect_eq(frag_harness_tick(h), -ENOMSG, "ticks whatever the conditions say");
	cr_expect_eq(frag_harness_give_f64(h, "in", 2.0), 0);
	cr_expect_eq(frag_harness_ready(h), 1);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take_f64(h, "out", &x), 0);
	cr_expect_eq(x, 6.0);
	cr_expect_eq(frag_harness_take_f64(h, "out", &x), -ENOMSG);
	cr_expect_eq(frag_harness_take_f64(h, "in", &x), -EINVAL);
	cr_expect_eq(frag_harness_give_f64(h, "out", 1.0), -EINVAL);
	cr_expect_eq(frag_harness_give_f64(h, "nowhere", 1.0), -EINVAL);
	cr_expect_eq(frag_harness_give_f64(h, "in:1", 1.0), -EINVAL, "it takes one flow");
	cr_expect_eq(frag_harness_give(h, "in", NULL), -EINVAL);
	cr_expect_eq(frag_harness_ready(h), 0, "nothing was given");
	frag_harness_destroy(h);
	cr_expect_eq(stopped, 1);
}

Test(harness, words_failures)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_ARGS({"factor", "0"}), &err);

	cr_expect_null(h);
	cr_expect_eq(err.code, -EDOM);
	cr_expect_not_null(strstr(err.text, "a factor of 0 loses everything"));
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_null(frag_harness_create(&scale_type, FRAG_ARGS({"facto", "1"}), &err));
	cr_expect_not_null(strstr(err.text, "factor"), "%s", err.text);
	h = frag_harness_create(&scale_type, FRAG_NO_ARGS, NULL);
	cr_expect_str_eq(frag_harness_error(h), "");
	frag_harness_give_f64(h, "in", -1);
	cr_expect_eq(frag_harness_tick(h), -EDOM);
	cr_expect_not_null(strstr(frag_harness_error(h), "-1 is negative"));
	frag_harness_give_f64(h, "in", 1);
	cr_expect_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
}

static size_t carelessness;

/* Emits texts and names that cannot be. */
static int careless_compute(void *state, struct frag_tick *tick)
{
	char name[200];
	int64_t shape[1] = {1};
	struct frag_tensor *tensor = NULL;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	if (carelessness == 0)
		return frag_tick_emit_string(tick, 0, NULL);
	if (frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, shape,
			       &tensor) < 0)
		return -ENOMEM;
	return frag_tick_emit_tensor(tick, 1, carelessness == 1 ? NULL : name, tensor);
}

Test(harness, nothing_and_long_names_are_refused_with_a_sentence)
{
	static const struct frag_port ports[] = {
		{.name = "text", .dir = FRAG_OUT, .type = "string"},
		{.name = "tensor", .dir = FRAG_OUT, .type = "tensor"},
	};
	static const struct frag_op_type type = {
		FRAG_OP_TYPE_INIT,
		.name = "careless",
		FRAG_PORTS(ports),
		.compute = careless_compute,
	};
	static const struct {
		int code;
		const char *says;
	} ticks[] = {
		{-EINVAL, "cannot emit a text: it is NULL"},
		{-EINVAL, "cannot emit a tensor: its name is NULL"},
		{-ENAMETOOLONG, "63 bytes at most"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(ticks); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h = frag_harness_create(&type, FRAG_NO_ARGS, &err);

		cr_assert_not_null(h, "%s", err.text);
		carelessness = i;
		cr_expect_eq(frag_harness_tick(h), ticks[i].code);
		cr_expect(strstr(frag_harness_error(h), ticks[i].says) != NULL, "%s",
			  frag_harness_error(h));
		frag_harness_destroy(h);
	}
}

Test(harness, a_queue_holds_64)
{
	struct frag_harness *h = frag_harness_create(&scale_type, FRAG_NO_ARGS, NULL);
	double x = 0;

	for (int i = 0; i < 64; i++)
		cr_expect_eq(frag_harness_give_f64(h, "in", i), 0);
	cr_expect_eq(frag_harness_give_f64(h, "in", 64), -ENOBUFS);
	for (int i = 0; i < 64; i++)
		cr_expect_eq(frag_harness_tick(h), 0);
	for (int i = 0; i < 64; i++) {
		cr_expect_eq(frag_harness_take_f64(h, "out", &x), 0);
		cr_expect_eq(x, 2.0 * i);
	}
	frag_harness_destroy(h);
}

Test(harness, done)
{
	struct frag_harness *h =
		frag_harness_create(&scale_type, FRAG_ARGS({"stops_at", "1"}), NULL);

	frag_harness_give_f64(h, "in", 1);
	frag_harness_give_f64(h, "in", 1);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_tick(h), FRAG_DONE);
	frag_harness_destroy(h);
}

static const struct frag_port sum_ports[] = {
	{.name = "receivers", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI},
	{.name = "sum", .dir = FRAG_OUT, .type = "i64"},
};

/* Adds up what is there, and carries the metadata through. */
static int sum_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *const *messages;
	int n = frag_tick_receive_all(tick, 0, &messages);
	int64_t sum = 0;
	const void *value;

	for (int i = 0; i < n; i++) {
		if (messages[i] == NULL)
			continue;
		cr_expect_eq(frag_message_value(messages[i], &value, NULL), &frag_type_i64);
		sum += *(const int64_t *)value;
	}
	frag_metadata_set_i64(frag_tick_metadata(tick), "flows", n);
	return frag_tick_emit_i64(tick, 1, sum);
}

static int sums_started, sums_stopped;

static int sum_start(void *state, struct frag_op *op)
{
	(void)state;
	(void)op;
	sums_started++;
	return 0;
}

static int sum_stop(void *state, struct frag_op *op)
{
	(void)state;
	(void)op;
	sums_stopped++;
	return 0;
}

TEST_OP(sum, FRAG_PORTS(sum_ports), .start = sum_start, .stop = sum_stop);

Test(harness, multi_receiver_and_metadata)
{
	struct frag_harness *h = frag_harness_create(&sum_type, FRAG_NO_ARGS, NULL);
	const struct frag_message *kept;
	struct frag_message *m;
	const void *value;
	int64_t flows = 0;

	frag_harness_give_i64(h, "receivers", 1);
	frag_harness_give_i64(h, "receivers:2", 100);
	cr_expect_eq(frag_harness_ready(h), 0, "flow 1 has nothing");
	frag_harness_give_i64(h, "receivers:1", 10);
	cr_expect_eq(frag_harness_ready(h), 1);
	cr_expect_eq(frag_harness_give_i64(h, "receivers:x", 10), -EINVAL);
	cr_expect_eq(frag_harness_give_i64(h, "receivers:", 10), -EINVAL);
	cr_expect_eq(frag_harness_give_i64(h, "receivers:1024", 10), -EINVAL);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_assert_eq(frag_harness_take(h, "sum", &m), 0);
	frag_message_value(m, &value, NULL);
	cr_expect_eq(*(const int64_t *)value, 111);
	kept = m;
	cr_expect_eq(frag_metadata_get_i64(frag_message_metadata(kept), "flows", &flows), 0);
	cr_expect_eq(flows, 3);
	frag_message_unref(m);
	frag_harness_destroy(h);
	cr_expect_eq(sums_started, 1, "a further flow starts nothing anew");
	cr_expect_eq(sums_stopped, 1);
}

/* What compute may return is 0, FRAG_DONE, FRAG_PENDING or a negative errno. */
static int odd_compute(void *state, struct frag_tick *tick)
{
	(void)state;
	return 5 + (int)frag_tick_count(tick);
}

TEST_OP(odd, .headline = "Has no ports");

Test(harness, another_number_is_a_failure)
{
	struct frag_harness *h = frag_harness_create(&odd_type, FRAG_NO_ARGS, NULL);

	for (int i = 0; i < 2; i++) {
		cr_expect_eq(frag_harness_tick(h), -EINVAL);
		cr_expect_not_null(
			strstr(frag_harness_error(h), i == 0 ? "compute returned 5 in tick 1;"
							     : "compute returned 6 in tick 2;"),
			"%s", frag_harness_error(h));
	}
	frag_harness_destroy(h);
}

struct reading {
	double value;
	int32_t sensor;
};
static const struct frag_field reading_fields[] = {
	FRAG_FIELD(struct reading, value, "f64"),
	FRAG_FIELD(struct reading, sensor, "i32"),
};
/* what two plugins have that include the header of the struct */
static const struct frag_type reading_type = {FRAG_TYPE_INIT, .name = "reading",
					      .size = sizeof(struct reading),
					      FRAG_FIELDS(reading_fields)},
			      reading_twin = {FRAG_TYPE_INIT, .name = "reading",
					      .size = sizeof(struct reading),
					      FRAG_FIELDS(reading_fields)};

static const struct frag_port newest_ports[] = {
	{.name = "readings", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI, .type = "reading"},
	{.name = "labels", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI, .type = "string"},
	{.name = "flags", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI, .type = "bool"},
	{.name = "reading", .dir = FRAG_OUT, .type = "reading"},
	{.name = "label", .dir = FRAG_OUT, .type = "string"},
	{.name = "flag", .dir = FRAG_OUT, .type = "bool"},
};

/* Emits the last value that arrived on each of its inputs. */
static int newest_compute(void *state, struct frag_tick *tick)
{
	const void *const *readings;
	const char *const *labels;
	const bool *const *flags;
	int n = frag_tick_receive_all_values(tick, 0, &reading_type, &readings);

	for (int i = n - 1; i >= 0; i--)
		if (readings[i] != NULL)
			return frag_tick_emit_value(tick, 3, &reading_type, readings[i],
						    sizeof(struct reading));
	n = frag_tick_receive_all_string(tick, 1, &labels);
	for (int i = n - 1; i >= 0; i--)
		if (labels[i] != NULL)
			return frag_tick_emit_string(tick, 4, labels[i]);
	n = frag_tick_receive_all_bool(tick, 2, &flags);
	for (int i = n - 1; i >= 0; i--)
		if (flags[i] != NULL)
			return frag_tick_emit_bool(tick, 5, *flags[i]);
	return n < 0 ? n : 0;
}

TEST_OP(newest, FRAG_PORTS(newest_ports));

Test(harness, structs_texts_and_bools)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct reading in = {.value = 20.5, .sensor = 7}, out = {0};
	struct frag_harness *h;
	char text[4];
	int flag = 0;

	cr_expect_null(frag_harness_create(&newest_type, FRAG_NO_ARGS, &err));
	cr_expect_not_null(strstr(err.text, "register it first, with frag_type_register"), "%s",
			   err.text);
	cr_assert_eq(frag_type_register(&reading_type, NULL), 0);
	cr_assert_eq(frag_type_register(&reading_twin, NULL), 0);
	h = frag_harness_create(&newest_type, FRAG_NO_ARGS, NULL);
	cr_assert_not_null(h);

	cr_expect_eq(frag_harness_give_value(h, "readings", &reading_type, &in, 1), -EINVAL);
	cr_expect_eq(frag_harness_give_value(h, "readings:2", &reading_twin, &in, sizeof(in)), 0);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take_value(h, "reading", &reading_twin, &out, sizeof(out)), 0);
	cr_expect_eq(out.value, 20.5);
	cr_expect_eq(out.sensor, 7);
	cr_expect_eq(frag_harness_take_value(h, "reading", &reading_twin, &out, sizeof(out)),
		     -ENOMSG);

	frag_harness_give_string(h, "labels", "abc");
	frag_harness_give_string(h, "labels", "four");
	frag_harness_give_string(h, "labels", "x");
	for (int i = 0; i < 3; i++)
		cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take_string(h, "label", text, sizeof(text)), 0);
	cr_expect_str_eq(text, "abc");
	cr_expect_eq(frag_harness_take_string(h, "label", text, sizeof(text)), -EMSGSIZE);
	cr_expect_eq(frag_harness_take_bool(h, "label", &flag), -EPROTOTYPE);

	frag_harness_give_bool(h, "flags", 5);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take_bool(h, "flag", &flag), 0);
	cr_expect_eq(flag, 1);

	frag_harness_give_i64(h, "flags", 1);
	cr_expect_eq(frag_harness_tick(h), -EPROTOTYPE, "a value of another type");
	frag_harness_destroy(h);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), 0, "also those that were not taken");
}

struct user {
	struct frag_resource *pool;
};
static const struct frag_param user_params[] = {FRAG_PARAM_RESOURCE(struct user, pool, NULL)};

static int user_compute(void *state, struct frag_tick *tick)
{
	struct user *s = state;
	void *memory;
	int r = frag_alloc(s->pool, 64, &memory);

	if (r < 0)
		return r;
	frag_free(s->pool, memory);
	return (int)frag_resource_blocks_free(s->pool) == 3 ? 0 : -EINVAL;
}

TEST_OP(user, .state_size = sizeof(struct user), FRAG_PARAMS(user_params));

Test(harness, resources)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create_with(
		&user_type, FRAG_ARGS({"pool", "$p"}),
		(const struct frag_harness_resource[]){
			{"p", "block_memory_pool",
			 FRAG_ARGS({"storage_type", "2"}, {"block_size", "64"},
				   {"num_blocks", "3"})},
			{NULL, NULL, NULL}},
		&err);

	cr_assert_not_null(h, "%s", err.text);
	cr_expect_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
}

struct sharing {
	int in_setup;
	struct frag_variable *written, *read;
};

static int sharing_setup(void *state, struct frag_op *op)
{
	struct sharing *s = state;

	s->in_setup = frag_variable_create(op, "early", &s->written);
	return 0;
}

static int sharing_initialize(void *state, struct frag_op *op)
{
	const struct frag_dtype f64 = {FRAG_DTYPE_FLOAT, 64, 1};
	struct sharing *s = state;
	const struct frag_dltensor *tensor;
	int r = frag_variable_create(op, "factor", &s->written);

	if (r == 0)
		r = frag_variable_allocate(s->written, f64, 0, NULL);
	if (r == 0)
		r = frag_variable_map(s->written, FRAG_VARIABLE_WRITE, 0, &tensor);
	if (r < 0)
		return r;
	*(double *)tensor->data = 7;
	r = frag_variable_unmap(s->written);
	return r < 0 ? r : frag_variable_publish(s->written);
}

static int sharing_compute(void *state, struct frag_tick *tick)
{
	struct sharing *s = state;
	const struct frag_dltensor *tensor;
	int r = frag_variable_open(frag_tick_op(tick), "factor", &s->read);

	if (r == 0)
		r = frag_variable_map(s->read, FRAG_VARIABLE_READ, 0, &tensor);
	if (r < 0)
		return r;
	r = frag_tick_emit_f64(tick, 0, *(const double *)tensor->data + s->in_setup);
	frag_variable_unmap(s->read);
	return r;
}

Test(harness, variables_that_an_operator_creates)
{
	static const struct frag_port ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "f64"}};
	static const struct frag_op_type type = {
		FRAG_OP_TYPE_INIT,
		.name = "sharing",
		.state_size = sizeof(struct sharing),
		FRAG_PORTS(ports),
		.setup = sharing_setup,
		.initialize = sharing_initialize,
		.compute = sharing_compute,
	};
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *harness = frag_harness_create(&type, FRAG_NO_ARGS, &err);
	double value;

	cr_assert_not_null(harness, "%s", err.text);
	cr_assert_eq(frag_harness_tick(harness), 0, "%s", frag_harness_error(harness));
	cr_assert_eq(frag_harness_take_f64(harness, "out", &value), 0);
	cr_expect_eq(value, 7 - EINVAL, "setup has no variables");
	frag_harness_destroy(harness);
}
