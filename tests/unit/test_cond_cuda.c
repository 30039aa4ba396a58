// SPDX-License-Identifier: Apache-2.0
#include <data/message.h>

#include "graph_texts.h"
#include "rig_ops.h"

/*
 * Conditions that wait until a GPU has written a message. The GPU is played by the tests: its work
 * ends when somebody asks to be told of its end, or waits for it, and on a thread of its own.
 */

struct late {
	struct fragi_work work; /* first */
	bool is_right;          /* it writes the tensor of that name */
	void (*fn)(void *arg);
	void *arg;
};

/* ends that were asked for; those of the right tensor; waits of threads */
static _Atomic uint32_t asked, asked_right, awaited;
static bool refuses, never_ends;
static struct late *_Atomic unended;

static struct late *late_of(struct fragi_work *work)
{
	return (struct late *)work;
}

static int late_wait(struct fragi_work *work, struct frag_err *err)
{
	atomic_fetch_add(&awaited, 1);
	atomic_store(&work->done, true);
	return 0;
}

static int late_is_done(struct fragi_work *work, struct frag_err *err)
{
	return atomic_load(&work->done);
}

static void late_end(struct late *late)
{
	atomic_store(&late->work.done, true);
	late->fn(late->arg);
	fragi_work_unref(&late->work);
}

static void *end(void *arg)
{
	late_end(arg);
	return NULL;
}

static int late_then(struct fragi_work *work, void (*fn)(void *arg), void *arg)
{
	struct late *late = late_of(work);
	pthread_t thread;

	atomic_fetch_add(&asked, 1);
	atomic_fetch_add(&asked_right, late->is_right);
	if (refuses || atomic_load(&unended) != NULL)
		return -EIO;
	(void)fragi_work_ref(work);
	late->fn = fn;
	late->arg = arg;
	if (never_ends) {
		atomic_store(&unended, late);
		return 0;
	}
	cr_assert_eq(pthread_create(&thread, NULL, end, late), 0);
	pthread_detach(thread);
	return 0;
}

static void late_free(struct fragi_work *work)
{
	free(work);
}

static int late_follow(struct fragi_work *work, void *handle, struct frag_err *err)
{
	return 0;
}

static const struct fragi_work_ops work_ops = {
	.follow = late_follow,
	.wait = late_wait,
	.is_done = late_is_done,
	.then = late_then,
	.free = late_free,
};

static int add_late(struct frag_message *message, const char *name, bool is_done)
{
	struct late *late = calloc(1, sizeof(*late));
	struct frag_tensor *tensor;

	cr_assert_not_null(late);
	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 0, NULL,
					&tensor),
		     0);
	late->is_right = name[0] == 'r';
	late->work = (struct fragi_work){.refs = 1, .done = is_done, .ops = &work_ops};
	fragi_tensor_set_written(tensor, &late->work);
	message->at_receive |= FRAGI_AT_RECEIVE_WORK;
	return frag_message_add_tensor(message, name, tensor);
}

/* Sends messages of two tensors that a GPU will write, or has written. */
struct writer {
	int64_t count, sent;
	bool is_done;
};
static const struct frag_port writer_ports[] = {{.name = "out", .dir = FRAG_OUT}};
static const struct frag_param writer_params[] = {
	FRAG_PARAM_I64(struct writer, count, 5),
	FRAG_PARAM_BOOL(struct writer, is_done, false),
};

static int write_compute(void *state, struct frag_tick *tick)
{
	struct writer *s = state;
	struct frag_message *message = frag_message_create();

	add_late(message, "left", s->is_done);
	add_late(message, "right", s->is_done);
	frag_tick_emit(tick, 0, message);
	return ++s->sent == s->count ? FRAG_DONE : 0;
}

TEST_OP_BY(writer, write_compute, FRAG_PORTS(writer_ports), FRAG_PARAMS(writer_params),
	   .state_size = sizeof(struct writer));

/* Notes each message, and how many of its tensors were written before it was received. */
static const struct frag_port reader_ports[] = {{.name = "in", .dir = FRAG_IN}};

static int read_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	if (r == 0)
		note_add(note_of(0), frag_message_tensor_count(message));
	return r == -ENOMSG ? 0 : r;
}

TEST_OP_BY(reader, read_compute, FRAG_PORTS(reader_ports));

/* Fails once the end of work was asked for. */
static int failer_compute(void *state, struct frag_tick *tick)
{
	return atomic_load(&unended) != NULL ? frag_op_fail(frag_tick_op(tick), -EIO, "enough") : 0;
}

TEST_OP(failer);

TEST_PLUGIN(late, &writer_type, &reader_type, &failer_type);

