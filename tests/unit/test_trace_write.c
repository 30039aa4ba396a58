// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include "draw.h"
#include "expected.h"
#include "trace_ring.h"

#include <base/blame.h>
#include <base/look.h>
#include <base/trace.h>
#include <fragctl/trace_model.h>

/*
 * The files that `fragctl trace` writes of drawn traces, packet by packet, compared with a recorded
 * text: three processes of two hosts, what they know of each other's clocks, ticks, messages within
 * and between them, samples, and what is missing.
 */
#define LIVES 10
#define WIDE_LIVES 150 /* as many lines and sums */
#define CHUNK_NS INT64_C(1000000)

static struct fragi_trace_chunk chunk;
static FILE *out;

/* What a packet consists of; a field that is not named here is shown by its number. */
enum level { PACKET, SNAPSHOT, CLOCK, TRACK, PROCESS, THREAD, EVENT, PLAIN };
static const struct name {
	enum level level;
	uint64_t number;
	const char *name;
	enum level inner;
} names[] = {
	{PACKET, 6, "clocks", SNAPSHOT}, {PACKET, 8, "at", PLAIN},
	{PACKET, 10, "sequence", PLAIN}, {PACKET, 11, "event", EVENT},
	{PACKET, 60, "track", TRACK},    {SNAPSHOT, 1, "clock", CLOCK},
	{CLOCK, 1, "id", PLAIN},         {CLOCK, 2, "ns", PLAIN},
	{TRACK, 1, "uuid", PLAIN},       {TRACK, 2, "name", PLAIN},
	{TRACK, 3, "process", PROCESS},  {TRACK, 4, "thread", THREAD},
	{TRACK, 5, "parent", PLAIN},     {TRACK, 8, "counter", PLAIN},
	{PROCESS, 1, "pid", PLAIN},      {PROCESS, 6, "name", PLAIN},
	{THREAD, 1, "pid", PLAIN},       {THREAD, 2, "tid", PLAIN},
	{THREAD, 5, "name", PLAIN},      {EVENT, 9, "type", PLAIN},
	{EVENT, 11, "on", PLAIN},        {EVENT, 23, "name", PLAIN},
	{EVENT, 30, "value", PLAIN},     {EVENT, 47, "sends", PLAIN},
	{EVENT, 48, "receives", PLAIN},
};

static uint64_t varint(const uint8_t **at)
{
	uint64_t value = 0;

	for (int shift = 0;; shift += 7) {
		value |= (uint64_t)(**at & 0x7f) << shift;
		if ((*(*at)++ & 0x80) == 0)
			return value;
	}
}

static void show_message(enum level level, const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		uint64_t key = varint(&at), value = 0;
		struct name field = {.inner = PLAIN};

		for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
			if (names[i].level == level && names[i].number == key >> 3)
				field = names[i];
		if (field.name != NULL)
			fprintf(out, " %s", field.name);
		else
			fprintf(out, " %" PRIu64, key >> 3);
		if ((key & 7) == 1) {
			memcpy(&value, at, sizeof(value));
			fprintf(out, " %" PRIx64, value);
			at += sizeof(value);
			continue;
		}
		value = varint(&at);
		if ((key & 7) == 0 && value >> 40 > 0 && level != CLOCK)
			fprintf(out, " %" PRIx64, value);
		else if ((key & 7) == 0)
			fprintf(out, " %" PRId64, (int64_t)value);
		else if (field.inner == PLAIN)
			fprintf(out, " \"%.*s\"", (int)value, (const char *)at);
		else
			show_message(field.inner, at, at + value);
		at += (key & 7) == 2 ? value : 0;
	}
}

static void show_file(const struct ctl_trace *trace)
{
	const uint8_t *at;
	char *bytes;
	size_t size;
	FILE *file = open_memstream(&bytes, &size);

	ctl_trace_write(trace, file);
	fclose(file);
	for (at = (const uint8_t *)bytes; at < (const uint8_t *)bytes + size;) {
		uint64_t key = varint(&at), length = varint(&at);

		cr_assert_eq(key, 10);
		show_message(PACKET, at, at + length);
		fputc('\n', out);
		at += length;
	}
	free(bytes);
}

