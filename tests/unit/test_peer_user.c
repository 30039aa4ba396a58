// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <workerd/peer_user.h>

/* What the accepting end thinks of a process of user `uid` that connects over this family. */
static bool is_own(sa_family_t family, uid_t uid)
{
	struct sockaddr_storage at = {.ss_family = family}, own, peer;
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&at;
	int listener = socket(family, SOCK_STREAM, 0), fd;
	socklen_t size = sizeof(at);
	pid_t pid;
	bool is_own;

	if (family == AF_INET)
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)(void *)&at)->sin6_addr = in6addr_loopback;
	cr_assert_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	cr_assert_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&at, &size);
	pid = fork();
	if (pid == 0) {
		if (uid != geteuid() && setuid(uid) < 0)
			_exit(1);
		fd = socket(family, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&at, size) < 0)
			_exit(1);
		pause();
	}
	fd = accept(listener, NULL, NULL);
	cr_assert_geq(fd, 0);
	size = sizeof(own);
	getsockname(fd, (struct sockaddr *)&own, &size);
	size = sizeof(peer);
	getpeername(fd, (struct sockaddr *)&peer, &size);
	is_own = wrk_peer_is_own_user((struct sockaddr *)&own, (struct sockaddr *)&peer);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	close(listener);
	return is_own;
}

Test(peer_user, a_process_of_this_user_is_recognised)
{
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	cr_expect(is_own(AF_INET, geteuid()));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		cr_expect(is_own(AF_INET6, geteuid()));
	close(fd);
}

Test(peer_user, a_process_of_another_user_is_not)
{
	if (geteuid() != 0)
		cr_skip_test("only root can be another user");
	cr_expect_not(is_own(AF_INET, 65534));
}

Test(peer_user, an_end_elsewhere_is_not)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(1)}, peer = own;

	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	cr_expect_not(wrk_peer_is_own_user((struct sockaddr *)&own, (struct sockaddr *)&peer));
	cr_expect_not(wrk_peer_is_own_user((struct sockaddr *)&own, (struct sockaddr *)&own));
}
