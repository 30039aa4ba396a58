# SPDX-License-Identifier: Apache-2.0
"""frag for Python: its own tests (tests/python) and programs that use it."""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import cluster

PACKAGE = os.path.join(cluster.BUILD, "python")
TESTS = os.path.join(cluster.TOP, "tests", "python")
ENV = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "FRAG_PYTHON": sys.executable}
FRAGCTL = os.path.join(cluster.BIN, "fragctl")

ENDLESS = """import frag
from frag.conditions import PeriodicCondition


class Tick(frag.Operator):
    def start(self):
        print("started", flush=True)

    def compute(self, op_input, op_output, context):
        pass

    def stop(self):
        print("stopped", flush=True)


class App(frag.Application):
    def compose(self):
        self.add_operator(Tick(self, PeriodicCondition(self, "1ms")))


if __name__ == "__main__":
    print(App().run()["result"])
"""

# Its own handler of a signal raises, once or a second time while that ends the application.
RAISES = """import signal
import sys

import endless


def on_alarm(*unused):
    raise TimeoutError("of the program")


signal.signal(signal.SIGALRM, on_alarm)
for number in range(int(sys.argv[1])):
    signal.setitimer(signal.ITIMER_REAL, 0.3, float(sys.argv[2]))
    try:
        endless.App().run()
    except TimeoutError as error:
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("caught what is", error)
"""

# Sends itself a signal at the n-th line of frag._run.execute and of what it calls there.
AT_A_LINE = """import signal
import sys
import threading

import endless

main, count = threading.get_ident(), 0


def on_line(frame, event, arg):
    global count
    if event == "line":
        count += 1
        if count == int(sys.argv[1]):
            sys.settrace(None)
            print(frame.f_code.co_name, file=sys.stderr)
            signal.raise_signal(int(sys.argv[2]))
    return on_line


def on_call(frame, event, arg):
    is_ours = threading.get_ident() == main and frame.f_globals["__name__"] == "frag._run"
    return on_line if is_ours and (count > 0 or frame.f_code.co_name == "execute") else None


app = endless.App()
sys.settrace(on_call)
try:
    print(app.run()["result"])
except KeyboardInterrupt:
    print("interrupted")
"""

GRAPH = """frag: 1
application: app
fragments:
  one:
    extensions: [./operators.py]
    operators:
      tx: {type: "python:operators.Source", parameters: {first: 3}, conditions: [{type: count, count: 4}]}
  two:
    operators:
      rx: {type: ping_rx}
  three:
    extensions: [./operators.py]
    operators:
      rx: {type: "python:operators.Raising", parameters: {where: start}}
flows: [one.tx.out -> two.rx.in]
"""


COMPONENTS = """frag: 1
application: app
extensions: [./components.py]
resources:
  t: {type: "python:components.Table", size: 5}
operators:
  tx: {type: "python:components.Counts", parameters: {table: $t, times: $Times},
       conditions: [{type: "python:components.Times", limit: 4}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""

CROSSING = """import os
import frag


class Thing:
    pass


if "WITH_CODEC" in os.environ:
    frag.register_codec(Thing, lambda thing: b"x", lambda data: Thing())


class Tx(frag.Operator):
    def setup(self, spec):
        spec.output("out", type=Thing)

    def compute(self, op_input, op_output, context):
        op_output.emit(Thing())
        return frag.DONE


@frag.operator
def show(value: Thing) -> None:
    print("got a", type(value).__name__)


class Parts(frag.Application):
    def compose(self):
        one, two = frag.Fragment(self, "one"), frag.Fragment(self, "two")
        one.compose = lambda: one.add_operator(Tx(one, name="tx"))
        two.compose = lambda: two.add_operator(show(two, name="rx"))
        self.add_flow(one, two, {("tx.out", "rx.value")})


if __name__ == "__main__":
    Parts().run()
"""

COUNTER = """import frag


