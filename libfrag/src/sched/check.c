// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>

#define LOG_TOPIC "sched"
#include <base/alloc.h>
#include <base/log.h>
#include <data/message.h>
#include <sched/kind.h>

/*
 * The conditions of an operator that are more than a gate: those with a check function, those that
 * look at what waits at several inputs, and combinations with their terms, which may be gates.
 * They are evaluated in fragi_exec_ready_all; an operator without any never comes here.
 */
struct fragi_check {
	struct frag_condition *condition;
	struct fragi_gate gate; /* of a term that is one; count is 0 else, or when unconnected */
	/* of a condition that looks at inputs: in its order */
	struct fragi_gate *inputs;
	struct fragi_waiting *waiting;
	uint32_t input_count;
	/* of a combination */
	struct fragi_check **terms;
	struct frag_term *answers;
	uint32_t term_count;
};

struct answer {
	enum frag_ready ready;
	int64_t until_ns;
	bool looks; /* it looks at an input */
	bool ended; /* and no message can come there any more */
};

static struct fragi_check *check_of(const struct fragi_exec *exec,
				    const struct frag_condition *condition)
{
	for (uint32_t i = 0; i < exec->check_count; i++)
		if (exec->checks[i].condition == condition)
			return &exec->checks[i];
	return NULL;
}

static bool is_gate(const struct frag_condition *condition)
{
	return condition->gate_min > 0;
}

static bool looks_at_inputs(const struct frag_condition *condition)
{
	return condition->built_in != NULL && condition->built_in->check_inputs != NULL;
}

/* A gate counts in line, unless it is a term; a type like `none` has nothing to check. */
static bool is_check(const struct frag_condition *condition)
{
	return is_gate(condition)
		       ? condition->is_term
		       : condition->type->check != NULL || condition->type->combine != NULL ||
				 looks_at_inputs(condition);
}

static int inputs_create(const struct fragi_exec *exec, struct fragi_check *check)
{
	const struct frag_condition *condition = check->condition;

	check->inputs = fragi_calloc(condition->port_count + 1, sizeof(*check->inputs));
	check->waiting = fragi_calloc(condition->port_count + 1, sizeof(*check->waiting));
	if (check->inputs == NULL || check->waiting == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < condition->port_count; i++)
		check->inputs[i] = fragi_gate_of(exec, condition->ports[i], 1, 0);
	check->input_count = condition->port_count;
	return 0;
}

/* Its terms stand before it. One whose port is not connected asks for nothing. */
static int terms_create(const struct fragi_exec *exec, struct fragi_check *check)
{
	const struct frag_condition *condition = check->condition;

	check->terms = fragi_calloc(condition->term_count + 1, sizeof(struct fragi_check *));
	check->answers = fragi_calloc(condition->term_count + 1, sizeof(*check->answers));
	if (check->terms == NULL || check->answers == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < condition->term_count; i++) {
		struct fragi_check *term = check_of(exec, condition->terms[i]);

		if (is_gate(term->condition) && term->gate.count == 0)
			continue;
		check->answers[check->term_count].name = term->condition->name;
		check->terms[check->term_count++] = term;
	}
	return 0;
}

static int check_create(struct fragi_exec *exec, struct fragi_check *check,
			void (*notify)(void *exec))
{
	struct frag_condition *condition = check->condition;
	int r = 0;

	condition->changed = (struct fragi_notify){notify, exec};
	exec->timed |=
		(condition->type->flags & (FRAG_CONDITION_TIMED | FRAG_CONDITION_POLLED)) != 0 ||
		fragi_condition_memory(condition) != NULL;
	if (is_gate(condition))
		check->gate = fragi_gate_of(exec, condition->port, condition->gate_min,
					    condition->gate_max);
	else if (looks_at_inputs(condition))
		r = inputs_create(exec, check);
	exec->waits_for_inputs |= check->gate.rx != NULL && check->gate.count > 0;
	for (uint32_t i = 0; i < check->input_count; i++)
		exec->waits_for_inputs |= check->inputs[i].count > 0;
	return r;
}

