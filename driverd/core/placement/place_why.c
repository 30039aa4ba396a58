// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/placement/place.h>

/* Why workers were not chosen, in words. */

/* Why the worker offers none of the amount, where that is known; else NULL. */
static const char *absent_text(const struct drv_place_other *other)
{
	return other->amount == FRAGI_AMOUNT_GPU_THREADS && other->has == 0
		       ? "it offers no gpuThreads: workerd found no GPU or no MPS of NVIDIA when it started, or is of an older frag; on a node with a GPU start `nvidia-cuda-mps-control -d` before workerd"
		       : NULL;
}

static const char *amount_text(struct fragi_arena *arena, const struct drv_place_other *other)
{
	char wanted[FRAGI_AMOUNT_TEXT], available[FRAGI_AMOUNT_TEXT], has[FRAGI_AMOUNT_TEXT];

	if (absent_text(other) != NULL)
		return absent_text(other);
	return fragi_arena_printf(arena, "%s of %s %s are free, and %s are required",
				  fragi_amount_text(other->amount, other->free, available),
				  fragi_amount_text(other->amount, other->has, has),
				  fragi_amount_name(other->amount),
				  fragi_amount_text(other->amount, other->wanted, wanted));
}

static const char *mig_text(struct fragi_arena *arena, const struct drv_place_other *other)
{
	if (other->has != 0)
		return fragi_arena_printf(arena,
					  "of its %lld MIG instances %s none is free, or too few",
					  (long long)other->has, other->profile);
	return fragi_arena_printf(arena, "it has no MIG instance %s%s%s", other->profile,
				  other->offers != NULL ? ", but " : "",
				  other->offers != NULL ? other->offers : "");
}

const char *drv_place_why(struct fragi_arena *arena, const struct drv_place_other *other)
{
	switch (other->why) {
	case DRV_WHY_NAMED_ELSEWHERE:
		return "another worker names the fragment, and this one does not";
	case DRV_WHY_NAMES_OTHERS:
		return "it takes only the fragments that it names";
	case DRV_WHY_WAITS:
		return "it can run nothing yet";
	case DRV_WHY_DRAINED:
		return "it is drained";
	case DRV_WHY_NO_LEASES:
		return "it is of an older frag, which knows no leases";
	case DRV_WHY_LEFT:
		return "the fragment has just failed there, or was refused";
	case DRV_WHY_OUT_OF_REACH:
		return "the fragments that it exchanges messages with do not reach it over the transports that their flows use";
	case DRV_WHY_LABEL:
		return fragi_arena_printf(arena, "it has no label %s=%s", other->label->key,
					  other->label->value);
	case DRV_WHY_APART:
		return fragi_arena_printf(arena, "%s is there, from which it is to be apart",
					  other->fragment);
	case DRV_WHY_MIG:
		return mig_text(arena, other);
	case DRV_WHY_FULL:
		return "it runs as many hosts as it takes";
	case DRV_WHY_AMOUNT:
		return amount_text(arena, other);
	case DRV_WHY_NEIGHBOURS:
		return "it fits, but fewer neighbours are there";
	case DRV_WHY_LOAD:
		return "it fits, but it has fewer free cores";
	case DRV_WHY_NAME:
		return "it fits as well, but its name comes later";
	}
	return "";
}

const char *drv_place_missing(struct fragi_arena *arena, const char *fragments,
			      const struct drv_place_other *nearest, bool none_has_so_much)
{
	char wanted[FRAGI_AMOUNT_TEXT], has[FRAGI_AMOUNT_TEXT];
	const char *why;

	if (nearest == NULL || nearest->why <= DRV_WHY_NAMES_OTHERS)
		return "no live worker names it, and none takes whatever fits";
	if (none_has_so_much && absent_text(nearest) == NULL)
		return fragi_arena_printf(
			arena, "%s wants %s %s, and no worker has so much; worker %s has %s",
			fragments, fragi_amount_text(nearest->amount, nearest->wanted, wanted),
			fragi_amount_name(nearest->amount), nearest->worker,
			fragi_amount_text(nearest->amount, nearest->has, has));
	if (nearest->why == DRV_WHY_DRAINED)
		return fragi_arena_printf(
			arena,
			"no worker fits %s; worker %s is nearest: it is drained, and takes fragments again by `fragctl drain %s --undo`",
			fragments, nearest->worker, nearest->worker);
	why = drv_place_why(arena, nearest);
	return why != NULL
		       ? fragi_arena_printf(arena, "no worker fits %s; worker %s is nearest: %s",
					    fragments, nearest->worker, why)
		       : NULL;
}
