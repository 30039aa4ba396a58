// SPDX-License-Identifier: Apache-2.0
/*
 * What of the ucx module needs no UCX: the preface as bytes, the ends of connections, on which
 * addresses it listens, which port of a range it gets, and whether a peer can be reached. The
 * calls that say something about this machine are the test's own.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <modules/ucx/module.h>

/* The machine of the test. */

static struct sockaddr_in v4[] = {{.sin_family = AF_INET}, {.sin_family = AF_INET}};
static struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
static struct ifaddrs interfaces[] = {
	{.ifa_name = (char *)"tun0"}, /* it has no address */
	{.ifa_name = (char *)"eth0", .ifa_addr = (struct sockaddr *)&v6},
	{.ifa_name = (char *)"lo", .ifa_addr = (struct sockaddr *)&v4[0]},
	{.ifa_name = (char *)"eth0", .ifa_addr = (struct sockaddr *)&v4[1]},
};

int getifaddrs(struct ifaddrs **out)
{
	inet_pton(AF_INET, "127.0.0.1", &v4[0].sin_addr);
	inet_pton(AF_INET, "10.0.0.9", &v4[1].sin_addr);
	inet_pton(AF_INET6, "fd00::9", &v6.sin6_addr);
	for (size_t i = 0; i + 1 < FRAG_COUNT_OF(interfaces); i++)
		interfaces[i].ifa_next = &interfaces[i + 1];
	*out = interfaces;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	cr_expect_eq(all, interfaces);
}

/* The preface, which hosts of other versions make and read, too. */

static void fill(uint8_t *at, size_t size, uint8_t first)
{
	for (size_t i = 0; i < size; i++)
		at[i] = (uint8_t)(first + i);
}

static void expect_bytes(const uint8_t *bytes, size_t size, const char *hex)
{
	char text[2 * 32 + 1];

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	cr_expect_str_eq(text, hex);
}

Test(ucx_parts, the_preface_is_these_bytes)
{
	uint8_t data_key[FRAGI_DATA_KEY_BYTES], made[UCX_GATE_KEY_BYTES], bytes[UCX_PREFACE_BYTES];
	static const uint8_t key[UCX_GATE_KEY_BYTES] = "the key of the application";
	struct ucx_ends ends;

	fill(data_key, sizeof(data_key), 0);
	cr_assert_eq(ucx_gate_key(data_key, made), 0);
	expect_bytes(made, sizeof(made),
		     "9f861d1ad7beb9ac0272660203f44eb41347980bc8b98bb4da44cdd4331f7ad0");
	fill(bytes, UCX_NONCE_BYTES, 1);
	fill(ends.from, sizeof(ends.from), 0x20);
	fill(ends.to, sizeof(ends.to), 0x40);
	fill(ends.identity, sizeof(ends.identity), 0x60);
	cr_assert_eq(ucx_preface_make(key, &ends, bytes), 0);
	expect_bytes(bytes, UCX_NONCE_BYTES, "0102030405060708090a0b0c0d0e0f10");
	expect_bytes(bytes + UCX_NONCE_BYTES, 32,
		     "fb1b05b3e98f5765a4714e82b3da203e2f921fb650ab7c1fbfee64a9b6dbca31");
}

/* The ends of connections. */

static const struct {
	const char *end, *host, *text;
} ends[] = {
	{"00000000000000000000ffff0a0000092b0e", "10.0.0.9", "10.0.0.9:11022"},
	{"00000000000000000000ffffff00ff000102", "255.0.255.0", "255.0.255.0:258"},
	{"fd0000000000000000000000000000092b0e", "fd00::9", "[fd00::9]:11022"},
	{"00000000000000000000fffe0a000009ffff", "::fffe:a00:9", "[::fffe:a00:9]:65535"},
};

static void end_from(const char *hex, uint8_t *out_end)
{
	for (size_t i = 0; i < UCX_END_BYTES; i++)
		sscanf(hex + 2 * i, "%2hhx", &out_end[i]);
}

