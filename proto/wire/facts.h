/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_FACTS_H
#define FW_FACTS_H

#include <stdint.h>

/* What is only sent while somebody looks at the operators of a host. */

/* Somebody looks at the operators of a host for so long, unless this comes again; 0: no longer. */
struct fw_host_look {
	int64_t for_ns;
};

/* How much a process and its machine have used, by the clocks of the kernel; zeros: not read. */
struct fw_facts {
	uint64_t at_ns; /* CLOCK_MONOTONIC there */
	/* of all threads; starved: they could run and had no core; io: they waited for a disk */
	uint64_t cpu_ns, starved_ns, io_ns;
	uint64_t rss_bytes, major_faults;
	uint64_t cores; /* that the process may use */
	uint64_t machine_cores, machine_cpu_ns, memory_bytes, memory_used_bytes;
	uint64_t received_bytes, sent_bytes; /* by all networks but loopback */
	/* of NVIDIA; busy: of all of them on average */
	uint64_t gpus, gpu_busy_permille, gpu_memory_bytes, gpu_memory_used_bytes;
};

#endif
