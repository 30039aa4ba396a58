/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_SPAWN_H
#define WRK_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include <base/diag.h>

struct wrk_confine;

/*
 * Starts a fraghost: descriptor 3 is its control socket, 4 its ledger, 5 takes a note if it crashes
 * (base/crash_note.h), 6 is the memory for what its operators save (workerd/saved.h) or /dev/null,
 * 1 and 2 its output, 0 is /dev/null or this process's stdin; nothing else of this process is open
 * in it. It dies with this process (PR_SET_PDEATHSIG, and the socket's end of
 * file) and has a session of its own, so that what a terminal sends to its foreground (Ctrl-C,
 * Ctrl-Z) is for this process alone to act on.
 */
#define WRK_HOST_FD_CONTROL 3
#define WRK_HOST_FD_LEDGER 4
#define WRK_HOST_FD_NOTE 5
#define WRK_HOST_FD_SAVED 6

struct wrk_spawn {
	const char *program;    /* NULL: a fork of this process runs main */
	char *const *arguments; /* with the program's name, NULL-ended; NULL: the name alone */
	/* what it returns is the exit status; this process has one thread then */
	int (*main)(void);
	char *const *environment;
	int control_fd, ledger_fd, note_fd, output_fd; /* borrowed */
	int saved_fd;                                  /* borrowed; 0: none */
	bool keeps_stdin;
	const struct wrk_confine *confine; /* borrowed; NULL: it may do what this process may */
};

/* In a child: closes all descriptors from this one on. */
void wrk_spawn_close_from(int first);

/*
 * The sentence for a system call that has refused what `name` needs to start, with what has to be
 * changed. Returns code.
 */
int wrk_spawn_refuse(struct frag_err *err, int code, const char *name, const char *call);
/* Blocks until the program runs or cannot. Returns 0 or negative errno with a sentence. */
int wrk_spawn(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_pidfd, struct frag_err *err);

/*
 * How an ended child ended. core_file: the sentence part about its core file, empty when there is
 * none. Reaps it. Returns 0, or -EAGAIN when it still runs.
 */
int wrk_spawn_reap(pid_t pid, int *out_status, int *out_signal, char *core_file, size_t size);

/* What runs a host: a process of its own, or what stands for one. */
struct wrk_spawn_ops {
	int (*start)(const struct wrk_spawn *spawn, pid_t *out_pid, int *out_exit_fd,
		     struct frag_err *err);
	void (*signal)(pid_t pid, int number);
	int (*reap)(pid_t pid, int *out_status, int *out_signal, char *core_file, size_t size);
};
extern const struct wrk_spawn_ops wrk_spawn_process;

/* The path of the fraghost that belongs to this program. Returns 0 or negative errno. */
int wrk_spawn_find_host(char *out, size_t size);

#endif