Test(ucx_parts, ends_become_addresses_and_texts_and_come_back)
{
	struct sockaddr_in6 in6, empty;
	struct sockaddr_in in;
	char text[UCX_END_PORT_TEXT];
	uint8_t end[UCX_END_BYTES];

	for (size_t i = 0; i < FRAG_COUNT_OF(ends); i++) {
		const bool is_v4 = strchr(ends[i].host, ':') == NULL;

		end_from(ends[i].end, end);
		ucx_end_text(end, text);
		cr_expect_str_eq(text, ends[i].host);
		ucx_end_port_text(end, text);
		cr_expect_str_eq(text, ends[i].text);
		/* Nothing but address and port is written. */
		memset(&in6, 0x5a, sizeof(in6));
		in6.sin6_family = AF_INET6;
		empty = in6;
		cr_assert_eq(ucx_end_to(end, (struct sockaddr *)&in6), 0);
		cr_expect_eq(memcmp(&in6.sin6_addr, end, 16), 0);
		cr_expect_eq(memcmp(&in6.sin6_port, end + 16, 2), 0);
		cr_expect_eq(in6.sin6_scope_id, empty.sin6_scope_id);
		cr_expect_eq(in6.sin6_flowinfo, empty.sin6_flowinfo);
		memset(end, 0, sizeof(end));
		cr_assert_eq(ucx_end_of((struct sockaddr *)&in6, end), 0);
		expect_bytes(end, sizeof(end), ends[i].end);
		/* In a family that cannot hold it it is refused. */
		memset(&in, 0, sizeof(in));
		in.sin_family = AF_INET;
		cr_expect_eq(ucx_end_to(end, (struct sockaddr *)&in), is_v4 ? 0 : -EAFNOSUPPORT);
		cr_expect_eq(in.sin_port != 0, is_v4);
		if (!is_v4)
			continue;
		memset(end, 0, sizeof(end));
		cr_assert_eq(ucx_end_of((struct sockaddr *)&in, end), 0);
		expect_bytes(end, sizeof(end), ends[i].end);
	}
}

Test(ucx_parts, another_family_has_no_end)
{
	struct sockaddr_in6 other = {.sin6_family = AF_UNIX}, as_it_was = other;
	uint8_t end[UCX_END_BYTES], same[UCX_END_BYTES];

	memset(end, 9, sizeof(end));
	memcpy(same, end, sizeof(end));
	cr_expect_eq(ucx_end_of((struct sockaddr *)&other, end), -EAFNOSUPPORT);
	cr_expect_eq(memcmp(end, same, sizeof(end)), 0);
	cr_expect_eq(ucx_end_to(end, (struct sockaddr *)&other), -EAFNOSUPPORT);
	cr_expect_eq(memcmp(&other, &as_it_was, sizeof(other)), 0);
}

/* On which addresses it listens. */

Test(ucx_parts, a_list_of_interfaces_has_whole_names)
{
	static const char *const without[] = {"",      "eth", "eth01",    "lo,eth",
					      "xeth0", "lo",  "eth0.5,lo"};
	static const char *const with[] = {"eth0", "eth0,lo", "lo,eth0", "lo,eth0,ib0", "lo,,eth0"};

	for (size_t i = 0; i < FRAG_COUNT_OF(with); i++)
		cr_expect(ucx_interfaces_have(with[i], "eth0"), "%s", with[i]);
	for (size_t i = 0; i < FRAG_COUNT_OF(without); i++)
		cr_expect(!ucx_interfaces_have(without[i], "eth0"), "%s", without[i]);
}

static char *tables[2]; /* what the kernel lists; NULL: it cannot be opened */
static int table_errno;

FILE *fopen(const char *path, const char *mode)
{
	const char *table = strstr(path, "tcp6") != NULL ? tables[1] : tables[0];

	if (strncmp(path, "/proc/self/net/", 15) != 0) { /* of who runs the test */
		FILE *(*next)(const char *, const char *);

		*(void **)(void *)&next = dlsym(RTLD_NEXT, "fopen");
		return next(path, mode);
	}
	if (table == NULL)
		errno = table_errno;
	return table == NULL ? NULL : fmemopen((char *)(uintptr_t)table, strlen(table), mode);
}

