// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include <base/peer_clock.h>

/*
 * The clocks of workers, as hosts compare them (base/peer_clock.h, which is used as
 * it is). Each node's runs at a rate of its own. Now and then it is slewed, or its machine is
 * suspended or paused, and only a suspended one knows. Questions and answers take their time, each
 * way its own, are lost, and wait while a process is stopped. Hosts come, go and move meanwhile.
 *
 * A time that a host would convert now must lie within its bound, and never before the one that it
 * has converted last; else the clock must not be locked. What is true is not asked between such an
 * event and the next round trip, as docs/TIME.md has it, nor where both machines were paused before
 * that: what the two pauses have not in common may be too short to be noticed.
 *
 * It is drawn from numbers of its own, so that all else in a history is the same with and without.
 */
#define FASTER 16 /* than beats, as in the begin; a history is short */
#define EACH 2    /* one of so many histories has them */
#define RATE_MAX 100000
#define PAIRS (SIM_HOSTS_MAX * SIM_FRAGMENTS_MAX)
#define RARELY 60 /* of so many beats, one finds its node's clock disturbed */

/* CLOCK_MONOTONIC of a worker, each of which has a time namespace at least. */
struct node {
	int64_t since_ns, shown_ns, rate; /* the time and what it showed when it was changed last */
	uint16_t steps, slews;
};

/* What a host knows of the clock of a peer. */
struct pair {
	uint32_t host, peer; /* indexes; the same: none yet */
	struct fragi_peer_clock clock;
	struct fragi_timeline timeline;
	int64_t last_ns;
	/* the round trip under way */
	bool asks;
	uint32_t number;
	int64_t asked_at_ns;
	struct fragi_round_trip trip;
	int64_t proved_ns; /* when the question of the last one that counts was asked */
	uint64_t doubted;  /* until it has restarted so often; 0: it is not */
};

static struct {
	bool on;
	uint64_t random;
	struct node nodes[SIM_WORKERS_MAX];
	struct pair *pairs; /* PAIRS: a peer of a host has its place there */
} clocks;

static int64_t draw(int64_t low, int64_t high)
{
	clocks.random ^= clocks.random << 13;
	clocks.random ^= clocks.random >> 7;
	clocks.random ^= clocks.random << 17;
	return low + (int64_t)(clocks.random % (uint64_t)(high - low + 1));
}

void sim_clocks_start(struct sim *sim)
{
	clocks.random = sim->seed * 0x9e3779b97f4a7c15u + 1;
	clocks.on = draw(1, EACH) == 1;
	if (!clocks.on)
		return;
	free(clocks.pairs);
	clocks.pairs = calloc(PAIRS, sizeof(*clocks.pairs));
	for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++)
		clocks.nodes[i] = (struct node){.shown_ns = draw(0, 1000000 * SIM_S),
						.rate = draw(-RATE_MAX, RATE_MAX)};
}

static struct node *node_of(const struct sim_host *host)
{
	return &clocks.nodes[host->worker];
}

static int64_t read_at(const struct node *node, int64_t true_ns)
{
	const int64_t gone_ns = true_ns - node->since_ns;

	return node->shown_ns + gone_ns + fragi_timeline_drift_ns(node->rate, gone_ns);
}

static void slew(const struct sim *sim, struct node *node, int64_t rate)
{
	node->shown_ns = read_at(node, sim->now_ns);
	node->since_ns = sim->now_ns;
	node->rate = rate;
}

/* It stands still while time goes on for all others. */
static void stand(const struct sim *sim, struct node *node, int64_t ns)
{
	for (struct node *other = clocks.nodes; other < clocks.nodes + SIM_WORKERS_MAX; other++)
		if (other != node)
			other->shown_ns += ns + fragi_timeline_drift_ns(other->rate, ns);
	slew(sim, node, node->rate);
}

