/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_DETECT_BOX_H
#define INFERENCE_DETECT_BOX_H

#include "detections.h"

/* A tensor of numbers. */
struct detect_numbers {
	const void *data; /* NULL: there is none */
	int32_t kind;     /* of enum detect_kind */
};
enum detect_kind { DETECT_F32, DETECT_I32, DETECT_I64 };

/* What the kernels write for the CPU, into pinned memory. */
struct detect_result {
	uint32_t count;       /* of detections that are left */
	uint32_t nan_box;     /* the first box that is not a number; UINT32_MAX: none */
	uint32_t bad_picture; /* the first one with no number of boxes; UINT32_MAX: none */
	uint32_t unused;
	struct detection kept[]; /* the best first */
};

/* What is found, and what of it counts: of both bodies of detection_postprocessor. */
struct detect_job {
	const float *boxes, *scores;
	const float *regions; /* NULL: the boxes are of the whole frame */
	struct detect_numbers classes, valid;
	uint32_t count;     /* boxes */
	uint32_t in_region; /* boxes of each region */
	uint32_t columns;   /* scores of each box */
	uint32_t pictures;  /* regions, or 1 */
	int32_t layout;
	float box_width, box_height, score_threshold, most, inside;
	int64_t first_class;
	const unsigned char *keep; /* [labels + 1]: whether boxes of this label are kept */
	int64_t labels;
	const float *keypoints; /* [count][of_box][keypoint_values]; NULL: there are none */
	uint32_t of_box, keypoint_values;
	/* of the GPU alone */
	uint32_t most_kept;
	struct detection *candidates, *sorted; /* [count] each */
	uint32_t *ranks;                       /* [count]: of the candidates */
	unsigned char *gone;                   /* [count] */
	uint32_t *candidate_count;
	struct detect_result *result;
	float *kept_keypoints; /* [most_kept][of_box][3], in pinned memory */
};

GPU_INLINE double detect_number(const struct detect_numbers *numbers, uint64_t i)
{
	if (numbers->kind == DETECT_F32)
		return (double)((const float *)numbers->data)[i];
	return numbers->kind == DETECT_I32 ? (double)((const int32_t *)numbers->data)[i]
					   : (double)((const int64_t *)numbers->data)[i];
}

GPU_INLINE bool detect_is_nan(double x)
{
	return !(x == x);
}

/* Reads score and class of a box. Returns false when a number is NaN. */
GPU_INLINE bool detect_read_score(const struct detect_job *job, uint32_t box, struct detection *out)
{
	const float *scores = job->scores + (uint64_t)box * job->columns;
	double label = 0.0;
	uint32_t best = 0;

	for (uint32_t c = 0; c < job->columns; c++) {
		if (detect_is_nan((double)scores[c]))
			return false;
		if (scores[c] > scores[best])
			best = c;
	}
	out->score = scores[best];
	out->number = box;
	if (job->columns > 1)
		label = best;
	if (job->classes.data != NULL)
		label = detect_number(&job->classes, box);
	if (detect_is_nan(label))
		return false;
	out->label = (int32_t)lrint(fmin(fmax(label, -1e9), 1e9));
	return true;
}

/* Reads where a box is. Returns false when it does not count. */
GPU_INLINE bool detect_read_place(const struct detect_job *job, uint32_t box, struct detection *out)
{
	uint32_t picture = box / job->in_region;

	if (job->valid.data != NULL &&
	    (double)(box % job->in_region) >= detect_number(&job->valid, picture))
		return false;
	if (!detection_read_box(out, (enum detection_layout)job->layout,
				job->boxes + 4 * (uint64_t)box, job->box_width, job->box_height))
		return false;
	return job->regions == NULL || detection_move(out, job->regions + 4 * (uint64_t)picture);
}

GPU_INLINE bool detect_is_kept(const struct detect_job *job, const struct detection *detection)
{
	int64_t i = detection->label - job->first_class;

	return job->keep == NULL || job->keep[i >= 0 && i < job->labels ? i : job->labels] != 0;
}

GPU_INLINE bool detect_has_nan(const float *box)
{
	return detect_is_nan((double)box[0]) || detect_is_nan((double)box[1]) ||
	       detect_is_nan((double)box[2]) || detect_is_nan((double)box[3]);
}

