// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/placement/mig.h>

#include <stdio.h>
#include <string.h>

#define INSTANCES_MAX 4096

static struct drv_mig_profile *find(struct drv_mig *mig, const char *name, size_t length)
{
	for (size_t i = 0; i < mig->count; i++)
		if (strlen(mig->profiles[i].name) == length &&
		    strncmp(mig->profiles[i].name, name, length) == 0)
			return &mig->profiles[i];
	return NULL;
}

static struct drv_mig_profile *find_or_add(struct drv_mig *mig, const char *name, size_t length)
{
	struct drv_mig_profile *profile = find(mig, name, length);

	if (profile != NULL || length >= FRAGI_MIG_PROFILE_MAX || mig->count == DRV_MIG_MAX)
		return profile;
	profile = &mig->profiles[mig->count++];
	memcpy(profile->name, name, length); /* all of it is zeroed */
	return profile;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A worker may send anything: what is no profile with a number is passed over. */
void drv_mig_offer(struct drv_mig *mig, const char *text)
{
	for (size_t i = 0; i < mig->count; i++)
		mig->profiles[i].has = 0;
	while (*text != '\0') {
		size_t length = strcspn(text, ","), name = strcspn(text, "=,");
		char word[FRAGI_MIG_PROFILE_MAX] = "";
		struct drv_mig_profile *profile = NULL;
		unsigned int count = 0;

		if (name < length && name < sizeof(word)) {
			memcpy(word, text, name);
			if (fragi_mig_profile_is_valid(word) && is_digit(text[name + 1]) &&
			    sscanf(text + name + 1, "%5u", &count) == 1)
				profile = find_or_add(mig, word, name);
		}
		if (profile != NULL)
			profile->has = count < INSTANCES_MAX ? count : INSTANCES_MAX;
		text += length + (text[length] == ',');
	}
}

const struct drv_mig_profile *drv_mig_find(const struct drv_mig *mig, const char *name)
{
	return find((struct drv_mig *)(uintptr_t)mig, name, strlen(name));
}

/* A fragment that runs already, as its worker reports, has one that may not be offered yet. */
void drv_mig_take(struct drv_mig *mig, const char *name, int sign)
{
	struct drv_mig_profile *profile = find_or_add(mig, name, strlen(name));

	if (profile != NULL && (sign > 0 || profile->used > 0))
		profile->used = (uint32_t)((int64_t)profile->used + sign);
}

bool drv_mig_is_free(const struct drv_mig *mig, const char *name)
{
	const struct drv_mig_profile *profile = drv_mig_find(mig, name);

	return profile != NULL && profile->used < profile->has;
}

const char *drv_mig_text(const struct drv_mig *mig, struct fragi_arena *arena)
{
	const char *text = NULL;

	for (size_t i = 0; i < mig->count; i++) {
		const struct drv_mig_profile *one = &mig->profiles[i];

		if (one->has != 0)
			text = fragi_arena_printf(arena, "%s%s%u of %s", text != NULL ? text : "",
						  text != NULL ? ", " : "", one->has, one->name);
	}
	return text;
}
