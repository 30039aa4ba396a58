// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <base/sentence.h>
#include <edge/remote/state.h>

/*
 * A message arrives in parts: its descriptors (in DATA's header, or ahead) and its bodies. When
 * both are here, or the bodies can be had, decoding makes the message: over memory that the
 * transport has mapped, or with memory of its own, which is filled from what the transport shows or
 * by a receive. Parts of later messages may be complete before those of earlier ones; they are
 * delivered in the order of their sequence. How many may be on their way is bounded by the window,
 * so that `parts` has a place for each.
 *
 * A sender that is authentic and then breaks a rule (beyond its credit, twice the same sequence,
 * sizes that contradict each other) is lost.
 */

static void release_mapped(struct fragi_remote_part *part)
{
	for (uint32_t i = 0; i < part->mapped_count; i++)
		part->mapped[i].release(part->mapped[i].owner);
	fragi_free(part->mapped);
	part->mapped = NULL;
	part->mapped_count = 0;
}

void fragi_remote_part_reset(struct fragi_remote_part *part)
{
	struct fragi_remote_rx *rx = part->rx;
	const struct fragi_remote_transport *transport = rx->edge.endpoint->transport;

	if (part->message != NULL)
		fragi_pump_dispose(transport->remote->config.pump, part->message);
	if (part->handle != NULL)
		transport->ops->discard(transport->transport, part->handle);
	release_mapped(part);
	fragi_free(part->data);
	fragi_free(part->descriptors);
	if (part->state == FRAGI_PART_ARRIVING)
		fragi_remote_endpoint_arrived(rx->edge.endpoint);
	memset(part, 0, sizeof(*part));
	part->rx = rx;
}

void fragi_remote_part_abandon(struct fragi_remote_part *part)
{
	struct fragi_remote_receive *receive = part->receive;

	if (receive != NULL) {
		receive->part = NULL;
		receive->message = part->message;
		receive->descriptors = part->descriptors;
		part->message = NULL;
		part->descriptors = NULL;
		if (receive->of_bodies)
			part->rx->receiving--;
	}
	fragi_remote_part_reset(part);
}

/*
 * The part a header belongs to, checked against the credit; a new one is opened. NULL: the peer
 * broke a rule, or this flow has already failed.
 */
static struct fragi_remote_part *part_of(struct fragi_remote_rx *rx,
					 const struct fragi_header *header)
{
	const struct fragi_edge_config *config = &rx->edge.config;
	uint64_t sequence = rx->before + header->sequence;
	struct fragi_remote_part *part = &rx->parts[sequence & rx->mask];

	if (rx->broken)
		return NULL;
	if (sequence < rx->next || !fragi_window_covers(&rx->window, sequence) ||
	    (rx->close_known && sequence >= rx->close_sequence)) {
		fragi_remote_rx_broke_rule(rx, "a message beyond its credit");
		return NULL;
	}
	if (part->state == FRAGI_PART_ARRIVING &&
	    header->descriptor_bytes == part->descriptor_bytes &&
	    header->body_bytes == part->body_bytes)
		return part;
	if (part->state != FRAGI_PART_FREE) {
		fragi_remote_rx_broke_rule(rx, "the same message twice");
		return NULL;
	}
	if (header->descriptor_bytes > FRAGI_DESCRIPTOR_MAX ||
	    header->body_bytes > config->message_bytes_max) {
		fragi_remote_rx_broke_rule(rx, "a message beyond the limit");
		return NULL;
	}
	if (!fragi_window_accept(&rx->window, header->descriptor_bytes + header->body_bytes)) {
		fragi_remote_rx_broke_rule(rx, "more bytes than its credit");
		return NULL;
	}
	part->state = FRAGI_PART_ARRIVING;
	rx->edge.endpoint->arriving++;
	part->descriptor_bytes = header->descriptor_bytes;
	part->body_bytes = header->body_bytes;
	part->publish_ns = header->publish_ns;
	return part;
}

/* This host cannot go on. */
static void fault(struct fragi_remote_rx *rx, enum fragi_failure failure, const char *format, ...)
	FRAG_PRINTF(3, 4);
