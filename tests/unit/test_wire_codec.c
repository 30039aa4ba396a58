// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>

#include "wire_messages.h"

Test(wire_codec, every_kind_comes_back_as_it_was)
{
	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			struct fw_message in, *out;
			uint8_t *frame, *again;
			size_t size, again_size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			out = decode(frame, size);
			cr_assert_eq(out->kind, in.kind);
			cr_assert_eq(out->seq, in.seq);
			cr_assert_eq(out->reply_to, in.reply_to);
			cr_assert_eq(out->run, in.run);
			cr_assert_eq(out->host, in.host);
			cr_assert_eq(out->epoch, in.epoch);
			cr_assert_eq(fw_encode(out, &again, &again_size), 0);
			cr_assert_eq(again_size, size, "%s", fw_kind_name((enum fw_kind)kind));
			cr_assert_eq(memcmp(again, frame, size), 0, "%s",
				     fw_kind_name((enum fw_kind)kind));
			fw_message_free(out);
			fragi_free(frame);
			fragi_free(again);
			fragi_arena_fini(&m.arena);
		}
	}
}

/* The fields of protobuf messages that were seen with another value than the default. */
struct seen {
	struct seen_kind {
		const ProtobufCMessageDescriptor *kind;
		bool fields[64];
	} kinds[96];
	size_t count;
};

static struct seen_kind *seen_kind(struct seen *seen, const ProtobufCMessageDescriptor *kind)
{
	for (size_t i = 0; i < seen->count; i++)
		if (seen->kinds[i].kind == kind)
			return &seen->kinds[i];
	cr_assert_lt(seen->count, FRAG_COUNT_OF(seen->kinds));
	cr_assert_leq(kind->n_fields, FRAG_COUNT_OF(seen->kinds[0].fields));
	seen->kinds[seen->count].kind = kind;
	return &seen->kinds[seen->count++];
}

static void look_at(struct seen *seen, const ProtobufCMessage *message);

static bool look_at_field(struct seen *seen, const ProtobufCMessage *message,
			  const ProtobufCFieldDescriptor *field)
{
	const uint8_t *base = (const uint8_t *)message, *value = base + field->offset;
	const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
	const size_t count = repeated ? *(const size_t *)(base + field->quantifier_offset) : 0;

	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0 &&
	    *(const uint32_t *)(base + field->quantifier_offset) != field->id)
		return false;
	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		for (size_t i = 0; i < count; i++)
			look_at(seen, (*(ProtobufCMessage *const *const *)value)[i]);
		if (!repeated && *(ProtobufCMessage *const *)value != NULL)
			look_at(seen, *(ProtobufCMessage *const *)value);
		return repeated ? count > 0 : *(ProtobufCMessage *const *)value != NULL;
	case PROTOBUF_C_TYPE_STRING:
		return repeated ? count > 0 : **(const char *const *)value != '\0';
	case PROTOBUF_C_TYPE_BYTES:
		return repeated ? count > 0 : ((const ProtobufCBinaryData *)value)->len > 0;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return repeated ? count > 0 : *(const uint64_t *)value != 0;
	default:
		return repeated ? count > 0 : *(const uint32_t *)value != 0;
	}
}

static void look_at(struct seen *seen, const ProtobufCMessage *message)
{
	struct seen_kind *kind = seen_kind(seen, message->descriptor);

	for (unsigned int i = 0; i < message->descriptor->n_fields; i++)
		if (look_at_field(seen, message, &message->descriptor->fields[i]))
			kind->fields[i] = true;
}

/* Encodes and decodes; returns what the decoder says. */
static int cross(const struct fw_message *in)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *out = NULL;
	uint8_t *frame;
	size_t size;
	int r;

	cr_assert_eq(fw_encode(in, &frame, &size), 0);
	r = fw_decode(frame + 4, size - 4, &out, &err);
	cr_expect(r == 0 || strstr(err.text, "row that it does not hold") != NULL, "%s", err.text);
	fw_message_free(out);
	fragi_free(frame);
	return r;
}

Test(wire_codec, a_look_names_no_row_that_it_does_not_hold)
{
	struct maker m = {.state = 7};
	struct fw_message in;
	struct fragi_look *look = &in.looked.look;
	struct fragi_look_operator *op;
	struct fragi_look_flow *flow;
	uint32_t *indices[10];

	make(&m, FW_LOOKED, &in);
	op = (struct fragi_look_operator *)look->operators;
	flow = (struct fragi_look_flow *)look->flows;
	indices[0] = &op[1].host;
	indices[1] = &op[1].input_flow;
	indices[2] = &op[1].room_flow;
	indices[3] = &flow[1].sender;
	indices[4] = &flow[1].receiver;
	indices[5] = &in.looked.op;
	indices[6] = &in.looked.flow;
	indices[7] = &in.looked.host;
	indices[8] = &in.looked.chain[0].op;
	indices[9] = &((struct fragi_look_pool *)look->pools)[1].host;
	for (int i = 0; i < 10; i++) {
		uint32_t before = *indices[i];

		*indices[i] = ROWS_MADE - 1;
		cr_expect_eq(cross(&in), 0, "index %d", i);
		*indices[i] = ROWS_MADE;
		cr_expect_eq(cross(&in), -EBADMSG, "index %d", i);
		*indices[i] = before;
	}
	fragi_arena_fini(&m.arena);
}

