// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <frag/operator.h>
#include <frag/v1/control.pb-c.h>
#include <base/policy.h>
#include <wire/message.h>

/* Packs a protobuf message that the encoder would not make. */
static int decode_raw(Frag__V1__Envelope *envelope, struct frag_err *err)
{
	size_t size = frag__v1__envelope__get_packed_size(envelope);
	uint8_t *bytes = malloc(size);
	struct fw_message *out;
	int r;

	frag__v1__envelope__pack(envelope, bytes);
	r = fw_decode(bytes, size, &out, err);
	if (r == 0)
		fw_message_free(out);
	free(bytes);
	return r;
}

static void expect_refused(Frag__V1__Envelope *envelope, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(decode_raw(envelope, &err), -EBADMSG);
	cr_expect_str_eq(err.text, sentence);
}

Test(wire_bounds, counts_beyond_their_bounds_are_refused)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__Hello hello = FRAG__V1__HELLO__INIT;
	Frag__V1__HostStats stats = FRAG__V1__HOST_STATS__INIT;
	Frag__V1__OpStats op = FRAG__V1__OP_STATS__INIT;
	struct frag_err err = FRAG_ERR_INIT;
	char **names = calloc(FW_NAMES_MAX + 1, sizeof(*names));
	Frag__V1__OpStats **ops = calloc(2000000, sizeof(*ops));

	for (size_t i = 0; i < FW_NAMES_MAX + 1; i++)
		names[i] = (char *)(uintptr_t) "a";
	for (size_t i = 0; i < 2000000; i++)
		ops[i] = &op;
	hello.major = FW_PROTOCOL_MAJOR;
	hello.role = FW_ROLE_WORKER;
	hello.fragments = names;
	hello.n_fragments = FW_NAMES_MAX;
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HELLO;
	envelope.hello = &hello;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);
	hello.n_fragments = FW_NAMES_MAX + 1;
	cr_expect_eq(decode_raw(&envelope, &err), -EBADMSG);
	cr_expect_str_eq(err.text, "a HELLO message holds too many rows");

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_STATS;
	envelope.host_stats = &stats;
	stats.ops = ops;
	stats.n_ops = FW_ROWS_MAX + 1;
	cr_expect_eq(decode_raw(&envelope, NULL), -EBADMSG);
	stats.n_ops = 2000000; /* 4 MB that ask for 200 MB */
	cr_expect_eq(decode_raw(&envelope, NULL), -EBADMSG);
	free(names);
	free(ops);
}

Test(wire_bounds, values_out_of_range_are_refused_by_name)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostEvent event = FRAG__V1__HOST_EVENT__INIT;
	Frag__V1__HostWire wire = FRAG__V1__HOST_WIRE__INIT;
	Frag__V1__Edge edge = FRAG__V1__EDGE__INIT, *edges[] = {&edge};
	uint8_t token[FW_TOKEN_BYTES] = {0};
	struct frag_err err = FRAG_ERR_INIT;

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_EVENT;
	envelope.host_event = &event;
	cr_expect_eq(decode_raw(&envelope, &err), -EBADMSG);
	cr_expect_str_eq(err.text, "a HOST_EVENT message holds an unknown state");
	event.state = FW_STATE_FAILED;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_WIRE;
	envelope.host_wire = &wire;
	wire.edges = edges;
	wire.n_edges = 1;
	edge.window_messages = 1;
	edge.window_bytes = edge.message_bytes_max = 1;
	edge.policy = FRAG_POLICY_BLOCK;
	edge.token = (ProtobufCBinaryData){FW_TOKEN_BYTES - 1, token};
	cr_expect_eq(decode_raw(&envelope, NULL), -EBADMSG);
	edge.token.len = FW_TOKEN_BYTES;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);
}