static void fault(struct fragi_remote_rx *rx, enum fragi_failure failure, const char *format, ...)
{
	const struct fragi_remote_config *config = &fragi_remote_of(rx->edge.endpoint)->config;
	char sentence[FRAGI_SENTENCE_MAX];
	va_list args;

	rx->broken = true;
	va_start(args, format);
	fragi_sentence_of(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (config->fault != NULL)
		config->fault(config->arg, failure, rx->edge.config.op, sentence);
}

void fragi_remote_rx_fault_for_memory(struct fragi_remote_rx *rx)
{
	fault(rx, FRAGI_FAILURE_OUT_OF_MEMORY,
	      "there is no memory left to receive a message of flow %u", rx->edge.config.flow);
}

/*
 * Makes the message, over the bodies that are mapped if there are any. Returns false when it cannot
 * be; then they are still the caller's.
 */
static bool part_decode(struct fragi_remote_part *part, const uint8_t *descriptors,
			const struct fragi_body *mapped, uint32_t mapped_count)
{
	struct fragi_remote_rx *rx = part->rx;
	struct frag_message *message;
	uint64_t bodies = 0, type_id = 0;
	int r;

	if (mapped_count > 0)
		r = fragi_message_decode_over(mapped, mapped_count, descriptors,
					      part->descriptor_bytes, &message, &type_id);
	else
		r = fragi_message_decode_in(fragi_remote_of(rx->edge.endpoint)->bodies, descriptors,
					    part->descriptor_bytes, part->body_bytes, &message,
					    &type_id);
	if (r == -ENOENT) {
		fault(rx, FRAGI_FAILURE_TYPE_UNKNOWN,
		      "a message of flow %u holds a value of type %016llx, which is not known here; load the library that registers it, in the same version as at the sender",
		      rx->edge.config.flow, (unsigned long long)type_id);
		return false;
	}
	if (r == -ENOMEM) {
		fault(rx, FRAGI_FAILURE_OUT_OF_MEMORY,
		      "there is no memory left for a message of %llu bytes of flow %u; give the host more memory or make the flow's window smaller",
		      (unsigned long long)part->body_bytes, rx->edge.config.flow);
		return false;
	}
	if (r < 0) {
		fragi_remote_rx_broke_rule(rx, "malformed descriptors");
		return false;
	}
	part->message = message;
	if (__builtin_expect((message->stamps & FRAGI_STAMP_TRAIL) != 0, 0))
		fragi_trail_came_from(message->trail, rx->edge.endpoint->peer->worker);
	part->was_on_gpu = false;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		bodies += message->tensors[i].tensor->compact_bytes;
		part->was_on_gpu |= message->tensors[i].tensor->was_on_gpu;
	}
	if (mapped_count == 0 && bodies != part->body_bytes) {
		fragi_remote_rx_broke_rule(rx, "bodies that its descriptors do not describe");
		return false;
	}
	return true;
}

/* Returns false when this host cannot go on. */
static __attribute__((noinline)) bool place_on_gpu(struct fragi_remote_part *part)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_remote *remote = fragi_remote_of(part->rx->edge.endpoint);
	int r = fragi_message_to_gpu(part->message, &remote->arrivals, &err);

	if (r < 0)
		fault(part->rx,
		      r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_HOST_FAILED,
		      "%.150s: a message for it cannot be put on the GPU: %s",
		      part->rx->edge.config.op, err.text);
	return r == 0;
}

static void part_completed(struct fragi_remote_part *part)
{
	struct fragi_remote_rx *rx = part->rx;

	if (rx->broken) { /* its endpoint is lost */
		fragi_remote_part_reset(part);
		return;
	}
	if (__builtin_expect(part->was_on_gpu, 0) && !place_on_gpu(part))
		return;
	part->state = FRAGI_PART_COMPLETE;
	fragi_remote_rx_deliver(rx);
	fragi_remote_endpoint_arrived(rx->edge.endpoint);
}

/* The memory of the tensors; empty ones have none. */
static uint32_t tensor_bodies(const struct frag_message *message, struct fragi_body *out)
{
	uint32_t count = 0;
	size_t size;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		struct frag_tensor *tensor = message->tensors[i].tensor;
		void *data = fragi_tensor_body(tensor, &size);

		if (size > 0)
			out[count++] = (struct fragi_body){
				.data = data, .bytes = size, .device = tensor->dl.device};
	}
	return count;
}

/*
 * What is in the tensors, or in `from` if that is not NULL, is made plain there. Returns false when
 * it is not genuine.
 */
static bool open_bodies(struct fragi_remote_part *part, const struct fragi_body *from)
{
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	uint32_t count = tensor_bodies(part->message, bodies);

	return count == 0 || fragi_remote_open_body(part->rx, &part->bodies_mark,
						    from != NULL ? from : bodies, bodies, count);
}

