/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/core/state.h>

/*
 * Beats tell the driver and the hosts that this worker lives. One that gets no processor sends none
 * and hears nobody: when it goes on it sends beats first, and judges others only when it has read
 * what they have sent meanwhile.
 */

bool wrk_beat_has_paused(const struct wrk_core *core, int64_t real_now_ns)
{
	int64_t deadline_ns = wrk_core_deadline_ns(core), seen_ns = core->clock.seen_ns,
		due_ns = deadline_ns > seen_ns ? deadline_ns : seen_ns;

	return seen_ns != 0 && due_ns < real_now_ns - core->beat_ns;
}

static void beat_driver(struct wrk_core *core, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_BEAT, NULL);

	if (core->session != WRK_SESSION_ATTACHED) /* WELCOME answers HELLO, and renews from it */
		return;
	if (message != NULL) {
		message->beat.waits_for = core->waits_for;
		message->beat.has_gpus = core->has_gpus;
		message->beat.gpus = core->has_gpus ? core->config.gpus : 0;
		message->beat.gpu_memory_bytes = core->has_gpus ? core->config.gpu_memory_bytes : 0;
		message->beat.sent_ns = core->real_ns;
	}
	wrk_lease_sent(core, core->real_ns);
	wrk_session_send(core, message, actions);
}

static bool has_process(const struct wrk_host *host)
{
	return host->state != WRK_HOST_NONE && host->state != WRK_HOST_KILLED &&
	       host->state != WRK_HOST_SPAWNING;
}

void wrk_beat_all(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	core->beaten_ns = core->real_ns;
	beat_driver(core, actions);
	for (uint32_t i = 0; i < core->slot_count; i++) {
		const struct wrk_host *host = &core->hosts[i];
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

void wrk_beat_sample(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	for (uint32_t i = 0; i < core->slot_count; i++) {
		struct wrk_host *host = &core->hosts[i];
		struct wrk_action *sample;

		if (!has_process(host))
			continue;
		sample = wrk_emit(actions, WRK_DO_SAMPLE_HOST);
		sample->host = host->id;
		sample->looks = now_ns < host->look_until_ns;
		wrk_host_lines_left_out(core, host, actions);
	}
}
