// SPDX-License-Identifier: Apache-2.0
#include "fake_ucp.h"

#include <ucs/debug/log_def.h>

#include <modules/ucx/module.h>

/* of data that a rendezvous would fetch */
struct handle {
	size_t size;
	uint8_t bytes[];
};

struct request {
	struct request *next;
	ucp_send_nbx_callback_t sent;
	ucp_am_recv_data_nbx_callback_t received;
	void *user_data;
	ucs_status_t status;
	bool given_up, done, never, closes;
	struct handle *handle;
	void *buffer;
	size_t count;
	/* ours: the caller may free its own after the call */
	ucp_dt_iov_t iov[FRAG_MESSAGE_TENSORS_MAX];
	bool is_iov;
};

static struct {
	ucp_am_handler_param_t handler;
	ucp_err_handler_t error;
	struct request *requests, *last_close;
	int send_mode;
	size_t handles;
	uint64_t sent;
} fake;

static uint8_t worker_address[16] = "fake";

void fake_ucp_reset(void)
{
	memset(&fake, 0, sizeof(fake));
}

void fake_ucp_send_mode(int mode)
{
	fake.send_mode = mode;
}

uint64_t fake_ucp_sent(void)
{
	return fake.sent;
}

size_t fake_ucp_alive(void)
{
	size_t count = fake.handles;

	for (const struct request *r = fake.requests; r != NULL; r = r->next)
		count++;
	return count;
}

static void handle_free(struct handle *handle)
{
	fake.handles--;
	free(handle);
}

void fake_ucp_deliver(const void *header, size_t header_size, const void *data, size_t size,
		      bool rendezvous)
{
	ucp_am_recv_param_t param = {.recv_attr = rendezvous ? UCP_AM_RECV_ATTR_FLAG_RNDV : 0};
	const ucp_am_handler_param_t *handler = &fake.handler;
	uint8_t *header_copy = fuzz_copy(header, header_size), *data_copy = NULL;
	struct handle *handle = NULL;
	ucs_status_t status;

	if (rendezvous) {
		handle = malloc(sizeof(*handle) + size);
		fuzz_check(handle != NULL);
		handle->size = size;
		if (size > 0)
			memcpy(handle->bytes, data, size);
		fake.handles++;
	} else {
		data_copy = fuzz_copy(data, size);
	}
	status = handler->cb(handler->arg, header_copy, header_size,
			     rendezvous ? (void *)handle : (void *)data_copy, size, &param);
	fuzz_check(status == UCS_OK || (rendezvous && status == UCS_INPROGRESS));
	if (rendezvous && status == UCS_OK)
		handle_free(handle);
	free(header_copy);
	free(data_copy);
}

void fake_ucp_break(void)
{
	if (fake.error.cb != NULL)
		fake.error.cb(fake.error.arg, (ucp_ep_h)&fake, UCS_ERR_CONNECTION_RESET);
}

static struct request *request_create(const ucp_request_param_t *param)
{
	struct request *request = calloc(1, sizeof(*request));
	struct request **at = &fake.requests;

	fuzz_check(request != NULL);
	while (*at != NULL)
		at = &(*at)->next;
	*at = request;
	request->user_data = param->user_data;
	return request;
}

/* Every byte that UCX would send. */
static void touch(const void *bytes, size_t size)
{
	static volatile uint8_t sum;
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		sum = (uint8_t)(sum + at[i]);
}

ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
				 const void *buffer, size_t count, const ucp_request_param_t *param)
{
	const ucp_dt_iov_t *iov = buffer;
	struct request *request;

	fuzz_check(id == 0 && header_length <= FRAGI_HEADER_MAX);
	touch(header, header_length);
	if (param->datatype == ucp_dt_make_iov())
		for (size_t i = 0; i < count; i++)
			touch(iov[i].buffer, iov[i].length);
	else
		touch(buffer, count);
	fake.sent++;
	if (fake.send_mode == 0)
		return NULL;
	if (fake.send_mode == 3)
		return UCS_STATUS_PTR(UCS_ERR_CONNECTION_RESET);
	request = request_create(param);
	request->sent = param->cb.send;
	request->never = fake.send_mode == 2;
	return request;
}

ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
				      size_t count, const ucp_request_param_t *param)
{
	struct request *request = request_create(param);

	request->received = param->cb.recv_am;
	request->handle = data_desc;
	request->buffer = buffer;
	request->count = count;
	request->is_iov = param->datatype == ucp_dt_make_iov();
	fuzz_check(!request->is_iov || count <= FRAG_MESSAGE_TENSORS_MAX);
	if (request->is_iov && count > 0)
		memcpy(request->iov, buffer, count * sizeof(request->iov[0]));
	return request;
}

/* What the peer sends lands in the buffers; what does not fit is an error, as UCX has it. */
static void land(struct request *request)
{
	const uint8_t *from = request->handle->bytes;
	size_t left = request->handle->size, n;

	if (request->is_iov) {
		for (size_t i = 0; i < request->count && left > 0; i++) {
			n = left < request->iov[i].length ? left : request->iov[i].length;
			memcpy(request->iov[i].buffer, from, n);
			from += n;
			left -= n;
		}
	} else {
		n = left < request->count ? left : request->count;
		if (n > 0)
			memcpy(request->buffer, from, n);
		left -= n;
	}
	request->status = left > 0 ? UCS_ERR_MESSAGE_TRUNCATED : UCS_OK;
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
	struct request *request, *next;
	unsigned count = 0;

	for (request = fake.requests; request != NULL && count < 1000; request = next, count++) {
		size_t size = request->handle != NULL ? request->handle->size : 0;

		next = request->next;
		if (request->done || request->never || request->given_up)
			continue;
		request->done = true;
		if (request->closes)
			continue;
		if (request->received != NULL) {
			fuzz_check(request->handle != NULL);
			land(request);
			handle_free(request->handle);
			request->handle = NULL;
			request->received(request, request->status, size, request->user_data);
		} else {
			request->sent(request, UCS_OK, request->user_data);
		}
		next = fake.requests; /* anything may have happened */
	}
	return count;
}

