/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_HOSTS_H
#define TESTS_CONFORMANCE_HOSTS_H

#include <criterion/criterion.h>
#include <stdarg.h>

#include "../unit/stamp_ops.h"
#include <base/identity.h>
#include <edge/ucx_env.h>

/*
 * Runs of two hosts, both in this process, with an edge over UCX or shared memory for each flow
 * between them; the test is the driver: it gives both sides the flows' links.
 */
#define SET(name, value) setenv(name, value, 0);

static inline void set_environment(void)
{
	FRAGI_UCX_ENV(SET)
	setenv("UCX_NET_DEVICES", "lo", 0);
	fragi_log_init(0);
}

static inline void over_ucx(void)
{
	set_environment();
	rig_transports[0] = "ucx";
}

static inline void over_shm(void)
{
	set_environment();
	rig_transports[0] = "shm";
}

/* A test for each transport, in a process of its own. */
#define HOSTS_TEST(what)                                                                           \
	static void what(struct hosts *hosts);                                                     \
	Test(hosts, what, .init = over_ucx)                                                        \
	{                                                                                          \
		hosts_test(what);                                                                  \
	}                                                                                          \
	Test(hosts_shm, what, .init = over_shm)                                                    \
	{                                                                                          \
		hosts_test(what);                                                                  \
	}                                                                                          \
	static void what(struct hosts *hosts)

#define HOSTS 2

/* What every graph begins with. */
#define HEAD "frag: 1\napplication: app\nfragments:\n"

/* a flow between the hosts */
struct cut {
	const char *from_op, *from_port, *to_op, *to_port; /* in the fragments' tables */
	uint32_t from_fragment, to_fragment;               /* index within its host */
	uint32_t from_host;
	uint32_t window;
	enum frag_policy policy;
	uint32_t order; /* in the text */
};

struct hosts {
	struct rig rig[HOSTS];
};

static inline uint32_t op_index(const struct fragi_fragment_info *info, const char *name)
{
	uint32_t i = 0;

	while (strcmp(info->ops[i].name, name) != 0)
		i++;
	return i;
}

static inline uint32_t port_index(const struct fragi_op_info *info, const char *name)
{
	uint32_t i = 0;

	while (strcmp(info->ports[i].name, name) != 0)
		i++;
	return i;
}

static bool is_encrypted;

/* The hosts take each other for hosts whose clocks cannot be compared with their own. */
static bool is_other_machine;

/* The address of a host that has another clock, valid until the next call. */
static inline const void *with_other_clock(const struct fragi_run_address *address)
{
	static uint8_t bytes[FRAGI_HOST_ADDRESS_MAX];
	char clock[FRAGI_IDENTITY_SIZE];
	uint8_t *at;

	cr_assert_eq(fragi_identity_clock(false, clock), 0);
	memcpy(bytes, address->bytes, address->size);
	at = memmem(bytes, address->size, clock, strlen(clock) + 1);
	cr_assert_not_null(at, "no clock in the address");
	at[strlen(clock) - 1] ^= 1;
	return bytes;
}

