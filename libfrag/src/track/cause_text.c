// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <track/verdict.h>

#define STEPS_MAX 16   /* of the chain; of a longer one the first half and the last */
#define BYTES_MANY 1e6 /* a second: a network may be full */

struct writing {
	const struct fragi_look *look;
	const struct fragi_verdict *v;
	struct fragi_arena *arena;
	const char *short_help; /* the end of the sentence; NULL: none */
	const char *help;
	bool is_short; /* memory is */
};

const char *fragi_cause_name(enum fragi_cause_kind kind)
{
	static const char *const names[] = {
		[FRAGI_CAUSE_NONE] = "none",           [FRAGI_CAUSE_UNMEASURED] = "unmeasured",
		[FRAGI_CAUSE_OPERATOR] = "operator",   [FRAGI_CAUSE_POOL] = "pool",
		[FRAGI_CAUSE_LINK] = "link",           [FRAGI_CAUSE_THREADS] = "threads",
		[FRAGI_CAUSE_CORES] = "cores",         [FRAGI_CAUSE_CLOCK] = "clock",
		[FRAGI_CAUSE_SUSPENDED] = "suspended", [FRAGI_CAUSE_LOSS] = "loss",
		[FRAGI_CAUSE_RULE] = "rule",
	};

	return names[kind];
}

/* A text of the arena; "" when memory is short. */
#define TEXT(w, ...) text_or_empty(w, fragi_arena_printf((w)->arena, __VA_ARGS__))

static const char *text_or_empty(struct writing *w, const char *text)
{
	if (text == NULL)
		w->is_short = true;
	return text != NULL ? text : "";
}

static const char *plain(const char *text)
{
	return text != NULL ? text : "";
}

static const struct fragi_look_operator *op_at(const struct writing *w, uint32_t i)
{
	return &w->look->operators[i];
}

static const char *op_name(const struct writing *w, uint32_t i)
{
	return plain(op_at(w, i)->name);
}

static const char *flow_name(struct writing *w, uint32_t i)
{
	return TEXT(w, "%s -> %s", plain(w->look->flows[i].from), plain(w->look->flows[i].to));
}

static const struct fragi_look_host *host_at(const struct writing *w)
{
	return w->v->host != FRAGI_LOOK_NONE ? &w->look->hosts[w->v->host] : NULL;
}

/* "host detect", or "its process" */
static const char *host_name(struct writing *w)
{
	const struct fragi_look_host *host = host_at(w);

	if (host == NULL || plain(host->name)[0] == '\0')
		return "its process";
	return TEXT(w, "host %s", host->name);
}

/* "18", "29.7", "1500" */
static const char *rate(struct writing *w, uint64_t mhz)
{
	double hz = (double)mhz / 1000;

	return hz >= 100 ? TEXT(w, "%.0f", hz) : TEXT(w, "%.3g", hz);
}

static const char *time_text(struct writing *w, uint64_t ns)
{
	char text[32];

	return TEXT(w, "%s", fragi_format_duration((int64_t)ns, text, sizeof(text)));
}

static uint64_t per_second(const struct writing *w, uint64_t ns)
{
	return fragi_whole((double)ns * 1e9 / (double)w->look->window_ns);
}

static const char *ms_a_second(struct writing *w, uint64_t ns)
{
	return TEXT(w, "%.0f ms a second", (double)per_second(w, ns) / 1e6);
}

static uint64_t op_rate_mhz(const struct writing *w, uint32_t op)
{
	return fragi_whole((double)op_at(w, op)->ticks * 1e12 / (double)w->look->window_ns);
}

static const char *threads(struct writing *w, uint32_t count)
{
	return TEXT(w, "%u thread%s", count, count == 1 ? "" : "s");
}

/* The flow whose messages queue before an operator; NULL: it has none */
static const char *input_name(struct writing *w, uint32_t op)
{
	for (uint32_t i = 0; i < w->look->flow_count; i++)
		if (w->look->flows[i].receiver == op && w->look->flows[i].sender != op)
			return flow_name(w, i);
	return NULL;
}

static const char *tick_text(struct writing *w, uint32_t op)
{
	const struct fragi_look_operator *at = op_at(w, op);
	uint64_t busy = at->use_ns[FRAGI_USE_BUSY];

	if (at->ticks == 0)
		return TEXT(w, "%s and has not ended a tick", ms_a_second(w, busy));
	return TEXT(w, "%s a tick", time_text(w, busy / at->ticks));
}

