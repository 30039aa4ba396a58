// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <base/units.h>
#include <graph/hint.h>

#define NAMES_SHOWN 24

const char *fragi_hint(const char *word, const char *const *names, size_t count, const char *lead,
		       const char *none, char *out, size_t size)
{
	const char *near = fragi_suggest(word, names, count);
	size_t used = 0, shown = count < NAMES_SHOWN ? count : NAMES_SHOWN;
	int n;

	out[0] = '\0';
	if (near != NULL) {
		snprintf(out, size, "; did you mean \"%s\"?", near);
		return out;
	}
	if (count == 0) {
		if (none != NULL)
			snprintf(out, size, "; %s", none);
		return out;
	}
	for (size_t i = 0; i < shown; i++) {
		n = snprintf(out + used, size - used, "%s%s%s", i == 0 ? "; " : ", ", i == 0 ? lead : "",
			     i == 0 ? " " : "");
		if (n < 0 || (size_t)n >= size - used)
			return out;
		used += (size_t)n;
		n = snprintf(out + used, size - used, "%s%s", names[i],
			     i + 1 == shown && shown < count ? " and others" : "");
		if (n < 0 || (size_t)n >= size - used)
			return out;
		used += (size_t)n;
	}
	return out;
}
