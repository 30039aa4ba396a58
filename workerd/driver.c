// SPDX-License-Identifier: Apache-2.0
#include <workerd/driver.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "worker"
#include <base/alloc.h>
#include <base/log.h>
#include <base/sentence.h>
#include <base/trace.h>
#include <wire/peer_user.h>

#define ADDRESSES_MAX 8
#define TRACE_WAITS_BYTES ((size_t)2 << 20)
#define TRACE_END_WAITS_BYTES ((size_t)4 << 20)

struct wrk_driver {
	/* constant once made */
	uint64_t id;
	const struct wrk_driver_ops *ops;
	void *arg;
	uv_loop_t *loop;
	struct fw_connection_options options;
	/* the loop's */
	uv_getaddrinfo_t lookup;
	uv_connect_t connect;
	struct sockaddr_storage addresses[ADDRESSES_MAX];
	int address_count, address_next;
	struct fw_connection *connection;
	uint64_t seq;
	uint64_t refused[2]; /* bits of kinds that could not be encoded: logged once each */
	bool looking_up, connecting, started;
	bool up;    /* each end knows who the other one is */
	bool ended; /* nothing is reported any more */
	bool is_own_user;
	struct fw_identity identity; /* by which the session holds; no name: none */
	/* USER_REFUSED: why is about the first address where the process is not trusted */
	enum fragi_failure failure;
	char why[1024];
};

#define HAS_BIT(number, KIND, type) _Static_assert((number) < 128, "refused has its bit");
FW_KIND_LIST(HAS_BIT)
#undef HAS_BIT

static void try_next(struct wrk_driver *driver);

static void free_if_done(struct wrk_driver *driver)
{
	if (!driver->ended || driver->connection != NULL || driver->looking_up ||
	    driver->connecting)
		return;
	driver->ops->freed(driver->arg, driver);
	fragi_free(driver);
}

static void give_up(struct wrk_driver *driver)
{
	if (!driver->ended) {
		driver->ended = true;
		driver->ops->failed(driver->arg, driver->id, driver->failure, driver->why);
	}
}

/* A process that is not trusted at one address is what a person must know about first. */
static void note_why(struct wrk_driver *driver, enum fragi_failure failure, const char *why)
{
	if (driver->failure != FRAGI_FAILURE_NONE)
		return;
	driver->failure = failure;
	fragi_sentence(driver->why, sizeof(driver->why), "%s", why);
}

static void on_message(struct fw_connection *connection, struct fw_message *message, void *arg)
{
	struct wrk_driver *driver = arg;

	(void)connection;
	if (driver->ended)
		fw_message_free(message);
	else
		driver->ops->message(driver->arg, driver->id, message);
}

static void on_closed(struct fw_connection *connection, int reason, const char *sentence, void *arg)
{
	enum fragi_failure failure = reason == -EKEYREJECTED ? FRAGI_FAILURE_KEY_REFUSED
				     : reason == -EACCES     ? FRAGI_FAILURE_USER_REFUSED
							     : FRAGI_FAILURE_NONE;
	struct wrk_driver *driver = arg;

	(void)connection;
	/*
	 * Without memory for a frame the connection is given up, because the driver would miss it.
	 */
	if (reason == -ENOMEM)
		log_error(NULL, "gave up the connection to the driver: %s", sentence);
	driver->connection = NULL;
	if (!driver->ended && driver->up) {
		driver->ended = true;
		driver->ops->lost(driver->arg, driver->id, failure, sentence);
	} else if (!driver->ended) {
		if (driver->started)
			note_why(driver, failure, sentence);
		if (failure == FRAGI_FAILURE_KEY_REFUSED)
			give_up(driver);
		else
			try_next(driver);
	}
	free_if_done(driver);
}

static void local_address(struct fw_connection *connection, char *out, size_t size)
{
	struct sockaddr_storage address;
	int length = sizeof(address);

	out[0] = '\0';
	if (uv_tcp_getsockname((uv_tcp_t *)(void *)fw_connection_stream(connection),
			       (struct sockaddr *)&address, &length) < 0)
		return;
	if (address.ss_family == AF_INET)
		uv_ip4_name((const struct sockaddr_in *)(const void *)&address, out, size);
	else if (address.ss_family == AF_INET6)
		uv_ip6_name((const struct sockaddr_in6 *)(const void *)&address, out, size);
}

