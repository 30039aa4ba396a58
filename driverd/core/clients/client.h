/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CLIENT_H
#define DRV_CLIENT_H

#include <wire/message.h>

/* A part of state.h: what clients ask for. */
struct drv_app;
struct drv_core;
struct drv_session;

/* What a client needs for a request (client.c). */
enum drv_right {
	DRV_RIGHT_NONE,
	DRV_RIGHT_READ,    /* how things stand */
	DRV_RIGHT_PAYLOAD, /* messages of flows */
	DRV_RIGHT_COMMAND, /* what changes something */
};

/* client.c: takes a message of a client's session, which may end by it */
void drv_client_message(struct drv_session *client, struct fw_message *message);
/* Commands that have waited for the state folder. */
void drv_client_serve_held(struct drv_core *core);
/* A beat: it may ask again. The session may end by what it has asked before. */
void drv_client_beat(struct drv_session *client);

/*
 * Refuses a request that its roles do not allow. what: begins the sentence, "this"; role: that it
 * needs
 */
void drv_client_refuse(struct drv_session *client, const struct fw_message *message,
		       const char *role, const char *what);

/* explain.c */
/*
 * Whether a person calls a flow so: by one of its ends, or as much of it as they like ("f1.tx"), or
 * by both ("f1.tx.out -> f2.rx"). from, to: "f1.tx.out"
 */
bool drv_flow_is_called(const char *from, const char *to, const char *what);
void drv_explain(struct drv_session *client, const struct fw_message *message);

/* examine.c: workers look at their nodes for clients */
void drv_examine(struct drv_session *client, const struct fw_message *message);
/* EXAMINED of a worker, for those that have asked. */
void drv_examine_take(struct drv_session *worker, const struct fw_message *message);
/* A worker goes: the client that has asked it gets a failure. */
void drv_examine_lost(const struct drv_session *worker);

/* command.c */
void drv_command_start(struct drv_session *client, const struct fw_message *message);
void drv_command_stop(struct drv_session *client, const struct fw_message *message);
/* The application is kept: the client that asked for it gets its answer. */
void drv_command_accepted(struct drv_app *app);
/* Answers the start of an application that ended before it was kept: it is refused. */
void drv_command_refused(struct drv_app *app);
/* Starts what has ended and is to start anew. */
void drv_command_restart(struct drv_core *core);

#endif
