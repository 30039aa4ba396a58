// SPDX-License-Identifier: Apache-2.0
#include <edge/pump_spin.h>

#define CREDIT_MAX_NS (2 * FRAGI_SPIN_MAX_NS)
/*
 * What a spin that was not in vain earns of its limit. Where more than one of so many is in vain,
 * other threads want the core: while this one sleeps they run, and messages gather for it.
 */
#define SPUN_EARNS_PART 16
/*
 * What a short sleep earns. Both ends of a flow that sleep have waits of two wake-ups each, which
 * take 5 to 35 us. From there one of them must spin until the other one has woken up.
 */
#define SLEPT_EARNS_NS 250
#define SHORT_SLEEP_NS 100000
/* The processor is shared where more than a quarter of so long a time went to others. */
#define WINDOW_NS 4000000
#define LOST_PART 4
#define QUIET_NS 100000000

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

void fragi_spin_begin(struct fragi_spin *spin, int64_t now_ns)
{
	int64_t want_ns = smaller(4 * spin->interval_ns + 2000, FRAGI_SPIN_MAX_NS);

	if (spin->slept)
		spin->awake_ns = 0;
	spin->slept = false;
	spin->begin_ns = now_ns;
	spin->limit_ns = spin->credit_ns >= want_ns && now_ns >= spin->quiet_till_ns ? want_ns : 0;
}

void fragi_spin_sleeps(struct fragi_spin *spin)
{
	spin->credit_ns -= spin->limit_ns;
	spin->limit_ns = 0;
	spin->slept = true;
}

void fragi_spin_end(struct fragi_spin *spin, int64_t now_ns, bool by_event)
{
	int64_t waited_ns = now_ns - spin->begin_ns, earned_ns = 0;

	if (by_event)
		spin->interval_ns +=
			(smaller(waited_ns, FRAGI_SPIN_MAX_NS) - spin->interval_ns) / 8;
	if (spin->slept)
		earned_ns = by_event && waited_ns < SHORT_SLEEP_NS && now_ns >= spin->quiet_till_ns
				    ? SLEPT_EARNS_NS
				    : 0;
	else if (by_event && waited_ns <= spin->limit_ns)
		earned_ns = spin->limit_ns / SPUN_EARNS_PART;
	else
		earned_ns = -spin->limit_ns;
	spin->credit_ns = smaller(spin->credit_ns + earned_ns, CREDIT_MAX_NS);
	spin->limit_ns = 0;
}

bool fragi_spin_asks_share(const struct fragi_spin *spin)
{
	return spin->limit_ns > 0 &&
	       (spin->awake_ns == 0 || spin->begin_ns - spin->awake_ns >= WINDOW_NS);
}

/* Operators may sleep too: alone the processor time that is missing says nothing. */
void fragi_spin_share(struct fragi_spin *spin, int64_t cpu_ns, int64_t preemptions)
{
	int64_t awake_ns = spin->begin_ns - spin->awake_ns;

	if (spin->awake_ns != 0 && preemptions > spin->preemptions &&
	    awake_ns - (cpu_ns - spin->cpu_ns) > awake_ns / LOST_PART) {
		spin->credit_ns = spin->limit_ns = 0;
		spin->quiet_till_ns = spin->begin_ns + QUIET_NS;
	}
	spin->awake_ns = spin->begin_ns;
	spin->cpu_ns = cpu_ns;
	spin->preemptions = preemptions;
}
