// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#define RIG_FAIL(...) cr_assert_fail(__VA_ARGS__)
#include "rig_ops.h"
#include "trace_ring.h"

#include <base/alloc.h>
#include <base/look.h>
#include <base/trace.h>
#include <run/state.h>
#include <sched/exec.h>
#include <sched/probes.h>

/* The ring of records, the chunks that hosts send, and operators that take part. */

static struct fragi_trace_record records[FRAGI_TRACE_TICK_MAX];

/* A tick comes with the records of its flows, whole and in order, and only once. */
Test(trace, ticks_are_read_whole)
{
	struct fragi_trace_ring *ring = ring_create();
	uint64_t place = 0, lost = 0, half;
	struct fragi_trace_record tick = {.kind = FRAGI_TRACE_TICK, .flows = 1, .object = 9};

	cr_assert_not_null(ring);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 0);
	put_tick(ring, 7, 0);
	put_tick(ring, 8, 2);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 1);
	cr_expect_eq(records[0].object, 7);
	cr_expect_eq(records[0].count, 70000);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 3);
	cr_expect_eq(records[0].object, 8);
	cr_expect_eq(records[0].begin, 108);
	cr_expect_eq(records[1].object, 41);
	cr_expect_eq(records[2].value, 302);
	/* Half of it is written: it waits for the rest. */
	half = fragi_trace_take(ring, 2);
	fragi_trace_put(ring, half, &tick);
	put_tick(ring, 10, 0);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 0);
	tick.kind = FRAGI_TRACE_RECEIVED;
	fragi_trace_put(ring, half + 1, &tick);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 2);
	cr_expect_eq(records[0].object, 9);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 1);
	cr_expect_eq(records[0].object, 10);
	cr_expect_eq(place, 7);
	cr_expect_eq(lost, 0);
	free(ring);
}

/* What is overwritten is counted, and a thread that never writes its record holds nothing up. */
Test(trace, what_is_lost_is_counted)
{
	struct fragi_trace_ring *ring = ring_create();
	uint64_t place = 0, lost = 0;
	uint32_t read = 0;

	cr_assert_not_null(ring);
	for (uint32_t i = 0; i < FRAGI_TRACE_SLOTS + 1000; i++)
		put_tick(ring, 1 + i % 1000, 0);
	while (fragi_trace_next(ring, &place, &lost, records) > 0)
		read++;
	cr_expect_eq(lost, 1000);
	cr_expect_eq(read, FRAGI_TRACE_SLOTS);
	(void)fragi_trace_take(ring, 1);
	put_tick(ring, 5, 0);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 0);
	for (uint32_t i = 0; i < FRAGI_TRACE_SLOTS / 4 * 3; i++)
		put_tick(ring, 6, 0);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 1);
	cr_expect_eq(records[0].object, 5);
	cr_expect_eq(lost, 1001);
	free(ring);
}

/*
 * A thread that was preempted while it wrote keeps its slot: what others write there meanwhile is
 * lost, and what it writes itself is not taken for theirs.
 */
Test(trace, a_slot_has_one_writer)
{
	struct fragi_trace_ring *ring = ring_create();
	struct fragi_trace_record old = {.kind = FRAGI_TRACE_TICK, .object = 1};
	uint64_t place = 1, lost = 0;
	uint32_t read = 0;

	cr_assert_not_null(ring);
	put_tick(ring, 2, 0);
	atomic_store(&ring->slots[0].place, FRAGI_TRACE_BUSY);
	for (uint32_t i = 1; i <= FRAGI_TRACE_SLOTS; i++)
		put_tick(ring, 3, 0);
	while (fragi_trace_next(ring, &place, &lost, records) > 0)
		read++;
	cr_expect_eq(read, FRAGI_TRACE_SLOTS - 1);
	cr_expect_eq(place, FRAGI_TRACE_SLOTS, "it waits for the record that is not written");
	atomic_store(&ring->slots[0].place, 1);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 0, "an old record");
	put_tick(ring, 4, 0);
	fragi_trace_put(ring, 0, &old);
	for (uint32_t i = 1; i < FRAGI_TRACE_SLOTS; i++)
		put_tick(ring, 5, 0);
	fragi_trace_put(ring, FRAGI_TRACE_SLOTS, &old);
	cr_expect_eq(fragi_trace_next(ring, &place, &lost, records), 1);
	cr_expect_eq(records[0].object, 4);
	cr_expect_eq(lost, 1);
	free(ring);
}

