/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_STATE_H
#define DRV_STATE_H

#include <base/awake.h>
#include <base/machine.h>
#include <base/names.h>
#include <base/strmap.h>
#include <driverd/core/applications/app.h>
#include <driverd/core/applications/host.h>
#include <driverd/core/applications/flows.h>
#include <driverd/core/base/actions.h>
#include <driverd/core/base/timer.h>
#include <driverd/core/clients/client.h>
#include <driverd/core/core.h>
#include <driverd/core/decide.h>
#include <driverd/core/hosts/lease.h>
#include <driverd/core/hosts/replace.h>
#include <driverd/core/hosts/request.h>
#include <driverd/core/hosts/suspicion.h>
#include <driverd/core/join.h>
#include <driverd/core/pause.h>
#include <driverd/core/persist/history.h>
#include <driverd/core/placement/placement.h>
#include <driverd/core/sessions/session.h>
#include <driverd/core/view/view.h>
#include <graph/predict.h>
#include <graph/resolve.h>
#include <text/spec.h>

/*
 * Declarations that the files of the core share; nobody else includes this header. A function is
 * called from its own folder and from those after it, which mk/layers.py checks:
 * - base: what a step returns (actions.c), timers, the lines that applications have written
 * - persist: records for the disk (persist.c), and what has happened (history.c)
 * - sessions: those of workers and clients, and the answers to clients
 * - applications: an application, its hosts and their processes, its source, parameters and flows
 * - view: what is known and counted, at any time
 * - placement: which worker runs what, at a start (start.c) and later (candidates.c)
 * - hosts: what a host reports (host.c), how a process is replaced by the next one (replace.c),
 *   what its failure leads to (failure.c), and how what ran before is adopted
 * - clients: what clients ask for
 * - here: core.c records an event, decide.c decides at the end of the step; join.c and reporter.c
 *   begin and end sessions, restore.c starts what is to restart with the driver
 */

/* The lines that applications and their hosts have written (lines.c). */
struct drv_lines {
	struct drv_log *logs;
	size_t count;
	uint64_t last; /* the largest number of a line */
};

#define DRV_FOREIGN_MAX 64
/* What a person does about a state folder that cannot be written. */
#define DRV_STATE_ADVICE                                                                           \
	"make room if its disk is full, restart driverd if the folder is gone, or see why in "     \
	"driverd's log"

struct drv_core {
	struct drv_config config;
	struct drv_machine machine;
	struct drv_timers timers;
	struct fragi_awake clock;
	struct drv_session **sessions; /* by connection */
	uint64_t *connections;         /* of the sessions: one look at few lines of the cache */
	size_t session_count, session_capacity;
	size_t client_count; /* of these sessions */
	/* the peer whose key was refused last, as events have it, and when */
	char refused_peer[64];
	int64_t refused_ns;
	size_t held_count; /* of these clients, whose command waits for the state folder */
	struct drv_session *dropped; /* to be lost */
	struct drv_session *waiting; /* of these clients: they await or follow something */
	struct drv_window *windows; /* that clients share which look at the same (clients/look.c) */
	struct drv_history history;
	int64_t losses_ns; /* up to then events of losses were written ahead (view/loss.c) */
	struct drv_lines lines;
	/* where runs may have hosts, as the state folder knows it */
	struct drv_placed *placed;
	/* numbers of runs that only workers know, or did at first: a driver before gave them */
	struct {
		uint64_t first, last;
	} foreign[DRV_FOREIGN_MAX];
	size_t foreign_count;
	struct drv_outstanding *outstanding; /* lease.c: names whose hosts may still run */
	int64_t born_ns;                     /* its first step */
	struct drv_pause pause;
	bool leaves;              /* it ends, and the hosts run on for the next one */
	uint64_t workers_version; /* counts changes of workers */
	struct drv_away *away;    /* workers that are not there, the last one first */
	size_t away_count;
	struct drv_drained *drained; /* names of workers that are given nothing */
	size_t drained_count;
	struct drv_app **apps; /* by run */
	size_t app_count, app_capacity;
	size_t over_count; /* of these apps: they have ended, and are forgotten by the next step */
	/* those that decide at the end of a step; the first one is the last one in the next step */
	struct drv_app *awake, **last_awake;
	struct fragi_summary refused; /* of an application for which there was no memory at all */
	uint64_t last_run, last_epoch, last_session;
	uint32_t last_tap;
	uint64_t given_run; /* the highest of these runs that a driver of this state has given */
	uint64_t last_change, settled_change; /* handed out; tried, whether it succeeded or not */
	uint64_t written_change; /* on the disk with all before it, but for attempts that failed */
	/* that reserves epochs above those of drivers before; 0: none does, or nothing is kept */
	uint64_t numbers_change;
	bool is_behind;                       /* the last try failed */
	char behind_why[512];                 /* then, as a sentence; else empty */
	struct drv_held_answer *held_answers; /* answers that wait for the state folder, in order */
	uint32_t held_answer_count;
	uint64_t held_answer_number; /* of the last one */
	bool has_room;               /* what others wait for may have become free */
	bool is_restoring;           /* applications are still to start again */
	size_t turn;                 /* which one is looked at though it sleeps */
	uint32_t stops;
	uint32_t illegal_transitions;
	/* during a step */
	struct drv_actions *actions;
	int64_t now_ns;  /* of the clock that stands still while this process does: all timers */
	int64_t real_ns; /* for what the summary reports */
	int64_t items;   /* that it may still handle; below 0 when one frame had more */
	bool work_left;  /* the next step is wanted at once */
	bool decides; /* what the event was is recorded; hosts are asked for something only now */
};

#include <driverd/core/persist/persist.h>

#endif
