// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <ucs/debug/log_def.h>

#define LOG_TOPIC "ucx"
#include <base/alloc.h>
#include <base/failure.h>
#include <base/log.h>
#include <base/secret.h>
#include <base/stamp.h>
#include <edge/socket_calls.h>

/*
 * How long a connection may say nothing before the kernel reports it, to be refused. The peer's
 * kernel is connected while the peer itself may be stopped or starved; Linux makes 7 s of it
 * (1 + 2 + 4).
 */
#define SILENCE_S 7
/* At most so many in one go, because UCX's thread has other things to do. */
#define REFUSED_AT_ONCE 64
#define LOG_EVERY_NS 10000000000

struct listener {
	int fd;
	uint64_t cookie;
};

struct refusals {
	uint64_t count; /* not logged yet */
	int64_t logged_ns;
	enum ucx_verdict verdict; /* of the last one */
	char from[UCX_END_TEXT];
};

struct ucx_gate {
	struct ucx_gate *next;
	uint8_t *key; /* a secret */
	struct ucx_judge judge;
	struct ucx_entrance entrance;
	struct listener listeners[UCX_LISTENERS_MAX];
	struct ucx_peers peers;
	struct ucx_attempts attempts;
	struct refusals refusals;
	bool is_translated; /* what this host opens arrives from another address */
	int spare_fd;       /* given up to take a connection that would need the last descriptor */
};

/* Guards all gates. Never held during a call that may wait. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ucx_gate *gates;
/* The process that has them: a child of fork may have been forked while a thread held the lock. */
static _Atomic(pid_t) owner;
static _Atomic(const struct fragi_socket_calls *) next; /* the C library's */
static _Thread_local struct ucx_gate *opening;

/* The code of UCX's library of socket calls, libucs. */
static struct code {
	uintptr_t begin, end;
} ucx_code;

static int find_code(struct dl_phdr_info *object, size_t size, void *arg)
{
	const uintptr_t known = (uintptr_t)&ucs_log_push_handler;
	struct code *out = arg;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || known < begin || known >= begin + part->p_memsz)
			continue;
		*out = (struct code){begin, begin + part->p_memsz};
		return 1;
	}
	return 0;
}

static bool is_ucx(const void *caller)
{
	return (uintptr_t)caller >= ucx_code.begin && (uintptr_t)caller < ucx_code.end;
}

static int own_end(int fd, uint8_t *out_end)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	return ucx_end_of((struct sockaddr *)&address, out_end);
}

static int peer_end(int fd, uint8_t *out_end)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof(address);

	if (next->getpeername(fd, (struct sockaddr *)&address, &size) < 0)
		return -errno;
	return ucx_end_of((struct sockaddr *)&address, out_end);
}

/* The side that listens. */

static int gate_listen(int fd, int backlog)
{
	const int silence_s = SILENCE_S;
	struct ucx_gate *gate = opening;
	uint32_t at;
	int r;

	if (gate == NULL)
		return next->listen(fd, backlog);
	at = gate->entrance.count;
	if (at == UCX_LISTENERS_MAX) {
		errno = ENOBUFS;
		return -1;
	}
	if (setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silence_s, sizeof(silence_s)) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || next->listen(fd, backlog) < 0)
		return -1;
	r = own_end(fd, gate->entrance.doors[at].end);
	if (r == 0)
		r = ucx_door_announce(&gate->entrance.doors[at]);
	if (r < 0) {
		errno = -r;
		return -1;
	}
	pthread_mutex_lock(&lock);
	gate->listeners[at] = (struct listener){.fd = fd, .cookie = ucx_cookie_of(fd)};
	gate->entrance.count++;
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct ucx_gate *gate_of_listener(int fd)
{
	struct ucx_gate *gate, *found = NULL;

	if (getpid() != owner)
		return NULL;
	pthread_mutex_lock(&lock);
	for (gate = gates; gate != NULL && found == NULL; gate = gate->next)
		for (uint32_t i = 0; i < gate->entrance.count; i++)
			if (gate->listeners[i].fd == fd &&
			    gate->listeners[i].cookie == ucx_cookie_of(fd))
				found = gate;
	pthread_mutex_unlock(&lock);
	return found;
}

/* bytes: what came first. */
static enum ucx_verdict judge_connection(struct ucx_gate *gate, int fd, const uint8_t *from,
					 const uint8_t *bytes, size_t size)
{
	struct ucx_ends ends;
	enum ucx_verdict verdict;

	memcpy(ends.from, from, sizeof(ends.from));
	memcpy(ends.identity, gate->entrance.identity, sizeof(ends.identity));
	if (own_end(fd, ends.to) < 0)
		return UCX_REFUSED_FORGED;
	pthread_mutex_lock(&lock);
	verdict = ucx_judge(&gate->judge, &ends, bytes, size);
	pthread_mutex_unlock(&lock);
	return verdict;
}

