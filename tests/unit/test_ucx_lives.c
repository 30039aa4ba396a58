// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "draw.h"
#include "expected.h"
#include "fake_ucx.h"

#include <base/bytes.h>

/*
 * Drawn lives of one host over UCX: it connects, sends and receives, connections break, are closed,
 * stopped and freed, and UCX answers in each way that it may. How UCX is called, and what the
 * protocol hears, is compared with a recorded text.
 */
#define LIVES 36
#define STEPS 90
#define SENDS 6
#define RECEIVES 4
#define ENDS 4
#define DOORS_AT 265 /* in an address; they are counted in the byte before */

extern const struct fragi_transport_ops fragi_transport_v1;

struct peer {
	struct fragi_endpoint *endpoint; /* NULL: there is none */
	ucp_ep_h ep;
};

static struct fragi_transport *transport;
static struct peer peers[ENDS];
static struct fragi_send *sends[SENDS]; /* NULL: free */
static bool send_is_over[SENDS], send_is_left[SENDS];
static struct fragi_receive *receives[RECEIVES];
static int kept; /* an arrival that was kept; negative: none */
static char host_name[] = "the host";
static uint32_t upcall; /* how the next arrival is used */

/* What the protocol hears. */

static int slot_of(void *const *slots, int count, const void *at)
{
	int i = 0;

	while (i < count && slots[i] != at)
		i++;
	return i;
}

static enum fragi_arrival_use arrived(void *arg, const struct fragi_arrival *arrival)
{
	const int number =
		arrival->handle == NULL ? -1 : (int)((char *)arrival->handle - fake_handles);

	note("arrived (%s): header %zu %c, bodies of %llu, %s %s%s", (const char *)arg,
	     arrival->header_bytes, *(const char *)arrival->header,
	     (unsigned long long)arrival->body_bytes,
	     arrival->data != NULL ? (const char *)arrival->data : "not here",
	     number >= 0 ? "but held" : "", arrival->from != NULL ? ", from somebody" : "");
	if (upcall == 0 || number < 0)
		return FRAGI_ARRIVAL_USED;
	if (upcall == 1)
		transport->ops->discard(transport, arrival->handle);
	else
		kept = number;
	return FRAGI_ARRIVAL_KEPT;
}

static void sent(struct fragi_send *send, bool abandoned)
{
	const int i = slot_of((void *const *)sends, SENDS, send);

	cr_assert(i < SENDS && !send_is_over[i], "a send ends twice");
	send_is_over[i] = true;
	send_is_left[i] = abandoned;
	note("send %d is over%s", i, abandoned ? ", given up" : "");
}

static void received(struct fragi_receive *receive, const char *cause, uint64_t bytes)
{
	const int i = slot_of((void *const *)receives, RECEIVES, receive);

	cr_assert(i < RECEIVES, "a receive ends twice");
	note("receive %d is over: %s, %llu bytes", i, cause != NULL ? cause : "well",
	     (unsigned long long)bytes);
	free(receive);
	receives[i] = NULL;
}

static void failed(void *owner, const char *cause)
{
	note("peer %d has failed: %s", (int)((struct peer *)owner - peers), cause);
}

static void fault(void *arg, enum fragi_failure failure, const char *sentence)
{
	note("fault (%s) %d: %s", (const char *)arg, failure, sentence);
}

/* What happens. */

static bool say(const char *format, ...) FRAG_PRINTF(1, 2);
static bool say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(fake.out, format, args);
	fputc('\n', fake.out);
	va_end(args);
	return true;
}

static void say_result(int r, const struct frag_err *err)
{
	if (r < 0)
		note("= %d, failure %u: %s", r, err->failure, err->text);
	else
		note("= %d", r);
}

static const char *fails_next; /* then nothing is drawn; NULL: no such function */

