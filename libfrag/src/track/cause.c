// SPDX-License-Identifier: Apache-2.0
#include <track/cause.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/units.h>
#include <track/verdict.h>

/*
 * The search starts at a symptom: an operator that ticks less often than promised, or a flow that
 * drops. From there it follows what each operator waits for most: room to the receiver, a message
 * to the sender. It ends at the first operator that waits for no other (Flink's rule), or between
 * two operators that both wait for the same flow. All searches together visit each operator once,
 * so the time is linear.
 *
 * Thresholds are in 1/1000, and above what one odd tick or message changes in a window.
 */
#define MATTERS 100           /* of the window: a wait that is followed, a suspension */
#define RATE_SHORT 100        /* of a promised rate that may be missing */
#define TICKS_SHORT 2         /* that must be missing as well */
#define DROPS_MIN 2           /* messages */
#define DROPS_SHARE 10        /* of the messages sent */
#define IDLE_BEHIND_LINK 200  /* of the window: who waits so long for a flow is not its cause */
#define IDLE_BEHIND_QUEUE 500 /* the same inside a host, where operators take turns */
#define NEAR_TIE 10           /* of the window: a wait that is followed to a busier neighbour */
#define BUSY 500              /* of the window: it may hold up others though it waits */
#define SATURATED 850         /* of the window: by its slowness it keeps memory of pools */
#define STARVED 250           /* of the busy time of a host */
#define STARVED_MIN 50        /* of the window */
#define OUTSIDE 500           /* of the busy time of an operator, without a CPU */

struct host_sums {
	uint64_t busy_ns, thread_ns;
	uint32_t operators;
};

struct search {
	const struct fragi_look *look;
	struct host_sums *hosts;
	uint32_t *first_out, *next_out; /* flows that leave an operator, as lists */
	bool *has_input, *visited, *seen;
	struct fragi_verdict_step *steps;
	uint32_t step_count;
	uint32_t *stack; /* of a search downstream */
	struct fragi_symptom *symptoms;
	size_t symptom_count;
};

static const struct fragi_look_operator *op_at(const struct search *s, uint32_t i)
{
	return &s->look->operators[i];
}

static uint64_t share(const struct search *s, uint64_t ns)
{
	return ns * 1000 / s->look->window_ns;
}

static uint64_t uses(const struct search *s, uint32_t op, enum fragi_use use)
{
	return share(s, op_at(s, op)->use_ns[use]);
}

/* NULL: the table has none */
static const struct fragi_look_host *host_of(const struct search *s, uint32_t op)
{
	uint32_t host = op_at(s, op)->host;

	return host < s->look->host_count ? &s->look->hosts[host] : NULL;
}

/* NULL: no flow of the table, or one whose ends are not in the table */
static const struct fragi_look_flow *flow_at(const struct search *s, uint32_t flow)
{
	const struct fragi_look_flow *at;

	if (flow >= s->look->flow_count)
		return NULL;
	at = &s->look->flows[flow];
	return at->sender < s->look->operator_count && at->receiver < s->look->operator_count
		       ? at
		       : NULL;
}

bool fragi_look_flow_crosses(const struct fragi_look *look, uint32_t flow)
{
	const struct fragi_look_flow *at = &look->flows[flow];

	return look->operators[at->sender].host != look->operators[at->receiver].host;
}

