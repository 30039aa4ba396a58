# SPDX-License-Identifier: Apache-2.0
"""Programs of Holoscan with roles: python3 -m frag.holoscan APP.py --driver --worker ..."""
import json
import os
import shutil
import sys

import cluster

PACKAGE = os.path.join(cluster.BUILD, "python")
ENV = {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1", "FRAG_PYTHON": sys.executable,
       "PATH": cluster.BIN + ":" + os.environ["PATH"]}

# As Holoscan's ping_distributed with objects: a class of the program, metadata, initialize() where
# the operator runs, a logger, a flag of the program's own, and an exception if one is asked for.
PROGRAM = '''
import sys
from holoscan.conditions import CountCondition
from holoscan.core import Application, Fragment, Operator
from holoscan.data_loggers import AsyncConsoleLogger


class Value:
    def __init__(self, number):
        self.number = number


class Tx(Operator):
    def initialize(self):
        super().initialize()
        self.number = 40
        print("tx is initialized", flush=True)

    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        self.number += 1
        self.metadata["unit"] = "mm"
        op_output.emit(Value(self.number), "out")


class Rx(Operator):
    def setup(self, spec):
        spec.input("in")
        spec.param("factor", 1)

    def compute(self, op_input, op_output, context):
        value = op_input.receive("in")
        if "--fail" in self.fragment.application.argv:
            raise ValueError("no value is good enough")
        # in one piece, since the thread of the logger writes too
        sys.stdout.write("rx got %d %s\\n" % (value.number * self.factor, self.metadata["unit"]))


class Sender(Fragment):
    def compose(self):
        self.add_operator(Tx(self, CountCondition(self, 2), name="tx"))


class Receiver(Fragment):
    def compose(self):
        self.add_operator(Rx(self, name="rx", factor=10))
        self.add_data_logger(AsyncConsoleLogger(self, name="log"))


class Ping(Application):
    def compose(self):
        self.add_flow(Sender(self, name="sender"), Receiver(self, name="receiver"),
                      {("tx.out", "rx.in")})


if __name__ == "__main__":
    app = Ping()
    print("flags", app.argv[1:], flush=True)
    app.run()
    print("the end", flush=True)
'''


# Tensors between fragments, with metadata that no operator in C can read beside some that it can.
TENSORS = '''
import ctypes
import frag
from holoscan.conditions import CountCondition
from holoscan.core import Application, Fragment, Operator, Tensor


class Tx(Operator):
    def setup(self, spec):
        spec.output("out")

    def compute(self, op_input, op_output, context):
        tensor = frag.empty((300, 1000), "uint8")
        memoryview(tensor).cast("B")[-1] = 7
        self.metadata.set("scale", 2.5)
        self.metadata.set("box", (1, {2}))
        op_output.emit({"image": tensor, "mask": tensor}, "out", acq_timestamp=12)


class Rx(Operator):
    def setup(self, spec):
        spec.input("in")

    def compute(self, op_input, op_output, context):
        tensors = op_input.receive("in")
        image = tensors["image"]
        assert type(image) is Tensor and list(tensors) == ["image", "mask"]
        print("got", image.shape, ctypes.string_at(image.data, image.nbytes)[-1],
              self.metadata["scale"], self.metadata["box"],
              op_input.get_acquisition_timestamp("in"), flush=True)


class One(Fragment):
    def compose(self):
        self.add_operator(Tx(self, CountCondition(self, 3), name="tx"))


class Two(Fragment):
    def compose(self):
        self.add_operator(Rx(self, name="rx"))


class Tensors(Application):
    def compose(self):
        self.add_flow(One(self, name="one"), Two(self, name="two"), {("tx.out", "rx.in")})


if __name__ == "__main__":
    Tensors().run()
'''


class PythonTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(PACKAGE, "frag", "_frag.abi3.so")):
            self.skipTest("this build has no extension for Python")


class Names(PythonTest):
    def test_the_table_of_names(self):
        """docs/FROM_HOLOSCAN.md says of each name what frag.holoscan has."""
        script = os.path.join(cluster.TOP, "mk", "holoscan_names.py")
        p = self.start(sys.executable, script, "--build", cluster.BUILD, "--check")
        self.assertEqual(p.wait(), 0, p.stderr)