/* What goes wrong next, if it does; the same call may also be over at once. */
static void draw_answer(const char *const *functions, uint32_t count)
{
	static const ucs_status_t statuses[] = {
		UCS_ERR_NO_MEMORY,        UCS_ERR_UNREACHABLE,      UCS_ERR_REJECTED,
		UCS_ERR_NOT_CONNECTED,    UCS_ERR_CONNECTION_RESET, UCS_ERR_TIMED_OUT,
		UCS_ERR_ENDPOINT_TIMEOUT, UCS_ERR_IO_ERROR,         UCS_ERR_BUSY,
		UCS_ERR_INVALID_PARAM,    UCS_ERR_CANCELED,
	};
	static const int results[] = {-ECONNREFUSED, -ETIMEDOUT, -EINPROGRESS, -EALREADY,
				      -ENETUNREACH};

	if (fails_next != NULL) {
		fake.failing = fails_next;
		fake.status = UCS_ERR_NO_DEVICE;
		fake.line = "UCX knows why";
		return;
	}
	fake.failing = draw_percent(30) ? functions[draw(count)] : NULL;
	fake.status = DRAW_OF(statuses);
	fake.r = DRAW_OF(results);
	fake.line = draw_percent(30) ? "UCX knows why" : NULL;
	fake.is_at_once = draw_percent(25);
	fake.calls_before = draw_percent(20);
	fake.end = draw_percent(60) ? UCS_OK : UCS_ERR_ENDPOINT_TIMEOUT;
	if (fake.failing != NULL)
		say("%s answers %d or %d%s", fake.failing, fake.status, fake.r,
		    fake.line != NULL ? " and a line" : "");
}

static void end_answer(void)
{
	fake.failing = fake.line = NULL;
	fake.is_at_once = fake.calls_before = false;
}

static const struct {
	const char *name;
	size_t at;
	int value; /* negative: as it is */
} edits[] = {
	{"as here", 0, -1},
	{"as here", 0, -1},
	{"as here", 0, -1},
	{"of another machine", 24, 'x'},
	{"of another clock", 88, 'x'},
	{"of a clock with an odd name", 88, 7},
	{"of another network", 184, 'x'},
	{"of another identity", 248, 'x'},
	{"of another version of UCX", 15 - 2, '9'},
	{"with another UCX_TCP_RX_SEG_SIZE", 152, 'x'},
	{"with another UCX_PROTO_ENABLE", 168, 'x'},
	{"with another magic", 0, 1},
	{"with another layout", 4, 4},
	{"with another size of UCX's", 6, 99},
	{"without doors", 264, 0},
	{"with too many doors", 264, 17},
	{"with as many doors as may be", DOORS_AT, UCX_LISTENERS_MAX},
	{"with one more, and an address that has them", DOORS_AT, UCX_LISTENERS_MAX + 1},
};

/* Gives an address so many doors. Returns its size. */
static size_t put_doors(uint8_t *address, size_t size, uint32_t count)
{
	const size_t before = ucx_address_head(address), own = size - before;

	memmove(address + DOORS_AT + count * sizeof(struct ucx_door), address + before, own);
	for (uint32_t i = 0; i < count; i++)
		memcpy(address + DOORS_AT + i * sizeof(struct ucx_door),
		       &fake.entrance.doors[i % 2], sizeof(struct ucx_door));
	address[DOORS_AT - 1] = (uint8_t)count;
	return DOORS_AT + count * sizeof(struct ucx_door) + own;
}

static bool connects(void)
{
	static const char *const functions[] = {
		"ucp_ep_create", "ucp_ep_create", "ucx_descriptors_check",
		"ucx_gate_peer", "ucx_probe",     "ucx_probe",
		"getifaddrs"};
	const uint32_t i = draw(ENDS), edit = draw(FRAG_COUNT_OF(edits)), also = draw(30);
	struct fragi_endpoint *made = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t address[FRAGI_HOST_ADDRESS_MAX] = {0};
	const void *own;
	size_t size;
	int r;

	if (peers[i].endpoint != NULL || fake.connections == FRAG_COUNT_OF(fake.error))
		return false;
	draw_answer(functions, FRAG_COUNT_OF(functions));
	own = transport->ops->address(transport, &size);
	memcpy(address, own, size);
	if (edits[edit].at == DOORS_AT)
		size = put_doors(address, size, (uint32_t)edits[edit].value);
	else if (edits[edit].value >= 0)
		address[edits[edit].at] = (uint8_t)edits[edit].value;
	if (edits[edit].at == 184) /* where the address of this node may be taken for its own */
		address[DOORS_AT + UCX_END_BYTES + 12] = draw_percent(50) ? 203 : 204;
	if (also < 4)
		size = (size_t[]){8, 9, DOORS_AT, size - 1}[also];
	say("peer %u connects to a host %s, by %zu bytes", i, edits[edit].name, size);
	r = transport->ops->connect(transport, 40 + i, address, size, &peers[i], &made, &err);
	say_result(r, &err);
	cr_assert((r == 0) == (made != NULL));
	peers[i].endpoint = made;
	if (r == 0) {
		peers[i].ep = ((struct ucx_endpoint *)made)->ep;
		note("version %s, %s node, timeline %d", made->version,
		     made->same_node ? "the same" : "another", made->timeline.state);
	}
	end_answer();
	return true;
}

