// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <base/trace.h>

#include <errno.h>

#include <base/bytes.h>

/* A record that is not written after so many others is passed over. */
#define PATIENCE (FRAGI_TRACE_SLOTS / 4 * 3)
#define ITEM_BYTES 5u /* kind, and how many bytes follow */

/* Whether the slot holds that record, and holds it still after it was copied. */
static bool copy(const struct fragi_trace_slot *slot, uint64_t place,
		 struct fragi_trace_record *out)
{
	uint64_t words[FRAGI_TRACE_WORDS];

	if (atomic_load_explicit(&slot->place, memory_order_acquire) != place + 1)
		return false;
	for (size_t i = 0; i < FRAGI_TRACE_WORDS; i++)
		words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
	memcpy(out, words, sizeof(*out));
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&slot->place, memory_order_relaxed) == place + 1;
}

/* The records of the tick at that place; 0: they are not all there. */
static uint32_t copy_tick(const struct fragi_trace_ring *ring, uint64_t place,
			  struct fragi_trace_record *out)
{
	uint32_t count = 1;

	for (uint32_t i = 0; i < count; i++) {
		if (!copy(&ring->slots[(place + i) % FRAGI_TRACE_SLOTS], place + i, &out[i]))
			return 0;
		if (i == 0 && out->kind == FRAGI_TRACE_TICK)
			count += out->flows;
	}
	/* the rest of a tick whose begin is gone */
	return out->kind == FRAGI_TRACE_SENT || out->kind == FRAGI_TRACE_RECEIVED ? 0 : count;
}

static uint32_t next_within(const struct fragi_trace_ring *ring, uint64_t patience, uint64_t *place,
			    uint64_t *lost, struct fragi_trace_record out[FRAGI_TRACE_TICK_MAX])
{
	uint64_t next = atomic_load_explicit(&ring->next, memory_order_acquire), skipped;
	uint32_t count;

	for (; *place < next; *place += skipped, *lost += skipped) {
		skipped = next - *place > FRAGI_TRACE_SLOTS ? next - *place - FRAGI_TRACE_SLOTS : 0;
		if (skipped > 0)
			continue;
		count = copy_tick(ring, *place, out);
		if (count > 0) {
			*place += count;
			return count;
		}
		if (next - *place <= patience)
			return 0;
		skipped = 1;
	}
	return 0;
}

uint32_t fragi_trace_next(const struct fragi_trace_ring *ring, uint64_t *place, uint64_t *lost,
			  struct fragi_trace_record out[FRAGI_TRACE_TICK_MAX])
{
	return next_within(ring, PATIENCE, place, lost, out);
}

/* Writing. */

static uint8_t *item(struct fragi_trace_chunk *chunk, enum fragi_trace_item kind, size_t size)
{
	uint8_t *at = &chunk->bytes[chunk->size];

	if (size > FRAGI_TRACE_CHUNK_MAX - ITEM_BYTES ||
	    chunk->size > FRAGI_TRACE_CHUNK_MAX - ITEM_BYTES - size)
		return NULL;
	at[0] = (uint8_t)kind;
	fragi_put32(at + 1, (uint32_t)size);
	chunk->size += (uint32_t)(ITEM_BYTES + size);
	return at + ITEM_BYTES;
}

static size_t text_bytes(const char *text)
{
	return strnlen(text, FRAGI_TRACE_TEXT_MAX - 1) + 1;
}

static uint8_t *put_text(uint8_t *at, const char *text)
{
	size_t size = text_bytes(text);

	memcpy(at, text, size - 1);
	at[size - 1] = 0;
	return at + size;
}

#define HOST_BYTES 57u
#define HOST_LOST_AT 24u
#define HOST_LEFT_AT 48u
#define HOST_END_AT 56u
#define FLOW_BYTES 29u
#define PEER_BYTES 28u

