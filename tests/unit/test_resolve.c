// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>
#include <graph/resolve.h>

#include "slow.h"
#include "unit/graph_texts.h"

static struct fragi_port_info tx_ports[] = {
	{.name = "out", .dir = FRAG_OUT, .type = "f64", .type_id = 1, .has_codec = true},
};
static struct fragi_port_info cam_ports[] = {
	{.name = "clock",
	 .dir = FRAG_IN,
	 .type = "i64",
	 .type_id = 2,
	 .has_codec = true,
	 .flags = FRAG_PORT_OPTIONAL},
	{.name = "video", .dir = FRAG_OUT, .type = "tensor"},
	{.name = "boxes", .dir = FRAG_OUT, .type = "box", .type_id = 3},
	{.name = "any", .dir = FRAG_OUT, .type = "message"},
};
static struct fragi_port_info rx_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "f64", .type_id = 1, .has_codec = true},
	{.name = "video",
	 .dir = FRAG_IN,
	 .type = "tensor",
	 .policy = FRAG_POLICY_POP,
	 .capacity = 7},
	{.name = "boxes", .dir = FRAG_IN, .type = "box", .type_id = 3},
	{.name = "all", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_MULTI},
	{.name = "newest",
	 .dir = FRAG_IN,
	 .policy = FRAG_POLICY_LATEST,
	 .flags = FRAG_PORT_OPTIONAL},
};
static struct fragi_port_info other_ports[] = {
	{.name = "boxes", .dir = FRAG_IN, .type = "box", .type_id = 4, .has_codec = true},
};
/* The only input that is not optional is meant where none is named. */
static struct fragi_port_info view_ports[] = {
	{.name = "layers", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_OPTIONAL},
	{.name = "frames", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_MULTI},
	{.name = "texts", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_OPTIONAL},
};
static struct fragi_port_info either_ports[] = {
	{.name = "left", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_OPTIONAL},
	{.name = "right", .dir = FRAG_IN, .type = "message", .flags = FRAG_PORT_OPTIONAL},
};
static struct fragi_op_info sources[] = {
	{"tx", "t", tx_ports, FRAG_COUNT_OF(tx_ports)},
	{"cam", "t", cam_ports, FRAG_COUNT_OF(cam_ports)},
};
static struct fragi_op_info sinks[] = {
	{"rx", "t", rx_ports, FRAG_COUNT_OF(rx_ports)},
	{"other", "t", other_ports, FRAG_COUNT_OF(other_ports)},
	{"view", "t", view_ports, FRAG_COUNT_OF(view_ports)},
	{"either", "t", either_ports, FRAG_COUNT_OF(either_ports)},
};
static struct fragi_op_info both[] = {
	{"tx", "t", tx_ports, FRAG_COUNT_OF(tx_ports)},
	{"rx", "t", rx_ports, FRAG_COUNT_OF(rx_ports)},
};
static struct fragi_fragment_info fragments[] = {
	{"f", sources, FRAG_COUNT_OF(sources), 0},
	{"g", sinks, FRAG_COUNT_OF(sinks), 1},
	{"h", both, FRAG_COUNT_OF(both), 1},
};

struct resolved {
	struct fragi_flow_info *flows;
	size_t count;
	struct fragi_diag diag;
	int r;
};

/*
 * Resolves flows between f, g and h (own < 0) or inside one of them, written as a graph writes
 * them.
 */
static void resolve(struct resolved *resolved, int own, const char *flows)
{
	static const char head[] =
		"frag: 1\napplication: a\nfragments:\n  f: {compose: c%s%s}\n  g: {compose: c%s%s}\n  h: {compose: c%s%s}\n%s%s\n";
	const char *at[3] = {"", "", ""};
	char text[2048];
	struct fragi_spec *spec;

	if (own >= 0)
		at[own] = flows;
	snprintf(text, sizeof(text), head, own == 0 ? ", flows: " : "", at[0],
		 own == 1 ? ", flows: " : "", at[1], own == 2 ? ", flows: " : "", at[2],
		 own < 0 ? "flows: " : "", own < 0 ? flows : "");
	spec = good_text(text);
	resolved->r = fragi_flows_resolve(
		own < 0 ? spec->flows : spec->fragments[own].flows,
		own < 0 ? spec->flow_count : spec->fragments[own].flow_count, own, fragments,
		FRAG_COUNT_OF(fragments), &resolved->diag, &resolved->flows, &resolved->count);
	for (size_t i = 0; i < resolved->count; i++)
		resolved->flows[i].place = NULL; /* the spec goes */
	fragi_spec_destroy(spec);
}

