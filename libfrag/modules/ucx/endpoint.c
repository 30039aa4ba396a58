// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>

#include <base/failure.h>

#include "module.h"

/*
 * An endpoint that UCX has reported broken, or whose peer said goodbye, is force-closed, and when
 * that is done its sends are given up: UCX has let go of their bodies. One whose peer may be alive
 * stays open until the worker goes, because UCX does not survive a forced close under what a living
 * peer goes on sending; its requests end by themselves, or with the worker.
 */

void ucx_failed(struct ucx_endpoint *endpoint, ucs_status_t status)
{
	const struct fragi_transport_config *config = &ucx_of(endpoint->base.transport)->config;

	if (endpoint->failed)
		return;
	endpoint->failed = true;
	if (endpoint->base.owner != NULL)
		config->events->failed(endpoint->base.owner, ucs_status_string(status));
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
	(void)ep;
	ucx_failed(arg, status);
}

/* UCX looks for a route to the address; what else it refuses is about the two UCX. */
static enum fragi_failure connect_failure(ucs_status_t status)
{
	switch (status) {
	case UCS_ERR_NO_MEMORY:
		return FRAGI_FAILURE_OUT_OF_MEMORY;
	case UCS_ERR_UNREACHABLE:
	case UCS_ERR_REJECTED:
	case UCS_ERR_NOT_CONNECTED:
	case UCS_ERR_CONNECTION_RESET:
	case UCS_ERR_TIMED_OUT:
	case UCS_ERR_ENDPOINT_TIMEOUT:
	case UCS_ERR_IO_ERROR:
		return FRAGI_FAILURE_EDGE_UNREACHABLE;
	default:
		return FRAGI_FAILURE_EDGE_REFUSED;
	}
}

/* " at 10.0.0.1:11022: refused" */
static void describe(const uint8_t *dial, int outcome, bool tells, char *out, size_t size)
{
	const char *reason = frag_strerror(outcome);
	char at[UCX_END_PORT_TEXT];

	if (outcome == 0)
		reason =
			"connected, but frag does not answer there (it hangs, or another program has that port)";
	else if (outcome == -EALREADY)
		reason = "UCX has not tried";
	else if (outcome == -EINPROGRESS || outcome == -ETIMEDOUT)
		reason = "dropped (no answer)";
	else if (outcome == -ECONNREFUSED)
		reason = "refused (nothing listens there, or a firewall is between)";
	ucx_end_port_text(dial, at);
	snprintf(out, size, tells ? " at %s: %s" : " at %s", at, reason);
}

/* Before UCX tries it, which may abort where it is refused. */
static int try_peer(const struct ucx_endpoint *endpoint, struct frag_err *err)
{
	uint8_t dial[UCX_END_BYTES];
	char way[256];
	int r = ucx_probe(&endpoint->entrance, dial);

	if (r == 0)
		return 0;
	describe(dial, r, true, way, sizeof(way));
	return fragi_err_fail(
		err, FRAGI_FAILURE_EDGE_UNREACHABLE, NULL, -EHOSTUNREACH,
		"%s; open TCP to that port, or start the worker there with another --worker-address (behind NAT: --announce-address)",
		way);
}

int ucx_connect(struct fragi_transport *base, uint32_t host, const void *address, size_t size,
		void *owner, struct fragi_endpoint **out_endpoint, struct frag_err *err)
{
	struct ucx_transport *transport = ucx_of(base);
	struct ucx_endpoint *endpoint = fragi_calloc(1, sizeof(*endpoint));
	const void *worker_address;
	ucp_ep_params_t params = {
		.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
			      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
		.err_mode = UCP_ERR_HANDLING_MODE_PEER,
		.err_handler = {.cb = on_error, .arg = endpoint},
	};
	struct ucx_descriptors open;
	ucs_status_t status;
	int r;

	if (endpoint == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the peer host %u",
				    host);
	endpoint->base.transport = base;
	endpoint->base.owner = owner;
	r = ucx_address_check(transport, address, size, &worker_address, &endpoint->base,
			      &endpoint->entrance, err);
	if (r == 0 && ucx_gate_peer(transport->gate, &endpoint->entrance) < 0)
		r = frag_err_set(err, -ENOMEM, "there is no memory left for the peer host %u",
				 host);
	if (r == 0)
		r = ucx_descriptors_check(UCX_DESCRIPTORS_TO_CONNECT, err);
	if (r == 0)
		r = try_peer(endpoint, err);
	if (r < 0)
		goto err_free;
	params.address = worker_address;
	ucx_descriptors_note(&open);
	status = ucp_ep_create(transport->worker, &params, &endpoint->ep);
	ucx_descriptors_close_on_exec(&open);
	if (status != UCS_OK) {
		r = fragi_err_fail(
			err, connect_failure(status), NULL, -EHOSTUNREACH,
			"UCX cannot connect (%s); UCX here is %s, there %s; check that the two nodes reach each other's --worker-address and that UCX_TLS allows it",
			ucs_status_string(status), base->version, endpoint->base.version);
		goto err_free;
	}
	endpoint->next = transport->endpoints;
	transport->endpoints = endpoint;
	*out_endpoint = &endpoint->base;
	return 0;

err_free:
	fragi_free(endpoint);
	return r;
}

bool ucx_reach(const struct fragi_endpoint *base, bool tells, char *out, size_t size)
{
	const struct ucx_endpoint *endpoint = (const struct ucx_endpoint *)base;
	uint8_t dial[UCX_END_BYTES];
	int outcome = ucx_gate_outcome(ucx_of(base->transport)->gate, &endpoint->entrance, dial);

	if (endpoint->entrance.count > 0)
		describe(dial, outcome, tells, out, size);
	return outcome == 0;
}

void ucx_force_close(struct ucx_endpoint *endpoint)
{
	ucp_request_param_t param = {
		.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
		.flags = UCP_EP_CLOSE_FLAG_FORCE,
	};
	ucs_status_ptr_t request;

	if (endpoint->ep == NULL)
		return;
	request = ucp_ep_close_nbx(endpoint->ep, &param);
	endpoint->ep = NULL;
	endpoint->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
	endpoint->close_until_ns = fragi_now_ns() + UCX_CLOSE_NS;
}

void ucx_close(struct fragi_endpoint *base, bool silent)
{
	if (silent)
		ucx_force_close((struct ucx_endpoint *)base);
}

void ucx_forget_close(struct ucx_endpoint *endpoint)
{
	if (endpoint->close_request != NULL)
		ucp_request_free(endpoint->close_request);
	endpoint->close_request = NULL;
}

bool ucx_stop(struct fragi_endpoint *base, int64_t now_ns)
{
	struct ucx_endpoint *endpoint = (struct ucx_endpoint *)base;

	if (endpoint->ep != NULL)
		return true; /* it stays open */
	if (endpoint->close_request != NULL &&
	    ucp_request_check_status(endpoint->close_request) == UCS_INPROGRESS &&
	    now_ns < endpoint->close_until_ns)
		return false;
	ucx_forget_close(endpoint);
	ucx_sends_abandon(endpoint);
	ucx_sends_end(endpoint);
	return true;
}

/* What UCX still knows stays with the transport. */
void ucx_free(struct fragi_endpoint *base)
{
	struct ucx_endpoint *endpoint = (struct ucx_endpoint *)base,
			    **at = &ucx_of(base->transport)->endpoints;

	base->owner = NULL;
	if (endpoint->ep != NULL || endpoint->close_request != NULL || endpoint->sends != NULL)
		return;
	while (*at != endpoint)
		at = &(*at)->next;
	*at = endpoint->next;
	fragi_free(endpoint);
}
