# SPDX-License-Identifier: Apache-2.0
"""Fragments go where what they require is free, and fragctl explain says why."""
import json
import os
import pwd
import signal
import unittest

from test_service import ServiceTest

GRAPH = """
frag: 1
application: %(name)s
fragments:
  f1:
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 200hz}]}
    requirements: {%(f1)s}
  f2:
    operators:
      rx: {type: ping_rx}
    requirements: {%(f2)s}
flows: [f1.tx -> f2.rx]
"""


class Placement(ServiceTest):
    def graph(self, name, f1="", f2=""):
        return self.write(name + ".yaml", GRAPH % {"name": name, "f1": f1, "f2": f2})

    def offer(self, name, inventory, *args):
        """A worker with an invented inventory."""
        w = self.worker("--name", name, "--inventory", inventory, *args)
        self.wait_until(name, lambda: name in [x["name"] for x in self.live_workers()])
        return w

    def placed(self, name):
        return {p["fragment"]: p["worker"] for p in self.json("explain", name)["placements"]}

    def wait_state(self, name, state):
        self.wait_until(name + " " + state, lambda: self.json("explain", name)["state"] == state)

    def test_an_invented_gpu(self):
        """A GPU fragment goes to the worker that has one, its neighbour apart from it, and no other
        application gets it before it is free again."""
        self.serve()
        self.offer("a", "cpu=8,memory=4Gi", "--label", "zone=or1")
        self.offer("b", "cpu=2,memory=4Gi,gpu=1,gpuMemory=8Gi")
        one = self.graph("one", "gpu: 1, gpuMemory: 6Gi, cpu: 1", "labels: {zone: or1}, apart: f1")
        self.assertEqual(self.ok("start", one), "one: runs")
        self.assertEqual(self.placed("one"), {"f1": "b", "f2": "a"})
        two = self.graph("two", "gpu: 0.5")
        waiting = self.start("fragctl", "start", two)
        self.wait_until("two", lambda: self.application("two") is not None)
        self.wait_state("two", "waiting")
        text = self.ok("explain", "two", "f1")
        self.assertIn("no worker fits f1; worker b is nearest: 0 of 1 gpu are free, and 0.5 are required", text)
        self.assertIn("not a: 0 of 0 gpu are free, and 0.5 are required", text)
        self.wait_delivered("one")
        self.ok("stop", "one")
        self.assertEqual(waiting.wait(), 0, waiting.stderr)
        self.assertEqual(self.placed("two")["f1"], "b")
        one = self.json("explain", "two")
        self.assertEqual({f["edge"] for f in one["flows"]}, {"inproc"})
        self.ok("stop", "two")

    def test_more_than_any_worker_has(self):
        d = self.serve()[0]
        self.offer("a", "cpu=4")
        app = self.graph("large", "cpu: 64")
        self.fails(4, "there is no worker for f1: f1 wants 64 cpu, and no worker has so much; worker a has 4",
                   "start", app, "--start-timeout", "200ms")
        waiting = self.start("fragctl", "start", app)
        waiting.wait_line("large waits for a worker for f1; `fragctl explain large` shows why")
        d.wait_line("large: waiting for a worker for f1 .1 worker here.; f1 wants 64 cpu, and no worker has so much; "
                    "worker a has 4")
        self.offer("b", "cpu=64")
        self.assertEqual(waiting.wait(), 0, waiting.stderr)
        self.assertEqual(self.placed("large")["f1"], "b")
        self.ok("stop", "large")

    def test_drain(self):
        """A drained worker is given nothing, what it runs is moved, and it is empty in the end; it
        stays drained when it comes back, until that is undone."""
        self.serve()
        a = self.offer("a", "cpu=8")
        self.ok("start", self.graph("one"))
        self.assertEqual(self.placed("one"), {"f1": "a", "f2": "a"})
        drained = self.start("fragctl", "drain", "a", "-o", "json")
        drained.wait_line("f1, f2 of one stays there: no worker fits f1.*it is drained, and takes fragments again by `fragctl drain a --undo`; it moves when another worker takes it, `fragctl stop one` ends it")
        self.assertIn("drained: it is given no more fragments", self.ok("workers"))
        self.wait_delivered("one")
        self.assertIsNone(drained.child.poll(), "fragments run there")
        now = self.json("drain", "a", "--no-wait")
        self.assertEqual((now["drained"], now["still_there"]), (True, ["one"]))
        self.offer("b", "cpu=2")
        self.assertEqual(drained.wait(), 0, drained.stderr)
        self.assertEqual(self.document(drained.stdout),
                         {"worker": "a", "drained": True, "still_there": [], "stays": []})
        self.assertEqual(self.placed("one"), {"f1": "b", "f2": "b"})
        self.wait_delivered("one")
        self.ok("start", self.graph("two"))
        self.assertEqual(self.placed("two"), {"f1": "b", "f2": "b"})
        self.assertIn("not a: it is drained", self.ok("explain", "two", "f1"))
        a.signal(signal.SIGTERM)
        self.assertEqual(a.wait(), 0, a.stderr)
        self.offer("a", "cpu=16")
        self.ok("start", self.graph("three"))
        self.assertEqual(self.placed("three"), {"f1": "b", "f2": "b"})
        self.assertEqual(self.ok("drain", "a", "--undo"), "a: takes fragments again; what the drain moved stays where it is, --rebalance moves it back")
        self.ok("restart", "three")
        self.assertEqual(self.placed("three"), {"f1": "a", "f2": "a"})
        kinds = [(e["text"], e["who"]) for e in map(json.loads, self.ok("events", "-o", "json").splitlines())
                 if e["kind"] == "drain"]
        self.assertEqual([k for k, _ in kinds], ["a", "a", "a, which takes fragments again"])
        self.assertEqual({w for _, w in kinds}, {"user " + pwd.getpwuid(os.getuid()).pw_name})
        for name in ("one", "two", "three"):
            self.ok("stop", name)

    def test_two_workers_of_one_name(self):
        """Both serve; the second one has a number behind its name, in its own log too."""
        self.serve()
        first = self.worker("--name", "a", "--fragments", "f1")
        self.wait_until("the first", lambda: len(self.live_workers()) == 1)
        second = self.worker("--name", "a", "--fragments", "f2")
        first.wait_line(r"attached to the driver at \S+ as a$")
        second.wait_line(r"attached to the driver at \S+ as a#2$")
        self.wait_until("both", lambda: [w["name"] for w in self.live_workers()] == ["a", "a#2"])
        self.ok("start", self.graph("one"))
        self.assertEqual(self.placed("one"), {"f1": "a", "f2": "a#2"})

    def test_a_drain_survives_the_driver(self):
        """Of a driver that keeps state: it comes back, and knows of the drain, or of its end."""
        port, state = self.free_port(), self.path("state")
        d, *_ = self.serve("--state-dir", state, port=port, workers=("a",))
        self.assertEqual(self.ok("drain", "a"), "a: drained, and empty")
        for drained in (True, False):
            d.signal(signal.SIGTERM)
            self.assertEqual(d.wait(), 0, d.stderr)
            d, *_ = self.serve("--state-dir", state, port=port)
            self.wait_until("a", lambda: [w["name"] for w in self.live_workers()] == ["a"])
            self.assertEqual("drained: it is given no more fragments" in self.ok("workers"), drained)
            if drained:
                self.assertEqual(self.ok("drain", "a", "--undo"), "a: takes fragments again; what the drain moved stays where it is, --rebalance moves it back")

    def test_a_drain_of_what_is_not_there(self):
        self.serve()
        self.offer("left", "cpu=2")
        self.fails(2, 'there is no worker "lefd"; did you mean "left"?', "drain", "lefd")
        self.fails(2, "worker left is not drained", "drain", "left", "--undo")
        self.fails(2, "name one worker", "drain")
        self.fails(2, "name one worker", "drain", "x" * 256)
        failure = self.document(self.fails(2, "no worker", "drain", "nobody", "-o", "json"))
        self.assertEqual(failure["failure"]["code"], "usage")
        self.assertEqual(self.ok("drain", "left"), "left: drained, and empty")
        waiting = self.start("fragctl", "start", self.graph("one"))
        self.wait_until("one", lambda: self.application("one") is not None)
        self.wait_state("one", "waiting")
        self.assertIn("no worker fits f1; worker left is nearest: it is drained", self.ok("explain", "one"))
        self.ok("drain", "left", "--undo")
        self.assertEqual(waiting.wait(), 0, waiting.stderr)
        self.ok("stop", "one")

    def test_bad_questions(self):
        self.serve()
        self.offer("a", "cpu=4")
        self.ok("start", self.graph("good"))
        self.fails(3, "there is no application nobody; `fragctl list` shows", "explain", "nobody")
        self.fails(2, 'good has no fragment and no flow "f11"; did you mean "f1"?', "explain", "good", "f11")
        failure = self.document(self.fails(2, "f11", "explain", "good", "f11", "-o", "json"))
        self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("usage", 2))
        self.fails(2, "name one application", "explain")
        self.fails(2, "name one application", "explain", "a", "b", "c")
        self.assertEqual(self.ok("explain", "good", "f1.tx -> f2.rx").splitlines()[1:],
                         ["f1.tx -> f2.rx: inproc: both fragments run in one process"])
        self.ok("stop", "good")
        self.fails(3, "good has ended, and where it ran is not kept", "explain", "good")

    @unittest.skipIf({"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ), "sanitizers take more address space than the limit")
    def test_a_worker_offers_what_it_may_use(self):
        """Where several limits hold, the least; what the machine has stands beside it."""
        self.serve()
        first = str(min(os.sched_getaffinity(0)))
        self.worker("--name", "a", prefix=("taskset", "-c", first, "prlimit", "--data=536870912"))
        self.worker("--name", "b", "--inventory", "cpu=0,memory=64Gi")
        self.wait_until("both", lambda: len(self.live_workers()) == 2)
        a, b = sorted(self.live_workers(), key=lambda w: w["name"])
        self.assertEqual((a["cores"], b["cores"], b["may_use"]), (1, 0, None))
        self.assertRegex(a["may_use"], r"(1 of \d+ cores \(its affinity\), )?512 MiB of \S+ GiB memory \(ulimit -d\)$")
        self.assertIn("    may use " + a["may_use"], self.ok("workers"))
        self.assertEqual(self.ok("start", self.graph("small", "memory: 512Mi", "memory: 513Mi")), "small: runs")
        self.assertEqual(self.placed("small"), {"f1": "a", "f2": "b"})

    def test_bad_inventories(self):
        for args, sentence in ((("--inventory", "cores=4"), '"cores=4" names none of cpu, gpu'),
                               (("--inventory", "memory=-1"), "memory=-1 is not a valid size"),
                               (("--inventory", "cpu=99999"), "cpu=99999 is too much; give at most 4096"),
                               (("--label", "zone"), '"zone" is not KEY=VALUE')):
            p = self.start("workerd", *args)
            self.assertEqual(p.wait(), 2)
            self.assertIn(sentence, p.stderr)


del ServiceTest
