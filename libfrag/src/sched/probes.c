// SPDX-License-Identifier: Apache-2.0
#include <sched/probes.h>

#if __has_include(<sys/sdt.h>)

/* The kernel counts in them, by their places in the file. */
#define SEMAPHORE(name)                                                                            \
	volatile unsigned short frag_##name##_semaphore __attribute__((section(".probes")));
FRAGI_PROBE_LIST(SEMAPHORE)

bool fragi_probes_are_wanted(void)
{
#define COUNT(name) +frag_##name##_semaphore
	return 0 FRAGI_PROBE_LIST(COUNT) > 0;
}

#else

bool fragi_probes_are_wanted(void)
{
	return false;
}

#endif
