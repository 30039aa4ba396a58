# SPDX-License-Identifier: Apache-2.0
"""fragctl describe and fragctl graph: the plan of an application, as a table, as JSON, drawn."""
import json
import os
import stat

import cluster

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


class Plan(cluster.ClusterTest):
    def fragctl(self, *args, **kwargs):
        p = self.start("fragctl", *args, **kwargs)
        return p.wait(60), p

    def app(self):
        return self.write("app.yaml", APP)

    def test_table(self):
        code, p = self.fragctl("describe", self.app())
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertTrue(p.stdout.startswith(TABLE), p.stdout)

    def test_json(self):
        code, p = self.fragctl("describe", self.app(), "-o", "json")
        self.assertEqual((code, p.stderr), (0, ""))
        plan = json.loads(p.stdout)
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

    def test_ports_that_are_not_connected_and_values(self):
        app = self.write("app.yaml", "frag: 1\napplication: app\noperators:\n  a: {type: ping_tx}\n"
                         "  b: {type: ping_tx}\n  rx: {type: ping_rx}\nflows: [a -> rx]\n")
        code, p = self.fragctl("describe", app, "--output", "json")
        self.assertEqual(code, 0, p.stderr)
        plan = json.loads(p.stdout)
        a, b, _ = plan["fragments"][0]["operators"]
        self.assertEqual([(op["ports"][0]["connected"], [c["type"] for c in op["conditions"]])
                          for op in (a, b)], [(True, ["downstream_affordable"]), (False, [])])
        self.assertEqual((plan["fragments"][0]["threads"], plan["flows"][0]["bytes_max"]), (None, 8))

    def test_shared_variables(self):
        app = os.path.join(cluster.TOP, "examples", "shared_variables", "app.yaml")
        code, p = self.fragctl("describe", app, "--library-path",
                               os.path.join(cluster.BUILD, "lib"), "-o", "json")
        self.assertEqual(code, 0, p.stderr)
        plan = json.loads(p.stdout)
        self.assertIn("calibration", [v["writer"]["fragment"] for v in plan["variables"]
                                      if v["writer"] is not None])

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


if __name__ == "__main__":
    cluster.main()
