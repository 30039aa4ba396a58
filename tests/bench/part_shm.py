# SPDX-License-Identifier: Apache-2.0
"""Between two hosts over shared memory, operator to operator, on cores 0 and 1, beside a bare ring
with the same slots (ring.c) that waits in the same way: it spins, or it sleeps on a futex.

trip: half of a round trip, one message at a time. frames: the same for pictures of the demo (768 x
576 x 3 bytes), 30 times a second. demo: the frames of the demo itself, 10 times a second, from the
operator that decodes them to the one that receives them, beside a ring whose messages nobody
answers: on its way back a message finds a processor that has not slept for long. stream: as many as
go; inproc: the same operators in one process, on one core, which is what the two ticks of a message
take; both: as many as go when each message takes the time of the ring and that of inproc. memcpy is
what one copy of the bytes would take; copied: what frag copied of all these messages.

waits: two ends of an edge without operators, as they wait by default (adaptive), beside both ends
that spin (trips), or sleep (processor time at a pace; streams while a loop keeps each core busy).
jitter: the longest of 1,000 trips at 60 Hz, beside the 99th percentile and the bare ring.
"""
import json
import os
import shutil
import subprocess
import sys

from cluster import Cluster
import instructions
from part_edge import PACED, STREAM, TRIP, warm_up
from rows import pin

WAITS = {"busy_poll": "spin", "event": "futex"}
SIZES = {8: "8B", 64: "64B", 1 << 10: "1KiB", 64 << 10: "64KiB", 1 << 20: "1MiB", 8 << 20: "8MiB", 256 << 20: "256MiB"}
STREAMED = {64: ("64B", 400000), 64 << 10: ("64KiB", 200000)}
TRIPS = {"busy_poll": 20000, "event": 3000}
FRAME = 768 * 576 * 3
FRAMES = 150
DEMO = "video_replayer_distributed"
DEMO_FRAMES, DEMO_HZ = 100, 10
ICEORYX_TRIPS = 10000
PACES = {1000: 4000, 60: 1000}  # a second: how many
INSTRUCTIONS = 2400  # of a message of 64 bytes in a stream, at most


def app(bench, text, mode, size, count, **more):
    """What the application wrote, and how many bytes frag copied of its messages."""
    with Cluster(bench, env={"FRAG_PUMP": mode}) as c:
        values = dict(count=count, warm_up=warm_up(count), sent=count + warm_up(count), bytes=size,
                      file=c.path("figures"), **more)
        c.run(c.write("app.yaml", text.replace("edge: ucx", "edge: shm") % values), summary=c.path("summary"))
        with open(c.path("summary"), encoding="utf-8") as f:
            flows = [flow for flow in json.load(f)["flows"] if flow["edge"] != "inproc"]
        assert {flow["edge"] for flow in flows} == {"shm"}, flows
        return c.numbers("figures"), sum(flow["copied_bytes"] for flow in flows)


IN_ONE_PROCESS = """frag: 1
application: stream
extensions: [libbench.so]
operators:
  source: {type: bench_source, parameters: {count: %(sent)d, bytes: %(bytes)d}}
  sink: {type: bench_sink, parameters: {file: %(file)s, warm_up: %(warm_up)d, last: %(count)d}}
flows: [{from: source.out, to: sink.in, capacity: %(window)d}]
scheduler: {type: greedy}
"""


def in_one_process(bench, size, count):
    """Messages a second of the stream's operators in one process."""
    with Cluster(bench) as c:
        values = dict(count=count, warm_up=warm_up(count), sent=count + warm_up(count), bytes=size,
                      file=c.path("figures"), window=1024)
        c.start("fragctl", "run", c.write("app.yaml", IN_ONE_PROCESS % values), cores={0})
        c.finish()
        count, first, last = c.numbers("figures")
    return (count - 1) * 1e9 / (last - first)


