// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/*
 * The protobuf tree of one message is built in an arena, borrowing the message's texts, packed, and
 * dropped. The first failure is kept in error; what follows it builds on empty tables.
 */
struct encoder {
	struct fragi_arena arena;
	int error;
};

static char empty[] = "";

static void *take(struct encoder *e, size_t size)
{
	void *memory = fragi_arena_alloc(&e->arena, size);

	if (memory == NULL && e->error == 0)
		e->error = -ENOMEM;
	return memory;
}

static void *new_body(struct encoder *e, const ProtobufCMessageDescriptor *type)
{
	void *body = take(e, type->sizeof_message);

	if (body != NULL)
		protobuf_c_message_init(type, body);
	return body;
}

/* A table of count initialised rows, NULL when it is empty, too long or there is no memory. */
static void *new_rows(struct encoder *e, const ProtobufCMessageDescriptor *type, size_t count,
		      size_t max, size_t *out_count)
{
	ProtobufCMessage **rows;

	*out_count = 0;
	if (count > max && e->error == 0)
		e->error = -EMSGSIZE;
	if (count == 0 || e->error < 0)
		return NULL;
	rows = take(e, count * sizeof(*rows));
	for (size_t i = 0; rows != NULL && i < count; i++) {
		rows[i] = new_body(e, type);
		if (rows[i] == NULL)
			return NULL;
	}
	if (rows != NULL)
		*out_count = count;
	return rows;
}

/* The text itself, or a copy cut to FW_TEXT_MAX, not within a UTF-8 character. */
static char *text_of(struct encoder *e, const char *text)
{
	size_t length;
	char *copy;

	if (text == NULL)
		return empty;
	length = strnlen(text, FW_TEXT_MAX + 1);
	if (length <= FW_TEXT_MAX)
		return (char *)(uintptr_t)text;
	for (length = FW_TEXT_MAX;
	     length > FW_TEXT_MAX - 4 && ((unsigned char)text[length] & 0xC0) == 0x80;)
		length--;
	copy = fragi_arena_strndup(&e->arena, text, length);
	if (copy == NULL && e->error == 0)
		e->error = -ENOMEM;
	return copy != NULL ? copy : empty;
}

static char **texts_of(struct encoder *e, const char *const *texts, size_t count, size_t max,
		       size_t *out_count)
{
	char **rows;

	*out_count = 0;
	if (count > max && e->error == 0)
		e->error = -EMSGSIZE;
	if (count == 0 || e->error < 0)
		return NULL;
	rows = take(e, count * sizeof(*rows));
	for (size_t i = 0; rows != NULL && i < count; i++)
		rows[i] = text_of(e, texts[i]);
	if (rows != NULL)
		*out_count = count;
	return rows;
}

static void encode_failure(struct encoder *e, const struct fw_failure *in, Frag__V1__Failure *out)
{
	out->code = (uint32_t)in->code;
	out->sentence = text_of(e, in->sentence);
	out->operator_ = text_of(e, in->op);
}

/* NULL, which is not sent, for NONE. */
static Frag__V1__Failure *failure_of(struct encoder *e, const struct fw_failure *in)
{
	Frag__V1__Failure *out = NULL;

	if (in->code != FRAGI_FAILURE_NONE)
		out = new_body(e, &frag__v1__failure__descriptor);
	if (out != NULL)
		encode_failure(e, in, out);
	return out;
}

static ProtobufCBinaryData data_of(struct encoder *e, const void *bytes, size_t size, size_t max)
{
	if (size > max && e->error == 0)
		e->error = -EMSGSIZE;
	return (ProtobufCBinaryData){.len = e->error == 0 ? size : 0,
				     .data = (uint8_t *)(uintptr_t)bytes};
}

static void encode_refused(struct encoder *e, const struct fw_failure *in, Frag__V1__Refused *out)
{
	out->exit_code = fragi_failure_exit(in->code);
	out->sentence = text_of(e, in->sentence);
	out->code = (uint32_t)in->code;
}

static void encode_hello(struct encoder *e, const struct fw_hello *in, Frag__V1__Hello *out)
{
	out->major = in->major;
	out->minor = in->minor;
	out->role = (uint32_t)in->role;
	out->name = text_of(e, in->name);
	out->session = in->session;
	out->fragments =
		texts_of(e, in->fragments, in->fragment_count, FW_NAMES_MAX, &out->n_fragments);
	out->worker_address = text_of(e, in->worker_address);
	out->node = text_of(e, in->node);
	out->version = text_of(e, in->version);
	out->cores = in->cores;
	out->memory_bytes = in->memory_bytes;
}