static int prepare(struct search *s, struct fragi_arena *arena)
{
	const struct fragi_look *look = s->look;
	size_t ops = look->operator_count;

	s->hosts = fragi_arena_alloc(arena, (look->host_count + 1) * sizeof(*s->hosts));
	s->first_out = fragi_arena_alloc(arena, ops * sizeof(*s->first_out));
	s->next_out = fragi_arena_alloc(arena, (look->flow_count + 1) * sizeof(*s->next_out));
	s->has_input = fragi_arena_alloc(arena, 3 * ops * sizeof(*s->has_input));
	s->steps = fragi_arena_alloc(arena, ops * sizeof(*s->steps));
	s->stack = fragi_arena_alloc(arena, ops * sizeof(*s->stack));
	s->symptoms = fragi_arena_alloc(arena, (ops + look->flow_count) * sizeof(*s->symptoms));
	if (s->hosts == NULL || s->first_out == NULL || s->next_out == NULL ||
	    s->has_input == NULL || s->steps == NULL || s->stack == NULL || s->symptoms == NULL)
		return -ENOMEM;
	s->visited = s->has_input + ops;
	s->seen = s->visited + ops;
	for (uint32_t i = 0; i < ops; i++) {
		struct host_sums *sums;

		s->first_out[i] = FRAGI_LOOK_NONE;
		if (host_of(s, i) == NULL)
			continue;
		sums = &s->hosts[op_at(s, i)->host];
		sums->busy_ns += op_at(s, i)->use_ns[FRAGI_USE_BUSY];
		sums->thread_ns += op_at(s, i)->use_ns[FRAGI_USE_THREAD];
		sums->operators += uses(s, i, FRAGI_USE_BUSY) >= MATTERS ||
				   uses(s, i, FRAGI_USE_THREAD) >= MATTERS;
	}
	for (uint32_t i = 0; i < look->flow_count; i++) {
		const struct fragi_look_flow *flow = flow_at(s, i);

		if (flow == NULL)
			continue;
		s->has_input[flow->receiver] = true;
		s->next_out[i] = s->first_out[flow->sender];
		s->first_out[flow->sender] = i;
	}
	return 0;
}

/* --- symptoms --- */

static void add(struct search *s, struct fragi_symptom symptom)
{
	s->symptoms[s->symptom_count++] = symptom;
}

/* What its own period promises binds a source alone: others tick when something comes. */
static uint64_t wanted_mhz(const struct search *s, uint32_t i)
{
	const struct fragi_look_operator *op = op_at(s, i);

	if (op->promised_mhz > 0 || op->period_ns == 0 || s->has_input[i])
		return op->promised_mhz;
	/* It does not tick by its own wish, as under another condition. */
	if (uses(s, i, FRAGI_USE_ROOM) < MATTERS && uses(s, i, FRAGI_USE_MEMORY) < MATTERS &&
	    uses(s, i, FRAGI_USE_THREAD) < MATTERS && uses(s, i, FRAGI_USE_BUSY) < BUSY)
		return 0;
	return 1000000000000u / op->period_ns;
}

static void look_at_operator(struct search *s, uint32_t i)
{
	const struct fragi_look_operator *op = op_at(s, i);
	const struct fragi_look_host *host = host_of(s, i);
	uint64_t suspended = op->use_ns[FRAGI_USE_SUSPENDED], lasted_ns;
	struct fragi_symptom symptom = {.kind = FRAGI_SYMPTOM_RATE,
					.op = i,
					.flow = FRAGI_LOOK_NONE,
					.wanted_mhz = wanted_mhz(s, i)};
	double expected, ticks = (double)op->ticks;

	if (op->has_ended)
		return;
	if (share(s, suspended) >= MATTERS && host != NULL && host->suspended_because != NULL) {
		symptom.kind = FRAGI_SYMPTOM_SUSPENDED;
		symptom.per_mille = 10000 + (uint32_t)share(s, suspended);
		add(s, symptom);
		return;
	}
	if (share(s, suspended) >= 500)
		return; /* it has just begun */
	lasted_ns = s->look->window_ns - suspended;
	expected = (double)symptom.wanted_mhz * (double)lasted_ns / 1e12;
	if (ticks * 1000 >= expected * (1000 - RATE_SHORT) || ticks + TICKS_SHORT > expected)
		return;
	symptom.is_mhz = fragi_whole(ticks * 1e12 / (double)lasted_ns);
	symptom.per_mille = (uint32_t)(1000 - ticks * 1000 / expected);
	add(s, symptom);
}