Test(wire_bounds, a_host_without_a_whole_data_key_is_refused)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostCreate create = FRAG__V1__HOST_CREATE__INIT;
	uint8_t key[FW_DATA_KEY_BYTES + 1] = {0}, variables[FW_VARIABLES_KEY_BYTES + 1] = {0};

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_CREATE;
	envelope.host_create = &create;
	create.beat_ns = create.dead_ns = 1;
	create.variables_key = (ProtobufCBinaryData){FW_VARIABLES_KEY_BYTES, variables};
	expect_refused(&envelope, "a HOST_CREATE message holds a data key of another length");
	for (size_t bytes = 1; bytes <= FW_DATA_KEY_BYTES + 1; bytes++) {
		create.data_key = (ProtobufCBinaryData){bytes, key};
		cr_expect_eq(decode_raw(&envelope, NULL),
			     bytes == FW_DATA_KEY_BYTES ? 0 : -EBADMSG);
	}
	create.data_key.len = FW_DATA_KEY_BYTES;
	create.variables_key.len++;
	expect_refused(&envelope,
		       "a HOST_CREATE message holds a key of variables of another length");
}

Test(wire_bounds, a_secret_is_whole_or_not_there)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__Welcome welcome = FRAG__V1__WELCOME__INIT;
	uint8_t secret[FW_SECRET_BYTES + 1] = {0};

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_WELCOME;
	envelope.welcome = &welcome;
	for (size_t size = 0; size <= sizeof(secret); size++) {
		welcome.secret = (ProtobufCBinaryData){size, secret};
		cr_expect_eq(decode_raw(&envelope, NULL),
			     size == 0 || size == FW_SECRET_BYTES ? 0 : -EBADMSG, "%zu", size);
	}
}

Test(wire_bounds, a_policy_that_is_none_is_refused_wherever_it_stands)
{
	Frag__V1__Envelope prepared_envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostPrepared prepared = FRAG__V1__HOST_PREPARED__INIT;
	Frag__V1__Fragment fragment = FRAG__V1__FRAGMENT__INIT, *fragments[] = {&fragment};
	Frag__V1__Operator op = FRAG__V1__OPERATOR__INIT, *ops[] = {&op};
	Frag__V1__Port out = FRAG__V1__PORT__INIT, in = FRAG__V1__PORT__INIT,
		       *ports[] = {&out, &in};
	Frag__V1__InnerFlow flow = FRAG__V1__INNER_FLOW__INIT, *flows[] = {&flow};
	Frag__V1__Envelope wire_envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostWire wire = FRAG__V1__HOST_WIRE__INIT;
	Frag__V1__Edge edge = FRAG__V1__EDGE__INIT, *edges[] = {&edge};
	uint8_t token[FW_TOKEN_BYTES] = {0};
	unsigned int policy = FRAG_POLICY_DEFAULT;

	prepared_envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_PREPARED;
	prepared_envelope.host_prepared = &prepared;
	prepared.fragments = fragments;
	prepared.flows = flows;
	prepared.n_fragments = prepared.n_flows = 1;
	fragment.ops = ops;
	fragment.n_ops = 1;
	op.ports = ports;
	op.n_ports = 2;
	out.dir = FRAG_OUT;
	in.dir = FRAG_IN;
	flow.to_port = 1;
	flow.capacity = 1;
	wire_envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_WIRE;
	wire_envelope.host_wire = &wire;
	wire.edges = edges;
	wire.n_edges = 1;
	edge.token = (ProtobufCBinaryData){FW_TOKEN_BYTES, token};
	edge.window_messages = 1;
	edge.window_bytes = edge.message_bytes_max = 1;

	/* Only a port may leave it open. */
	flow.policy = edge.policy = policy;
	cr_expect_eq(decode_raw(&prepared_envelope, NULL), -EBADMSG);
	cr_expect_eq(decode_raw(&wire_envelope, NULL), -EBADMSG);
	while (fragi_policy(++policy) != NULL) {
		flow.policy = edge.policy = policy;
		cr_expect_eq(decode_raw(&prepared_envelope, NULL), 0, "%u", policy);
		cr_expect_eq(decode_raw(&wire_envelope, NULL), 0, "%u", policy);
	}
	for (unsigned int i = 0; i < 3; i++, policy = i == 1 ? 256 + FRAG_POLICY_POP : UINT32_MAX) {
		flow.policy = edge.policy = policy;
		in.policy = FRAG_POLICY_DEFAULT;
		cr_expect_eq(decode_raw(&prepared_envelope, NULL), -EBADMSG, "%u", policy);
		cr_expect_eq(decode_raw(&wire_envelope, NULL), -EBADMSG, "%u", policy);
		flow.policy = FRAG_POLICY_BLOCK;
		in.policy = policy;
		cr_expect_eq(decode_raw(&prepared_envelope, NULL), -EBADMSG, "%u", policy);
	}
}