def demo(bench):
    """The first frames of the demo, on whatever cores the kernel chooses: p50 and p99 in us."""
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
    with open(os.path.join(examples, DEMO, "app.yaml"), encoding="utf-8") as f:
        text = f.read()
    with Cluster(bench, cores=(None, None)) as c:
        for old, new in (("fragment1", "f1"), ("fragment2", "f2"), ("default: out", "default: " + c.folder),
                         ("../data", os.path.abspath(os.path.join(examples, "data"))),
                         ('default: "200"', 'default: "%d"' % (DEMO_FRAMES // 2)),
                         ('realtime: "${realtime}"', "realtime: true, count: %d" % DEMO_FRAMES)):
            assert old in text, old
            text = text.replace(old, new)
        c.run(c.write("app.yaml", text), summary=c.path("summary"))
        with open(c.path("summary"), encoding="utf-8") as f:
            flow, = (flow for flow in json.load(f)["flows"] if flow["edge"] == "shm")
    return flow["latency_ns"]["p50"] / 1e3, flow["latency_ns"]["p99"] / 1e3


def iceoryx(bench):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "iceoryx.py")
    r = subprocess.run([sys.executable, script, str(ICEORYX_TRIPS)], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    if r.returncode != 0:
        bench.lack("iceoryx2: %s" % r.stderr.strip()[-200:])
        return None
    return float(r.stdout.split()[0])


def edge(bench, mode, *args):
    return bench.figures("edge", *args, cores={0, 1}, env={"FRAG_PUMP": mode})


def make_wait_rows(bench):
    rows = {"spin": bench.row("waits.trip.8B.busy_poll", "us")}
    rows["trip"] = bench.row("waits.trip.8B.adaptive", "us", floor=rows["spin"], target=lambda floor: 3 * floor)
    for hz in PACES:
        rows[hz, "event"] = bench.row("waits.paced.%dhz.event.cpu" % hz, "% core")
        rows[hz, "adaptive"] = bench.row("waits.paced.%dhz.adaptive.cpu" % hz, "% core", floor=rows[hz, "event"],
                                         target=lambda floor: 1.1 * floor)
    rows["busy", "event"] = bench.row("waits.busy.stream.64B.event", "/s")
    rows["busy", "adaptive"] = bench.row("waits.busy.stream.64B.adaptive", "/s", floor=rows["busy", "event"],
                                         target=lambda floor: 0.9 * floor, more_is_better=True)
    rows["ring"] = bench.row("ring.jitter.60hz.eventfd.p999", "us")
    rows["p99"] = bench.row("waits.jitter.60hz.p99", "us")
    rows["p999"] = bench.row("waits.jitter.60hz.p999", "us", floor=rows["p99"], target=lambda floor: 3 * floor)
    return rows


def waits(bench, rows):
    rows["spin"].add(edge(bench, "busy_poll", "lat", 8, TRIPS["busy_poll"], "shm")[0])
    rows["trip"].add(edge(bench, "adaptive", "lat", 8, TRIPS["busy_poll"], "shm")[0])
    for hz, count in PACES.items():
        for mode in ("event", "adaptive"):
            _, p99, p999, _, cpu = edge(bench, mode, "lat", 8, count, "shm", hz)
            rows[hz, mode].add(cpu)
    rows["p99"].add(p99)
    rows["p999"].add(p999)
    rows["ring"].add(bench.figures("ring", "paced", 8, PACES[60], 60, "eventfd", cores={0, 1})[2])
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=pin({core})) for core in (0, 1)]
    try:
        for mode in ("event", "adaptive"):
            rows["busy", mode].add(edge(bench, mode, "bw", 64, STREAMED[64][1], "shm")[1])
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def make_rows(bench):
    rows = {"copied": bench.row("shm.copied", "B", target=0)}
    for mode, wait in WAITS.items():
        more = 0.5 if mode == "busy_poll" else 2
        for size, label in SIZES.items():
            key = mode, size
            rows[key, "floor"] = bench.row("ring.trip.%s.%s" % (label, wait), "us")
            rows[key, "trip"] = bench.row("shm.trip.%s.%s" % (label, mode), "us", floor=rows[key, "floor"],
                                          target=lambda floor, more=more: floor + more)
            rows[key, "p99"] = bench.row("shm.trip.%s.%s.p99" % (label, mode), "us")
        for size, (label, _) in STREAMED.items():
            key = mode, size
            rows[key, "stream floor"] = bench.row("ring.stream.%s.%s" % (label, wait), "/s")
            rows[key, "both"] = bench.row("ring.both.%s.%s" % (label, wait), "/s")
            rows[key, "stream"] = bench.row("shm.stream.%s.%s" % (label, mode), "/s", floor=rows[key, "stream floor"],
                                            target=lambda floor: 0.7 * floor, more_is_better=True)
    for size, (label, _) in STREAMED.items():
        rows["inproc", size] = bench.row("inproc.stream.%s" % label, "/s")
    rows["frames floor"] = bench.row("ring.frames.futex", "us")
    rows["frames"] = bench.row("shm.frames.event", "us", floor=rows["frames floor"], target=lambda floor: floor + 2)
    rows["frames p99"] = bench.row("shm.frames.event.p99", "us")
    rows["demo floor"] = bench.row("ring.demo.futex", "us")
    rows["demo"] = bench.row("shm.demo", "us", floor=rows["demo floor"], target=lambda floor: floor + 2)
    rows["demo p99"] = bench.row("shm.demo.p99", "us")
    rows["eventfd"] = bench.row("ring.trip.8B.eventfd", "us")
    rows["waitv"] = bench.row("ring.trip.8B.waitv", "us")
    rows["iceoryx"] = bench.row("iceoryx2.python.trip.8B", "us")
    for size, label in SIZES.items():
        if size >= 64 << 10:
            rows["memcpy", size] = bench.row("memcpy.%s" % label, "us")
    return rows


