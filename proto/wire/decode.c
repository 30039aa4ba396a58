// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <base/policy.h>
#include <frag/v1/control.pb-c.h>
#include <wire/message.h>

/*
 * A frame comes from a stranger. protobuf-c checks its form, out of a budget of memory, because two
 * bytes can ask for a row of a hundred; everything else is checked here: counts, enums, lengths,
 * texts. The message and all it points to live in one arena behind it, so that fw_message_free is
 * one call.
 */
#define BUDGET_BYTES ((size_t)32 << 20)

struct decoded {
	struct fw_message message; /* first: what the caller holds */
	struct fragi_arena arena;
};

struct decoder {
	struct decoded *out;
	struct frag_err *err;
	int error;
	size_t budget;
	bool no_memory;
};

/* Each block carries its size in front, so that what is freed returns to the budget. */
static void *budget_alloc(void *arg, size_t size)
{
	struct decoder *d = arg;
	size_t *block;

	if (size > d->budget || d->budget - size < sizeof(max_align_t))
		return NULL;
	block = fragi_malloc(sizeof(max_align_t) + size);
	if (block == NULL) {
		d->no_memory = true;
		return NULL;
	}
	*block = sizeof(max_align_t) + size;
	d->budget -= *block;
	return (uint8_t *)block + sizeof(max_align_t);
}

static void budget_free(void *arg, void *memory)
{
	struct decoder *d = arg;
	size_t *block;

	if (memory == NULL)
		return;
	block = (size_t *)(void *)((uint8_t *)memory - sizeof(max_align_t));
	d->budget += *block;
	fragi_free(block);
}

static void bad(struct decoder *d, const char *what)
{
	if (d->error != 0)
		return;
	d->error = frag_err_set(d->err, -EBADMSG, "a %s message holds %s",
				fw_kind_name(d->out->message.kind), what);
}

static void *take(struct decoder *d, size_t size)
{
	void *memory = fragi_arena_alloc(&d->out->arena, size);

	if (memory == NULL && d->error == 0)
		d->error = -ENOMEM;
	return memory;
}

/* Room for count rows; NULL when there are none, too many, or something failed before. */
static void *rows(struct decoder *d, size_t count, size_t max, size_t row_bytes,
		  uint32_t *out_count)
{
	void *table;

	*out_count = 0;
	if (count > max)
		bad(d, "too many rows");
	if (count == 0 || d->error != 0)
		return NULL;
	table = take(d, count * row_bytes);
	if (table != NULL)
		*out_count = (uint32_t)count;
	return table;
}

static const char *text(struct decoder *d, const char *in)
{
	size_t length = strnlen(in, FW_TEXT_MAX + 1);
	char *copy;

	if (length > FW_TEXT_MAX) {
		bad(d, "a text that is too long");
		return "";
	}
	copy = fragi_arena_strndup(&d->out->arena, in, length);
	if (copy == NULL) {
		d->error = d->error != 0 ? d->error : -ENOMEM;
		return "";
	}
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)copy[i] < 0x20 || copy[i] == 0x7F)
			copy[i] = ' ';
	return copy;
}

static const char **texts(struct decoder *d, char **in, size_t count, size_t max,
			  uint32_t *out_count)
{
	const char **table = rows(d, count, max, sizeof(*table), out_count);

	for (uint32_t i = 0; i < *out_count; i++)
		table[i] = text(d, in[i]);
	return table;
}

static const void *data(struct decoder *d, ProtobufCBinaryData in, size_t max, uint32_t *out_size)
{
	void *copy;

	*out_size = 0;
	if (in.len > max)
		bad(d, "too many bytes");
	if (in.len == 0 || d->error != 0)
		return NULL;
	copy = take(d, in.len);
	if (copy == NULL)
		return NULL;
	memcpy(copy, in.data, in.len);
	*out_size = (uint32_t)in.len;
	return copy;
}

static int32_t exit_code(struct decoder *d, int32_t code)
{
	if (code < 0 || code > 255)
		bad(d, "an exit code out of range");
	return code;
}

/* One that only a newer peer knows is still a failure. */
static enum fragi_failure failure_code(uint32_t code)
{
	return code > FRAGI_FAILURE_NONE && code < FRAGI_FAILURES ? (enum fragi_failure)code
								  : FRAGI_FAILURE_OTHER;
}

static void failure(struct decoder *d, const Frag__V1__Failure *in, struct fw_failure *out)
{
	out->code = FRAGI_FAILURE_NONE;
	out->sentence = out->op = "";
	if (in == NULL)
		return;
	out->code = failure_code(in->code);
	out->sentence = text(d, in->sentence);
	out->op = text(d, in->operator_);
}

