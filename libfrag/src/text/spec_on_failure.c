// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <text/builder.h>

/*
 * `on_failure` of fragments: what becomes of a host that fails. It is started again as a whole, so
 * the fragments of a host must agree. Those that name no host get one with those that want the
 * same.
 */
#define PERIOD_NS INT64_C(60000000000)
#define BACKOFF_NS INT64_C(100000000)
#define LEASE_NS INT64_C(10000000000)

/* Shorter than some beats, it would end because of a message that is late. */
static void read_lease(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		       void *out)
{
	struct fragi_spec_on_failure *on_failure = out;
	int64_t *lease_ns = &on_failure->lease_ns;

	*lease_ns = on_failure->policy == FRAGI_ON_FAILURE_MIGRATE ? LEASE_NS : 0;
	if (node == NULL)
		return;
	if (on_failure->policy != FRAGI_ON_FAILURE_MIGRATE)
		fragi_builder_error(builder, node, subject,
				    "on_failure lease is for policy migrate only; leave it out");
	else if (fragi_read_duration(builder, node, subject, "on_failure lease", lease_ns) &&
		 *lease_ns != 0 &&
		 (*lease_ns < FRAGI_SPEC_LEASE_MIN_NS || *lease_ns > FRAGI_SPEC_LEASE_MAX_NS))
		fragi_builder_error(builder, node, subject,
				    "on_failure lease is neither 0s nor from 1s to 1h");
}

static const char *const policies[] = {"stop", "restart", "migrate", NULL};

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_on_failure, m)
static const struct fragi_key keys[] = {
	{"policy", FRAGI_KEY_WORD, MEMBER(policy), .words = policies, .what = "on_failure policy"},
	{"intensity", FRAGI_KEY_INTEGER, MEMBER(intensity), .min = 1,
	 .max = FRAGI_SPEC_INTENSITY_MAX, .usual = 3, .what = "on_failure intensity"},
	{"period", FRAGI_KEY_DURATION, MEMBER(period_ns), .usual = PERIOD_NS,
	 .what = "on_failure period"},
	{"backoff", FRAGI_KEY_DURATION, MEMBER(backoff_ns), .usual = BACKOFF_NS,
	 .what = "on_failure backoff"},
	{"lease", .read = read_lease}, /* after the policy */
};

void fragi_spec_read_on_failure(struct fragi_builder *builder, struct fragi_node *map,
				const char *subject, void *out)
{
	struct fragi_spec_on_failure given = {0};

	fragi_keys_default(FRAGI_KEYS(keys), &given);
	if (fragi_section_read(builder, map, subject, "on_failure", FRAGI_KEYS(keys), &given) &&
	    given.policy != FRAGI_ON_FAILURE_STOP)
		*(struct fragi_spec_on_failure *)out = given;
}

bool fragi_spec_same_on_failure(const struct fragi_spec_on_failure *a,
				const struct fragi_spec_on_failure *b)
{
	return a->policy == b->policy && a->intensity == b->intensity &&
	       a->period_ns == b->period_ns && a->backoff_ns == b->backoff_ns &&
	       a->lease_ns == b->lease_ns;
}

const char *fragi_spec_python_module(const struct fragi_spec_fragment *fragment)
{
	static const char suffix[] = ".py";
	const char *library;
	size_t length;

	for (size_t i = 0; i < fragment->extension_count; i++) {
		library = fragment->extensions[i].library;
		length = strlen(library);
		if (length >= sizeof(suffix) &&
		    strcmp(library + length - (sizeof(suffix) - 1), suffix) == 0)
			return library;
	}
	return NULL;
}

bool fragi_spec_share_host(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	if (a->host != NULL && b->host != NULL)
		return strcmp(a->host, b->host) == 0;
	/* One interpreter would run one of them at a time, and a process has one MIG instance. */
	return a->host == b->host && fragi_spec_python_module(a) == NULL &&
	       fragi_spec_python_module(b) == NULL && a->requirements.mig == NULL &&
	       b->requirements.mig == NULL &&
	       fragi_spec_same_on_failure(&a->on_failure, &b->on_failure);
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
