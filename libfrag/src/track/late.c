// SPDX-License-Identifier: Apache-2.0
#include <track/late.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include <base/json.h>

/* Of a text; of more, the sum is printed. An item is as long as two names of operators at most. */
#define SHOWN_MAX 6
#define ITEM_MAX (FRAGI_LATE_PLACE_SIZE + 60)

/* They are counted one behind the other, by the numbers of the causes. */
#define AT(NAME, name, text, what)                                                                 \
	_Static_assert(offsetof(struct late_counters, late_##name) -                               \
				       offsetof(struct late_counters, late_queue) ==               \
			       FRAGI_BLAME_##NAME * sizeof(uint64_t),                              \
		       "a counter of late messages is not where its cause is");
struct late_counters {
	FRAGI_OP_COUNTER_FIELDS;
};
FRAGI_BLAME_LIST(AT)
#undef AT

const uint64_t *fragi_late_of(const uint64_t counters[FRAGI_OP_COUNTERS])
{
	return counters + offsetof(struct late_counters, late_queue) / sizeof(uint64_t);
}

uint64_t fragi_late_sum(const uint64_t late[FRAGI_BLAME_CAUSES])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < FRAGI_BLAME_CAUSES; i++)
		sum += late[i];
	return sum;
}

const char *fragi_late_place(const struct fragi_late_place *place, enum fragi_blame_cause cause,
			     char out[FRAGI_LATE_PLACE_SIZE])
{
	if (fragi_blame_is_edge(cause) && place->from != NULL)
		snprintf(out, FRAGI_LATE_PLACE_SIZE, "%s -> %s", place->from, place->at);
	else
		snprintf(out, FRAGI_LATE_PLACE_SIZE, "%s%s%s", place->at,
			 place->worker != NULL ? " on worker " : "",
			 place->worker != NULL ? place->worker : "");
	return out;
}

/* Causes at places, in one order: those of the first place, ..., those that have none. */
struct counts {
	const uint64_t *late;
	const struct fragi_late_place *places;
	uint32_t count;
};

static uint64_t count_at(const struct counts *of, uint32_t i)
{
	const uint32_t place = i / FRAGI_BLAME_CAUSES, cause = i % FRAGI_BLAME_CAUSES;
	uint64_t elsewhere = of->late[cause];

	if (place < of->count)
		return of->places[place].late[cause];
	for (uint32_t k = 0; k < of->count; k++)
		elsewhere -= of->places[k].late[cause] < elsewhere ? of->places[k].late[cause]
								   : elsewhere;
	return elsewhere;
}

/* The most frequent one behind `last`, which was the one before; the number of them: none is. */
static uint32_t next_of(const struct counts *of, uint32_t last)
{
	const uint32_t end = (of->count + 1) * FRAGI_BLAME_CAUSES;
	const uint64_t below = last < end ? count_at(of, last) : UINT64_MAX;
	uint32_t most = end;
	uint64_t most_count = 0;

	for (uint32_t i = 0; i < end; i++) {
		const uint64_t n = count_at(of, i);

		if (n > most_count && (n < below || (n == below && i > last))) {
			most = i;
			most_count = n;
		}
	}
	return most;
}

const char *fragi_late_text(const uint64_t late[FRAGI_BLAME_CAUSES],
			    const struct fragi_late_place *places, uint32_t count,
			    char out[FRAGI_LATE_TEXT_SIZE])
{
	const struct counts of = {late, places, count};
	const uint32_t end = (count + 1) * FRAGI_BLAME_CAUSES;
	char place[FRAGI_LATE_PLACE_SIZE];
	uint64_t others = 0;
	size_t used = 0;
	int shown = 0;

	out[0] = '\0';
	for (uint32_t i = end; (i = next_of(&of, i)) < end;) {
		const enum fragi_blame_cause cause =
			(enum fragi_blame_cause)(i % FRAGI_BLAME_CAUSES);
		const bool has_place = i / FRAGI_BLAME_CAUSES < count;

		if (shown == SHOWN_MAX || used > FRAGI_LATE_TEXT_SIZE - ITEM_MAX) {
			others += count_at(&of, i);
			continue;
		}
		used += (size_t)snprintf(
			out + used, FRAGI_LATE_TEXT_SIZE - used, "%s%" PRIu64 " %s%s%s",
			shown++ == 0 ? "" : ", ", count_at(&of, i),
			has_place ? fragi_late_place(&places[i / FRAGI_BLAME_CAUSES], cause, place)
				  : "",
			has_place ? " " : "", fragi_blame_text(cause));
	}
	if (others > 0)
		snprintf(out + used, FRAGI_LATE_TEXT_SIZE - used, ", %" PRIu64 " others", others);
	return out;
}

void fragi_late_json(const struct fragi_late_place *places, uint32_t count, FILE *out)
{
	fputc('[', out);
	for (uint32_t i = 0; i < count; i++) {
		const char *between = "";

		fprintf(out, "%s{\"from\": ", i > 0 ? ", " : "");
		fragi_json_text(places[i].from, out);
		fputs(", \"at\": ", out);
		fragi_json_text(places[i].at, out);
		fputs(", \"worker\": ", out);
		fragi_json_text(places[i].worker, out);
		fputs(", \"late\": {", out);
		for (int k = 0; k < FRAGI_BLAME_CAUSES; k++)
			if (places[i].late[k] > 0) {
				fprintf(out, "%s\"%s\": %" PRIu64, between,
					fragi_blame_name((enum fragi_blame_cause)k),
					places[i].late[k]);
				between = ", ";
			}
		fputs("}}", out);
	}
	fputc(']', out);
}
