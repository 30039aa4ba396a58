/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_STRAYS_H
#define WRK_STRAYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Strays: processes that operators have started and that outlive their parent. This process is
 * their subreaper, so each of them becomes its child, also after setsid and a second fork, and
 * stays there until it is reaped here: its pid cannot be taken by another process meanwhile.
 */

/* The environment variable of a host that its descendants inherit; the value names the host. */
#define WRK_STRAYS_MARK "FRAG_HOST"
#define WRK_STRAYS_MARK_MAX 48

/* The environment with the mark of a further host, which mark gets, from the heap; or NULL. */
char **wrk_strays_mark(char mark[static WRK_STRAYS_MARK_MAX], char *const *environment);

/* This child of this process is none: it is only reaped when it has ended. Of 8 at most. */
void wrk_strays_except(pid_t pid);
/* It has ended, and was reaped: another process may get its pid. */
void wrk_strays_reaped(pid_t pid);

/*
 * From now on strays become children of this process. Before it nothing below does anything: the
 * children of this process are not ours.
 */
void wrk_strays_adopt(void);

/* A host whose strays are looked for. */
struct wrk_strays_of {
	pid_t host;       /* it leads its session */
	const char *mark; /* "FRAG_HOST=..." */
	bool is_only;     /* there is no other host: every stray is its own */
};

/*
 * Reaps the strays that have ended, and kills those of a host. Children for which is_host says true
 * are left alone.
 * - of: NULL: of no host
 * Returns how many of the host are left: call it again until there are none, but not for ever,
 * since a child without any environment is among them: it may be one that is being executed.
 */
size_t wrk_strays_end(const struct wrk_strays_of *of, bool (*is_host)(pid_t pid));

/* Kills and reaps every child of this process. Blocks until they are gone, 1 s at most. */
void wrk_strays_end_all(void);

#endif
