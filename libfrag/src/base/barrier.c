// SPDX-License-Identifier: Apache-2.0
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/barrier.h>

static bool is_registered;

__attribute__((constructor)) static void barrier_register(void)
{
	is_registered =
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool fragi_barrier_everywhere(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	/* The second one is slow. */
	return (is_registered &&
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) ||
	       syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}