static void show_sums(const struct ctl_trace *trace)
{
	struct ctl_trace_sums sums;

	ctl_trace_sums(trace, &sums);
	fprintf(out,
		"hosts %u, ticks %" PRIu64 ", messages %" PRIu64 ", backwards %" PRIu64
		", lost %" PRIu64 " records %" PRIu64 " chunks, left %" PRIu64
		", open %u, cut %" PRIu64 ", unmatched %" PRIu64 ", error %" PRId64
		", unsure %u, crash %d\n",
		sums.hosts, sums.ticks, sums.messages, sums.backwards, sums.lost_records,
		sums.lost_chunks, sums.left_records, sums.open_hosts, sums.cut, sums.unmatched,
		sums.error_ns, sums.unsure_hosts, ctl_trace_has_crash(trace));
}

/* --- a process and its chunks --- */

struct process {
	struct fragi_trace_host host;
	const char *name, *clock;
	uint64_t place, lost;
	uint64_t numbers[3]; /* of the next message at each end of a flow */
	struct fragi_trace_ring *ring;
};

static void put_record(struct process *p, uint64_t place, const struct fragi_trace_record *record)
{
	fragi_trace_put(p->ring, place, record);
}

/* It sends within the process, receives there, and sends to the other host or receives from it. */
static void put_drawn_tick(struct process *p, uint64_t begin, uint64_t end)
{
	const uint32_t flows = draw(4);
	uint64_t place = fragi_trace_take(p->ring, 1 + flows);
	struct fragi_trace_record tick = {.begin = begin,
					  .value = end,
					  .object = draw(3) & 3,
					  .flows = (uint8_t)flows,
					  .kind = FRAGI_TRACE_TICK,
					  .count = (71 + draw(2)) & 0xff};

	put_record(p, place, &tick);
	for (uint32_t i = 0; i < flows; i++) {
		uint32_t count = draw(8) == 0 ? 130 : 1 + draw(2);
		struct fragi_trace_record mark = {.begin = begin + (i == 1 ? draw(2) * 50 : 0),
						  .value = p->numbers[i],
						  .object = (i < 2 ? 0 : 1 + p->host.host) & 3,
						  .kind = i == 0 || (i == 2 && p->host.host == 0)
								  ? FRAGI_TRACE_SENT
								  : FRAGI_TRACE_RECEIVED,
						  .count = count & 0xffffff};

		p->numbers[i] += count;
		put_record(p, place + 1 + i, &mark);
	}
}

static void put_sample(struct process *p, uint64_t at)
{
	static const enum fragi_trace_kind kinds[] = {FRAGI_TRACE_USE, FRAGI_TRACE_POOL,
						      FRAGI_TRACE_LOST, FRAGI_TRACE_GPU,
						      FRAGI_TRACE_LATE};
	struct fragi_trace_record sample = {.begin = at, .object = draw(3) & 3};

	sample.kind = kinds[draw(5)] & 0xff;
	sample.value = sample.kind == FRAGI_TRACE_USE   ? draw(5)
		       : sample.kind == FRAGI_TRACE_GPU ? at + 1 + draw(900)
							: draw(9);
	sample.flows = sample.kind == FRAGI_TRACE_LATE ? (uint8_t)draw(FRAGI_BLAME_CAUSES) : 0;
	sample.count = (sample.kind == FRAGI_TRACE_LATE ? draw(3) : 0) & 3;
	put_record(p, fragi_trace_take(p->ring, 1), &sample);
}

static void name_rows(bool first)
{
	static const char *const ops[] = {"f.a", "f.b"};
	const struct fragi_trace_flow inside = {
		.row = 0, .is_received = true, .is_sent = true, .capacity = 3};
	const struct fragi_trace_flow between = {.row = first ? 1 : 2,
						 .is_sent = first,
						 .is_received = !first,
						 .capacity = 4,
						 .flow = 9,
						 .link = 5};

	for (uint32_t i = 0; i < FRAG_COUNT_OF(ops); i++)
		cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_OPERATOR, i, ops[i]));
	cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_THREAD, 71, "worker 0"));
	cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_POOL_NAME, 1, "pool of f.b"));
	cr_assert(fragi_trace_add_flow(&chunk, &inside, "f.a.out", "f.b.in"));
	cr_assert(fragi_trace_add_flow(&chunk, &between, first ? "f.b.out" : "", "g.c.in"));
}

