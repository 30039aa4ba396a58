# SPDX-License-Identifier: Apache-2.0
"""fragctl set: parameters of applications of a driver change while these run.

Ground truth is what the operator prints when it starts and when its value changes.
"""
import os
import pwd
import signal

import cluster
from test_service import ServiceTest

SLOW_DISK = os.path.join(cluster.BUILD, "tests", "faults", "slow_disk.so")
DIAL = """
frag: 1
application: dial
extensions: [libdial.so]
fragments:
  left:
    operators: {dial: {type: dial, conditions: [{type: periodic, recess_period: 5ms}]}}
  right:
    on_failure: {policy: restart, intensity: 5, period: 60s, backoff: 10ms}
    operators:
      dial: {type: dial, parameters: {value: 2}, conditions: [{type: periodic, recess_period: 5ms}]}
"""
WHO = "user " + pwd.getpwuid(os.geteuid()).pw_name


class Set(ServiceTest):
    def setUp(self):
        super().setUp()
        self.dial = self.write("dial.yaml", DIAL)

    def test_a_value_changes_while_it_runs(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.dial)
        self.assertEqual(self.ok("set", "dial", "left.dial.value=7"), "dial: left.dial.value=7")
        w.wait_line(r"left\.dial: now 7, soft$")
        self.assertEqual(self.json("set", "dial", "right.dial.mode=hard"),
                         {"application": "dial", "run": 1, "parameter": "right.dial.mode", "value": "hard"})
        self.ok("set", "dial", "right.dial.value=9")
        w.wait_line(r"right\.dial: now 9, hard$")
        self.ok("set", "dial", "left.dial.value=8")
        w.wait_line(r"left\.dial: now 8, soft$")
        d.wait_line(r"driver dial: %s sets left\.dial\.value=8" % WHO)
        w.wait_line('parameter "value" is set to 8 by ' + WHO)
        self.assertEqual([(p["name"], p["value"], p["who"]) for p in self.application("dial")["parameters"]],
                         [("right.dial.mode", "hard", WHO), ("right.dial.value", "9", WHO), ("left.dial.value", "8", WHO)])
        self.assertRegex(self.ok("status", "dial", "--no-wait"), r"(?m)^set while it runs:\n(.*\n)*    left\.dial\.value=8, \d+ s ago by " + WHO)
        self.assertRegex(self.ok("events"), r"(?m) set +dial left\.dial\.value=8 \(%s\)$" % WHO)

    def test_what_cannot_be_set_changes_nothing(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.dial)
        for text, sentence in (
                ("left.dial.value=101", "left.dial: parameter \"value\": 101 is out of range; it must be from 0 to 100"),
                ("left.dial.value=many", "left.dial: parameter \"value\": \"many\" is not a valid integer; write a whole number such as 3"),
                ("left.dial.mode=loud", "left.dial: parameter \"mode\": \"loud\" is not a valid choice; choices: soft, hard"),
                ("left.dial.title=x", "left.dial: parameter \"title\" cannot be changed while it runs; those that can: value, mode"),
                ("left.dial.valeu=1", "left.dial: unknown parameter \"valeu\"; did you mean \"value\"?"),
                ("left.dail.value=1", "unknown operator \"dail\"; did you mean \"dial\"?"),
                ("lefd.dial.value=1", "unknown fragment \"lefd\"; did you mean \"left\"?"),
                ("left", "\"left\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE"),
                ("left=1", "\"left=1\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE")):
            with self.subTest(text):
                self.fails(2, sentence, "set", "dial", text)
        self.fails(3, "there is no application dail", "set", "dail", "left.dial.value=1")
        self.fails(2, "is no name of an application", "set", "a.b", "left.dial.value=1")
        self.fails(2, "give the name of one application and one", "set", "dial")
        failure = self.document(self.fails(2, "", "set", "dial", "left.dial.value=101", "-o", "json"))
        self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("usage", 2))
        self.assertEqual(self.application("dial")["parameters"], [])
        self.assertIn("refused", self.ok("events"))
        self.assertNotIn("now ", w.stderr)
        self.ok("stop", "dial")
        self.fails(3, "dial has ended already", "set", "dial", "left.dial.value=1")

    def test_a_host_that_is_started_again_begins_with_it(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.dial)
        w.wait_line(r"right\.dial: begins with 2")
        self.ok("set", "dial", "right.dial.value=9")
        w.wait_line(r"right\.dial: now 9")
        right = [h for h in self.application("dial")["hosts"] if h["fragments"] == "right"]
        os.kill(right[0]["pid"], signal.SIGKILL)
        w.wait_line(r"right\.dial: begins with 9")

    def test_a_restart_and_the_next_driver_begin_with_it(self):
        state = self.path("state")
        d, w = self.serve("--state-dir", state, workers=("a",))
        self.ok("start", self.dial, "--set", "left.dial.value=3")
        self.ok("set", "dial", "left.dial.value=7")
        self.ok("restart", "dial")
        w.wait_line(r"left\.dial: begins with 7")
        self.ok("set", "dial", "left.dial.value=8")
        w.wait_line(r"left\.dial: now 8")
        for daemon in (d, w):
            daemon.kill()
            daemon.wait()
        d, w = self.serve("--state-dir", state, port=int(self.address.rpartition(":")[2]), workers=("a",))
        w.wait_line(r"left\.dial: begins with 8")

    def test_an_answer_comes_before_the_driver_ends(self):
        """Its disk takes 0.2 s for what was set, and it is told to end meanwhile: that is longer
        than clients have to take an answer, and less than the second that it waits."""
        slow = self.path("slow")
        d, _ = self.serve("--state-dir", self.path("state"), workers=("a",),
                          prefix=("env", "LD_PRELOAD=" + SLOW_DISK, "FRAG_TEST_SLOW_DISK=" + slow))
        self.ok("start", self.dial)
        self.write("slow", "")
        p = self.start("fragctl", "set", "dial", "left.dial.value=7")
        d.wait_line(r"sets left\.dial\.value=7")
        d.signal(signal.SIGTERM)
        self.assertEqual((p.wait(), p.stdout.strip()), (0, "dial: left.dial.value=7"), p.stderr)
        self.assertEqual(d.wait(), 0, d.stderr)

    def test_a_driver_without_state_says_what_it_forgets(self):
        self.serve(workers=("a", "b"))
        for command, forgotten in (
                (("start", self.dial), "the next driverd knows dial only if workers still run it then"),
                (("set", "dial", "left.dial.value=7"), "the next driverd does not know that left.dial.value=7 was set"),
                (("restart", "dial"), "the next driverd does not know this restart of dial"),
                (("drain", "b"), "the next driverd does not know that worker b is drained")):
            code, p = self.ctl(*command)
            self.assertEqual((code, p.stderr.splitlines()[0]),
                             (0, "fragctl: driverd keeps no state (it has no --state-dir): " + forgotten))
        for command in ("drain", "b", "--undo"), ("stop", "dial"):
            code, p = self.ctl(*command)
            self.assertEqual((code, p.stderr), (0, ""))

    def test_a_value_that_kills_ends_the_application(self):
        """What an operator dies of was given to it before, so it is kept: the host dies again, and
        the application ends as on_failure says."""
        d, w = self.serve(workers=("a",))
        self.ok("start", self.dial)
        self.ctl("set", "dial", "right.dial.value=13")
        self.wait_until("its end", lambda: not self.application("dial"))
        self.assertIn("as many as its on_failure allows", self.json("list")["ended"][0]["failure"]["sentence"])
