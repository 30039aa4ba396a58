# SPDX-License-Identifier: Apache-2.0
"""docs/TUTORIAL.md: it shows what the examples hold, and its commands work as they are typed: on
one node, and on two, which are network namespaces. The examples are copied to a folder of their own
with a clip of a few frames and models for the engine of tests."""
import os
import re
import shutil
import subprocess
import unittest

import cluster
import test_nodes
import test_street

EXAMPLES = os.path.join(cluster.TOP, "examples")
TUTORIAL = os.path.join(cluster.TOP, "docs", "TUTORIAL.md")
SHOWN = [os.path.join(EXAMPLES, name) for name in (
    "people/app.yaml", "people/single.yaml", "track_people/app.yaml", "watch_street/app.yaml")]
FRAMES = 8
# It finds nobody where the first pixel is dark; the second network then has nothing to do.
SEGMENTATION = """engine of tests
input input %d 1 256 256 3
output mask %d 1 256 256 1
""" % (test_street.F32, test_street.F32)


def text(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def commands(heading):
    """The blocks of commands below a heading, each as a list of lines without comments."""
    section = re.search(r"^## \d\. %s\n(.*?)(?=^## |\Z)" % heading, text(TUTORIAL), re.M | re.S).group(1)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)
    return [[re.sub(r"\s+#.*", "", line) for line in block.splitlines()] for kind, block in blocks if kind == ""]


class Page(unittest.TestCase):
    def test_it_shows_the_example(self):
        """Line by line, in its order, without what is left out."""
        blocks = re.findall(r"^```yaml\n(.*?)^```$", text(TUTORIAL), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 3)
        for block in blocks:
            lines = [line.strip() for line in block.splitlines() if "..." not in line]
            for path in SHOWN:
                there = iter([line.strip() for line in text(path).splitlines()])
                if all(line in there for line in lines):
                    break
            else:
                self.fail("none of %s holds\n%s" % (", ".join(SHOWN), block))

    def test_both_applications_have_the_same_operators(self):
        def operators(name):
            body = text(os.path.join(EXAMPLES, "people", name)).split("config:")[1]
            return re.findall(r"type: (\w+)", body)

        self.assertEqual(operators("app.yaml"), operators("single.yaml"))


begin = test_nodes.begin


@unittest.skipUnless(os.path.exists(os.path.join(test_street.FAKE_ENGINE, "libopenvino_c.so")),
                     "built without the engine of tests")
