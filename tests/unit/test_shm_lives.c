// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "draw.h"
#include "logged.h"
#include "shm_lives.h"

/*
 * Drawn lives of three hosts that share memory: they connect, send, receive and give back, sleep
 * and are woken, end and come again, run short of memory, and one shows memory of a GPU. What the
 * protocol hears, and what the module holds after each step, is compared with a recorded text.
 */
#define LIVES 26
#define STEPS 90

static int64_t now_ns;
static uid_t user; /* 0: who it is */

uid_t geteuid(void)
{
	return user != 0 ? user : getuid();
}

/* What happens. */

static bool begins(void)
{
	static const struct fragi_transport_events heard = {arrived, sent, received, failed, fault};
	const int i = (int)draw(HOSTS);
	struct fragi_transport_config config = {
		.struct_size = sizeof(config), .events = &heard, .arg = &hosts[i]};
	struct frag_err err = FRAG_ERR_INIT;
	const uint32_t short_at = draw(30), odd = draw(40);
	int r;

	if (hosts[i].transport != NULL)
		return false;
	config.struct_size += odd == 0;
	config.events = odd == 1 ? NULL : &heard;
	if (short_at < 6)
		fragi_alloc_fail_after(short_at, 1);
	r = fragi_transport_v1.create(&config, &hosts[i].transport, &err);
	(void)fragi_alloc_fail_off();
	if (r < 0) /* how much memory it would take depends on the machine */
		return say("host %d does not begin: %d %.*s", i, r, (int)strcspn(err.text, ":"),
			   err.text);
	return say("host %d begins: %s %s %s, headers of %zu, memory of %x%s", i,
		   hosts[i].transport->ops->name, hosts[i].transport->version,
		   hosts[i].transport->detail, hosts[i].transport->header_max,
		   hosts[i].transport->devices,
		   hosts[i].transport->names_sender ? ", names senders" : "");
}

static const struct {
	const char *name;
	uint32_t at; /* of a byte that is changed; 0: none */
} edits[] = {
	{"", 0},
	{"", 0},
	{"", 0},
	{"", 0},
	{"", 0},
	{"", 0},
	{", whose magic is another", 1},
	{", whose layout is another", 4},
	{", on another machine", 48},
	{", in another network", 112},
	{", with another clock", 176},
	{", whose socket nobody has", 16},
	{", whose secret is another", 32},
};

static bool connects(void)
{
	const int i = (int)draw(HOSTS), k = (int)draw(HOSTS);
	const uint32_t edit = draw(FRAG_COUNT_OF(edits)), short_at = draw(40), odd = draw(30);
	struct frag_err err = FRAG_ERR_INIT;
	uint8_t address[FRAGI_HOST_ADDRESS_MAX];
	size_t size;
	int r;

	if (hosts[i].transport == NULL || hosts[k].transport == NULL || hosts[i].ends[k] != NULL)
		return false;
	memcpy(address, fragi_transport_v1.address(hosts[k].transport, &size), 240);
	cr_assert_eq(size, 240);
	if (edits[edit].at > 0)
		address[edits[edit].at] ^= 1;
	size -= odd == 0;
	if (odd == 1) {
		memcpy(address + 8, &(uint32_t){4711}, sizeof(uint32_t));
		user = 4712;
	}
	say("host %d connects to host %d%s%s", i, k, edits[edit].name,
	    odd == 0   ? ", which has a short address"
	    : odd == 1 ? ", of another user"
		       : "");
	if (short_at < 3)
		fragi_alloc_fail_after(short_at, 1);
	r = fragi_transport_v1.connect(hosts[i].transport, (uint32_t)(70 + k), address, size,
				       (void *)(intptr_t)(1 + i * HOSTS + k), &hosts[i].ends[k],
				       &err);
	(void)fragi_alloc_fail_off();
	user = 0;
	if (r < 0)
		return say("  = %d, failure %u: %s", r, err.failure, err.text);
	return say("  = %d: version %s, %s node, timeline %d", r, hosts[i].ends[k]->version,
		   hosts[i].ends[k]->same_node ? "the same" : "another",
		   hosts[i].ends[k]->timeline.state);
}

