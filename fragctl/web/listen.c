// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <fragctl/web/web.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/secret.h>
#include <base/trusted_path.h>

/*
 * The socket at which browsers arrive: TCP on loopback, a unix socket for a reverse proxy, or
 * another address with TLS and a token.
 */
#define BACKLOG 128
#define TAKEN_AT_ONCE 64
#define PORT_DEFAULT 8080
#define TOKEN_MIN 16
#define PEM_MAX (64u << 10)

/* --- sockets --- */

static void on_timer(uv_timer_t *timer)
{
	ctl_web_run(timer->data);
}

void ctl_web_run(struct ctl_web *web)
{
	int ms = web->http_module->run(web->http);

	if (ms < 0)
		uv_timer_stop(&web->timer);
	else
		uv_timer_start(&web->timer, on_timer, (uint64_t)ms, 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	ctl_web_run(poll->data);
}

/* A user of this machine who needs no token. */
static bool is_trusted(const struct ctl_web *web, int fd)
{
	struct frag_err err = FRAG_ERR_INIT;
	uid_t user;

	return fw_users_judge(&web->users, fd, true, &user, &err) == 1;
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct ctl_web *web = poll->data;
	int fd;

	(void)status;
	(void)events;
	for (int i = 0; i < TAKEN_AT_ONCE; i++) {
		fd = accept4(web->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		web->http_module->add(web->http, fd, is_trusted(web, fd));
	}
	ctl_web_run(web);
}

static int listen_on(struct ctl_web *web, const struct sockaddr *address, socklen_t size)
{
	int on = 1;

	web->listen_fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (web->listen_fd < 0 ||
	    (address->sa_family != AF_UNIX &&
	     setsockopt(web->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0) ||
	    bind(web->listen_fd, address, size) < 0 || listen(web->listen_fd, BACKLOG) < 0)
		return -errno;
	return 0;
}

static int cannot_listen(const struct ctl_web *web, int r)
{
	return ctl_fail(CTL_MISSING,
			"cannot listen at %.200s: %s; give another address or port (--listen)",
			web->listen_text, frag_strerror(r));
}

/* What an earlier process has left behind; somebody who listens there keeps it. */
static int remove_old_socket(const struct sockaddr_un *address)
{
	struct stat at;
	int fd, r;

	if (lstat(address->sun_path, &at) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(at.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address));
	r = r == 0 ? -EADDRINUSE : errno == ECONNREFUSED ? 0 : -errno;
	close(fd);
	return r == 0 && unlink(address->sun_path) < 0 ? -errno : r;
}

/* For a reverse proxy: the permissions of its folder say who else comes there. */
static int listen_on_path(struct ctl_web *web)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t mask;
	int r;

	if (strlen(web->listen_text) >= sizeof(address.sun_path))
		return ctl_fail(CTL_USAGE,
				"--listen %.40s...: the path of a socket has at most %zu bytes",
				web->listen_text, sizeof(address.sun_path) - 1);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", web->listen_text);
	r = remove_old_socket(&address);
	mask = umask(0117);
	if (r == 0)
		r = listen_on(web, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (r < 0)
		return cannot_listen(web, r);
	web->socket_path = strdup(web->listen_text);
	snprintf(web->url, sizeof(web->url), "%.250s", web->listen_text);
	return CTL_OK;
}

static void make_url(struct ctl_web *web, const char *host)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address = {0};
	socklen_t size = sizeof(address);

	(void)getsockname(web->listen_fd, &address.any, &size);
	snprintf(web->url, sizeof(web->url),
		 strchr(host, ':') != NULL ? "%s://[%.200s]:%u/" : "%s://%.200s:%u/",
		 web->certificate_file != NULL ? "https" : "http", host,
		 (unsigned int)ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port
								      : address.v6.sin6_port));
}

static int listen_on_address(struct ctl_web *web)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_address wanted;
	struct addrinfo *found = NULL;
	char port[8];
	int r;

	if (fragi_parse_address(web->listen_text, "127.0.0.1", PORT_DEFAULT, &wanted, &err) < 0)
		return ctl_fail(CTL_USAGE, "--listen: %s", err.text);
	if (!fragi_address_is_loopback(&wanted) &&
	    (web->token == NULL || web->certificate_file == NULL))
		return ctl_fail(
			CTL_USAGE,
			"--listen %.200s is not loopback: give --token-file, --cert and --cert-key; or listen on a unix socket (--listen /PATH) behind a reverse proxy",
			web->listen_text);
	snprintf(port, sizeof(port), "%u", (unsigned int)wanted.port);
	r = getaddrinfo(wanted.host, port, &hints, &found);
	if (r != 0)
		return ctl_fail(CTL_USAGE, "--listen %.200s: %s", web->listen_text,
				gai_strerror(r));
	r = listen_on(web, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	if (r < 0)
		return cannot_listen(web, r);
	make_url(web, wanted.host);
	snprintf(web->own_host, sizeof(web->own_host), "%s", wanted.host);
	return CTL_OK;
}

/* --- files --- */

/*
 * Reads a file whose content may be believed, into memory for secrets of max + 2 bytes; it ends
 * with a NUL. Returns CTL_OK, or an exit code, complained. *out is the caller's in every case.
 */
static int read_file(const char *path, bool is_secret, size_t max, char **out)
{
	struct frag_err err = FRAG_ERR_INIT;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), code = CTL_OK;
	struct stat file;
	ssize_t n = -1;

	*out = fragi_secret_alloc(max + 2);
	if (fd < 0 || fstat(fd, &file) < 0 || *out == NULL || (n = read(fd, *out, max + 1)) < 0)
		code = ctl_fail(CTL_MISSING, "cannot read %.200s: %s", path, strerror(errno));
	else if (fragi_trusted_path_check(path, geteuid(), &err) < 0)
		code = ctl_fail(CTL_MISSING, "%s", err.text);
	else if (is_secret && (file.st_mode & 0077) != 0)
		code = ctl_fail(CTL_MISSING, "%.200s: others may read it; chmod 600 %.200s", path,
				path);
	else if ((size_t)n > max)
		code = ctl_fail(CTL_MISSING, "%.200s has more than %zu bytes", path, max);
	if (fd >= 0)
		close(fd);
	return code;
}

