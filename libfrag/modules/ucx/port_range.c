// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "module.h"

/*
 * Given a range, UCX tries random ports of it until one is free: for ever, at full speed, when none
 * is. Given a single port it fails. So it gets the ports of the range that are free one by one, by
 * the variable, because ucp_config_modify does not reach this setting.
 */
#define VARIABLE "UCX_TCP_PORT_RANGE"

static bool can_bind(const struct sockaddr *of_interface, unsigned int port)
{
	struct sockaddr_in address = *(const struct sockaddr_in *)(const void *)of_interface;
	const int yes = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool can;

	if (fd < 0)
		return true; /* UCX will report it */
	address.sin_port = htons((uint16_t)port);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	can = bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 ||
	      errno != EADDRINUSE;
	close(fd);
	return can;
}

static bool is_free(const struct ifaddrs *all, const char *interfaces, unsigned int port)
{
	bool is_everywhere =
		interfaces == NULL || *interfaces == '\0' || strcmp(interfaces, "all") == 0;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
		if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET &&
		    (is_everywhere || ucx_interfaces_have(interfaces, i->ifa_name)) &&
		    !can_bind(i->ifa_addr, port))
			return false;
	return true;
}

static ucs_status_t create(ucp_context_h context, const ucp_worker_params_t *params,
			   struct ucx_gate *gate, ucp_worker_h *out_worker)
{
	ucs_status_t status;

	ucx_gate_open(gate);
	status = ucp_worker_create(context, params, out_worker);
	ucx_gate_close();
	return status;
}

static ucs_status_t create_at(ucp_context_h context, const ucp_worker_params_t *params,
			      unsigned int port, struct ucx_gate *gate, ucp_worker_h *out_worker)
{
	char text[16];

	snprintf(text, sizeof(text), "%u-%u", port, port);
	if (setenv(VARIABLE, text, 1) < 0)
		return UCS_ERR_NO_MEMORY;
	return create(context, params, gate, out_worker);
}

ucs_status_t ucx_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       const char *interfaces, struct ucx_gate *gate,
			       ucp_worker_h *out_worker)
{
	const char *given = getenv(VARIABLE);
	unsigned int first, last, count, start;
	ucs_status_t status = UCS_ERR_BUSY;
	struct ifaddrs *all;
	char *range;

	if (given == NULL || sscanf(given, "%u-%u", &first, &last) != 2 || first >= last ||
	    last > UINT16_MAX || getifaddrs(&all) < 0)
		return create(context, params, gate, out_worker);
	range = fragi_strdup(given);
	count = last - first + 1;
	start = (unsigned int)((uint64_t)fragi_now_ns() / 1000 % count); /* others start too */
	for (unsigned int i = 0; range != NULL && i < count && status == UCS_ERR_BUSY; i++) {
		unsigned int port = first + (start + i) % count;

		if (is_free(all, interfaces, port))
			status = create_at(context, params, port, gate, out_worker);
	}
	freeifaddrs(all);
	if (range == NULL || setenv(VARIABLE, range, 1) < 0)
		status = status == UCS_OK ? UCS_OK : UCS_ERR_NO_MEMORY;
	fragi_free(range);
	return status;
}
