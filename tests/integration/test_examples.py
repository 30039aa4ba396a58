# SPDX-License-Identifier: Apache-2.0
"""The examples: from the build tree, and as a user has them, copied out and built against an
installed frag only."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import cluster

EXAMPLES = os.path.join(cluster.TOP, "examples")


class InTheBuildTree(cluster.ClusterTest):
    def run_example(self, name, *args):
        p = self.start("fragctl", "run", "--output", "json", os.path.join(EXAMPLES, name, "app.yaml"),
                       *(("--", *args) if args else ()), env={"FRAG_LIBRARY_PATH": ""})
        self.assertEqual(p.wait(60), 0, p.stderr)
        summary = self.summary(p)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return p, summary

    def test_hello(self):
        p, summary = self.run_example("hello", "--name", "reader")
        self.assertIn("Hello, reader!", p.stderr)
        self.assertEqual(summary["flows"], [])

    def test_ping_simple(self):
        p, summary = self.run_example("ping_simple")
        for n in range(1, 11):
            self.assertRegex(p.stderr, r"Rx message value: %d(?!\d)" % n)
        self.assertEqual([(f["sent"], f["delivered"]) for f in summary["flows"]], [(10, 10)])

    def test_ping_distributed(self):
        p, summary = self.run_example("ping_distributed", "--count", "100")
        self.assertIn("Rx message value: 100", p.stderr)
        self.assertEqual([(f["from"], f["to"], f["delivered"]) for f in summary["flows"]],
                         [("fragment1.tx.out", "fragment2.rx.in", 100)])

    def test_ping_distributed_by_daemons(self):
        driver = self.driver(os.path.join(EXAMPLES, "ping_distributed", "app.yaml"), "--output", "json")
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assert_done(driver, workers, 60)
        self.assertIn("Rx message value: 10", workers[1].stderr)
        self.assert_nothing_left()

    def test_custom_operator(self):
        p, summary = self.run_example("custom_operator")
        for n in (3, 6, 9, 12, 15):
            self.assertRegex(p.stderr, r"\b%d\b" % n)
        self.assertEqual([f["delivered"] for f in summary["flows"]], [5, 5])

    def test_a_new_project(self):
        """It builds against the tree that fragctl is in; a name that is taken or no name is refused."""
        p = self.start("fragctl", "new", "blur", cwd=self.folder)
        self.assertEqual(p.wait(), 0, p.stderr)
        env = {k: v for k, v in self.env.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

        def make(target):
            return subprocess.run(["make", "-s", "-C", self.path("blur"), target], capture_output=True, text=True,
                                  env=env, timeout=120)

        for target, wanted in (("test", "all tests passed"), ("check", "2 passed, 0 failed"), ("run", "sample 5: 10")):
            r = make(target)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            self.assertIn(wanted, r.stdout + r.stderr)
        with open(self.path("blur/app.yaml"), encoding="utf-8") as f:
            self.assertEqual(f.readline(), "# yaml-language-server: $schema=graph.schema.json\n")
        with open(self.path("blur/graph.schema.json"), encoding="utf-8") as f:
            self.assertIn("blur_print", json.load(f)["$defs"]["operator_types"]["properties"]["type"]["anyOf"][0]["enum"])
        # The tests of the graph see what its operators do.
        with open(self.path("blur/samples.txt"), "a", encoding="utf-8") as f:
            f.write('30ms blur_sample {"number": 1, "value": 2}\n')
        r = make("test")
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("FAIL numbers_become_samples", r.stdout)
        # libm is linked; what no library has is an error of the linker; a changed Makefile counts.
        with open(self.path("blur/blur.c"), encoding="utf-8") as f:
            source = f.read()
        for call, code in (("hypot(sample.value, 0.0)", 0), ("hypothesis(sample.value)", 2)):
            with open(self.path("blur/blur.c"), "w", encoding="utf-8") as f:
                f.write("#include <math.h>\ndouble hypothesis(double x);\n" +
                        source.replace("return frag_tick_emit_value", "sample.value = %s;\n\treturn "
                                       "frag_tick_emit_value" % call))
            r = make("all")
            self.assertEqual(r.returncode, code, r.stderr)
        self.assertRegex(r.stderr, r"undefined reference to .hypothesis")
        with open(self.path("blur/blur.c"), "w", encoding="utf-8") as f:
            f.write(source)
        self.assertEqual(make("test_blur").returncode, 0)
        built = os.stat(self.path("blur/test_blur")).st_mtime_ns
        os.utime(self.path("blur/Makefile"))
        self.assertEqual(make("test_blur").returncode, 0)
        self.assertGreater(os.stat(self.path("blur/test_blur")).st_mtime_ns, built)
        r = subprocess.run(["make", "-s", "-B", "-C", self.path("blur"), "PKG_CONFIG=false"], capture_output=True,
                           text=True, env=env, timeout=120)
        self.assertEqual(r.returncode, 2)
        self.assertIn("install libfrag-dev, pkg-config and gcc", r.stderr)
        for name, sentence in (("blur", "blur exists already"), ("no-name", '"no-name" is not a valid name of a project'),
                               ("Blur", "is not a valid name"), ("", "is not a valid name"),
                               *((n, '"%s" cannot be the name of a project' % n)
                                 for n in ("auto", "int", "namespace", "print", "ping_tx", "forward"))):
            p = self.start("fragctl", "new", name, cwd=self.folder)
            self.assertEqual(p.wait(), 2)
            self.assertIn(sentence, p.stderr)

    SHARED = ["camera left", "channel 0: 6", "channel 1: 14", "channel 2: 3"]

    def test_shared_variables(self):
        p, summary = self.run_example("shared_variables")
        self.assertEqual(re.findall(r"op shared_variables/imaging.correct: (.*)$", p.stderr, re.M), self.SHARED)
        self.assertEqual(summary["flows"], [])

    def test_shared_variables_by_daemons(self):
        driver = self.driver(os.path.join(EXAMPLES, "shared_variables", "app.yaml"), "--output", "json")
        workers = [self.worker("--once", fragments=f) for f in ("imaging", "calibration")]
        self.assert_done(driver, workers, 60)
        self.assertEqual(re.findall(r"op shared_variables/imaging.correct: (.*)$", workers[0].stderr, re.M),
                         self.SHARED)
        self.assert_nothing_left()

    def test_flow_control(self):
        p, summary = self.run_example("flow_control")
        said = re.findall(r"flow_control/for_loop\.(\w+): I am here", p.stderr)
        self.assertEqual(said, ["node1", "node2", "node3"] * 3 + ["node1", "node4"])
        self.assertEqual({f["from"].split(".")[1] + f["to"].split(".")[1]: f["sent"] for f in summary["flows"]
                          if f["from"].startswith("conditional.")},
                         {"node1node2": 1, "node2node3": 1, "node1node4": 1, "node4node5": 1})
        self.assertEqual([f["sent"] for f in summary["flows"]], [f["delivered"] for f in summary["flows"]])

    def test_ping_multi_receiver(self):
        p, summary = self.run_example("ping_multi_receiver")
        self.assertEqual(re.findall(r"near\.rx: (.*)$", p.stderr, re.M),
                         ["10 20 30 sum 60", "11 21 31 sum 63", "- 22 32 sum 54", "- - 33 sum 33"])
        self.assertEqual([f["delivered"] for f in summary["flows"]], [2, 3, 4])

    def test_ping_cycle(self):
        p, summary = self.run_example("ping_cycle", "--turns", "3")
        self.assertEqual(re.findall(r"ping_cycle\.(\w+): received (\d+)$", p.stderr, re.M),
                         [(("one", "two", "three")[(n - 1) % 3], str(n)) for n in range(1, 10)])
        last = next(f for f in summary["flows"] if f["from"] == "ping_cycle.three.out")
        self.assertEqual((last["sent"], last["delivered"], last["dropped"]["receiver_done"]), (3, 2, 1))

    def test_multithread(self):
        def took_ns(threads):
            p, summary = self.run_example("multithread", "--threads", threads)
            self.assertEqual(re.findall(r"multithread\.rx: received (.*)$", p.stderr, re.M),
                             ["101 201 301 401", "102 202 302 402"])
            return summary["duration_ns"]
        # Eight ticks of 50 ms: one thread never takes less than all of them, and four do unless
        # they wait for cores.
        self.assertGreaterEqual(took_ns(1), 400e6)
        self.wait_until("a run in which ticks go beside each other", lambda: took_ns(4) < 400e6)

    def test_thread_pools(self):
        p, _ = self.run_example("thread_pools")
        self.assertEqual(sorted(re.findall(r"thread_pools\.(\w+): on thread (.*)$", p.stderr, re.M)),
                         [("camera", "thread_p.camera"), ("detect", "thread_poo:slow"),
                          ("segment", "thread_poo:slow"), ("viewer", "frag:thread_poo")])

    def test_conditions(self):
        p, summary = self.run_example("conditions")
        said = {}
        for fragment, text in re.findall(r"conditions/(\w+)\.rx: (?:Rx message value: |received )(.*)$", p.stderr, re.M):
            said.setdefault(fragment, []).append(text)
        self.assertEqual(said, {
            "periodic": ["1", "2", "3"],
            "expiring_message": ["left 1 2", "left 3", "left 4 5", "left 6"],
            "multi_message": ["left 1 right 1 2", "left 2 right 3 4", "left 3 right 5 6", "left 4 right 7 8"],
            "or_combiner": ["left 1 right 1", "left 2", "left 3"],
            "asynchronous": ["1", "2", "3"],
            "native": ["1", "2", "3", "4"],
        })
        # Two ticks in each 50 ms; two bursts, 100 ms apart.
        self.assertGreater(summary["duration_ns"], 100e6)

    def test_conditions_alone(self):
        for name, least_ms in (("periodic", 40), ("native", 50), ("asynchronous", 30)):
            _, summary = self.run_example("conditions", "--condition", name)
            self.assertEqual([f["from"] for f in summary["flows"]], [name + ".tx.out"])
            self.assertGreater(summary["duration_ns"], least_ms * 1e6)

    def test_metadata(self):
        for policy, side in (("update", "right"), ("reject", "left")):
            p, _ = self.run_example("metadata", "--policy", policy)
            self.assertEqual(re.findall(r"display\.join: (.*)$", p.stderr, re.M),
                             ["frame %d of front, 8.5 ms, %s; 4 keys" % (n, side) for n in range(2)])
        p = self.start("fragctl", "run", os.path.join(EXAMPLES, "metadata", "app.yaml"), "--", "--policy", "raise",
                       env={"FRAG_LIBRARY_PATH": ""})
        self.assertEqual(p.wait(60), 1)
        self.assertRegex(p.stderr, r'display\.join: received metadata clashes at key "\w+"')

    TIMING = {"cameras.stereo": ["a 1, b 1", "a 2, b 2", "a 4, b 3", "a 5, b 4"], "machine.control": ["a 1, b -1"] * 4}

    def test_timing(self):
        p, summary = self.run_example("timing")
        for op, wanted in self.TIMING.items():
            self.assertEqual(re.findall(r"op timing/%s: (.*)$" % op, p.stderr, re.M), wanted)
        flows = {f["to"]: f for f in summary["flows"]}
        self.assertEqual(flows["cameras.stereo.a"]["dropped"]["late"], 1)
        self.assertEqual(flows["machine.control.a"]["reused"], 3)
        self.assertEqual(flows["machine.control.b"]["absent_late"], 4)
        for f in summary["flows"]:
            self.assertEqual(f["sent"], f["delivered"] + sum(f["dropped"].values()))

    def test_ping_multi_port(self):
        p, summary = self.run_example("ping_multi_port")
        for n in range(10):
            self.assertIn("value1: %d\n" % (3 * (2 * n + 1)), p.stderr)
            self.assertRegex(p.stderr, r"value2: %d(?!\d)" % (3 * (2 * n + 2)))
        self.assertEqual([f["delivered"] for f in summary["flows"]], [10] * 4)

    def test_data_logging(self):
        p, summary = self.run_example("data_logging", "--out", self.path("out"))
        self.assertIn("range_logger: 3 numbers, 1 to 3", p.stderr)
        self.assertEqual(re.findall(r"data data_logging\.rx\.in: input: i64 (\d+)", p.stderr), ["1", "2", "3"])
        self.assertEqual([f["delivered"] for f in summary["flows"]], [3, 2])
        with open(self.path("out/log.jsonl"), encoding="utf-8") as f:
            self.assertEqual(len(f.readlines()), 5)  # contents are not asked for
        self.assertEqual(len(os.listdir(self.path("out/tensors"))), 2)

    def test_subgraph_ping(self):
        p, summary = self.run_example("subgraph_ping")
        for receiver, count in (("one_a", 3), ("one_b", 3), ("two_a", 2), ("two_b", 2)):
            for n in range(1, count + 1):
                self.assertIn("receiver.%s: Rx message value: %d" % (receiver, n), p.stderr)
        self.assertEqual(sorted((f["from"], f["to"], f["delivered"]) for f in summary["flows"]), sorted([
            ("sender.left_tx.out", "sender.left_fwd.in", 3),
            ("sender.right_tx.out", "sender.right_fwd.in", 2),
            ("sender.left_fwd.out", "sender.relay_first.in", 3),
            ("sender.relay_first.out", "sender.relay_stage1.in", 3),
            ("sender.relay_stage1.out", "sender.relay_stage2.in", 3),
            ("sender.relay_stage2.out", "receiver.one_a.in", 3),
            ("sender.relay_stage2.out", "receiver.one_b.in", 3),
            ("sender.right_fwd.out", "receiver.two_a.in", 2),
            ("sender.right_fwd.out", "receiver.two_b.in", 2)]))

    def test_the_page_for_users_of_holoscan_shows_an_example(self):
        """docs/FROM_HOLOSCAN.md holds parts of examples/ping_multi_port as they are."""
        def blocks(kind):
            return re.findall(r"^```%s\n(.*?)^```$" % kind, section, re.M | re.S)

        with open(os.path.join(cluster.TOP, "docs", "FROM_HOLOSCAN.md")) as f:
            section = f.read().split("\n## An application side by side\n")[1].split("\n## ")[0]
        for kind, name, count in (("c", "ping_multi_port.c", 2), ("yaml", "app.yaml", 1)):
            with open(os.path.join(EXAMPLES, "ping_multi_port", name)) as f:
                source = f.read()
            self.assertEqual(len(blocks(kind)), count)
            for block in blocks(kind):
                self.assertIn(block, source)

    def test_the_code_for_holoscan_on_that_page_is_cpp(self):
        """Against declarations of what it uses: the SDK is not there."""
        with open(os.path.join(cluster.TOP, "docs", "FROM_HOLOSCAN.md"), encoding="utf-8") as f:
            operator, sink, application = re.findall(r"^```cpp\n(.*?)^```$", f.read(), re.M | re.S)
        shell = ("class %s : public holoscan::Operator {\n public:\n"
                 "  HOLOSCAN_OPERATOR_FORWARD_ARGS(%s)\n  %s() = default;\n%s};\n")
        source = self.write("app.cpp", '#include "holoscan.hpp"\n' + operator +
                            shell % (("Tx",) * 3 + ("",)) +
                            shell % (("Rx",) * 3 + (sink,)) +
                            application)
        done = subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I",
                               os.path.join(cluster.TOP, "tests", "data", "holoscan"), source],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_file_of_config_that_the_page_on_graphs_shows(self):
        with open(os.path.join(cluster.TOP, "docs", "GRAPH.md"), encoding="utf-8") as f:
            section = f.read().split("## Files of --config")[1].split("\n## ")[0]
        for name, text in zip(("app.yaml", "large.yaml"), re.findall(r"^```yaml\n(.*?)^```", section, re.S | re.M)):
            self.write(name, text)
        command = re.search(r"^```\n(fragctl .*)\n```", section, re.M).group(1).split()
        p = self.start(*command, cwd=self.folder)
        self.assertEqual(p.wait(), 0)
        self.assertIn("shape: (1024, 4)", p.stderr)

    def test_guide_shows_the_example(self):
        """docs/OPERATORS.md and examples/custom_operator hold the same operator."""
        with open(os.path.join(cluster.TOP, "docs", "OPERATORS.md")) as f:
            shown = f.read().split("```c\n")[1].split("```")[0]
        with open(os.path.join(EXAMPLES, "custom_operator", "scale.c")) as f:
            self.assertEqual(f.read().split("\n", 1)[1], shown)


@unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins",
                                                 "libvideo.so")),
                     "built without FFmpeg's libraries")
class Demo(cluster.ClusterTest):
    def demo(self, *args, **env):
        return self.start("/bin/sh", os.path.join(cluster.TOP, "mk", "demo.sh"), *args, cwd=cluster.TOP,
                          env={"B": cluster.BUILD, "OUT": self.path("demo"), **env})

    def test_a_port_in_use_is_explained_and_no_worker_is_started(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            p = self.demo(FRAG_ADDRESS="127.0.0.1:%d" % s.getsockname()[1])
            self.assertEqual(p.wait(), 3)
            s.settimeout(0)
            with self.assertRaises(BlockingIOError):
                s.accept()
        self.assertRegex(p.stderr, "cannot listen on .*: the port is in use")
        self.assertEqual(p.stderr.splitlines()[-1],
                         "the demo did not start; without FRAG_ADDRESS it takes any free port")

    def test_a_node_is_killed_and_the_application_goes_on(self):
        p = self.demo("kill_a_node")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertRegex(p.stderr, r"worker b at .* was lost: .*\n  detector runs again on worker c, epoch 2")
        sent, delivered, dropped, lost = re.search(
            r"camera.tx.out -> detector.look.in +(\d+)\+? +(\d+)\+? +(\d+) +(\S+)", p.stdout).groups()
        self.assertEqual(sent, "600", p.stdout)
        self.assertEqual(int(delivered) + int(dropped) + int(lost.split("-")[-1]), 600, p.stdout)
        self.assert_nothing_left()

    def test_it_runs_on_any_free_port_and_ends_on_request(self):
        p = self.demo()
        p.wait_line("video_replayer_distributed: runs in 2 hosts")
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 143)
        self.assert_nothing_left()


class Installed(cluster.ClusterTest):
    """Nothing of the source tree is on any path here. All tests share one installation."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="frag-installed-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.prefix = os.path.join(folder, "frag")
        cls.make("install-here", cls.prefix)

    @staticmethod
    def make(target, prefix):
        # -o all: what is built stays as it is, since other tests use it just now
        subprocess.run(["make", "-s", "-o", "all", "-C", cluster.TOP, "B=" + cluster.BUILD, "NDEBUG=", target, "prefix=" + prefix],
                       env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")},
                       check=True, timeout=120)

    def setUp(self):
        super().setUp()
        self.env.pop("FRAG_LIBRARY_PATH")
        self.env.update(PKG_CONFIG_PATH=os.path.join(self.prefix, "lib", "pkgconfig"))
        self.examples = self.path("examples")
        shutil.copytree(os.path.join(self.prefix, "share", "frag", "examples"), self.examples)

    def command(self, *args, cwd=None):
        env = {k: v for k, v in self.env.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        done = subprocess.run(
            args,
            cwd=cwd or self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.assertEqual(done.returncode, 0, "%r:\n%s" % (args, done.stdout))
        return done.stdout

    def test_each_builds_and_runs(self):
        for name, said in (("hello", "Hello, world!"), ("custom_operator", "15"), ("ping_multi_port", "value2: 60"),
                           ("subgraph_ping", "receiver.two_b: Rx message value: 2"),
                           ("data_logging", "range_logger: 3 numbers, 1 to 3")):
            folder = os.path.join(self.examples, name)
            self.command("make", "-s", cwd=folder)
            p = self.start(os.path.join(self.prefix, "bin", "fragctl"), "run", "app.yaml", cwd=folder,
                           env={"FRAG_LIBRARY_PATH": folder})
            self.assertEqual(p.wait(60), 0, p.stderr)
            self.assertIn(said, p.stderr)
        said = self.command("make", "-s", "check", cwd=os.path.join(self.examples, "run_api"))
        self.assertIn('"sent": 2, "delivered": 2,', said)
        for name in ("track_people", "empty_street"):
            said = self.command("make", "-s", "all", "check", cwd=os.path.join(self.examples, name))
            self.assertIn("all tests passed", said)
        for name in ("ping_simple", "ping_distributed"):
            p = self.start(os.path.join(self.prefix, "bin", "fragctl"), "run", "app.yaml",
                           cwd=os.path.join(self.examples, name))
            self.assertEqual(p.wait(60), 0, p.stderr)
            self.assertIn("Rx message value: 10", p.stderr)
        self.assert_nothing_left()

    def test_the_guide_as_it_is_typed(self):
        with open(os.path.join(cluster.TOP, "docs", "OPERATORS.md")) as f:
            guide = f.read()
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", guide, re.M | re.S)
        code, graph, typed = (
            [text for kind, text in blocks if kind == wanted] for wanted in ("c", "yaml", "")
        )
        cpp = code[0].replace("[IN] = ", "").replace("[OUT] = ", "").replace(
            "struct scale *s = state", "auto *s = static_cast<struct scale *>(state)")
        for name, text in (("scale.c", code[0]), ("test_scale.c", code[1]), ("app.yaml", graph[0]), ("scale.cpp", cpp),
                           ("pose.h", code[2]), ("track.c", code[3]), ("show.c", code[4]),
                           ("test_track.c", code[5]), ("poses.yaml", graph[1])):
            self.write(name, text)
        shutil.copy(os.path.join(self.examples, "custom_operator", "numbers.c"), self.folder)
        self.env["PATH"] = os.path.join(self.prefix, "bin") + ":" + self.env["PATH"]
        said = self.command("sh", "-ec", typed[0])
        self.assertIn("all tests passed", said)
        for n in range(1, 6):
            self.assertIn("sample %d: %d\n" % (n, 2 * n), said)
        typed = typed[1:]
        said = "".join(self.command("sh", "-ec", block) for block in typed[:3])
        self.assertIn("Multiplies a number", said)
        self.assertIn("app.yaml: ok", said)
        for n in (3, 6, 9, 12, 15):
            self.assertRegex(said, r"print: %d\b" % n)
        said = self.command("sh", "-ec", typed[3])
        self.assertRegex(said, r"(?m)^  sigma +f32\[2\] +16$")
        for n in range(3):
            self.assertIn("show: at %d, %d" % (n, 2 * n), said)
        if shutil.which("c++"):
            self.command("sh", "-ec", typed[4])
            self.assertIn("print: 15", self.command("fragctl", "run", "app.yaml"))

    def test_a_new_project_has_no_warnings(self):
        self.env["PATH"] = os.path.join(self.prefix, "bin") + ":" + self.env["PATH"]
        self.env.pop("PKG_CONFIG_PATH")
        said = self.command("fragctl", "new", "edge_finder")
        self.assertEqual(said.splitlines()[:-1], ["edge_finder/" + name for name in (
            "edge_finder.h", "edge_finder.c", "test_edge_finder.c", "app.yaml", "Makefile", "README.md",
            "app.test.yaml", "numbers.txt", "samples.txt", "negative.txt")])
        folder = self.path("edge_finder")
        self.command("make", "-s", "all", "test", "CFLAGS=-Wall -Wextra -Wconversion -Werror", cwd=folder)
        said = self.command("fragctl", "inspect", "./libedge_finder.so", cwd=folder)
        self.assertRegex(said, r"(?m)^edge_finder_sample \(value type of ")
        self.assertRegex(said, r"(?m)^edge_finder \(operator of ")

    def test_uninstall_takes_all_of_it_away(self):
        prefix = self.path("frag")
        shutil.copytree(self.prefix, prefix, symlinks=True)
        self.assertTrue(os.path.exists(os.path.join(prefix, "lib", "frag")))
        self.make("uninstall", prefix)
        self.assertEqual([f for _, _, files in os.walk(prefix) for f in files], [])
        self.assertFalse(os.path.exists(os.path.join(prefix, "lib", "frag")))

    def test_the_unit_test_of_custom_operator(self):
        said = self.command("make", "-s", "check", cwd=os.path.join(self.examples, "custom_operator"))
        self.assertIn("all tests passed", said)
