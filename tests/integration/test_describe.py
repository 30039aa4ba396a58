# SPDX-License-Identifier: Apache-2.0
"""fragctl describe and fragctl graph: the plan of an application, as a table, as JSON, drawn; and
what fragctl validate finds, as JSON."""
import json
import os
import signal
import stat
import subprocess
import unittest

import cluster
from test_driver import matches

APP = """
frag: 1
application: app
fragments:
  left:
    scheduler: {type: greedy}
    host: main
    resources: {pool: {type: block_memory_pool, block_size: 1KB, num_blocks: 6}}
    operators:
      tx:
        type: ping_tensor_tx
        parameters: {allocator: $pool, rows: 4, columns: 8}
        conditions: [{type: count, count: 3}, {type: periodic, recess_period: 10ms}]
      near: {type: forward, ports: {in: {capacity: 2, policy: pop}, out: {condition: none}}}
    flows: [tx -> near.in]
  right:
    scheduler: {worker_thread_number: 3}
    operators: {rx: {type: ping_tensor_rx}, more: {type: ping_tensor_rx}}
flows:
  - {from: left.tx.out, to: right.rx.in, edge: ucx, capacity: 2}
  - left.near.out -> right.more.in
"""

TABLE = """\
app: 2 fragments, 4 operators, 3 flows
clock of the machine

fragment left: greedy, 1 thread, host main
  tx    ping_tensor_tx
      ports      out out: tensor
      runs when  downstream_affordable(out), count(count: 3), periodic(recess_period: 10000000, policy: "catch_up_missed_ticks")
  near  forward
      ports      in in: message, out out: message
      runs when  message_available(in)
  pool  block_memory_pool: 6 blocks of 1 KiB = 6 KiB; 4 can be in use at a time

fragment right: event_based, 3 threads
  rx    ping_tensor_rx
      ports      in in: tensor
      runs when  message_available(in)
  more  ping_tensor_rx
      ports      in in: tensor
      runs when  message_available(in)

flow                            type     capacity  policy  memory    edge
left.tx.out   -> left.near.in   tensor          2  pop     6 KiB     inproc
left.tx.out   -> right.rx.in    tensor          2  block   6 KiB     ucx
left.near.out -> right.more.in  message         4  block   64 MiB    auto
"""


with open(os.path.join(cluster.TOP, "docs", "plan.schema.json")) as f:
    SCHEMA = json.load(f)


class PlanTest(cluster.ClusterTest):
    def fragctl(self, *args, **kwargs):
        p = self.start("fragctl", *args, **kwargs)
        return p.wait(60), p

    def app(self):
        return self.write("app.yaml", APP)

    def document(self, code, *args):
        """The one document on stdout, which is as the schema says."""
        got, p = self.fragctl(*args, "--output", "json")
        self.assertEqual(got, code, p.stdout + p.stderr)
        value = json.loads(p.stdout)
        self.assertIsNone(matches(value, SCHEMA, SCHEMA, "plan"))
        return value


