# SPDX-License-Identifier: Apache-2.0
"""A tick in Python beside one in C: operators that receive a number and emit it, in a chain under
the greedy scheduler; the same chain without them is subtracted. dlpack: a tensor out and in.
frames: the latency of pictures of 1080p between two hosts over shared memory, beside operators in
C; copied: the bytes that frag copied of them."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import import_time  # noqa: E402

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


def frames(bench, words):
    """The median latency in us, and the bytes that were copied."""
    env = dict(
        bench.env,
        PYTHONPATH=bench.path("python"),
        FRAG_PYTHON=sys.executable,
        FRAG_LIBRARY_PATH=HERE,
    )
    with tempfile.TemporaryDirectory() as folder:
        graph, summary = os.path.join(folder, "app.yaml"), os.path.join(folder, "summary")
        with open(graph, "w", encoding="utf-8") as f:
            f.write(FRAMES % words)
        fragctl = bench.path("bin", "fragctl")
        subprocess.run(
            [fragctl, "run", "--workers", "2", "--quiet", "--summary", summary, graph],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=120,
            env=env,
            check=True,
        )
        with open(summary, encoding="utf-8") as f:
            flow = json.load(f)["flows"][0]
    assert flow["edge"] == "shm", flow
    return flow["latency_ns"]["p50"] / 1e3, flow["copied_bytes"]


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
    for _ in bench.rounds():
        for row, ns in zip((out, taken, table_out, table_in), dlpack_ns(bench)):
            row.add(ns)
        frames_c.add(frames(bench, IN_C)[0])
        us, bytes_copied = frames(bench, IN_PYTHON)
        frames_python.add(us)
        copied.add(bytes_copied)
        rest = chain_ns(bench, "c", 0)
        c.add((chain_ns(bench, "c", LENGTH) - rest) / LENGTH)
        python.add((chain_ns(bench, "python", LENGTH) - rest) / LENGTH)
        plain.add(import_ms(bench, "pass"))
        imported.add(import_ms(bench, "import frag"))