static bool takes_memory(void)
{
	const int i = (int)draw(HOSTS), b = (int)draw(BLOCKS);
	const bool on_gpu = draw_percent(25);
	const uint64_t sizes[] = {1, 64, 700, 1024, 1025, 4096, 5000, 300000};
	int r;

	if (hosts[i].transport == NULL || blocks[b].memory != NULL)
		return false;
	blocks[b] = (struct block){.host = i, .bytes = DRAW_OF(sizes)};
	gpu_fails = draw_percent(20);
	if (on_gpu)
		r = shm_area_alloc(
			shm_heap_areas(((struct shm_transport *)(void *)hosts[i].transport)->heap),
			(struct frag_device){FRAG_DEVICE_CUDA, 1}, (size_t)blocks[b].bytes,
			&blocks[b].memory);
	else
		r = frag_alloc(fragi_transport_v1.memory(hosts[i].transport,
							 (struct frag_device){FRAG_DEVICE_CPU, 0}),
			       (size_t)blocks[b].bytes, &blocks[b].memory);
	gpu_fails = false;
	if (r < 0)
		blocks[b].memory = NULL;
	else
		memset(blocks[b].memory, 'a' + b, (size_t)blocks[b].bytes);
	return say("host %d takes block %d of %" PRIu64 "%s: %d, area %d", i, b, blocks[b].bytes,
		   on_gpu ? " on the GPU" : "", r,
		   r < 0 ? -9
			 : fragi_transport_v1.area(hosts[i].transport,
						   &(struct fragi_body){.data = blocks[b].memory,
									.bytes = blocks[b].bytes}));
}

static bool gives_memory(void)
{
	struct block *block = &blocks[draw(BLOCKS)];
	struct shm_heap *heap;

	if (block->memory == NULL || block->users > 0)
		return false;
	say("host %d gives block %d back", block->host, (int)(block - blocks));
	heap = ((struct shm_transport *)(void *)hosts[block->host].transport)->heap;
	if (shm_area_find(shm_heap_areas(heap), block->memory, 1) >= 0)
		shm_area_free(shm_heap_areas(heap), block->memory);
	else
		frag_free(shm_heap_resource(heap), block->memory);
	block->memory = NULL;
	return true;
}

/* A block of the host, of the GPU only if the peer has mapped it; else memory of its own. */
static void draw_body(int host, int peer, struct sending *sending, struct fragi_body *body)
{
	static char own[6000];
	const uint64_t sizes[] = {1, 100, 512, 1023, 1024, 1025, 5000};
	const struct fragi_transport *transport = hosts[host].transport;
	struct block *block = &blocks[draw(BLOCKS)];
	const uint64_t offset = draw_percent(30) ? draw(64) : 0;
	int area;

	memset(own, 'z', sizeof(own));
	*body = (struct fragi_body){.data = own, .bytes = DRAW_OF(sizes)};
	body->device.type = FRAG_DEVICE_CPU;
	if (draw_percent(40) || block->memory == NULL || block->host != host ||
	    offset >= block->bytes)
		return;
	*body = (struct fragi_body){.data = (char *)block->memory + offset,
				    .bytes = block->bytes - offset};
	area = fragi_transport_v1.area(transport, body);
	body->device.type = area >= 0 ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU;
	if (area >= 0 &&
	    (fragi_transport_v1.areas(hosts[host].ends[peer]) & (uint64_t)1 << area) == 0) {
		body->data = own;
		body->device.type = FRAG_DEVICE_CPU;
		body->bytes = 1025;
		return;
	}
	sending->blocks[sending->block_count++] = block;
	block->users++;
}

/* Returns whether it is under way; it is free again if not. */
static bool send_to(int i, int k, struct sending *sending, const struct fragi_body *bodies,
		    uint32_t count)
{
	const bool is_under_way =
		fragi_transport_v1.send(hosts[i].ends[k], sending->send, bodies, count);

	cr_assert(!sending->is_over, "it ended by an upcall, too");
	if (!is_under_way) {
		let_go(sending);
		free(sending->send);
		sending->send = NULL;
	}
	return is_under_way;
}

/* NULL: there are too many. */
static struct sending *make_send(int host, uint32_t header_bytes, int letter)
{
	struct sending *sending = sends;

	while (sending < sends + SENDS && sending->send != NULL)
		sending++;
	if (sending == sends + SENDS)
		return NULL;
	*sending = (struct sending){.host = host};
	sending->send = calloc(1, sizeof(*sending->send) + hosts[host].transport->send_room);
	sending->send->header_bytes = header_bytes;
	memset(sending->send->header, letter, header_bytes);
	return sending;
}

/* One that has failed is rarely sent to. */
static bool is_open(int host, int peer)
{
	const struct fragi_endpoint *end = hosts[host].ends[peer];

	return end != NULL &&
	       (!((const struct shm_endpoint *)(const void *)end)->failed || draw_percent(5));
}

