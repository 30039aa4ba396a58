// SPDX-License-Identifier: Apache-2.0
/*
 * The application from its frames on: a composer, so that other applications can have it as a
 * fragment. Where the frames come from is left to the graph, which ends a flow at frames.in.
 */
#include <frag/frag.h>

extern const struct frag_op_type people_tracker_type;

static const char *argument(const struct frag_fragment *fragment, const char *name)
{
	const char *text = frag_fragment_argument(fragment, name);

	return text != NULL ? text : "";
}

/* Finds people in four parts of each frame; examples/people says why. */
static struct frag_op *make_detector(struct frag_fragment *f, struct frag_op *frames)
{
	struct frag_op *parts =
		frag_make_operator(f, "parts", "crop",
				   FRAG_ARGS({"width", "300"}, {"height", "300"},
					     {"regions", "[[0, 0.173611, 0.390625, 0.694444],"
							 " [0.203125, 0.173611, 0.59375, 0.694444],"
							 " [0.40625, 0.173611, 0.796875, 0.694444],"
							 " [0.609375, 0.173611, 1, 0.694444]]"}));
	struct frag_op *detect = frag_make_operator(
		f, "detect", "inference",
		FRAG_ARGS(
			{"model_folder", argument(f, "models")},
			{"model_path_map", "{person: person-detection.xml}"},
			{"pre_processor_map", "{person: ['']}"},
			{"inference_map",
			 "{person: ['detection_boxes:0', 'detection_scores:0', 'num_detections:0']}"}));
	struct frag_op *people = frag_make_operator(
		f, "people", "detection_postprocessor",
		FRAG_ARGS({"boxes_tensor_name", "detection_boxes:0"},
			  {"scores_tensor_name", "detection_scores:0"},
			  {"count_tensor_name", "num_detections:0"},
			  {"regions_tensor_name", "boxes"}, {"score_threshold", "0.33"},
			  {"inside_threshold", "0.7"}));

	frag_set_metadata_policy(people, FRAG_METADATA_UPDATE);
	frag_add_flow(f, frames, NULL, parts, "source_video");
	frag_add_flow(f, parts, NULL, detect, NULL);
	frag_add_flow(f, parts, NULL, people, NULL);
	frag_add_flow(f, detect, NULL, people, NULL);
	return people;
}

static struct frag_op *make_viewer(struct frag_fragment *f)
{
	struct frag_op *viewer = frag_make_operator(
		f, "viewer", "viewer",
		FRAG_ARGS(
			{"tensors",
			 "[{name: '', type: color},"
			 " {name: trails, type: lines, color: [0.3, 0.8, 1, 0.8], line_width: 2},"
			 " {name: rectangles, type: rectangles, color: [1, 0.6, 0], line_width: 2},"
			 " {name: number_places, type: text, numbers: numbers, color: [1, 0.9, 0.3]}]"}));

	frag_set_metadata_policy(viewer, FRAG_METADATA_UPDATE);
	return viewer;
}

static int compose(struct frag_fragment *f)
{
	struct frag_op *frames = frag_make_operator(f, "frames", "forward", FRAG_NO_ARGS);
	struct frag_op *people = make_detector(f, frames);
	struct frag_op *track = frag_make_operator(f, "track", "people_tracker", FRAG_NO_ARGS);
	struct frag_op *viewer = make_viewer(f);

	frag_add_flow(f, people, NULL, track, NULL);
	frag_add_flow(f, frames, NULL, viewer, NULL);
	return frag_add_flow(f, track, NULL, viewer, NULL);
}

static const struct frag_op_type *const ops[] = {&people_tracker_type};
static const struct frag_composer composers[] = {
	{"track_people", "Follows people in frames and shows them; frames end at frames.in",
	 compose},
};
FRAG_PLUGIN(.name = "track_people", .version = "1.0.0", FRAG_OPS(ops), FRAG_COMPOSERS(composers));