static inline void wire(struct hosts *hosts, const struct cut *cuts, size_t count)
{
	struct fragi_run_edge edges[16];
	static char names[16][200];
	struct frag_err err = FRAG_ERR_INIT;

	for (uint32_t h = 0; h < HOSTS; h++) {
		struct fragi_run_peer peer = {.host = 1 - h, .epoch = 1, .name = "other"};
		struct fragi_run_address addresses[FRAGI_HOST_TRANSPORTS_MAX];
		size_t unused;

		peer.address_count = fragi_run_addresses(hosts->rig[1 - h].run, addresses);
		cr_assert_eq(peer.address_count, 1);
		if (is_other_machine)
			addresses[0].bytes = with_other_clock(&addresses[0]);
		peer.addresses = addresses;
		for (size_t i = 0; i < count; i++) {
			const struct cut *c = &cuts[i];
			const struct fragi_fragment_info *from =
				fragi_run_fragments(hosts->rig[c->from_host].run, &unused);
			const struct fragi_fragment_info *to =
				fragi_run_fragments(hosts->rig[1 - c->from_host].run, &unused);
			bool sends = c->from_host == h;
			const struct fragi_fragment_info *here =
				sends ? &from[c->from_fragment] : &to[c->to_fragment];

			from += c->from_fragment;
			to += c->to_fragment;
			edges[i] = (struct fragi_run_edge){
				.config = {.flow = (uint32_t)i,
					   .token = {1, 2, (uint8_t)i},
					   .window_messages = c->window > 0 ? c->window : 4,
					   .window_bytes = FRAGI_WINDOW_BYTES,
					   .message_bytes_max = FRAGI_MESSAGE_BYTES_MAX,
					   .policy = c->policy != FRAG_POLICY_DEFAULT
							     ? c->policy
							     : FRAG_POLICY_BLOCK,
					   .encrypt = is_encrypted},
				.transport = rig_transports[0],
				.sends = sends,
				.fragment = sends ? c->from_fragment : c->to_fragment,
				.op = op_index(here, sends ? c->from_op : c->to_op),
				.peer = 1 - h,
				.order = c->order,
				.other_end = names[i],
			};
			edges[i].port = port_index(&here->ops[edges[i].op],
						   sends ? c->from_port : c->to_port);
			if (sends)
				snprintf(names[i], sizeof(names[i]), "%s.%s.%s", to->name, c->to_op,
					 c->to_port);
			else
				snprintf(names[i], sizeof(names[i]), "%s.%s.%s", from->name,
					 c->from_op, c->from_port);
		}
		cr_assert_eq(fragi_run_wire(hosts->rig[h].run, &peer, 1, edges, count, &err), 0,
			     "%s", err.text);
	}
}

static const struct frag_plugin *plugin = &rig_plugin;

/* What ran before, if anything did. */
static inline void end(struct hosts *hosts)
{
	for (uint32_t h = 0; h < HOSTS; h++)
		rig_end(&hosts->rig[h]);
	memset(hosts, 0, sizeof(*hosts));
	notes_clear();
}

static inline void hosts_test(void (*test)(struct hosts *hosts))
{
	struct hosts hosts = {0};

	test(&hosts);
	end(&hosts);
}

/*
 * Ends what ran before and prepares the fragments of a graph, whose first lines are here: the first
 * host gets fragment "one", the other one those of `second`, NULL: fragment "two".
 */
FRAG_PRINTF(3, 0)
static inline void prepare_text(struct hosts *hosts, const char *const *second, const char *format,
				va_list arguments)
{
	static const char *const one[] = {"one", NULL}, *const two[] = {"two", NULL};
	static char yaml[4096];
	size_t used = (size_t)sprintf(yaml, HEAD);

	vsnprintf(yaml + used, sizeof(yaml) - used, format, arguments);
	end(hosts);
	for (uint32_t h = 0; h < HOSTS; h++)
		if (rig_prepare_host(&hosts->rig[h], plugin, yaml,
				     h == 0           ? one
				     : second != NULL ? second
						      : two,
				     h) < 0) {
			rig_errors(&hosts->rig[h]);
			cr_assert(0, "refused");
		}
}

__attribute__((format(printf, 3, 4))) static inline void
prepare(struct hosts *hosts, const char *const *second, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	prepare_text(hosts, second, format, arguments);
	va_end(arguments);
}

static inline bool is_wired(struct rig *rig)
{
	return rig->wired > 0;
}

static inline void start(struct hosts *hosts)
{
	struct frag_err err = FRAG_ERR_INIT;

	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts->rig[h], is_wired, 8000000000), "host %u: %s", h,
			  hosts->rig[h].sentence);
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert_eq(fragi_run_start(hosts->rig[h].run, &err), 0, "%s", err.text);
}

static const char *const schedulers[] = {"greedy", "event_based"};

static inline void wait_for_both(struct hosts *hosts)
{
	for (uint32_t h = 0; h < HOSTS; h++)
		cr_assert(rig_wait(&hosts->rig[h], rig_is_done, RIG_LIMIT_NS), "host %u: %s", h,
			  hosts->rig[h].sentence);
}

/* Both hosts run a graph to their end. */
__attribute__((format(printf, 4, 5))) static inline void
run_all(struct hosts *hosts, const struct cut *cuts, size_t count, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	prepare_text(hosts, NULL, format, arguments);
	va_end(arguments);
	wire(hosts, cuts, count);
	start(hosts);
	wait_for_both(hosts);
}

#endif
