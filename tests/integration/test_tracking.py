# SPDX-License-Identifier: Apache-2.0
"""Data flow tracking by the command line: the results that are printed, and the log."""
import os
import re

import cluster

APP = """
frag: 1
application: app
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 30}]}
  fragment2:
    operators:
      rx: {type: ping_rx}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""
# Of 20 ticks of a, the first one is for tx, and each other one ends a turn.
CYCLE = """
frag: 1
application: app
extensions: [libslow.so]
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 1}]}
      a: {type: slow, conditions: [{type: count, count: 20}]}
    flows: [tx -> a]
  fragment2:
    operators:
      b: {type: slow}
flows:
  - fragment1.a -> fragment2.b
  - fragment2.b -> fragment1.a
"""
PATH = "fragment1.tx,fragment2.rx"
LINE = re.compile(r"\(([\w.]+),(\d+),(\d+)\)")


class Track(cluster.ClusterTest):
    app_text = APP

    def run_app(self, *args, cwd=None):
        run = self.start("fragctl", "run", self.app, "--output", "json", *args, cwd=cwd)
        return run.wait(), run

    def entries(self, path):
        """The entries of a log: [[(operator, received, published), ...], ...], in order."""
        with open(path, encoding="ascii") as f:
            entries = [entry for entry in f.read().strip().split("\n\n") if entry]
        found = []
        for number, entry in enumerate(entries, 1):
            head, line = entry.split("\n")
            self.assertEqual(head, "%d:" % number)
            found.append([(name, int(a), int(b)) for name, a, b in LINE.findall(line)])
        return found

    def test_a_log_by_the_command_line(self):
        for args in (("--track", self.path("a.log")), ("--set", "tracking=" + self.path("a.log"))):
            code, run = self.run_app(*args)
            self.assertEqual(code, 0, run.stderr)
            self.assertEqual(self.summary(run)["result"], "done", "stdout holds the summary alone")
            entries = self.entries(self.path("a.log"))
            self.assertEqual(len(entries), 30)
            for entry in entries:
                self.assertEqual([e[0] for e in entry], PATH.split(","))
                times = [t for e in entry for t in e[1:]]
                self.assertEqual(times, sorted(times))
            self.assertIn("Path 1: %s\n" % PATH, run.stderr)
            self.assertIn("Number of messages: 10\n", run.stderr)
            self.assertIn("fragment1.tx->out: 30", run.stderr)
            os.unlink(self.path("a.log"))

    def test_each_of_two_hosts_has_a_log_of_its_own(self):
        code, run = self.run_app("--workers", "2", "--track", self.path("b.log"))
        self.assertEqual(code, 0, run.stderr)
        self.assertFalse(os.path.exists(self.path("b.log")))
        self.assertEqual(self.entries(self.path("b.log.fragment1")), [], "no path ends there")
        entries = self.entries(self.path("b.log.fragment2"))
        self.assertEqual(len(entries), 30)
        for entry in entries:
            self.assertEqual([step[0] for step in entry], ["fragment1.tx", "fragment2.rx"])
            times = [int(time) for step in entry for time in step[1:]]
            self.assertEqual(times, sorted(times))

    def test_a_path_leads_through_the_hosts_of_the_application(self):
        code, run = self.run_app("--workers", "2", "--track", self.path("b.log"))
        self.assertEqual(code, 0, run.stderr)
        self.assertRegex(run.stderr, r"Path 1: fragment1.tx,fragment2.rx\n")
        self.assertRegex(run.stderr, r"Number of messages: 10\n")
        self.assertRegex(run.stderr, r"of the wait in front of it: fragment1.tx [0-9.]+, fragment2.rx [0-9.]+ "
                                     r"\([0-9.]+: sent after [0-9.]+, network [0-9.]+\)\n")
        self.assertNotIn("Clocks of several nodes", run.stderr, "one clock")

    def test_a_cycle_through_two_hosts_ends_where_it_began(self):
        self.app = self.write("app.yaml", CYCLE + "tracking: {num_start_messages_to_skip: 0, num_last_messages_to_discard: 0}\n")
        code, run = self.run_app("--workers", "2", "--track", self.path("c.log"))
        self.assertEqual(code, 0, run.stderr)
        self.assertRegex(run.stderr, r"Path \d: fragment1.a,fragment2.b,fragment1.a\n")
        self.assertRegex(run.stderr, r"of the wait in front of it: fragment1.a [0-9.]+, "
                                     r"fragment2.b [0-9.]+ \([0-9.]+: sent after [0-9.]+, network [0-9.]+\), "
                                     r"fragment1.a [0-9.]+ \([0-9.]+: sent after [0-9.]+, network [0-9.]+\)\n")
        entries = self.entries(self.path("c.log.fragment1"))
        names = [[step[0] for step in entry] for entry in entries]
        self.assertEqual(names[0], ["fragment1.tx", "fragment1.a", "fragment2.b", "fragment1.a"])
        self.assertEqual(names[1:], 18 * [["fragment1.a", "fragment2.b", "fragment1.a"]])

    def test_probes_belong_to_the_host_of_their_operator(self):
        self.app = self.write("app.yaml", APP.replace("rx: {type: ping_rx}", "mx: {type: forward}\n      rx: {type: ping_rx}\n"
                                                      "    flows: [mx -> rx]").replace("rx.in", "mx.in")
                              + "tracking: {probes: [fragment2.mx]}\n")
        for args in ((), ("--workers", "2")):
            code, run = self.run_app(*args)
            self.assertEqual(code, 0, run.stderr)
            self.assertRegex(run.stderr, r"Path \d: fragment1.tx,fragment2.mx\n")
            self.assertRegex(run.stderr, r"Path \d: fragment1.tx,fragment2.mx,fragment2.rx\n")
            self.assertRegex(run.stderr, r"(?m)\bmx->out: 30$")

    def test_relative_logs_start_in_the_graphs_folder_and_typed_ones_in_the_current_one(self):
        elsewhere = self.path("elsewhere")
        os.mkdir(elsewhere)
        self.app = self.write("app.yaml", APP + "tracking: {log: graph.log}\n")
        for args, log in (
            ((), "graph.log"),
            (("--set", "tracking=set.log"), "set.log"),
            (("--track", "typed.log"), "elsewhere/typed.log"),
        ):
            code, run = self.run_app(*args, cwd=elsewhere)
            self.assertEqual(code, 0, run.stderr)
            self.assertEqual(len(self.entries(self.path(log))), 30)
            os.unlink(self.path(log))
            code, run = self.run_app(*args, "--workers", "2", cwd=elsewhere)
            self.assertEqual(code, 0, run.stderr)
            for fragment, count in (("fragment1", 0), ("fragment2", 30)):
                self.assertEqual(len(self.entries(self.path(log + "." + fragment))), count)
                os.unlink(self.path(log + "." + fragment))
            self.assertEqual(os.listdir(elsewhere), [])

    def test_a_log_that_cannot_be_is_refused(self):
        # a link that somebody planted is replaced
        kept = self.write("kept", "kept")
        os.symlink(kept, self.path("linked.log"))
        code, run = self.run_app("--track", self.path("linked.log"))
        self.assertEqual(code, 0, run.stderr)
        self.assertFalse(os.path.islink(self.path("linked.log")))
        with open(kept) as f:
            self.assertEqual(f.read(), "kept")
        code, run = self.run_app("--track", self.path("nowhere/c.log"))
        self.assertNotEqual(code, 0)
        self.assertIn("cannot write the log of data flow tracking, %s" % self.path("nowhere/c.log"), run.stderr)
        code, run = self.run_app("--track", "")
        self.assertEqual(code, 2)
        self.assertIn("--track names no file; write for example --track flow.log", run.stderr)