static void count_copied(struct fragi_remote_part *part)
{
	fragi_count(&part->rx->rx.row->copied_in,
		    fragi_remote_copied(part->body_bytes, part->body_bytes));
}

/* Bytes, whose length was checked, into the tensors. */
static void scatter(struct frag_message *message, const uint8_t *bytes)
{
	size_t size;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		void *body = fragi_tensor_body(message->tensors[i].tensor, &size);

		if (size > 0)
			memcpy(body, bytes, size);
		bytes += size;
	}
}

/* Bodies that are not where they belong: of a sealed message in pieces, else in one. */
static void place_data(struct fragi_remote_part *part, const uint8_t *descriptors,
		       const struct fragi_body *from)
{
	if (!part_decode(part, descriptors, NULL, 0))
		return;
	count_copied(part);
	if (part->rx->edge.seal == NULL)
		scatter(part->message, from->data);
	else if (!open_bodies(part, from))
		return;
	part_completed(part);
}

/* Returns whether it took the bodies. */
static bool place_mapped(struct fragi_remote_part *part, const uint8_t *descriptors,
			 const struct fragi_body *mapped, uint32_t count)
{
	if (!part_decode(part, descriptors, mapped, count))
		return false;
	part_completed(part);
	return true;
}

/* Starts to fill memory from a handle, which it takes in every case. */
static void start_receive(struct fragi_remote_part *part, void *handle,
			  const struct fragi_body *bodies, uint32_t count, bool of_bodies)
{
	struct fragi_remote_rx *rx = part->rx;
	struct fragi_remote_transport *transport = rx->edge.endpoint->transport;
	struct fragi_remote_receive *receive = fragi_remote_receive_create(transport);
	int r = -ENOMEM;

	if (receive == NULL) {
		transport->ops->discard(transport->transport, handle);
		fragi_remote_rx_fault_for_memory(rx);
		return;
	}
	receive->part = part;
	receive->of_bodies = of_bodies;
	part->receive = receive;
	if (of_bodies) {
		rx->receiving++;
		transport->receiving++;
		rx->receiving_bytes += part->body_bytes;
	}
	r = transport->ops->receive(transport->transport, handle, bodies, count, &receive->base);
	if (r == 0)
		return;
	if (of_bodies) {
		rx->receiving--;
		transport->receiving--;
		rx->receiving_bytes -= part->body_bytes;
	}
	part->receive = NULL;
	fragi_remote_receive_free(receive);
	fragi_remote_rx_fault_for_memory(rx);
}

/* Bodies that are still at the sender go straight into the tensors. */
static void receive_bodies(struct fragi_remote_part *part, void *handle)
{
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	uint32_t count = tensor_bodies(part->message, bodies);

	start_receive(part, handle, bodies, count, true);
}

/*
 * A handle takes no memory before it is received, and those that are received at the same time
 * share the way: a few at a time come sooner, one after the other, and into memory that is still in
 * the cache.
 */
static bool may_receive(const struct fragi_remote_rx *rx, uint64_t bytes)
{
	return rx->receiving == 0 || rx->receiving_bytes + bytes <= FRAGI_RECEIVE_BYTES;
}

/*
 * Receives what waits for its turn, in order, as far as may_receive allows. A receive that is over
 * before `receive` returns comes back here: the loop that is under way then goes on with the next.
 */
static void receive_waiting(struct fragi_remote_rx *rx)
{
	if (rx->taking_turns)
		return;
	rx->taking_turns = true;
	for (uint64_t sequence = rx->next;
	     rx->waiting > 0 && sequence < rx->next + rx->edge.config.window_messages; sequence++) {
		struct fragi_remote_part *part = &rx->parts[sequence & rx->mask];
		void *handle = part->handle;

		if (!part->waiting)
			continue;
		if (rx->broken || rx->edge.endpoint->failed || !may_receive(rx, part->body_bytes))
			break;
		part->waiting = false;
		rx->waiting--;
		if (!part_decode(part, part->descriptors, NULL, 0))
			break;
		part->handle = NULL;
		receive_bodies(part, handle);
	}
	rx->taking_turns = false;
}

static void wait_for_turn(struct fragi_remote_part *part)
{
	part->waiting = true;
	part->rx->waiting++;
}

