# SPDX-License-Identifier: Apache-2.0
"""Fragments go where what they require is free, and fragctl explain says why."""
import cluster
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
        self.wait_until(name, lambda: name in [x["name"] for x in self.json("workers")["workers"]])
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
        d.wait_line("large: waiting for a worker for f1 .1 worker here.; f1 wants 64 cpu, and no worker has so much; "
                    "worker a has 4")
        self.offer("b", "cpu=64")
        self.assertEqual(waiting.wait(), 0, waiting.stderr)
        self.assertEqual(self.placed("large")["f1"], "b")
        self.ok("stop", "large")

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

    def test_bad_inventories(self):
        for args, sentence in ((("--inventory", "cores=4"), '"cores=4" names none of cpu, gpu'),
                               (("--inventory", "memory=-1"), "memory=-1 is not a valid size"),
                               (("--inventory", "cpu=99999"), "cpu=99999 is too much; give at most 4096"),
                               (("--label", "zone"), '"zone" is not KEY=VALUE')):
            p = self.start("workerd", *args)
            self.assertEqual(p.wait(), 2)
            self.assertIn(sentence, p.stderr)


del ServiceTest

if __name__ == "__main__":
    cluster.main()
