// SPDX-License-Identifier: Apache-2.0
#include <fragctl/perfetto.h>

#include <string.h>

#include <base/bytes.h>

/* The numbers of fields, and of enumerated values, by the names that Perfetto gives them. */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_TRUSTED_PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_TRACK_DESCRIPTOR = 60,
	SNAPSHOT_CLOCKS = 1,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	CLOCK_REALTIME_ID = 1,
	CLOCK_BOOTTIME_ID = 6, /* that of timestamps without another one */
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT_UUID = 5,
	TRACK_COUNTER = 8,
	PROCESS_PID = 1,
	PROCESS_NAME = 6,
	THREAD_PID = 1,
	THREAD_TID = 2,
	THREAD_NAME = 5,
	EVENT_TYPE = 9,
	EVENT_TRACK_UUID = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER_VALUE = 30,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
	TYPE_SLICE_BEGIN = 1,
	TYPE_SLICE_END = 2,
	TYPE_INSTANT = 3,
	TYPE_COUNTER = 4,
};
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

/* A message that is put together before its length is known. What has no room is left out. */
struct block {
	size_t size;
	uint8_t bytes[4096];
};
#define ROOM 24 /* for a number and its field */

static size_t put_varint(uint8_t *at, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		at[n++] = (uint8_t)(value | 0x80);
	at[n++] = (uint8_t)value;
	return n;
}

static void add(struct block *block, uint32_t field, uint64_t value)
{
	if (sizeof(block->bytes) - block->size < ROOM)
		return;
	block->size += put_varint(&block->bytes[block->size], field << 3 | WIRE_VARINT);
	block->size += put_varint(&block->bytes[block->size], value);
}

static void add_fixed(struct block *block, uint32_t field, uint64_t value)
{
	if (sizeof(block->bytes) - block->size < ROOM)
		return;
	block->size += put_varint(&block->bytes[block->size], field << 3 | WIRE_FIXED64);
	fragi_put64(&block->bytes[block->size], value);
	block->size += 8;
}

static void add_bytes(struct block *block, uint32_t field, const void *bytes, size_t size)
{
	if (sizeof(block->bytes) < block->size + ROOM + size)
		return;
	block->size += put_varint(&block->bytes[block->size], field << 3 | WIRE_BYTES);
	block->size += put_varint(&block->bytes[block->size], size);
	memcpy(&block->bytes[block->size], bytes, size);
	block->size += size;
}

static void add_text(struct block *block, uint32_t field, const char *text)
{
	add_bytes(block, field, text, strnlen(text, 1024));
}

static void add_block(struct block *block, uint32_t field, const struct block *inner)
{
	add_bytes(block, field, inner->bytes, inner->size);
}

static void write_packet(FILE *out, struct block *packet)
{
	uint8_t head[ROOM];
	size_t n;

	add(packet, PACKET_TRUSTED_PACKET_SEQUENCE_ID, 1);
	n = put_varint(head, TRACE_PACKET << 3 | WIRE_BYTES);
	n += put_varint(head + n, packet->size);
	fwrite(head, 1, n, out);
	fwrite(packet->bytes, 1, packet->size, out);
}

static void add_clock(struct block *snapshot, uint32_t id, int64_t ns)
{
	struct block clock;

	clock.size = 0;
	add(&clock, CLOCK_ID, id);
	add(&clock, CLOCK_TIMESTAMP, (uint64_t)ns);
	add_block(snapshot, SNAPSHOT_CLOCKS, &clock);
}

void ctl_perfetto_begin(FILE *out, int64_t now_ns, int64_t unix_ns)
{
	struct block packet, snapshot;

	packet.size = snapshot.size = 0;
	add_clock(&snapshot, CLOCK_BOOTTIME_ID, now_ns);
	add_clock(&snapshot, CLOCK_REALTIME_ID, unix_ns);
	add_block(&packet, PACKET_CLOCK_SNAPSHOT, &snapshot);
	write_packet(out, &packet);
}

