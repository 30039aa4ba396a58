/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LOOK_H
#define DRV_LOOK_H

#include <base/arena.h>
#include <wire/message.h>

/*
 * A part of state.h: where the time of an application goes (base/look.h), as the difference between
 * what its view has counted now and at the window before. Each client that looks keeps its own.
 */
struct drv_app;
struct drv_look_past;

/*
 * What was counted last of the application, kept in *past: owned by the caller, begun when it is
 * NULL. Fills in its tables for the window that ends now, with texts in the arena; in the first one
 * nothing is measured. rows: as in struct fw_look. Takes its rows from the items of the step.
 * Returns 0 or -ENOMEM.
 */
int drv_view_look(const struct drv_app *app, struct drv_look_past **past, uint64_t window_ns,
		  uint32_t rows, struct fragi_arena *arena, struct fragi_look *out);
/* Whether its tables are those that drv_view_look made last, as nothing has come from its hosts. */
bool drv_view_is_same(const struct drv_app *app, const struct drv_look_past *past);
/*
 * Leaves rows of tables out that are too long: the quietest ones, or what is beyond `rows`. The
 * others move up in ops and flows, which are the look's. Returns 0 or -ENOMEM.
 */
int drv_look_bound(struct fragi_look *look, struct fragi_look_operator *ops,
		   struct fragi_look_flow *flows, uint32_t rows, struct fragi_arena *arena);
/* What the graph says of an operator. */
struct drv_promise {
	uint64_t rate_mhz, budget_ns, period_ns; /* as struct fragi_look_operator has them */
	bool is_timed;                           /* it may drop messages for their time */
};
/* Of the first `count` operators. Returns 0 or -ENOMEM. */
int drv_promises_find(const struct drv_app *app, struct drv_promise *promises, size_t count);
/*
 * Returns the one that was empty longest of the pools of a fragment that an operator may wait for
 * (names: "frames, masks"); names, which may be NULL, where that is not known.
 */
const char *drv_look_emptiest(const struct fragi_look_pool *pools, uint32_t count, uint32_t host,
			      const char *fragment, const char *names);
void drv_look_past_free(struct drv_look_past *past); /* NULL is accepted */

#endif
