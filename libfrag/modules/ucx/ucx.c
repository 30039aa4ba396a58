// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/failure.h>

#include "module.h"

static int create_worker(struct ucx_transport *transport, struct frag_err *err)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP,
	};
	ucp_worker_params_t worker_params = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SERIALIZED,
	};
	const char *interfaces = getenv("UCX_NET_DEVICES");
	ucp_config_t *config;
	ucs_status_t status;

	status = ucp_config_read(NULL, NULL, &config);
	if (status != UCS_OK)
		return frag_err_set(
			err, -EINVAL,
			"UCX does not accept its settings: %s; check the UCX_ variables",
			ucx_reason(status));
	status = ucp_init(&params, config, &transport->context);
	ucp_config_release(config);
	if (status != UCS_OK)
		return frag_err_set(
			err, -ENODEV,
			"UCX finds no device to use (%s): UCX_NET_DEVICES is %s and UCX_TLS is %s; check the interface's name and that it is up",
			ucx_reason(status), interfaces != NULL ? interfaces : "not set",
			getenv("UCX_TLS") != NULL ? getenv("UCX_TLS") : "not set");
	status = ucx_worker_create(transport->context, &worker_params, interfaces, transport->gate,
				   &transport->worker);
	if (status == UCS_ERR_BUSY)
		return fragi_err_fail(
			err, FRAGI_FAILURE_DATA_PORT_IN_USE, NULL, -EADDRINUSE,
			"UCX cannot listen on %s: another program uses each port of the data port range %s; give --worker-address another port, or end that program",
			interfaces != NULL ? interfaces : "its devices",
			getenv("UCX_TCP_PORT_RANGE") != NULL ? getenv("UCX_TCP_PORT_RANGE")
							     : "(UCX_TCP_PORT_RANGE is not set)");
	if (status != UCS_OK)
		return frag_err_set(
			err, -EADDRNOTAVAIL,
			"UCX cannot open %s (%s): the interface is down, or no port of the data port range (UCX_TCP_PORT_RANGE is %s) is free",
			interfaces != NULL ? interfaces : "its devices", ucx_reason(status),
			getenv("UCX_TCP_PORT_RANGE") != NULL ? getenv("UCX_TCP_PORT_RANGE")
							     : "not set");
	status = ucp_worker_get_efd(transport->worker, &transport->fd);
	if (status != UCS_OK)
		return frag_err_set(
			err, -ENOTSUP,
			"UCX cannot wait for events (%s): UCX_TLS is %s, and one of these transports has no wake-up; use tcp",
			ucs_status_string(status),
			getenv("UCX_TLS") != NULL ? getenv("UCX_TLS") : "not set");
	return 0;
}

static int take_address(struct ucx_transport *transport, struct frag_err *err)
{
	ucp_worker_attr_t attr = {
		.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER,
	};
	ucs_status_t status = ucp_worker_query(transport->worker, &attr);
	int r;

	if (status != UCS_OK)
		return frag_err_set(err, -EIO, "UCX does not tell its worker's address (%s)",
				    ucs_status_string(status));
	if (attr.max_am_header < FRAGI_HEADER_MAX)
		r = frag_err_set(
			err, -ENOTSUP,
			"UCX takes %zu bytes of header where frag needs %u; leave the UCX_TCP_*_SEG_SIZE variables as they are",
			attr.max_am_header, (unsigned int)FRAGI_HEADER_MAX);
	else
		r = ucx_address_make(transport, attr.address, attr.address_length);
	ucp_worker_release_address(transport->worker, attr.address);
	return r;
}

static void release(struct ucx_transport *transport)
{
	if (transport->worker != NULL)
		ucp_worker_destroy(transport->worker);
	if (transport->context != NULL)
		ucp_cleanup(transport->context);
	ucx_gate_destroy(transport->gate);
	ucx_log_end(transport);
	fragi_free(transport->address);
	fragi_free(transport);
}

static void describe(struct ucx_transport *transport)
{
	const char *interfaces = getenv("UCX_NET_DEVICES"), *transports = getenv("UCX_TLS");

	snprintf(transport->base.detail, sizeof(transport->base.detail), "%s %s",
		 transports != NULL ? transports : "all", interfaces != NULL ? interfaces : "all");
}

/* What a user names in UCX_NET_DEVICES is wanted; "all" and nothing mean everywhere. */
static int check_sockets(const struct ucx_sockets *before, struct frag_err *err)
{
	const char *interfaces = getenv("UCX_NET_DEVICES");

	if (interfaces == NULL || *interfaces == '\0' || strcmp(interfaces, "all") == 0)
		return 0;
	return ucx_sockets_check(before, interfaces, err);
}

/* It must not happen; a UCX that listens in another way would have no gate. */
static int check_gate(const struct ucx_transport *transport, const struct ucx_descriptors *before,
		      struct frag_err *err)
{
	if (ucx_gate_entrance(transport->gate)->count > 0 || !ucx_descriptors_listen(before))
		return 0;
	return frag_err_set(
		err, -ENOTSUP,
		"UCX %s listens where frag cannot keep strangers out; use another version of UCX",
		transport->base.version);
}