void ucp_request_free(void *memory)
{
	struct request *request = memory, **at = &fake.requests;

	while (*at != NULL && *at != request)
		at = &(*at)->next;
	fuzz_check(*at == request); /* not given back twice */
	*at = request->next;
	if (fake.last_close == request)
		fake.last_close = NULL;
	if (request->handle != NULL)
		handle_free(request->handle);
	free(request);
}

ucs_status_t ucp_request_check_status(void *request)
{
	const struct request *asked = request;

	return asked->closes && !asked->done ? UCS_INPROGRESS : UCS_OK;
}

bool fake_ucp_closes(void)
{
	return fake.last_close != NULL && !fake.last_close->done;
}

void ucp_am_data_release(ucp_worker_h worker, void *data)
{
	handle_free(data);
}

void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release)
{
	*major = 1;
	*minor = 13;
	*release = 1;
}

ucs_status_t ucp_config_read(const char *prefix, const char *file, ucp_config_t **config)
{
	(void)prefix, (void)file;
	*config = NULL;
	return UCS_OK;
}

void ucp_config_release(ucp_config_t *config)
{
}

ucs_status_t ucp_init_version(unsigned major, unsigned minor, const ucp_params_t *params,
			      const ucp_config_t *config, ucp_context_h *context)
{
	(void)major, (void)minor, (void)params, (void)config;
	*context = (ucp_context_h)&fake;
	return UCS_OK;
}

void ucp_cleanup(ucp_context_h context)
{
}

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       ucp_worker_h *worker)
{
	(void)context, (void)params;
	*worker = (ucp_worker_h)&fake;
	return UCS_OK;
}

/* It ends what is still being closed. */
void ucp_worker_destroy(ucp_worker_h worker)
{
	struct request *next;

	for (struct request *request = fake.requests; request != NULL; request = next) {
		next = request->next;
		if (request->closes)
			ucp_request_free(request);
	}
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd)
{
	*fd = -1;
	return UCS_OK;
}

ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
	attr->address = (ucp_address_t *)worker_address;
	attr->address_length = sizeof(worker_address);
	attr->max_am_header = 8100;
	return UCS_OK;
}

void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address)
{
	(void)worker, (void)address;
}

ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
					    const ucp_am_handler_param_t *param)
{
	fuzz_check(param->id == 0);
	fake.handler = *param;
	return UCS_OK;
}

ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
	return UCS_ERR_BUSY;
}

ucs_status_t ucp_worker_signal(ucp_worker_h worker)
{
	return UCS_OK;
}

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
	touch(params->address, sizeof(worker_address));
	fake.error = params->err_handler;
	*ep = (ucp_ep_h)&fake;
	return UCS_OK;
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
	struct request *request;

	fake.last_close = NULL;
	if (fake.send_mode == 0)
		return NULL;
	if (fake.send_mode == 3)
		return UCS_STATUS_PTR(UCS_ERR_CONNECTION_RESET);
	request = fake.last_close = request_create(param);
	request->closes = true;
	request->never = fake.send_mode == 2;
	return request;
}

const char *ucs_status_string(ucs_status_t status)
{
	return status == UCS_OK ? "ok" : "an error";
}

/* It prints nothing. */
void ucs_log_push_handler(ucs_log_func_t handler)
{
}

void ucs_log_pop_handler(void); /* UCX's own declaration is no prototype */

void ucs_log_pop_handler(void)
{
}

/* Which ports and sockets a process has is no matter here. */
ucs_status_t ucx_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
			       const char *interfaces, struct ucx_gate *gate,
			       ucp_worker_h *out_worker)
{
	return ucp_worker_create(context, params, out_worker);
}

int ucx_sockets_list(struct ucx_sockets *out)
{
	out->count = 0;
	return 0;
}

int ucx_sockets_check(const struct ucx_sockets *before, const char *interfaces,
		      struct frag_err *err)
{
	(void)before, (void)interfaces, (void)err;
	return 0;
}

void ucx_descriptors_note(struct ucx_descriptors *out)
{
}

void ucx_descriptors_close_on_exec(const struct ucx_descriptors *before)
{
}

bool ucx_descriptors_listen(const struct ucx_descriptors *before)
{
	return false;
}

int ucx_gate_create(const uint8_t *data_key, struct ucx_gate **out_gate, struct frag_err *err)
{
	(void)data_key, (void)out_gate, (void)err;
	return 0;
}

void ucx_gate_destroy(struct ucx_gate *gate)
{
}

const struct ucx_entrance *ucx_gate_entrance(const struct ucx_gate *gate)
{
	static const struct ucx_entrance two = {.count = 2, .identity = "identity"};

	return &two;
}

int ucx_probe(const struct ucx_entrance *peer, uint8_t out_dial[UCX_END_BYTES])
{
	(void)peer, (void)out_dial;
	return 0;
}

int ucx_gate_outcome(struct ucx_gate *gate, const struct ucx_entrance *peer,
		     uint8_t out_dial[UCX_END_BYTES])
{
	(void)gate, (void)peer, (void)out_dial;
	return 0;
}

int ucx_gate_peer(struct ucx_gate *gate, const struct ucx_entrance *peer)
{
	(void)gate, (void)peer;
	return 0;
}
