# SPDX-License-Identifier: Apache-2.0
"""Several threads beside one: operators that do next to nothing, and operators of 20 us; graphs
whose operators all compute, beside oneTBB's flow graph."""
import os

GRAPHS = ("pair", "chain", "fan_out", "fan_in", "sinks")
MESSAGES = 300000
WORK, MIXED = 4000, 4000  # messages on one thread
SPEEDUP = {2: 1.8, 4: 3.5, 8: 6.5}
SHAPES = ("line", "diamond", "caterpillar", "wide")
SHAPE_NS = {20000: 40000, 1000000: 2000}  # how long each operator computes: arrows
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
    shapes = shape_rows(bench)
    for _ in bench.rounds():
        for (shape, ns, n), pairs in shapes.items():
            ours = bench.figures("hop", "%s:1@%d" % (shape, ns), "event%d" % n, SHAPE_NS[ns])
            theirs = bench.figures("tbb", shape, ns, n, SHAPE_NS[ns]) if pairs[0][1] else ours
            for i, (row, floor) in enumerate(pairs):
                row.add(ours[i])
                if floor:
                    floor.add(theirs[i])
        for n in counts:
            for graph in GRAPHS:
                rows[graph, n].add(bench.figures("hop", graph, "event%d" % n, MESSAGES)[0])
            rows["work", n].add(bench.figures("hop", "work", "event%d" % n, WORK * n)[0])
            # More of them the more threads there are, so that each run takes as long.
            figures = bench.figures("hop", "mixed", "event%d" % n, MIXED * n * n)
            rows["mixed", n].add(figures[0])
            rows["mixed.rate", n].add(figures[4])


def shape_rows(bench):
    """For each graph, time of its operators, and threads: the row and its floor by the clock and of
    processor time."""
    have_tbb = os.path.exists(bench.path("bench", "tbb"))
    if not have_tbb:
        bench.lack("oneTBB's flow graph (libtbb-dev, g++), and the targets that rest on it")
    rows = {}
    for shape in SHAPES:
        for ns in SHAPE_NS:
            for n in (n for n in (2, 4, 8, 16) if n <= len(os.sched_getaffinity(0))):
                rows[shape, ns, n] = pairs = []
                for kind, share in (("", 1 / 0.95), (".cpu", 1)):
                    name = "%s.%d_us.%d%s" % (shape, ns // 1000, n, kind)
                    floor = bench.row("tbb." + name, "ns" + kind.replace(".", " ")) if have_tbb else None
                    target = (lambda tbb, share=share: share * tbb) if have_tbb else None
                    row = bench.row("threads." + name, "ns" + kind.replace(".", " "), floor=floor, target=target)
                    pairs.append((row, floor))
    return rows


def beside_one(bench, rows, name, n, target, unit="ns", **more):
    return bench.row(
        "threads.%s.%d" % (name, n),
        unit,
        floor=rows.get((name, 1)),
        target=target if n > 1 else None,
        **more
    )
