// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <run/state.h>

/* A peer was started again: its edges, which have been suspended, lead to the new process. */

static int rewire_peer(struct fragi_run *run, const struct fragi_run_peer *info,
		       const struct fragi_run_edge *edges, size_t edge_count)
{
	struct fragi_remote_peer *peer =
		run->remote != NULL ? fragi_remote_peer_find(run->remote, info->host) : NULL;
	int r;

	if (peer == NULL)
		return -ENOENT;
	if (fragi_remote_peer_epoch(peer) == info->epoch) /* it was wired to this one */
		return 0;
	if (fragi_remote_peer_was_ready(peer))
		atomic_fetch_sub(&run->peers_ready, 1);
	if (fragi_remote_peer_was_lost(peer))
		atomic_fetch_sub(&run->peers_lost, 1);
	if (info->name != NULL) /* it may run on another worker now */
		fragi_remote_peer_set_name(peer, info->name);
	r = fragi_remote_peer_succeed(peer, info->epoch);
	for (size_t i = 0; r == 0 && i < edge_count; i++)
		if (edges[i].peer == info->host)
			r = fragi_remote_edge_succeed(peer, edges[i].config.flow,
						      edges[i].config.token);
	for (uint32_t i = 0; r == 0 && i < info->address_count; i++) {
		r = fragi_remote_endpoint_succeed(peer, info->addresses[i].transport,
						  info->addresses[i].bytes,
						  info->addresses[i].size);
		if (r == -ENOENT) /* no edge to it goes over this one */
			r = 0;
	}
	return r;
}

void fragi_run_rewire(struct fragi_run *run, const struct fragi_run_peer *peers, size_t peer_count,
		      const struct fragi_run_edge *edges, size_t edge_count)
{
	char sentence[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < peer_count; i++) {
		fragi_pump_lock(run->pump);
		r = rewire_peer(run, &peers[i], edges, edge_count);
		fragi_pump_unlock(run->pump);
		if (r < 0)
			snprintf(sentence, sizeof(sentence),
				 "cannot go on with host %s, which was started again: %s",
				 peers[i].name, frag_strerror(r));
	}
	if (r < 0)
		fragi_run_report_failure(run,
					 r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY
						      : FRAGI_FAILURE_EDGE_REFUSED,
					 NULL, sentence);
}

void fragi_run_suspend(struct fragi_run *run, uint32_t host, uint64_t epoch)
{
	struct fragi_remote_peer *peer;

	if (run->remote == NULL)
		return;
	fragi_pump_lock(run->pump);
	peer = fragi_remote_peer_find(run->remote, host);
	if (peer != NULL && fragi_remote_peer_epoch(peer) == epoch)
		fragi_remote_peer_suspend(peer);
	fragi_pump_unlock(run->pump);
}