static int64_t duration(struct decoder *d, int64_t ns)
{
	if (ns < 0)
		bad(d, "a negative time");
	return ns;
}

static void decode_hello(struct decoder *d, const Frag__V1__Hello *in, struct fw_hello *out)
{
	out->major = in->major;
	out->minor = in->minor;
	out->name = out->worker_address = out->node = out->version = "";
	if (in->major != FW_PROTOCOL_MAJOR)
		return;
	if (in->role != FW_ROLE_WORKER && in->role != FW_ROLE_CLIENT)
		bad(d, "an unknown role");
	out->role = (enum fw_role)in->role;
	out->name = text(d, in->name);
	out->session = in->session;
	out->fragments =
		texts(d, in->fragments, in->n_fragments, FW_NAMES_MAX, &out->fragment_count);
	out->worker_address = text(d, in->worker_address);
	out->node = text(d, in->node);
	out->version = text(d, in->version);
	out->cores = in->cores;
	out->memory_bytes = in->memory_bytes;
}

/* A peer of another version may not know codes: it refuses because of the version. */
static void decode_refused(struct decoder *d, const Frag__V1__Refused *in, struct fw_failure *out)
{
	out->code = in->code == FRAGI_FAILURE_NONE ? FRAGI_FAILURE_VERSION_REFUSED
						   : failure_code(in->code);
	out->sentence = text(d, in->sentence);
	out->op = "";
}

static void decode_welcome(struct decoder *d, const Frag__V1__Welcome *in, struct fw_welcome *out)
{
	out->session = in->session;
	out->name = text(d, in->name);
	out->beat_ns = duration(d, in->beat_ns);
	out->dead_ns = duration(d, in->dead_ns);
	out->version = text(d, in->version);
}

static void decode_create(struct decoder *d, const Frag__V1__HostCreate *in,
			  struct fw_host_create *out)
{
	out->application = text(d, in->application);
	out->source = data(d, in->source, FW_FRAME_MAX, &out->source_bytes);
	out->fragments =
		texts(d, in->fragments, in->n_fragments, FW_NAMES_MAX, &out->fragment_count);
	out->beat_ns = duration(d, in->beat_ns);
	out->dead_ns = duration(d, in->dead_ns);
}

static void decode_op(struct decoder *d, const Frag__V1__Operator *in, struct fw_op *out)
{
	out->name = text(d, in->name);
	out->type = text(d, in->type);
	out->ports = rows(d, in->n_ports, FW_PORTS_MAX, sizeof(*out->ports), &out->port_count);
	for (uint32_t i = 0; i < out->port_count; i++) {
		const Frag__V1__Port *row = in->ports[i];
		struct fw_port *port = &out->ports[i];

		port->name = text(d, row->name);
		port->type = text(d, row->type);
		if (row->dir != FRAG_IN && row->dir != FRAG_OUT)
			bad(d, "a port without a direction");
		if (fragi_policy(row->policy) == NULL)
			bad(d, "an unknown policy");
		port->dir = row->dir;
		port->flags = row->flags;
		port->capacity = row->capacity;
		port->policy = row->policy;
		port->type_id = row->type_id;
		port->has_codec = row->has_codec != 0;
	}
}

/* Whether the three indices name a port of that direction in the tables of the same message. */
static bool is_port(const struct fw_host_prepared *in, uint32_t fragment, uint32_t op,
		    uint32_t port, uint32_t dir)
{
	return fragment < in->fragment_count && op < in->fragments[fragment].op_count &&
	       port < in->fragments[fragment].ops[op].port_count &&
	       in->fragments[fragment].ops[op].ports[port].dir == dir;
}

static void decode_inner_flow(struct decoder *d, const Frag__V1__InnerFlow *in,
			      const struct fw_host_prepared *tables, struct fw_inner_flow *out)
{
	if (!is_port(tables, in->from_fragment, in->from_op, in->from_port, FRAG_OUT) ||
	    !is_port(tables, in->to_fragment, in->to_op, in->to_port, FRAG_IN))
		bad(d, "a flow between ports that are not there");
	if (in->capacity == 0 || in->policy == FRAG_POLICY_DEFAULT ||
	    fragi_policy(in->policy) == NULL)
		bad(d, "a flow without a capacity or a policy");
	out->from_fragment = in->from_fragment;
	out->from_op = in->from_op;
	out->from_port = in->from_port;
	out->to_fragment = in->to_fragment;
	out->to_op = in->to_op;
	out->to_port = in->to_port;
	out->capacity = in->capacity;
	out->policy = in->policy;
}