static bool user_of(struct fw_connection *connection, uid_t *out_user)
{
	int fd;

	return uv_fileno((uv_handle_t *)fw_connection_stream(connection), &fd) == 0 &&
	       fw_peer_user(fd, out_user) == 0;
}

/* A key proves more than whose process it is. */
static void write_proof(struct fw_connection *connection, bool has_user, uid_t user, char *out,
			size_t size)
{
	const struct fw_identity *identity = fw_connection_identity(connection);

	out[0] = '\0';
	if (identity != NULL)
		snprintf(out, size, "%s %s %llu", identity->serial != 0 ? "key" : "certificate",
			 identity->name, (unsigned long long)identity->serial);
	else if (has_user)
		snprintf(out, size, "user %u", (unsigned int)user);
}

static void on_ready(struct fw_connection *connection, void *arg)
{
	struct wrk_driver *driver = arg;
	char local[64], proof[256];
	uid_t user = 0;
	bool has_user;

	if (driver->ended)
		return;
	fw_connection_admit(connection);
	driver->up = true;
	if (fw_connection_identity(connection) != NULL)
		driver->identity = *fw_connection_identity(connection);
	has_user = user_of(connection, &user);
	driver->is_own_user = has_user && user == geteuid();
	write_proof(connection, has_user, user, proof, sizeof(proof));
	local_address(connection, local, sizeof(local));
	driver->ops->connected(driver->arg, driver->id, local, proof);
}

static const struct fw_connection_ops connection_ops = {on_message, on_closed, on_ready};

static void on_connect(uv_connect_t *request, int status)
{
	struct wrk_driver *driver = request->data;

	driver->connecting = false;
	if (driver->connection == NULL || driver->ended) {
		free_if_done(driver);
		return;
	}
	if (status == 0) {
		status = fw_connection_start(driver->connection);
		driver->started = status == 0;
	}
	if (status < 0) {
		note_why(driver, FRAGI_FAILURE_NONE, frag_strerror(status));
		fw_connection_close(driver->connection); /* on_closed tries the next address */
	}
}

static void try_next(struct wrk_driver *driver)
{
	int r;

	driver->started = false;
	if (driver->address_next == driver->address_count) {
		give_up(driver);
		return;
	}
	r = fw_connection_create(driver->loop, FW_STREAM_TCP, &connection_ops, driver,
				 &driver->options, &driver->connection);
	if (r < 0) {
		note_why(driver, FRAGI_FAILURE_NONE, frag_strerror(r));
		give_up(driver);
		return;
	}
	driver->connect.data = driver;
	r = uv_tcp_connect(
		&driver->connect, (uv_tcp_t *)(void *)fw_connection_stream(driver->connection),
		(const struct sockaddr *)&driver->addresses[driver->address_next++], on_connect);
	if (r < 0) {
		note_why(driver, FRAGI_FAILURE_NONE, frag_strerror(r));
		fw_connection_close(driver->connection);
		return;
	}
	driver->connecting = true;
}

static void on_lookup(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
	struct wrk_driver *driver = request->data;

	driver->looking_up = false;
	for (struct addrinfo *a = found; a != NULL && driver->address_count < ADDRESSES_MAX;
	     a = a->ai_next)
		if (a->ai_addrlen <= sizeof(driver->addresses[0]))
			memcpy(&driver->addresses[driver->address_count++], a->ai_addr,
			       a->ai_addrlen);
	uv_freeaddrinfo(found);
	if (!driver->ended) {
		fragi_sentence(driver->why, sizeof(driver->why), "its name cannot be looked up: %s",
			       status < 0 ? uv_strerror(status) : "it has no address");
		try_next(driver);
	}
	free_if_done(driver);
}

