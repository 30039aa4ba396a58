/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_STATE_H
#define WRK_STATE_H

#include <base/awake.h>
#include <base/machine.h>
#include <workerd/core/core.h>

#define INTERPRETER_NS (30 * INT64_C(1000000000)) /* an interpreter has started by then */

/* The core's own structs, for the files of this folder. */
struct wrk_host {
	uint32_t id;
	uint64_t run, epoch;
	uint32_t number;     /* in the run */
	uint64_t connection; /* of the session that made it: only that one hears of it */
	enum wrk_host_state state;
	int pid;
	int64_t heard_ns;        /* last frame of its control thread */
	int64_t starts_until_ns; /* so long it may have said nothing yet; 0: it has spoken */
	int64_t kill_at_ns;      /* when patience ends; INT64_MAX: not waiting */
	bool stop_requested;     /* somebody asked it to drain or to end */
	bool ending;             /* ... to end: an exit with 0 is in order */
	bool ended_here;         /* by this workerd, which was asked to end */
	bool done;               /* all its operators are */
	bool yields;             /* another process goes on for it */
	bool is_beside;          /* a process that is prepared beside the host, and is not it yet */
	bool failed;             /* it reported a failure itself */
	bool exit_reported;      /* nothing about it follows */
	/* why this workerd ended it; NONE, empty: it did not, or because somebody asked for it */
	enum fragi_failure why_failure;
	char why[256];
	bool cut;         /* this workerd gave up its control socket, for the same reason */
	char *end_reason; /* the driver's; NULL: it gave none */
	char *application;
	char fragments[128]; /* for people */
	/* lease.c, by the clock of the shell; lease_ns 0: none */
	int64_t lease_ns, lease_until_ns;
	int64_t look_until_ns; /* so long somebody looks at its operators */
	/* beat.c: what its page showed last, to whom, and how often that has been the same since */
	uint64_t counts, counts_for;
	uint32_t same_counts;
	bool is_renewed;     /* the beats of the present driver renew it */
	int64_t lines_at_ns; /* when lines_used was right */
	uint32_t lines_used; /* of WRK_LINES_BURST */
	uint64_t lines_left_out;
	char **names; /* of its operators, in ledger order; NULL: not prepared */
	uint32_t name_count;
};

/* a host that is gone: an older epoch of it is refused */
struct wrk_past {
	uint64_t connection, run, epoch;
	uint32_t number;
};
#define WRK_PAST_MAX 64

/*
 * The messages of a host that a driver needs when it comes back (report.c); of its present epoch,
 * unless another is named.
 */
#define WRK_KEPT_MAX 1024 /* with those that have ended */
#define WRK_KEPT_EVENTS_MAX 36
#define WRK_KEPT_FINAL 4                  /* of them: a failed start, DONE, FAILED, STOPPED */
#define WRK_KEPT_BYTES ((size_t)32 << 20) /* of their frames: half of what a connection queues */
/* a message, and the bytes of its frame */
struct wrk_copy {
	struct fw_message *message; /* owned; NULL: none */
	size_t bytes;
};
struct wrk_kept {
	struct wrk_kept *next; /* the one that was made before it */
	uint64_t run, epoch;
	uint32_t number;
	struct wrk_copy create;      /* without its source */
	struct wrk_source *source;   /* NULL: there was no room for it */
	struct wrk_copy prepared;    /* the last one that succeeded */
	struct wrk_copy past;        /* the sum of earlier epochs */
	struct wrk_copy stats, exit; /* the last ones; none: it lives */
	struct wrk_copy events[WRK_KEPT_EVENTS_MAX];
	uint32_t event_count;
	bool has_ended, is_wired, started, has_run, is_inexact;
	bool is_beside;  /* another process is the host, until HOST_PAST comes */
	bool is_closing; /* it was told to end, and not to drain before */
	bool yields;     /* another process goes on for it */
	enum fw_stop_state stop;
	enum fragi_failure failure; /* of what it was told to stop for, with its sentence */
	char *reason;
	uint64_t restarts;
	int64_t made_ns; /* the first epoch */
};

