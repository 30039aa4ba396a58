/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_PROBES_H
#define FRAGI_SCHED_PROBES_H

#include <stdbool.h>

/*
 * The probes of provider `frag` (USDT), for bpftrace, perf and SystemTap (docs/TRACE.md). They are
 * in what goes around the ticks of operators that are traced, so while nobody traces an operator
 * executes no instruction for them. Whoever attaches one makes its semaphore count; the control
 * thread sees that, and the operators take part as in a trace (run/trace.c).
 */
#define FRAGI_PROBE_LIST(X) X(tick__begin) X(tick__end) X(emit) X(receive) X(drop)

#if __has_include(<sys/sdt.h>)
#define _SDT_HAS_SEMAPHORES 1
#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>
#define FRAGI_SEMAPHORE(name) extern volatile unsigned short frag_##name##_semaphore;
FRAGI_PROBE_LIST(FRAGI_SEMAPHORE)
#undef FRAGI_SEMAPHORE
#define FRAGI_PROBE(name, ...) STAP_PROBEV(frag, name, __VA_ARGS__)
#else /* built without systemtap-sdt-dev */
#define FRAGI_PROBE(name, ...) fragi_no_probe(__VA_ARGS__)
static inline void fragi_no_probe(const char *name, ...)
{
	(void)name;
}
#endif

/* Whether somebody has attached any. */
bool fragi_probes_are_wanted(void);

#endif
