# SPDX-License-Identifier: Apache-2.0
"""Hops inside a process: 1,000,000 int64 messages."""
import os
import shutil

import instructions

MESSAGES = 1000000
GRAPHS = ("pair", "chain", "fan_out", "fan_in")
# Each of these is compared with the graph that does without.
FEATURES = {"nested": "chain", "tracked": "chain", "pop": "pair", "latest": "pair",
            "latest_within": "pair", "dynamic": "pair", "traced": "pair"}
TRACED_NS = 2 * 100  # of the two ticks of a hop
SCHEDULERS = ("greedy", "event1", "event2")
ADDED = 10  # identity elements


def cores(scheduler):
    return {0, 1} if scheduler == "event2" else {1}


def run(bench):
    have_gst = os.path.exists(bench.path("bench", "gst"))
    if not have_gst:
        bench.lack("GStreamer's elements (libgstreamer1.0-dev, gstreamer1.0-plugins-base), and the targets that rest on them")
    floors, rows, gst = {}, {}, {}
    for pinned in ("pinned", "unpinned"):
        for kind, unit in (("", "ns"), (".cpu", "ns cpu")):
            floors[pinned, kind] = bench.row("floor.hop.%s%s" % (pinned, kind), unit)
            for element in ("identity", "queue", "source_to_sink") if have_gst else ():
                gst[element, pinned, kind] = bench.row(
                    "gstreamer.%s.%s%s" % (element, pinned, kind), unit, floor=floors[pinned, kind]
                )
    for graph in GRAPHS:
        for scheduler in SCHEDULERS:
            for pinned in ("pinned", "unpinned"):
                for kind, unit in (("", "ns"), (".cpu", "ns cpu")):
                    rows[graph, scheduler, pinned, kind] = bench.row(
                        "hop.%s.%s.%s%s" % (graph, scheduler, pinned, kind),
                        unit,
                        floor=floors[pinned, kind],
                        target=hop_target(gst.get(("identity", pinned, kind)), graph, scheduler),
                    )
    features = {
        (graph, scheduler, kind): bench.row(
            "hop.%s.%s%s" % (graph, scheduler, kind), unit, floor=rows[plain, scheduler, "pinned", kind],
            target=traced_target if graph == "traced" else None)
        for graph, plain in FEATURES.items() for scheduler in SCHEDULERS
        for kind, unit in (("", "ns"), (".cpu", "ns cpu"))
    }
    heap = {s: bench.row("hop.heap_allocations.%s" % s, "/message", floor=0, target=0) for s in SCHEDULERS}
    for _ in bench.rounds():
        for pinned in ("pinned", "unpinned"):
            one = {1} if pinned == "pinned" else None
            add(floors, (pinned,), bench.figures("floor", "hop", MESSAGES, cores=one))
            if have_gst:
                source = bench.figures("gst", "identity", 0, MESSAGES // 4, cores=one)
                chain = bench.figures("gst", "identity", ADDED, MESSAGES // 4, cores=one)
                queue = bench.figures(
                    "gst", "queue", 1, MESSAGES // 4, cores={0, 1} if one else None
                )
                add(gst, ("source_to_sink", pinned), source)
                add(gst, ("identity", pinned), [(c - s) / ADDED for c, s in zip(chain, source)])
                add(gst, ("queue", pinned), [q - s for q, s in zip(queue, source)])
            for graph in GRAPHS:
                for scheduler in SCHEDULERS:
                    figures = bench.figures(
                        "hop", graph, scheduler, MESSAGES, cores=cores(scheduler) if one else None
                    )
                    add(rows, (graph, scheduler, pinned), figures)
        for graph in FEATURES:
            for scheduler in SCHEDULERS:
                figures = bench.figures("hop", graph, scheduler, MESSAGES, cores=cores(scheduler))
                add(features, (graph, scheduler), figures)
        for scheduler, row in heap.items():
            short, long = (
                bench.figures("hop", "pair", scheduler, n) for n in (MESSAGES // 10, MESSAGES)
            )
            row.add((long[3] - short[3]) / (long[2] - short[2]))
    if shutil.which("valgrind") is None:
        bench.lack("instructions a hop (valgrind)")
        return
    counted = {}
    for graph, scheduler in instructions.HOPS + instructions.FEATURES:
        row = bench.row("hop.instructions.%s.%s" % (graph, scheduler), "/hop",
                        floor=counted.get((FEATURES.get(graph), scheduler)),
                        target=instructions.LIMITS.get((graph, scheduler)))
        row.values.append(instructions.measure(bench.build, graph, scheduler))
        counted[graph, scheduler] = row


def hop_target(identity, graph, scheduler):
    """Of GStreamer's identity element in the same run; a fan has no such counterpart."""
    if identity is None or graph not in ("pair", "chain") or scheduler == "event2":
        return None
    share = 0.5 if scheduler == "greedy" else 1.0
    return lambda floor: share * identity.median


def traced_target(floor):
    return floor + TRACED_NS


def add(rows, key, figures):
    rows[key + ("",)].add(figures[0])
    rows[key + (".cpu",)].add(figures[1])
