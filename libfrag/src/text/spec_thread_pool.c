// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/builder.h>

/*
 * `thread_pools` of a fragment. Only the form is checked here: which operators there are is known
 * where the fragment is composed (graph/thread_pool.c).
 */
#define SUBJECT_SIZE (2 * FRAG_NAME_MAX + 32)

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

/* A number without a unit is in nanoseconds, as in Holoscan. */
static bool read_time(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		      const char *what, uint64_t *out_ns)
{
	const char *text = fragi_read_text(builder, fragi_node_get(node, what), subject, what);
	int64_t ns = 0;

	if (text == NULL)
		return false;
	if (fragi_parse_duration(text, &ns) < 0) {
		fragi_builder_error(
			builder, fragi_node_get(node, what), subject,
			"%s \"%.80s\" is not a valid duration; write nanoseconds, or for example 10ms",
			what, text);
		fragi_diag_compare(builder->diag, "a duration", text);
		return false;
	}
	*out_ns = (uint64_t)ns;
	return true;
}

/* Reads how the kernel is to schedule the threads of the entry. */
static void read_realtime(struct fragi_builder *builder, struct fragi_node *node,
			  const char *subject, struct fragi_spec_pool_entry *entry)
{
	static const char *const words[] = {"fifo",       "rr",       "deadline",
					    "SCHED_FIFO", "SCHED_RR", "SCHED_DEADLINE"};
	static const char *const others[] = {"sched_priority", "sched_runtime", "sched_deadline",
					     "sched_period", "best_effort"};
	const struct fragi_node *policy = fragi_node_get(node, "sched_policy");
	struct fragi_realtime *own = &entry->realtime;
	size_t errors = builder->diag->count + builder->diag->beyond;
	const char *flaw;
	int64_t priority = 0;
	int i = fragi_read_word(builder, policy, subject, "sched_policy", words,
				FRAG_COUNT_OF(words));

	for (size_t k = 0; policy == NULL && k < FRAG_COUNT_OF(others); k++)
		if (fragi_node_get(node, others[k]) != NULL)
			fragi_builder_error(builder, fragi_node_get(node, others[k])->key, subject,
					    "%s needs sched_policy: fifo, rr or deadline",
					    others[k]);
	fragi_read_integer(builder, fragi_node_get(node, "sched_priority"), subject,
			   "sched_priority", 1, 99, &priority);
	own->priority = (uint32_t)priority;
	read_time(builder, node, subject, "sched_runtime", &own->runtime_ns);
	read_time(builder, node, subject, "sched_period", &own->period_ns);
	if (!read_time(builder, node, subject, "sched_deadline", &own->deadline_ns))
		own->deadline_ns = own->period_ns;
	fragi_read_bool(builder, fragi_node_get(node, "best_effort"), subject, "best_effort",
			&entry->best_effort);
	if (i < 0)
		return;
	own->policy = (enum fragi_sched_policy)(FRAGI_SCHED_FIFO + i % 3);
	flaw = fragi_realtime_flaw(own);
	if (flaw != NULL && builder->diag->count + builder->diag->beyond == errors)
		fragi_builder_error(builder, policy, subject, "%s", flaw);
}

static void read_entry(struct fragi_builder *builder, struct fragi_node *node,
		       const struct fragi_spec_fragment *fragment, const char *subject,
		       struct fragi_spec_pool_entry *entry)
{
	static const struct fragi_field fields[] = {
		{"operators", false},     {"pin_operator", false},   {"pin_cores", false},
		{"when", false},          {"sched_policy", false},   {"sched_priority", false},
		{"sched_runtime", false}, {"sched_deadline", false}, {"sched_period", false},
		{"best_effort", false},
	};
	struct fragi_node *operators, *cores, *pin;

	entry->place = node;
	if (node->kind == FRAGI_NODE_NULL)
		fragi_builder_error(builder, node, subject,
				    "an entry of add is empty; write {operators: [NAME]}");
	node = fragi_read_map(builder, node, subject, "an entry of add");
	if (node == NULL)
		return;
	fragi_fields_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
	operators = fragi_node_get(node, "operators");
	if (operators == NULL)
		fragi_builder_error(builder, node, subject,
				    "an entry of add names no operators; write operators: [NAME]");
	read_members(builder, operators, fragment, subject, entry);
	read_realtime(builder, node, subject, entry);
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

static void read_pool(struct fragi_builder *builder, struct fragi_node *node,
		      const struct fragi_spec_fragment *fragment,
		      struct fragi_spec_thread_pool *pool)
{
	static const struct fragi_field fields[] = {
		{"initial_size", false}, {"add", false}, {"when", false}};
	char subject[SUBJECT_SIZE];
	struct fragi_node *list;
	int64_t size = 1;

	snprintf(subject, sizeof(subject), "%s.thread_pools.%s", fragment->name, pool->name);
	node = fragi_read_map(builder, node, subject, "a thread pool");
	if (node == NULL)
		return;
	fragi_fields_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
	fragi_read_integer(builder, fragi_node_get(node, "initial_size"), subject, "initial_size",
			   1, FRAGI_THREADS_MAX, &size);
	pool->initial_size = (uint32_t)size;
	list = fragi_read_list(builder, fragi_node_get(node, "add"), subject, "add");
	if (list == NULL || list->count == 0)
		return;
	pool->entries = fragi_builder_alloc(builder, list->count, sizeof(*pool->entries));
	for (struct fragi_node *child = list->first; pool->entries != NULL && child != NULL;
	     child = child->next)
		read_entry(builder, child, fragment, subject, &pool->entries[pool->entry_count++]);
}

void fragi_spec_read_thread_pools(struct fragi_builder *builder, struct fragi_node *map,
				  struct fragi_spec_fragment *fragment)
{
	struct fragi_spec_thread_pool *pool;

	map = fragi_read_map(builder, map, fragment->name, "thread_pools");
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
		pool->initial_size = 1;
		read_pool(builder, child, fragment, pool);
	}
	if (fragment->scheduler.kind == FRAGI_SCHEDULER_GREEDY)
		fragi_builder_warn(
			builder, map->key, fragment->name,
			"greedy runs all operators on one thread, so thread_pools are ignored; take event_based, or leave them out");
}
