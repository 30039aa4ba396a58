// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/doctor.h>

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/units.h>
#include <workerd/interface.h>

/* Checks of the network: the way to the driver, and ports. */

#define DATA_PORT_FIRST 10000 /* of workerd --worker-address */
#define DATA_PORT_LAST 32767
#define FAST_MBIT 10000
#define JUMBO 9000

/* The address that this node has towards the driver. */
static bool own_address(const struct fragi_address *driver, char *out, size_t size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	char port[8];
	int fd = -1;
	bool has;

	snprintf(port, sizeof(port), "%u", driver->port);
	if (getaddrinfo(driver->host, port, &hints, &found) != 0)
		return false;
	fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	has = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
	      getsockname(fd, (struct sockaddr *)(void *)&own, &length) == 0 &&
	      getnameinfo((const struct sockaddr *)(const void *)&own, length, out, (socklen_t)size,
			  NULL, 0, NI_NUMERICHOST) == 0;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
	return has;
}

/* The interface towards the driver; "": there is no way to it. */
static void find_device(const struct ctl_node *node, const struct fragi_address *driver,
			char device[IF_NAMESIZE])
{
	struct frag_err err = FRAG_ERR_INIT;
	char own[128];

	device[0] = '\0';
	if (node->root[0] != '\0')
		ctl_node_read(node, device, IF_NAMESIZE, "/asked/interface");
	else if (own_address(driver, own, sizeof(own)) && wrk_interface_find(own, device, &err) < 0)
		device[0] = '\0';
}

static bool parse_address(const struct ctl_node *node, struct fragi_address *out)
{
	struct frag_err err = FRAG_ERR_INIT;

	return fragi_parse_address(node->address != NULL ? node->address : "", "127.0.0.1",
				   FRAGI_PORT_DEFAULT, out, &err) == 0;
}

/* Said of a container that sees no card of the machine, only a network of its own. */
static const char *own_network(const struct ctl_node *node)
{
	glob_t found;
	size_t cards = ctl_node_find(node, "/sys/class/net/*/device", &found);

	globfree(&found);
	return node->is_container && cards == 0
		       ? "; only the container's network: podman run --network host lets workers "
			 "of other machines in"
		       : "";
}

static void check_device(const struct ctl_node *node, struct ctl_finding *finding,
			 const char *device)
{
	const char *own = own_network(node);
	long long mtu = ctl_node_number(node, "/sys/class/net/%s/mtu", device);
	long long speed = ctl_node_number(node, "/sys/class/net/%s/speed", device);
	char state[32] = "", text[48] = "", size[48] = "";

	ctl_node_read(node, state, sizeof(state), "/sys/class/net/%s/operstate", device);
	if (speed > 0)
		snprintf(text, sizeof(text), ", %lld Mbit/s", speed);
	if (mtu > 0)
		snprintf(size, sizeof(size), ", MTU %lld", mtu);
	if (state[0] != '\0' && strcmp(state, "up") != 0 && strcmp(state, "unknown") != 0) {
		ctl_finding_wrong(finding, "%s, towards the driver, is %s", device, state);
		ctl_finding_cost(finding, "no message leaves this node");
		ctl_finding_mend(finding, "ip link set %s up; look at its cable and its switch",
				 device);
	} else if (speed > 0 && speed < 1000) {
		ctl_finding_wrong(finding, "%s runs at %lld Mbit/s", device, speed);
		ctl_finding_cost(finding, "a video frame of 1.3 MB takes %lld ms to the next node",
				 10400 / speed);
		ctl_finding_mend(finding, "look at its cable and at its switch; ethtool %s",
				 device);
	} else if (own[0] == '\0' && speed >= FAST_MBIT && mtu > 0 && mtu < JUMBO) {
		ctl_finding_wrong(finding, "%s%s has an MTU of %lld", device, text, mtu);
		ctl_finding_cost(finding,
				 "six times as many packets, and the processor time of these");
		ctl_finding_mend(finding,
				 "ip link set %s mtu 9000, on all nodes, and on the switch",
				 device);
	} else {
		ctl_finding_ok(finding, "%s%s%s%s", device, size, text, own);
	}
}

void ctl_check_interface(const struct ctl_node *node, struct ctl_finding *finding)
{
	struct fragi_address driver;
	char device[IF_NAMESIZE];

	if (!parse_address(node, &driver)) {
		ctl_finding_wrong(finding, "\"%.80s\" is no address of a driver", node->address);
		ctl_finding_cost(finding, "workerd does not start with it");
		ctl_finding_mend(finding, "--address [HOST][:PORT]");
		return;
	}
	find_device(node, &driver, device);
	if (device[0] == '\0') {
		ctl_finding_wrong(finding, "there is no way to %.80s", driver.host);
		ctl_finding_cost(finding, "no worker of this node reaches its driver");
		ctl_finding_mend(finding, "ip route get %.80s", driver.host);
	} else if (strcmp(device, "lo") == 0) {
		ctl_finding_ok(finding,
			       "lo: the driver is on this node (--address names another)%s",
			       own_network(node));
	} else {
		check_device(node, finding, device);
	}
}

/* Whether somebody listens on a port: state 0A in /proc/net/tcp. */
static bool is_listened(const struct ctl_node *node, unsigned int port)
{
	static const char *const files[] = {"/proc/net/tcp", "/proc/net/tcp6"};
	static char text[1 << 20];
	unsigned int found, state;
	char *line, *rest;

	for (size_t i = 0; i < FRAG_COUNT_OF(files); i++) {
		if (!ctl_node_read(node, text, sizeof(text), "%s", files[i]))
			continue;
		rest = text;
		while ((line = strsep(&rest, "\n")) != NULL)
			if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &found,
				   &state) == 2 &&
			    found == port && state == 0x0a)
				return true;
	}
	return false;
}

void ctl_check_driver_port(const struct ctl_node *node, struct ctl_finding *finding)
{
	struct fragi_address driver;
	bool runs = ctl_node_runs(node, "driverd", NULL), is_taken;

	if (!parse_address(node, &driver))
		driver.port = FRAGI_PORT_DEFAULT;
	is_taken = is_listened(node, driver.port);
	if (is_taken && !runs) {
		ctl_finding_wrong(finding, "another program listens on port %u", driver.port);
		ctl_finding_cost(finding, "driverd cannot start here (port_in_use)");
		ctl_finding_mend(finding, "ss -ltnp sport = :%u, or give --address another port",
				 driver.port);
	} else {
		ctl_finding_ok(finding, "%u%s", driver.port,
			       is_taken ? ": a driverd listens" : " is free");
	}
}

void ctl_check_data_ports(const struct ctl_node *node, struct ctl_finding *finding)
{
	long long first = ctl_node_number(node, "/proc/sys/net/ipv4/ip_local_port_range");

	if (first > DATA_PORT_LAST || first < 0) {
		ctl_finding_ok(finding, "%d-%d are left to workers", DATA_PORT_FIRST,
			       DATA_PORT_LAST);
		return;
	}
	ctl_finding_wrong(finding, "the kernel gives ports from %lld on to any program", first);
	ctl_finding_cost(finding, "a host may find a port of its worker taken (data_port_in_use)");
	ctl_finding_mend(finding, "sysctl net.ipv4.ip_local_port_range='32768 60999'");
}
