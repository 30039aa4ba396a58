// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/*
 * `requirements` of fragments: the amounts that a worker is to have free, how much of them a host
 * may take at most, the MIG instance that it is to have, the labels that a worker is to have, and
 * the fragments that are to run on the same worker (near) or on another one (apart).
 */
static const struct fragi_key keys[] = {
	{"cpu"},          {"cpuLimit"},
	{"gpu"},          {"gpuLimit"},
	{"memory"},       {"memoryLimit"},
	{"gpuMemory"},    {"gpuMemoryLimit"},
	{"sharedMemory"}, {"sharedMemoryLimit"},
	{"gpuThreads"},   {"mig"},
	{"labels"},       {"near"},
	{"apart"},        {"affinity", FRAGI_KEY_UNBUILT},
};

static bool read_amount(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, enum fragi_amount amount, int64_t *out)
{
	const char *text = fragi_read_text(builder, node, subject, node->key->text);
	int r = text != NULL ? fragi_amount_parse(amount, text, out) : 0;

	if (r == -ERANGE)
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" is more than a worker can have; write at most %s",
				    node->key->text, text, fragi_amount_max(amount));
	else if (r < 0)
		fragi_builder_error(builder, node, subject, "%s \"%.80s\" is %s", node->key->text,
				    text, fragi_amount_flaw(amount));
	return text != NULL && r == 0;
}

static void read_amounts(struct fragi_builder *builder, const struct fragi_node *map,
			 const char *subject, enum fragi_amount amount,
			 struct fragi_spec_requirements *out)
{
	const char *name = fragi_amount_name(amount);
	const struct fragi_node *wanted = fragi_node_get(map, name), *limit;
	char key[FRAG_NAME_MAX], text[FRAGI_AMOUNT_TEXT];
	int64_t value;

	snprintf(key, sizeof(key), "%sLimit", name);
	limit = fragi_node_get(map, key);
	if (wanted != NULL && read_amount(builder, wanted, subject, amount, &value)) {
		if (value == 0 && fragi_amount_bound(amount) == FRAGI_BOUND_SHARE)
			fragi_builder_error(
				builder, wanted, subject,
				"%s is 0%%, with which nothing runs; leave it out for no share",
				name);
		out->wanted[amount] = value;
		out->gives_cpu = out->gives_cpu || amount == FRAGI_AMOUNT_CPU;
	}
	if (limit == NULL || !read_amount(builder, limit, subject, amount, &value))
		return;
	if (value == 0)
		fragi_builder_error(builder, limit, subject,
				    "%s is 0, with which nothing runs; leave it out for no limit",
				    key);
	else if (value < out->wanted[amount])
		fragi_builder_error(builder, limit, subject,
				    "%s is less than the %s of %s; give it at least that", key,
				    fragi_amount_text(amount, out->wanted[amount], text), name);
	else
		out->limit[amount] = value;
}

/* Texts that a worker can carry: --label KEY=VALUE. */
static bool is_label_text(const char *text)
{
	size_t length = strlen(text);

	for (const char *c = text; *c != '\0'; c++)
		if ((unsigned char)*c <= ' ' || *c == ',' || (unsigned char)*c == 0x7f)
			return false;
	return length > 0 && length <= FRAG_NAME_MAX;
}

bool fragi_label_is_valid(const char *key, const char *value)
{
	return fragi_name_is_valid(key) && is_label_text(value);
}

static void read_labels(struct fragi_builder *builder, struct fragi_node *map, const char *subject,
			struct fragi_spec_requirements *out)
{
	map = fragi_read_map(builder, map, subject, "labels");
	if (map == NULL)
		return;
	out->labels = fragi_builder_alloc(builder, map->count, sizeof(*out->labels));
	for (struct fragi_node *child = map->first; out->labels != NULL && child != NULL;
	     child = child->next) {
		const char *key = child->key->text;
		const char *value = fragi_read_text(builder, child, subject, "a label");
		bool has_name = fragi_check_name(builder, child->key, subject, "label", key);

		if (value != NULL && !is_label_text(value))
			fragi_builder_error(
				builder, child, subject,
				"label %.63s has the value \"%.80s\"; write 1 to %d characters without spaces and commas",
				key, value, FRAG_NAME_MAX);
		else if (value != NULL && has_name)
			out->labels[out->label_count++] = (struct fragi_spec_label){key, value};
	}
}

/* "g.10gb" behind a number; NULL: it does not follow. */
static const char *after_number(const char *text, const char *unit)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 4 || text[0] == '0' ||
	    strncmp(text + digits, unit, strlen(unit)) != 0)
		return NULL;
	return text + digits + strlen(unit);
}

