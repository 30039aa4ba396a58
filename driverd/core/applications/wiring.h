/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_WIRING_H
#define DRV_WIRING_H

#include <graph/resolve.h>
#include <wire/message.h>

/* A part of state.h: flows between hosts, and their edges. */
struct drv_app;
struct drv_host;

/*
 * transports.c: after the hosts are made, which transports each of them opens. Returns 0, or
 * -EINVAL (app->diag): the graph asks for one that does not connect the hosts of a flow.
 */
int drv_transports_choose(struct drv_app *app);
/* Returns the facts about a host that decide how a flow with an end in it travels. */
struct fragi_fragment_info drv_transports_info(const struct drv_host *host);

/*
 * wiring.c: tables of all hosts become flows, flows become edges. Returns 0, -EINVAL (app->diag),
 * -ENOMEM
 */
int drv_wiring_resolve(struct drv_app *app); /* -EAGAIN: call it again in the next step */
void drv_wiring_end(struct drv_app *app);
/*
 * Fills in the WIRE of a host, with all its peers or with one (only; NULL: all). The result lives
 * as long as the step. Returns 0 or -ENOMEM.
 */
int drv_wiring_fill(struct drv_host *host, const struct drv_host *only, struct fw_host_wire *wire);
/* The edges of a host that is started again get new tokens. */
void drv_wiring_draw_tokens(struct drv_host *host);
/* The address of the host for those who send or receive over that flow; NULL: it has none. */
const struct fw_address *drv_wiring_address(const struct drv_host *host,
					    const struct fragi_flow_info *flow);
bool drv_flow_is_encrypted(const struct drv_app *app, const struct fragi_flow_info *flow);

#endif
