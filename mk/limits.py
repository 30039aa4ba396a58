#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no file of the product has more than 600 lines, and no line of source or of a
document more than 100 columns (a tab is 8). A line may be longer where it cannot be wrapped: it
holds a string literal, a URL or a single word, or it is a row of a table; in a document also in a
block of code.
"""
import os
import re
import subprocess
import sys

LINES_MAX = 600
COLUMNS_MAX = 100
C = (".c", ".h", ".proto")
SOURCES = C + (".py", ".sh", ".mk", "Makefile", ".ci/run", ".md")
# A sentence that is printed stays in one piece, so that it is found by grep.
LITERAL = re.compile(r"([\"'])(?!\1).{20,}\1")
CONFLICT = re.compile(r"(<{7}|\|{7}|>{7}) ")


def may_be_long(path, line):
    if path.endswith(C) and '"' in line:
        return True
    return bool(
        re.search(r"https?://|^\|", line) or " " not in line.strip() or LITERAL.search(line)
    )


def check(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines()
    if len(lines) > LINES_MAX and path.endswith(C) and not path.startswith("tests/"):
        yield "%s: %d lines; look for the second noun" % (path, len(lines))
    in_code = False
    for number, line in enumerate(lines, 1):
        if CONFLICT.match(line):
            yield "%s:%d: a mark of a merge's conflict" % (path, number)
        if path.endswith(".md") and line.startswith("```"):
            in_code = not in_code
        if in_code:
            continue
        columns = len(re.sub(r"\s*\\$", "", line).expandtabs(8))
        if columns > COLUMNS_MAX and not may_be_long(path, line):
            yield "%s:%d: %d columns" % (path, number, columns)


def main():
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True)
    paths = [p for p in files.stdout.splitlines() if p.endswith(SOURCES) and os.path.exists(p)]
    wrong = [w for path in paths for w in check(path)]
    for sentence in wrong:
        print(sentence)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