/* Behind the memory: "+me", "+me.all", "-me". Returns the end of one, or NULL: there is none. */
static const char *after_attribute(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	size_t length;

	if (*text != '+' && *text != '-')
		return NULL;
	do {
		length = strspn(++text, letters);
		text += length;
	} while (length > 0 && *text == '.');
	return length > 0 ? text : NULL;
}

bool fragi_mig_profile_is_valid(const char *profile)
{
	const char *at = after_number(profile, "c."); /* a part of an instance */

	at = after_number(at != NULL ? at : profile, "g.");
	if (at != NULL)
		at = after_number(at, "gb");
	while (at != NULL && *at != '\0')
		at = after_attribute(at);
	return at != NULL && strlen(profile) < FRAGI_MIG_PROFILE_MAX;
}

/* An instance is a GPU of its own: what else is required of GPUs cannot be meant of it. */
static void check_mig(struct fragi_builder *builder, const struct fragi_node *map,
		      const char *subject)
{
	static const char *const others[] = {"gpu", "gpuLimit", "gpuMemory", "gpuThreads"};
	const struct fragi_node *other;

	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++) {
		other = fragi_node_get(map, others[i]);
		if (other != NULL)
			fragi_builder_error(
				builder, other, subject,
				"%s is given beside mig, which gives the fragment an instance instead of a share of GPUs; remove one of the two",
				others[i]);
	}
}

static void read_mig(struct fragi_builder *builder, const struct fragi_node *map,
		     const char *subject, struct fragi_spec_requirements *out)
{
	const struct fragi_node *node = fragi_node_get(map, "mig");
	const char *profile = node != NULL ? fragi_read_text(builder, node, subject, "mig") : NULL;

	if (profile == NULL)
		return;
	if (fragi_mig_profile_is_valid(profile))
		out->mig = node;
	else
		fragi_builder_error(
			builder, node, subject,
			"mig \"%.80s\" is not a profile of MIG; write one as nvidia-smi -L shows it, for example 1g.10gb",
			profile);
	check_mig(builder, map, subject);
}

/* A fragment, or a list of them. Whether there are such fragments is looked at later. */
static void read_fragments(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, const struct fragi_node ***out, size_t *out_count)
{
	const struct fragi_node *one = node;

	if (node == NULL || node->kind == FRAGI_NODE_NULL || node->is_reported)
		return;
	if (node->kind != FRAGI_NODE_SCALAR) {
		node = fragi_read_list(builder, node, subject, node->key->text);
		one = node != NULL ? node->first : NULL;
	}
	*out = fragi_builder_alloc(builder, node != NULL ? node->count + 1 : 1, sizeof(**out));
	for (; *out != NULL && one != NULL; one = one->next) {
		if (fragi_read_name(builder, one, subject, "a fragment") != NULL)
			(*out)[(*out_count)++] = one;
		if (one == node) /* its neighbours are other keys */
			return;
	}
}

void fragi_spec_read_requirements(struct fragi_builder *builder, struct fragi_node *map,
				  const char *fragment, void *section)
{
	struct fragi_spec_requirements *out = section;
	char subject[FRAG_NAME_MAX + 32];

	snprintf(subject, sizeof(subject), "%s.requirements", fragment);
	map = fragi_read_map(builder, map, fragment, "requirements");
	if (map == NULL)
		return;
	fragi_keys_check(builder, map, subject, FRAGI_KEYS(keys));
	out->place = map->key;
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		read_amounts(builder, map, subject, (enum fragi_amount)i, out);
	read_mig(builder, map, subject, out);
	read_labels(builder, fragi_node_get(map, "labels"), subject, out);
	read_fragments(builder, fragi_node_get(map, "near"), subject, &out->near, &out->near_count);
	read_fragments(builder, fragi_node_get(map, "apart"), subject, &out->apart,
		       &out->apart_count);
}

/* Reports a name that no fragment has, or the fragment's own. */
static void check_other(struct fragi_builder *builder, const struct fragi_spec_fragment *own,
			const struct fragi_node *node, const char *word)
{
	const struct fragi_spec *spec = builder->spec;
	const char **names;
	char advice[400];

	if (strcmp(node->text, own->name) == 0) {
		fragi_builder_error(builder, node, own->name,
				    "requirements: %s names the fragment itself; name another one",
				    word);
		return;
	}
	if (fragi_strmap_get(&builder->fragments, node->text) != NULL ||
	    fragi_strmap_get(&builder->excluded, node->text) != NULL)
		return;
	names = fragi_builder_alloc(builder, spec->fragment_count, sizeof(*names));
	for (size_t i = 0; names != NULL && i < spec->fragment_count; i++)
		names[i] = spec->fragments[i].name;
	fragi_builder_error(builder, node, own->name, "requirements: %s: no fragment \"%.63s\"%s",
			    word, node->text,
			    fragi_builder_advise(builder, advice, sizeof(advice), node->text,
						 "fragments", names,
						 names != NULL ? spec->fragment_count : 0));
}

