// SPDX-License-Identifier: Apache-2.0
#include <track/late.h>

#include <inttypes.h>
#include <stdio.h>

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

/* The most frequent cause that was not printed yet; FRAGI_BLAME_CAUSES: there is none. */
static uint32_t next_of(const uint64_t *late, uint32_t printed)
{
	uint32_t most = FRAGI_BLAME_CAUSES;

	for (uint32_t i = 0; i < FRAGI_BLAME_CAUSES; i++)
		if (late[i] > 0 && (printed >> i & 1) == 0 &&
		    (most == FRAGI_BLAME_CAUSES || late[i] > late[most]))
			most = i;
	return most;
}

uint64_t fragi_late_sum(const uint64_t late[FRAGI_BLAME_CAUSES])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < FRAGI_BLAME_CAUSES; i++)
		sum += late[i];
	return sum;
}

const char *fragi_late_text(const uint64_t late[FRAGI_BLAME_CAUSES], char out[FRAGI_LATE_TEXT_SIZE])
{
	uint32_t printed = 0;
	size_t used = 0;

	out[0] = '\0';
	for (uint32_t i; (i = next_of(late, printed)) < FRAGI_BLAME_CAUSES; printed |= 1u << i)
		used += (size_t)snprintf(out + used, FRAGI_LATE_TEXT_SIZE - used,
					 "%s%" PRIu64 " %s", printed == 0 ? "" : ", ", late[i],
					 fragi_blame_text((enum fragi_blame_cause)i));
	return out;
}
