# SPDX-License-Identifier: Apache-2.0
"""Types what the READMEs of the examples show, in a copy of the example, and compares what is
printed with what they show.

A block ```console holds commands, which begin with `$ `, and the lines that follow on stdout and
stderr. `...` stands for lines that are left out. Times, ports and numbers of 13 and more digits may
differ, and so may the order of lines."""
import collections
import glob
import os
import re
import shutil
import subprocess
import unittest

import cluster
import test_docs

EXAMPLES = os.path.join(cluster.TOP, "examples")
NAMES = sorted(n for n in os.listdir(EXAMPLES)
               if glob.glob(os.path.join(EXAMPLES, n, "*.yaml")))
MODELS = os.path.join(cluster.TOP, ".cache", "ai", "complete")
PLUGINS = os.path.join(cluster.BUILD, "lib", "frag", "plugins")
NEEDS = {"libvideo.so": r"replayer|camera|people|street|holohub",
         "libviewer.so": "^video_replayer$|network_camera|cameras|people|watch_street|holohub",
         "libcapture.so": "v4l2"}
PROSE_LINES = 10
# How far a run is, where it takes longer than a second.
PROGRESS = re.compile(r"\w+ [\d.]+ \w+, \d+ messages$")
DIFFERS = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"<?\d+(\.\d+)? (ns|us|ms|s)\b", "DURATION"),
    (r"(?<=\(ms\): )[\d.]+", "DURATION"),
    (r"(?<=127\.0\.0\.1:)\d+", "PORT"),
    (r"\b\d{13,}\b", "NUMBER"),
    (r"\s+", " "),
]


def readme(name):
    with open(os.path.join(EXAMPLES, name, "README.md"), encoding="utf-8") as f:
        return f.read()


def same(line):
    for pattern, text in DIFFERS:
        line = re.sub(pattern, text, line)
    return line.strip()


def commands(text):
    """(command, lines that it is to print) of every block."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *printed = part.rstrip("\n").split("\n")
            yield command, printed


def differences(shown, printed):
    """Sentences about lines that are shown and were not printed, or the other way round."""
    are = collections.Counter(same(line) for line in printed if not PROGRESS.match(line))
    wanted = collections.Counter(same(line) for line in shown if line != "...")
    missing = ["not printed: " + line for line in (wanted - are).elements()]
    extra = ["not shown: " + line for line in (are - wanted).elements()]
    return missing + ([] if "..." in shown else extra)


class Readmes(cluster.ClusterTest):
    def example(self, name):
        """A copy of the example; its neighbours are where they are in the tree."""
        folder = self.path(os.path.join("tree", "examples", name))
        shutil.copytree(os.path.join(EXAMPLES, name), folder,
                        ignore=shutil.ignore_patterns("out", "*.so"))
        for other in os.listdir(EXAMPLES):
            if other != name:
                os.symlink(os.path.join(EXAMPLES, other), os.path.join(folder, "..", other))
        os.symlink(os.path.join(cluster.TOP, ".cache"), self.path("tree/.cache"))
        return folder

    def follow(self, name):
        text = readme(name)
        for library, names in NEEDS.items():
            if re.search(names, name) and not os.path.exists(os.path.join(PLUGINS, library)):
                self.skipTest("built without %s" % library)
        if name == "cuda" and not (shutil.which("nvcc", path="/usr/local/cuda/bin:/usr/bin")
                                   and os.path.exists("/dev/nvidia0")):
            self.skipTest("there is no GPU here, or no nvcc")
        if "deps-ai" in text:
            if not os.path.exists(MODELS):
                self.skipTest("make deps-ai has not been run")
            if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
                self.skipTest("the engine does not run under sanitizers")
        folder = self.example(name)
        env = {k: v for k, v in self.env.items() if not k.startswith(("MAKE", "MFLAGS"))}
        env.pop("FRAG_LIBRARY_PATH")
        env.update(PATH=cluster.BIN + ":" + env["PATH"],
                   PKG_CONFIG_PATH=os.path.join(cluster.BUILD, "lib", "pkgconfig"),
                   PYTHONPATH=os.path.join(cluster.BUILD, "python"), PYTHONDONTWRITEBYTECODE="1")
        steps = list(commands(text))
        self.assertTrue(steps, "%s shows no commands" % name)
        for command, shown in steps:
            done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=cluster.PATIENCE_S * 4, check=False)
            fails = any("failed after" in line for line in shown)
            self.assertEqual(done.returncode, 1 if fails else 0, "%s\n%s" % (command, done.stdout))
            wrong = differences(shown, done.stdout.splitlines())
            self.assertFalse(wrong, "%s\n%s\nit printed:\n%s" % (command, "\n".join(wrong), done.stdout))
        self.assert_nothing_left()


for example_name in NAMES:
    setattr(Readmes, "test_" + example_name, lambda self, name=example_name: self.follow(name))


class Pages(unittest.TestCase):
    def test_each_readme_is_short(self):
        for name in NAMES:
            text = re.sub(r"^```.*?^```$", "", readme(name), flags=re.M | re.S)
            lines = [line for line in text.splitlines()
                     if line and not line.startswith(("#", "    ", "!["))]
            self.assertLessEqual(len(lines), PROSE_LINES, name)
            self.assertTrue(text.startswith("# %s\n" % name), name)

    def test_the_index_lists_each_example(self):
        with open(os.path.join(EXAMPLES, "README.md"), encoding="utf-8") as f:
            self.assertEqual(sorted(re.findall(r"^\| \[(\w+)\]\(\1\) \|", f.read(), re.M)), NAMES)

    def test_links_lead_to_files(self):
        for name in [".", "data", *NAMES]:
            folder = os.path.join(EXAMPLES, name)
            for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", readme(name)):
                path = os.path.join(folder, target)
                self.assertTrue(os.path.exists(path), "%s links to %s" % (name, target))
                if anchor:
                    with open(path, encoding="utf-8") as f:
                        self.assertIn(anchor, test_docs.Docs.anchors(f.read()), name)

    def test_lines_that_differ_are_found(self):
        self.assertEqual(differences(["a  <100 ns", "..."], ["b", "a 7.5 us"]), [])
        self.assertEqual(differences(["a"], ["a", "b"]), ["not shown: b"])
        self.assertEqual(differences(["a", "a", "..."], ["a", "b"]), ["not printed: a"])