/* The first of those that are to run together with a fragment, directly or over others. */
static size_t leader(size_t *group, size_t i)
{
	while (group[i] != i)
		i = group[i] = group[group[i]];
	return i;
}

int fragi_spec_group(const struct fragi_spec *spec, struct fragi_spec_group *out)
{
	const size_t count = spec->fragment_count;
	size_t *group = fragi_arena_alloc(&out->arena, (count + 1) * sizeof(*group));

	if (group == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		group[i] = i;
		if (fragi_strmap_put(&out->by_name, spec->fragments[i].name, (void *)(i + 1)) ==
		    -ENOMEM)
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		const struct fragi_spec_requirements *own = &spec->fragments[i].requirements;

		for (size_t k = 0; k < own->near_count; k++) {
			size_t other = fragi_spec_group_index(out, own->near[k]->text), a, b;

			if (other == SIZE_MAX)
				continue;
			a = leader(group, i);
			b = leader(group, other);
			group[a > b ? a : b] = a > b ? b : a;
		}
	}
	for (size_t i = 0; i < count; i++)
		group[i] = leader(group, i);
	out->of = group;
	return 0;
}

size_t fragi_spec_group_index(const struct fragi_spec_group *group, const char *fragment)
{
	return (size_t)(uintptr_t)fragi_strmap_get(&group->by_name, fragment) - 1;
}

static bool is_listed(const struct fragi_node **names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i]->text, name) == 0)
			return true;
	return false;
}

static bool labels_agree(const struct fragi_spec_requirements *a,
			 const struct fragi_spec_requirements *b)
{
	for (size_t i = 0; i < a->label_count; i++)
		for (size_t k = 0; k < b->label_count; k++)
			if (strcmp(a->labels[i].key, b->labels[k].key) == 0 &&
			    strcmp(a->labels[i].value, b->labels[k].value) != 0)
				return false;
	return true;
}

static bool keep_apart(const struct fragi_spec_fragment *a, const struct fragi_spec_fragment *b)
{
	return is_listed(a->requirements.apart, a->requirements.apart_count, b->name) ||
	       is_listed(b->requirements.apart, b->requirements.apart_count, a->name);
}

bool fragi_spec_may_meet(const struct fragi_spec *spec, const struct fragi_spec_group *group,
			 size_t a, size_t b)
{
	const size_t first = group->of[a], second = group->of[b];

	if (first == second)
		return true;
	for (size_t i = 0; i < spec->fragment_count; i++)
		for (size_t k = 0; group->of[i] == first && k < spec->fragment_count; k++)
			if (group->of[k] == second &&
			    (keep_apart(&spec->fragments[i], &spec->fragments[k]) ||
			     !labels_agree(&spec->fragments[i].requirements,
					   &spec->fragments[k].requirements)))
				return false;
	return true;
}

void fragi_spec_group_fini(struct fragi_spec_group *group)
{
	fragi_strmap_fini(&group->by_name);
	fragi_arena_fini(&group->arena);
}

static void check_contradictions(struct fragi_builder *builder)
{
	const struct fragi_spec *spec = builder->spec;
	struct fragi_spec_group group = {0};

	builder->no_memory = builder->no_memory || fragi_spec_group(spec, &group) < 0;
	for (size_t i = 0; group.of != NULL && i < spec->fragment_count; i++) {
		const struct fragi_spec_requirements *own = &spec->fragments[i].requirements;

		for (size_t k = 0; k < own->apart_count; k++) {
			size_t other = fragi_spec_group_index(&group, own->apart[k]->text);

			if (other != SIZE_MAX && other != i && group.of[other] == group.of[i])
				fragi_builder_error(
					builder, own->apart[k], spec->fragments[i].name,
					"requirements: it is to run apart from %s, and near says that both run on one worker; remove one of the two",
					own->apart[k]->text);
		}
	}
	fragi_spec_group_fini(&group);
}

/* Fragments of one `host` share its process, whose share is the sum of theirs. */
static void check_shares(struct fragi_builder *builder)
{
	const int64_t all = 100 * (int64_t)FRAGI_AMOUNT_ONE;
	const struct fragi_spec *spec = builder->spec;
	struct fragi_strmap hosts = {0};

	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *own = &spec->fragments[i];
		const int64_t share = own->requirements.wanted[FRAGI_AMOUNT_GPU_THREADS];
		int64_t *sum;

		if (own->host == NULL || share == 0)
			continue;
		sum = fragi_strmap_get(&hosts, own->host);
		if (sum == NULL) {
			sum = fragi_builder_alloc(builder, 1, sizeof(*sum));
			if (sum == NULL)
				break;
			*sum = 0;
			if (fragi_strmap_put(&hosts, own->host, sum) < 0)
				builder->no_memory = true;
		}
		if (*sum <= all && *sum + share > all)
			fragi_builder_error(
				builder, own->requirements.place, own->name,
				"requirements: with its gpuThreads those of the host %s come to more than 100%%, which no worker has; require less, or let each fragment have a host of its own",
				own->host);
		*sum += share;
	}
	fragi_strmap_fini(&hosts);
}

