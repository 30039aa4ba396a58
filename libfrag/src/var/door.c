// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <base/handover.h>
#include <base/secret.h>
#include <base/stamp.h>
#include <var/variable.h>

#define LOG_TOPIC "variable"
#include <base/log.h>

/*
 * Who wants a variable connects to the socket of that name and sends the secret, which the driver
 * gives to the processes of the application; the answer is a descriptor. A thread answers, in a
 * process that has a variable for others, and in no other.
 */
#define ASK_NS 2000000000
#define AGAIN_NS 1000000
#define SHORTAGE_NS 10000000
#define ANSWER_MAGIC 0x31564646u /* "FFV1" */

static void socket_name(const struct fragi_variables *variables, const char *name,
			char out[FRAGI_HANDOVER_NAME_MAX + 1])
{
	size_t used = (size_t)snprintf(out, FRAGI_HANDOVER_NAME_MAX + 1, "frag-var-");

	for (size_t i = 0; i < FRAGI_VARIABLES_KEY_BYTES - FRAGI_VARIABLES_SECRET_BYTES; i++)
		used += (size_t)snprintf(out + used, FRAGI_HANDOVER_NAME_MAX + 1 - used, "%02x",
					 variables->config.key[i]);
	snprintf(out + used, FRAGI_HANDOVER_NAME_MAX + 1 - used, "-%s", name);
}

static const uint8_t *secret_of(const struct fragi_variables *variables)
{
	return variables->config.key + FRAGI_VARIABLES_KEY_BYTES - FRAGI_VARIABLES_SECRET_BYTES;
}

static void dismiss(struct fragi_variable_guest *guest)
{
	if (guest->fd >= 0)
		close(guest->fd);
	guest->fd = -1;
}

/* Takes one in. If there are too many, the oldest goes. */
static void welcome(struct fragi_variables *variables, struct fragi_variable *variable)
{
	struct fragi_variable_door *door = &variables->door;
	struct fragi_variable_guest *guest = &door->guests[door->oldest];
	struct epoll_event readable = {.events = EPOLLIN, .data.ptr = guest};
	const struct timespec shortage = {0, SHORTAGE_NS};
	int fd, r = fragi_handover_accept(variable->listener, &fd);

	if (r == -EMFILE || r == -ENFILE) /* it waits, and is reported again at once */
		nanosleep(&shortage, NULL);
	if (r < 0)
		return;
	dismiss(guest);
	*guest = (struct fragi_variable_guest){fd, variable};
	door->oldest = (door->oldest + 1) % FRAGI_VARIABLE_GUESTS_MAX;
	if (epoll_ctl(door->epoll, EPOLL_CTL_ADD, fd, &readable) < 0) {
		log_warn(NULL, "cannot hand variable %s to a reader (%s)", variable->name,
			 strerror(errno));
		dismiss(guest);
	}
}

/* It has sent something: it gets the variable if that is the secret. */
static void answer(struct fragi_variables *variables, struct fragi_variable_guest *guest)
{
	const uint32_t magic = ANSWER_MAGIC;
	uint8_t secret[FRAGI_VARIABLES_SECRET_BYTES];
	int r = fragi_handover_receive(guest->fd, secret, sizeof(secret), NULL, 0), fd;

	if (r == 0 && fragi_secret_equal(secret, secret_of(variables), sizeof(secret))) {
		fd = r = fragi_variable_memory_reopen(&guest->variable->memory);
		if (fd >= 0) {
			r = fragi_handover_send(guest->fd, &magic, sizeof(magic), &fd, 1);
			close(fd);
		}
		if (r < 0)
			log_warn(NULL, "cannot hand variable %s to a reader (%s)",
				 guest->variable->name, frag_strerror(r));
	}
	explicit_bzero(secret, sizeof(secret));
	dismiss(guest);
}

static void *door_main(void *arg)
{
	struct fragi_variables *variables = arg;
	struct fragi_variable_door *door = &variables->door;
	const uintptr_t first = (uintptr_t)door->guests,
			end = (uintptr_t)(door->guests + FRAGI_VARIABLE_GUESTS_MAX);
	struct epoll_event event;
	uintptr_t at;

	(void)prctl(PR_SET_NAME, "frag-variables");
	for (;;) {
		/* One at a time: what it is about may take others away. */
		if (epoll_wait(door->epoll, &event, 1, -1) != 1)
			continue;
		at = (uintptr_t)event.data.ptr;
		if (at == 0)
			break;
		if (at >= first && at < end)
			answer(variables, event.data.ptr);
		else
			welcome(variables, event.data.ptr);
	}
	return NULL;
}

