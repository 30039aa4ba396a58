/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_PAIR_H
#define TESTS_CONFORMANCE_PAIR_H

#include <string.h>

#include <edge/remote/remote.h>
#include <frag/frag.h>

/*
 * The kinds of edges that must pass the suite, as X(name, transports, ...): those that an edge may
 * go over, in turns; NULL: inside a host. A transport is the name of a module, or "socket". The
 * flows of those called encrypted_ are.
 */
#define KINDS_WITH(X, ...)                                                                         \
	X(inproc, NULL, NULL, __VA_ARGS__)                                                         \
	X(ucx, "ucx", NULL, __VA_ARGS__)                                                           \
	X(shm, "shm", NULL, __VA_ARGS__)                                                           \
	X(socket, "socket", NULL, __VA_ARGS__)                                                     \
	X(two, "socket", "ucx", __VA_ARGS__)                                                       \
	X(encrypted_ucx, "ucx", NULL, __VA_ARGS__)                                                 \
	X(encrypted_socket, "socket", NULL, __VA_ARGS__)                                           \
	X(encrypted_shm, "shm", NULL, __VA_ARGS__)

/*
 * Both ends of an edge in this process. Between hosts there are two remotes with a pump each, as
 * two processes would have.
 */
struct pair;

struct kind {
	const char *name;
	const char *transports[2];
};

#define DECLARE(name, first, second, unused) extern const struct kind kind_##name;
KINDS_WITH(DECLARE, 0)
#undef DECLARE

static inline bool is_between_hosts(const struct kind *kind)
{
	return kind->transports[0] != NULL;
}

static inline bool is_encrypted(const struct kind *kind)
{
	return strncmp(kind->name, "encrypted_", 10) == 0;
}

#define PAIR_REPLACED_MAX 16

struct pair {
	const struct kind *kind;
	/* asked for; zero: default */
	uint32_t capacity;
	enum frag_policy policy;
	uint64_t window_bytes, message_bytes_max;
	int64_t dead_ns;
	bool threads;        /* pumps with their backup pollers: tests that wait in them */
	uint32_t edges;      /* between the same two hosts; the first is tx, rx */
	bool itself;         /* both hosts are one */
	bool first_is_plain; /* the first of encrypted edges is not */
	/* a side has its transports, and is not connected yet; NULL: nobody is told */
	void (*opened)(struct pair *pair, int side);
	/* what open makes */
	struct fragi_tx *tx, *txs[8];
	struct fragi_rx *rx, *rxs[8];
	struct fragi_flow_row *tx_row, *rx_row; /* the same inside a host */
	struct fragi_ledger ledger[2];
	struct fragi_pump *pump[2]; /* of the sender, of the receiver */
	struct fragi_pump_waiter waiter[2];
	struct fragi_remote *remote[2];
	struct fragi_remote_peer *peer[2];
	struct fragi_remote_endpoint *endpoint[2][2]; /* [side][transport] */
	uint64_t epoch[2];
	/* hosts that were replaced: they make no progress any more */
	struct {
		struct fragi_remote *remote;
		struct fragi_pump *pump;
		struct fragi_ledger ledger;
	} replaced[PAIR_REPLACED_MAX];
	uint32_t replaced_count;
	/* what happened */
	_Atomic uint32_t arrivals, rooms, ready[2], lost[2], faults[2];
	enum fragi_failure failure[2]; /* the last that was reported, and its sentence */
	char sentence[2][1024], op[2][64];
};

extern const uint8_t pair_key[FRAGI_DATA_KEY_BYTES]; /* of both hosts */

/* Fails the test where it cannot be opened. */
void pair_open(struct pair *pair, const struct kind *kind);
/* The first half of it: the hosts have begun to connect. */
void pair_begin(struct pair *pair, const struct kind *kind);
void pair_close(struct pair *pair);
/* Opens it, calls test and closes it; no descriptor and no thread may be left then. */
void pair_test(struct pair *pair, const struct kind *kind,
	       void (*test)(struct pair *pair, const struct kind *kind));
/* The first half of it: the ends, not their pumps and ledgers. */
void pair_end(struct pair *pair);
/*
 * The host of a side stops for good, and another one of a higher epoch takes its place, with new
 * tokens, ends and rows. The first half of it: the other host does not know yet. The second half:
 * it is told, and both are connected.
 */
void pair_replace_begin(struct pair *pair, int side);
void pair_replace_end(struct pair *pair, int side);
void pair_replace(struct pair *pair, int side);
/* One round on both sides; returns how many things happened. */
uint32_t pair_turn(struct pair *pair);
/* The transport of a side, the first or the second of the kind. */
const struct fragi_transport *pair_transport(const struct pair *pair, int side, int which);
/* The memory that a side's first transport hands over; the side owns it. */
struct frag_resource *pair_memory(const struct pair *pair, int side);
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

/* What the transports need to find: settings of UCX as workerd makes them, for loopback; a seed. */
void set_environment(void);

/* Every kind of edge, or those that fit, has such a test in the suite of its name. */
#ifndef KIND_FITS
#define KIND_FITS(kind) true
#endif
#define ONE_KIND_TEST(name, first, second, what)                                                   \
	Test(name, what, .init = set_environment, .timeout = 120)                                  \
	{                                                                                          \
		if (KIND_FITS(&kind_##name))                                                       \
			what(&kind_##name);                                                        \
	}
#define KIND_TEST(what)                                                                            \
	static void what(const struct kind *kind);                                                 \
	KINDS_WITH(ONE_KIND_TEST, what)                                                            \
	static void what(const struct kind *kind)

/* The same with a pair, which begins as the rest says, is opened before, and closed after it. */
#define EDGE_TEST(what, ...)                                                                       \
	static void what##_by(struct pair *pair, const struct kind *kind);                         \
	KIND_TEST(what)                                                                            \
	{                                                                                          \
		struct pair pair = {__VA_ARGS__};                                                  \
		pair_test(&pair, kind, what##_by);                                                 \
	}                                                                                          \
	static void what##_by(struct pair *pair, const struct kind *kind)

/* A test with such a pair of one kind. */
#define PAIR_TEST(suite, name, over, ...)                                                          \
	static void name##_by(struct pair *pair, const struct kind *its_kind);                     \
	Test(suite, name, .init = set_environment)                                                 \
	{                                                                                          \
		struct pair pair = {__VA_ARGS__};                                                  \
		pair_test(&pair, over, name##_by);                                                 \
	}                                                                                          \
	static void name##_by(struct pair *pair, const struct kind *its_kind)

#endif
