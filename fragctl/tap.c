// SPDX-License-Identifier: Apache-2.0
#include <fragctl/tap.h>

#include <stdio.h>

#include <base/json.h>
#include <fragctl/service.h>

int ctl_tap_begin(struct ctl_driver *driver, const char *application, const char *flow,
		  int64_t every_ns, bool pictures, bool json, struct ctl_tap *out_tap)
{
	struct fw_message ask = {.kind = FW_TAP}, *answer;
	int code;

	ask.tap = (struct fw_tap){
		.name = application, .flow = flow, .every_ns = every_ns, .pictures = pictures};
	code = ctl_driver_ask(driver, &ask, &answer);
	if (code != CTL_OK)
		return code;
	if (answer->kind != FW_ANSWER) {
		code = ctl_fail(CTL_FAILED, "the driver answered with %s; install the same version",
				fw_kind_name(answer->kind));
	} else if (answer->answer.failure.code != FRAGI_FAILURE_NONE) {
		code = ctl_service_show_failure(&answer->answer.failure, json);
	} else {
		*out_tap = (struct ctl_tap){.seq = ask.seq};
		snprintf(out_tap->output, sizeof(out_tap->output), "%s", answer->answer.name);
	}
	fw_message_free(answer);
	return code;
}

bool ctl_tap_read(struct ctl_tap *tap, const struct fw_message *tapped,
		  struct fw_message **out_passed, uint64_t *out_dropped)
{
	const size_t prefix = sizeof(uint32_t);
	const uint8_t *frame = tapped->tapped.passed;
	struct fw_message *passed;
	uint64_t number;

	if (tapped->tapped.size <= prefix ||
	    fw_decode(frame + prefix, tapped->tapped.size - prefix, &passed, NULL) < 0)
		return false;
	if (passed->kind != FW_PASSED) {
		fw_message_free(passed);
		return false;
	}
	number = passed->passed.number;
	/* the process that followed a host counts from 1 */
	*out_dropped = number > tap->number ? number - tap->number - 1 : 0;
	tap->number = number;
	*out_passed = passed;
	return true;
}

/* What a host says is JSON. */
static void write_value(const char *text, FILE *out)
{
	if (fragi_json_is_value(text))
		fputs(text, out);
	else
		fragi_json_text(text, out);
}

void ctl_tap_json(struct ctl_json *json, const struct ctl_tap *tap,
		  const struct fragi_passed *passed, uint64_t dropped)
{
	ctl_json_text(json, "output", tap->output);
	ctl_json_unsigned(json, "seen", passed->seen);
	ctl_json_unsigned(json, "dropped", dropped);
	ctl_json_number(json, "unix_ns", passed->unix_ns);
	ctl_json_open(json, "message", '{');
	ctl_json_text(json, "type", passed->type);
	write_value(passed->type != NULL ? passed->value : "null", ctl_json_value(json, "value"));
	write_value(passed->metadata[0] != '\0' ? passed->metadata : "{}",
		    ctl_json_value(json, "metadata"));
	ctl_json_open(json, "tensors", '[');
	for (uint32_t i = 0; i < passed->tensor_count; i++) {
		ctl_json_open(json, NULL, '{');
		ctl_json_text(json, "name", passed->tensors[i].name);
		write_value(passed->tensors[i].text, ctl_json_value(json, "tensor"));
		ctl_json_close(json, '}');
	}
	ctl_json_close(json, ']');
	ctl_json_unsigned(json, "tensors_left_out", passed->tensors_left_out);
	ctl_json_close(json, '}');
}

void ctl_tap_end(struct ctl_driver *driver, const struct ctl_tap *tap)
{
	struct fw_message end = {.kind = FW_TAP};

	end.tap = (struct fw_tap){.name = "", .flow = "", .ends = tap->seq};
	(void)ctl_driver_send(driver, &end);
}
