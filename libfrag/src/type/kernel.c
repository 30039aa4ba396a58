// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <type/cuda.h>

int frag_kernel_create(struct frag_device device, const void *image, const char *name,
		       struct frag_kernel **out, struct frag_err *err)
{
	const struct fragi_cuda_ops *cuda = fragi_cuda_opened();

	if (cuda == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)device.id);
	return cuda->kernel_create(device.id, image, name, out, err);
}

int frag_kernel_launch(const struct frag_kernel *kernel, const struct frag_launch *how,
		       void **arguments, struct frag_err *err)
{
	if (how->struct_size == 0)
		return frag_err_set(err, -EINVAL,
				    "struct frag_launch has no struct_size; use FRAG_LAUNCH_INIT");
	return fragi_cuda_opened()->kernel_launch(kernel, how, arguments, err);
}

int frag_kernel_wait(const struct frag_kernel *kernel, void *stream, struct frag_err *err)
{
	return fragi_cuda_opened()->kernel_wait(kernel, stream, err);
}

void frag_kernel_destroy(struct frag_kernel *kernel)
{
	if (kernel != NULL)
		fragi_cuda_opened()->kernel_destroy(kernel);
}
