/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_H
#define TESTS_UNIT_DRIVER_LIVES_H

#include "driver_state.h"
#include "driver_world.h"
#include "transcript.h"

#include <stdarg.h>

/*
 * A life of the driver's core: workers with processes that do what they are asked for, a disk,
 * clients, and drivers that follow one another. A seed decides what happens (test_driver_lives.c).
 * All that the core does is written into the transcript, a line for each action.
 */
#define LIFE_WORKERS 4
#define LIFE_CLIENTS 3
#define LIFE_PROCESSES 48
#define LIFE_OWED 8
#define LIFE_DISK 1024
#define LIFE_APPS 64 /* with more, what the core remembers is not looked at */
#define LIFE_CONNECTIONS 512

struct life_process {
	bool is_there, has_ended, is_done, is_reported;
	enum { LIFE_MADE, LIFE_PREPARED, LIFE_WIRED, LIFE_RUNS } stage;
	size_t worker;
	struct fw_message *create;
	uint64_t ticks;
	uint32_t edges, pools, lates, tap;
	bool sends[8];
	struct fw_message *owed[LIFE_OWED]; /* requests that it has not answered */
	size_t owed_count;
	bool drains, closes, yields, is_looked_at, hangs;
};
struct life_worker {
	uint64_t connection, session, last_epoch; /* connection 0: it is away */
	uint8_t secret[FW_SECRET_BYTES];
	char name[64]; /* as a driver called it last */
	bool reports, is_silent, knows_driver;
	int64_t heard_ns; /* in the last beat to it */
	struct fw_message *examine;
};
/* A graph: what may be drawn of it. */
struct life_graph {
	unsigned int shape, value, capacity, library, policy[5], needs[5], more[3], alone, edge;
	bool is_mistaken, is_large;
};
struct life {
	struct world *w;
	uint64_t seed;
	struct drv_config config;
	struct life_worker workers[LIFE_WORKERS];
	struct life_process processes[LIFE_PROCESSES];
	struct {
		uint64_t connection;
		unsigned int kind;
	} clients[LIFE_CLIENTS];
	struct life_graph graphs[3];
	struct {
		struct drv_record record; /* owns what it points to */
		uint64_t change;
	} disk[LIFE_DISK];
	size_t disk_count;
	uint64_t wanted, tried; /* changes */
	bool is_full;           /* the disk */
	char names[LIFE_CONNECTIONS][4];
	uint64_t connections, seq, tap_seq, reporter, last_closed;
	unsigned int drivers;
	const char *text; /* of the graph that is sent next; NULL: none */
	int64_t said_next_ns;
	long written; /* up to there the transcript was, when the deadline was last shown */
	unsigned int steps;
	bool is_calm;
	bool is_brief;     /* a deadline is not shown where nothing else happened */
	unsigned int mood; /* what all hosts that are reported were told; 0: each something else */
};

static inline uint64_t drawn(struct life *l, uint64_t below)
{
	l->seed = l->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (l->seed >> 33) % below;
}

static inline bool one_in(struct life *l, uint64_t n)
{
	return drawn(l, n) == 0;
}

/* What goes wrong, which in some lives is seldom. */
static inline bool fails(struct life *l, uint64_t n)
{
	return one_in(l, l->is_calm ? 8 * n : n);
}

#define one_of(l, ...)                                                                             \
	((const char *const[]){                                                                    \
		__VA_ARGS__}[drawn(l, FRAG_COUNT_OF(((const char *const[]){__VA_ARGS__})))])

/* What comes next, in the transcript. */
__attribute__((format(printf, 2, 3))) static inline void happens(struct life *l, const char *format,
								 ...)
{
	va_list args;

	fprintf(transcript, "%.3f ", (double)l->w->now_ns * 1e-9);
	va_start(args, format);
	vfprintf(transcript, format, args);
	va_end(args);
	fprintf(transcript, "\n");
}

static inline const char *life_name(const struct life *l, uint64_t connection)
{
	return connection < LIFE_CONNECTIONS ? l->names[connection] : "?";
}