#define WRITERS 3
#define WRITTEN 200000u

/* Records whose words belong together: those of two writers never mix. */
static void *write_many(void *arg)
{
	struct fragi_trace_ring *ring = arg;

	for (uint32_t i = 0; i < WRITTEN; i++) {
		const uint64_t place = fragi_trace_take(ring, 1);
		const struct fragi_trace_record record = {
			.begin = place,
			.value = place,
			.object = place & 0xffffff,
			.kind = FRAGI_TRACE_TICK,
			.count = place & 0xffffff,
		};

		fragi_trace_put(ring, place, &record);
	}
	return NULL;
}

Test(trace, records_of_many_threads_do_not_mix)
{
	struct fragi_trace_ring *ring = ring_create();
	pthread_t threads[WRITERS];
	uint64_t place = 0, lost = 0, read = 0;

	cr_assert_not_null(ring);
	for (int i = 0; i < WRITERS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_many, ring), 0);
	while (read + lost < WRITERS * WRITTEN - FRAGI_TRACE_SLOTS) {
		if (fragi_trace_next(ring, &place, &lost, records) == 0)
			continue;
		read++;
		cr_assert_eq(records[0].begin, place - 1);
		cr_assert_eq(records[0].value, place - 1);
		cr_assert_eq(records[0].object, (place - 1) & 0xffffff);
		cr_assert_eq(records[0].count, (place - 1) & 0xffffff);
	}
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	cr_expect_gt(read, 0);
	free(ring);
}

static struct fragi_trace_chunk chunk;

static void fill_chunk(struct fragi_trace_ring *ring)
{
	const struct fragi_trace_host host = {
		3, 77, 5, 9, 0, -13, 1700000000000000000, 0, FRAGI_TRACE_KILLED};
	const struct fragi_trace_flow flow = {6, true, false, 8, 21, UINT64_C(1) << 33, 17};
	const struct fragi_trace_peer peer = {4, 6, -123456789, 31000};
	const struct fragi_interval interval = {{1000, 0}, {1000, 0}};
	uint64_t place = 0, lost = 11;

	chunk.size = 0;
	cr_expect(fragi_trace_add_host(&chunk, &host, "two on lab", "boot time"));
	cr_expect(fragi_trace_add_peer(&chunk, &peer));
	cr_expect(fragi_trace_add_name(&chunk, FRAGI_TRACE_OPERATOR, 2, "two.rx"));
	cr_expect(fragi_trace_add_flow(&chunk, &flow, "", "two.rx.in"));
	cr_expect(fragi_trace_add_name(&chunk, FRAGI_TRACE_THREAD, 4242, "frag-two"));
	cr_expect(fragi_trace_add_name(&chunk, FRAGI_TRACE_POOL_NAME, 1, "two.frames"));
	fragi_trace_add_records(&chunk, ring, &interval, &place, &lost);
}

static struct fragi_trace_read read_one(uint32_t *at, enum fragi_trace_item kind)
{
	struct fragi_trace_read read;

	cr_assert_eq(fragi_trace_read(chunk.bytes, chunk.size, at, &read), 1);
	cr_assert_eq(read.kind, kind);
	return read;
}

