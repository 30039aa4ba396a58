# SPDX-License-Identifier: Apache-2.0
"""Several threads beside one: operators that do next to nothing, and operators of 20 us."""
import os

GRAPHS = ("pair", "chain", "fan_out", "fan_in", "sinks")
MESSAGES = 300000
WORK, MIXED = 4000, 4000  # messages on one thread
SPEEDUP = {2: 1.8, 4: 3.5, 8: 6.5}
MIXED_WORKERS = 4  # in mixed, beside the short operators


def threads():
    """1, and how many more than one the cores of this machine can run."""
    return [1] + [n for n in SPEEDUP if n <= len(os.sched_getaffinity(0))]


def run(bench):
    counts = threads()
    if len(counts) < 2:
        bench.lack("several threads beside one (two cores)")
        return
    rows = {}
    for graph in GRAPHS:
        for n in counts:
            rows[graph, n] = beside_one(bench, rows, graph, n, lambda one: 1.2 * one)
    for n in counts:
        rows["work", n] = beside_one(bench, rows, "work", n, lambda one, n=n: one / SPEEDUP[n])
    for n in counts:
        rows["mixed", n] = beside_one(bench, rows, "mixed", n, lambda one: one)
        rows["mixed.rate", n] = beside_one(
            bench,
            rows,
            "mixed.rate",
            n,
            lambda one, n=n: 0.7 * one * min(n, MIXED_WORKERS),
            unit="1/s",
            more_is_better=True,
        )
    for _ in bench.rounds():
        for n in counts:
            for graph in GRAPHS:
                rows[graph, n].add(bench.figures("hop", graph, "event%d" % n, MESSAGES)[0])
            rows["work", n].add(bench.figures("hop", "work", "event%d" % n, WORK * n)[0])
            # More of them the more threads there are, so that each run takes as long.
            figures = bench.figures("hop", "mixed", "event%d" % n, MIXED * n * n)
            rows["mixed", n].add(figures[0])
            rows["mixed.rate", n].add(figures[4])


def beside_one(bench, rows, name, n, target, unit="ns", **more):
    return bench.row(
        "threads.%s.%d" % (name, n),
        unit,
        floor=rows.get((name, 1)),
        target=target if n > 1 else None,
        **more
    )
