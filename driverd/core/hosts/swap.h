/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SWAP_H
#define DRV_SWAP_H

#include <driverd/core/state.h>

/*
 * A client replaces a library of a fragment while the application runs. That is a move of its host
 * to another process of the same worker (move.c), which is made from another source: the
 * application's with the new library as a --set of it (FRAGI_SPEC_SWAP), for all fragments of the
 * host that use the old one. Until the old process is asked to yield nothing has changed. From then
 * on this source is the application's, so that it is kept, and a process that is started again has
 * the new library too. When the new process fails before its probation is over, the source gets the
 * old library back, and the host is started again, whatever on_failure says.
 *
 * There is one swap of an application at a time. It ends with its probation, which the next driver
 * does not know of.
 */
#define DRV_PROBATION_NS_MAX ((int64_t)3600 * 1000000000)

struct drv_swap {
	struct drv_host *host;
	uint64_t connection, seq; /* of the client that waits for the answer; 0: it has got it */
	int64_t probation_ns;
	int64_t until_ns; /* of the probation; 0: the new process does not run yet */
	bool has_begun;   /* a process with the new library was asked for */
	bool is_taken;    /* the application's source has the new library */
	void *source;     /* until then; owned */
	size_t source_bytes;
	const char **forth, **back; /* the --set of the new library, and of the old one */
	size_t set_count;
	const char *who, *fragment, *library, *old;
	struct fragi_arena arena; /* of these texts */
};

/* swap_command.c */
void drv_swap(struct drv_session *client, const struct fw_message *message);

/* swap.c */
void drv_swap_free(struct drv_swap *swap);
/* Begins with what a client has asked for. */
void drv_swap_work(struct drv_app *app);
/* Returns the source that the new process is made from; NULL: the application's. */
const void *drv_swap_source(const struct drv_host *host, size_t *out_bytes);
/* The old process is about to yield: the new source is the application's. */
void drv_swap_take_source(struct drv_host *host);
/* The new process could not be prepared, or is not wanted; nothing has changed. */
void drv_swap_refused(struct drv_host *host, enum fragi_failure code, const char *why);
/* The new process was lost before it took over: the old library starts again. */
void drv_swap_lost(struct drv_host *host, const char *why);
/* The new process runs: its probation begins. */
void drv_swap_runs(struct drv_host *host);
/* A worker was silent for so long: probations there last longer by that. */
void drv_swap_heard_again(const struct drv_session *session, int64_t silent_ns);
/* The host has failed. Returns whether it is started again with its old library. */
bool drv_swap_go_back(struct drv_host *host, const struct fw_failure *failure);
/* The application ends. */
void drv_swap_end(struct drv_app *app);
void drv_swap_fini(struct drv_app *app);

#endif
