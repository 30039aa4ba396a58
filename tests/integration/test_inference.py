# SPDX-License-Identifier: Apache-2.0
"""The operator inference in applications, with the engine of tests/engine in place of OpenVINO."""
import os
import re
import signal
import time

import cluster
from test_service import ServiceTest

MODEL = "engine of tests\ninput image 16 4 4\noutput sum 4 1\n"
FRAMES = 5
APP = """frag: 1
application: app
scheduler: {type: greedy}
operators:
  frames:
    type: ping_tensor_tx
    parameters: {rows: 4, columns: 4}
    conditions: [{type: count, count: %(count)d}]
  detect:
    type: inference
    parameters:
      model_path_map: {m: m.model}
      pre_processor_map: {m: [""]}
      inference_map: {m: [sum]}
  results: {type: ping_tensor_rx}
%(more)s
flows:
  - frames.out -> detect.receivers
  - detect.transmitter -> results.in
%(flows)s
"""
PING = ("  tx: {type: ping_tx, conditions: [{type: count, count: 300}]}\n  rx: {type: ping_rx}\n",
        "  - tx.out -> rx.in\n")


class Engine(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.env["FRAG_OPENVINO"] = os.path.join(cluster.BUILD, "tests", "engine")
        self.env["FRAG_TEST_ENGINE_GATE"] = self.path("gate")

    def application(self, model, count=FRAMES, more="", flows=""):
        self.write("m.model", model)
        return self.write("app.yaml", APP % {"count": count, "more": more, "flows": flows})

    def open_the_gate(self):
        self.write("gate", "")

    def begin(self, app):
        return self.start("fragctl", "run", "--output", "json", app)

    def flow(self, program, source):
        return next(f for f in self.summary(program)["flows"] if f["from"].endswith(source))

    def test_other_operators_go_on_on_its_thread(self):
        """The only thread of the scheduler is free while a run is under way."""
        program = self.begin(self.application(MODEL + "waits\n", more=PING[0], flows=PING[1]))
        program.wait_line(r"\b300\b")
        self.open_the_gate()
        self.assertEqual(program.wait(), 0, program.stderr)
        summary = self.summary(program)
        self.assert_balanced(summary)
        self.assertEqual(self.flow(program, "detect.transmitter")["delivered"], FRAMES)
        ticks = {o["name"]: o["ticks"] for o in summary["fragments"][0]["operators"]}
        self.assertEqual(ticks["detect"], FRAMES)

    def test_a_stop_loses_no_frame_that_the_engine_has(self):
        program = self.begin(self.application(MODEL + "waits\n", count=1000000, more=PING[0],
                                              flows=PING[1]))
        program.wait_line(r"\b300\b")
        program.signal(signal.SIGTERM)
        self.open_the_gate()
        self.assertEqual(program.wait(), 0, program.stderr)
        self.assert_balanced(self.summary(program))
        frames, results = (self.flow(program, n) for n in ("frames.out", "detect.transmitter"))
        self.assertGreater(frames["delivered"], 0)
        self.assertEqual((frames["delivered"], frames["sent"]), (results["delivered"], frames["sent"]))

    def test_no_watchdog_counts_how_long_a_model_is_made_ready(self):
        self.env["FRAG_ONNXRUNTIME"] = self.env["FRAG_OPENVINO"]
        app = self.application("engine of tests\ninput image 1 4 4\noutput sum 1 4 4\nslow\n")
        with open(app, encoding="utf-8") as file:
            text = file.read().replace("type: inference", "type: inference\n    watchdog: 300ms")
        text = text.replace("parameters:\n      model",
                            "parameters:\n      backend: onnxruntime\n      model")
        text = text.replace("{rows: 4, columns: 4}", "{rows: 4, columns: 4, data_type: float}")
        program = self.begin(self.write("app.yaml", text))
        time.sleep(1)
        self.open_the_gate()
        self.assertEqual(program.wait(), 0, program.stderr)
        self.assertEqual(self.flow(program, "detect.transmitter")["delivered"], FRAMES)

    def failure(self, model):
        program = self.begin(self.application(model))
        self.assertNotEqual(program.wait(), 0)
        self.assert_nothing_left()
        return program.stderr

    def test_bad_models_are_explained(self):
        """As a person meets them: what failed, why, and what to do."""
        for model, words in (
                ("", r"m\.model is empty; copy or download it again"),
                ("engine of tests\ninput im", r"is not a model that OpenVINO reads: .*; give it"),
                (MODEL.replace("4 4", "2 8"), r'wants its input "image" as u8 \[2, 8\], and the tensor '
                                              r'"" that came is u8 \[4, 4\]; convert it before'),
                (MODEL.replace("image 16", "image 4"), r'wants its input "image" as f32 \[4, 4\].*'
                                                       r"convert it before"),
                (MODEL + "fails\n", r"the model failed: a run of the tests failed; check that")):
            with self.subTest(model=model):
                self.assertRegex(self.failure(model), words)
        app = self.application(MODEL)
        os.unlink(self.path("m.model"))
        program = self.begin(app)
        self.assertNotEqual(program.wait(), 0)
        self.assertRegex(program.stderr, r"m\.model: No such file or directory; check model_path_map")

    def test_an_engine_that_ends_its_process_is_a_failure_of_the_host(self):
        """On a thread of the engine, while its operator waits: the host is named, and the rest ends."""
        app = self.application(MODEL + "dies\n")
        program = self.start("fragctl", "run", "--workers", "1", "--output", "json", app)
        self.assertEqual(program.wait(), 1, program.stderr)
        self.assertEqual(self.summary(program)["failure"]["code"], "host_crashed", program.stderr)
        self.assertRegex(program.stderr, "SIGABRT")
        self.assert_nothing_left()

    def test_a_network_that_gives_nan_is_explained(self):
        more = ("  label:\n    type: detection_postprocessor\n"
                "    parameters: {boxes_tensor_name: sum, scores_tensor_name: scores}\n")
        flows = "  - detect.transmitter -> label.receivers\n"
        model = "engine of tests\ninput image 16 4 4\noutput sum 4 1 4\noutput scores 4 1\nnan\n"
        app = self.application(model, more=more, flows=flows)
        with open(app, encoding="utf-8") as f:
            text = f.read().replace("[sum]", "[sum, scores]")
        self.write("app.yaml", text)
        program = self.begin(app)
        self.assertNotEqual(program.wait(), 0)
        self.assertRegex(program.stderr, r"of the network is not a number \(NaN\); check that")


class Service(ServiceTest):
    def test_a_stop_while_a_model_is_compiled(self):
        """Compiling cannot be broken off. It is not waited for, and nothing that was sent is lost."""
        self.env["FRAG_ONNXRUNTIME"] = os.path.join(cluster.BUILD, "tests", "engine")
        self.env["FRAG_TEST_ENGINE_GATE"] = self.path("gate")
        model = "engine of tests\ninput image 1 4 4\noutput sum 1 4 4\n"
        self.write("m.model", model)
        self.write("slow.model", model + "slow\n")
        text = APP % {"count": 1000000, "more": "", "flows": ""}
        text = text.replace("m: m.model", "m: [%s, %s]" % (self.path("m.model"), self.path("slow.model")))
        text = text.replace("parameters:\n      model", "parameters:\n      backend: onnxruntime\n      model")
        text = text.replace("{rows: 4, columns: 4}", "{rows: 4, columns: 4, data_type: float}")
        text = text.replace("{type: count, count: 1000000}", "{type: periodic, recess_period: 5ms}")
        _, w = self.serve(workers=("a",))
        self.ok("start", self.write("app.yaml", text))
        w.wait_line("received message 1:")
        self.ok("set", "app", "detect.model=2")
        received = max(map(int, re.findall(r"received message (\d+):", w.stderr)))
        w.wait_line("received message %d:" % (received + 20))
        self.assertEqual(self.json("stop", "app")["state"], "stopped")
