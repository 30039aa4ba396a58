// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "expected.h"
#include "logged.h"
#include "remote_state.h"

#include <base/alloc.h>
#include <conformance/message.h>
#include <conformance/mischief.h>
#include <conformance/socket.h>
#include <edge/remote/header.h>
#include <edge/remote/state.h>
#include <frag/frag.h>

/*
 * Drawn lives of two hosts with flows in both directions, over the transport of tests: messages of
 * all kinds, windows, policies, closes, suspended and replaced hosts, connections that are cut,
 * silence and short memory. What travels between them, what the operators get, and what the ledgers
 * count is compared with a recorded text. Time is the test's.
 */
#define LIVES 300
#define LIVES_SHOWN 36
#define STEPS 130
#define DULL_STEPS 12 /* after which a life without a connection ends */
#define FLOWS 4
#define HELD 6
#define REPLACED 4
#define OWN_OFFSET 24

extern const struct fragi_crypto_ops fragi_crypto_v1;

struct side {
	struct fragi_remote *remote; /* NULL: there is none */
	struct fragi_pump *pump;
	struct fragi_ledger ledger;
	struct fragi_remote_peer *peer;
	struct fragi_remote_endpoint *endpoint;
	uint64_t epoch;
};

struct flow {
	struct fragi_edge_config config;
	int from; /* the side that sends */
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	int64_t number;
	uint32_t tensors, size; /* of the last message */
	uint32_t arrivals, rooms;
	uint64_t seen[2][FRAGI_COUNTERS + 2 * FRAGI_DROP_REASONS];
};

static FILE *out;
static struct side sides[2], replaced[REPLACED];
static uint32_t replaced_count;
static struct flow flows[FLOWS];
static struct frag_message *held[HELD];
static bool is_encrypted, is_timed;
static int64_t fake_ns, step_ns;

static uint64_t fake_stamp(void)
{
	return (uint64_t)fake_ns;
}

/* Time passes only when a host ends, which waits for its peers. */
int clock_gettime(clockid_t id, struct timespec *time)
{
	if (!is_timed)
		return (int)syscall(SYS_clock_gettime, id, time);
	fake_ns += step_ns;
	time->tv_sec = fake_ns / 1000000000;
	time->tv_nsec = fake_ns % 1000000000;
	return 0;
}

/* It would only wait for time to pass. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	struct timespec time = {timeout_ms / 1000, timeout_ms % 1000 * 1000000};

	return is_timed ? 0 : ppoll(fds, count, timeout_ms < 0 ? NULL : &time, NULL);
}

static bool say(const char *format, ...) FRAG_PRINTF(1, 2);
static bool say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	fputc('\n', out);
	va_end(args);
	return true;
}

/* What travels: sequence, bytes of descriptors and of bodies. */

static const char *const kinds[FRAGI_KINDS] = {"HELLO", "DATA",  "DESCRIPTORS", "CREDIT",
					       "BEAT",  "CLOSE", "DONE",        "SYNC"};

static uint32_t relay(struct message *message)
{
	const uint8_t *bytes = message->header;
	struct fragi_header header;
	struct fragi_next next;

	if (fragi_next_unpack(bytes, message->header_bytes, &next)) {
		say("  > NEXT flow %u: %" PRIu64 ", value of %u, %u bodies of %" PRIu64, next.flow,
		    next.sequence, message->header_bytes - FRAGI_NEXT_BYTES, message->count,
		    message->bytes);
		return 1;
	}
	cr_assert(fragi_header_unpack(bytes, message->header_bytes, &header));
	fprintf(out, "  > %s %x of epoch %" PRIu64 " flow %u %c%u: %" PRIu64 ", %u, %" PRIu64,
		kinds[header.kind], header.flags, header.epoch, header.flow,
		header.token[0] != 0 ? header.token[0] : '-', header.token[15], header.sequence,
		header.descriptor_bytes, header.body_bytes);
	if (message->header_bytes != FRAGI_HEADER_BYTES || message->count > 0)
		fprintf(out, ", header %u, %u bodies of %" PRIu64, message->header_bytes,
			message->count, message->bytes);
	if (header.kind == FRAGI_KIND_DATA && (header.flags & FRAGI_FLAG_CREDITED) != 0 &&
	    !is_encrypted) {
		const struct fragi_credit credit = fragi_credit_unpack(bytes + FRAGI_HEADER_BYTES);

		fprintf(out, ", credit of flow %u: %" PRIu64 ", %" PRIu64, credit.flow,
			credit.messages, credit.bytes);
	}
	fputc('\n', out);
	return 1;
}