int fragi_checks_create(struct fragi_exec *exec, void (*notify)(void *exec))
{
	const struct frag_op *op = exec->op;
	int r = 0;

	if (op->condition_count == 0)
		return 0;
	exec->checks = fragi_calloc(op->condition_count, sizeof(*exec->checks));
	if (exec->checks == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->condition_count; i++)
		if (is_check(op->conditions[i]))
			exec->checks[exec->check_count++].condition = op->conditions[i];
	for (uint32_t i = 0; r == 0 && i < exec->check_count; i++)
		r = check_create(exec, &exec->checks[i], notify);
	for (uint32_t i = 0; r == 0 && i < exec->check_count; i++)
		if (exec->checks[i].condition->type->combine != NULL)
			r = terms_create(exec, &exec->checks[i]);
	return r;
}

void fragi_checks_destroy(struct fragi_exec *exec)
{
	for (uint32_t i = 0; i < exec->check_count; i++) {
		struct fragi_check *check = &exec->checks[i];

		check->condition->changed = (struct fragi_notify){NULL, NULL};
		fragi_free(check->inputs);
		fragi_free(check->waiting);
		fragi_free(check->terms);
		fragi_free(check->answers);
	}
	fragi_free(exec->checks);
}

/* Returns when the oldest message was emitted, if one waits and that is known. */
static int64_t oldest_ns(const struct fragi_gate *input, const struct fragi_exec *exec)
{
	uint64_t now = fragi_stamp(), stamp;
	int64_t longest_ns = -1, one_ns;

	for (uint32_t i = 0; i < input->count; i++) {
		if (!fragi_queue_oldest(&input->rx[i]->queue, &stamp) || stamp == 0)
			continue;
		one_ns = fragi_clock_since_ns(exec->clock, fragi_stamp_diff_ns(stamp, now));
		longest_ns = one_ns > longest_ns ? one_ns : longest_ns;
	}
	return longest_ns >= 0 ? exec->begin_ns - longest_ns : FRAGI_TIME_UNKNOWN;
}

static void look(const struct fragi_exec *exec, const struct fragi_gate *input,
		 struct fragi_waiting *out)
{
	*out = (struct fragi_waiting){
		.least = UINT64_MAX, .ended = true, .oldest_ns = FRAGI_TIME_UNKNOWN};
	for (uint32_t i = 0; i < input->count; i++) {
		const struct fragi_queue *queue = &input->rx[i]->queue;
		/* read first: a message that was pushed before the close is then counted */
		bool closed = atomic_load_explicit(&queue->sender_closed, memory_order_acquire);
		uint32_t count = fragi_queue_count(queue);

		out->count += count;
		out->ended = out->ended && closed && count == 0;
		/* One that is full cannot get more either, as when only the others have ended. */
		if (!closed && count < queue->capacity && count < out->least)
			out->least = count;
	}
	if (input->in_turn != NULL && out->least != UINT64_MAX)
		out->least = out->count;
	if (exec->timed)
		out->oldest_ns = oldest_ns(input, exec);
}

static bool awaits_outside(const struct frag_condition *condition, enum frag_ready ready)
{
	return ready == FRAG_WAIT_EVENT && (condition->type->flags & FRAG_CONDITION_OUTSIDE) != 0;
}

/* What a condition that looks at messages waits for, of the first messages of an input's flows. */
static struct fragi_work *unwritten(const struct frag_condition *condition,
				    const struct fragi_gate *input)
{
	const struct frag_message *first;
	struct fragi_work *work = NULL;

	for (uint32_t i = 0; work == NULL && i < input->count; i++) {
		if (input->rx[i]->policy->drops_oldest)
			continue;
		first = fragi_queue_first(&input->rx[i]->queue);
		if (first != NULL && (first->at_receive & FRAGI_AT_RECEIVE_WORK) != 0)
			work = condition->built_in->unwritten(condition->state, first);
	}
	return work;
}

