// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <graph/compose.h>
#include <text/holoscan.h>

struct frag_resource *fragi_resource_find(const struct frag_fragment *fragment, const char *name)
{
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if (strcmp(frag_resource_name(fragment->resources[i]), name) == 0)
			return fragment->resources[i];
	return NULL;
}

static const struct fragi_resource_type *resource_type(struct frag_fragment *fragment,
						       const char *subject, const char *name,
						       const struct fragi_node *place)
{
	const struct fragi_resource_type *type =
		fragi_resource_type_find(fragi_alias(FRAGI_HOLOSCAN_RESOURCE, name));
	const char *names[64];
	size_t count = 0;

	if (type != NULL)
		return type;
	while (count < FRAG_COUNT_OF(names) && (type = fragi_resource_type_at(count)) != NULL)
		names[count++] = type->name;
	fragi_making_refuse_type(fragment, place, subject, FRAGI_HOLOSCAN_RESOURCE, name, names,
				 count);
	return NULL;
}

/* Fills in the parameters of a resource and creates it. */
static struct frag_resource *resource_create(struct frag_fragment *fragment, const char *subject,
					     const char *name,
					     const struct fragi_resource_type *type,
					     const struct fragi_spec_setting *settings,
					     size_t count, const struct fragi_node *place)
{
	struct fragi_param_context context = {
		.arena = &fragment->arena,
		.diag = fragment->diag,
		.subject = subject,
		.place = place,
		.app_folder = fragment->spec != NULL ? fragment->spec->app_folder : NULL};
	void *state =
		fragi_arena_alloc(&fragment->arena, type->state_size > 0 ? type->state_size : 1);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_resource *resource;
	int r;

	if (state == NULL) {
		fragi_making_fail(fragment, -ENOMEM, place, subject, "out of memory");
		return NULL;
	}
	r = fragi_params_fill(&(struct fragi_param_table){type->params, type->param_count,
							  sizeof(struct frag_param)},
			      settings, count, state, &context);
	if (r < 0) {
		fragi_making_note(fragment, r);
		return NULL;
	}
	r = fragi_resource_create(type, name, state, &resource, &err);
	if (r < 0) {
		fragi_making_fail(fragment, r == -ENOMEM ? r : -EINVAL, place, subject, "%s",
				  err.text[0] != '\0' ? err.text : frag_strerror(r));
		return NULL;
	}
	return resource;
}

struct frag_resource *fragi_resource_make(struct frag_fragment *fragment, const char *name,
					  const char *type_name,
					  const struct fragi_spec_setting *settings, size_t count,
					  const struct fragi_node *place)
{
	const char *subject = fragi_arena_printf(&fragment->arena, "%s.%s", fragment->name, name);
	struct fragi_making *making = fragment->making;
	const struct fragi_resource_type *type;
	struct frag_resource *resource = NULL, **resources;

	if (!fragi_name_is_valid(name)) {
		fragi_making_fail(fragment, -EINVAL, place, NULL,
				  "\"%.80s\" is not a valid name of a resource", name);
		return NULL;
	}
	if (fragi_resource_find(fragment, name) != NULL) {
		fragi_making_fail(fragment, -EINVAL, place, NULL, "two resources are called \"%s\"",
				  name);
		return NULL;
	}
	if (subject == NULL) {
		fragi_making_note(fragment, -ENOMEM);
		return NULL;
	}
	type = resource_type(fragment, subject, type_name, place);
	if (type != NULL)
		resource = resource_create(fragment, subject, name, type, settings, count, place);
	if (resource == NULL) {
		fragi_making_note_bad(fragment, &making->bad_resources, name);
		return NULL;
	}
	resources = fragi_making_room(fragment, fragment->resources, fragment->resource_count,
				      &making->resource_capacity, sizeof(struct frag_resource *));
	if (resources == NULL) {
		fragi_resource_unref(resource);
		return NULL;
	}
	fragment->resources = resources;
	fragment->resources[fragment->resource_count++] = resource;
	return resource;
}
