# SPDX-License-Identifier: Apache-2.0
"""Runs under a manual clock come out the same each time."""
import json
import re

import cluster

# Short enough that all lines fit into a pipe: the log drops lines that nobody reads.
# Two fragments; messages that wait in a batch; a limit in time; a queue that overflows.
GRAPH = """frag: 1
application: app
clock: manual
fragments:
  f:
    scheduler: {type: greedy, max_duration_ms: 20000}
    operators:
      slow: {type: ping_tx, conditions: [{type: periodic, recess_period: 70ms}]}
      fast:
        type: ping_tx
        conditions: [{type: periodic, recess_period: 30ms}, {type: count, count: 300}]
      lazy: {type: forward, conditions: [{type: periodic, recess_period: 100ms}]}
      rx: {type: ping_rx}
    flows: [slow -> rx, {from: fast, to: lazy, capacity: 2, policy: pop}, lazy -> rx]
  g:
    scheduler: {type: SCHEDULER, max_duration_ms: 21000}
    operators:
      batch:
        type: forward
        conditions:
          - {type: expiring_message_available, max_batch_size: 5, max_delay_ns: 250ms}
      rx: {type: ping_rx}
    flows: [batch -> rx]
flows: [{from: f.slow, to: g.batch, capacity: 8}]
"""
# What belongs to the machine: docs/GRAPH.md, "Clocks".
MACHINE = re.compile(r'"(started_unix_ns|first_message_ns|duration_ns|shutdown_ns|host_pid)": \d+')


class Repeated(cluster.ClusterTest):
    def run_once(self, app):
        p = self.start("fragctl", "run", "--output", "json", app)
        self.assertEqual(p.wait(60), 0, p.stderr)
        # Without the time of day; each operator's lines are in order.
        lines = sorted(re.findall(r"info  op (\S+) (Rx .*)", p.stderr), key=lambda line: line[0])
        return MACHINE.sub(r'"\1": 0', p.stdout), lines

    def test_two_runs_under_a_manual_clock_are_the_same(self):
        for scheduler in ("greedy", "event_based, worker_thread_number: 4"):
            app = self.write("app.yaml", GRAPH.replace("SCHEDULER", scheduler))
            summary, lines = self.run_once(app)
            for _ in range(3):
                again, lines_again = self.run_once(app)
                self.assertEqual(again, summary)
                self.assertEqual(lines_again, lines)
            document = json.loads(summary)
            self.assert_balanced(document)
            flows = {flow["from"]: flow for flow in document["flows"] if flow["to"] != "g.batch.in"}
            self.assertEqual(flows["f.slow.out"]["sent"], 286)
            self.assertEqual(flows["f.lazy.out"]["sent"], 92)
            self.assertEqual(flows["f.fast.out"]["dropped"]["queue_full"], 300 - 92)
            between = next(flow for flow in document["flows"] if flow["to"] == "g.batch.in")
            self.assertEqual(between["latency_ns"]["max"], 250000000, "in the clock's time")