/* An input that is not connected asks for nothing: as if it were closed, but not ended. */
static struct answer ask_inputs(const struct fragi_exec *exec, const struct fragi_check *check,
				bool *awaits)
{
	const struct fragi_built_in_condition *built_in = check->condition->built_in;
	struct answer answer = {.looks = false};
	uint32_t connected = 0;

	for (uint32_t i = 0; i < check->input_count; i++) {
		look(exec, &check->inputs[i], &check->waiting[i]);
		if (built_in->unwritten != NULL)
			check->waiting[i].unwritten =
				unwritten(check->condition, &check->inputs[i]);
		connected += check->inputs[i].count > 0;
	}
	for (uint32_t i = 0; connected > 0 && i < check->input_count; i++)
		if (check->inputs[i].count == 0)
			check->waiting[i].ended = check->condition->sum > 0;
	if (connected == 0)
		return answer;
	answer.looks = true;
	answer.ready = built_in->check_inputs(check->condition->state, check->waiting,
					      check->input_count, exec->begin_ns, &answer.until_ns);
	answer.ended = answer.ready == FRAG_NEVER;
	*awaits |= awaits_outside(check->condition, answer.ready);
	return answer;
}

/* A condition that has failed: the operator waits until the application has ended. */
static enum frag_ready checked(struct fragi_exec *exec, const struct frag_condition *condition,
			       enum frag_ready ready)
{
	const int code = (int)ready;

	if (__builtin_expect(code >= 0, 1))
		return ready;
	if (fragi_op_own_error(exec->op)[0] == '\0')
		frag_op_fail(exec->op, code, "condition %s: check returned %d (%s)",
			     condition->name, code, frag_strerror(code));
	if (exec->sched != NULL && !exec->failed)
		fragi_sched_fail(exec->sched, exec, FRAGI_CALL_NONE, code);
	return FRAG_WAIT;
}

static struct answer ask(struct fragi_exec *exec, const struct fragi_check *check, bool *awaits);

/* An input that has ended counts as one that waits, until all inputs of the terms have ended. */
static struct answer ask_terms(struct fragi_exec *exec, const struct fragi_check *check,
			       bool *awaits)
{
	struct answer answer = {.looks = false}, one;
	uint32_t looking = 0, ended = 0;

	for (uint32_t i = 0; i < check->term_count; i++) {
		one = ask(exec, check->terms[i], awaits);
		looking += one.looks;
		ended += one.ended;
		check->answers[i].ready = one.ended ? FRAG_WAIT : one.ready;
		check->answers[i].until_ns = one.until_ns;
	}
	answer.looks = looking > 0;
	answer.ended = looking > 0 && ended == looking;
	if (answer.ended)
		answer.ready = FRAG_NEVER;
	else if (check->term_count > 0)
		answer.ready = checked(
			exec, check->condition,
			check->condition->type->combine(check->condition->state, check->answers,
							check->term_count, &answer.until_ns));
	return answer;
}

/* Whether nobody reports when it would answer otherwise: peers give memory back silently. */
static bool is_polled(const struct fragi_exec *exec, const struct frag_condition *condition)
{
	return (condition->type->flags & FRAG_CONDITION_POLLED) != 0 ||
	       (fragi_condition_memory(condition) != NULL && exec->sched != NULL &&
		exec->sched->config.has_peers);
}

/*
 * A condition that is polled is asked again after check_recession_period. awaits: set when a
 * condition waits for an event from outside.
 */
static struct answer ask(struct fragi_exec *exec, const struct fragi_check *check, bool *awaits)
{
	const struct frag_condition_type *type = check->condition->type;
	struct answer answer = {.looks = false};

	if (check->gate.count > 0) {
		answer.ready = fragi_gate_ready(&check->gate);
		answer.looks = check->gate.rx != NULL;
		answer.ended = answer.ready == FRAG_NEVER;
		return answer;
	}
	if (type->combine != NULL)
		return ask_terms(exec, check, awaits);
	if (check->inputs != NULL)
		return ask_inputs(exec, check, awaits);
	if (type->check == NULL)
		return answer; /* a gate of a port that is not connected */
	answer.ready =
		checked(exec, check->condition,
			type->check(check->condition->state, exec->begin_ns, &answer.until_ns));
	if (answer.ready == FRAG_WAIT && is_polled(exec, check->condition)) {
		answer.ready = FRAG_WAIT_TIME;
		answer.until_ns = exec->begin_ns + exec->poll_ns;
	}
	*awaits |= awaits_outside(check->condition, answer.ready);
	return answer;
}