bool fragi_trace_add_host(struct fragi_trace_chunk *chunk, const struct fragi_trace_host *host,
			  const char *name, const char *clock)
{
	uint8_t *at =
		item(chunk, FRAGI_TRACE_HOST, HOST_BYTES + text_bytes(name) + text_bytes(clock));

	if (at == NULL)
		return false;
	fragi_put32(at, host->host);
	fragi_put32(at + 4, host->pid);
	fragi_put64(at + 8, host->epoch);
	fragi_put64(at + 16, host->number);
	fragi_put64(at + HOST_LOST_AT, host->lost);
	fragi_put64(at + 32, (uint64_t)host->now_ns);
	fragi_put64(at + 40, (uint64_t)host->unix_ns);
	fragi_put64(at + HOST_LEFT_AT, host->left);
	at[HOST_END_AT] = (uint8_t)host->end;
	put_text(put_text(at + HOST_BYTES, name), clock);
	return true;
}

bool fragi_trace_add_name(struct fragi_trace_chunk *chunk, enum fragi_trace_item kind,
			  uint32_t number, const char *name)
{
	uint8_t *at = item(chunk, kind, 4 + text_bytes(name));

	if (at == NULL)
		return false;
	fragi_put32(at, number);
	put_text(at + 4, name);
	return true;
}

bool fragi_trace_add_flow(struct fragi_trace_chunk *chunk, const struct fragi_trace_flow *flow,
			  const char *from, const char *to)
{
	uint8_t *at = item(chunk, FRAGI_TRACE_FLOW, FLOW_BYTES + text_bytes(from) + text_bytes(to));

	if (at == NULL)
		return false;
	fragi_put32(at, flow->row);
	at[4] = (uint8_t)((flow->is_received ? 1 : 0) | (flow->is_sent ? 2 : 0));
	fragi_put32(at + 5, flow->capacity);
	fragi_put32(at + 9, flow->flow);
	fragi_put64(at + 13, flow->link);
	fragi_put64(at + 21, flow->before);
	put_text(put_text(at + FLOW_BYTES, from), to);
	return true;
}

bool fragi_trace_add_peer(struct fragi_trace_chunk *chunk, const struct fragi_trace_peer *peer)
{
	uint8_t *at = item(chunk, FRAGI_TRACE_PEER, PEER_BYTES);

	if (at == NULL)
		return false;
	fragi_put32(at, peer->host);
	fragi_put64(at + 4, peer->epoch);
	fragi_put64(at + 12, (uint64_t)peer->ahead_ns);
	fragi_put64(at + 20, (uint64_t)peer->error_ns);
	return true;
}

static void put_record(uint8_t *at, const struct fragi_trace_record *record,
		       const struct fragi_interval *interval)
{
	uint64_t begin = (uint64_t)fragi_interval_ns_at(interval, record->begin),
		 value = record->value;

	if (record->kind == FRAGI_TRACE_TICK || record->kind == FRAGI_TRACE_GPU)
		value = (uint64_t)fragi_interval_ns_at(interval, value);
	fragi_put64(at, begin);
	fragi_put64(at + 8, value);
	fragi_put32(at + 16, (uint32_t)record->object | (uint32_t)record->flows << 24);
	fragi_put32(at + 20, (uint32_t)record->count | (uint32_t)record->kind << 24);
}

static void add_records(struct fragi_trace_chunk *chunk, const struct fragi_trace_ring *ring,
			uint64_t patience, const struct fragi_interval *interval, uint64_t *place,
			uint64_t *lost)
{
	struct fragi_trace_record records[FRAGI_TRACE_TICK_MAX];
	const uint32_t begin = chunk->size;
	uint8_t *at = item(chunk, FRAGI_TRACE_RECORDS, 0);
	uint32_t count;

	while (at != NULL &&
	       FRAGI_TRACE_CHUNK_MAX - chunk->size >=
		       FRAGI_TRACE_TICK_MAX * FRAGI_TRACE_RECORD_BYTES &&
	       (count = next_within(ring, patience, place, lost, records)) > 0)
		for (uint32_t i = 0; i < count; i++) {
			put_record(&chunk->bytes[chunk->size], &records[i], interval);
			chunk->size += FRAGI_TRACE_RECORD_BYTES;
		}
	if (at != NULL)
		fragi_put32(&chunk->bytes[begin + 1], chunk->size - begin - ITEM_BYTES);
	fragi_put64(&chunk->bytes[ITEM_BYTES + HOST_LOST_AT], *lost);
	fragi_put64(&chunk->bytes[ITEM_BYTES + HOST_LEFT_AT],
		    atomic_load_explicit(&ring->next, memory_order_relaxed) - *place);
}

