#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions a hop, by callgrind: the difference of two run lengths, which is the same on a busy
machine.

usage: instructions.py [--build DIR] [--record]     fails when a figure is more than 5 % from the
                       one recorded in
instructions.txt beside this file, or crosses its limit, which the record keeps; --record writes
them anew. A record above its limit is a missed target: it is said each time and held where it is
until it is mended. Compilers differ: where the file's is not the one in use only the limits that
the record keeps are held.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.txt")
KINDS = [(g, s) for s in ("greedy", "event1") for g in ("pair", "chain", "fan_out", "fan_in")]
LIMITS = {"greedy": 600, "event1": 900}
SHORT, LONG = 20000, 120000
TOLERANCE = 0.05


def collected_by(command):
    """How many instructions a program executes, and what it prints."""
    r = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    found = re.search(r"Collected : (\d+)", r.stderr)
    if r.returncode != 0 or found is None:
        raise RuntimeError("callgrind of %s: exit status %d\n%s" % (command, r.returncode, r.stderr))
    return int(found.group(1)), r.stdout


def collected(build, graph, scheduler, messages):
    program = os.path.join(build, "bench/hop")
    count, printed = collected_by([program, graph, scheduler, str(messages)])
    return count, int(float(printed.split()[2]))


def measure(build, graph, scheduler):
    (short, few), (long, many) = (collected(build, graph, scheduler, n) for n in (SHORT, LONG))
    return (long - short) / (many - few)


def compiler():
    cc = os.environ.get("CC", "gcc").split()
    return " ".join(
        [
            os.path.basename(cc[0]),
            subprocess.run(
                [*cc, "-dumpfullversion"], stdout=subprocess.PIPE, text=True, check=False
            ).stdout.strip(),
            os.uname().machine,
        ]
    )


def recorded():
    """(graph, scheduler, instructions or None) of all kinds."""
    known = {}
    if os.path.exists(RECORD):
        with open(RECORD, encoding="utf-8") as f:
            for line in f:
                words = line.split("#")[0].split()
                if len(words) == 3:
                    known[words[0], words[1]] = float(words[2])
    return [(g, s, known.get((g, s))) for g, s in KINDS]


def recorded_compiler():
    with open(RECORD, encoding="utf-8") as f:
        return re.search(r"^# compiler: (.*)$", f.read(), re.M).group(1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--record", action="store_true")
    args = p.parse_args()
    if shutil.which("valgrind") is None:
        print("instructions a hop are not measured: there is no valgrind; install it (mk/deps.sh bench)", file=sys.stderr)
        return 3
    if args.record:
        with open(RECORD, "w", encoding="utf-8") as f:
            f.write("# SPDX-License-Identifier: Apache-2.0\n# Instructions a hop; tests/bench/instructions.py --record writes this.\n"
                    "# compiler: %s\n" % compiler())
            for graph, scheduler in KINDS:
                f.write("%s %s %.1f\n" % (graph, scheduler, measure(args.build, graph, scheduler)))
    same = recorded_compiler() == compiler()
    if not same:
        print("the record is of %s, this is %s: only the limits are held" % (recorded_compiler(), compiler()))
    bad = missed = 0
    for graph, scheduler, known in recorded():
        got, limit, what = measure(args.build, graph, scheduler), LIMITS[scheduler], "ok"
        if known is None:
            what = "not recorded: record it (instructions.py --record)"
        elif got > limit and known <= limit:
            what = "crosses its limit of %d" % limit
        elif same and got > known * (1 + TOLERANCE):
            what = "more than 5 % above the record: mend it, or record it with the reason"
        elif same and got < known * (1 - TOLERANCE):
            what = "more than 5 % below the record: good; record it, so that it stays (instructions.py --record)"
        bad += what != "ok"
        missed += got > limit
        print("%-8s %-7s %6.1f instructions a hop, recorded %s: %s%s" % (
            graph, scheduler, got, known, what, "; misses its target of %d" % limit if got > limit else ""), flush=True)
    if missed:
        print("%d of %d miss their targets" % (missed, len(KINDS)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
