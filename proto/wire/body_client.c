// SPDX-License-Identifier: Apache-2.0
#include <base/units.h>
#include <wire/body.h>

/*
 * Bodies of the messages by which a client asks the driver: REQUEST and REPLY, commands and their
 * ANSWER, AWAIT, WATCH and EVENTS.
 */

void fw_encode_request(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Request *out)
{
	out->what = (uint32_t)message->request.what;
	out->worker = fw_put_text(e, message->request.worker);
}

void fw_decode_request(struct fw_decoder *d, const Frag__V1__Request *in,
		       struct fw_message *message)
{
	if (in->what != FW_REQUEST_STATE)
		fw_get_failed(d, "an unknown request");
	message->request.what = (enum fw_request_what)in->what;
	message->request.worker = fw_get_text(d, in->worker);
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
		out->hosts[i]->stays = fw_put_text(e, in->hosts[i].stays);
	}
	out->epoch = in->epoch;
	out->delivered = in->delivered;
	out->started_by = fw_put_text(e, in->started_by);
	out->missing = fw_put_text(e, in->missing);
	out->adopted = in->adopted;
	out->parameters = fw_put_rows(e, &frag__v1__parameter_state__descriptor,
				      in->parameter_count, FW_ROWS_MAX, &out->n_parameters);
	for (size_t i = 0; i < out->n_parameters; i++) {
		out->parameters[i]->name = fw_put_text(e, in->parameters[i].name);
		out->parameters[i]->value = fw_put_text(e, in->parameters[i].value);
		out->parameters[i]->who = fw_put_text(e, in->parameters[i].who);
		out->parameters[i]->age_ns = in->parameters[i].age_ns;
	}
}

static void encode_ended(struct fw_encoder *e, const struct fw_ended_row *in,
			 Frag__V1__EndedState *out)
{
	out->run = in->run;
	out->name = fw_put_text(e, in->name);
	out->result = (uint32_t)in->result;
	out->failure = fw_put_failure(e, &in->failure);
	out->exit_code = in->exit_code;
	out->age_ns = in->age_ns;
	out->duration_ns = in->duration_ns;
	out->started_by = fw_put_text(e, in->started_by);
	out->wanted = in->wanted;
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
		out->workers[i]->waits_for = fw_put_text(e, in->workers[i].waits_for);
		out->workers[i]->drained = in->workers[i].drained;
	}
	out->ended = fw_put_rows(e, &frag__v1__ended_state__descriptor, in->ended_count,
				 FW_ROWS_MAX, &out->n_ended);
	for (size_t i = 0; i < out->n_ended; i++)
		encode_ended(e, &in->ended[i], out->ended[i]);
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
			.stays = fw_get_text(d, in->hosts[i]->stays),
		};
	out->epoch = in->epoch;
	out->delivered = in->delivered;
	out->started_by = fw_get_text(d, in->started_by);
	out->missing = fw_get_text(d, in->missing);
	out->adopted = in->adopted != 0;
	out->parameters = fw_get_rows(d, in->n_parameters, FW_ROWS_MAX, sizeof(*out->parameters),
				      &out->parameter_count);
	for (uint32_t i = 0; i < out->parameter_count; i++)
		out->parameters[i] = (struct fw_parameter_row){
			.name = fw_get_text(d, in->parameters[i]->name),
			.value = fw_get_text(d, in->parameters[i]->value),
			.who = fw_get_text(d, in->parameters[i]->who),
			.age_ns = fw_get_duration(d, in->parameters[i]->age_ns),
		};
}

enum fragi_summary_result fw_get_result(struct fw_decoder *d, uint32_t result)
{
	if (result > FRAGI_SUMMARY_FAILED)
		fw_get_failed(d, "an unknown result");
	return (enum fragi_summary_result)result;
}

static void decode_ended(struct fw_decoder *d, const Frag__V1__EndedState *in,
			 struct fw_ended_row *out)
{
	out->run = in->run;
	out->name = fw_get_text(d, in->name);
	out->result = fw_get_result(d, in->result);
	fw_get_failure(d, in->failure, &out->failure);
	out->exit_code = fw_get_exit_code(d, in->exit_code);
	out->age_ns = fw_get_duration(d, in->age_ns);
	out->duration_ns = fw_get_duration(d, in->duration_ns);
	out->started_by = fw_get_text(d, in->started_by);
	out->wanted = in->wanted;
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
			.waits_for = fw_get_text(d, in->workers[i]->waits_for),
			.drained = in->workers[i]->drained != 0,
		};
	out->ended =
		fw_get_rows(d, in->n_ended, FW_ROWS_MAX, sizeof(*out->ended), &out->ended_count);
	for (uint32_t i = 0; i < out->ended_count; i++)
		decode_ended(d, in->ended[i], &out->ended[i]);
	out->more = in->more;
}

