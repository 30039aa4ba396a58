// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <wire/body.h>

/*
 * Bodies of the messages that report on a host: HOST_EVENT, HOST_STATS, HOST_EXIT.
 */

void fw_encode_host_event(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__HostEvent *out)
{
	const struct fw_host_event *in = &message->event;

	out->state = (uint32_t)in->state;
	out->peer = in->peer;
	out->peer_epoch = in->peer_epoch;
	out->failure = fw_put_failure(e, &in->failure);
	out->idle_rounds = in->idle_rounds;
	out->sent = in->sent;
	out->delivered = in->delivered;
}

void fw_decode_host_event(struct fw_decoder *d, const Frag__V1__HostEvent *in,
			  struct fw_message *message)
{
	struct fw_host_event *out = &message->event;

	if (in->state < FW_STATE_RUNNING || in->state > FW_STATE_STOPPED)
		fw_get_failed(d, "an unknown state");
	out->state = (enum fw_host_state)in->state;
	out->peer = in->peer;
	out->peer_epoch = in->peer_epoch;
	fw_get_failure(d, in->failure, &out->failure);
	out->idle_rounds = in->idle_rounds;
	out->sent = in->sent;
	out->delivered = in->delivered;
}

static void encode_flow_stats(struct fw_encoder *e, const struct fragi_flow_stats *in,
			      Frag__V1__FlowStats *out)
{
	out->sender = fw_put_numbers(e, in->counters, FRAGI_SENDER_COUNTERS, &out->n_sender);
	out->receiver = fw_put_numbers(e, in->counters + FRAGI_SENDER_COUNTERS,
				       FRAGI_RECEIVER_COUNTERS, &out->n_receiver);
	out->tx_dropped = fw_put_numbers(e, in->tx_dropped, FRAGI_DROP_REASONS, &out->n_tx_dropped);
	out->rx_dropped = fw_put_numbers(e, in->rx_dropped, FRAGI_DROP_REASONS, &out->n_rx_dropped);
	out->latency = fw_put_quantiles(e, &in->latency);
}

void fw_encode_host_stats(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__HostStats *out)
{
	const struct fw_host_stats *in = &message->stats;

	out->final = in->final;
	out->ops = fw_put_rows(e, &frag__v1__op_stats__descriptor, in->op_count, FW_ROWS_MAX,
			       &out->n_ops);
	for (size_t i = 0; i < out->n_ops; i++) {
		out->ops[i]->state = in->ops[i].state;
		out->ops[i]->running = in->ops[i].running;
		out->ops[i]->ticks = in->ops[i].ticks;
		out->ops[i]->compute = fw_put_quantiles(e, &in->ops[i].compute);
		out->ops[i]->time_ns = in->ops[i].time_ns;
		out->ops[i]->waiting_ns = in->ops[i].waiting_ns;
		out->ops[i]->counters = fw_put_numbers(e, in->ops[i].counters, FRAGI_OP_COUNTERS,
						       &out->ops[i]->n_counters);
		out->ops[i]->realtime =
			fw_put_realtime(e, &in->ops[i].realtime, &out->ops[i]->n_realtime);
	}
	out->flows = fw_put_rows(e, &frag__v1__flow_stats__descriptor, in->flow_count, FW_ROWS_MAX,
				 &out->n_flows);
	for (size_t i = 0; i < out->n_flows; i++)
		encode_flow_stats(e, &in->flows[i], out->flows[i]);
}

/* A newer peer may count reasons that this side does not know: they are added to the last one. */
static void reasons(const uint64_t *in, size_t count, uint64_t *out)
{
	for (size_t i = 0; i < count; i++)
		out[i < FRAGI_DROP_REASONS ? i : FRAGI_DROP_REASONS - 1] += in[i];
}

static void decode_flow_stats(const Frag__V1__FlowStats *in, struct fragi_flow_stats *out)
{
	fw_get_numbers(in->sender, in->n_sender, out->counters, FRAGI_SENDER_COUNTERS);
	fw_get_numbers(in->receiver, in->n_receiver, out->counters + FRAGI_SENDER_COUNTERS,
		       FRAGI_RECEIVER_COUNTERS);
	reasons(in->tx_dropped, in->n_tx_dropped, out->tx_dropped);
	reasons(in->rx_dropped, in->n_rx_dropped, out->rx_dropped);
	fw_get_quantiles(in->latency, &out->latency);
}

void fw_decode_host_stats(struct fw_decoder *d, const Frag__V1__HostStats *in,
			  struct fw_message *message)
{
	struct fw_host_stats *out = &message->stats;

	out->final = in->final != 0;
	out->ops = fw_get_rows(d, in->n_ops, FW_ROWS_MAX, sizeof(*out->ops), &out->op_count);
	for (uint32_t i = 0; i < out->op_count; i++) {
		out->ops[i].state = in->ops[i]->state;
		out->ops[i].running = in->ops[i]->running != 0;
		out->ops[i].ticks = in->ops[i]->ticks;
		fw_get_quantiles(in->ops[i]->compute, &out->ops[i].compute);
		out->ops[i].time_ns = in->ops[i]->time_ns;
		out->ops[i].waiting_ns = in->ops[i]->waiting_ns;
		fw_get_numbers(in->ops[i]->counters, in->ops[i]->n_counters, out->ops[i].counters,
			       FRAGI_OP_COUNTERS);
		fw_get_realtime(in->ops[i]->realtime, in->ops[i]->n_realtime,
				&out->ops[i].realtime);
	}
	out->flows =
		fw_get_rows(d, in->n_flows, FW_ROWS_MAX, sizeof(*out->flows), &out->flow_count);
	for (uint32_t i = 0; i < out->flow_count; i++)
		decode_flow_stats(in->flows[i], &out->flows[i]);
}

void fw_encode_host_exit(struct fw_encoder *e, const struct fw_message *message,
			 Frag__V1__HostExit *out)
{
	const struct fw_host_exit *in = &message->exit;
	size_t lines = in->line_count < FW_LINES_MAX ? in->line_count : FW_LINES_MAX;
	const char *const *last =
		lines > 0 ? (const char *const *)in->lines + (in->line_count - lines) : NULL;

	out->exit_code = in->exit_code;
	out->signal = in->signal;
	out->failure = fw_put_failure(e, &in->failure);
	out->lines = fw_put_texts(e, last, lines, FW_LINES_MAX, &out->n_lines);
	out->asked = in->asked;
}

void fw_decode_host_exit(struct fw_decoder *d, const Frag__V1__HostExit *in,
			 struct fw_message *message)
{
	struct fw_host_exit *out = &message->exit;

	if (in->signal < 0 || in->signal > 127)
		fw_get_failed(d, "a signal out of range");
	out->exit_code = fw_get_exit_code(d, in->exit_code);
	out->signal = in->signal;
	fw_get_failure(d, in->failure, &out->failure);
	out->lines = fw_get_texts(d, in->lines, in->n_lines, FW_LINES_MAX, &out->line_count);
	out->asked = in->asked;
}