/* A row of a table takes two bytes in a frame, and a hundred times as many in memory. */
Test(wire_bounds, a_frame_may_ask_for_so_much_memory_and_no_more)
{
	static const struct {
		size_t rows;
		const char *refusal; /* NULL: it is taken */
	} cases[] = {
		{FW_ROWS_MAX, NULL},
		{FW_ROWS_MAX + 1, "a HOST_STATS message holds too many rows"},
		{1000000, "a frame of 2000005 bytes holds no message of this protocol"},
	};
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostStats stats = FRAG__V1__HOST_STATS__INIT;
	Frag__V1__FlowStats row = FRAG__V1__FLOW_STATS__INIT, **rows;

	rows = calloc(1000000, sizeof(*rows));
	for (size_t i = 0; i < 1000000; i++)
		rows[i] = &row;
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_STATS;
	envelope.host_stats = &stats;
	stats.flows = rows;
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		stats.n_flows = cases[i].rows;
		if (cases[i].refusal != NULL)
			expect_refused(&envelope, cases[i].refusal);
		else
			cr_expect_eq(decode_raw(&envelope, NULL), 0);
	}
	free(rows);
}

Test(wire_bounds, a_frame_that_is_too_large_is_not_made)
{
	struct fw_message in = {.kind = FW_HOST_CREATE};
	void *source = calloc(1, FW_FRAME_MAX);
	uint8_t *frame = NULL;
	size_t size;

	in.create.source = source;
	in.create.source_bytes = FW_FRAME_MAX;
	cr_expect_eq(fw_encode(&in, &frame, &size), -EMSGSIZE);
	in.create.source_bytes = 3 << 20;
	cr_expect_eq(fw_encode(&in, &frame, &size), 0);
	fragi_free(frame);
	in.kind = (enum fw_kind)77;
	cr_expect_eq(fw_encode(&in, &frame, &size), -EINVAL);
	free(source);
}

Test(wire_bounds, another_major_is_read_as_far_as_it_goes_and_refused_naming_both)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__Hello hello = FRAG__V1__HELLO__INIT;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *out;
	uint8_t bytes[64];
	size_t size;

	hello.major = 9;
	hello.minor = 4;
	hello.role = 77; /* may mean anything there */
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HELLO;
	envelope.hello = &hello;
	size = frag__v1__envelope__pack(&envelope, bytes);
	cr_assert_eq(fw_decode(bytes, size, &out, &err), 0);
	cr_expect_eq(fw_hello_check(&out->hello, &err), -EPROTONOSUPPORT);
	cr_expect_not_null(strstr(err.text, "9.4"));
	cr_expect_not_null(strstr(err.text, "this side 1."));
	cr_expect_str_eq(out->hello.name, "");
	cr_expect_str_eq(out->hello.worker_address, "");
	cr_expect_str_eq(out->hello.node, "");
	cr_expect_str_eq(out->hello.clock, "");
	cr_expect_str_eq(out->hello.memory, "");
	cr_expect_str_eq(out->hello.waits_for, "");
	cr_expect_str_eq(out->hello.version, "");
	fw_message_free(out);

	hello.major = FW_PROTOCOL_MAJOR;
	hello.minor = 4000;
	hello.role = FW_ROLE_WORKER;
	size = frag__v1__envelope__pack(&envelope, bytes);
	cr_assert_eq(fw_decode(bytes, size, &out, NULL), 0);
	cr_expect_eq(fw_hello_check(&out->hello, NULL), 0,
		     "a newer minor is the newer side's matter");
	fw_message_free(out);
}