class Programs(PythonTest):
    def setUp(self):
        super().setUp()
        self.program = self.write("ping.py", PROGRAM)

    def run_program(self, *flags, env=ENV):
        return self.start(sys.executable, "-m", "frag.holoscan", self.program, *flags, env=env)

    def assert_received(self, p):
        self.assertIn("rx got 410 mm", p.stdout + p.stderr)
        self.assertIn("rx got 420 mm", p.stdout + p.stderr)
        self.assertIn("AsyncConsoleLogger[ID:receiver.rx.in]", p.stdout + p.stderr)

    def test_in_one_process(self):
        p = self.run_program("-l", "x")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(p.stdout.splitlines(), [
            "flags ['-l', 'x']", "tx is initialized", "rx got 410 mm", "rx got 420 mm", "the end"])
        self.assert_received(p)

    def test_help(self):
        p = self.run_program("--driver", "-h")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertRegex(p.stdout, r"usage: ping.py .*\n[^!]*--worker-address ADDRESS")
        self.assertNotIn("flags", p.stdout)

    def test_on_two_machines(self):
        address = "127.0.0.1:%d" % self.free_port()
        worker = self.run_program("--worker", "--address", address, "--fragments", "receiver")
        driver = self.run_program("--driver", "--worker", "-d", "--address", address,
                                  "--fragments", "sender")
        self.assertEqual((driver.wait(), worker.wait()), (0, 0), driver.stderr + worker.stderr)
        self.assertIn("flags ['-d']\n", driver.stdout)
        self.assertIn("the end", driver.stdout)
        self.assert_received(worker)
        # an operator is initialized once, where it runs
        self.assertEqual((driver.stdout + driver.stderr).count("tx is initialized"), 1)
        self.assertNotIn("tx is initialized", worker.stdout + worker.stderr)
        self.assertEqual(os.listdir(self.folder).count(".holoscan"), 0)

    def test_tensors_cross_processes_uncopied(self):
        self.program = self.write("tensors.py", TENSORS)
        address, env = "127.0.0.1:%d" % self.free_port(), {**ENV, "FRAG_OUTPUT": "json"}
        worker = self.run_program("--worker", "--address", address, "--fragments", "two")
        p = self.run_program("--driver", "--worker", "--address", address, "--fragments", "one",
                             env=env)
        self.assertEqual((p.wait(), worker.wait()), (0, 0), p.stderr + worker.stderr)
        flow = json.loads(p.stdout)["flows"][0]
        self.assertEqual((flow["edge"], flow["delivered"], flow["copied_bytes"]), ("shm", 3, 0))
        expected = "got (300, 1000) 7 2.5 (1, {2}) 12"
        self.assertEqual(worker.stderr.count(expected), 3, worker.stderr)
        p = self.run_program("--driver", "--worker", "--address", "127.0.0.1:0", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(json.loads(p.stdout)["flows"][0]["edge"], "inproc")
        self.assertEqual(p.stderr.count(expected), 3, p.stderr)

    def test_an_exception_of_a_host(self):
        p = self.run_program("--driver", "--worker", "--fail", "--address", "127.0.0.1:0")
        self.assertEqual(p.wait(), 1)
        self.assertIn("no value is good enough", p.stderr)
        self.assertIn("RuntimeError: Ping: fragctl run ended with exit code 1", p.stderr)

    def test_what_is_wrong(self):
        p = self.run_program("--worker", "--fragments", "receiver,sink")
        self.assertEqual(p.wait(), 1)
        self.assertIn("--fragments names no fragment of the application: sink; it has sender, "
                      "receiver", p.stderr)
        shutil.copy(self.program, self.path("other.py"))
        p = self.run_program("--driver", "--worker", env={**ENV, "PATH": "/nowhere"})
        self.assertEqual(p.wait(), 1)
        self.assertIn("fragctl, which is not in PATH", p.stderr)


if __name__ == "__main__":
    cluster.main()