struct wrk_core {
	struct wrk_config config;
	enum wrk_session session;
	uint64_t connection;                /* of the present connection; counts up */
	uint64_t session_id;                /* the driver's; 0: never attached */
	char name[2 * FRAG_NAME_MAX + 16];  /* that it gave with that session */
	uint8_t secret[FW_SECRET_BYTES];    /* of that session */
	bool takes_lines;                   /* ... the driver does */
	bool keeps_hosts;                   /* ... and finds its hosts again when it comes back */
	char proof[256], served_proof[256]; /* of the present connection; of that session */
	struct wrk_source *source;          /* of the last HOST_CREATE with one; NULL: none */
	struct wrk_kept *kept;              /* the newest first */
	uint32_t kept_count;
	uint64_t last_epoch; /* the highest one that a driver has sent */
	size_t kept_bytes;
	int64_t beat_ns, dead_ns;
	/* lease.c: the step's time, that of the last beat, that of the last one that was heard */
	int64_t real_ns, lease_sent_ns, lease_from_ns;
	bool driver_leaves;       /* it has said so */
	struct fragi_awake clock; /* all other times of this folder are its times */
	int64_t beaten_ns;        /* real: the last beat */
	int64_t read_ns;       /* what had arrived by then is read when a timer judges (beat.c) */
	bool is_deferred;      /* the last timer did nothing: the next one does */
	int64_t heard_ns;      /* the driver */
	int64_t beat_at_ns;    /* next beats and samples */
	int64_t wait_until_ns; /* CONNECTING: give up; BACKOFF: try again */
	int64_t backoff_ns;
	int64_t lost_ns; /* when the last session ended */
	char refusal
		[200]; /* the sentence of the driver, which refuses this worker; "": it does not */
	int64_t deadline_ns;    /* as the shell knows it */
	bool waiting_logged;    /* the line about waiting is out */
	bool unanswered_logged; /* ... for who did not answer HELLO */
	bool refusal_logged;    /* ... for who may not command this worker */
	uint64_t random;
	char address[64], local[64];      /* the data plane's and the connection's, for HELLO */
	char waits_for[FW_WAITS_FOR_MAX]; /* why no host can reach others; empty: they can */
	bool has_gpus;                    /* they were asked for: beats say them */
	int64_t waits_line_ns;            /* the next line about it */

	struct wrk_host hosts[WRK_HOSTS_MAX];
	uint32_t slot_count; /* of hosts, ever used: no more is looked at, nor paged in */
	uint32_t host_count, last_id;
	struct wrk_past past[WRK_PAST_MAX];
	uint32_t past_next;

	int stops;              /* WRK_EVENT_STOP so far */
	int64_t grace_until_ns; /* hosts are left to the driver; INT64_MAX: not */
	int64_t stop_at_ns;     /* when stopping has lasted too long */
	bool served;            /* --once: an application was taken */
	uint64_t served_run;
	int result;   /* of what was served, as an exit code */
	bool decided; /* it is the driver's last word, which counts whatever hosts say */
	uint32_t illegal_transitions;
};

/* actions.c */
struct wrk_action *wrk_emit(struct wrk_actions *actions, enum wrk_action_kind kind);
void wrk_log(struct wrk_actions *actions, enum fragi_log_level level, const char *format, ...)
	FRAG_PRINTF(3, 4);
/* Logs about an application. */
/* The subject is the host's application and, if it runs only one, its fragment. */
void wrk_log_of(struct wrk_actions *actions, enum fragi_log_level level,
		const struct wrk_host *host, const char *format, ...) FRAG_PRINTF(4, 5);
const char *wrk_text(struct wrk_actions *actions, const char *format, ...) FRAG_PRINTF(2, 3);
/*
 * A zeroed message in the arena, with the host's ids unless host is NULL; NULL when memory is
 * short.
 */
struct fw_message *wrk_message(struct wrk_actions *actions, enum fw_kind kind,
			       const struct wrk_host *host);

/* session.c */
extern const struct fragi_machine wrk_session_machine;
void wrk_session_event(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		       struct wrk_actions *actions);
void wrk_session_timer(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions);
void wrk_session_send(struct wrk_core *core, const struct fw_message *message,
		      struct wrk_actions *actions);
/* Sets the exit code with which workerd ends; not after the driver's last message. */
void wrk_session_result(struct wrk_core *core, int exit_code);
/* Ends this workerd with an exit code. */
void wrk_session_end(struct wrk_core *core, int exit_code, struct wrk_actions *actions);

