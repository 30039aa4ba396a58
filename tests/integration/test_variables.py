# SPDX-License-Identifier: Apache-2.0
"""Shared variables between two hosts, each confined as hosts are, and inside one."""
import errno
import json
import re
import signal

import cluster

VARIABLES = """\
  a: {type: f64, writer: one.w, readers: [two.r%s]}
  b: {type: f64, writer: one.w, readers: [two.r]}
  c: {type: f64, writer: two.r, readers: [one.w]}
"""


def refused(step, name):
    return "%s: -%d" % (step, getattr(errno, name))


class Variables(cluster.ClusterTest):
    def graph(self, one, two, more="", reader=""):
        """one, two: the steps of operator w of fragment one and r of two (sample_plugins/sharer.c)."""
        return self.write("app.yaml", "frag: 1\napplication: app\nextensions: [libsharer.so]\n"
                          "variables:\n%sfragments:\n"
                          "  one: {operators: {w: {type: sharer, parameters: {steps: %s}}%s}}\n"
                          "  two: {operators: {r: {type: sharer, parameters: {steps: %s}}}}\n"
                          % (VARIABLES % reader, json.dumps(one), more, json.dumps(two)))

    def steps_of(self, stderr, op):
        return re.findall(r"op app/%s: (?!begins )(.*)$" % re.escape(op), stderr, re.M)

    def start_both(self, app, *args):
        driver = self.driver(app, "--output", "json", *args)
        return driver, [self.worker("--once", fragments=f) for f in ("one", "two")]

    def run_both(self, one, two):
        """What w and r logged, each in the host of a workerd of its own."""
        driver, workers = self.start_both(self.graph(one, two))
        self.assert_done(driver, workers, 120)
        self.assert_nothing_left()
        return (self.steps_of(workers[0].stderr, "one.w"), self.steps_of(workers[1].stderr, "two.r"),
                json.loads(driver.stdout))

    def test_a_reader_gets_what_is_published_and_nothing_before(self):
        w, r, summary = self.run_both(
            ["publish b", "wait c 0", "write a 7", "unmap a", "publish a", "wait c 1", "write a 8", "publish b",
             "wait c 2", "unmap a", "publish a"],
            ["wait b 0", "read a", "publish c", "await a", "publish c", "wait b 1", "read a", "publish c",
             "wait a 1", "read a"])
        for step in w:
            self.assertNotIn(": -", step)
        self.assertEqual(r, ["wait b 0: 0", refused("read a", "EAGAIN"), "publish c: 0", "await a: 0 7",
                             "publish c: 0", "wait b 1: 0", refused("read a", "EBUSY"), "publish c: 0",
                             "wait a 1: 0", "read a: 0 8"])
        self.assertEqual(summary["flows"], [], "a variable makes no flow")

    def test_two_hosts_of_one_worker_share(self):
        app = self.graph(["write a 7", "unmap a", "publish a", "wait c 0"], ["await a", "publish c"])
        with open(app, encoding="utf-8") as f:
            text = f.read()
        self.write("app.yaml", text.replace("  two: {", "  two: {host: other, "))
        driver = self.driver(app, "--output", "json")
        worker = self.worker("--once")
        self.assertEqual(driver.wait(120), 0, driver.stderr)
        self.assertEqual(worker.wait(), 0, worker.stderr)
        self.assert_nothing_left()
        one, two = json.loads(driver.stdout)["fragments"]
        self.assertNotEqual(one["host_pid"], two["host_pid"])
        self.assertEqual(self.steps_of(worker.stderr, "two.r"), ["await a: 0 7", "publish c: 0"])
        self.assertEqual(self.steps_of(worker.stderr, "one.w")[-1], "wait c 0: 0")

    def test_one_writes_or_some_read(self):
        w, r, _ = self.run_both(
            ["publish a", "publish b", "wait c 0", "write a 1", "publish c", "publish b", "wait c 1", "write a 2",
             "unmap a"],
            ["wait b 0", "hold a", "write a 3", "publish c", "wait b 1", "unmap a", "publish c"])
        self.assertEqual(w[3:5], [refused("write a 1", "EBUSY"), refused("publish c", "EACCES")])
        self.assertEqual(w[-2:], ["write a 2: 0", "unmap a: 0"])
        self.assertEqual(r[2], refused("write a 3", "EACCES"))

    def test_created_while_it_runs(self):
        w, r, _ = self.run_both(
            ["create t", "create a", "allocate t", "write t 5", "unmap t", "publish b", "wait c 0", "publish t",
             "publish b", "wait c 1", "write t 6", "publish b", "wait c 2", "unmap t"],
            ["wait b 0", "open t", "publish c", "wait b 1", "read t", "write t 1", "publish c", "wait b 2", "read t",
             "create t", "create u", "open u", "publish c"])
        self.assertEqual(w[1], refused("create a", "EEXIST"))
        self.assertEqual(r[1], refused("open t", "ENOENT"))
        self.assertEqual(r[4:6], ["read t: 0 5", refused("write t 1", "EACCES")])
        self.assertEqual(r[8:10], [refused("read t", "EBUSY"), refused("create t", "EEXIST")])

    def test_a_name_is_published_once(self):
        w, r, _ = self.run_both(["create t", "allocate t", "publish t", "publish b"],
                                ["create t", "allocate t", "wait b 0", "publish t"])
        self.assertEqual((w[2], r[3]), ("publish t: 0", refused("publish t", "EEXIST")))

    def test_a_refusal_that_is_not_handled_ends_the_application(self):
        app = self.graph(["write a 1", "publish b", "wait c 0"], ["wait b 0", "must read a"])
        driver, workers = self.start_both(app)
        self.assertEqual(driver.wait(120), 1)
        summary = json.loads(driver.stdout)
        self.assertEqual(summary["failure"]["code"], "operator_failed")
        self.assertEqual(summary["failure"]["operator"], "two.r")
        self.assertIn("variable a cannot be read: it is being written", summary["failure"]["sentence"])
        for w in workers:
            w.wait()
        self.assert_nothing_left()

    def test_in_one_process_it_is_the_same(self):
        app = self.graph(["publish b", "wait c 0", "write a 7", "publish b", "wait c 1", "unmap a", "publish a"],
                         ["wait b 0", "read a", "publish c", "wait b 1", "read a", "write a 1", "publish c",
                          "await a"],
                         more=", v: {type: sharer, parameters: {steps: [await a, write a, read b]}}",
                         reader=", one.v")
        p = self.start("fragctl", "run", app)
        self.assertEqual(p.wait(60), 0, p.stderr)
        self.assertEqual(self.steps_of(p.stderr, "two.r"),
                         ["wait b 0: 0", refused("read a", "EAGAIN"), "publish c: 0", "wait b 1: 0",
                          refused("read a", "EBUSY"), refused("write a 1", "EACCES"), "publish c: 0",
                          "await a: 0 7"])
        self.assertEqual(self.steps_of(p.stderr, "one.v"),
                         ["await a: 0 7", refused("write a", "EACCES"), refused("read b", "EACCES")])

    def test_a_writer_that_dies_leaves_nothing(self):
        driver, workers = self.start_both(self.graph(["write a 1", "publish b", "abort"],
                                                     ["wait b 0", "await a"]))
        self.assertEqual(driver.wait(120), 1)
        self.assertEqual(json.loads(driver.stdout)["failure"]["code"], "host_crashed")
        for w in workers:
            w.wait()
        self.assert_nothing_left()

    def test_a_stop_ends_a_wait(self):
        driver, workers = self.start_both(self.graph(["publish b", "await c"], ["wait b 0", "await a"]))
        workers[1].wait_line(r"begins await a")
        driver.signal(signal.SIGTERM)
        self.assert_done(driver, workers, 60)
        self.assertEqual(self.steps_of(workers[1].stderr, "two.r")[1:], [refused("await a", "ECANCELED")])

    def test_an_operator_that_a_composer_does_not_make(self):
        self.write("app.yaml", "frag: 1\napplication: app\nextensions: [libgood.so]\n"
                   "variables: {a: {type: f32, writer: f.no, readers: [f.sink]}}\n"
                   "fragments: {f: {compose: line}}\n")
        p = self.start("fragctl", "validate", self.path("app.yaml"))
        self.assertEqual(p.wait(), 2)
        self.assertIn('app.yaml:4:36: variables.a: writer f.no: fragment f has no operator "no"; operators: ', p.stderr)
