# SPDX-License-Identifier: Apache-2.0
"""Two workers that serve one application after the other, each of which is attacked; and a service
that runs the same applications all the time, with an attack every two seconds. Nothing may gather
in them."""
import collections
import os
import random
import statistics
import time

import attack
import service
import world

# From the second round on a worker has what it keeps; then it may not grow by more than this.
GROWTH_BYTES = 4 << 20
SETTLED = 10


def resident_bytes(pid):
    with open("/proc/%d/statm" % pid) as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Soak(attack.Attack):
    def prepare_rounds(self, count, seed, idle):
        self.idle = idle
        self.plans = []
        while len(self.plans) < count:
            plan = attack.Plan(seed, False)
            seed += 1
            if (plan.victim, plan.deed) != ("worker", "kill") and plan.app == "stream":
                self.plans.append(plan)
        self.open()
        self.words = "%d rounds" % count
        self.port = self.free_port()
        self.workers = [self.worker("--name", n, address="127.0.0.1:%d" % self.port, fragments="fragment%d" % (i + 1))
                        for i, n in enumerate("ab")]
        for n, w in zip("ab", self.workers):
            self.named[n] = w
        return self

    def launch(self, once=(), driver_flags=(), **arguments):
        for name in ("sent", "received"):
            if os.path.exists(self.path(name)):
                os.unlink(self.path(name))
        self.seen = [len(w.stderr) for w in self.workers]
        words = [w for k, v in arguments.items() for w in ("--" + k, str(v))]
        self.d = self.driver(self.app, "--output", "json", app_args=words, address="127.0.0.1:%d" % self.port)
        self.named["driver"] = self.d

    def check_workers(self):
        for w in self.workers:
            self.assertIsNone(w.child.poll(), w.stderr)

    check_workers_without_driver = check_workers

    def assert_nothing_left(self, keep=()):
        super().assert_nothing_left(self.workers)

    def run_rounds(self):
        """Returns how long it took."""
        start = time.monotonic()
        settled = [0, 0]
        for i, plan in enumerate(self.plans):
            self.plan, self.phase, self.hit_at = plan, None, None
            self.words = "round %d of %d: %s" % (i + 1, len(self.plans), plan)
            self.run_it()
            if i == SETTLED:
                settled = [resident_bytes(w.pid) for w in self.workers]
        for w, before in zip(self.workers, settled):
            if before:
                self.assertLessEqual(resident_bytes(w.pid), before + GROWTH_BYTES)
            self.end_worker(w, self.idle)
        return time.monotonic() - start


EVERY_S = 2
# What a process may have more in the last quarter of its time than in the second one: rows and
# lines that are kept, up to their bounds, and what the allocator keeps.
MORE_BYTES = 1 << 20
MORE_DESCRIPTORS = 2
MORE_STATE_BYTES = 1 << 20
SAMPLES = 20  # of a process that is judged


class ServiceSoak(service.Service):
    """In the first half anybody is attacked. In the second half only hosts are, so that the driver,
    the workers and a host whose neighbours die all live for long."""

    PAUSE = "5ms"
    SPARED = ("again", 1)

    def prepare_for(self, seconds, seed):
        self.seconds, self.samples = seconds, collections.defaultdict(list)
        self.faults = 0
        return self.prepare(seed)

    def fault(self, rng, hosts_alone):
        while True:
            deed = service.Deed(rng, 0.0)
            if not hosts_alone or (deed.victim == "host" and (deed.name, deed.host) != self.SPARED):
                return deed

    def watched(self):
        for name, daemon in self.daemons.items():
            yield name, daemon.pid
        for name, number in (("calm", 0), ("calm", 1), self.SPARED):
            yield "host %d of %s" % (number + 1, name), self.pids[name][number]

    def sample(self):
        for name, pid in self.watched():
            held = sum(world.descriptors(pid).values())
            self.samples[name, pid].append((resident_bytes(pid), held))
        state = self.path("state")
        size = sum(os.path.getsize(os.path.join(state, f)) for f in os.listdir(state))
        self.samples["state folder", 0].append((size, 0))

    def run_for(self):
        """Returns what it found, as text."""
        self.launch_service()
        rng, began = random.Random(self.rng.random()), time.monotonic()
        planned = self.words
        while time.monotonic() - began < self.seconds:
            due = time.monotonic() + EVERY_S
            deed = self.fault(rng, time.monotonic() - began > self.seconds / 2)
            self.faults += 1
            self.words = "%s; fault %d, %.0f s: %s" % (planned, self.faults, time.monotonic() - began, deed)
            self.do_blow([deed])
            self.begin_again(self.see(deed.touches()))
            self.sample()
            time.sleep(max(0.0, due - time.monotonic()))
        self.end()
        return ["a service had %d faults in %.0f s (%s)" % (self.faults, time.monotonic() - began, ", ".join(
            "%s %d" % h for h in sorted(self.hits.items())))] + self.judge()

    def judge(self):
        """The second quarter of the time of each process against its last one."""
        found = []
        for (name, pid), rows in self.samples.items():
            if len(rows) < SAMPLES:
                continue
            quarter = len(rows) // 4
            before, after = ([statistics.median(r[i] for r in part) for i in (0, 1)]
                             for part in (rows[quarter:2 * quarter], rows[-quarter:]))
            words = "%s: %d KiB, then %d KiB; %d descriptors, then %d; %d samples" % (
                name, before[0] // 1024, after[0] // 1024, before[1], after[1], len(rows))
            found.append("  " + words)
            more = MORE_BYTES if pid else MORE_STATE_BYTES
            self.assertLessEqual(after[0], before[0] + more, words)
            self.assertLessEqual(after[1], before[1] + MORE_DESCRIPTORS, words)
        return found