static void look_at_flow(struct search *s, uint32_t i)
{
	const struct fragi_look_flow *flow = flow_at(s, i);
	double to_mhz = 1e12 / (double)s->look->window_ns;
	struct fragi_symptom symptom = {.flow = i};
	uint64_t drops;

	if (flow == NULL)
		return;
	symptom.op = flow->receiver;
	drops = fragi_drops_unwanted(flow->dropped,
				     flow->policy != NULL && strcmp(flow->policy, "latest") == 0);
	symptom.wanted_mhz = fragi_whole((double)flow->sent * to_mhz);
	if (flow->lost > 0) {
		symptom.kind = FRAGI_SYMPTOM_LOST;
		symptom.is_mhz = fragi_whole((double)flow->lost * to_mhz);
		symptom.per_mille = 1000;
		add(s, symptom);
	} else if (drops >= DROPS_MIN && drops * 1000 >= flow->sent * DROPS_SHARE) {
		symptom.kind = FRAGI_SYMPTOM_DROPS;
		symptom.is_mhz = fragi_whole((double)drops * to_mhz);
		symptom.per_mille =
			drops < flow->sent ? (uint32_t)(drops * 1000 / flow->sent) : 1000;
		add(s, symptom);
	}
}

/* The worst first; of equal ones the first in the table. */
static int compare(const void *a, const void *b)
{
	const struct fragi_symptom *x = a, *y = b;

	if (x->per_mille != y->per_mille)
		return x->per_mille > y->per_mille ? -1 : 1;
	if ((x->flow == FRAGI_LOOK_NONE) != (y->flow == FRAGI_LOOK_NONE))
		return x->flow == FRAGI_LOOK_NONE ? -1 : 1;
	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	return x->flow < y->flow ? -1 : x->flow > y->flow;
}

/* What two ticks are of those that were to be in the window. */
static uint64_t chance_of(const struct search *s, const struct fragi_symptom *symptom)
{
	uint64_t wanted = symptom->wanted_mhz * (s->look->window_ns / 1000000) / 1000000;

	return wanted > 0 ? 1000 * TICKS_SHORT / wanted + 1 : 0;
}

/*
 * Operators of one path are short by as much, but for a tick or two that chance adds to one of
 * them. Of those the first in the table is the symptom, so that the next window has the same one.
 */
static void prefer_first(struct search *s)
{
	struct fragi_symptom *all = s->symptoms, first;
	size_t best = 0;

	for (size_t i = 1; i < s->symptom_count; i++)
		if (all[0].kind == FRAGI_SYMPTOM_RATE && all[i].kind == FRAGI_SYMPTOM_RATE &&
		    all[i].op < all[best].op &&
		    all[i].per_mille + chance_of(s, &all[i]) >= all[0].per_mille &&
		    all[i].per_mille + chance_of(s, &all[0]) >= all[0].per_mille)
			best = i;
	if (best == 0)
		return;
	first = all[best];
	memmove(all + 1, all, best * sizeof(*all));
	all[0] = first;
}

/* --- the search --- */

/* The receiver waits for messages of a flow that has no room: what is between them is to blame. */
static bool is_link(const struct search *s, uint32_t f)
{
	const struct fragi_look_flow *flow = flow_at(s, f);
	uint64_t idle = fragi_look_flow_crosses(s->look, f) ? IDLE_BEHIND_LINK : IDLE_BEHIND_QUEUE;

	return op_at(s, flow->receiver)->input_flow == f &&
	       uses(s, flow->receiver, FRAGI_USE_INPUT) >= idle;
}

/*
 * An operator behind this one that is busy nearly all the time, unless an earlier call saw it;
 * FRAGI_LOOK_NONE: none is.
 */
static uint32_t saturated_behind(struct search *s, uint32_t op)
{
	uint32_t count = 0;

	s->seen[op] = true;
	s->stack[count++] = op;
	while (count > 0) {
		uint32_t at = s->stack[--count];

		if (at != op && !op_at(s, at)->has_ended &&
		    uses(s, at, FRAGI_USE_BUSY) >= SATURATED)
			return at;
		for (uint32_t f = s->first_out[at]; f != FRAGI_LOOK_NONE; f = s->next_out[f]) {
			uint32_t to = s->look->flows[f].receiver;

			if (!s->seen[to])
				s->stack[count++] = to;
			s->seen[to] = true;
		}
	}
	return FRAGI_LOOK_NONE;
}

