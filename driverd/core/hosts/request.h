/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_REQUEST_H
#define DRV_REQUEST_H

#include <wire/message.h>

/* A part of state.h: what hosts are asked for. */
struct drv_app;
struct drv_host;
struct drv_session;

/* request.c */
/* Asks the host for what brings it to its goal, once. Returns false to be called again later. */
bool drv_request(struct drv_host *host);
/* Returns STOP or KILL with the result of the application so far. */
struct fw_message drv_request_end(const struct drv_app *app, enum fw_kind kind);
/* Wires a host that has been wired to a peer that was started again. */
void drv_request_rewire(struct drv_host *host, const struct drv_host *peer);

/* Asks the worker of next to prepare it. Returns 0, -ENOMEM, -EMSGSIZE. */
int drv_request_next(struct drv_host *host);
/* Next is not needed any more. */
void drv_request_no_next(struct drv_host *host);
/* The host yields: its peer suspends the edges to it. */
void drv_request_suspend(struct drv_host *peer, const struct drv_host *host);
/* The new process is the host: its worker, and the one before, get what was counted so far. */
void drv_request_past(struct drv_host *host);
void drv_request_past_of(const struct drv_host *host, struct drv_session *from);

#endif