/* While an event from outside is awaited, the application is not at rest. */
static void await_outside(struct fragi_exec *exec, bool awaits)
{
	if (awaits == exec->awaits_outside)
		return;
	exec->awaits_outside = awaits;
	if (exec->sched == NULL)
		return;
	if (awaits)
		atomic_fetch_add(&exec->sched->pending, 1);
	else
		atomic_fetch_sub(&exec->sched->pending, 1);
}

enum frag_ready fragi_checks_ready(struct fragi_exec *exec, int64_t *out_until_ns)
{
	enum frag_ready all = FRAG_READY;
	bool awaits = false;

	for (uint32_t i = 0; i < exec->check_count; i++) {
		const struct fragi_check *check = &exec->checks[i];
		struct answer one;

		if (check->condition->is_term)
			continue;
		one = ask(exec, check, &awaits);
		all = one.ready > all ? one.ready : all;
		if (one.ready == FRAG_WAIT_TIME && one.until_ns > *out_until_ns)
			*out_until_ns = one.until_ns;
	}
	await_outside(exec, awaits);
	return all;
}

bool fragi_checks_lack_memory(const struct fragi_exec *exec)
{
	int64_t until_ns;

	for (uint32_t i = 0; i < exec->check_count; i++) {
		const struct frag_condition *condition = exec->checks[i].condition;

		if (fragi_condition_memory(condition) != NULL &&
		    condition->type->check(condition->state, 0, &until_ns) == FRAG_WAIT)
			return true;
	}
	return false;
}

void fragi_checks_ticked(struct fragi_exec *exec)
{
	for (uint32_t i = 0; i < exec->check_count; i++) {
		const struct frag_condition *condition = exec->checks[i].condition;

		if (condition->type->ticked != NULL)
			condition->type->ticked(condition->state, exec->begin_ns);
	}
}

void fragi_checks_end(struct fragi_exec *exec)
{
	await_outside(exec, false);
}

int fragi_checks_start(struct fragi_exec *exec)
{
	struct frag_op *op = exec->op;

	for (uint32_t i = 0; i < op->condition_count; i++) {
		struct frag_condition *condition = op->conditions[i];
		struct frag_err err = FRAG_ERR_INIT;
		int r = 0;

		if (condition->type->start != NULL) {
			fragi_current_set(op, FRAGI_CALL_START);
			r = condition->type->start(condition->state, condition, &err);
			fragi_current_set(NULL, FRAGI_CALL_COMPUTE);
		}
		if (r > 0)
			r = frag_err_set(&err, -EINVAL,
					 "start returned %d; return 0 or a negative errno", r);
		if (r < 0)
			return frag_op_fail(op, r, "condition %s: %s", condition->name,
					    err.text[0] != '\0' ? err.text : frag_strerror(r));
		condition->started = true;
	}
	return 0;
}

void fragi_checks_stop(struct fragi_exec *exec)
{
	struct frag_op *op = exec->op;
	int r = 0;

	for (uint32_t i = op->condition_count; i-- > 0;) {
		struct frag_condition *condition = op->conditions[i];

		if (!condition->started)
			continue;
		condition->started = false;
		if (condition->type->stop == NULL)
			continue;
		fragi_current_set(op, FRAGI_CALL_STOP);
		r = condition->type->stop(condition->state, condition);
		fragi_current_set(NULL, FRAGI_CALL_COMPUTE);
		if (r != 0)
			log_warn(op->subject, "condition %s: stop returned %d (%s)",
				 condition->name, r,
				 r < 0 ? frag_strerror(r) : "return 0 or a negative errno");
	}
}
