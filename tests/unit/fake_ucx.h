/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_FAKE_UCX_H
#define TESTS_UNIT_FAKE_UCX_H

#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <ucs/debug/log_def.h>

#include <modules/ucx/module.h>

/*
 * A UCX for the module's transport that does nothing but print how it is called, and answers as the
 * test wants. It stands for the gate and what looks at sockets, too.
 */
#define FAKE_REQUESTS 16
#define FAKE_BODIES 8

struct fake_request {
	bool in_use;
	char kind; /* 's'end, 'r'eceive, 'c'lose */
	ucp_send_nbx_callback_t sent;
	ucp_am_recv_data_nbx_callback_t received;
	void *user_data;
};

static struct {
	FILE *out;
	const char *failing; /* the function of which the next call fails */
	ucs_status_t status; /* with this, or r */
	int r;
	const char *line;  /* that UCX logs before it fails; NULL: none */
	bool is_at_once;   /* the next request is over when the call returns */
	bool calls_before; /* the next request ends before the call returns, by its callback */
	ucs_status_t end;  /* of that one */
	ucs_log_func_t log;
	ucp_am_handler_param_t handler;
	ucp_err_handler_t error[8]; /* of connections */
	unsigned int connections;
	struct fake_request requests[FAKE_REQUESTS];
	struct ucx_entrance entrance;
	int outcome, probe;
	size_t header_max;
	bool listens;
} fake;

static char fake_handles[8]; /* of arrivals that UCX holds; '\1': in use */

static void note(const char *format, ...) FRAG_PRINTF(1, 2);
static void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("    ", fake.out);
	vfprintf(fake.out, format, args);
	fputc('\n', fake.out);
	va_end(args);
}

static ucs_log_level_t fake_level = UCS_LOG_LEVEL_ERROR; /* of what it logs */

static void fake_log(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fake.log("ucp_fake.c", 7, "function", fake_level, NULL, format, args);
	va_end(args);
}

static bool fails(const char *function)
{
	if (fake.failing == NULL || strcmp(fake.failing, function) != 0)
		return false;
	if (fake.line != NULL && fake.log != NULL)
		fake_log("%s", fake.line);
	fake.failing = fake.line = NULL;
	return true;
}

static ucs_status_t fake_status(const char *function)
{
	return fails(function) ? fake.status : UCS_OK;
}

static unsigned int connection_of(ucp_ep_h ep)
{
	return (unsigned int)((ucp_err_handler_t *)(void *)ep - fake.error);
}

static unsigned int request_number(const void *request)
{
	return (unsigned int)((const struct fake_request *)request - fake.requests);
}

static const char *memory_name(ucs_memory_type_t type)
{
	return type == UCS_MEMORY_TYPE_HOST   ? "of the host"
	       : type == UCS_MEMORY_TYPE_CUDA ? "of a GPU"
					      : "of another kind";
}

/* "3 bodies: 100 a, 20 b": their sizes, and the first byte of each. */
static void note_bodies(const void *buffer, size_t count, const ucp_request_param_t *param)
{
	const ucp_dt_iov_t one = {.buffer = (void *)(uintptr_t)buffer, .length = count};
	const bool is_iov = param->datatype == ucp_dt_make_iov();
	const ucp_dt_iov_t *iov = is_iov ? buffer : &one;

	fprintf(fake.out, " %s%s, options %x, memory %s:", is_iov ? "several" : "one",
		!is_iov && param->datatype != ucp_dt_make_contig(1) ? " of an unknown type" : "",
		param->op_attr_mask, memory_name(param->memory_type));
	for (size_t i = 0; i < (is_iov ? count : 1); i++)
		fprintf(fake.out, " %zu %c", iov[i].length,
			iov[i].buffer != NULL && iov[i].length > 0 ? *(const char *)iov[i].buffer
								   : '-');
	fputc('\n', fake.out);
}

