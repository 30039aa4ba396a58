// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <wire/body.h>

/*
 * Bodies of the messages by which a worker reports what it has run while its driver was away:
 * HOST_REPORT, REPORTED. HOST_PAST has the body of HOST_STATS.
 */

void fw_encode_host_report(struct fw_encoder *e, const struct fw_message *message,
			   Frag__V1__HostReport *out)
{
	const struct fw_host_report *in = &message->report;

	out->create = fw_put_body(e, &frag__v1__host_create__descriptor);
	if (out->create != NULL)
		fw_put_create(e, &in->create, out->create);
	out->started = in->started;
	out->has_run = in->has_run;
	out->stop = (uint32_t)in->stop;
	out->failure = (uint32_t)in->failure;
	out->reason = fw_put_text(e, in->reason);
	out->restarts = in->restarts;
	out->is_inexact = in->is_inexact;
	out->age_ns = in->age_ns;
	out->is_closing = in->is_closing;
	out->yields = in->yields;
	out->is_beside = in->is_beside;
	out->is_wired = in->is_wired;
}

void fw_decode_host_report(struct fw_decoder *d, const Frag__V1__HostReport *in,
			   struct fw_message *message)
{
	struct fw_host_report *out = &message->report;

	if (in->create == NULL || in->stop > FW_STOP_KILLED) {
		fw_get_failed(d, "a report about no host");
		return;
	}
	fw_get_create(d, in->create, &out->create);
	out->started = in->started != 0;
	out->has_run = in->has_run != 0;
	out->stop = (enum fw_stop_state)in->stop;
	out->failure = in->failure == 0 ? FRAGI_FAILURE_NONE : fw_get_failure_code(in->failure);
	out->reason = fw_get_text(d, in->reason);
	out->restarts = in->restarts;
	out->is_inexact = in->is_inexact != 0;
	out->age_ns = fw_get_duration(d, in->age_ns);
	out->is_closing = in->is_closing != 0;
	out->yields = in->yields != 0;
	out->is_beside = in->is_beside != 0;
	out->is_wired = in->is_wired != 0;
}

void fw_encode_reported(struct fw_encoder *e, const struct fw_message *message,
			Frag__V1__Reported *out)
{
	(void)e, (void)message, (void)out;
}

void fw_decode_reported(struct fw_decoder *d, const Frag__V1__Reported *in,
			struct fw_message *message)
{
	(void)d, (void)in, (void)message;
}

void fw_encode_host_adopted(struct fw_encoder *e, const struct fw_message *message,
			    Frag__V1__HostAdopted *out)
{
	(void)e;
	out->is_inexact = message->adopted.is_inexact;
}

void fw_decode_host_adopted(struct fw_decoder *d, const Frag__V1__HostAdopted *in,
			    struct fw_message *message)
{
	(void)d;
	message->adopted.is_inexact = in->is_inexact != 0;
}