static void log_refusals(const struct refusals *refusals)
{
	if (refusals->count == 1)
		log_warn(NULL, "refused a connection to the data port from %s: %s", refusals->from,
			 ucx_verdict_text(refusals->verdict));
	else if (refusals->count > 1)
		log_warn(NULL,
			 "refused %llu connections to the data port; the last one from %s: %s",
			 (unsigned long long)refusals->count, refusals->from,
			 ucx_verdict_text(refusals->verdict));
}

/* The first one is logged at once, then those of ten seconds in one line. */
static void count_refusal(struct ucx_gate *gate, const uint8_t *from, enum ucx_verdict verdict)
{
	struct refusals *refusals = &gate->refusals, due = {0};
	int64_t now_ns = fragi_now_ns();

	pthread_mutex_lock(&lock);
	refusals->count++;
	refusals->verdict = verdict;
	ucx_end_text(from, refusals->from);
	if (now_ns - refusals->logged_ns >= LOG_EVERY_NS) {
		due = *refusals;
		refusals->count = 0;
		refusals->logged_ns = now_ns;
	}
	pthread_mutex_unlock(&lock);
	log_refusals(&due);
}

/* Closed so that nothing of it stays in this kernel (no TIME_WAIT). */
static void drop(int fd)
{
	const struct linger at_once = {.l_onoff = 1};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

/*
 * No descriptor is left. UCX would close its listening socket for good, and the kernel would report
 * the connection for ever; so the spare descriptor takes it and drops it.
 */
static void shed(struct ucx_gate *gate, int fd)
{
	uint8_t from[UCX_END_BYTES] = {0};
	int taken;

	if (gate->spare_fd < 0)
		return;
	close(gate->spare_fd);
	taken = next->accept(fd, NULL, NULL, SOCK_CLOEXEC);
	if (taken >= 0) {
		(void)peer_end(taken, from);
		drop(taken);
		count_refusal(gate, from, UCX_REFUSED_DESCRIPTORS);
	}
	gate->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int gate_accept(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	struct ucx_gate *gate = gate_of_listener(fd);
	uint8_t from[UCX_END_BYTES] = {0}, bytes[UCX_PREFACE_BYTES];
	enum ucx_verdict verdict;
	ssize_t n;
	int taken;

	if (gate == NULL)
		return next->accept(fd, address, size, flags);
	for (int refused = 0; refused < REFUSED_AT_ONCE; refused++) {
		taken = next->accept(fd, NULL, NULL, flags | SOCK_CLOEXEC);
		if (taken < 0 && (errno == EMFILE || errno == ENFILE))
			shed(gate, fd);
		if (taken < 0)
			break;
		/* A preface is one segment: one that comes in pieces is none of ours. */
		n = recv(taken, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n == 0 || peer_end(taken, from) < 0) { /* gone already, perhaps with its host */
			close(taken);
			continue;
		}
		verdict = judge_connection(gate, taken, from, bytes, n < 0 ? 0 : (size_t)n);
		if (verdict == UCX_ADMITTED) {
			if (address != NULL)
				(void)next->getpeername(taken, address, size);
			return taken;
		}
		drop(taken);
		count_refusal(gate, from, verdict);
	}
	/* Whatever else accept reports is about one connection, but UCX would stop listening. */
	errno = EAGAIN;
	return -1;
}

/* The side that connects. */

/*
 * Keeps a socket that is to connect to the data port of a peer. out_dial: receives where that is
 * reached. Under the lock.
 */
static bool note_connecting(int fd, const uint8_t *end, uint8_t *out_dial)
{
	struct ucx_attempt *entry;
	struct ucx_peer *peer;

	for (struct ucx_gate *gate = gates; gate != NULL; gate = gate->next) {
		peer = ucx_peers_at(&gate->peers, end);
		if (peer == NULL)
			continue;
		entry = ucx_attempts_place(&gate->attempts, fd);
		if (entry == NULL) /* it is refused over there */
			return false;
		*entry = (struct ucx_attempt){.fd = fd, .cookie = ucx_cookie_of(fd)};
		memcpy(entry->end, end, UCX_END_BYTES);
		memcpy(entry->identity, peer->identity, UCX_IDENTITY_BYTES);
		memcpy(out_dial, peer->door.dial, UCX_END_BYTES);
		peer->outcome = -EINPROGRESS;
		return true;
	}
	return false;
}

/* Under the lock. */
static struct ucx_gate *take_connecting(int fd, struct ucx_attempt *out_entry)
{
	for (struct ucx_gate *gate = gates; gate != NULL; gate = gate->next)
		for (uint32_t i = 0; i < gate->attempts.count; i++) {
			struct ucx_attempt *entry = &gate->attempts.items[i];

			if (entry->cookie == 0 || entry->fd != fd ||
			    entry->cookie != ucx_cookie_of(fd))
				continue;
			*out_entry = *entry;
			entry->cookie = 0;
			return gate;
		}
	return NULL;
}

/* Under the lock. */
static int make_preface(const struct ucx_gate *gate, const struct ucx_attempt *entry,
			uint8_t *bytes)
{
	struct ucx_ends ends = {0};
	int r = 0;

	memcpy(ends.identity, entry->identity, sizeof(ends.identity));
	memcpy(ends.to, entry->end, sizeof(ends.to)); /* also where its port is forwarded */
	if (!gate->is_translated)
		r = own_end(entry->fd, ends.from);
	if (r == 0 && getrandom(bytes, UCX_NONCE_BYTES, 0) != (ssize_t)UCX_NONCE_BYTES)
		r = -EIO;
	return r < 0 ? r : ucx_preface_make(gate->key, &ends, bytes);
}

/* Under the lock. */
static void note_outcome(const struct ucx_gate *gate, const struct ucx_attempt *entry, int outcome)
{
	struct ucx_peer *peer = ucx_peers_at(&gate->peers, entry->end);

	if (peer != NULL)
		peer->outcome = outcome;
}

/* The connection has not come about, for this reason: an errno. */
static void note_failure(int fd, int reason)
{
	const struct ucx_gate *gate;
	struct ucx_attempt entry;

	if (getpid() != owner)
		return;
	pthread_mutex_lock(&lock);
	gate = take_connecting(fd, &entry);
	if (gate != NULL)
		note_outcome(gate, &entry, -reason);
	pthread_mutex_unlock(&lock);
}

/* The connection is there: sends the preface, if this is one of UCX's to a peer. */
static int prove(int fd)
{
	const int yes = 1;
	uint8_t bytes[UCX_PREFACE_BYTES];
	struct ucx_attempt entry;
	struct ucx_gate *gate;
	int r = 0;

	if (getpid() != owner)
		return 0;
	pthread_mutex_lock(&lock);
	gate = take_connecting(fd, &entry);
	if (gate != NULL) {
		r = make_preface(gate, &entry, bytes);
		note_outcome(gate, &entry, r);
	}
	pthread_mutex_unlock(&lock);
	if (gate == NULL || r < 0)
		return r;
	/* Nothing was sent on this connection yet, so there is room. */
	if (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)sizeof(bytes))
		return -ENOTCONN;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
	return 0;
}

static int gate_connect(int fd, const struct sockaddr *address, socklen_t size, const void *caller)
{
	const int no = 0;
	uint8_t end[UCX_END_BYTES], dial[UCX_END_BYTES];
	struct sockaddr_storage there = {0};
	bool is_ours = false;
	int r;

	if (is_ucx(caller) && address != NULL && size >= sizeof(struct sockaddr_in) &&
	    getpid() == owner &&
	    (address->sa_family != AF_INET6 || size >= sizeof(struct sockaddr_in6)) &&
	    ucx_end_of(address, end) == 0) {
		pthread_mutex_lock(&lock);
		is_ours = note_connecting(fd, end, dial);
		pthread_mutex_unlock(&lock);
	}
	if (!is_ours)
		return next->connect(fd, address, size, caller);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	memcpy(&there, address, size < sizeof(there) ? size : sizeof(there));
	if (ucx_end_to(dial, (struct sockaddr *)&there) < 0) {
		note_failure(fd, EAFNOSUPPORT);
		errno = EAFNOSUPPORT;
		return -1;
	}
	/*
	 * The segment that completes the handshake waits a little for the preface, to carry it: so
	 * the peer's kernel has it even where so many half-open connections are under way that it
	 * does without TCP_DEFER_ACCEPT (SYN cookies).
	 */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &no, sizeof(no));
	r = next->connect(fd, (struct sockaddr *)&there, size, caller);
	if (r < 0 && errno != EINPROGRESS && errno != EINTR) {
		const int reason = errno;

		note_failure(fd, reason);
		errno = reason;
	} else if (r == 0) {
		r = prove(fd);
		errno = r < 0 ? ECONNABORTED : errno;
		r = r < 0 ? -1 : 0;
	}
	return r;
}