/*
 * Lines of such a table: an address with its port, a state, and whether the socket is this
 * process's.
 */
#define LISTENS " 0A 00000000:00000000 00:00000000 00000000  1000        0 "
#define ANY6 "00000000000000000000000000000000"

static const struct {
	const char *v4, *v6; /* a line up to the inode */
	bool is_own, is_old;
	const char *list;
	int r;
	const char *text;
} listeners[] = {
	{"0900000A:2B0E 00000000:0000" LISTENS, NULL, true, false, "eth0", 0, ""},
	{"0900000A:2B0E 00000000:0000" LISTENS, NULL, true, false, "lo", -EPERM,
	 "UCX listens on 10.0.0.9 port 11022, which is not an address of lo;"},
	{"0900000A:2B0E 00000000:0000" LISTENS, NULL, true, false, "lo,eth0", 0, ""},
	{"0900000A:2B0E 00000000:0000" LISTENS, NULL, false, false, "lo", 0, ""},
	{"0900000A:2B0E 00000000:0000" LISTENS, NULL, true, true, "lo", 0, ""},
	/* a connection */
	{"0900000A:2B0E 0800000A:1111 01 00000000:00000000 00:00000000 00000000 0 0 ", NULL, true,
	 false, "lo", 0, ""},
	/* all addresses */
	{"00000000:0016 00000000:0000" LISTENS, NULL, true, false, "lo,eth0", -EPERM,
	 "UCX listens on 0.0.0.0 port 22, which"},
	{NULL, ANY6 ":0016 " ANY6 ":0000" LISTENS, true, false, "eth0", -EPERM,
	 "UCX listens on :: port 22, which"},
	{NULL, "000000FD000000000000000009000000:0016 " ANY6 ":0000" LISTENS, true, false, "eth0",
	 0, ""},
	{NULL, "000000FD000000000000000009000000:0016 " ANY6 ":0000" LISTENS, true, false, "lo",
	 -EPERM, "UCX listens on fd00::9 port 22, which is not an address of lo;"},
	{NULL, "000000FD000000000000000000000009:0016 " ANY6 ":0000" LISTENS, true, false, "eth0",
	 -EPERM, "UCX listens on fd00::900:0 port 22, which"},
	/* an address of the other family is none */
	{NULL, "0900000A:2B0E 00000000:0000" LISTENS, true, false, "lo", 0, ""},
};

Test(ucx_parts, what_it_listens_on_is_looked_up)
{
	struct ucx_sockets before, now;
	char line[2][300];

	for (size_t i = 0; i < FRAG_COUNT_OF(listeners); i++) {
		const char *own[2] = {listeners[i].v4, listeners[i].v6};
		struct frag_err err = FRAG_ERR_INIT;
		int fd = -1;

		cr_assert_eq(ucx_sockets_list(&before), 0);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		cr_assert_eq(ucx_sockets_list(&now), 0);
		cr_assert_eq(now.count, before.count + 1);
		for (int k = 0; k < 2; k++) {
			tables[k] = line[k];
			snprintf(line[k], sizeof(line[k]),
				 "  sl  local_address rem_address\n   0: ");
			if (own[k] != NULL)
				snprintf(line[k] + strlen(line[k]), 250, "%s%llu 1 0000 100\n",
					 own[k],
					 (unsigned long long)now.inodes[now.count - 1] +
						 !listeners[i].is_own);
		}
		cr_expect_eq(ucx_sockets_check(listeners[i].is_old ? &now : &before,
					       listeners[i].list, &err),
			     listeners[i].r, "%zu: %s", i, err.text);
		cr_expect_not_null(strstr(err.text, listeners[i].text), "%zu: %s", i, err.text);
		close(fd);
	}
}

