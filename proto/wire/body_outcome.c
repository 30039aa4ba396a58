// SPDX-License-Identifier: Apache-2.0
#include <wire/body.h>

/*
 * The body of OUTCOME: that a run has come so far, and, when it has ended, its summary. Texts that
 * may be missing in a summary travel as empty ones.
 */
enum { SENT, DELIVERED, LOST, RANGES };

static void encode_operators(struct fw_encoder *e, const struct fragi_summary_fragment *in,
			     Frag__V1__SummaryFragment *out)
{
	out->operators = fw_put_rows(e, &frag__v1__summary_operator__descriptor, in->operator_count,
				     FW_ROWS_MAX, &out->n_operators);
	for (size_t i = 0; i < out->n_operators; i++) {
		out->operators[i]->name = fw_put_text(e, in->operators[i].name);
		out->operators[i]->type = fw_put_text(e, in->operators[i].type);
		out->operators[i]->ticks = in->operators[i].ticks;
		out->operators[i]->compute = fw_put_quantiles(e, &in->operators[i].compute);
		out->operators[i]->time_ns = in->operators[i].time_ns;
		out->operators[i]->waiting_ns = in->operators[i].waiting_ns;
		out->operators[i]->counters =
			fw_put_numbers(e, in->operators[i].counters, FRAGI_OP_COUNTERS,
				       &out->operators[i]->n_counters);
		out->operators[i]->realtime = fw_put_realtime(e, &in->operators[i].realtime,
							      &out->operators[i]->n_realtime);
		out->operators[i]->predicted_rate_mhz = in->operators[i].predicted_rate_mhz;
		out->operators[i]->budget_ns = in->operators[i].budget_ns;
	}
}

static void encode_fragment(struct fw_encoder *e, const struct fragi_summary_fragment *in,
			    Frag__V1__SummaryFragment *out)
{
	out->name = fw_put_text(e, in->name);
	out->worker = fw_put_text(e, in->worker);
	out->host_pid = in->host_pid;
	out->state = fw_put_text(e, in->state);
	out->epoch = in->epoch;
	out->restarts = in->restarts;
	encode_operators(e, in, out);
}

static void encode_flow(struct fw_encoder *e, const struct fragi_summary_flow *in,
			Frag__V1__SummaryFlow *out)
{
	const uint64_t at_least[RANGES] = {in->sent_at_least, in->delivered_at_least,
					   in->lost_at_least};
	const uint64_t at_most[RANGES] = {in->sent_at_most, in->delivered_at_most};

	out->from = fw_put_text(e, in->from);
	out->to = fw_put_text(e, in->to);
	out->edge = fw_put_text(e, in->edge);
	out->edge_detail = fw_put_text(e, in->edge_detail);
	out->encrypted = in->encrypted;
	out->capacity = in->capacity;
	out->policy = fw_put_text(e, in->policy);
	out->sender = fw_put_numbers(e, in->counters, FRAGI_SENDER_COUNTERS, &out->n_sender);
	out->receiver = fw_put_numbers(e, in->counters + FRAGI_SENDER_COUNTERS,
				       FRAGI_RECEIVER_COUNTERS, &out->n_receiver);
	out->dropped = fw_put_numbers(e, in->dropped, FRAGI_DROP_REASONS, &out->n_dropped);
	out->lost = in->lost;
	out->in_flight = in->in_flight;
	out->exact = in->exact;
	out->at_least = fw_put_numbers(e, at_least, RANGES, &out->n_at_least);
	out->at_most = fw_put_numbers(e, at_most, RANGES, &out->n_at_most);
	out->latency = fw_put_quantiles(e, &in->latency);
	out->latency_reason = fw_put_text(e, in->latency_reason);
	out->lost_because = fw_put_text(e, in->lost_because);
}

static void encode_summary(struct fw_encoder *e, const struct fragi_summary *in,
			   Frag__V1__Summary *out)
{
	const struct fw_failure failure = {
		.code = in->failure.code, .sentence = in->failure.sentence, .op = in->failure.op};

	out->application = fw_put_text(e, in->application);
	out->result = (uint32_t)in->result;
	out->failure = fw_put_failure(e, &failure);
	out->worker = fw_put_text(e, in->failure.worker);
	out->exit_code = in->exit_code;
	out->started_unix_ns = in->started_unix_ns;
	out->first_message_ns = in->first_message_ns;
	out->duration_ns = in->duration_ns;
	out->shutdown_ns = in->shutdown_ns;
	out->fragments = fw_put_rows(e, &frag__v1__summary_fragment__descriptor, in->fragment_count,
				     FW_ROWS_MAX, &out->n_fragments);
	for (size_t i = 0; i < out->n_fragments; i++)
		encode_fragment(e, &in->fragments[i], out->fragments[i]);
	out->flows = fw_put_rows(e, &frag__v1__summary_flow__descriptor, in->flow_count,
				 FW_ROWS_MAX, &out->n_flows);
	for (size_t i = 0; i < out->n_flows; i++)
		encode_flow(e, &in->flows[i], out->flows[i]);
}

void fw_encode_outcome(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Outcome *out)
{
	const struct fw_outcome *in = &message->outcome;

	out->name = fw_put_text(e, in->name);
	out->reached = (uint32_t)in->reached;
	out->left_out = in->left_out;
	if (in->reached == FW_ENDED)
		out->summary = fw_put_body(e, &frag__v1__summary__descriptor);
	if (out->summary != NULL)
		encode_summary(e, &in->summary, out->summary);
}

static const char *get_optional(struct fw_decoder *d, const char *in)
{
	return in[0] != '\0' ? fw_get_text(d, in) : NULL;
}