static inline uint64_t life_connect(struct life *l, char letter)
{
	cr_assert_lt(l->connections + 1, LIFE_CONNECTIONS);
	l->names[++l->connections][0] = letter;
	return l->connections;
}

static inline struct life_worker *life_worker_of(struct life *l, uint64_t connection)
{
	for (size_t i = 0; i < LIFE_WORKERS; i++)
		if (connection != 0 && l->workers[i].connection == connection)
			return &l->workers[i];
	return NULL;
}

static inline void life_owe(struct life_process *p, struct fw_message *message)
{
	if (p->owed_count == LIFE_OWED)
		fw_message_free(message);
	else
		p->owed[p->owed_count++] = message;
}

static inline struct fw_message *life_owed(struct life_process *p)
{
	struct fw_message *first = p->owed[0];

	memmove(p->owed, p->owed + 1, --p->owed_count * sizeof(p->owed[0]));
	return first;
}

static inline void life_forget(struct life_process *p)
{
	while (p->owed_count > 0)
		fw_message_free(life_owed(p));
	fw_message_free(p->create);
	memset(p, 0, sizeof(*p));
}

static inline struct life_process *life_process(struct life *l, size_t worker,
						const struct fw_message *m)
{
	for (size_t i = 0; i < LIFE_PROCESSES; i++) {
		struct life_process *p = &l->processes[i];

		if (p->is_there && p->worker == worker && p->create->run == m->run &&
		    p->create->host == m->host && p->create->epoch == m->epoch)
			return p;
	}
	return NULL;
}

static inline void life_forget_worker(struct life *l, size_t worker)
{
	for (size_t i = 0; i < LIFE_PROCESSES; i++)
		if (l->processes[i].is_there && l->processes[i].worker == worker)
			life_forget(&l->processes[i]);
}

/* A process is made. Takes message. */
static inline void life_make(struct life *l, size_t worker, struct fw_message *message)
{
	for (size_t i = 0; i < LIFE_PROCESSES; i++) {
		struct life_process *p = &l->processes[i];

		if (p->is_there)
			continue;
		*p = (struct life_process){.is_there = true, .worker = worker, .create = message};
		p->hangs = fails(l, 10);
		if (message->epoch > l->workers[worker].last_epoch)
			l->workers[worker].last_epoch = message->epoch;
		return;
	}
	fw_message_free(message);
}

/* A worker gets a message. Takes it. */
static inline void life_hears(struct life *l, size_t worker, struct fw_message *m)
{
	struct life_worker *to = &l->workers[worker];
	struct life_process *p = life_process(l, worker, m);

	switch (m->kind) {
	case FW_WELCOME:
		to->session = m->welcome.session;
		memcpy(to->secret, m->welcome.secret, sizeof(to->secret));
		snprintf(to->name, sizeof(to->name), "%s", m->welcome.name);
		to->knows_driver = true;
		break;
	case FW_HOST_CREATE:
		life_make(l, worker, m);
		return;
	case FW_EXAMINE:
		fw_message_free(to->examine);
		to->examine = m;
		return;
	case FW_APP_ENDED:
		for (size_t i = 0; i < LIFE_PROCESSES; i++)
			if (l->processes[i].is_there && l->processes[i].worker == worker &&
			    l->processes[i].create->run == m->run)
				life_forget(&l->processes[i]);
		break;
	case FW_HOST_LOOK:
		if (p != NULL)
			p->is_looked_at = m->host_look.for_ns > 0;
		break;
	case FW_HOST_TAP:
		if (p != NULL)
			p->tap = m->host_tap.tap;
		break;
	case FW_HOST_WIRE:
	case FW_HOST_START:
	case FW_HOST_STOP:
	case FW_HOST_KILL:
	case FW_HOST_SET:
		if (p == NULL)
			break;
		life_owe(p, m);
		return;
	default:
		break;
	}
	fw_message_free(m);
}

