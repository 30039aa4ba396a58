# SPDX-License-Identifier: Apache-2.0
"""One run whose hosts are killed, stopped for good and stopped for a moment again and again, while
its policy is to start them again. It must go on, and its accounts must agree with what the
operators wrote down."""
import os
import random
import re
import signal
import time

import world

APP = """
frag: 1
application: again
arguments:
  edge: {default: auto}
  policy: {default: block}
  encrypt: {default: "false"}
  size: {default: "8"}
  tx_pause: {default: 1ms}
extensions: [libtruth.so]
fragments:
  fragment1:
    %(on_failure)s
    operators:
      tx: {type: truth_saving_tx, parameters: {file: "%(folder)s/sent", size: "${size}", pause: "${tx_pause}"}}
  fragment2:
    %(on_failure)s
    operators:
      pass: {type: forward}
  fragment3:
    %(on_failure)s
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: fragment1.tx.out, to: fragment2.pass.in, edge: "${edge}", policy: "${policy}", encrypt: "${encrypt}"}
  - {from: fragment2.pass.out, to: fragment3.rx.in, edge: "${edge}", policy: "${policy}", encrypt: "${encrypt}"}
"""
ON_FAILURE = "on_failure: {policy: restart, intensity: 1000, period: 60s, backoff: 1ms}"
HOSTS = 3
# What may be on its way to a host when it dies: the window, the queue, and a message in its hands.
HELD = 2 * 8 + 1
# A host that is stopped for good is given up after the time of death, and then started again.
RECOVERY_S = 10 * (world.DEAD_MS / 1000 + 1)


class Restarts(world.World):
    def prepare(self, seed):
        self.rng = rng = random.Random(seed)
        self.open()
        self.app = self.write("app.yaml", APP % {"folder": self.folder, "on_failure": ON_FAILURE})
        self.arguments = {
            "edge": rng.choice(("shm", "ucx")),
            "policy": rng.choice(("block", "block", "pop", "reject", "latest")),
            "encrypt": rng.choice(("false", "false", "true")),
            "size": rng.choice((8, 4096, 300000)),
            "tx_pause": rng.choice(("1ms", "1ms", "100us")),
        }
        # (whom, how, how long after the one before; None: when messages arrive again)
        self.deeds = [(rng.randrange(HOSTS), rng.choice(("kill", "kill", "kill", "stop", "pause")),
                       rng.choice((None, None, rng.uniform(0, 0.05), rng.uniform(0, 1.0))))
                      for _ in range(rng.randint(2, 6))]
        self.words = "seed %d: %r; %s" % (seed, self.arguments, "; ".join(
            "%s fragment%d %s" % (how, whom + 1, "at once" if after is None else "after %.0f ms" % (1e3 * after))
            for whom, how, after in self.deeds))
        return self

    def run_it(self):
        """Returns how long it took until messages arrived again after the last deed."""
        self.launch(once=(False,) * HOSTS, **self.arguments)
        self.come_further(20)
        self.given_up = [set() for _ in range(HOSTS)]
        for whom, how, after in self.deeds:
            if after is None:
                self.come_further(20)
            else:
                time.sleep(after)
            self.do(whom, how)
        took_s = self.come_further(20)
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(30), 0, self.d.stderr)
        self.check()
        return took_s

    def come_further(self, more):
        """So many messages arrive. Returns how long that took."""
        began = time.monotonic()
        goal = self.received() + more
        self.wait_until("%d messages" % goal,
                        lambda: self.received() >= goal or self.d.child.poll() is not None,
                        RECOVERY_S)
        self.assertIsNone(self.d.child.poll(), "the driver has ended:\n" + self.d.stderr)
        return time.monotonic() - began

    def host(self, whom):
        return int(re.findall(r"runs fragment%d \(fraghost (\d+)\)" % (whom + 1), self.workers[whom].stderr)[-1])

    def do(self, whom, how):
        pid = self.host(whom)
        if how == "pause" and pid in self.given_up[whom]:
            return  # it is stopped for good
        try:
            os.kill(pid, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        except ProcessLookupError:
            return  # it has just ended by an earlier deed
        if how == "pause":
            time.sleep(self.rng.uniform(0.01, world.DEAD_MS / 6000))
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        else:
            self.given_up[whom].add(pid)

    def check(self):
        summary = self.summary(self.d)
        self.assertEqual(summary["result"], "stopped", summary)
        self.assert_balanced(summary)
        deaths = []
        for i in range(HOSTS):
            restarts = [f for f in summary["fragments"] if f["name"] == "fragment%d" % (i + 1)][0]["restarts"]
            self.assertGreaterEqual(restarts, len(self.given_up[i]), "fragment%d" % (i + 1))
            deaths.append(restarts)
        first, second = (self.flow(summary, name) for name in ("fragment1.tx.out", "fragment2.pass.out"))
        sent, received = self.truth("sent"), self.truth("received")
        self.assert_numbers(sent, received, deaths)
        self.assert_close(first["sent"], len(sent), deaths[0], "sent")
        self.assert_close(second["delivered"], len(received), deaths[2], "delivered")
        # What reaches the middle host may die with it between its two flows.
        self.assertLessEqual(second["sent"], first["delivered"])
        for flow, ends in ((first, deaths[:2]), (second, deaths[1:])):
            self.assertLessEqual(flow["lost"], sum(ends) * HELD, flow)
            self.assertEqual(flow["in_flight"], 0, flow)
            if not any(ends):
                self.assertEqual(flow["lost"], 0, flow)
        for w in self.workers:
            w.signal(signal.SIGTERM)
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()

    def assert_close(self, counted, written, deaths, what):
        """Who is killed between his deed and his line has done one more than he wrote."""
        self.assertTrue(written <= counted <= written + deaths,
                        "%d counted as %s, %d written, %d deaths" % (counted, what, written, deaths))

    def assert_numbers(self, sent, received, deaths):
        """No number is left out: the sender goes on from what it saved, and so sends at most the
        last one again. What arrives comes in order."""
        self.assertEqual(sent, sorted(sent))
        self.assertLessEqual(len(sent) - len(set(sent)), deaths[0])
        # It may die between saving and writing, or sending and writing: those were sent too.
        missing = set(range(1, sent[-1] + 1)) - set(sent)
        self.assertLessEqual(len(missing), deaths[0], missing)
        self.assertEqual(received, sorted(received))
        self.assertLessEqual(len(received) - len(set(received)), deaths[0])
        self.assertLessEqual(received[-1], sent[-1] + 1)
