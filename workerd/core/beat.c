// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <stddef.h>
#include <string.h>

/*
 * Beats tell the driver and the hosts that this worker lives. One that gets no processor sends none
 * and hears nobody: when it goes on it sends beats first, and judges others only when it has read
 * what they have sent meanwhile. So does one that was busy for long with what it read from one of
 * them, as the hosts that a driver wants to be started: what the others have sent is not read yet.
 * One timer in a row waits for that: the next one does what is due, however late it is, and judges
 * a silence up to the time of the one before, as what had arrived by then is read.
 *
 * With each beat the pages of hosts are read. What a page shows is reported while it changes, and
 * once more, so that a window of the driver begins after the change. A host that rests is reported
 * with every fourth beat: a hundred of them would cost the driver more than all else that it does.
 */
#define REST_BEATS 4
#define MIX UINT64_C(0x9E3779B97F4A7C15)
#define USE_FIRST                                                                                  \
	((int)(offsetof(struct fw_op_stats, use_busy) - offsetof(struct fw_op_stats, counters)) /  \
	 (int)sizeof(uint64_t))

/* WELCOME is awaited with beats too: what judges a silence wakes with each of them. */
bool wrk_beat_is_sent(const struct wrk_core *core)
{
	return core->session == WRK_SESSION_HELLO_SENT || core->session == WRK_SESSION_ATTACHED ||
	       core->host_count > 0;
}

bool wrk_beat_reads_first(const struct wrk_core *core, int64_t real_now_ns)
{
	int64_t deadline_ns = wrk_core_deadline_ns(core), seen_ns = core->clock.seen_ns,
		due_ns = deadline_ns > seen_ns ? deadline_ns : seen_ns,
		busy_ns = real_now_ns - fragi_awake_to_real(&core->clock, core->beat_at_ns);

	if (due_ns < real_now_ns - core->beat_ns)
		return true;
	return wrk_beat_is_sent(core) && busy_ns > core->beat_ns && busy_ns > core->dead_ns / 2;
}

static void beat_driver(struct wrk_core *core, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_BEAT, NULL);

	if (core->session != WRK_SESSION_ATTACHED) /* WELCOME answers HELLO, and renews from it */
		return;
	if (message != NULL) {
		message->beat.waits_for = core->waits_for;
		message->beat.has_gpus = core->has_gpus;
		if (core->has_gpus)
			memcpy(message->beat.has, core->config.has, sizeof(message->beat.has));
		message->beat.mig =
			core->has_gpus && core->config.mig != NULL ? core->config.mig : "";
		message->beat.sent_ns = core->real_ns;
	}
	wrk_lease_sent(core, core->real_ns);
	wrk_session_send(core, message, actions);
}

static bool has_process(const struct wrk_host *host)
{
	return host->state != WRK_HOST_KILLED && host->state != WRK_HOST_SPAWNING;
}

void wrk_beat_all(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	core->beaten_ns = core->real_ns;
	beat_driver(core, actions);
	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		struct fw_message *message =
			has_process(host) ? wrk_lease_message(core, host, now_ns, actions) : NULL;
		struct wrk_action *action;

		if (message == NULL)
			continue;
		action = wrk_emit(actions, WRK_DO_SEND_HOST);
		action->host = host->id;
		action->message = message;
	}
}

/* What a page shows, but for times, which go on while nothing happens. */
static uint64_t counts_of(const struct fw_host_stats *stats)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < stats->op_count; i++) {
		const struct fw_op_stats *op = &stats->ops[i];

		sum = (sum ^ op->ticks) * MIX;
		sum = (sum ^ (op->state * 2 + op->running)) * MIX;
		for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
			if (k < USE_FIRST || k >= USE_FIRST + FRAGI_USES)
				sum = (sum ^ op->counters[k]) * MIX;
	}
	for (uint32_t i = 0; i < stats->flow_count; i++) {
		struct fragi_flow_stats row = stats->flows[i];

		row.full_ns = row.room_ns = row.input_ns = 0;
		for (int k = 0; k < FRAGI_COUNTERS; k++)
			sum = (sum ^ row.counters[k]) * MIX;
		for (int k = 0; k < FRAGI_DROP_REASONS; k++)
			sum = ((sum ^ row.tx_dropped[k]) * MIX ^ row.rx_dropped[k]) * MIX;
	}
	for (uint32_t i = 0; i < stats->pool_count; i++)
		sum = (sum ^ stats->pools[i].free) * MIX;
	return sum;
}

bool wrk_beat_is_news(const struct wrk_core *core, struct wrk_host *host,
		      const struct fw_host_stats *stats)
{
	uint64_t counts = counts_of(stats);
	bool is_same = host->counts == counts && host->counts_for == core->connection;

	host->same_counts = is_same ? host->same_counts + 1 : 0;
	host->counts = counts;
	host->counts_for = core->connection;
	return host->same_counts == 0 || host->same_counts % REST_BEATS == 1;
}

void wrk_beat_sample(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		struct wrk_action *sample;

		if (!has_process(host))
			continue;
		sample = wrk_emit(actions, WRK_DO_SAMPLE_HOST);
		sample->host = host->id;
		sample->looks = now_ns < host->look_until_ns;
		wrk_host_lines_left_out(core, host, actions);
	}
}
