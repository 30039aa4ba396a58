/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SOURCE_H
#define DRV_SOURCE_H

#include <driverd/core/state.h>

/*
 * The source of an application, from which its hosts are made: the graph, with what was given
 * beside it. A change while the application runs is a --set in it.
 */

/* A parameter that was changed. */
struct drv_parameter {
	struct drv_parameter *next; /* changed after it */
	int64_t at_ns;
	size_t name_bytes;       /* of text, before the '=' */
	const char *value, *who; /* in text */
	char text[];
};

/* Parses a packed source. Returns 0, or a negative errno with err. */
int drv_source_parse(const void *bytes, size_t size, struct fragi_spec **out_spec,
		     struct frag_err *err);
/*
 * Packs the source with these texts as its last --set, in place of those of the same names. Returns
 * 0, -EBADMSG, -EFBIG, -ENOMEM.
 */
int drv_source_pack(const struct drv_app *app, const char *const *texts, size_t text_count,
		    void **out_bytes, size_t *out_size);
/* The application's source is another one from now on, owned by it, which is kept. */
void drv_source_use(struct drv_app *app, void *bytes, size_t size);
/* Replaces the source likewise; the new one contains what was set. */
void drv_source_replace(struct drv_app *app, void *bytes, size_t size);
/* Forgets the changes of clients. */
void drv_source_forget_changes(struct drv_app *app);
/*
 * The application has failed before it ran with a changed graph: it starts again with the one
 * before. Returns whether it does.
 */
bool drv_source_undo(struct drv_app *app);
/* The run that follows takes the graph before over. */
void drv_source_follows(struct drv_app *app, struct drv_app *old);
/* Forgets the source from before a change: the application runs, and does not go back any more. */
void drv_source_forget_before(struct drv_app *app);
/* Returns the bytes of the sources of all applications, and of those that are to restart. */
size_t drv_source_bytes_of_all(const struct drv_core *core);
/*
 * Why the driver cannot keep so many bytes of source more, in place of `fewer` that it keeps now;
 * NULL: it can. In the arena of the step.
 */
const char *drv_source_no_room(struct drv_core *core, size_t fewer, size_t more);
/* That the source of one would be larger than it may be. In the arena of the step. */
const char *drv_source_too_large(const struct drv_app *app);
size_t drv_source_name_bytes(const char *set);             /* before the '='; 0: there is none */
bool drv_source_is_same_set(const char *a, const char *b); /* of the same name */

#endif