/* What the hosts report. */

static int side_of(void *arg)
{
	return (int)(intptr_t)arg;
}

static void on_ready(void *arg, uint32_t host)
{
	say("  side %d: host %u is ready", side_of(arg), host);
}

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	/* Which ports are to be opened depends on the machine. */
	const char *advice = strstr(sentence, ": its process");

	say("  side %d: host %u is lost, %d: %.*s", side_of(arg), host, failure,
	    advice != NULL ? (int)(advice - sentence) : (int)strlen(sentence), sentence);
}

static void on_fault(void *arg, enum fragi_failure failure, const char *op, const char *sentence)
{
	say("  side %d: fault %d of %s: %s", side_of(arg), failure, op != NULL ? op : "nobody",
	    sentence);
}

static void on_arrival(void *arg)
{
	((struct flow *)arg)->arrivals++;
}

static void on_room(void *arg)
{
	((struct flow *)arg)->rooms++;
}

/* What has changed since it was printed last: names of counters, and by how much. */

static void show_counter(struct flow *flow, int side, uint32_t at, const char *name, uint64_t now,
			 bool *is_first)
{
	if (now == flow->seen[side][at])
		return;
	if (*is_first)
		fprintf(out, "  flow %d, side %d:", (int)(flow - flows), side);
	*is_first = false;
	fprintf(out, " %s %" PRIu64, name, now);
	flow->seen[side][at] = now;
}

