# SPDX-License-Identifier: Apache-2.0
"""One run with one attack: who, how and when follow from the seed alone; what must come of it, from
docs/CLI.md."""
import os
import random
import re
import signal
import time

import world

PHASES = ("start", "flow", "drain")
STATES = {"new": "start", "waiting": "start", "preparing": "start", "wiring": "start", "starting": "start",
          "running": "flow", "draining": "drain", "failing": "drain", "closing": "drain", "killing": "drain", "ended": "after"}
# Who is attacked, and how: killed, stopped until he is given up, or stopped for less than that.
DEEDS = (("host", "kill"), ("host", "stop"), ("worker", "kill"), ("worker", "stop"), ("worker+host", "stop"),
         ("driver", "kill"), ("driver", "stop"), ("any", "pause"))
SENTENCES = {
    ("host", "kill"): r"fraghost \d+ (of fragment%(n)d )?was killed( in fragment%(n)d\..*)?: signal 9 \(SIGKILL\)",
    ("host", "stop"): r"fraghost \d+ (of fragment%(n)d )?was ended( in fragment%(n)d\..*)?: .*has not been heard",
    ("worker", "kill"): r"worker %(w)s .*which ran fragment%(n)d, was lost",
    ("worker", "stop"): r"worker %(w)s .*which ran fragment%(n)d, was lost: it has not been heard",
    ("worker+host", "stop"): r"worker %(w)s .*which ran fragment%(n)d, was lost: it has not been heard",
    ("driver", "stop"): r"worker [abc] .*was lost",
}
START_MOMENTS = (r"waiting -> preparing", r"preparing -> prepared", r"preparing -> wiring", r"wiring -> wired",
                 r"wiring -> starting")
# What is promised, and how much longer a test waits before it calls it a failure.
PROMISED_S = {"kill": 1.0, "stop": world.DEAD_MS / 1000 + 1.0, "pause": 1.0}
TIMES = 10


