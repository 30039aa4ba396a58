// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <base/units.h>
#include <wire/body.h>

/* Bodies about workers: EXPLAIN and EXPLANATION, why fragments run where they do; DRAIN. */

void fw_encode_explain(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Explain *out)
{
	out->name = fw_put_text(e, message->explain.name);
	out->what = fw_put_text(e, message->explain.what);
}

void fw_decode_explain(struct fw_decoder *d, const Frag__V1__Explain *in,
		       struct fw_message *message)
{
	if (!fragi_name_is_valid(in->name))
		fw_get_failed(d, "a name that no application can have");
	message->explain.name = fw_get_text(d, in->name);
	message->explain.what = fw_get_text(d, in->what);
}

static void encode_placement(struct fw_encoder *e, const struct fw_placement_row *in,
			     Frag__V1__Placement *out)
{
	out->fragment = fw_put_text(e, in->fragment);
	out->worker = fw_put_text(e, in->worker);
	out->required = fw_put_text(e, in->required);
	out->reason = fw_put_text(e, in->reason);
	out->no_limits = fw_put_text(e, in->no_limits);
	out->others = fw_put_rows(e, &frag__v1__other_worker__descriptor, in->other_count,
				  FW_ROWS_MAX, &out->n_others);
	for (size_t i = 0; i < out->n_others; i++) {
		out->others[i]->worker = fw_put_text(e, in->others[i].worker);
		out->others[i]->reason = fw_put_text(e, in->others[i].reason);
		out->others[i]->fits = in->others[i].fits;
	}
	out->others_beyond = in->others_beyond;
}

void fw_encode_explanation(struct fw_encoder *e, const struct fw_message *message,
			   Frag__V1__Explanation *out)
{
	const struct fw_explanation *in = &message->explanation;

	out->name = fw_put_text(e, in->name);
	out->state = fw_put_text(e, in->state);
	out->placements = fw_put_rows(e, &frag__v1__placement__descriptor, in->placement_count,
				      FW_ROWS_MAX, &out->n_placements);
	for (size_t i = 0; i < out->n_placements; i++)
		encode_placement(e, &in->placements[i], out->placements[i]);
	out->routes = fw_put_rows(e, &frag__v1__route__descriptor, in->route_count, FW_ROWS_MAX,
				  &out->n_routes);
	for (size_t i = 0; i < out->n_routes; i++) {
		out->routes[i]->from = fw_put_text(e, in->routes[i].from);
		out->routes[i]->to = fw_put_text(e, in->routes[i].to);
		out->routes[i]->edge = fw_put_text(e, in->routes[i].edge);
		out->routes[i]->encrypted = in->routes[i].encrypted;
		out->routes[i]->reason = fw_put_text(e, in->routes[i].reason);
	}
	out->more = in->more;
}

static void decode_placement(struct fw_decoder *d, const Frag__V1__Placement *in,
			     struct fw_placement_row *out)
{
	out->fragment = fw_get_text(d, in->fragment);
	out->worker = fw_get_text(d, in->worker);
	out->required = fw_get_text(d, in->required);
	out->reason = fw_get_text(d, in->reason);
	out->no_limits = fw_get_text(d, in->no_limits);
	out->others =
		fw_get_rows(d, in->n_others, FW_ROWS_MAX, sizeof(*out->others), &out->other_count);
	for (uint32_t i = 0; i < out->other_count; i++)
		out->others[i] = (struct fw_other_row){
			.worker = fw_get_text(d, in->others[i]->worker),
			.reason = fw_get_text(d, in->others[i]->reason),
			.fits = in->others[i]->fits != 0,
		};
	out->others_beyond = in->others_beyond;
}

void fw_decode_explanation(struct fw_decoder *d, const Frag__V1__Explanation *in,
			   struct fw_message *message)
{
	struct fw_explanation *out = &message->explanation;

	out->name = fw_get_text(d, in->name);
	out->state = fw_get_text(d, in->state);
	out->placements = fw_get_rows(d, in->n_placements, FW_ROWS_MAX, sizeof(*out->placements),
				      &out->placement_count);
	for (uint32_t i = 0; i < out->placement_count; i++)
		decode_placement(d, in->placements[i], &out->placements[i]);
	out->routes =
		fw_get_rows(d, in->n_routes, FW_ROWS_MAX, sizeof(*out->routes), &out->route_count);
	for (uint32_t i = 0; i < out->route_count; i++)
		out->routes[i] = (struct fw_route_row){
			.from = fw_get_text(d, in->routes[i]->from),
			.to = fw_get_text(d, in->routes[i]->to),
			.edge = fw_get_text(d, in->routes[i]->edge),
			.encrypted = in->routes[i]->encrypted != 0,
			.reason = fw_get_text(d, in->routes[i]->reason),
		};
	out->more = in->more;
}

void fw_encode_drain(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Drain *out)
{
	out->worker = fw_put_text(e, message->drain.worker);
	out->undo = message->drain.undo;
}

void fw_decode_drain(struct fw_decoder *d, const Frag__V1__Drain *in, struct fw_message *message)
{
	if (in->worker[0] == '\0' || strlen(in->worker) > FW_WORKER_NAME_MAX)
		fw_get_failed(d, "a name that no worker can have");
	message->drain.worker = fw_get_text(d, in->worker);
	message->drain.undo = in->undo != 0;
}
