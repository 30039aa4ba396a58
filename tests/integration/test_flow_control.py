# SPDX-License-Identifier: Apache-2.0
"""Execution flows and dynamic flows between fragments, over every edge, and how fragctl shows them.
The operators are those of examples/flow_control."""
import json

import cluster

APP = """
frag: 1
application: l
arguments: {edge: {default: auto}}
extensions: [libflow_control.so]
fragments:
  f:
    operators:
      head: {type: for_loop, parameters: {count: 20, body: g.body, after: last}}
    flows: [<|start|> -> head]
  g:
    operators:
      body: {type: node}
      last: {type: node}
flows:
  - {from: f.head, to: [g.body, g.last], dynamic: true, edge: "${edge}"}
  - {from: g.body, to: f.head, edge: "${edge}"}
"""
DESCRIBED = """\
l: 2 fragments, 4 operators, 4 flows
clock of the machine

fragment f: event_based, a thread for each operator, as far as there are cores
  head       for_loop
      ports      in __input_exec__: execution, out __output_exec__: execution
      flows      dynamic: chosen after each tick
      runs when  message_available(__input_exec__), downstream_affordable(__output_exec__)
  <|start|>  start
      ports      out __output_exec__: execution
      runs when  downstream_affordable(__output_exec__)

fragment g: event_based, a thread for each operator, as far as there are cores
  body  node
      ports      in __input_exec__: execution, out __output_exec__: execution
      runs when  message_available(__input_exec__), downstream_affordable(__output_exec__)
  last  node
      ports      in __input_exec__: execution
      runs when  message_available(__input_exec__)

flow                                                  type       capacity  policy  memory    edge
f.<|start|>.__output_exec__ -> f.head.__input_exec__  execution         1  block   0 B       inproc
f.head.__output_exec__      -> g.body.__input_exec__  execution         4  block   0 B       auto+
f.head.__output_exec__      -> g.last.__input_exec__  execution         4  block   0 B       auto+
g.body.__output_exec__      -> f.head.__input_exec__  execution         4  block   0 B       auto
""".replace("auto+", "auto, dynamic")
# subgraphs with execution ports, in one fragment and in two
STEPS = """
frag: 1
application: s
extensions: [libflow_control.so]
subgraphs:
  steps:
    operators: {a: {type: node}, b: {type: node}}
    flows: [a -> b]
    ports: {go: a.__input_exec__, gone: b.__output_exec__}
  more:
    operators: {s: {subgraph: steps}}
    ports: {go: s.go, gone: s.gone}
fragments:
  f:
    scheduler: {type: SCHEDULER}
    operators: {x: {subgraph: steps}, m: {subgraph: more}}
    flows: [<|start|> -> x, x -> m]
  g:
    scheduler: {type: SCHEDULER}
    operators: {y: {subgraph: more}, last: {type: node}}
    flows: [y -> last]
flows: [f.m -> g.y]
"""
DRAWN = """\
    f0o1 -.->|"execution"| f0o0
    f0o0 -.->|"execution, dynamic"| f1o0
    f0o0 -.->|"execution, dynamic"| f1o1
    f1o0 -.->|"execution"| f0o0
"""


class Edges(cluster.ClusterTest):
    def assert_looped(self, summary, edge):
        self.assert_balanced(summary)
        counts = {(f["from"].split(".")[1], f["to"].split(".")[1]): (f["sent"], f["delivered"], f["edge"])
                  for f in summary["flows"]}
        self.assertEqual(counts, {("<|start|>", "head"): (1, 1, "inproc"), ("head", "body"): (20, 20, edge),
                                  ("head", "last"): (1, 1, edge), ("body", "head"): (20, 20, edge)})

    def test_flows_lead_to_another_fragment_of_the_host(self):
        app = self.write("app.yaml", APP)
        for edge in ("inproc", "shm", "ucx"):
            p = self.start("fragctl", "run", "--output", "json", app, "--", "--edge", edge)
            self.assertEqual(p.wait(60), 0, p.stderr)
            self.assert_looped(self.summary(p), edge)

    def test_flows_lead_to_another_host(self):
        for edge in ("shm", "ucx"):
            driver = self.driver(self.write("app.yaml", APP), "--output", "json", app_args=("--edge", edge))
            workers = [self.worker("--once", "--name", name, fragments=name) for name in ("f", "g")]
            self.assert_done(driver, workers, 60)
            self.assert_looped(self.summary(driver), edge)
        self.assert_nothing_left()

    def test_subgraphs_have_execution_ports(self):
        names = ["f.x_a", "f.x_b", "f.m_s_a", "f.m_s_b", "g.y_s_a", "g.y_s_b", "g.last"]
        for scheduler in ("greedy", "event_based"):
            app = self.write("app.yaml", STEPS.replace("SCHEDULER", scheduler))
            for args in ((), ("--workers", "2")):
                p = self.start("fragctl", "run", "--output", "json", app, *args)
                self.assertEqual(p.wait(60), 0, p.stderr)
                summary = self.summary(p)
                self.assert_balanced(summary)
                self.assertEqual({(f["from"], f["to"], f["delivered"]) for f in summary["flows"]},
                                 {(a + ".__output_exec__", b + ".__input_exec__", 1)
                                  for a, b in zip(["f.<|start|>"] + names, names)})
                order = [line.split(": I am here")[0].split("s/")[-1]
                         for line in p.stderr.splitlines() if "I am here" in line]
                if args:
                    order = sorted(order)
                self.assertEqual(order, sorted(names) if args else names)
        self.assert_nothing_left()


class Shown(cluster.ClusterTest):
    def fragctl(self, verb, *args):
        p = self.start("fragctl", verb, self.write("app.yaml", APP), *args)
        self.assertEqual(p.wait(30), 0, p.stderr)
        return p.stdout

    def test_describe_and_graph(self):
        self.assertTrue(self.fragctl("describe").startswith(DESCRIBED))
        flows = json.loads(self.fragctl("describe", "--output", "json"))["flows"]
        self.assertEqual([(f["type"], f["execution"], f["dynamic"]) for f in flows],
                         [("execution", True, False), ("execution", True, True), ("execution", True, True),
                          ("execution", True, False)])
        drawn = self.fragctl("graph")
        self.assertIn("<b>&lt;|start|&gt;</b>", drawn)
        self.assertIn(DRAWN, drawn + "\n")
        self.assertIn("ok: 2 fragments, 4 operators, 4 flows", self.fragctl("validate"))
