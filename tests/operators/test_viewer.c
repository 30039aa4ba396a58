// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "viewer/listener.h"
#include "viewer/picture.h"

Test(ops_viewer, a_picture_is_a_whole_jpeg_with_its_numbers)
{
	static const char comment[] = "\xff\xd8\xff\xfe\0\x2f"
				      "frag number=7 received_ns=-17 acquired_ns=230";
	struct canvas canvas = {.rows = 8, .columns = 16, .pixels = calloc(8 * 16, 3)};
	struct picture *p = viewer_picture_create(&canvas, 90, 7, -17, 230);

	cr_assert_not_null(p);
	cr_expect_eq(memcmp(p->jpeg, comment, sizeof(comment) - 1), 0);
	cr_expect_eq(p->jpeg[sizeof(comment) - 1], 0xff, "the next segment");
	cr_expect_eq(memcmp(p->jpeg + p->size - 2, "\xff\xd9", 2), 0, "the end of the image");
	cr_expect_eq(viewer_picture_ref(p), p);
	viewer_picture_unref(p);
	cr_expect_eq(p->number, 7, "one reference is left");
	viewer_picture_unref(p);
	viewer_picture_unref(NULL);
	canvas.columns = 65536;
	cr_expect_null(viewer_picture_create(&canvas, 90, 7, 0, 0));
	free(canvas.pixels);
}

/* What is not of this machine alone is open to everybody who reaches it. */
Test(ops_viewer, which_addresses_are_of_this_machine_alone)
{
	static const struct {
		const char *address, *url; /* NULL: it is refused */
		bool is_loopback;
	} rows[] = {
		{"127.0.0.1", "http://127.0.0.1:", true},
		{"127.0.0.2", "http://127.0.0.2:", true},
		{"127.255.255.254", "http://127.255.255.254:", true},
		{"0.0.0.0", "http://0.0.0.0:", false},
		{"::1", "http://[::1]:", true},
		{"::", "http://[::]:", false},
		{"localhost", NULL, false},
		{"127.0.0", NULL, false},
		{"", NULL, false},
		{"192.0.2.77", NULL, false}, /* no address of this machine */
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct listener listener = {.fd = -1};
		struct frag_err err = FRAG_ERR_INIT;
		int r = viewer_listener_open(rows[i].address, 0, &listener, &err);

		if (r == -EAFNOSUPPORT || (r == -EADDRNOTAVAIL && rows[i].url != NULL))
			continue; /* a machine without IPv6 */
		cr_expect_eq(r == 0, rows[i].url != NULL, "%s: %s", rows[i].address, err.text);
		if (r < 0)
			continue;
		cr_expect_eq(listener.is_loopback, rows[i].is_loopback, "%s", rows[i].address);
		cr_expect_eq(strncmp(listener.url, rows[i].url, strlen(rows[i].url)), 0, "%s",
			     listener.url);
		cr_expect_gt(atoi(listener.url + strlen(rows[i].url)), 0, "%s", listener.url);
		close(listener.fd);
	}
}

/* A viewer that is started again gets its port, though connections of the last one linger. */
Test(ops_viewer, a_port_is_free_again_when_its_viewer_has_ended)
{
	static const char address[] = "127.0.0.1";
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct listener first = {.fd = -1}, second = {.fd = -1};
	struct frag_err err = FRAG_ERR_INIT;
	int port, browser = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;

	cr_assert_eq(viewer_listener_open(address, 0, &first, &err), 0, "%s", err.text);
	port = atoi(first.url + strlen("http://127.0.0.1:"));
	cr_expect_eq(viewer_listener_open(address, port, &second, &err), -EADDRINUSE);
	cr_expect_not_null(strstr(err.text, "cannot listen at 127.0.0.1 port "), "%s", err.text);
	inet_pton(AF_INET, address, &to.sin_addr);
	to.sin_port = htons((uint16_t)port);
	cr_assert_eq(connect(browser, (struct sockaddr *)&to, sizeof(to)), 0);
	connection = accept(first.fd, NULL, NULL);
	cr_assert_geq(connection, 0);
	close(connection); /* the side that closes first is the one that waits */
	close(browser);
	close(first.fd);
	cr_assert_eq(viewer_listener_open(address, port, &second, &err), 0, "%s", err.text);
	close(second.fd);
}