static const char *operator_clause(struct writing *w, const char *subject)
{
	const struct fragi_verdict *v = w->v;
	const struct fragi_look_host *host = host_at(w);
	const struct fragi_look_operator *op = op_at(w, v->op);
	const char *input = input_name(w, v->op), *tick = tick_text(w, v->op), *budget = "";

	if (op->budget_ns > 0)
		budget = TEXT(w, " (its budget is %s)", time_text(w, op->budget_ns));
	if (v->work == FRAGI_WORK_DISK) {
		w->short_help = "a faster disk or less data would help";
		w->help = "Write to a faster disk, write less (a smaller picture, compression), or "
			  "give the recorder a host of its own.";
	} else if (v->work == FRAGI_WORK_OUTSIDE) {
		w->short_help = "a faster device or less work for it would help";
		w->help = "Look at the load of the GPU or device, at other programs that use it, "
			  "and at calls that wait or sleep.";
	}
	if (v->work != FRAGI_WORK_CPU)
		return TEXT(w, "%s computes %s%s, %.0f %% of it without a CPU (%s)", subject, tick,
			    budget,
			    (double)v->outside_ns * 100 / (double)(op->use_ns[FRAGI_USE_BUSY] + 1),
			    v->work == FRAGI_WORK_DISK ? "it waits for a disk"
						       : "it waits for a GPU, a device or a sleep");
	if (host != NULL && host->threads == 1 && v->host_operators > 1) {
		w->short_help = "2 threads or policy latest would help";
		w->help = TEXT(w,
			       "Write `scheduler: {type: event_based, worker_thread_number: 2}` "
			       "into its fragment, or `policy: latest` to %s if only the newest "
			       "message matters.",
			       input != NULL ? input : "its inputs");
	} else if (input != NULL) {
		w->short_help = "less work a tick, or policy latest, would help";
		w->help =
			TEXT(w,
			     "Make its tick faster (its parameters, a GPU, a faster core), divide "
			     "its work among several operators, or write `policy: latest` to %s if "
			     "only the newest message matters.",
			     input);
	} else {
		w->short_help = "less work a tick, or a lower rate, would help";
		w->help = "Make its tick faster, or ask for a lower rate.";
	}
	return TEXT(w, "%s computes %s%s%s", subject, tick, budget,
		    op->ticks > 0 ? " on 1 thread" : "");
}

static const char *link_clause(struct writing *w)
{
	const struct fragi_look_flow *flow = &w->look->flows[w->v->flow];
	bool crosses = fragi_look_flow_crosses(w->look, w->v->flow);
	const char *name = flow_name(w, w->v->flow), *each = "", *full = "";
	const char *delivered =
		rate(w, fragi_whole((double)flow->delivered * 1e12 / (double)w->look->window_ns));
	double bytes = (double)per_second(w, flow->bytes);

	if (flow->latency.count > 0)
		each = TEXT(w, ", each for %s", time_text(w, flow->latency.p50));
	if (flow->full_ns > 0)
		full = TEXT(w, "; it is full %s", ms_a_second(w, flow->full_ns));
	w->short_help =
		crosses && bytes >= BYTES_MANY
			? "a faster network, smaller messages or a larger capacity would help"
			: "a larger capacity would help";
	w->help = TEXT(w, "Write `capacity: %u` to %s%s.",
		       flow->capacity > 0 ? 4 * flow->capacity : 16, name,
		       crosses ? "; if that changes nothing, the network is full: send less" : "");
	if (!crosses)
		return TEXT(w, "%s holds %u message%s%s and its receiver waits", name,
			    flow->capacity, flow->capacity == 1 ? "" : "s", full);
	return TEXT(w,
		    "the link %s carries %s /s (%.3g MB/s), with at most %u on the way%s%s and its "
		    "receiver waits",
		    name, delivered, bytes / 1e6, flow->capacity, each, full);
}