Test(wire_bounds, what_is_beyond_its_bound_is_not_encoded)
{
	const size_t most = FW_ROWS_MAX + 1;
	struct fw_op op = {.ports = calloc(most, sizeof(struct fw_port)),
			   .port_count = FW_PORTS_MAX + 1};
	struct fw_fragment fragment = {.ops = &op, .op_count = 1};
	const char **names = calloc(most, sizeof(*names));
	void *rows = calloc(most, sizeof(struct fw_edge));
	struct fw_address too_large = {"ucx", rows, FW_ADDRESS_MAX + 1};
	struct fw_application_row application = {.hosts = rows, .host_count = FW_ROWS_MAX + 1};
	const struct fw_message messages[] = {
		{.kind = FW_HELLO,
		 .hello = {.fragments = names, .fragment_count = FW_NAMES_MAX + 1}},
		{.kind = FW_HOST_CREATE,
		 .create = {.source = rows, .source_bytes = FW_FRAME_MAX + 1}},
		{.kind = FW_HOST_PREPARED,
		 .prepared = {.fragments = &fragment, .fragment_count = 1}},
		{.kind = FW_HOST_PREPARED,
		 .prepared = {.fragments = rows, .fragment_count = FW_NAMES_MAX + 1}},
		{.kind = FW_HOST_PREPARED,
		 .prepared = {.flows = rows, .flow_count = FW_ROWS_MAX + 1}},
		{.kind = FW_HOST_PREPARED,
		 .prepared = {.addresses = &too_large, .address_count = 1}},
		{.kind = FW_HOST_PREPARED,
		 .prepared = {.addresses = rows, .address_count = FW_TRANSPORTS_MAX + 1}},
		{.kind = FW_HOST_WIRE, .wire = {.peers = rows, .peer_count = FW_ROWS_MAX + 1}},
		{.kind = FW_HOST_WIRE, .wire = {.edges = rows, .edge_count = FW_ROWS_MAX + 1}},
		{.kind = FW_HOST_STATS, .stats = {.ops = rows, .op_count = FW_ROWS_MAX + 1}},
		{.kind = FW_HOST_STATS, .stats = {.flows = rows, .flow_count = FW_ROWS_MAX + 1}},
		{.kind = FW_HOST_STATS,
		 .stats = {.ops = rows,
			   .op_count = FW_ROWS_MAX + 1,
			   .flows = rows,
			   .flow_count = FW_ROWS_MAX + 1}},
		{.kind = FW_REPLY,
		 .reply = {.applications = rows, .application_count = FW_ROWS_MAX + 1}},
		{.kind = FW_REPLY, .reply = {.applications = &application, .application_count = 1}},
		{.kind = FW_REPLY, .reply = {.workers = rows, .worker_count = FW_ROWS_MAX + 1}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(messages); i++) {
		uint8_t *frame = NULL;
		size_t size = 7;

		cr_expect_eq(fw_encode(&messages[i], &frame, &size), -EMSGSIZE, "%zu", i);
		cr_expect(frame == NULL && size == 7, "untouched on failure");
	}
	free(op.ports);
	free(names);
	free(rows);
}

/* The sender then names the graph, and not its memory, as what has to change. */
Test(wire_bounds, of_two_errors_while_encoding_the_first_is_returned)
{
	char *text = malloc(FW_TEXT_MAX + 2); /* it is cut, which takes memory */
	const char **names = calloc(FW_NAMES_MAX + 1, sizeof(*names));
	struct fw_message hello = {.kind = FW_HELLO,
				   .hello = {.fragments = names,
					     .fragment_count = FW_NAMES_MAX + 1,
					     .worker_address = text}};
	uint8_t *frame;
	size_t size;

	memset(text, 'a', FW_TEXT_MAX + 1);
	text[FW_TEXT_MAX + 1] = '\0';
	fragi_alloc_fail_after(2, INT64_MAX); /* the body and its block are there */
	cr_expect_eq(fw_encode(&hello, &frame, &size), -EMSGSIZE);
	cr_expect_eq(fragi_alloc_fail_off(), 0, "nothing is encoded after it");
	hello.hello.fragment_count = 0;
	fragi_alloc_fail_after(2, INT64_MAX);
	cr_expect_eq(fw_encode(&hello, &frame, &size), -ENOMEM);
	cr_expect_eq(fragi_alloc_fail_off(), 1, "the text");
	free(text);
	free(names);
}

Test(wire_bounds, what_a_peer_sends_beyond_its_bound_is_refused_by_name)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__Refused refused = FRAG__V1__REFUSED__INIT;
	Frag__V1__HostPrepared prepared = FRAG__V1__HOST_PREPARED__INIT;
	Frag__V1__HostExit end = FRAG__V1__HOST_EXIT__INIT;
	Frag__V1__HostStop stop = FRAG__V1__HOST_STOP__INIT;
	Frag__V1__DataAddress at = FRAG__V1__DATA_ADDRESS__INIT, *addresses[FW_TRANSPORTS_MAX + 1];
	uint8_t address[FW_ADDRESS_MAX + 1] = {0};
	char text[FW_TEXT_MAX + 2];
	uint8_t *large = calloc(1, FW_FRAME_MAX + 1);
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *out = NULL;

	memset(text, 'x', sizeof(text));
	text[FW_TEXT_MAX + 1] = '\0';
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_REFUSED;
	envelope.refused = &refused;
	refused.sentence = text;
	expect_refused(&envelope, "a REFUSED message holds a text that is too long");
	text[FW_TEXT_MAX] = '\0';
	cr_expect_eq(decode_raw(&envelope, NULL), 0);

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_PREPARED;
	envelope.host_prepared = &prepared;
	for (int i = 0; i <= FW_TRANSPORTS_MAX; i++)
		addresses[i] = &at;
	prepared.addresses = addresses;
	prepared.n_addresses = 1;
	at.transport = (char *)(uintptr_t) "ucx";
	at.bytes = (ProtobufCBinaryData){FW_ADDRESS_MAX + 1, address};
	expect_refused(&envelope, "a HOST_PREPARED message holds too many bytes");
	at.bytes.len = 0;
	expect_refused(&envelope, "a HOST_PREPARED message holds an empty address");
	at.bytes.len = FW_ADDRESS_MAX;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);
	prepared.n_addresses = FW_TRANSPORTS_MAX + 1;
	expect_refused(&envelope, "a HOST_PREPARED message holds too many rows");

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_EXIT;
	envelope.host_exit = &end;
	end.signal = 128;
	expect_refused(&envelope, "a HOST_EXIT message holds a signal out of range");

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_STOP;
	envelope.host_stop = &stop;
	stop.drain_ns = -1;
	expect_refused(&envelope, "a HOST_STOP message holds a negative time");

	cr_expect_eq(fw_decode(large, FW_FRAME_MAX + 1, &out, &err), -EBADMSG);
	cr_expect_str_eq(err.text, "a frame of 4194305 bytes came, at most 4194304 are taken");
	cr_expect_null(out);
	free(large);
}

