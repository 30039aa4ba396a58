// SPDX-License-Identifier: Apache-2.0
#include <wire/body.h>

/*
 * Bodies of the messages by which a client asks the driver: REQUEST, REPLY.
 */

void fw_encode_request(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Request *out)
{
	(void)e;
	out->what = (uint32_t)message->request.what;
}

void fw_decode_request(struct fw_decoder *d, const Frag__V1__Request *in,
		       struct fw_message *message)
{
	if (in->what != FW_REQUEST_STATE)
		fw_get_failed(d, "an unknown request");
	message->request.what = (enum fw_request_what)in->what;
}

static void encode_application(struct fw_encoder *e, const struct fw_application_row *in,
			       Frag__V1__ApplicationState *out)
{
	out->run = in->run;
	out->name = fw_put_text(e, in->name);
	out->state = fw_put_text(e, in->state);
	out->age_ns = in->age_ns;
	out->hosts = fw_put_rows(e, &frag__v1__host_state__descriptor, in->host_count, FW_ROWS_MAX,
				 &out->n_hosts);
	for (size_t i = 0; i < out->n_hosts; i++) {
		out->hosts[i]->number = in->hosts[i].number;
		out->hosts[i]->fragments = fw_put_text(e, in->hosts[i].fragments);
		out->hosts[i]->worker = fw_put_text(e, in->hosts[i].worker);
		out->hosts[i]->state = fw_put_text(e, in->hosts[i].state);
		out->hosts[i]->pid = in->hosts[i].pid;
	}
}

void fw_encode_reply(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Reply *out)
{
	const struct fw_reply *in = &message->reply;

	out->applications = fw_put_rows(e, &frag__v1__application_state__descriptor,
					in->application_count, FW_ROWS_MAX, &out->n_applications);
	for (size_t i = 0; i < out->n_applications; i++)
		encode_application(e, &in->applications[i], out->applications[i]);
	out->workers = fw_put_rows(e, &frag__v1__worker_state__descriptor, in->worker_count,
				   FW_ROWS_MAX, &out->n_workers);
	for (size_t i = 0; i < out->n_workers; i++) {
		out->workers[i]->name = fw_put_text(e, in->workers[i].name);
		out->workers[i]->address = fw_put_text(e, in->workers[i].address);
		out->workers[i]->state = fw_put_text(e, in->workers[i].state);
		out->workers[i]->cores = in->workers[i].cores;
		out->workers[i]->fragments = in->workers[i].fragments;
	}
	out->more = in->more;
}

static void decode_application(struct fw_decoder *d, const Frag__V1__ApplicationState *in,
			       struct fw_application_row *out)
{
	out->run = in->run;
	out->name = fw_get_text(d, in->name);
	out->state = fw_get_text(d, in->state);
	out->age_ns = fw_get_duration(d, in->age_ns);
	out->hosts =
		fw_get_rows(d, in->n_hosts, FW_ROWS_MAX, sizeof(*out->hosts), &out->host_count);
	for (uint32_t i = 0; i < out->host_count; i++)
		out->hosts[i] = (struct fw_host_row){
			.number = in->hosts[i]->number,
			.fragments = fw_get_text(d, in->hosts[i]->fragments),
			.worker = fw_get_text(d, in->hosts[i]->worker),
			.state = fw_get_text(d, in->hosts[i]->state),
			.pid = in->hosts[i]->pid,
		};
}

void fw_decode_reply(struct fw_decoder *d, const Frag__V1__Reply *in, struct fw_message *message)
{
	struct fw_reply *out = &message->reply;

	out->applications = fw_get_rows(d, in->n_applications, FW_ROWS_MAX,
					sizeof(*out->applications), &out->application_count);
	for (uint32_t i = 0; i < out->application_count; i++)
		decode_application(d, in->applications[i], &out->applications[i]);
	out->workers = fw_get_rows(d, in->n_workers, FW_ROWS_MAX, sizeof(*out->workers),
				   &out->worker_count);
	for (uint32_t i = 0; i < out->worker_count; i++)
		out->workers[i] = (struct fw_worker_row){
			.name = fw_get_text(d, in->workers[i]->name),
			.address = fw_get_text(d, in->workers[i]->address),
			.state = fw_get_text(d, in->workers[i]->state),
			.cores = in->workers[i]->cores,
			.fragments = in->workers[i]->fragments,
		};
	out->more = in->more;
}