void fragi_trace_add_records(struct fragi_trace_chunk *chunk, const struct fragi_trace_ring *ring,
			     const struct fragi_interval *interval, uint64_t *place, uint64_t *lost)
{
	add_records(chunk, ring, PATIENCE, interval, place, lost);
}

/* After the host. */

static uint64_t load(const _Atomic uint64_t *value)
{
	return atomic_load_explicit(value, memory_order_relaxed);
}

void fragi_trace_publish(struct fragi_trace_reader *reader, uint64_t number, uint64_t place,
			 uint64_t lost, const struct fragi_moment *begin)
{
	atomic_store_explicit(&reader->at[number % 2].place, place, memory_order_relaxed);
	atomic_store_explicit(&reader->at[number % 2].lost, lost, memory_order_relaxed);
	atomic_store_explicit(&reader->at[number % 2].stamp, begin->stamp, memory_order_relaxed);
	atomic_store_explicit(&reader->at[number % 2].ns, begin->ns, memory_order_relaxed);
	atomic_store_explicit(&reader->number, number, memory_order_release);
}

bool fragi_trace_rest_begin(struct fragi_trace_rest *rest, const struct fragi_trace_ring *ring,
			    uint32_t id, const struct fragi_trace_host *host)
{
	const struct fragi_trace_reader *reader = NULL;
	const struct fragi_moment now = fragi_moment_now();
	uint64_t made, i;

	for (i = 0; reader == NULL && i < FRAGI_TRACE_READERS; i++)
		if (atomic_load(&ring->readers[i].id) == id)
			reader = &ring->readers[i];
	if (id == 0 || reader == NULL)
		return false;
	/* The last chunk that was made may not have come. */
	made = atomic_load_explicit(&reader->number, memory_order_acquire);
	i = host->number + 1 < made ? made - 1 : made;
	*rest = (struct fragi_trace_rest){
		.host = *host,
		.interval.first = {atomic_load_explicit(&reader->at[i % 2].ns,
							memory_order_relaxed),
				   load(&reader->at[i % 2].stamp)},
		.interval.last = now,
		.place = load(&reader->at[i % 2].place),
		.end = load(&ring->next),
	};
	rest->host.number = i;
	rest->host.lost = load(&reader->at[i % 2].lost);
	rest->host.unix_ns =
		(int64_t)((uint64_t)host->unix_ns + (uint64_t)now.ns - (uint64_t)host->now_ns);
	rest->host.now_ns = now.ns;
	if (rest->end - rest->place > FRAGI_TRACE_SLOTS) {
		rest->host.lost += rest->end - rest->place - FRAGI_TRACE_SLOTS;
		rest->place = rest->end - FRAGI_TRACE_SLOTS;
	}
	return true;
}

bool fragi_trace_rest_next(struct fragi_trace_rest *rest, const struct fragi_trace_ring *ring,
			   enum fragi_trace_end end, struct fragi_trace_chunk *chunk)
{
	const uint64_t before = rest->place;

	chunk->size = 0;
	rest->host.end = end;
	(void)fragi_trace_add_host(chunk, &rest->host, "", "");
	add_records(chunk, ring, 0, &rest->interval, &rest->place, &rest->host.lost);
	rest->host.number++;
	/* another process may write into the ring still: it ends where it ended */
	return rest->place != before && rest->end - rest->place <= FRAGI_TRACE_SLOTS &&
	       rest->place != rest->end;
}

/* Reading. */

/* The text at *at, which ends before `end`; NULL: none does. */
static const char *get_text(const uint8_t **at, const uint8_t *end)
{
	const char *text = (const char *)*at;
	size_t left = (size_t)(end - *at), size = strnlen(text, left);

	if (size == left || size >= FRAGI_TRACE_TEXT_MAX)
		return NULL;
	*at += size + 1;
	return text;
}

static void read_host(const uint8_t *at, struct fragi_trace_read *out)
{
	out->host = (struct fragi_trace_host){
		.host = fragi_get32(at),
		.pid = fragi_get32(at + 4),
		.epoch = fragi_get64(at + 8),
		.number = fragi_get64(at + 16),
		.lost = fragi_get64(at + HOST_LOST_AT),
		.now_ns = (int64_t)fragi_get64(at + 32),
		.unix_ns = (int64_t)fragi_get64(at + 40),
		.left = fragi_get64(at + HOST_LEFT_AT),
		.end = at[HOST_END_AT],
	};
}