static void write_track(FILE *out, const struct block *track)
{
	struct block packet;

	packet.size = 0;
	add_block(&packet, PACKET_TRACK_DESCRIPTOR, track);
	write_packet(out, &packet);
}

void ctl_perfetto_process(FILE *out, uint64_t uuid, uint32_t pid, const char *name)
{
	struct block track, process;

	track.size = process.size = 0;
	add(&process, PROCESS_PID, pid);
	add_text(&process, PROCESS_NAME, name);
	add(&track, TRACK_UUID, uuid);
	add_block(&track, TRACK_PROCESS, &process);
	write_track(out, &track);
}

void ctl_perfetto_thread(FILE *out, uint64_t uuid, uint32_t pid, uint32_t tid, const char *name)
{
	struct block track, thread;

	track.size = thread.size = 0;
	add(&thread, THREAD_PID, pid);
	add(&thread, THREAD_TID, tid);
	add_text(&thread, THREAD_NAME, name);
	add(&track, TRACK_UUID, uuid);
	add_block(&track, TRACK_THREAD, &thread);
	write_track(out, &track);
}

void ctl_perfetto_track(FILE *out, uint64_t uuid, uint64_t process, const char *name)
{
	struct block track;

	track.size = 0;
	add(&track, TRACK_UUID, uuid);
	add(&track, TRACK_PARENT_UUID, process);
	add_text(&track, TRACK_NAME, name);
	write_track(out, &track);
}

void ctl_perfetto_counter(FILE *out, uint64_t uuid, uint64_t process, const char *name)
{
	struct block track, counter;

	track.size = counter.size = 0;
	add(&track, TRACK_UUID, uuid);
	add(&track, TRACK_PARENT_UUID, process);
	add_text(&track, TRACK_NAME, name);
	add_block(&track, TRACK_COUNTER, &counter);
	write_track(out, &track);
}

static void write_event(FILE *out, int64_t at_ns, const struct block *event)
{
	struct block packet;

	packet.size = 0;
	add(&packet, PACKET_TIMESTAMP, (uint64_t)at_ns);
	add_block(&packet, PACKET_TRACK_EVENT, event);
	write_packet(out, &packet);
}

static void event_begin(struct block *event, uint32_t type, uint64_t track)
{
	event->size = 0;
	add(event, EVENT_TYPE, type);
	add(event, EVENT_TRACK_UUID, track);
}

static void add_flows(struct block *event, const struct ctl_perfetto_flows *flows)
{
	for (uint32_t i = 0; flows != NULL && i < flows->sent_count; i++)
		add_fixed(event, EVENT_FLOW_IDS, flows->sent[i]);
	for (uint32_t i = 0; flows != NULL && i < flows->received_count; i++)
		add_fixed(event, EVENT_TERMINATING_FLOW_IDS, flows->received[i]);
}

void ctl_perfetto_slice(FILE *out, uint64_t track, int64_t begin_ns, const char *name,
			const struct ctl_perfetto_flows *flows)
{
	struct block event;

	event_begin(&event, TYPE_SLICE_BEGIN, track);
	add_text(&event, EVENT_NAME, name);
	add_flows(&event, flows);
	write_event(out, begin_ns, &event);
}

void ctl_perfetto_slice_end(FILE *out, uint64_t track, int64_t end_ns,
			    const struct ctl_perfetto_flows *flows)
{
	struct block event;

	event_begin(&event, TYPE_SLICE_END, track);
	add_flows(&event, flows);
	write_event(out, end_ns, &event);
}

void ctl_perfetto_instant(FILE *out, uint64_t track, int64_t at_ns, const char *name)
{
	struct block event;

	event_begin(&event, TYPE_INSTANT, track);
	add_text(&event, EVENT_NAME, name);
	write_event(out, at_ns, &event);
}

void ctl_perfetto_value(FILE *out, uint64_t track, int64_t at_ns, int64_t value)
{
	struct block event;

	event_begin(&event, TYPE_COUNTER, track);
	add(&event, EVENT_COUNTER_VALUE, (uint64_t)value);
	write_event(out, at_ns, &event);
}