/* What the encoder forgot would come back as it was: as nothing. */
Test(wire_codec, every_field_of_the_protocol_is_sent)
{
	static struct seen seen;

	for (int kind = FW_HELLO; (kind = known_kind(kind)) != 0; kind++)
		for (uint64_t seed = 1; seed < 20; seed++) {
			struct maker m = {.state = seed * 7919};
			Frag__V1__Envelope *envelope;
			struct fw_message in;
			uint8_t *frame;
			size_t size;

			make(&m, (enum fw_kind)kind, &in);
			cr_assert_eq(fw_encode(&in, &frame, &size), 0);
			envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
			cr_assert_not_null(envelope);
			look_at(&seen, &envelope->base);
			frag__v1__envelope__free_unpacked(envelope, NULL);
			fragi_free(frame);
			fragi_arena_fini(&m.arena);
		}
	for (size_t i = 0; i < seen.count; i++)
		for (unsigned int k = 0; k < seen.kinds[i].kind->n_fields; k++)
			cr_expect(seen.kinds[i].fields[k], "%s.%s is never sent",
				  seen.kinds[i].kind->name, seen.kinds[i].kind->fields[k].name);
}

/* The fields, and what they count, are those that older peers know. */
Test(wire_codec, amounts_have_fields_of_their_own)
{
	struct fw_message in = {
		.kind = FW_HELLO,
		.hello = {.major = FW_PROTOCOL_MAJOR,
			  .role = FW_ROLE_WORKER,
			  .has = {[FRAGI_AMOUNT_CPU] = 3 * FRAGI_AMOUNT_ONE,
				  [FRAGI_AMOUNT_GPU] = 2 * FRAGI_AMOUNT_ONE,
				  [FRAGI_AMOUNT_MEMORY] = 5000,
				  [FRAGI_AMOUNT_SHARED_MEMORY] = 6000,
				  [FRAGI_AMOUNT_GPU_MEMORY] = INT64_C(7) << 32,
				  [FRAGI_AMOUNT_GPU_THREADS] = 100 * FRAGI_AMOUNT_ONE}}};
	const int64_t limits[FRAGI_AMOUNTS] = {
		[FRAGI_AMOUNT_CPU] = 1500, [FRAGI_AMOUNT_GPU_THREADS] = 25 * FRAGI_AMOUNT_ONE};
	Frag__V1__Envelope *envelope;
	const Frag__V1__Hello *hello;
	struct fw_message *out;
	uint8_t *frame;
	size_t size;

	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
	cr_assert_not_null(envelope);
	hello = envelope->hello;
	cr_expect_eq(hello->cores, 3);
	cr_expect_eq(hello->gpus, 2);
	cr_expect_eq(hello->memory_bytes, 5000);
	cr_expect_eq(hello->shared_memory_bytes, 6000);
	cr_expect_eq(hello->gpu_memory_bytes, UINT64_C(7) << 32);
	cr_expect_eq(hello->gpu_threads, 100);
	frag__v1__envelope__free_unpacked(envelope, NULL);
	out = decode(frame, size);
	cr_expect_arr_eq(out->hello.has, in.hello.has, sizeof(in.hello.has));
	fw_message_free(out);
	fragi_free(frame);

	in.hello.has[FRAGI_AMOUNT_GPU_THREADS] = 101 * FRAGI_AMOUNT_ONE;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	cr_expect_eq(fw_decode(frame + 4, size - 4, &out, NULL), -EBADMSG);
	fragi_free(frame);

	in = (struct fw_message){.kind = FW_HOST_CREATE, .create.application = "a"};
	memcpy(in.create.limits, limits, sizeof(limits));
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	envelope = frag__v1__envelope__unpack(NULL, size - 4, frame + 4);
	cr_assert_not_null(envelope);
	cr_expect_eq(envelope->host_create->cpu_limit, 1500);
	cr_expect_eq(envelope->host_create->gpu_threads, 25);
	frag__v1__envelope__free_unpacked(envelope, NULL);
	out = decode(frame, size);
	cr_expect_arr_eq(out->create.limits, limits, sizeof(limits));
	fw_message_free(out);
	fragi_free(frame);

	in.create.limits[FRAGI_AMOUNT_CPU] = INT64_C(1) << 40;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_eq(out->create.limits[FRAGI_AMOUNT_CPU], UINT32_MAX);
	fw_message_free(out);
	fragi_free(frame);
}

