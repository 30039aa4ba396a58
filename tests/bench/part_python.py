# SPDX-License-Identifier: Apache-2.0
"""A tick in Python beside one in C: operators that receive a number and emit it, in a chain under
the greedy scheduler; the same chain without them is subtracted."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import import_time  # noqa: E402

LENGTH = 5
COUNT = 100000
MORE_NS = 450


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
    for _ in bench.rounds():
        rest = chain_ns(bench, "c", 0)
        c.add((chain_ns(bench, "c", LENGTH) - rest) / LENGTH)
        python.add((chain_ns(bench, "python", LENGTH) - rest) / LENGTH)
        plain.add(import_ms(bench, "pass"))
        imported.add(import_ms(bench, "import frag"))
