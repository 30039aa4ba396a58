// SPDX-License-Identifier: Apache-2.0
#include <wire/body.h>

/* Bodies of APPLY and CHANGES. */

void fw_encode_apply(struct fw_encoder *e, const struct fw_message *message, Frag__V1__Apply *out)
{
	const struct fw_apply *in = &message->apply;

	out->name = fw_put_text(e, in->name);
	out->source = fw_put_data(e, in->source, in->source_bytes, FW_FRAME_MAX);
	out->only_shows = in->only_shows;
}

void fw_decode_apply(struct fw_decoder *d, const Frag__V1__Apply *in, struct fw_message *message)
{
	struct fw_apply *out = &message->apply;

	out->name = fw_get_name(d, in->name, false);
	out->source = fw_get_data(d, in->source, FW_FRAME_MAX, &out->source_bytes);
	out->only_shows = in->only_shows != 0;
}

static enum fw_effect get_effect(struct fw_decoder *d, uint32_t effect)
{
	if (effect > FW_EFFECT_APPLICATION)
		fw_get_failed(d, "an unknown effect");
	return (enum fw_effect)effect;
}

void fw_encode_changes(struct fw_encoder *e, const struct fw_message *message,
		       Frag__V1__Changes *out)
{
	const struct fw_changes *in = &message->changes;

	out->rows = fw_put_rows(e, &frag__v1__change__descriptor, in->count, FW_CHANGES_MAX,
				&out->n_rows);
	for (size_t i = 0; i < out->n_rows; i++) {
		out->rows[i]->effect = (uint32_t)in->rows[i].effect;
		out->rows[i]->what = fw_put_text(e, in->rows[i].what);
		out->rows[i]->set = fw_put_text(e, in->rows[i].set);
	}
	out->more = in->more;
	out->effect = (uint32_t)in->effect;
	out->restarts = fw_put_text(e, in->restarts);
}

void fw_decode_changes(struct fw_decoder *d, const Frag__V1__Changes *in,
		       struct fw_message *message)
{
	struct fw_changes *out = &message->changes;

	out->rows = fw_get_rows(d, in->n_rows, FW_CHANGES_MAX, sizeof(*out->rows), &out->count);
	for (uint32_t i = 0; i < out->count; i++)
		out->rows[i] = (struct fw_change){
			.effect = get_effect(d, in->rows[i]->effect),
			.what = fw_get_text(d, in->rows[i]->what),
			.set = fw_get_text(d, in->rows[i]->set),
		};
	out->more = in->more;
	out->effect = get_effect(d, in->effect);
	out->restarts = fw_get_text(d, in->restarts);
}