static bool sends_it(void)
{
	static const char *const functions[] = {"ucp_am_send_nbx"};
	static char memory[FAKE_BODIES][8] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	static const uint32_t sizes[] = {1, 2, 700, 4000, 1 << 20};
	const uint32_t i = draw(SENDS), k = draw(ENDS), count = draw(5);
	struct fragi_body bodies[4] = {{0}};
	bool is_under_way, on_gpu = draw_percent(20);

	if (sends[i] != NULL || peers[k].endpoint == NULL)
		return false;
	sends[i] = calloc(1, sizeof(*sends[i]) + transport->send_room);
	sends[i]->header_bytes = 1 + draw(100);
	sends[i]->header[0] = (uint8_t)('A' + draw(26));
	for (uint32_t b = 0; b < count; b++) {
		bodies[b].data = memory[draw(FAKE_BODIES)];
		bodies[b].bytes = DRAW_OF(sizes);
		bodies[b].device.type = on_gpu ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU;
		on_gpu = draw_percent(10) ? !on_gpu : on_gpu;
	}
	draw_answer(functions, 1);
	transport->devices =
		(1u << FRAG_DEVICE_CPU) | (draw_percent(50) ? 1u << FRAG_DEVICE_CUDA : 0);
	say("send %u to peer %u, %u bodies%s", i, k, count,
	    (transport->devices & 1u << FRAG_DEVICE_CUDA) != 0 ? ", UCX knows GPUs" : "");
	send_is_over[i] = false;
	is_under_way = transport->ops->send(peers[k].endpoint, sends[i], bodies, count);
	note("= %s", is_under_way ? "under way" : "over");
	cr_assert(!send_is_over[i], "it ended by an upcall, too");
	if (!is_under_way) {
		free(sends[i]);
		sends[i] = NULL;
	}
	end_answer();
	return true;
}

/* What was given up stays until the transport is gone. */
static void forget_sends(bool all)
{
	for (int i = 0; i < SENDS; i++)
		if (sends[i] != NULL && send_is_over[i] && (all || !send_is_left[i])) {
			free(sends[i]);
			sends[i] = NULL;
		}
}

static bool ends_a_request(void)
{
	static const ucs_status_t ends[] = {UCS_OK, UCS_OK, UCS_OK, UCS_ERR_CANCELED,
					    UCS_ERR_CONNECTION_RESET};
	struct fake_request *request = &fake.requests[draw(FAKE_REQUESTS)];
	const ucs_status_t status = DRAW_OF(ends);

	if (!request->in_use || request->kind == 'c')
		return false;
	say("request %u ends with %d", request_number(request), status);
	fake_end(request, status, 55);
	return true;
}