Test(wire_bounds, what_only_a_newer_peer_counts_does_not_break_the_sum)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostStats stats = FRAG__V1__HOST_STATS__INIT;
	Frag__V1__FlowStats flow = FRAG__V1__FLOW_STATS__INIT, *flows = &flow;
	uint64_t numbers[FRAGI_COUNTERS + FRAGI_DROP_REASONS + 1];
	const size_t count = sizeof(numbers) / sizeof(numbers[0]);
	struct fragi_flow_stats *row;
	struct fw_message *out;
	uint8_t bytes[256];
	size_t size;

	for (size_t i = 0; i < count; i++)
		numbers[i] = i + 1;
	flow.sender = flow.receiver = flow.tx_dropped = numbers;
	flow.n_sender = flow.n_receiver = count;
	flow.n_tx_dropped = FRAGI_DROP_REASONS + 2;
	stats.flows = &flows;
	stats.n_flows = 1;
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_STATS;
	envelope.host_stats = &stats;
	size = frag__v1__envelope__pack(&envelope, bytes);
	cr_assert_eq(fw_decode(bytes, size, &out, NULL), 0);
	row = &out->stats.flows[0];
	for (size_t i = 0; i < FRAGI_COUNTERS; i++)
		cr_expect_eq(row->counters[i],
			     i < FRAGI_SENDER_COUNTERS ? i + 1 : i + 1 - FRAGI_SENDER_COUNTERS);
	cr_expect_eq(row->tx_dropped[0], 1);
	cr_expect_eq(row->tx_dropped[FRAGI_DROP_REASONS - 1], 3 * FRAGI_DROP_REASONS + 3,
		     "reasons that are not known are added to the last one");
	cr_expect_eq(row->rx_dropped[0], 0);
	cr_expect_eq(row->latency.count, 0);
	fw_message_free(out);
}

