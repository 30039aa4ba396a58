// SPDX-License-Identifier: Apache-2.0
/*
 * The application from its frames on: a composer, so that other applications can have it as a
 * fragment. Where the frames come from is left to the graph, which ends a flow at small.in.
 */
#include <frag/frag.h>

extern const struct frag_op_type street_state_type;

static int compose(struct frag_fragment *f)
{
	const char *models = frag_fragment_argument(f, "models");
	struct frag_op *small = frag_make_operator(
		f, "small", "resize",
		FRAG_ARGS({"width", "300"}, {"height", "300"}, {"mode", "area"}));
	struct frag_op *classify = frag_make_operator(
		f, "classify", "inference",
		FRAG_ARGS({"model_folder", models != NULL ? models : ""},
			  {"model_path_map", "{person: person-detection.xml}"},
			  {"pre_processor_map", "{person: ['']}"},
			  {"inference_map", "{person: ['detection_scores:0']}"}));
	struct frag_op *street =
		frag_make_operator(f, "street", "street_state",
				   FRAG_ARGS({"scores_tensor_name", "detection_scores:0"}));

	frag_add_flow(f, small, NULL, classify, NULL);
	return frag_add_flow(f, classify, NULL, street, NULL);
}

static const struct frag_op_type *const ops[] = {&street_state_type};
static const struct frag_composer composers[] = {
	{"empty_street", "Says whether the street is empty; frames end at small.in", compose},
};
FRAG_PLUGIN(.name = "empty_street", .version = "1.0.0", FRAG_OPS(ops), FRAG_COMPOSERS(composers));