/* What a host writes is read as it was; and any part of it, or any change, does no harm. */
Test(trace, chunks_are_read_as_they_were_written)
{
	struct fragi_trace_ring *ring = ring_create();
	struct fragi_trace_record record;
	struct fragi_trace_host host;
	struct fragi_trace_read read;
	uint32_t at = 0;
	int r;

	cr_assert_not_null(ring);
	put_tick(ring, 2, 1);
	(void)fragi_trace_take(ring, 1); /* one that is not written yet */
	fill_chunk(ring);
	cr_expect(fragi_trace_is_chunk(chunk.bytes, chunk.size, &host) && host.epoch == 5);
	cr_expect_not(fragi_trace_is_chunk(chunk.bytes + 1, chunk.size - 1, &host));
	cr_expect_not(fragi_trace_is_chunk(chunk.bytes, 0, &host));
	read = read_one(&at, FRAGI_TRACE_HOST);
	cr_expect_eq(read.host.host, 3);
	cr_expect_eq(read.host.pid, 77);
	cr_expect_eq(read.host.epoch, 5);
	cr_expect_eq(read.host.number, 9);
	cr_expect_eq(read.host.lost, 11);
	cr_expect_eq(read.host.now_ns, -13);
	cr_expect_eq(read.host.unix_ns, 1700000000000000000);
	cr_expect(read.host.left == 1 && read.host.end == FRAGI_TRACE_KILLED);
	cr_expect_str_eq(read.text, "two on lab");
	cr_expect_str_eq(read.other, "boot time");
	read = read_one(&at, FRAGI_TRACE_PEER);
	cr_expect(read.peer.host == 4 && read.peer.epoch == 6);
	cr_expect(read.peer.ahead_ns == -123456789 && read.peer.error_ns == 31000);
	read = read_one(&at, FRAGI_TRACE_OPERATOR);
	cr_expect_eq(read.row, 2);
	cr_expect_str_eq(read.text, "two.rx");
	read = read_one(&at, FRAGI_TRACE_FLOW);
	cr_expect(read.flow.row == 6 && read.flow.is_received && !read.flow.is_sent);
	cr_expect(read.flow.capacity == 8 && read.flow.flow == 21 && read.flow.before == 17);
	cr_expect_eq(read.flow.link, UINT64_C(1) << 33);
	cr_expect_str_eq(read.other, "two.rx.in");
	read = read_one(&at, FRAGI_TRACE_THREAD);
	cr_expect_eq(read.tid, 4242);
	read = read_one(&at, FRAGI_TRACE_POOL_NAME);
	cr_expect_eq(read.row, 1);
	cr_expect_str_eq(read.text, "two.frames");
	read = read_one(&at, FRAGI_TRACE_RECORDS);
	cr_assert_eq(read.record_count, 2);
	record = fragi_trace_record_at(&read, 0);
	cr_expect_eq(record.kind, FRAGI_TRACE_TICK);
	cr_expect(record.object == 2 && record.flows == 1 && record.count == 70000);
	cr_expect_geq(record.begin, 1000, "a time now");
	record = fragi_trace_record_at(&read, 1);
	cr_expect_eq(record.kind, FRAGI_TRACE_SENT);
	cr_expect(record.object == 41 && record.value == 301 && record.count == 70001);
	cr_expect_eq(fragi_trace_read(chunk.bytes, chunk.size, &at, &read), 0);
	for (uint32_t size = 0; size < chunk.size; size++) {
		for (at = 0; (r = fragi_trace_read(chunk.bytes, size, &at, &read)) > 0;)
			;
		cr_expect(r == 0 || r == -EBADMSG);
	}
	for (uint32_t i = 0; i < chunk.size; i++) {
		chunk.bytes[i] ^= 0xff;
		for (at = 0; (r = fragi_trace_read(chunk.bytes, chunk.size, &at, &read)) > 0;)
			for (uint32_t k = 0; k < read.record_count; k++)
				(void)fragi_trace_record_at(&read, k);
		cr_expect(r == 0 || r == -EBADMSG);
		chunk.bytes[i] ^= 0xff;
	}
	free(ring);
}

/* What is in the last parts of a trace: how many records, and the first of them. */
static uint32_t rest_of(const struct fragi_trace_ring *ring, struct fragi_trace_host *host,
			struct fragi_trace_record *out_first)
{
	struct fragi_trace_rest rest;
	struct fragi_trace_read read;
	uint32_t count = 0, at;
	bool has_more = true;

	cr_assert(fragi_trace_rest_begin(&rest, ring, 9, host));
	while (has_more) {
		const uint64_t number = rest.host.number;

		has_more = fragi_trace_rest_next(&rest, ring, FRAGI_TRACE_KILLED, &chunk);
		at = 0;
		read = read_one(&at, FRAGI_TRACE_HOST);
		cr_expect_eq(read.host.number, number);
		cr_expect_eq(read.host.unix_ns - read.host.now_ns, 1700, "as they were apart");
		cr_expect_eq(read.host.end, FRAGI_TRACE_KILLED);
		cr_expect(has_more == (read.host.left > 0), "so the last one is known");
		cr_expect(read.text[0] == '\0' && read.other[0] == '\0', "as it was called before");
		*host = read.host;
		read = read_one(&at, FRAGI_TRACE_RECORDS);
		cr_expect_eq(fragi_trace_read(chunk.bytes, chunk.size, &at, &read), 0);
		if (count == 0 && read.record_count > 0)
			*out_first = fragi_trace_record_at(&read, 0);
		count += read.record_count;
	}
	return count;
}

/*
 * Of a host that is gone the ring has what it had not sent: from the chunk on that did not come,
 * and without the records that a thread was about to write.
 */
