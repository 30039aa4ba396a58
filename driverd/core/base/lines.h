/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_LINES_H
#define DRV_LINES_H

#include <driverd/core/state.h>

/*
 * The logs of applications: lines of their hosts, which the workers pass on, and what the driver
 * has logged about them. Each name has a log of its own, so that an application that writes much
 * takes nothing from others; the log outlives the runs of the name, and is forgotten with the last
 * of them. The logs are bounded in lines, bytes and age. A line has the time at which it came to
 * the driver.
 */
struct drv_line {
	struct drv_line *next; /* that came after it */
	uint64_t number;
	int64_t unix_ns;
	enum fragi_log_level level;
	size_t bytes;                       /* of all of it */
	const char *worker, *fragment, *op; /* behind the text */
	char text[];
};

struct drv_log {
	struct drv_log *next;
	char application[FRAG_NAME_MAX + 1];
	struct drv_line *first, **last;
	size_t count, bytes;
	uint64_t newest; /* number of its last line; 0: none has come */
};

/* The log of an application; NULL: it has none. */
struct drv_log *drv_lines_find(const struct drv_lines *lines, const char *application);
void drv_log_free(struct drv_log *log);
/* Opens the log of an application. */
void drv_lines_begin(struct drv_core *core, const char *application);
/* A line of the driver. */
void drv_lines_own(struct drv_core *core, enum fragi_log_level level, const char *application,
		   const char *text);
/* HOST_LINES of a worker. */
void drv_lines_take(struct drv_host *host, const struct fw_host_lines *lines);
void drv_lines_fini(struct drv_lines *lines);

/* A client asks for lines, and follows none before. Returns 0 or -ENOMEM. */
int drv_lines_watch(struct drv_session *client, const struct fw_message *message);
/* Sends a client that follows what is new. Returns 0 or -ENOMEM. */
int drv_lines_serve(struct drv_session *client);
void drv_lines_watch_end(struct drv_session *client);

#endif
