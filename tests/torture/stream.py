# SPDX-License-Identifier: Apache-2.0
"""The other two modes: full speed from end to end, and stops at any moment; both lose nothing."""
import os
import random
import signal
import time

import world

MESSAGES, BYTES = 10000, 65536


class Stream(world.World):
    """10,000 messages of 64 KiB as fast as they go."""

    def prepare(self, edge):
        self.open(quick=False)
        del self.env["FRAG_LOG_LEVEL"]
        self.edge = edge
        self.words = "%d messages of %d bytes over %s" % (MESSAGES, BYTES, edge)
        return self

    def run_it(self):
        self.launch(count=MESSAGES, size=BYTES, edge=self.edge)
        self.assertEqual(self.d.wait(120), 0, self.d.stderr)
        for w in self.workers:
            self.assertEqual(w.wait(), 0, w.stderr)
        summary = self.summary(self.d)
        self.assert_complete(summary, "done")
        self.assertEqual(self.received(), MESSAGES)
        self.assert_nothing_left()
        return summary["duration_ns"] / 1e9


class Stop(world.World):
    """SIGINT or SIGTERM to the driver, or Ctrl-C to all of a group, at any moment, once or
    twice."""

    def prepare(self, seed):
        self.open(variable=True)
        self.rng = random.Random(seed)
        self.way = ("driver", "group", "fragctl", "twice")[seed % 4]
        self.number = self.rng.choice((signal.SIGINT, signal.SIGTERM))
        self.delay_s = self.rng.choice((self.rng.uniform(0, 0.3), self.rng.uniform(0, 1.0)))
        self.pause = self.rng.choice(("0s", "1ms"))
        self.size = self.rng.choice((8, 65536))
        self.edge = self.rng.choice(("shm", "ucx"))
        self.words = "%s, %s after %.0f ms; pause %s, %d bytes over %s" % (
            self.way, self.number.name, self.delay_s * 1e3, self.pause, self.size, self.edge)
        return self

    def run_it(self):
        """Returns how long the end took."""
        arguments = {"tx_pause": self.pause, "size": self.size, "edge": self.edge}
        if self.way == "fragctl":
            words = [w for k, v in arguments.items() for w in ("--" + k, str(v))]
            self.d = self.named["fragctl"] = self.start("fragctl", "run", "--workers", "2", "--output", "json", self.app,
                                                        "--", *words)
            self.workers = []
            self.d.wait_line(r"listening on")
        else:
            self.launch(**arguments)
        time.sleep(self.delay_s)
        start = time.monotonic()
        for p in [self.d] + (self.workers if self.way == "group" else []):
            p.signal(self.number)
        if self.way == "twice":
            time.sleep(self.rng.uniform(0, 0.05))
            if self.d.child.poll() is None:
                self.d.signal(self.number)
        code = self.d.wait()
        took = time.monotonic() - start
        self.check(code)
        return took

    def check(self, code):
        at_once = 128 + self.number
        self.assertIn(code, (0, at_once) if self.way == "twice" else (0,), self.d.stderr)
        for w in self.workers:
            if self.way == "group":
                self.assertEqual(w.wait(), 0, w.stderr)
                continue
            if "none -> spawning" not in w.stderr:  # it has not served yet, and waits
                w.wait_line("-> backoff")
                w.signal(signal.SIGTERM)
            # Between the driver's end at once and the news of it, a worker may find its driver
            # gone.
            self.assertIn(w.wait(), (code,) if code == 0 else (code, 1, 3, 0), w.stderr)
        summary = self.summary(self.d)
        self.assertEqual((summary["result"], summary["exit_code"]), ("stopped", code))
        self.assert_balanced(summary)
        if code != 0:
            self.assert_truth(summary)
        elif os.path.exists(self.path("sent")):
            self.assert_complete(summary, "stopped")
        self.assert_nothing_left()
        self.assert_clean_logs()
