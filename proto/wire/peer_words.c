// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <wire/peer_words.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define QUOTE_BYTES 40

void fw_peer_name(const uv_tcp_t *tcp, char out[FW_PEER_NAME_MAX])
{
	struct sockaddr_storage address;
	char host[INET6_ADDRSTRLEN];
	int length = sizeof(address);

	if (uv_tcp_getpeername(tcp, (struct sockaddr *)&address, &length) < 0)
		return;
	if (address.ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		snprintf(out, FW_PEER_NAME_MAX, "%s:%u", host, ntohs(in->sin_port));
	} else if (address.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		snprintf(out, FW_PEER_NAME_MAX, "[%s]:%u", host, ntohs(in6->sin6_port));
	}
}

void fw_process_name(const uv_pipe_t *pipe, char out[FW_PEER_NAME_MAX])
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int fd;

	if (uv_fileno((const uv_handle_t *)pipe, &fd) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		snprintf(out, FW_PEER_NAME_MAX, "process %d of user %u", (int)peer.pid,
			 (unsigned int)peer.uid);
}

void fw_bytes_quote(const uint8_t *bytes, size_t size, char out[FW_QUOTE_MAX])
{
	size_t length = 0, used = 0;

	while (length < size && length < QUOTE_BYTES && bytes[length] >= ' ' &&
	       bytes[length] <= '~')
		length++;
	if (length == size || length == QUOTE_BYTES ||
	    (length > 0 && (bytes[length] == '\r' || bytes[length] == '\n'))) {
		snprintf(out, FW_QUOTE_MAX, "\"%.*s\"", (int)length, (const char *)bytes);
		return;
	}
	snprintf(out, FW_QUOTE_MAX, "the bytes");
	for (size_t i = 0; i < size && i < 8; i++) {
		used = strlen(out);
		snprintf(out + used, FW_QUOTE_MAX - used, " %02x", bytes[i]);
	}
}

bool fw_bytes_begin_tls(const uint8_t *bytes, size_t size)
{
	return size >= 4 && (bytes[0] == 22 || bytes[0] == 21) && bytes[1] == 3 && bytes[2] <= 4;
}