static inline void note_record(struct life *l, const struct drv_action *action)
{
	static const char *const kinds[] = {
		"numbers", "run",    "source",  "wanted",    "end",      "sourceless", "forgotten",
		"notice",  "placed", "drained", "undrained", "reserved", "released"};
	const struct drv_record *r = &action->record;

	fprintf(transcript, "  disk %" PRIu64 ": %s", action->change, kinds[r->kind]);
#define NUMBER(member)                                                                             \
	do {                                                                                       \
		if (r->member != 0)                                                                \
			fprintf(transcript, " " #member " %" PRId64, (int64_t)r->member);          \
	} while (0)
#define TEXT(member)                                                                               \
	do {                                                                                       \
		if (r->member != NULL && r->member[0] != '\0')                                     \
			fprintf(transcript, " " #member " \"%.*s\"",                               \
				(int)strcspn(r->member, "\n"), r->member);                         \
	} while (0)
	NUMBER(is_attempt);
	NUMBER(run);
	NUMBER(epoch);
	TEXT(name);
	TEXT(who);
	NUMBER(start_timeout_ns);
	NUMBER(is_wanted);
	NUMBER(source_bytes);
	NUMBER(ended_unix_ns);
	NUMBER(outcome_bytes);
	NUMBER(notice);
	NUMBER(first_notice);
	NUMBER(notice_kind);
	NUMBER(unix_ns);
	if (r->kind == DRV_RECORD_PLACED && r->text != NULL) {
		for (const char *at = r->text; *at != '\0'; at++)
			fprintf(transcript, "%s",
				*at == '\n'   ? ";"
				: *at == '\t' ? " > "
					      : (char[]){*at, '\0'});
	} else {
		TEXT(text);
	}
	NUMBER(bytes);
	fprintf(transcript, "\n");
	(void)l;
}

static inline void *life_copy(const void *bytes, size_t size)
{
	return bytes != NULL ? memcpy(malloc(size + 1), bytes, size) : NULL;
}

static inline void life_disk_free(struct life *l, size_t at)
{
	struct drv_record *r = &l->disk[at].record;

	free((void *)(uintptr_t)r->name);
	free((void *)(uintptr_t)r->who);
	free((void *)(uintptr_t)r->text);
	free((void *)(uintptr_t)r->source);
	free((void *)(uintptr_t)r->outcome);
}

static inline void life_disk_keep(struct life *l, const struct drv_action *action)
{
	const struct drv_record *r = &action->record;
	struct drv_record *kept;

	l->wanted = action->change;
	if (!l->config.keeps_state || r->kind >= DRV_RECORD_KINDS)
		return;
	cr_assert_lt(l->disk_count, LIFE_DISK);
	l->disk[l->disk_count].record = *r;
	l->disk[l->disk_count].change = action->change;
	kept = &l->disk[l->disk_count++].record;
	kept->name = life_copy(r->name, r->name != NULL ? strlen(r->name) + 1 : 0);
	kept->who = life_copy(r->who, r->who != NULL ? strlen(r->who) + 1 : 0);
	kept->text = life_copy(r->text, r->text != NULL ? strlen(r->text) + 1 : 0);
	kept->source = life_copy(r->source, r->source_bytes);
	kept->outcome = life_copy(r->outcome, r->outcome_bytes);
}

/* Keeps what was written up to that change, and of what could not be, what is no attempt. */
static inline void life_disk_drop(struct life *l, uint64_t change, bool is_death)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->disk_count; i++) {
		bool is_kept = is_death ? l->disk[i].change <= change
					: !l->disk[i].record.is_attempt ||
						  l->disk[i].change <= l->tried ||
						  l->disk[i].change > change;

		if (is_kept)
			l->disk[kept++] = l->disk[i];
		else
			life_disk_free(l, i);
	}
	l->disk_count = kept;
}

