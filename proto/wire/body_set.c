// SPDX-License-Identifier: Apache-2.0
#include <wire/body.h>

/* Bodies of SET, HOST_SET and HOST_SET_DONE: a parameter that changes while it runs. */

void fw_encode_set(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Set *out)
{
	out->name = fw_put_text(e, message->set.name);
	out->text = fw_put_text(e, message->set.text);
}

void fw_decode_set(struct fw_decoder *d, const Frag__V1__Set *in, struct fw_message *message)
{
	message->set.name = fw_get_name(d, in->name, false);
	message->set.text = fw_get_text(d, in->text);
}

void fw_encode_host_set(struct fw_encoder *e, const struct fw_message *message,
			Frag__V1__HostSet *out)
{
	out->number = message->host_set.number;
	out->text = fw_put_text(e, message->host_set.text);
	out->who = fw_put_text(e, message->host_set.who);
}

void fw_decode_host_set(struct fw_decoder *d, const Frag__V1__HostSet *in,
			struct fw_message *message)
{
	message->host_set.number = in->number;
	message->host_set.text = fw_get_text(d, in->text);
	message->host_set.who = fw_get_text(d, in->who);
}

void fw_encode_host_set_done(struct fw_encoder *e, const struct fw_message *message,
			     Frag__V1__HostSetDone *out)
{
	out->number = message->host_set_done.number;
	out->failure = fw_put_failure(e, &message->host_set_done.failure);
}

void fw_decode_host_set_done(struct fw_decoder *d, const Frag__V1__HostSetDone *in,
			     struct fw_message *message)
{
	message->host_set_done.number = in->number;
	fw_get_failure(d, in->failure, &message->host_set_done.failure);
}