static void show_row(struct flow *flow, int side)
{
	const struct fragi_flow_row *row = &sides[side].ledger.flows[flow - flows];
	bool is_first = true;
	char name[40];
	uint32_t at = 0;

	/* when the first one was sent, is no number */
#define COUNTER(name, shown, what)                                                                 \
	show_counter(flow, side, at++, #name,                                                      \
		     strcmp(#name, "first_ns") == 0 ? row->name != 0 : row->name, &is_first);
	FRAGI_SENDER_LIST(COUNTER)
	FRAGI_RECEIVER_LIST(COUNTER)
#undef COUNTER
	for (int i = 0; i < 2 * FRAGI_DROP_REASONS; i++) {
		const enum fragi_drop reason = (enum fragi_drop)(i / 2);

		snprintf(name, sizeof(name), "%s %s", i % 2 == 0 ? "out" : "in",
			 fragi_drop_name(reason));
		show_counter(flow, side, at++, name,
			     i % 2 == 0 ? row->tx_dropped[reason] : row->rx_dropped[reason],
			     &is_first);
	}
	if (!is_first)
		fputc('\n', out);
}

static void show(void)
{
	for (struct flow *flow = flows; flow < flows + FLOWS; flow++) {
		if (flow->arrivals + flow->rooms > 0)
			say("  flow %d: %u arrivals, %u times room", (int)(flow - flows),
			    flow->arrivals, flow->rooms);
		flow->arrivals = flow->rooms = 0;
		show_row(flow, 0);
		show_row(flow, 1);
	}
	for (int i = 0; i < 2; i++)
		state_of_remote(sides[i].remote);
}

/* Hosts. */

static void remote_open(int i)
{
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key of both hosts";
	const struct fragi_remote_config config = {
		.data_key = key,
		.host = (uint32_t)i + 1,
		.epoch = sides[i].epoch,
		.pump = sides[i].pump,
		.arg = (void *)(intptr_t)i,
		.peer_ready = on_ready,
		.peer_lost = on_lost,
		.fault = on_fault,
	};
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_remote_create(&config, &sides[i].remote), 0);
	if (is_encrypted)
		fragi_remote_set_crypto(sides[i].remote, &fragi_crypto_v1);
	cr_assert_eq(fragi_remote_open(sides[i].remote, &socket_transport, &err), 0);
}

static const void *address_of(int i, size_t *out_size)
{
	return socket_transport.address(fragi_remote_transport(sides[i].remote, "socket"),
					out_size);
}

static void wire(int i)
{
	struct frag_err err = FRAG_ERR_INIT;
	size_t size;
	const void *address = address_of(1 - i, &size);

	cr_assert_eq(fragi_remote_peer_create(sides[i].remote, (uint32_t)(2 - i),
					      sides[1 - i].epoch, &sides[i].peer),
		     0);
	cr_assert_eq(fragi_remote_connect(sides[i].peer, "socket", address, size,
					  &sides[i].endpoint, &err),
		     0, "%s", err.text);
	for (uint32_t k = 0; k < FLOWS; k++) {
		struct flow *flow = &flows[k];

		flow->config.op = flow->from == i ? "one.tx" : "two.rx";
		if (flow->from == i) {
			cr_assert_eq(fragi_remote_tx_create(sides[i].endpoint, &flow->config,
							    &sides[i].ledger.flows[k], &flow->tx),
				     0);
			flow->tx->room = (struct fragi_notify){on_room, flow};
		} else {
			cr_assert_eq(fragi_remote_rx_create(sides[i].endpoint, &flow->config,
							    &sides[i].ledger.flows[k], &flow->rx),
				     0);
			flow->rx->arrival = (struct fragi_notify){on_arrival, flow};
		}
	}
}

static void make_side(int i, uint64_t epoch)
{
	sides[i] = (struct side){.epoch = epoch};
	cr_assert_eq(fragi_ledger_create(&sides[i].ledger, -1, 1, FLOWS), 0);
	cr_assert_eq(fragi_pump_create(&sides[i].pump), 0);
	remote_open(i);
	for (uint32_t k = 0; k < FLOWS; k++)
		memset(flows[k].seen[i], 0, sizeof(flows[k].seen[i]));
}

static void destroy(struct side *side)
{
	step_ns = 100000000;
	fragi_remote_destroy(side->remote);
	step_ns = 0;
	fragi_pump_destroy(side->pump);
	fragi_ledger_close(&side->ledger);
	side->remote = NULL;
}

static void draw_flows(void)
{
	static const enum frag_policy policies[] = {FRAG_POLICY_BLOCK, FRAG_POLICY_BLOCK,
						    FRAG_POLICY_POP,   FRAG_POLICY_REJECT,
						    FRAG_POLICY_FAULT, FRAG_POLICY_LATEST};
	static const uint64_t windows[] = {300, 300, 5000, 1 << 26};
	static const uint64_t mosts[] = {1000, 1 << 30, 1 << 30};

	for (uint32_t k = 0; k < FLOWS; k++) {
		struct flow *flow = &flows[k];

		*flow = (struct flow){.from = k < 2 ? 0 : 1, .tensors = k % 3, .size = 100};
		flow->config = (struct fragi_edge_config){.flow = 7 + k, .token = "Aken of a flow"};
		flow->config.window_messages = 1 + draw(5);
		flow->config.window_bytes = DRAW_OF(windows);
		flow->config.message_bytes_max = DRAW_OF(mosts);
		flow->config.policy = DRAW_OF(policies);
		flow->config.encrypt = is_encrypted && k != 1;
		flow->config.token[15] = (uint8_t)k;
		say("flow %u of side %d: policy %d, window %u, %" PRIu64
		    " bytes, messages of %" PRIu64,
		    k, flow->from, flow->config.policy, flow->config.window_messages,
		    flow->config.window_bytes, flow->config.message_bytes_max);
	}
}

/* Operators. */

static void free_wrapped(void *memory)
{
	free(memory);
}

/* All its bytes are alike; it is handed over, lies behind bytes of the user's own, or is new. */
static struct frag_tensor *make_tensor(uint32_t size, int value, uint32_t memory)
{
	int64_t shape[] = {size};
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_dltensor own = {.device = {FRAG_DEVICE_CPU, 0},
				    .ndim = 1,
				    .dtype = u8,
				    .shape = shape,
				    .byte_offset = OWN_OFFSET};
	struct frag_tensor *tensor;

	if (memory == 0) {
		own.data = memset(malloc(OWN_OFFSET + size), '!', OWN_OFFSET);
		memset((char *)own.data + OWN_OFFSET, value, size);
		cr_assert_eq(frag_tensor_wrap(&own, free_wrapped, own.data, &tensor), 0);
		return tensor;
	}
	cr_assert_eq(frag_tensor_create(memory < 2 ? (struct frag_resource *)(void *)&message_memory
						   : NULL,
					u8, 1, shape, &tensor),
		     0);
	memset(frag_tensor_writable(tensor), value, size);
	return tensor;
}

static struct frag_message *make_message(struct flow *flow, uint32_t long_text)
{
	static const uint32_t sizes[] = {1, 8, 100, 1024, 1025, 2000};
	struct frag_message *message = frag_message_create();
	const int64_t value = flow->number++;
	const uint32_t memory = draw(4);

	cr_assert_eq(frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL),
		     0);
	if (draw_percent(8)) { /* of another layout than the one before */
		flow->tensors = draw(6) % 4;
		flow->size = DRAW_OF(sizes);
	}
	for (uint32_t i = 0; i < flow->tensors; i++)
		cr_assert_eq(frag_message_add_tensor(
				     message, (const char *[]){"", "b", "c"}[i],
				     make_tensor(flow->size + i, (int)(value * 7 + i), memory)),
			     0);
	if (long_text > 0) {
		static char text[6000];
		struct frag_metadata *metadata;

		memset(text, 'm', long_text);
		text[long_text] = '\0';
		cr_assert_eq(frag_metadata_create(FRAG_METADATA_DEFAULT, &metadata), 0);
		cr_assert_eq(frag_metadata_set_string(metadata, "text", text), 0);
		cr_assert_eq(frag_message_set_metadata(message, metadata), 0);
		frag_metadata_destroy(metadata);
	}
	fragi_message_share(message);
	return message;
}

