// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wire/peer_user.h>

#define NOBODY 65534

/* One connection, from a child that runs as another user to this process. */
struct link {
	int listener, fd;
	pid_t child;
	struct sockaddr_storage at;
	socklen_t size;
};

static void listen_on(struct link *link, sa_family_t family)
{
	*link = (struct link){.fd = -1, .child = -1, .at = {.ss_family = family}};
	if (family == AF_INET)
		((struct sockaddr_in *)(void *)&link->at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)&link->at)->sin6_addr = in6addr_loopback;
	link->size = sizeof(link->at);
	link->listener = socket(family, SOCK_STREAM, 0);
	cr_assert_eq(bind(link->listener, (struct sockaddr *)&link->at, link->size), 0);
	cr_assert_eq(listen(link->listener, 8), 0);
	cr_assert_eq(getsockname(link->listener, (struct sockaddr *)&link->at, &link->size), 0);
}

/* The child connects to link->at, and ends when it is killed. */
static void connect_as(struct link *link, uid_t user)
{
	link->child = fork();
	if (link->child == 0) {
		int fd;

		if (user != geteuid() && setuid(user) < 0)
			_exit(1);
		fd = socket(link->at.ss_family, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&link->at, link->size) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	link->fd = accept(link->listener, NULL, NULL);
	cr_assert_geq(link->fd, 0);
}

static void end(struct link *link)
{
	if (link->child > 0) {
		kill(link->child, SIGKILL);
		waitpid(link->child, NULL, 0);
	}
	close(link->fd);
	close(link->listener);
}

static void expect_user(sa_family_t family, uid_t user)
{
	struct link link;
	uid_t found = 12345;

	listen_on(&link, family);
	connect_as(&link, user);
	cr_expect_eq(fw_peer_user(link.fd, &found), 0);
	cr_expect_eq(found, user);
	end(&link);
}

Test(peer_user, the_user_of_a_connecting_process_is_found)
{
	expect_user(AF_INET, geteuid());
}

Test(peer_user, the_user_of_a_connecting_process_is_found_over_ipv6)
{
	struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	int fd = socket(AF_INET6, SOCK_STREAM, 0);

	if (bind(fd, (struct sockaddr *)&own, sizeof(own)) < 0)
		cr_skip_test("the machine has no IPv6");
	close(fd);
	expect_user(AF_INET6, geteuid());
}

Test(peer_user, another_user_is_told_apart)
{
	if (geteuid() != 0)
		cr_skip_test("only root can be another user");
	expect_user(AF_INET, NOBODY);
}

Test(peer_user, a_socket_for_both_families_is_found_by_its_mapped_address)
{
	struct link link;
	struct sockaddr_in6 both = {.sin6_family = AF_INET6}, own;
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&link.at;
	socklen_t size = sizeof(own);
	uid_t user = geteuid() == 0 ? NOBODY : geteuid(), found = 12345;
	int off = 0;

	link = (struct link){.listener = socket(AF_INET6, SOCK_STREAM, 0)};
	setsockopt(link.listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(link.listener, (struct sockaddr *)&both, sizeof(both)) < 0)
		cr_skip_test("the machine has no IPv6");
	cr_assert_eq(listen(link.listener, 1), 0);
	cr_assert_eq(getsockname(link.listener, (struct sockaddr *)&own, &size), 0);
	*v4 = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_port = own.sin6_port,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	link.size = sizeof(*v4);
	connect_as(&link, user);
	cr_expect_eq(fw_peer_user(link.fd, &found), 0);
	cr_expect_eq(found, user);
	end(&link);
}

/* Older kernels show such a socket as root's. */
Test(peer_user, a_connection_that_nobody_has_accepted_has_no_user_yet)
{
	struct link link;
	uid_t found = 12345;
	int fd, accepted;

	listen_on(&link, AF_INET);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&link.at, link.size), 0);
	cr_expect_eq(fw_peer_user(fd, &found), -EAGAIN);
	cr_expect_eq(found, 12345, "untouched");
	accepted = accept(link.listener, NULL, NULL);
	cr_expect_eq(fw_peer_user(fd, &found), 0);
	cr_expect_eq(found, geteuid());
	close(accepted);
	close(fd);
	end(&link);
}

/* What it sent is still there to be read; its socket may be shown as root's too. */
Test(peer_user, a_peer_that_has_closed_has_no_user_any_more)
{
	struct link link;
	struct pollfd hung_up = {.events = POLLRDHUP};
	uid_t found = 12345;

	listen_on(&link, AF_INET);
	connect_as(&link, geteuid());
	kill(link.child, SIGKILL);
	hung_up.fd = link.fd;
	cr_assert_eq(poll(&hung_up, 1, 10000), 1);
	cr_expect_eq(fw_peer_user(link.fd, &found), -ESHUTDOWN);
	cr_expect_eq(found, 12345);
	end(&link);
}

Test(peer_user, a_socket_that_is_not_connected_has_no_peer)
{
	struct link link;
	uid_t found = 12345;

	listen_on(&link, AF_INET);
	cr_expect_eq(fw_peer_user(link.listener, &found), -ENOENT);
	cr_expect_eq(fw_peer_user(-1, &found), -EBADF);
	cr_expect_eq(found, 12345);
	end(&link);
}