/* Whether the kernel gives its threads too little of the cores, and who has them. */
static bool is_starved(const struct search *s, uint32_t op, struct fragi_verdict *v)
{
	const struct fragi_look_host *host = host_of(s, op);
	uint64_t wanted_ns;

	if (host == NULL || share(s, host->starved_ns) < STARVED_MIN)
		return false;
	wanted_ns = s->hosts[op_at(s, op)->host].busy_ns;
	if (host->starved_ns * 1000 < wanted_ns * STARVED)
		return false;
	v->kind = FRAGI_CAUSE_CORES;
	v->is_own = share(s, host->cpu_ns) >= 900 * (uint64_t)(host->cores > 0 ? host->cores : 1);
	return true;
}

/* For how long its host was busy without a core, and waited for none: for a disk, or a GPU. */
static uint64_t outside_of(const struct fragi_look_host *host, const struct fragi_verdict *v)
{
	uint64_t working;

	if (host == NULL || host->cpu_ns == 0)
		return 0;
	working = host->cpu_ns + host->starved_ns;
	return v->host_busy_ns > working ? v->host_busy_ns - working : 0;
}

/* It is slow by itself: why? */
static void judge_operator(const struct search *s, uint32_t op, struct fragi_verdict *v)
{
	const struct fragi_look_operator *at = op_at(s, op);
	const struct fragi_look_host *host = host_of(s, op);
	uint64_t busy = at->use_ns[FRAGI_USE_BUSY], outside_ns = outside_of(host, v);
	bool waits_for_time = at->use_ns[FRAGI_USE_TIME] > busy;
	bool is_outside = outside_ns > 0 && outside_ns * 1000 >= busy * OUTSIDE;

	/* A period that would suffice is late because of the cores; a wish of its own is not. */
	if ((waits_for_time ? at->period_ns > 0 : !is_outside) && is_starved(s, op, v))
		return;
	v->kind = waits_for_time ? FRAGI_CAUSE_CLOCK : FRAGI_CAUSE_OPERATOR;
	if (!waits_for_time)
		v->outside_ns = outside_ns < busy ? outside_ns : busy;
	if (waits_for_time || !is_outside)
		return;
	v->work = host->io_ns * 2 >= v->outside_ns ? FRAGI_WORK_DISK : FRAGI_WORK_OUTSIDE;
}

/* By its own period it cannot keep the rate that the graph promises. */
static bool ticks_too_seldom(const struct search *s, uint32_t op, const struct fragi_symptom *from)
{
	uint64_t period = op_at(s, op)->period_ns, wanted = op_at(s, op)->promised_mhz;

	if (wanted == 0 && from->kind != FRAGI_SYMPTOM_BOUND && uses(s, op, FRAGI_USE_TIME) >= 500)
		wanted = from->wanted_mhz;
	return (double)period * (double)wanted > 1e12 * 1000 / (1000 - RATE_SHORT);
}

/*
 * What it waits for most, and should be followed. came: the flow by which the search came, which it
 * does not take back. BUSY: it waits for nothing.
 */
static enum fragi_use followed(const struct search *s, uint32_t i, uint32_t came)
{
	static const enum fragi_use waits[] = {FRAGI_USE_ROOM, FRAGI_USE_MEMORY, FRAGI_USE_THREAD,
					       FRAGI_USE_INPUT};
	const struct fragi_look_operator *op = op_at(s, i);
	const struct fragi_look_flow *out = op->room_flow != came ? flow_at(s, op->room_flow)
								  : NULL,
				     *in = op->input_flow != came ? flow_at(s, op->input_flow)
								  : NULL;
	enum fragi_use most = FRAGI_USE_BUSY;