static void send_chunk(struct ctl_trace *trace, struct process *p, bool is_first,
		       enum fragi_trace_end end)
{
	const struct fragi_interval as_it_is = {{0, 0}, {CHUNK_NS, CHUNK_NS}};
	uint32_t ticks = 1 + draw(4);
	uint64_t at = (uint64_t)p->host.now_ns - 90000;

	for (uint32_t i = 0; i < ticks; i++, at += 10000) {
		put_drawn_tick(p, at, at + 1000 + draw(15000));
		if (draw(2) == 0)
			put_sample(p, at + 2000);
	}
	chunk.size = 0;
	p->host.end = end;
	p->host.number += draw(6) == 0; /* one was lost */
	cr_assert(fragi_trace_add_host(&chunk, &p->host, is_first ? p->name : "",
				       is_first ? p->clock : ""));
	if (is_first)
		name_rows(p->host.host == 0);
	if (p->host.host == 1 && draw(2) == 0)
		cr_assert(fragi_trace_add_peer(
			&chunk, &(struct fragi_trace_peer){0, 1, 4000 + draw(9) * 700, 250}));
	p->lost += draw(5) == 0 ? 3 : 0;
	fragi_trace_add_records(&chunk, p->ring, &as_it_is, &p->place, &p->lost);
	cr_assert_eq(ctl_trace_take(trace, chunk.bytes, chunk.size), 0);
	p->host.number++;
	p->host.now_ns += CHUNK_NS / 2;
	p->host.unix_ns += CHUNK_NS / 2;
}

static void live(uint32_t seed)
{
	struct process processes[] = {
		{{.host = 0, .pid = 70, .epoch = 1}, "one (node a)", "clock of a"},
		{{.host = 1, .pid = 70, .epoch = 1}, "two (node b)", "clock of b"},
		{{.host = 0, .pid = 72, .epoch = 2}, "one (node a)", "clock of a"},
	};
	struct ctl_trace *trace = ctl_trace_create();
	uint32_t count = 1 + draw(3);

	cr_assert_not_null(trace);
	fprintf(out, "life %u\n", seed);
	for (uint32_t i = 0; i < count; i++) {
		struct process *p = &processes[i];

		p->ring = ring_create();
		cr_assert_not_null(p->ring);
		p->host.now_ns = CHUNK_NS + (i == 1 ? 5000 : 0) + (i == 2 ? 3 * CHUNK_NS : 0);
		p->host.unix_ns = INT64_C(1795788180000000000) + p->host.now_ns;
	}
	for (uint32_t k = 0; k < 2; k++)
		for (uint32_t i = 0; i < count; i++)
			send_chunk(trace, &processes[i], k == 0,
				   k == 1 ? (enum fragi_trace_end)draw(3) : FRAGI_TRACE_GOES_ON);
	cr_assert_eq(ctl_trace_join(trace), 0);
	show_sums(trace);
	show_file(trace);
	ctl_trace_destroy(trace);
	for (uint32_t i = 0; i < count; i++)
		free(processes[i].ring);
}

Test(trace_write, files_are_as_recorded)
{
	size_t size;
	char *text;

	out = open_memstream(&text, &size);
	for (uint32_t seed = 1; seed <= LIVES; seed++) {
		draw_from(seed);
		live(seed);
	}
	fclose(out);
	expected_compare("fragctl/traces", text);
	free(text);
}

/* --- wide lives: more hosts, of which less is known, and chunks that say anything --- */

#define WIDE_PROCESSES 6

static struct process wide[WIDE_PROCESSES];
static int64_t true_ahead_ns[WIDE_PROCESSES];       /* of each clock */
static uint64_t wide_numbers[WIDE_PROCESSES][4][2]; /* of the next message received, sent */