static struct fake_request *request_create(char kind, const ucp_request_param_t *param)
{
	for (unsigned int i = 0; i < FAKE_REQUESTS; i++) {
		struct fake_request *request = &fake.requests[i];

		if (request->in_use)
			continue;
		*request = (struct fake_request){
			.in_use = true, .kind = kind, .user_data = param->user_data};
		if (kind == 's')
			request->sent = param->cb.send;
		else if (kind == 'r')
			request->received = param->cb.recv_am;
		note("its request is %u", i);
		return request;
	}
	cr_assert_fail("there are too many requests");
	return NULL;
}

/* UCX ends it: its callback frees it. */
static void fake_end(struct fake_request *request, ucs_status_t status, size_t bytes)
{
	if (request->kind == 's')
		request->sent(request, status, request->user_data);
	else
		request->received(request, status, bytes, request->user_data);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned int id, const void *header,
				 size_t header_bytes, const void *buffer, size_t count,
				 const ucp_request_param_t *param)
{
	struct fake_request *request;

	fprintf(fake.out, "    ucp_am_send_nbx over %u: message %u, header %zu %c,",
		connection_of(ep), id, header_bytes, *(const char *)header);
	note_bodies(buffer, count, param);
	if (fails("ucp_am_send_nbx"))
		return UCS_STATUS_PTR(fake.status);
	if (fake.is_at_once)
		return NULL;
	request = request_create('s', param);
	if (fake.calls_before)
		fake_end(request, fake.end, 0);
	return request;
}

ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data, void *buffer, size_t count,
				      const ucp_request_param_t *param)
{
	struct fake_request *request;

	(void)worker;
	fprintf(fake.out, "    ucp_am_recv_data_nbx of arrival %d into",
		(int)((char *)data - fake_handles));
	note_bodies(buffer, count, param);
	*(char *)data = '\0';
	if (fails("ucp_am_recv_data_nbx"))
		return UCS_STATUS_PTR(fake.status);
	request = request_create('r', param);
	if (fake.calls_before)
		fake_end(request, fake.end, 77);
	return request;
}

void ucp_request_free(void *memory)
{
	struct fake_request *request = memory;

	cr_assert(request->in_use, "request %u is freed twice", request_number(memory));
	request->in_use = false;
	note("request %u is freed", request_number(memory));
}

ucs_status_t ucp_request_check_status(void *request)
{
	ucs_status_t status = fails("ucp_request_check_status") ? UCS_INPROGRESS : UCS_OK;

	cr_assert(((struct fake_request *)request)->in_use);
	note("request %u %s", request_number(request), status == UCS_OK ? "is over" : "goes on");
	return status;
}

void ucp_am_data_release(ucp_worker_h worker, void *data)
{
	(void)worker;
	cr_assert_eq(*(char *)data, '\1', "data is released twice");
	*(char *)data = '\0';
	note("ucp_am_data_release of arrival %d", (int)((char *)data - fake_handles));
}

void ucp_get_version(unsigned int *major, unsigned int *minor, unsigned int *release)
{
	*major = 1;
	*minor = 13;
	*release = 7;
}

ucs_status_t ucp_config_read(const char *prefix, const char *file, ucp_config_t **config)
{
	ucs_status_t status = fake_status("ucp_config_read");

	(void)prefix, (void)file;
	*config = NULL;
	note("ucp_config_read");
	return status;
}

void ucp_config_release(ucp_config_t *config)
{
	(void)config;
	note("ucp_config_release");
}

ucs_status_t ucp_init_version(unsigned int major, unsigned int minor, const ucp_params_t *params,
			      const ucp_config_t *config, ucp_context_h *context)
{
	ucs_status_t status = fake_status("ucp_init_version");

	(void)major, (void)minor, (void)config;
	note("ucp_init of fields %x, features %x", (unsigned int)params->field_mask,
	     (unsigned int)params->features);
	if (status == UCS_OK)
		*context = (ucp_context_h)&fake;
	return status;
}

