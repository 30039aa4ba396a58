# SPDX-License-Identifier: Apache-2.0
"""examples/people, whole and split: real neural networks, if make deps-ai has fetched them."""
import json
import os
import re
import sys
import unittest

import cluster

EXAMPLE = os.path.join(cluster.TOP, "examples", "people")
ENGINE = os.path.join(cluster.TOP, ".cache", "ai", "openvino")
FRAMES = 12


@unittest.skipUnless(os.path.exists(os.path.join(ENGINE, "libopenvino_c.so")),
                     "make deps-ai has not fetched the engine and the models")
class People(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("the engine does not run under sanitizers")
        self.env["FRAG_OPENVINO"] = ENGINE
        self.args = ("--realtime", "false", "--count", str(FRAMES), "--picture", self.path("picture.jpg"))

    def check(self, program):
        self.assertEqual(program.wait(120), 0, program.stderr)
        summary = self.summary(program)
        self.assert_balanced(summary)
        for f in summary["flows"]:
            self.assertEqual((f["sent"], f["delivered"]), (FRAMES, FRAMES), f["from"])
        with open(self.path("picture.jpg"), "rb") as f:
            self.assertEqual(f.read(2), b"\xff\xd8")
        self.assert_nothing_left()

    def test_in_one_fragment(self):
        app = os.path.join(EXAMPLE, "single.yaml")
        self.check(self.start("fragctl", "run", "--output", "json", app, "--", *self.args))

    def test_in_two_hosts(self):
        driver = self.driver(os.path.join(EXAMPLE, "app.yaml"), "--output", "json", app_args=self.args)
        workers = [self.worker("--once", "--allow-write", self.folder, fragments=f)
                   for f in ("fragment1", "fragment2")]
        workers[1].wait_line(r"shows its pictures at http://127\.0\.0\.1:\d+/")
        self.check(driver)
        for w in workers:
            self.assertEqual(w.wait(), 0, w.stderr)

    @unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "python", "frag",
                                                     "_frag.abi3.so")), "no extension for Python")
    def test_in_python(self):
        program = os.path.join(cluster.TOP, "examples", "python", "people.py")
        env = {**self.env, "PYTHONPATH": os.path.join(cluster.BUILD, "python"), "FRAMES": "3",
               "FRAG_PYTHON": sys.executable, "PYTHONDONTWRITEBYTECODE": "1",
               "PATH": cluster.BIN + ":" + os.environ["PATH"]}
        lines = []
        for args in ((), ("--workers", "2")):
            p = self.start(sys.executable, program, *args, env=env)
            self.assertEqual(p.wait(120), 0, p.stderr)
            lines.append(re.findall(r"frame \d: [1-9]\d* people, the first one at(?: \d\.\d\d){4}",
                                    p.stdout + p.stderr))
        self.assertEqual(len(lines[0]), 3)
        self.assertEqual(lines[0], lines[1])

    def test_the_demo(self):
        """It prints the address of the page before it runs, and leaves a picture."""
        p = self.start("/bin/sh", os.path.join(cluster.TOP, "mk", "demo-ai.sh"), "--count", FRAMES,
                       cwd=cluster.TOP, env={"B": cluster.BUILD, "OUT": self.path("demo")})
        self.assertEqual(p.wait(120), 0, p.stderr)
        self.assertRegex(p.stdout, r"(?m)^page: +http://127\.0\.0\.1:\d+/$")
        with open(self.path("demo/picture.jpg"), "rb") as f:
            self.assertEqual(f.read(2), b"\xff\xd8")
        with open(self.path("demo/summary.json"), encoding="utf-8") as f:
            self.assert_balanced(json.load(f))
        self.assert_nothing_left()
