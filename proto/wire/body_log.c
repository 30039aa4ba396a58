// SPDX-License-Identifier: Apache-2.0
#include <base/log.h>
#include <wire/body.h>

/* Bodies of WATCH_LOGS, LOGS and HOST_LINES. */

void fw_encode_watch_logs(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__WatchLogs *out)
{
	const struct fw_watch_logs *in = &message->watch_logs;

	out->name = fw_put_text(e, in->name);
	out->fragment = fw_put_text(e, in->fragment);
	out->operator_ = fw_put_text(e, in->op);
	out->after = in->after;
	out->follow = in->follow;
}

void fw_decode_watch_logs(struct fw_decoder *d, const Frag__V1__WatchLogs *in,
			  struct fw_message *message)
{
	struct fw_watch_logs *out = &message->watch_logs;

	out->name = fw_get_name(d, in->name, false);
	out->fragment = fw_get_name(d, in->fragment, true);
	out->op = fw_get_name(d, in->operator_, true);
	out->after = in->after;
	out->follow = in->follow != 0;
}

static Frag__V1__LogLine **encode_lines(struct fw_encoder *e, const struct fw_line *in,
					uint32_t count, size_t *out_count)
{
	Frag__V1__LogLine **rows =
		fw_put_rows(e, &frag__v1__log_line__descriptor, count, FW_LOG_ROWS_MAX, out_count);

	for (size_t i = 0; i < *out_count; i++) {
		rows[i]->number = in[i].number;
		rows[i]->unix_ns = in[i].unix_ns;
		rows[i]->level = in[i].level;
		rows[i]->worker = fw_put_text(e, in[i].worker);
		rows[i]->fragment = fw_put_text(e, in[i].fragment);
		rows[i]->operator_ = fw_put_text(e, in[i].op);
		rows[i]->text = fw_put_text(e, in[i].text);
	}
	return rows;
}

static struct fw_line *decode_lines(struct fw_decoder *d, Frag__V1__LogLine **in, size_t count,
				    uint32_t *out_count)
{
	struct fw_line *rows = fw_get_rows(d, count, FW_LOG_ROWS_MAX, sizeof(*rows), out_count);

	for (uint32_t i = 0; i < *out_count; i++) {
		if (in[i]->level >= FRAGI_LOG_OFF)
			fw_get_failed(d, "a line of an unknown level");
		rows[i] = (struct fw_line){
			.number = in[i]->number,
			.unix_ns = fw_get_duration(d, in[i]->unix_ns),
			.level = in[i]->level,
			.worker = fw_get_text(d, in[i]->worker),
			.fragment = fw_get_name(d, in[i]->fragment, true),
			.op = fw_get_name(d, in[i]->operator_, true),
			.text = fw_get_text(d, in[i]->text),
		};
	}
	return rows;
}

void fw_encode_logs(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Logs *out)
{
	const struct fw_logs *in = &message->logs;

	out->rows = encode_lines(e, in->rows, in->count, &out->n_rows);
	out->last = in->last;
}

void fw_decode_logs(struct fw_decoder *d, const Frag__V1__Logs *in, struct fw_message *message)
{
	struct fw_logs *out = &message->logs;

	out->rows = decode_lines(d, in->rows, in->n_rows, &out->count);
	out->last = in->last;
}

void fw_encode_host_lines(struct fw_encoder *e, const struct fw_message *message,
			  Frag__V1__HostLines *out)
{
	const struct fw_host_lines *in = &message->host_lines;

	out->rows = encode_lines(e, in->rows, in->count, &out->n_rows);
	out->left_out = in->left_out;
}

void fw_decode_host_lines(struct fw_decoder *d, const Frag__V1__HostLines *in,
			  struct fw_message *message)
{
	struct fw_host_lines *out = &message->host_lines;

	out->rows = decode_lines(d, in->rows, in->n_rows, &out->count);
	out->left_out = in->left_out;
}
