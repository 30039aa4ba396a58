# SPDX-License-Identifier: Apache-2.0
"""The table of examples in docs/FROM_HOLOSCAN.md: every example of the SDK has a row, and each
graph that a row names runs and prints what the row says, in that order. Of a program, which the
README of its folder runs (test_readmes), the README shows it.

tests/data/holoscan/examples.txt lists the examples of SDK 3.10, and what each needs beyond a CPU;
where it needs that, its row need not name a graph, but says why there is none.

And graphs after Holoscan's guide and tests, in one process and in two hosts."""
import concurrent.futures
import os
import re
import shlex
import shutil

import cluster

PAGE = os.path.join(cluster.TOP, "docs", "FROM_HOLOSCAN.md")
LIST = os.path.join(cluster.TOP, "tests", "data", "holoscan", "examples.txt")
ROW = re.compile(r"^\| `([\w/]+)` \| (.*?) \| (.*?) \|$", re.M)
GRAPH = re.compile(r"\[[^]]*\]\((\.\./examples/[\w/.]+\.yaml)\)(?: `(.*?)`)?(?:[:;].*)?$")
# graphs of what a build may lack
NEEDS = {"video_replayer": ("libvideo.so", "libviewer.so"), "holoviz.yaml": ("libvideo.so",),
         "people": ("libvideo.so", "libviewer.so", "../openvino/libopenvino_c.so")}
README = re.compile(r"\[[^]]*\]\((\.\./examples/\w+/README\.md)\)")
PLUGINS = os.path.join(cluster.BUILD, "lib", "frag", "plugins")
# What operators print in the log: its operator, and the line.
LOGGED = re.compile(r"^\S+ \w+ +\w+ \w+/\w+\.(\w+): (.*)$", re.M)
FREE = "{type: ported, ports: {a: {condition: none}, b: {condition: none}}, conditions: [{type: count, count: 10}]}"
CYCLE = "o: {type: ping_tx, conditions: [{type: count, count: 1}]}\nm: {type: ported}\n"


def count(type_, number, more=""):
    return "{type: %s, conditions: [{type: count, count: %d}%s]}" % (type_, number, more)


def took(*ticks):
    return ["count %d took%s" % (i, "".join(" %d" % n for n in taken)) for i, taken in enumerate(ticks, 1)]


def values(*numbers):
    return ["Rx message value: %d" % n for n in numbers]