static inline void note_send(struct life *l, size_t at)
{
	struct sent *sent = &l->w->sent[at];
	struct life_worker *worker = life_worker_of(l, sent->connection);
	struct fw_message *m = sent->message;

	sent->message = NULL;
	if (m->kind == FW_BEAT && worker != NULL &&
	    (m->beat.heard_ns != worker->heard_ns || m->beat.leaves))
		fprintf(transcript, "  %s: BEAT heard %.3f%s\n", life_name(l, sent->connection),
			(double)m->beat.heard_ns * 1e-9, m->beat.leaves ? ", leaves" : "");
	if (m->kind == FW_BEAT && worker != NULL)
		worker->heard_ns = m->beat.heard_ns;
	transcript_message(life_name(l, sent->connection), m);
	if (worker != NULL)
		life_hears(l, (size_t)(worker - l->workers), m);
	else
		fw_message_free(m);
}

static inline void note_close(struct life *l, uint64_t connection)
{
	struct life_worker *worker = life_worker_of(l, connection);

	fprintf(transcript, "  closes %s\n", life_name(l, connection));
	l->last_closed = connection;
	if (worker != NULL)
		worker->connection = 0;
	if (l->reporter == connection)
		l->reporter = 0;
	for (size_t i = 0; i < LIFE_CLIENTS; i++)
		if (l->clients[i].connection == connection)
			l->clients[i].connection = 0;
}

static inline void note_end(struct life *l, const struct drv_action *action)
{
	struct fw_message message = {.kind = FW_OUTCOME};

	message.outcome = (struct fw_outcome){.name = action->summary->application,
					      .reached = FW_ENDED,
					      .summary = *action->summary};
	fprintf(transcript, "  ended, given as %" PRIu64 "\n", action->app);
	transcript_message("summary", &message);
	(void)l;
}

/* The shell sends small frames for one connection together. */
static inline void note_joined(struct life *l, size_t sent)
{
	struct drv_actions *actions = &l->w->actions;
	size_t frames = 0, bytes = 0;

	if (l->is_brief || sent < 2)
		return;
	drv_actions_join(actions);
	for (size_t i = 0; i < actions->count; i++)
		if (actions->items[i].kind == DRV_DO_SEND && actions->items[i].frame != NULL) {
			frames++;
			bytes += actions->items[i].frame_bytes;
		}
	fprintf(transcript, "  in %zu frames of %zu bytes\n", frames, bytes);
}

/* Writes what the last step did. Its messages go to whom they are for. */
static inline void note(struct life *l)
{
	struct world *w = l->w;
	size_t sent = 0;

	for (size_t i = 0; !w->broken && i < w->actions.count; i++) {
		const struct drv_action *action = &w->actions.items[i];

		switch (action->kind) {
		case DRV_DO_SEND:
			note_send(l, sent++);
			break;
		case DRV_DO_ADMIT:
			fprintf(transcript, "  admits %s\n", life_name(l, action->connection));
			break;
		case DRV_DO_CLOSE:
			note_close(l, action->connection);
			break;
		case DRV_DO_LOG:
			if (action->level >= FRAGI_LOG_INFO)
				fprintf(transcript, "  %c %s%s%s\n", "tdIWEC"[action->level],
					action -> subject != NULL ? action -> subject : "",
					action->subject != NULL ? ": " : "", action->text);
			break;
		case DRV_DO_PROGRESS:
			fprintf(transcript, "  shows: %s\n", action->text);
			break;
		case DRV_DO_PERSIST:
			note_record(l, action);
			life_disk_keep(l, action);
			break;
		case DRV_DO_ENDED:
			note_end(l, action);
			break;
		}
	}
	note_joined(l, sent);
	if (!l->is_brief && !w->broken && drv_core_step_items(w->core) != 0)
		fprintf(transcript, "  %" PRId64 " items\n", drv_core_step_items(w->core));
	w->sent_count = w->closed_count = 0;
	w->log[0] = w->errors[0] = '\0';
	if (w->broken)
		fprintf(transcript, "  has no memory to go on\n");
	else if (drv_core_deadline_ns(w->core) != l->said_next_ns &&
		 (!l->is_brief || ftell(transcript) != l->written))
		fprintf(transcript, "  next %.3f\n",
			drv_core_deadline_ns(w->core) == INT64_MAX
				? 0
				: (double)drv_core_deadline_ns(w->core) * 1e-9);
	l->said_next_ns = w->broken ? 0 : drv_core_deadline_ns(w->core);
	l->written = ftell(transcript);
	if (!w->broken && w->core->app_count <= LIFE_APPS && (!l->is_brief || l->steps++ % 3 == 0))
		state_of_driver(w->core);
}

