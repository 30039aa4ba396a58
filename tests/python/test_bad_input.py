# SPDX-License-Identifier: Apache-2.0
"""What operators should not do, and what must not grow. FRAG_PY_RUNS and FRAG_PY_MESSAGES have the
last two tests run for longer."""

import contextlib
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from typing import Annotated

import frag
from frag._operator import class_type
from frag.conditions import CountCondition
from frag.schedulers import GreedyScheduler

import operators
from test_application import App, chain
from test_types import LIBRARY

GRAPH = """frag: 1
application: app
extensions: [%s]
operators:
  op: {type: "python:%s", conditions: [{type: count, count: 2}]}
"""

CHILD = """import os, sys
import frag
from frag.conditions import CountCondition


class Forks(frag.Operator):
    def compute(self, op_input, op_output, context):
        pid = os.fork()
        if pid == 0:
            if sys.argv[1] == "exits":
                os._exit(7)
            return
        print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


class App(frag.Application):
    def compose(self):
        self.add_operator(Forks(self, CountCondition(self, 2), name="forks"))


print(App().run()["result"], flush=True)
"""


def resident_kib():
    if "ASAN_OPTIONS" in os.environ:  # it keeps what is freed for a while
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def references():
    """Of all objects; 0: this Python does not count them (a debug build does, python3-dbg)."""
    return getattr(sys, "gettotalrefcount", int)()


