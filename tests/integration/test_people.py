# SPDX-License-Identifier: Apache-2.0
"""examples/people, whole and split: real neural networks, if make deps-ai has fetched them. And
what docs/TUTORIAL.md shows is what the example holds."""
import os
import re
import unittest

import cluster

EXAMPLE = os.path.join(cluster.TOP, "examples", "people")
ENGINE = os.path.join(cluster.TOP, ".cache", "ai", "openvino")
TUTORIAL = os.path.join(cluster.TOP, "docs", "TUTORIAL.md")
SHOWN = [os.path.join(EXAMPLE, name) for name in ("app.yaml", "single.yaml")] + [
    os.path.join(cluster.TOP, "examples", name, "app.yaml") for name in ("track_people", "watch_street")]
FRAMES = 12


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Tutorial(unittest.TestCase):
    def test_it_shows_the_example(self):
        """Line by line, in its order, without what is left out."""
        blocks = re.findall(r"^```yaml\n(.*?)^```$", text(TUTORIAL), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        for block in blocks:
            lines = [line.strip() for line in block.splitlines() if "..." not in line]
            for path in SHOWN:
                example = text(path)
                there = iter([line.strip() for line in example.splitlines()])
                if all(line in there for line in lines):
                    break
            else:
                self.fail("none of %s holds\n%s" % (", ".join(SHOWN), block))

    def test_both_applications_have_the_same_operators(self):
        def operators(name):
            body = text(os.path.join(EXAMPLE, name)).split("config:")[1]
            return re.findall(r"type: (\w+)", body)

        self.assertEqual(operators("app.yaml"), operators("single.yaml"))


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


if __name__ == "__main__":
    cluster.main()