Test(trace, what_a_host_that_is_gone_had_not_sent_is_read)
{
	struct fragi_trace_ring *ring = ring_create();
	const struct fragi_moment begin = {1000, 50};
	const struct fragi_trace_host sent = {.number = 4, .now_ns = 300, .unix_ns = 2000};
	struct fragi_trace_host host = sent;
	struct fragi_trace_record first = {0};
	struct fragi_trace_rest rest;

	cr_assert_not_null(ring);
	atomic_store(&ring->readers[1].id, 9);
	for (uint32_t i = 0; i < 6; i++)
		put_tick(ring, i, 0);
	fragi_trace_publish(&ring->readers[1], 4, 2, 7, &begin);
	fragi_trace_publish(&ring->readers[1], 5, 5, 8, &begin);
	cr_expect_eq(rest_of(ring, &host, &first), 1, "chunk 4 has come");
	cr_expect(first.object == 5 && host.number == 5 && host.lost == 8);
	cr_expect_gt(host.now_ns, 300);
	host = sent;
	host.number = 3;
	cr_expect_eq(rest_of(ring, &host, &first), 4, "it has not");
	cr_expect(first.object == 2 && host.number == 4 && host.lost == 7);
	(void)fragi_trace_take(ring, 2); /* killed before it wrote them */
	put_tick(ring, 11, 1);
	host = sent;
	cr_expect_eq(rest_of(ring, &host, &first), 3);
	cr_expect_eq(host.lost, 8 + 2);
	for (uint32_t i = 0; i < FRAGI_TRACE_SLOTS + 100; i++)
		put_tick(ring, i, 0);
	host = sent;
	cr_expect_eq(rest_of(ring, &host, &first), FRAGI_TRACE_SLOTS, "all that it holds");
	cr_expect_eq(first.object, 100);
	cr_expect_eq(host.lost, 8 + 5 + 100);
	cr_expect_gt(host.number, 5 + 10, "in several parts");
	cr_expect_not(fragi_trace_rest_begin(&rest, ring, 8, &host), "no such trace");
	cr_expect_not(fragi_trace_rest_begin(&rest, ring, 0, &host), "no trace at all");
	free(ring);
}

TEST_PLUGIN(trace, &source_type, &sink_type);

#define APP "frag: 1\napplication: app\n"
/* So that a ring does not overflow while its reader waits for a core. */
#define PACED "{type: source, conditions: [{type: periodic, recess_period: 20us}]}"
static const char *const apps[] = {
	APP "scheduler: {type: event_based, worker_thread_number: 2}\n"
	    "operators: {tx: " PACED ", rx: {type: sink}}\n"
	    "flows: [tx.out -> rx.in]\n",
	APP "scheduler: {type: greedy}\n"
	    "operators: {tx: " PACED ", rx: {type: sink}}\n"
	    "flows: [tx.out -> rx.in]\n",
};

/* What came of both operators since the trace began. */
static struct {
	uint32_t ticks[2];
	uint64_t next[2]; /* message at each end; UINT64_MAX: none has come */
	uint64_t ended_ns[2];
	bool has_use[2];
} seen;

static void take_records(const struct fragi_trace_read *read)
{
	for (uint32_t i = 0; i < read->record_count; i++) {
		struct fragi_trace_record record = fragi_trace_record_at(read, i);
		int end = record.kind == FRAGI_TRACE_RECEIVED;

		if (record.kind == FRAGI_TRACE_TICK) {
			cr_assert_lt(record.object, 2);
			cr_expect_leq(seen.ended_ns[record.object], record.begin,
				      "ticks of an operator follow each other");
			cr_expect_leq(record.begin, record.value);
			seen.ended_ns[record.object] = record.value;
			seen.ticks[record.object]++;
			continue;
		}
		if (record.kind == FRAGI_TRACE_USE) {
			cr_assert(record.object < 2 && record.value < FRAGI_USES);
			seen.has_use[record.object] = true;
			continue;
		}
		if (record.kind == FRAGI_TRACE_LOST)
			continue;
		cr_expect(seen.next[end] == UINT64_MAX || seen.next[end] == record.value,
			  "messages of a flow are numbered one by one");
		seen.next[end] = record.value + record.count;
	}
}

static bool take(void *arg, uint32_t id, const struct fragi_trace_chunk *got)
{
	struct fragi_trace_read read;
	uint32_t at = 0;

	(void)arg;
	cr_expect_eq(id, 5);
	while (fragi_trace_read(got->bytes, got->size, &at, &read) > 0)
		if (read.kind == FRAGI_TRACE_RECORDS)
			take_records(&read);
		else if (read.kind == FRAGI_TRACE_HOST)
			cr_expect_eq(read.host.lost, 0);
	return true;
}