def one_series(bench, rows, mode):
    wait, both = WAITS[mode], {0, 1}
    for size in SIZES:
        rows[(mode, size), "floor"].add(bench.figures("ring", "lat", size, TRIPS[mode], wait, cores=both)[0])
        figures, copied = app(bench, TRIP, mode, size, TRIPS[mode])
        rows[(mode, size), "trip"].add(figures[1] / 1e3)
        rows[(mode, size), "p99"].add(figures[2] / 1e3)
        rows["copied"].add(copied)
    for size, (_, count) in STREAMED.items():
        ring = bench.figures("ring", "bw", size, count, wait, cores=both)[0]
        inproc = in_one_process(bench, size, count)
        rows[(mode, size), "stream floor"].add(ring)
        rows["inproc", size].add(inproc)
        rows[(mode, size), "both"].add(1 / (1 / ring + 1 / inproc))
        (count, first, last), copied = app(bench, STREAM, mode, size, count, window=1024)
        rows[(mode, size), "stream"].add((count - 1) * 1e9 / (last - first))
        rows["copied"].add(copied)


def others(bench, rows):
    rows["frames floor"].add(bench.figures("ring", "paced", FRAME, FRAMES, 30, "futex", cores={0, 1})[0])
    figures, copied = app(bench, PACED, "event", FRAME, FRAMES, hz=30)
    rows["frames"].add(figures[1] / 1e3)
    rows["frames p99"].add(figures[2] / 1e3)
    rows["copied"].add(copied)
    rows["demo floor"].add(bench.figures("ring", "alone", FRAME, DEMO_FRAMES, DEMO_HZ, "futex", cores={0, 1})[0])
    for name, figure in zip(("demo", "demo p99"), demo(bench)):
        rows[name].add(figure)
    for wait in ("eventfd", "waitv"):
        rows[wait].add(bench.figures("ring", "lat", 8, TRIPS["event"], wait, cores={0, 1})[0])
    for size in SIZES:
        if ("memcpy", size) in rows:
            rows["memcpy", size].add(bench.figures("floor", "memcpy", size, cores={0})[0] / 1e3)
    trip = iceoryx(bench)
    if trip is not None:
        rows["iceoryx"].add(trip)


def run(bench):
    if len(os.sched_getaffinity(0)) < 2:
        bench.lack("edges over shared memory: they need two cores")
        return
    rows, wait_rows = make_rows(bench), make_wait_rows(bench)
    for _ in bench.rounds():
        for what in (*WAITS, "waits", None):
            try:
                if what is None:
                    others(bench, rows)
                elif what == "waits":
                    waits(bench, wait_rows)
                else:
                    one_series(bench, rows, what)
            except (OSError, RuntimeError, subprocess.SubprocessError) as e:
                bench.lack("a series of edges over shared memory: %s" % e)
        bench.save()
    if shutil.which("valgrind") is None:
        bench.lack("instructions a message: there is no valgrind")
        return
    for size, way in instructions.MESSAGES:
        target = INSTRUCTIONS if (size, way) == ("64B", "stream") else None
        row = bench.row("shm.instructions.%s.%s" % (size, way), "", target=target)
        for _ in range(2):
            row.add(instructions.measure(bench.build, size, way))
