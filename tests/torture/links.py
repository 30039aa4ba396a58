# SPDX-License-Identifier: Apache-2.0
"""Two nodes and a link that is slow, loses packets, stands still, or is cut: both ways, one way, or
for data alone."""
import random
import signal
import time

import relay
import world

DEEDS = ("delay", "loss", "still", "cut", "cut there", "cut back", "cut data")
MOMENTS = ("start", "flow", "drain")
SENTENCES = {
    "cut": r"worker b .*which ran fragment2, was lost: it has not been heard",
    "cut there": r"worker b .*which ran fragment2, was lost",
    "cut back": r"worker b .*which ran fragment2, was lost: it has not been heard",
    "cut data": r"the data link between .* was lost, while their control connections are up|"
                r"no way to|could not be connected to|did not answer within \d+ s on the data plane",
}


class Links(world.World):
    def prepare(self, seed):
        rng = random.Random(seed)
        self.deed = DEEDS[seed % len(DEEDS)]
        self.moment = MOMENTS[seed // len(DEEDS) % len(MOMENTS)]
        # What is to be survived has the usual time for it, what is not has less.
        self.survives = self.deed in ("delay", "loss", "still")
        self.open(quick=not self.survives)
        self.size = rng.choice((8, 20000))
        self.messages = rng.randint(1, 60)
        self.pause_s = rng.uniform(0, 0.05)
        self.how = {"delay": {"delay_s": rng.uniform(0.001, 0.03)},
                    "loss": {"loss": rng.uniform(0.002, 0.02)},
                    "still": {"cut": [True, True]},
                    "cut": {"cut": [True, True]},
                    "cut there": {"cut": [True, False]},
                    "cut back": {"cut": [False, True]},
                    "cut data": {"cut": [True, True], "data_only": True}}[self.deed]
        self.still_s = rng.uniform(0.05, 0.5)
        self.words = "%s %s in %s; %d bytes, message %d and %.0f ms" % (
            self.deed,
            self.how,
            self.moment,
            self.size,
            self.messages,
            self.pause_s * 1e3,
        )
        self.link = relay.Link(self.mark, seed)
        self.addCleanup(self.link.end)
        return self

    def launch_apart(self):
        """The driver and a on one side, b on the other."""
        inside = [("ip", "netns", "exec", name) for name in self.link.names]
        arguments = {"tx_pause": "2ms", "size": self.size, "count": 100 if self.survives else 0}
        if self.moment == "drain":
            arguments["rx_pause"] = "20ms"
        words = [w for k, v in arguments.items() for w in ("--" + k, str(v))]
        self.d = self.named["driver"] = self.driver(
            self.app,
            "--output",
            "json",
            "--insecure",
            app_args=words,
            address=self.link.ADDRESSES[0] + ":0",
            prefix=inside[0],
        )
        self.link.set(control_port=int(self.address.rsplit(":", 1)[1]))
        self.workers = []
        for i, name in enumerate("ab"):
            self.workers.append(self.worker("--name", name, "--once", "--insecure", prefix=inside[i],
                                            fragments="fragment%d" % (i + 1)))
            self.named[name] = self.workers[i]

    def run_it(self):
        """Returns how long the end took."""
        self.launch_apart()
        if self.moment == "start":
            self.d.wait_line(r"waiting -> preparing") if not self.survives else self.d.wait_line("joined from")
        else:
            self.wait_received(self.messages)
        if self.moment == "drain" and not self.survives:
            self.d.signal(signal.SIGTERM)
            self.d.wait_line(r"running -> draining")
        time.sleep(self.pause_s)
        self.link.set(**self.how)
        start = time.monotonic()
        if self.deed == "still":
            time.sleep(self.still_s)
            self.link.set(cut=[False, False])
        code = self.d.wait(60)
        took = time.monotonic() - start
        self.check(code)
        return took

    def check(self, code):
        summary = self.summary(self.d)
        self.assert_balanced(summary)
        # it may have drained before it was cut
        if self.survives or (code == 0 and self.moment == "drain"):
            self.assertEqual(code, 0, self.d.stderr)
            self.assert_complete(summary, "done" if self.survives else "stopped")
        else:
            self.assertEqual(code, 1, self.d.stderr)
            self.assertRegex(summary["reason"], SENTENCES[self.deed])
            self.assert_truth(summary)
        for i, w in enumerate(self.workers):
            allowed = (
                (code, 3)
                if i == 1 and not self.survives
                else (code, 0) if not self.survives else (code,)
            )
            self.assertIn(w.wait(), allowed, w.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()