static bool is_within(enum fragi_amount amount, int64_t sum)
{
	return sum <= fragi_amount_clamp(amount, (uint64_t)sum);
}

/* Fragments that are near one another have one worker, with the sum of what they require. */
static void check_sums(struct fragi_builder *builder)
{
	const struct fragi_spec *spec = builder->spec;
	int64_t(*sums)[FRAGI_AMOUNTS] =
		fragi_builder_alloc(builder, spec->fragment_count, sizeof(*sums));
	struct fragi_spec_group group = {0};

	builder->no_memory = builder->no_memory || fragi_spec_group(spec, &group) < 0;
	for (size_t f = 0; sums != NULL && group.of != NULL && f < spec->fragment_count; f++) {
		const struct fragi_spec_fragment *own = &spec->fragments[f];

		for (int i = 0; i < FRAGI_AMOUNTS; i++) {
			const enum fragi_amount amount = (enum fragi_amount)i;
			int64_t *sum = &sums[group.of[f]][i];
			const bool was_within = is_within(amount, *sum);

			*sum += own->requirements.wanted[i];
			if (was_within && !is_within(amount, *sum))
				fragi_builder_error(
					builder, own->requirements.place, own->name,
					"requirements: with its %s those of the fragments that near puts on its worker come to more than %s, which no worker has; require less, or remove near",
					fragi_amount_name(amount), fragi_amount_max(amount));
		}
	}
	fragi_spec_group_fini(&group);
}

/* What a fragment requires of GPUs that are no instances; FRAGI_AMOUNTS: nothing. */
static enum fragi_amount gpu_amount_of(const struct fragi_spec_requirements *own)
{
	static const enum fragi_amount gpus[] = {FRAGI_AMOUNT_GPU, FRAGI_AMOUNT_GPU_MEMORY,
						 FRAGI_AMOUNT_GPU_THREADS};

	for (size_t i = 0; i < FRAG_COUNT_OF(gpus) && own->mig == NULL; i++)
		if (own->wanted[gpus[i]] != 0)
			return gpus[i];
	return FRAGI_AMOUNTS;
}

/* Fragments of one `host` share its process, and that has one instance, and sees no other GPU. */
static void check_instances(struct fragi_builder *builder)
{
	const struct fragi_spec *spec = builder->spec;
	const struct fragi_spec_fragment *first;
	struct fragi_strmap hosts = {0};

	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *own = &spec->fragments[i];

		if (own->requirements.mig == NULL || own->host == NULL)
			continue;
		first = fragi_strmap_get(&hosts, own->host);
		if (first != NULL)
			fragi_builder_error(
				builder, own->requirements.mig, own->name,
				"requirements: mig is given to %s too, which shares the host %s, and a process has one MIG instance; give it once, or let each have a host of its own",
				first->name, own->host);
		else if (fragi_strmap_put(&hosts, own->host, (void *)(uintptr_t)own) < 0)
			builder->no_memory = true;
	}
	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *own = &spec->fragments[i];
		const enum fragi_amount amount = gpu_amount_of(&own->requirements);

		first = own->host != NULL && amount != FRAGI_AMOUNTS
				? fragi_strmap_get(&hosts, own->host)
				: NULL;
		if (first != NULL)
			fragi_builder_error(
				builder, own->requirements.place, own->name,
				"requirements: %s is given, and %s, which shares the host %s, has mig: its process sees no GPU but the MIG instance; remove %s, or let each have a host of its own",
				fragi_amount_name(amount), first->name, own->host,
				fragi_amount_name(amount));
	}
	fragi_strmap_fini(&hosts);
}

void fragi_spec_check_requirements(struct fragi_builder *builder)
{
	const struct fragi_spec *spec = builder->spec;
	bool has_apart = false, has_near = false;

	for (size_t i = 0; i < spec->fragment_count; i++) {
		const struct fragi_spec_requirements *own = &spec->fragments[i].requirements;

		has_apart = has_apart || own->apart_count > 0;
		has_near = has_near || own->near_count > 0;
		for (size_t k = 0; k < own->near_count; k++)
			check_other(builder, &spec->fragments[i], own->near[k], "near");
		for (size_t k = 0; k < own->apart_count; k++)
			check_other(builder, &spec->fragments[i], own->apart[k], "apart");
	}
	if (has_apart)
		check_contradictions(builder);
	if (has_near)
		check_sums(builder);
	check_shares(builder);
	check_instances(builder);
}