Test(wire_codec, fields_arrive_where_they_belong)
{
	struct maker m = {.state = 99};
	const struct fw_address *there, *here;
	struct fw_message in, *out;
	uint8_t *frame;
	size_t size;

	make(&m, FW_HOST_WIRE, &in);
	in.wire.edges[1].token[0] = 0x5A;
	in.wire.edges[1].order = 7;
	in.wire.edges[0].sends = in.wire.edges[1].encrypt = true;
	in.wire.edges[0].encrypt = in.wire.edges[1].sends = false;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_assert_eq(out->wire.edge_count, ROWS_MADE);
	cr_expect_eq(out->wire.edges[1].token[0], 0x5A);
	cr_expect_eq(out->wire.edges[1].window_bytes, in.wire.edges[1].window_bytes);
	cr_expect_eq(out->wire.edges[1].order, 7);
	cr_expect(out->wire.edges[0].sends && !out->wire.edges[1].sends);
	cr_expect(out->wire.edges[1].encrypt && !out->wire.edges[0].encrypt);
	cr_expect_str_eq(out->wire.edges[1].transport, in.wire.edges[1].transport);
	cr_expect_str_eq(out->wire.peers[1].name, in.wire.peers[1].name);
	cr_assert_eq(out->wire.announced_count, ROWS_MADE);
	cr_expect_str_eq(out->wire.announced[1], in.wire.announced[1]);
	cr_assert_eq(out->wire.peers[1].address_count, ROWS_MADE);
	there = &in.wire.peers[1].addresses[1];
	here = &out->wire.peers[1].addresses[1];
	cr_expect_str_eq(here->transport, there->transport);
	cr_expect_str_eq(here->detail, there->detail);
	cr_assert_eq(here->size, there->size);
	cr_expect_arr_eq(here->bytes, there->bytes, here->size);
	fw_message_free(out);
	fragi_free(frame);

	make(&m, FW_HOST_STATS, &in);
	in.stats.ops[1].running = true;
	cr_assert_eq(fw_encode(&in, &frame, &size), 0);
	out = decode(frame, size);
	cr_expect_arr_eq(&out->stats.flows[1], &in.stats.flows[1], sizeof(struct fragi_flow_stats),
			 "every counter, reason and quantile");
	cr_expect_arr_eq(&out->stats.facts, &in.stats.facts, sizeof(struct fw_facts));
	cr_expect_eq(out->stats.ops[1].running, true);
	cr_expect_eq(out->stats.ops[1].time_ns, in.stats.ops[1].time_ns);
	cr_expect_eq(out->stats.ops[1].waiting_ns, in.stats.ops[1].waiting_ns);
	cr_expect_arr_eq(&out->stats.ops[1].compute, &in.stats.ops[1].compute,
			 sizeof(struct fragi_quantiles));
	cr_expect_arr_eq(&out->stats.ops[1].realtime, &in.stats.ops[1].realtime,
			 sizeof(struct fragi_realtime));
	fw_message_free(out);
	fragi_free(frame);
	fragi_arena_fini(&m.arena);
}

Test(wire_codec, kinds_have_names)
{
	cr_expect_str_eq(fw_kind_name(FW_HELLO), "HELLO");
	cr_expect_str_eq(fw_kind_name(FW_HOST_EXIT), "HOST_EXIT");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)0), "?");
	cr_expect_str_eq(fw_kind_name((enum fw_kind)(FW_EVENTS + 1)), "?");
}

/* What people look at comes from any host: a picture has as many bytes as it says. */
Test(wire_codec, a_picture_has_its_size)
{
	static const struct {
		uint32_t width, height, channels, bytes;
		bool is_right;
	} cases[] = {
		{4, 3, 3, 36, true},         {4, 3, 4, 48, true},
		{4, 3, 1, 12, true},         {0, 0, 0, 0, true},
		{4, 3, 3, 35, false},        {4, 3, 3, 37, false},
		{4, 3, 2, 24, false},        {4, 3, 0, 0, true},
		{0, 3, 3, 1, false},         {65536, 65536, 1, 0, false},
		{98304, 1, 1, 0, false},     {98304, 1, 1, 98304, true},
		{98305, 1, 1, 98304, false}, {1u << 31, 2, 1, 0, false},
		{65536, 65536, 4, 0, false},
	};
	static uint8_t pixels[FRAGI_PASSED_PIXELS_MAX];
	struct fw_message message = {.kind = FW_PASSED}, *same;
	uint8_t *frame;
	size_t size;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		int r;

		message.passed = (struct fragi_passed){.value = "",
						       .metadata = "",
						       .width = cases[i].width,
						       .height = cases[i].height,
						       .channels = cases[i].channels,
						       .pixels = pixels,
						       .pixel_bytes = cases[i].bytes};
		cr_assert_eq(fw_encode(&message, &frame, &size), 0, "%zu", i);
		r = fw_decode(frame + 4, size - 4, &same, &err);
		cr_expect_eq(r, cases[i].is_right ? 0 : -EBADMSG, "%zu: %s", i, err.text);
		if (r == 0)
			fw_message_free(same);
		else
			cr_expect(strstr(err.text, "a picture of another size") != NULL, "%s",
				  err.text);
		fragi_free(frame);
	}
	message.passed =
		(struct fragi_passed){.pixels = pixels, .pixel_bytes = FRAGI_PASSED_PIXELS_MAX + 1};
	cr_expect_eq(fw_encode(&message, &frame, &size), -EMSGSIZE);
}