static void free_file(char *text, size_t max)
{
	if (text != NULL)
		fragi_secret_free(text, max + 2);
}

static int read_token(struct ctl_web *web)
{
	int code;

	if (web->token_file == NULL)
		return CTL_OK;
	code = read_file(web->token_file, true, CTL_WEB_TOKEN_MAX, &web->token);
	if (code != CTL_OK)
		return code;
	web->token_bytes = strcspn(web->token, "\r\n");
	web->token[web->token_bytes] = '\0';
	if (web->token_bytes < TOKEN_MIN)
		return ctl_fail(
			CTL_USAGE,
			"%.200s: a token has %d characters or more; make one with: openssl rand -hex 24",
			web->token_file, TOKEN_MIN);
	for (size_t i = 0; i < web->token_bytes; i++)
		if (web->token[i] <= ' ' || web->token[i] > '~' ||
		    strchr(";,\"\\", web->token[i]) != NULL)
			return ctl_fail(
				CTL_USAGE,
				"%.200s: a token is one line of letters, digits and signs other than ; , \" \\",
				web->token_file);
	return CTL_OK;
}

static int start_http(struct ctl_web *web)
{
	static const struct fragi_module module = {
		.name = "http",
		.kind = "module",
		.advice = "install libmicrohttpd and build frag again",
		.symbol = CTL_HTTP_SYMBOL,
		.table_size = sizeof(struct ctl_http_module),
	};
	struct ctl_http_options options = {.respond = ctl_web_respond, .arg = web};
	struct frag_err err = FRAG_ERR_INIT;
	char *certificate = NULL, *key = NULL;
	const void *table;
	int code = CTL_OK;

	if (fragi_module_open(&module, &table, &err) < 0)
		return ctl_fail_with(fragi_err_failure(&err), "%s", err.text);
	web->http_module = table;
	if (web->certificate_file != NULL) {
		code = read_file(web->certificate_file, false, PEM_MAX, &certificate);
		if (code == CTL_OK)
			code = read_file(web->certificate_key_file, true, PEM_MAX, &key);
		options.certificate = certificate;
		options.certificate_key = key;
	}
	if (code == CTL_OK && web->http_module->create(&options, &web->http, &err) < 0)
		code = ctl_fail(CTL_MISSING, "%s", err.text);
	free_file(certificate, PEM_MAX);
	free_file(key, PEM_MAX);
	return code;
}

static void watch(struct ctl_web *web)
{
	uv_loop_t *loop = &web->driver.loop;

	uv_timer_init(loop, &web->timer);
	uv_poll_init(loop, &web->listener, web->listen_fd);
	uv_poll_init(loop, &web->readable, web->http_module->descriptor(web->http));
	web->timer.data = web->listener.data = web->readable.data = web;
	uv_poll_start(&web->listener, UV_READABLE, on_connection);
	uv_poll_start(&web->readable, UV_READABLE, on_readable);
	web->is_open = true;
}

int ctl_web_listen(struct ctl_web *web)
{
	struct frag_err err = FRAG_ERR_INIT;
	int code = read_token(web);

	if (code == CTL_OK &&
	    (web->certificate_file == NULL) != (web->certificate_key_file == NULL))
		code = ctl_fail(CTL_USAGE, "--cert and --cert-key belong together");
	if (code == CTL_OK && fw_users_init(&web->users, "fragctl web", NULL, 0, false, &err) < 0)
		code = ctl_fail(CTL_FAILED, "%s", err.text);
	if (code == CTL_OK)
		code = start_http(web);
	if (code == CTL_OK)
		code = web->listen_text[0] == '/' ? listen_on_path(web) : listen_on_address(web);
	if (code == CTL_OK)
		watch(web);
	return code;
}

void ctl_web_close(struct ctl_web *web)
{
	if (web->is_open) {
		uv_close((uv_handle_t *)&web->listener, NULL);
		uv_close((uv_handle_t *)&web->readable, NULL);
		uv_close((uv_handle_t *)&web->timer, NULL);
		uv_run(&web->driver.loop, UV_RUN_NOWAIT);
	}
	if (web->http_module != NULL)
		web->http_module->destroy(web->http);
	if (web->listen_fd >= 0)
		close(web->listen_fd);
	if (web->socket_path != NULL)
		unlink(web->socket_path);
	free(web->socket_path);
	free_file(web->token, CTL_WEB_TOKEN_MAX);
	fw_users_fini(&web->users);
	fragi_texts_fini(&web->hosts);
}