static int open_worker(struct ucx_transport *transport, struct frag_err *err)
{
	struct ucx_descriptors open;
	struct ucx_sockets before;
	int r = ucx_descriptors_check(UCX_DESCRIPTORS_TO_OPEN, err);

	if (r < 0)
		return r;
	r = ucx_sockets_list(&before);
	if (r < 0)
		return frag_err_set(err, r, "cannot list this process's sockets: %s",
				    frag_strerror(r));
	r = ucx_gate_create(transport->config.data_key, &transport->gate, err);
	if (r < 0)
		return r;
	ucx_descriptors_note(&open);
	r = create_worker(transport, err);
	ucx_descriptors_close_on_exec(&open);
	if (r == 0)
		r = check_gate(transport, &open, err);
	if (r < 0)
		return r;
	r = check_sockets(&before, err);
	if (r < 0)
		return r;
	r = ucx_handler_set(transport);
	if (r < 0)
		return frag_err_set(err, r, "UCX refuses frag's message handlers");
	r = take_address(transport, err);
	if (r < 0)
		return frag_err_set(err, r, "cannot make this host's data address (%s)",
				    frag_strerror(r));
	return 0;
}

__attribute__((visibility("default"))) extern const struct fragi_transport_ops fragi_transport_v1;

static int ucx_create(const struct fragi_transport_config *config,
		      struct fragi_transport **out_transport, struct frag_err *err)
{
	struct ucx_transport *transport;
	unsigned int major, minor, release_number;
	int r;

	if (config->struct_size != sizeof(*config) || config->events == NULL)
		return frag_err_set(err, -EINVAL,
				    "the ucx module and libfrag are of two builds; reinstall frag");
	transport = fragi_calloc(1, sizeof(*transport));
	if (transport == NULL)
		return frag_err_set(err, -ENOMEM, "there is no memory left for the transport");
	transport->config = *config;
	ucx_log_begin(transport);
	ucp_get_version(&major, &minor, &release_number);
	snprintf(transport->base.version, sizeof(transport->base.version), "%u.%u.%u", major, minor,
		 release_number);
	r = open_worker(transport, err);
	if (r < 0) {
		release(transport);
		return r;
	}
	transport->base.ops = &fragi_transport_v1;
	transport->base.header_max = FRAGI_HEADER_MAX;
	transport->base.send_room = sizeof(struct ucx_send);
	transport->base.receive_room = sizeof(struct ucx_receive);
	transport->base.devices = 1u << FRAG_DEVICE_CPU | 1u << FRAG_DEVICE_CUDA_HOST;
	describe(transport);
	*out_transport = &transport->base;
	return 0;
}

static const void *ucx_address(const struct fragi_transport *base, size_t *out_size)
{
	*out_size = ucx_of(base)->address_size;
	return ucx_of(base)->address;
}

static uint32_t ucx_progress(struct fragi_transport *base, int64_t now_ns)
{
	(void)now_ns;
	return ucp_worker_progress(ucx_of(base)->worker);
}

static int ucx_arm(struct fragi_transport *base)
{
	const struct fragi_transport_config *config = &ucx_of(base)->config;
	ucs_status_t status = ucp_worker_arm(ucx_of(base)->worker);

	if (status == UCS_OK)
		return 0;
	if (status != UCS_ERR_BUSY)
		config->events->fault(config->arg, FRAGI_FAILURE_HOST_FAILED,
				      "UCX cannot wait for events any more");
	return -EBUSY;
}

static int ucx_fd(const struct fragi_transport *base)
{
	return ucx_of(base)->fd;
}

static void ucx_wake(struct fragi_transport *base)
{
	ucp_worker_signal(ucx_of(base)->worker);
}

static void ucx_destroy(struct fragi_transport *base)
{
	struct ucx_transport *transport = ucx_of(base);
	struct ucx_endpoint *endpoint, *next;

	if (base == NULL)
		return;
	/* With requests left, as within a rendezvous, UCX aborts when the worker goes. */
	for (endpoint = transport->endpoints; endpoint != NULL; endpoint = endpoint->next) {
		ucx_forget_close(endpoint);
		ucx_sends_abandon(endpoint);
	}
	ucx_receives_abandon(transport);
	for (endpoint = transport->endpoints; endpoint != NULL; endpoint = endpoint->next)
		ucx_force_close(endpoint);
	ucp_worker_destroy(transport->worker);
	transport->worker = NULL;
	ucx_receives_end(transport);
	for (endpoint = transport->endpoints; endpoint != NULL; endpoint = next) {
		next = endpoint->next;
		ucx_sends_end(endpoint);
		fragi_free(endpoint);
	}
	release(transport);
}

const struct fragi_transport_ops fragi_transport_v1 = {
	.struct_size = sizeof(struct fragi_transport_ops),
	.name = "ucx",
	.title = "UCX",
	.create = ucx_create,
	.destroy = ucx_destroy,
	.address = ucx_address,
	.connect = ucx_connect,
	.close = ucx_close,
	.reach = ucx_reach,
	.stop = ucx_stop,
	.free = ucx_free,
	.send = ucx_send,
	.receive = ucx_receive,
	.discard = ucx_discard,
	.progress = ucx_progress,
	.arm = ucx_arm,
	.fd = ucx_fd,
	.wake = ucx_wake,
};
