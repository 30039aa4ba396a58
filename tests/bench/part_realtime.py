# SPDX-License-Identifier: Apache-2.0
"""A periodic operator of 1 kHz on a real-time thread, beside cyclictest at the same priority on the
same core, while the other core is busy."""
import os
import re
import shutil
import subprocess
import tempfile

from cluster import check_ended

PRIORITY, PERIOD_US, PERIODS = 80, 1000, 2000
APP = """frag: 1
application: beat
extensions: [libbench.so]
thread_pools:
  rt: {add: [{operators: beat, sched_policy: fifo, sched_priority: %d, pin_cores: [%d]}]}
operators:
  beat:
    type: bench_beat
    parameters: {file: %s, count: %d, period_ns: %d}
    conditions: [{type: periodic, recess_period: %dus}]
"""


def cyclictest(core):
    """Periods that it missed, and its longest latency in us."""
    r = subprocess.run(
        ["cyclictest", "--quiet", "--mlockall", "--threads=1", "--priority=%d" % PRIORITY,
         "--interval=%d" % PERIOD_US, "--loops=%d" % PERIODS, "--affinity=%d" % core,
         "--histogram=%d" % PERIOD_US],
        capture_output=True, text=True, timeout=120, check=True)
    missed = re.search(r"# Histogram Overflows: (\d+)", r.stdout)
    longest = re.search(r"# Max Latencies: (\d+)", r.stdout)
    return int(missed.group(1)), int(longest.group(1))


def beat(bench, core):
    with tempfile.TemporaryDirectory(prefix="frag-bench-") as folder:
        app, file = os.path.join(folder, "app.yaml"), os.path.join(folder, "figures")
        with open(app, "w", encoding="utf-8") as f:
            f.write(APP % (PRIORITY, core, file, PERIODS, 1000 * PERIOD_US, PERIOD_US))
        r = subprocess.run([bench.path("bin/fragctl"), "run", app], stdout=subprocess.DEVNULL,
                           stderr=subprocess.PIPE, text=True, timeout=120, check=False,
                           env=dict(bench.env, FRAG_LIBRARY_PATH=bench.path("bench")))
        check_ended("a periodic operator", r.returncode, r.stderr)
        with open(file, encoding="ascii") as f:
            missed, p99, longest = (int(x) for x in f.read().split())
    return missed, p99 / 1000, longest / 1000


def run(bench):
    cores = sorted(os.sched_getaffinity(0))
    if shutil.which("cyclictest") is None:
        bench.lack("a periodic operator beside cyclictest (package rt-tests)")
        return
    if len(cores) < 2:
        bench.lack("a periodic operator while the other core is busy (two cores)")
        return
    floor = [bench.row("cyclictest.missed", "periods"), bench.row("cyclictest.max", "us")]
    rows = [bench.row("realtime.missed", "periods", floor=floor[0], target=lambda floor: floor),
            bench.row("realtime.late.p99", "us"),
            bench.row("realtime.late.max", "us", floor=floor[1])]
    for _ in bench.rounds():
        with subprocess.Popen(["sh", "-c", "while :; do :; done"],
                              preexec_fn=lambda: os.sched_setaffinity(0, cores[1:])) as load:
            try:
                for row, value in zip(floor, cyclictest(cores[0])):
                    row.add(value)
                for row, value in zip(rows, beat(bench, cores[0])):
                    row.add(value)
            finally:
                load.kill()