int wrk_driver_open(uv_loop_t *loop, const struct fragi_address *address, uint64_t id,
		    const struct fw_connection_options *options, const struct wrk_driver_ops *ops,
		    void *arg, struct wrk_driver **out_driver)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct wrk_driver *driver = fragi_calloc(1, sizeof(*driver));
	char port[8];
	int r;

	if (driver == NULL)
		return -ENOMEM;
	driver->id = id;
	driver->ops = ops;
	driver->arg = arg;
	driver->loop = loop;
	driver->options = *options;
	*out_driver = driver;
	if (uv_ip4_addr(address->host, address->port,
			(struct sockaddr_in *)(void *)&driver->addresses[0]) == 0 ||
	    uv_ip6_addr(address->host, address->port,
			(struct sockaddr_in6 *)(void *)&driver->addresses[0]) == 0) {
		driver->address_count = 1;
		try_next(driver);
		free_if_done(driver);
		return 0;
	}
	snprintf(port, sizeof(port), "%u", (unsigned int)address->port);
	driver->lookup.data = driver;
	r = uv_getaddrinfo(loop, &driver->lookup, on_lookup, address->host, port, &hints);
	if (r < 0) {
		fragi_free(driver);
		return r;
	}
	driver->looking_up = true;
	return 0;
}

int wrk_driver_fd(const struct wrk_driver *driver)
{
	int fd = -1;

	if (driver->connection != NULL)
		(void)uv_fileno((uv_handle_t *)fw_connection_stream(driver->connection), &fd);
	return fd;
}

void wrk_driver_renew(struct wrk_driver *driver)
{
	const struct fw_key *key = fw_tls_own_key(driver->options.tls);

	if (key != NULL)
		driver->identity.serial = key->serial;
}

const struct fw_identity *wrk_driver_identity(const struct wrk_driver *driver)
{
	return &driver->identity;
}

void wrk_driver_lose(struct wrk_driver *driver, const char *why)
{
	if (driver->connection != NULL)
		fw_connection_fail(driver->connection, -EKEYREVOKED, why);
}

uint64_t wrk_driver_id(const struct wrk_driver *driver)
{
	return driver->id;
}

bool wrk_driver_is_own_user(const struct wrk_driver *driver)
{
	return driver->is_own_user;
}

/*
 * A message that people look at delays nothing; by its number it is seen to lack. Of a trace each
 * part counts, so as much may wait as a host has in its ring. A link of 10 Mbit/s takes less than
 * the time of death for that. At its end, a host sends as much once more, whatever waits.
 */
static bool may_pass(const struct wrk_driver *driver, const struct fw_tapped *tapped)
{
	struct fragi_trace_host host;
	size_t most = FW_CONNECTION_IDLE_BYTES;

	if (fragi_trace_is_chunk(tapped->passed, tapped->size, &host))
		most = host.end == FRAGI_TRACE_GOES_ON ? TRACE_WAITS_BYTES : TRACE_END_WAITS_BYTES;
	return fw_connection_has_room(driver->connection, most);
}

void wrk_driver_send(struct wrk_driver *driver, const struct fw_message *message)
{
	uint64_t *refused = &driver->refused[message->kind / 64];
	const uint64_t bit = UINT64_C(1) << message->kind % 64;
	struct fw_message copy = *message;
	uint8_t *frame;
	size_t size;
	int r;

	if (driver->connection == NULL || !driver->up)
		return;
	if (message->kind == FW_HOST_TAPPED && !may_pass(driver, &message->tapped))
		return;
	copy.seq = ++driver->seq;
	copy.reply_to = 0;
	r = fw_encode(&copy, &frame, &size);
	if (r == 0) {
		(void)fw_connection_send(driver->connection, frame, size);
		return;
	}
	if ((*refused & bit) == 0)
		log_error(NULL, "cannot send %s to the driver: %s", fw_kind_name(message->kind),
			  frag_strerror(r));
	if (r != -ENOMEM)
		*refused |= bit;
	else if (message->kind != FW_BEAT) /* the driver would wait for it */
		fw_connection_fail(driver->connection, r, frag_strerror(r));
}

void wrk_driver_finish(struct wrk_driver *driver)
{
	driver->ended = true;
	if (driver->looking_up)
		uv_cancel((uv_req_t *)&driver->lookup);
	if (driver->connection != NULL && driver->up)
		fw_connection_finish(driver->connection);
	else if (driver->connection != NULL)
		fw_connection_close(driver->connection);
}
