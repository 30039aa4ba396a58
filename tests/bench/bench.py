#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What frag costs, next to what the machine itself takes in the same run.

usage: bench.py [--build DIR] [--series N] [PART...]
parts: hop threads edge shm encrypted start graph control look viewer video inference
realtime python gpu;
default all of these; peers: beside others, which make deps-peers installs

Series of all programs of a part are run in turns, so that other load on the machine affects all of
them; the first is dropped. Text on stdout, the same in DIR/bench.md and DIR/bench.json. A target
that is missed stays in the table as missed; the exit status says only whether everything could be
measured.
"""
import argparse
import importlib
import os
import platform
import sys
import time
import traceback

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rows import Bench  # noqa: E402

PARTS = ("hop", "threads", "edge", "shm", "encrypted", "start", "graph", "control", "service", "look", "viewer",
         "video", "inference", "realtime", "python", "gpu")
OPTIONAL = ("peers",)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = next((l.split(":")[1].strip() for l in f if l.startswith("model name")), platform.machine())
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "") if hasattr(platform, "freedesktop_os_release") else ""
    return "%s; %d x %s; %s; Linux %s; load %s" % (
        time.strftime("%Y-%m-%d"), len(os.sched_getaffinity(0)), model, system, platform.release(),
        " ".join("%.1f" % x for x in os.getloadavg()))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--series", type=int, default=5)
    p.add_argument("parts", nargs="*", metavar="PART")
    args = p.parse_args()
    for part in args.parts:
        if part not in PARTS + OPTIONAL:
            p.error("%s is not a part; there are %s" % (part, ", ".join(PARTS + OPTIONAL)))
    bench, failed = Bench(args.build, args.series, "make bench, " + machine()), []
    for part in args.parts or PARTS:
        print("\n%s (%s)" % (part, machine()), flush=True)
        since = len(bench.rows)
        try:
            importlib.import_module("part_" + part).run(bench)
        except Exception as e:  # the other parts are measured all the same
            traceback.print_exc()
            failed.append("%s: %s" % (part, e))
        bench.show(since)
        bench.save()
    print("\n%s" % machine())
    for what in bench.missing:
        print("not measured: %s" % what)
    for what in failed:
        print("failed: %s" % what)
    missed = [r for r in bench.rows if r.values and r.verdict().startswith("missed")]
    print("%d of %d targets are missed%s" % (
        len(missed), sum(1 for r in bench.rows if r.values and r.target_value is not None),
        ": " + ", ".join(r.name for r in missed) if missed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
