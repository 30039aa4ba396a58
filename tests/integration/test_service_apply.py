# SPDX-License-Identifier: Apache-2.0
"""fragctl apply: a changed graph for an application that runs starts again only what must.

Ground truth is what the operators print when they start and when their value changes.
"""
import json

from test_service import ServiceTest

GRAPH = """
frag: 1
application: dial
extensions: [libdial.so, libtalker.so]
fragments:
  left:
    operators:
      dial:
        type: dial
        parameters: {value: %(left)s, title: %(title)s}
        conditions: [{type: periodic, recess_period: 5ms}]
  right:
    on_failure: {policy: restart, intensity: %(intensity)s, period: 60s, backoff: 10ms}
    operators:
      dial:
        type: dial
        parameters: {value: %(right)s, title: %(other)s}
        conditions: [{type: periodic, recess_period: 5ms}]
%(more)s
"""
FORM = dict(left=1, title="a", right=2, other="a", intensity=5, more="")


class Apply(ServiceTest):
    def graph(self, **changes):
        return self.write("dial.yaml", GRAPH % dict(FORM, **changes))

    def begin(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.graph())
        w.wait_line("left.dial: begins with 1")
        w.wait_line("right.dial: begins with 2")
        return w

    def starts(self, w, op):
        return w.stderr.count(op + ": begins with")

    def pids(self):
        return {h["fragments"]: h["pid"] for h in self.application("dial")["hosts"]}

    def test_nothing_differs(self):
        self.begin()
        before = self.pids()
        self.assertEqual(self.ok("apply", "dial", self.graph(more="# a remark")),
                         "dial: nothing differs that matters while it runs")
        self.assertEqual(self.pids(), before)

    def test_a_dynamic_parameter_is_set(self):
        w = self.begin()
        before = self.pids()
        dry = self.json("apply", "dial", self.graph(left=7), "--dry-run")
        self.assertEqual((dry["effect"], dry["dry_run"]), ("set", True))
        self.assertEqual(self.application("dial")["parameters"], [])
        self.assertEqual(self.ok("apply", "dial", self.graph(left=7)),
                         "    left.dial.value: 1 -> 7\ndial: was set while it runs")
        w.wait_line("left.dial: now 7, soft")
        self.assertEqual(self.pids(), before)
        self.assertEqual(self.json("apply", "dial", self.graph(left=7))["changes"], [])
        self.ok("restart", "dial")
        w.wait_line("left.dial: begins with 7")

    def test_a_fragment_that_may_is_started_again_alone(self):
        w = self.begin()
        before = self.pids()
        made = self.json("apply", "dial", self.graph(left=7, right=5, other="b"))
        self.assertEqual((made["effect"], made["restarts"], made["run"]), ("fragment", "right", 1))
        self.assertEqual({c["what"]: c["effect"] for c in made["changes"]},
                         {"left.dial.value: 1 -> 7": "set", "right.dial.value: 2 -> 5": "set",
                          "right.dial.title: a -> b": "fragment"})
        w.wait_line("left.dial: now 7, soft")
        self.assertEqual({h["state"] for h in self.application("dial")["hosts"]}, {"running"}, "apply has waited")
        w.wait_line("right.dial: begins with 5")
        after = self.pids()
        self.assertEqual(after["left"], before["left"])
        self.assertNotEqual(after["right"], before["right"])
        self.assertEqual(self.starts(w, "left.dial"), 1)

    def test_the_rest_starts_anew(self):
        w = self.begin()
        self.assertEqual(self.ok("apply", "dial", self.graph(title="b"), "--dry-run"),
                         "    left.dial.title: a -> b\ndial: the application would be stopped and started anew")
        self.assertEqual(self.ok("apply", "dial", self.graph(title="b")),
                         "    left.dial.title: a -> b\ndial: the application was stopped and started anew")
        self.assertEqual(self.application("dial")["run"], 2)
        self.wait_until("both begin", lambda: self.starts(w, "left.dial") == 2 and self.starts(w, "right.dial") == 2)
        more = "  third: {operators: {talker: {type: talker}}}"
        self.assertIn("the application: its fragments", self.ok("apply", "dial", self.graph(title="b", more=more)))
        w.wait_line("third.talker: line 1 of")
        self.assertRegex(self.ok("events"), r"(?m) apply +dial starts it anew \(user ")

    def test_what_is_refused_changes_nothing(self):
        w = self.begin()
        before = self.pids()
        self.fails(2, "101 is out of range", "apply", "dial", self.graph(left=101))
        self.fails(2, "unknown key \"operatorz\"", "apply", "dial", self.write("bad.yaml", "frag: 1\noperatorz: {}\n"))
        self.fails(3, "there is no application nobody", "apply", "nobody", self.graph())
        self.fails(2, "give the name of an application", "apply")
        self.ok("set", "dial", "left.dial.value=9")
        failure = self.document(self.fails(2, "", "apply", "dial", self.graph(left=101), "-o", "json"))
        self.assertEqual(failure["exit_code"], 2)
        self.assertEqual(self.pids(), before)
        self.assertEqual(self.starts(w, "left.dial"), 1)
        self.assertEqual(json.dumps([p["value"] for p in self.application("dial")["parameters"]]), '["9"]')

    def test_what_was_set_is_as_the_graph_says_again(self):
        w = self.begin()
        self.ok("set", "dial", "left.dial.value=9")
        w.wait_line("left.dial: now 9")
        self.assertIn("left.dial.value: 9 -> 1", self.ok("apply", "dial", self.graph()))
        w.wait_line("left.dial: now 1")

    def test_a_large_graph(self):
        """It is more than a client may bring between two beats, so its commands wait for them."""
        remark = ("# " + "x" * 97 + "\n") * 16000
        d, w = self.serve(workers=("a",))
        self.ok("start", self.graph(more=remark))
        w.wait_line("right.dial: begins with 2")
        out = self.ok("apply", "dial", self.graph(left=7, right=8, more=remark))
        self.assertIn("left.dial.value: 1 -> 7", out)
        self.assertIn("right.dial.value: 2 -> 8", out)
        w.wait_line("left.dial: now 7")
        w.wait_line("right.dial: now 8")

    def test_a_graph_that_no_host_can_prepare_gives_way_to_the_one_before(self):
        w = self.begin()
        self.ok("set", "dial", "left.dial.value=9")
        w.wait_line("left.dial: now 9")
        for run, more, why in ((3, "  third: {extensions: [libnowhere.so], operators: {dial: {type: dial}}}", "libnowhere.so"),
                               (5, "  third: {operators: {dial: {type: no_such_type}}}", "no_such_type")):
            code, said = self.ctl("apply", "dial", self.graph(more=more))
            self.assertNotEqual(code, 0)
            self.assertIn(why, said.stderr)
            self.assertIn(f"; dial starts again with the graph before, as run {run}", said.stderr)
            self.wait_until("it runs", lambda: self.application("dial")["state"] == "running")
            self.assertEqual(self.application("dial")["run"], run)
            self.assertEqual(set(self.pids()), {"left", "right"})
        self.assertEqual(w.stderr.count("left.dial: begins with 9"), 2)
        self.assertRegex(self.ok("events"), r"(?m) apply +dial the graph before returns, as run 5$")
        self.ok("restart", "dial")
        self.assertEqual(set(self.pids()), {"left", "right"})

    def test_a_fragment_that_does_not_come_to_run_again(self):
        """What its start failed of is the failure of apply."""
        self.begin()
        code, said = self.ctl("apply", "dial", self.graph(other="refused"))
        self.assertNotEqual(code, 0, said.stdout + said.stderr)
        self.assertNotIn("was started again", said.stdout)
        self.assertIn("this title is refused", said.stderr)

    def test_restarts_are_bounded_by_on_failure(self):
        self.begin()
        self.ok("apply", "dial", self.graph(intensity=1))
        self.assertEqual(self.ok("apply", "dial", self.graph(intensity=1, other="b")).splitlines()[-1],
                         "dial: right was started again")
        self.assertEqual({h["state"] for h in self.application("dial")["hosts"]}, {"running"})
        self.fails(5, "as often as its on_failure allows; try again later", "apply", "dial",
                   self.graph(intensity=1, other="c"))
        self.assertEqual(self.application("dial")["state"], "running")
