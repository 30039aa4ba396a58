# SPDX-License-Identifier: Apache-2.0
"""The generated parts of the documents are up to date, and every link leads to a file.

The links of the installed documents do, too.
"""
import glob
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
import unittest

import cluster

sys.path.insert(0, os.path.join(cluster.TOP, "mk"))
import evidence  # noqa: E402


class Docs(unittest.TestCase):
    def test_made_parts_are_as_the_programs_say(self):
        r = subprocess.run([sys.executable, os.path.join(cluster.TOP, "mk", "docs.py"), "--build", cluster.BUILD,
                            "--check"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    @staticmethod
    def anchors(text):
        """The anchors that the headings of a document make, as GitHub does."""
        headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
        return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}

    def check_links(self, top):
        documents = [os.path.join(folder, n) for folder in ("", "docs")
                     for n in os.listdir(os.path.join(top, folder)) if n.endswith(".md")]
        self.assertIn("README.md", documents)
        texts = {}
        for name in documents:
            with open(os.path.join(top, name), encoding="utf-8") as f:
                texts[name] = f.read()
        for name, text in texts.items():
            for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
                path = os.path.join(os.path.dirname(name), target) if target else name
                link = "%s links to %s#%s" % (name, target, anchor)
                self.assertTrue(os.path.exists(os.path.join(top, path)), link)
                if anchor:
                    self.assertIn(anchor, self.anchors(texts[os.path.normpath(path)]), link)

    def test_every_failure_is_set_and_tested(self):
        """A code that nothing sets, or that no test sees, would be a promise that nobody keeps."""
        # No summary can hold it; test_driver shows that driverd exits with 3.
        seen_as_exit_code = {"summary_unwritable"}
        docs = runpy.run_path(os.path.join(cluster.TOP, "mk", "docs.py"))
        failure = r"\bFRAGI_FAILURE_\w+"
        product = set(re.findall(failure, self.sources("driverd", "workerd", "fragctl", "libfrag", "proto")))
        tests = set(re.findall(failure + r'|"\w+\\?"', self.sources("tests")))
        for name, code, *_ in docs["entries"](docs["FAILURES"], "FRAGI_FAILURE_LIST", 6):
            with self.subTest(code=code):
                self.assertIn("FRAGI_FAILURE_" + name, product)
                if code not in seen_as_exit_code:
                    self.assertTrue(tests & {"FRAGI_FAILURE_" + name, '"%s"' % code, '"%s\\"' % code})

    def test_the_graphs_of_the_page_about_execution_run(self):
        with open(os.path.join(cluster.TOP, "docs", "EXECUTION.md"), encoding="utf-8") as f:
            graphs = re.findall(r"^```yaml\n(.*?)^```", f.read(), re.M | re.S)
        self.assertGreater(len(graphs), 1)
        for graph in graphs:
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                f.write(graph)
                f.flush()
                run = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "run", f.name],
                                     timeout=60, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("Rx message value: 3\n", run.stderr)

    def test_every_column_of_the_summary_is_explained(self):
        with open(os.path.join(cluster.TOP, "docs", "GRAPH.md"), encoding="utf-8") as f:
            table = f.read().split("<!-- columns of the summary -->\n")[1].split("\n\n")[0]
        explained = re.findall(r"(?m)^\| (?!column)([^|]+) \| ", table)
        run = subprocess.run([os.path.join(cluster.BUILD, "bin", "fragctl"), "run", "-q",
                              os.path.join(cluster.TOP, "examples", "ping_simple", "app.yaml")],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        shown = re.split("  +", run.stdout.splitlines()[1])
        sometimes = ("in flight", "copied")
        self.assertEqual(shown, [column for column in explained if column not in sometimes])

    @staticmethod
    def sources(*folders):
        text = []
        for folder in folders:
            for path, _, names in os.walk(os.path.join(cluster.TOP, folder)):
                for name in names:
                    if name.endswith((".c", ".h", ".py")) and not path.endswith("src/base"):
                        with open(os.path.join(path, name), encoding="utf-8") as f:
                            text.append(f.read())
        return "\n".join(text)

    def test_functions_are_where_the_walks_find_them(self):
        """ARCHITECTURE.md names functions of the driver's core with their files."""
        top = os.path.join(cluster.TOP, "driverd", "core")
        files = {os.path.relpath(path, top): self.text(path)
                 for path in glob.glob(os.path.join(top, "**", "*.c"), recursive=True)}
        page = re.sub(r"\s+", " ", self.text(os.path.join(cluster.TOP, "docs", "ARCHITECTURE.md")))
        named = re.findall(r"`(\w+)`,? \(?((?:\w+/)?\w+\.c)\)", page)
        self.assertGreater(len(named), 30)
        for function, file in named:
            found = [path for path, text in files.items()
                     if re.search(r"(?m)^[a-z][\w *]*?\b%s\([^;{]*\)\n\{" % function, text)]
            if found:
                self.assertTrue(any(("/" + path).endswith("/" + file) for path in found),
                                "%s is in %s, not in %s" % (function, found, file))
            else:
                self.assertFalse(function.startswith("drv_"), function + " is nowhere")

    def test_the_walks_are_short(self):
        """A walk names at most 12 files of the driver's core, for each policy of a host."""
        page = self.text(os.path.join(cluster.TOP, "docs", "ARCHITECTURE.md"))
        walks = dict(re.findall(r"(?ms)^### Walk: ([^\n]+)\n(.*?)(?=^#|^\*\*)", page))
        self.assertEqual(set(walks), {"a start", "the death of a host", "a swap"})
        counts = {}
        for walk, text in walks.items():
            parts = re.split(r"(?m)^   - (?=\*)|^(?=\d\. )", text)
            of = [set(re.findall(r"\*(\w+)\*", part.split(":")[0])) if part.startswith("*")
                  else set() for part in parts]
            for policy in sorted(set().union(*of)) or [""]:
                own = " ".join(part for part, policies in zip(parts, of)
                               if not policies or policy in policies)
                paths = re.findall(r"(?<![\w/])(?:\w+/)?\w+\.c\b", own)
                files = {os.path.basename(path) for path in paths}
                counts[walk, policy] = len(files)
                self.assertLessEqual(len(files), 12, "%s %s: %s" % (walk, policy, sorted(files)))
        self.assertEqual({policy for walk, policy in counts if policy}, {"stop", "restart", "migrate"})
        self.assertGreater(min(counts.values()), 6, counts)

    @staticmethod
    def text(path):
        with open(path, encoding="utf-8") as f:
            return f.read()

    def test_schemas_say_units_and_clock(self):
        results = glob.glob(os.path.join(cluster.TOP, "docs", "*.schema.json"))
        results.remove(os.path.join(cluster.TOP, "docs", "graph.schema.json"))
        for path in results:
            with open(path) as f:
                self.assertRegex(json.load(f)["description"], "_ns are nanoseconds.*CLOCK_MONOTONIC", path)

    def test_counts_of_the_evidence_are_no_more_than_there_is(self):
        counts = {what: (count, command) for what, count, command in evidence.rows()}
        with open(os.path.join(cluster.TOP, "docs", "EVIDENCE.md"), encoding="utf-8") as f:
            told = re.findall(r"(?m)^\| (.+?) \| ([\d,]+) \| `(.+?)` \|$", f.read())
        self.assertEqual([what for what, _, _ in told], list(counts))
        for what, number, command in told:
            count, wanted = counts[what]
            self.assertEqual(command, wanted)
            self.assertGreater(int(number.replace(",", "")), 0, what)
            self.assertLessEqual(int(number.replace(",", "")), count, what)

    def test_the_first_page_is_short_and_names_what_there_is(self):
        with open(os.path.join(cluster.TOP, "README.md"), encoding="utf-8") as f:
            text = f.read()
        self.assertLessEqual(text.count("\n"), 120)
        self.assertLess(text.index("## Before you choose it"), text.index("## What does not work yet"))
        with open(os.path.join(cluster.TOP, "examples", "ping_distributed", "app.yaml"), encoding="utf-8") as f:
            graph = re.sub(r"(?m)^#.*\n", "", f.read())
        self.assertIn("```yaml\n%s```" % graph, text)
        with open(os.path.join(cluster.TOP, "docs", "BENCHMARKS.md"), encoding="utf-8") as f:
            measured = f.read()
        for shown, row in (("71 ns, GStreamer's `identity` 248 ns", "(`peers.hop`): 248 ns\n(194 to 334) beside frag's 71"),
                           ("64 us, `make bench PART=peers` | iceoryx2: 7.1 us", "| 8 B | 64, 140, 113 | 100, 191, 195 | 7.1, 21, 32 | 208, 435, 434 | 308, 891, 692 |"),
                           ("3 and 3: `make bench PART=peers` | eCAL: 696 and 2; dora: 657 and 0; iceoryx2: 89 and 0; zenoh: 77 and 0",
                            "receiver killed and started again | 3 / 3 | 696 / 2 | 89 / 0 | 77 / 0 | 657 / 0 |"),
                           ("8 MiB between two processes 7.9 us", "| 8 MiB | 0.93 (0.33) | 1.4 | 7.9"),
                           ("3.1 s", "from a lost worker to running elsewhere, no lease | ms | 3136"),
                           ("49 us", "until a kernel has read it: 1 KiB, 8 MiB, 64 MiB | us | 34, 49, 118"),
                           ("16,100 us", "Holoscan 3.11, 8 and 64 MiB: 16,100"), ("990 us", "and 990 us for a tensor of 8 MiB")):
            self.assertIn(shown, text)
            self.assertIn(row, measured.replace("\n", " ") if row[:3] == "and" else measured)

    def test_links_lead_to_files(self):
        self.check_links(cluster.TOP)

    def test_links_of_installed_documents_lead_to_files(self):
        with tempfile.TemporaryDirectory(prefix="frag-docs-") as prefix:
            env = {k: v for k, v in os.environ.items()
                   if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
            # -o all: what is built stays as it is, since other tests use it just now
            subprocess.run(["make", "-s", "-o", "all", "-C", cluster.TOP, "B=" + cluster.BUILD, "NDEBUG=",
                            "install-here", "prefix=" + prefix], check=True, env=env, timeout=120)
            self.check_links(os.path.join(prefix, "share", "doc", "frag"))
