# SPDX-License-Identifier: Apache-2.0
"""The table of examples in docs/FROM_HOLOSCAN.md: every example of the SDK has a row, and each
graph that a row names runs and prints what the row says, in that order. Of a program, which the
README of its folder runs (test_readmes), the README shows it.

tests/data/holoscan/examples.txt lists the examples of SDK 3.10, and what each needs beyond a CPU;
where it needs that, its row need not name a graph."""
import concurrent.futures
import os
import re
import shlex
import shutil

import cluster

PAGE = os.path.join(cluster.TOP, "docs", "FROM_HOLOSCAN.md")
LIST = os.path.join(cluster.TOP, "tests", "data", "holoscan", "examples.txt")
ROW = re.compile(r"^\| `([\w/]+)` \| (.*?) \| (.*?) \|$", re.M)
GRAPH = re.compile(r"\[[^]]*\]\((\.\./examples/[\w/.]+\.yaml)\)(?: `(.*)`)?$")
# graphs of libraries that a build may lack
NEEDS = {"video_replayer": ("libvideo.so", "libviewer.so"), "video_replayer_distributed": ("libvideo.so",)}
README = re.compile(r"\[[^]]*\]\((\.\./examples/\w+/README\.md)\)")
PLUGINS = os.path.join(cluster.BUILD, "lib", "frag", "plugins")


def read_rows():
    with open(PAGE, encoding="utf-8") as f:
        section = f.read().split("## Example by example")[1].split("\n## ")[0]
    return {name: (frag, prints) for name, frag, prints in ROW.findall(section)}


class Examples(cluster.ClusterTest):
    def test_every_example_has_a_row(self):
        with open(LIST, encoding="ascii") as f:
            needs = {line.split()[0]: line.split()[1:] for line in f}
        rows = read_rows()
        self.assertEqual(list(rows), list(needs))
        for name, (frag, prints) in rows.items():
            if not needs[name]:
                self.assertTrue(GRAPH.match(frag) or README.match(frag), name)
                self.assertIn("`", prints, name)
            if README.match(frag) and "`" in prints:
                path = os.path.join(cluster.TOP, "docs", README.match(frag)[1])
                with open(path, encoding="utf-8") as f:
                    self.assert_prints(name, prints, f.read())
            for path in re.findall(r"\]\(([\w/.]+)", frag):
                self.assertTrue(os.path.exists(os.path.join(cluster.TOP, "docs", path)), path)

    def assert_prints(self, name, prints, printed):
        at = 0
        for text in re.findall("`([^`]*)`", prints):
            found = printed.find(text, at)
            self.assertGreaterEqual(found, 0, "%s: %r is missing, or earlier\n%s"
                                    % (name, text, printed))
            at = found + len(text)

    def run_row(self, name):
        path, words = GRAPH.match(read_rows()[name][0]).groups()
        p = self.start("fragctl", "run", self.path(path[3:]), *shlex.split(words or ""),
                       env={"FRAG_LIBRARY_PATH": ""})
        return p.wait(60), p.stderr + p.stdout

    def test_each_graph_prints_what_its_row_says(self):
        rows = {name: prints for name, (frag, prints) in read_rows().items() if GRAPH.match(frag)}
        for name, libraries in NEEDS.items():
            if not all(os.path.exists(os.path.join(PLUGINS, library)) for library in libraries):
                rows = {row: prints for row, prints in rows.items()
                        if name not in read_rows()[row][0]}
        # what they write lies beside the graph
        shutil.copytree(os.path.join(cluster.TOP, "examples"), self.path("examples"),
                        ignore=shutil.ignore_patterns("out", "*.so"))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for name, (code, printed) in zip(rows, pool.map(self.run_row, rows)):
                self.assertEqual(code, 0, name + "\n" + printed)
                self.assert_prints(name, rows[name], printed)