# Of each graph: the operators and other keys of two fragments, with the `flows:` inside them; the
# flows between them; what operators print, or how often they do; and the exit code, what else is
# printed, and what is not. More keys of the scheduler follow "SCHEDULER". A name with a dot is that
# of a test of the SDK.
GRAPHS = {
    "a count below 0": (
        "tx: " + count("ping_tx", -1), "rx: " + count("ping_rx", 5), "one.tx -> two.rx", {"rx": values(*range(1, 6))}),
    "an operator that disables itself": (
        "tx: {type: ported, parameters: {disable_at: 4}, conditions: [{type: boolean, name: switch}]}",
        "rx: {type: ported}", "one.tx.x -> two.rx.a", {"tx": 4, "rx": took([1], [2], [3], [4])}),
    "an operator that nobody enables": (
        "tx: {type: ping_tx, conditions: [{type: boolean, enable_tick: false}]}", "rx: {type: ping_rx}",
        "one.tx -> two.rx", {"rx": 0}),
    "an async_buffer is read again when its sender has ended": (
        "tx: " + count("ping_tx", 1), "rx: " + count("ping_rx", 5, ", {type: periodic, recess_period: 10ms}"),
        "{from: one.tx, to: two.rx, policy: async_buffer}", {"rx": values(1, 1, 1, 1, 1)}),
    "a stop that fails behind": (
        "tx: " + count("ping_tx", 2), "rx: {type: ported, parameters: {stop_fails: true}}", "one.tx -> two.rx.a",
        {"rx": took([1], [2])}, 1, ["two.rx: the disk is full"]),
    "a stop that fails before": (
        "tx: {type: ported, parameters: {stop_fails: true}, conditions: [{type: count, count: 2}]}", "rx: {type: ported}",
        "one.tx.x -> two.rx.a", {"tx": 2}, 1, ["one.tx: the disk is full"]),
    "a receiver that finishes": (
        "tx: " + count("ping_tx", 30), "few: %s\nall: {type: ping_rx}" % count("ping_rx", 5),
        "{from: one.tx, to: [two.few, two.all]}", {"few": 5, "all": 30}),
    "Graphs.CycleWithSource": (
        CYCLE, "t: " + FREE, "one.o.out -> two.t.a\none.m.x -> two.t.b\ntwo.t.x -> one.m.a", {"t": 10, "m": 10}),
    # with room for all: t1 and t2 need no message, and may otherwise fill the cycle at once
    "Graphs.BroadcastAndRxInCycle": (
        CYCLE + "rx: {type: ported}\nflows:\nm.x -> rx.a", "t1: %s\nt2: %s\nflows:\n{from: t1.x, to: t2.a, capacity: 10}" % (FREE, FREE),
        "one.o.out -> two.t1.a\n{from: two.t2.x, to: one.m.a, capacity: 10}\n"
        "{from: one.m.x, to: [two.t1.b, two.t2.b], capacity: 10}",
        {"t2": 10, "m": 10, "rx": 10}),
    "paths of a cycle with a root, and a probe": (
        "o: {type: ping_tx, conditions: [{type: count, count: 5}]}",
        "t: {type: ported, ports: {b: {condition: none, capacity: 2}}}\nm: {type: ported}\n"
        "tracking: {num_start_messages_to_skip: 0, num_last_messages_to_discard: 0, probes: [m]}\n"
        "flows:\nt.x -> m.a\nm.x -> t.b", "one.o.out -> two.t.a", {"m": 5, "t": 5}, 0,
        ["Path 1: t,m\n", " t,m,t\n", "m->x: 5"]),
    "execution ports of a subgraph": (
        "s: {subgraph: sub}\nlast: {type: node}\nflows:\n<|start|> -> s.go\ns.done -> last", "after: {type: node}",
        "one.last -> two.after", {"s_n1": 1, "s_n2": 1, "last": 1, "after": 1}),
    "a configuration of a subgraph": (
        "s: {subgraph: configured}", "rx: {type: ping_rx}", "one.s.out -> two.rx", {"rx": values(1, 2, 3)}),
    "QueueSizeWarning.Default": (
        "tx: " + count("ping_tx", 6), "rx: {type: ported, ports: {a: {size: 2}}}", "one.tx -> two.rx.a",
        {"rx": 6}, 0, ['input "a" has size 2 and no condition, so each tick waits for 2 messages']),
    "QueueSizeWarning.ExplicitMinSize": (
        "tx: " + count("ping_tx", 6),
        "rx: {type: ported, ports: {a: {size: 2}}, conditions: [{type: message_available, receiver: a, min_size: 1}]}",
        "one.tx -> two.rx.a", {"rx": took([1], [2], [3], [4], [5], [6])}),
    "kPrecedingCount": (
        "p: {t}\nq: {t}".replace("{t}", count("ping_tx", 1)),
        "r: %s\nrx: {type: ported, parameters: {all: true}, ports: {a: {size: 0}}}\nflows:\nr -> rx.a" % count("ping_tx", 1),
        "one.p -> two.rx.a\none.q -> two.rx.a", {"rx": took([1, 1, 1])}),
    "a size of flows together": (
        "p: {t}\nq: {t}".replace("{t}", count("ping_tx", 3)), "rx: {type: ported, parameters: {all: true}, ports: {a: {size: 6}}}",
        "one.p -> two.rx.a\none.q -> two.rx.a", {"rx": took([1, 1, 2, 2, 3, 3])}),
    "contents without a queue for them": (
        "tx: {type: ping_tensor_tx, parameters: {rows: 2, columns: 3}, conditions: [{type: count, count: 1}]}\n"
        "data_loggers: {log: {type: async_console_logger, queue_policy: Raise, log_tensor_data_content: true, "
        "enable_large_data_queue: false}}",
        "rx: {type: ping_tensor_rx}\n"
        "data_loggers: {all: {type: async_console_logger, log_tensor_data_content: true}, some: {type: async_console_logger}}",
        "one.tx -> two.rx", {"rx": 1}, 0,
        ['one.tx.out: output: tensor "tensor" {"dtype": "uint8", "shape": [2, 3]', '"data": [1, 1, 1, 1, 1, 1]}'],
        [r'(?m)one\.tx\.out: .*"data":', r'(?s)two\.rx\.in: [^\n]*"data":.*two\.rx\.in: [^\n]*"data":']),
    "metadata switched off": (
        "tx: {type: router, parameters: {odd: f, even: f, turns: 3}}\nf: {type: forward, metadata: false}\n"
        "flows:\n<|start|> -> tx\n{from: tx.__output_exec__, to: tx.__input_exec__, dynamic: true}\n"
        "{from: tx.out, to: f.in, dynamic: true}", "rx: {type: report}", "one.f -> two.rx", {"rx": ["value -1"] * 3}),
    "flows that an operator chooses": (
        "tx: {type: router, parameters: {odd: a, even: b, turns: 4}}\n"
        "flows:\n<|start|> -> tx\n{from: tx.__output_exec__, to: tx.__input_exec__, dynamic: true}",
        "a: {type: ping_rx}\nb: {type: ping_rx}",
        "{from: one.tx.out, to: two.a.in, dynamic: true}\n{from: one.tx.out, to: two.b.in, dynamic: true}",
        {"a": values(1, 3), "b": values(2, 4)}),
    "two conditions of a name": (
        "tx: {type: ping_tx, conditions: [{type: count, name: c}, {type: boolean, name: c}]}", "rx: {type: ping_rx}",
        "one.tx -> two.rx", {}, 2, ['two conditions are called "c"'], ["(?s)(are called.*){2}"]),
    "two unnamed conditions of a type": (
        "tx: " + count("ping_tx", 8, ", {type: count, count: 3}"), "rx: {type: ping_rx}", "one.tx -> two.rx", {"rx": 3}),
    "a scheduler from config, names without effect, and a pool without threads": (
        "tx: " + count("ping_tx", 3) + "\nthread_pools: {p: {initial_size: 0, add: [{operators: tx}]}}",
        "SCHEDULER from_config: scheduling\nrx: {type: ping_rx}", "one.tx -> two.rx", {"rx": values(1, 2, 3)}),
    "a sleep on a clock that nobody moves": (
        "SCHEDULER max_duration_ms: 200\nclock: synthetic\ntx: %s\nrx: {type: clock_rx}\nflows:\ntx -> rx" % count("ping_tx", 1),
        "tx: " + count("ping_tx", 1), "", {}),
    "messages that nobody takes": (
        "tx: " + count("ping_tx", 2), "z: {type: ported}\ny: {type: ported}\nflows:\nz.x -> y.a\ny.x -> z.b",
        "one.tx -> two.z.a", {"z": 0}, 0, ["at rest with 2 messages that no operator can take any more: two.z.a (2)"]),
    "OrCombiner": (
        "p: %s\nq: %s" % (count("ping_tx", 2), count("ping_tx", 1, ", {type: periodic, recess_period: 50ms}")),
        "rx: {type: ported, parameters: {all: true}, or_combine_port_conditions: [a, b]}",
        "one.p -> two.rx.a\none.q -> two.rx.b", {}, 0, ["count 1 took 1"]),
    "MultiMessageAvailable.SumOfAll": (
        "p: {t}\nq: {t}".replace("{t}", count("ping_tx", 3)),
        "rx: {type: ported, parameters: {all: true}, conditions: [{type: multi_message_available, receivers: [a, b], min_sum: 6}]}",
        "one.p -> two.rx.a\none.q -> two.rx.b", {"rx": took([1, 2, 3, 1, 2, 3])}),
    "MultiMessageAvailable.PerReceiver": (
        "p: %s\nq: %s" % (count("ping_tx", 2), count("ping_tx", 1)),
        "rx: {type: ported, parameters: {all: true}, conditions: [{type: multi_message_available, receivers: [a, b], "
        "sampling_mode: PerReceiver, min_sizes: [2, 1]}]}",
        "one.p -> two.rx.a\none.q -> two.rx.b", {"rx": took([1, 2, 1])}),
    "an expired delay": (
        "tx: " + count("ping_tx", 2, ", {type: periodic, recess_period: 500ms}"),
        "rx: {type: ported, parameters: {all: true}, ports: {a: {capacity: 5}}, conditions: [{type: expiring_message_available, "
        "receiver: a, max_batch_size: 5, max_delay_ns: 10ms}]}", "one.tx -> two.rx.a", {"rx": took([1], [2])}),
    "kFault": (
        "tx: {type: ported, ports: {x: {condition: none}}, conditions: [{type: count, count: 50}]}",
        "rx: {type: ported, conditions: [{type: periodic, recess_period: 1s}]}",
        "{from: one.tx.x, to: two.rx.a, policy: fault}", {}, 1, ["emitted into a full queue, and its policy is fault"]),
    "max_duration_ms": (
        "SCHEDULER max_duration_ms: 100\ntx: " + count("ping_tx", -1, ", {type: periodic, recess_period: 40ms}"),
        "rx: {type: ping_rx}", "one.tx -> two.rx", {}, 0, ["Rx message value: 1"]),
}
TOP = """frag: 1
application: app
extensions: [libported.so, libholoscan.so, libflow_control.so]
config:
  scheduling: {stop_on_deadlock_timeout: 0, max_duration_ms: -1, strict_job_thread_pinning: true}
subgraphs:
  sub:
    operators: {n1: {type: node}, n2: {type: node}}
    flows: [n1 -> n2]
    ports: {go: n1.__input_exec__, done: n2.__output_exec__}
  configured:
    config: {counting: {count: 3}}
    operators: {tx: {type: ping_tx, conditions: [{type: count, from_config: counting}]}}
    ports: {out: tx.out}
fragments:
"""


