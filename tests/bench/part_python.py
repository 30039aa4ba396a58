# SPDX-License-Identifier: Apache-2.0
"""A tick in Python beside one in C: operators that receive a number and emit it, in a chain under
the greedy scheduler; the same chain without them is subtracted. dlpack: a tensor out and in.
frames: the latency of pictures of 1080p between two hosts over shared memory, beside operators in
C; copied: the bytes that frag copied of them. beside: from tick to tick of a source in C with a
period of 1 ms, while an operator in Python computes for 5 ms of each 10, in another fragment and in
its own (idle: it computes for none).

nanobind: an empty method that a thread of C++ calls with the lock. holoscan: a program with
Holoscan's API on its wheel, in the environment that HOLOSCAN_WHEEL names, and on frag: from message
to message, of a source and a sink (ping), with 5 operators between them (chain), and in two
fragments with 64 KiB each (distributed)."""
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import import_time  # noqa: E402
from cluster import check_ended  # noqa: E402

LENGTH = 5
COUNT = 100000
MORE_NS = 450
DLPACK_NS = 350
TABLE_NS = 150
FRAMES_MORE_US = 10
FRAMES = """frag: 1
application: frames
fragments:
  one:
    extensions: [%(extensions)s]
    operators:
      tx:
        {%(source)s, conditions: [{type: count, count: 60}, {type: periodic, recess_period: 30hz}]}
  two: {extensions: [%(extensions)s], operators: {rx: {%(sink)s}}}
flows: [one.tx -> two.rx]
"""
BESIDE = """frag: 1
application: beside
fragments:
  one:
    extensions: [%(here)s/python_frames.py]
    scheduler: {type: event_based, worker_thread_number: 2}
    operators:
      busy: {type: "python:python_frames.Busy", parameters: {ms: %(ms)d},
             conditions: [{type: count, count: 60}, {type: periodic, recess_period: 10ms}]}
      %(same)s
  two:
    scheduler: {type: event_based, worker_thread_number: 2}
    operators:
      %(other)s
"""
PAIR = """tx:
        type: ping_tx
        conditions:
          - {type: count, count: 500}
          - {type: periodic, recess_period: 1ms, policy: min_time_between_ticks}
      rx: {type: forward}
    flows: [tx -> rx]"""
ALONE = "alone: {type: ping_tx, conditions: [{type: count, count: 1}]}"
IN_C = {
    "extensions": "",
    "source": "type: ping_tensor_tx, parameters: {rows: 1080, columns: 1920, channels: 3}",
    "sink": "type: ping_tensor_rx",
}
IN_PYTHON = {
    "extensions": os.path.join(HERE, "python_frames.py"),
    "source": 'type: "python:python_frames.Camera"',
    "sink": 'type: "python:python_frames.Viewer"',
}


def chain_ns(bench, kind, length):
    r = subprocess.run(
        [sys.executable, os.path.join(HERE, "python_chain.py"), kind, str(length), str(COUNT)],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        env=dict(bench.env, PYTHONPATH=bench.path("python")),
        check=True,
    )
    return float(r.stdout)


def dlpack_ns(bench):
    r = subprocess.run(
        [
            sys.executable,
            os.path.join(HERE, "python_dlpack.py"),
            str(COUNT),
            bench.path("bench", "libbench.so"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
        env=dict(bench.env, PYTHONPATH=bench.path("python")),
        check=True,
    )
    return map(float, r.stdout.split())


def summary_of(bench, text):
    """The summary of a graph that runs in two hosts."""
    env = dict(
        bench.env,
        PYTHONPATH=bench.path("python"),
        FRAG_PYTHON=sys.executable,
        FRAG_LIBRARY_PATH=HERE,
    )
    with tempfile.TemporaryDirectory() as folder:
        graph, summary = os.path.join(folder, "app.yaml"), os.path.join(folder, "summary")
        with open(graph, "w", encoding="utf-8") as f:
            f.write(text)
        fragctl = bench.path("bin", "fragctl")
        r = subprocess.run(
            [fragctl, "run", "--workers", "2", "--quiet", "--summary", summary, graph],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env=env,
            check=False,
        )
        check_ended("a graph of two hosts", r.returncode, r.stderr)
        with open(summary, encoding="utf-8") as f:
            return json.load(f)


def frames(bench, words):
    """The median latency in us, and the bytes that were copied."""
    flow = summary_of(bench, FRAMES % words)["flows"][0]
    assert flow["edge"] == "shm", flow
    return flow["latency_ns"]["p50"] / 1e3, flow["copied_bytes"]


def beside_us(bench, ms, fragment):
    """From tick to tick of a source whose period is 1 ms, and which makes up for no delay."""
    same, other = (PAIR, ALONE) if fragment == "one" else (ALONE, PAIR)
    summary = summary_of(bench, BESIDE % {"here": HERE, "ms": ms, "same": same, "other": other})
    part = next(part for part in summary["fragments"] if part["name"] == fragment)
    job = next(operator["job"] for operator in part["operators"] if operator["name"] == "tx")
    return (job["time_ns"] + job["waiting_ns"]) / job["count"] / 1e3


HOLOSCAN = {"ping": (0, 10000, 0, 1), "chain": (5, 4000, 0, 1), "distributed": (0, 200, 65536, 2)}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def holoscan_us(bench, wheel, kind, on_frag):
    """From message to message."""
    python = os.path.join(wheel, "bin", "python3")
    env = dict(bench.env, HOLOSCAN_LOG_LEVEL="ERROR")
    env.update(zip(("BENCH_LENGTH", "BENCH_COUNT", "BENCH_BYTES", "BENCH_PARTS"),
                   map(str, HOLOSCAN[kind])))
    command = [python, os.path.join(HERE, "python_holoscan.py")]
    if on_frag:
        command[1:1] = ["-m", "frag.holoscan"]
        env.update(PYTHONPATH=bench.path("python"),
                   PATH=bench.path("bin") + ":" + os.environ["PATH"])
    else:
        env["LD_LIBRARY_PATH"] = ":".join(
            glob.glob(os.path.join(wheel, "lib", "python3*", "site-packages", "nvidia", "*", "lib")))
    if kind == "distributed":
        command += ["--driver", "--worker", "--fragments=all", "--address",
                    "127.0.0.1:%d" % free_port()]
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       timeout=300, env=env, check=True)
    return float(re.search(r"ns of a message: ([0-9.]+)", r.stdout).group(1)) / 1e3


def nanobind_ns(bench):
    code = ("import sys; sys.path.insert(0, %r)\nimport python_nanobind\n"
            "class Op:\n    def compute(self): pass\n"
            "print(python_nanobind.call_ns(Op().compute, %d))" % (bench.path("bench"), 10 * COUNT))
    r = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=120,
                       check=True)
    return float(r.stdout)


