# SPDX-License-Identifier: Apache-2.0
"""Two workers that serve one application after the other, each of which is attacked: nothing may gather in them."""
import os
import time

import attack
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
