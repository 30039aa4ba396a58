// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

void fragi_builder_init(struct fragi_builder *builder, const struct fragi_spec_source *source,
			struct fragi_spec *spec, struct fragi_diag *diag)
{
	memset(builder, 0, sizeof(*builder));
	builder->source = source;
	builder->spec = spec;
	builder->diag = diag;
	builder->errors_before = diag->count + diag->beyond;
	spec->arena.limit_bytes = FRAGI_SPEC_MEMORY_MAX;
}

void fragi_builder_fini(struct fragi_builder *builder)
{
	fragi_strmap_fini(&builder->arguments);
	fragi_strmap_fini(&builder->excluded);
	fragi_strmap_fini(&builder->fragments);
	fragi_strmap_fini(&builder->composed);
	fragi_strmap_fini(&builder->subgraphs);
	fragi_strmap_fini(&builder->subgraph_names);
	fragi_strmap_fini(&builder->instances);
	fragi_strmap_fini(&builder->operators);
	fragi_strmap_fini(&builder->configs);
	fragi_strmap_fini(&builder->configs_read);
	fragi_strmap_fini(&builder->sets);
	fragi_strmap_fini(&builder->pinned);
}

int fragi_builder_end_part(struct fragi_builder *builder, struct fragi_arena *arena)
{
	struct fragi_spec *scratch = builder->spec;
	int r = builder->no_memory ? -ENOMEM : fragi_builder_failed(builder) ? -EINVAL : 0;

	fragi_builder_fini(builder);
	fragi_diag_fini(&scratch->warnings);
	fragi_diag_fini(&scratch->remarks);
	scratch->arena.limit_bytes = arena->limit_bytes;
	*arena = scratch->arena;
	return r;
}

bool fragi_builder_failed(const struct fragi_builder *builder)
{
	return builder->no_memory ||
	       builder->diag->count + builder->diag->beyond != builder->errors_before;
}

void *fragi_builder_alloc(struct fragi_builder *builder, size_t count, size_t size)
{
	size_t bytes;
	void *memory = NULL;

	if (!__builtin_mul_overflow(count, size, &bytes))
		memory = fragi_arena_alloc(&builder->spec->arena, bytes);
	if (memory == NULL)
		builder->no_memory = true;
	return memory;
}

char *fragi_builder_strdup(struct fragi_builder *builder, const char *text)
{
	char *copy = fragi_arena_strdup(&builder->spec->arena, text);

	if (copy == NULL && text != NULL)
		builder->no_memory = true;
	return copy;
}

char *fragi_builder_trimmed(struct fragi_builder *builder, const char *text, size_t length)
{
	char *copy;

	while (length > 0 && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	copy = fragi_arena_strndup(&builder->spec->arena, text, length);
	if (copy == NULL)
		builder->no_memory = true;
	return copy;
}

char *fragi_builder_path(struct fragi_builder *builder, const char *path)
{
	char *whole = fragi_arena_path(&builder->spec->arena, builder->spec->app_folder, path);

	if (whole == NULL && path != NULL)
		builder->no_memory = true;
	return whole;
}

char *fragi_builder_join(struct fragi_builder *builder, const char *fragment, const char *op)
{
	char *path = fragi_arena_printf(&builder->spec->arena, "%s.%s", fragment, op);

	if (path == NULL)
		builder->no_memory = true;
	return path;
}

void fragi_builder_note(struct fragi_builder *builder, struct fragi_strmap *map, const char *key,
			const void *value)
{
	if (key == NULL || fragi_strmap_put(map, key, (void *)value) == -ENOMEM)
		builder->no_memory = true;
}

const char *fragi_builder_advise(const struct fragi_builder *builder, char *out, size_t size,
				 const char *word, const char *what, const char *const *names,
				 size_t count)
{
	out[0] = '\0';
	return builder->diag->count < FRAGI_DIAG_MAX
		       ? fragi_advise(out, size, word, what, names, count)
		       : out;
}

const char *fragi_builder_advise_keys(const struct fragi_builder *builder, char *out, size_t size,
				      const char *word, const char *what,
				      const struct fragi_node *map)
{
	const char *names[256]; /* names beyond these are not suggested */
	size_t count = 0;

	if (map != NULL && map->kind == FRAGI_NODE_MAP)
		for (const struct fragi_node *child = map->first;
		     child != NULL && count < FRAG_COUNT_OF(names); child = child->next)
			names[count++] = child->key->text;
	return fragi_builder_advise(builder, out, size, word, what, names, count);
}