static struct fw_address *decode_addresses(struct decoder *d, Frag__V1__DataAddress *const *in,
					   size_t count, uint32_t *out_count)
{
	struct fw_address *out = rows(d, count, FW_TRANSPORTS_MAX, sizeof(*out), out_count);

	for (uint32_t i = 0; i < *out_count && d->error == 0; i++) {
		out[i].transport = text(d, in[i]->transport);
		out[i].bytes = data(d, in[i]->bytes, FW_ADDRESS_MAX, &out[i].size);
		if (out[i].size == 0)
			bad(d, "an empty address");
	}
	return out;
}

static void decode_prepared(struct decoder *d, const Frag__V1__HostPrepared *in,
			    struct fw_host_prepared *out)
{
	uint32_t ops = 0;

	out->ok = in->ok != 0;
	out->errors = rows(d, in->n_errors, FW_ERRORS_MAX, sizeof(*out->errors), &out->error_count);
	for (uint32_t i = 0; i < out->error_count; i++)
		failure(d, in->errors[i], &out->errors[i]);
	out->fragments = rows(d, in->n_fragments, FW_NAMES_MAX, sizeof(*out->fragments),
			      &out->fragment_count);
	for (uint32_t i = 0; i < out->fragment_count && d->error == 0; i++) {
		const Frag__V1__Fragment *row = in->fragments[i];
		struct fw_fragment *fragment = &out->fragments[i];

		fragment->name = text(d, row->name);
		fragment->ops = rows(d, row->n_operators, FW_ROWS_MAX - ops, sizeof(*fragment->ops),
				     &fragment->op_count);
		ops += fragment->op_count;
		for (uint32_t j = 0; j < fragment->op_count && d->error == 0; j++)
			decode_op(d, row->operators[j], &fragment->ops[j]);
	}
	out->flows = rows(d, in->n_flows, FW_ROWS_MAX, sizeof(*out->flows), &out->flow_count);
	for (uint32_t i = 0; i < out->flow_count && d->error == 0; i++)
		decode_inner_flow(d, in->flows[i], out, &out->flows[i]);
	out->addresses = decode_addresses(d, in->addresses, in->n_addresses, &out->address_count);
	out->transport = text(d, in->transport);
	out->pid = in->pid;
}

static void decode_edge(struct decoder *d, const Frag__V1__Edge *in, struct fw_edge *out)
{
	if (in->token.len != FW_TOKEN_BYTES)
		bad(d, "a token of another length");
	else
		/*
		 * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): rows counts what it gave
		 */
		memcpy(out->token, in->token.data, FW_TOKEN_BYTES);
	if (in->policy == FRAG_POLICY_DEFAULT || fragi_policy(in->policy) == NULL ||
	    in->window_messages == 0 || in->window_bytes == 0 || in->message_bytes_max == 0)
		bad(d, "an edge without a policy or a window");
	out->flow = in->flow;
	out->sends = in->sends != 0;
	out->fragment = in->fragment;
	out->op = in->op;
	out->port = in->port;
	out->peer = in->peer;
	out->window_messages = in->window_messages;
	out->window_bytes = in->window_bytes;
	out->message_bytes_max = in->message_bytes_max;
	out->order = in->order;
	out->policy = in->policy;
	out->other_end = text(d, in->other_end);
	out->transport = text(d, in->transport);
	out->transport_reason = text(d, in->transport_reason);
}

static void decode_wire(struct decoder *d, const Frag__V1__HostWire *in, struct fw_host_wire *out)
{
	out->peers = rows(d, in->n_peers, FW_ROWS_MAX, sizeof(*out->peers), &out->peer_count);
	for (uint32_t i = 0; i < out->peer_count; i++) {
		struct fw_peer *peer = &out->peers[i];

		peer->host = in->peers[i]->host;
		peer->epoch = in->peers[i]->epoch;
		peer->addresses = decode_addresses(d, in->peers[i]->addresses,
						   in->peers[i]->n_addresses, &peer->address_count);
		peer->name = text(d, in->peers[i]->name);
	}
	out->edges = rows(d, in->n_edges, FW_ROWS_MAX, sizeof(*out->edges), &out->edge_count);
	for (uint32_t i = 0; i < out->edge_count; i++)
		decode_edge(d, in->edges[i], &out->edges[i]);
}

