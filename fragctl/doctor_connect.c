// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/units.h>
#include <fragctl/doctor_workers.h>
#include <fragctl/service.h>
#include <text/spec.h>

/*
 * The connection between two workers, as an application uses it: `test_connection` on one of them
 * sends to `forward` on the other, which sends back. Everything takes part that can keep two nodes
 * apart: placement, ports, firewalls, keys, the interface, UCX or shared memory.
 */
#define TIMEOUT_NS (INT64_C(20) * 1000000000)

static const char graph[] = "frag: 1\n"
			    "application: %s\n"
			    "extensions: [libtesting.so, libbasic.so]\n"
			    "fragments:\n"
			    "  one:\n"
			    "    requirements: {labels: {worker: \"%s\"}}\n"
			    "    operators:\n"
			    "      begin: {type: ping_tx, conditions: [{type: count, count: 1}]}\n"
			    "      ask: {type: test_connection}\n"
			    "    flows: [begin.out -> ask.in]\n"
			    "  two:\n"
			    "    requirements: {labels: {worker: \"%s\"}}\n"
			    "    operators: {echo: {type: forward}}\n"
			    "flows:\n"
			    "  - {from: one.ask.out, to: two.echo.in, capacity: 8}\n"
			    "  - {from: two.echo.out, to: one.ask.in, capacity: 8}\n";

static char found[1000], mend[400];

static struct fw_finding wrong(const char *a, const char *b, const char *why)
{
	snprintf(found, sizeof(found), "%.250s - %.250s: %.400s", a, b, why);
	snprintf(mend, sizeof(mend),
		 "ping each node from the other one; let TCP to the data ports through "
		 "(docs/DEPLOY.md); fragctl workers");
	return (struct fw_finding){"connection", true, found,
				   "applications with fragments on both of them do not start",
				   mend};
}

/* Returns the packed graph; NULL: there is no memory. */
static void *pack(const char *name, const char *a, const char *b, uint32_t *out_bytes)
{
	char text[sizeof(graph) + 1000];
	struct fragi_source source = {0};
	struct frag_err err = FRAG_ERR_INIT;
	void *packed = NULL;
	size_t bytes = 0;

	snprintf(text, sizeof(text), graph, name, a, b);
	if (fragi_source_read_text(&source, text, "doctor", NULL, 0, NULL, 0, NULL, 0, &err) < 0)
		return NULL;
	if (fragi_source_pack(&source.source, &packed, &bytes) < 0)
		packed = NULL;
	fragi_source_fini(&source);
	*out_bytes = (uint32_t)bytes;
	return packed;
}

/* What ask has logged. Returns whether it has. */
static bool read_figures(struct ctl_driver *driver, const char *name, int64_t *out_round_trip_ns,
			 uint64_t *out_bytes_per_s)
{
	struct fw_message watch = {.kind = FW_WATCH_LOGS, .watch_logs = {name, "one", "ask"}};
	struct fw_message *logs;
	bool has = false;

	if (ctl_driver_ask(driver, &watch, &logs) != CTL_OK)
		return false;
	for (uint32_t i = 0; logs->kind == FW_LOGS && i < logs->logs.count && !has; i++) {
		const char *at = strstr(logs->logs.rows[i].text, "round_trip_ns=");

		has = at != NULL && sscanf(at, "round_trip_ns=%" SCNd64 " bytes_per_s=%" SCNu64,
					   out_round_trip_ns, out_bytes_per_s) == 2;
	}
	fw_message_free(logs);
	return has;
}

/* "shm", "ucx tcp eth0": of the flow that leaves the first of them. */
static const char *edge_of(const struct fragi_summary *summary)
{
	for (size_t i = 0; i < summary->flow_count; i++)
		if (strcmp(summary->flows[i].from, "one.ask.out") == 0)
			return summary->flows[i].edge_detail != NULL &&
					       summary->flows[i].edge_detail[0] != '\0'
				       ? summary->flows[i].edge_detail
				       : summary->flows[i].edge;
	return "";
}

static struct fw_finding judge(struct ctl_driver *driver, const char *name, const char *a,
			       const char *b, const struct fragi_summary *summary)
{
	int64_t round_trip_ns = 0;
	uint64_t bytes_per_s = 0;
	char time[32];

	if (summary->failure.code != FRAGI_FAILURE_NONE)
		return wrong(a, b, summary->failure.sentence);
	if (!read_figures(driver, name, &round_trip_ns, &bytes_per_s))
		return wrong(a, b, "no figures came back; `fragctl logs` may have them");
	snprintf(found, sizeof(found), "%.250s - %.250s: %s there and back, %.0f MB/s each way, %s",
		 a, b, fragi_format_duration(round_trip_ns, time, sizeof(time)),
		 (double)bytes_per_s * 1e-6, edge_of(summary));
	return (struct fw_finding){"connection", false, found, "", ""};
}

struct fw_finding ctl_doctor_connect(struct ctl_driver *driver, const char *a, const char *b)
{
	struct fw_message command = {.kind = FW_START_APP}, *answer = NULL;
	struct fw_finding finding;
	static unsigned int count;
	char name[48];
	void *packed;

	/* a name of its own: logs are kept by names */
	snprintf(name, sizeof(name), "doctor-%d-%u", (int)getpid(), ++count);
	command.start_app = (struct fw_start_app){.name = name, .start_timeout_ns = TIMEOUT_NS};
	packed = pack(name, a, b, &command.start_app.source_bytes);
	if (packed == NULL)
		return wrong(a, b, "out of memory");
	command.start_app.source = packed;
	if (ctl_driver_ask(driver, &command, &answer) == CTL_OK && answer->kind == FW_ANSWER &&
	    answer->answer.failure.code == FRAGI_FAILURE_NONE) {
		struct fw_message await = {
			.kind = FW_AWAIT, .run = answer->run, .await.until = FW_ENDED};

		fw_message_free(answer);
		answer = NULL;
		(void)ctl_driver_ask(driver, &await, &answer);
	}
	fragi_free(packed);
	if (answer != NULL && answer->kind == FW_OUTCOME)
		finding = judge(driver, name, a, b, &answer->outcome.summary);
	else
		finding = wrong(a, b,
				answer != NULL && answer->kind == FW_ANSWER
					? answer->answer.failure.sentence
					: "the driver gave no answer");
	fw_message_free(answer);
	return finding;
}
