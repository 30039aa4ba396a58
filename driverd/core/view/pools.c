// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/view/look.h>

#include <string.h>

/* Whether the pool is FRAGMENT.NAME. */
static bool is_named(const struct fragi_look_pool *pool, const char *fragment, const char *name,
		     size_t length)
{
	size_t prefix = strlen(fragment);

	return strncmp(pool->name, fragment, prefix) == 0 && pool->name[prefix] == '.' &&
	       strlen(pool->name + prefix + 1) == length &&
	       strncmp(pool->name + prefix + 1, name, length) == 0;
}

const char *drv_look_emptiest(const struct fragi_look_pool *pools, uint32_t count, uint32_t host,
			      const char *fragment, const char *names)
{
	const char *found = names, *at = names;
	uint64_t longest_ns = 0;

	while (at != NULL && *at != '\0') {
		size_t length = strcspn(at, ",");

		for (uint32_t i = 0; i < count; i++)
			if (pools[i].host == host && pools[i].empty_ns > longest_ns &&
			    is_named(&pools[i], fragment, at, length)) {
				longest_ns = pools[i].empty_ns;
				found = pools[i].name + strlen(fragment) + 1;
			}
		at += length;
		at += strspn(at, ", ");
	}
	return found;
}