Test(ucx_parts, a_table_that_cannot_be_read_is_no_empty_one)
{
	struct ucx_sockets before = {0};
	struct frag_err err = FRAG_ERR_INIT;

	table_errno = ENOENT;
	cr_expect_eq(ucx_sockets_check(&before, "lo", &err), 0, "%s", err.text);
	table_errno = EACCES;
	cr_expect_eq(ucx_sockets_check(&before, "lo", &err), -EACCES);
	cr_expect_str_eq(
		err.text,
		"cannot look up what UCX listens on: /proc/self/net/tcp: Permission denied");
	tables[0] = (char *)"  sl  local_address\n";
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(ucx_sockets_check(&before, "lo", &err), -EACCES);
	cr_expect_not_null(strstr(err.text, "/proc/self/net/tcp6: "), "%s", err.text);
}

/* Which port of a range it gets. */

static struct {
	const char *address; /* where ports are taken */
	unsigned int first, last;
	int reason;
	unsigned int refused; /* UCX finds that port taken in the meantime */
	ucs_status_t status;  /* and says this; 0: any port will do */
	unsigned int created, opened;
	char range[32]; /* at the last creation */
} ports;

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
	char text[INET_ADDRSTRLEN];

	(void)fd;
	cr_assert_eq(size, sizeof(*in));
	inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
	if (strcmp(text, ports.address) != 0 || ntohs(in->sin_port) < ports.first ||
	    ntohs(in->sin_port) > ports.last)
		return 0;
	errno = ports.reason;
	return -1;
}

void ucx_gate_open(struct ucx_gate *gate)
{
	(void)gate;
	ports.opened++;
}

void ucx_gate_close(void)
{
	ports.opened--;
}

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       ucp_worker_h *out_worker)
{
	const char *range = getenv("UCX_TCP_PORT_RANGE");

	(void)context, (void)params;
	cr_expect_eq(ports.opened, 1, "the gate is open meanwhile");
	ports.created++;
	snprintf(ports.range, sizeof(ports.range), "%s", range != NULL ? range : "");
	*out_worker = NULL;
	return ports.status != UCS_OK && atoi(ports.range) == (int)ports.refused ? ports.status
										 : UCS_OK;
}

static const struct {
	const char *range, *list;
	const char *address;
	unsigned int first, last;
	int reason;
	const char *given; /* to UCX; NULL: any port of the range; empty: it is not created */
} ranges[] = {
	{"20000-20003", "eth0", "10.0.0.9", 20000, 20002, EADDRINUSE, "20003-20003"},
	{"20000-20003", "eth0", "10.0.0.9", 20001, 20003, EADDRINUSE, "20000-20000"},
	{"20000-20003", "eth0", "10.0.0.9", 20000, 20003, EADDRINUSE, ""},
	{"20000-20003", "eth0", "127.0.0.1", 20000, 20003, EADDRINUSE, NULL},
	{"20000-20003", "lo,eth0", "127.0.0.1", 20000, 20003, EADDRINUSE, ""},
	{"20000-20003", "all", "127.0.0.1", 20000, 20003, EADDRINUSE, ""},
	{"20000-20003", "", "127.0.0.1", 20000, 20003, EADDRINUSE, ""},
	{"20000-20003", NULL, "127.0.0.1", 20000, 20003, EADDRINUSE, ""},
	/* another reason is UCX's to report */
	{"20000-20003", "eth0", "10.0.0.9", 20000, 20003, EACCES, NULL},
	{"65534-65535", "eth0", "10.0.0.9", 65534, 65534, EADDRINUSE, "65535-65535"},
	/* not a range that is to be searched */
	{"20000-20000", "eth0", "10.0.0.9", 20000, 20003, EADDRINUSE, "20000-20000"},
	{"20001-20000", "eth0", "10.0.0.9", 20000, 20003, EADDRINUSE, "20001-20000"},
	{"20000-65536", "eth0", "10.0.0.9", 20000, 65535, EADDRINUSE, "20000-65536"},
	{"20000", "eth0", "10.0.0.9", 20000, 20003, EADDRINUSE, "20000"},
};

