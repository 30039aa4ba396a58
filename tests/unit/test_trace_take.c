// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <inttypes.h>

#include "trace_ring.h"

#include <base/alloc.h>
#include <base/bytes.h>
#include <base/trace.h>
#include <fragctl/trace_model.h>

/* What fragctl keeps of the chunks that hosts send: ticks, messages, clocks and ends of hosts. */

static struct fragi_trace_chunk chunk;

/* A chunk of a host with a tick that has received on a flow. */
static void fill_of_host(uint32_t number)
{
	const struct fragi_trace_host host = {.host = number, .epoch = 1};
	const struct fragi_trace_flow flow = {.row = 41, .is_received = true, .is_sent = true};
	const struct fragi_moment now = fragi_moment_now();
	const struct fragi_interval interval = {now, now};
	struct fragi_trace_ring *ring = ring_create();
	uint64_t place = 0, lost = 0;

	cr_assert_not_null(ring);
	put_tick(ring, 7, 1);
	chunk.size = 0;
	cr_assert(fragi_trace_add_host(&chunk, &host, "host", ""));
	cr_assert(number == 0 || fragi_trace_add_flow(&chunk, &flow, "a.out", "b.in"));
	fragi_trace_add_records(&chunk, ring, &interval, &place, &lost);
	chunk.bytes[chunk.size - 1] = FRAGI_TRACE_RECEIVED;
	free(ring);
}

/* What a host says of messages without a tick of its own is not put to the tick of another host. */
Test(trace_take, messages_belong_to_a_tick_of_their_host)
{
	struct ctl_trace *trace = ctl_trace_create();
	uint8_t *second;

	cr_assert_not_null(trace);
	fill_of_host(0);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	fill_of_host(1);
	second = &chunk.bytes[chunk.size - FRAGI_TRACE_RECORD_BYTES];
	memmove(second - FRAGI_TRACE_RECORD_BYTES, second, FRAGI_TRACE_RECORD_BYTES);
	chunk.size -= FRAGI_TRACE_RECORD_BYTES;
	fragi_put32(second - FRAGI_TRACE_RECORD_BYTES - 4, FRAGI_TRACE_RECORD_BYTES);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	cr_expect_eq(trace->tick_count, 1);
	cr_expect_eq(trace->end_count, 0);
	fill_of_host(1);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	cr_expect_eq(trace->tick_count, 2);
	cr_expect_eq(trace->end_count, 1);
	ctl_trace_destroy(trace);
}

/* A trace that is full keeps what came last, and counts what made room for it. */
Test(trace_take, a_full_trace_keeps_the_last_ticks)
{
	struct ctl_trace *trace = ctl_trace_create();
	struct ctl_trace_sums sums;

	cr_assert_not_null(trace);
	fill_of_host(1);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	trace->ticks = realloc(trace->ticks, TRACE_TICKS_MAX * sizeof(*trace->ticks));
	trace->ends = realloc(trace->ends, 3 * sizeof(*trace->ends));
	cr_assert(trace->ticks != NULL && trace->ends != NULL);
	for (uint32_t i = 1; i < TRACE_TICKS_MAX; i++) {
		trace->ticks[i] = trace->ticks[0];
		trace->ticks[i].tid = i;
	}
	trace->ends[1] = trace->ends[2] = trace->ends[0];
	trace->ends[1].tick = TRACE_TICKS_MAX / 4;
	trace->ends[2].tick = TRACE_TICKS_MAX - 1;
	trace->tick_count = trace->tick_room = TRACE_TICKS_MAX;
	trace->end_count = trace->end_room = 3;
	fill_of_host(1);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	cr_expect_eq(trace->tick_count, TRACE_TICKS_MAX / 4 * 3 + 1);
	cr_expect_eq(trace->ticks[0].tid, TRACE_TICKS_MAX / 4);
	cr_expect_eq(trace->ticks[trace->tick_count - 2].tid, TRACE_TICKS_MAX - 1);
	cr_expect_eq(trace->end_count, 3);
	cr_expect_eq(trace->ends[0].tick, 0);
	cr_expect_eq(trace->ends[1].tick, TRACE_TICKS_MAX / 4 * 3 - 1);
	cr_expect_eq(trace->ends[2].tick, TRACE_TICKS_MAX / 4 * 3);
	ctl_trace_sums(trace, &sums);
	cr_expect_eq(sums.cut, TRACE_TICKS_MAX / 4);
	ctl_trace_destroy(trace);
}

