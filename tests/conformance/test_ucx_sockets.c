// SPDX-License-Identifier: Apache-2.0
/* The addresses of hosts over UCX, and the sockets that UCX opens. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ucx_stranger.h"

/* Addresses of hosts that cannot work together. */

static int add_with(struct pair *pair, size_t at, const char *text, struct frag_err *err)
{
	char address[FRAGI_HOST_ADDRESS_MAX];
	struct fragi_remote_endpoint *endpoint;
	struct fragi_remote_peer *peer;
	const void *own;
	size_t size;

	own = pair_address(pair, 1, &size);
	memcpy(address, own, size);
	if (text != NULL)
		strcpy(address + at, text);
	else
		size = at;
	cr_assert_eq(fragi_remote_peer_create(pair->remote[0], 9, 1, &peer), 0);
	return fragi_remote_connect(peer, "ucx", address, size, &endpoint, err);
}

PAIR_TEST(ucx_address, what_cannot_work_together_is_refused_naming_both, &kind_ucx)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(add_with(pair, 152, "64K", &err), -EPROTO);
	cr_assert_not_null(
		strstr(err.text, "UCX_TCP_RX_SEG_SIZE is 256K here and 64K on the other host"),
		"%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_assert_eq(add_with(pair, 168, "y", &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "UCX_PROTO_ENABLE"), "%s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_assert_eq(add_with(pair, 8, "1.0.7", &err), -EPROTO);
	cr_assert_not_null(strstr(err.text, "1.0.7"), "%s", err.text);
	for (size_t size = 0; size < 120; size += 5) {
		err = (struct frag_err)FRAG_ERR_INIT;
		cr_assert_eq(add_with(pair, size, NULL, &err), -EBADMSG);
	}
}

/* The sockets of UCX. */

Test(ucx_sockets, a_listener_elsewhere_is_refused, .init = set_environment)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct ucx_sockets before, after;
	struct frag_err err = FRAG_ERR_INIT;
	int fd;

	ucx_sockets_list(&before);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	cr_assert_eq(listen(fd, 1), 0);
	cr_assert_eq(ucx_sockets_check(&before, "eth7,lo", &err), 0, "%s", err.text);
	cr_assert_eq(ucx_sockets_check(&before, "eth7", &err), -EPERM);
	cr_assert_not_null(strstr(err.text, "127.0.0.1"), "%s", err.text);
	ucx_sockets_list(&after);
	cr_assert_eq(ucx_sockets_check(&after, "eth7", &err), 0);
	close(fd);
}

static void set_unknown_interface(void)
{
	setenv("UCX_NET_DEVICES", "nosuch0", 1);
	set_environment();
}

Test(ucx_sockets, an_unknown_interface_is_refused, .init = set_unknown_interface)
{
	const struct fragi_transport_ops *ops;
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = "the key";
	struct fragi_remote_config config = {.data_key = key};
	struct fragi_remote *remote;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_pump_create(&config.pump), 0);
	cr_assert_eq(fragi_remote_create(&config, &remote), 0);
	cr_assert_eq(fragi_transport_open("ucx", &ops, &err), 0);
	cr_assert_lt(fragi_remote_open(remote, ops, &err), 0);
	cr_assert_not_null(strstr(err.text, "nosuch0"), "%s", err.text);
	fragi_remote_destroy(remote);
	fragi_pump_destroy(config.pump);
}

PAIR_TEST(ucx_sockets, what_it_listens_on_is_described, &kind_ucx)
{
	cr_assert_not_null(strstr(pair_transport(pair, 0, 0)->detail, "tcp lo"));
}
