// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include "module.h"

/*
 * A request is posted, and then over, or given up: requests to a dead peer may never complete. What
 * is given up is reported only when UCX has let go of its memory.
 */
#define MESSAGE_ID 0 /* of the active messages */

static void list_add(struct ucx_request **list, struct ucx_request *request)
{
	request->previous = NULL;
	request->next = *list;
	if (request->next != NULL)
		request->next->previous = request;
	*list = request;
}

static void list_remove(struct ucx_request **list, struct ucx_request *request)
{
	if (request->previous != NULL)
		request->previous->next = request->next;
	else
		*list = request->next;
	if (request->next != NULL)
		request->next->previous = request->previous;
}

static void abandon(struct ucx_request *list)
{
	for (; list != NULL; list = list->next) {
		if (list->handle != NULL)
			ucp_request_free(list->handle); /* and with it the callback */
		list->handle = NULL;
	}
}

/* Out. */

static struct fragi_send *send_of(struct ucx_send *room)
{
	return (struct fragi_send *)(void *)((char *)room - offsetof(struct fragi_send, room));
}

static void on_sent(void *handle, ucs_status_t status, void *arg)
{
	struct ucx_send *room = arg;
	struct ucx_endpoint *endpoint = room->endpoint;

	if (status != UCS_OK)
		ucx_failed(endpoint, status);
	ucp_request_free(handle);
	room->request.over = true;
	if (room->request.posting)
		return;
	list_remove(&endpoint->sends, &room->request);
	ucx_of(endpoint->base.transport)->config.events->sent(send_of(room), false);
}

/*
 * The kind of memory of all bodies, since UCX takes one for a message. Returns false when it cannot
 * be: they differ, or this UCX, which would read the address of a GPU as one of the host, has none
 * of that kind.
 */
static bool memory_type_of(const struct fragi_transport *transport, const struct fragi_body *bodies,
			   uint32_t count, ucs_memory_type_t *out)
{
	const bool on_gpu = count > 0 && bodies->device.type == FRAG_DEVICE_CUDA;

	for (uint32_t i = 1; i < count; i++)
		if ((bodies[i].device.type == FRAG_DEVICE_CUDA) != on_gpu)
			return false;
	*out = on_gpu ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
	return !on_gpu || (transport->devices & 1u << FRAG_DEVICE_CUDA) != 0;
}

bool ucx_send(struct fragi_endpoint *base, struct fragi_send *send, const struct fragi_body *bodies,
	      uint32_t count)
{
	struct ucx_endpoint *endpoint = (struct ucx_endpoint *)base;
	struct ucx_send *room = (struct ucx_send *)(void *)send->room;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE,
		.cb.send = on_sent,
		.user_data = room,
		.datatype = count <= 1 ? ucp_dt_make_contig(1) : ucp_dt_make_iov(),
	};
	const void *buffer = count == 1 ? bodies->data : NULL;
	size_t size = count == 1 ? bodies->bytes : 0;
	ucs_status_ptr_t handle;

	if (endpoint->ep == NULL || endpoint->failed)
		return false;
	if (!memory_type_of(base->transport, bodies, count, &param.memory_type)) {
		ucx_failed(endpoint, UCS_ERR_UNSUPPORTED);
		return false;
	}
	if (count > 1) {
		for (uint32_t i = 0; i < count; i++)
			room->iov[i] = (ucp_dt_iov_t){bodies[i].data, bodies[i].bytes};
		buffer = room->iov;
		size = count;
	}
	room->endpoint = endpoint;
	/*
	 * If the peer has just died, on_sent is called (and frees the handle) before this returns.
	 */
	room->request.posting = true;
	room->request.over = false;
	handle = ucp_am_send_nbx(endpoint->ep, MESSAGE_ID, send->header, send->header_bytes, buffer,
				 size, &param);
	room->request.posting = false;
	if (handle == NULL || room->request.over)
		return false;
	if (UCS_PTR_IS_ERR(handle)) {
		ucx_failed(endpoint, UCS_PTR_STATUS(handle));
		return false;
	}
	room->request.handle = handle;
	list_add(&endpoint->sends, &room->request);
	return true;
}

void ucx_sends_abandon(struct ucx_endpoint *endpoint)
{
	abandon(endpoint->sends);
}

