/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_SERVICE_H
#define CTL_SERVICE_H

#include <driverd/result.h>
#include <fragctl/top_window.h>

/* What the verbs share that speak with a driver: how its answers are shown. */

#define CTL_NAMES_SIZE 300
/* "f1, f2, f3 and 997 more", of a list "f1, f2, ...". Returns out. */
const char *ctl_service_names(const char *list, char out[CTL_NAMES_SIZE]);
/* Complains with the failure's sentence. Returns its exit code. */
int ctl_service_show_failure(const struct fw_failure *failure, bool json);
/* What of a command the driver does not keep; NULL or empty: nothing. */
void ctl_service_show_remark(const char *remark);
/*
 * A command that ANSWER answers.
 * - out_run: of the run that it is about
 * Returns CTL_OK, or the exit code of its failure, complained.
 */
int ctl_service_command(struct ctl_driver *driver, struct fw_message *command, bool json,
			uint64_t *out_run);
/*
 * A question that is answered with a message of that kind, or with ANSWER that it cannot be.
 * *out_answer is the caller's. Returns CTL_OK or an exit code, complained.
 */
int ctl_service_ask(struct ctl_driver *driver, struct fw_message *question, enum fw_kind kind,
		    bool json, struct fw_message **out_answer);
/*
 * Waits until the run has come so far. *out_outcome is the caller's. Returns CTL_OK or an exit
 * code, complained.
 */
int ctl_service_await(struct ctl_driver *driver, uint64_t run, enum fw_milestone until, bool json,
		      struct fw_message **out_outcome);
/*
 * Stops an application and waits until it has ended, which is asked for at once: a driver that runs
 * only this one ends with it. The same.
 */
int ctl_service_stop(struct ctl_driver *driver, const char *name, bool at_once, bool json,
		     struct fw_message **out_outcome);
/* Asks for the state. Returns CTL_OK or an exit code, complained. */
int ctl_service_state(struct ctl_driver *driver, struct fw_message **out_reply);
/* The same about one worker alone, with what it runs. */
int ctl_service_state_of(struct ctl_driver *driver, const char *worker,
			 struct fw_message **out_reply);

/*
 * A verb without operands that shows a part of the state: reads its command line, asks, and calls
 * show. Returns an exit code.
 */
int ctl_service_show(int argc, char **argv, const char *program, const char *headline,
		     void (*show)(const struct fw_reply *reply, bool json));

/* service_print.c: tables for people, one JSON document for programs */
/*
 * - window: their root causes; empty: they were not measured
 * - name: of one application; NULL: all
 */
void ctl_service_print_applications(const struct fw_reply *reply,
				    const struct ctl_top_window *window);
void ctl_service_print_hosts(const struct fw_application_row *app,
			     const struct ctl_top_window *window);
void ctl_service_print_workers(const struct fw_reply *reply);
/* "NAME: runs", or why it ended before; the exit code that follows. */
int ctl_service_show_start(const struct fw_message *outcome, bool json);
void ctl_service_put_notice(const struct fw_notice *event, char *out, size_t size);
void ctl_service_print_notice(const struct fw_notice *event);
void ctl_service_print_line(const struct fw_line *line);
void ctl_service_print_changes(const struct fw_changes *changes);
/* What has become of it, or would: NAME: left was started again */
void ctl_service_print_effect(const char *name, const struct fw_changes *changes, bool only_shows);
/* The members of the document of docs/service.schema.json. */
void ctl_service_json_applications(const struct fw_reply *reply, const char *name, FILE *out);
/* The same with the root causes of a window. */
void ctl_service_json_causes(const struct fw_reply *reply, const char *name,
			     const struct ctl_top_window *window, FILE *out);
void ctl_service_json_workers(const struct fw_reply *reply, FILE *out);
void ctl_service_json_notice(const struct fw_notice *event, FILE *out);
void ctl_service_json_line(const struct fw_line *line, FILE *out);
/* {"application": ..., "run": ..., "dry_run": ..., "effect": ..., "changes": [...]} */
void ctl_service_json_changes(const char *name, uint64_t run, const struct fw_changes *changes,
			      bool only_shows);
/* {"application": ..., "run": ..., "parameter": ..., "value": ...}; text: NAME=VALUE */
void ctl_service_json_set(const char *application, uint64_t run, const char *text);
/* {"application": ..., "run": ..., "state": ...} */
void ctl_service_json_run(const char *application, uint64_t run, const char *state);

#endif