static void resolved_fini(struct resolved *resolved)
{
	fragi_free(resolved->flows);
	fragi_diag_fini(&resolved->diag);
}

static void good(int own, const char *flows, const char *wanted)
{
	static const char *const policies[] = {"", "block", "pop", "reject", "fault", "latest"};
	struct resolved resolved = {0};
	char text[2048] = "", from[256], to[256];
	size_t length = 0;

	resolve(&resolved, own, flows);
	expect_errors(&resolved.diag, "");
	cr_expect_eq(resolved.r, 0);
	for (size_t i = 0; i < resolved.count; i++) {
		const struct fragi_flow_info *flow = &resolved.flows[i];

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s>%s %u %s%s\n",
					   fragi_flow_from(fragments, flow, from, sizeof(from)),
					   fragi_flow_to(fragments, flow, to, sizeof(to)),
					   flow->capacity, policies[flow->policy],
					   flow->between_hosts ? " between" : "");
	}
	cr_expect_str_eq(text, wanted, "got:\n%swanted:\n%s", text, wanted);
	resolved_fini(&resolved);
}

static void bad(int own, const char *flows, const char *lines)
{
	struct resolved resolved = {0};

	resolve(&resolved, own, flows);
	cr_expect_eq(resolved.r, -EINVAL);
	cr_expect_eq(resolved.count, 0);
	cr_expect_null(resolved.flows);
	expect_errors(&resolved.diag, lines);
	resolved_fini(&resolved);
}

Test(resolve, ports_are_completed_and_attributes_decided)
{
	good(-1, "[f.tx -> g.rx.in, f.cam.video -> g.rx.video, f.cam.any -> g.rx.newest]",
	     "f.tx.out>g.rx.in 4 block between\n"
	     "f.cam.video>g.rx.video 7 pop between\n"
	     "f.cam.any>g.rx.newest 1 latest between\n");
	good(-1,
	     "[{from: f.tx, to: [g.rx.in, h.rx.in], capacity: 2}, {from: f.cam.video, to: g.rx.video, capacity: 3, policy: reject}, {from: f.cam.video, to: h.rx.all, policy: latest}]",
	     "f.tx.out>g.rx.in 2 block between\n"
	     "f.tx.out>h.rx.in 2 block between\n"
	     "f.cam.video>g.rx.video 3 reject between\n"
	     "f.cam.video>h.rx.all 1 latest between\n");
	good(2, "[tx -> rx.in, tx.out -> rx.all]",
	     "h.tx.out>h.rx.in 1 block\n"
	     "h.tx.out>h.rx.all 1 block\n");
	good(-1, "[h.tx -> g.rx.in]", "h.tx.out>g.rx.in 4 block\n");
	good(-1, "[{from: h.tx, to: g.rx.in, edge: inproc}, {from: f.tx, to: g.rx.in, edge: ucx}]",
	     "h.tx.out>g.rx.in 4 block\n"
	     "f.tx.out>g.rx.in 4 block between\n");
}

static void declare(const char *sent, const char *taken)
{
	cam_ports[1].tensors = sent;
	rx_ports[1].tensors = taken;
}

