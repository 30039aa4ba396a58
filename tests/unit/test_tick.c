// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <data/message.h>
#include <data/metadata.h>
#include <frag/frag.h>
#include <frag/harness.h>

/* What operators can do inside a tick, each with an operator made for it. */
static const struct frag_port any_ports[] = {
	{.name = "in", .dir = FRAG_IN},
	{.name = "second", .dir = FRAG_IN},
	{.name = "out", .dir = FRAG_OUT},
	{.name = "number", .dir = FRAG_OUT, .type = "i64"},
	{.name = "image", .dir = FRAG_OUT, .type = "tensor"},
};
enum { IN, SECOND, OUT, NUMBER, IMAGE };

static struct frag_harness *make(int (*compute)(void *, struct frag_tick *))
{
	static struct frag_op_type type;
	struct frag_harness *h;

	type = (struct frag_op_type){FRAG_OP_TYPE_INIT, .name = "op", FRAG_PORTS(any_ports),
				     .compute = compute};
	h = frag_harness_create(&type, FRAG_NO_ARGS, NULL);
	cr_assert_not_null(h);
	return h;
}

static struct frag_message *number(int64_t x)
{
	struct frag_message *m = frag_message_create();

	frag_message_set_value(m, &frag_type_i64, &x, sizeof(x), NULL);
	return m;
}

static struct frag_message *with_metadata(int64_t x, const char *key, int64_t value)
{
	struct frag_message *m = number(x);
	struct frag_metadata *d = fragi_metadata_create(FRAG_METADATA_RAISE);

	frag_metadata_set_i64(d, key, value);
	fragi_message_set_metadata(m, d);
	return m;
}

static int wrong_ports(void *state, struct frag_tick *tick)
{
	const struct frag_message *m = (const struct frag_message *)state;
	const struct frag_message *const *all;
	double d = 1.5;
	int64_t x = 77;

	cr_expect_eq(frag_tick_receive(tick, OUT, &m), -EINVAL);
	cr_expect_eq(frag_tick_receive(tick, 99, &m), -EINVAL);
	cr_expect_eq(frag_tick_receive_all(tick, OUT, &all), -EINVAL);
	cr_expect_eq(frag_tick_emit(tick, IN, number(1)), -EINVAL);
	cr_expect_eq(frag_tick_emit(tick, 99, number(1)), -EINVAL);
	cr_expect_eq(frag_tick_emit(tick, OUT, NULL), -EINVAL);
	cr_expect_eq(frag_tick_emit_i64(tick, IN, 1), -EINVAL);
	cr_expect_eq(frag_tick_emit_f64(tick, NUMBER, d), -EPROTOTYPE);
	cr_expect_eq(frag_tick_emit(tick, NUMBER, frag_message_create()), -EPROTOTYPE);
	cr_expect_eq(frag_tick_emit(tick, IMAGE, number(1)), -EPROTOTYPE);
	cr_expect_eq(frag_tick_emit_i64(tick, IMAGE, 1), -EPROTOTYPE);
	cr_expect_eq(frag_tick_emit_i64(tick, NUMBER, 5), 0);
	cr_expect_eq(frag_tick_receive_i64(tick, IN, &x), -ENOMSG);
	cr_expect_eq(x, 77, "untouched on failure");
	return 0;
}

Test(tick, ports_and_types_are_checked)
{
	struct frag_harness *h = make(wrong_ports);
	uint64_t live = fragi_pool_live(FRAGI_POOL_MESSAGE);
	struct frag_message *m;

	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take(h, "out", &m), -ENOMSG);
	cr_expect_eq(frag_harness_take(h, "number", &m), 0);
	frag_message_unref(m);
	cr_expect_eq(fragi_pool_live(FRAGI_POOL_MESSAGE), live,
		     "what was refused is taken all the same");
	frag_harness_destroy(h);
}

static int wrong_value(void *state, struct frag_tick *tick)
{
	double x = 7;
	const char *text = "same";

	cr_expect_eq(frag_tick_receive_f64(tick, IN, &x), -EPROTOTYPE);
	cr_expect_eq(x, 7);
	cr_expect_eq(frag_tick_receive_string(tick, SECOND, &text), -EPROTOTYPE);
	cr_expect_str_eq(text, "same");
	return 0;
}

Test(tick, a_value_of_another_type_is_not_taken_for_it)
{
	struct frag_harness *h = make(wrong_value);

	frag_harness_give_i64(h, "in", 1);
	frag_harness_give(h, "second", frag_message_create());
	cr_expect_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
}

static const struct frag_message *forwarded;