/* Arrows are drawn for as many messages as there is room for; the others are counted. */
Test(trace_take, messages_beyond_the_room_are_counted)
{
	struct ctl_trace *trace = ctl_trace_create();
	struct ctl_trace_sums sums;

	cr_assert_not_null(trace);
	fill_of_host(1);
	cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	trace->ends[0].count = TRACE_MESSAGES_MAX + 7;
	cr_expect_eq(ctl_trace_join(trace), 0);
	ctl_trace_sums(trace, &sums);
	cr_expect_eq(sums.ticks, 1);
	cr_expect_eq(sums.unmatched, 7);
	ctl_trace_destroy(trace);
}

#define CHUNK_NS 1000000

static void take_peer_of(struct ctl_trace *trace, uint32_t host, int64_t now_ns, int64_t ahead_ns)
{
	const struct fragi_trace_host first = {.host = host, .epoch = 1, .now_ns = now_ns};
	const struct fragi_trace_peer peer = {1, 1, ahead_ns, 1000};

	chunk.size = 0;
	cr_assert(fragi_trace_add_host(&chunk, &first, "first", "clock of the first"));
	cr_assert(ahead_ns == 0 || fragi_trace_add_peer(&chunk, &peer));
	cr_assert_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
}

/* A chunk of the second host, with a tick that has sent message 0 to itself, or received it. */
static void take_tick(struct ctl_trace *trace, int64_t now_ns, uint64_t begin,
		      enum fragi_trace_kind kind)
{
	const struct fragi_trace_host host = {.host = 1, .epoch = 1, .now_ns = now_ns};
	const struct fragi_trace_flow flow = {.row = 3, .is_received = true, .is_sent = true};
	const struct fragi_interval as_it_is = {{0, 0}, {CHUNK_NS, CHUNK_NS}};
	const struct fragi_trace_record tick[] = {
		{.begin = begin,
		 .value = begin + 500,
		 .flows = 1,
		 .kind = FRAGI_TRACE_TICK,
		 .count = 7},
		{.begin = begin, .object = 3, .kind = kind & 0xff, .count = 1},
	};
	struct fragi_trace_ring *ring = ring_create();
	uint64_t place = 0, lost = 0;

	cr_assert_not_null(ring);
	for (int i = 0; i < 2; i++)
		fragi_trace_put(ring, fragi_trace_take(ring, 1), &tick[i]);
	chunk.size = 0;
	cr_assert(fragi_trace_add_host(&chunk, &host, "second", "clock of the second"));
	cr_assert(fragi_trace_add_flow(&chunk, &flow, "a.out", "b.in"));
	fragi_trace_add_records(&chunk, ring, &as_it_is, &place, &lost);
	cr_assert_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	free(ring);
}

/*
 * What is known of a clock changes while it is traced. Times of its host keep their order: also
 * where the first times came before anything was known, where a time came after the end of its
 * chunk, and where chunks follow each other so fast that the change takes several.
 */
Test(trace_take, a_corrected_clock_does_not_turn_back)
{
	static const struct {
		int64_t known[2], now[2]; /* at the two chunks */
		uint64_t sent, received;
	} cases[] = {
		{{5000, 55000}, {CHUNK_NS, 2 * CHUNK_NS}, CHUNK_NS - 2000, CHUNK_NS + 1000},
		{{5000, 55000}, {CHUNK_NS, 2 * CHUNK_NS}, CHUNK_NS - 2000, CHUNK_NS - 1000},
		{{0, 55000}, {CHUNK_NS, 2 * CHUNK_NS}, CHUNK_NS - 2000, CHUNK_NS + 1000},
		{{5000, 55000}, {CHUNK_NS, 2 * CHUNK_NS}, CHUNK_NS + 90000, CHUNK_NS + 91000},
		{{5000, 55000}, {CHUNK_NS, CHUNK_NS + 2000}, CHUNK_NS - 2000, CHUNK_NS + 1000},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct ctl_trace *trace = ctl_trace_create();

		cr_assert_not_null(trace);
		take_peer_of(trace, 0, cases[i].now[0], cases[i].known[0]);
		take_tick(trace, cases[i].now[0], cases[i].sent, FRAGI_TRACE_SENT);
		take_peer_of(trace, 0, cases[i].now[1], cases[i].known[1]);
		take_tick(trace, cases[i].now[1], cases[i].received, FRAGI_TRACE_RECEIVED);
		cr_expect_eq(ctl_trace_join(trace), 0);
		cr_expect_eq(trace->message_count, 1, "%zu", i);
		cr_expect_eq(trace->backwards, 0, "%zu", i);
		cr_expect_leq(trace->ticks[0].end_ns, trace->ticks[1].begin_ns, "%zu", i);
		cr_expect_gt(trace->ticks[1].end_ns, trace->ticks[1].begin_ns + 300, "%zu", i);
		cr_expect_geq(trace->hosts[1].worst_ns, i == 4 ? 50500 : 1000, "%zu", i);
		ctl_trace_destroy(trace);
	}
}

