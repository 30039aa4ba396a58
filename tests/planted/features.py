#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/features.md and docs/features.tests: a row that is done has tests, and the tests of
each row ran and passed; and that the tests which docs/SECURITY.md names did.

usage: features.py ROW...       prints the tests that these rows name
       features.py --patches    checks that the old text of every planted mistake occurs once, that
                                the patches of recipes/ apply, and that each row with tests has a
                                mistake in features.txt, so that features.sh can show that one of
                                its tests notices
"""
import glob
import os
import re
import subprocess
import sys

import table

STATES = ("done", "partly", "not yet")
HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(TOP, "docs", "features.md")
TESTS = os.path.join(TOP, "docs", "features.tests")
ROWS = {"A": 16, "B": 13, "C": 6, "D": 16, "E": 11, "F": 3, "G": 8}
ROW_COLUMNS = 200
SECURITY = os.path.join(TOP, "docs", "SECURITY.md")


def read_rows():
    """(id, state, line) of every row of the table, in its order."""
    with open(TABLE, encoding="utf-8") as f:
        for line in f.read().splitlines():
            if re.match(r"\| [A-G]\d+ \|", line):
                row, state = (c.strip() for c in line.split("|")[1:3])
                yield row, state, line


def read_tests():
    """A list of test names for each row that has any."""
    tests = {}
    with open(TESTS, encoding="utf-8") as f:
        for line in f:
            row, name = line.split()
            tests.setdefault(row, []).append(name)
    return tests


def check_patches():
    """Sentences about mistakes that cannot be made, rows that have tests and no mistake,
    mistakes of no such row, and patches that do not apply; and how many of both there are."""
    wrong = []
    with_tests = set(read_tests())
    tables = {kind: table.load(kind) for kind in table.KINDS}
    for kind in tables.values():
        wrong += filter(None, (table.check(mistake, TOP) for mistake in kind.values()))
    of_row = {name.split("-")[0]: mistake for name, mistake in tables["features"].items()}
    for row in sorted(with_tests - set(of_row)):
        wrong.append("%s has tests, and no row of features.txt takes its feature away" % row)
    for row in sorted(set(of_row) - with_tests):
        wrong.append("%s: docs/features.tests has no test of row %s" % (of_row[row].place, row))
    patches = sorted(glob.glob("tests/planted/recipes/*.patch", root_dir=TOP))
    here = dict(os.environ, GIT_CEILING_DIRECTORIES=os.path.dirname(TOP))
    for path in patches:
        if subprocess.run(["git", "apply", "--check", path], cwd=TOP, env=here, capture_output=True).returncode:
            wrong.append("%s does not apply: make its change in the code as it is now, and write the patch anew" % path)
    return wrong, sum(map(len, tables.values())), len(patches)


def check(passed):
    """Sentences about what does not hold."""
    wrong = []
    tests = read_tests()
    ids = []
    for row, state, line in read_rows():
        ids.append(row)
        if state not in STATES:
            wrong.append("%s: state %r is none of %s" % (row, state, ", ".join(STATES)))
        if state == "done" and row not in tests:
            wrong.append("%s is done and has no test in docs/features.tests" % row)
        if len(line) > ROW_COLUMNS:
            wrong.append("%s: %d columns; a row has at most %d" % (row, len(line), ROW_COLUMNS))
    expected = ["%s%d" % (letter, i + 1) for letter, count in ROWS.items() for i in range(count)]
    if ids != expected:
        wrong.append("the rows are %s, not %s" % (" ".join(ids), " ".join(expected)))
    for row in sorted(set(tests) - set(ids)):
        wrong.append("docs/features.tests has tests of %s, which is no row" % row)
    for row, names in tests.items():
        wrong += ["%s: the test %s did not run and pass" % (row, n) for n in names if n not in passed]
    return wrong


def check_names(path, passed):
    """Sentences about tests that a page names and that did not run and pass."""
    with open(path, encoding="utf-8") as f:
        named = sorted(set(re.findall(r"`(\w+::[\w.]+)`", f.read())))
    return ["the test %s did not run and pass" % name for name in named if name not in passed]


def main():
    if sys.argv[1:] != ["--patches"]:
        tests = read_tests()
        print("\n".join(sorted({t for row in sys.argv[1:] for t in tests.get(row, [])})))
        return 0
    try:
        wrong, mistakes, patches = check_patches()
    except ValueError as e:
        sys.exit(str(e))
    good = "%d mistakes can be planted, every row with tests has one, and %d recipes apply"
    print("\n".join(wrong or [good % (mistakes, patches)]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