static int forward(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;

	if (frag_tick_receive(tick, IN, &m) < 0)
		return -ENOMSG;
	forwarded = m;
	return frag_tick_emit(tick, OUT, frag_message_ref(m));
}

Test(tick, forwarding_is_a_pointer_metadata_and_all)
{
	struct frag_harness *h = make(forward);
	struct frag_message *given = with_metadata(3, "a", 1), *taken = NULL;
	int64_t a = 0;

	frag_harness_give(h, "in", frag_message_ref(given));
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(frag_harness_take(h, "out", &taken), 0);
	cr_expect_eq(taken, given);
	cr_expect_eq(forwarded, given);
	cr_expect_eq(frag_metadata_get_i64(frag_message_metadata(taken), "a", &a), 0);
	cr_expect_eq(a, 1);
	cr_expect_eq(frag_message_set_value(taken, &frag_type_i64, &a, sizeof(a), NULL), -EBUSY);
	frag_message_unref(taken);
	frag_message_unref(given);
	frag_harness_destroy(h);
}

static int disable_metadata(struct frag_fragment *fragment)
{
	return frag_fragment_enable_metadata(fragment, 0);
}

/* Passes on what came in the tick before, too, as a delay does. */
static struct frag_message *delayed;
static int delay(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;

	if (frag_tick_receive(tick, IN, &m) < 0)
		return -ENOMSG;
	cr_expect_eq(frag_metadata_count(frag_message_metadata(m)), 1, "what came has its keys");
	frag_tick_emit(tick, OUT, frag_message_ref(m));
	if (delayed != NULL)
		frag_tick_emit(tick, OUT, delayed);
	delayed = frag_message_ref(m);
	return 0;
}

Test(tick, an_operator_without_metadata_passes_on_none)
{
	struct frag_message *given = with_metadata(3, "a", 1), *taken = NULL;
	struct frag_op_type type = {FRAG_OP_TYPE_INIT, .name = "op", FRAG_PORTS(any_ports),
				    .compute = delay};
	struct frag_harness *h =
		frag_harness_create_composed(&type, FRAG_NO_ARGS, disable_metadata, NULL);
	const void *value;

	cr_assert_not_null(h);
	for (int i = 0; i < 2; i++) {
		frag_harness_give(h, "in", frag_message_ref(given));
		cr_expect_eq(frag_harness_tick(h), 0);
	}
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(frag_harness_take(h, "out", &taken), 0, "%d", i);
		cr_expect_null(frag_message_metadata(taken), "%d", i);
		frag_message_value(taken, &value, NULL);
		cr_expect_eq(*(const int64_t *)value, 3, "%d", i);
		frag_message_unref(taken);
	}
	cr_expect(frag_metadata_has(frag_message_metadata(given), "a"), "others still have it");
	frag_message_unref(delayed);
	frag_message_unref(given);
	frag_harness_destroy(h);
}

static int annotate(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;

	if (frag_tick_receive(tick, IN, &m) < 0)
		return -ENOMSG;
	frag_tick_emit_i64(tick, NUMBER, 1); /* before: only what was received */
	frag_metadata_set_i64(frag_tick_metadata(tick), "b", 2);
	frag_tick_emit_i64(tick, NUMBER, 2);
	/* a copy: the received one may not change */
	frag_tick_emit(tick, OUT, frag_message_ref(m));
	frag_metadata_clear(frag_tick_metadata(tick));
	frag_tick_emit(tick, OUT, frag_message_ref(m));
	frag_metadata_set_i64(frag_tick_metadata(tick), "gone", 1);
	return 0;
}

static uint32_t keys(struct frag_harness *h, const char *port, const char *first,
		     const char *second)
{
	const struct frag_metadata *d;
	struct frag_message *m;
	uint32_t n;

	cr_assert_eq(frag_harness_take(h, port, &m), 0);
	d = frag_message_metadata(m);
	n = d != NULL ? frag_metadata_count(d) : 0;
	if (first != NULL)
		cr_expect(frag_metadata_has(d, first));
	if (second != NULL)
		cr_expect(frag_metadata_has(d, second));
	frag_message_unref(m);
	return n;
}

Test(tick, emit_carries_the_metadata_as_it_then_is)
{
	struct frag_harness *h = make(annotate);
	struct frag_message *given = with_metadata(3, "a", 1);

	frag_harness_give(h, "in", frag_message_ref(given));
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(keys(h, "number", "a", NULL), 1);
	cr_expect_eq(keys(h, "number", "a", "b"), 2);
	cr_expect_eq(keys(h, "out", "a", "b"), 2);
	cr_expect_eq(keys(h, "out", NULL, NULL), 0);
	cr_expect_eq(frag_metadata_count(frag_message_metadata(given)), 1);
	frag_harness_give(h, "in", number(4)); /* the next tick begins without any */
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(keys(h, "number", NULL, NULL), 0);
	frag_message_unref(given);
	frag_harness_destroy(h);
}