/* Names may come late, or twice, or of rows that nothing uses. */
static void name_drawn_rows(const struct process *p)
{
	char name[32], other[32];

	for (uint32_t row = 0; row < 4; row++) {
		struct fragi_trace_flow flow = {
			.row = row == 3 ? 3 + draw(20) : row,
			.capacity = 1 + draw(4),
			.is_sent = row == 0 || (row == 1) == (p->host.host % 2 == 0),
			.flow = row,
			.link = draw(8) == 0 ? 6 : 5,
			.before = draw(8) == 0 ? 1 : 0,
		};

		flow.is_received = row == 0 || !flow.is_sent;
		snprintf(name, sizeof(name), "%u.op%u", p->host.host, draw(5) == 0 ? row + 1 : row);
		if (draw_percent(70))
			cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_OPERATOR, row, name));
		if (draw_percent(50))
			cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_THREAD, 70 + draw(5),
						       name));
		if (draw_percent(40))
			cr_assert(fragi_trace_add_name(&chunk, FRAGI_TRACE_POOL_NAME,
						       draw(8) == 0 ? 1000 : row, name));
		snprintf(other, sizeof(other), "in%u", draw(5) == 0 ? row + 1 : row);
		if (draw_percent(80))
			cr_assert(fragi_trace_add_flow(&chunk, &flow, draw(9) > 0 ? name : "",
						       other));
	}
}

static void tell_peers(const struct process *p, uint32_t count)
{
	const size_t own = (size_t)(p - wide);

	for (uint32_t i = 0; i < count; i++) {
		struct fragi_trace_peer peer = {
			.host = wide[i].host.host,
			.epoch = draw(9) == 0 ? 7 : wide[i].host.epoch,
			.ahead_ns = true_ahead_ns[i] - true_ahead_ns[own] + draw(2000) - 1000,
			.error_ns = draw(40) == 0 ? -1 : 100 + (int64_t)draw(3000),
		};

		if (draw(60) == 0)
			peer.ahead_ns = draw(2) == 0 ? INT64_MAX / 3 : -INT64_MAX / 3;
		if (i != own && draw_percent(35))
			cr_assert(fragi_trace_add_peer(&chunk, &peer));
	}
}

static void put_wide_records(struct process *p)
{
	const uint32_t ticks = draw(6);
	uint64_t at = (uint64_t)p->host.now_ns - draw(3) * 40000;

	for (uint32_t i = 0; i < ticks; i++, at += 9000 + draw(3000)) {
		const uint32_t flows = draw(4);
		uint64_t place = fragi_trace_take(p->ring, 1 + flows);
		struct fragi_trace_record tick = {.begin = at,
						  .value = at + 500 + draw(20000),
						  .object = draw(5) & 7,
						  .flows = (uint8_t)flows,
						  .kind = FRAGI_TRACE_TICK,
						  .count = (70 + draw(4)) & 0xff};

		put_record(p, place, &tick);
		for (uint32_t k = 0; k < flows; k++) {
			const uint32_t row = draw(12) == 0 ? 30 : k;
			const bool sends =
				k == 0 ? draw(2) == 0 : (k == 1) == (p->host.host % 2 == 0);
			uint64_t *number = &wide_numbers[p - wide][k][sends];
			struct fragi_trace_record mark = {
				.begin = at,
				.value = *number + (draw(15) == 0 ? 2 : 0),
				.object = row & 0xff,
				.kind = sends ? FRAGI_TRACE_SENT : FRAGI_TRACE_RECEIVED,
				.count = (draw(9) == 0 ? 5 : 1) & 0xff};

			*number += mark.count;
			put_record(p, place + 1 + k, &mark);
		}
		if (draw_percent(60))
			put_sample(p, at + 100);
	}
}

