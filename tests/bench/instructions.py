#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions a hop inside a process, and a message between two hosts over shared memory (both
hosts together), by callgrind: the difference of two run lengths, which is the same on a busy
machine. event_based decides by the time, so it gets a clock that goes on by as much with each
reading, whatever else runs (hop.c); what that costs more than reading the machine's is taken off.

usage: instructions.py [--build DIR] [--record]     fails when a figure is more than 5 % from the
                       one recorded in
instructions.txt beside this file, crosses its limit, which the record keeps, or is too far above
greedy's under event_based; --record writes them anew. A record above its limit is a missed target:
it is said each time and held where it is until it is mended. Compilers differ: where the file's is
not the one in use only the limits that the record keeps are held.
"""
import argparse
import functools
import math
import os
import re
import shutil
import subprocess
import sys

RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instructions.txt")
SCHEDULERS = ("greedy", "event1")
HOPS = [(g, s) for s in SCHEDULERS for g in ("pair", "chain", "fan_out", "fan_in")]
# What a feature costs those who use it: tracking, queues that drop, dynamic flows. nested is the
# chain in subgraphs, deadline the chain on a path with a deadline whose hops are short, late one
# whose hops are not: what each was spent with is kept, and all messages are late. tapped is the
# pair after a tap has ended, looked the pair while somebody looks, traced the pair while all its
# ticks are traced.
FEATURES = [(g, s) for s in SCHEDULERS for g in ("nested", "tapped", "looked", "traced", "tracked", "deadline", "late",
                                              "pop", "latest", "latest_within", "dynamic")]
# trip: each message alone, with two rounds of progress; stream: BATCH come in one
MESSAGES = [(size, way) for way in ("trip", "stream") for size in ("8B", "64B", "64KiB")]
KINDS = HOPS + FEATURES + MESSAGES
LIMITS = {(g, s): {"greedy": 600, "event1": 900}[s] for g, s in HOPS}
# How many more event_based may take than greedy.
MORE = {"pair": 120, "chain": 120, "fan_out": 120, "fan_in": 120}
SAME = {"nested": "chain", "tapped": "pair", "looked": "pair"}  # as many instructions
# Of waiting at the begin and the end; of looked with all that the thread executes that looks.
SAME_TOLERANCE = {"looked": 0.02, "nested": 0.03}
SAME_TOLERANCE_DEFAULT = 0.005
SHORT, LONG = 10000, 60000
TAP_TRIES = 6  # a run may be over before its tap comes
FEW, MANY, BATCH = 1600, 6400, 32
SIZES = {"8B": 8, "64B": 64, "64KiB": 64 << 10}
TOLERANCE = 0.05
# A count is the least of some, for threads also wait and look.
TRIES = 3
WIDER = {# what the kernel denied a thread is read by the time
         ("deadline", "greedy"): 0.1, ("deadline", "event1"): 0.1,
         ("late", "greedy"): 0.1, ("late", "event1"): 0.1}


def collected_by(command, environment=()):
    """How many instructions a program executes, and what it prints."""
    r = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **dict(environment)},
    )
    found = re.search(r"Collected : (\d+)", r.stderr)
    if r.returncode != 0 or found is None:
        raise RuntimeError("callgrind of %s: exit status %d\n%s" % (command, r.returncode, r.stderr))
    return int(found.group(1)), r.stdout


def collected(build, graph, scheduler, messages, steady):
    """Instructions, hops and, of a steady clock, its readings."""
    command = [os.path.join(build, "bench/hop"), graph, scheduler, str(messages)]
    environment = {"HOP_STEADY": "1"} if steady else {}
    for rest in range(TAP_TRIES, 0, -1):
        try:
            count, printed = collected_by(command, environment)
            break
        except RuntimeError as e:
            if "no tap" not in str(e) or rest == 1:
                raise
    return count, int(printed.split()[2]), int(printed.split()[5])


def between(build, graph, scheduler, steady):
    """What a long run has more than a short one."""
    short, long = (collected(build, graph, scheduler, n, steady) for n in (SHORT, LONG))
    return [b - a for a, b in zip(short, long)]


@functools.lru_cache
def cost_of_reading(build):
    """How many more instructions the steady clock takes than the machine's. Of a graph in which
    nothing depends on time."""
    plain, _, _ = between(build, "pair", "greedy", steady=False)
    steady, _, readings = between(build, "pair", "greedy", steady=True)
    return (steady - plain) / readings


def message(build, size, batch):
    """Of a message of that many bytes, in both hosts, which are one thread of bench/edge."""
    counts = [collected_by([os.path.join(build, "bench/edge"), "turns", str(size), str(n), "shm", str(batch)])[0]
              for n in (FEW, MANY)]
    return (counts[1] - counts[0]) / (MANY - FEW)


def measure(build, graph, scheduler):
    if (graph, scheduler) in MESSAGES:
        return message(build, SIZES[graph], BATCH if scheduler == "stream" else 1)
    if scheduler == "greedy":  # it looks at no time
        count, hops, _ = between(build, graph, scheduler, steady=False)
        return count / hops
    count, hops, readings = between(build, graph, scheduler, steady=True)
    return (count - readings * cost_of_reading(build)) / hops


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
    """(graph or size, scheduler or way, instructions or None) of all kinds."""
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


def judge(figures, graph, scheduler, known, is_same):
    """"ok", or what is wrong with the count that was measured last. is_same: as the record's compiler."""
    got, limit = figures[graph, scheduler], LIMITS.get((graph, scheduler), math.inf)
    like = figures.get((SAME.get(graph), scheduler), got)
    tolerance = WIDER.get((graph, scheduler), TOLERANCE)
    if abs(got - like) > like * SAME_TOLERANCE.get(graph, SAME_TOLERANCE_DEFAULT):
        return "%s takes %.1f, and it should take as many" % (SAME[graph], like)
    if scheduler == "event1" and got - figures[graph, "greedy"] > MORE.get(graph, math.inf):
        return "more than %d above greedy" % MORE[graph]
    if known is None:
        return "not recorded: record it (instructions.py --record)"
    if got > limit and known <= limit:
        return "crosses its limit of %d" % limit
    if is_same and got > known * (1 + tolerance):
        return "more than %.0f %% above the record: mend it, or record it with the reason" % (100 * tolerance)
    if is_same and got < known * (1 - tolerance):
        return "more than %.0f %% below the record: good; record it, so that it stays (instructions.py --record)" % (
            100 * tolerance)
    return "ok"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default="build")
    p.add_argument("--record", action="store_true")
    args = p.parse_args()
    if shutil.which("valgrind") is None:
        print("instructions are not measured: there is no valgrind; install it (mk/deps.sh bench)", file=sys.stderr)
        return 3
    if args.record:
        with open(RECORD, "w", encoding="utf-8") as f:
            f.write("# SPDX-License-Identifier: Apache-2.0\n"
                    "# Instructions a hop, and a message over shared memory; tests/bench/instructions.py --record writes this.\n"
                    "# compiler: %s\n" % compiler())
            for graph, scheduler in KINDS:
                f.write("%s %s %.1f\n" % (graph, scheduler, measure(args.build, graph, scheduler)))
    same = recorded_compiler() == compiler()
    if not same:
        print("the record is of %s, this is %s: only the limits are held" % (recorded_compiler(), compiler()))
    bad = missed = 0
    figures = {}
    for graph, scheduler, known in recorded():
        got, limit = math.inf, LIMITS.get((graph, scheduler), math.inf)
        for _ in range(TRIES):
            got = figures[graph, scheduler] = min(got, measure(args.build, graph, scheduler))
            what = judge(figures, graph, scheduler, known, same)
            if what == "ok":
                break
        bad += what != "ok"
        missed += got > limit
        print("%-8s %-7s %6.1f instructions, recorded %s: %s%s" % (
            graph, scheduler, got, known, what, "; misses its target of %d" % limit if got > limit else ""), flush=True)
    if missed:
        print("%d of %d miss their targets" % (missed, len(HOPS)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