static void decode_result(struct decoder *d, const Frag__V1__HostResult *in,
			  struct fw_host_result *out)
{
	failure(d, in->failure, &out->failure);
}

static void decode_stop(struct decoder *d, const Frag__V1__HostStop *in, struct fw_host_stop *out)
{
	out->drain_ns = duration(d, in->drain_ns);
	out->exit_code = exit_code(d, in->exit_code);
}

static void decode_event(struct decoder *d, const Frag__V1__HostEvent *in,
			 struct fw_host_event *out)
{
	if (in->state < FW_STATE_RUNNING || in->state > FW_STATE_STOPPED)
		bad(d, "an unknown state");
	out->state = (enum fw_host_state)in->state;
	out->peer = in->peer;
	failure(d, in->failure, &out->failure);
	out->idle_rounds = in->idle_rounds;
	out->sent = in->sent;
	out->delivered = in->delivered;
}

/* A newer peer may count reasons that this side does not know: they are added to the last one. */
static void reasons(const uint64_t *in, size_t count, uint64_t *out)
{
	for (size_t i = 0; i < count; i++)
		out[i < FRAGI_DROP_REASONS ? i : FRAGI_DROP_REASONS - 1] += in[i];
}

static void quantiles(const Frag__V1__Quantiles *in, struct fragi_quantiles *out)
{
	if (in == NULL)
		return;
	out->count = in->count;
	out->p50 = in->p50;
	out->p99 = in->p99;
	out->p999 = in->p999;
	out->max = in->max;
}

/* Counters that only a newer peer knows are left out. */
static void counters(const uint64_t *in, size_t count, uint64_t *out, size_t known)
{
	for (size_t i = 0; i < count && i < known; i++)
		out[i] = in[i];
}

static void decode_flow_stats(const Frag__V1__FlowStats *in, struct fragi_flow_stats *out)
{
	counters(in->sender, in->n_sender, out->counters, FRAGI_SENDER_COUNTERS);
	counters(in->receiver, in->n_receiver, out->counters + FRAGI_SENDER_COUNTERS,
		 FRAGI_RECEIVER_COUNTERS);
	reasons(in->tx_dropped, in->n_tx_dropped, out->tx_dropped);
	reasons(in->rx_dropped, in->n_rx_dropped, out->rx_dropped);
	quantiles(in->latency, &out->latency);
}

static void decode_stats(struct decoder *d, const Frag__V1__HostStats *in,
			 struct fw_host_stats *out)
{
	out->final = in->final != 0;
	out->ops = rows(d, in->n_ops, FW_ROWS_MAX, sizeof(*out->ops), &out->op_count);
	for (uint32_t i = 0; i < out->op_count; i++) {
		out->ops[i].state = in->ops[i]->state;
		out->ops[i].running = in->ops[i]->running != 0;
		out->ops[i].ticks = in->ops[i]->ticks;
		quantiles(in->ops[i]->compute, &out->ops[i].compute);
	}
	out->flows = rows(d, in->n_flows, FW_ROWS_MAX, sizeof(*out->flows), &out->flow_count);
	for (uint32_t i = 0; i < out->flow_count; i++)
		decode_flow_stats(in->flows[i], &out->flows[i]);
}

static void decode_exit(struct decoder *d, const Frag__V1__HostExit *in, struct fw_host_exit *out)
{
	if (in->signal < 0 || in->signal > 127)
		bad(d, "a signal out of range");
	out->exit_code = exit_code(d, in->exit_code);
	out->signal = in->signal;
	failure(d, in->failure, &out->failure);
	out->lines = texts(d, in->lines, in->n_lines, FW_LINES_MAX, &out->line_count);
	out->asked = in->asked;
}

static void decode_body(struct decoder *d, const Frag__V1__Envelope *in, struct fw_message *out)
{
	switch (out->kind) {
	case FW_HELLO:
		decode_hello(d, in->hello, &out->hello);
		return;
	case FW_WELCOME:
		decode_welcome(d, in->welcome, &out->welcome);
		return;
	case FW_REFUSED:
		decode_refused(d, in->refused, &out->refused.failure);
		return;
	case FW_HOST_CREATE:
		decode_create(d, in->host_create, &out->create);
		return;
	case FW_HOST_PREPARED:
		decode_prepared(d, in->host_prepared, &out->prepared);
		return;
	case FW_HOST_WIRE:
		decode_wire(d, in->host_wire, &out->wire);
		return;
	case FW_HOST_WIRED:
		decode_result(d, in->host_wired, &out->result);
		return;
	case FW_HOST_STARTED:
		decode_result(d, in->host_started, &out->result);
		return;
	case FW_HOST_STOP:
		decode_stop(d, in->host_stop, &out->stop);
		return;
	case FW_HOST_KILL:
		decode_stop(d, in->host_kill, &out->stop);
		return;
	case FW_HOST_EVENT:
		decode_event(d, in->host_event, &out->event);
		return;
	case FW_HOST_STATS:
		decode_stats(d, in->host_stats, &out->stats);
		return;
	case FW_HOST_EXIT:
		decode_exit(d, in->host_exit, &out->exit);
		return;
	case FW_BEAT:
	case FW_HOST_START:
		return;
	}
}

