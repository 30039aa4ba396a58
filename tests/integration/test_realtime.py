# SPDX-License-Identifier: Apache-2.0
"""Real-time operators: what the kernel granted stands in the summary, through driver and workers
too; what it refuses ends the application before anything runs."""
import ctypes
import json
import os
import subprocess

import cluster
from test_driver import matches

CAP_SYS_NICE = 23
PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522

with open(os.path.join(cluster.TOP, "docs", "summary.schema.json")) as f:
    SCHEMA = json.load(f)

APP = """
frag: 1
application: app
thread_pools:
  p: {add: [{operators: [rx], sched_policy: fifo, sched_priority: 12%s}]}
operators: {tx: {type: ping_tx, conditions: [{type: count, count: 3}]}, rx: {type: ping_rx}}
flows: [tx -> rx]
"""
PACED = """
frag: 1
application: app
fragments:
  one:
    thread_pools:
      p: {add: [{operators: tx, sched_policy: deadline, sched_runtime: 1ms, sched_period: 20ms%s}]}
    operators: {tx: {type: ping_tx, conditions: [{type: count, count: 6}]}}
  two: {operators: {rx: {type: ping_rx}}}
flows: [one.tx -> two.rx]
"""


def without_privilege():
    """In a child, before it becomes another program: no real time from now on."""
    import resource
    libc = ctypes.CDLL(None)
    head, sets = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3), (ctypes.c_uint32 * 6)()
    libc.prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0)
    libc.capget(head, sets)
    sets[2] &= ~(1 << CAP_SYS_NICE)  # root inherits it, which containers let it
    libc.capset(head, sets)
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))


def may():
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        return False
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    return True


class Realtime(cluster.ClusterTest):
    def run_app(self, best_effort, *flags, privileged=True, graph=APP):
        """The exit code, the summary, stderr."""
        app = self.write("app.yaml", graph % (", best_effort: true" if best_effort else ""))
        fragctl = os.path.join(cluster.BUILD, "bin", "fragctl")
        p = subprocess.run([fragctl, "run", *flags, app, "--output", "json"],
                           capture_output=True, text=True, env=self.env, timeout=60, check=False,
                           preexec_fn=None if privileged else without_privilege)
        summary = json.loads(p.stdout)
        self.assertIsNone(matches(summary, SCHEMA, SCHEMA, "summary"))
        return p.returncode, summary, p.stderr

    def operators(self, summary):
        return {op["name"]: op.get("realtime") for op in summary["fragments"][0]["operators"]}

    def test_what_was_granted(self):
        granted = {"policy": "fifo", "priority": 12} if may() else {"policy": "other"}
        for flags in ((), ("--workers", "1")):
            code, summary, errors = self.run_app(True, *flags)
            self.assertEqual((code, self.operators(summary)),
                             (0, {"tx": None, "rx": granted}), errors)

    def test_a_deadline_paces_in_one_process_and_in_two(self):
        for flags in ((), ("--workers", "2")):
            for privileged in (True, False):
                code, summary, errors = self.run_app(True, *flags, privileged=privileged,
                                                     graph=PACED)
                self.assertEqual(code, 0, errors)
                self.assertGreaterEqual(summary["duration_ns"], 75e6, (flags, privileged))
                self.assertEqual(summary["flows"][0]["delivered"], 6)

    def test_what_was_refused(self):
        code, summary, errors = self.run_app(True, privileged=False)
        self.assertEqual((code, self.operators(summary)),
                         (0, {"tx": None, "rx": {"policy": "other"}}), errors)
        self.assertIn("app.rx: SCHED_FIFO, priority 12 is refused", errors)
        self.assertIn("LimitRTPRIO=12", errors)
        code, summary, errors = self.run_app(False, privileged=False)
        self.assertEqual((code, summary["result"]), (1, "failed"), errors)
        self.assertIn("app.rx: SCHED_FIFO, priority 12 is refused", summary["failure"]["sentence"])
        self.assertIn("or write best_effort: true", summary["failure"]["sentence"])
        self.assertEqual([op["ticks"] for op in summary["fragments"][0]["operators"]], [0, 0])
