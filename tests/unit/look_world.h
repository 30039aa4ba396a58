/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LOOK_WORLD_H
#define TESTS_UNIT_LOOK_WORLD_H

#include "driver_world.h"

/* Clients that look at what runs, and what hosts report for them. */

/* Where the time of an application goes, as clients get it window by window. */
#define CLIENT 3

/* What a host reports: counts of its operator and of its end of the flow. */
struct report {
	int64_t at_ns;
	uint64_t busy, input, room, memory;                        /* ns */
	uint64_t ticks, messages, dropped, late, waiting, removed; /* dropped: stale */
	uint64_t locked, stepped, silent;                          /* the clock of the sender */
};

static inline void report(struct world *w, uint32_t host, bool final, struct report r)
{
	struct fw_message message = of_host(FW_HOST_STATS, host);
	struct fragi_flow_stats row = {0};
	struct fw_op_stats op = {.ticks = r.ticks,
				 .use_busy = r.busy,
				 .use_input = r.input,
				 .use_room = r.room,
				 .use_memory = r.memory,
				 .removed = r.removed};

	if (host == 1)
		row = (struct fragi_flow_stats){.sent = r.messages, .room_ns = r.room};
	else
		row = (struct fragi_flow_stats){.arrived =
							r.messages + r.dropped + r.late + r.waiting,
						.delivered = r.messages,
						.input_ns = r.input,
						.clock_locked = r.locked,
						.clock_stepped = r.stepped,
						.clock_silent = r.silent,
						.rx_dropped[FRAGI_DROP_STALE] = r.dropped,
						.rx_dropped[FRAGI_DROP_LATE] = r.late};
	message.stats = (struct fw_host_stats){
		.final = final, .ops = &op, .op_count = 1, .flows = &row, .flow_count = 1};
	message.stats.facts.at_ns = (uint64_t)r.at_ns;
	message.stats.facts.cpu_ns = r.busy;
	message.stats.facts.gpus = 2;
	message.stats.facts.gpu_busy_permille = 370;
	say(w, host, &message);
}

static inline void look(struct world *w, uint64_t client, const char *name, int64_t every_ns,
			bool once)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	client_hello(w, client, "top");
	message.look = (struct fw_look){name, every_ns, once};
	say(w, client, &message);
}

/* The next window that has come to the client, which must be there. */
static inline const struct fw_looked *looked(struct world *w, uint64_t client)
{
	const struct fw_message *message = must_take(w, client, FW_LOOKED);
	cr_expect_eq(message->reply_to, 9);
	return &message->looked;
}

/* LOOK of a client that has said HELLO: what was counted, now. */
static inline void look_at_once(struct world *w, int64_t for_ns, uint32_t rows)
{
	struct fw_message message = {.kind = FW_LOOK, .seq = 9};

	message.look = (struct fw_look){"", for_ns, false, true, rows};
	say(w, CLIENT, &message);
}

#endif
