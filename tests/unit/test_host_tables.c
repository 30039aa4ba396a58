// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "../expected.h"
#include "transcript.h"

#include <workerd/host/tables.c> /* it is a part of fraghost alone */

/*
 * The tables of a run on their way to the driver, and those of the driver on their way to a run. No
 * two numbers and no two texts are the same, so what comes from the wrong place shows.
 */
static uint32_t last; /* number that was given */
static struct fragi_arena room;

static char *text(const char *what)
{
	return fragi_arena_printf(&room, "%s%u", what, last);
}

/* The run, as this file plays it. */
static struct {
	struct fragi_fragment_info fragments[2];
	size_t fragment_count;
	struct fragi_flow_info flows[3];
	size_t flow_count;
	struct fragi_run_address addresses[2];
	uint32_t address_count, service_count, pool_count, late_count;
	bool is_driver;
} run;

const struct fragi_fragment_info *fragi_run_fragments(const struct fragi_run *own,
						      size_t *out_count)
{
	cr_expect_eq(own, (struct fragi_run *)&run);
	*out_count = run.fragment_count;
	return run.fragments;
}

const struct fragi_flow_info *fragi_run_flows(const struct fragi_run *own, size_t *out_count)
{
	(void)own;
	*out_count = run.flow_count;
	return run.flows;
}

uint32_t fragi_run_addresses(const struct fragi_run *own,
			     struct fragi_run_address out[FRAGI_HOST_TRANSPORTS_MAX])
{
	(void)own;
	memcpy(out, run.addresses, run.address_count * sizeof(*out));
	return run.address_count;
}

uint32_t fragi_run_service_count(const struct fragi_run *own)
{
	(void)own;
	return run.service_count;
}

bool fragi_run_is_driver(const struct fragi_run *own)
{
	(void)own;
	return run.is_driver;
}

const char *fragi_run_announced(const struct fragi_run *own, uint32_t i)
{
	(void)own;
	cr_assert_lt(i, run.service_count);
	return i == 0 ? "announced" : "more";
}

const char *fragi_run_pool(const struct fragi_run *own, uint32_t number, char *out, size_t size)
{
	(void)own;
	if (number >= run.pool_count)
		return NULL;
	snprintf(out, size, "pool%u", number);
	return out;
}

bool fragi_run_late_place(const struct fragi_run *own, uint32_t number,
			  struct fragi_run_late_place *out)
{
	(void)own;
	if (number >= run.late_count)
		return false;
	*out = (struct fragi_run_late_place){100 + number, 200 + number, "from", "at"};
	return true;
}

static const struct frag_param params[] = {
	{.name = "fixed", .kind = FRAG_PARAM_KIND_I64},
	{.name = "moves", .kind = FRAG_PARAM_KIND_I64, .flags = FRAG_PARAM_DYNAMIC},
	{.name = "also", .kind = FRAG_PARAM_KIND_I64, .flags = FRAG_PARAM_DYNAMIC}};
static const struct frag_op_type table = {.params = params, .param_count = 3};

static void make_port(struct fragi_port_info *port, bool is_output)
{
	last += 10;
	*port = (struct fragi_port_info){.name = text("port"),
					 .type = text("type"),
					 .dir = is_output ? FRAG_OUT : FRAG_IN,
					 .flags = FRAG_PORT_OPTIONAL,
					 .capacity = last + 1,
					 .policy = FRAG_POLICY_POP,
					 .type_id = last + 2,
					 .has_codec = is_output,
					 .tensors = text("tensors")};
}

static void make_op(struct fragi_op_info *op, size_t port_count)
{
	last += 10;
	*op = (struct fragi_op_info){.name = text("op"),
				     .type = text("table"),
				     .port_count = port_count,
				     .has_gaps = port_count == 0,
				     .pools = text("pools"),
				     .table = port_count > 0 ? &table : NULL};
	op->ports = fragi_arena_alloc(&room, (port_count + 1) * sizeof(*op->ports));
	for (size_t i = 0; i < port_count; i++)
		make_port(&op->ports[i], i % 2 == 1);
}

