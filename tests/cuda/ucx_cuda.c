// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded, it stands between frag and UCX where the driver of tests is used (fake_cuda.h).
 *
 * By itself, it ends the process when an address of a GPU is given to UCX. With FAKE_UCX_CUDA=1, it
 * is a UCX with CUDA: it reports that kind of memory, and reads and writes it where the driver of
 * tests has it; then it ends the process when memory is not of the kind that frag says.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ucp/api/ucp.h>

#include "fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))

static bool has_cuda(void)
{
	const char *value = getenv("FAKE_UCX_CUDA");

	return value != NULL && strcmp(value, "1") == 0;
}

static void *real(const char *name)
{
	void *ucp = dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD);
	void *function = ucp != NULL ? dlsym(ucp, name) : NULL;

	if (function == NULL)
		abort();
	return function;
}

/* Where the CPU reaches memory of a GPU; NULL: it is none. */
static void *reach(const void *address)
{
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&fake_cuda_reach) function;

	if (cuda == NULL)
		return NULL;
	function = (__typeof__(function))dlsym(cuda, "fake_cuda_reach");
	return function != NULL ? function(address) : NULL;
}

static void refuse(const char *what)
{
	fprintf(stderr, "ucx_cuda: %s\n", what);
	abort();
}

/* Returns the buffer that UCX is given. */
static void *checked(const void *buffer, size_t count, const ucp_request_param_t *param)
{
	const bool says_gpu = param->memory_type == UCS_MEMORY_TYPE_CUDA;
	const ucp_dt_iov_t *iov = buffer;

	if ((param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) == 0)
		refuse("frag leaves it to UCX to find out the kind of memory");
	if (says_gpu && !has_cuda())
		refuse("memory of a GPU for a UCX without CUDA");
	if (param->datatype == ucp_dt_make_iov()) {
		for (size_t i = 0; i < count; i++)
			if (says_gpu || reach(iov[i].buffer) != NULL)
				refuse("memory of a GPU among several bodies");
		return (void *)(unsigned long)buffer;
	}
	if ((reach(buffer) != NULL) != says_gpu)
		refuse(says_gpu ? "memory of the host as that of a GPU"
				: "memory of a GPU as that of the host");
	return says_gpu ? reach(buffer) : (void *)(unsigned long)buffer;
}

EXPORT ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
	const __typeof__(&ucp_context_query) query = (__typeof__(query))real("ucp_context_query");
	ucs_status_t status = query(context, attr);

	if (status == UCS_OK && has_cuda())
		attr->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
	return status;
}

EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
					size_t header_length, const void *buffer, size_t count,
					const ucp_request_param_t *param)
{
	static __typeof__(&ucp_am_send_nbx) send;
	ucp_request_param_t host = *param;

	if (send == NULL)
		send = (__typeof__(send))real("ucp_am_send_nbx");
	host.memory_type = UCS_MEMORY_TYPE_HOST;
	return send(ep, id, header, header_length, checked(buffer, count, param), count, &host);
}

EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
					     size_t count, const ucp_request_param_t *param)
{
	static __typeof__(&ucp_am_recv_data_nbx) receive;
	ucp_request_param_t host = *param;

	if (receive == NULL)
		receive = (__typeof__(receive))real("ucp_am_recv_data_nbx");
	host.memory_type = UCS_MEMORY_TYPE_HOST;
	return receive(worker, data_desc, checked(buffer, count, param), count, &host);
}