def read_rows():
    with open(PAGE, encoding="utf-8") as f:
        section = f.read().split("## Example by example")[1].split("\n## ")[0]
    return {name: (frag, prints) for name, frag, prints in ROW.findall(section)}


class Examples(cluster.ClusterTest):
    def test_every_example_has_a_row(self):
        with open(LIST, encoding="ascii") as f:
            needs = {line.split()[0]: line.split()[1:] for line in f}
        rows = read_rows()
        self.assertEqual(list(rows), list(needs))
        for name, (frag, prints) in rows.items():
            if not needs[name]:
                self.assertTrue(GRAPH.match(frag) or README.match(frag), name)
            if "`" not in prints:
                self.assertTrue(needs[name], name)
                self.assertRegex(prints, "^no (graph|program): ", name)
            if README.match(frag) and "`" in prints:
                path = os.path.join(cluster.TOP, "docs", README.match(frag)[1])
                with open(path, encoding="utf-8") as f:
                    self.assert_prints(name, prints, f.read())
            for path in re.findall(r"\]\(([\w/.]+)", frag):
                self.assertTrue(os.path.exists(os.path.join(cluster.TOP, "docs", path)), path)

    def assert_prints(self, name, prints, printed):
        at = 0
        for text in re.findall("`([^`]*)`", prints):
            found = printed.find(text, at)
            self.assertGreaterEqual(found, 0, "%s: %r is missing, or earlier\n%s"
                                    % (name, text, printed))
            at = found + len(text)

    def run_row(self, name):
        path, words = GRAPH.match(read_rows()[name][0]).groups()
        p = self.start("fragctl", "run", self.path(path[3:]), *shlex.split(words or ""),
                       env={"FRAG_LIBRARY_PATH": ""})
        return p.wait(60), p.stderr + p.stdout

    def test_each_graph_prints_what_its_row_says(self):
        rows = {name: prints for name, (frag, prints) in read_rows().items() if GRAPH.match(frag)}
        for name, libraries in NEEDS.items():
            # OpenVINO does not run under sanitizers
            if (not all(os.path.exists(os.path.join(PLUGINS, library)) for library in libraries)
                    or name == "people" and {"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ)):
                rows = {row: prints for row, prints in rows.items()
                        if name not in read_rows()[row][0]}
        os.symlink(os.path.join(cluster.TOP, ".cache"), self.path(".cache"))
        # what they write lies beside the graph
        shutil.copytree(os.path.join(cluster.TOP, "examples"), self.path("examples"),
                        ignore=shutil.ignore_patterns("out", "*.so"))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for name, (code, printed) in zip(rows, pool.map(self.run_row, rows)):
                self.assertEqual(code, 0, name + "\n" + printed)
                self.assert_prints(name, rows[name], printed)


class Graphs(cluster.ClusterTest):
    @staticmethod
    def fragment(name, scheduler, text):
        body, _, flows = text.partition("flows:\n")
        lines = {"SCHEDULER": "type: " + scheduler, "operators": ""}
        for line in filter(None, body.split("\n")):
            word, rest = line.split(None, 1)
            if word == "SCHEDULER":
                lines[word] += ", " + rest
            elif word in ("clock:", "data_loggers:", "thread_pools:", "tracking:"):
                lines[word[:-1]] = rest
            else:
                lines["operators"] += "      %s\n" % line
        return ("  %s:\n    scheduler: {%s}\n" % (name, lines.pop("SCHEDULER"))
                + "    operators:\n" + lines.pop("operators")
                + "".join("    %s: %s\n" % item for item in lines.items())
                + "    flows:\n" + "".join("      - %s\n" % flow for flow in flows.split("\n") if flow))

    def run_graph(self, where):
        name, scheduler, args = where
        one, two, flows = GRAPHS[name][:3]
        text = (TOP + self.fragment("one", scheduler, one) + self.fragment("two", scheduler, two)
                + "flows:\n" + "".join("  - %s\n" % flow for flow in flows.split("\n") if flow))
        number = list(GRAPHS).index(name)
        p = self.start("fragctl", "run", *args, self.write("%d%s%d.yaml" % (number, scheduler, len(args)), text))
        return p.wait(60), p.stderr + "\n" + p.stdout, text

    def test_each_does_what_it_does_in_holoscan(self):
        ways = [(name, scheduler, args) for name in GRAPHS for scheduler in ("greedy", "event_based")
                for args in ((), ("--workers", "2"))]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for way, (code, printed, text) in zip(ways, pool.map(self.run_graph, ways)):
                wanted, *rest = GRAPHS[way[0]][3:]
                lines = {}
                for op, line in LOGGED.findall(printed):
                    lines.setdefault(op, []).append(line)
                with self.subTest(way=way):
                    self.assertEqual(code, rest[0] if rest else 0, text + printed)
                    for op, what in wanted.items():
                        found = lines.get(op, [])
                        found = len(found) if isinstance(what, int) else found
                        self.assertEqual(found, what, text + printed)
                    for part in rest[1] if rest else ():
                        self.assertIn(part, printed, text)
                    for pattern in rest[2] if len(rest) > 2 else ():
                        self.assertNotRegex(printed, pattern)
