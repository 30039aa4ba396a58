# SPDX-License-Identifier: Apache-2.0
"""As many workers as a large site has, as real processes of this machine: they come, an application
runs over all of them, a tenth of them is killed, the driver is, and all of it runs again."""
import json
import os
import random
import re
import resource
import signal
import time

import world

# How long each phase may take, for each hundred workers and processor.
WITHIN_S = {"attach": 20, "start": 60, "kill a tenth": 30, "start again": 60, "adopt": 30, "stop": 30}


class Many(world.World):
    """A chain of fragments, one on each worker; the first counts, the last writes down what came."""

    def prepare_many(self, count, seed):
        self.rng, self.count = random.Random(seed), count
        self.setUp()
        self.words = "%d workers" % count
        self.named, self.took = {}, []
        self.scale = count / 100 * max(1.0, 4 / os.cpu_count())
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
        return self

    def graph(self):
        out = ["frag: 1", "application: chain", "extensions: [libtruth.so]", "fragments:"]
        for i in range(self.count):
            kind = "{type: forward}"
            if i == 0:
                kind = '{type: truth_tx, parameters: {file: "%s/sent", pause: 10ms}}' % self.folder
            if i == self.count - 1:
                kind = '{type: truth_rx, parameters: {file: "%s/received"}}' % self.folder
            out += ["  f%d:" % i, "    operators:", "      op: %s" % kind]
        out.append("flows:")
        out += ["  - f%d.op -> f%d.op" % (i - 1, i) for i in range(1, self.count)]
        return self.write("chain.yaml", "\n".join(out) + "\n")

    def phase(self, name, work):
        began = time.monotonic()
        self.words = "%d workers: %s" % (self.count, name)
        self.within_s = WITHIN_S[name] * self.scale
        work()
        took_s = time.monotonic() - began
        self.took.append("%s %.1f s" % (name, took_s))
        self.assertLessEqual(took_s, self.within_s, name)

    def ctl(self, *args):
        p = self.start("fragctl", *args)
        self.processes.remove(p)
        codes = (0, 1) if args[0] == "status" else (0,)  # 1: it has failed
        self.assertIn(p.wait(self.within_s), codes, p.stdout + p.stderr)
        return p.stdout

    def json(self, *args):
        return json.loads(self.ctl(*args, "-o", "json"))

    def start_worker(self, i):
        self.workers[i] = self.worker("--name", "w%d" % i, fragments="f%d" % i)

    def start_driver(self):
        self.d = self.named["driver %d" % len(self.named)] = self.start(
            "driverd", "--address", self.address, "--state-dir", self.path("state"))

    def attached(self):
        return sum(w["state"] == "live" for w in self.json("workers")["workers"]) == self.count

    def attach(self):
        self.address = "127.0.0.1:%d" % self.free_port()
        self.env["FRAG_ADDRESS"] = self.address
        self.start_driver()
        self.d.wait_line("waits for applications")
        self.workers = {}
        for i in range(self.count):
            self.start_worker(i)
        self.wait_until("all workers", self.attached, self.within_s)

    def goes_on(self):
        """Messages come through the whole chain: more than wait in it."""
        goal = self.received() + 20
        self.wait_until("messages", lambda: self.received() >= goal, self.within_s)

    def start_app(self):
        self.ctl("start", self.graph())
        self.goes_on()

    def kill_a_tenth(self):
        """The application fails, with the name of a worker that was killed, and leaves no host."""
        dead = self.rng.sample(range(self.count), self.count // 10)
        for i in dead:
            self.workers[i].kill()
        for i in dead:
            self.workers[i].wait()
        self.wait_until("its end", lambda: self.json("list")["ended"], self.within_s)
        ended = self.json("list")["ended"][0]
        self.assertTrue(ended["wanted"], ended)
        self.assertIn(int(re.search(r"worker w(\d+) ", ended["failure"]["sentence"]).group(1)), dead)
        self.assert_balanced(self.json("status", "chain"))
        self.wait_until("no hosts", lambda: not self.hosts(), self.within_s)
        for i in dead:
            self.start_worker(i)

    def restart_application(self):
        self.wait_until("all workers", self.attached, self.within_s)
        for name in ("sent", "received"):
            os.unlink(self.path(name))
        self.ctl("restart", "chain")
        self.goes_on()

    def adopt(self):
        before = self.json("list")["applications"][0]
        self.d.kill()
        self.d.wait()
        self.start_driver()
        self.d.wait_line(r"chain.*adopted|adopted.*chain", timeout=self.within_s)
        self.wait_until("it runs", lambda: self.json("list")["applications"][0]["state"] == "running", self.within_s)
        after = self.json("list")["applications"][0]
        self.assertEqual((after["run"], after["adopted"]), (before["run"], True))
        self.assertEqual([h["pid"] for h in after["hosts"]], [h["pid"] for h in before["hosts"]])
        self.goes_on()

    def stop(self):
        self.ctl("stop", "chain")
        summary = self.json("status", "chain")
        self.assertEqual(summary["result"], "stopped")
        self.assert_balanced(summary)
        sent, received = self.truth("sent"), self.truth("received")
        self.assertEqual(received, sent)
        self.assertEqual({(f["sent"], f["delivered"]) for f in summary["flows"]}, {(len(sent), len(sent))})
        for p in (*self.workers.values(), self.d):
            p.signal(signal.SIGTERM)
        for p in (*self.workers.values(), self.d):
            self.assertEqual(p.wait(self.within_s), 0, p.stderr)
        self.assert_nothing_left()

    def run_it(self):
        """Returns what each phase took."""
        for name, work in (("attach", self.attach), ("start", self.start_app), ("kill a tenth", self.kill_a_tenth),
                           ("start again", self.restart_application), ("adopt", self.adopt), ("stop", self.stop)):
            self.phase(name, work)
        return ", ".join(self.took)