static void print_message(const struct frag_message *message)
{
	const void *value;
	const char *text = NULL;
	int64_t number;

	cr_assert_eq(frag_message_value(message, &value, NULL), &frag_type_i64);
	memcpy(&number, value, sizeof(number));
	fprintf(out, " %" PRId64, number);
	for (uint32_t i = 0; i < frag_message_tensor_count(message); i++) {
		const char *name;
		const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
		const size_t size = frag_tensor_size_bytes(tensor);
		const uint8_t *bytes = frag_tensor_data(tensor);
		bool is_whole = true;

		for (size_t b = 0; b < size; b++)
			is_whole = is_whole && bytes[b] == (uint8_t)(number * 7 + i);
		fprintf(out, " %s[%zu]%s", name, size, is_whole ? "" : " torn");
	}
	if (frag_message_metadata(message) != NULL &&
	    frag_metadata_get_string(frag_message_metadata(message), "text", &text) == 0)
		fprintf(out, " text of %zu", strlen(text));
}

static bool sends_it(void)
{
	const uint32_t k = draw(FLOWS);
	const uint32_t texts[] = {50, 3000, 5000};
	struct flow *flow = &flows[k];
	struct frag_message *message;
	const bool is_short = draw_percent(4);
	int r;

	if (sides[flow->from].remote == NULL || flow->tx->closed)
		return false;
	message = make_message(flow, draw_percent(12) ? DRAW_OF(texts) : 0);
	fprintf(out, "flow %u sends", k);
	print_message(message);
	say(", room %d%s%s", (int)flow->tx->ops->room(flow->tx),
	    flow->tx->ops->is_away(flow->tx) ? ", its receiver is away" : "",
	    is_short ? ", memory is short" : "");
	if (is_short)
		fragi_alloc_fail_after(draw(2), 1);
	r = flow->tx->ops->send(flow->tx, message, fragi_stamp());
	(void)fragi_alloc_fail_off();
	if (r != 0)
		say("  = %d", r);
	return true;
}

static bool takes_it(void)
{
	const uint32_t k = draw(FLOWS), slot = draw(HELD);
	struct flow *flow = &flows[k];
	struct frag_message *message;

	if (sides[1 - flow->from].remote == NULL || fragi_rx_available(flow->rx) == 0)
		return false;
	message = fragi_rx_take(flow->rx, fragi_stamp());
	fprintf(out, "flow %u has", k);
	print_message(message);
	say("%s", fragi_rx_is_finished(flow->rx) ? ", the last one" : "");
	frag_message_unref(held[slot]);
	held[slot] = message;
	return true;
}

