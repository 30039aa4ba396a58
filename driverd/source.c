// SPDX-License-Identifier: Apache-2.0
#include <driverd/source.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include <wire/peer_user.h>

void drv_source_read(int fd, struct drv_source *out_source)
{
	struct sockaddr_storage address;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)&address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)&address;
	socklen_t size = sizeof(address);

	*out_source = (struct drv_source){.user = 0};
	out_source->is_user = fw_peer_user(fd, &out_source->user) == 0;
	if (out_source->is_user || getpeername(fd, (struct sockaddr *)&address, &size) < 0)
		return;
	if (address.ss_family == AF_INET)
		memcpy(&out_source->network[12], &v4->sin_addr, sizeof(v4->sin_addr));
	else if (address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		memcpy(&out_source->network[12], &v6->sin6_addr.s6_addr[12], 4);
	else if (address.ss_family == AF_INET6)
		memcpy(out_source->network, &v6->sin6_addr, 8);
}

bool drv_source_is_same(const struct drv_source *a, const struct drv_source *b)
{
	return a->is_user == b->is_user && a->user == b->user &&
	       memcmp(a->network, b->network, sizeof(a->network)) == 0;
}
