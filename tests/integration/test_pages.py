# SPDX-License-Identifier: Apache-2.0
"""Each page of the site has an example, and every example is held by what can refuse it.

Commands that are typed by other tests (docs/site, the READMEs of the examples, the tutorial, the
guides) are held there; here, on all pages, every verb and flag of a command exists and every target
of make, graphs are validated, whole or in a frame, the names of C are declared by the headers, what
includes them compiles, and Python is parsed and imports what there is."""

import ast
import fnmatch
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import cluster

MAKER = os.path.join(cluster.TOP, "mk", "site.py")
INCLUDE = os.path.join(cluster.TOP, "libfrag", "include")
BLOCK = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```$", re.M | re.S)
# Pages without one, and why. A pattern that fits no such page is out of date.
NONE_NEEDED = {
    "inside/architecture/*": "design: functions and states in it are compared with the sources",
    "reference/changelog.md": "a list of changes",
    "reference/features.md": "each row names its tests (docs/features.tests)",
    "inside/benchmarks/what-limits-the-figures/*": "measurements of other machines, with their date",
    "inside/testing/tests-in-c.md": "what runs the tests, and what it looks at",
    "inside/testing/what-these-tests-have-found.md": "a list of mistakes",
    "inside/testing/how-many-lines.md": "counts of the tests, with their date",
    "run/deploy/not-tried.md": "a list of what was not tried",
    "learn/gpu/how-it-was-tried.md": "what was tried, with the machine and the date",
    "run/time/how-exact-it-is.md": "measurements, with the machine and the load",
    "run/time/other-clocks.md": "clocks that are read by themselves: there is nothing to write",
    "inside/dependencies.md": "a list of libraries with versions and licences",
    "inside/tasks.md": "each task is typed from another page",
}
# A test that make check must have run (docs/SECURITY.md).
SHOWN = re.compile(r"`\w+::[\w.]+`")
# Held by test_tutorial, with flags that its graph declares, and by test_site, with a mistake in it.
TYPED = ("learn/tutorial.md", "do/check.md")
# What a graph on a page cannot know: its libraries and what they hold, and what a person gives; and
# a part of a graph: what stands elsewhere in it.
ELSEWHERE = re.compile(
    r"library \S+ (is not in|cannot be found)|unknown (operator|condition|resource) type|unknown composer"
    r'|argument \w+ is needed|: No such file or directory|writer .* has no operator "'
)
REST = re.compile(
    r"unknown (operator|fragment|argument)|is not connected|no (fragment|operator|output|input) \"|there is no resource"
    r"|config has|has no type|has no operators|is required and not set"
)
NO_GRAPH = re.compile(
    r"(?m)^(frag_test|api-version|scrape_configs|sender):|^# yaml-language-server"
)
COMMAND = re.compile(
    r"\s*(?:[\w@]*[$#] )?(?:sudo |time )?(?:\w+=\S+ )*(?:\S*/)?(fragctl|driverd|workerd|make) (.*)"
)
KEYS = re.compile(r"(?m)^(\w+):")


def read(*path):
    with open(os.path.join(cluster.TOP, *path), encoding="utf-8") as f:
        return f.read()


def run(*argv):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FRAG_", "MAKE", "MFLAGS"))}
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, cwd=cluster.TOP, env=env, timeout=60
    )


def top_keys():
    return set(json.loads(read("docs", "graph.schema.json"))["properties"])


class Commands:
    """Which verbs and flags programs have, and which targets make."""

    def __init__(self):
        self.known = {}
        database = run("make", "-rpn", "help").stdout
        self.targets = {"run"} | {
            t for line in re.findall(r"^\.PHONY: (.*)$", database, re.M) for t in line.split()
        }

    def flags(self, program, verb):
        key = program, verb
        if key not in self.known:
            r = run(os.path.join(cluster.BIN, program), *([verb] if verb else []), "--help")
            self.known[key] = (
                set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", r.stdout))
                if r.returncode == 0
                else None
            )
        return self.known[key]

    def wrong(self, line):
        """What a line of a block types that there is not."""
        for part in re.split(r" (?:&&|\|\||\|) |; ", re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", line)):
            m = COMMAND.match(part)
            if not m:
                continue
            program, words = m.group(1), re.split(r" -- | [#>&]|$", m.group(2))[0].split()
            if program == "make":
                yield from (
                    "make " + w
                    for w in words
                    if re.fullmatch(r"[a-z][\w-]*", w)
                    and w not in self.targets
                    and "-C" not in words
                )
                continue
            verb = (
                words[0]
                if program == "fragctl" and words and re.fullmatch("[a-z]+", words[0])
                else None
            )
            flags = self.flags(program, verb)
            if flags is None:
                yield "%s %s" % (program, verb)
                continue
            for w in words:
                flag = re.match(r"\[*(--?[a-zA-Z][\w-]*)", w)
                if flag and flag.group(1) not in flags:
                    yield " ".join([program, *([verb] if verb else []), flag.group(1)])


class Graphs:
    """What is wrong with graphs and parts of graphs."""

    def __init__(self, folder):
        self.folder, self.keys = folder, top_keys()

    def framed(self, text):
        """Parts of a graph as graphs: a key that stands there several times shows several."""
        body = "\n".join(line for line in text.splitlines() if line.strip() != "...") + "\n"
        if not set(KEYS.findall(body)[:1]) & self.keys or body.startswith(" "):
            body = "operators:\n" + (body if body.startswith(" ") else re.sub("(?m)^", "  ", body))
        found = KEYS.findall(body)
        bodies = [body] if len(set(found)) == len(found) else re.split(r"(?m)^(?=\w)", body)[1:]
        return ["frag: 1\napplication: page\n" + b for b in bodies]

    def wrong(self, text):
        if NO_GRAPH.search(text):
            return
        whole = re.search(r"(?m)^frag: 1\b", text)
        for graph in [text] if whole else self.framed(text):
            path = os.path.join(self.folder, "page.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(graph)
            for line in self.validated(path):
                if whole or not REST.search(line):
                    yield line

    def wrong_lines(self, text):
        for line in re.findall(r"fragctl .*-e '([^']*)'", text):
            yield from self.validated("-e", line)

    def validated(self, *what):
        r = run(os.path.join(cluster.BIN, "fragctl"), "validate", *what)
        lines = (r.stderr + r.stdout).splitlines() if r.returncode != 0 else ()
        return [line for line in lines if not ELSEWHERE.search(line)]


class Code:
    """What is wrong with blocks of C and Python."""

    def __init__(self, folder):
        self.folder = folder
        headers = "\n".join(read(p) for p in glob.glob(os.path.join(INCLUDE, "frag", "*.h")))
        self.declared = set(re.findall(r"\b(?:frag|FRAG)_\w+", headers))
        stubs = read("python", "frag", "__init__.pyi")
        self.python = set(re.findall(r"\b[A-Za-z]\w+", stubs)) | {
            os.path.basename(p)[:-3]
            for p in glob.glob(os.path.join(cluster.TOP, "python", "frag", "*.py"))
        }

    def wrong_c(self, text):
        yield from sorted(
            n
            for n in set(re.findall(r"\b(?:frag|FRAG)_\w+", text)) - self.declared
            if not re.search(r"#define %s\b" % n, text)
        )
        guard = re.match(r"#ifndef (\w+)_H\n", text)
        path = os.path.join(self.folder, guard.group(1).lower() + ".h" if guard else "block.c")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        if "#include" in text and not guard and "..." not in text:
            yield from run(
                os.environ.get("CC", "cc").split()[-1],
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                "-I",
                INCLUDE,
                path,
            ).stderr.splitlines()

    def wrong_python(self, text):
        for node in ast.walk(ast.parse(text)):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module == "frag":
                names = [a.name for a in node.names]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "frag":
                names = [node.attr]
            yield from (n for n in names if n not in self.python)


class Pages(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(prefix="frag-pages-") as folder:
            subprocess.run([sys.executable, MAKER, "--build", folder, "--pages-only"], check=True)
            top = os.path.join(folder, "site", "pages")
            cls.pages = {"README.md": read("README.md")}
            for path in sorted(glob.glob(os.path.join(top, "**", "*.md"), recursive=True)):
                with open(path, encoding="utf-8") as f:
                    cls.pages[os.path.relpath(path, top)] = f.read()

    def blocks(self, *kinds):
        """(page, text) of the blocks of these kinds."""
        for page, text in self.pages.items():
            for indent, kind, _, body in (
                BLOCK.findall(text) if page != "reference/python-api.md" else ()
            ):  # stubs
                if kind in kinds:
                    yield page, re.sub("(?m)^" + indent, "", body)

    def check(self, wrong, *kinds, leave_out=()):
        """wrong(text) yields what is wrong with a block."""
        blocks = [(page, text) for page, text in self.blocks(*kinds) if page not in leave_out]
        self.assertTrue(blocks)
        found = ["%s: %s" % (page, w) for page, text in blocks for w in wrong(text)]
        self.assertEqual(found, [])

    def test_each_has_an_example_or_a_reason(self):
        without = [
            page
            for page, text in self.pages.items()
            if not BLOCK.search(text)
            and not (page.startswith("run/security/") and SHOWN.search(text))
        ]
        for pattern in NONE_NEEDED:
            self.assertTrue(fnmatch.filter(without, pattern), pattern)
        allowed = {p for pattern in NONE_NEEDED for p in fnmatch.filter(without, pattern)}
        self.assertEqual([p for p in without if p not in allowed], [])

    def test_commands_have_the_verbs_and_flags_that_they_show(self):
        commands = Commands()

        def wrong(text):
            for line in text.replace("\\\n", " ").splitlines():
                yield from commands.wrong(line)

        self.check(wrong, "", "console", "sh", leave_out=TYPED)

    def test_graphs_are_valid(self):
        with tempfile.TemporaryDirectory(prefix="frag-pages-") as folder:
            graphs = Graphs(folder)
            self.check(graphs.wrong, "yaml", leave_out=TYPED)
            self.check(graphs.wrong_lines, "", "console")

    def test_code_uses_what_there_is(self):
        with tempfile.TemporaryDirectory(prefix="frag-pages-") as folder:
            code = Code(folder)
            self.check(code.wrong_c, "c")
            self.check(code.wrong_python, "python")
        self.check(
            lambda text: json.loads(text if text.startswith("{") else "{%s}" % text) and (), "json"
        )

    def test_mistakes_are_found(self):
        commands = Commands()
        for line, wrong in (
            ("fragctl run --web app.yaml -- --any", []),
            ("a# fragctl rum app.yaml", ["fragctl rum"]),
            (
                "A=1 fragctl run --wed a && driverd --sate-dir x",
                ["fragctl run --wed", "driverd --sate-dir"],
            ),
            ("make chek ONLY=x", ["make chek"]),
            ("make -C blur any", []),
        ):
            self.assertEqual(list(commands.wrong(line)), wrong, line)
        with tempfile.TemporaryDirectory(prefix="frag-pages-") as folder:
            graphs, code = Graphs(folder), Code(folder)
            for text, wrong in (
                ("flows:\n  - a.out -> b.in\n", 0),
                ("flows:\n  - {from: a.out, to: b.in, police: pop}\n", 1),
                ("  a: {type: mine}\n", 0),
                ("a: {type: ping_tx, rat: 1hz}\n", 1),
                ("clock: manual\nclock: realtime\n", 0),
                ("clock: manual\nclock: ral\n", 1),
            ):
                self.assertEqual(len(list(graphs.wrong(text))), wrong, text)
            self.assertEqual(
                list(graphs.wrong_lines("fragctl run -e 'ping_tx count=3 ! ping_rx'")), []
            )
            self.assertNotEqual(
                list(graphs.wrong_lines("fragctl run -e 'ping_tx,count=3 ! ping_rx'")), []
            )
            self.assertEqual(list(code.wrong_c("frag_op_log(op, FRAG_DOME);")), ["FRAG_DOME"])
            self.assertIn(
                "redefinition",
                "".join(code.wrong_c("#include <frag/frag.h>\nint a = 1;\nint a = 2;\n")),
            )
            self.assertEqual(
                list(code.wrong_python("import frag\nfrag.oprator\nfrag.operator\n")), ["oprator"]
            )


if __name__ == "__main__":
    unittest.main()
