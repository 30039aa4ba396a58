/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_DIFFERENCE_H
#define DRV_DIFFERENCE_H

#include <text/spec.h>
#include <wire/message.h>

/*
 * The differences between two graphs of an application, as lines for people, and what each of them
 * needs at least: a parameter's value (SET), a restart of its fragment, or of the application.
 * Zeroed: no difference. What a driver decides once for a run (operators, ports, flows, where
 * fragments run) needs a restart of the application.
 */
struct drv_difference {
	struct fw_change change;
	const char *fragment, *op, *param; /* NULL: it is about more than that */
};
struct drv_differences {
	struct drv_difference rows[FW_CHANGES_MAX];
	uint32_t count, more;
	enum fw_effect more_effect; /* the largest of those that there was no room for */
	struct fragi_arena *arena;  /* of texts */
	bool out_of_memory;
};
void drv_difference_find(const struct fragi_spec *before, const struct fragi_spec *after,
			 struct drv_differences *out);

#endif