static void make_fragment(struct fragi_fragment_info *fragment, size_t ops, size_t interfaces)
{
	last += 10;
	*fragment = (struct fragi_fragment_info){.name = text("fragment"),
						 .op_count = ops,
						 .has_gaps = interfaces > 1,
						 .interface_count = interfaces};
	fragment->ops = fragi_arena_alloc(&room, 2 * sizeof(*fragment->ops));
	make_op(&fragment->ops[0], 2);
	make_op(&fragment->ops[1], 0);
	fragment->interfaces = fragi_arena_alloc(&room, interfaces * sizeof(*fragment->interfaces));
	for (size_t k = 0; k < interfaces; k++) {
		last += 10;
		fragment->interfaces[k] = (struct fragi_interface_info){
			text("instance"), text("inner"), last + 1, last + 2};
	}
}

static void make_run(void)
{
	make_fragment(&run.fragments[0], 2, 1);
	make_fragment(&run.fragments[1], 1, 2);
	for (size_t i = 0; i < FRAG_COUNT_OF(run.flows); i++) {
		last += 10;
		run.flows[i] = (struct fragi_flow_info){.encrypt = i == 1,
							.policy = i == 0 ? FRAG_POLICY_BLOCK
									 : FRAG_POLICY_REJECT,
							.from_fragment = last + 1,
							.from_op = last + 2,
							.from_port = last + 3,
							.to_fragment = last + 4,
							.to_op = last + 5,
							.to_port = last + 6,
							.capacity = last + 7};
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(run.addresses); i++) {
		last += 10;
		run.addresses[i] = (struct fragi_run_address){text("transport"), "ABCDE", 3 + i,
							      text("detail")};
	}
	run.fragment_count = run.address_count = run.service_count = run.late_count = 2;
	run.flow_count = run.pool_count = 3;
	run.is_driver = true;
}

/* Each allocation of it fails once first. */
static void show_prepared(const char *what, const struct fragi_diag *diag,
			  const struct fragi_run *own)
{
	struct fragi_arena arena = {0};
	struct fw_message message = {.kind = FW_HOST_PREPARED};
	int64_t failed = 1;
	int r = 0;

	for (int64_t skip = 0; failed > 0; skip++) {
		fragi_arena_fini(&arena);
		message.prepared = (struct fw_host_prepared){.pid = 77};
		fragi_alloc_fail_after(skip, 1);
		r = diag == NULL ? host_tables_prepared(own, &arena, &message.prepared)
				 : host_tables_errors(diag, own, &arena, &message.prepared);
		failed = fragi_alloc_fail_off();
		cr_expect(failed == 0 || (r == -ENOMEM && message.prepared.pid == 77));
	}
	cr_assert_eq(r, 0);
	cr_expect_eq(message.prepared.pid, getpid());
	message.prepared.pid = 0;
	fprintf(transcript, "%s: ", what);
	transcript_body(&message);
	fprintf(transcript, "\n");
	fragi_arena_fini(&arena);
}

Test(host_tables, of_a_run_for_its_driver)
{
	struct fragi_diag diag = {.beyond = 4};
	const struct fragi_run *own = (struct fragi_run *)&run;

	transcript_begin();
	make_run();
	show_prepared("prepared", NULL, own);
	run.is_driver = false;
	run.fragment_count = 0;
	run.flow_count = 1;
	run.address_count = run.pool_count = run.late_count = 0;
	show_prepared("less", NULL, own);
	run.is_driver = true;
	run.service_count = 0;
	show_prepared("no services", NULL, own);
	run.fragment_count = 1;
	(void)fragi_diag_add(&diag, -EINVAL, "a.yaml", 3, 5, "it is wrong");
	(void)fragi_diag_add(&diag, -ENOENT, NULL, 0, 0, "it is missing");
	fragi_diag_classify(&diag, 1, FRAGI_FAILURE_LIBRARY_MISSING, "f.tx");
	show_prepared("errors", &diag, own);
	show_prepared("errors before there is a run", &diag, NULL);
	fragi_diag_fini(&diag);
	fclose(transcript);
	expected_compare("host/tables", transcript_text);
	free(transcript_text);
	fragi_arena_fini(&room);
}

