#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/features.md: a row that says done names tests, and those tests ran and passed; and
that the tests which docs/SECURITY.md names did.

usage: features.py ROW...       prints the tests that these rows name
       features.py --patches    checks that every patch in this folder applies, and that each row
                                with tests has a
                                patch in features/, so that features.sh can show that one of its
                                tests notices
"""
import glob
import os
import re
import subprocess
import sys

STATES = ("done", "partly", "not yet")
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(TOP, "docs", "features.md")
SECURITY = os.path.join(TOP, "docs", "SECURITY.md")


def rows(path):
    """(id, state, [test names]) of every row."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\| ([A-G]\d+) \|", line)
            if not m:
                continue
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            yield cells[0], cells[1], re.findall(r"`([^`]+)`", cells[3]) if len(cells) > 3 else []


def check_patches():
    """Sentences about patches that do not apply, rows that name tests and have no patch, and
    patches of no such row."""
    wrong = []
    with_tests = {row for row, _, tests in rows(TABLE) if tests}
    patches = sorted(os.path.relpath(p, TOP) for p in glob.glob(os.path.join(HERE, "*", "*.patch")))
    of_row = {}
    for path in patches:
        folder, name = os.path.split(path)
        if os.path.basename(folder) == "features":
            of_row.setdefault(re.split(r"[-.]", name)[0], path)
    for row in sorted(with_tests - set(of_row)):
        wrong.append("%s names tests, and no tests/planted/features/%s.patch takes its feature away" % (row, row))
    for row in sorted(set(of_row) - with_tests):
        wrong.append("%s: docs/features.md has no row %s that names tests" % (of_row[row], row))
    here = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(TOP))
    for path in patches:
        if subprocess.run(["git", "apply", "--check", path], cwd=TOP, env=here, capture_output=True).returncode:
            wrong.append("%s does not apply: make its mistake in the code as it is now, and write the patch anew" % path)
    return wrong, len(patches)


def check(path, passed):
    """Sentences about what does not hold."""
    wrong = []
    seen = set()
    for row, state, tests in rows(path):
        if row in seen:
            wrong.append("%s stands twice" % row)
        seen.add(row)
        if state not in STATES:
            wrong.append("%s: state %r is none of %s" % (row, state, ", ".join(STATES)))
        if state == "done" and not tests:
            wrong.append("%s is called done and names no test" % row)
        for name in tests:
            if name not in passed:
                wrong.append("%s: the test %s did not run and pass" % (row, name))
    expected = {"A": 14, "B": 8, "C": 6, "D": 14, "E": 7, "F": 2, "G": 6}
    for letter, count in expected.items():
        for i in range(1, count + 1):
            if "%s%d" % (letter, i) not in seen:
                wrong.append("%s%d is missing" % (letter, i))
    return wrong


def check_names(path, passed):
    """Sentences about tests that a page names and that did not run and pass."""
    with open(path, encoding="utf-8") as f:
        named = sorted(set(re.findall(r"`(\w+::[\w.]+)`", f.read())))
    return ["the test %s did not run and pass" % name for name in named if name not in passed]


def main():
    if sys.argv[1:] != ["--patches"]:
        print(
            "\n".join(
                sorted({t for row, _, tests in rows(TABLE) if row in sys.argv[1:] for t in tests})
            )
        )
        return 0
    wrong, count = check_patches()
    print("\n".join(wrong or ["%d patches apply, and every row with tests has one" % count]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