static int start_thread(struct fragi_variables *variables)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&variables->door.thread, NULL, door_main, variables);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

static void close_descriptors(struct fragi_variable_door *door)
{
	if (door->epoll >= 0)
		close(door->epoll);
	if (door->stop >= 0)
		close(door->stop);
	door->epoll = door->stop = -1;
}

static int open_door(struct fragi_variables *variables)
{
	struct fragi_variable_door *door = &variables->door;
	struct epoll_event stop = {.events = EPOLLIN, .data.ptr = NULL};
	int r = 0;

	if (door->epoll >= 0)
		return 0;
	for (uint32_t i = 0; i < FRAGI_VARIABLE_GUESTS_MAX; i++)
		door->guests[i].fd = -1;
	door->epoll = epoll_create1(EPOLL_CLOEXEC);
	door->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (door->epoll < 0 || door->stop < 0 ||
	    epoll_ctl(door->epoll, EPOLL_CTL_ADD, door->stop, &stop) < 0)
		r = -errno;
	if (r == 0)
		r = start_thread(variables);
	if (r < 0)
		close_descriptors(door);
	return r;
}

int fragi_variable_door_serve(struct fragi_variables *variables, struct fragi_variable *variable)
{
	struct epoll_event readable = {.events = EPOLLIN, .data.ptr = variable};
	char name[FRAGI_HANDOVER_NAME_MAX + 1];
	int r = open_door(variables);

	if (r < 0)
		return r;
	socket_name(variables, variable->name, name);
	r = fragi_handover_listen(name, &variable->listener);
	if (r == 0 &&
	    epoll_ctl(variables->door.epoll, EPOLL_CTL_ADD, variable->listener, &readable) < 0) {
		r = -errno;
		close(variable->listener);
		variable->listener = -1;
	}
	return r;
}

void fragi_variable_door_close(struct fragi_variables *variables)
{
	struct fragi_variable_door *door = &variables->door;
	const uint64_t one = 1;

	if (door->epoll < 0)
		return;
	(void)!write(door->stop, &one, sizeof(one));
	pthread_join(door->thread, NULL);
	for (uint32_t i = 0; i < FRAGI_VARIABLE_GUESTS_MAX; i++)
		dismiss(&door->guests[i]);
	close_descriptors(door);
}

static int connect_until(const char *name, int64_t end_ns, int *out_fd)
{
	const struct timespec again = {0, AGAIN_NS};
	int r = fragi_handover_connect(name, out_fd);

	while (r == -EAGAIN && fragi_now_ns() < end_ns) {
		nanosleep(&again, NULL);
		r = fragi_handover_connect(name, out_fd);
	}
	return r == -ECONNREFUSED ? -ENOENT : r;
}

static int receive_until(int fd, int64_t end_ns, int *out_fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	uint32_t magic = 0;
	int64_t left_ns;
	int r;

	do {
		left_ns = end_ns - fragi_now_ns();
		if (left_ns <= 0)
			return -ETIMEDOUT;
		(void)poll(&readable, 1, (int)(left_ns / 1000000) + 1);
		r = fragi_handover_receive(fd, &magic, sizeof(magic), out_fd, 1);
	} while (r == -EAGAIN);
	if (r == 0 && magic != ANSWER_MAGIC) {
		close(*out_fd);
		r = -EBADMSG;
	}
	return r;
}

int fragi_variable_door_ask(const struct fragi_variables *variables, const char *name,
			    struct fragi_variable_memory *out_memory)
{
	int64_t end_ns = fragi_now_ns() + ASK_NS;
	char socket[FRAGI_HANDOVER_NAME_MAX + 1];
	int fd, memory = -1, r;

	socket_name(variables, name, socket);
	r = connect_until(socket, end_ns, &fd);
	if (r < 0)
		return r;
	r = fragi_handover_send(fd, secret_of(variables), FRAGI_VARIABLES_SECRET_BYTES, NULL, 0);
	if (r == 0)
		r = receive_until(fd, end_ns, &memory);
	close(fd);
	return r < 0 ? r : fragi_variable_memory_open(out_memory, memory);
}
