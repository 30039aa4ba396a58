// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <sys/mman.h>

#include <sched/saved.h>

#include "rig.h"

/*
 * save and restore. A run stands for a host, the next one for the host that is started in its
 * place, and a memfd for the memory that their worker keeps.
 */
#define HOUR_NS INT64_C(3600000000000)

/* Counts its ticks, up to `count` of this run. */
struct counter {
	int64_t count;
	int64_t fail_at, refuse_at, too_much_at; /* a value; 0: never */
	int64_t refusals;                        /* from there on */
	bool refuses_state;
	int64_t ticks, value;
};

static int64_t value_at_start, value_at_end;
static unsigned int saves, restores;

static const struct frag_param counter_params[] = {
	FRAG_PARAM_I64(struct counter, count, 0),
	FRAG_PARAM_I64(struct counter, fail_at, 0),
	FRAG_PARAM_I64(struct counter, refuse_at, 0),
	FRAG_PARAM_I64(struct counter, too_much_at, 0),
	FRAG_PARAM_I64(struct counter, refusals, 1),
	FRAG_PARAM_BOOL(struct counter, refuses_state, false),
};

static int counter_start(void *state, struct frag_op *op)
{
	const struct counter *c = state;

	value_at_start = c->value;
	return 0;
}

static int counter_compute(void *state, struct frag_tick *tick)
{
	struct counter *c = state;

	value_at_end = ++c->value;
	if (c->value == c->fail_at)
		return frag_op_fail(frag_tick_op(tick), -EIO, "it was to fail");
	return ++c->ticks == c->count ? FRAG_DONE : 0;
}

static int counter_save(void *state, struct frag_op *op, void *out_bytes, size_t size)
{
	const struct counter *c = state;

	saves++;
	cr_expect_eq(size, 16);
	memset(out_bytes, 0xee, size); /* what a save that fails leaves is not used */
	if (c->value >= c->refuse_at && c->value < c->refuse_at + c->refusals && c->refuse_at > 0)
		return frag_op_fail(op, -EIO, "it was to fail to save");
	if (c->value == c->too_much_at)
		return 17;
	memcpy(out_bytes, &c->value, sizeof(c->value));
	return sizeof(c->value);
}

static int counter_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	struct counter *c = state;

	restores++;
	if (c->refuses_state)
		return frag_op_fail(op, -EBADMSG, "it cannot read what was saved; remove it");
	cr_expect_eq(size, sizeof(c->value), "as many bytes as were saved");
	memcpy(&c->value, bytes, sizeof(c->value));
	return 0;
}

#define COUNTER_TYPE(type_name, period)                                                            \
	{                                                                                          \
		FRAG_OP_TYPE_INIT, .name = type_name, .state_size = sizeof(struct counter),        \
				   FRAG_PARAMS(counter_params), .start = counter_start,            \
				   .compute = counter_compute, .save = counter_save,               \
				   .restore = counter_restore, .save_size = 16,                    \
				   .save_period_ns = period                                        \
	}
static const struct frag_op_type counter_type = COUNTER_TYPE("counter", 0);
static const struct frag_op_type rare_type = COUNTER_TYPE("rare_counter", HOUR_NS);
static const struct frag_op_type *const ops[] = {&counter_type, &rare_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "rig", FRAG_OPS(ops)};

static void keep(void)
{
	rig_saved_fd = memfd_create("saved", MFD_CLOEXEC);
	cr_assert_gt(rig_saved_fd, 0);
	cr_assert_eq(ftruncate(rig_saved_fd, 1 << 20), 0);
}

static void forget(void)
{
	close(rig_saved_fd);
}
TestSuite(saved, .init = keep, .fini = forget);

/* One host, of one counter with these parameters. */
static void run_named(const char *name, const char *type, const char *parameters, bool fails)
{
	struct rig rig;
	char yaml[400];

	snprintf(yaml, sizeof(yaml),
		 "frag: 1\napplication: a\noperators: {%s: {type: %s, parameters: {%s}}}\n", name,
		 type, parameters);
	saves = restores = 0;
	value_at_start = value_at_end = -1;
	rig_run(&rig, &plugin, yaml);
	cr_expect_eq(rig.failed, fails ? 1 : 0, "%s", rig.sentence);
	if (fails)
		cr_expect_not_null(strstr(rig.sentence, "a.c: it "), "%s", rig.sentence);
	rig_end(&rig);
}

static void run(const char *parameters)
{
	run_named("c", "counter", parameters, false);
}

Test(saved, the_next_host_goes_on)
{
	run("count: 5");
	cr_expect_eq(value_at_start, 0);
	cr_expect_eq(restores, 0, "nothing was saved yet");
	cr_expect_eq(saves, 5, "after every tick");
	run("count: 3");
	cr_expect_eq(restores, 1);
	cr_expect_eq(value_at_start, 5, "restored before start");
	run("count: 1");
	cr_expect_eq(value_at_start, 8);
	cr_expect_eq(value_at_end, 9);
}

Test(saved, nothing_is_saved_where_nobody_keeps_it)
{
	int fd = rig_saved_fd;

	rig_saved_fd = 0;
	run("count: 5");
	cr_expect_eq(saves, 0);
	rig_saved_fd = fd;
	run("count: 5");
	cr_expect_eq(restores, 0);
}

Test(saved, a_tick_that_fails_is_not_saved)
{
	run_named("c", "counter", "fail_at: 4", true);
	cr_expect_eq(saves, 3);
	run("count: 1");
	cr_expect_eq(value_at_start, 3);
}

