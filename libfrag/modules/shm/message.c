// SPDX-License-Identifier: Apache-2.0
#include "module.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <base/bytes.h>

/*
 * A message is a record in the ring: its header, and where its bodies are in the sender's heap. The
 * sender keeps them, in a slot, until the receiver returns the slot by a record of its own. Bodies
 * that lie elsewhere are copied into the heap first; small ones travel in the record itself, which
 * costs less than to return a slot.
 */
#define RECORDS_MAX 256u /* in one round, for each peer */
#define SLOTS_MAX (1u << 20)

static struct fragi_send *send_of(struct shm_send *room)
{
	return (struct fragi_send *)(void *)((char *)room - offsetof(struct fragi_send, room));
}

static const struct fragi_transport_config *config_of(const struct shm_endpoint *endpoint)
{
	return &shm_of(endpoint->base.transport)->config;
}

/* The peer sleeps, and has not been woken since. */
static void wake_peer(struct shm_endpoint *endpoint)
{
	uint32_t sleeps;

	atomic_thread_fence(memory_order_seq_cst); /* against shm_arm's */
	sleeps = shm_ring_sleeps(&endpoint->in);
	if ((sleeps & 1) == 0 || sleeps == endpoint->rung_at || endpoint->peer_bell < 0)
		return;
	endpoint->rung_at = sleeps;
	shm_bell_ring(endpoint->peer_bell);
	SHM_STEP(PEER_WOKEN);
}

/* Slots. */