static void show_peers(const struct fragi_run_peer *peers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		fprintf(transcript, "  peer %u, epoch %d, %s\n", peers[i].host, (int)peers[i].epoch,
			peers[i].name);
		for (uint32_t k = 0; k < peers[i].address_count; k++)
			fprintf(transcript, "    by %s: %.*s\n", peers[i].addresses[k].transport,
				(int)peers[i].addresses[k].size,
				(const char *)peers[i].addresses[k].bytes);
	}
}

static void show_edges(const struct fragi_run_edge *edges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct fragi_edge_config *config = &edges[i].config;

		fprintf(transcript,
			"  edge of flow %u: window %u, %d bytes, %d of one, policy %d%s, token %.9s\n",
			config->flow, config->window_messages, (int)config->window_bytes,
			(int)config->message_bytes_max, (int)config->policy,
			config->encrypt ? ", encrypted" : "", (const char *)config->token);
		fprintf(transcript, "    %s by %s: %u, %u, %u to %u, order %u, %s\n",
			edges[i].sends ? "sends" : "receives", edges[i].transport,
			edges[i].fragment, edges[i].op, edges[i].port, edges[i].peer,
			edges[i].order, edges[i].other_end);
	}
}

Test(host_tables, of_a_driver_for_a_run)
{
	struct fw_address addresses[3];
	struct fw_peer peers[2];
	struct fw_edge edges[3];
	const struct fw_host_wire wire = {
		.peers = peers, .peer_count = 2, .edges = edges, .edge_count = 3};
	struct fragi_run_peer *own_peers;
	struct fragi_run_edge *own_edges;
	struct fragi_arena arena = {0};
	int64_t failed = 1;
	int r = 0;

	transcript_begin();
	for (uint32_t i = 0; i < 3; i++, last += 10)
		addresses[i] = (struct fw_address){text("by"), "VWXYZ", 2 + i, text("detail")};
	for (uint32_t i = 0; i < 2; i++, last += 10)
		peers[i] = (struct fw_peer){70 + i, 80 + i, addresses + i, 2 - i, text("peer")};
	for (uint32_t i = 0; i < 3; i++, last += 10) {
		edges[i] = (struct fw_edge){.flow = last + 1,
					    .sends = i == 1,
					    .fragment = last + 2,
					    .op = last + 3,
					    .port = last + 4,
					    .peer = last + 5,
					    .window_messages = last + 6,
					    .window_bytes = last + 7,
					    .message_bytes_max = last + 8,
					    .policy = i,
					    .order = last + 9,
					    .other_end = text("end"),
					    .transport = text("transport"),
					    .encrypt = i == 2};
		snprintf((char *)edges[i].token, sizeof(edges[i].token), "token %u", i);
	}
	for (int64_t skip = 0; failed > 0; skip++) {
		fragi_arena_fini(&arena);
		fragi_alloc_fail_after(skip, 1);
		r = host_tables_wire(&wire, &arena, &own_peers, &own_edges);
		failed = fragi_alloc_fail_off();
		cr_expect_eq(r, failed > 0 ? -ENOMEM : 0);
	}
	show_peers(own_peers, 2);
	show_edges(own_edges, 3);
	fragi_arena_fini(&arena);
	fclose(transcript);
	expected_compare("host/wired", transcript_text);
	free(transcript_text);
	fragi_arena_fini(&room);
}