Test(resolve, tensors_have_one_layout_and_unit_at_both_ends)
{
	static const char flow[] = "[f.cam.video -> g.rx.video]";
	static const char good_flow[] = "f.cam.video>g.rx.video 7 pop between\n";
	static const char *const agree[][2] = {
		{NULL, FRAG_BOXES},
		{FRAG_BOXES, NULL},
		{"", FRAG_BOXES}, /* what a host sends that declares nothing */
		{FRAG_BOXES, FRAG_BOXES},
		{FRAG_SCORES "; " FRAG_BOXES, FRAG_BOXES ";" FRAG_MASK},
		{"boxes:1;", " boxes : 1 "},
		{"box: 1", "boxes: 2"},
		{"boxes: 1 | a", "boxes: 1 | b"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(agree); i++) {
		declare(agree[i][0], agree[i][1]);
		good(-1, flow, good_flow);
	}
	declare(FRAG_SCORES "; boxes: pixels", "boxes: parts");
	bad(-1, flow,
	    "app.yaml:7:9: flow f.cam.video -> g.rx.video: the output sends boxes as \"pixels\", the input takes \"parts\"; convert it between them\n");
	declare("boxes: pixels | outputs", "boxes: parts");
	bad(-1, flow,
	    "app.yaml:7:9: flow f.cam.video -> g.rx.video: the output sends boxes as \"pixels\", the input takes \"parts\"; put an operator of type outputs between them\n");
	declare("boxes: pixels | outputs", FRAG_SCORES ";" FRAG_BOXES);
	bad(-1, flow,
	    "app.yaml:7:9: flow f.cam.video -> g.rx.video: the output sends boxes as \"pixels\", the input takes \"f32[n][4], x0 y0 x1 y1 from 0 to 1\"; put an operator of type box_converter between them\n");
	declare(FRAG_BOXES, "mask: 8; boxes: pixels");
	bad(-1, flow,
	    "app.yaml:7:9: flow f.cam.video -> g.rx.video: the output sends boxes as \"f32[n][4], x0 y0 x1 y1 from 0 to 1\", the input takes \"pixels\"; put an operator of type box_converter between them\n");
	good(-1, "[f.cam.video -> h.rx.all]", "f.cam.video>h.rx.all 4 block between\n");
	declare(NULL, NULL);
}

Test(resolve, the_same_pair_again_adds_nothing)
{
	struct resolved resolved = {0};

	good(-1,
	     "[f.tx -> g.rx.in, f.tx.out -> g.rx.in, {from: f.tx, to: g.rx.in, capacity: 4, policy: block}]",
	     "f.tx.out>g.rx.in 4 block between\n");
	bad(-1, "[f.tx -> g.rx.in, {from: f.tx, to: g.rx.in, capacity: 5}]",
	    "app.yaml:7:43: flow f.tx.out -> g.rx.in: it is there already with another capacity, policy or encryption (first at app.yaml:7:9); keep one of them\n");
	resolve(&resolved, 2, "[tx -> rx.in]"); /* also what an earlier call, or C, put there */
	resolve(&resolved, 2, "[tx -> rx.in, tx -> rx.all]");
	cr_expect_eq(resolved.r, 0);
	cr_expect_eq(resolved.count, 2);
	resolve(&resolved, 2, "[{from: tx, to: rx.in, policy: pop}]");
	cr_expect_eq(resolved.r, -EINVAL);
	cr_expect_eq(resolved.count, 2);
	expect_errors(
		&resolved.diag,
		"app.yaml:6:42: flow h.tx.out -> h.rx.in: it is there already with another capacity, policy or encryption; keep one of them\n");
	resolved_fini(&resolved);
}

Test(resolve, an_optional_port_is_meant_where_it_is_named)
{
	good(-1, "[f.tx -> g.view, f.tx -> g.view.texts]",
	     "f.tx.out>g.view.frames 4 block between\n"
	     "f.tx.out>g.view.texts 4 block between\n");
	bad(-1, "[f.tx -> g.either]",
	    "app.yaml:7:9: flow end g.either: several could be meant; name the port; its inputs: left, right\n");
}

Test(resolve, each_flow_has_the_number_of_its_end_in_the_text)
{
	static const uint32_t orders[] = {0, 2, 3};
	struct resolved resolved = {0};

	/* The second is there already. */
	resolve(&resolved, -1,
		"[f.cam.any -> g.rx.all, f.cam.any -> g.rx.all, {from: f.tx, to: [h.rx.all, g.rx.all]}]");
	cr_assert_eq(resolved.count, FRAG_COUNT_OF(orders));
	for (size_t i = 0; i < FRAG_COUNT_OF(orders); i++)
		cr_expect_eq(resolved.flows[i].order, orders[i], "%zu: %u", i,
			     resolved.flows[i].order);
	resolved_fini(&resolved);
}

Test(resolve, errors_list_the_valid_names)
{
	bad(-1,
	    "[f.tx.ot -> g.rx.in, f.tx -> g.rx, f.cam -> g.rx.all, g.rx.in -> f.tx.out, f.cam.zzzz -> g.rx.qqqqqq]",
	    "app.yaml:7:9: flow end f.tx.ot: no output \"ot\"; its outputs: out\n"
	    "app.yaml:7:29: flow end g.rx: several could be meant; name the port; its inputs: in, video, boxes, all, newest\n"
	    "app.yaml:7:43: flow end f.cam: several could be meant; name the port; its outputs: video, boxes, any\n"
	    "app.yaml:7:62: flow g.rx.in -> f.tx.out: it begins at an input and ends at an output; turn it round: f.tx.out -> g.rx.in\n"
	    "app.yaml:7:83: flow end f.cam.zzzz: no output \"zzzz\"; its outputs: video, boxes, any\n"
	    "app.yaml:7:83: flow end g.rx.qqqqqq: no input \"qqqqqq\"; its inputs: in, video, boxes, all, newest\n");
	bad(-1,
	    "[g.rx.in -> h.rx.in, f.tx.out -> h.tx.out, {from: g.rx.in, to: [h.tx.out, h.rx.in]}]",
	    "app.yaml:7:9: flow end g.rx.in: this is an input, and a flow begins at an output; it has no outputs\n"
	    "app.yaml:7:29: flow end h.tx.out: this is an output, and a flow ends at an input; it has no inputs\n"
	    "app.yaml:7:72: flow end h.tx.out: this is an output, and a flow ends at an input; it has no inputs\n"
	    "app.yaml:7:58: flow end g.rx.in: this is an input, and a flow begins at an output; it has no outputs\n");
	bad(-1, "[f.tx -> g.rx.viedo, f.camm.x -> g.rxx, g.rx -> h.tx]",
	    "app.yaml:7:9: flow end g.rx.viedo: no input \"viedo\"; did you mean \"video\"?\n"
	    "app.yaml:7:29: flow end f.camm: unknown operator \"f.camm\"; did you mean \"cam\"?\n"
	    "app.yaml:7:29: flow end g.rxx: unknown operator \"g.rxx\"; did you mean \"rx\"?\n"
	    "app.yaml:7:48: flow end h.tx: the operator has no inputs\n");
}

/* The list in a sentence is bounded, whatever the number of ports. */
Test(resolve, an_operator_with_very_many_ports_is_described)
{
	static struct fragi_port_info many[200];
	static char names[FRAG_COUNT_OF(many)][8];
	struct resolved resolved = {0};

	for (size_t i = 0; i < FRAG_COUNT_OF(many); i++) {
		snprintf(names[i], sizeof(names[i]), "out%zu", i % 1000);
		many[i] = (struct fragi_port_info){.name = names[i], .dir = FRAG_OUT};
	}
	sources[0].ports = many;
	sources[0].port_count = FRAG_COUNT_OF(many);
	resolve(&resolved, -1, "[f.tx.nothing -> g.rx.in]");
	cr_expect_eq(resolved.r, -EINVAL);
	cr_expect_eq(resolved.diag.count, 1);
	cr_expect_not_null(strstr(resolved.diag.items[0].text, "no output \"nothing\""));
	resolved_fini(&resolved);
}

Test(resolve, types_must_agree)
{
	bad(-1, "[f.tx -> g.rx.video, f.cam.video -> g.rx.in, f.cam.boxes -> g.other]",
	    "app.yaml:7:9: flow f.tx.out -> g.rx.video: the output has type \"f64\", the input \"tensor\"; connect ports of one type\n"
	    "app.yaml:7:29: flow f.cam.video -> g.rx.in: the output has type \"tensor\", the input \"f64\"; connect ports of one type\n"
	    "app.yaml:7:53: flow f.cam.boxes -> g.other.boxes: type \"box\" has other fields at the output than at the input; build both sides with one definition of it\n"
	    "app.yaml:7:53: flow f.cam.boxes -> g.other.boxes: it crosses processes, and type \"box\" has no codec in fragment f (the sender); give the type fields, or encode and decode (in Python frag.register_codec)\n");
	good(-1,
	     "[f.cam.video -> g.rx.all, f.tx -> g.rx.all, f.cam.any -> g.rx.video, f.cam.any -> g.rx.in]",
	     "f.cam.video>g.rx.all 4 block between\n"
	     "f.tx.out>g.rx.all 4 block between\n"
	     "f.cam.any>g.rx.video 7 pop between\n"
	     "f.cam.any>g.rx.in 4 block between\n");
}

Test(resolve, what_crosses_processes_needs_codecs_and_an_edge_that_can)
{
	bad(-1, "[f.cam.boxes -> g.rx.boxes, {from: f.tx, to: g.rx.in, edge: inproc}]",
	    "app.yaml:7:9: flow f.cam.boxes -> g.rx.boxes: it crosses processes, and type \"box\" has no codec in fragment f (the sender); give the type fields, or encode and decode (in Python frag.register_codec)\n"
	    "app.yaml:7:9: flow f.cam.boxes -> g.rx.boxes: it crosses processes, and type \"box\" has no codec in fragment g (the receiver); give the type fields, or encode and decode (in Python frag.register_codec)\n"
	    "app.yaml:7:53: flow f.tx.out -> g.rx.in: edge inproc needs both ends in one process; give their fragments one host or leave edge out\n");
	fragments[1].host = 0;
	good(-1, "[f.cam.boxes -> g.rx.boxes]", "f.cam.boxes>g.rx.boxes 4 block\n");
}

Test(resolve, gaps_hide_only_what_may_be_in_them)
{
	sources[0].has_gaps = true; /* tx */
	bad(-1, "[f.tx.more -> g.rx.viedo, f.tx -> g.rx.on, f.tx.out -> g.rx.ni]",
	    "app.yaml:7:9: flow end g.rx.viedo: no input \"viedo\"; did you mean \"video\"?\n"
	    "app.yaml:7:34: flow end g.rx.on: no input \"on\"; its inputs: in, video, boxes, all, newest\n"
	    "app.yaml:7:51: flow end g.rx.ni: no input \"ni\"; its inputs: in, video, boxes, all, newest\n");
	fragments[0].has_gaps = true;
	bad(-1, "[f.unmade.out -> g.rx.viedo, f.cam.boxs -> g.rx.in]",
	    "app.yaml:7:9: flow end g.rx.viedo: no input \"viedo\"; did you mean \"video\"?\n"
	    "app.yaml:7:37: flow end f.cam.boxs: no output \"boxs\"; did you mean \"boxes\"?\n");
}

Test(resolve, ten_thousand_operators_are_resolved_fast)
{
	enum { N = 10000 };
	static char names[N][16];
	struct fragi_op_info *ops = calloc(N, sizeof(*ops));
	struct fragi_spec_flow *flows = calloc(N, sizeof(*flows));
	struct fragi_spec_end *ends = calloc(N, sizeof(*ends));
	struct fragi_port_info ports[] = {{.name = "in", .dir = FRAG_IN},
					  {.name = "out", .dir = FRAG_OUT}};
	const struct fragi_fragment_info fragment = {"f", ops, N, 0};
	struct resolved resolved = {0};
	int64_t begin = own_time_ns();

	for (int i = 0; i < N; i++) {
		sprintf(names[i], "op%d", i);
		ops[i] = (struct fragi_op_info){names[i], "t", ports, 2};
		ends[i].op = names[(i + 1) % N];
		flows[i] = (struct fragi_spec_flow){
			.from = {.op = names[i]}, .to = &ends[i], .to_count = 1};
	}
	for (int twice = 0; twice < 2; twice++)
		cr_assert_eq(fragi_flows_resolve(flows, N, 0, &fragment, 1, &resolved.diag,
						 &resolved.flows, &resolved.count),
			     0);
	cr_expect_eq(resolved.count, N);
	expect_errors(&resolved.diag, "");
	cr_expect_lt(own_time_ns() - begin, 10000000000);
	resolved_fini(&resolved);
	free(ops);
	free(flows);
	free(ends);
}

Test(resolve, every_failure_of_memory_is_told)
{
	const struct fragi_spec_end to[] = {{.fragment = "g", .op = "rx", .port = "in"}};
	const struct fragi_spec_flow flow = {.from = {.fragment = "f", .op = "tx"},
					     .to = (struct fragi_spec_end *)(uintptr_t)to,
					     .to_count = 1};
	int r = -ENOMEM;

	for (int64_t skip = 0; r != 0; skip++) {
		struct resolved resolved = {0};

		cr_assert_lt(skip, 100);
		fragi_alloc_fail_after(skip, 1);
		r = fragi_flows_resolve(&flow, 1, -1, fragments, FRAG_COUNT_OF(fragments),
					&resolved.diag, &resolved.flows, &resolved.count);
		if (fragi_alloc_fail_off() > 0)
			cr_assert_eq(r, -ENOMEM);
		cr_expect_eq(resolved.diag.count, 0, "what is there is not called unknown");
		resolved_fini(&resolved);
	}
}
