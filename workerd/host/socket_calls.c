// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dlfcn.h>

#include <edge/socket_calls.h>

/*
 * The functions that an executable which runs hosts exports, so that a transport can stand between
 * a library and the C library (edge/socket_calls.h). Everybody else's calls pass through them, at
 * the price of one jump. They find the next definition of each name, so that a sanitizer or another
 * preloaded library still sees the calls.
 */
#define EXPORTED __attribute__((visibility("default")))

/* The functions have names of their own, because glibc declares the addresses of some as unions. */
EXPORTED int fragi_exported_listen(int fd, int backlog) __asm__("listen");
EXPORTED int fragi_exported_accept(int fd, struct sockaddr *address,
				   socklen_t *size) __asm__("accept");
EXPORTED int fragi_exported_accept4(int fd, struct sockaddr *address, socklen_t *size,
				    int flags) __asm__("accept4");
EXPORTED int fragi_exported_connect(int fd, const struct sockaddr *address,
				    socklen_t size) __asm__("connect");
EXPORTED int fragi_exported_getpeername(int fd, struct sockaddr *address,
					socklen_t *size) __asm__("getpeername");
EXPORTED ssize_t fragi_exported_send(int fd, const void *data, size_t size,
				     int flags) __asm__("send");
EXPORTED ssize_t fragi_exported_sendmsg(int fd, const struct msghdr *message,
					int flags) __asm__("sendmsg");

static int (*next_listen)(int, int);
static int (*next_accept)(int, struct sockaddr *, socklen_t *);
static int (*next_accept4)(int, struct sockaddr *, socklen_t *, int);
static int (*next_connect)(int, const struct sockaddr *, socklen_t);
static int (*next_getpeername)(int, struct sockaddr *, socklen_t *);
static ssize_t (*next_send)(int, const void *, size_t, int);
static ssize_t (*next_sendmsg)(int, const struct msghdr *, int);

static int system_listen(int fd, int backlog)
{
	return next_listen(fd, backlog);
}

static int system_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return flags == 0 ? next_accept(fd, address, size) : next_accept4(fd, address, size, flags);
}

static int system_connect(int fd, const struct sockaddr *address, socklen_t size,
			  const void *caller)
{
	(void)caller;
	return next_connect(fd, address, size);
}

static int system_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	return next_getpeername(fd, address, size);
}

static ssize_t system_send(int fd, const void *data, size_t size, int flags, const void *caller)
{
	(void)caller;
	return next_send(fd, data, size, flags);
}

static ssize_t system_sendmsg(int fd, const struct msghdr *message, int flags, const void *caller)
{
	(void)caller;
	return next_sendmsg(fd, message, flags);
}

static const struct fragi_socket_calls system_calls = {
	.listen = system_listen,
	.accept = system_accept,
	.connect = system_connect,
	.getpeername = system_getpeername,
	.send = system_send,
	.sendmsg = system_sendmsg,
};

static struct fragi_socket_switch the_switch = {.system = &system_calls};

/* A library may make a call before the executable's constructors have run. */
static void find_next(void)
{
	*(void **)&next_listen = dlsym(RTLD_NEXT, "listen");
	*(void **)&next_accept = dlsym(RTLD_NEXT, "accept");
	*(void **)&next_accept4 = dlsym(RTLD_NEXT, "accept4");
	*(void **)&next_connect = dlsym(RTLD_NEXT, "connect");
	*(void **)&next_getpeername = dlsym(RTLD_NEXT, "getpeername");
	*(void **)&next_send = dlsym(RTLD_NEXT, "send");
	*(void **)&next_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
	atomic_store(&the_switch.now, &system_calls);
}

static __attribute__((constructor)) void offer(void)
{
	find_next();
	fragi_socket_switch_offer(&the_switch);
}

static const struct fragi_socket_calls *calls(void)
{
	const struct fragi_socket_calls *now = atomic_load(&the_switch.now);

	if (now != NULL)
		return now;
	find_next();
	return &system_calls;
}

int fragi_exported_listen(int fd, int backlog)
{
	return calls()->listen(fd, backlog);
}

int fragi_exported_accept(int fd, struct sockaddr *address, socklen_t *size)
{
	return calls()->accept(fd, address, size, 0);
}

int fragi_exported_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	return calls()->accept(fd, address, size, flags);
}

int fragi_exported_connect(int fd, const struct sockaddr *address, socklen_t size)
{
	return calls()->connect(fd, address, size, __builtin_return_address(0));
}

int fragi_exported_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	return calls()->getpeername(fd, address, size);
}

ssize_t fragi_exported_send(int fd, const void *data, size_t size, int flags)
{
	return calls()->send(fd, data, size, flags, __builtin_return_address(0));
}

ssize_t fragi_exported_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return calls()->sendmsg(fd, message, flags, __builtin_return_address(0));
}