Test(wire_bounds, a_failure_that_only_a_newer_peer_knows_stays_one)
{
	static const uint32_t codes[][2] = {{FRAGI_FAILURE_HOST_LATE, FRAGI_FAILURE_HOST_LATE},
					    {0, FRAGI_FAILURE_OTHER},
					    {FRAGI_FAILURES, FRAGI_FAILURE_OTHER},
					    {UINT32_MAX, FRAGI_FAILURE_OTHER}};
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__HostResult result = FRAG__V1__HOST_RESULT__INIT;
	Frag__V1__Failure failure = FRAG__V1__FAILURE__INIT;
	struct fw_message *out;
	uint8_t bytes[64];
	size_t size;

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_HOST_WIRED;
	envelope.host_wired = &result;
	size = frag__v1__envelope__pack(&envelope, bytes);
	cr_assert_eq(fw_decode(bytes, size, &out, NULL), 0);
	cr_expect_eq(out->result.failure.code, FRAGI_FAILURE_NONE);
	fw_message_free(out);
	result.failure = &failure;
	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		failure.code = codes[i][0];
		size = frag__v1__envelope__pack(&envelope, bytes);
		cr_assert_eq(fw_decode(bytes, size, &out, NULL), 0);
		cr_expect_eq(out->result.failure.code, (enum fragi_failure)codes[i][1]);
		fw_message_free(out);
	}
}

Test(wire_bounds, what_a_client_asks_and_gets_is_bounded)
{
	Frag__V1__Envelope envelope = FRAG__V1__ENVELOPE__INIT;
	Frag__V1__Request request = FRAG__V1__REQUEST__INIT;
	Frag__V1__Reply reply = FRAG__V1__REPLY__INIT;
	Frag__V1__ApplicationState application = FRAG__V1__APPLICATION_STATE__INIT,
				   *applications = &application;
	Frag__V1__HostState host = FRAG__V1__HOST_STATE__INIT;
	Frag__V1__WorkerState worker = FRAG__V1__WORKER_STATE__INIT;
	Frag__V1__HostState **hosts = calloc(FW_ROWS_MAX + 1, sizeof(*hosts));
	Frag__V1__WorkerState **workers = calloc(FW_ROWS_MAX + 1, sizeof(*workers));

	for (size_t i = 0; i < FW_ROWS_MAX + 1; i++) {
		hosts[i] = &host;
		workers[i] = &worker;
	}
	envelope.body_case = FRAG__V1__ENVELOPE__BODY_REQUEST;
	envelope.request = &request;
	expect_refused(&envelope, "a REQUEST message holds an unknown request");
	request.what = FW_REQUEST_STATE + 1;
	expect_refused(&envelope, "a REQUEST message holds an unknown request");
	request.what = FW_REQUEST_STATE;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);

	envelope.body_case = FRAG__V1__ENVELOPE__BODY_REPLY;
	envelope.reply = &reply;
	reply.applications = &applications;
	reply.n_applications = 1;
	application.age_ns = -1;
	expect_refused(&envelope, "a REPLY message holds a negative time");
	application.age_ns = 0;
	cr_expect_eq(decode_raw(&envelope, NULL), 0);
	application.hosts = hosts;
	application.n_hosts = FW_ROWS_MAX + 1;
	expect_refused(&envelope, "a REPLY message holds too many rows");
	application.n_hosts = 0;
	reply.workers = workers;
	reply.n_workers = FW_ROWS_MAX + 1;
	expect_refused(&envelope, "a REPLY message holds too many rows");
	free(hosts);
	free(workers);
}