static bool makes_progress(void)
{
	static const int64_t steps[] = {0, 0, 0, 1000000, 100000000, 300000000};
	const int i = (int)draw(2);
	const bool is_short = draw_percent(2);

	if (sides[i].remote == NULL)
		return false;
	fake_ns += DRAW_OF(steps);
	fprintf(out, "side %d%s\n", i, is_short ? ", memory is short" : "");
	if (is_short)
		fragi_alloc_fail_after(draw(3), 1);
	fragi_pump_lock(sides[i].pump);
	for (uint32_t n = draw(6); n < 6; n++)
		(void)fragi_remote_pump_ops.progress(sides[i].remote, fake_ns);
	fragi_pump_unlock(sides[i].pump);
	(void)fragi_alloc_fail_off();
	return true;
}

static bool time_passes(void)
{
	static const int64_t times[] = {1000000000, 2900000000, 3000000000};

	fake_ns += DRAW_OF(times);
	return say("time passes");
}

static bool sender_closes(void)
{
	const uint32_t k = draw(FLOWS);

	if (sides[flows[k].from].remote == NULL || flows[k].tx->closed)
		return false;
	say("flow %u is closed by its sender", k);
	fragi_tx_close(flows[k].tx);
	return true;
}

static bool receiver_closes(void)
{
	const uint32_t k = draw(FLOWS);

	if (sides[1 - flows[k].from].remote == NULL)
		return false;
	say("flow %u is closed by its receiver", k);
	fragi_rx_close(flows[k].rx);
	return true;
}

static bool changes_its_mind(void)
{
	const int i = (int)draw(2);
	const uint32_t what = draw(8);

	if (sides[i].remote == NULL)
		return false;
	fragi_pump_lock(sides[i].pump);
	if (what < 2) {
		say("side %d is to drain", i);
		fragi_remote_drain(sides[i].remote);
	} else if (what == 2) {
		say("side %d keeps its flows open", i);
		fragi_remote_keep_open(sides[i].remote);
	} else if (what == 3) {
		say("side %d yields", i);
		fragi_remote_yield(sides[i].remote);
	} else if (what < 6) {
		say("side %d suspends its peer", i);
		fragi_remote_peer_suspend(sides[i].peer);
	} else {
		say("side %d is flushed: %d", i, fragi_remote_is_flushed(sides[i].remote));
	}
	fragi_pump_unlock(sides[i].pump);
	return true;
}

/* What each flow keeps or has, and has counted for earlier processes. */
static bool is_asked(void)
{
	for (int i = 0; i < 2; i++) {
		if (sides[i].remote == NULL)
			continue;
		fprintf(out, "side %d: epoch %" PRIu64 "%s%s%s, flows", i,
			fragi_remote_peer_epoch(sides[i].peer),
			fragi_remote_peer_was_ready(sides[i].peer) ? ", was ready" : "",
			fragi_remote_peer_was_lost(sides[i].peer) ? ", was lost" : "",
			fragi_remote_yields(sides[i].remote) ? ", yields" : "");
		for (const struct flow *flow = flows; flow < flows + FLOWS; flow++) {
			if (flow->from == i) {
				fprintf(out, " %u, before %" PRIu64 ", credited %" PRIu64 "%s;",
					fragi_remote_tx_kept(flow->tx),
					fragi_remote_tx_before(flow->tx),
					fragi_remote_tx_credited(flow->tx),
					flow->tx->receiver_done ? ", done" : "");
			} else {
				fprintf(out, " %u, before %" PRIu64 ";",
					fragi_rx_available(flow->rx),
					fragi_remote_rx_before(flow->rx));
			}
		}
		say(" link %" PRIu64 " %" PRIu64, fragi_remote_tx_link(flows[i * 2].tx),
		    fragi_remote_rx_link(flows[2 - i * 2].rx));
	}
	return true;
}

static bool is_cut(void)
{
	const int i = (int)draw(2);

	if (sides[i].remote == NULL)
		return false;
	say("the connection of side %d is cut", i);
	fragi_pump_lock(sides[i].pump);
	socket_cut((struct endpoint *)sides[i].endpoint->base, "the cable is out");
	fragi_pump_unlock(sides[i].pump);
	return true;
}

