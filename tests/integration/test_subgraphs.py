# SPDX-License-Identifier: Apache-2.0
"""Subgraphs of graphs and of libraries, as their users see them."""
import json

import cluster

HEADS = """frag: 1
application: app
extensions: [libgroups.so]
compose: heads
operators:
  two_neck: {watchdog: 20s}
  three: {subgraph: head, parameters: {as: sound_out}}
flows: [two.out -> three.sound]
"""

# a subgraph of the graph around one of the library; towards inputs that stand for three operators
BETWEEN = """frag: 1
application: app
extensions: [libgroups.so]
subgraphs:
  body:
    operators:
      head: {subgraph: head}
      foot: {type: ping_rx}
    flows: [head.out -> foot]
    ports: {hear: [head.sound, foot.in]}
fragments:
  speaker:
    operators: {tx: {type: ping_tx, conditions: [{type: count, count: 5}]}}
  hearer:
    operators: {b: {subgraph: body}, h: {subgraph: head}}
flows:
  - {from: speaker.tx, to: [hearer.b.hear, hearer.h.sound], edge: EDGE}
"""

# sources that send as often as the configurations say: their own, that of a parameter, the graph's
CONFIGURED = """frag: 1
application: app
config: {often: {count: 3}}
subgraphs:
  source:
    parameters: {n: {}}
    config: {often: {count: "${n}"}}
    operators: {tx: {type: ping_tx, conditions: [{type: count, from_config: often}]}}
  plain:
    operators: {tx: {type: ping_tx, conditions: [{type: count, from_config: often}]}}
fragments:
  f:
    scheduler: {type: SCHEDULER}
    operators:
      a: {subgraph: source, parameters: {n: 5}}
      b: {subgraph: source, parameters: {n: 7}}
  g:
    scheduler: {type: SCHEDULER}
    operators: {c: {subgraph: plain}, x: {type: ping_rx}, y: {type: ping_rx}, z: {type: ping_rx}}
    flows: [c_tx -> z]
flows: [f.a_tx -> g.x, f.b_tx -> g.y]
"""


class Subgraphs(cluster.ClusterTest):
    def run_graph(self, text, *args):
        p = self.start("fragctl", "run", "--output", "json", *args, self.write("app.yaml", text))
        self.assertEqual(p.wait(60), 0, p.stderr)
        summary = self.summary(p)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return summary

    def test_of_a_library_in_a_composer_and_in_a_graph(self):
        summary = self.run_graph(HEADS)
        flows = {(f["from"], f["to"]): f["delivered"] for f in summary["flows"]}
        heads = [("app.tx.out", "one"), ("app.one_neck.out", "two"), ("app.two_neck.out", "three")]
        wanted = {(source, "app.%s_%s.in" % (head, op)): 4
                  for source, head in heads for op in ("ears_left", "ears_right", "neck")}
        self.assertEqual(flows, wanted)

    def test_configurations_of_their_own(self):
        for scheduler in ("greedy", "event_based"):
            for args in ((), ("--workers", "2")):
                summary = self.run_graph(CONFIGURED.replace("SCHEDULER", scheduler), *args)
                self.assertEqual({f["to"]: f["delivered"] for f in summary["flows"]},
                                 {"g.x.in": 5, "g.y.in": 7, "g.z.in": 3})

    def receivers(self, edge, *args):
        summary = self.run_graph(BETWEEN.replace("EDGE", edge), *args)
        flows = {f["to"]: (f["from"], f["delivered"], f["edge"]) for f in summary["flows"]
                 if f["from"] == "speaker.tx.out"}
        self.assertEqual(set(flows), {"hearer." + name for name in (
            "b_head_ears_left.in", "b_head_ears_right.in", "b_head_neck.in", "b_foot.in",
            "h_ears_left.in", "h_ears_right.in", "h_neck.in")})
        self.assertEqual({f[1] for f in flows.values()}, {5})
        return {f[2] for f in flows.values()}

    def test_inputs_of_several_operators_between_fragments(self):
        self.assertEqual(self.receivers("auto"), {"inproc"})

    def test_inputs_of_several_operators_between_hosts(self):
        for edge in ("shm", "ucx"):
            self.assertEqual(self.receivers(edge, "--workers", "2"), {edge})

    def tool(self, code, *args):
        p = self.start("fragctl", *args)
        self.assertEqual(p.wait(60), code, p.stderr)
        return p.stdout, p.stderr.replace(self.folder + "/", "")

    def test_qualified_names_in_every_tool(self):
        path = self.write("app.yaml", BETWEEN.replace("EDGE", "auto"))
        self.assertIn("ok: 2 fragments, 8 operators, 8 flows", self.tool(0, "validate", path)[0])
        plan = json.loads(self.tool(0, "describe", "--output", "json", path)[0])
        names = [op["name"] for f in plan["fragments"] for op in f["operators"]]
        self.assertEqual(sorted(names), sorted([
            "tx", "b_foot", "b_head_neck", "b_head_ears_left", "b_head_ears_right",
            "h_neck", "h_ears_left", "h_ears_right"]))
        drawn = self.tool(0, "graph", path)[0]
        self.assertIn("b_head_ears_left", drawn)
        listed = self.tool(0, "inspect", "libgroups.so")[0]
        self.assertIn("head (subgraph of ", listed)
        types = json.loads(self.tool(0, "inspect", "--output", "json", "libgroups.so")[0])["types"]
        self.assertEqual([t["name"] for t in types if t["kind"] == "subgraph"], ["ears", "head"])

    def test_set_reaches_operators_of_instances(self):
        path = self.write("app.yaml", HEADS)
        _, err = self.tool(2, "validate", "--set", "app.one_neck.speed=2", path)
        self.assertIn('app.one_neck: unknown parameter "speed"', err)
        _, err = self.tool(2, "validate", "--set", "app.one_nek.speed=2", path)
        self.assertIn('operator "one_nek"', err)
        self.assertIn('did you mean "one_neck"?', err)

    def test_mistakes_in_the_use_of_a_library(self):
        path = self.write("app.yaml", """frag: 1
application: app
extensions: [libgroups.so]
fragments:
  f:
    operators:
      h: {subgraph: head, parameters: {ass: x}}
      t: {type: ping_tx}
    flows: [t -> h.sound]
  g:
    operators:
      e: {subgraph: eers}
      t: {type: ping_tx}
    flows: [t -> e.in]
  k:
    operators:
      h: {subgraph: head}
      t: {type: ping_tx}
      b: {subgraph: ears}
      b_lft: {watchdog: 2s}
    flows: [t -> h.saund, b -> h.sound, h -> b]
flows:
  - f.t -> k.h.nois
""")
        _, err = self.tool(2, "validate", path)
        self.assertEqual(err.splitlines(), [
            'app.yaml:7:40: f.h: unknown parameter "ass"; did you mean "as"?',
            'app.yaml:12:7: g.e: unknown subgraph "eers"; did you mean "ears"?',
            'app.yaml:20:7: k: operator "b_lft" has no type, and no subgraph makes it; give it a type',
            'app.yaml:21:13: flow end k.h.saund: the subgraph has no port "saund"; did you mean "sound"?',
            'app.yaml:21:27: flow end k.b: the subgraph has no outputs',
            'app.yaml:23:5: flow end k.h.nois: the subgraph has no port "nois"; its inputs: sound',
        ])