static int slots_extend(struct shm_endpoint *endpoint)
{
	uint32_t count = endpoint->slot_count > 0 ? endpoint->slot_count * 2 : 16;
	struct shm_slot *slots;

	if (count > SLOTS_MAX)
		return -ENOMEM;
	slots = fragi_realloc(endpoint->slots, count * sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	memset(slots + endpoint->slot_count, 0, (count - endpoint->slot_count) * sizeof(*slots));
	for (uint32_t i = count; i-- > endpoint->slot_count;) {
		slots[i].next_free = endpoint->slot_free;
		endpoint->slot_free = i + 1;
	}
	endpoint->slots = slots;
	endpoint->slot_count = count;
	return 0;
}

static struct shm_slot *slot_take(struct shm_endpoint *endpoint, uint64_t *out_name)
{
	struct shm_slot *slot;

	if (endpoint->slot_free == 0 && slots_extend(endpoint) < 0)
		return NULL;
	slot = &endpoint->slots[endpoint->slot_free - 1];
	*out_name = (uint64_t)slot->generation << 32 | (endpoint->slot_free - 1);
	endpoint->slot_free = slot->next_free;
	endpoint->slots_in_use++;
	slot->in_use = true;
	slot->shown = false;
	slot->send = NULL;
	slot->copy_count = 0;
	SHM_STEP(SLOT_TAKEN);
	return slot;
}

static struct shm_slot *slot_of(struct shm_endpoint *endpoint, uint64_t name)
{
	return &endpoint->slots[(uint32_t)name];
}

/* The slot that a peer returns; NULL: it has none of that name, or has not been shown it yet. */
static struct shm_slot *slot_shown(struct shm_endpoint *endpoint, uint64_t name)
{
	struct shm_slot *slot;

	if ((uint32_t)name >= endpoint->slot_count)
		return NULL;
	slot = slot_of(endpoint, name);
	return slot->in_use && slot->shown && slot->generation == name >> 32 ? slot : NULL;
}

static void slot_give(struct shm_endpoint *endpoint, struct shm_slot *slot)
{
	struct frag_resource *heap = shm_heap_resource(shm_of(endpoint->base.transport)->heap);

	for (uint32_t i = 0; i < slot->copy_count; i++)
		frag_free(heap, slot->copies[i]);
	slot->in_use = false;
	slot->generation++;
	slot->next_free = endpoint->slot_free;
	endpoint->slot_free = (uint32_t)(slot - endpoint->slots) + 1;
	endpoint->slots_in_use--;
}

static void slot_end(struct shm_endpoint *endpoint, struct shm_slot *slot, bool abandoned)
{
	struct fragi_send *send = slot->send;

	slot_give(endpoint, slot);
	SHM_STEP(SLOT_GIVEN);
	if (send != NULL)
		config_of(endpoint)->events->sent(send, abandoned);
}

/* Out. */

static bool has_returned(const struct shm_endpoint *endpoint);
static uint32_t return_bodies(struct shm_endpoint *endpoint);

/* Of a body whose area the peer has mapped: the protocol sends no others. */
static void place_in_area(struct shm_heap *heap, const struct fragi_body *body,
			  struct shm_place *out)
{
	const struct shm_areas *areas = shm_heap_areas(heap);
	int number = shm_area_find(areas, body->data, body->bytes);

	assert(number >= 0);
	out->offset = (uintptr_t)body->data - areas->all[number].base +
		      (((uint64_t)(unsigned int)number + 1) << SHM_PLACE_AREA);
}

/* Finds or makes a place in the heap for each body. Returns 0 or -ENOMEM. */
static int place_bodies(struct shm_endpoint *endpoint, struct shm_send *room,
			const struct fragi_body *bodies, uint32_t count, struct fragi_send *send)
{
	struct shm_heap *heap = shm_of(endpoint->base.transport)->heap;
	struct shm_slot *slot = slot_take(endpoint, &room->slot);
	void *copy;

	if (slot == NULL)
		return -ENOMEM;
	room->has_slot = true;
	for (uint32_t i = 0; i < count; i++) {
		room->places[i].bytes = bodies[i].bytes;
		if (shm_heap_offset(heap, bodies[i].data, bodies[i].bytes,
				    &room->places[i].offset)) {
			slot->send = send;
			continue;
		}
		if (bodies[i].device.type == FRAG_DEVICE_CUDA) {
			place_in_area(heap, &bodies[i], &room->places[i]);
			slot->send = send;
			continue;
		}
		if (frag_alloc(shm_heap_resource(heap), bodies[i].bytes, &copy) < 0) {
			slot_give(endpoint, slot);
			return -ENOMEM;
		}
		slot->copies[slot->copy_count++] = memcpy(copy, bodies[i].data, bodies[i].bytes);
		send->copied_bytes += bodies[i].bytes;
		(void)shm_heap_offset(heap, copy, bodies[i].bytes, &room->places[i].offset);
	}
	SHM_STEP(BODIES_PLACED);
	return 0;
}

static void gather(uint8_t *to, const struct fragi_body *bodies, uint32_t count)
{
	for (uint32_t i = 0; i < count; to += bodies[i++].bytes)
		memcpy(to, bodies[i].data, bodies[i].bytes);
}

/*
 * Returns false when the ring is full. The peer can return the slot from now on. bodies: of one
 * whose bytes go into the ring; NULL: they were gathered.
 */
static bool write_message(struct shm_endpoint *endpoint, const struct fragi_send *send,
			  const struct shm_send *room, const struct fragi_body *bodies)
{
	const struct shm_record_head head = {.kind = SHM_MESSAGE,
					     .count = (uint8_t)room->count,
					     .header_bytes = (uint16_t)send->header_bytes,
					     .inline_bytes = room->inline_bytes};
	uint64_t bytes = shm_record_bytes(head);
	uint8_t *at = shm_ring_room(&endpoint->out, &endpoint->in, bytes);

	if (at == NULL)
		return false;
	fragi_put64(at + 8, room->slot);
	at += SHM_HEADER_AT;
	memcpy(at, send->header, send->header_bytes);
	at += shm_padded(send->header_bytes);
	if (room->inline_bytes == 0)
		memcpy(at, room->places, room->count * sizeof(room->places[0]));
	else if (bodies != NULL)
		gather(at, bodies, room->count);
	else
		memcpy(at, room->bytes, room->inline_bytes);
	if (room->has_slot)
		slot_of(endpoint, room->slot)->shown = true;
	SHM_STEP(RECORD_WRITTEN);
	shm_ring_publish(&endpoint->out, head, bytes);
	SHM_STEP(RECORD_SHOWN);
	return true;
}

bool shm_send(struct fragi_endpoint *base, struct fragi_send *send, const struct fragi_body *bodies,
	      uint32_t count)
{
	struct shm_endpoint *endpoint = shm_endpoint_of(base);
	struct shm_send *room = (struct shm_send *)(void *)send->room;
	uint64_t bytes = 0;

	if (endpoint->failed)
		return false;
	for (uint32_t i = 0; i < count; i++) /* what is on a device is never in the record */
		bytes +=
			bodies[i].device.type == FRAG_DEVICE_CUDA ? SHM_PLACE_MAX : bodies[i].bytes;
	room->next = NULL;
	room->count = count;
	room->slot = 0;
	room->has_slot = false;
	room->inline_bytes = bytes <= SHM_INLINE_MAX ? (uint32_t)bytes : 0;
	if (bytes > SHM_INLINE_MAX && place_bodies(endpoint, room, bodies, count, send) < 0) {
		shm_failed(endpoint, "there is no shared memory left for a message");
		return false;
	}
	/*
	 * Slots go back before the credit that the header may hold for them: else the sender would
	 * find a pool with as many blocks as may be in use empty.
	 */
	if (has_returned(endpoint) || endpoint->unsent != NULL)
		(void)return_bodies(endpoint);
	if (endpoint->waiting == NULL && endpoint->unsent == NULL &&
	    write_message(endpoint, send, room, bodies)) {
		wake_peer(endpoint);
		return room->has_slot && slot_of(endpoint, room->slot)->send != NULL;
	}
	if (room->inline_bytes > 0)
		gather(room->bytes, bodies, count);
	send->waits = true;
	*endpoint->waiting_end = room;
	endpoint->waiting_end = &room->next;
	/* A thread that sleeps beside this one has not asked the peer for room. */
	if (endpoint->waiting == room && shm_of(base->transport)->armed)
		shm_bell_ring(shm_of(base->transport)->bell->fd);
	return true;
}

static uint32_t write_waiting(struct shm_endpoint *endpoint)
{
	uint32_t happened = 0;
	struct shm_send *room;

	while ((room = endpoint->waiting) != NULL && endpoint->unsent == NULL &&
	       write_message(endpoint, send_of(room), room, NULL)) {
		endpoint->waiting = room->next;
		if (endpoint->waiting == NULL)
			endpoint->waiting_end = &endpoint->waiting;
		send_of(room)->waits = false;
		happened++;
		if (!room->has_slot || slot_of(endpoint, room->slot)->send == NULL)
			config_of(endpoint)->events->sent(send_of(room), false);
	}
	return happened;
}

void shm_sends_end(struct shm_endpoint *endpoint)
{
	struct shm_send *room;

	while ((room = endpoint->waiting) != NULL) {
		endpoint->waiting = room->next;
		/* one that has its slot ends with it */
		if (!room->has_slot || slot_of(endpoint, room->slot)->send == NULL)
			config_of(endpoint)->events->sent(send_of(room), true);
	}
	endpoint->waiting_end = &endpoint->waiting;
	for (uint32_t i = 0; i < endpoint->slot_count; i++)
		if (endpoint->slots[i].in_use)
			slot_end(endpoint, &endpoint->slots[i], true);
	SHM_STEP(SENDS_ENDED);
}

/* Returned bodies. */

static struct shm_taken *taken_take(struct shm_endpoint *endpoint)
{
	struct shm_taken *taken = endpoint->spare;

	if (taken != NULL)
		endpoint->spare = taken->next;
	else
		taken = fragi_malloc(sizeof(*taken));
	if (taken == NULL)
		return NULL;
	endpoint->taken_count++;
	taken->view = endpoint->view;
	atomic_fetch_add_explicit(&endpoint->view->refs, 1, memory_order_relaxed);
	return taken;
}

static void taken_give(struct shm_endpoint *endpoint, struct shm_taken *taken)
{
	endpoint->taken_count--;
	shm_view_unref(taken->view);
	taken->next = endpoint->spare;
	endpoint->spare = taken;
}

void shm_taken_free(struct shm_taken *taken)
{
	struct shm_taken *next;
	struct shm_view *view;

	for (; taken != NULL; taken = next) {
		next = taken->next;
		view = taken->view;
		fragi_free(taken);
		shm_view_unref(view);
	}
}

/* A message's body is free. Thread: any, also when the endpoint and the peer are gone. */
static void release(void *owner)
{
	struct shm_taken *taken = owner;
	struct shm_view *view = taken->view;

	if (atomic_fetch_sub_explicit(&taken->bodies, 1, memory_order_acq_rel) != 1)
		return;
	/* Once it is in the list others may free it, and with it the view. */
	atomic_fetch_add_explicit(&view->refs, 1, memory_order_relaxed);
	taken->next = atomic_load_explicit(&view->returned, memory_order_relaxed);
	while (!atomic_compare_exchange_weak(&view->returned, &taken->next, taken))
		;
	if (atomic_load(&view->closed))
		shm_taken_free(atomic_exchange(&view->returned, NULL));
	else if (atomic_load(&view->bell->wanted) && atomic_exchange(&view->bell->wanted, false))
		shm_bell_ring(view->bell->fd);
	SHM_STEP(MESSAGE_RELEASED);
	shm_view_unref(view);
}

/* Returns false when the ring is full. */
static bool write_returns(struct shm_endpoint *endpoint)
{
	struct shm_taken *taken = endpoint->unsent;
	struct shm_record_head head = {.kind = SHM_RETURN};
	uint32_t count = 0;
	uint64_t bytes;
	uint8_t *at;

	for (; taken != NULL && count < SHM_RETURNS_MAX; taken = taken->next)
		count++;
	head.count = (uint8_t)count;
	bytes = shm_record_bytes(head);
	at = shm_ring_room(&endpoint->out, &endpoint->in, bytes);
	if (at == NULL)
		return false;
	fragi_put64(at + 8, 0);
	at += SHM_HEADER_AT;
	for (; count > 0; count--, at += sizeof(uint64_t)) {
		taken = endpoint->unsent;
		endpoint->unsent = taken->next;
		fragi_put64(at, taken->slot);
		taken_give(endpoint, taken);
	}
	SHM_STEP(RETURN_WRITTEN);
	shm_ring_publish(&endpoint->out, head, bytes);
	SHM_STEP(RETURN_SHOWN);
	return true;
}

static bool has_returned(const struct shm_endpoint *endpoint)
{
	return endpoint->view != NULL &&
	       atomic_load_explicit(&endpoint->view->returned, memory_order_relaxed) != NULL;
}

static uint32_t return_bodies(struct shm_endpoint *endpoint)
{
	struct shm_taken *taken, *last;
	uint32_t happened = 0;

	if (has_returned(endpoint)) {
		taken = last = atomic_exchange(&endpoint->view->returned, NULL);
		while (last->next != NULL)
			last = last->next;
		last->next = endpoint->unsent;
		endpoint->unsent = taken;
	}
	while (endpoint->unsent != NULL && write_returns(endpoint))
		happened++;
	return happened;
}

/* In. */

static void arrive(struct shm_endpoint *endpoint, struct fragi_arrival *arrival)
{
	const struct fragi_transport_config *config = config_of(endpoint);

	if (config->events->arrived(config->arg, arrival) == FRAGI_ARRIVAL_KEPT)
		return;
	for (uint32_t i = 0; i < arrival->mapped_count; i++)
		arrival->mapped[i].release(arrival->mapped[i].owner);
}

/* What a peer says, in this process. Returns 0 or -EBADMSG. */
static int find_place(const struct shm_view *view, const struct shm_place *place,
		      struct fragi_body *out)
{
	uint64_t area = place->offset >> SHM_PLACE_AREA, size = view->size;
	uint64_t offset = place->offset & (((uint64_t)1 << SHM_PLACE_AREA) - 1);
	const uint8_t *base = view->base;

	out->device = (struct frag_device){FRAG_DEVICE_CPU, 0};
	if (area > 0) {
		if (area > SHM_AREAS_MAX || view->areas == NULL)
			return -EBADMSG;
		base = view->areas[area - 1].memory;
		size = view->areas[area - 1].bytes;
		out->device = view->areas[area - 1].device;
	}
	if (place->bytes == 0 || offset > size || place->bytes > size - offset)
		return -EBADMSG;
	out->data = (void *)(uintptr_t)(base + offset);
	out->bytes = place->bytes;
	return 0;
}

/* Its bodies are in the peer's heap. Returns 0, or negative errno. */
static int show_places(struct shm_endpoint *endpoint, const struct shm_record *record,
		       struct fragi_arrival *arrival)
{
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	struct shm_taken *taken;
	struct shm_place place;

	/* One that reads no returns could have this host keep ever more of them. */
	if (endpoint->view == NULL || endpoint->taken_count == SLOTS_MAX)
		return -EBADMSG;
	taken = taken_take(endpoint);
	if (taken == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < record->count; i++) {
		place.offset = fragi_get64(record->rest + i * sizeof(place));
		place.bytes = fragi_get64(record->rest + i * sizeof(place) + 8);
		bodies[i] = (struct fragi_body){.owner = taken, .release = release};
		if (find_place(taken->view, &place, &bodies[i]) < 0) {
			taken_give(endpoint, taken);
			return -EBADMSG;
		}
		arrival->body_bytes += place.bytes;
	}
	taken->slot = record->slot;
	atomic_init(&taken->bodies, record->count);
	arrival->mapped = bodies;
	arrival->mapped_count = record->count;
	SHM_STEP(MESSAGE_TAKEN);
	arrive(endpoint, arrival);
	return 0;
}

/* The peer can write to the record while it is read here, so the header is copied first. */
static int show(struct shm_endpoint *endpoint, const struct shm_record *record)
{
	_Alignas(16) uint8_t header[FRAGI_HEADER_MAX];
	struct fragi_arrival arrival = {
		.header = header, .header_bytes = record->header_bytes, .from = &endpoint->base};

	memcpy(header, record->header, record->header_bytes);
	if (record->inline_bytes == 0 && record->count > 0)
		return show_places(endpoint, record, &arrival);
	arrival.body_bytes = record->inline_bytes;
	arrival.data = record->inline_bytes > 0 ? record->rest : NULL;
	arrive(endpoint, &arrival);
	return 0;
}

static int take_returns(struct shm_endpoint *endpoint, const struct shm_record *record)
{
	struct shm_slot *slot;

	for (uint32_t i = 0; i < record->count; i++) {
		slot = slot_shown(endpoint, fragi_get64(record->rest + i * sizeof(uint64_t)));
		if (slot == NULL)
			return -EBADMSG;
		SHM_STEP(RETURN_READ);
		slot_end(endpoint, slot, false);
	}
	return 0;
}

static uint32_t read_records(struct shm_endpoint *endpoint)
{
	struct shm_record record;
	uint32_t happened = 0;
	int r = 0;

	while (r >= 0 && happened < RECORDS_MAX && !endpoint->failed) {
		r = shm_ring_next(&endpoint->in, &record);
		if (r <= 0)
			break;
		SHM_STEP(RECORD_READ);
		r = record.kind == SHM_MESSAGE ? show(endpoint, &record)
					       : take_returns(endpoint, &record);
		SHM_STEP(RECORD_USED);
		shm_ring_consume(&endpoint->in, &endpoint->out, &record);
		SHM_STEP(RECORD_CONSUMED);
		happened++;
	}
	if (r == -ENOMEM)
		config_of(endpoint)->events->fault(
			config_of(endpoint)->arg, FRAGI_FAILURE_OUT_OF_MEMORY,
			"there is no memory left to receive a message over shared memory");
	else if (r < 0)
		shm_failed(endpoint, "it wrote to shared memory what no host writes");
	return happened;
}

static bool waits_for_room(const struct shm_endpoint *endpoint)
{
	return endpoint->waiting != NULL || endpoint->unsent != NULL;
}

/*
 * Slots that are returned do not wake a peer: it needs their memory for its next message at the
 * earliest, before which it makes progress. A wake-up for each message would cost both hosts more
 * than the message.
 */
uint32_t shm_exchange(struct shm_endpoint *endpoint)
{
	uint32_t read, returned, written;

	if (endpoint->state == SHM_CLOSED || endpoint->failed)
		return 0;
	read = read_records(endpoint);
	if (endpoint->failed)
		return read;
	returned = return_bodies(endpoint);
	written = write_waiting(endpoint);
	if (waits_for_room(endpoint) && shm_ring_is_wrong(&endpoint->out, &endpoint->in)) {
		shm_failed(endpoint, "it wrote to shared memory what no host writes");
		return read;
	}
	if (read > 0) /* what was read is seen before the peer sleeps, or its wish here: shm_arm */
		atomic_thread_fence(memory_order_seq_cst);
	if (written > 0 || endpoint->unsent != NULL ||
	    (read > 0 && shm_ring_wants_room(&endpoint->in)))
		wake_peer(endpoint);
	return read + returned + written;
}

uint32_t shm_exchange_rest(struct shm_endpoint *endpoint)
{
	uint32_t happened = 0, rounds = SHM_RING_BYTES / SHM_LINE_BYTES / RECORDS_MAX + 1, now = 1;

	for (; rounds > 0 && now > 0; rounds--) {
		now = shm_exchange(endpoint);
		happened += now;
	}
	return happened;
}

bool shm_has_work(struct shm_endpoint *endpoint)
{
	if (endpoint->state == SHM_CLOSED || endpoint->failed)
		return false;
	return !shm_ring_is_empty(&endpoint->in) ||
	       (endpoint->view != NULL && atomic_load(&endpoint->view->returned) != NULL) ||
	       (waits_for_room(endpoint) &&
		shm_ring_room(&endpoint->out, &endpoint->in, SHM_RING_BYTES / 2) != NULL);
}