void ucp_cleanup(ucp_context_h context)
{
	(void)context;
	note("ucp_cleanup");
}

ucs_status_t ucx_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       const char *interfaces, struct ucx_gate *gate,
			       ucp_worker_h *out_worker)
{
	ucs_status_t status = fake_status("ucx_worker_create");

	(void)context;
	note("ucx_worker_create on %s, fields %x, threads %d%s",
	     interfaces != NULL ? interfaces : "all", (unsigned int)params->field_mask,
	     params->thread_mode, gate != NULL ? ", behind the gate" : "");
	if (status == UCS_OK)
		*out_worker = (ucp_worker_h)&fake;
	return status;
}

void ucp_worker_destroy(ucp_worker_h worker)
{
	(void)worker;
	for (unsigned int i = 0; i < FAKE_REQUESTS; i++) { /* it ends what is being closed */
		if (fake.requests[i].in_use)
			note("request %u ends with the worker", i);
		fake.requests[i].in_use = fake.requests[i].in_use && fake.requests[i].kind != 'c';
	}
	note("ucp_worker_destroy");
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd)
{
	(void)worker;
	*fd = 77;
	return fake_status("ucp_worker_get_efd");
}

ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
	static char address[16] = "address of UCX";

	(void)worker;
	note("ucp_worker_query of fields %x", (unsigned int)attr->field_mask);
	attr->address = (ucp_address_t *)(void *)address;
	attr->address_length = sizeof(address);
	attr->max_am_header = fake.header_max;
	return fake_status("ucp_worker_query");
}

void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address)
{
	(void)worker, (void)address;
	note("ucp_worker_release_address");
}

ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
					    const ucp_am_handler_param_t *param)
{
	(void)worker;
	fake.handler = *param;
	note("the handler of message %u is set, fields %x", param->id,
	     (unsigned int)param->field_mask);
	return fake_status("ucp_worker_set_am_recv_handler");
}

unsigned int ucp_worker_progress(ucp_worker_h worker)
{
	(void)worker;
	return 3;
}

ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
	(void)worker;
	return fake_status("ucp_worker_arm");
}

ucs_status_t ucp_worker_signal(ucp_worker_h worker)
{
	(void)worker;
	note("ucp_worker_signal");
	return UCS_OK;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
	ucs_status_t status = fake_status("ucp_ep_create");

	(void)worker;
	note("ucp_ep_create %u to \"%.15s\", fields %x, errors %d", fake.connections,
	     (const char *)params->address, (unsigned int)params->field_mask, params->err_mode);
	if (status != UCS_OK)
		return status;
	cr_assert(fake.connections < FRAG_COUNT_OF(fake.error));
	fake.error[fake.connections] = params->err_handler;
	*ep = (ucp_ep_h)(void *)&fake.error[fake.connections++];
	return UCS_OK;
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
	note("ucp_ep_close_nbx of %u, options %x, flags %x", connection_of(ep), param->op_attr_mask,
	     param->flags);
	if (fails("ucp_ep_close_nbx"))
		return UCS_STATUS_PTR(fake.status);
	return fake.is_at_once ? NULL : request_create('c', param);
}

const char *ucs_status_string(ucs_status_t status)
{
	static char text[32];

	snprintf(text, sizeof(text), "status %d", status);
	return text;
}

void ucs_log_push_handler(ucs_log_func_t handler)
{
	fake.log = handler;
	note("UCX logs to frag");
}

void ucs_log_pop_handler(void); /* UCX's own declaration is no prototype */

void ucs_log_pop_handler(void)
{
	fake.log = NULL;
	note("UCX logs by itself");
}

/* The gate, and what looks at sockets and interfaces. */

int ucx_sockets_list(struct ucx_sockets *out)
{
	out->count = 5;
	return fails("ucx_sockets_list") ? fake.r : 0;
}

