/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_GPU_LOAD_H
#define HOST_GPU_LOAD_H

/*
 * Prints the load of the GPUs of this machine every second, until nobody reads it: how many answer,
 * how busy they are on average in 1/1000, the bytes of their memory, and those in use. By NVIDIA's
 * management library (libnvidia-ml). Returns an exit code: it is not there, or finds no GPU.
 */
int host_gpu_load_print(void);

#endif