static void encode_welcome(struct encoder *e, const struct fw_welcome *in, Frag__V1__Welcome *out)
{
	out->session = in->session;
	out->name = text_of(e, in->name);
	out->beat_ns = in->beat_ns;
	out->dead_ns = in->dead_ns;
	out->version = text_of(e, in->version);
}

static void encode_create(struct encoder *e, const struct fw_host_create *in,
			  Frag__V1__HostCreate *out)
{
	out->application = text_of(e, in->application);
	out->source = data_of(e, in->source, in->source_bytes, FW_FRAME_MAX);
	out->fragments =
		texts_of(e, in->fragments, in->fragment_count, FW_NAMES_MAX, &out->n_fragments);
	out->beat_ns = in->beat_ns;
	out->dead_ns = in->dead_ns;
}

static void encode_op(struct encoder *e, const struct fw_op *in, Frag__V1__Operator *out)
{
	out->name = text_of(e, in->name);
	out->type = text_of(e, in->type);
	out->ports = new_rows(e, &frag__v1__port__descriptor, in->port_count, FW_PORTS_MAX,
			      &out->n_ports);
	for (size_t i = 0; i < out->n_ports; i++) {
		const struct fw_port *port = &in->ports[i];
		Frag__V1__Port *row = out->ports[i];

		row->name = text_of(e, port->name);
		row->type = text_of(e, port->type);
		row->dir = port->dir;
		row->flags = port->flags;
		row->capacity = port->capacity;
		row->policy = port->policy;
		row->type_id = port->type_id;
		row->has_codec = port->has_codec;
	}
}

static Frag__V1__DataAddress **encode_addresses(struct encoder *e, const struct fw_address *in,
						uint32_t count, size_t *out_count)
{
	Frag__V1__DataAddress **out = new_rows(e, &frag__v1__data_address__descriptor, count,
					       FW_TRANSPORTS_MAX, out_count);

	for (size_t i = 0; i < *out_count; i++) {
		out[i]->transport = text_of(e, in[i].transport);
		out[i]->bytes = data_of(e, in[i].bytes, in[i].size, FW_ADDRESS_MAX);
	}
	return out;
}

static void encode_prepared(struct encoder *e, const struct fw_host_prepared *in,
			    Frag__V1__HostPrepared *out)
{
	size_t errors = in->error_count < FW_ERRORS_MAX ? in->error_count : FW_ERRORS_MAX;

	out->ok = in->ok;
	out->errors =
		new_rows(e, &frag__v1__failure__descriptor, errors, FW_ERRORS_MAX, &out->n_errors);
	for (size_t i = 0; i < out->n_errors; i++)
		encode_failure(e, &in->errors[i], out->errors[i]);
	out->fragments = new_rows(e, &frag__v1__fragment__descriptor, in->fragment_count,
				  FW_NAMES_MAX, &out->n_fragments);
	for (size_t i = 0; i < out->n_fragments; i++) {
		const struct fw_fragment *fragment = &in->fragments[i];
		Frag__V1__Fragment *row = out->fragments[i];

		row->name = text_of(e, fragment->name);
		row->operators = new_rows(e, &frag__v1__operator__descriptor, fragment->op_count,
					  FW_ROWS_MAX, &row->n_operators);
		for (size_t j = 0; j < row->n_operators; j++)
			encode_op(e, &fragment->ops[j], row->operators[j]);
	}
	out->flows = new_rows(e, &frag__v1__inner_flow__descriptor, in->flow_count, FW_ROWS_MAX,
			      &out->n_flows);
	for (size_t i = 0; i < out->n_flows; i++) {
		const struct fw_inner_flow *flow = &in->flows[i];
		Frag__V1__InnerFlow *row = out->flows[i];

		row->from_fragment = flow->from_fragment;
		row->from_op = flow->from_op;
		row->from_port = flow->from_port;
		row->to_fragment = flow->to_fragment;
		row->to_op = flow->to_op;
		row->to_port = flow->to_port;
		row->capacity = flow->capacity;
		row->policy = flow->policy;
	}
	out->addresses = encode_addresses(e, in->addresses, in->address_count, &out->n_addresses);
	out->transport = text_of(e, in->transport);
	out->pid = in->pid;
}