static const char *cores_clause(struct writing *w)
{
	const struct fragi_look_host *host = host_at(w);
	const char *name = host_name(w), *waits = ms_a_second(w, host->starved_ns);

	if (w->v->is_own) {
		w->short_help = "more cores or fewer threads would help";
		w->help = "Give the host more cores (cpu requirements, pin_cores of its pools), or "
			  "move a fragment to another worker.";
		return TEXT(w, "%s computes with %s on %u core%s: they wait %s for a core", name,
			    threads(w, host->threads), host->cores, host->cores == 1 ? "" : "s",
			    waits);
	}
	w->short_help = "cores of its own would help";
	w->help = TEXT(w,
		       "See with `top` on worker %s which other programs compute, pin its threads "
		       "to cores that nobody else uses, or move the fragment.",
		       host->worker != NULL ? host->worker : "this machine");
	return TEXT(w,
		    "other threads take the cores of %s away: it waits %s for a core and gets %s",
		    name, waits, ms_a_second(w, host->cpu_ns));
}

static const char *threads_clause(struct writing *w, const char *subject)
{
	const struct fragi_look_host *host = host_at(w);
	uint64_t wanted = (w->v->host_busy_ns + w->v->host_thread_ns + w->look->window_ns - 1) /
			  w->look->window_ns;
	uint32_t now = host != NULL ? host->threads : 0;
	const char *waits = ms_a_second(w, op_at(w, w->v->op)->use_ns[FRAGI_USE_THREAD]);

	if (wanted <= now)
		wanted = now + 1;
	if (wanted > w->v->host_operators && w->v->host_operators > now)
		wanted = w->v->host_operators;
	w->short_help = TEXT(w, "%" PRIu64 " threads would help", wanted);
	w->help = TEXT(w,
		       "Write `scheduler: {type: event_based, worker_thread_number: %" PRIu64
		       "}` into its fragment%s, or give it a host of its own.",
		       wanted,
		       host != NULL && host->cores > 0 && host->cores < wanted
			       ? " (its host has fewer cores than that)"
			       : "");
	if (now >= w->v->host_operators) {
		/* Room is made known at the end of a tick. */
		w->short_help = "a larger capacity inside its fragment would help";
		w->help =
			"Write `capacity: 2` to the flows inside its fragment: with 1 a sender and its "
			"receiver take turns, however many threads there are.";
	}
	return TEXT(w, "%s waits %s for a thread: %s has %s for %u operators", subject, waits,
		    host_name(w), threads(w, now), w->v->host_operators);
}

static const char *clock_clause(struct writing *w, const char *subject)
{
	const struct fragi_look_operator *op = op_at(w, w->v->op);

	if (op->period_ns == 0) {
		w->short_help = "a shorter wait of its own would help";
		w->help = "Look at its conditions and at the times that it asks for.";
		return TEXT(w, "%s waits %s for a time or an event that it asked for", subject,
			    ms_a_second(w, op->use_ns[FRAGI_USE_TIME]));
	}
	w->short_help = "a shorter period would help";
	w->help = TEXT(w, "Write a shorter recess_period to the periodic condition of %s.",
		       op_name(w, w->v->op));
	return TEXT(w, "%s ticks every %s (%s /s)", subject, time_text(w, op->period_ns),
		    rate(w, 1000000000000u / op->period_ns));
}

static const char *rule_clause(struct writing *w)
{
	const struct fragi_look_flow *flow = &w->look->flows[w->v->flow];
	enum fragi_drop most = FRAGI_DROP_STALE;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		if (i != FRAGI_DROP_RECEIVER_DONE && i != FRAGI_DROP_STOPPED &&
		    i != FRAGI_DROP_SUPERSEDED && i != FRAGI_DROP_QUEUE_FULL &&
		    flow->dropped[i] > flow->dropped[most])
			most = (enum fragi_drop)i;
	w->short_help = "a look at the timing of its input would help";
	w->help = TEXT(w,
		       "See age, align and deadline of the input in the graph; `fragctl explain %s "
		       "%s` shows how its messages travel.",
		       plain(w->look->application), op_name(w, w->v->op));
	return TEXT(w, "its input refuses them (%s)", fragi_drop_name(most));
}

