// SPDX-License-Identifier: Apache-2.0
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>

#define WORD_MAX 127u
#define ADVICE_NAMES_MAX 24

static unsigned char fold(char c)
{
	return (unsigned char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours,
 * without regard to case. Three rows of the table are enough.
 */
static uint32_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	uint32_t rows[3][WORD_MAX + 1], *above = rows[0], *row = rows[1], *above2 = rows[2],
					*reused;

	for (size_t j = 0; j <= b_length; j++)
		above[j] = (uint32_t)j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = (uint32_t)i;
		for (size_t j = 1; j <= b_length; j++) {
			uint32_t other = fold(a[i - 1]) != fold(b[j - 1]);

			row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + other);
			if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]))
				row[j] = least(row[j], above2[j - 2] + 1);
		}
		reused = above2;
		above2 = above;
		above = row;
		row = reused;
	}
	return above[b_length];
}

#define PART_MIN 5 /* letters: a shorter word is a part of too many names */

const char *fragi_suggest(const char *word, const char *const *candidates, size_t count)
{
	size_t length = strlen(word), other;
	uint32_t limit, d;
	const char *best = NULL;

	if (length > WORD_MAX)
		return NULL;
	limit = (uint32_t)length / 3 + 1; /* one more than the largest distance that is near */
	for (size_t i = 0; i < count; i++) {
		other = candidates[i] != NULL ? strlen(candidates[i]) : WORD_MAX + 1;
		if (other > WORD_MAX || other >= length + limit || length >= other + limit)
			continue;
		d = distance(word, length, candidates[i], other);
		if (d < limit) {
			limit = d;
			best = candidates[i];
		}
	}
	for (size_t i = 0; best == NULL && length >= PART_MIN && i < count; i++)
		if (candidates[i] != NULL && strstr(candidates[i], word) != NULL)
			best = candidates[i];
	return best;
}

bool fragi_same_choice(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0') {
		if (*a == '_')
			a++;
		else if (*b == '_')
			b++;
		else if (fold(*a++) != fold(*b++))
			return false;
	}
	return true;
}

const char *fragi_advise(char *out, size_t size, const char *word, const char *what,
			 const char *const *names, size_t count)
{
	const char *near = fragi_suggest(word, names, count);
	size_t length;

	out[0] = '\0';
	if (near != NULL) {
		snprintf(out, size, "; did you mean \"%.80s\"?", near);
		return out;
	}
	if (count == 0)
		return out;
	length = (size_t)snprintf(out, size, "; %s: ", what);
	for (size_t i = 0; i < count; i++) {
		if (i == ADVICE_NAMES_MAX || length + 80 >= size) {
			snprintf(out + length, size - length, i > 0 ? ", ..." : "...");
			break;
		}
		length += (size_t)snprintf(out + length, size - length, "%s%.64s",
					   i > 0 ? ", " : "", names[i]);
	}
	return out;
}