static void encode_wire(struct encoder *e, const struct fw_host_wire *in, Frag__V1__HostWire *out)
{
	out->peers = new_rows(e, &frag__v1__peer__descriptor, in->peer_count, FW_ROWS_MAX,
			      &out->n_peers);
	for (size_t i = 0; i < out->n_peers; i++) {
		const struct fw_peer *peer = &in->peers[i];

		out->peers[i]->host = peer->host;
		out->peers[i]->epoch = peer->epoch;
		out->peers[i]->addresses = encode_addresses(e, peer->addresses, peer->address_count,
							    &out->peers[i]->n_addresses);
		out->peers[i]->name = text_of(e, peer->name);
	}
	out->edges = new_rows(e, &frag__v1__edge__descriptor, in->edge_count, FW_ROWS_MAX,
			      &out->n_edges);
	for (size_t i = 0; i < out->n_edges; i++) {
		const struct fw_edge *edge = &in->edges[i];
		Frag__V1__Edge *row = out->edges[i];

		row->flow = edge->flow;
		row->sends = edge->sends;
		row->fragment = edge->fragment;
		row->op = edge->op;
		row->port = edge->port;
		row->peer = edge->peer;
		row->token = data_of(e, edge->token, sizeof(edge->token), FW_TOKEN_BYTES);
		row->window_messages = edge->window_messages;
		row->window_bytes = edge->window_bytes;
		row->message_bytes_max = edge->message_bytes_max;
		row->policy = edge->policy;
		row->order = edge->order;
		row->other_end = text_of(e, edge->other_end);
		row->transport = text_of(e, edge->transport);
		row->transport_reason = text_of(e, edge->transport_reason);
	}
}

static void encode_event(struct encoder *e, const struct fw_host_event *in,
			 Frag__V1__HostEvent *out)
{
	out->state = (uint32_t)in->state;
	out->peer = in->peer;
	out->failure = failure_of(e, &in->failure);
	out->idle_rounds = in->idle_rounds;
	out->sent = in->sent;
	out->delivered = in->delivered;
}

static uint64_t *numbers_of(struct encoder *e, const uint64_t *numbers, size_t count,
			    size_t *out_count)
{
	uint64_t *copy = take(e, count * sizeof(*copy));

	*out_count = copy != NULL ? count : 0;
	if (copy != NULL)
		memcpy(copy, numbers, count * sizeof(*copy));
	return copy;
}

static Frag__V1__Quantiles *quantiles_of(struct encoder *e, const struct fragi_quantiles *in)
{
	Frag__V1__Quantiles *out = new_body(e, &frag__v1__quantiles__descriptor);

	if (out == NULL)
		return NULL;
	out->count = in->count;
	out->p50 = in->p50;
	out->p99 = in->p99;
	out->p999 = in->p999;
	out->max = in->max;
	return out;
}

static void encode_flow_stats(struct encoder *e, const struct fragi_flow_stats *in,
			      Frag__V1__FlowStats *out)
{
	out->sender = numbers_of(e, in->counters, FRAGI_SENDER_COUNTERS, &out->n_sender);
	out->receiver = numbers_of(e, in->counters + FRAGI_SENDER_COUNTERS, FRAGI_RECEIVER_COUNTERS,
				   &out->n_receiver);
	out->tx_dropped = numbers_of(e, in->tx_dropped, FRAGI_DROP_REASONS, &out->n_tx_dropped);
	out->rx_dropped = numbers_of(e, in->rx_dropped, FRAGI_DROP_REASONS, &out->n_rx_dropped);
	out->latency = quantiles_of(e, &in->latency);
}

static void encode_stats(struct encoder *e, const struct fw_host_stats *in,
			 Frag__V1__HostStats *out)
{
	out->final = in->final;
	out->ops = new_rows(e, &frag__v1__op_stats__descriptor, in->op_count, FW_ROWS_MAX,
			    &out->n_ops);
	for (size_t i = 0; i < out->n_ops; i++) {
		out->ops[i]->state = in->ops[i].state;
		out->ops[i]->running = in->ops[i].running;
		out->ops[i]->ticks = in->ops[i].ticks;
		out->ops[i]->compute = quantiles_of(e, &in->ops[i].compute);
	}
	out->flows = new_rows(e, &frag__v1__flow_stats__descriptor, in->flow_count, FW_ROWS_MAX,
			      &out->n_flows);
	for (size_t i = 0; i < out->n_flows; i++)
		encode_flow_stats(e, &in->flows[i], out->flows[i]);
}

static void encode_exit(struct encoder *e, const struct fw_host_exit *in, Frag__V1__HostExit *out)
{
	size_t lines = in->line_count < FW_LINES_MAX ? in->line_count : FW_LINES_MAX;
	const char *const *last =
		lines > 0 ? (const char *const *)in->lines + (in->line_count - lines) : NULL;

	out->exit_code = in->exit_code;
	out->signal = in->signal;
	out->failure = failure_of(e, &in->failure);
	out->lines = texts_of(e, last, lines, FW_LINES_MAX, &out->n_lines);
	out->asked = in->asked;
}