/* Bodies that came before their descriptors, which are here now. */
static void resume_bodies(struct fragi_remote_part *part)
{
	struct fragi_body data = {.data = part->data, .bytes = part->body_bytes};

	if (part->handle != NULL) {
		wait_for_turn(part);
		receive_waiting(part->rx);
	} else if (part->mapped_count > 0 && part->rx->edge.seal != NULL) {
		place_data(part, part->descriptors, part->mapped);
	} else if (part->mapped_count > 0) {
		if (!part_decode(part, part->descriptors, part->mapped, part->mapped_count))
			return;
		part->mapped_count = 0; /* they are the message's now */
		part_completed(part);
	} else {
		part->data = NULL;
		place_data(part, part->descriptors, &data);
		fragi_free(data.data);
	}
}

/* Keeps bodies whose descriptors are not complete yet. */
static enum fragi_arrival_use keep_bodies(struct fragi_remote_part *part,
					  const struct fragi_arrival *arrival)
{
	part->handle = arrival->handle;
	if (part->handle != NULL)
		return FRAGI_ARRIVAL_KEPT;
	if (arrival->mapped_count > 0) {
		part->mapped = fragi_calloc(arrival->mapped_count, sizeof(*part->mapped));
		if (part->mapped == NULL) {
			fragi_remote_rx_fault_for_memory(part->rx);
			return FRAGI_ARRIVAL_USED;
		}
		part->mapped_count = arrival->mapped_count;
		memcpy(part->mapped, arrival->mapped, part->mapped_count * sizeof(*part->mapped));
		return FRAGI_ARRIVAL_KEPT;
	}
	part->data = fragi_malloc(arrival->body_bytes + 1);
	if (part->data == NULL) {
		fragi_remote_rx_fault_for_memory(part->rx);
	} else if (arrival->body_bytes > 0) {
		count_copied(part);
		memcpy(part->data, arrival->data, arrival->body_bytes);
	}
	return FRAGI_ARRIVAL_USED;
}

/* Keeps a handle until it is its turn, with the descriptors that came with it. */
static enum fragi_arrival_use keep_handle(struct fragi_remote_part *part, void *handle,
					  const uint8_t *descriptors)
{
	if (part->descriptors == NULL) {
		part->descriptors = fragi_malloc(part->descriptor_bytes + 1u);
		if (part->descriptors == NULL) {
			fragi_remote_rx_fault_for_memory(part->rx);
			return FRAGI_ARRIVAL_USED;
		}
		memcpy(part->descriptors, descriptors, part->descriptor_bytes);
	}
	part->handle = handle;
	wait_for_turn(part);
	return FRAGI_ARRIVAL_KEPT;
}

enum fragi_arrival_use fragi_remote_on_data(struct fragi_remote_rx *rx,
					    const struct fragi_header *header,
					    const struct fragi_seal_mark *mark,
					    const uint8_t *descriptors, size_t descriptor_bytes,
					    const struct fragi_arrival *arrival)
{
	struct fragi_body data = {.data = (void *)(uintptr_t)arrival->data,
				  .bytes = arrival->body_bytes};
	bool ahead = (header->flags & FRAGI_FLAG_AHEAD) != 0;
	struct fragi_remote_part *part = part_of(rx, header);

	if (part == NULL)
		return FRAGI_ARRIVAL_USED;
	if (part->has_bodies || arrival->body_bytes != header->body_bytes ||
	    descriptor_bytes != (ahead ? 0 : header->descriptor_bytes) ||
	    (!ahead && (part->has_descriptors || part->descriptors != NULL))) {
		fragi_remote_rx_broke_rule(rx, "sizes that contradict each other");
		return FRAGI_ARRIVAL_USED;
	}
	part->has_bodies = true;
	if (mark != NULL)
		part->bodies_mark = *mark;
	if (ahead && !part->has_descriptors)
		return keep_bodies(part, arrival);
	part->has_descriptors = true;
	if (ahead)
		descriptors = part->descriptors;
	else if (__builtin_expect((header->flags & FRAGI_FLAG_LAYOUT) != 0, 0) &&
		 !fragi_remote_rx_learn(rx, descriptors, descriptor_bytes))
		return FRAGI_ARRIVAL_USED;
	if (arrival->mapped_count > 0 && mark == NULL)
		return place_mapped(part, descriptors, arrival->mapped, arrival->mapped_count)
			       ? FRAGI_ARRIVAL_KEPT
			       : FRAGI_ARRIVAL_USED;
	if (arrival->handle == NULL) {
		place_data(part, descriptors, arrival->mapped_count > 0 ? arrival->mapped : &data);
		return FRAGI_ARRIVAL_USED;
	}
	if (rx->waiting > 0 || !may_receive(rx, header->body_bytes))
		return keep_handle(part, arrival->handle, descriptors);
	if (!part_decode(part, descriptors, NULL, 0))
		return FRAGI_ARRIVAL_USED;
	receive_bodies(part, arrival->handle);
	return FRAGI_ARRIVAL_KEPT;
}