/* beat.c */
bool wrk_beat_is_sent(const struct wrk_core *core);
/*
 * Whether a TIMER of that real time waits for what can be read: the process did not run for more
 * than a beat in which it wanted to, or was busy for half of the time of death. Before the clock is
 * read.
 */
bool wrk_beat_reads_first(const struct wrk_core *core, int64_t real_now_ns);
/* To the driver and to all hosts. */
void wrk_beat_all(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions);
/* What each host has counted is read for the driver. */
void wrk_beat_sample(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions);
/* Whether the driver is to get what was read from the page of the host. */
bool wrk_beat_is_news(const struct wrk_core *core, struct wrk_host *host,
		      const struct fw_host_stats *stats);

/* lease.c */
/* A host is made for the present driver. */
void wrk_lease_begin(struct wrk_core *core, struct wrk_host *host,
		     const struct fw_host_create *create);
/* A BEAT, or HELLO, with that time. */
void wrk_lease_sent(struct wrk_core *core, int64_t at_ns);
/*
 * Begins the leases of another session, whose driver has read HELLO: hosts of others are not
 * renewed.
 */
void wrk_lease_welcome(struct wrk_core *core);
void wrk_lease_beat(struct wrk_core *core, const struct fw_beat *beat);
void wrk_lease_adopted(struct wrk_core *core, const struct fw_message *message);
/* Why a host would begin too late, when another may run it by now; NULL: it would not. */
const char *wrk_lease_refusal(const struct wrk_core *core, const struct fw_host_create *create,
			      struct wrk_actions *actions);
/* A BEAT for the host, which says until when it may run. */
struct fw_message *wrk_lease_message(const struct wrk_core *core, const struct wrk_host *host,
				     int64_t now_ns, struct wrk_actions *actions);
/* Ends the hosts whose lease is over. */
void wrk_lease_look(struct wrk_core *core, struct wrk_actions *actions);
/* Returns when the next lease is over, by the clock of the shell; INT64_MAX: never. */
int64_t wrk_lease_deadline_ns(const struct wrk_core *core);

/* source.c */
/*
 * Keeps the source of a HOST_CREATE, or gives it the one that is kept. Returns the message with its
 * source, for the step; NULL: there is none.
 */
const struct fw_message *wrk_source_complete(struct wrk_core *core, const struct fw_message *create,
					     struct wrk_actions *actions);
void wrk_source_forget(struct wrk_core *core);
/* The entry has the source that is kept, and no more. */
void wrk_source_keep(struct wrk_core *core, struct wrk_kept *kept);
void wrk_source_drop(struct wrk_core *core, struct wrk_kept *kept);
/* Fills in the entry's source, unless it is larger than that. */
void wrk_source_report(const struct wrk_kept *kept, uint32_t most, struct fw_host_create *out);

/* host.c */
extern const struct fragi_machine wrk_host_machine;
/* The next host that is there, in the order of their slots; NULL: none. after: NULL: the first */
struct wrk_host *wrk_host_next(const struct wrk_core *core, const struct wrk_host *after);
/* NULL: there is none */
struct wrk_host *wrk_host_by_id(const struct wrk_core *core, uint32_t id);
/* The host of the present session that the message is about; NULL: there is none. */
struct wrk_host *wrk_host_of(const struct wrk_core *core, const struct fw_message *message);
void wrk_host_create(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
		     struct wrk_actions *actions);
/* A frame of the driver for a host. */
void wrk_host_request(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
		      struct wrk_actions *actions);
void wrk_host_event(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		    struct wrk_actions *actions);
void wrk_host_timer(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions);
/* failure, why: for the report of its end; NONE and empty when somebody asked for it. */
void wrk_host_kill(struct wrk_core *core, struct wrk_host *host, enum fragi_failure failure,
		   const char *why, struct wrk_actions *actions);
void wrk_host_kill_all(struct wrk_core *core, enum fragi_failure failure, const char *why,
		       struct wrk_actions *actions);
/*
 * Stops hosts: their operators stop, so that a recorder finishes its file, before anything is
 * killed. is_lost: all, because the driver is gone; else those that it has not asked to stop.
 * Returns their number.
 */
uint32_t wrk_host_stop_all(struct wrk_core *core, bool is_lost, int64_t now_ns,
			   struct wrk_actions *actions);