static void encode_result(struct encoder *e, const struct fw_host_result *in,
			  Frag__V1__HostResult *out)
{
	out->failure = failure_of(e, &in->failure);
}

static void encode_stop(const struct fw_host_stop *in, Frag__V1__HostStop *out)
{
	out->drain_ns = in->drain_ns;
	out->exit_code = in->exit_code;
}

/*
 * Makes the body of one kind, which is named by the field of the envelope, and tells the envelope
 * its case.
 */
#define BODY(field, type, CASE)                                                                    \
	(out->body_case = FRAG__V1__ENVELOPE__BODY_##CASE,                                         \
	 out->field = new_body(e, &frag__v1__##type##__descriptor), out->field != NULL)

static void encode_body(struct encoder *e, const struct fw_message *in, Frag__V1__Envelope *out)
{
	switch (in->kind) {
	case FW_HELLO:
		if (BODY(hello, hello, HELLO))
			encode_hello(e, &in->hello, out->hello);
		return;
	case FW_WELCOME:
		if (BODY(welcome, welcome, WELCOME))
			encode_welcome(e, &in->welcome, out->welcome);
		return;
	case FW_REFUSED:
		if (BODY(refused, refused, REFUSED))
			encode_refused(e, &in->refused.failure, out->refused);
		return;
	case FW_BEAT:
		(void)BODY(beat, beat, BEAT);
		return;
	case FW_HOST_CREATE:
		if (BODY(host_create, host_create, HOST_CREATE))
			encode_create(e, &in->create, out->host_create);
		return;
	case FW_HOST_PREPARED:
		if (BODY(host_prepared, host_prepared, HOST_PREPARED))
			encode_prepared(e, &in->prepared, out->host_prepared);
		return;
	case FW_HOST_WIRE:
		if (BODY(host_wire, host_wire, HOST_WIRE))
			encode_wire(e, &in->wire, out->host_wire);
		return;
	case FW_HOST_WIRED:
		if (BODY(host_wired, host_result, HOST_WIRED))
			encode_result(e, &in->result, out->host_wired);
		return;
	case FW_HOST_START:
		(void)BODY(host_start, host_start, HOST_START);
		return;
	case FW_HOST_STARTED:
		if (BODY(host_started, host_result, HOST_STARTED))
			encode_result(e, &in->result, out->host_started);
		return;
	case FW_HOST_STOP:
		if (BODY(host_stop, host_stop, HOST_STOP))
			encode_stop(&in->stop, out->host_stop);
		return;
	case FW_HOST_KILL:
		if (BODY(host_kill, host_stop, HOST_KILL))
			encode_stop(&in->stop, out->host_kill);
		return;
	case FW_HOST_EVENT:
		if (BODY(host_event, host_event, HOST_EVENT))
			encode_event(e, &in->event, out->host_event);
		return;
	case FW_HOST_STATS:
		if (BODY(host_stats, host_stats, HOST_STATS))
			encode_stats(e, &in->stats, out->host_stats);
		return;
	case FW_HOST_EXIT:
		if (BODY(host_exit, host_exit, HOST_EXIT))
			encode_exit(e, &in->exit, out->host_exit);
		return;
	}
	e->error = -EINVAL;
}

static int pack(const Frag__V1__Envelope *envelope, uint8_t **out_frame, size_t *out_size)
{
	size_t size = frag__v1__envelope__get_packed_size(envelope);
	uint8_t *frame;

	if (size > FW_FRAME_MAX)
		return -EMSGSIZE;
	frame = fragi_malloc(4 + size);
	if (frame == NULL)
		return -ENOMEM;
	for (int i = 0; i < 4; i++)
		frame[i] = (uint8_t)(size >> (8 * i));
	frag__v1__envelope__pack(envelope, frame + 4);
	*out_frame = frame;
	*out_size = 4 + size;
	return 0;
}

int fw_encode(const struct fw_message *message, uint8_t **out_frame, size_t *out_size)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	struct encoder encoder = {0};
	int r;

	envelope.seq = message->seq;
	envelope.reply_to = message->reply_to;
	envelope.run = message->run;
	envelope.host = message->host;
	envelope.epoch = message->epoch;
	encode_body(&encoder, message, &envelope);
	r = encoder.error;
	if (r == 0)
		r = pack(&envelope, out_frame, out_size);
	fragi_arena_fini(&encoder.arena);
	return r;
}