class Counter(frag.Operator):
    seen = None

    def restore(self, state):
        self.seen = int(state)

    def start(self):
        print("starts", "anew" if self.seen is None else "with %d" % self.seen, flush=True)
        self.seen = self.seen or 0

    def compute(self, op_input, op_output, context):
        self.seen += 1
        if self.seen == 4 and context.count == 3:
            raise ValueError("the fourth")
        return frag.DONE if self.seen == 8 else None

    def save(self):
        return b"x" * 5000 if self.seen == 7 else b"%d" % self.seen

    def stop(self):
        if self.seen == 8:
            print("saw 8 in all", flush=True)
"""

EXITS = """import os

import frag


class Exits(frag.Operator):
    def setup(self, spec):
        spec.param("status", 1)

    def compute(self, op_input, op_output, context):
        os._exit(self.status)
"""

EXITS_GRAPH = """frag: 1
application: app
extensions: [./exits.py]
operators:
  op: {type: "python:exits.Exits", parameters: {status: %d}, conditions: [{type: count, count: 2}]}
"""

ENDLESS_GRAPH = """frag: 1
application: endless
extensions: [./operators.py]
operators:
  tx: {type: "python:operators.Source", conditions: [{type: periodic, recess_period: 1ms}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""

CLIENT = """import sys
import frag

address, fragctl, graph = sys.argv[1:]
client = frag.Client(address, fragctl=fragctl)


def failure(verb, *args, **options):
    try:
        verb(*args, **options)
    except frag.ClientError as error:
        return error
    return None


print(client.start(graph, name="cam", start_timeout="30s")["state"])
client.set("cam", "endless.tx.step", 2.5)
client.set("cam", "endless.tx.step", "1.5")  # a text is passed on as it is
print(failure(client.set, "cam", "endless.tx.step", 11).kind)
error = failure(client.stop, "nothing")
print(error.kind, error.exit_code)
print(client.stop("cam")["state"])
print(client.list()["ended"][0]["name"] == "cam" and client.status("cam")["result"] == "stopped")
print([event["text"].rpartition("=")[2].strip() for event in client.events()
       if "endless.tx.step" in event["text"]][:2])
error = failure(frag.Client("127.0.0.1:1", fragctl=fragctl).list)
print(error.kind, error.exit_code)
"""

PROGRAM = """import frag
from components import Counts, Table, Times


class App(frag.Application):
    def compose(self):
        times = Times(self, limit=2)
        tx = Counts(self, times, name="tx", table=Table(self, size=3), times=times)
        self.add_flow(tx, frag.NativeOperator(self, "ping_rx"))


if __name__ == "__main__":
    App().run()
"""


FRAMES = """import frag


class Camera(frag.Operator):
    def setup(self, spec):
        spec.output("frames", type="tensor")

    def compute(self, op_input, op_output, context):
        frame = frag.empty((1080, 1920, 3), "uint8")
        memoryview(frame).cast("B")[0] = context.count
        op_output.emit(frame)


class Viewer(frag.Operator):
    def setup(self, spec):
        spec.input("frames", type="tensor")
        self.count = 0

    def compute(self, op_input, op_output, context):
        self.count += 1
        self.last = memoryview(op_input.receive("frames")).cast("B")[0]

    def stop(self):
        print(self.count, "frames, the last one begins with", self.last, flush=True)
"""

HANGS = """import os
import time
import frag


class Hangs(frag.Operator):
    def compute(self, op_input, op_output, context):
        if not os.path.exists(os.environ["MARK"]):
            open(os.environ["MARK"], "w").close()
            time.sleep(600)
        print("goes on", flush=True)
"""

TOLD = """import frag


class Told(frag.Operator):
    seen = 0

    def start(self):
        print("version %d begins with", self.seen, flush=True)

    def save(self):
        return b"%%d" %% self.seen

    def restore(self, state):
        self.seen = int(state)

    def compute(self, op_input, op_output, context):
        self.seen += 1
"""

FRAMES_GRAPH = """frag: 1
application: app
extensions: [./frames.py]
fragments:
  one: {operators: {camera: {type: "python:frames.Camera", conditions: [{type: count, count: 20}]}}}
  two: {operators: {viewer: {type: "python:frames.Viewer"}}}
flows: [one.camera -> two.viewer]
"""


class Hosts(cluster.ClusterTest):
    """Hosts in Python, which workerd or fragctl starts."""

    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(TESTS, "operators.py"), self.path("operators.py"))
        self.whole = self.write("app.yaml", GRAPH)
        self.app = self.write("good.yaml", GRAPH.replace("where: start", "where: none"))

    def run_app(self, *args, env=ENV):
        p = self.start(FRAGCTL, "run", "--output", "json", *args, env=env)
        p.wait(60)
        return p

    def test_one_host_and_two_workers(self):
        for args in ((), ("--workers", "3")):
            with self.subTest(args):
                p = self.run_app(*args, self.app)
                self.assertEqual(p.wait(), 0, p.stderr)
                summary = json.loads(p.stdout)
                self.assert_balanced(summary)
                self.assertEqual(summary["flows"][0]["delivered"], 4)
                self.assertEqual(re.findall(r"Rx message value: (\d)", p.stderr), ["3", "4", "5", "6"])
                one = summary["fragments"][0]["operators"][0]
                self.assertEqual(one["type"], "python:operators.Source")

    def fragctl(self, *args, env=ENV):
        p = self.start(FRAGCTL, *args, env=env)
        return p.wait(), p.stdout, p.stderr

    def test_a_program_with_roles(self):
        app = os.path.join(cluster.TOP, "examples", "python", "ping_distributed.py")
        program = shutil.copy(app, self.path("program.py"))
        env = {**ENV, "PATH": cluster.BIN + ":" + os.environ["PATH"]}
        p = self.start(sys.executable, program, "--workers", "2", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("round 3 brought [0, 3, 6]", p.stderr)
        self.assertEqual(sorted(f for f in os.listdir(self.folder) if f.endswith(".yaml")),
                         ["app.yaml", "good.yaml"])
        port = self.free_port()
        worker = self.start(sys.executable, program, "--worker", "--address", "127.0.0.1:%d" % port,
                            "--fragments", "receiver", env=env)
        driver = self.start(sys.executable, program, "--driver", "--worker", "--address",
                            "127.0.0.1:%d" % port, "--fragments=sender", env=env)
        self.assertEqual((driver.wait(), worker.wait()), (0, 0), driver.stderr + worker.stderr)
        self.assertIn("round 3 brought [0, 3, 6]", worker.stderr)
        p = self.start(sys.executable, program, "--workers", "2", env={**env, "PATH": "/nowhere"})
        self.assertEqual(p.wait(), 1)
        self.assertIn("fragctl, which is not in PATH", p.stderr)
        with open(program, encoding="utf-8") as file:
            text = file.read()
        path = self.write("objects.py", text.replace('name="ping")', 'name="ping", length=object())'))
        p = self.start(sys.executable, path, "--workers", "2", env=env)
        self.assertEqual(p.wait(), 1)
        self.assertIn("ping: length is nothing that a graph can hold", p.stderr)

    def test_help_lists_the_flags_and_runs_nothing(self):
        app = os.path.join(cluster.TOP, "examples", "python", "ping_distributed.py")
        program = shutil.copy(app, self.path("program.py"))
        with open(program, encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(PACKAGE, "frag", "_roles.py"), encoding="utf-8") as file:
            known = re.findall(r'"(--[a-z-]+)": (?:True|False)', file.read())
        self.assertIn("--fragments", known)
        for flags in ["--help"], ["-h"], ["--workers", "2", "--help"]:
            p = self.start(sys.executable, program, *flags, env=ENV)
            self.assertEqual(p.wait(), 0, p.stderr)
            self.assertEqual(p.stderr, "")
            self.assertIn("usage: program.py [FLAGS]", p.stdout)
            self.assertIn("\nTwo fragments, one with an operator in C and one in Python.", p.stdout)
            for flag in known:
                self.assertRegex(p.stdout, "(?m)^  %s " % flag)
            self.assertLessEqual(max(map(len, p.stdout.splitlines())), 100)
        p = self.start(sys.executable, program, "--", "--help", env=ENV)  # the program's own
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("round 3 brought [0, 3, 6]", p.stdout + p.stderr)
        later = self.write("later.py", text.replace(".run()", ".run_async().result()"))
        p = self.start(sys.executable, later, "--help", env=ENV)
        self.assertEqual((p.wait(), p.stderr), (0, ""))
        self.assertIn("--workers N", p.stdout)

    def test_conditions_and_resources(self):
        path = shutil.copy(os.path.join(TESTS, "components.py"), self.path("components.py"))
        self.write("app2.yaml", COMPONENTS)
        p = self.run_app("--workers", "1", self.path("app2.yaml"))
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(json.loads(p.stdout)["flows"][0]["delivered"], 4)
        self.assertIn("counted [4, 0, 0, 0, 0] 4 4", p.stderr)
        code, out, err = self.fragctl("inspect", path)
        self.assertEqual(code, 0, err)
        for line in (r"python:components.Times \(condition of .*components.py", r"limit +i64 +3",
                     r"python:components.Table \(resource of .*components.py", r"size +i64 +2"):
            self.assertRegex(out, line)
        self.assertEqual(self.fragctl("validate", self.path("app2.yaml"))[0], 0)
        bad = self.write("bad.yaml", COMPONENTS.replace("limit: 4", "limit: x"))
        code, _, err = self.fragctl("validate", bad)
        self.assertEqual(code, 2)
        self.assertIn("limit", err)
        program = self.write("program.py", PROGRAM)
        env = {**ENV, "PATH": cluster.BIN + ":" + os.environ["PATH"]}
        p = self.start(sys.executable, program, "--workers", "1", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("counted [2, 0, 0] 2 2", p.stderr)

    def test_an_object_that_cannot_leave_its_process(self):
        program = self.write("crossing.py", CROSSING)
        env = {**ENV, "PATH": cluster.BIN + ":" + os.environ["PATH"]}
        for codec, code in (({"WITH_CODEC": "1"}, 0), ({}, 1)):
            with self.subTest(codec):
                p = self.start(sys.executable, program, "--workers", "2", env={**env, **codec})
                self.assertEqual(p.wait(), code, p.stderr)
                self.assertEqual("got a Thing" in p.stdout + p.stderr, code == 0)
        self.assertIn('type "crossing.Thing" has no codec', p.stderr)
        self.assertNotIn("runs in", p.stderr)

    def test_state_that_outlives_a_failure(self):
        self.write("counter.py", COUNTER)
        graph = self.write("counter.yaml", """frag: 1
application: app
extensions: [./counter.py]
on_failure: {policy: restart, backoff: 10ms}
operators: {op: {type: "python:counter.Counter", conditions: [{type: count, count: 20}]}}
""")
        p = self.run_app("--workers", "1", graph)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(re.findall(r"(?:starts|saw) [\w ]+", p.stderr),
                         ["starts anew", "starts with 3", "saw 8 in all"])
        self.assertIn("save raised ValueError: 5000 bytes are more than save_size, 4096", p.stderr)

    def test_a_watchdog(self):
        """It ends a tick that hangs, and the next process goes on."""
        self.write("hangs.py", HANGS)
        graph = """frag: 1
application: app
extensions: [./hangs.py]
%s
operators:
  op: {type: "python:hangs.Hangs", watchdog: 500ms, conditions: [{type: count, count: 3}]}
"""
        env = {**ENV, "MARK": self.path("mark")}
        p = self.run_app("--workers", "1", self.write("hangs.yaml", graph % ""), env=env)
        self.assertEqual(p.wait(), 1, p.stderr)
        self.assertRegex(p.stderr, r"app\.op: compute has run for \d+ ms, longer than its watchdog")
        os.unlink(self.path("mark"))
        restarts = "on_failure: {policy: restart, backoff: 10ms}"
        p = self.run_app("--workers", "1", self.write("again.yaml", graph % restarts), env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("goes on", p.stderr)

    def test_a_client(self):
        """Verbs of fragctl in Python; their failures have a kind."""
        driver = self.start(os.path.join(cluster.BIN, "driverd"), "--address", "127.0.0.1:0")
        address = driver.wait_line(r"listening on (\S+)").group(1)
        worker = self.start(os.path.join(cluster.BIN, "workerd"), "--address", address, "--app-root",
                            self.folder, "--python", sys.executable, env=ENV)
        self.write("endless.yaml", ENDLESS_GRAPH)
        program = self.write("client.py", CLIENT)
        p = self.start(sys.executable, program, address, FRAGCTL, self.path("endless.yaml"),
                       env=ENV)
        self.assertEqual(p.wait(60), 0, p.stderr)
        self.assertEqual(p.stdout.split("\n"), ["running", "usage", "application_unknown 3", "stopped",
                                                "True", "['2.5', '1.5']", "driver_lost 3"])

    def test_a_module_is_swapped(self):
        """The new one has the name of the old one, in a folder of its own; else its types differ."""
        for path, version in (("told.py", 1), ("v2/told.py", 2), ("told2.py", 3)):
            os.makedirs(self.path("v2"), exist_ok=True)
            self.write(path, TOLD % version)
        driver = self.start(os.path.join(cluster.BIN, "driverd"), "--address", "127.0.0.1:0")
        address = driver.wait_line(r"listening on (\S+)").group(1)
        worker = self.start(os.path.join(cluster.BIN, "workerd"), "--address", address,
                            "--library-path", self.folder, "--python", sys.executable, env=ENV)
        graph = self.write("told.yaml", """frag: 1
application: app
extensions: [told.py]
operators: {op: {type: "python:told.Told", conditions: [{type: periodic, recess_period: 5ms}]}}
""")
        self.assertEqual(self.fragctl("start", graph, "--address", address)[0], 0)
        worker.wait_line("version 1 begins with 0")
        code, _, err = self.fragctl("swap", "app", "app", "--library", "told2.py", "--address", address)
        self.assertNotEqual(code, 0)
        self.assertIn('unknown operator type "python:told.Told"', err)
        code, out, err = self.fragctl("swap", "app", "app", "--library", "v2/told.py", "--address", address)
        self.assertEqual(code, 0, err)
        self.assertRegex(worker.wait_line(r"version 2 begins with (\d+)").group(1), "[1-9]")

    def test_types_are_known_without_running_them(self):
        code, out, err = self.fragctl("inspect", "./operators.py")
        self.assertEqual(code, 0, err)
        for line in (r"python:operators.Source \(operator of .*operators.py", r"step +f64 +1 +0 to 10 +dynamic",
                     r"names +list of strings +\[\"a\"\]|names .*a", r"in +in +message"):
            self.assertRegex(out, line)
        self.assertEqual(self.fragctl("validate", self.app)[0], 0)
        code, _, err = self.fragctl("validate", self.app, "--set", "one.tx.step=11")
        self.assertEqual(code, 2)
        self.assertIn("it must be from 0 to 10", err)
        self.assertIn("tx    python:operators.Source", self.fragctl("describe", self.app)[1])
        broken = self.write("broken.py", "print('to stdout')\nimport nothing_like_it\n")
        code, out, err = self.fragctl("inspect", broken)
        self.assertEqual((code, out), (2, ""), err)
        self.assertIn("No module named 'nothing_like_it'", err)
        code, _, err = self.fragctl("validate", self.app, env={**ENV, "FRAG_PYTHON": "no-such-python"})
        self.assertEqual(code, 3, err)
        self.assertIn("no-such-python cannot be started", err)
        code, _, err = self.fragctl("run", "--in-process", self.app)
        self.assertEqual(code, 3, err)
        self.assertIn("leave --in-process out", err)

    def test_a_failure_says_where(self):
        p = self.run_app(self.whole)
        self.assertEqual(p.wait(), 1)
        failure = json.loads(p.stdout)["failure"]
        self.assertIn("start raised ValueError: no | luck (operators.py:", failure["sentence"])
        self.assertEqual(failure["operator"], "three.rx")
        self.assertIn("Traceback (most recent call last)", p.stderr)

    def test_a_host_that_ends_itself(self):
        """By os._exit(), which calls nothing that frag could catch."""
        self.write("exits.py", EXITS)
        for status in (5, 0):
            p = self.run_app(self.write("exits.yaml", EXITS_GRAPH % status))
            self.assertEqual(p.wait(60), 1, p.stderr)
            failure = json.loads(p.stdout)["failure"]
            self.assertIn("exited with status %d in app.op, tick 1" % status, failure["sentence"])

    def test_without_python_or_frag_in_it(self):
        p = self.run_app(self.app, env={**ENV, "FRAG_PYTHON": "no-such-python"})
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assertIn("there is no program no-such-python", p.stderr)
        self.assertNotIn("nothing reads the variable", p.stderr)
        p = self.run_app(self.app, env={**ENV, "PYTHONPATH": self.path("nowhere")})
        self.assertEqual(p.wait(), 1, p.stderr)
        self.assertIn("No module named", p.stderr)
        self.assertIn("install the package frag for that Python", p.stderr)

    def test_a_worker_whose_administrator_names_no_python(self):
        driver = self.driver(self.app)
        self.worker("--app-root", self.folder)
        driver.wait(60)
        self.assertIn("this worker has no Python; start it with --python", driver.stderr)

    def test_a_host_is_not_started_by_hand(self):
        p = self.start(sys.executable, "-m", "frag.host", env=ENV)
        self.assertEqual(p.wait(), 2)
        self.assertIn("workerd starts one", p.stderr)


class Python(cluster.ClusterTest):
    def python(self, *args, **options):
        return self.start(sys.executable, *args, env=ENV, **options)

    def test_the_unit_tests(self):
        p = self.python("-m", "unittest", "discover", "-v", "-s", TESTS)
        self.assertEqual(p.wait(120), 0, p.stderr[-6000:])
        self.assertRegex(p.stderr, r"Ran \d\d+ tests")
        self.assertRegex(p.stderr, r"OK( \(skipped=\d+\))?$")
        for reason in re.findall(r"skipped '(.*)'$", p.stderr, re.M):
            self.assertRegex(reason, "numpy|pyyaml|GPU|driver of tests")

    def test_a_new_project(self):
        p = self.start(FRAGCTL, "new", "--python", "blurry", cwd=self.folder, env=ENV)
        self.assertEqual(p.wait(), 0, p.stderr)
        folder, expected = self.path("blurry"), ["blurry: %g.0" % (3 * n) for n in range(1, 6)]
        for command in ((sys.executable, "-m", "unittest"), (sys.executable, "blurry.py"),
                        (FRAGCTL, "run", "app.yaml")):
            p = self.start(*command, cwd=folder, env=ENV)
            self.assertEqual(p.wait(), 0, p.stderr)
            if "-m" not in command:
                self.assertEqual(re.findall(r"blurry: \d+\.0", p.stdout + p.stderr), expected)
        for name in ("lambda", "show"):
            p = self.start(FRAGCTL, "new", "--python", name, cwd=self.folder, env=ENV)
            self.assertEqual(p.wait(), 2)
            self.assertIn("cannot be the name of a project", p.stderr)

    def test_arrays_on_a_gpu(self):
        fake = os.path.join(cluster.BUILD, "tests", "cuda")
        p = self.start(sys.executable, "-m", "unittest", "discover", "-s", TESTS, "-p",
                       "test_memory.py", "-k", "Gpu", env={**ENV, "LD_LIBRARY_PATH": fake,
                                                           "FAKE_CUDA": "1"})
        self.assertEqual(p.wait(60), 0, p.stderr[-3000:])
        self.assertRegex(p.stderr, r"Ran [56] tests")
        self.assertTrue(p.stderr.endswith("OK"), p.stderr)

    def test_frames_cross_processes_uncopied(self):
        self.write("frames.py", FRAMES)
        graph = self.write("frames.yaml", FRAMES_GRAPH)
        p = self.start(FRAGCTL, "run", "--output", "json", "--workers", "2", graph, env=ENV)
        self.assertEqual(p.wait(60), 0, p.stderr)
        flow = json.loads(p.stdout)["flows"][0]
        self.assertEqual((flow["edge"], flow["delivered"], flow["copied_bytes"]), ("shm", 20, 0))
        self.assertIn("20 frames, the last one begins with 19", p.stderr)

    def test_the_examples(self):
        examples = os.path.join(cluster.TOP, "examples", "python")
        with open(os.path.join(cluster.TOP, "docs", "PYTHON.md"), encoding="utf-8") as file:
            first = re.search(r"```python\n(.*?)```", file.read(), re.S).group(1)
        for path in (os.path.join(examples, "hello.py"), self.write("hello.py", first)):
            p = self.python(path)
            self.assertEqual(p.wait(), 0, p.stderr)
            self.assertEqual(p.stdout, "hello 10\nhello 11\nhello 12")
        p = self.python(os.path.join(examples, "ping_distributed.py"))
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("round 3 brought [0, 3, 6]", p.stdout)
        graph = os.path.join(examples, "ping_distributed.yaml")
        p = self.start(FRAGCTL, "run", "--workers", "2", graph, env=ENV)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("round 3 brought [0, 3, 6, 9]", p.stderr)

    def test_signals_end_it_in_order(self):
        path = self.write("endless.py", ENDLESS)
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                p = self.python(path)
                p.wait_line("started", "stdout")
                p.signal(number)
                self.assertEqual(p.wait(), 0, p.stderr)
                self.assertEqual(p.stdout.split(), ["started", "stopped", "stopped"])
                self.assertEqual(p.stderr, "")

    def test_a_signal_at_any_line_of_a_run_ends_it_in_order(self):
        """Also while it is being started; before its handlers are there the program is interrupted."""
        self.write("endless.py", ENDLESS)
        path = self.write("at_a_line.py", AT_A_LINE)
        for number, lines in ((signal.SIGINT, range(1, 37)), (signal.SIGTERM, range(2, 37, 2))):
            ordered = set()
            for line, p in [(n, self.python(path, str(n), str(int(number)))) for n in lines]:
                code, words, place = p.wait(), p.stdout.split(), p.stderr
                with self.subTest(number=number, line=line, place=place):
                    if not ordered and place in ("execute", "__init__", "__enter__") and "stopped" not in words:
                        self.assertIn((code, words), ((128 + number, []), (0, ["interrupted"])))
                        continue
                    self.assertEqual(code, 0)
                    self.assertIn(words, (["stopped"], ["started", "stopped", "stopped"]))
                    ordered.add(place)
            self.assertIn("execute", ordered)
            self.assertIn("_start", ordered)

    def test_what_a_handler_of_the_program_raises_ends_it_in_order(self):
        """And the program goes on from there, with nothing left of the application."""
        self.write("endless.py", ENDLESS)
        path = self.write("raises.py", RAISES)
        once = ["started", "stopped", "caught what is of the program"]
        p = self.python(path, "2", "0")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(p.stdout.splitlines(), once + once)
        self.write("endless.py", ENDLESS.replace("        pass\n", "        __import__('time').sleep(99)\n"))
        begun = time.monotonic()
        p = self.python(path, "1", "0.5")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(p.stdout.splitlines(), [once[0], once[-1]])
        self.assertLess(time.monotonic() - begun, 8 * cluster.times_slower(), "the second one ends it at once")

    def test_a_program_that_ends_while_it_runs(self):
        path = self.write("leaves.py", ENDLESS.replace('print(App().run()["result"])', "App().run_async()"))
        p = self.python(path)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(p.stderr, "")

    def test_the_traceback_of_a_failure(self):
        path = self.write("fails.py", ENDLESS.replace("        pass\n", "        1 / 0\n"))
        p = self.python(path)
        self.assertEqual(p.wait(), 1)
        self.assertRegex(p.stderr, r"(?s)ZeroDivisionError.*direct cause.*compute raised ZeroDivisionError: "
                                   r"division by zero \(fails.py:\d+ in compute\)")
        self.assertIn("stopped", p.stdout)

    def test_it_uses_what_is_public_and_the_stable_abi(self):
        """Includes are public headers, and every function of CPython is in its stable ABI."""
        for path in glob.glob(os.path.join(cluster.TOP, "python", "src", "*.[ch]")):
            for include in re.findall(r'#include <(\w+/.*)>', open(path, encoding="utf-8").read()):
                self.assertRegex(include, r"^(frag|sys)/", path)
        libraries = subprocess.run(["readelf", "-d", os.path.join(PACKAGE, "frag", "_frag.abi3.so")],
                                   capture_output=True, text=True, check=True).stdout
        self.assertIn("libfrag.so.1", libraries)
        self.assertNotIn("libpython", libraries)


if __name__ == "__main__":
    cluster.main()