static int gate_getpeername(int fd, struct sockaddr *address, socklen_t *size)
{
	int r = next->getpeername(fd, address, size), reason = 0;
	socklen_t room = sizeof(reason);

	if (r == 0 && prove(fd) < 0) {
		errno = ENOTCONN;
		return -1;
	}
	if (r < 0 && errno == ENOTCONN) {
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &room) == 0 && reason != 0)
			note_failure(fd, reason);
		errno = ENOTCONN;
	}
	return r;
}

/* Both sides, when they are connected. */

static ssize_t gate_send(int fd, const void *data, size_t size, int flags, const void *caller)
{
	ssize_t n = next->send(fd, data, size, flags, caller);

	if (n < 0 && errno != EAGAIN && errno != EINTR && is_ucx(caller))
		errno = ucx_failed_send(fd, errno, true);
	return n;
}

static ssize_t gate_sendmsg(int fd, const struct msghdr *message, int flags, const void *caller)
{
	ssize_t n = next->sendmsg(fd, message, flags, caller);

	if (n < 0 && errno != EAGAIN && errno != EINTR && is_ucx(caller))
		errno = ucx_failed_send(fd, errno, false);
	return n;
}

static const struct fragi_socket_calls gate_calls = {
	.listen = gate_listen,
	.accept = gate_accept,
	.connect = gate_connect,
	.getpeername = gate_getpeername,
	.send = gate_send,
	.sendmsg = gate_sendmsg,
};