Test(saved, a_save_that_fails_leaves_the_one_before)
{
	run("count: 4, refuse_at: 4");
	cr_expect_eq(saves, 4);
	run("count: 2, too_much_at: 5");
	cr_expect_eq(value_at_start, 3);
	cr_expect_eq(value_at_end, 5);
	run("count: 1");
	cr_expect_eq(value_at_start, 4, "17 bytes are more than save_size");
}

static uint32_t lines_with(FILE *file, const char *what)
{
	char line[512];
	uint32_t count = 0;

	rewind(file);
	while (fgets(line, sizeof(line), file) != NULL)
		count += strstr(line, what) != NULL;
	return count;
}

/* One line for saves that fail in a row, and another one when they fail again. */
Test(saved, saves_that_fail_are_logged_once_in_a_row)
{
	const int before = dup(STDERR_FILENO);
	FILE *file = tmpfile();

	cr_assert_not_null(file);
	dup2(fileno(file), STDERR_FILENO);
	run("count: 9, refuse_at: 3, refusals: 3, too_much_at: 8");
	dup2(before, STDERR_FILENO);
	close(before);
	cr_expect_eq(saves, 9);
	cr_expect_eq(lines_with(file, "its state cannot be saved: it was to fail to save"), 1);
	cr_expect_eq(lines_with(file, "save returned 17, more bytes than its save_size of 16"), 1);
	fclose(file);
	run("count: 1");
	cr_expect_eq(value_at_start, 9);
}

Test(saved, saves_keep_their_period)
{
	run_named("c", "rare_counter", "count: 1000", false);
	cr_expect_eq(saves, 1);
	run_named("c", "rare_counter", "count: 1", false);
	cr_expect_eq(value_at_start, 1);
}

Test(saved, another_operator_begins_anew)
{
	run("count: 5");
	run_named("d", "counter", "count: 2", false);
	cr_expect_eq(restores, 0);
	run_named("d", "counter", "count: 1", false);
	cr_expect_eq(value_at_start, 2);
}

Test(saved, a_refusal_to_restore_fails_the_start)
{
	run("count: 5");
	run_named("c", "counter", "count: 5, refuses_state: true", true);
	cr_expect_eq(value_at_start, -1, "start is not called");
	run("count: 1");
	cr_expect_eq(value_at_start, 5, "what was saved is still there");
}

/* The host that wrote it may have written anything. */
Test(saved, what_is_restored_is_checked)
{
	uint64_t *words;

	run("count: 5");
	words = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, rig_saved_fd, 0);
	cr_assert_neq(words, MAP_FAILED);
	for (size_t i = 0; i < 64; i++) {
		const uint64_t before = words[i];

		words[i] = UINT64_MAX / 3 + i;
		run("count: 1");
		words[i] = before;
		run("count: 1"); /* whatever became of it: both places are in order again */
	}
	munmap(words, 1 << 20);
}

Test(saved, memory_that_is_too_small_is_not_used)
{
	cr_assert_eq(ftruncate(rig_saved_fd, 100), 0);
	run("count: 5");
	cr_expect_eq(saves, 0);
}

static void expect_refused(const struct frag_op_type *type, const char *why)
{
	const struct frag_op_type *const table[] = {type};
	const struct frag_plugin one = {TEST_PLUGIN_INIT, .name = "rig", .ops = table,
					.op_count = 1};
	struct fragi_registry *registry;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_registry_create(&(struct fragi_registry_config){0}, &registry), 0);
	cr_expect_lt(fragi_registry_add(registry, "rig", &one, &err), 0);
	cr_expect_not_null(strstr(err.text, why), "%s", err.text);
	fragi_registry_destroy(registry);
}

Test(saved, half_a_pair_is_refused)
{
	struct frag_op_type type = counter_type;

	type.restore = NULL;
	expect_refused(&type, "it has save but no restore; give both");
	type = counter_type;
	type.save = NULL;
	expect_refused(&type, "it has restore but no save; give both");
	type = counter_type;
	type.save_size = 0;
	expect_refused(&type, "save_size is 0; give 1 to 16777216 bytes");
	type.save_size = FRAG_SAVE_SIZE_MAX + 1;
	expect_refused(&type, "save_size is 16777217");
}

/* Fifty of the largest states take 1.6 GiB. */
Test(saved, more_than_a_host_may_save_is_refused)
{
	static const struct frag_op_type large = {
		FRAG_OP_TYPE_INIT,          .name = "large",
		.compute = counter_compute, .save = counter_save,
		.restore = counter_restore, .save_size = FRAG_SAVE_SIZE_MAX};
	static const struct frag_op_type *const table[] = {&large};
	static const struct frag_plugin one = {TEST_PLUGIN_INIT, .name = "rig", FRAG_OPS(table)};
	char yaml[2000] = "frag: 1\napplication: a\noperators:\n";
	struct rig rig;

	for (int i = 0; i < 50; i++)
		snprintf(yaml + strlen(yaml), 40, "  c%d: {type: large}\n", i);
	cr_assert_lt(rig_prepare(&rig, &one, yaml), 0);
	cr_expect_not_null(
		strstr(rig.diag.items[0].text,
		       "the operators of this host save up to 1600 MiB, more than 1024 MiB;"),
		"%s", rig.diag.items[0].text);
	rig_end(&rig);
}