class Finding(PlanTest):
    """What fragctl validate says to programs."""

    def test_a_valid_graph(self):
        found = self.document(0, "validate", self.app())
        self.assertEqual((found["valid"], found["application"], found["errors"], found["counts"]),
                         (True, "app", [], {"fragments": 2, "operators": 4, "flows": 3}))

    def test_errors_with_their_places_and_what_was_wanted(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
operators:
  tx: {type: ping_tx, watchdog: soon}
  rows: {type: ping_tensor_tx, parameters: {rows: many}}
  rx: {type: ping_rx, ports: {in: {capacity: 70000}}}
  video: {type: ping_tensor_rx}
flows:
  - tx -> rx
  - tx -> video
""")
        found = self.document(2, "validate", app)
        self.assertEqual((found["valid"], found["digest"], found["counts"]), (False, None, None))
        self.assertEqual(
            [(e["code"], e["line"], e["column"], e["path"], e["required"], e["provided"])
             for e in found["errors"]],
            [("graph_invalid", 4, 33, "operators.tx.watchdog", "a duration", "soon"),
             ("graph_invalid", 5, 51, "operators.rows.parameters.rows",
              "integer; write a whole number such as 3", "many"),
             ("graph_invalid", 6, 46, "operators.rx.ports.in.capacity",
              "a whole number from 1 to 65536", "70000"),
             ("graph_invalid", 10, 5, "flows[1]", "tensor", "i64")])
        self.assertEqual({e["file"] for e in found["errors"]}, {app})

    def test_a_range(self):
        for value, required in (("-1", "from 0 to 2"), ("3", "from 0 to 2")):
            app = self.write("app.yaml", APP.replace("num_blocks: 6", "num_blocks: 6, storage_type: " + value))
            error = self.document(2, "validate", app)["errors"][0]
            self.assertEqual((error["required"], error["provided"]), (required, value))

    def test_warnings(self):
        app = self.write("app.yaml", APP.replace("num_blocks: 6", "num_blocks: 2"))
        found = self.document(0, "validate", app)
        self.assertTrue(found["valid"])
        self.assertEqual([w["path"] for w in found["warnings"]], ["fragments.left.resources.pool"])

    def test_errors_of_a_config(self):
        config = self.write("more.yaml", "rates: {first: [1, 2\n")
        error = self.document(2, "validate", self.app(), "--config", config)["errors"][0]
        self.assertEqual((error["file"], error["path"]), (config, None))

    def test_what_is_not_there_or_crashes(self):
        error = self.document(3, "validate", self.path("none.yaml"))["errors"][0]
        self.assertEqual((error["code"], error["file"], error["path"]), ("file_missing", None, None))
        app = self.write("app.yaml", "frag: 1\napplication: app\nextensions: [libgood.so]\n"
                         "operators: {a: {type: sink, parameters: {fail: crash}}}\n")
        found = self.document(1, "validate", app, "--library-path",
                              os.path.join(cluster.BUILD, "tests", "sample_plugins"))
        self.assertFalse(found["valid"])
        self.assertIn("app.a: setup crashed", found["errors"][0]["sentence"])

    def test_a_line_and_a_plan_with_errors(self):
        error = self.document(2, "validate", "-e", "ping_tx cout=1 ! ping_rx")["errors"][0]
        self.assertIn('did you mean "count"', error["sentence"])
        app = self.write("app.yaml", APP.replace("ping_tensor_rx}}", "ping_tensor_rxx}}"))
        found = self.document(2, "describe", app)
        self.assertEqual([e["path"] for e in found["errors"]], ["fragments.right.operators.more"])


class Plan(PlanTest):
    def test_a_reader_that_goes_ends_it_quietly(self):
        app = self.app()
        read, write = os.pipe()
        os.close(read)
        p = subprocess.run([os.path.join(cluster.BUILD, "bin", "fragctl"), "describe", app],
                           stdout=write, stderr=subprocess.PIPE, env=self.env)
        os.close(write)
        self.assertEqual((p.returncode, p.stderr), (-signal.SIGPIPE, b""))

    def test_the_digest_is_that_of_the_plan(self):
        digests = [self.document(0, verb, app)["digest"]
                   for app in (self.app(), self.write("same.yaml", "# the same\n" + APP),
                               self.write("other.yaml", APP.replace("rows: 4", "rows: 5")))
                   for verb in ("describe", "validate")]
        self.assertEqual(digests[:1] * 4, digests[:4])
        self.assertEqual(digests[4], digests[5])
        self.assertNotEqual(digests[0], digests[4])

    def test_table(self):
        code, p = self.fragctl("describe", self.app())
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertTrue(p.stdout.startswith(TABLE), p.stdout)

    def test_json(self):
        plan = self.document(0, "describe", self.app())
        left, right = plan["fragments"]
        self.assertEqual([(f["name"], f["host"], f["scheduler"], f["threads"])
                          for f in plan["fragments"]],
                         [("left", "main", "greedy", 1), ("right", None, "event_based", 3)])
        tx, near = left["operators"]
        self.assertEqual([c["type"] for c in tx["conditions"]],
                         ["downstream_affordable", "count", "periodic"])
        self.assertEqual((tx["conditions"][1]["parameters"]["count"], tx["parameters"]["allocator"]),
                         (3, "$pool"))
        self.assertEqual([(c["type"], c["port"]) for c in near["conditions"]],
                         [("message_available", "in")])
        pool = left["resources"][0]
        self.assertEqual((pool["blocks"], pool["block_bytes"], pool["blocks_needed"]), (6, 1024, 4))
        flows = {(f["from"], f["to"]): f for f in plan["flows"]}
        inner = flows["left.tx.out", "left.near.in"]
        self.assertEqual((inner["capacity"], inner["policy"], inner["edge"], inner["bytes_max"]),
                         (2, "pop", "inproc", 6 * 1024))
        insisting = flows["left.tx.out", "right.rx.in"]
        self.assertEqual((insisting["edge"], insisting["edge_reason"], insisting["capacity"]),
                         ("ucx", "the graph asks for it", 2))
        free = flows["left.near.out", "right.more.in"]
        self.assertEqual((free["edge"], free["bytes_max"]), ("auto", 64 << 20))

    def test_memory_of_gpus(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
fragments:
  a:
    resources:
      frames: {type: block_memory_pool, storage_type: 1, block_size: 1KiB, num_blocks: 8}
      own: {type: stream_ordered_allocator, dev_id: 1, device_memory_initial_size: 1MiB,
            device_memory_max_size: 1MiB}
      later: {type: rmm_allocator, device_memory_initial_size: 0}
      host: {type: block_memory_pool, block_size: 1KiB, num_blocks: 8}
    operators:
      tx: {type: ping_tensor_tx, parameters: {allocator: $frames, storage_type: device}}
      own: {type: ping_tensor_tx, parameters: {allocator: $own, storage_type: device}}
      later: {type: ping_tensor_tx, parameters: {allocator: $later, storage_type: device}}
      plain: {type: ping_tensor_tx, parameters: {allocator: $host}}
      near: {type: ping_tensor_rx}
    flows: [{from: tx, to: near}]
    requirements: {labels: {gpu: left}}
  b:
    resources:
      frames: {type: block_memory_pool, storage_type: 1, block_size: 1KiB, num_blocks: 8}
    operators:
      auto: {type: ping_tensor_rx}
      ucx: {type: ping_tensor_rx}
      secret: {type: ping_tensor_rx}
      own: {type: forward, resources: [$frames]}
      later: {type: ping_tensor_rx}
      plain: {type: ping_tensor_rx}
  c:
    host: other
    operators: {auto: {type: ping_tensor_rx}, shm: {type: ping_tensor_rx}}
  d: {operators: {in: {type: ping_tensor_rx}}, requirements: {labels: {gpu: right, zone: a}}}
  e: {operators: {in: {type: ping_tensor_rx}}, requirements: {labels: {zone: a}}}
  f: {operators: {in: {type: ping_tensor_rx}}, requirements: {apart: a}}
  g: {operators: {in: {type: ping_tensor_rx}}, requirements: {near: d}}
  h: {operators: {in: {type: ping_tensor_rx}}, requirements: {near: a}}
  i: {operators: {in: {type: ping_tensor_rx}}, requirements: {mig: 1g.10gb}}
flows:
  - {from: a.tx, to: [d.in, e.in, f.in, g.in, h.in, i.in]}
  - {from: a.tx, to: b.auto}
  - {from: a.tx, to: b.ucx, edge: ucx}
  - {from: a.tx, to: b.secret, encrypt: on}
  - {from: a.own, to: b.own}
  - {from: a.later, to: b.later}
  - {from: a.plain, to: b.plain}
  - {from: a.tx, to: c.auto}
  - {from: a.tx, to: c.shm, edge: shm}
""")
        flows = {f["to"]: (f["gpu_memory"], f["gpu_memory_reason"])
                 for f in self.document(0, "describe", app)["flows"]}
        either = "by pointer if one host runs both fragments; between hosts "
        mapped = ("mapped where both hosts see the same GPU 0 of one machine, the receiving one uses "
                  "it before the start, and the tensor has no gaps between its elements; else staged")
        self.assertEqual(flows, {
            "a.near.in": (["pointer"], "by pointer: both ends are in one process"),
            "b.auto.in": (["pointer", "mapped", "staged"],
                          either + "mapped where both hosts see the same GPU 0 of one machine and "
                          "the tensor has no gaps between its elements; else staged"),
            "b.ucx.in": (["staged"], "staged: the edge is ucx"),
            "b.secret.in": (["pointer", "staged"], either + "staged: the flow is encrypted"),
            "b.own.in": (["pointer", "mapped", "staged"],
                         either + "mapped where both hosts see the same GPU 1 of one machine, the "
                         "receiving one uses it before the start, and the tensor has no gaps "
                         "between its elements; else, and where it does not fit into "
                         "device_memory_initial_size, staged; it stays on GPU 1 unless it is "
                         "staged, and the receiver's own memory is on GPU 0"),
            "b.later.in": (["pointer", "staged"],
                           either + "staged: of the sender's allocators, other hosts can map none"),
            "b.plain.in": ([], None),
            "c.auto.in": (["mapped", "staged"],
                          "mapped where both hosts see the same GPU 0 of one machine, the "
                          "receiving one uses it before the start, and the tensor has no gaps "
                          "between its elements; else staged"),
            # labels, apart, and those that are near one with such a label
            "d.in.in": (["mapped", "staged"], mapped),
            "e.in.in": (["pointer", "mapped", "staged"], either + mapped),
            "f.in.in": (["mapped", "staged"], mapped),
            "g.in.in": (["mapped", "staged"], mapped),
            "h.in.in": (["pointer", "mapped", "staged"], either + mapped),
            "i.in.in": (["staged"], "staged: a MIG instance is a GPU of its own"),
            "c.shm.in": (["mapped", "staged"],
                         "mapped where both hosts see the same GPU 0, the receiving one uses it "
                         "before the start, and the tensor has no gaps between its elements; else "
                         "staged"),
        })
        code, p = self.fragctl("describe", app)
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertIn("  auto, GPU memory by pointer, mapped or staged\n", p.stdout)
        self.assertIn("  inproc, GPU memory by pointer\n", p.stdout)
        self.assertEqual(p.stdout.count("  GPU memory: staged: the edge is ucx\n"), 1)

    @unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")),
                         "built without FFmpeg's libraries")
    def test_what_decodes(self):
        rows = (("decoder: cpu, format: nv12, pool: $gpu", "cpu: decoder says so"),
                ("format: nv12, pool: $host", "cpu: no allocator of frames has memory of a GPU only"),
                ("format: nv12, allocator: $both", "cpu: no allocator of frames has memory of a GPU only"),
                ("format: nv12", "cpu: no allocator of frames has memory of a GPU only"),
                ("pool: $gpu", "cpu: a GPU makes nv12 and p010, and format is rgb8"),
                ("decoder: gpu, format: p010, pool: $gpu",
                 "gpu 1; where its driver cannot, the start is refused"),
                ("format: nv12, allocator: $gpu",
                 "gpu 1 where its driver has a decoder for the file, else cpu; the log of the run "
                 "reports which"))
        app = self.write("app.yaml", """\
frag: 1
application: app
resources:
  gpu: {type: block_memory_pool, storage_type: 1, dev_id: 1, block_size: 1KiB, num_blocks: 8}
  host: {type: block_memory_pool, block_size: 1KiB, num_blocks: 8}
  both: {type: rmm_allocator, device_memory_initial_size: 0}
operators:
  other: {type: ping_tensor_tx}
""" + "".join("  o%d: {type: video_replayer, parameters: {path: none.mp4, %s}}\n" % (i, given)
              for i, (given, _) in enumerate(rows)))
        operators = self.document(0, "describe", app)["fragments"][0]["operators"]
        self.assertEqual([op.get("decoder") for op in operators],
                         [None, *[text for _, text in rows]])
        code, p = self.fragctl("describe", app)
        self.assertEqual((code, p.stdout.count("\n      decoder    ")), (0, len(rows)))

    def test_clocks(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
fragments:
  a:
    clock:
      {type: realtime, initial_time_scale: 2, use_time_since_epoch: true, initial_time_offset: 0.5}
    operators: {tx: {type: ping_tx}}
  b:
    scheduler: {clock: {type: SyntheticClock, initial_timestamp: 7}}
    operators: {tx: {type: ping_tx}}
  c: {operators: {tx: {type: ping_tx}}}
""")
        plan = self.document(0, "describe", app)
        self.assertEqual(plan["clock"], {"type": "machine"})
        self.assertEqual([f["clock"] for f in plan["fragments"]], [
            {"type": "realtime", "initial_time_offset": 0.5, "initial_time_scale": 2, "use_time_since_epoch": True},
            {"type": "synthetic", "initial_timestamp": 7}, None])
        code, p = self.fragctl("describe", app)
        self.assertIn("\nclock of the machine\n", p.stdout)
        self.assertIn("cores, clock realtime (from the Unix time + 0.5 s, 2 times as fast)\n", p.stdout)
        self.assertIn("cores, clock synthetic (from 7 ns)\n", p.stdout)
        self.assertIn("fragment c: event_based, a thread for each operator, as far as there are cores\n", p.stdout)
        app = self.write("app.yaml", "frag: 1\napplication: app\nclock: manual\noperators: {tx: {type: ping_tx}}\n")
        self.assertEqual(self.document(0, "describe", app)["clock"], {"type": "manual", "initial_timestamp": 0})
        self.assertIn("\nclock manual (from 0 ns)\n", self.fragctl("describe", app)[1].stdout)

    def test_timing_of_inputs(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
operators:
  a: {type: ping_tx, deadline: 20ms}
  b: {type: ping_rx, ports: {in: {take: latest_within, age: 50ms, missing: default}}}
  c: {type: ping_rx, ports: {in: {missing: reuse_last}}}
flows: [a -> b, a -> c]
""")
        code, p = self.fragctl("describe", app)
        self.assertIn("timing     in(take: latest_within, age: 50.0 ms, missing: default)\n", p.stdout)
        self.assertIn("timing     in(take: every, missing: reuse_last)\n", p.stdout)
        self.assertIn("deadline   20.0 ms from tick, on_miss: count\n", p.stdout)
        a, b, _ = self.document(0, "describe", app)["fragments"][0]["operators"]
        self.assertEqual(a["deadline"], {"budget_ns": 20000000, "from": "tick", "on_miss": "count"})
        self.assertEqual(b["ports"][0]["timing"], {"take": "latest_within", "age_ns": 50000000, "missing": "default",
                                                   "default": None, "aligned": False})
        self.assertNotIn("timing", a["ports"][0])

    def test_deadlines_of_paths(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
fragments:
  one: {operators: {a: {type: ping_tx}, b: {type: ping_rx}}, flows: [a -> b],
        deadlines: [{path: [a, b], budget: 5ms, on_miss: drop}]}
  two: {operators: {c: {type: ping_rx}}}
flows: [one.a -> two.c]
deadlines: [{path: [one.a, two.c], budget: 20ms}]
""")
        code, p = self.fragctl("describe", app)
        self.assertIn("\ndeadlines of paths\n  one.a -> two.c: 20.0 ms, on_miss: count\n"
                      "  one.a -> one.b: 5.0 ms, on_miss: drop", p.stdout)
        self.assertEqual(self.document(0, "describe", app)["deadlines"], [
            {"path": ["one.a", "two.c"], "budget_ns": 20000000, "on_miss": "count"},
            {"path": ["one.a", "one.b"], "budget_ns": 5000000, "on_miss": "drop"}])
        plain = self.write("plain.yaml", "frag: 1\napplication: app\noperators: {a: {type: ping_tx}}\n")
        self.assertNotIn("deadlines", self.document(0, "describe", plain))

    def test_ports_that_are_not_connected_and_values(self):
        app = self.write("app.yaml", "frag: 1\napplication: app\noperators:\n  a: {type: ping_tx}\n"
                         "  b: {type: ping_tx}\n  rx: {type: ping_rx}\nflows: [a -> rx]\n")
        plan = self.document(0, "describe", app)
        a, b, _ = plan["fragments"][0]["operators"]
        self.assertEqual([(op["ports"][0]["connected"], [c["type"] for c in op["conditions"]])
                          for op in (a, b)], [(True, ["downstream_affordable"]), (False, [])])
        self.assertEqual((plan["fragments"][0]["threads"], plan["flows"][0]["bytes_max"]), (None, 8))

    def test_shared_variables(self):
        app = os.path.join(cluster.TOP, "examples", "shared_variables", "app.yaml")
        plan = self.document(0, "describe", app, "--library-path", os.path.join(cluster.BUILD, "lib"))
        self.assertIn("calibration", [v["writer"]["fragment"] for v in plan["variables"]
                                      if v["writer"] is not None])

    def test_thread_pools(self):
        app = self.write("app.yaml", """\
frag: 1
application: app
thread_pools:
  p:
    initial_size: 3
    add: [{operators: [a]}, {operators: rx, pin_operator: true, pin_cores: [0, 1]}]
  q: {add: [{operators: [b], pin_operator: true}]}
operators: {a: {type: ping_tx}, b: {type: forward}, rx: {type: ping_rx}}
flows: [a -> b, b -> rx]
""")
        code, p = self.fragctl("describe", app)
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertIn("a thread for each operator in no thread pool, as far as", p.stdout)
        self.assertIn("  thread pool p: 2 threads for a\n  thread pool p: 1 thread for rx alone, on cores 0, 1\n"
                      "  thread pool q: 1 thread for b alone\n", p.stdout)
        pools = self.document(0, "describe", app)["fragments"][0]["thread_pools"]
        self.assertEqual([(c["pool"], c["threads"], c["pinned"], c["operators"], c["cores"]) for c in pools],
                         [("p", 2, False, ["a"], []), ("p", 1, True, ["rx"], [0, 1]),
                          ("q", 1, True, ["b"], [])])
        plan = self.document(0, "describe", self.app())
        self.assertEqual([f["thread_pools"] for f in plan["fragments"]], [[], []])
        self.assertNotIn("realtime", pools[0])
        app = self.write("rt.yaml", """\
frag: 1
application: app
thread_pools:
  p:
    add:
      - {operators: a, sched_policy: rr, sched_priority: 9, best_effort: true}
      - {operators: rx, sched_policy: deadline, sched_runtime: 1ms, sched_period: 20ms}
operators: {a: {type: ping_tx}, rx: {type: ping_rx}}
flows: [a -> rx]
""")
        code, p = self.fragctl("describe", app)
        self.assertIn("thread pool p: 1 thread for a alone, SCHED_RR, priority 9, best effort\n", p.stdout)
        self.assertIn("for rx alone, SCHED_DEADLINE, 1.0 ms within 20.0 ms of every 20.0 ms\n", p.stdout)
        pools = self.document(0, "describe", app)["fragments"][0]["thread_pools"]
        self.assertEqual([(c["realtime"], c["best_effort"]) for c in pools],
                         [({"policy": "rr", "priority": 9}, True),
                          ({"policy": "deadline", "runtime_ns": 1000000, "deadline_ns": 20000000,
                            "period_ns": 20000000}, False)])
        error = self.document(2, "validate", self.write("bad.yaml", """\
frag: 1
application: app
thread_pools: {p: {add: [{operators: [b]}, {operators: rx, pin_cores: [0]}]}}
operators: {a: {type: ping_tx}, rx: {type: ping_rx}}
flows: [a -> rx]
"""))["errors"]
        self.assertEqual([(e["code"], e["path"]) for e in error],
                         [("graph_invalid", "thread_pools.p.add[0].operators[0]"),
                          ("graph_invalid", "thread_pools.p.add[1].pin_cores")])

    def test_a_graph_with_errors(self):
        app = self.write("app.yaml", "frag: 1\napplication: app\noperators: {a: {type: ping_txx}}\n")
        for verb in ("describe", "graph"):
            code, p = self.fragctl(verb, app)
            self.assertEqual((code, p.stdout), (2, ""))
            self.assertIn('app.yaml:3:13: app.a: unknown operator type "ping_txx"; did you mean "ping_tx"?',
                          p.stderr)

    def test_mermaid(self):
        code, p = self.fragctl("graph", self.app())
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertEqual(p.stdout, """\
flowchart LR
    subgraph f0 [left]
        f0o0["<b>tx</b><br>ping_tensor_tx"]
        f0o1["<b>near</b><br>forward"]
    end
    subgraph f1 [right]
        f1o0["<b>rx</b><br>ping_tensor_rx"]
        f1o1["<b>more</b><br>ping_tensor_rx"]
    end
    f0o0 -->|"out → in, pop"| f0o1
    f0o0 ==>|"out → in"| f1o0
    f0o1 ==>|"out → in"| f1o1""")

    def dot(self, script):
        """A folder with a program dot."""
        os.mkdir(self.path("bin"))
        path = self.write("bin/dot", "#!/bin/sh\n" + script)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return os.path.dirname(path)

    def test_svg_is_what_graphviz_makes_of_the_graph(self):
        folder = self.dot('echo "<svg $1>"; cat\n')
        code, p = self.fragctl("graph", self.app(), "--format", "svg",
                               env={"PATH": folder + ":" + os.environ["PATH"]})
        self.assertEqual((code, p.stderr), (0, ""))
        first, _, graph = p.stdout.partition("\n")
        self.assertEqual(first, "<svg -Tsvg>")
        code, p = self.fragctl("graph", self.app(), "--format", "dot")
        self.assertEqual((code, p.stderr, p.stdout), (0, "", graph.rstrip("\n")))
        self.assertIn('f0o1 -> f1o1 [label="out → in", penwidth=2]', graph)

    def test_svg_without_graphviz(self):
        code, p = self.fragctl("graph", self.app(), "--format", "svg", env={"PATH": self.folder})
        self.assertEqual((code, p.stdout), (3, ""))
        self.assertIn("install the package graphviz, or take --format mermaid or dot", p.stderr)

    def test_graphviz_fails(self):
        folder = self.dot("cat >/dev/null; exit 1\n")
        code, p = self.fragctl("graph", self.app(), "--format", "svg",
                               env={"PATH": folder + ":" + os.environ["PATH"]})
        self.assertEqual(code, 1)
        self.assertIn("dot did not draw the SVG", p.stderr)
        code, p = self.fragctl("graph", self.app(), "--format", "png")
        self.assertEqual(code, 2)
        self.assertIn('--format "png" is none of mermaid, dot and svg', p.stderr)