class Typed(test_nodes.TwoNodes):
    ADDRESSES = "10.0.0.1", "10.0.0.2"

    def setUp(self):
        super().setUp()
        for library in ("libvideo.so", "libviewer.so"):
            if not os.path.exists(os.path.join(test_street.PLUGINS, library)):
                self.skipTest("built without %s" % library)
        for name in ("people", "track_people", "empty_street", "watch_street"):
            shutil.copytree(os.path.join(EXAMPLES, name), self.path("examples/" + name),
                            ignore=shutil.ignore_patterns("out", "*.so", "test_*"))
        os.mkdir(self.path("examples/data"))
        subprocess.run(["ffmpeg", "-v", "error", "-i", test_street.CLIP, "-frames:v", str(FRAMES),
                        self.path("examples/data/pedestrians.mp4")], check=True, timeout=300)
        os.makedirs(self.path(".cache/ai/models"))
        self.write(".cache/ai/models/person-detection.xml", test_street.DETECTOR)
        self.write(".cache/ai/models/person-segmentation.xml", SEGMENTATION)
        self.env.update(FRAG_OPENVINO=test_street.FAKE_ENGINE,
                        PATH=cluster.BIN + ":" + self.env["PATH"])
        self.env.pop("FRAG_ALLOW_WRITE", None)

    def type(self, line, ns, folder="examples/people"):
        """Starts a command as it is typed in a shell of this node."""
        return self.start("/bin/sh", "-c", "exec " + line, prefix=self.inside(ns), cwd=self.path(folder))

    def run_line(self, line, folder="examples/people"):
        p = self.type(line, self.a, folder)
        self.assertEqual(p.wait(60), 0, "%s:\n%s" % (line, p.stderr))
        return p

    def assert_table(self, program, flow, edge):
        self.assertRegex(program.stdout, r"(?m)^%s +%d +%d +0 +0 .* %s$" % (re.escape(flow), FRAMES, FRAMES, edge))

    def take_picture(self, folder="examples/people"):
        """The picture that a run left; takes it away."""
        path = os.path.join(self.path(folder), "out", "picture.jpg")
        with open(path, "rb") as f:
            self.assertEqual(f.read(2), b"\xff\xd8")
        os.remove(path)

    def run_daemons(self, lines, folders):
        """Starts the lines at once, each on its node: (line, node). They end with the driver."""
        driver, *workers = [self.type(line, ns, folders[ns]) for line, ns in lines]
        self.assertEqual(driver.wait(60), 0, driver.stderr + "".join(w.stderr for w in workers))
        for w in workers:
            w.signal(15)
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()
        return driver

    def run_on_two_nodes(self, lines, folders):
        """The lines begin with the name of their node: A$ or B$."""
        nodes = {"A$ ": self.a, "B$ ": self.b}
        return self.run_daemons([(line[3:], nodes[line[:3]]) for line in lines], folders)

    def refused_camera(self, line, folder):
        """Runs a line that takes a camera, with one that no machine has."""
        p = self.type(line.replace("/dev/video2", "/dev/video98"), self.a, folder)
        self.assertEqual(p.wait(60), 1)
        self.assertIn("there is no camera /dev/video98", p.stderr)

    def test_one_process(self):
        (fetch,), ((validate, run),) = commands("The application"), commands("Splitting it")
        self.assertEqual([line.split()[0] for line in fetch], ["make", "export", "cd", "fragctl"])
        p = self.run_line(fetch[3])
        self.assertIn("shows its pictures at http://127.0.0.1:", p.stderr)
        self.assert_table(p, "people.frames.out -> people.viewer.receivers", "inproc")
        self.take_picture()
        self.run_line(validate)
        p = self.run_line(run)
        self.assert_table(p, "fragment1.frames.out -> fragment2.viewer.receivers", "inproc")
        self.take_picture()

    def test_arguments_and_config(self):
        (camera, help_), (careful, run) = commands("Arguments and config")
        self.assertIn("--source", self.run_line(help_).stdout)
        self.refused_camera(camera, "examples/people")
        subprocess.run(careful, shell=True, cwd=self.path("examples/people"), check=True)
        self.run_line(run)

    def test_on_a_gpu(self):
        """What the argument chooses goes together; the run itself needs a GPU."""
        for graph in ("single.yaml", "app.yaml"):
            self.assertIn(": ok", self.run_line("fragctl validate %s -- --on gpu" % graph).stdout)

    def test_one_node(self):
        lines, _ = commands("One node, and two")
        self.assertEqual([line.split()[0] for line in lines], ["driverd", "workerd", "workerd"])
        driver = self.run_daemons([(line, self.a) for line in lines], {self.a: "examples/people"})
        self.assert_table(driver, "fragment1.frames.out -> fragment2.viewer.receivers", "shm")
        self.take_picture()

    def test_two_nodes(self):
        _, block = commands("One node, and two")
        key, folder, *lines = [line.replace("/tmp/people", self.path("shown/out")) for line in block]
        self.run_line(key)
        self.run_line(folder)
        os.mkdir(self.path("b"))
        shutil.copy2(self.path("examples/people/frag.key"), self.path("b"))
        driver = self.run_on_two_nodes(lines, {self.a: "examples/people", self.b: "b"})
        for flow in ("frames.out", "people.out", "masks.out_tensor"):
            self.assert_table(driver, "fragment1.%s -> fragment2.viewer.receivers" % flow, "ucx.*")
        self.take_picture("shown")

    def test_flags_of_holoscan(self):
        (one,), lines = commands("The same with Holoscan's flags")
        p = self.run_line(one)
        self.assert_table(p, "fragment1.frames.out -> fragment2.viewer.receivers", "inproc")
        self.take_picture()
        self.run_line("fragctl key new frag.key")
        shutil.copytree(self.path("examples"), self.path("b/examples"))
        shutil.rmtree(self.path("b/examples/data"))
        nodes = {"A$ ": self.a, "B$ ": self.b}
        folders = {"A$ ": "examples/people", "B$ ": "b/examples/people"}
        driver, worker = [self.type(line[3:], nodes[line[:3]], folders[line[:3]]) for line in lines]
        self.assertEqual((driver.wait(60), worker.wait(60)), (0, 0), driver.stderr + worker.stderr)
        self.assert_nothing_left()
        for flow in ("frames.out", "people.out", "masks.out_tensor"):
            self.assert_table(driver, "fragment1.%s -> fragment2.viewer.receivers" % flow, "ucx.*")
        self.take_picture("b/examples/people")

    def build(self, line):
        """Builds the libraries of the two applications that are joined."""
        env = dict(self.env, PKG_CONFIG_PATH=os.path.join(cluster.BUILD, "lib", "pkgconfig"))
        subprocess.run(line, shell=True, cwd=self.path("examples/watch_street"), check=True, env=env,
                       capture_output=True)

    def test_two_applications_on_one_node(self):
        (cd, make, export, *runs), _ = commands("Joining two applications")
        self.assertEqual((cd, len(runs)), ("cd examples/watch_street", 3))
        self.build(make)
        self.env["FRAG_LIBRARY_PATH"] = export.removeprefix("export FRAG_LIBRARY_PATH=")
        for line, edge in zip(runs, ("inproc", "shm")):
            p = self.run_line(line, "examples/watch_street")
            self.assert_table(p, "state.street.out -> tracking.viewer.receivers", edge)
            self.take_picture("examples/watch_street")
        self.refused_camera(runs[2], "examples/watch_street")

    def test_two_applications_on_two_nodes(self):
        (_, make, *_), lines = commands("Joining two applications")
        self.build(make)
        self.env["FRAG_LIBRARY_PATH"] = ""
        self.run_line("fragctl key new frag.key", "examples/watch_street")
        for name in (".cache", "examples"):
            shutil.copytree(self.path(name), self.path("b/" + name))
        for folder in ("examples/empty_street", "b/examples/track_people"):
            shutil.rmtree(self.path(folder))
        driver = self.run_on_two_nodes(lines, {self.a: "examples/watch_street", self.b: "b/examples/watch_street"})
        self.assert_table(driver, "state.street.out -> tracking.viewer.receivers", "ucx.*")
        self.take_picture("examples/watch_street")
