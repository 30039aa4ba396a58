# SPDX-License-Identifier: Apache-2.0
"""Pools of blocks: how many a graph needs, who warns of too few, and what a run that runs out of
them reports."""
import json
import os
import re
import subprocess

import cluster

APP = """
frag: 1
application: app
arguments:
  count: {default: "300"}
  blocks: {default: "1"}
  rows: {default: "64"}
fragments:
  a:
    resources:
      frames: {type: block_memory_pool, block_size: 64MB, num_blocks: "${blocks}"}
    operators:
      tx: &tx
        type: ping_tensor_tx
        parameters: {allocator: $frames, rows: "${rows}", columns: 1024}
        conditions: [{type: count, count: "${count}"}]
%s
"""

INSIDE = """
      rx: {type: ping_tensor_rx}
    flows:
      - {from: tx.out, to: rx.in, %s}
"""

BETWEEN = """
  b:
    operators:
      rx: {type: ping_tensor_rx}
flows:
  - {from: a.tx.out, to: b.rx.in, %s}
"""

HELD = """
      pass: {type: slow, parameters: {sleep_ms: 20}}
    flows: [tx.out -> pass.in]
  b:
    operators:
      pass: {type: slow, parameters: {sleep_ms: 20}}
      rx: {type: slow_rx, parameters: {sleep_ms: 20}}
    flows: [pass.out -> rx.in]
flows:
  - {from: a.pass.out, to: b.pass.in, edge: shm}
"""

# rx receives one message and then nothing for as long as the test lasts.
STUCK = """
      pass: {type: forward}
      rx: {type: ping_tensor_rx, conditions: [{type: periodic, recess_period: 1h}]}
    flows:
      - tx.out -> pass.in
      - {from: pass.out, to: rx.in, capacity: 5}
"""