const char *fw_get_name(struct fw_decoder *d, const char *in, bool may_be_empty)
{
	if (!fragi_name_is_valid(in) && !(may_be_empty && in[0] == '\0'))
		fw_get_failed(d, "a name that no application can have");
	return fw_get_text(d, in);
}

void fw_encode_start_app(struct fw_encoder *e, const struct fw_message *message,
			 Frag__V1__StartApp *out)
{
	const struct fw_start_app *in = &message->start_app;

	out->name = fw_put_text(e, in->name);
	out->source = fw_put_data(e, in->source, in->source_bytes, FW_FRAME_MAX);
	out->start_timeout_ns = in->start_timeout_ns;
}

void fw_decode_start_app(struct fw_decoder *d, const Frag__V1__StartApp *in,
			 struct fw_message *message)
{
	struct fw_start_app *out = &message->start_app;

	out->name = fw_get_name(d, in->name, true);
	out->source = fw_get_data(d, in->source, FW_FRAME_MAX, &out->source_bytes);
	out->start_timeout_ns = fw_get_duration(d, in->start_timeout_ns);
}

void fw_encode_stop_app(struct fw_encoder *e, const struct fw_message *message,
			Frag__V1__StopApp *out)
{
	out->name = fw_put_text(e, message->stop_app.name);
	out->at_once = message->stop_app.at_once;
	out->again = message->stop_app.again;
	out->awaits = message->stop_app.awaits;
}

void fw_decode_stop_app(struct fw_decoder *d, const Frag__V1__StopApp *in,
			struct fw_message *message)
{
	struct fw_stop_app *out = &message->stop_app;

	out->name = fw_get_name(d, in->name, false);
	out->at_once = in->at_once != 0;
	out->again = in->again != 0;
	out->awaits = in->awaits != 0;
}

void fw_encode_answer(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Answer *out)
{
	out->failure = fw_put_failure(e, &message->answer.failure);
	out->name = fw_put_text(e, message->answer.name);
}

void fw_decode_answer(struct fw_decoder *d, const Frag__V1__Answer *in, struct fw_message *message)
{
	fw_get_failure(d, in->failure, &message->answer.failure);
	message->answer.name = fw_get_text(d, in->name);
}

void fw_encode_await(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Await *out)
{
	(void)e;
	out->until = (uint32_t)message->await.until;
}

void fw_decode_await(struct fw_decoder *d, const Frag__V1__Await *in, struct fw_message *message)
{
	if (in->until < FW_RUNNING || in->until > FW_ENDED)
		fw_get_failed(d, "an unknown milestone");
	message->await.until = (enum fw_milestone)in->until;
}

void fw_encode_watch(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Watch *out)
{
	(void)e;
	out->after = message->watch.after;
	out->follow = message->watch.follow;
}

void fw_decode_watch(struct fw_decoder *d, const Frag__V1__Watch *in, struct fw_message *message)
{
	(void)d;
	message->watch.after = in->after;
	message->watch.follow = in->follow != 0;
}

void fw_encode_events(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Events *out)
{
	const struct fw_events *in = &message->events;

	out->rows = fw_put_rows(e, &frag__v1__event_row__descriptor, in->count, FW_ROWS_MAX,
				&out->n_rows);
	for (size_t i = 0; i < out->n_rows; i++) {
		out->rows[i]->number = in->rows[i].number;
		out->rows[i]->unix_ns = in->rows[i].unix_ns;
		out->rows[i]->kind = (uint32_t)in->rows[i].kind;
		out->rows[i]->application = fw_put_text(e, in->rows[i].application);
		out->rows[i]->run = in->rows[i].run;
		out->rows[i]->who = fw_put_text(e, in->rows[i].who);
		out->rows[i]->text = fw_put_text(e, in->rows[i].text);
	}
}

/* A kind that only a newer driver knows is none. */
void fw_decode_events(struct fw_decoder *d, const Frag__V1__Events *in, struct fw_message *message)
{
	struct fw_events *out = &message->events;

	out->rows = fw_get_rows(d, in->n_rows, FW_ROWS_MAX, sizeof(*out->rows), &out->count);
	for (uint32_t i = 0; i < out->count; i++)
		out->rows[i] = (struct fw_event){
			.number = in->rows[i]->number,
			.unix_ns = fw_get_duration(d, in->rows[i]->unix_ns),
			.kind = in->rows[i]->kind < FW_EVENT_KINDS
					? (enum fw_event_kind)in->rows[i]->kind
					: FW_EVENT_NONE,
			.application = fw_get_text(d, in->rows[i]->application),
			.run = in->rows[i]->run,
			.who = fw_get_text(d, in->rows[i]->who),
			.text = fw_get_text(d, in->rows[i]->text),
		};
}