/* Keypoint k of a box: x, y and score. */
GPU_INLINE void detect_keypoint(const struct detect_job *job, uint32_t box, uint32_t k, float *out)
{
	const float *in = job->keypoints + ((uint64_t)box * job->of_box + k) * job->keypoint_values;
	const float *region = job->regions;

	out[0] = in[0] / job->box_width;
	out[1] = in[1] / job->box_height;
	out[2] = job->keypoint_values == 3 ? in[2] : 1.0f;
	if (region == NULL)
		return;
	region += 4 * (uint64_t)(box / job->in_region);
	out[0] = region[0] + out[0] * (region[2] - region[0]);
	out[1] = region[1] + out[1] * (region[3] - region[1]);
}

enum detect_answer { DETECT_NOTHING, DETECT_FOUND, DETECT_NAN };

/* Reads a box. */
GPU_INLINE enum detect_answer detect_read(const struct detect_job *job, uint32_t box,
					  struct detection *out)
{
	if (!detect_read_score(job, box, out) || detect_has_nan(job->boxes + 4 * (uint64_t)box))
		return DETECT_NAN;
	return out->score >= job->score_threshold && detect_read_place(job, box, out) &&
			       detect_is_kept(job, out)
		       ? DETECT_FOUND
		       : DETECT_NOTHING;
}

/* The kernels, in this order. */

GPU_INLINE void detect_begin(const struct detect_job *job, int x, int y)
{
	if (x != 0 || y != 0)
		return;
	*job->candidate_count = 0;
	job->result->count = 0;
	job->result->nan_box = job->result->bad_picture = UINT32_MAX;
}

/* Lists the boxes that stand out, in any order. */
GPU_INLINE void detect_box(const struct detect_job *job, int x, int y)
{
	const uint32_t box = (uint32_t)x;
	struct detection found;
	enum detect_answer answer;

	if (y != 0)
		return;
	if (box < job->pictures && job->valid.data != NULL &&
	    !(detect_number(&job->valid, box) >= 0.0))
		GPU_MIN(&job->result->bad_picture, box);
	if (box >= job->count)
		return;
	answer = detect_read(job, box, &found);
	if (answer == DETECT_NAN)
		GPU_MIN(&job->result->nan_box, box);
	else if (answer == DETECT_FOUND) {
		const uint32_t place = GPU_ADD(job->candidate_count, 1u);

		job->candidates[place] = found;
		job->ranks[place] = 0;
	}
}

#define DETECT_COMPARED 32 /* candidates that a thread compares with one */

/* Adds to the rank of candidate x how many of some candidates are better. */
GPU_INLINE void detect_rank(const struct detect_job *job, int x, int y)
{
	const uint32_t count = *job->candidate_count, first = (uint32_t)y * DETECT_COMPARED;
	const uint32_t last = first + DETECT_COMPARED < count ? first + DETECT_COMPARED : count;
	struct detection mine;
	uint32_t better = 0;

	if ((uint32_t)x >= count || first >= count)
		return;
	mine = job->candidates[x];
	for (uint32_t i = first; i < last; i++)
		better += detection_is_better(&job->candidates[i], &mine);
	if (better > 0)
		(void)GPU_ADD(&job->ranks[x], better);
}

/*
 * One block: sorts the candidates, the best first, keeps the best that is left, and removes what it
 * suppresses, until none is left.
 */
GPU_INLINE void detect_suppress(const struct detect_job *job, int thread, int threads)
{
	const uint32_t count = *job->candidate_count;
	uint32_t kept = 0;

	for (uint32_t i = (uint32_t)thread; i < count; i += (uint32_t)threads) {
		job->sorted[job->ranks[i]] = job->candidates[i];
		job->gone[i] = 0;
	}
	GPU_SYNC();
	for (uint32_t i = 0; i < count && kept < job->most_kept; i++) {
		if (job->gone[i] != 0)
			continue;
		if (thread == 0)
			job->result->kept[kept] = job->sorted[i];
		kept++;
		for (uint32_t k = i + 1 + (uint32_t)thread; k < count; k += (uint32_t)threads)
			if (job->gone[k] == 0 &&
			    detection_suppresses(&job->sorted[i], &job->sorted[k], job->most,
						 job->inside))
				job->gone[k] = 1;
		GPU_SYNC();
	}
	if (thread == 0)
		job->result->count = kept;
}

/* Keypoint x of the y-th detection that is left, after detect_suppress. */
GPU_INLINE void detect_keypoints(const struct detect_job *job, int x, int y)
{
	if ((uint32_t)x < job->of_box && (uint32_t)y < job->result->count)
		detect_keypoint(job, job->result->kept[y].number, (uint32_t)x,
				job->kept_keypoints +
					3 * ((uint64_t)y * job->of_box + (uint32_t)x));
}

#endif