static const char *suspended_clause(struct writing *w)
{
	const struct fragi_look_host *host = host_at(w);
	const char *because = host != NULL ? plain(host->suspended_because) : "";

	w->short_help = NULL;
	w->help = TEXT(w, "`fragctl events` and `fragctl logs %s` show what happened.",
		       plain(w->look->application));
	return TEXT(w, "%s does not run (%s of the last %s): %s", host_name(w),
		    time_text(w, op_at(w, w->v->op)->use_ns[FRAGI_USE_SUSPENDED]),
		    time_text(w, w->look->window_ns), because);
}

static const char *pool_clause(struct writing *w, const char *subject)
{
	const struct fragi_look_operator *op = op_at(w, w->v->op);
	const char *pool = op->pool != NULL ? op->pool : "its pool";

	w->short_help = "more blocks would help";
	w->help = TEXT(
		w,
		"Write a larger num_blocks to %s, or smaller capacities to the flows behind %s "
		"so that fewer blocks wait in queues.",
		pool, op_name(w, w->v->op));
	return TEXT(w, "%s waits %s for memory of %s", subject,
		    ms_a_second(w, op->use_ns[FRAGI_USE_MEMORY]), pool);
}

static const char *clause(struct writing *w, const char *subject)
{
	switch (w->v->kind) {
	case FRAGI_CAUSE_POOL:
		return pool_clause(w, subject);
	case FRAGI_CAUSE_LINK:
		return link_clause(w);
	case FRAGI_CAUSE_THREADS:
		return threads_clause(w, subject);
	case FRAGI_CAUSE_CORES:
		return cores_clause(w);
	case FRAGI_CAUSE_CLOCK:
		return clock_clause(w, subject);
	case FRAGI_CAUSE_SUSPENDED:
		return suspended_clause(w);
	case FRAGI_CAUSE_RULE:
		return rule_clause(w);
	case FRAGI_CAUSE_LOSS:
		w->help = TEXT(w, "`fragctl events` shows which host or worker was lost.");
		return "they were in flight when a host or a link was lost";
	default:
		return operator_clause(w, subject);
	}
}

static const char *sentence(struct writing *w)
{
	const struct fragi_verdict *v = w->v;
	const struct fragi_symptom *symptom = &v->symptom;
	bool is_bound = symptom->kind == FRAGI_SYMPTOM_BOUND,
	     is_own = v->kind != FRAGI_CAUSE_LINK && v->kind != FRAGI_CAUSE_CORES &&
		      (is_bound || (symptom->flow == FRAGI_LOOK_NONE && symptom->op == v->op));
	const char *subject = is_own ? "it" : op_name(w, v->op), *why = clause(w, subject);
	const char *end = w->short_help != NULL ? TEXT(w, "; %s", w->short_help) : "";

	switch (symptom->kind) {
	case FRAGI_SYMPTOM_SUSPENDED:
		return TEXT(w, "%s", why);
	case FRAGI_SYMPTOM_RATE:
		return TEXT(w, "%s is slow (%s of %s /s)%s %s%s", op_name(w, symptom->op),
			    rate(w, symptom->is_mhz), rate(w, symptom->wanted_mhz),
			    is_own ? ":" : " because", why, end);
	case FRAGI_SYMPTOM_DROPS:
		return TEXT(w, "%s drops %s of %s /s because %s%s", flow_name(w, symptom->flow),
			    rate(w, symptom->is_mhz), rate(w, symptom->wanted_mhz), why, end);
	case FRAGI_SYMPTOM_LOST:
		return TEXT(w, "%s lost %" PRIu64 " messages: %s", flow_name(w, symptom->flow),
			    w->look->flows[symptom->flow].lost, why);
	default:
		return TEXT(w, "nothing is wrong; %s bounds the rate (%s /s): %s",
			    v->kind == FRAGI_CAUSE_LINK ? "a flow" : op_name(w, v->op),
			    rate(w, op_rate_mhz(w, v->op)), why);
	}
}

/* --- the chain --- */

static struct fragi_look_step step_of(struct writing *w, const struct fragi_verdict_step *step)
{
	const struct fragi_look_operator *op = op_at(w, step->op);
	struct fragi_look_step out = {.op = step->op, .flow = FRAGI_LOOK_NONE};
	const char *time = ms_a_second(w, op->use_ns[step->use]), *name = op_name(w, step->op);

