// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <data/label.h>

struct fragi_label *fragi_label_create(size_t step_count)
{
	struct fragi_label *label =
		fragi_malloc(sizeof(*label) + step_count * sizeof(label->steps[0]));

	if (label == NULL)
		return NULL;
	atomic_init(&label->refs, 1);
	label->step_count = (uint32_t)step_count;
	return label;
}

void fragi_label_unref(struct fragi_label *label)
{
	if (atomic_fetch_sub_explicit(&label->refs, 1, memory_order_acq_rel) == 1)
		fragi_free(label);
}
