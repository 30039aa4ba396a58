// SPDX-License-Identifier: Apache-2.0
#include <base/log.h>
#include <wire/layout.h>

/*
 * Layouts of the messages by which a client asks the driver: REQUEST and REPLY, commands and their
 * ANSWER, AWAIT, WATCH and EVENTS, EXPLAIN and EXPLANATION, EXAMINE and EXAMINED, and
 * of what changes while an application runs.
 */

LAYOUT(request, struct fw_request, Request, NULL) = {
	WITHIN(request, what, FW_REQUEST_STATE, FW_REQUEST_STATE, "an unknown request"),
	FIELD(request, worker),
	END,
};

LAYOUT(host_state, struct fw_host_row, HostState, NULL) = {
	FIELD(host_state, number),
	FIELD(host_state, fragments),
	FIELD(host_state, worker),
	FIELD(host_state, state),
	FIELD(host_state, pid),
	FIELD(host_state, stays),
	END,
};

LAYOUT(parameter_state, struct fw_parameter_row, ParameterState, NULL) = {
	FIELD(parameter_state, name),
	FIELD(parameter_state, value),
	FIELD(parameter_state, who),
	TIME(parameter_state, age_ns),
	END,
};

LAYOUT(application_state, struct fw_application_row, ApplicationState, NULL) = {
	FIELD(application_state, run),
	FIELD(application_state, name),
	FIELD(application_state, state),
	TIME(application_state, age_ns),
	ROWS(application_state, hosts, host_count, FW_ROWS_MAX, host_state),
	FIELD(application_state, epoch),
	FIELD(application_state, delivered),
	FIELD(application_state, started_by),
	FIELD(application_state, missing),
	FIELD(application_state, adopted),
	ROWS(application_state, parameters, parameter_count, FW_ROWS_MAX, parameter_state),
	END,
};

LAYOUT(worker_state, struct fw_worker_row, WorkerState, NULL) = {
	FIELD(worker_state, name),
	FIELD(worker_state, address),
	FIELD(worker_state, state),
	FIELD(worker_state, cores),
	FIELD(worker_state, fragments),
	FIELD(worker_state, waits_for),
	FIELD(worker_state, drained),
	TIME(worker_state, age_ns),
	FIELD(worker_state, ran),
	FIELD(worker_state, limited),
	END,
};

LAYOUT(ended_state, struct fw_ended_row, EndedState, NULL) = {
	FIELD(ended_state, run),
	FIELD(ended_state, name),
	WITHIN(ended_state, result, 0, FRAGI_SUMMARY_FAILED, "an unknown result"),
	ONE(ended_state, failure, failure),
	EXIT_CODE(ended_state, exit_code),
	TIME(ended_state, age_ns),
	TIME(ended_state, duration_ns),
	FIELD(ended_state, started_by),
	FIELD(ended_state, wanted),
	END,
};

LAYOUT(reply, struct fw_reply, Reply, NULL) = {
	ROWS(reply, applications, application_count, FW_ROWS_MAX, application_state),
	ROWS(reply, workers, worker_count, FW_ROWS_MAX, worker_state),
	ROWS(reply, ended, ended_count, FW_ROWS_MAX, ended_state),
	FIELD(reply, more),
	ARRAY(FW_NUMBERS, reply, notices, notices, FW_NOTICE_KINDS),
	FIELD(reply, state_bytes),
	FIELD(reply, state_free_bytes),
	TIME(reply, certificate_ends_unix_s),
	FIELD(reply, state_failure),
	TIME(reply, started_unix_s),
	END,
};

LAYOUT(start_app, struct fw_start_app, StartApp, NULL) = {
	NAME_OR_NONE(start_app, name),
	BYTES(start_app, source, source_bytes, FW_FRAME_MAX),
	TIME(start_app, start_timeout_ns),
	END,
};

LAYOUT(stop_app, struct fw_stop_app, StopApp, NULL) = {
	NAME(stop_app, name),
	FIELD(stop_app, at_once),
	FIELD(stop_app, restart),
	FIELD(stop_app, awaits),
	END,
};

LAYOUT(answer, struct fw_answer, Answer, NULL) = {
	ONE(answer, failure, failure),
	FIELD(answer, name),
	FIELD(answer, remark),
	END,
};

LAYOUT(await, struct fw_await, Await, NULL) = {
	WITHIN(await, until, FW_RUNNING, FW_ENDED, "an unknown milestone"),
	END,
};

LAYOUT(watch, struct fw_watch, Watch, NULL) = {
	FIELD(watch, after),
	FIELD(watch, follow),
	END,
};

/* A kind that only a newer driver knows is none. */
LAYOUT(event_row, struct fw_notice, EventRow, NULL) = {
	FIELD(event_row, number),
	TIME(event_row, unix_ns),
	OR_ELSE(event_row, kind, 0, FW_NOTICE_KINDS - 1, FW_NOTICE_NONE),
	FIELD(event_row, application),
	FIELD(event_row, run),
	FIELD(event_row, who),
	FIELD(event_row, text),
	END,
};

LAYOUT(events, struct fw_events, Events, NULL) = {
	ROWS(events, rows, count, FW_ROWS_MAX, event_row),
	END,
};

