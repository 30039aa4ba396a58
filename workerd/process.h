/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_PROCESS_H
#define WRK_PROCESS_H

#include <uv.h>

#include <workerd/core/core.h>
#include <workerd/page.h>
#include <workerd/spawn.h>
#include <workerd/writer.h>

/*
 * A fraghost as a process on the loop: its control socket, its output, its ledger, its exit. The
 * exit is reported once, after everything it sent: its last frames and lines are waited for, 100 ms
 * at most, since another process may have inherited the descriptors.
 */
struct wrk_facts_past;
struct wrk_process;

struct wrk_process_ops {
	/* Takes message (fw_message_free). */
	void (*message)(void *arg, uint32_t host, struct fw_message *message);
	/*
	 * cut: it was given up on this side. Before the exit, as long as nothing but the host holds
	 * its end; never after it.
	 */
	void (*connection_lost)(void *arg, uint32_t host, const char *sentence, bool cut);
	void (*exited)(void *arg, uint32_t host, const struct wrk_exited *exited);
	/* What it has written; only while takes_lines. left_out: after them. */
	bool (*takes_lines)(void *arg);
	void (*lines)(void *arg, uint32_t host, const char *const *lines, uint32_t count,
		      uint32_t left_out);
	void (*freed)(void *arg, struct wrk_process *process); /* the last callback */
};

/* How it is started; nothing of it is kept but ops. */
struct wrk_launch {
	const struct wrk_spawn_ops *ops;
	const char *program;
	char *const *arguments; /* of program; NULL: none */
	int (*main)(void);
	char *const *environment;
	struct wrk_confine
		*confine;         /* its group_fd is taken; NULL: it may do what this process may */
	int saved_fd;             /* for what operators save, borrowed; 0: nobody keeps it */
	bool keeps_stdin;         /* operators read this process's stdin, else /dev/null */
	bool names_plain;         /* as in struct wrk_writer */
	struct wrk_writer writer; /* of its lines; borrowed */
	uint32_t line_rate;       /* of its lines, a second; 0: no limit */
};

/* ops is borrowed. Returns 0 or negative errno with a sentence. */
int wrk_process_start(uv_loop_t *loop, uint32_t host, const struct wrk_launch *launch,
		      const struct wrk_process_ops *ops, void *arg,
		      struct wrk_process **out_process, struct frag_err *err);
int wrk_process_pid(const struct wrk_process *process);
struct wrk_page *wrk_process_page(struct wrk_process *process);
int wrk_process_exit_fd(const struct wrk_process *process); /* readable once it has ended */
uint32_t wrk_process_host(const struct wrk_process *process);
void wrk_process_send(struct wrk_process *process, const struct fw_message *message);
void wrk_process_signal(struct wrk_process *process, int number);
/* The page as it is now, valid until the next call; false: there is none. */
bool wrk_process_sample(struct wrk_process *process, struct fw_host_stats *out_stats);
/* What was read of it last, for whoever reads it. */
struct wrk_facts_past *wrk_process_facts(struct wrk_process *process);
/* Reaps what operators of hosts have left behind and what has ended. */
void wrk_process_reap_strays(void);
/* Kills and forgets it: no callback but freed. */
void wrk_process_abandon(struct wrk_process *process);

#endif