int64_t wrk_host_deadline_ns(const struct wrk_core *core);
void wrk_host_forget(struct wrk_host *host); /* frees what it owns */

/* report.c: what the driver needs to adopt hosts, if it keeps them */
void wrk_keep_create(struct wrk_core *core, const struct fw_message *create, int64_t now_ns,
		     struct wrk_actions *actions);
/* The host belongs to the present driver, which knows whether its sums lack something. */
void wrk_keep_adopted(struct wrk_core *core, const struct fw_message *adopted);
/* A request that is passed on to a host. */
void wrk_keep_request(struct wrk_core *core, const struct fw_message *request,
		      struct wrk_actions *actions);
/* A frame of a host. */
void wrk_keep_frame(struct wrk_core *core, const struct fw_message *message,
		    struct wrk_actions *actions);
/* Keeps the end of a host. stats: NULL: none */
void wrk_keep_exit(struct wrk_core *core, const struct wrk_host *host,
		   const struct fw_host_stats *stats, const struct fw_host_exit *exit,
		   struct wrk_actions *actions);
/*
 * Makes the process that was prepared beside the host the host from now on, here or elsewhere;
 * past: the sums before it. Returns whether that process is here.
 */
bool wrk_keep_past(struct wrk_core *core, const struct fw_message *past,
		   struct wrk_actions *actions);
/* Forgets a run that is over; 0: all runs. */
void wrk_keep_forget(struct wrk_core *core, uint64_t run);
/* Whether that epoch of a host is none after those that are known. */
bool wrk_keep_is_stale(const struct wrk_core *core, const struct fw_message *create);
/* The hosts belong to the present session from now on. */
void wrk_report_take_over(struct wrk_core *core, struct wrk_actions *actions);
/* All that is kept is reported, and that this was all. */
void wrk_report_all(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions);

/* move.c: a host goes on in another process */
/* Handles a frame that the driver sends for the process beside a host. */
void wrk_move_frame(struct wrk_core *core, const struct fw_message *message,
		    struct wrk_actions *actions);
/* Sends the driver what the operators of a host that yields have saved. */
void wrk_move_send_saved(const struct wrk_core *core, uint64_t run, uint32_t number, uint64_t epoch,
			 struct wrk_actions *actions);
/*
 * Forgets what an earlier process of the host has saved here, when the host comes from elsewhere.
 */
void wrk_move_create(const struct fw_message *message, bool is_known, struct wrk_actions *actions);
/* A process has ended, which perhaps never was the host. */
void wrk_move_beside_gone(const struct wrk_host *host, struct wrk_actions *actions);

/* lines.c */
/* Passes on to the driver what a host has written, within bounds. */
void wrk_host_lines(struct wrk_core *core, struct wrk_host *host, const struct wrk_event *event,
		    int64_t now_ns, struct wrk_actions *actions);
/* Reports lines that were left out, if any. */
void wrk_host_lines_left_out(struct wrk_core *core, struct wrk_host *host,
			     struct wrk_actions *actions);

/* names.c: what a host runs, for people */
/* "fragment1, fragment2 and 38 more" */
void wrk_host_name_fragments(struct wrk_host *host, const struct fw_host_create *create);
/* The first time; out of memory is noted in actions. */
void wrk_host_name_operators(struct wrk_host *host, const struct fw_host_prepared *prepared,
			     struct wrk_actions *actions);

/* exit.c */
/* Whether a host that was told to end did so; by its exit or by the signal that told it. */
bool wrk_exit_in_order(const struct wrk_host *host, const struct wrk_exited *exited);
/* Returns the failure that a host's end is; NONE after an orderly end. */
struct fw_failure wrk_exit_failure(const struct wrk_host *host, const struct wrk_exited *exited,
				   struct wrk_actions *actions);
/* Logs that a host has ended, and how. */
/* The first result that is not 0 counts, until the driver's last word. */
void wrk_exit_result(struct wrk_core *core, int exit_code);
/* HOST_STOP or HOST_KILL: a reason, or a kill, is the driver's last word. */
void wrk_exit_asked(struct wrk_core *core, struct wrk_host *host, const struct fw_message *message);
void wrk_exit_log(const struct wrk_core *core, const struct wrk_host *host,
		  const struct fw_failure *failure, struct wrk_actions *actions);

#endif
