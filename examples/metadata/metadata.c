// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>

#include <frag/frag.h>

/* Sends a number, with metadata of three types. */
enum { TX_OUT };
static const struct frag_port frame_tx_ports[] = {
	[TX_OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};

static int frame_tx_compute(void *state, struct frag_tick *tick)
{
	struct frag_metadata *metadata = frag_tick_metadata(tick);
	int64_t frame = (int64_t)frag_tick_count(tick);
	int r;

	(void)state;
	if ((r = frag_metadata_set_i64(metadata, "frame", frame)) < 0 ||
	    (r = frag_metadata_set_f64(metadata, "exposure_ms", 8.5)) < 0 ||
	    (r = frag_metadata_set_string(metadata, "camera", "front")) < 0)
		return r;
	return frag_tick_emit_i64(tick, TX_OUT, frame); /* sends the metadata as it is now */
}

static const struct frag_op_type frame_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "frame_tx",
	.headline = "Sends numbers with metadata",
	FRAG_PORTS(frame_tx_ports),
	.compute = frame_tx_compute,
};

/* Passes messages on, and adds a key. What it received is in the tick's metadata already. */
struct note {
	const char *side;
};

enum { NOTE_IN, NOTE_OUT };
static const struct frag_port note_ports[] = {
	[NOTE_IN] = {.name = "in", .dir = FRAG_IN},
	[NOTE_OUT] = {.name = "out", .dir = FRAG_OUT},
};
static const struct frag_param note_params[] = {
	FRAG_PARAM_STRING(struct note, side, NULL, .headline = "What to note",
			  .flags = FRAG_PARAM_REQUIRED),
};

static int note_compute(void *state, struct frag_tick *tick)
{
	const struct note *note = state;
	const struct frag_message *message;
	int r = frag_tick_receive(tick, NOTE_IN, &message);

	if (r == 0)
		r = frag_metadata_set_string(frag_tick_metadata(tick), "side", note->side);
	if (r < 0)
		return r;
	return frag_tick_emit(tick, NOTE_OUT, frag_message_ref(message));
}

static const struct frag_op_type note_type = {
	FRAG_OP_TYPE_INIT,
	.name = "note",
	.headline = "Adds a key to the metadata",
	.state_size = sizeof(struct note),
	FRAG_PORTS(note_ports),
	FRAG_PARAMS(note_params),
	.compute = note_compute,
};

/* Prints the metadata of all that it receives, merged under its policy. */
enum { RECEIVERS };
static const struct frag_port metadata_rx_ports[] = {
	[RECEIVERS] = {.name = "receivers", .dir = FRAG_IN, .flags = FRAG_PORT_MULTI},
};

static int metadata_rx_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *const *messages;
	const struct frag_metadata *metadata = frag_tick_metadata(tick);
	int r = frag_tick_receive_all(tick, RECEIVERS, &messages);
	const char *camera, *side;
	double exposure_ms;
	int64_t frame;

	(void)state;
	if (r < 0)
		return r;
	if ((r = frag_metadata_get_i64(metadata, "frame", &frame)) < 0 ||
	    (r = frag_metadata_get_f64_or(metadata, "exposure_ms", 0, &exposure_ms)) < 0 ||
	    (r = frag_metadata_get_string(metadata, "camera", &camera)) < 0 ||
	    (r = frag_metadata_get_string_or(metadata, "side", "none", &side)) < 0)
		return r;
	frag_op_log(frag_tick_op(tick), "frame %" PRId64 " of %s, %g ms, %s; %" PRIu32 " keys",
		    frame, camera, exposure_ms, side, frag_metadata_count(metadata));
	return 0;
}

static const struct frag_op_type metadata_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "metadata_rx",
	.headline = "Prints the metadata of what it receives",
	FRAG_PORTS(metadata_rx_ports),
	.compute = metadata_rx_compute,
};

static const struct frag_op_type *const ops[] = {&frame_tx_type, &note_type, &metadata_rx_type};
FRAG_PLUGIN(.name = "metadata", .version = "1.0.0", FRAG_OPS(ops));
