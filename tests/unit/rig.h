/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_RIG_H
#define TESTS_UNIT_RIG_H

/*
 * Runs a graph, given as text, in this process with operators of the test's own: they write down
 * what happened (struct truth), which tests compare with what should have. Of a whole application
 * rig_wait is the driver too: it halts a run that rests or has failed, and drains one that an
 * operator stopped.
 */
#include <errno.h>
#include <linux/memfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/log.h>
#include <base/stamp.h>
#include <frag/frag.h>
#include <run/run.h>
#include "../ops.h"
#include "../slow.h"

#ifndef RIG_FAIL
#define RIG_FAIL(...)                                                                              \
	do {                                                                                       \
		fprintf(stderr, __VA_ARGS__);                                                      \
		abort();                                                                           \
	} while (0)
#endif

struct rig {
	struct fragi_source source;
	struct fragi_spec *spec;
	struct fragi_registry *registry;
	struct fragi_run *run;
	struct fragi_diag diag;
	int page_fd;  /* of the ledger; -1, 0: none */
	bool is_host; /* some fragments: the test is their driver */
	/* what the run reported */
	unsigned int wired, started, done, failed, stopped, idle, lost;
	struct fragi_run_event last_idle;
	char sentence[1024];
	enum fragi_failure failure; /* of the last FAILED */
	int64_t start_ns, done_ns;
};

/* Between hosts; the first NULL: the one that connects any two. */
static const char *rig_transports[2];
/* For what operators save; 0: nobody keeps it. */
static int rig_saved_fd;

/* fragments NULL: the whole application; else those of one host. */

static inline int rig_prepare_host(struct rig *rig, const struct frag_plugin *plugin,
				   const char *yaml, const char *const *fragments, uint32_t host)
{
	const struct fragi_spec_source source = {.graph = {"test.yaml", yaml, strlen(yaml)}};
	const struct fragi_registry_config registry = {0};
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key of the rig";
	struct fragi_run_config config = {
		.fragments = fragments,
		.data_key = key,
		.host = host,
		.epoch = 1,
		.beat_ns = 50000000,
		.dead_ns = 1000000000,
		.ledger_fd = (int)syscall(SYS_memfd_create, "rig", MFD_ALLOW_SEALING),
		.saved_fd = rig_saved_fd,
		.transports = rig_transports};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	memset(rig, 0, sizeof(*rig));
	rig->page_fd = config.ledger_fd;
	rig->is_host = fragments != NULL;
	r = fragi_spec_parse(&source, &rig->diag, &rig->spec);
	if (r < 0)
		return r;
	if (fragi_registry_create(&registry, &rig->registry) < 0 ||
	    fragi_registry_add(rig->registry, "rig", plugin, &err) < 0)
		RIG_FAIL("registry: %s\n", err.text);
	config.spec = rig->spec;
	config.registry = rig->registry;
	if (fragi_run_create(&config, &rig->run) < 0)
		RIG_FAIL("fragi_run_create\n");
	return fragi_run_prepare(rig->run, &rig->diag);
}

static inline int rig_prepare(struct rig *rig, const struct frag_plugin *plugin, const char *yaml)
{
	return rig_prepare_host(rig, plugin, yaml, NULL, 0);
}

static inline void rig_errors(const struct rig *rig)
{
	char line[2048];

	for (size_t i = 0; i < rig->diag.count; i++)
		fprintf(stderr, "%s\n", fragi_err_line(&rig->diag.items[i], line, sizeof(line)));
}

/* Prepares a graph that has nothing wrong. */
static inline void rig_prepare_good(struct rig *rig, const struct frag_plugin *plugin,
				    const char *yaml)
{
	if (rig_prepare(rig, plugin, yaml) < 0) {
		rig_errors(rig);
		RIG_FAIL("the graph was refused\n");
	}
}

static inline void rig_start(struct rig *rig)
{
	struct frag_err err = FRAG_ERR_INIT;

	rig->start_ns = fragi_now_ns();
	if (fragi_run_wire(rig->run, NULL, 0, NULL, 0, &err) < 0 ||
	    fragi_run_start(rig->run, &err) < 0)
		RIG_FAIL("start: %s\n", err.text);
}

/* What a driver of one host does about an event. */
static inline void rig_decide(struct rig *rig, const struct fragi_run_event *event)
{
	if (event->kind == FRAGI_RUN_IDLE || event->kind == FRAGI_RUN_FAILED)
		fragi_run_halt(rig->run);
	else if (event->kind == FRAGI_RUN_STOPPED)
		fragi_run_drain(rig->run);
}

