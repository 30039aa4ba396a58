// SPDX-License-Identifier: Apache-2.0
#include <wire/body.h>

/* Bodies of HOST_SUSPEND and HOST_SAVED: a host goes on in another process. */

void fw_encode_host_suspend(struct fw_encoder *e, const struct fw_message *message,
			    Frag__V1__HostSuspend *out)
{
	(void)e;
	out->peer = message->suspend.peer;
	out->peer_epoch = message->suspend.peer_epoch;
}

void fw_decode_host_suspend(struct fw_decoder *d, const Frag__V1__HostSuspend *in,
			    struct fw_message *message)
{
	(void)d;
	message->suspend.peer = in->peer;
	message->suspend.peer_epoch = in->peer_epoch;
}

void fw_encode_host_saved(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__HostSaved *out)
{
	out->offset = message->saved.offset;
	out->bytes = fw_put_data(e, message->saved.bytes, message->saved.size, FW_SAVED_BYTES_MAX);
}

void fw_decode_host_saved(struct fw_decoder *d, const Frag__V1__HostSaved *in,
			  struct fw_message *message)
{
	if (in->offset > FRAGI_SAVED_BYTES_MAX ||
	    in->bytes.len > FRAGI_SAVED_BYTES_MAX - in->offset)
		fw_get_failed(d, "saved bytes beyond the memory for them");
	message->saved.offset = in->offset;
	message->saved.bytes = fw_get_data(d, in->bytes, FW_SAVED_BYTES_MAX, &message->saved.size);
}