class Pools(cluster.ClusterTest):
    def fragctl(self, verb, app, *args, **arguments):
        words = [w for k, v in arguments.items() for w in ("--" + k, str(v))]
        path = self.write("app.yaml", APP % app)
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), verb, path, *args, "--", *words],
                              env=self.env, capture_output=True, text=True,
                              timeout=cluster.PATIENCE_S)

    def warnings(self, text):
        return re.findall(r"warn +graph(?: \S+(?: and \d+ more)?)?: (/.*)", text)

    def need(self, app):
        """The number of blocks that the warning about a pool of one asks for."""
        r = self.fragctl("validate", app)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        warning, = self.warnings(r.stderr)
        m = re.search(r"app\.yaml:11:\d+: a\.frames: the pool has 1 block, and (\d+) can be in use "
                      r"at a time .*; set num_blocks to \1 or more", warning)
        self.assertTrue(m, warning)
        return int(m.group(1))

    def test_validate_warns_below_what_the_flows_can_hold(self):
        for app, flow, need in (
                (INSIDE, "policy: block", 2), (INSIDE, "capacity: 5", 6),
                (INSIDE, "policy: fault, capacity: 3", 4), (INSIDE, "policy: pop, capacity: 3", 5),
                (INSIDE, "policy: reject, capacity: 3", 5), (INSIDE, "policy: latest", 3),
                (BETWEEN, "policy: block", 5), (BETWEEN, "policy: fault, capacity: 2", 3),
                (BETWEEN, "policy: pop, capacity: 3", 11), (BETWEEN, "policy: latest", 5),
                (BETWEEN, "policy: reject, capacity: 3", 11)):
            with self.subTest(app=app, flow=flow):
                self.assertEqual(self.need(app % flow), need)
                for blocks, warnings in ((need, 0), (need - 1, 1)):
                    r = self.fragctl("validate", app % flow, blocks=blocks)
                    self.assertEqual((len(self.warnings(r.stderr)), r.returncode), (warnings, 0))

    def test_a_message_on_several_flows_counts_once(self):
        app = "\n".join("      r%d: {type: ping_tensor_rx}" % i for i in range(3)) + "\n    flows:\n"
        flow = "      - {from: tx.out, to: r%d.in, capacity: %d, policy: %s}\n"
        self.assertEqual(self.need(app + "".join(flow % (i, i + 1, "block") for i in range(3))), 4)
        self.assertEqual(self.need(app + "".join(flow % (i, 2, "pop") for i in range(3))), 6)
        policies = ("block", "pop", "reject")
        app += "".join(flow % (i, 2, policy) for i, policy in enumerate(policies))
        self.assertEqual(self.need(app), 3 + 1 + 3)

    def test_operators_that_share_a_pool_add_up(self):
        self.assertEqual(self.need("""
      tx2: *tx
      rx: {type: ping_tensor_rx}
      rx2: {type: ping_tensor_rx}
    flows: [tx.out -> rx.in, "tx2.out -> rx2.in"]
"""), 4)

    def test_a_run_warns_as_validate_does(self):
        app = BETWEEN % "policy: block"
        expected = self.warnings(self.fragctl("validate", app).stderr)
        for args in ((), ("--workers", "2")):
            r = self.fragctl("run", app, *args, count=0)
            self.assertEqual(self.warnings(r.stderr), expected, r.stderr)

    def test_as_many_blocks_as_asked_for_suffice(self):
        for flow in ("capacity: 1", "capacity: 4", "policy: pop, capacity: 2",
                     "policy: reject, capacity: 2", "policy: latest"):
            for app, args in ((INSIDE, ()), (BETWEEN, ()), (BETWEEN, ("--workers", "2"))):
                with self.subTest(flow=flow, args=args):
                    text = app % flow
                    # Between hosts the room may be known before the block is back (GRAPH.md).
                    blocks = self.need(text) + (1 if args else 0)
                    r = self.fragctl("run", text, "-q", *args, blocks=blocks)
                    self.assertEqual(r.returncode, 0, r.stderr)

    def test_what_allocators_give_is_not_copied_between_hosts_that_share_memory(self):
        app = APP % (BETWEEN % "edge: shm")
        for allocator in ("$frames", "$more", None):
            with self.subTest(allocator=allocator):
                more = "      more: {type: unbounded_allocator}\n    operators:"
                text = app.replace("    operators:", more, 1)
                text = text.replace("allocator: $frames, ", f"allocator: {allocator}, " if allocator else "")
                path = self.write("app.yaml", text)
                r = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "run", "-q", "--workers",
                                    "2", "--output", "json", path, "--", "--blocks", "50",
                                    "--count", "20"],
                                   env=self.env, capture_output=True, text=True,
                                   timeout=cluster.PATIENCE_S)
                self.assertEqual(r.returncode, 0, r.stderr)
                flow, = json.loads(r.stdout)["flows"]
                self.assertEqual((flow["edge"], flow["delivered"], flow["copied_bytes"]), ("shm", 20, 0))

    def test_a_sender_waits_for_the_block_that_another_host_holds(self):
        """It comes back behind the message, which has arrived by then: so nothing is on the way."""
        waits = "conditions: [{type: memory_available, allocator: $frames, min_blocks: 1}, "
        text = (APP % HELD).replace("conditions: [", waits)
        text = text.replace("fragments:", "extensions: [libslow.so]\nfragments:")
        path = self.write("app.yaml", text)
        command = [os.path.join(cluster.BIN, "fragctl"), "run", "-q", "--workers", "2"]
        r = subprocess.run([*command, "--output", "json", path, "--", "--count", "6"], env=self.env,
                           capture_output=True, text=True, timeout=cluster.PATIENCE_S)
        self.assertEqual(r.returncode, 0, r.stderr)
        flow = next(f for f in json.loads(r.stdout)["flows"] if f["from"] == "a.pass.out")
        self.assertEqual((flow["edge"], flow["delivered"]), ("shm", 6))

    def failure(self, app, *args, **arguments):
        r = self.fragctl("run", app, "-q", "--output", "json", *args, **arguments)
        self.assertEqual(r.returncode, 1, r.stderr)
        failure = json.loads(r.stdout)["failure"]
        self.assertEqual((failure["code"], failure["operator"]), ("pool_exhausted", "a.tx"))
        return failure["sentence"]

    def test_a_run_out_of_blocks_names_the_flows_that_hold_them(self):
        sentence = self.failure(STUCK, blocks=4)
        self.assertRegex(sentence, r'^a\.tx: pool "frames" ran out of its 4 blocks, and messages wait: '
                                   r"\d in a\.pass\.out -> a\.rx\.in")
        self.assertRegex(sentence, "set num_blocks to 5 or more$")

    def test_the_flows_to_other_hosts_are_named(self):
        # Over UCX a message of this size is still on its way when the next one is made.
        sentence = self.failure(BETWEEN % "edge: ucx", "--workers", "2", rows=65536, blocks=1)
        self.assertRegex(sentence, r'^a\.tx: pool "frames" ran out of its 1 block, and messages wait: '
                                   r"1 in a\.tx\.out -> b\.rx\.in")
        self.assertRegex(sentence, "set num_blocks to 5 or more$")