static int kind_of(Frag__V1__Envelope__BodyCase body)
{
	static const struct {
		Frag__V1__Envelope__BodyCase body;
		enum fw_kind kind;
	} kinds[] = {
		{FRAG__V1__ENVELOPE__BODY_HELLO, FW_HELLO},
		{FRAG__V1__ENVELOPE__BODY_WELCOME, FW_WELCOME},
		{FRAG__V1__ENVELOPE__BODY_REFUSED, FW_REFUSED},
		{FRAG__V1__ENVELOPE__BODY_BEAT, FW_BEAT},
		{FRAG__V1__ENVELOPE__BODY_HOST_CREATE, FW_HOST_CREATE},
		{FRAG__V1__ENVELOPE__BODY_HOST_PREPARED, FW_HOST_PREPARED},
		{FRAG__V1__ENVELOPE__BODY_HOST_WIRE, FW_HOST_WIRE},
		{FRAG__V1__ENVELOPE__BODY_HOST_WIRED, FW_HOST_WIRED},
		{FRAG__V1__ENVELOPE__BODY_HOST_START, FW_HOST_START},
		{FRAG__V1__ENVELOPE__BODY_HOST_STARTED, FW_HOST_STARTED},
		{FRAG__V1__ENVELOPE__BODY_HOST_STOP, FW_HOST_STOP},
		{FRAG__V1__ENVELOPE__BODY_HOST_KILL, FW_HOST_KILL},
		{FRAG__V1__ENVELOPE__BODY_HOST_EVENT, FW_HOST_EVENT},
		{FRAG__V1__ENVELOPE__BODY_HOST_STATS, FW_HOST_STATS},
		{FRAG__V1__ENVELOPE__BODY_HOST_EXIT, FW_HOST_EXIT},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].body == body)
			return (int)kinds[i].kind;
	return 0;
}

int fw_decode(const uint8_t *bytes, size_t size, struct fw_message **out_message,
	      struct frag_err *err)
{
	struct decoder decoder = {.err = err, .budget = BUDGET_BYTES};
	ProtobufCAllocator allocator = {budget_alloc, budget_free, &decoder};
	Frag__V1__Envelope *envelope;
	struct fw_message *message;

	if (size > FW_FRAME_MAX)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes came, at most %u are taken", size,
				    FW_FRAME_MAX);
	envelope = frag__v1__envelope__unpack(&allocator, size, bytes);
	if (envelope == NULL && decoder.no_memory)
		return -ENOMEM;
	if (envelope == NULL)
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds no message of this protocol", size);
	if (kind_of(envelope->body_case) == 0) {
		frag__v1__envelope__free_unpacked(envelope, &allocator);
		return frag_err_set(err, -EBADMSG,
				    "a frame of %zu bytes holds a message of unknown kind", size);
	}
	decoder.out = fragi_calloc(1, sizeof(*decoder.out));
	if (decoder.out == NULL) {
		frag__v1__envelope__free_unpacked(envelope, &allocator);
		return -ENOMEM;
	}
	decoder.out->arena.limit_bytes = BUDGET_BYTES;
	message = &decoder.out->message;
	message->kind = (enum fw_kind)kind_of(envelope->body_case);
	message->seq = envelope->seq;
	message->reply_to = envelope->reply_to;
	message->run = envelope->run;
	message->host = envelope->host;
	message->epoch = envelope->epoch;
	decode_body(&decoder, envelope, message);
	frag__v1__envelope__free_unpacked(envelope, &allocator);
	if (decoder.error != 0) {
		fw_message_free(message);
		return decoder.error;
	}
	*out_message = message;
	return 0;
}

void fw_message_free(struct fw_message *message)
{
	struct decoded *decoded = (struct decoded *)message;

	if (message == NULL)
		return;
	fragi_arena_fini(&decoded->arena);
	fragi_free(decoded);
}
