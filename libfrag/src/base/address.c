// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <base/units.h>

static int parse_port(const char *text, size_t length, uint16_t *out_port)
{
	uint32_t port = 0;

	if (length == 0 || length > 5)
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		port = port * 10 + (uint32_t)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return -EINVAL;
	*out_port = (uint16_t)port;
	return 0;
}

/* "57777" or "10000-32767" */
static int parse_ports(const char *text, uint16_t *out_first, uint16_t *out_last)
{
	const char *dash = strchr(text, '-');
	size_t length = dash != NULL ? (size_t)(dash - text) : strlen(text);
	uint16_t first, last;

	if (parse_port(text, length, &first) < 0)
		return -EINVAL;
	last = first;
	if (dash != NULL &&
	    (parse_port(dash + 1, strlen(dash + 1), &last) < 0 || first == 0 || last < first))
		return -EINVAL;
	*out_first = first;
	*out_last = last;
	return 0;
}

static bool ipv6_is_valid(const char *host)
{
	char bare[INET6_ADDRSTRLEN];
	const char *zone = strchr(host, '%');
	size_t length = zone != NULL ? (size_t)(zone - host) : strlen(host);
	struct in6_addr address;

	if (length >= sizeof(bare) || (zone != NULL && (zone[1] == '\0' || strlen(zone) > 16)))
		return false;
	memcpy(bare, host, length);
	bare[length] = '\0';
	return inet_pton(AF_INET6, bare, &address) == 1;
}

/* A host name, or an IPv4 address when it consists of digits and dots. */
static bool host_is_valid(const char *host)
{
	struct in_addr address;

	if (host[strspn(host, "0123456789.")] == '\0')
		return inet_pton(AF_INET, host, &address) == 1;
	if (strlen(host) > 253 || host[0] == '-' || host[0] == '.')
		return false;
	return host[strspn(host,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] ==
	       '\0';
}

int fragi_parse_address(const char *text, const char *host_default, uint16_t port_default,
			struct fragi_address *out_address, struct frag_err *err)
{
	struct fragi_address address = {.port = port_default, .port_last = port_default};
	const char *host, *rest;
	size_t length;
	bool bracket;

	if (text == NULL)
		text = "";
	bracket = text[0] == '[';
	host = text + bracket;
	rest = bracket ? strchr(host, ']') : strchr(host, ':');
	if (bracket && (rest == NULL || (rest[1] != '\0' && rest[1] != ':')))
		return frag_err_set(
			err, -EINVAL,
			"\"%.255s\" is not a valid address: the bracket is not closed; write [IPv6]:PORT",
			text);
	length = rest != NULL ? (size_t)(rest - host) : strlen(host);
	rest = rest == NULL ? "" : rest + bracket;
	if (!bracket && rest[0] == ':' && strchr(rest + 1, ':') != NULL)
		return frag_err_set(
			err, -EINVAL,
			"\"%.255s\" is not a valid address: put an IPv6 address in brackets, as in [::1]:%u",
			text, (unsigned int)FRAGI_PORT_DEFAULT);
	if (length >= sizeof(address.host))
		return frag_err_set(err, -EINVAL,
				    "\"%.60s...\" is not a valid address: it is too long", text);
	memcpy(address.host, host, length);
	if (length == 0 && !bracket)
		snprintf(address.host, sizeof(address.host), "%s", host_default);
	else if (bracket ? !ipv6_is_valid(address.host) : !host_is_valid(address.host))
		return frag_err_set(
			err, -EINVAL,
			"\"%.255s\" is not a valid address: \"%.200s\" is not a valid %s; write [HOST][:PORT], as in 10.0.0.1:%u or :%u",
			text, address.host, bracket ? "IPv6 address" : "host name or address",
			(unsigned int)FRAGI_PORT_DEFAULT, (unsigned int)FRAGI_PORT_DEFAULT);
	if (rest[0] == ':' && parse_ports(rest + 1, &address.port, &address.port_last) < 0)
		return frag_err_set(
			err, -EINVAL,
			"\"%.255s\" is not a valid address: \"%.60s\" is not a valid port; give a number from 0 to 65535, or a range FIRST-LAST",
			text, rest + 1);
	*out_address = address;
	return 0;
}

bool fragi_address_is_loopback(const struct fragi_address *address)
{
	static const uint8_t mapped_prefix[12] = {[10] = 0xFF, [11] = 0xFF};
	struct in6_addr v6;
	struct in_addr v4;

	if (strcasecmp(address->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address->host, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, address->host, &v6) != 1)
		return false;
	if (memcmp(v6.s6_addr, mapped_prefix, sizeof(mapped_prefix)) == 0)
		return v6.s6_addr[12] == 127;
	return memcmp(&v6, &in6addr_loopback, sizeof(v6)) == 0;
}
