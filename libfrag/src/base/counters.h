/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_COUNTERS_H
#define FRAGI_BASE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include <base/hist.h>

/*
 * What is counted for each flow, in two lists. The row of the ledger, the wire, the sums, the
 * summary and its schema follow from them: a new counter is a line here and the place where it is
 * counted (fragi_count on the row).
 */

/* Why a message was dropped; from STALE on for its time. X(NAME, name, when) */
#define FRAGI_DROP_LIST(X)                                                                         \
	X(QUEUE_FULL, queue_full, "The queue was full under pop, reject or latest.")               \
	X(NO_ROOM, no_room, "It was emitted beyond what block or fault allows.")                   \
	X(RECEIVER_DONE, receiver_done, "The receiving operator had ended.")                       \
	X(STOPPED, stopped, "The application was stopped before it could be received.")            \
	X(STALE, stale, "Its input takes none that was acquired so long ago (age).")               \
	X(LATE, late, "No message of another aligned input was taken within the window of it.")    \
	X(SUPERSEDED, superseded, "Its input takes the latest one, and a newer one had come.")     \
	X(SKIPPED, skipped, "Its tick was skipped, because another input had no message.")         \
	X(CLOCKS, clocks_not_comparable, "Its acquisition time cannot be compared here.")          \
	X(DEADLINE, deadline, "The deadline of its operator was over before the tick began.")

/*
 * X(name, shown, what), by the only writer, which is the half of the row that holds it.
 * shown: SHOWN in the summary, or INTERNAL.
 * A counter's place in its half is its index on the wire: new ones are appended. They are read from
 * the last to the first: a message that is seen settled is seen sent.
 */
#define FRAGI_SENDER_LIST(X)                                                                       \
	X(sent, SHOWN, "Messages emitted.")                                                        \
	X(first_ns, INTERNAL, "CLOCK_MONOTONIC of the first emit; 0: none yet.")                   \
	X(bytes, SHOWN, "Bytes of the messages emitted.")                                          \
	X(confirmed, INTERNAL, "Between hosts: messages whose credit came ahead of DONE.")         \
	X(copied_out, INTERNAL, "Between hosts: bytes of tensors that this host copied.")          \
	X(gpu_mapped, INTERNAL, "Between hosts: messages whose GPU memory was handed over.")       \
	X(gpu_staged, INTERNAL, "Between hosts: messages whose GPU memory was copied first.")      \
	X(full_ns, INTERNAL, "While somebody looked: it had no room.")                             \
	X(room_ns, INTERNAL, "While somebody looked: its sender waited for room in it.")
#define FRAGI_RECEIVER_LIST(X) FRAGI_RECEIVER_OFTEN_LIST(X) FRAGI_RECEIVER_SELDOM_LIST(X)
#define FRAGI_RECEIVER_OFTEN_LIST(X)                                                               \
	X(arrived, INTERNAL, "Between hosts: messages that reached the queue.")                    \
	X(delivered, SHOWN, "Messages received by the operator.")                                  \
	X(copied_in, INTERNAL, "Between hosts: bytes of tensors that this host copied.")           \
	X(reused, SHOWN, "Ticks that got the message of an earlier tick again.")                   \
	X(absent_late, SHOWN, "Ticks without a message: none had come.")                           \
	X(absent_stale, SHOWN, "Ticks without a message: it was older than age.")                  \
	X(absent_window, SHOWN, "Ticks without a message: none came before align's timeout.")      \
	X(absent_dropped, SHOWN, "Ticks without a message: it was dropped before its input.")      \
	X(absent_ended, SHOWN, "Ticks without a message: its sender had ended.")                   \
	X(absent_clocks, SHOWN, "Ticks without a message: its clock is not comparable.")
/* The sender's half has room for these. */
#define FRAGI_RECEIVER_SELDOM_LIST(X)                                                              \
	X(input_ns, INTERNAL, "While somebody looked: its receiver waited for its messages.")      \
	X(clock_locked, INTERNAL, "Between two clocks: how often the sender's was locked.")        \
	X(clock_stepped, INTERNAL, "Between two clocks: the lock was lost because one stepped.")   \
	X(clock_silent, INTERNAL, "Between two clocks: the lock was lost without an answer.")

/*
 * X(name, shown, what), of each operator; a counter's place is its index on the wire: append. What
 * begins with use_ is in the order of FRAGI_USE_LIST (base/look.h), and what begins with late_ in
 * that of FRAGI_BLAME_LIST (base/blame.h). LATE: of the path_misses, shown where there are any.
 */