static inline void life_next_driver(struct life *l);

/* Memory fails in this step or another one, again and again. */
static inline void life_memory(struct life *l)
{
	struct world *w = l->w;

	if (!w->runs_short || w->step_count <= w->short_step)
		return;
	w->short_step = w->step_count + (int64_t)drawn(l, 60);
	w->short_skip = (int64_t)drawn(l, 12);
}

/* The core takes it, or is given up before: then the next one begins, and the event is its. */
static inline bool life_is_given_up(struct life *l, const struct drv_event *event)
{
	if (l->w->broken || !drv_core_is_given_up(l->w->core, event, l->w->now_ns))
		return false;
	fprintf(transcript, "  is given up\n");
	life_next_driver(l);
	return true;
}

static inline void event(struct life *l, struct drv_event event)
{
	if (l->w->broken || life_is_given_up(l, &event))
		return;
	life_memory(l);
	step(l->w, &event);
	note(l);
}

static inline void speak(struct life *l, uint64_t connection, struct fw_message *message)
{
	const struct drv_event said = {
		.kind = DRV_EVENT_MESSAGE, .connection = connection, .message = message};

	if (l->w->broken || connection == 0 || life_is_given_up(l, &said))
		return;
	life_memory(l);
	say_as(l->w, connection, message, false);
	note(l);
}

/* Time goes by, while all that are there beat but the silent ones. */
static inline void life_pass(struct life *l, int64_t ns)
{
	struct world *w = l->w;
	int64_t until = w->now_ns + ns, beat_ns = w->now_ns + 200 * MS;

	while (!w->broken && w->now_ns < until) {
		int64_t next = drv_core_deadline_ns(w->core);

		if (next > beat_ns || next > until) {
			w->now_ns = beat_ns < until ? beat_ns : until;
		} else {
			if (next > w->now_ns)
				w->now_ns = next;
			event(l, (struct drv_event){.kind = DRV_EVENT_TIMER});
		}
		if (w->now_ns < beat_ns)
			continue;
		beat_ns += 200 * MS;
		for (size_t i = 0; i < LIFE_WORKERS; i++)
			if (!l->workers[i].is_silent)
				speak(l, l->workers[i].connection,
				      &(struct fw_message){.kind = FW_BEAT});
		for (size_t i = 0; i < LIFE_CLIENTS; i++)
			speak(l, l->clients[i].connection, &(struct fw_message){.kind = FW_BEAT});
	}
}

static inline void disk_writes(struct life *l)
{
	if (!l->config.keeps_state || l->wanted == l->tried || l->w->broken)
		return;
	if (one_in(l, l->is_full ? 3 : 40))
		l->is_full = !l->is_full;
	happens(l, l->is_full ? "the disk is full" : "the disk has written");
	if (l->is_full)
		life_disk_drop(l, l->wanted, false);
	l->tried = l->wanted;
	event(l, (struct drv_event){.kind = DRV_EVENT_PERSISTED,
				    .change = l->tried,
				    .text = l->is_full ? "no space is left on /state" : NULL});
}

/* As driverd/database.c reads it: one row a run. */
static inline void restore_run_of(struct life *l, size_t at)
{
	struct drv_record row = l->disk[at].record;

	for (size_t i = at + 1; i < l->disk_count; i++) {
		const struct drv_record *later = &l->disk[i].record;

		if (later->run != row.run)
			continue;
		if (later->kind == DRV_RECORD_FORGOTTEN || later->kind == DRV_RECORD_RUN)
			return;
		if (later->kind == DRV_RECORD_WANTED || later->kind == DRV_RECORD_END)
			row.is_wanted = later->is_wanted;
		if (later->kind == DRV_RECORD_SOURCE) {
			row.source = later->source;
			row.source_bytes = later->source_bytes;
		} else if (later->kind == DRV_RECORD_END) {
			row.ended_unix_ns = later->ended_unix_ns;
			row.outcome = later->outcome;
			row.outcome_bytes = later->outcome_bytes;
		} else if (later->kind == DRV_RECORD_SOURCELESS) {
			row.source_bytes = 0;
		}
	}
	cr_assert_eq(drv_core_restore(l->w->core, &row), 0);
}

