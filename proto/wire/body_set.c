// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <wire/body.h>

/* Bodies of SET, HOST_SET, HOST_SET_DONE and SWAP: what changes while an application runs. */

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

void fw_encode_swap(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Swap *out)
{
	out->name = fw_put_text(e, message->swap.name);
	out->fragment = fw_put_text(e, message->swap.fragment);
	out->library = fw_put_text(e, message->swap.library);
	out->replaces = fw_put_text(e, message->swap.replaces);
	out->probation_ns = message->swap.probation_ns;
}

void fw_decode_swap(struct fw_decoder *d, const Frag__V1__Swap *in, struct fw_message *message)
{
	if (in->library[0] == '\0' || strlen(in->library) > FW_LIBRARY_MAX ||
	    strlen(in->replaces) > FW_LIBRARY_MAX)
		fw_get_failed(d, "a name that no library can have");
	message->swap.name = fw_get_name(d, in->name, false);
	message->swap.fragment = fw_get_name(d, in->fragment, false);
	message->swap.library = fw_get_text(d, in->library);
	message->swap.replaces = fw_get_text(d, in->replaces);
	message->swap.probation_ns = fw_get_duration(d, in->probation_ns);
}