def import_ms(bench, code):
    env = dict(bench.env, PYTHONPATH=bench.path("python"))
    return import_time.cost_ms(sys.executable, code, env)


def run(bench):
    if not os.path.exists(bench.path("python", "frag", "_frag.abi3.so")):
        bench.lack("Python: the package was not built (python3-dev)")
        return
    c = bench.row("python.tick.c", "ns")
    python = bench.row("python.tick", "ns", floor=c, target=lambda floor: floor + MORE_NS)
    plain = bench.row("python.start", "ms")
    imported = bench.row("python.start.import", "ms", floor=plain, target=lambda floor: floor + 30)
    out = bench.row("python.dlpack.out", "ns", target=DLPACK_NS)
    taken = bench.row("python.dlpack.in", "ns", target=DLPACK_NS)
    table_out = bench.row("python.dlpack.table.out", "ns", target=TABLE_NS)
    table_in = bench.row("python.dlpack.table.in", "ns", target=TABLE_NS)
    frames_c = bench.row("python.frames.c", "us")
    frames_python = bench.row(
        "python.frames", "us", floor=frames_c, target=lambda floor: floor + FRAMES_MORE_US
    )
    copied = bench.row("python.frames.copied", "bytes", target=0)
    idle = bench.row("python.beside.idle", "us")
    beside = [(bench.row("python.beside." + name, "us", floor=idle, target=lambda floor: 1.5 * floor),
               fragment) for name, fragment in (("other", "two"), ("same", "one"))]
    nanobind = five = None
    if os.path.exists(bench.path("bench", "python_nanobind.so")):
        nanobind = bench.row("python.nanobind", "ns")
        five = bench.row("python.tick.whole", "ns", floor=nanobind, target=lambda floor: 5 * floor)
    else:
        bench.lack("nanobind: it was not built (g++, pip)")
    wheel, holoscan = os.environ.get("HOLOSCAN_WHEEL"), []
    for kind in HOLOSCAN if wheel else ():
        row = bench.row("python.holoscan.%s.wheel" % kind, "us")
        holoscan.append((kind, row, bench.row("python.holoscan." + kind, "us", floor=row,
                                              target=lambda floor: floor / 5)))
    if not wheel:
        bench.lack("Holoscan's wheel: HOLOSCAN_WHEEL names no virtual environment")
    for _ in bench.rounds():
        for kind, theirs, ours in holoscan:
            theirs.add(holoscan_us(bench, wheel, kind, False))
            ours.add(holoscan_us(bench, wheel, kind, True))
        for row, ns in zip((out, taken, table_out, table_in), dlpack_ns(bench)):
            row.add(ns)
        frames_c.add(frames(bench, IN_C)[0])
        us, bytes_copied = frames(bench, IN_PYTHON)
        frames_python.add(us)
        copied.add(bytes_copied)
        idle.add(beside_us(bench, 0, "two"))
        for row, fragment in beside:
            row.add(beside_us(bench, 5, fragment))
        rest = chain_ns(bench, "c", 0)
        c.add((chain_ns(bench, "c", LENGTH) - rest) / LENGTH)
        tick = (chain_ns(bench, "python", LENGTH) - rest) / LENGTH
        python.add(tick)
        if nanobind is not None:
            nanobind.add(nanobind_ns(bench))
            five.add(tick)
        plain.add(import_ms(bench, "pass"))
        imported.add(import_ms(bench, "import frag"))
