// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

#include <workerd/reporter.h>

/*
 * The crash reporter of workerd, as in workerd/reporter_process.c. When workerd alone is killed,
 * the reporter keeps the connection open until the hosts have died; connects itself, sends what
 * they have counted, waits until the driver has closed that connection, and closes workerd's.
 */
#define RETRY_NS (20 * SIM_MS)

void sim_reporter_begin(struct sim *sim, uint32_t index)
{
	struct sim_connection *connection = &sim->connections[index];

	connection->kept = true;
	connection->kept_until_ns = sim->now_ns + WRK_REPORTER_END_NS;
	sim_put(sim, sim->now_ns, SIM_EV_REPORTER, index, 0, 0);
}

static bool is_of(const struct sim_host *host, const struct sim_connection *connection,
		  uint32_t index)
{
	return host->worker == connection->worker && host->generation == connection->generation &&
	       host->connection == index && host->core != NULL;
}

static void send(struct sim *sim, uint32_t link, const struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	if (!sim->connections[link].open[1])
		return;
	if (fw_encode(message, &frame, &size) < 0)
		sim_fail(sim, "codec", "a reporter cannot encode %s", fw_kind_name(message->kind));
	else
		sim_send(sim, link, 1, frame, size);
}

static void send_counts(struct sim *sim, uint32_t link, const struct sim_host *host)
{
	static struct fragi_flow_stats flows[SIM_FLOWS_MAX];
	static struct fw_op_stats ops[2 * SIM_FRAGMENTS_MAX];
	struct fw_message message = {.kind = FW_HOST_STATS,
				     .run = host->run,
				     .host = host->number,
				     .epoch = host->epoch};

	message.stats = (struct fw_host_stats){.final = true, .flows = flows, .ops = ops};
	message.stats.flow_count = sim_host_rows(host, flows);
	message.stats.op_count = sim_host_ops(host, ops);
	send(sim, link, &message);
}

static void end(struct sim *sim, uint32_t index)
{
	struct sim_connection *connection = &sim->connections[index];

	sim_print(sim, "reporter", "closes connection %u", index + 1);
	if (connection->link != 0)
		sim_close(sim, connection->link, 0, false);
	connection->link = 0;
	sim_close(sim, index, 0, false);
}

static void open_link(struct sim *sim, uint32_t index)
{
	uint32_t worker = sim->connections[index].worker;
	struct sim_connection *link = sim_connection_new(sim, worker);
	uint32_t at = sim->connection_count - 1;

	sim_print(sim, "reporter", "opens connection %u", at + 1);
	sim->connections[index].link = at;
	link->generation = sim->connections[index].generation;
	link->kept = true;
	link->of = index + 1;
	sim_put(sim, sim->now_ns + sim_between(sim, 0, SIM_MS), SIM_EV_SYN, at, 0, 0);
}

void sim_reporter_connected(struct sim *sim, uint32_t link)
{
	const struct sim_connection *of = &sim->connections[sim->connections[link].of - 1];
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = FW_PROTOCOL_MINOR,
					  .role = FW_ROLE_REPORTER,
					  .session = of->session,
					  .version = "sim"};
	memcpy(message.hello.secret, of->secret, FW_SECRET_BYTES);
	send(sim, link, &message);
}

void sim_reporter_message(struct sim *sim, uint32_t link, const struct fw_message *message)
{
	struct sim_connection *connection = &sim->connections[link];
	uint32_t index = connection->of - 1;

	connection->reported = true; /* or nobody wants it */
	if (message->kind != FW_WELCOME) {
		end(sim, index);
		return;
	}
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (is_of(&sim->hosts[i], &sim->connections[index], index) &&
		    !sim->hosts[i].process.alive && sim->hosts[i].has_page)
			send_counts(sim, link, &sim->hosts[i]);
	sim_half_close(sim, link, 0);
}

void sim_reporter_ended(struct sim *sim, uint32_t link)
{
	struct sim_connection *connection = &sim->connections[link];
	uint32_t index = connection->of - 1;

	if (connection->reported || !connection->connected) {
		end(sim, index);
		return;
	}
	sim->connections[index].link = 0;
	sim_put(sim, sim->now_ns + RETRY_NS, SIM_EV_REPORTER, index, 0, 0);
}

/* Whether all hosts of the connection have died; *out_any: at least one has. */
static bool hosts_are_gone(const struct sim *sim, uint32_t index, bool *out_any)
{
	const struct sim_connection *connection = &sim->connections[index];
	bool all = true;

	*out_any = false;
	for (uint32_t i = 0; i < sim->host_count; i++) {
		if (!is_of(&sim->hosts[i], connection, index))
			continue;
		*out_any = *out_any || !sim->hosts[i].process.alive;
		all = all && !sim->hosts[i].process.alive;
	}
	return all || sim->now_ns >= connection->kept_until_ns;
}

/*
 * The reporter's time is over and the counts are missing, which is right only if the driver slept.
 */
static void give_up(struct sim *sim, uint32_t index)
{
	if (sim->driver.process.stopped_until_ns > sim->now_ns - WRK_REPORTER_LINK_NS)
		for (uint32_t i = 0; i < sim->apps_given; i++)
			sim->apps[i].kept = false;
	end(sim, index);
}

/* event->b: the reporter's time is over */
void sim_on_reporter(struct sim *sim, const struct sim_event *event)
{
	struct sim_connection *connection = &sim->connections[event->a];
	bool any;

	if (!connection->open[0] && connection->link == 0)
		return;
	if (!connection->hosts_gone && !hosts_are_gone(sim, event->a, &any)) {
		sim_put(sim, sim->now_ns + sim_between(sim, 100000, 2 * SIM_MS), SIM_EV_REPORTER,
			event->a, 0, 0);
		return;
	}
	if (event->b) {
		give_up(sim, event->a);
		return;
	}
	if (!connection->hosts_gone && !any) {
		end(sim, event->a);
		return;
	}
	if (!connection->hosts_gone)
		sim_put(sim, sim->now_ns + WRK_REPORTER_LINK_NS, SIM_EV_REPORTER, event->a, true,
			0);
	connection->hosts_gone = true;
	if (connection->link == 0)
		open_link(sim, event->a);
}
