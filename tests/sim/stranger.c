// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <string.h>

/* Frames that no driver and no worker sends: those of strangers, and of epochs that are no more. */

static void send(struct sim *sim, uint32_t connection, uint32_t to, struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	message->seq = 1;
	if (fw_encode(message, &frame, &size) == 0)
		sim_send(sim, connection, to, frame, size);
}

static const char *nothing[] = {"nothing"};

static struct fw_message hello(void)
{
	struct fw_message message = {.kind = FW_HELLO};

	message.hello = (struct fw_hello){
		.major = FW_PROTOCOL_MAJOR,
		.minor = FW_PROTOCOL_MINOR,
		.role = FW_ROLE_WORKER,
		.name = "rogue",
		.fragments = nothing,
		.fragment_count = 1,
		.worker_address = "10.0.0.9",
		.node = "node9",
		.clock = "node9",
		.version = "0",
		.has = {[FRAGI_AMOUNT_CPU] = 64 * FRAGI_AMOUNT_ONE},
	};
	return message;
}

/* A frame about a host as a worker would send it. */
static struct fw_message report(uint32_t bits, uint64_t run, uint32_t host, uint64_t epoch)
{
	static const enum fw_kind kinds[] = {FW_HOST_EXIT, FW_HOST_EVENT, FW_HOST_STATS,
					     FW_HOST_STARTED, FW_HOST_WIRED};
	struct fw_message message = {
		.kind = kinds[bits % 5], .run = run, .host = host, .epoch = epoch};

	if (message.kind == FW_HOST_EVENT)
		message.event = (struct fw_host_event){
			.state = bits % 3 == 0 ? FW_STATE_DONE : FW_STATE_FAILED,
			.failure = {FRAGI_FAILURE_OPERATOR_FAILED, "not for you", ""}};
	if (message.kind == FW_HOST_EXIT)
		message.exit.signal = bits % 2 == 0 ? SIGSEGV : 0;
	if (message.kind == FW_HOST_STATS)
		message.stats.final = true;
	if (message.kind == FW_HOST_STARTED || message.kind == FW_HOST_WIRED)
		message.result = (struct fw_host_result){
			{bits % 2 == 0 ? FRAGI_FAILURE_NONE : FRAGI_FAILURE_HOST_FAILED,
			 "not for you", ""}};
	return message;
}

void sim_stranger(struct sim *sim, uint32_t bits, bool rogue)
{
	struct sim_connection *connection;
	struct fw_message message;
	uint32_t index;

	if (!sim->driver.process.alive)
		return;
	connection = sim_connection_new(sim, SIM_WORKERS_MAX);
	index = sim->connection_count - 1;
	connection->incarnation = sim->driver.incarnation;
	connection->open[1] = connection->connected = true;
	sim_put(sim, sim->now_ns + 2 * SIM_S, SIM_EV_STRANGER, index, 0, connection->incarnation);
	sim_print(sim, "stranger", "opens connection %u", index + 1);
	message = hello();
	if (rogue) {
		send(sim, index, 1, &message);
		for (uint32_t n = 0; n < 4; n++) {
			message = report(bits >> n, 1 + (bits >> n) % 2, 1 + (bits >> (n + 3)) % 3,
					 (bits >> (n + 5)) % 3);
			send(sim, index, 1, &message);
		}
		return;
	}
	switch (bits % 6) {
	case 0:
		message.hello.major = FW_PROTOCOL_MAJOR + 1;
		break;
	case 4: /* it knows the id of a session, and not its secret */
		message.hello.role = FW_ROLE_REPORTER;
		message.hello.session = sim->connections[bits % sim->connection_count].session;
		break;
	case 1:
		message.hello.role = FW_ROLE_CLIENT;
		send(sim, index, 1, &message);
		message = (struct fw_message){.kind = FW_REQUEST, .request.what = FW_REQUEST_STATE};
		break;
	case 2:
		message = (struct fw_message){.kind = FW_BEAT};
		break;
	case 3:
		message = report(bits, 1, 1, 1);
		break;
	default:
		return; /* says nothing */
	}
	send(sim, index, 1, &message);
	if (bits % 3 == 0)
		sim_close(sim, index, 0, false);
}

/*
 * Whether another process of the same host has this epoch, whose end its workerd has not seen yet:
 * what is said of it is not stale, and its workerd would not say it a second time.
 */
static bool is_of_another(const struct sim *sim, const struct sim_host *host, uint64_t epoch)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (!other->reaped && other->app == host->app && other->run == host->run &&
		    other->number == host->number && other->epoch == epoch)
			return true;
	}
	return false;
}

/* So many epochs later: the next one may exist by the time at which the frame is read. */
#define NEVER_REACHED 100000

void sim_stale(struct sim *sim, const struct sim_host *host, uint32_t bits)
{
	uint32_t connection =
		host != NULL ? sim->workers[host->worker].connection : SIM_CONNECTIONS_MAX;
	const char *fragments[] = {"f0"};
	struct fw_message message;
	uint64_t said, told; /* the epochs of what the driver and the workerd hear */

	if (connection == SIM_CONNECTIONS_MAX || connection != host->connection ||
	    !sim->connections[connection].admitted ||
	    sim->connections[connection].incarnation != host->incarnation ||
	    !sim->connections[connection].open[1])
		return;
	said = host->epoch + (bits % 2 == 0 ? NEVER_REACHED : -1ull);
	told = host->epoch + (bits % 5 == 0 ? NEVER_REACHED : -1ull);
	if (is_of_another(sim, host, said) || is_of_another(sim, host, told))
		return;
	sim_print(sim, "stale", "frames about host %u of %s", host->number, host->app->name);
	message = report(bits, host->run, host->number, said);
	send(sim, connection, 1, &message);
	message = (struct fw_message){.kind = bits % 3 == 0 ? FW_HOST_KILL : FW_HOST_STOP,
				      .run = host->run,
				      .host = host->number,
				      .epoch = told};
	send(sim, connection, 0, &message);
	message = (struct fw_message){.kind = FW_HOST_CREATE,
				      .run = host->run,
				      .host = host->number,
				      .epoch = host->epoch - bits % 2};
	message.create = (struct fw_host_create){.application = host->app->name,
						 .fragments = fragments,
						 .fragment_count = 1,
						 .beat_ns = sim->beat_ns,
						 .dead_ns = sim->dead_ns};
	memcpy(message.create.data_key, host->app->data_key, FW_DATA_KEY_BYTES);
	memcpy(message.create.variables_key, host->app->variables_key, FW_VARIABLES_KEY_BYTES);
	send(sim, connection, 0, &message);
}