#define FRAGI_OP_LIST(X)                                                                           \
	X(deadline_misses, SHOWN,                                                                  \
	  "Ticks that missed the operator's deadline, and messages dropped by it.")                \
	X(path_misses, SHOWN,                                                                      \
	  "Messages that reached it later than the deadline of a path allows.")                    \
	X(slowest, SHOWN,                                                                          \
	  "Late messages of paths that it had for longest, in its queues and its tick.")           \
	X(path_clocks, SHOWN,                                                                      \
	  "Messages that reached it by a path with a deadline, from a clock not comparable.")      \
	X(use_busy, INTERNAL, "While somebody looked: ns in a callback.")                          \
	X(use_input, INTERNAL, "While somebody looked: ns of waiting for a message.")              \
	X(use_room, INTERNAL, "While somebody looked: ns of waiting for room.")                    \
	X(use_memory, INTERNAL, "While somebody looked: ns of waiting for memory.")                \
	X(use_thread, INTERNAL, "While somebody looked: ns of waiting for a thread.")              \
	X(use_time, INTERNAL, "While somebody looked: ns of waiting for a time or an event.")      \
	X(use_suspended, INTERNAL, "While somebody looked: ns in which it did not run.")           \
	X(skipped, SHOWN, "Damaged pieces of what it reads that it left out.")                     \
	X(removed, SHOWN, "Files that it removed to keep to a limit of disk.")                     \
	X(held_back, SHOWN, "Live frames that waited for its receivers for more than 3 periods.")  \
	X(outdated, SHOWN,                                                                         \
	  "Live frames that had waited for more than 3 periods when it got them.")                 \
	X(late_queue, LATE, "Late: an operator was busy with earlier messages.")                   \
	X(late_compute, LATE, "Late: a tick computed long.")                                       \
	X(late_preempted, LATE, "Late: in a tick the kernel gave the thread no core.")             \
	X(late_thread, LATE, "Late: an operator could tick, and no thread was free.")              \
	X(late_pool, LATE, "Late: an operator waited for memory of a pool.")                       \
	X(late_window, LATE, "Late: a flow had no room.")                                          \
	X(late_network, LATE, "Late: between sent and arrived.")                                   \
	X(late_gpu, LATE, "Late: work of a GPU was waited for.")                                   \
	X(late_restart, LATE, "Late: a receiving host was not there.")                             \
	X(late_clock, LATE, "Late by less than the clocks are exact.")

/*
 * Those of an operator and of a flow that clients see while the application runs: X(name, unit,
 * metric, help). A row makes the member name_sum of the tables of a look (base/look.h), which the
 * driver fills in and the wire carries, and a metric. unit: u64, or ns, shown in seconds. A row's
 * place is its number on the wire: append.
 */
#define FRAGI_OP_LIVE_LIST(X)                                                                      \
	X(deadline_misses, u64, "frag_operator_deadline_misses_total",                             \
	  "Ticks that missed the deadline of the operator, and messages dropped by it.")
#define FRAGI_FLOW_LIVE_LIST(X)                                                                    \
	X(bytes, u64, "frag_flow_sent_bytes_total", "Bytes of the messages emitted.")              \
	X(full_ns, ns, "frag_flow_full_seconds_total", "Time without room, while somebody looked.")

#define FRAGI_DROP_ENUM(NAME, name, when) FRAGI_DROP_##NAME,
enum fragi_drop { FRAGI_DROP_LIST(FRAGI_DROP_ENUM) FRAGI_DROP_REASONS };
#undef FRAGI_DROP_ENUM

enum {
#define FRAGI_PLUS_ONE(name, shown, what) +1
	FRAGI_SENDER_COUNTERS = FRAGI_SENDER_LIST(FRAGI_PLUS_ONE),
	FRAGI_RECEIVER_COUNTERS = FRAGI_RECEIVER_LIST(FRAGI_PLUS_ONE),
	FRAGI_COUNTERS = FRAGI_SENDER_COUNTERS + FRAGI_RECEIVER_COUNTERS,
	FRAGI_OP_COUNTERS = FRAGI_OP_LIST(FRAGI_PLUS_ONE),
#undef FRAGI_PLUS_ONE
};

struct fragi_counter_info {
	const char *name;
	bool shown;
};
FRAGI_API extern const struct fragi_counter_info fragi_counter_infos[FRAGI_COUNTERS];
FRAGI_API const char *fragi_drop_name(enum fragi_drop reason); /* "queue_full", "no_room", ... */

/* The sum of those drops that nobody wants: without those of an end and what latest replaces. */
FRAGI_API uint64_t fragi_drops_unwanted(const uint64_t *dropped, bool is_latest);

/* The counters as plain members, by name and by index; those of the sender come first. */
#define FRAGI_COUNTER_FIELD(name, shown, what) uint64_t name;
#define FRAGI_COUNTER_FIELDS                                                                       \
	union {                                                                                    \
		struct {                                                                           \
			FRAGI_SENDER_LIST(FRAGI_COUNTER_FIELD)                                     \
			FRAGI_RECEIVER_LIST(FRAGI_COUNTER_FIELD)                                   \
		};                                                                                 \
		uint64_t counters[FRAGI_COUNTERS];                                                 \
	}

/* Those of an operator, by name and by index. */
#define FRAGI_OP_COUNTER_FIELDS                                                                    \
	union {                                                                                    \
		struct {                                                                           \
			FRAGI_OP_LIST(FRAGI_COUNTER_FIELD)                                         \
		};                                                                                 \
		uint64_t counters[FRAGI_OP_COUNTERS];                                              \
	}

/*
 * A pool of blocks, or of bytes (block_bytes 1), while somebody looks. block_bytes 0: nobody has.
 */
struct fragi_pool_stats {
	uint64_t blocks, block_bytes, free;
	uint64_t refused;  /* blocks that were asked for and not there, since the start */
	uint64_t empty_ns; /* for how long no block was free, while somebody looked */
};
#define FRAGI_POOLS_MAX 64u /* of a host, of which this is known */

/* One row of a ledger, read at some time. */
struct fragi_flow_stats {
	FRAGI_COUNTER_FIELDS;
	uint64_t tx_dropped[FRAGI_DROP_REASONS], rx_dropped[FRAGI_DROP_REASONS];
	struct fragi_quantiles latency; /* ns from emit to receive */
};
/* Adds the row of one process of a host to those of the processes before it. */
FRAGI_API void fragi_flow_stats_add(struct fragi_flow_stats *sum,
				    const struct fragi_flow_stats *row);

#endif