static inline bool is_undrained_later(const struct life *l, size_t at)
{
	for (size_t i = at + 1; i < l->disk_count; i++)
		if (l->disk[i].record.kind == DRV_RECORD_UNDRAINED &&
		    strcmp(l->disk[i].record.name, l->disk[at].record.name) == 0)
			return true;
	return false;
}

/* Where a run is placed is kept until its end, or longer if it is noted after that. */
static inline bool is_placed_later(const struct life *l, size_t at)
{
	for (size_t i = at + 1; i < l->disk_count; i++)
		if (l->disk[i].record.run == l->disk[at].record.run &&
		    (l->disk[i].record.kind == DRV_RECORD_PLACED ||
		     l->disk[i].record.kind == DRV_RECORD_END ||
		     l->disk[i].record.kind == DRV_RECORD_FORGOTTEN))
			return true;
	return false;
}

static inline void restore_disk(struct life *l)
{
	uint64_t first = 0;

	for (size_t i = 0; i < l->disk_count; i++)
		if (l->disk[i].record.kind == DRV_RECORD_NUMBERS ||
		    (l->disk[i].record.kind == DRV_RECORD_PLACED && !is_placed_later(l, i)))
			(void)drv_core_restore(l->w->core, &l->disk[i].record);
	for (size_t i = 0; i < l->disk_count; i++) {
		if (l->disk[i].record.kind == DRV_RECORD_RUN)
			restore_run_of(l, i);
		if (l->disk[i].record.first_notice > first)
			first = l->disk[i].record.first_notice;
	}
	for (size_t i = 0; i < l->disk_count; i++) {
		const struct drv_record *r = &l->disk[i].record;

		if ((r->kind == DRV_RECORD_NOTICE && r->notice >= first) ||
		    (r->kind == DRV_RECORD_DRAINED && !is_undrained_later(l, i)))
			cr_assert_eq(drv_core_restore(l->w->core, r), 0);
	}
}

static inline void life_next_driver(struct life *l)
{
	struct world *w = l->w;

	cr_expect_eq(drv_core_illegal_transitions(w->core), 0);
	drv_core_destroy(w->core);
	life_disk_drop(l, one_in(l, 2) ? l->tried : l->wanted, true);
	if (one_in(l, 5)) { /* its state folder is another one */
		fprintf(transcript, "  its disk is empty\n");
		while (l->disk_count > 0)
			life_disk_free(l, --l->disk_count);
	}
	for (size_t i = 0; i < l->disk_count; i++)
		l->disk[i].change = 0;
	l->wanted = l->tried = 0;
	l->is_full = false;
	l->reporter = 0;
	for (size_t i = 0; i < LIFE_CLIENTS; i++)
		l->clients[i].connection = 0;
	for (size_t i = 0; i < LIFE_WORKERS; i++) {
		l->workers[i].connection = 0;
		l->workers[i].knows_driver = false;
		if (!l->config.adopts)
			life_forget_worker(l, i);
	}
	w->now_ns += (int64_t)drawn(l, 3000) * MS;
	l->drivers++;
	cr_assert_eq(drv_core_create(&l->config, &w->core), 0);
	restore_disk(l);
}

/* The driver dies, and the next one finds what is on the disk. */
static inline void driver_returns(struct life *l)
{
	struct world *w = l->w;

	if (!l->config.keeps_state || w->broken)
		return;
	happens(l, "the driver ends, and the next one begins");
	if (l->config.adopts && one_in(l, 2))
		event(l, (struct drv_event){.kind = DRV_EVENT_LEAVE});
	if (w->broken)
		return;
	life_next_driver(l);
}

#endif