/* Runs writer -> reader with this condition; returns how many messages were received. */
static uint32_t run(size_t scheduler, const char *writer, const char *condition, const char *flow)
{
	char text[600];
	struct rig rig;

	snprintf(text, sizeof(text),
		 "operators:\n"
		 "  tx: {type: writer%s}\n"
		 "  rx: {type: reader, conditions: [%s]}\n"
		 "flows: [{from: tx, to: rx%s}]\n",
		 writer, condition, flow);
	notes_clear();
	atomic_store(&asked, 0);
	atomic_store(&asked_right, 0);
	atomic_store(&awaited, 0);
	rig_run(&rig, &late_plugin, rig_graph(scheduler, text));
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	rig_end(&rig);
	return noted(0);
}

static const char *const all[] = {"{type: cuda_stream}", "{type: cuda_event}",
				  "{type: cuda_buffer, receiver: in}",
				  "{type: CudaBufferAvailableCondition}"};

Test(cond_cuda, a_tick_comes_when_the_message_is_written)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(all); i++)
		FOR_EACH_SCHEDULER(s)
		{
			cr_expect_eq(run(s, "", all[i], ""), 5, "%s", all[i]);
			cr_expect_eq(atomic_load(&awaited), 0, "%s: no thread waits", all[i]);
			cr_expect_eq(atomic_load(&asked), 10, "%s: each tensor once", all[i]);
		}
}

Test(cond_cuda, nothing_is_asked_for_what_is_written)
{
	FOR_EACH_SCHEDULER(s)
	{
		cr_expect_eq(run(s, ", parameters: {is_done: true}", all[0], ""), 5);
		cr_expect_eq(atomic_load(&asked), 0);
	}
}

/* The other tensor is waited for by the receive. */
Test(cond_cuda, an_event_is_that_of_the_tensor_that_is_named)
{
	FOR_EACH_SCHEDULER(s)
	{
		cr_expect_eq(run(s, "", "{type: cuda_event, event_name: right}", ""), 5);
		cr_expect_eq(atomic_load(&asked), 5);
		cr_expect_eq(atomic_load(&asked_right), 5);
		cr_expect_eq(atomic_load(&awaited), 5);
	}
}

Test(cond_cuda, the_receive_waits_where_no_end_is_reported)
{
	refuses = true;
	FOR_EACH_SCHEDULER(s)
	{
		cr_expect_eq(run(s, "", all[2], ""), 5);
		cr_expect_eq(atomic_load(&awaited), 10);
	}
}

/* Another condition has it asked several times for the same message. */
Test(cond_cuda, an_end_that_is_not_reported_is_not_waited_for_the_second_time)
{
	char conditions[200];

	refuses = true;
	snprintf(conditions, sizeof(conditions), "%s, {type: periodic, recess_period: 2ms}",
		 all[2]);
	FOR_EACH_SCHEDULER(s)
	{
		cr_expect_eq(run(s, "", conditions, ""), 5);
		cr_expect_eq(atomic_load(&awaited), 10);
	}
}

/* The sender may replace the next message at any time, so nobody looks into it. */
Test(cond_cuda, a_flow_that_drops_its_oldest_message_is_not_looked_at)
{
	FOR_EACH_SCHEDULER(s)
	{
		uint32_t received = run(s, "", all[2], ", policy: latest");

		cr_expect_geq(received, 1);
		cr_expect_eq(atomic_load(&awaited), 2 * received);
		cr_expect_eq(atomic_load(&asked), 2 * (5 - received),
			     "by tensors that are dropped");
	}
}

Test(cond_cuda, an_end_that_comes_after_the_operator_does_no_harm)
{
	struct rig rig;

	never_ends = true;
	FOR_EACH_SCHEDULER(s)
	{
		atomic_store(&unended, NULL);
		notes_clear();
		rig_run(&rig, &late_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: writer}\n"
				"  rx: {type: reader, conditions: [{type: cuda_buffer}]}\n"
				"  no: {type: failer, conditions: [{type: periodic, recess_period: 1ms}]}\n"
				"flows: [tx -> rx]\n"));
		cr_expect_eq(noted(0), 0);
		rig_end(&rig);
		late_end(atomic_load(&unended));
	}
}

/* Each flow of an input must have its message. */
Test(cond_cuda, a_flow_without_a_message_is_waited_for)
{
	static const struct {
		uint64_t count, least;
		bool ended;
		enum frag_ready answer;
	} rows[] = {
		{0, 0, false, FRAG_WAIT},           {1, 0, false, FRAG_WAIT},
		{2, 1, false, FRAG_READY},          {1, 1, false, FRAG_READY},
		{5, 0, false, FRAG_WAIT},           {0, UINT64_MAX, true, FRAG_NEVER},
		{1, UINT64_MAX, false, FRAG_READY},
	};
	int64_t until_ns;

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const struct fragi_waiting waiting = {
			.count = rows[i].count, .least = rows[i].least, .ended = rows[i].ended};

		cr_expect_eq(
			fragi_condition_cuda_stream.check_inputs(NULL, &waiting, 1, 0, &until_ns),
			rows[i].answer, "row %zu", i);
	}
}