static void descriptors_completed(struct fragi_remote_part *part)
{
	struct fragi_body body = {.data = part->descriptors, .bytes = part->descriptor_bytes};

	/* A flow that has failed meanwhile may not have the bodies that came before. */
	if (part->rx->broken ||
	    (part->rx->edge.seal != NULL &&
	     !fragi_remote_open_body(part->rx, &part->descriptors_mark, &body, &body, 1)))
		return;
	part->has_descriptors = true;
	if (part->has_bodies)
		resume_bodies(part);
}

enum fragi_arrival_use fragi_remote_on_descriptors(struct fragi_remote_rx *rx,
						   const struct fragi_header *header,
						   const struct fragi_seal_mark *mark,
						   const struct fragi_arrival *arrival)
{
	struct fragi_remote_part *part = part_of(rx, header);
	struct fragi_body body = {.device = {FRAG_DEVICE_CPU, 0}};
	uint8_t *at;

	if (part == NULL)
		return FRAGI_ARRIVAL_USED;
	if (part->has_descriptors || part->descriptors != NULL ||
	    arrival->body_bytes != header->descriptor_bytes) {
		fragi_remote_rx_broke_rule(rx, "sizes that contradict each other");
		return FRAGI_ARRIVAL_USED;
	}
	if (mark != NULL)
		part->descriptors_mark = *mark;
	part->descriptors = at = fragi_malloc(arrival->body_bytes + 1);
	if (at == NULL) {
		fragi_remote_rx_fault_for_memory(rx);
		return FRAGI_ARRIVAL_USED;
	}
	if (arrival->handle != NULL) {
		body.data = at;
		body.bytes = arrival->body_bytes;
		start_receive(part, arrival->handle, &body, 1, false);
		return FRAGI_ARRIVAL_KEPT;
	}
	if (arrival->mapped_count == 0 && arrival->body_bytes > 0)
		memcpy(at, arrival->data, arrival->body_bytes);
	for (uint32_t i = 0; i < arrival->mapped_count; at += arrival->mapped[i++].bytes)
		memcpy(at, arrival->mapped[i].data, arrival->mapped[i].bytes);
	descriptors_completed(part);
	return FRAGI_ARRIVAL_USED;
}

static void broke_within(struct fragi_remote_endpoint *endpoint, const char *cause)
{
	fragi_remote_endpoint_fail(
		endpoint, FRAGI_FAILURE_EDGE_LOST,
		"has ended, or the network between is cut: the data link broke within a message (%s)",
		cause);
}

static void bodies_received(struct fragi_remote_part *part, const char *cause, uint64_t bytes)
{
	struct fragi_remote_rx *rx = part->rx;

	rx->receiving--;
	rx->receiving_bytes -= part->body_bytes;
	if (cause != NULL)
		broke_within(rx->edge.endpoint, cause);
	else if (bytes != part->body_bytes)
		fragi_remote_rx_broke_rule(rx, "bodies of another length");
	else if (rx->edge.seal == NULL || rx->broken || open_bodies(part, NULL)) {
		fragi_message_has_arrived(part->message);
		part_completed(part);
	}
	receive_waiting(rx);
}

static void descriptors_received(struct fragi_remote_part *part, const char *cause, uint64_t bytes)
{
	if (cause != NULL)
		broke_within(part->rx->edge.endpoint, cause);
	else if (bytes != part->descriptor_bytes)
		fragi_remote_rx_broke_rule(part->rx, "descriptors of another length");
	else
		descriptors_completed(part);
}

void fragi_remote_on_received(struct fragi_receive *base, const char *cause, uint64_t bytes)
{
	struct fragi_remote_receive *receive =
		(struct fragi_remote_receive *)(void *)((char *)base -
							offsetof(struct fragi_remote_receive,
								 base));
	struct fragi_remote_transport *transport = receive->transport;
	struct fragi_remote_part *part = receive->part;
	bool of_bodies = receive->of_bodies;

	transport->remote->happened++;
	if (of_bodies)
		transport->receiving--;
	fragi_remote_receive_free(receive);
	if (part == NULL)
		return;
	part->receive = NULL;
	part->rx->edge.endpoint->heard_ns = transport->remote->now_ns;
	if (of_bodies)
		bodies_received(part, cause, bytes);
	else
		descriptors_received(part, cause, bytes);
}
