/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_FLOWS_H
#define DRV_FLOWS_H

#include <graph/resolve.h>
#include <wire/message.h>

/* A part of state.h: the flows of an application (flows.c). */
struct drv_app;
struct drv_host;

/*
 * After the hosts are made: which transports each of them opens. Returns 0, or -EINVAL (app->diag):
 * the graph asks for one that does not connect the hosts of a flow.
 */
int drv_flows_choose_transports(struct drv_app *app);
/* Returns the facts about a host that decide how a flow with an end in it travels. */
struct fragi_fragment_info drv_flow_end_info(const struct drv_host *host);
/*
 * Tables of all hosts become flows, flows become edges. Returns 0, -EINVAL (app->diag), -ENOMEM, or
 * -EAGAIN: call it again in the next step.
 */
int drv_flows_resolve(struct drv_app *app);
void drv_flows_resolving_end(struct drv_app *app);
/*
 * The token that both ends of an edge get: all are drawn when the first edge is wired. NULL: no
 * memory.
 */
const uint8_t *drv_flow_token(struct drv_app *app, uint32_t flow);
/* The edges of a host that is started again get new tokens. */
void drv_flows_draw_tokens(struct drv_host *host);
/* The address of the host for those who send or receive over that flow; NULL: it has none. */
const struct fw_address *drv_flow_address(const struct drv_host *host,
					  const struct fragi_flow_info *flow);
bool drv_flow_is_encrypted(const struct drv_app *app, const struct fragi_flow_info *flow);

#endif