static void read_flow(const uint8_t *at, struct fragi_trace_read *out)
{
	out->flow = (struct fragi_trace_flow){
		.row = fragi_get32(at),
		.is_received = (at[4] & 1) != 0,
		.is_sent = (at[4] & 2) != 0,
		.capacity = fragi_get32(at + 5),
		.flow = fragi_get32(at + 9),
		.link = fragi_get64(at + 13),
		.before = fragi_get64(at + 21),
	};
}

static void read_peer(const uint8_t *at, struct fragi_trace_read *out)
{
	out->peer = (struct fragi_trace_peer){
		.host = fragi_get32(at),
		.epoch = fragi_get64(at + 4),
		.ahead_ns = (int64_t)fragi_get64(at + 12),
		.error_ns = (int64_t)fragi_get64(at + 20),
	};
}

static void read_number(const uint8_t *at, struct fragi_trace_read *out)
{
	out->row = fragi_get32(at);
}

static const struct {
	uint32_t bytes, texts;
	void (*read)(const uint8_t *at, struct fragi_trace_read *out);
} items[] = {
	[FRAGI_TRACE_HOST] = {HOST_BYTES, 2, read_host},
	[FRAGI_TRACE_OPERATOR] = {4, 1, read_number},
	[FRAGI_TRACE_FLOW] = {FLOW_BYTES, 2, read_flow},
	[FRAGI_TRACE_THREAD] = {4, 1, read_number},
	[FRAGI_TRACE_PEER] = {PEER_BYTES, 0, read_peer},
	[FRAGI_TRACE_POOL_NAME] = {4, 1, read_number},
};

int fragi_trace_read(const uint8_t *bytes, uint32_t size, uint32_t *at,
		     struct fragi_trace_read *out)
{
	const uint8_t *body, *end;
	uint32_t length;

	if (*at == size)
		return 0;
	if (*at > size || size - *at < ITEM_BYTES)
		return -EBADMSG;
	*out = (struct fragi_trace_read){.kind = bytes[*at]};
	length = fragi_get32(&bytes[*at + 1]);
	if (length > size - *at - ITEM_BYTES)
		return -EBADMSG;
	body = &bytes[*at + ITEM_BYTES];
	end = body + length;
	*at += ITEM_BYTES + length;
	if (out->kind == FRAGI_TRACE_RECORDS) {
		out->records = body;
		out->record_count = length / FRAGI_TRACE_RECORD_BYTES;
		return length % FRAGI_TRACE_RECORD_BYTES == 0 ? 1 : -EBADMSG;
	}
	if ((size_t)out->kind >= sizeof(items) / sizeof(*items) || items[out->kind].read == NULL)
		return -EBADMSG;
	if (length < items[out->kind].bytes)
		return -EBADMSG;
	items[out->kind].read(body, out);
	body += items[out->kind].bytes;
	if (items[out->kind].texts > 0 && (out->text = get_text(&body, end)) == NULL)
		return -EBADMSG;
	if (items[out->kind].texts > 1 && (out->other = get_text(&body, end)) == NULL)
		return -EBADMSG;
	return body == end ? 1 : -EBADMSG;
}

bool fragi_trace_is_chunk(const uint8_t *bytes, uint32_t size, struct fragi_trace_host *out_host)
{
	struct fragi_trace_read read;
	uint32_t at = 0;

	if (fragi_trace_read(bytes, size, &at, &read) <= 0 || read.kind != FRAGI_TRACE_HOST)
		return false;
	*out_host = read.host;
	return true;
}

struct fragi_trace_record fragi_trace_record_at(const struct fragi_trace_read *read, uint32_t i)
{
	const uint8_t *at = read->records + (size_t)i * FRAGI_TRACE_RECORD_BYTES;
	const uint32_t object = fragi_get32(at + 16), count = fragi_get32(at + 20);

	return (struct fragi_trace_record){
		.begin = fragi_get64(at),
		.value = fragi_get64(at + 8),
		.object = object & 0xffffff,
		.flows = (uint8_t)(object >> 24),
		.kind = (uint8_t)(count >> 24),
		.count = count & 0xffffff,
	};
}