	switch (step->use) {
	case FRAGI_USE_ROOM:
		out.flow = op->room_flow;
		out.text = TEXT(w, "%s waits %s for room in %s", name, time,
				flow_name(w, op->room_flow));
		break;
	case FRAGI_USE_INPUT:
		out.flow = op->input_flow;
		out.text = TEXT(w, "%s waits %s for messages of %s", name, time,
				flow_name(w, op->input_flow));
		break;
	case FRAGI_USE_MEMORY:
		out.text = TEXT(w, "%s waits %s for memory of %s", name, time,
				op->pool != NULL ? op->pool : "a pool");
		break;
	case FRAGI_USE_THREAD:
		out.text = TEXT(w, "%s waits %s for a thread", name, time);
		break;
	case FRAGI_USE_TIME:
		out.text =
			TEXT(w, "%s waits %s for a time or an event that it asked for", name, time);
		break;
	default:
		out.text = TEXT(w, "%s computes %s, %s", name, time, tick_text(w, step->op));
		break;
	}
	return out;
}

static struct fragi_look_step symptom_step(struct writing *w)
{
	const struct fragi_symptom *symptom = &w->v->symptom;
	struct fragi_look_step step = {.op = symptom->op, .flow = symptom->flow};

	if (symptom->kind == FRAGI_SYMPTOM_RATE)
		step.text = TEXT(w, "%s ticks %s of %s times a second", op_name(w, symptom->op),
				 rate(w, symptom->is_mhz), rate(w, symptom->wanted_mhz));
	else if (symptom->kind == FRAGI_SYMPTOM_DROPS)
		step.text =
			TEXT(w, "%s drops %s of %s messages a second", flow_name(w, symptom->flow),
			     rate(w, symptom->is_mhz), rate(w, symptom->wanted_mhz));
	else if (symptom->kind == FRAGI_SYMPTOM_LOST)
		step.text = TEXT(w, "%s lost %" PRIu64 " messages", flow_name(w, symptom->flow),
				 w->look->flows[symptom->flow].lost);
	else if (symptom->kind == FRAGI_SYMPTOM_SUSPENDED)
		step.text =
			TEXT(w, "%s is suspended for %s of the last %s", op_name(w, symptom->op),
			     time_text(w, op_at(w, symptom->op)->use_ns[FRAGI_USE_SUSPENDED]),
			     time_text(w, w->look->window_ns));
	return step; /* BOUND: no text */
}

static void write_chain(struct writing *w, struct fragi_cause *out)
{
	const struct fragi_verdict *v = w->v;
	struct fragi_look_step *chain =
		fragi_arena_alloc(w->arena, (STEPS_MAX + 2) * sizeof(*chain));
	uint32_t left_out = v->step_count > STEPS_MAX ? v->step_count - STEPS_MAX : 0;

	if (chain == NULL) {
		w->is_short = true;
		return;
	}
	chain[0] = symptom_step(w);
	out->chain_count = chain[0].text != NULL;
	for (uint32_t i = 0; i < v->step_count; i++) {
		if (left_out > 0 && i == STEPS_MAX / 2) {
			chain[out->chain_count++] = (struct fragi_look_step){
				FRAGI_LOOK_NONE, FRAGI_LOOK_NONE,
				TEXT(w, "and so on, over %u operators more", left_out)};
			i += left_out;
		}
		chain[out->chain_count++] = step_of(w, &v->steps[i]);
	}
	out->chain = chain;
}

int fragi_cause_write(const struct fragi_look *look, const struct fragi_verdict *verdict,
		      struct fragi_arena *arena, struct fragi_cause *out)
{
	struct writing w = {.look = look, .v = verdict, .arena = arena};
	struct fragi_cause made = {.kind = verdict->kind,
				   .op = verdict->op,
				   .flow = verdict->flow,
				   .host = verdict->host};

	if (verdict->kind == FRAGI_CAUSE_UNMEASURED) {
		made.sentence = "nothing was measured yet";
	} else if (verdict->op == FRAGI_LOOK_NONE) {
		made.sentence = "nothing is wrong";
	} else {
		made.sentence = sentence(&w);
		made.help = w.help;
		write_chain(&w, &made);
		if (verdict->symptom.kind == FRAGI_SYMPTOM_BOUND)
			made.kind = FRAGI_CAUSE_NONE;
	}
	if (w.is_short)
		return -ENOMEM;
	*out = made;
	return 0;
}
