#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the share of lines and branches that the tests of a build with --coverage took, by folder
and file. Fails when less than 90 % of the branches of a core or of the codec were taken.

usage: mk/coverage.py BUILD        after make has built BUILD with --coverage and tests/run.py has
                      run its tests
"""
import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MEASURED = ["libfrag/src", "libfrag/modules", "proto/wire", "driverd", "workerd", "runner"]
HELD_PERCENT = 90.0
HELD = {
    "driverd/core": lambda path: path.startswith("driverd/core/"),
    "workerd/core": lambda path: path.startswith("workerd/core/"),
    "the codec": lambda path: path.startswith("proto/wire/")
    and os.path.basename(path).startswith(("body_", "decode", "encode", "message")),
}


def measure(build):
    """{path: (lines, lines taken, branches, branches taken)}, by gcovr. Generated code is not under
    MEASURED."""
    command = ["gcovr", "--root", TOP, "--json-summary", "-", "-j", str(os.cpu_count() or 1)]
    for folder in MEASURED:
        command += ["--filter", folder + "/"]
    out = subprocess.run(
        command + [build], cwd=TOP, check=True, capture_output=True, text=True
    ).stdout
    return {f["filename"]: (f["line_total"], f["line_covered"], f["branch_total"], f["branch_covered"])
            for f in json.loads(out)["files"]}


def total(files, chosen):
    return [
        sum(column)
        for column in zip((0, 0, 0, 0), *(v for path, v in files.items() if chosen(path)))
    ]


def share(part, whole):
    return 100.0 * part / whole if whole else 100.0


def row(name, counts):
    lines, lines_taken, branches, branches_taken = counts
    return "%-34s %6d %6.1f %%  %6d %6.1f %%" % (name, lines, share(lines_taken, lines), branches,
                                              share(branches_taken, branches))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    files = measure(sys.argv[1])
    if not files:
        sys.exit("%s holds no counters; `make coverage` makes them" % sys.argv[1])
    print("%-34s %6s %8s  %8s" % ("", "lines", "taken", "branches taken"))
    for folder in sorted({os.path.dirname(path) for path in files}):
        print(row(folder, total(files, lambda path, f=folder: os.path.dirname(path) == f)))
        for path in sorted(p for p in files if os.path.dirname(p) == folder):
            print(row("  " + os.path.basename(path), files[path]))
    print()
    for top in ("libfrag", "proto", "driverd", "workerd", "runner"):
        print(row(top, total(files, lambda path, t=top: path.startswith(t + "/"))))
    print()
    low = []
    for name, chosen in HELD.items():
        counts = total(files, chosen)
        print(row(name, counts))
        if counts[2] == 0 or share(counts[3], counts[2]) < HELD_PERCENT:
            low.append(name)
    sys.stdout.flush()
    for name in low:
        print("%s: less than %.0f %% of its branches were taken; add tests, or remove what no input can reach"
              % (name, HELD_PERCENT), file=sys.stderr)
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