/* Takes events until `until` says enough, or limit_ns have gone by. Returns whether it said so. */
static inline bool rig_wait(struct rig *rig, bool (*until)(struct rig *rig), int64_t limit_ns)
{
	struct fragi_run_event event;
	int64_t end_ns = fragi_now_ns() + limit_ns;

	for (;;) {
		struct pollfd p = {.fd = fragi_run_fd(rig->run), .events = POLLIN};

		while (fragi_run_next(rig->run, &event) > 0) {
			if (event.kind == FRAGI_RUN_DONE) {
				rig->done++;
				rig->done_ns = fragi_now_ns();
			}
			if (!rig->is_host)
				rig_decide(rig, &event);
			rig->failed += event.kind == FRAGI_RUN_FAILED;
			rig->stopped += event.kind == FRAGI_RUN_STOPPED;
			rig->wired += event.kind == FRAGI_RUN_WIRED;
			rig->started += event.kind == FRAGI_RUN_STARTED;
			rig->lost += event.kind == FRAGI_RUN_PEER_LOST;
			if (event.kind == FRAGI_RUN_IDLE) {
				rig->idle++;
				rig->last_idle = event;
			}
			if (event.kind == FRAGI_RUN_FAILED || event.kind == FRAGI_RUN_PEER_LOST)
				snprintf(rig->sentence, sizeof(rig->sentence), "%s",
					 event.sentence);
			if (event.kind == FRAGI_RUN_FAILED)
				rig->failure = event.failure;
		}
		if (until(rig))
			return true;
		if (fragi_now_ns() > end_ns)
			return false;
		poll(&p, 1, 50);
	}
}

static inline bool rig_is_done(struct rig *rig)
{
	return rig->done > 0;
}

static inline bool rig_has_failed(struct rig *rig)
{
	return rig->failed > 0;
}

#define RIG_LIMIT_NS ((int64_t)(30e9 * times_busier()))

/* Waits, as long, for what the test's operators or the ledger say. */
#define RIG_AWAIT(condition)                                                                       \
	do {                                                                                       \
		int64_t end_ns_ = fragi_now_ns() + RIG_LIMIT_NS;                                   \
		while (!(condition)) {                                                             \
			if (fragi_now_ns() > end_ns_)                                              \
				RIG_FAIL("%s:%d: waited in vain for %s\n", __FILE__, __LINE__,     \
					 #condition);                                              \
			usleep(1000);                                                              \
		}                                                                                  \
	} while (0)

/* Prepares, starts and waits until it is done. */
static inline void rig_run(struct rig *rig, const struct frag_plugin *plugin, const char *yaml)
{
	rig_prepare_good(rig, plugin, yaml);
	rig_start(rig);
	if (!rig_wait(rig, rig_is_done, RIG_LIMIT_NS))
		RIG_FAIL("not done in time\n");
}

/*
 * One counter of a flow between operators, "from.port" to "to.port" or any part of it, of the first
 * fragment.
 */
static inline const struct fragi_flow_row *rig_row(const struct rig *rig, size_t flow)
{
	return &fragi_run_ledger(rig->run)->flows[flow];
}

static inline uint64_t rig_dropped(const struct fragi_flow_row *row, enum fragi_drop reason)
{
	return atomic_load(&row->tx_dropped[reason]) + atomic_load(&row->rx_dropped[reason]);
}

static inline uint64_t rig_dropped_all(const struct fragi_flow_row *row)
{
	uint64_t n = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		n += rig_dropped(row, (enum fragi_drop)i);
	return n;
}

/* Whether every flow's sum balances with nothing in flight. */
static inline bool rig_balances(const struct rig *rig)
{
	size_t count;

	fragi_run_flows(rig->run, &count);
	for (size_t i = 0; i < count; i++) {
		const struct fragi_flow_row *row = rig_row(rig, i);

		if (atomic_load(&row->sent) != atomic_load(&row->delivered) + rig_dropped_all(row))
			return false;
	}
	return true;
}

/* The end counts nothing that was not counted before: it looks at the page behind the run. */
static inline void rig_destroy_run(struct rig *rig)
{
	struct fragi_ledger page = {0};
	struct fragi_flow_row *before = NULL;
	size_t size = 0;

	if (rig->page_fd > 0 && rig->done > 0 && fragi_ledger_open(&page, rig->page_fd) == 0) {
		size = page.flow_count * sizeof(*before);
		before = (struct fragi_flow_row *)malloc(size + 1);
		memcpy(before, page.flows, size);
	}
	fragi_run_destroy(rig->run);
	if (before != NULL && memcmp(before, page.flows, size) != 0)
		RIG_FAIL("the end of the run has changed what its flows have counted\n");
	free(before);
	fragi_ledger_close(&page);
	if (rig->page_fd > 0)
		close(rig->page_fd);
}

static inline void rig_end(struct rig *rig)
{
	rig_destroy_run(rig);
	fragi_registry_destroy(rig->registry);
	fragi_spec_destroy(rig->spec);
	fragi_diag_fini(&rig->diag);
}

#endif