static bool sends_it(void)
{
	const uint32_t headers[] = {1, 40, 48, 112, 113, 4096};
	const int i = (int)draw(HOSTS), k = (int)draw(HOSTS);
	const uint32_t count = draw(4);
	const bool is_short = draw_percent(8);
	const uint32_t header_bytes = DRAW_OF(headers);
	const int letter = 'A' + (int)draw(26);
	struct sending *sending;
	struct fragi_body bodies[4];
	uint64_t copied;

	if (!is_open(i, k))
		return false;
	sending = make_send(i, header_bytes, letter);
	if (sending == NULL)
		return false;
	fprintf(out, "send %d, host %d to %d, header %u, bodies", (int)(sending - sends), i, k,
		sending->send->header_bytes);
	for (uint32_t b = 0; b < count; b++) {
		draw_body(i, k, sending, &bodies[b]);
		fprintf(out, " %" PRIu64 "%c", bodies[b].bytes, *(const char *)bodies[b].data);
	}
	say("%s", is_short ? ", memory is short" : "");
	if (is_short)
		fragi_alloc_fail_after(0, 1);
	copied = sending->send->copied_bytes;
	if (send_to(i, k, sending, bodies, count))
		say("  = under way, %" PRIu64 " copied", sending->send->copied_bytes - copied);
	(void)fragi_alloc_fail_off();
	return true;
}

/* As many as fill a ring, or all but; the first of them have bodies that are copied. */
static bool sends_many(void)
{
	static char own[2000];
	const int i = (int)draw(HOSTS), k = (int)draw(HOSTS);
	const uint32_t count = 50 + draw(30), large = draw(40);
	struct fragi_body body = {.data = memset(own, 'z', sizeof(own))};
	struct sending *sending;
	uint32_t under_way = 0;

	if (!is_open(i, k))
		return false;
	body.device.type = FRAG_DEVICE_CPU;
	for (uint32_t n = 0; n < count && (sending = make_send(i, 4080, 'Q')) != NULL; n++) {
		body.bytes = n < large ? 2000 : 100;
		under_way += send_to(i, k, sending, &body, 1);
	}
	return say("host %d sends %u to %d, %u of them large: %u are under way", i, count, k, large,
		   under_way);
}

static bool makes_progress(void)
{
	const int i = (int)draw(HOSTS);
	const uint32_t short_at = draw(25);
	uint32_t happened;

	if (hosts[i].transport == NULL)
		return false;
	now_ns += (const int64_t[]){0, 400000, 1000000}[draw(3)];
	keeps = draw_percent(50);
	gpu_fails = draw_percent(10);
	say("host %d makes progress at %" PRId64 " us%s", i, now_ns / 1000,
	    short_at < 2 ? ", memory is short" : "");
	if (short_at < 2)
		fragi_alloc_fail_after(short_at, 1);
	happened = fragi_transport_v1.progress(hosts[i].transport, now_ns);
	(void)fragi_alloc_fail_off();
	gpu_fails = false;
	return happened == 0 || say("  = %u", happened);
}

