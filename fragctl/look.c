// SPDX-License-Identifier: Apache-2.0
#include <fragctl/look.h>

#include <base/units.h>
#include <fragctl/service.h>

/* Returns CTL_OK and keeps a LOOKED; another answer is a failure, or is dropped. */
static int take(struct fw_message *message, struct fw_message **out_looked)
{
	int code = CTL_OK;

	if (message->kind == FW_LOOKED) {
		*out_looked = message;
		return CTL_OK;
	}
	if (message->kind == FW_ANSWER)
		code = ctl_service_show_failure(&message->answer.failure, false);
	fw_message_free(message);
	return code;
}

int ctl_look_every(const char *text, int64_t *out_ns)
{
	int64_t every_ns = 1000000000;

	if (text != NULL &&
	    (fragi_duration_lacks_unit(text) || fragi_parse_time(text, &every_ns) < 0 ||
	     every_ns < FW_LOOK_MIN_NS || every_ns > 5000000000))
		return ctl_fail(CTL_USAGE, "--every \"%.40s\" is no time from 250ms to 5s", text);
	*out_ns = every_ns;
	return CTL_OK;
}

int ctl_look_next(struct ctl_driver *driver, struct fw_message **out_looked)
{
	struct fw_message *message, *looked = NULL;
	int code = CTL_OK;

	while (code == CTL_OK && looked == NULL) {
		code = ctl_driver_next(driver, &message);
		if (code == CTL_OK)
			code = take(message, &looked);
	}
	if (code == CTL_OK)
		*out_looked = looked;
	return code;
}

int ctl_look(struct ctl_driver *driver, const char *application, int64_t every_ns, bool once,
	     struct fw_message **out_looked)
{
	struct fw_message ask = {.kind = FW_LOOK}, *message, *looked = NULL;
	int code;

	ask.look = (struct fw_look){
		.name = application, .every_ns = every_ns, .once = once, .changes = !once};
	code = ctl_driver_ask(driver, &ask, &message);
	if (code == CTL_OK)
		code = take(message, &looked);
	if (code == CTL_OK && looked == NULL)
		code = ctl_look_next(driver, &looked);
	if (code == CTL_OK)
		*out_looked = looked;
	return code;
}
