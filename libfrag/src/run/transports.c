// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/sentence.h>
#include <base/transports.h>
#include <data/allocator.h>
#include <run/state.h>

/* The transports that this host's flows to other hosts go over. */

static void peer_ready(void *arg, uint32_t host)
{
	struct fragi_run *run = arg;

	(void)host;
	if (atomic_fetch_add(&run->peers_ready, 1) + 1 == run->peer_count)
		fragi_run_report(run, FRAGI_RUN_WIRED);
}

static void peer_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	struct fragi_run_event event = {
		.kind = FRAGI_RUN_PEER_LOST, .peer = host, .failure = failure};
	struct fragi_run *run = arg;

	event.peer_epoch = fragi_remote_peer_epoch(fragi_remote_peer_find(run->remote, host));
	atomic_fetch_add(&run->peers_lost, 1);
	fragi_sentence(event.sentence, sizeof(event.sentence), "%s", sentence);
	fragi_run_report_event(run, &event);
}

static void remote_fault(void *arg, enum fragi_failure failure, const char *op,
			 const char *sentence)
{
	fragi_run_report_failure(arg, failure, op, sentence);
}

static int transport_open(struct fragi_run *run, const char *name, struct fragi_diag *diag)
{
	const struct fragi_transport_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	int r = fragi_transport_open(name, &ops, &err);

	if (r == 0)
		r = fragi_remote_open(run->remote, ops, &err);
	if (r < 0) {
		frag_err_set(&err, r, "cannot open the transport %s (%s)", name, frag_strerror(r));
		fragi_err_classify(&err,
				   r == -ENOENT ? FRAGI_FAILURE_TRANSPORT_MISSING
						: FRAGI_FAILURE_HOST_FAILED,
				   NULL);
		fragi_diag_add_err(diag, &err);
	}
	return r;
}

static int remote_create(struct fragi_run *run)
{
	const struct fragi_remote_config config = {
		.host = run->config.host,
		.epoch = run->config.epoch,
		.pump = run->pump,
		.beat_ns = run->config.beat_ns,
		.dead_ns = run->config.dead_ns,
		.max_error_ns = run->config.spec->clock.config.max_error_ns,
		.data_key = run->config.data_key,
		.arg = run,
		.peer_ready = peer_ready,
		.peer_lost = peer_lost,
		.fault = remote_fault,
	};

	return run->remote != NULL ? 0 : fragi_remote_create(&config, &run->remote);
}

static bool is_wanted(const struct fragi_run *run, const char *name)
{
	const char *const *wanted = run->config.transports;

	/* A driver of minor 1 names none. */
	if (wanted == NULL || *wanted == NULL)
		return run->edge_rows > 0 && strcmp(name, fragi_transport_name(0)) == 0;
	while (*wanted != NULL && strcmp(*wanted, name) != 0)
		wanted++;
	return *wanted != NULL;
}

int fragi_run_open_transports(struct fragi_run *run, struct fragi_diag *diag)
{
	const char *name;
	int r = 0;

	for (size_t i = 0; r == 0 && (name = fragi_transport_name(i)) != NULL; i++) {
		if (!is_wanted(run, name))
			continue;
		r = remote_create(run);
		if (r == 0 && fragi_remote_transport(run->remote, name) == NULL)
			r = transport_open(run, name, diag);
	}
	return r;
}

int fragi_run_share_memory(struct fragi_run *run, struct fragi_diag *diag)
{
	const struct frag_device device = {FRAG_DEVICE_CPU, 0};
	const char *const name = fragi_transport_of_shared_memory();
	const struct fragi_transport *transport;
	int r;

	if (!is_wanted(run, name))
		return 0;
	r = remote_create(run);
	if (r == 0)
		r = transport_open(run, name, diag);
	if (r < 0)
		return r;
	transport = fragi_remote_transport(run->remote, name);
	fragi_default_memory_set(
		transport->ops->memory((struct fragi_transport *)(uintptr_t)transport, device));
	return 0;
}

uint32_t fragi_run_addresses(const struct fragi_run *run,
			     struct fragi_run_address out[FRAGI_HOST_TRANSPORTS_MAX])
{
	uint32_t count = 0;
	const char *name;

	for (size_t i = 0; run->remote != NULL && (name = fragi_transport_name(i)) != NULL; i++) {
		const struct fragi_transport *transport = fragi_remote_transport(run->remote, name);

		if (transport == NULL)
			continue;
		out[count].transport = name;
		out[count].bytes = transport->ops->address(transport, &out[count].size);
		out[count].detail = transport->detail;
		count++;
	}
	return count;
}