/* Life. */

int ucx_gate_create(const uint8_t *data_key, struct ucx_gate **out_gate, struct frag_err *err)
{
	struct fragi_socket_switch *calls = fragi_socket_switch();
	struct ucx_gate *gate;
	int r = 0;

	if (calls == NULL)
		return frag_err_set(
			err, -ENOTSUP,
			"this program cannot keep strangers out of UCX: it exports no socket calls; run the application with fraghost or fragctl");
	if (data_key == NULL)
		return frag_err_set(
			err, -EINVAL,
			"the application has no data key, so no host can tell another from a stranger");
	gate = fragi_calloc(1, sizeof(*gate));
	if (gate == NULL)
		return -ENOMEM;
	gate->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (gate->spare_fd < 0)
		r = -errno;
	gate->key = fragi_secret_alloc(UCX_GATE_KEY_BYTES);
	gate->judge.key = gate->key;
	gate->is_translated = ucx_door_is_announced();
	gate->refusals.logged_ns = fragi_now_ns() - LOG_EVERY_NS;
	if (r == 0 && (gate->key == NULL || ucx_gate_key(data_key, gate->key) < 0))
		r = -ENOMEM;
	if (r == 0 && getrandom(gate->entrance.identity, UCX_IDENTITY_BYTES, 0) !=
			      (ssize_t)UCX_IDENTITY_BYTES)
		r = -EIO;
	if (r < 0) {
		ucx_gate_destroy(gate);
		return frag_err_set(err, r, "cannot keep strangers out of UCX: %s",
				    frag_strerror(r));
	}
	pthread_mutex_lock(&lock);
	if (gates == NULL)
		(void)dl_iterate_phdr(find_code, &ucx_code);
	atomic_store(&next, calls->system);
	atomic_store(&owner, getpid());
	gate->next = gates;
	gates = gate;
	pthread_mutex_unlock(&lock);
	/* It stays when the last gate goes: a thread may be in the middle of a call. */
	atomic_store(&calls->now, &gate_calls);
	*out_gate = gate;
	return 0;
}

void ucx_gate_destroy(struct ucx_gate *gate)
{
	struct ucx_gate **at = &gates;

	if (gate == NULL)
		return;
	pthread_mutex_lock(&lock);
	while (*at != NULL && *at != gate)
		at = &(*at)->next;
	if (*at != NULL)
		*at = gate->next;
	pthread_mutex_unlock(&lock);
	log_refusals(&gate->refusals);
	if (gate->spare_fd >= 0)
		close(gate->spare_fd);
	ucx_judge_fini(&gate->judge);
	fragi_secret_free(gate->key, UCX_GATE_KEY_BYTES);
	fragi_free(gate->attempts.items);
	fragi_free(gate->peers.items);
	fragi_free(gate);
}

void ucx_gate_open(struct ucx_gate *gate)
{
	pthread_mutex_lock(&lock);
	gate->entrance.count = 0;
	pthread_mutex_unlock(&lock);
	opening = gate;
}

void ucx_gate_close(void)
{
	opening = NULL;
}

const struct ucx_entrance *ucx_gate_entrance(const struct ucx_gate *gate)
{
	return &gate->entrance;
}

int ucx_gate_peer(struct ucx_gate *gate, const struct ucx_entrance *peer)
{
	int r;

	pthread_mutex_lock(&lock);
	r = ucx_peers_add(&gate->peers, peer);
	pthread_mutex_unlock(&lock);
	return r;
}

int ucx_gate_outcome(struct ucx_gate *gate, const struct ucx_entrance *peer,
		     uint8_t out_dial[UCX_END_BYTES])
{
	int outcome;

	pthread_mutex_lock(&lock);
	outcome = ucx_peers_outcome(&gate->peers, peer, out_dial);
	pthread_mutex_unlock(&lock);
	return outcome;
}
