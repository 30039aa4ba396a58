#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the files and names in `code quotes` of the pages for developers exist, and the tests
that tests/skips names; and that it names each test in Python that may be skipped.

- What has a slash or a known ending is a file or folder of the tree, or one that make creates.
- What looks like an identifier (it has an underscore, or stands before a bracket) occurs in the
  sources, or is the name of a file of them or of a planted mistake.
"""
import ast
import importlib
import os
import re
import subprocess
import sys

sys.path.insert(0, "tests")
import run  # noqa: E402

PAGES = ("HACKING.md", "docs/ARCHITECTURE.md", "docs/TESTING.md", "docs/SECURITY.md")
ENDINGS = (".c", ".h", ".py", ".sh", ".md", ".mk", ".proto", ".txt", ".supp", ".patch")
# Where a path may start: pages about a part name its files from there.
ROOTS = ("", "libfrag", "libfrag/src", "libfrag/include", "tests", "docs", "proto", "tests/sim", "tests/planted")
# What the reader fills in.
PLACEHOLDER = re.compile(r"NAME|TYPE|LIBRARY|TARGET|TREE|STEP|RUN\b|FILE|LIMIT_MS|X\(")


def quoted(page):
    """(line number, text) of each code quote outside of code blocks."""
    in_block = False
    with open(page, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("```"):
                in_block = not in_block
            elif not in_block:
                for text in re.findall(r"`([^`]+)`", line):
                    yield number, text


def is_there(path, files):
    path = path.rstrip("/")
    for root in ROOTS:
        full = os.path.normpath(os.path.join(root, path))
        if full in files or any(f.startswith(full + "/") for f in files):
            return True
    return path.split("/")[0].startswith("build") or ("/" not in path and any(f.endswith("/" + path) for f in files))


def missing(text, files, words):
    """What of a code quote does not exist; None when all does."""
    if PLACEHOLDER.search(text) or "*" in text or text.startswith(("-", "/", "~", "$")):
        return None
    if re.fullmatch(r"[\w./-]+", text) and ("/" in text or text.endswith(ENDINGS)):
        return None if is_there(text, files) else text
    name = re.fullmatch(r"(\w*_\w+|\w+(?=\())(\(.*\))?", text)
    return name.group(1) if name and name.group(1) not in words else None


def lacks_test(name):
    """Whether no test is called so. Modules in Python are asked, since classes inherit tests."""
    try:
        program, test = run.place_of(name)
    except SystemExit:
        return True
    if program.startswith("tests/"):
        return False
    folder = os.path.join("tests", os.path.dirname(program))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    group, _, method = test.partition(".")
    group = getattr(importlib.import_module(os.path.basename(program)), group, None)
    return group is None or not (method == "*" or hasattr(group, method))


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]


def called(node):
    """Names of what is called in it."""
    calls = [n.func for n in ast.walk(node) if isinstance(n, ast.Call)]
    return {getattr(f, "attr", None) or getattr(f, "id", None) for f in calls}


def skippable(name, tree):
    """Tests of a module that skip themselves, by a function of the module or by a decorator."""
    skipping, more = set(), {"skipTest", "SkipTest"}
    while more - skipping:
        skipping |= more
        more = {
            f.name
            for f in functions(tree)
            if called(f) & skipping and not f.name.startswith(("test_", "setUp", "__"))
        }

    def may_skip(node, parts):
        decorated = any("skip" in ast.dump(d) for d in node.decorator_list)
        return decorated or any(called(part) & skipping for part in parts)

    for group in (n for n in tree.body if isinstance(n, ast.ClassDef)):
        methods = [n for n in group.body if isinstance(n, ast.FunctionDef)]
        whole = may_skip(group, [m for m in methods if m.name.startswith("setUp")])
        for m in methods:
            if m.name.startswith("test_") and (whole or may_skip(m, [m])):
                yield "%s::%s.%s" % (name, group.name, m.name)


def main():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    files = {f for f in listed.stdout.splitlines() if os.path.exists(f)}
    words = {os.path.splitext(os.path.basename(path))[0] for path in files}
    for path in files:
        if path.endswith((".c", ".h", ".py", ".sh", ".mk", ".proto", ".map", "Makefile", "skips")):
            with open(path, encoding="utf-8", errors="replace") as f:
                words.update(re.findall(r"\w+", f.read()))
        elif path.startswith("tests/planted/") and path.endswith(".txt"):
            with open(path, encoding="utf-8") as f:
                words.update(re.findall(r"(?m)^(\w+): ", f.read()))
    wrong = 0
    for page in PAGES:
        for number, text in quoted(page):
            name = missing(text, files, words)
            if name is not None:
                print("%s:%d: %s does not exist" % (page, number, name))
                wrong = 1
    for file in ("skips", "skips.aarch64"):
        for name in filter(lacks_test, run.known_skips(file)):
            print("tests/%s: there is no test %s" % (file, name))
            wrong = 1
    skips = run.known_skips("skips")
    scripts = re.compile(r"tests/(%s)/test_\w+\.py" % "|".join(run.PYTHON_FOLDERS))
    for path in sorted(filter(scripts.fullmatch, files)):
        with open(path, encoding="utf-8") as f:
            for name in skippable(os.path.basename(path)[:-3], ast.parse(f.read())):
                if name not in skips:
                    print("%s: %s may be skipped, and tests/skips does not say why" % (path, name))
                    wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