int ucx_sockets_check(const struct ucx_sockets *before, const char *interfaces,
		      struct frag_err *err)
{
	note("ucx_sockets_check with %zu before, for %s", before->count, interfaces);
	return fails("ucx_sockets_check") ? frag_err_set(err, fake.r, "it listens elsewhere") : 0;
}

void ucx_descriptors_note(struct ucx_descriptors *out)
{
	out->open[0] = 21;
	note("descriptors are noted");
}

void ucx_descriptors_close_on_exec(const struct ucx_descriptors *before)
{
	note("those of exec are closed%s", before->open[0] == 21 ? "" : ", but others");
}

bool ucx_descriptors_listen(const struct ucx_descriptors *before)
{
	return before->open[0] == 21 && fake.listens;
}

int ucx_descriptors_check(uint32_t wanted, struct frag_err *err)
{
	note("%u descriptors are wanted", wanted);
	return fails("ucx_descriptors_check") ? frag_err_set(err, fake.r, "no descriptors") : 0;
}

int ucx_gate_create(const uint8_t *data_key, struct ucx_gate **out_gate, struct frag_err *err)
{
	note("ucx_gate_create with key %u", data_key[0]);
	if (fails("ucx_gate_create"))
		return frag_err_set(err, fake.r, "there is no gate");
	*out_gate = (struct ucx_gate *)(void *)&fake.entrance;
	return 0;
}

void ucx_gate_destroy(struct ucx_gate *gate)
{
	note("ucx_gate_destroy of %s", gate != NULL ? "it" : "none");
}

const struct ucx_entrance *ucx_gate_entrance(const struct ucx_gate *gate)
{
	return gate != NULL ? &fake.entrance : NULL;
}

static void note_entrance(const char *what, const struct ucx_entrance *peer)
{
	char text[UCX_END_PORT_TEXT] = "nowhere";

	if (peer->count > 0)
		ucx_end_port_text(peer->doors[peer->count - 1].dial, text);
	note("%s %.4s, %u doors, the last one at %s", what, (const char *)peer->identity,
	     peer->count, text);
}

int ucx_gate_peer(struct ucx_gate *gate, const struct ucx_entrance *peer)
{
	note_entrance(gate != NULL ? "the gate knows" : "no gate knows", peer);
	return fails("ucx_gate_peer") ? -ENOMEM : 0;
}

static void dial_of(const struct ucx_entrance *peer, uint8_t *out_dial)
{
	if (peer->count > 0)
		memcpy(out_dial, peer->doors[0].dial, UCX_END_BYTES);
	else
		memset(out_dial, 0, UCX_END_BYTES);
}

int ucx_probe(const struct ucx_entrance *peer, uint8_t out_dial[UCX_END_BYTES])
{
	note_entrance("ucx_probe of", peer);
	dial_of(peer, out_dial);
	return fails("ucx_probe") ? fake.r : 0;
}

int ucx_gate_outcome(struct ucx_gate *gate, const struct ucx_entrance *peer,
		     uint8_t out_dial[UCX_END_BYTES])
{
	cr_assert_not_null(gate);
	dial_of(peer, out_dial);
	return fake.outcome;
}

/* lo, and one with 203.0.113.7. */
int getifaddrs(struct ifaddrs **out)
{
	static struct sockaddr_in at[2];
	static struct ifaddrs all[3];

	if (fails("getifaddrs"))
		return -1;
	for (int i = 0; i < 2; i++) {
		at[i] = (struct sockaddr_in){.sin_family = AF_INET};
		at[i].sin_addr.s_addr = htonl(i == 0 ? 0x7f000001u : 0xcb007107u);
		all[i + 1].ifa_addr = (struct sockaddr *)(void *)&at[i];
	}
	all[0].ifa_next = &all[1]; /* the first one has no address */
	all[1].ifa_next = &all[2];
	all[1].ifa_flags = IFF_LOOPBACK;
	*out = all;
	return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
	(void)all;
	note("freeifaddrs");
}

#endif