	for (size_t w = 0; w < FRAG_COUNT_OF(waits); w++) {
		enum fragi_use use = waits[w];

		if ((use == FRAGI_USE_ROOM && out == NULL) ||
		    (use == FRAGI_USE_INPUT && in == NULL))
			continue;
		if (uses(s, i, use) >= MATTERS &&
		    (most == FRAGI_USE_BUSY || op->use_ns[use] > op->use_ns[most]))
			most = use;
	}
	if (most != FRAGI_USE_BUSY || uses(s, i, FRAGI_USE_BUSY) < BUSY)
		return most;
	/* Of two that are slow the slower one: the other one waits for it a little. */
	if (out != NULL && uses(s, i, FRAGI_USE_ROOM) >= NEAR_TIE &&
	    op_at(s, out->receiver)->use_ns[FRAGI_USE_BUSY] > op->use_ns[FRAGI_USE_BUSY])
		return FRAGI_USE_ROOM;
	if (in != NULL && uses(s, i, FRAGI_USE_INPUT) >= NEAR_TIE &&
	    op_at(s, in->sender)->use_ns[FRAGI_USE_BUSY] > op->use_ns[FRAGI_USE_BUSY])
		return FRAGI_USE_INPUT;
	return FRAGI_USE_BUSY;
}

/* The busiest operator of this search, which went in a circle. */
static uint32_t busiest(const struct search *s)
{
	uint32_t most = s->steps[0].op;

	for (uint32_t i = 1; i < s->step_count; i++)
		if (op_at(s, s->steps[i].op)->use_ns[FRAGI_USE_BUSY] >
		    op_at(s, most)->use_ns[FRAGI_USE_BUSY])
			most = s->steps[i].op;
	return most;
}

static bool blame(struct search *s, struct fragi_verdict *v, enum fragi_cause_kind kind,
		  uint32_t op, uint32_t flow)
{
	v->op = op;
	v->flow = flow;
	v->host = op_at(s, op)->host;
	v->kind = kind;
	if (host_of(s, op) != NULL) {
		v->host_busy_ns = s->hosts[v->host].busy_ns;
		v->host_thread_ns = s->hosts[v->host].thread_ns;
		v->host_operators = s->hosts[v->host].operators;
	} else {
		v->host = FRAGI_LOOK_NONE;
	}
	if (kind == FRAGI_CAUSE_OPERATOR)
		judge_operator(s, op, v);
	else if (kind == FRAGI_CAUSE_THREADS)
		(void)is_starved(s, op, v);
	v->steps = s->steps;
	v->step_count = s->step_count;
	return true;
}

/* Returns false if nothing is wrong: what feeds the operator has ended, or was searched before. */
static bool follow(struct search *s, struct fragi_verdict *v)
{
	uint32_t op = v->symptom.op, came = FRAGI_LOOK_NONE, behind;

	for (s->step_count = 0;;) {
		const struct fragi_look_operator *at = op_at(s, op);
		enum fragi_use use;

		if (at->has_ended)
			return false;
		if (s->visited[op]) {
			for (uint32_t i = 0; i < s->step_count; i++)
				if (s->steps[i].op == op)
					return blame(s, v, FRAGI_CAUSE_OPERATOR, busiest(s),
						     FRAGI_LOOK_NONE);
			return false;
		}
		s->visited[op] = true;
		use = ticks_too_seldom(s, op, &v->symptom) ? FRAGI_USE_TIME : followed(s, op, came);
		s->steps[s->step_count++] = (struct fragi_verdict_step){op, use};
		switch (use) {
		case FRAGI_USE_ROOM:
			came = at->room_flow;
			if (is_link(s, came))
				return blame(s, v, FRAGI_CAUSE_LINK, op, came);
			op = s->look->flows[came].receiver;
			break;
		case FRAGI_USE_INPUT:
			came = at->input_flow;
			op = s->look->flows[came].sender;
			if (is_link(s, came) && op_at(s, op)->room_flow == came &&
			    uses(s, op, FRAGI_USE_ROOM) >= MATTERS)
				return blame(s, v, FRAGI_CAUSE_LINK, op, came);
			break;
		case FRAGI_USE_MEMORY:
			came = FRAGI_LOOK_NONE;
			behind = saturated_behind(s, op);
			if (behind == FRAGI_LOOK_NONE || s->visited[behind])
				return blame(s, v, FRAGI_CAUSE_POOL, op, FRAGI_LOOK_NONE);
			op = behind;
			break;
		case FRAGI_USE_THREAD:
			return blame(s, v, FRAGI_CAUSE_THREADS, op, FRAGI_LOOK_NONE);
		case FRAGI_USE_TIME:
			return blame(s, v, FRAGI_CAUSE_CLOCK, op, FRAGI_LOOK_NONE);
		default:
			return blame(s, v, FRAGI_CAUSE_OPERATOR, op, FRAGI_LOOK_NONE);
		}
	}
}

