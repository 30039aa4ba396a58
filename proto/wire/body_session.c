// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/failure.h>
#include <wire/body.h>

/*
 * Bodies of the messages by which a session begins and stays alive: HELLO, WELCOME, REFUSED, BEAT.
 */

/* A peer of minor 0 knows no secrets, and sends none. */
static void get_secret(struct fw_decoder *d, ProtobufCBinaryData in, uint8_t *out_secret)
{
	if (in.len == FW_SECRET_BYTES)
		memcpy(out_secret, in.data, FW_SECRET_BYTES);
	else if (in.len != 0)
		fw_get_failed(d, "a secret of another length");
}

void fw_encode_hello(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Hello *out)
{
	const struct fw_hello *in = &message->hello;

	out->major = in->major;
	out->minor = in->minor;
	out->role = (uint32_t)in->role;
	out->name = fw_put_text(e, in->name);
	out->session = in->session;
	if (in->session != 0)
		out->secret = fw_put_data(e, in->secret, sizeof(in->secret), FW_SECRET_BYTES);
	out->fragments =
		fw_put_texts(e, in->fragments, in->fragment_count, FW_NAMES_MAX, &out->n_fragments);
	out->worker_address = fw_put_text(e, in->worker_address);
	out->node = fw_put_text(e, in->node);
	out->clock = fw_put_text(e, in->clock);
	out->memory = fw_put_text(e, in->memory);
	out->no_memory = fw_put_text(e, in->no_memory);
	out->waits_for = fw_put_text(e, in->waits_for);
	out->version = fw_put_text(e, in->version);
	out->cores = in->cores;
	out->memory_bytes = in->memory_bytes;
	out->shared_memory_bytes = in->shared_memory_bytes;
	out->gpus = in->gpus;
	out->gpu_memory_bytes = in->gpu_memory_bytes;
	out->labels = fw_put_texts(e, in->labels, in->label_count, FW_LABELS_MAX, &out->n_labels);
	out->no_limits = fw_put_text(e, in->no_limits);
	out->reports = in->reports;
}

void fw_decode_hello(struct fw_decoder *d, const Frag__V1__Hello *in, struct fw_message *message)
{
	struct fw_hello *out = &message->hello;

	out->major = in->major;
	out->minor = in->minor;
	out->name = out->worker_address = out->node = out->clock = out->version = "";
	out->waits_for = out->memory = out->no_memory = out->no_limits = "";
	if (in->major != FW_PROTOCOL_MAJOR)
		return;
	if (in->role < FW_ROLE_WORKER || in->role > FW_ROLE_KEEPER)
		fw_get_failed(d, "an unknown role");
	out->role = (enum fw_role)in->role;
	out->name = fw_get_text(d, in->name);
	out->session = in->session;
	get_secret(d, in->secret, out->secret);
	out->fragments =
		fw_get_texts(d, in->fragments, in->n_fragments, FW_NAMES_MAX, &out->fragment_count);
	out->worker_address = fw_get_text(d, in->worker_address);
	out->node = fw_get_text(d, in->node);
	out->clock = fw_get_text(d, in->clock);
	out->memory = fw_get_text(d, in->memory);
	out->no_memory = fw_get_text(d, in->no_memory);
	out->waits_for = fw_get_text(d, in->waits_for);
	out->version = fw_get_text(d, in->version);
	out->cores = in->cores;
	out->memory_bytes = in->memory_bytes;
	out->shared_memory_bytes = in->shared_memory_bytes;
	out->gpus = in->gpus;
	out->gpu_memory_bytes = in->gpu_memory_bytes;
	out->labels = fw_get_texts(d, in->labels, in->n_labels, FW_LABELS_MAX, &out->label_count);
	out->no_limits = fw_get_text(d, in->no_limits);
	out->reports = in->reports;
}

void fw_encode_welcome(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Welcome *out)
{
	const struct fw_welcome *in = &message->welcome;

	out->session = in->session;
	out->name = fw_put_text(e, in->name);
	out->beat_ns = in->beat_ns;
	out->dead_ns = in->dead_ns;
	out->version = fw_put_text(e, in->version);
	out->secret = fw_put_data(e, in->secret, sizeof(in->secret), FW_SECRET_BYTES);
	out->takes_lines = in->takes_lines;
	out->keeps_hosts = in->keeps_hosts;
}

void fw_decode_welcome(struct fw_decoder *d, const Frag__V1__Welcome *in,
		       struct fw_message *message)
{
	struct fw_welcome *out = &message->welcome;

	out->session = in->session;
	out->name = fw_get_text(d, in->name);
	out->beat_ns = fw_get_duration(d, in->beat_ns);
	out->dead_ns = fw_get_duration(d, in->dead_ns);
	out->version = fw_get_text(d, in->version);
	get_secret(d, in->secret, out->secret);
	out->takes_lines = in->takes_lines != 0;
	out->keeps_hosts = in->keeps_hosts != 0;
}

void fw_encode_refused(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Refused *out)
{
	const struct fw_failure *in = &message->refused.failure;

	out->exit_code = fragi_failure_exit(in->code);
	out->sentence = fw_put_text(e, in->sentence);
	out->code = (uint32_t)in->code;
}

/* A peer of another version may not know codes: it refuses because of the version. */
void fw_decode_refused(struct fw_decoder *d, const Frag__V1__Refused *in,
		       struct fw_message *message)
{
	struct fw_failure *out = &message->refused.failure;

	out->code = in->code == FRAGI_FAILURE_NONE ? FRAGI_FAILURE_VERSION_REFUSED
						   : fw_get_failure_code(in->code);
	out->sentence = fw_get_text(d, in->sentence);
	out->op = out->file = "";
}

void fw_encode_beat(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Beat *out)
{
	out->waits_for = fw_put_text(e, message->beat.waits_for);
	out->sent_ns = message->beat.sent_ns;
	out->heard_ns = message->beat.heard_ns;
	out->leaves = message->beat.leaves;
	out->lease_until_ns = message->beat.lease_until_ns;
}

void fw_decode_beat(struct fw_decoder *d, const Frag__V1__Beat *in, struct fw_message *message)
{
	message->beat.waits_for = fw_get_text(d, in->waits_for);
	message->beat.sent_ns = fw_get_duration(d, in->sent_ns);
	message->beat.heard_ns = fw_get_duration(d, in->heard_ns);
	message->beat.leaves = in->leaves != 0;
	message->beat.lease_until_ns = fw_get_duration(d, in->lease_until_ns);
}

void fw_encode_app_ended(struct fw_encoder *e, const struct fw_message *message,
			 Frag__V1__AppEnded *out)
{
	(void)e;
	out->exit_code = message->app_ended.exit_code;
}

void fw_decode_app_ended(struct fw_decoder *d, const Frag__V1__AppEnded *in,
			 struct fw_message *message)
{
	message->app_ended.exit_code = fw_get_exit_code(d, in->exit_code);
}

void fw_encode_leave(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Leave *out)
{
	out->reason = fw_put_text(e, message->leave.reason);
}

void fw_decode_leave(struct fw_decoder *d, const Frag__V1__Leave *in, struct fw_message *message)
{
	message->leave.reason = fw_get_text(d, in->reason);
}