static void send_wide_chunk(struct ctl_trace *trace, struct process *p, uint32_t count)
{
	const struct fragi_interval as_it_is = {{0, 0}, {CHUNK_NS, CHUNK_NS}};
	const bool is_named = p->host.number == 0 || draw_percent(20);
	int r;

	put_wide_records(p);
	chunk.size = 0;
	p->host.end = draw(8) == 0 ? (enum fragi_trace_end)(1 + draw(2)) : FRAGI_TRACE_GOES_ON;
	p->host.left = draw(4) == 0 ? draw(50) : 0;
	p->host.number += draw(9) == 0 ? 1 + draw(3) : 0;
	cr_assert(fragi_trace_add_host(&chunk, &p->host, is_named ? p->name : "",
				       is_named ? p->clock : ""));
	if (draw_percent(50))
		name_drawn_rows(p);
	tell_peers(p, count);
	p->lost += draw(5) == 0 ? draw(7) : 0;
	fragi_trace_add_records(&chunk, p->ring, &as_it_is, &p->place, &p->lost);
	if (draw(60) == 0) /* cut, or changed */
		chunk.size -= draw(8);
	else if (draw(60) == 0)
		chunk.bytes[draw(chunk.size)] ^= 1u << draw(8);
	r = ctl_trace_take(trace, chunk.bytes, chunk.size);
	if (r != 0)
		fprintf(out, "a chunk of host %u is refused: %d\n", p->host.host, r);
	p->host.number++;
	p->host.now_ns += CHUNK_NS / 8 + draw(8) * CHUNK_NS / 2;
	p->host.unix_ns = INT64_C(1795788180000000000) + p->host.now_ns - true_ahead_ns[p - wide] +
			  draw(3) * 1000;
	true_ahead_ns[p - wide] += draw(3) == 0 ? (int64_t)draw(9) * 1000 - 4000 : 0;
}

static void show_hosts(const struct ctl_trace *trace)
{
	for (uint32_t i = 0; i < trace->host_count; i++) {
		const struct trace_host *host = &trace->hosts[i];

		fprintf(out,
			"host %u.%" PRIu64 " %s (%s): ops %u, flows %u, threads %u, peers %u, "
			"error %" PRId64 ", worst %" PRId64 ", moved %" PRId64 ", %" PRId64
			" to %" PRId64 ", unsure %d\n",
			host->first.host, host->first.epoch, host->name, host->clock,
			host->op_count, host->flow_count, host->thread_count, host->peer_count,
			host->error_ns, host->worst_ns, host->moved_ns, host->first_ns,
			host->last_ns, host->is_unsure);
		for (int64_t at = 0; host->bend_count > 0 && at < 8 * CHUNK_NS; at += CHUNK_NS / 3)
			fprintf(out, " %" PRId64, ctl_trace_ahead_at(host, at));
		fputc('\n', out);
	}
}

static void live_wide(uint32_t seed)
{
	static const char *const called[] = {"one", "two", "three", "four", "five", "six"};
	static const char *const clocks[] = {"", "clock of a", "clock of b"};
	struct ctl_trace *trace = ctl_trace_create();
	const uint32_t count = 1 + draw(WIDE_PROCESSES), rounds = 1 + draw(6);

	cr_assert_not_null(trace);
	memset(wide_numbers, 0, sizeof(wide_numbers));
	fprintf(out, "life %u\n", seed);
	for (uint32_t i = 0; i < count; i++) {
		wide[i] = (struct process){
			{.host = draw(4), .pid = 70 + i, .epoch = 1 + draw(3)},
			called[i],
			DRAW_OF(clocks),
		};
		wide[i].ring = ring_create();
		cr_assert_not_null(wide[i].ring);
		true_ahead_ns[i] = draw(2) == 0 ? 0 : (int64_t)draw(2000000) - 1000000;
		wide[i].host.now_ns = 3 * CHUNK_NS + true_ahead_ns[i] + draw(50) * 1000;
		wide[i].host.unix_ns = INT64_C(1795788183000000000);
	}
	for (uint32_t k = 0; k < rounds; k++)
		for (uint32_t i = 0; i < count; i++)
			if (draw_percent(85))
				send_wide_chunk(trace, &wide[i], count);
	cr_assert_eq(ctl_trace_join(trace), 0);
	show_sums(trace);
	show_hosts(trace);
	show_file(trace);
	ctl_trace_destroy(trace);
	for (uint32_t i = 0; i < count; i++)
		free(wide[i].ring);
}

Test(trace_write, files_of_anything_are_as_recorded)
{
	size_t size, all_size;
	char *text, *all_text;
	FILE *all = open_memstream(&all_text, &all_size);

	for (uint32_t seed = 1; seed <= WIDE_LIVES; seed++) {
		out = open_memstream(&text, &size);
		draw_from(seed + 1000);
		live_wide(seed);
		fclose(out);
		draw_life_ends(all, seed, text, false);
	}
	fclose(all);
	expected_compare("fragctl/traces_wide", all_text);
	free(all_text);
}
