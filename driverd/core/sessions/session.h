/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SESSION_H
#define DRV_SESSION_H

#include <base/arena.h>
#include <base/machine.h>
#include <driverd/core/base/timer.h>
#include <driverd/core/core.h>
#include <text/spec.h>
#include <wire/message.h>

/* A part of state.h: sessions of workers and clients. */
struct drv_ended;
struct drv_host;
struct drv_log_watch;
struct drv_look;
struct drv_taps;

struct drv_session {
	struct drv_core *core;
	uint64_t connection;
	uint64_t
		number; /* counts up, for people: whoever knows the id is half way to the session */
	uint64_t id;    /* random */
	/*
	 * The secret that the worker sends when it comes back. Like the session's id it is good for
	 * as long as this process lives, so a core file of the worker holds nothing that is still
	 * of use.
	 */
	uint8_t secret[FW_SECRET_BYTES];
	uint64_t reporter; /* connection of its worker's reporter; 0: none */
	enum drv_session_state state;
	enum fw_role role; /* a client is given no fragments */
	uint32_t roles;    /* of a client: FW_ROLE_BIT of each that it may take */
	uint32_t minor;    /* of its protocol */
	uint32_t requests; /* of a client, since the last beat */
	struct fw_message
		*deferred;       /* of a client: it waits for the next beat; owned; NULL: none */
	struct fw_message *held; /* of a client: it waits for the state folder; owned; NULL: none */
	uint64_t held_change;    /* for that one to be tried */
	size_t held_bytes;       /* that are reserved with it; a restart takes them over */
	const char *who;         /* of a client: "user alice", "key tablet" */
	bool has_overreached;    /* of a client: a request that its roles do not allow is logged */
	struct fw_identity identity; /* what it has proven; no name: nothing */
	/* of a client: what it awaits (run 0: nothing), and the events that it is shown */
	struct {
		uint64_t run, seq;
		enum fw_milestone until;
	} await;
	struct {
		uint64_t seq;  /* of its WATCH; 0: it follows nothing */
		uint64_t last; /* the event that it has got last */
	} watch;
	struct drv_log_watch *log_watch; /* the lines that it is shown; owned; NULL: none */
	struct drv_look *look;           /* at the time of applications; owned; NULL: none */
	struct drv_look *look_at_once;   /* when it asks; the same */
	struct drv_taps *taps;           /* on flows; owned; NULL: none */
	/* of a client: the worker that looks at its node for it, and the question */
	struct {
		const struct drv_session *worker; /* NULL: none does */
		uint64_t seq;
	} examine;
	struct fragi_arena arena; /* of the texts below */
	const char *name;         /* as the driver calls it */
	const char *peer;
	const char *const *fragments;
	uint32_t fragment_count;
	const char *local_address; /* as in HELLO */
	const char *worker_address, *node, *clock, *memory, *no_memory;
	char waits_for[FW_WAITS_FOR_MAX]; /* why it can run nothing yet; empty: it can */
	int64_t has[FRAGI_AMOUNTS], used[FRAGI_AMOUNTS]; /* used: that its fragments require */
	struct drv_mig mig;                              /* the same of MIG instances */
	int64_t load;                                    /* as in struct drv_place_worker */
	const char *const *labels;
	uint32_t label_count;
	bool is_reporting;     /* what it ran while the driver was away, until REPORTED */
	bool is_new;           /* it was at no driver before: it does not know what it ran then */
	size_t report_bytes;   /* of the graphs of what it has reported */
	uint32_t to_report;    /* hosts that it may still report */
	bool is_drained;       /* it is given no more fragments */
	bool has_left;         /* it has sent LEAVE */
	bool is_revoked;       /* its key is not accepted any more, and it was refused */
	const char *no_limits; /* why it cannot enforce limits; empty: it can */
	const char *limited;   /* as in HELLO */
	int64_t placed;        /* fragments of all applications */
	/* that name this session, and the list of them in the order in which they came to it */
	uint32_t hosts;
	uint32_t more_hosts; /* next processes of hosts, or those that are being chosen */
	struct drv_host *first_host, **last_host;
	/* lease.c: the time in its last BEAT, and when that came */
	int64_t lease_sent_ns, lease_heard_ns;
	uint64_t told_end; /* of which run it heard the end last */
	/* whose source its last HOST_CREATE with one had, after how many changes; run 0: none */
	struct {
		uint64_t run;
		uint32_t changes;
	} last_source;
	struct drv_session *next_waiting; /* of a client that waits: the next one */
	const char *dropped; /* why it is lost at the end of the event; NULL: it is not */
	struct drv_session *next_dropped;
	uint64_t seq;                /* of the last message sent */
	int64_t joined_ns, heard_ns; /* when its HELLO, and its last message, came */
	int64_t heard_again_ns;      /* when its last long silence ended */
	struct drv_timer beat;
};