/* All hosts of a node see at once what it knows of its clock. */
static void tell_hosts(const struct sim *sim, const struct node *node, bool has_stepped)
{
	for (struct pair *pair = clocks.pairs; pair < clocks.pairs + PAIRS; pair++) {
		if (pair->host == pair->peer || node_of(&sim->hosts[pair->host]) != node)
			continue;
		if (has_stepped)
			fragi_peer_clock_restart(&pair->clock, read_at(node, sim->now_ns),
						 &pair->timeline);
		else
			fragi_peer_clock_forget_rate(&pair->clock);
	}
}

/* The node is paused, and perhaps the other one was, which no round trip has seen. */
static void doubt(const struct sim *sim, const struct node *node)
{
	for (struct pair *pair = clocks.pairs; pair < clocks.pairs + PAIRS; pair++) {
		const struct node *here = node_of(&sim->hosts[pair->host]),
				  *there = node_of(&sim->hosts[pair->peer]);

		if (pair->host != pair->peer && pair->clock.count > 0 &&
		    ((here == node && pair->proved_ns <= there->since_ns) ||
		     (there == node && pair->proved_ns <= here->since_ns)))
			pair->doubted = pair->clock.restarts + 1;
	}
}

static void disturb(struct sim *sim, const struct sim_host *host)
{
	struct node *node = node_of(host);

	switch (draw(0, 2)) {
	case 0:
		sim_print(sim, sim_host_name(host), "its machine was suspended");
		stand(sim, node, draw(SIM_MS, draw(0, 1) == 0 ? 50 * SIM_MS : 100 * SIM_S));
		node->steps++;
		tell_hosts(sim, node, true);
		break;
	case 1:
		sim_print(sim, sim_host_name(host), "its machine was paused, and does not know");
		doubt(sim, node);
		stand(sim, node, draw(2 * SIM_S, 100 * SIM_S));
		break;
	default:
		slew(sim, node, draw(-RATE_MAX, RATE_MAX));
		node->slews++;
		tell_hosts(sim, node, false);
		break;
	}
}

/* Whether something happened to one of both clocks that no round trip has seen. */
static bool is_unseen(const struct pair *pair, const struct node *here, const struct node *there)
{
	return pair->proved_ns <= here->since_ns || pair->proved_ns <= there->since_ns;
}

/* A message that is published now. */
static void check(struct sim *sim, struct pair *pair)
{
	const struct node *here = node_of(&sim->hosts[pair->host]),
			  *there = node_of(&sim->hosts[pair->peer]);
	struct fragi_time time;
	int64_t off_ns;

	if (pair->clock.restarts >= pair->doubted)
		pair->doubted = 0;
	if (pair->doubted != 0 || is_unseen(pair, here, there) ||
	    !fragi_timeline_convert(&pair->timeline, read_at(there, sim->now_ns), &time)) {
		pair->last_ns = INT64_MIN;
		return;
	}
	off_ns = time.ns - read_at(here, sim->now_ns);
	if (llabs(off_ns) > time.error_ns)
		sim_fail(sim, "clocks",
			 "pid %d takes the clock of pid %d for %lld ns off, +/- %lld ns",
			 sim->hosts[pair->host].pid, sim->hosts[pair->peer].pid, (long long)off_ns,
			 (long long)time.error_ns);
	if (time.ns < pair->last_ns)
		sim_fail(sim, "clocks", "for pid %d the clock of pid %d goes back by %lld ns",
			 sim->hosts[pair->host].pid, sim->hosts[pair->peer].pid,
			 (long long)(pair->last_ns - time.ns));
	pair->last_ns = time.ns;
	sim->compared++;
}

/* When something arrives that a host sends another one now, unless it is lost. */
static bool send(struct sim *sim, uint32_t from, uint32_t to, int64_t *out_ns)
{
	const uint32_t a = sim->hosts[from].worker, b = sim->hosts[to].worker;
	int64_t most_ns = sim->workers[a].latency_ns + sim->workers[b].latency_ns + 20000;

	/* some ways are slow in one direction */
	if ((sim->seed >> (a + 2 * b) & 3) == 0)
		most_ns *= 10;
	*out_ns = sim->now_ns + draw(most_ns / 2, draw(0, 9) == 0 ? 20 * most_ns : most_ns);
	return sim->cut_until_ns[a][b] <= sim->now_ns && draw(0, 9) > 0;
}