static bool arrives(void)
{
	const bool is_held = draw_percent(60);
	const ucp_am_recv_param_t param = {.recv_attr = is_held ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
	const uint32_t i = draw(FRAG_COUNT_OF(fake_handles));
	static char text[] = "some bodies";
	ucs_status_t status;

	if (kept >= 0 || fake_handles[i] != '\0')
		return false;
	upcall = draw(3);
	fake_handles[i] = (char)is_held;
	say("a message arrives, %s", is_held ? "its bodies are held" : "with its bodies");
	status = fake.handler.cb(fake.handler.arg, "Z", 1 + draw(9),
				 is_held ? &fake_handles[i] : text, is_held ? 5000 : sizeof(text),
				 &param);
	note("= %s", status == UCS_OK ? "used" : status == UCS_INPROGRESS ? "kept" : "an error");
	if (status == UCS_OK)
		fake_handles[i] = '\0';
	return true;
}

static bool receives_it(void)
{
	static const char *const functions[] = {"ucp_am_recv_data_nbx"};
	static char memory[] = {'p', 'q', 'r', 's'};
	const uint32_t i = draw(RECEIVES), count = 1 + draw(3);
	struct fragi_body bodies[3] = {{0}};
	const bool is_short = count > 1 && draw_percent(20);
	int r;

	if (kept < 0 || receives[i] != NULL)
		return false;
	if (draw_percent(15)) {
		say("the arrival is discarded");
		transport->ops->discard(transport, &fake_handles[kept]);
		kept = -1;
		return true;
	}
	for (uint32_t b = 0; b < count; b++) {
		bodies[b].data = &memory[draw(4)];
		bodies[b].bytes = 1 + draw(3000);
		if (draw_percent(15))
			bodies[b].device.type = FRAG_DEVICE_CUDA;
		else
			bodies[b].device.type = FRAG_DEVICE_CPU;
	}
	receives[i] = calloc(1, sizeof(*receives[i]) + transport->receive_room);
	draw_answer(functions, 1);
	say("receive %u into %u bodies%s", i, count, is_short ? ", and memory is short" : "");
	if (is_short)
		fragi_alloc_fail_after(0, 1);
	r = transport->ops->receive(transport, &fake_handles[kept], bodies, count, receives[i]);
	(void)fragi_alloc_fail_off();
	note("= %d", r);
	if (r < 0) {
		free(receives[i]);
		receives[i] = NULL;
	}
	kept = -1;
	end_answer();
	return true;
}

static bool breaks(void)
{
	const uint32_t i = draw(ENDS);

	if (peers[i].endpoint == NULL || ((struct ucx_endpoint *)peers[i].endpoint)->ep == NULL)
		return false;
	say("the connection of peer %u breaks", i);
	((ucp_err_handler_t *)(void *)peers[i].ep)
		->cb(((ucp_err_handler_t *)(void *)peers[i].ep)->arg, peers[i].ep,
		     UCS_ERR_CONNECTION_RESET);
	return true;
}

static bool closes(void)
{
	static const char *const functions[] = {"ucp_ep_close_nbx"};
	const uint32_t i = draw(ENDS);
	const bool silent = draw_percent(70);
	const struct ucx_endpoint *end = (const struct ucx_endpoint *)peers[i].endpoint;
	const bool was_open = end != NULL && end->ep != NULL;
	const int64_t before_ns = fragi_now_ns();

	if (end == NULL)
		return false;
	draw_answer(functions, 1);
	say("peer %u is closed%s", i, silent ? ", and is silent" : "");
	transport->ops->close(peers[i].endpoint, silent);
	if (silent && was_open) {
		const int64_t wait_ns = end->close_until_ns - before_ns;

		note("it is %s", wait_ns >= 1000000000 && wait_ns < INT64_C(5000000000)
					 ? "waited for, for 1 s"
					 : "not waited for");
	}
	end_answer();
	return true;
}

/* At the last moment at which it is waited for, and the first one at which it is not. */
static bool stops(void)
{
	static const char *const functions[] = {"ucp_request_check_status"};
	const uint32_t i = draw(ENDS);
	const bool is_late = draw_percent(30);

	if (peers[i].endpoint == NULL)
		return false;
	fake.failing = draw_percent(60) ? functions[0] : NULL;
	say("peer %u is stopped%s", i, is_late ? " when its time is over" : "");
	note("= %s", transport->ops->stop(
			     peers[i].endpoint,
			     ((struct ucx_endpoint *)peers[i].endpoint)->close_until_ns - !is_late)
			     ? "nothing is waited for"
			     : "not yet");
	end_answer();
	return true;
}

static bool is_freed(void)
{
	const uint32_t i = draw(ENDS);

	if (peers[i].endpoint == NULL)
		return false;
	say("peer %u is freed", i);
	transport->ops->free(peers[i].endpoint);
	peers[i].endpoint = NULL;
	return true;
}

static bool is_asked_where(void)
{
	static const int outcomes[] = {
		0, -EALREADY, -EINPROGRESS, -ETIMEDOUT, -ECONNREFUSED, -ENETUNREACH, -EHOSTUNREACH};
	const uint32_t i = draw(ENDS);
	const bool tells = draw_percent(70);
	char text[256] = "nowhere";
	bool is_open;

	if (peers[i].endpoint == NULL)
		return false;
	fake.outcome = DRAW_OF(outcomes);
	is_open = transport->ops->reach(peers[i].endpoint, tells, text, sizeof(text));
	return say("peer %u is%s, the way is %s (%d)", i, text, is_open ? "open" : "closed",
		   fake.outcome);
}

static bool makes_progress(void)
{
	static const char *const functions[] = {"ucp_worker_arm"};

	draw_answer(functions, 1);
	say("progress: %u, arm: %d, descriptor %d", transport->ops->progress(transport, 5),
	    transport->ops->arm(transport), transport->ops->fd(transport));
	if (draw_percent(30))
		transport->ops->wake(transport);
	end_answer();
	return true;
}

static const struct drawn_event events[] = {
	{4, connects, true},
	{8, sends_it},
	{8, ends_a_request},
	{3, arrives},
	{4, receives_it, true},
	{1, breaks},
	{2, closes},
	{2, stops},
	{1, is_freed},
	{1, is_asked_where},
	{1, makes_progress, true},
};

static void set(const char *name, const char *const *values, uint32_t count)
{
	const char *value = values[draw(count)];

	if (value == NULL)
		unsetenv(name);
	else
		setenv(name, value, 1);
	fprintf(fake.out, " %s %s", name, value != NULL ? value : "not set");
}

static void draw_environment(void)
{
	static const char *const interfaces[] = {NULL, "", "all", "eth7,lo"};
	static const char *const transports[] = {NULL, "tcp"};
	static const char *const ports[] = {NULL, "4000-4010"};
	static const char *const levels[] = {NULL, NULL, UCX_LOG_LEVEL_OF_FRAG, "debug"};
	static const char *const sizes[] = {NULL, "", "64k"};

	fprintf(fake.out, "a host:");
	set("UCX_NET_DEVICES", interfaces, 4);
	set("UCX_TLS", transports, 2);
	set("UCX_TCP_PORT_RANGE", ports, 2);
	set("UCX_LOG_LEVEL", levels, 4);
	set("UCX_TCP_RX_SEG_SIZE", sizes, 3);
	unsetenv("UCX_PROTO_ENABLE");
	fputc('\n', fake.out);
}

static bool create(void)
{
	static const char *const functions[] = {"ucp_config_read",
						"ucp_init_version",
						"ucx_worker_create",
						"ucx_worker_create",
						"ucp_worker_get_efd",
						"ucp_worker_query",
						"ucp_worker_set_am_recv_handler",
						"ucx_sockets_list",
						"ucx_sockets_check",
						"ucx_gate_create",
						"ucx_descriptors_check"};
	static const struct fragi_transport_events heard = {arrived, sent, received, failed, fault};
	static const uint8_t key[FRAGI_DATA_KEY_BYTES] = {42};
	struct fragi_transport_config config = {
		.struct_size = sizeof(config), .events = &heard, .arg = host_name, .data_key = key};
	static const size_t headers[] = {FRAGI_HEADER_MAX, FRAGI_HEADER_MAX, 8000,
					 FRAGI_HEADER_MAX - 1};
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	memset(fake.error, 0, sizeof(fake.error));
	fake.connections = 0;
	fake.entrance =
		(struct ucx_entrance){.identity = "iden", .count = draw_percent(90) ? 2 : 0};
	for (uint32_t i = 0; i < fake.entrance.count; i++) {
		/* 203.0.113.7:2000 and 203.0.113.7:2001 */
		static const uint8_t end[UCX_END_BYTES] = {[10] = 0xff, 0xff, 203, 0,
							   113,         7,    7,   208};

		memcpy(fake.entrance.doors[i].end, end, sizeof(end));
		memcpy(fake.entrance.doors[i].dial, end, sizeof(end));
		fake.entrance.doors[i].dial[17] = (uint8_t)(208 + i);
	}
	fake.header_max = DRAW_OF(headers);
	fake.listens = draw_percent(70);
	draw_answer(functions, FRAG_COUNT_OF(functions));
	if (fake.failing != NULL && strcmp(fake.failing, "ucx_worker_create") == 0)
		fake.status = draw_percent(50) ? UCS_ERR_BUSY : UCS_ERR_NO_DEVICE;
	if (draw_percent(5))
		config.struct_size--;
	transport = NULL;
	r = fragi_transport_v1.create(&config, &transport, &err);
	cr_assert((r == 0) == (transport != NULL));
	say_result(r, &err);
	end_answer();
	if (r == 0)
		note("%s, UCX %s over %s, headers of %zu, memory of %x%s", transport->ops->name,
		     transport->version, transport->detail, transport->header_max,
		     transport->devices, transport->names_sender ? ", names senders" : "");
	return r == 0;
}

static void live(uint32_t seed)
{
	uint32_t weights[FRAG_COUNT_OF(events)];

	draw_from(seed);
	draw_environment();
	kept = -1;
	if (!create())
		return;
	draw_weights(events, FRAG_COUNT_OF(events), weights);
	for (uint32_t i = 0; i < STEPS; i++) {
		draw_event(events, weights, FRAG_COUNT_OF(events));
		forget_sends(false);
	}
	if (kept >= 0)
		transport->ops->discard(transport, &fake_handles[kept]);
	say("the host ends");
	transport->ops->destroy(transport);
	for (int i = 0; i < ENDS; i++)
		peers[i].endpoint = NULL;
	for (int i = 0; i < SENDS; i++)
		cr_expect(sends[i] == NULL || send_is_over[i], "send %d never ends", i);
	for (int i = 0; i < RECEIVES; i++)
		cr_expect_null(receives[i], "receive %d never ends", i);
	for (uint32_t i = 0; i < FAKE_REQUESTS; i++)
		cr_expect(!fake.requests[i].in_use, "request %u is left", i);
	forget_sends(true);
}

/* Of a peer two things differ at a time. */
static void check_addresses(void)
{
	const struct ucx_transport *own = (const struct ucx_transport *)(void *)transport;
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	struct ucx_entrance entrance;
	const void *of_ucx;

	for (size_t i = 0; i < FRAG_COUNT_OF(edits); i++)
		for (size_t k = i + 1; k < FRAG_COUNT_OF(edits); k++) {
			struct fragi_endpoint peer = {0};
			struct frag_err err = FRAG_ERR_INIT;

			if (edits[i].value < 0 || edits[i].at == DOORS_AT ||
			    edits[k].at == DOORS_AT)
				continue;
			memcpy(address, own->address, own->address_size);
			address[edits[i].at] = (uint8_t)edits[i].value;
			address[edits[k].at] = (uint8_t)edits[k].value;
			say("%s, %s", edits[i].name, edits[k].name);
			say_result(ucx_address_check(own, address, own->address_size, &of_ucx,
						     &peer, &entrance, &err),
				   &err);
			note("version %s, %s node, timeline %d", peer.version,
			     peer.same_node ? "the same" : "another", peer.timeline.state);
		}
}

/* The last error that UCX has logged is the reason, whatever it logs besides. */
static void log_reasons(void)
{
	static const char *const functions[] = {"ucp_config_read", "ucp_init_version"};
	static const ucs_log_level_t levels[] = {UCS_LOG_LEVEL_FATAL, UCS_LOG_LEVEL_ERROR,
						 UCS_LOG_LEVEL_WARN};

	unsetenv("UCX_LOG_LEVEL");
	for (size_t i = 0; i < FRAG_COUNT_OF(functions); i++)
		for (size_t k = 0; k < FRAG_COUNT_OF(levels); k++) {
			fails_next = functions[i];
			fake_level = levels[k];
			say("%s fails, with a line of level %d", fails_next, (int)fake_level);
			cr_expect_not(create());
		}
	fails_next = NULL;
}

Test(ucx_lives, do_what_is_recorded)
{
	size_t size;
	char *text;

	fake.out = open_memstream(&text, &size);
	for (uint32_t seed = 1; seed <= LIVES; seed++)
		live(seed);
	draw_from(1);
	draw_environment();
	while (!create())
		;
	check_addresses();
	transport->ops->destroy(transport);
	log_reasons();
	fclose(fake.out);
	expected_compare("transports/ucx", text);
	free(text);
}
