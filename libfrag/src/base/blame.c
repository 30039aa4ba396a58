// SPDX-License-Identifier: Apache-2.0
#include <base/blame.h>

#include <stddef.h>

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Takes up to ns from what is left of a time. Returns how much. */
static uint64_t take(uint64_t *left_ns, uint64_t ns)
{
	ns = least(*left_ns, ns);
	*left_ns -= ns;
	return ns;
}

static struct fragi_blame_part *smallest(struct fragi_blame_parts *parts)
{
	struct fragi_blame_part *part = &parts->parts[0];

	for (uint32_t i = 1; i < parts->count; i++)
		if (parts->parts[i].ns < part->ns)
			part = &parts->parts[i];
	return part;
}

/* ns: not 0 */
static void put(struct fragi_blame_parts *parts, uint32_t at, enum fragi_blame_cause cause,
		uint64_t ns)
{
	const struct fragi_blame_part new = {(uint16_t)at, (uint16_t)cause, ns};
	struct fragi_blame_part *other;

	for (uint32_t i = 0; i < parts->count; i++)
		if (parts->parts[i].at == at && parts->parts[i].cause == cause) {
			parts->parts[i].ns += ns;
			return;
		}
	if (parts->count < FRAGI_BLAME_PARTS_MAX) {
		parts->parts[parts->count++] = new;
		return;
	}
	other = smallest(parts);
	if (other->ns >= ns) {
		parts->rest_ns += ns;
		return;
	}
	parts->rest_ns += other->ns;
	*other = new;
}

/* Most of what is added to a part is nothing. */
static inline void add(struct fragi_blame_parts *parts, uint32_t at, enum fragi_blame_cause cause,
		       uint64_t ns)
{
	if (ns > 0)
		put(parts, at, cause, ns);
}

void fragi_blame_add(struct fragi_blame_parts *parts, uint32_t at, enum fragi_blame_cause cause,
		     uint64_t ns)
{
	add(parts, at, cause, ns);
}

void fragi_blame_way(struct fragi_blame_parts *parts, const struct fragi_blame_way *way)
{
	uint64_t queued = way->took_ns, arrived = take(&queued, way->arrived_ns);
	uint64_t held = take(&arrived, way->held_ns);
	uint64_t unstarted = take(&queued, way->unstarted_ns), busy = take(&queued, way->busy_ns);
	uint64_t idle = queued;
	uint64_t away = least(way->away_ns, way->room_ns), room = way->room_ns - away;

	add(parts, way->at, FRAGI_BLAME_NETWORK, arrived);
	add(parts, way->at, FRAGI_BLAME_RESTART, take(&held, way->restart_ns) + unstarted);
	/* The sender's GPU writes what the operator before has emitted. */
	add(parts, way->at - 1u, FRAGI_BLAME_GPU, take(&held, way->gpu_ns));
	add(parts, way->at, FRAGI_BLAME_WINDOW, held);
	add(parts, way->at, FRAGI_BLAME_PREEMPTED, take(&busy, way->denied_ns));
	add(parts, way->at, FRAGI_BLAME_POOL, take(&idle, way->pool_ns));
	/* The room that it waits for is in the flow behind it, as is the host that is not there. */
	add(parts, way->at + 1u, FRAGI_BLAME_RESTART, take(&idle, away));
	add(parts, way->at + 1u, FRAGI_BLAME_WINDOW, take(&idle, room));
	/* Before threads: one that the kernel keeps waiting takes no operator either. */
	add(parts, way->at, FRAGI_BLAME_PREEMPTED, take(&idle, way->starved_ns));
	add(parts, way->at, FRAGI_BLAME_THREAD, take(&idle, way->thread_ns));
	add(parts, way->at, FRAGI_BLAME_RESTART, take(&idle, way->suspended_ns));
	add(parts, way->at, FRAGI_BLAME_QUEUE, busy + idle);
}

void fragi_blame_stay(struct fragi_blame_parts *parts, const struct fragi_blame_stay *stay)
{
	uint64_t computed = stay->took_ns;

	add(parts, stay->at, FRAGI_BLAME_GPU, take(&computed, stay->gpu_ns));
	add(parts, stay->at, FRAGI_BLAME_PREEMPTED, take(&computed, stay->preempted_ns));
	add(parts, stay->at, FRAGI_BLAME_COMPUTE, computed);
}

uint64_t fragi_blame_sum(const struct fragi_blame_parts *parts)
{
	uint64_t sum = parts->rest_ns;

	for (uint32_t i = 0; i < parts->count; i++)
		sum += parts->parts[i].ns;
	return sum;
}

/* Parts may come from another host, which may say anything. */
static uint64_t *usual_of(const struct fragi_blame_usual *usual,
			  const struct fragi_blame_part *part)
{
	return part->at < usual->places
		       ? &usual->ns[(size_t)part->at * FRAGI_BLAME_CAUSES + part->cause]
		       : NULL;
}

void fragi_blame_learn(struct fragi_blame_usual *usual, const struct fragi_blame_parts *parts)
{
	usual->messages++;
	for (uint32_t i = 0; i < parts->count; i++) {
		uint64_t *ns = usual_of(usual, &parts->parts[i]);

		if (ns != NULL)
			*ns += parts->parts[i].ns;
	}
}

struct fragi_blame_part fragi_blame(const struct fragi_blame_parts *parts,
				    const struct fragi_blame_usual *usual, uint64_t late_ns,
				    uint64_t error_ns)
{
	struct fragi_blame_part worst = {0, FRAGI_BLAME_CLOCK, error_ns}, largest = worst;
	uint64_t most = 0;

	if (error_ns != 0 && late_ns <= error_ns)
		return worst;
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct fragi_blame_part *part = &parts->parts[i];
		const uint64_t *ns = usual_of(usual, part);
		uint64_t mean = ns != NULL && usual->messages > 0 ? *ns / usual->messages : 0;

		if (i == 0 || part->ns > largest.ns)
			largest = *part;
		if (part->ns > mean && part->ns - mean > most) {
			most = part->ns - mean;
			worst = *part;
		}
	}
	return most > 0 ? worst : largest;
}

static const struct {
	const char *name, *text;
} causes[] = {
#define CAUSE(NAME, name, text, what) {#name, text},
	FRAGI_BLAME_LIST(CAUSE)
#undef CAUSE
};

const char *fragi_blame_name(enum fragi_blame_cause cause)
{
	return causes[cause].name;
}

const char *fragi_blame_text(enum fragi_blame_cause cause)
{
	return causes[cause].text;
}