static struct pair *pair_of(struct sim_host *host, uint32_t place, uint32_t peer)
{
	struct pair *pair = &clocks.pairs[host->index * SIM_FRAGMENTS_MAX + place];

	if (pair->host != host->index || pair->peer != peer) {
		const uint32_t number = pair->number;

		*pair = (struct pair){.host = host->index, .peer = peer, .number = number};
		fragi_peer_clock_init(&pair->clock);
	}
	return pair;
}

static void beat(struct sim *sim, struct sim_host *host)
{
	const struct node *here = node_of(host);

	for (uint32_t i = 0; host->wired && i < host->peer_count; i++) {
		const struct sim_host *peer = sim_host_by_pid(sim, host->peers[i]);
		struct pair *pair;
		int64_t at_ns;

		if (peer == NULL || node_of(peer) == here)
			continue;
		pair = pair_of(host, i, peer->index);
		(void)fragi_peer_clock_tick(&pair->clock, read_at(here, sim->now_ns),
					    &pair->timeline);
		check(sim, pair);
		if (draw(1, RARELY) == 1)
			disturb(sim, draw(0, 1) == 0 ? host : peer);
		if (pair->asks && draw(0, 7) > 0)
			continue;
		pair->asks = true;
		pair->asked_at_ns = sim->now_ns;
		pair->trip = (struct fragi_round_trip){.asked_ns = read_at(here, sim->now_ns)};
		pair->number++;
		if (send(sim, pair->host, pair->peer, &at_ns))
			sim_put(sim, at_ns, SIM_EV_CLOCK, pair->peer,
				(uint32_t)(pair - clocks.pairs), pair->number);
		else
			pair->asks = false;
	}
}

static void answer(struct sim *sim, struct pair *pair)
{
	const struct node *there = node_of(&sim->hosts[pair->peer]);
	int64_t at_ns;

	pair->trip.heard_ns = pair->trip.answered_ns = read_at(there, sim->now_ns);
	pair->trip.steps = there->steps;
	pair->trip.slews = there->slews;
	pair->asks = send(sim, pair->peer, pair->host, &at_ns);
	if (pair->asks)
		sim_put(sim, at_ns, SIM_EV_CLOCK, pair->host, (uint32_t)(pair - clocks.pairs),
			pair->number);
}

static void take(struct sim *sim, struct pair *pair)
{
	check(sim, pair);
	pair->asks = false;
	pair->trip.back_ns = read_at(node_of(&sim->hosts[pair->host]), sim->now_ns);
	if (pair->trip.back_ns - pair->trip.asked_ns <= FRAGI_PEER_CLOCK_ROUND_NS)
		pair->proved_ns = pair->asked_at_ns;
	fragi_peer_clock_add(&pair->clock, &pair->trip, &pair->timeline);
	check(sim, pair);
}

void sim_clocks_begin(struct sim *sim, const struct sim_host *host)
{
	if (clocks.on)
		sim_put(sim, sim->now_ns + host->beat_ns / FASTER, SIM_EV_CLOCK, host->index, PAIRS,
			0);
}

/* a: the host that it comes to, b: the pair, or PAIRS: it asks; c: the number of the question. */
void sim_on_clock(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];
	struct pair *pair = event->b < PAIRS ? &clocks.pairs[event->b] : NULL;

	if (!host->process.alive || host->dying || (pair != NULL && pair->number != event->c))
		return;
	if (sim_is_stopped(sim, &host->process)) {
		sim_put_back(sim, *event, host->process.stopped_until_ns);
	} else if (pair == NULL) {
		beat(sim, host);
		sim_clocks_begin(sim, host);
	} else if (event->a == pair->peer) {
		answer(sim, pair);
	} else {
		take(sim, pair);
	}
}