class Plan:
    def __init__(self, seed, with_video):
        rng = random.Random(seed)
        self.seed = seed
        self.phase = PHASES[seed % len(PHASES)]
        self.victim, self.deed = DEEDS[seed // len(PHASES) % len(DEEDS)]
        self.app = rng.choice(("stream", "stream", "chain", "video" if with_video else "chain"))
        hosts = 3 if self.app == "chain" else 2
        self.side = rng.randrange(hosts)
        self.once = tuple(rng.random() < 0.5 for _ in range(hosts))
        self.size = rng.choice((8, 8, 4096, 300000))
        if self.victim == "any":
            self.victim = rng.choice(("host", "worker", "driver"))
        self.arguments = {"tx_pause": "2ms", "size": self.size}
        self.delay_s = 0.0
        self.messages = rng.randint(1, 60)
        self.moment = None
        if self.phase == "start":
            self.moment = rng.choice(START_MOMENTS)
            self.delay_s = (
                rng.uniform(0, 0.05) if self.moment == START_MOMENTS[0] else rng.uniform(0, 0.002)
            )
        elif self.phase == "flow":
            self.delay_s = rng.uniform(0, 0.05)
        else:
            self.ending = rng.choice(("sigterm", "sigterm", "sigint", "count", "count", "closing"))
            self.arguments["rx_pause"] = "20ms"
            self.messages = rng.randint(5, 20)
            if self.ending in ("count", "closing"):
                self.arguments["count"] = self.messages + 10
            self.delay_s = rng.uniform(0, 0.002 if self.ending == "closing" else 0.06)
            self.moment = {"count": r"host 1 .*running -> done", "closing": r"running -> closing"}.get(
                self.ending, r"running -> draining")

        # What the sender drops is in its page alone: only where no page goes with its worker it is
        # all known.
        self.drops = self.app == "stream" and self.victim == "host" and rng.random() < 0.4
        if self.drops:
            self.arguments.update(policy=rng.choice(("pop", "reject")), rx_pause="5ms")
        elif self.phase != "drain" and self.app != "video" and rng.random() < 0.5:
            # as fast as it goes
            self.arguments["tx_pause"] = "0s"
            if rng.random() < 0.5:  # until the window is full
                self.arguments["rx_pause"] = "5ms"
            else:
                self.messages = rng.randint(1, 3000)
        self.arguments["edge"] = rng.choice(("shm", "ucx"))

    def __str__(self):
        return "seed %d: %s over %s, %s of %s %d%s in %s%s, %.1f ms after %s; once %r" % (
            self.seed,
            self.arguments.get("policy", self.app),
            self.arguments["edge"],
            self.deed,
            self.victim,
            self.side + 1,
            " (%s)" % self.ending if self.phase == "drain" else "",
            self.phase,
            "",
            self.delay_s * 1e3,
            self.moment or "message %d" % self.messages,
            self.once,
        )


class Attack(world.World):
    def prepare(self, plan, clip, idle):
        self.plan, self.idle = plan, idle
        self.open(plan.app, clip, variable=True)
        self.hit_at = None
        self.took_s = 0.0
        self.phase = None
        self.words = str(plan)
        return self

    def run_it(self):
        self.launch(once=self.plan.once, **self.plan.arguments)
        self.come_to_the_moment()
        self.hit()
        self.see_the_end()
        self.check_the_end()

    # When

    def come_to_the_moment(self):
        plan = self.plan
        if plan.phase == "start":
            self.d.wait_line(plan.moment)
            if "host" in plan.victim:
                self.wait_until("a host", self.victim_host)
        else:
            self.wait_received(plan.messages)
        if plan.phase == "drain":
            if plan.ending in ("sigterm", "sigint"):
                self.d.signal(signal.SIGTERM if plan.ending == "sigterm" else signal.SIGINT)
            self.d.wait_line(plan.moment)
        time.sleep(plan.delay_s)

    # Whom

    def victim_host(self):
        side = self.plan.side
        m = re.search(r"pid (\d+): spawning -> up", self.workers[side].stderr[self.seen[side]:])
        return int(m.group(1)) if m else None

    def victims(self):
        plan = self.plan
        found = []
        if "worker" in plan.victim:
            found.append(self.workers[plan.side].pid)
        if "host" in plan.victim:
            found.append(self.victim_host())
        return found or [self.d.pid]

    def send(self, pids, number):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    def hit(self):
        plan = self.plan
        self.pids = self.victims()
        self.hit_at = time.time()
        self.send(self.pids, signal.SIGKILL if plan.deed == "kill" else signal.SIGSTOP)
        self.hit_done = time.monotonic()
        if plan.deed != "pause":
            return
        time.sleep(random.Random(plan.seed).uniform(0.02, world.DEAD_MS / 6000))
        self.send(self.pids, signal.SIGCONT)
        if plan.phase != "drain":
            self.wait_received(plan.messages + 20)
            self.hit_done = time.monotonic()
            self.d.signal(signal.SIGTERM)

    # What comes of it

    def see_the_end(self):
        plan = self.plan
        bound = PROMISED_S[plan.deed] * TIMES
        if plan.victim == "driver" and plan.deed != "pause":
            self.wait_until("hosts gone", lambda: not self.hosts(), bound)
            self.took_s = time.monotonic() - self.hit_done
            self.send(self.pids, signal.SIGCONT)
            if plan.deed == "stop":
                self.d.wait(bound)
        else:
            self.d.wait(bound)
            self.took_s = time.monotonic() - self.hit_done
            self.send(self.pids, signal.SIGCONT)

    def check_the_end(self):
        plan = self.plan
        self.phase = STATES[self.state_at(self.hit_at + 0.0005)]
        if plan.victim == "driver" and plan.deed == "kill":
            self.check_workers_without_driver()
        else:
            self.check_summary()
            self.check_workers()
        self.assert_nothing_left()
        self.assert_clean_logs()

    def check_summary(self):
        plan = self.plan
        code = self.d.wait()
        summary = self.summary(self.d)
        self.assertEqual(summary["exit_code"], code)
        self.assert_balanced(summary)
        self.code = code
        if plan.deed == "pause" or (code == 0 and self.may_have_come_too_late()):
            self.assertEqual(code, 0, self.d.stderr)
            counted = plan.phase == "drain" and plan.ending in ("count", "closing")
            self.assert_complete(summary, "done" if counted else "stopped", plan.drops)
            return
        self.assertEqual(code, 1, self.d.stderr)
        self.assertEqual(summary["result"], "failed")
        self.assertRegex(summary["reason"],
                         SENTENCES[plan.victim, plan.deed] % {"w": "abc"[plan.side], "n": plan.side + 1})
        self.assertEqual(len([l for l in self.d.stderr.splitlines() if summary["reason"] in l]), 1,
                         "the sentence stands once on the driver's terminal:\n" + self.d.stderr)
        self.assert_truth(summary, plan.drops)

    def may_have_come_too_late(self):
        """What is hit while it ends, or has ended, may end as if nothing had been: if its part was
        over, though the driver did not know yet. Then the account is complete."""
        return self.phase in ("drain", "after")

    def check_workers(self):
        plan = self.plan
        for i, w in enumerate(self.workers):
            attacked = plan.victim.startswith("worker") and plan.side == i
            if attacked and plan.deed == "kill":
                self.assertEqual(w.wait(), 128 + signal.SIGKILL)
            elif plan.once[i]:
                # Who lost his driver says so; the others end with the application's own result.
                allowed = {self.code}
                if self.code != 0 and (plan.victim == "driver" or attacked):
                    allowed = {1, 3}
                elif self.code == 0 and plan.deed != "pause" and (plan.victim == "driver" or attacked):
                    allowed = {0, 3}
                if "-> closing" in self.d.stderr:  # its part was over before the application failed
                    allowed.add(0)
                self.assertIn(w.wait(), allowed, w.stderr)
            else:
                self.end_worker(w, self.idle)

    def check_workers_without_driver(self):
        plan = self.plan
        for i, w in enumerate(self.workers):
            served = "none -> spawning" in w.stderr
            if plan.once[i] and served:
                codes = {3} if self.phase in ("start", "flow") else {0, 3}
                self.assertIn(w.wait(), codes, w.stderr)
                continue
            w.wait_line("-> backoff")
            self.assertIsNone(w.child.poll(), "workerd goes on waiting for its driver\n" + w.stderr)
            self.end_worker(w, self.idle)