static uint64_t copies;

/* Emits what it received as new messages; then it changes the metadata, and emits twice more. */
static int copy_on_write(void *state, struct frag_tick *tick)
{
	struct frag_metadata *metadata;
	const struct frag_message *m;

	if (frag_tick_receive(tick, IN, &m) < 0)
		return -ENOMSG;
	frag_tick_emit_i64(tick, NUMBER, 1);
	frag_tick_emit_i64(tick, NUMBER, 2);
	metadata = frag_tick_metadata(tick);
	cr_expect_eq(frag_metadata_copies(metadata), copies, "reading and sending copy nothing");
	frag_metadata_set_i64(metadata, "b", 2);
	frag_metadata_set_i64(metadata, "c", 3);
	copies++;
	cr_expect_eq(frag_metadata_copies(metadata), copies, "one copy for two changes");
	frag_tick_emit_i64(tick, NUMBER, 3);
	return frag_tick_emit_i64(tick, NUMBER, 4);
}

Test(tick, metadata_is_copied_when_it_is_changed)
{
	struct frag_harness *h = make(copy_on_write);
	struct frag_message *given = with_metadata(3, "a", 1);

	for (int i = 0; i < 3; i++) {
		frag_harness_give(h, "in", frag_message_ref(given));
		cr_expect_eq(frag_harness_tick(h), 0);
		cr_expect_eq(keys(h, "number", "a", NULL), 1);
		cr_expect_eq(keys(h, "number", "a", NULL), 1);
		cr_expect_eq(keys(h, "number", "a", "b"), 3);
		cr_expect_eq(keys(h, "number", "a", "c"), 3);
	}
	cr_expect_eq(frag_metadata_count(frag_message_metadata(given)), 1);
	frag_message_unref(given);
	frag_harness_destroy(h);
}

static int merge(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;
	int r;

	r = frag_tick_receive(tick, IN, &m);
	if (r == 0)
		r = frag_tick_receive(tick, SECOND, &m);
	return r < 0 ? r : frag_tick_emit(tick, OUT, frag_message_ref(m));
}

Test(tick, what_is_received_is_merged)
{
	struct frag_harness *h = make(merge);

	frag_harness_give(h, "in", with_metadata(1, "a", 1));
	frag_harness_give(h, "second", with_metadata(2, "b", 2));
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(keys(h, "out", "a", "b"), 2, "a forwarded message carries the other's too");
	frag_harness_give(h, "in", with_metadata(1, "a", 1));
	frag_harness_give(h, "second", with_metadata(2, "a", 2));
	cr_expect_eq(frag_harness_tick(h), -EEXIST);
	cr_expect_not_null(strstr(frag_harness_error(h), "at key \"a\""), "%s",
			   frag_harness_error(h));
	frag_harness_give(h, "in", with_metadata(1, "a", 1));
	frag_harness_give(h, "second", number(2));
	cr_expect_eq(frag_harness_tick(h), 0, "a clash does not last");
	cr_expect_eq(keys(h, "out", "a", NULL), 1);
	frag_harness_destroy(h);
}

static const struct frag_message *kept;

static int keep(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;
	int r = frag_tick_receive(tick, IN, &m);

	if (r == 0)
		kept = frag_message_ref(m);
	cr_expect_eq(frag_tick_time_ns(tick), 7);
	cr_expect_eq(frag_tick_time_ns(tick), 7);
	return r;
}

Test(tick, a_kept_message_outlives_the_tick)
{
	struct frag_harness *h = make(keep);
	const void *value;

	frag_harness_give_i64(h, "in", 42);
	frag_clock_advance_to(frag_harness_clock(h), 7);
	cr_expect_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
	cr_expect_eq(frag_message_value(kept, &value, NULL), &frag_type_i64);
	cr_expect_eq(*(const int64_t *)value, 42);
	frag_message_unref((struct frag_message *)(uintptr_t)kept);
}

static int drain(void *state, struct frag_tick *tick)
{
	const struct frag_message *m;
	int n = 0, r;

	while ((r = frag_tick_receive(tick, IN, &m)) == 0)
		n++;
	cr_expect_eq(r, -ENOMSG);
	return n == 64 ? 0 : -EBADMSG;
}

Test(tick, many_messages_in_one_tick)
{
	struct frag_harness *h = make(drain);

	for (int i = 0; i < 64; i++)
		frag_harness_give_i64(h, "in", i);
	cr_expect_eq(frag_harness_tick(h), 0);
	frag_harness_destroy(h);
}
