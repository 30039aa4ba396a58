// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <base/units.h>

/*
 * Leases of hosts. A host with a lease ends when its driver has not been heard for so long, because
 * from then on the driver may start it on another worker. Only what the driver answers counts: a
 * BEAT of this worker has the time at which it is sent, and the driver's next BEAT repeats it. So a
 * lease runs from before the moment at which the driver heard this worker, whatever a message takes
 * and wherever it waits; the driver counts from that moment. It renews hosts of the present session
 * only: those that it was given, and those that it has adopted.
 *
 * Leases go by the clock of the shell as it is, not by the one that stands still while this process
 * does. A workerd that is stopped cannot end its hosts in time, so each host knows the end of its
 * lease too, and the kernel ends it then (workerd/host/lease.c).
 */

static int64_t until(const struct wrk_core *core, int64_t lease_ns)
{
	return core->lease_from_ns + lease_ns + (core->driver_leaves ? FW_LEASE_AWAY_NS : 0);
}

static void hold_until(struct wrk_core *core, struct wrk_host *host)
{
	int64_t until_ns = until(core, host->lease_ns);

	if (host->lease_ns > 0 && until_ns > host->lease_until_ns)
		host->lease_until_ns = until_ns;
}

void wrk_lease_begin(struct wrk_core *core, struct wrk_host *host,
		     const struct fw_host_create *create)
{
	host->lease_ns = create->lease_ns;
	host->is_renewed = true;
	hold_until(core, host);
}

void wrk_lease_sent(struct wrk_core *core, int64_t at_ns)
{
	core->lease_sent_ns = at_ns;
}

/* The driver has heard what was sent at that time. */
static void note_heard(struct wrk_core *core, int64_t heard_ns)
{
	if (heard_ns > core->lease_from_ns && heard_ns <= core->lease_sent_ns)
		core->lease_from_ns = heard_ns;
}

void wrk_lease_welcome(struct wrk_core *core)
{
	core->driver_leaves = false;
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		host->is_renewed = false;
	note_heard(core, core->lease_sent_ns);
}

void wrk_lease_beat(struct wrk_core *core, const struct fw_beat *beat)
{
	core->driver_leaves = core->driver_leaves || beat->leaves;
	note_heard(core, beat->heard_ns);
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->is_renewed)
			hold_until(core, host);
}

void wrk_lease_adopted(struct wrk_core *core, const struct fw_message *message)
{
	struct wrk_host *host = wrk_host_of(core, message);

	if (host == NULL)
		return;
	host->is_renewed = true;
	hold_until(core, host);
}

const char *wrk_lease_refusal(const struct wrk_core *core, const struct fw_host_create *create,
			      struct wrk_actions *actions)
{
	return create->lease_ns > 0 && core->real_ns >= until(core, create->lease_ns)
		       ? wrk_text(actions, "worker %s hears of it when its lease is over already",
				  core->config.name)
		       : NULL;
}

static bool is_over(const struct wrk_core *core, const struct wrk_host *host)
{
	return host->lease_ns > 0 && core->real_ns >= host->lease_until_ns;
}

static const char *why_over(const struct wrk_host *host, struct wrk_actions *actions)
{
	char lease[32];

	return wrk_text(actions, "its lease of %s is over: its driver was not heard for so long",
			fragi_format_duration(host->lease_ns, lease, sizeof(lease)));
}

static uint32_t looked_at(const struct wrk_core *core, int64_t now_ns)
{
	uint32_t count = 0;

	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		count += now_ns < host->look_until_ns;
	return count;
}

struct fw_message *wrk_lease_message(const struct wrk_core *core, const struct wrk_host *host,
				     int64_t now_ns, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_BEAT, NULL);

	if (message != NULL) {
		message->beat.lease_until_ns = host->lease_until_ns;
		message->beat.looks = now_ns < host->look_until_ns ? looked_at(core, now_ns) : 0;
	}
	return message;
}

/*
 * Also before a host's exit is handled: the kernel may be faster than this workerd, which may have
 * been stopped at that moment, and the reason is the lease then too.
 */
void wrk_lease_look(struct wrk_core *core, struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (is_over(core, host))
			wrk_host_kill(core, host, FRAGI_FAILURE_LEASE_ENDED,
				      why_over(host, actions), actions);
}

int64_t wrk_lease_deadline_ns(const struct wrk_core *core)
{
	int64_t deadline_ns = INT64_MAX;

	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->state != WRK_HOST_KILLED && host->lease_ns > 0 &&
		    host->lease_until_ns < deadline_ns)
			deadline_ns = host->lease_until_ns;
	return deadline_ns;
}