static void decode_fragment(struct fw_decoder *d, const Frag__V1__SummaryFragment *in,
			    struct fragi_summary_fragment *out)
{
	struct fragi_summary_operator *operators;
	uint32_t count;

	out->name = fw_get_text(d, in->name);
	out->worker = get_optional(d, in->worker);
	out->host_pid = in->host_pid;
	out->state = fw_get_text(d, in->state);
	out->epoch = in->epoch;
	out->restarts = in->restarts;
	operators = fw_get_rows(d, in->n_operators, FW_ROWS_MAX, sizeof(*operators), &count);
	for (uint32_t i = 0; i < count; i++) {
		operators[i].name = fw_get_text(d, in->operators[i]->name);
		operators[i].type = fw_get_text(d, in->operators[i]->type);
		operators[i].ticks = in->operators[i]->ticks;
		fw_get_quantiles(in->operators[i]->compute, &operators[i].compute);
		operators[i].time_ns = in->operators[i]->time_ns;
		operators[i].waiting_ns = in->operators[i]->waiting_ns;
		fw_get_numbers(in->operators[i]->counters, in->operators[i]->n_counters,
			       operators[i].counters, FRAGI_OP_COUNTERS);
		fw_get_realtime(in->operators[i]->realtime, in->operators[i]->n_realtime,
				&operators[i].realtime);
		operators[i].predicted_rate_mhz = in->operators[i]->predicted_rate_mhz;
		operators[i].budget_ns = in->operators[i]->budget_ns;
	}
	out->operators = operators;
	out->operator_count = count;
}

static void decode_flow(struct fw_decoder *d, const Frag__V1__SummaryFlow *in,
			struct fragi_summary_flow *out)
{
	uint64_t at_least[RANGES] = {0}, at_most[RANGES] = {0};

	out->from = fw_get_text(d, in->from);
	out->to = fw_get_text(d, in->to);
	out->edge = fw_get_text(d, in->edge);
	out->edge_detail = get_optional(d, in->edge_detail);
	out->encrypted = in->encrypted != 0;
	out->capacity = in->capacity;
	out->policy = fw_get_text(d, in->policy);
	fw_get_numbers(in->sender, in->n_sender, out->counters, FRAGI_SENDER_COUNTERS);
	fw_get_numbers(in->receiver, in->n_receiver, out->counters + FRAGI_SENDER_COUNTERS,
		       FRAGI_RECEIVER_COUNTERS);
	fw_get_numbers(in->dropped, in->n_dropped, out->dropped, FRAGI_DROP_REASONS);
	out->lost = in->lost;
	out->in_flight = in->in_flight;
	out->exact = in->exact != 0;
	fw_get_numbers(in->at_least, in->n_at_least, at_least, RANGES);
	fw_get_numbers(in->at_most, in->n_at_most, at_most, RANGES);
	out->sent_at_least = at_least[SENT];
	out->delivered_at_least = at_least[DELIVERED];
	out->lost_at_least = at_least[LOST];
	out->sent_at_most = at_most[SENT];
	out->delivered_at_most = at_most[DELIVERED];
	fw_get_quantiles(in->latency, &out->latency);
	out->latency_reason = get_optional(d, in->latency_reason);
	out->lost_because = get_optional(d, in->lost_because);
}

static void decode_summary(struct fw_decoder *d, const Frag__V1__Summary *in,
			   struct fragi_summary *out)
{
	struct fragi_summary_fragment *fragments;
	struct fragi_summary_flow *flows;
	struct fw_failure failure;
	uint32_t count;

	out->application = fw_get_text(d, in->application);
	out->result = fw_get_result(d, in->result);
	fw_get_failure(d, in->failure, &failure);
	out->failure.code = failure.code;
	if (failure.code != FRAGI_FAILURE_NONE) {
		out->failure.sentence = failure.sentence;
		out->failure.op = failure.op[0] != '\0' ? failure.op : NULL;
		out->failure.worker = get_optional(d, in->worker);
	}
	out->exit_code = fw_get_exit_code(d, in->exit_code);
	out->started_unix_ns = fw_get_duration(d, in->started_unix_ns);
	out->first_message_ns = fw_get_duration(d, in->first_message_ns);
	out->duration_ns = fw_get_duration(d, in->duration_ns);
	out->shutdown_ns = fw_get_duration(d, in->shutdown_ns);
	fragments = fw_get_rows(d, in->n_fragments, FW_ROWS_MAX, sizeof(*fragments), &count);
	for (uint32_t i = 0; i < count; i++)
		decode_fragment(d, in->fragments[i], &fragments[i]);
	out->fragments = fragments;
	out->fragment_count = count;
	flows = fw_get_rows(d, in->n_flows, FW_ROWS_MAX, sizeof(*flows), &count);
	for (uint32_t i = 0; i < count; i++)
		decode_flow(d, in->flows[i], &flows[i]);
	out->flows = flows;
	out->flow_count = count;
}

void fw_decode_outcome(struct fw_decoder *d, const Frag__V1__Outcome *in,
		       struct fw_message *message)
{
	struct fw_outcome *out = &message->outcome;

	out->name = fw_get_text(d, in->name);
	if (in->reached < FW_RUNNING || in->reached > FW_ENDED)
		fw_get_failed(d, "an unknown milestone");
	out->reached = (enum fw_milestone)in->reached;
	out->left_out = in->left_out;
	if (out->reached == FW_ENDED && in->summary == NULL)
		fw_get_failed(d, "no summary");
	else if (out->reached == FW_ENDED)
		decode_summary(d, in->summary, &out->summary);
}
