// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>

#include <base/names.h>

#include <stdio.h>
#include <string.h>

const char *ctl_service_names(const char *list, char out[CTL_NAMES_SIZE])
{
	struct fragi_names names = {.text = out, .size = CTL_NAMES_SIZE};

	for (const char *at = list, *end; at != NULL; at = end != NULL ? end + 2 : NULL) {
		end = strstr(at, ", ");
		fragi_names_add(&names, "%.*s", end != NULL ? (int)(end - at) : (int)strlen(at),
				at);
	}
	return out;
}

int ctl_service_show_failure(const struct fw_failure *failure, bool json)
{
	if (json)
		ctl_fail_as_documents(true);
	return ctl_fail_with(failure->code, "%s", failure->sentence);
}

static int unexpected(struct fw_message *message)
{
	int code = ctl_fail(CTL_FAILED, "the driver answered with %s; install the same version",
			    fw_kind_name(message->kind));

	fw_message_free(message);
	return code;
}

static bool is_refusal(const struct fw_message *message)
{
	return message->kind == FW_ANSWER && message->answer.failure.code != FRAGI_FAILURE_NONE;
}

void ctl_service_show_remark(const char *remark)
{
	if (remark != NULL && remark[0] != '\0')
		ctl_complain("%s", remark);
}

int ctl_service_command(struct ctl_driver *driver, struct fw_message *command, bool json,
			uint64_t *out_run)
{
	struct fw_message *answer;
	int code = ctl_driver_ask(driver, command, &answer);

	if (code != CTL_OK)
		return code;
	if (answer->kind != FW_ANSWER)
		return unexpected(answer);
	if (is_refusal(answer))
		code = ctl_service_show_failure(&answer->answer.failure, json);
	ctl_service_show_remark(answer->answer.remark);
	*out_run = answer->run;
	fw_message_free(answer);
	return code;
}

int ctl_service_ask(struct ctl_driver *driver, struct fw_message *question, enum fw_kind kind,
		    bool json, struct fw_message **out_answer)
{
	struct fw_message *answer;
	int code = ctl_driver_ask(driver, question, &answer);

	if (code != CTL_OK)
		return code;
	if (is_refusal(answer)) {
		code = ctl_service_show_failure(&answer->answer.failure, json);
		fw_message_free(answer);
		return code;
	}
	if (answer->kind != kind)
		return unexpected(answer);
	*out_answer = answer;
	return CTL_OK;
}

/* Takes an Outcome, or shows the Answer that says why there is none. */
static int take_outcome(struct fw_message *message, bool json, struct fw_message **out_outcome)
{
	int code;

	if (is_refusal(message)) {
		code = ctl_service_show_failure(&message->answer.failure, json);
		fw_message_free(message);
		return code;
	}
	if (message->kind != FW_OUTCOME)
		return unexpected(message);
	*out_outcome = message;
	return CTL_OK;
}

int ctl_service_await(struct ctl_driver *driver, uint64_t run, enum fw_milestone until, bool json,
		      struct fw_message **out_outcome)
{
	struct fw_message await = {.kind = FW_AWAIT, .run = run, .await.until = until}, *outcome;
	int code = ctl_driver_ask(driver, &await, &outcome);

	return code != CTL_OK ? code : take_outcome(outcome, json, out_outcome);
}

int ctl_service_stop(struct ctl_driver *driver, const char *name, bool at_once, bool json,
		     struct fw_message **out_outcome)
{
	struct fw_message command = {.kind = FW_STOP_APP}, *outcome;
	uint64_t run;
	int code;

	command.stop_app = (struct fw_stop_app){.name = name, .at_once = at_once, .awaits = true};
	code = ctl_service_command(driver, &command, json, &run);
	if (code == CTL_OK)
		code = ctl_driver_answer(driver, &command, &outcome);
	return code != CTL_OK ? code : take_outcome(outcome, json, out_outcome);
}

int ctl_service_state(struct ctl_driver *driver, struct fw_message **out_reply)
{
	return ctl_service_state_of(driver, "", out_reply);
}

int ctl_service_state_of(struct ctl_driver *driver, const char *worker,
			 struct fw_message **out_reply)
{
	struct fw_message request = {.kind = FW_REQUEST, .request = {FW_REQUEST_STATE, worker}};
	int code = ctl_driver_ask(driver, &request, out_reply);

	if (code == CTL_OK && (*out_reply)->kind != FW_REPLY)
		return unexpected(*out_reply);
	return code;
}

int ctl_service_show(int argc, char **argv, const char *program, const char *headline,
		     void (*show)(const struct fw_reply *reply, bool json))
{
	struct ctl_driver driver = {0};
	struct ctl_common common = {0};
	struct fw_message *reply;
	const char *output = NULL;
	bool json;
	const struct fragi_flag table[] = {
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = program,
		.usage = "[flags]",
		.headline = headline,
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (!ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code))
		goto out;
	code = ctl_output(output, &json) ? ctl_driver_open(&driver) : CTL_USAGE;
	if (code == CTL_OK)
		code = ctl_service_state(&driver, &reply);
	if (code == CTL_OK) {
		show(&reply->reply, json);
		fw_message_free(reply);
	}
out:
	ctl_driver_close(&driver);
	return code;
}