/* What a thread did never overlaps; threads of two hosts may have the same number, and do. */
Test(trace_take, only_ticks_of_one_thread_are_set_apart)
{
	static const struct {
		uint32_t host, tid;
		int64_t begin_ns, end_ns, placed_ns;
	} ticks[] = {
		{0, 7, 1000, 5000, 1000}, {0, 7, 4000, 9000, 5000}, {0, 7, 9000, 9500, 9000},
		{0, 7, 9100, 9400, 9500}, {1, 7, 2000, 6000, 2000}, {1, 8, 3000, 4000, 3000},
		{1, 8, 3999, 4100, 4000}, {1, 9, 4000, 4100, 4000},
	};
	struct ctl_trace *trace = ctl_trace_create();

	cr_assert_not_null(trace);
	for (uint32_t host = 0; host < 2; host++)
		take_peer_of(trace, host, 0, 0);
	trace->ticks = fragi_calloc(FRAG_COUNT_OF(ticks), sizeof(*trace->ticks));
	cr_assert_not_null(trace->ticks);
	for (size_t i = 0; i < FRAG_COUNT_OF(ticks); i++)
		trace->ticks[trace->tick_count++] = (struct trace_tick){
			.host = ticks[i].host,
			.tid = ticks[i].tid,
			.begin_ns = ticks[i].begin_ns,
			.end_ns = ticks[i].end_ns,
			.is_placed = true,
		};
	cr_assert_eq(ctl_trace_join(trace), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(ticks); i++) {
		cr_expect_eq(trace->ticks[i].begin_ns, ticks[i].placed_ns, "%zu", i);
		cr_expect_geq(trace->ticks[i].end_ns, trace->ticks[i].begin_ns, "%zu", i);
	}
	ctl_trace_destroy(trace);
}

/* A host that did not say that it ends, and was followed by another process, has crashed. */
Test(trace_take, a_host_that_ends_by_itself_is_told_from_one_that_was_ended)
{
	struct ctl_trace *trace = ctl_trace_create();
	struct fragi_trace_host host = {.host = 1, .epoch = 1};

	cr_assert_not_null(trace);
	for (host.epoch = 1; host.epoch <= 3; host.epoch++) {
		chunk.size = 0;
		host.end = host.epoch == 1 ? FRAGI_TRACE_ENDS : FRAGI_TRACE_KILLED;
		cr_assert(fragi_trace_add_host(&chunk, &host, "host", ""));
		cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
		cr_expect_eq(ctl_trace_has_crash(trace), host.epoch == 3);
	}
	ctl_trace_destroy(trace);
}

/* A chunk that was lost at the end shows no gap: the last one that came says what is left. */
Test(trace_take, an_end_that_was_lost_is_counted)
{
	struct ctl_trace *trace = ctl_trace_create();
	struct fragi_trace_host host = {.host = 1, .epoch = 1, .left = 70};
	struct ctl_trace_sums sums;

	cr_assert_not_null(trace);
	for (host.number = 0; host.number < 3; host.number++) {
		host.end = host.number == 0 ? FRAGI_TRACE_GOES_ON : FRAGI_TRACE_ENDS;
		host.left = host.number == 2 ? 0 : 70;
		chunk.size = 0;
		cr_assert(fragi_trace_add_host(&chunk, &host, "host", ""));
		cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
		ctl_trace_sums(trace, &sums);
		cr_expect_eq(sums.open_hosts, host.number == 0, "%" PRIu64, host.number);
		cr_expect_eq(sums.left_records, host.number == 1 ? 70 : 0, "%" PRIu64, host.number);
		cr_expect_eq(sums.lost_chunks, 0);
	}
	ctl_trace_destroy(trace);
}

/* Such a part has no names: the host is called as before. */
Test(trace_take, the_last_part_of_a_host_keeps_its_name)
{
	const struct fragi_trace_host host = {.host = 1, .epoch = 1};
	struct fragi_trace_host last = host;
	struct ctl_trace *trace = ctl_trace_create();

	cr_assert_not_null(trace);
	for (int i = 0; i < 2; i++) {
		last.number = (uint64_t)i;
		chunk.size = 0;
		cr_assert(fragi_trace_add_host(&chunk, &last, i == 0 ? "two" : "",
					       i == 0 ? "boot" : ""));
		cr_expect_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	}
	cr_expect_eq(trace->host_count, 1);
	cr_expect_str_eq(trace->hosts[0].name, "two");
	cr_expect_str_eq(trace->hosts[0].clock, "boot");
	cr_expect_eq(trace->hosts[0].last.number, 1);
	ctl_trace_destroy(trace);
}