void ucx_sends_end(struct ucx_endpoint *endpoint)
{
	struct ucx_request *request;

	while ((request = endpoint->sends) != NULL) {
		list_remove(&endpoint->sends, request);
		ucx_of(endpoint->base.transport)
			->config.events->sent(send_of((struct ucx_send *)request), true);
	}
}

/* In. */

static ucs_status_t on_message(void *arg, const void *header, size_t header_bytes, void *data,
			       size_t bytes, const ucp_am_recv_param_t *param)
{
	const struct fragi_transport_config *config = &((struct ucx_transport *)arg)->config;
	bool rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
	const struct fragi_arrival arrival = {
		.header = header,
		.header_bytes = header_bytes,
		.body_bytes = bytes,
		.data = rendezvous ? NULL : data,
		.handle = rendezvous ? data : NULL,
	};

	return config->events->arrived(config->arg, &arrival) == FRAGI_ARRIVAL_KEPT ? UCS_INPROGRESS
										    : UCS_OK;
}

int ucx_handler_set(struct ucx_transport *transport)
{
	const ucp_am_handler_param_t param = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
			      UCP_AM_HANDLER_PARAM_FIELD_ARG,
		.id = MESSAGE_ID,
		.cb = on_message,
		.arg = transport,
	};

	return ucp_worker_set_am_recv_handler(transport->worker, &param) == UCS_OK ? 0 : -EIO;
}

static void report(struct ucx_receive *room, const char *cause)
{
	struct fragi_receive *receive =
		(struct fragi_receive *)(void *)((char *)room -
						 offsetof(struct fragi_receive, room));

	fragi_free(room->iov);
	room->transport->config.events->received(receive, cause, room->bytes);
}

static void on_received(void *handle, ucs_status_t status, size_t bytes, void *arg)
{
	struct ucx_receive *room = arg;

	ucp_request_free(handle);
	room->status = status;
	room->bytes = bytes;
	room->request.over = true;
	if (room->request.posting)
		return;
	list_remove(&room->transport->receives, &room->request);
	report(room, status == UCS_OK ? NULL : ucs_status_string(status));
}

static int make_iov(struct ucx_receive *room, const struct fragi_body *bodies, uint32_t count)
{
	room->iov = fragi_calloc(count, sizeof(*room->iov));
	if (room->iov == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		room->iov[i] = (ucp_dt_iov_t){bodies[i].data, bodies[i].bytes};
	return 0;
}

int ucx_receive(struct fragi_transport *base, void *data, const struct fragi_body *bodies,
		uint32_t count, struct fragi_receive *receive)
{
	struct ucx_transport *transport = ucx_of(base);
	struct ucx_receive *room = (struct ucx_receive *)(void *)receive->room;
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
				UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
				UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
		.cb.recv_am = on_received,
		.user_data = room,
		.datatype = count == 1 ? ucp_dt_make_contig(1) : ucp_dt_make_iov(),
	};
	ucs_status_ptr_t handle;

	room->transport = transport;
	room->iov = NULL;
	room->bytes = 0;
	if (!memory_type_of(base, bodies, count, &param.memory_type)) {
		ucx_discard(base, data);
		report(room, "this UCX cannot fill memory of a GPU");
		return 0;
	}
	if (count > 1 && make_iov(room, bodies, count) < 0) {
		ucx_discard(base, data);
		return -ENOMEM;
	}
	/* If the peer has just died, on_received is called before this returns. */
	room->request.posting = true;
	room->request.over = false;
	handle = ucp_am_recv_data_nbx(transport->worker, data,
				      count == 1 ? bodies->data : (void *)room->iov,
				      count == 1 ? bodies->bytes : count, &param);
	room->request.posting = false;
	if (UCS_PTR_IS_ERR(handle)) {
		report(room, ucs_status_string(UCS_PTR_STATUS(handle)));
	} else if (room->request.over) {
		report(room, room->status == UCS_OK ? NULL : ucs_status_string(room->status));
	} else {
		room->request.handle = handle;
		list_add(&transport->receives, &room->request);
	}
	return 0;
}

void ucx_discard(struct fragi_transport *transport, void *handle)
{
	ucp_am_data_release(ucx_of(transport)->worker, handle);
}

void ucx_receives_abandon(struct ucx_transport *transport)
{
	abandon(transport->receives);
}

void ucx_receives_end(struct ucx_transport *transport)
{
	struct ucx_request *request;

	while ((request = transport->receives) != NULL) {
		list_remove(&transport->receives, request);
		report((struct ucx_receive *)request, "given up");
	}
}
