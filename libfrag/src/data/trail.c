// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <data/trail.h>

/* Bytes of an entry between the descriptors. */
#define ENTRY_BYTES ((size_t)32)

struct fragi_trail *fragi_trail_create(uint32_t count)
{
	struct fragi_trail *trail;

	if (count <= FRAGI_TRAIL_POOLED) {
		trail = fragi_pool_take(FRAGI_POOL_TRAIL);
	} else {
		trail = fragi_malloc(sizeof(*trail) + count * sizeof(trail->entries[0]));
		if (trail != NULL)
			trail->home.pool = NULL;
	}
	if (trail == NULL)
		return NULL;
	atomic_init(&trail->refs, 1);
	trail->count = count;
	return trail;
}

void fragi_trail_unref(struct fragi_trail *trail)
{
	if (atomic_fetch_sub_explicit(&trail->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (trail->home.pool == NULL)
		fragi_free(trail);
	else
		fragi_pool_give(FRAGI_POOL_TRAIL, &trail->home);
}

/* The stamp of a time of the peer that was read as a time of ours. */
static bool convert(const struct fragi_moment *moment, const struct fragi_timeline *peer,
		    uint64_t *stamp)
{
	struct fragi_time time;

	if (!fragi_timeline_convert(peer, fragi_moment_ns_at(moment, *stamp), &time))
		return false;
	*stamp = fragi_moment_stamp_at(moment, time.ns);
	return true;
}

void fragi_trail_convert_times(struct fragi_trail *trail, const struct fragi_timeline *peer)
{
	const struct fragi_moment moment = fragi_moment_now();

	for (uint32_t i = 0; i < trail->count; i++)
		if (!convert(&moment, peer, &trail->entries[i].begin) ||
		    !convert(&moment, peer, &trail->entries[i].published))
			trail->entries[i].flags |= FRAGI_TRAIL_FOREIGN;
}

static uint32_t travelling(const struct fragi_trail *trail)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < trail->count; i++)
		count += (trail->entries[i].flags & FRAGI_TRAIL_LOCAL) == 0;
	return count < FRAGI_TRAIL_MAX ? count : FRAGI_TRAIL_MAX;
}

bool fragi_trail_travels(const struct fragi_trail *trail)
{
	return travelling(trail) > 0;
}

/* u16 number of entries, then each: four u16, i64 begin, i64 published, u64 slowest_ns. */
void fragi_trail_encode(const struct fragi_trail *trail, struct frag_writer *writer)
{
	const struct fragi_moment moment = fragi_moment_now();
	uint16_t count = (uint16_t)travelling(trail);

	frag_writer_put(writer, &count, sizeof(count));
	for (uint32_t i = 0; i < trail->count && count > 0; i++) {
		const struct fragi_trail_entry *entry = &trail->entries[i];
		const uint16_t head[] = {entry->deadline, entry->at, entry->slowest, entry->flags};

		if ((entry->flags & FRAGI_TRAIL_LOCAL) != 0)
			continue;
		frag_writer_put(writer, head, sizeof(head));
		frag_writer_put_u64(writer, (uint64_t)fragi_moment_ns_at(&moment, entry->begin));
		frag_writer_put_u64(writer,
				    (uint64_t)fragi_moment_ns_at(&moment, entry->published));
		frag_writer_put_u64(writer, entry->slowest_ns);
		count--;
	}
}

static void decode_entry(const uint8_t *bytes, const struct fragi_moment *moment,
			 struct fragi_trail_entry *out)
{
	uint16_t head[4];
	int64_t times[2];

	memcpy(head, bytes, sizeof(head));
	memcpy(times, bytes + sizeof(head), sizeof(times));
	*out = (struct fragi_trail_entry){
		.deadline = head[0],
		.at = head[1],
		.slowest = head[2],
		.flags = head[3],
		.begin = fragi_moment_stamp_at(moment, times[0]),
		.published = fragi_moment_stamp_at(moment, times[1]),
	};
	memcpy(&out->slowest_ns, bytes + sizeof(head) + sizeof(times), sizeof(out->slowest_ns));
}

int fragi_trail_decode(struct frag_reader *reader, struct fragi_trail **out_trail)
{
	const uint8_t *bytes = fragi_reader_skip(reader, sizeof(uint16_t));
	struct fragi_moment moment;
	struct fragi_trail *trail;
	uint16_t count = 0;

	if (bytes != NULL)
		memcpy(&count, bytes, sizeof(count));
	if (count == 0 || count > FRAGI_TRAIL_MAX)
		return -EBADMSG;
	bytes = fragi_reader_skip(reader, count * ENTRY_BYTES);
	if (bytes == NULL)
		return -EBADMSG;
	trail = fragi_trail_create(count);
	if (trail == NULL)
		return -ENOMEM;
	trail->maker = NULL;
	trail->tick = 0;
	moment = fragi_moment_now();
	for (uint32_t i = 0; i < count; i++) {
		decode_entry(bytes + i * ENTRY_BYTES, &moment, &trail->entries[i]);
		if ((trail->entries[i].flags & ~FRAGI_TRAIL_FOREIGN) != 0) {
			fragi_trail_unref(trail);
			return -EBADMSG;
		}
	}
	*out_trail = trail;
	return 0;
}
