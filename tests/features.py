#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds docs/features.md to its word: a row that says done names tests, those tests ran and passed, and tests/features has
a patch that takes the feature away, so that tests/features/break.sh can show that one of them fails then.

usage: tests/features.py ROW...    prints the tests that these rows name
"""
import os
import re
import subprocess
import sys

STATES = ("done", "partly", "not yet")
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = os.path.join(TOP, "docs", "features.md")
PATCHES = os.path.join(TOP, "tests", "features")


def rows(path):
    """(id, state, [test names]) of every row."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\| ([A-G]\d+) \|", line)
            if not m:
                continue
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            yield cells[0], cells[1], re.findall(r"`([^`]+)`", cells[3]) if len(cells) > 3 else []


def check_patches(with_tests):
    """Sentences about rows that name tests without a patch, and about patches that do not fit."""
    wrong = []
    patches = {}
    for name in sorted(f for f in os.listdir(PATCHES) if f.endswith(".patch")):
        patches.setdefault(re.split(r"[-.]", name)[0], []).append(os.path.join(PATCHES, name))
    for row in sorted(set(with_tests) - set(patches)):
        wrong.append("%s names tests, and no tests/features/%s.patch takes its feature away" % (row, row))
    for row in sorted(set(patches) - set(with_tests)):
        wrong.append("%s: a row that names no tests, or none" % os.path.relpath(patches[row][0], TOP))
    here = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(TOP))
    for path in sorted(p for of_row in patches.values() for p in of_row):
        if subprocess.run(["git", "apply", "--check", path], cwd=TOP, env=here, stderr=subprocess.DEVNULL).returncode:
            wrong.append("%s does not apply any more: make its mistake in the code as it is now, and write the patch anew" %
                         os.path.relpath(path, TOP))
    return wrong


def check(path, passed):
    """Sentences about what does not hold."""
    wrong = []
    with_tests = []
    seen = set()
    for row, state, tests in rows(path):
        if row in seen:
            wrong.append("%s stands twice" % row)
        seen.add(row)
        if state not in STATES:
            wrong.append("%s: state %r is none of %s" % (row, state, ", ".join(STATES)))
        if state == "done" and not tests:
            wrong.append("%s is called done and names no test" % row)
        if tests:
            with_tests.append(row)
        for name in tests:
            if name not in passed:
                wrong.append("%s: the test %s did not run and pass" % (row, name))
    expected = {"A": 14, "B": 8, "C": 6, "D": 14, "E": 7, "F": 2, "G": 6}
    for letter, count in expected.items():
        for i in range(1, count + 1):
            if "%s%d" % (letter, i) not in seen:
                wrong.append("%s%d is missing" % (letter, i))
    return wrong + check_patches(with_tests)


if __name__ == "__main__":
    print("\n".join(sorted({t for row, _, tests in rows(TABLE) if row in sys.argv[1:] for t in tests})))
