// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <graph/clocks.h>
#include <graph/compose.h>

static int choose(struct frag_fragment *fragment, const char *type, const struct frag_arg *args,
		  struct fragi_clock_config *config)
{
	struct fragi_spec_setting *settings;
	struct fragi_diag unseen = {0};
	size_t count;
	int r;

	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (fragment->making->subgraph != NULL)
		return fragi_making_fail(
			fragment, -EINVAL, NULL, NULL,
			"a subgraph chooses a clock; let the composer of the fragment do so");
	if (config->kind != FRAGI_CLOCK_MACHINE)
		return fragi_making_fail(fragment, -EINVAL, NULL, NULL,
					 "a composer chooses a clock twice; remove one");
	r = fragi_making_settings(fragment, fragment->name, args, &settings, &count);
	if (r < 0)
		return r;
	r = fragi_spec_clock_from_settings(
		&fragment->arena, fragment->diag != NULL ? fragment->diag : &unseen, fragment->name,
		type != NULL ? type : "", settings, count, config);
	fragi_diag_fini(&unseen);
	fragi_making_note(fragment, r);
	return r;
}

int frag_fragment_set_clock(struct frag_fragment *fragment, const char *type,
			    const struct frag_arg *args)
{
	return choose(fragment, type, args, &fragment->clock_of_c);
}

int frag_application_set_clock(struct frag_fragment *fragment, const char *type,
			       const struct frag_arg *args)
{
	return choose(fragment, type, args, &fragment->shared_clock_of_c);
}

const struct fragi_clock_config *fragi_clock_own(const struct frag_fragment *fragment)
{
	if (fragment->own != NULL && fragment->own->clock.place != NULL)
		return &fragment->own->clock.config;
	if (fragment->spec != NULL && fragment->spec->clock.place != NULL)
		return NULL;
	return fragment->clock_of_c.kind != FRAGI_CLOCK_MACHINE ? &fragment->clock_of_c : NULL;
}

static bool is_same(const struct fragi_clock_config *a, const struct fragi_clock_config *b)
{
	return a->kind == b->kind && a->offset_s == b->offset_s && a->scale == b->scale &&
	       a->since_epoch == b->since_epoch && a->initial_ns == b->initial_ns;
}

int fragi_clock_shared(const struct fragi_spec *spec, struct frag_fragment *const *fragments,
		       size_t count, struct fragi_diag *diag, struct fragi_clock_config *out_config)
{
	const struct frag_fragment *first = NULL;

	*out_config = spec->clock.config;
	if (spec->clock.place != NULL)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct frag_fragment *fragment = fragments[i];

		if (fragment == NULL || fragment->shared_clock_of_c.kind == FRAGI_CLOCK_MACHINE)
			continue;
		if (first == NULL)
			first = fragment;
		else if (!is_same(&first->shared_clock_of_c, &fragment->shared_clock_of_c))
			return fragi_diag_add(
				diag, -EINVAL, NULL, 0, 0,
				"the composers of fragments %s and %s choose different clocks for the application; let them choose the same, or write clock at the top of the graph",
				first->name, fragment->name);
	}
	if (first != NULL)
		*out_config = first->shared_clock_of_c;
	return 0;
}