/* Messages found no room, or no tick in time; else the rules of an input alone drop them. */
static bool is_of_slowness(const struct fragi_look_flow *flow)
{
	return flow->dropped[FRAGI_DROP_QUEUE_FULL] + flow->dropped[FRAGI_DROP_NO_ROOM] +
		       flow->dropped[FRAGI_DROP_DEADLINE] >
	       0;
}

static bool search_symptom(struct search *s, struct fragi_verdict *v)
{
	uint32_t flow = v->symptom.flow, op = v->symptom.op;

	s->step_count = 0;
	switch (v->symptom.kind) {
	case FRAGI_SYMPTOM_SUSPENDED:
		return blame(s, v, FRAGI_CAUSE_SUSPENDED, op, FRAGI_LOOK_NONE);
	case FRAGI_SYMPTOM_LOST:
		return blame(s, v, FRAGI_CAUSE_LOSS, op, flow);
	case FRAGI_SYMPTOM_DROPS:
		if (op_at(s, op)->has_ended)
			return false;
		if (!is_of_slowness(&s->look->flows[flow]))
			return blame(s, v, FRAGI_CAUSE_RULE, op, flow);
		if (is_link(s, flow))
			return blame(s, v, FRAGI_CAUSE_LINK, s->look->flows[flow].sender, flow);
		break;
	default:
		break;
	}
	return follow(s, v);
}

/* Nothing is wrong; the operator that waits longest for others shows what bounds the rate. */
static bool search_bound(struct search *s, struct fragi_verdict *v)
{
	uint64_t most = 0;

	v->symptom = (struct fragi_symptom){.kind = FRAGI_SYMPTOM_BOUND, .flow = FRAGI_LOOK_NONE};
	for (uint32_t i = 0; i < s->look->operator_count; i++) {
		const struct fragi_look_operator *op = op_at(s, i);
		uint64_t waits = op->use_ns[FRAGI_USE_ROOM] + op->use_ns[FRAGI_USE_MEMORY];

		if (op->has_ended || op->promised_mhz > 0 || op->period_ns > 0 || waits <= most)
			continue;
		most = waits;
		v->symptom.op = i;
	}
	return share(s, most) >= MATTERS && follow(s, v);
}

int fragi_cause_find(const struct fragi_look *look, struct fragi_arena *arena,
		     struct fragi_cause *out)
{
	struct fragi_verdict verdict = {
		.op = FRAGI_LOOK_NONE, .flow = FRAGI_LOOK_NONE, .host = FRAGI_LOOK_NONE};
	struct fragi_arena own = {0};
	struct search s = {.look = look};
	bool found = false;
	int r = 0;

	if (look->window_ns == 0 || look->operator_count == 0) {
		verdict.kind = FRAGI_CAUSE_UNMEASURED;
		return fragi_cause_write(look, &verdict, arena, out);
	}
	r = prepare(&s, &own);
	if (r < 0)
		goto out;
	for (uint32_t i = 0; i < look->operator_count; i++)
		look_at_operator(&s, i);
	for (uint32_t i = 0; i < look->flow_count; i++)
		look_at_flow(&s, i);
	qsort(s.symptoms, s.symptom_count, sizeof(*s.symptoms), compare);
	prefer_first(&s);
	for (size_t i = 0; i < s.symptom_count && !found; i++) {
		verdict.symptom = s.symptoms[i];
		found = search_symptom(&s, &verdict);
	}
	if (!found && s.symptom_count == 0)
		(void)search_bound(&s, &verdict);
	r = fragi_cause_write(look, &verdict, arena, out);
out:
	fragi_arena_fini(&own);
	return r;
}
