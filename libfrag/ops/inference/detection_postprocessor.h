/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_DETECTION_POSTPROCESSOR_H
#define INFERENCE_DETECTION_POSTPROCESSOR_H

#include "../gpu/twin.h"
#include "detect_box.h"

/* More boxes than any network makes. */
#define BOXES_MAX 100000

struct detection_postprocessor {
	const char *boxes_tensor_name, *scores_tensor_name, *classes_tensor_name;
	const char *count_tensor_name, *regions_tensor_name, *keypoints_tensor_name;
	int64_t keypoint_values;
	const char *box_layout;
	double box_width, box_height;
	double score_threshold, iou_threshold, inside_threshold;
	int64_t max_detections, first_class;
	struct frag_string_list labels, keep_labels;
	struct frag_resource *allocator, *cuda_stream_pool;

	struct detect_job job;    /* what does not change is in it from setup on */
	struct frag_tensor *keep; /* of job.keep, in pinned memory where a GPU needs it */
	struct detection *detections;
	size_t capacity;

	struct gpu_twin twin;
	struct frag_tensor *result; /* pinned: struct detect_result */
	bool is_pending;            /* the tick waits for the GPU */
	const struct frag_message *const *messages;
	int flows;
};

/* The tensors of the current messages. */
enum { BOXES, SCORES, CLASSES, VALID, REGIONS, KEYPOINTS, ROLES };
struct detection_found {
	const struct frag_tensor *tensors[ROLES]; /* NULL: there is none */
	struct frag_tensor *copies[ROLES];        /* of those that the GPU cannot read */
	bool on_gpu;
};

/* Word failures in the operator; return them. */
int detection_fail_nan(struct frag_op *op, size_t box);
int detection_fail_count(const struct detection_postprocessor *dp, struct frag_op *op,
			 size_t picture);
/* Makes the list at least as long as `count`. Returns 0 or -ENOMEM. */
int detection_reserve(struct detection_postprocessor *dp, size_t count);

/*
 * The body for GPUs (detection_gpu.c): searches what dp->job names.
 * Returns 0: the work was given to the GPU; FRAG_PENDING: the same, and compute is called again
 * when it is done; or a failure that is worded in the operator.
 */
int detection_search_on_gpu(struct detection_postprocessor *dp, struct frag_tick *tick,
			    const struct detection_found *found);
/* Waits for that, and fills the list. Returns its length, or a failure that is worded. */
int64_t detection_collect(struct detection_postprocessor *dp, struct frag_tick *tick);

/*
 * Adds the keypoints of the detections that are left to a message, wherever they were searched.
 * Returns 0 or a negative errno.
 */
int detection_add_keypoints(const struct detection_postprocessor *dp, struct frag_message *message,
			    int64_t count);

#endif
