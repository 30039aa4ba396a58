// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "detection_postprocessor.h"

/* Brings the table of labels to where both read it. */
static int pin_keep(struct detection_postprocessor *dp)
{
	struct frag_tensor *pinned;
	int r = frag_tensor_copy(dp->keep, NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0},
				 &pinned, NULL);

	if (r < 0)
		return r;
	frag_tensor_unref(dp->keep);
	dp->keep = pinned;
	dp->job.keep = frag_tensor_data(pinned);
	return 0;
}

/* What the kernels write, and where they work. */
static int prepare(struct detection_postprocessor *dp, struct frag_tick *tick)
{
	struct detect_job *job = &dp->job;
	const uint32_t most =
		job->count < dp->max_detections ? job->count : (uint32_t)dp->max_detections;
	const size_t found = sizeof(struct detect_result) + most * sizeof(struct detection);
	const size_t points = job->keypoints != NULL ? most * job->of_box * 3 * sizeof(float) : 0;
	const int64_t bytes = (int64_t)(found + points);
	const size_t list = job->count * sizeof(struct detection);
	unsigned char *scratch = gpu_twin_scratch(
		&dp->twin, tick, 16 + 2 * list + job->count * (sizeof(uint32_t) + 1));
	int r = scratch != NULL ? 0 : -ENOMEM;

	if (r == 0 && (dp->result == NULL || (int64_t)frag_tensor_size_bytes(dp->result) < bytes)) {
		frag_tensor_unref(dp->result);
		dp->result = NULL;
		r = gpu_twin_create_pinned(&dp->twin, frag_tick_op(tick),
					   (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &bytes,
					   &dp->result);
	}
	if (r == 0 && dp->keep != NULL && frag_tensor_dl(dp->keep)->device.type == FRAG_DEVICE_CPU)
		r = pin_keep(dp);
	if (r < 0)
		return r;
	job->most_kept = most;
	job->candidate_count = (uint32_t *)(void *)scratch;
	job->candidates = (struct detection *)(void *)(scratch + 16);
	job->sorted = job->candidates + job->count;
	job->ranks = (uint32_t *)(void *)(job->sorted + job->count);
	job->gone = (unsigned char *)(job->ranks + job->count);
	job->result = frag_tensor_writable(dp->result);
	job->kept_keypoints = points > 0 ? (float *)(void *)((char *)job->result + found) : NULL;
	return 0;
}

int detection_search_on_gpu(struct detection_postprocessor *dp, struct frag_tick *tick,
			    const struct detection_found *found)
{
	struct gpu_twin *twin = &dp->twin;
	struct detect_job *job = &dp->job;
	const int64_t threads = job->count > job->pictures ? job->count : job->pictures;
	int r = gpu_twin_begin(twin, frag_tick_op(tick), gpu_of(found->tensors[BOXES]));

	if (r == 0)
		r = prepare(dp, tick);
	if (r == 0)
		r = gpu_twin_launch(twin, tick, "inference_detect_begin", job, 1, 1);
	if (r == 0)
		r = gpu_twin_launch(twin, tick, "inference_detect_box", job, threads, 1);
	if (r == 0)
		r = gpu_twin_launch(twin, tick, "inference_detect_rank", job, job->count,
				    ((int64_t)job->count + DETECT_COMPARED - 1) / DETECT_COMPARED);
	if (r == 0)
		r = gpu_twin_launch_block(twin, tick, "inference_detect_suppress", job);
	if (r == 0 && job->kept_keypoints != NULL)
		r = gpu_twin_launch(twin, tick, "inference_detect_keypoints", job, job->of_box,
				    job->most_kept);
	return r < 0 ? r : gpu_twin_await(twin, tick);
}

int64_t detection_collect(struct detection_postprocessor *dp, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct detect_result *result;
	int r = gpu_twin_wait(&dp->twin, tick);

	if (r < 0)
		return r;
	result = frag_tensor_data(dp->result);
	if (result->bad_picture != UINT32_MAX)
		return detection_fail_count(dp, op, result->bad_picture);
	if (result->nan_box != UINT32_MAX)
		return detection_fail_nan(op, result->nan_box);
	r = detection_reserve(dp, result->count);
	if (r < 0)
		return r;
	if (result->count > 0)
		memcpy(dp->detections, result->kept, result->count * sizeof(*dp->detections));
	return result->count;
}

int detection_add_keypoints(const struct detection_postprocessor *dp, struct frag_message *message,
			    int64_t count)
{
	const struct detect_job *job = &dp->job;
	const int64_t shape[] = {count, job->of_box, 3};
	struct frag_tensor *tensor;
	float *out;
	int r = frag_tensor_create(dp->allocator, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 3,
				   shape, &tensor);

	if (r < 0)
		return r;
	out = frag_tensor_writable(tensor);
	if (job->kept_keypoints != NULL && count > 0)
		memcpy(out, job->kept_keypoints, frag_tensor_size_bytes(tensor));
	for (int64_t i = 0; i < count && job->kept_keypoints == NULL; i++)
		for (uint32_t k = 0; k < job->of_box; k++, out += 3)
			detect_keypoint(job, dp->detections[i].number, k, out);
	return frag_message_add_tensor(message, "keypoints", tensor);
}