LAYOUT(explain, struct fw_explain, Explain, NULL) = {
	NAME(explain, name),
	FIELD(explain, what),
	END,
};

LAYOUT(other_worker, struct fw_other_row, OtherWorker, NULL) = {
	FIELD(other_worker, worker),
	FIELD(other_worker, reason),
	FIELD(other_worker, fits),
	END,
};

LAYOUT(placement, struct fw_placement_row, Placement, NULL) = {
	FIELD(placement, fragment),
	FIELD(placement, worker),
	FIELD(placement, required),
	FIELD(placement, reason),
	FIELD(placement, no_limits),
	ROWS(placement, others, other_count, FW_ROWS_MAX, other_worker),
	FIELD(placement, others_beyond),
	END,
};

LAYOUT(route, struct fw_route_row, Route, NULL) = {
	FIELD(route, from),      FIELD(route, to),     FIELD(route, edge),
	FIELD(route, encrypted), FIELD(route, reason), END,
};

LAYOUT(explanation, struct fw_explanation, Explanation, NULL) = {
	FIELD(explanation, name),
	FIELD(explanation, state),
	ROWS(explanation, placements, placement_count, FW_ROWS_MAX, placement),
	ROWS(explanation, routes, route_count, FW_ROWS_MAX, route),
	FIELD(explanation, more),
	END,
};

LAYOUT(drain, struct fw_drain, Drain, NULL) = {
	WITHIN(drain, worker, 1, FW_WORKER_NAME_MAX, "a name that no worker can have"),
	FIELD(drain, undo),
	FIELD(drain, rebalance),
	END,
};

LAYOUT(set, struct fw_set, Set, NULL) = {
	NAME(set, name),
	FIELD(set, text),
	END,
};

LAYOUT(host_set, struct fw_host_set, HostSet, NULL) = {
	FIELD(host_set, number),
	FIELD(host_set, text),
	FIELD(host_set, who),
	END,
};

LAYOUT(host_set_done, struct fw_host_set_done, HostSetDone, NULL) = {
	FIELD(host_set_done, number),
	ONE(host_set_done, failure, failure),
	END,
};

LAYOUT(swap, struct fw_swap, Swap, NULL) = {
	WITHIN(swap, library, 1, FW_LIBRARY_MAX, "a name that no library can have"),
	WITHIN(swap, replaces, 0, FW_LIBRARY_MAX, "a name that no library can have"),
	NAME(swap, name),
	NAME(swap, fragment),
	TIME(swap, probation_ns),
	END,
};

LAYOUT(apply, struct fw_apply, Apply, NULL) = {
	NAME(apply, name),
	BYTES(apply, source, source_bytes, FW_FRAME_MAX),
	FIELD(apply, only_shows),
	END,
};

LAYOUT(change, struct fw_change, Change, NULL) = {
	WITHIN(change, effect, 0, FW_EFFECT_APPLICATION, "an unknown effect"),
	FIELD(change, what),
	FIELD(change, set),
	END,
};

LAYOUT(changes, struct fw_changes, Changes, NULL) = {
	ROWS(changes, rows, count, FW_CHANGES_MAX, change),
	FIELD(changes, more),
	WITHIN(changes, effect, 0, FW_EFFECT_APPLICATION, "an unknown effect"),
	FIELD(changes, restarts),
	FIELD(changes, remark),
	END,
};

LAYOUT(watch_logs, struct fw_watch_logs, WatchLogs, NULL) = {
	NAME(watch_logs, name),   NAME_OR_NONE(watch_logs, fragment), NAME_OR_NONE(watch_logs, op),
	FIELD(watch_logs, after), FIELD(watch_logs, follow),          END,
};

LAYOUT(log_line, struct fw_line, LogLine, NULL) = {
	WITHIN(log_line, level, 0, FRAGI_LOG_OFF - 1, "a line of an unknown level"),
	FIELD(log_line, number),
	TIME(log_line, unix_ns),
	FIELD(log_line, worker),
	NAME_OR_NONE(log_line, fragment),
	NAME_OR_NONE(log_line, op),
	FIELD(log_line, text),
	END,
};

LAYOUT(logs, struct fw_logs, Logs, NULL) = {
	ROWS(logs, rows, count, FW_LOG_ROWS_MAX, log_line),
	FIELD(logs, last),
	END,
};

LAYOUT(host_lines, struct fw_host_lines, HostLines, NULL) = {
	ROWS(host_lines, rows, count, FW_LOG_ROWS_MAX, log_line),
	FIELD(host_lines, left_out),
	END,
};

LAYOUT(examine, struct fw_examine, Examine, NULL) = {
	FIELD(examine, worker),
	END,
};

LAYOUT(finding, struct fw_finding, Finding, NULL) = {
	FIELD(finding, check), FIELD(finding, is_wrong), FIELD(finding, found),
	FIELD(finding, cost),  FIELD(finding, mend),     END,
};

LAYOUT(examined, struct fw_examined, Examined, NULL) = {
	FIELD(examined, why_not),
	ROWS(examined, findings, finding_count, FW_FINDINGS_MAX, finding),
	END,
};