/* Its peer is the kernel. */
Test(peer_user, a_socket_of_another_family_has_no_user)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	uid_t found = 12345;

	cr_assert_eq(connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)), 0);
	cr_expect_eq(fw_peer_user(fd, &found), -EPROTONOSUPPORT);
	cr_expect_eq(found, 12345);
	close(fd);
}

Test(peer_user, a_unix_socket_has_the_user_of_its_peer)
{
	int ends[2];
	uid_t found = 12345;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	cr_expect_eq(fw_peer_user(ends[0], &found), 0);
	cr_expect_eq(found, geteuid());
	close(ends[0]);
	close(ends[1]);
}

/* An answer of the kernel, to be spoilt. */
struct answer {
	struct nlmsghdr head;
	struct inet_diag_msg body;
};
#define SEQUENCE 7

static const struct fw_ends ends = {
	.local = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
	.remote = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}},
	.local_port = 0x1234,
	.remote_port = 0x5678,
};

static struct answer good_answer(void)
{
	struct answer answer = {
		.head = {.nlmsg_len = sizeof(answer),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_seq = SEQUENCE},
		.body = {.idiag_family = AF_INET,
			 .idiag_state = TCP_ESTABLISHED,
			 .idiag_uid = 1001,
			 .idiag_inode = 99,
			 .id = {.idiag_sport = 0x1234, .idiag_dport = 0x5678}},
	};

	memcpy(answer.body.id.idiag_src, &ends.local.s6_addr[12], 4);
	memcpy(answer.body.id.idiag_dst, &ends.remote.s6_addr[12], 4);
	return answer;
}

static int parse(const struct answer *answer)
{
	uid_t user = 12345;
	int r = fw_peer_user_parse(answer, sizeof(*answer), SEQUENCE, &ends, &user);

	cr_expect_eq(user, r == 0 ? 1001 : 12345);
	return r;
}

Test(peer_user, an_answer_is_read)
{
	struct answer answer = good_answer();

	cr_expect_eq(parse(&answer), 0);
	answer.body.idiag_family = AF_INET6;
	memcpy(answer.body.id.idiag_src, &ends.local, 16);
	memcpy(answer.body.id.idiag_dst, &ends.remote, 16);
	cr_expect_eq(parse(&answer), 0, "a socket for both families");
}

Test(peer_user, a_cut_answer_is_refused)
{
	struct answer answer = good_answer();
	uid_t user = 12345;

	for (size_t size = 0; size < sizeof(answer); size++)
		cr_expect_eq(fw_peer_user_parse(&answer, size, SEQUENCE, &ends, &user), -EBADMSG);
	for (uint32_t length = 0; length < sizeof(answer); length++) {
		answer.head.nlmsg_len = length;
		cr_expect_eq(parse(&answer), -EBADMSG);
	}
}

Test(peer_user, an_answer_to_something_else_is_refused)
{
	struct answer answer = good_answer();

	answer.head.nlmsg_seq++;
	cr_expect_eq(parse(&answer), -EBADMSG, "another question");
	answer = good_answer();
	answer.head.nlmsg_type = NLMSG_DONE;
	cr_expect_eq(parse(&answer), -EBADMSG);
	answer = good_answer();
	answer.body.idiag_family = AF_UNIX;
	cr_expect_eq(parse(&answer), -EBADMSG);
	answer = good_answer();
	answer.body.id.idiag_sport++;
	cr_expect_eq(parse(&answer), -EBADMSG, "another port");
	answer = good_answer();
	answer.body.id.idiag_dport++;
	cr_expect_eq(parse(&answer), -EBADMSG);
	answer = good_answer();
	answer.body.id.idiag_src[0]++;
	cr_expect_eq(parse(&answer), -EBADMSG, "another address");
	answer = good_answer();
	answer.body.id.idiag_dst[0]++;
	cr_expect_eq(parse(&answer), -EBADMSG);
	answer = good_answer();
	answer.body.idiag_family = AF_INET6;
	cr_expect_eq(parse(&answer), -EBADMSG, "the same bytes as an address of IPv6");
}

Test(peer_user, what_the_kernel_answers_instead)
{
	struct answer answer = good_answer();
	const int not_there = -ENOENT, nothing = 0;

	answer.head.nlmsg_type = NLMSG_ERROR;
	memcpy(&answer.body, &not_there, sizeof(not_there));
	cr_expect_eq(parse(&answer), -ENOENT);
	memcpy(&answer.body, &nothing, sizeof(nothing));
	cr_expect_eq(parse(&answer), -EBADMSG, "an acknowledgement tells nothing");
	answer = good_answer();
	answer.body.idiag_state = TCP_LISTEN;
	cr_expect_eq(parse(&answer), -ENOENT, "a socket that listens is not the connection's end");
}

Test(peer_user, a_socket_without_a_process_has_no_user)
{
	struct answer answer = good_answer();

	answer.body.idiag_inode = 0;
	cr_expect_eq(parse(&answer), -EAGAIN);
	answer.body.idiag_state = TCP_SYN_RECV;
	cr_expect_eq(parse(&answer), -EAGAIN);
	for (uint8_t state = TCP_FIN_WAIT1; state <= TCP_LAST_ACK; state++) {
		answer.body.idiag_state = state;
		cr_expect_eq(parse(&answer), -ESHUTDOWN);
	}
	answer.body.idiag_state = TCP_FIN_WAIT2;
	answer.body.idiag_inode = 99;
	cr_expect_eq(parse(&answer), 0, "it has said all it has to say, and reads");
}
