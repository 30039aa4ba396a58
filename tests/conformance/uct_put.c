// SPDX-License-Identifier: Apache-2.0
#include "uct_put.h"

#include <string.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>
#include <unistd.h>

static uct_component_h find_tcp(void)
{
	uct_component_attr_t attr = {.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME};
	uct_component_h *components, found = NULL;
	unsigned int count;

	if (uct_query_components(&components, &count) != UCS_OK)
		return NULL;
	for (unsigned int i = 0; i < count; i++)
		if (uct_component_query(components[i], &attr) == UCS_OK &&
		    strcmp(attr.name, "tcp") == 0)
			found = components[i];
	uct_release_component_list(components);
	return found;
}

struct client {
	uct_md_h md;
	ucs_async_context_t *async;
	uct_worker_h worker;
	uct_iface_h iface;
	uct_ep_h ep;
};

static bool open_iface(struct client *client)
{
	uct_iface_params_t params = {
		.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE,
		.open_mode = UCT_IFACE_OPEN_MODE_DEVICE,
		.mode.device = {.tl_name = "tcp", .dev_name = "lo"},
	};
	uct_component_h tcp = find_tcp();
	uct_md_config_t *md_config;
	uct_iface_config_t *config;

	return tcp != NULL && uct_md_config_read(tcp, NULL, NULL, &md_config) == UCS_OK &&
	       uct_md_open(tcp, "tcp", md_config, &client->md) == UCS_OK &&
	       ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &client->async) == UCS_OK &&
	       uct_worker_create(client->async, UCS_THREAD_MODE_SINGLE, &client->worker) ==
		       UCS_OK &&
	       uct_md_iface_config_read(client->md, "tcp", NULL, NULL, &config) == UCS_OK &&
	       uct_iface_open(client->md, client->worker, &params, config, &client->iface) ==
		       UCS_OK;
}

/* The device is the same, so its address is; of the interface only the port differs. */
static bool open_ep(struct client *client, in_port_t port)
{
	_Alignas(16) uint8_t device[256];
	uct_ep_params_t params = {
		.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
			      UCT_EP_PARAM_FIELD_IFACE_ADDR,
		.iface = client->iface,
		.dev_addr = (const uct_device_addr_t *)device,
		.iface_addr = (const uct_iface_addr_t *)&port,
	};

	uct_iface_progress_enable(client->iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
	return uct_iface_get_device_address(client->iface, (uct_device_addr_t *)device) == UCS_OK &&
	       uct_ep_create(&params, &client->ep) == UCS_OK;
}

static void done(uct_completion_t *completion)
{
}

bool uct_put(in_port_t port, uint64_t remote, const void *bytes, size_t size)
{
	uct_completion_t completion = {.func = done, .count = 1};
	uct_iov_t iov = {.buffer = (void *)(uintptr_t)bytes, .length = size, .count = 1};
	struct client client = {0};
	ucs_status_t status = UCS_ERR_NO_RESOURCE;

	if (!open_iface(&client) || !open_ep(&client, port))
		return false;
	for (int i = 0; i < 20000 && status == UCS_ERR_NO_RESOURCE; i++) {
		uct_worker_progress(client.worker);
		status = uct_ep_put_zcopy(client.ep, &iov, 1, remote, 0, &completion);
		usleep(100);
	}
	for (int i = 0; i < 2000 && completion.count > 0; i++) {
		uct_worker_progress(client.worker);
		usleep(100);
	}
	return status == UCS_OK || status == UCS_INPROGRESS;
}