static ucs_status_t create(const char *range, const char *list)
{
	ucp_worker_params_t params = {0};
	ucs_status_t status;
	ucp_worker_h worker;

	setenv("UCX_TCP_PORT_RANGE", range, 1);
	ports.created = 0;
	status = ucx_worker_create(NULL, &params, list, NULL, &worker);
	cr_expect_eq(ports.opened, 0);
	cr_expect_str_eq(getenv("UCX_TCP_PORT_RANGE"), range);
	return status;
}

Test(ucx_parts, it_gets_a_free_port_of_the_range)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(ranges); i++) {
		const bool is_none = ranges[i].given != NULL && *ranges[i].given == '\0';

		ports.address = ranges[i].address;
		ports.first = ranges[i].first;
		ports.last = ranges[i].last;
		ports.reason = ranges[i].reason;
		cr_expect_eq(create(ranges[i].range, ranges[i].list),
			     is_none ? UCS_ERR_BUSY : UCS_OK, "%zu", i);
		cr_expect_eq(ports.created, is_none ? 0 : 1, "%zu", i);
		if (!is_none && ranges[i].given != NULL)
			cr_expect_str_eq(ports.range, ranges[i].given, "%zu", i);
		else if (!is_none)
			cr_expect(atoi(ports.range) >= 20000 && atoi(ports.range) <= 20003,
				  "%zu: %s", i, ports.range);
	}
}

Test(ucx_parts, a_port_that_is_taken_meanwhile_is_passed_over)
{
	for (int i = 0; i < 20; i++) { /* wherever it begins */
		ports.address = "";
		ports.refused = 20000;
		ports.status = UCS_ERR_BUSY;
		cr_expect_eq(create("20000-20001", "eth0"), UCS_OK);
		cr_expect_str_eq(ports.range, "20001-20001");
		ports.address = "10.0.0.9"; /* the other one is not free */
		ports.first = ports.last = 20001;
		ports.reason = EADDRINUSE;
		ports.status = UCS_ERR_NO_DEVICE;
		cr_expect_eq(create("20000-20001", "eth0"), UCS_ERR_NO_DEVICE);
		cr_expect_eq(ports.created, 1);
	}
}

/* Whether a peer can be reached. */

#define LATER 1000 /* not at once */
#define NEVER 2000

static struct {
	const char *end;
	int reason; /* of connecting to it; 0: it works */
} doors[3];
static int reason_of[1024]; /* of each descriptor, + 1 */
static char dialed[80];     /* which doors, in order */

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
	uint8_t end[UCX_END_BYTES], door[UCX_END_BYTES];
	struct linger at_once;
	socklen_t bytes = sizeof(at_once);

	cr_assert_eq(size, address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6));
	cr_assert_eq(ucx_end_of(address, end), 0);
	cr_assert_eq(syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_LINGER, &at_once, &bytes), 0);
	cr_expect(at_once.l_onoff == 1 && at_once.l_linger == 0, "it ends without a byte");
	cr_expect((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(doors) && doors[i].end != NULL; i++) {
		end_from(doors[i].end, door);
		if (memcmp(end, door, sizeof(end)) != 0)
			continue;
		snprintf(dialed + strlen(dialed), 8, "%zu", i);
		reason_of[fd] = 1 + doors[i].reason;
		errno = doors[i].reason >= LATER ? EINPROGRESS : doors[i].reason;
		return doors[i].reason == 0 ? 0 : -1;
	}
	cr_expect(false, "it connects elsewhere");
	return -1;
}

/* <poll.h> says that poll only writes. */
int own_poll(struct pollfd *fds, nfds_t count, int limit_ms) __asm__("poll");

int own_poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
	cr_assert_eq(count, 1);
	cr_expect(limit_ms > 0 && limit_ms <= 201 && fds->events == POLLOUT);
	fds->revents = reason_of[fds->fd] - 1 >= NEVER ? 0 : POLLOUT;
	return fds->revents != 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	if (name != SO_ERROR || reason_of[fd] == 0)
		return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
	*(int *)value = (reason_of[fd] - 1) % LATER;
	reason_of[fd] = 0;
	return 0;
}

