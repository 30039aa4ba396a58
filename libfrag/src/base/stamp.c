// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <base/stamp.h>

bool fragi_stamp_is_tsc;
uint64_t fragi_stamp_ns_per_tick_q56 = (uint64_t)1 << 56;
uint64_t fragi_stamp_ticks_per_ns_q32 = (uint64_t)1 << 32;

static void use_counter(uint64_t ns_per_tick_q56)
{
	fragi_stamp_ns_per_tick_q56 = ns_per_tick_q56;
	fragi_stamp_ticks_per_ns_q32 = (uint64_t)(((unsigned __int128)1 << 88) / ns_per_tick_q56);
	fragi_stamp_is_tsc = true;
}

static uint64_t stamp_of_machine(void)
{
	return (uint64_t)fragi_now_ns();
}

static uint64_t (*now)(void) = stamp_of_machine;

uint64_t fragi_stamp_without_counter(void)
{
	return now();
}

/* How the machine's own stamps are converted, while others are taken. */
static struct {
	bool is_kept, is_tsc;
	uint64_t ns_per_tick_q56, ticks_per_ns_q32;
} machine;

bool fragi_stamp_is_virtual(void)
{
	return machine.is_kept;
}

void fragi_stamp_take_from(uint64_t (*function)(void))
{
	if (!machine.is_kept) {
		machine.is_tsc = fragi_stamp_is_tsc;
		machine.ns_per_tick_q56 = fragi_stamp_ns_per_tick_q56;
		machine.ticks_per_ns_q32 = fragi_stamp_ticks_per_ns_q32;
	}
	machine.is_kept = function != NULL;
	now = function != NULL ? function : stamp_of_machine;
	fragi_stamp_is_tsc = function == NULL && machine.is_tsc;
	fragi_stamp_ns_per_tick_q56 =
		function != NULL ? (uint64_t)1 << 56 : machine.ns_per_tick_q56;
	fragi_stamp_ticks_per_ns_q32 =
		function != NULL ? (uint64_t)1 << 32 : machine.ticks_per_ns_q32;
}

#define BRACKETS 8
#define NEAR_NS 1000 /* with this bracket a moment is wrong by half of it at most */

/*
 * Reads both clocks, again and again until the bracket of the stamps around the time is near, and
 * keeps the narrowest.
 */
static struct fragi_moment read_both(uint64_t (*stamp)(void), uint64_t near_ns)
{
	struct fragi_moment moment = {0, 0};
	uint64_t best = UINT64_MAX, before, after, took;
	int64_t ns;

	for (int i = 0; i < BRACKETS; i++) {
		before = stamp();
		ns = fragi_now_ns();
		after = stamp();
		took = (int64_t)(after - before) > 0 ? after - before : 0; /* of another core */
		if (took < best) {
			best = took;
			moment = (struct fragi_moment){ns, before + took / 2};
		}
		if (fragi_stamp_diff_ns(before, after) < near_ns)
			break;
	}
	return moment;
}

struct fragi_moment fragi_moment_now(void)
{
	return read_both(fragi_stamp, NEAR_NS);
}

#define SLOWEST_HZ 4000000u /* the nanoseconds of a tick have 8 bits before the point */

static uint64_t q56_from_hz(uint64_t hz)
{
	return (uint64_t)(((unsigned __int128)1000000000 << 56) / hz);
}

#if defined(__x86_64__)
#define ROUGH_NS 10000      /* within 0.5 %; every process that loads the library spins so long */
#define CALIBRATE_NS 100000 /* within 0.01 % */

/* Both clocks when the library was loaded; ns is 0 where there is nothing to measure. */
static struct fragi_moment loaded;

/* The kernel uses these clocks when it has found that the counters of two cores disagree. */
static bool kernel_distrusts_tsc(void)
{
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);
	char name[32] = "";
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	return n > 0 && (strncmp(name, "hpet", 4) == 0 || strncmp(name, "acpi_pm", 7) == 0 ||
			 strncmp(name, "jiffies", 7) == 0 || strncmp(name, "refined", 7) == 0);
}

static bool tsc_is_invariant(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0 &&
	       !kernel_distrusts_tsc();
}

/*
 * Returns the counter's frequency as the processor reports it; 0 when it does not report one, or
 * when a hypervisor may have scaled the counter.
 */
static uint64_t tsc_stated_hz(void)
{
	unsigned int a, b, c, d, denominator, numerator, crystal_hz, unused;

	if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & (1u << 31)) != 0)
		return 0;
	if (__get_cpuid(0x15, &denominator, &numerator, &crystal_hz, &unused) == 0 ||
	    denominator == 0 || numerator == 0 || crystal_hz == 0)
		return 0;
	return (uint64_t)crystal_hz * numerator / denominator;
}

/* Measures the counter from when the library was loaded until at least that much later. */
static uint64_t tsc_measured_q56(int64_t later_ns)
{
	struct fragi_moment later;

	while (fragi_now_ns() - loaded.ns < later_ns)
		__builtin_ia32_pause();
	later = read_both(fragi_stamp_of_counter, 0);
	if (later.stamp <= loaded.stamp || later.ns <= loaded.ns)
		return 0;
	return (uint64_t)(((unsigned __int128)(uint64_t)(later.ns - loaded.ns) << 56) /
			  (later.stamp - loaded.stamp));
}

static uint64_t tsc_rough_q56(void)
{
	uint64_t q56;

	loaded = read_both(fragi_stamp_of_counter, 0);
	q56 = tsc_measured_q56(ROUGH_NS);
	if (q56 == 0)
		loaded.ns = 0;
	return q56;
}
#endif

void fragi_stamp_refine(void)
{
#if defined(__x86_64__)
	uint64_t q56;

	if (loaded.ns == 0)
		return;
	q56 = tsc_measured_q56(CALIBRATE_NS);
	loaded.ns = 0;
	if (q56 != 0)
		use_counter(q56);
#endif
}

__attribute__((constructor)) static void stamp_calibrate(void)
{
#if defined(__x86_64__)
	uint64_t hz, q56;

	if (!tsc_is_invariant())
		return;
	hz = tsc_stated_hz();
	q56 = hz != 0 ? q56_from_hz(hz) : tsc_rough_q56();
	if (q56 == 0)
		return;
	use_counter(q56);
#elif defined(__aarch64__)
	uint64_t hz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	if (hz < SLOWEST_HZ)
		return;
	use_counter(q56_from_hz(hz));
#else
	(void)q56_from_hz, (void)use_counter;
#endif
}
