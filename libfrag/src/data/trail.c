// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <data/trail.h>

/* Bytes between the descriptors: of the head, of an entry without its parts, of a part. */
#define HEAD_BYTES ((size_t)2)
#define ENTRY_BYTES ((size_t)50)
#define PART_BYTES ((size_t)12)
/* Always set in a trail that travels: hosts that know no parts and places refuse it. */
#define HAS_PARTS 12u

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
		    uint64_t *stamp, uint64_t *out_error_ns)
{
	struct fragi_time time;

	if (!fragi_timeline_convert(peer, fragi_moment_ns_at(moment, *stamp), &time))
		return false;
	*stamp = fragi_moment_stamp_at(moment, time.ns);
	*out_error_ns = (uint64_t)time.error_ns;
	return true;
}

void fragi_trail_convert_times(struct fragi_trail *trail, const struct fragi_timeline *peer)
{
	const struct fragi_moment moment = fragi_moment_now();

	for (uint32_t i = 0; i < trail->count; i++) {
		struct fragi_trail_entry *entry = &trail->entries[i];
		uint64_t error_ns = 0, of_begin_ns = 0;

		if (!convert(&moment, peer, &entry->published, &error_ns) ||
		    !convert(&moment, peer, &entry->begin, &of_begin_ns))
			entry->flags |= FRAGI_TRAIL_FOREIGN;
		error_ns = error_ns > of_begin_ns ? error_ns : of_begin_ns;
		if (__builtin_add_overflow(entry->error_ns, error_ns, &entry->error_ns))
			entry->error_ns = UINT64_MAX;
	}
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

/* u8 how many, then each: u16 to, u8 length of the name, which follows */
static void encode_places(const struct fragi_trail_places *places, struct frag_writer *writer)
{
	const uint8_t count = (uint8_t)places->count;

	frag_writer_put(writer, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		const char *name = fragi_trail_worker_name(places->items[i].worker);
		const uint8_t size = name != NULL ? (uint8_t)strlen(name) : 0;

		frag_writer_put(writer, &places->items[i].to, sizeof(places->items[i].to));
		frag_writer_put(writer, &size, sizeof(size));
		frag_writer_put(writer, name, size);
	}
}

static void encode_entry(const struct fragi_trail_entry *entry, const struct fragi_moment *moment,
			 struct frag_writer *writer)
{
	const struct fragi_blame_parts *parts = &entry->parts;
	const uint16_t head[] = {entry->deadline, entry->at, entry->slowest,
				 entry->flags | HAS_PARTS},
		       count = (uint16_t)parts->count;

	frag_writer_put(writer, head, sizeof(head));
	frag_writer_put_u64(writer, (uint64_t)fragi_moment_ns_at(moment, entry->begin));
	frag_writer_put_u64(writer, (uint64_t)fragi_moment_ns_at(moment, entry->published));
	frag_writer_put_u64(writer, entry->slowest_ns);
	frag_writer_put_u64(writer, entry->error_ns);
	frag_writer_put_u64(writer, parts->rest_ns);
	frag_writer_put(writer, &count, sizeof(count));
	for (uint32_t i = 0; i < count; i++) {
		const uint16_t place[] = {parts->parts[i].at, parts->parts[i].cause};

		frag_writer_put(writer, place, sizeof(place));
		frag_writer_put_u64(writer, parts->parts[i].ns);
	}
	encode_places(&entry->places, writer);
}

/*
 * u16 number of entries, then each: four u16, i64 begin, i64 published, u64 slowest_ns,
 * u64 error_ns, u64 rest_ns, u16 number of parts, then each: u16 at, u16 cause, u64 ns; then the
 * places.
 */
void fragi_trail_encode(const struct fragi_trail *trail, struct frag_writer *writer)
{
	const struct fragi_moment moment = fragi_moment_now();
	uint16_t count = (uint16_t)travelling(trail);

	frag_writer_put(writer, &count, sizeof(count));
	for (uint32_t i = 0; i < trail->count && count > 0; i++) {
		if ((trail->entries[i].flags & FRAGI_TRAIL_LOCAL) != 0)
			continue;
		encode_entry(&trail->entries[i], &moment, writer);
		count--;
	}
}

static bool decode_parts(struct frag_reader *reader, uint16_t count, struct fragi_blame_parts *out)
{
	const uint8_t *bytes = fragi_reader_skip(reader, count * PART_BYTES);
	uint16_t place[2];

	if (count > FRAGI_BLAME_PARTS_MAX || bytes == NULL)
		return false;
	for (out->count = 0; out->count < count; out->count++, bytes += PART_BYTES) {
		struct fragi_blame_part *part = &out->parts[out->count];

		memcpy(place, bytes, sizeof(place));
		memcpy(&part->ns, bytes + sizeof(place), sizeof(part->ns));
		part->at = place[0];
		part->cause = place[1];
		if (part->cause >= FRAGI_BLAME_CAUSES)
			return false;
	}
	return true;
}

static bool decode_places(struct frag_reader *reader, struct fragi_trail_places *out)
{
	uint8_t count, size;
	const char *name;

	if (frag_reader_get(reader, &count, sizeof(count)) < 0 || count > FRAGI_TRAIL_PLACES_MAX)
		return false;
	for (out->count = 0; out->count < count; out->count++) {
		struct fragi_trail_place *place = &out->items[out->count];

		if (frag_reader_get(reader, &place->to, sizeof(place->to)) < 0 ||
		    frag_reader_get(reader, &size, sizeof(size)) < 0)
			return false;
		name = (const char *)fragi_reader_skip(reader, size);
		if (name == NULL)
			return false;
		place->worker = fragi_trail_worker(name, size);
	}
	return true; /* a name that cannot be one is that of no worker */
}

static bool decode_entry(struct frag_reader *reader, const struct fragi_moment *moment,
			 struct fragi_trail_entry *out)
{
	const uint8_t *bytes = fragi_reader_skip(reader, ENTRY_BYTES);
	uint16_t head[4], part_count;
	int64_t times[2];
	uint64_t rest[3];

	if (bytes == NULL)
		return false;
	memcpy(head, bytes, sizeof(head));
	memcpy(times, bytes + sizeof(head), sizeof(times));
	memcpy(rest, bytes + sizeof(head) + sizeof(times), sizeof(rest));
	memcpy(&part_count, bytes + ENTRY_BYTES - sizeof(part_count), sizeof(part_count));
	*out = (struct fragi_trail_entry){
		.deadline = head[0],
		.at = head[1],
		.slowest = head[2],
		.flags = head[3] & FRAGI_TRAIL_FOREIGN,
		.begin = fragi_moment_stamp_at(moment, times[0]),
		.published = fragi_moment_stamp_at(moment, times[1]),
		.slowest_ns = rest[0],
		.error_ns = rest[1],
		.parts = {.rest_ns = rest[2]},
	};
	return (head[3] & ~FRAGI_TRAIL_FOREIGN) == HAS_PARTS &&
	       decode_parts(reader, part_count, &out->parts) && decode_places(reader, &out->places);
}

int fragi_trail_decode(struct frag_reader *reader, struct fragi_trail **out_trail)
{
	const uint8_t *bytes = fragi_reader_skip(reader, HEAD_BYTES);
	struct frag_reader entries = *reader;
	struct fragi_moment moment;
	struct fragi_trail *trail;
	uint16_t count = 0;

	if (bytes != NULL)
		memcpy(&count, bytes, sizeof(count));
	/* Before there is memory for them: they are there. */
	if (count == 0 || count > FRAGI_TRAIL_MAX ||
	    fragi_reader_skip(&entries, count * ENTRY_BYTES) == NULL)
		return -EBADMSG;
	trail = fragi_trail_create(count);
	if (trail == NULL)
		return -ENOMEM;
	moment = fragi_moment_now();
	trail->maker = NULL;
	trail->tick = 0;
	trail->arrived = moment.stamp;
	trail->held = (struct fragi_trail_held){0};
	for (uint32_t i = 0; i < count; i++)
		if (!decode_entry(reader, &moment, &trail->entries[i])) {
			fragi_trail_unref(trail);
			return -EBADMSG;
		}
	*out_trail = trail;
	return 0;
}