#define V4 "00000000000000000000ffff0a0000092b0e"
#define OTHER_V4 "00000000000000000000ffff0a0000082b0e"
#define V6 "fd0000000000000000000000000000092b0e"
#define LOOPBACK "00000000000000000000ffff7f0000092b0e"
#define LOOPBACK_V6 "000000000000000000000000000000012b0e"
#define NO_LOOPBACK "000000000000000000000000000000022b0e"

static const struct {
	struct {
		const char *end;
		int reason;
	} doors[3];
	int r;
	const char *dialed;
} peers[] = {
	{{{V4, 0}}, 0, "0"},
	{{{V6, 0}}, 0, "0"},
	{{{V4, LATER}}, 0, "0"},
	{{{V4, NEVER}}, 0, "0"},
	{{{V4, ECONNREFUSED}}, -ECONNREFUSED, "0"},
	{{{V6, LATER + ECONNREFUSED}}, -ECONNREFUSED, "0"},
	{{{V6, EHOSTUNREACH}}, -EHOSTUNREACH, "0"},
	{{{V4, ECONNRESET}}, 0, "0"},
	{{{V4, LATER + ECONNRESET}}, 0, "0"},
	/* one that works is enough, wherever it is */
	{{{V4, ECONNREFUSED}, {V6, 0}}, 0, "01"},
	{{{V4, 0}, {V6, ECONNREFUSED}}, 0, "01"},
	{{{V4, LATER}, {V6, EHOSTUNREACH}, {OTHER_V4, ECONNREFUSED}}, 0, "012"},
	{{{V4, ECONNREFUSED}, {V6, LATER}, {OTHER_V4, EHOSTUNREACH}}, 0, "012"},
	{{{V4, ECONNREFUSED}, {V6, NEVER}}, 0, "01"},
	/* the last reason counts */
	{{{V4, ECONNREFUSED}, {V6, EHOSTUNREACH}}, -EHOSTUNREACH, "01"},
	{{{V4, EHOSTUNREACH}, {V6, LATER + ECONNREFUSED}}, -ECONNREFUSED, "01"},
	/* a loopback address is tried where it is the only one */
	{{{LOOPBACK, ECONNREFUSED}}, -ECONNREFUSED, "0"},
	{{{LOOPBACK, 0}, {V4, ECONNREFUSED}}, -ECONNREFUSED, "1"},
	{{{V4, ECONNREFUSED}, {LOOPBACK_V6, 0}}, -ECONNREFUSED, "0"},
	{{{LOOPBACK, ECONNREFUSED}, {LOOPBACK_V6, ECONNREFUSED}}, 0, ""},
	{{{V4, ECONNREFUSED}, {NO_LOOPBACK, 0}}, 0, "01"},
	{{{NULL, 0}}, 0, ""},
};

Test(ucx_parts, a_peer_is_refused_where_no_door_may_open)
{
	struct ucx_sockets before, after;

	for (size_t i = 0; i < FRAG_COUNT_OF(peers); i++) {
		struct ucx_entrance peer = {0};
		uint8_t dial[UCX_END_BYTES] = {0}, last[UCX_END_BYTES] = {0};

		for (size_t k = 0; k < FRAG_COUNT_OF(doors); k++) {
			doors[k].end = peers[i].doors[k].end;
			doors[k].reason = peers[i].doors[k].reason;
			if (doors[k].end != NULL)
				end_from(doors[k].end, peer.doors[peer.count++].dial);
		}
		dialed[0] = '\0';
		ucx_sockets_list(&before);
		cr_expect_eq(ucx_probe(&peer, dial), peers[i].r, "%zu", i);
		ucx_sockets_list(&after);
		cr_expect_eq(after.count, before.count, "%zu: a socket is left", i);
		cr_expect_str_eq(dialed, peers[i].dialed, "%zu", i);
		if (*dialed != '\0')
			end_from(doors[dialed[strlen(dialed) - 1] - '0'].end, last);
		cr_expect_eq(memcmp(dial, last, sizeof(dial)), 0, "%zu", i);
	}
}
