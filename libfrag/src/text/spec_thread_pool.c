// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/builder.h>

/*
 * `thread_pools` of a fragment. Only the form is checked here: which operators there are is known
 * where the fragment is composed (graph/thread_pool.c).
 */
#define SUBJECT_SIZE (2 * FRAG_NAME_MAX + 32)
#define NO_DEADLINE UINT64_MAX /* it is the period */

static void read_member(struct fragi_builder *builder, const struct fragi_node *node,
			const struct fragi_spec_fragment *fragment, const char *subject,
			struct fragi_spec_pool_entry *entry)
{
	const char *name = fragi_read_name(builder, node, subject, "an operator");
	const char *path = name != NULL ? fragi_builder_join(builder, fragment->name, name) : NULL;

	if (path == NULL)
		return;
	if (fragi_strmap_get(&builder->excluded, path) != NULL) {
		fragi_builder_error(
			builder, node, subject,
			"operator %s is excluded by its when; give what names it here the same when",
			name);
		return;
	}
	entry->members[entry->member_count++] = (struct fragi_spec_pool_member){name, node};
}

/* One operator, or a list of them. */
static void read_members(struct fragi_builder *builder, struct fragi_node *node,
			 const struct fragi_spec_fragment *fragment, const char *subject,
			 struct fragi_spec_pool_entry *entry)
{
	bool is_one = node != NULL && node->kind == FRAGI_NODE_SCALAR;
	size_t count = 1;

	if (!is_one) {
		node = fragi_read_list(builder, node, subject, "operators");
		count = node != NULL ? node->count : 0;
	}
	if (count == 0)
		return;
	entry->members = fragi_builder_alloc(builder, count, sizeof(*entry->members));
	if (entry->members == NULL)
		return;
	for (const struct fragi_node *child = is_one ? node : node->first; child != NULL;
	     child = is_one ? NULL : child->next)
		read_member(builder, child, fragment, subject, entry);
}

/* Also by Holoscan's names and numbers. */
static const char *const policies[] = {"fifo",           "rr", "deadline", "SCHED_FIFO", "SCHED_RR",
				       "SCHED_DEADLINE", "1",  "2",        "6",          NULL};

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_pool_entry, m)
#define REALTIME 4 /* sched_policy, and what needs it */
static const struct fragi_key entry_keys[] = {
	{"operators", .missing = "an entry of add names no operators; write operators: [NAME]"},
	{"pin_operator"},
	{"pin_cores"},
	{"when"},
	{"sched_policy", FRAGI_KEY_WORD, MEMBER(realtime.policy), .min = FRAGI_SCHED_FIFO, .max = 3,
	 .words = policies},
	{"sched_priority", FRAGI_KEY_INTEGER, MEMBER(realtime.priority), .min = 1, .max = 99},
	{"sched_runtime", FRAGI_KEY_NANOSECONDS, MEMBER(realtime.runtime_ns)},
	{"sched_deadline", FRAGI_KEY_NANOSECONDS, MEMBER(realtime.deadline_ns)},
	{"sched_period", FRAGI_KEY_NANOSECONDS, MEMBER(realtime.period_ns)},
	{"best_effort", FRAGI_KEY_BOOL, MEMBER(best_effort)},
};

/* Checks how the kernel is to schedule the threads of the entry. errors: before that was read. */
static void check_realtime(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, size_t errors, struct fragi_spec_pool_entry *entry)
{
	const struct fragi_node *policy = fragi_node_get(node, "sched_policy"), *other;
	const char *flaw;

	for (size_t k = REALTIME + 1; policy == NULL && k < FRAG_COUNT_OF(entry_keys); k++) {
		other = fragi_node_get(node, entry_keys[k].name);
		if (other != NULL)
			fragi_builder_error(builder, other->key, subject,
					    "%s needs sched_policy: fifo, rr or deadline",
					    entry_keys[k].name);
	}
	if (entry->realtime.deadline_ns == NO_DEADLINE)
		entry->realtime.deadline_ns = entry->realtime.period_ns;
	if (entry->realtime.policy == FRAGI_SCHED_NONE)
		return;
	flaw = fragi_realtime_flaw(&entry->realtime);
	if (flaw != NULL && builder->diag->count + builder->diag->beyond == errors)
		fragi_builder_error(builder, policy, subject, "%s", flaw);
}

