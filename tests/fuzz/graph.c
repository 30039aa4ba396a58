// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <base/alloc.h>
#include <text/spec.h>

/*
 * Texts that a person gives: the graph, then, each behind a byte 0x1e, more of them led by a
 * letter: c a configuration, f a file (its name, a newline, its text), s a --set, a an argument.
 */
#define SEPARATOR 0x1e
#define TEXTS_MAX 16

struct texts {
	char *all[TEXTS_MAX]; /* owned */
	size_t count;
	struct fragi_spec_text configs[TEXTS_MAX], files[TEXTS_MAX];
	const char *sets[TEXTS_MAX], *args[TEXTS_MAX];
	struct fragi_spec_source source;
};

static void take(struct texts *texts, char *text, size_t size)
{
	struct fragi_spec_source *source = &texts->source;
	char *newline;

	switch (size > 0 ? text[0] : 0) {
	case 'c':
		texts->configs[source->config_count++] =
			(struct fragi_spec_text){"more.yaml", text + 1, size - 1};
		break;
	case 'f':
		newline = memchr(text, '\n', size);
		if (newline == NULL)
			break;
		*newline = '\0';
		texts->files[source->file_count++] = (struct fragi_spec_text){
			text + 1, newline + 1, (size_t)(text + size - newline - 1)};
		break;
	case 's':
		texts->sets[source->set_count++] = text + 1;
		break;
	case 'a':
		texts->args[source->arg_count++] = text + 1;
		break;
	default:
		break;
	}
}

static void split(struct texts *texts, const uint8_t *bytes, size_t size)
{
	const uint8_t *end = bytes + size, *stop;
	struct fragi_spec_source *source = &texts->source;
	char *text;

	*source = (struct fragi_spec_source){.configs = texts->configs,
					     .files = texts->files,
					     .sets = texts->sets,
					     .args = texts->args,
					     .app_folder = "/app"};
	for (; bytes <= end && texts->count < TEXTS_MAX; bytes = stop + 1) {
		stop = bytes < end ? memchr(bytes, SEPARATOR, (size_t)(end - bytes)) : NULL;
		if (stop == NULL)
			stop = end;
		text = fuzz_text(bytes, (size_t)(stop - bytes));
		if (texts->count == 0)
			source->graph =
				(struct fragi_spec_text){"app.yaml", text, (size_t)(stop - bytes)};
		else
			take(texts, text, (size_t)(stop - bytes));
		texts->all[texts->count++] = text;
	}
}

/* Amounts are within their bounds, and those that are near one another are in one group. */
static void check_requirements(const struct fragi_spec *spec)
{
	struct fragi_spec_group group = {0};

	fuzz_check(fragi_spec_group(spec, &group) == 0);
	for (size_t f = 0; f < spec->fragment_count; f++) {
		const struct fragi_spec_requirements *own = &spec->fragments[f].requirements;

		fuzz_check(group.of[f] <= f && group.of[group.of[f]] == group.of[f]);
		for (int i = 0; i < FRAGI_AMOUNTS; i++) {
			fuzz_check(own->wanted[i] >= 0 && own->wanted[i] <= FRAGI_AMOUNT_BYTES_MAX);
			fuzz_check(own->limit[i] == 0 || own->limit[i] >= own->wanted[i]);
		}
		for (size_t i = 0; i < own->label_count; i++)
			fuzz_check(fragi_label_is_valid(own->labels[i].key, own->labels[i].value));
		for (size_t i = 0; i < own->near_count; i++) {
			size_t other = fragi_spec_group_index(&group, own->near[i]->text);

			fuzz_check(other == SIZE_MAX || group.of[other] == group.of[f]);
		}
	}
	fragi_spec_group_fini(&group);
}

/* Returns what fragi_spec_parse returns, and the number of fragments. */
static int parse(const struct fragi_spec_source *source, size_t *out_fragments)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	char line[1400];
	int r = fragi_spec_parse(source, &diag, &spec);

	fuzz_check(r == 0 || r == -EINVAL || r == -ENOMEM);
	fuzz_check((r == 0) == (spec != NULL));
	fuzz_check((r == -EINVAL) == (diag.count > 0) || r == -ENOMEM);
	for (size_t i = 0; i < diag.count; i++) {
		fragi_err_line(&diag.items[i], line, sizeof(line));
		fuzz_check(diag.items[i].text[0] != '\0' && diag.items[i].code < 0);
		for (const char *c = line; *c != '\0'; c++)
			fuzz_check((unsigned char)*c >= ' ' && *c != 0x7f);
	}
	if (spec != NULL) {
		(void)fragi_spec_arguments_help(spec);
		(void)fragi_spec_argument(spec, "source");
		*out_fragments = spec->fragment_count;
		check_requirements(spec);
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
	return r;
}

/* Thread pools and what is in them have names and sizes. */
static void check_pools(const struct fragi_spec_fragment *fragment)
{
	for (size_t i = 0; i < fragment->thread_pool_count; i++) {
		const struct fragi_spec_thread_pool *pool = &fragment->thread_pools[i];

		fuzz_check(pool->name != NULL && pool->place != NULL);
		fuzz_check(pool->initial_size <= 1024);
		for (size_t k = 0; k < pool->entry_count; k++)
			for (size_t n = 0; n < pool->entries[k].member_count; n++)
				fuzz_check(pool->entries[k].members[n].op != NULL &&
					   pool->entries[k].members[n].place != NULL);
	}
}

/* What is left of a text with errors has names, and is marked where it is not whole. */
static void parse_partial(const struct fragi_spec_source *source, int expected)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;

	fuzz_check(fragi_spec_parse_partial(source, &diag, &spec) == expected);
	for (size_t i = 0; spec != NULL && i < spec->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment = &spec->fragments[i];

		fuzz_check(fragment->name != NULL);
		for (size_t k = 0; k < fragment->operator_count; k++)
			fuzz_check(fragment->operators[k].name != NULL &&
				   (fragment->operators[k].is_invalid ||
				    fragment->operators[k].type != NULL ||
				    fragment->operators[k].subgraph != NULL ||
				    fragment->is_composed));
		for (size_t k = 0; k < fragment->resource_count; k++)
			fuzz_check(fragment->resources[k].name != NULL);
		check_pools(fragment);
	}
	fragi_spec_destroy(spec);
	fragi_diag_fini(&diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct texts texts = {0};
	struct fragi_source there;
	size_t fragments = 0, fragments_there = 0, packed_size;
	void *packed;
	int r;

	split(&texts, bytes, size);
	r = parse(&texts.source, &fragments);
	if (r == -EINVAL)
		parse_partial(&texts.source, r);
	/* The other process reads the same. */
	fuzz_check(fragi_source_pack(&texts.source, &packed, &packed_size) == 0);
	fuzz_check(fragi_source_unpack(packed, packed_size, &there) == 0);
	fragi_free(packed);
	fuzz_check(parse(&there.source, &fragments_there) == r);
	fuzz_check(fragments == fragments_there);
	fragi_source_fini(&there);
	for (size_t i = 0; i < texts.count; i++)
		free(texts.all[i]);
	return 0;
}