/* session.c: the sessions of workers and clients */
extern const struct fragi_machine drv_session_machine;
struct drv_session *drv_session_find(const struct drv_core *core, uint64_t connection);
/* The worker of that name; NULL: none. */
struct drv_session *drv_session_worker(const struct drv_core *core, const char *name);
/* The session that the peer has proven to know by its secret; NULL: none. */
struct drv_session *drv_session_named(const struct drv_core *core, const struct fw_hello *hello);
void drv_session_transition(struct drv_session *session, enum drv_session_state to);
const char *drv_session_role(const struct drv_session *session); /* "client", "worker" */
enum fragi_log_level drv_session_event_level(const struct drv_session *session);
int drv_session_insert(struct drv_core *core, struct drv_session *session); /* 0 or -ENOMEM */
void drv_session_remove(struct drv_session *session);                       /* and frees it */
void drv_session_destroy(struct drv_session *session);
/*
 * Drops the session: it is lost when the event is recorded, or the step ends. why: in the arena of
 * the step
 */
void drv_session_drop(struct drv_session *session, const char *why);
/* Answers a command of a client. failure: NULL: none */
void drv_session_answer(struct drv_session *client, uint64_t seq, uint64_t run, const char *name,
			const struct fw_failure *failure);
/* Answers so with a failure that is neither logged nor an event: see drv_refuse_command. */
void drv_session_answer_failure(struct drv_session *client, uint64_t seq, const char *name,
				enum fragi_failure code, const char *sentence);
/* Takes one row of a reply, of that text, from the items of the step; false: none is left. */
bool drv_session_take_row(struct drv_core *core, const char *text);
/* Answers a HELLO with REFUSED. */
void drv_session_refuse(struct drv_core *core, uint64_t connection, const char *peer,
			const struct fw_message *hello, enum fragi_failure code,
			const char *sentence);

/* away.c: workers that are not there */
struct fw_worker_row;
/* Whether the names are "w" and "w#2": of two processes of a worker, or of two workers. */
bool drv_session_is_alike(const char *a, const char *b);
/* The worker goes: before its hosts leave it. */
void drv_away_add(const struct drv_session *session);
/* A worker of that name came. */
void drv_away_drop(struct drv_core *core, const char *name);
size_t drv_away_count(const struct drv_core *core); /* at most so many rows follow */
/* Says of those whose key is not accepted any more what may still run there. */
void drv_away_revoke(struct drv_core *core, const struct drv_event *event);
void drv_away_unheard(struct drv_core *core, uint64_t connection);
/* Rows of the one that is asked for; empty: of all. Returns how many. */
uint32_t drv_away_rows(const struct drv_core *core, const char *worker, struct fw_worker_row *rows);
void drv_away_fini(struct drv_core *core);

/* refuse.c */
/* A peer has no key that is accepted: an event, but one for tries of a machine in a row. */
void drv_refuse_key(struct drv_core *core, const char *peer, const char *sentence);
/* Commands: the client, the log and the events get the sentence */
void drv_refuse_command(struct drv_session *client, const struct fw_message *command,
			const char *name, enum fragi_failure code, const char *sentence);
/* There is no application of that name that runs. */
void drv_refuse_unknown(struct drv_session *client, const struct fw_message *command,
			const char *name);
/*
 * Refuses a command about an application that has ended. ended: how; NULL: not known. again: the
 * command was a restart
 */
void drv_refuse_ended(struct drv_session *client, const struct fw_message *command,
		      const char *name, const struct drv_ended *ended, bool again);

/*
 * held_answer.c: answers a command that is done. What it changed is acknowledged when the state
 * folder has it. forgotten: what the next driver will not know if it never does, or if there is no
 * such folder, as a clause ("the next driverd ..."); the remark says so then.
 */
void drv_session_answer_when_kept(struct drv_session *client, uint64_t seq, uint64_t run,
				  const char *name, const char *forgotten);
/* Answers so with another message. remark: a member of it. Returns 0 or -ENOMEM. */
int drv_session_send_when_kept(struct drv_session *client, struct fw_message *message,
			       const char **remark, const char *forgotten);
/* Everything up to that change was tried. */
void drv_held_answers_send(struct drv_core *core, uint64_t change, bool is_kept);
void drv_held_answers_fini(struct drv_core *core);

/*
 * Returns a sentence, without its end, which says that the address of a worker is translated on the
 * way to the driver; valid in this step. NULL: it is not, or nothing is known.
 */
const char *drv_session_translation(const struct drv_session *session);

#endif