static bool is_readable(const struct host *host)
{
	struct pollfd fd = {.fd = fragi_transport_v1.fd(host->transport), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static bool sleeps(void)
{
	const int i = (int)draw(HOSTS);
	int r;

	if (hosts[i].transport == NULL)
		return false;
	r = fragi_transport_v1.arm(hosts[i].transport);
	return say("host %d arms: %d", i, r);
}

static bool is_looked_at(void)
{
	const int i = (int)draw(HOSTS);

	if (hosts[i].transport == NULL)
		return false;
	if (draw_percent(20)) {
		say("host %d is woken", i);
		fragi_transport_v1.wake(hosts[i].transport);
	}
	return say("host %d %s", i, is_readable(&hosts[i]) ? "is awake" : "would sleep");
}

static bool lets_go(void)
{
	const uint32_t i = kept_count > 0 ? draw(kept_count) : 0;

	if (kept_count == 0)
		return false;
	say("a body of %" PRIu64 " %c is released, it holds %c", kept[i].body.bytes, kept[i].what,
	    letter_of(kept[i].body.data, kept[i].body.bytes));
	kept[i].body.release(kept[i].body.owner);
	kept[i] = kept[--kept_count];
	return true;
}

static bool closes(void)
{
	const int i = (int)draw(HOSTS), k = (int)draw(HOSTS);
	const bool silent = draw_percent(60);

	if (hosts[i].transport == NULL || hosts[i].ends[k] == NULL)
		return false;
	say("host %d closes host %d%s", i, k, silent ? ", which is silent" : "");
	keeps = false;
	fragi_transport_v1.close(hosts[i].ends[k], silent);
	if (draw_percent(80))
		say("  stop: %d", fragi_transport_v1.stop(hosts[i].ends[k], now_ns));
	show(i);
	if (draw_percent(60)) {
		say("  and frees it");
		fragi_transport_v1.free(hosts[i].ends[k]);
		hosts[i].ends[k] = NULL;
	}
	return true;
}

static void forget_sends(int ended)
{
	for (struct sending *s = sends; s < sends + SENDS; s++) {
		cr_expect(s->send == NULL || s->host != ended || s->is_over, "send %d never ends",
			  (int)(s - sends));
		if (s->send != NULL && s->is_over && (!s->is_left || s->host == ended)) {
			free(s->send);
			s->send = NULL;
		}
	}
}

/* Its pools end before it. */
static void end(int i)
{
	say("host %d ends", i);
	fragi_transport_v1.destroy(hosts[i].transport);
	hosts[i].transport = NULL;
	memset(hosts[i].ends, 0, sizeof(hosts[i].ends));
	memset(hosts[i].shown, 0, sizeof(hosts[i].shown));
	forget_sends(i);
}

static bool ends(void)
{
	const int i = (int)draw(HOSTS);

	if (hosts[i].transport == NULL)
		return false;
	for (int b = 0; b < BLOCKS; b++)
		if (blocks[b].memory != NULL && blocks[b].host == i)
			return false;
	end(i);
	return true;
}

static const struct drawn_event events[] = {
	{3, begins, true},
	{3, connects, true},
	{3, takes_memory},
	{2, gives_memory, true},
	{12, sends_it, true},
	{1, sends_many},
	{14, makes_progress, true},
	{3, sleeps},
	{2, is_looked_at, true},
	{6, lets_go},
	{1, closes},
	{1, ends},
};

/* Most hosts know one another; some are not there yet. */
static void begin_life(void)
{
	for (int i = 0; i < 40; i++)
		if (draw_percent(60))
			(void)connects();
		else
			(void)begins();
}

static void live(uint32_t seed)
{
	uint32_t weights[FRAG_COUNT_OF(events)];

	draw_from(seed);
	say("life %u", seed);
	now_ns = 0;
	draw_weights(events, FRAG_COUNT_OF(events), weights);
	begin_life();
	for (int i = 0; i < STEPS; i++) {
		draw_event(events, weights, FRAG_COUNT_OF(events));
		for (int k = 0; k < HOSTS; k++)
			show(k);
		forget_sends(-1);
	}
	while (kept_count > 2)
		lets_go();
	for (int b = 0; b < BLOCKS; b++) {
		blocks[b].users = 0;
		while (blocks[b].memory != NULL)
			gives_memory();
	}
	for (int i = 0; i < HOSTS; i++)
		if (hosts[i].transport != NULL)
			end(i);
	while (kept_count > 0)
		lets_go();
}

/* Of address space and files; 0: as they are. */
static uint64_t limit_bytes[2];

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	uint64_t played = resource == RLIMIT_AS      ? limit_bytes[0]
			  : resource == RLIMIT_FSIZE ? limit_bytes[1]
						     : 0;

	if (played == 0)
		return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
	*limit = (struct rlimit){played, played};
	return 0;
}

/* How large a heap is where this process has limits, and what is said where that is too little. */
static void limit_heaps(void)
{
	static const uint64_t limits[][2] = {
		{UINT64_C(64) << 20, 0},
		{UINT64_C(64) << 20, UINT64_C(5) << 20},
		{UINT64_C(64) << 20, UINT64_C(3) << 20},
		{0, (UINT64_C(3) << 20) + 70000},
		{UINT64_C(16) << 20, 0},
		{(UINT64_C(16) << 20) - 1, 0},
		{0, (UINT64_C(1) << 20) - 1},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(limits); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct shm_heap *heap = NULL;
		int r;

		memcpy(limit_bytes, limits[i], sizeof(limit_bytes));
		r = shm_heap_create(&heap, &err);
		fprintf(out, "address space %" PRIu64 ", files %" PRIu64 ": %d, %" PRIu64 " %s\n",
			limits[i][0], limits[i][1], r, heap != NULL ? shm_heap_size(heap) : 0,
			err.text);
		shm_heap_unref(heap);
	}
	memset(limit_bytes, 0, sizeof(limit_bytes));
}

Test(shm_lives, do_what_is_recorded)
{
	size_t size;
	char *text;

	fragi_memory_install(&gpu_memory, (struct frag_device){FRAG_DEVICE_CUDA, 1});
	out = open_memstream(&text, &size);
	logged_begin();
	for (uint32_t seed = 1; seed <= LIVES; seed++)
		live(seed);
	logged_end(out);
	limit_heaps();
	fclose(out);
	expected_compare("transports/shm", shorten(text));
	free(text);
}
