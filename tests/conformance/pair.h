/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_PAIR_H
#define TESTS_CONFORMANCE_PAIR_H

#include <edge/pump.h>
#include <frag/frag.h>

/*
 * What a kind of edge gives to the suite: both ends of an edge in this process. Between hosts there
 * are two transports with a pump each, as two processes would have.
 */
struct pair;

struct kind {
	const char *name;
	bool between_hosts;
	int (*open)(struct pair *pair);
	/* One round on both sides; returns how many things happened. */
	uint32_t (*turn)(struct pair *pair);
	void (*close)(struct pair *pair);
};

extern const struct kind kind_inproc, kind_ucx;

struct pair {
	const struct kind *kind;
	/* asked for; zero: default */
	uint32_t capacity;
	enum frag_policy policy;
	uint64_t window_bytes, message_bytes_max;
	int64_t dead_ns;
	bool threads;   /* pumps with their spare threads: tests that wait in them */
	uint32_t links; /* ends between the same two hosts; the first is tx, rx */
	/* what open makes */
	struct fragi_tx *tx, *txs[8];
	struct fragi_rx *rx, *rxs[8];
	struct fragi_flow_row *tx_row, *rx_row; /* the same inside a host */
	struct fragi_ledger ledger[2];
	struct fragi_pump *pump[2]; /* of the sender, of the receiver */
	const struct fragi_transport_ops *ops;
	struct fragi_transport *transport[2];
	struct fragi_peer *peer[2];
	/* what happened */
	_Atomic uint32_t arrivals, rooms, ready[2], lost[2], faults[2];
	char sentence[2][1024];
};

/* Fails the test where it cannot be opened. */
void pair_open(struct pair *pair, const struct kind *kind);
void pair_close(struct pair *pair);
/* Rounds until nothing happens any more. */
void pair_settle(struct pair *pair);
/* Rounds until done(pair) holds; false after a minute. */
bool pair_until(struct pair *pair, bool (*done)(struct pair *pair));

/* A message with an i64; its value; -1 for NULL. unref_value gives it up. */
struct frag_message *message_of(int64_t value);
int64_t value_of(const struct frag_message *message);
/* Sends an i64, with the stamp of now. */
int send_value(struct pair *pair, int64_t value);
/* The next value to receive, -1 when there is none. */
int64_t take_value(struct pair *pair);
/* A tensor of bytes with a pattern that starts at seed; whether it holds it. */
struct frag_tensor *bytes_tensor(size_t size, uint8_t seed);
bool tensor_holds(const struct frag_tensor *tensor, size_t size, uint8_t seed);

uint64_t dropped(const struct pair *pair, enum fragi_drop reason);
/* sent = delivered + dropped + what is still under way, and nothing negative. */
void check_balance(struct pair *pair, uint64_t under_way);

/*
 * The settings that workerd puts into a host's environment, for loopback. Before the module is
 * opened.
 */
void set_ucx_environment(void);

#endif