static bool none(void *arg, uint32_t id, const struct fragi_passed *passed)
{
	(void)arg;
	(void)id;
	(void)passed;
	cr_assert_fail("a message of a trace");
}

static bool look(struct rig *rig)
{
	bool has_any = fragi_run_passed(rig->run, none, NULL);

	fragi_run_traced(rig->run, false, take, NULL);
	return has_any;
}

static const struct fragi_exec *exec_of(const struct rig *rig, uint32_t op)
{
	return rig->run->fragments[0].fragment->ops[op]->exec;
}

/* This test alone looks at compute from outside; the thread that ticks the operator writes it. */
__attribute__((no_sanitize_thread)) static bool is_traced(const struct rig *rig, uint32_t op)
{
	const struct fragi_exec *exec = exec_of(rig, op);

	return exec->compute != exec->op->type->compute;
}

/* Both ends of a flow number its messages alike, and what was traced leaves nothing behind. */
Test(trace, operators_take_part_and_leave_nothing)
{
	struct fragi_run_tap_wish wish = {.id = 5, .for_ns = 10000000000, .traces = true};
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(apps); s++) {
		rig_prepare_good(&rig, &trace_plugin, apps[s]);
		fragi_alloc_fail_after(0, 1);
		cr_expect_eq(fragi_run_tap(rig.run, &wish), -ENOMEM);
		cr_expect_eq(fragi_alloc_fail_off(), 1);
		rig_start(&rig);
		memset(&seen, 0, sizeof(seen));
		seen.next[0] = seen.next[1] = UINT64_MAX;
		RIG_AWAIT(noted(0) > 10);
		cr_expect_not(is_traced(&rig, 0), "nothing goes around its ticks");
		cr_expect_not(look(&rig));
		cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
		RIG_AWAIT((cr_expect(look(&rig)), seen.ticks[0] > 1000 && seen.ticks[1] > 1000 &&
							  seen.has_use[0] && seen.has_use[1]));
		cr_expect(is_traced(&rig, 0) && is_traced(&rig, 1));
		cr_expect_neq(seen.next[0], UINT64_MAX);
		cr_expect_neq(seen.next[1], UINT64_MAX);
		wish.for_ns = 0;
		cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
		wish.for_ns = 10000000000;
		RIG_AWAIT(!is_traced(&rig, 0) && !is_traced(&rig, 1));
		cr_expect_not(look(&rig));
		cr_expect_not(atomic_load(&exec_of(&rig, 1)->needs_full_check));
		fragi_run_halt(rig.run);
		rig_wait(&rig, rig_is_done, RIG_LIMIT_NS);
		rig_end(&rig);
		notes_clear();
	}
}

#if __has_include(<sys/sdt.h>)
/*
 * Operators have the probes around their ticks while the kernel counts that one is attached, beside
 * a trace or without one, and nothing after that.
 */
Test(trace, operators_have_probes_while_one_is_attached)
{
	struct fragi_run_tap_wish wish = {.id = 5, .for_ns = 10000000000, .traces = true};
	struct rig rig;

	rig_prepare_good(&rig, &trace_plugin, apps[0]);
	rig_start(&rig);
	RIG_AWAIT(noted(0) > 10);
	cr_expect_not(look(&rig));
	cr_expect_not(is_traced(&rig, 0));
	frag_receive_semaphore++;
	cr_expect_not(look(&rig), "it is no trace");
	RIG_AWAIT(is_traced(&rig, 0) && is_traced(&rig, 1));
	memset(&seen, 0, sizeof(seen));
	seen.next[0] = seen.next[1] = UINT64_MAX;
	cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
	RIG_AWAIT((cr_expect(look(&rig)), seen.ticks[0] > 10));
	wish.for_ns = 0;
	cr_assert_eq(fragi_run_tap(rig.run, &wish), 0);
	cr_expect_not(look(&rig));
	cr_expect_eq(rig.run->traces, 1, "for the probe");
	frag_receive_semaphore--;
	cr_expect_not(look(&rig));
	RIG_AWAIT(!is_traced(&rig, 0) && !is_traced(&rig, 1));
	fragi_run_halt(rig.run);
	rig_wait(&rig, rig_is_done, RIG_LIMIT_NS);
	rig_end(&rig);
	notes_clear();
}
#endif