/* Another process goes on in its place; the other side is told. */
static bool is_replaced(void)
{
	const int i = (int)draw(2), other = 1 - i;
	uint64_t epoch = sides[i].epoch + 2;
	size_t size;
	const void *address;

	if (replaced_count == REPLACED)
		return false;
	say("side %d is replaced", i);
	if (draw_percent(50)) {
		destroy(&sides[i]);
	} else { /* it stands still */
		replaced[replaced_count++] = sides[i];
	}
	for (uint32_t k = 0; k < FLOWS; k++)
		flows[k].config.token[0]++;
	make_side(i, epoch);
	wire(i);
	fragi_pump_lock(sides[other].pump);
	say("  an older epoch: %d", fragi_remote_peer_succeed(sides[other].peer, epoch - 2));
	cr_assert_eq(fragi_remote_peer_succeed(sides[other].peer, epoch), 0);
	for (uint32_t k = 0; k < FLOWS; k++)
		cr_assert_eq(fragi_remote_edge_succeed(sides[other].peer, flows[k].config.flow,
						       flows[k].config.token),
			     0);
	address = address_of(i, &size);
	say("  another flow: %d",
	    fragi_remote_edge_succeed(sides[other].peer, 99, flows[0].config.token));
	say("  another transport: %d",
	    fragi_remote_endpoint_succeed(sides[other].peer, "ucx", address, size));
	cr_assert_eq(fragi_remote_endpoint_succeed(sides[other].peer, "socket", address, size), 0);
	fragi_pump_unlock(sides[other].pump);
	return is_asked();
}

static const struct drawn_event events[] = {
	{28, sends_it, true}, {24, takes_it, true}, {48, makes_progress, true}, {1, time_passes},
	{1, sender_closes},   {2, receiver_closes}, {1, changes_its_mind},      {2, is_asked, true},
	{1, is_cut},          {2, is_replaced},
};

/* Nothing travels any more, unless one of them is replaced. */
static bool is_lost(void)
{
	return fragi_remote_peer_was_lost(sides[0].peer) ||
	       fragi_remote_peer_was_lost(sides[1].peer);
}

static void live(uint32_t seed)
{
	static const size_t headers[] = {FRAGI_HEADER_MAX, FRAGI_HEADER_MAX, FRAGI_HEADER_MIN, 200};
	uint32_t weights[FRAG_COUNT_OF(events)];

	draw_from(seed);
	state_begin();
	is_encrypted = draw_percent(25);
	fake_ns = INT64_C(1000000000000);
	step_ns = 0;
	replaced_count = 0;
	say("life %u%s", seed, is_encrypted ? ", encrypted" : "");
	socket_settings = (struct socket_settings){.seed = seed, .relay = relay};
	socket_settings.header_max = DRAW_OF(headers);
	socket_settings.by_handle = draw_percent(20);
	socket_settings.receives = draw_percent(20) ? RECEIVES_AT_ONCE : RECEIVES_IN_PIECES;
	draw_flows();
	draw_weights(events, FRAG_COUNT_OF(events), weights);
	for (int i = 0; i < 2; i++)
		make_side(i, 10 + (uint64_t)i);
	for (int i = 0; i < 2; i++)
		wire(i);
	for (uint32_t i = draw(12); i > 0; i--) /* most hosts are connected then */
		(void)makes_progress();
	for (int i = 0, dull = 0; i < STEPS && dull < DULL_STEPS; i++) {
		draw_event(events, weights, FRAG_COUNT_OF(events));
		show();
		dull = is_lost() ? dull + 1 : 0;
	}
	(void)is_asked();
	say("all ends, state %016" PRIx64, state_sum);
	for (int i = 0; i < 2; i++)
		destroy(&sides[i]);
	for (uint32_t i = 0; i < replaced_count; i++)
		destroy(&replaced[i]);
	for (int i = 0; i < HELD; i++) {
		frag_message_unref(held[i]);
		held[i] = NULL;
	}
}

Test(remote_lives, do_what_is_recorded)
{
	size_t size;
	char *all, *text;
	FILE *recorded = open_memstream(&all, &size);

	(void)fragi_stamp();
	fragi_stamp_take_from(fake_stamp);
	for (uint32_t seed = 1; seed <= LIVES; seed++) {
		out = open_memstream(&text, &size);
		logged_begin();
		is_timed = true;
		live(seed);
		is_timed = false;
		logged_end(out);
		fclose(out);
		draw_life_ends(recorded, seed, text, seed <= LIVES_SHOWN);
	}
	fclose(recorded);
	expected_compare("transports/protocol", all);
	free(all);
}