class Modules(unittest.TestCase):
    def refused(self, text, operator, *sentences, name="bad_module", also=()):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name + ".py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            for source, target in also:
                shutil.copy(source, os.path.join(folder, target))
            try:
                with self.assertRaises(frag.Error) as raised:
                    frag.run(GRAPH % (path, "%s.%s" % (name, operator)))
            finally:
                sys.modules.pop(name, None)
                if folder in sys.path:
                    sys.path.remove(folder)
        for sentence in sentences:
            self.assertIn(sentence, str(raised.exception))

    def test_two_classes_of_one_name(self):
        text = (
            "import frag\n"
            "def make():\n"
            "    class Op(frag.Operator):\n"
            "        def compute(self, *a): pass\n"
            "    return Op\n"
            "A, B = make(), make()\n"
        )
        self.refused(text, "make.Op", '"python:bad_module.make.Op" twice')
        with tempfile.TemporaryDirectory() as folder:  # one class of two names is one
            path = os.path.join(folder, "good_module.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("A, B = make(), make()", "A = B = make()"))
            frag.run(GRAPH % (path, "good_module.make.Op"))

    def test_missing_ones_and_those_that_raise(self):
        self.refused("raise ValueError('no luck')\n", "Op", "bad_module.py cannot be loaded: import "
                     "raised ValueError: no luck", "bad_module.py:1 in <module>")
        self.refused("import frag\nclass Op(frag.Operator): pass\n", "Other",
                     'unknown operator type "python:bad_module.Other"; did you mean')
        with self.assertRaisesRegex(frag.Error, "gone.py cannot be found: .*No such file"):
            frag.run(GRAPH % ("./gone.py", "gone.Op"))

    def test_numbers_out_of_range_are_named(self):
        """Each as the program has it, not as an unsigned number of C."""
        def declares(declare, least=1):
            class Op(frag.Operator):
                def setup(self, spec):
                    declare(spec)

                def save(self):
                    return b""

                def restore(self, saved):
                    pass

                def compute(self, op_input, op_output, context):
                    pass

            Op.save_size = least
            return App(lambda app: app.add_operator(Op(app, CountCondition(app, 1), name="op")))

        large = 2**32 + 4
        cases = [(lambda spec: spec.input("one", size=-2), "port one has capacity -2; give 1 to 65536"),
                 (lambda spec: spec.output("two", size=-2), "port two has capacity -2; give 1"),
                 (lambda spec: spec.input("in").queue_policy(-3), "port in has capacity -3; give 1"),
                 (lambda spec: spec.input("in").queue_policy(large), "port in has capacity %d; " % large),
                 (lambda spec: spec.input("in").condition("message_available", min_size=-4),
                  "port in has min_size -4; give 1 to 65536"),
                 (lambda spec: spec.input("in").condition("message_available", min_size=large),
                  "port in has min_size %d; give 1" % large)]
        for declare, sentence in cases:
            with self.assertRaises(ValueError, msg=sentence) as raised:
                declares(declare).run()
            self.assertIn(sentence, str(raised.exception))
        for save_size in (-5, 2**64 + 5):
            with self.assertRaises(ValueError) as raised:
                declares(lambda spec: None, save_size).run()
            self.assertEqual(str(raised.exception), "%d is out of range; give 0 to %d" % (save_size, 2**64 - 1))
        declares(lambda spec: spec.output(size=65536)).run()
        for count in (-3, 0, large):
            class Point:
                x: Annotated[list, "f32", count]
            with self.assertRaisesRegex(TypeError, "Point.x: a field .*, elements\\], not .*, %d\\]" % count):
                frag.struct(Point)

    @unittest.skipUnless(os.path.exists(LIBRARY), "not in a tree that was built")
    def test_extensions_of_another_abi(self):
        """What CPython says about a library that is none of its extensions, or not for it."""
        for target, sentence in (
            ("other.abi3.so", "does not define module export function"),
            ("other.cpython-310-x86_64-linux-gnu.so", "No module named 'other'"),
        ):
            self.refused("import other\n", "Op", "ImportError" if "export" in sentence else
                         "ModuleNotFoundError", sentence, also=((LIBRARY, target),))

    def test_modules_that_are_imported_in_operators(self):
        """Libraries with threads and signal handlers of their own; those that are here."""
        for name in ("numpy", "torch", "cv2"):
            if importlib.util.find_spec(name) is None:
                continue

            class Imports(frag.Operator):
                def compute(self, op_input, op_output, context):
                    found.append(importlib.import_module(name).__name__)
                    return frag.DONE

            found = []
            App(lambda app: app.add_operator(Imports(app))).run()
            self.assertEqual(found, [name])


class Processes(unittest.TestCase):
    def test_children(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "forks.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(CHILD)
            for word, code, said in (("exits", 7, ""), ("returns", 1, "App.forks: a child of os.fork")):
                p = subprocess.run(
                    [sys.executable, path, word], capture_output=True, text=True, timeout=60
                )
                self.assertEqual(p.stdout, "child %d\nchild %d\ndone\n" % (code, code), p.stderr)
                self.assertIn(said, p.stderr)


class Growth(unittest.TestCase):
    RUNS = int(os.environ.get("FRAG_PY_RUNS", 60))
    MESSAGES = int(os.environ.get("FRAG_PY_MESSAGES", 20000))

    def setUp(self):
        operators.Sink.got = []
        operators.Source.values = None

    def test_plugins_leave_nothing(self):
        """Neither one that is refused, nor one that nobody keeps."""
        known, name = class_type(operators.Source), "plugin %d" % os.getpid()
        for types in ([known, object()], [object()], [known]):
            held = known, name, types[-1]
            before = list(map(sys.getrefcount, held))
            with self.subTest(types), contextlib.suppress(TypeError):
                frag._frag.plugin_add(name, types)
                self.assertEqual(types, [known], "what is no type is refused")
            gc.collect()
            self.assertEqual(list(map(sys.getrefcount, held)), before)

    def test_runs_leave_nothing(self):
        def compose(app):
            app.scheduler(GreedyScheduler())
            tx = operators.Source(app, CountCondition(app, 3), name="tx")
            chain(tx, operators.Sink(app))(app)

        def run(count):
            for _ in range(count):
                App(compose).run()
                operators.Sink.got.clear()
            gc.collect()
            return (
                len(gc.get_objects()),
                len(os.listdir("/proc/self/fd")),
                resident_kib(),
                references(),
            )

        run(self.RUNS // 3)
        before = run(self.RUNS // 3)
        after = run(self.RUNS)
        self.assertEqual(after[1], before[1])
        self.assertLess(after[0] - before[0], 50)
        self.assertLess(after[2] - before[2], 4096, "KiB")
        self.assertLess(after[3] - before[3], 200, "references")

    def test_messages_leave_nothing(self):
        """Of every kind of value; the largest set is that of a run, and not of the messages."""
        values = [1, 2.5, "text", b"bytes", [1, 2], {"a": 1.5}, None, 1j, (1, 2), object()]

        class Many(frag.Operator):
            def setup(self, spec):
                spec.output("out")

            def compute(self, op_input, op_output, context):
                self.metadata["n"] = context.count
                value = values[context.count % 10]
                if context.count % 100 == 0:
                    value = {"a": frag.empty(16), "b": frag.empty(2)}
                op_output.emit(value)

        class Counts(frag.Operator):
            def setup(self, spec):
                spec.input("in")

            def compute(self, op_input, op_output, context):
                op_input.receive("in")
                if self.metadata["n"] >= until[0]:
                    sizes.append((resident_kib(), sys.getrefcount(values[9]), references()))
                    until[0] += self.step

        def compose(app):
            tx = Many(app, CountCondition(app, count), name="tx")
            rx = Counts(app, name="rx", step=count // 4)
            app.add_flow(tx, frag.NativeOperator(app, "forward"), capacity=4)
            app.add_flow(app.operators["forward"], rx, capacity=4)

        count, sizes, until = self.MESSAGES, [], [self.MESSAGES // 4]
        App(compose).run()
        self.assertEqual(len(sizes), 3)
        self.assertLess(sizes[-1][0] - sizes[0][0], 2048, "KiB")
        self.assertLess(abs(sizes[-1][1] - sizes[0][1]), 12, sizes)
        self.assertLess(abs(sizes[-1][2] - sizes[0][2]), 200, sizes)


if __name__ == "__main__":
    unittest.main()
