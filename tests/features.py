# SPDX-License-Identifier: Apache-2.0
"""Holds docs/features.md to its word: a row that says done names tests, and those tests ran and passed."""
import re

STATES = ("done", "partly", "not yet")


def rows(path):
    """(id, state, [test names]) of every row."""
    with open(path, encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\| ([A-G]\d+) \|", line)
            if not m:
                continue
            cells = [c.strip() for c in line.strip().strip("|").split("|")]
            yield cells[0], cells[1], re.findall(r"`([^`]+)`", cells[3]) if len(cells) > 3 else []


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
