#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what the benchmarks measure worse on purpose, and shows that their rows see it.

usage: bench.py [--build DIR] [--rounds N] [NAME...]     default 5 rounds, all rows of bench.txt

A row of bench.txt (table.py says how it is written) makes parts of `make bench` worse in a copy of
the tree; `part:` names them, `rows:` the rows that must move, as expressions. Both trees are
measured in turns. A row has moved when all values of the worse tree lie beyond the median of the
right one, and their median beyond all of its values but the worst, since other load makes single
values worse; or when the worse tree was behind in each turn, and by PAIRED of them in the median,
since other load makes a whole turn worse. Where a figure hardly varies, it moves by more than
COUNTED. What is printed:

    moved      a row, with both medians
    STILL      a row that did not move: it measures something else, or its noise hides it
    UNNAMED    a row of a measured part that no row of bench.txt names, nor `not_frag` below

The exit status is 1 where there is any of the last two. Parts that cannot run here say what they
lack; NOT_HERE says why some have no row in bench.txt at all.
"""
import argparse
import importlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path[:0] = [HERE, os.path.join(TOP, "tests", "bench")]
import instructions  # noqa: E402
import table  # noqa: E402
from rows import Bench  # noqa: E402

# Floors and peers: what they take does not depend on frag's code.
NOT_FRAG = re.compile(
    r"(floor|gstreamer|tbb|ucx|openssl|ring|iceoryx2|memcpy|libyaml|malloc|operators)\."
    r"|look\.scrape\.floor|python\.(nanobind|start$)|python\.holoscan\..*\.wheel")
NOT_HERE = {
    "inference": "networks and benchmark_app come from make deps-ai-bench (137 MB)",
    "realtime": "cyclictest (rt-tests) is its floor, and it needs the privilege of real time",
    "gpu": "it needs a GPU",
    "peers": "the peers' packages are 360 MB; frag's own rows are those of hop, shm, start",
}
# A round of few messages is enough to see a row move, and of few counted ones, since a mistake
# takes fifty times as long under callgrind. Graphs with a feature are counted by the same code.
FEW_COUNTED = {"SHORT": 1000, "LONG": 5000, "FEW": 64, "MANY": 256, "FEATURES": []}
SHORTER = {
    "hop": {"MESSAGES": 20000},
    "threads": {"MESSAGES": 30000, "WORK": 400, "MIXED": 400,
                "SHAPE_NS": {20000: 4000, 1000000: 200}},
    # Ends that spin wait for a slice of the scheduler where both cores are busy.
    "edge": {"COUNTS": {8: (200, 60, 1000), 1 << 10: (200, 60, 1000), 64 << 10: (100, 60, 300),
                        1 << 20: (30, 20, 60), 8 << 20: (10, 10, 20)}},
    "shm": {"TRIPS": {"busy_poll": 200, "event": 300},
            "STREAMED": {64: ("64B", 10000), 64 << 10: ("64KiB", 10000)},
            "FRAMES": 30, "DEMO_FRAMES": 20, "PACES": {1000: 500, 60: 120}},
    "encrypted": {"COUNTS": {64 << 10: (100, 60, 300), 8 << 20: (10, 10, 20)}},
    "start": {"RUNS": 5, "IDLE_S": 1},
    "control": {"JOINS": 50, "MESSAGES": 5000},
    "video": {"LAPS": 1, "FRAMES": 150},
    "python": {"COUNT": 2000},
    "service": {"APPLICATIONS": 20, "IDLE_S": 1, "LEASES_S": (0,)},
    "look": {"APPLICATIONS": 20, "SCRAPES": 4},
}
COUNTED = 0.02
PAIRED = 1.5


def measure(build, part):
    """{name: Row} of one series of a part."""
    Bench.drop = 0
    bench = Bench(build, 1, "")
    module = importlib.import_module("part_" + part)
    for where, values in ((instructions, FEW_COUNTED), (module, SHORTER.get(part, {}))):
        for name, value in values.items():
            setattr(where, name, value)
    module.run(bench)
    return {row.name: row for row in bench.rows if row.values}, bench.missing


def is_behind(right, worse, more_is_better):
    """Whether the row is worse in each turn, and by far in most. Their values are in one order."""
    ratios = sorted((r + 1e-9) / (w + 1e-9) if more_is_better else (w + 1e-9) / (r + 1e-9)
                    for r, w in zip(right, worse))
    return len(ratios) > 2 and ratios[0] > 1 and statistics.median(ratios) > PAIRED


def has_moved(right, worse, more_is_better):
    """Whether the row is worse beyond its noise."""
    if is_behind(right, worse, more_is_better):
        return True
    sign = -1 if more_is_better else 1
    right, worse = sorted(sign * x for x in right), sorted(sign * x for x in worse)
    if right[-1] - right[0] <= COUNTED / 4 * abs(right[-1]):
        return statistics.median(worse) > right[-1] + COUNTED * abs(right[-1])
    return worse[0] > statistics.median(right) and statistics.median(worse) > right[-2]


def copy_tree(build, scratch):
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                           stdout=subprocess.PIPE, cwd=TOP, check=True).stdout
    subprocess.run(["xargs", "-0", "cp", "-a", "--parents", "-t", scratch], input=files, cwd=TOP,
                   check=True)
    subprocess.run(["cp", "-a", build, os.path.join(scratch, "build")], check=True)


def make(tree):
    command = ["make", "-s", "-j%d" % os.cpu_count(), "B=build", "WERROR=", "bench-programs-here"]
    if "CC" in os.environ:
        command.append("CC=" + os.environ["CC"])
    subprocess.run(command, cwd=tree, check=True)


def run_row(row, build, scratch, rounds):
    """Prints what became of each row of the benchmarks; returns how many are wrong."""
    wanted = [re.compile(e) for e in row.keys.get("rows", [])]
    parts = " ".join(row.keys.get("part", [])).split()
    table.plant(row, scratch)
    try:
        make(scratch)
        right, worse, better, missing = {}, {}, {}, set()
        for _ in range(rounds):
            for tree, into in ((build, right), (os.path.join(scratch, "build"), worse)):
                for part in parts:
                    found, lacks = measure(tree, part)
                    missing.update(lacks)
                    for name, one in found.items():
                        into.setdefault(name, []).extend(one.values)
                        better[name] = one.more_is_better
    finally:
        table.mend(row, scratch)
    wrong = 0
    for name in right:
        if name not in worse:
            continue
        is_wanted = any(e.fullmatch(name) for e in wanted)
        if is_wanted:
            word = "moved" if has_moved(right[name], worse[name], better[name]) else "STILL"
        elif NOT_FRAG.match(name) is None and not is_named(name, parts):
            word = "UNNAMED"
        else:
            continue
        wrong += word != "moved"
        print("%-8s %-40s %10.4g [%.4g..%.4g] -> %.4g [%.4g..%.4g]" % (
            word, name, statistics.median(right[name]), min(right[name]), max(right[name]),
            statistics.median(worse[name]), min(worse[name]), max(worse[name])), flush=True)
    for what in sorted(missing):
        print("not measured: %s" % what)
    return wrong


def is_named(name, parts):
    """Whether some row of bench.txt names the row of these parts."""
    return any(re.fullmatch(e, name) for row in table.load("bench").values()
               if set(parts) & set(" ".join(row.keys.get("part", [])).split())
               for e in row.keys.get("rows", []))


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("--build", default="build")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("names", nargs="*", metavar="NAME")
    args = p.parse_args()
    rows = table.load("bench")
    for name in args.names:
        if name not in rows:
            p.error("no row %s; there are %s" % (name, " ".join(rows)))
    wrong, build, scratch = 0, os.path.abspath(args.build), tempfile.mkdtemp(prefix="frag-plant-")
    os.environ["GIT_CEILING_DIRECTORIES"] = os.path.dirname(scratch)  # it belongs to no repository
    os.chdir(TOP)
    try:
        copy_tree(build, scratch)
        for name in args.names or rows:
            print("%s: %s" % (name, rows[name].title), flush=True)
            wrong += run_row(rows[name], build, scratch, args.rounds)
    finally:
        shutil.rmtree(scratch)
    for part, why in NOT_HERE.items():
        print("not measured: %s: %s" % (part, why))
    print("%d rows do not move or are not named" % wrong)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
