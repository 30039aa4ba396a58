/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_SAMPLES_H
#define CTL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes samples in Prometheus' text format 0.0.4. All samples of a metric stand together, so a
 * page goes through its rows once for each metric. Most of a sample is as in the one before, or as
 * in the row: it is copied in blocks from there. A thousand operators and as many flows are 49,000
 * samples.
 */
struct ctl_text {
	char *at;
	size_t size, capacity;
	bool is_short; /* of memory: what is added is dropped */
};

/* A label of a sample beside those of its row, as the page has it: ,NAME="VALUE" */
#define CTL_PAIR_BYTES 64
#define CTL_NAME_BYTES 96
struct ctl_pair {
	char text[CTL_PAIR_BYTES];
	size_t size;
};

/* The head of a sample that was written: its name and the labels of its row. */
struct ctl_sample_head {
	const char *suffix; /* compared as a pointer */
	size_t labels_at;
	size_t at, size; /* in the text of the page; 0: none of this metric */
};

struct ctl_samples {
	struct ctl_text out, labels;
	char name[CTL_NAME_BYTES]; /* of the metric that is being written */
	size_t name_size;
	struct ctl_sample_head head;
};

/* Labels of a row, in the text of all labels. */
struct ctl_labels {
	size_t at, size;
};

/* Begins the labels of a row, or with other ones of the same samples as its first. */
struct ctl_labels ctl_labels_begin(struct ctl_samples *samples, const struct ctl_labels *first);
/* NAME="VALUE", as the format wants it; what is no UTF-8 becomes "?". NULL: an empty value */
void ctl_labels_add(struct ctl_samples *samples, struct ctl_labels *labels, const char *name,
		    const char *value);

/* "# HELP" and "# TYPE" */
void ctl_samples_begin(struct ctl_samples *samples, const char *name, const char *type,
		       const char *help);
/* Of a name and a value that need no quoting; what is too long is cut. */
struct ctl_pair ctl_pair_of(const char *name, const char *value);
/* A sample of it: NAME SUFFIX{LABELS,PAIR} NUMBER. pair NULL: those of the row alone */
void ctl_sample(struct ctl_samples *samples, const char *suffix, const struct ctl_labels *labels,
		const struct ctl_pair *pair, uint64_t number);
/* The same with nanoseconds as seconds, exactly. */
void ctl_sample_seconds(struct ctl_samples *samples, const char *suffix,
			const struct ctl_labels *labels, const struct ctl_pair *pair, uint64_t ns);

#endif
