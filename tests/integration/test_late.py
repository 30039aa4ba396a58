# SPDX-License-Identifier: Apache-2.0
"""What is to blame for messages that are late: causes are planted over two hosts, whose clocks are
set apart where the machine lets its user do that."""
import collections
import json
import os
import re
import subprocess
import time
import unittest

import cluster
import test_nodes
from slow_link import SlowLink

APP = """
frag: 1
application: app
extensions: [libslow.so]
fragments:
  front:
%(front)s
  back:
%(back)s
flows:
  - %(flow)s
deadlines:
  - {path: [%(path)s], budget: %(budget)s}
"""
TX = "      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: %(rate)s}, {type: count, count: %%d}]}\n"
LINE = re.compile(r"(\S+(?: -> \S+)+): a message took ([0-9.]+ \S+)(?: \+/- ([0-9.]+ \S+))? of [0-9.]+ \S+: (.*?) \((.*?)\)")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def ns(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def half_digit(text):
    """How much is rounded away at most: 50 ms of 1.1 s."""
    number, unit = text.split()
    return 0.5 * 10 ** -len(number.partition(".")[2]) * UNITS[unit]


def graph(front="", back="      rx: {type: slow_rx}\n", flow="front.tx -> back.rx", path="front.tx, back.rx", budget="15ms",
          front_more="", back_more="", rate="30hz"):
    return APP % {"front": front_more + "    operators:\n" + TX % {"rate": rate} + front,
                  "back": back_more + "    operators:\n" + back, "flow": flow, "path": path, "budget": budget}


GREEDY = "    scheduler: {type: greedy}\n"
# What is planted: the graph, the place and the cause, and how JSON calls the cause.
PLANTED = {
    "a tick that computes long": (
        graph(back="      rx: {type: slow_rx, parameters: {sleep_ms: 25}}\n", rate="15hz"), "back.rx computed long", "compute"),
    "an operator before it that computes long": (
        graph(front="      a: {type: slow, parameters: {sleep_ms: 25}}\n", front_more="    flows: [tx -> a]\n",
              flow="front.a -> back.rx", path="front.tx, front.a, back.rx"), "front.a on worker front computed long", "compute"),
    "a queue in front of a slow operator": (
        graph(back="      rx: {type: slow_rx, parameters: {sleep_ms: 45}}\n", budget="150ms",
              flow="{from: front.tx, to: back.rx, capacity: 32}"), "back.rx waited in queue", "queue"),
    "no room behind an operator": (
        graph(front="      a: {type: slow}\n", front_more="    flows: [tx -> a]\n", path="front.tx, front.a", budget="25ms",
              back="      rx: {type: slow_rx, parameters: {sleep_ms: 100}}\n",
              flow="{from: front.a, to: back.rx, capacity: 1}"), "front.a window closed", "window"),
    "one thread for two operators": (
        graph(back_more=GREEDY + "    flows: [timer -> busy]\n",
              back="      rx: {type: slow_rx}\n      busy: {type: slow_rx, parameters: {sleep_ms: 40}}\n"
                   "      timer: {type: ping_tx, conditions: [{type: periodic, recess_period: 11hz}, {type: count, count: 40}]}\n"),
        "back.rx no thread", "thread"),
    "an empty pool": (
        graph(front_more="    resources: {frames: {type: block_memory_pool, block_size: 64KB, num_blocks: 1}}\n"
                         "    flows: [tx -> a, hog -> holder]\n",
              front="      a:\n        type: slow\n"
                    "        conditions: [{type: memory_available, allocator: $frames, min_blocks: 1}]\n"
                    "      holder: {type: slow_rx, parameters: {sleep_ms: 60}}\n"
                    "      hog:\n        type: ping_tensor_tx\n        parameters: {allocator: $frames, rows: 64, columns: 64}\n"
                    "        conditions:\n          - {type: periodic, recess_period: 10hz}\n          - {type: count, count: 30}\n"
                    "          - {type: memory_available, allocator: $frames, min_blocks: 1}\n",
              path="front.tx, front.a", budget="25ms", flow="front.a -> back.rx"), "front.a pool empty", "pool"),
    "a restart of the receiver": (
        graph(back_more="    on_failure: {policy: restart, intensity: 1000, period: 60s}\n",
              back="      rx: {type: slow_rx, parameters: {crash_at: 8}}\n",
              flow="{from: front.tx, to: back.rx, capacity: 64}", budget="8ms"),
        "front.tx -> back.rx restart", "restart"),
}


# rx reads what the kernel writes, so that its thread waits for the GPU.
GPU = graph(front="      px: {type: ping_tensor_tx, parameters: {rows: 16, columns: 16, channels: 3}, conditions: [{type: periodic, "
                  "recess_period: 10hz}, {type: count, count: 20}]}\n",
            back_more="    resources: {gpu: {type: block_memory_pool, storage_type: 1, block_size: 4KB, num_blocks: 8}}\n"
                      "    flows: [convert -> seen]\n",
            back="      rx: {type: slow_rx}\n      convert: {type: format_converter, parameters: {pool: $gpu, out_dtype: float32}}\n"
                 "      seen: {type: ping_tensor_rx}\n",
            flow="front.px -> back.convert\n  - front.tx -> back.rx", path="front.px, back.convert, back.seen", budget="30ms")


class LateTest(cluster.ClusterTest):
    MESSAGES = 25

    def lines(self, text, front=(), back=(), apart=True):
        """What the log says of late messages, and the causes in the summary."""
        d = self.driver(self.write("app.yaml", text % self.MESSAGES), "--output", "json")
        there = test_nodes.IN_ANOTHER_TIME
        # After a restart, the clocks of two nodes are compared anew for some ms.
        if not apart or "on_failure" in text or subprocess.run([*there, "true"], capture_output=True, check=False).returncode != 0:
            there = ()
        workers = [self.worker("--once", "--name", "front", *front, fragments="front"),
                   self.worker("--once", "--name", "back", *back, fragments="back", prefix=there)]
        d.wait(60)
        lines, late = [], collections.Counter()
        for w in workers:
            w.wait()
            lines += LINE.findall(w.stderr)
        for fragment in self.summary(d)["fragments"]:
            for op in fragment["operators"]:
                late.update(op.get("late", {}))
                self.assertEqual(op["path_misses"], sum(op.get("late", {}).values()))
        return lines, late

    def assert_sum(self, line):
        """The parts are the whole, but for how they are rounded where they are printed."""
        _, took, error, _, parts = line
        parts = [" ".join(p.split()[-2:]) for p in parts.split(", ")]
        doubt = sum(map(half_digit, [took, *parts])) + (ns(error) if error else 0)
        self.assertLessEqual(abs(sum(map(ns, parts)) - ns(took)), doubt, line)

    def slow_links(self, there):
        """Flags of both workers, whose links take there() seconds from front to back and none back."""
        self.env["UCX_TLS"] = "tcp" # memory that both share has no delay
        links = [SlowLink("127.0.0.2", lambda to_server: 0 if to_server else there()),
                 SlowLink("127.0.0.3", lambda to_server: there() if to_server else 0)]
        for link in links:
            self.addCleanup(link.close)
        return {"front": links[0].flags(), "back": links[1].flags()}

    def judge(self, text, says, cause, share=0.5, **more):
        """More than that share of the late messages have this place and this cause."""
        lines, late = self.lines(text, **more)
        for line in lines:
            self.assert_sum(line)
        found = collections.Counter(line[3] for line in lines)
        print("  %d of %d: %s; others: %s" % (late[cause], sum(late.values()), says,
                                              {k: n for k, n in found.items() if k != says}))
        self.assertTrue(found, "no message was late")
        self.assertGreater(found[says], share * sum(found.values()), found)
        self.assertGreater(late[cause], share * sum(late.values()), late)


# One thread shares a CPU with a program that always runs, which gets most of it.
PREEMPTED = graph(back="      rx: {type: slow_rx, parameters: {spin_ms: 8, yields_to: %d}}\n", rate="4hz", budget="16ms")
OVER_NETWORK = "{from: front.tx, to: back.rx, edge: ucx}"


class Late(LateTest):
    def test_an_operator_in_another_host_that_computes_long(self):
        self.judge(*PLANTED["an operator before it that computes long"])

    def test_one_thread_for_two_operators(self):
        self.judge(*PLANTED["one thread for two operators"])


    def test_they_are_counted_while_the_application_runs(self):
        self.driver(self.write("app.yaml", PLANTED["a tick that computes long"][0] % 100000))
        for name in ("front", "back"):
            self.worker("--once", "--name", name, fragments=name)

        def shown(*command):
            p = self.start("fragctl", *command, "--address", self.address)
            self.assertEqual(p.wait(), 0, p.stderr)
            return p.stdout
        self.wait_until("a late message in the tables", lambda: re.search(
            r"\n back\.rx .*\n    [0-9]+ messages? late \([0-9]+ computed long", shown("top", "--once")))
        self.assertRegex(shown("status", "app"), r"\nback\.rx: [0-9]+ messages? late \([0-9]+ computed long")
        operators = json.loads(shown("top", "--once", "--output", "json"))["applications"][0]["operators"]
        late = {op["name"]: op["late"] for op in operators}
        self.assertEqual(late["front.tx"], {})
        self.assertGreater(late["back.rx"]["compute"], 0)

    def test_a_network_that_holds_messages_up(self):
        """Now and then, so that clocks are compared well in between."""
        links = self.slow_links(lambda: 0.06 if time.monotonic() % 0.4 < 0.1 else 0)
        self.judge(graph(flow=OVER_NETWORK, budget="25ms"), "front.tx -> back.rx network", "network", **links)


@unittest.skipUnless(os.environ.get("FRAG_LATE"), "nightly plants more causes")
class Judged(LateTest):
    """All causes, each with 100 messages."""

    MESSAGES = 100

    def test_the_planted_causes(self):
        for what, planted in PLANTED.items():
            with self.subTest(what):
                self.judge(*planted, share=0.7)

    def test_a_kernel_of_a_gpu(self):
        self.env.update(LD_LIBRARY_PATH=os.path.join(os.path.dirname(cluster.BIN), "tests/cuda"), FAKE_CUDA_KERNEL_MS="55")
        self.judge(GPU, "back.seen GPU queue", "gpu", share=0.8)

    def test_a_thread_that_gets_no_core(self):
        cpu = min(os.sched_getaffinity(0))
        hog = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        self.judge(PREEMPTED.replace("yields_to: %d", "yields_to: " + str(cpu)), "back.rx was preempted", "preempted",
                   share=0.7, apart=False)

    def test_a_clock_that_is_not_exact_enough(self):
        """A link that is slow in one direction bounds a clock by half of that, and 50 ms +/- 50 ms are late by less."""
        self.judge(graph(flow=OVER_NETWORK, budget="20ms"), "clock unsure", "clock", share=0.7, **self.slow_links(lambda: 0.1))
