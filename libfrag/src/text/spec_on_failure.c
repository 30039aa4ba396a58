// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <text/builder.h>

/*
 * `on_failure` of fragments: what becomes of a host that fails. It is started again as a whole, so
 * the fragments of a host must agree. Those that name no host get one with those that want the
 * same.
 */
#define INTENSITY 3
#define PERIOD_NS INT64_C(60000000000)
#define BACKOFF_NS INT64_C(100000000)
#define LEASE_NS INT64_C(10000000000)

/* Shorter than some beats, it would end because of a message that is late. */
static void read_lease(struct fragi_builder *builder, const struct fragi_node *map,
		       const char *subject, struct fragi_spec_on_failure *out)
{
	const struct fragi_node *node = fragi_node_get(map, "lease");

	out->lease_ns = LEASE_NS;
	if (node == NULL)
		return;
	if (out->policy != FRAGI_ON_FAILURE_MIGRATE)
		fragi_builder_error(builder, node, subject,
				    "on_failure lease is for policy migrate only; leave it out");
	else if (fragi_read_duration(builder, node, subject, "on_failure lease", &out->lease_ns) &&
		 out->lease_ns != 0 &&
		 (out->lease_ns < FRAGI_SPEC_LEASE_MIN_NS ||
		  out->lease_ns > FRAGI_SPEC_LEASE_MAX_NS))
		fragi_builder_error(builder, node, subject,
				    "on_failure lease is neither 0s nor from 1s to 1h");
}

static void read_restart(struct fragi_builder *builder, const struct fragi_node *map,
			 const char *subject, enum fragi_failure_policy policy,
			 struct fragi_spec_on_failure *out)
{
	int64_t number = INTENSITY;

	*out = (struct fragi_spec_on_failure){
		.policy = policy,
		.period_ns = PERIOD_NS,
		.backoff_ns = BACKOFF_NS,
	};
	fragi_read_integer(builder, fragi_node_get(map, "intensity"), subject,
			   "on_failure intensity", 1, FRAGI_SPEC_INTENSITY_MAX, &number);
	out->intensity = (uint32_t)number;
	fragi_read_duration(builder, fragi_node_get(map, "period"), subject, "on_failure period",
			    &out->period_ns);
	fragi_read_duration(builder, fragi_node_get(map, "backoff"), subject, "on_failure backoff",
			    &out->backoff_ns);
	read_lease(builder, map, subject, out);
	if (policy != FRAGI_ON_FAILURE_MIGRATE)
		out->lease_ns = 0;
}

void fragi_spec_read_on_failure(struct fragi_builder *builder, struct fragi_node *map,
				const char *subject, struct fragi_spec_on_failure *out)
{
	static const struct fragi_field fields[] = {{"policy", false},
						    {"intensity", false},
						    {"period", false},
						    {"backoff", false},
						    {"lease", false}};
	static const char *const words[] = {"stop", "restart", "migrate"};
	static const enum fragi_failure_policy policies[] = {
		FRAGI_ON_FAILURE_STOP, FRAGI_ON_FAILURE_RESTART, FRAGI_ON_FAILURE_MIGRATE};
	struct fragi_spec_on_failure given;
	const struct fragi_node *policy;
	int i;

	map = fragi_read_map(builder, map, subject, "on_failure");
	if (map == NULL)
		return;
	fragi_fields_check(builder, map, subject, fields, FRAG_COUNT_OF(fields));
	policy = fragi_node_get(map, "policy");
	i = fragi_read_word(builder, policy, subject, "on_failure policy", words,
			    FRAG_COUNT_OF(words));
	read_restart(builder, map, subject, i > 0 ? policies[i] : FRAGI_ON_FAILURE_STOP, &given);
	if (i > 0)
		*out = given;
}

bool fragi_spec_same_on_failure(const struct fragi_spec_on_failure *a,
				const struct fragi_spec_on_failure *b)
{
	return a->policy == b->policy && a->intensity == b->intensity &&
	       a->period_ns == b->period_ns && a->backoff_ns == b->backoff_ns &&
	       a->lease_ns == b->lease_ns;
}

bool fragi_spec_share_host(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	if (a->host != NULL && b->host != NULL)
		return strcmp(a->host, b->host) == 0;
	return a->host == b->host && fragi_spec_same_on_failure(&a->on_failure, &b->on_failure);
}

static const struct fragi_spec_fragment *fragment_named(const struct fragi_spec *spec,
							const char *name)
{
	for (size_t i = 0; name != NULL && i < spec->fragment_count; i++)
		if (strcmp(spec->fragments[i].name, name) == 0)
			return &spec->fragments[i];
	return NULL;
}

/* Readers have mapped the memory of a writer that is gone. */
static void check_variables(struct fragi_builder *builder)
{
	const struct fragi_spec *spec = builder->spec;

	for (size_t i = 0; i < spec->variable_count; i++) {
		const struct fragi_spec_variable *variable = &spec->variables[i];
		const struct fragi_spec_fragment *writer =
			fragment_named(spec, variable->writer.fragment);
		bool leaves = false;

		for (size_t k = 0; writer != NULL && k < variable->reader_count; k++)
			leaves = leaves || variable->readers[k].fragment == NULL ||
				 strcmp(variable->readers[k].fragment, writer->name) != 0;
		if (leaves && writer->on_failure.policy != FRAGI_ON_FAILURE_STOP)
			fragi_builder_error(
				builder, variable->place, variable->name,
				"its writer %s is started again when it fails (on_failure), and other fragments would go on to read the old memory; that is not built yet, so let it stop, or let it write to readers in its own fragment",
				writer->name);
	}
}

void fragi_spec_check_hosts(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;
	struct fragi_strmap first = {0};

	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *own = &spec->fragments[i], *other;

		if (own->host == NULL)
			continue;
		other = fragi_strmap_get(&first, own->host);
		if (other == NULL &&
		    fragi_strmap_put(&first, own->host, (void *)(uintptr_t)own) == -ENOMEM)
			builder->no_memory = true;
		if (other != NULL &&
		    !fragi_spec_same_on_failure(&own->on_failure, &other->on_failure))
			fragi_builder_error(
				builder, own->place, own->name,
				"shares host %s with %s, and its on_failure is another one; a host is started again as a whole, so give both the same on_failure, or another host",
				own->host, other->name);
	}
	fragi_strmap_fini(&first);
	check_variables(builder);
}
