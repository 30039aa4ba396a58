/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_SUSPICION_H
#define DRV_SUSPICION_H

#include <wire/message.h>

/* A part of state.h: links between hosts that were lost. */
struct drv_app;
struct drv_host;

/* suspicion.c */
/* A host reports that it lost the data link to a peer. */
void drv_suspect_link(struct drv_host *host, const struct fw_host_event *event);
/* A host could not be wired; most often because a peer has ended, which is then the cause. */
void drv_suspect_wiring(struct drv_host *host, const struct fw_failure *failure);
/* The host has ended as it was to, or is started again: its lost links need no other cause. */
void drv_suspicion_clear(const struct drv_host *host);
/* The judge's time has come: what is suspected becomes a cause, is dropped, or waits. */
void drv_suspicion_judge(struct drv_app *app);
void drv_suspicion_fini(struct drv_app *app);

#endif