static void read_entry(struct fragi_builder *builder, struct fragi_node *node,
		       const struct fragi_spec_fragment *fragment, const char *subject,
		       struct fragi_spec_pool_entry *entry)
{
	struct fragi_node *cores, *pin;
	size_t errors;

	entry->place = node;
	if (node->kind == FRAGI_NODE_NULL)
		fragi_builder_error(builder, node, subject,
				    "an entry of add is empty; write {operators: [NAME]}");
	node = fragi_read_map(builder, node, subject, "an entry of add");
	if (node == NULL)
		return;
	fragi_keys_check(builder, node, subject, FRAGI_KEYS(entry_keys));
	fragi_keys_read(builder, node, subject, entry_keys, REALTIME, entry);
	read_members(builder, fragi_node_get(node, "operators"), fragment, subject, entry);
	errors = builder->diag->count + builder->diag->beyond;
	entry->realtime.deadline_ns = NO_DEADLINE;
	fragi_keys_read(builder, node, subject, &entry_keys[REALTIME],
			FRAG_COUNT_OF(entry_keys) - REALTIME, entry);
	check_realtime(builder, node, subject, errors, entry);
	pin = fragi_node_get(node, "pin_operator");
	entry->pin_operator = entry->realtime.policy != FRAGI_SCHED_NONE;
	if (fragi_read_bool(builder, pin, subject, "pin_operator", &entry->pin_operator) &&
	    !entry->pin_operator && entry->realtime.policy != FRAGI_SCHED_NONE)
		fragi_builder_error(
			builder, pin, subject,
			"real-time operators have threads of their own; leave pin_operator out");
	cores = fragi_node_get(node, "pin_cores");
	fragi_spec_read_cores(builder, cores, subject, &entry->pin_cores, &entry->pin_core_count);
	if (entry->pin_core_count > 0 && !entry->pin_operator)
		fragi_builder_error(
			builder, cores->key, subject,
			"pin_cores is for operators with a thread of their own; add pin_operator: true");
}

static const struct fragi_key pool_keys[] = {
	{"initial_size", FRAGI_KEY_INTEGER,
	 FRAGI_MEMBER(struct fragi_spec_thread_pool, initial_size), .min = 0,
	 .max = FRAGI_THREADS_MAX, .usual = 1},
	{"add"},
	{"when"},
};

static void read_pool(struct fragi_builder *builder, struct fragi_node *node,
		      const struct fragi_spec_fragment *fragment,
		      struct fragi_spec_thread_pool *pool)
{
	char subject[SUBJECT_SIZE];
	struct fragi_node *list;

	snprintf(subject, sizeof(subject), "%s.thread_pools.%s", fragment->name, pool->name);
	if (!fragi_section_read(builder, node, subject, "a thread pool", FRAGI_KEYS(pool_keys),
				pool))
		return;
	list = fragi_read_list(builder, fragi_node_get(node, "add"), subject, "add");
	if (list == NULL || list->count == 0)
		return;
	pool->entries = fragi_builder_alloc(builder, list->count, sizeof(*pool->entries));
	for (struct fragi_node *child = list->first; pool->entries != NULL && child != NULL;
	     child = child->next)
		read_entry(builder, child, fragment, subject, &pool->entries[pool->entry_count++]);
}

void fragi_spec_read_thread_pools(struct fragi_builder *builder, struct fragi_node *map,
				  const char *subject, void *out)
{
	struct fragi_spec_fragment *fragment = out;
	struct fragi_spec_thread_pool *pool;

	map = fragi_read_map(builder, map, subject, "thread_pools");
	if (map == NULL || map->count == 0)
		return;
	fragment->thread_pools =
		fragi_builder_alloc(builder, map->count, sizeof(*fragment->thread_pools));
	for (struct fragi_node *child = map->first; fragment->thread_pools != NULL && child != NULL;
	     child = child->next) {
		if (!fragi_check_name(builder, child->key, fragment->name, "thread pool",
				      child->key->text))
			continue;
		pool = &fragment->thread_pools[fragment->thread_pool_count++];
		pool->name = child->key->text;
		pool->place = child->key;
		fragi_keys_default(FRAGI_KEYS(pool_keys), pool);
		read_pool(builder, child, fragment, pool);
	}
	if (fragment->scheduler.kind == FRAGI_SCHEDULER_GREEDY)
		fragi_builder_warn(
			builder, map->key, fragment->name,
			"greedy runs all operators on one thread, so thread_pools are ignored; take event_based, or leave them out");
}
