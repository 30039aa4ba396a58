#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in the counts of docs/EVIDENCE.md: the table between `<!-- counts -->` and `<!-- end -->`.

Counts grow with each commit, so the page has those of its last run of this script; a test sees that
none of them is more than what is there.

usage: mk/evidence.py [--print]        --print changes nothing
"""
import glob
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(TOP, "docs", "EVIDENCE.md")
CRITERION = re.compile(r"(?m)^(?:\w*Test|[A-Z_]+_TEST)\(\w+, *\w+")
PYTHON = re.compile(r"(?m)^    def test_\w+")
PLANTED = re.compile(r"(?m)^[\w-]+: .*\n(?:test: .*\n)*@")


def text(*patterns):
    out = []
    for pattern in patterns:
        for path in sorted(glob.glob(os.path.join(TOP, pattern), recursive=True)):
            with open(path, encoding="utf-8", errors="replace") as f:
                out.append(f.read())
    return "\n".join(out)


def step(run, name):
    """The words of a step of mk/proof.sh."""
    body = text("mk/proof.sh").split("\n%s)\n" % run)[1].split(";;")[0]
    return re.search(r"(?m)^(?:steps=')?&?%s (.*)$" % name, body).group(1)


def number(run, name, word):
    return int(re.search(r"%s=(\d+)" % word, step(run, name)).group(1))


def planted(name):
    return len(PLANTED.findall(text("tests/planted/%s.txt" % name)))


def rows():
    """(what, count, command)"""
    tests = len(CRITERION.findall(text("tests/**/*.c"))) + len(PYTHON.findall(text("tests/**/*.py")))
    return [
        ("test functions; many run for each edge, scheduler or size", tests, "make check"),
        ("histories of driver, workers and hosts with faults, in each check",
         int(re.search(r"sim_histories,(\d+)\)$", text("mk/tests.mk"), re.M).group(1)), "make check"),
        ("the same in each nightly run", number("nightly", "sim", "RUNS"), "make sim RUNS=1000000"),
        ("random graphs under all schedulers, nightly", number("nightly", "oracle", "GRAPHS"),
         "make oracle GRAPHS=50000"),
        ("mistakes in features that a named test must notice", planted("features"),
         "tests/planted/features.sh"),
        ("faults of the protocol that the simulator must find", planted("sim"), "make sim-faults"),
        ("faults of schedulers that the oracle must find", planted("oracle"), "make oracle-faults"),
        ("races that ThreadSanitizer must find", planted("races"), "tests/planted/races.sh"),
        ("overflows that a fuzzer must find in 60 s", planted("fuzz"), "tests/planted/fuzz.sh"),
        ("fuzz targets, each for 10 minutes in each nightly run",
         len(re.findall("LLVMFuzzerTestOneInput\\(", text("tests/fuzz/*.c"))), "make fuzz TIME=600"),
        ("inputs of fuzzing that are kept, run in each check",
         len([p for p in glob.glob(os.path.join(TOP, "tests/fuzz/corpus/**"), recursive=True) if os.path.isfile(p)]),
         "make check ONLY=corpus"),
        ("attacks by kill -9 on real daemons, nightly", number("nightly", "torture", "RUNS"),
         "make torture RUNS=1000"),
        ("kills of hosts that are started again, nightly", number("nightly", "torture", "RESTART"),
         "make torture RESTART=1000"),
        ("attacks on services, nightly",
         sum(number("nightly", "service-%d" % i, "SERVICE") for i in (1, 2, 3, 4)), "make torture SERVICE=250"),
        ("mutants that are made by rule, nightly", number("nightly", "mutate", "COUNT"), "make mutate COUNT=200"),
    ]


def table():
    lines = ["| what | how many | command |", "|---|---|---|"]
    lines += ["| %s | %s | `%s` |" % (what, format(count, ","), command) for what, count, command in rows()]
    return "\n".join(lines) + "\n"


def main():
    if "--print" in sys.argv:
        print(table(), end="")
        return
    with open(PAGE, encoding="utf-8") as f:
        page = f.read()
    page = re.sub(r"(<!-- counts -->\n).*?(<!-- end -->)", lambda m: m.group(1) + table() + m.group(2), page, flags=re.S)
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page)


if __name__ == "__main__":
    main()
