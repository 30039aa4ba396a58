# SPDX-License-Identifier: Apache-2.0
"""Starting, ending, and what a daemon takes while nothing happens.

first: from the command to the first message between operators. gone: from the last message until no
process is left.
"""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from cluster import Cluster, check_ended
from rows import now_ns

HERE = """frag: 1
application: here
extensions: [libbench.so]
operators:
  source: {type: bench_source, parameters: {count: 10}}
  sink: {type: bench_sink, parameters: {file: %s}}
flows: [source -> sink]
"""
TWO = """frag: 1
application: two
extensions: [libbench.so]
fragments:
  f1: {operators: {source: {type: bench_source, parameters: {count: 10}}}}
  f2: {operators: {sink: {type: bench_sink, parameters: {file: %s}}}}
flows: [f1.source.out -> f2.sink.in]
"""
# A tick at the start, then none for long.
IDLE = """frag: 1
application: idle
extensions: [libbench.so]
fragments:
  f1: {operators: {%s}, flows: [%s]}
  f2: {operators: {%s}}
flows: [%s]
"""
IDLE_SOURCE = "a%d: {type: bench_source, conditions: [{type: periodic, recess_period: 1h}]}"
IDLE_SINK = "z%d: {type: bench_sink}"
# Fragments of two hosts, each with a thread that sleeps.
MANY = """frag: 1
application: many
extensions: [libbench.so]
fragments:
"""
MANY_FRAGMENT = "  %s%d: {host: %s, operators: {source: {type: bench_source, conditions: [{type: periodic, recess_period: 1h}]}}}\n"
LINE = """frag: 1
application: line
operators:
  o0: {type: ping_tx, conditions: [{type: count, count: 10}]}
%s  o%d: {type: ping_rx}
flows:
%s"""
LINE_OPERATORS = 30000
FRAGMENTS = (100, 400)
OPERATORS = (1, 10, 100, 1000)
EDGES = (1, 50, 100) # steps far above what a host takes once, or not
IDLE_S = 2
RUNS = 21


def command_ms(bench, *command):
    start = now_ns()
    r = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(bench.env, FRAG_LIBRARY_PATH=bench.path("bench")),
        timeout=60,
        check=False,
    )
    end = now_ns()
    if r.returncode != 0:
        raise RuntimeError("%s: exit status %d\n%s" % (" ".join(command), r.returncode, r.stderr))
    return start, end


def run_ms(bench, *args):
    """fork, exec and all of fragctl: the median of RUNS."""
    return bench.figures("floor", "run", RUNS, bench.path("bin/fragctl"), *args)[0]


def first_and_gone(bench, text, flags, rows):
    with tempfile.TemporaryDirectory(prefix="frag-bench-") as folder:
        figures, app = os.path.join(folder, "figures"), os.path.join(folder, "app.yaml")
        with open(app, "w", encoding="utf-8") as f:
            f.write(text % figures)
        start, end = command_ms(bench, bench.path("bin/fragctl"), "run", *flags, app)
        with open(figures, encoding="utf-8") as f:
            _, first, last = (int(x) for x in f.read().split())
    rows[0].add((first - start) / 1e6)
    rows[1].add((end - last) / 1e6)


def over_daemons(bench, text, rows):
    """The driver waits; the last of two workers is started. All daemons end with the
    application."""
    with Cluster(bench) as c:
        c.driver(c.write("app.yaml", text % c.path("figures")))
        c.worker(1)
        start = now_ns()
        c.worker(2)
        end = c.finish()
        _, first, last = c.numbers("figures")
    rows[0].add((first - start) / 1e6)
    rows[1].add((end - last) / 1e6)


def workers_up(bench, text, row):
    """Both workers are up and wait for their driver, which is started with the application."""
    with Cluster(bench) as c:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        for number in (1, 2):
            worker = c.worker(number, "127.0.0.1:%d" % port)
            c.line(worker, r"worker: ")
        app = c.write("app.yaml", text % c.path("figures"))
        start = now_ns()
        c.start("driverd", "--address", "127.0.0.1:%d" % port, "--app", app)
        c.finish()
        row.add((c.numbers("figures")[1] - start) / 1e6)


def own_kib(pid):
    """Memory that only this process has, also what is swapped out of it. What it shares with a
    process that it forked, as a worker does, is its own."""
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        kib = {name: int(n) for name, n in re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M)}
    return kib["Private_Clean"] + max(kib["Private_Dirty"], kib["Anonymous"]) + kib["Swap"]


def counted_kib(pid):
    """The same with the page of counts, which its worker maps too."""
    with open("/proc/%d/smaps" % pid, encoding="utf-8") as f:
        pages = re.findall(r"/memfd:frag-ledger .*\n(?:.*\n)*?Rss:\s+(\d+) kB", f.read())
    return own_kib(pid) + sum(map(int, pages))


def cpu_s(pid):
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def host_of(pid):
    """The host among the children of a worker, one of which is its reporter."""
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        children = f.read().split()
    for child in children:
        with open("/proc/%s/comm" % child, encoding="ascii") as f:
            if f.read().strip() == "fraghost":
                return int(child)
    raise RuntimeError("worker %d has no fraghost" % pid)


def resting(bench, text):
    """{name: pid} of an application that has nothing to do, by `with`."""
    c = Cluster(bench)
    driver = c.driver(c.write("app.yaml", text))
    workers = [c.worker(1), c.worker(2)]
    c.line(driver, r"runs in 2 hosts", 60)
    time.sleep(0.3)  # what follows a start is no rest; nothing tells its end
    return c, {"driver": driver.pid, "worker": workers[0].pid, "host": host_of(workers[0].pid)}


def idle_text(operators, edges):
    """`operators` in f1 behind a source, and `edges` flows from f1 to f2, each with its own two
    operators."""
    sources = [IDLE_SOURCE % i for i in range(edges)]
    passes = ["p%d: {type: bench_sink}" % i for i in range(operators)]
    flows = ["f1.a%d.out -> f2.z%d.in" % (i, i) for i in range(edges)]
    inner = ["a0.out -> p%d.in" % i for i in range(operators)]
    return IDLE % (", ".join(sources + passes), ", ".join(inner), ", ".join(IDLE_SINK % i for i in range(edges)),
                   ", ".join(flows))


def run(bench):
    floor = bench.row("floor.true", "ms")
    fragctl = bench.row("start.fragctl", "ms", floor=floor)
    in_process = bench.row("start.hello.in_process", "ms", floor=floor)
    hello = bench.row("start.hello", "ms", floor=floor, target=lambda floor: 2 * floor)
    here = [bench.row("start.one_host.first", "ms", floor=floor), bench.row("start.one_host.gone", "ms", target=100)]
    workers = bench.row("start.workers_up.first", "ms", target=300)
    daemons = [bench.row("start.last_worker.first", "ms", target=300), bench.row("start.daemons.gone", "ms", target=100)]
    cold = [bench.row("start.cold.first", "ms"), bench.row("start.cold.gone", "ms", target=100)]
    for _ in bench.rounds():
        floor.add(bench.figures("floor", "run", RUNS, "true")[0])
        fragctl.add(run_ms(bench, "--version"))
        in_process.add(run_ms(bench, "run", "--in-process", "examples/hello/app.yaml"))
        hello.add(run_ms(bench, "run", "examples/hello/app.yaml"))
        first_and_gone(bench, HERE, [], here)
        workers_up(bench, TWO, workers)
        over_daemons(bench, TWO, daemons)
        first_and_gone(bench, TWO, ["--workers", "2"], cold)
    fragments(bench)
    idle(bench)
    idle_operators(bench)
    memory(bench)
    memory_of_run(bench)


def stop_ms(bench, count):
    """From the signal to the driver until all hosts of `count` fragments each are gone."""
    text = MANY + "".join(MANY_FRAGMENT % (h, i, h) for h in "ab" for i in range(count))
    with Cluster(bench) as c:
        driver = c.driver(c.write("app.yaml", text))
        for _ in "ab":
            c.start("workerd", "--address", c.address, "--fragments", "all", "--once")
        c.line(driver, r"runs in 2 hosts", 60)
        start = now_ns()
        driver.send_signal(signal.SIGINT)
        driver.wait(60)
        return (now_ns() - start) / 1e6


def fragments(bench):
    """The end of many: each is woken alone, so four times as many take four times as long."""
    few = bench.row("stop.fragments.%d" % FRAGMENTS[0], "ms")
    many = bench.row("stop.fragments.%d" % FRAGMENTS[1], "ms", floor=few,
                     target=lambda floor: 1.5 * floor * FRAGMENTS[1] / FRAGMENTS[0])
    for _ in bench.rounds():
        for row, count in zip((few, many), FRAGMENTS):
            row.add(stop_ms(bench, count))


def idle(bench):
    names = ("driver", "worker", "host")
    uss = {n: bench.row("idle.%s.memory" % n, "MiB", target=8 if n == "worker" else None) for n in names}
    cpu = {n: bench.row("idle.%s.cpu" % n, "% core", target=0.5 if n == "worker" else None) for n in names}
    for _ in bench.rounds():
        c, pids = resting(bench, idle_text(0, 1))
        with c:
            before, start = {n: cpu_s(p) for n, p in pids.items()}, time.monotonic()
            time.sleep(IDLE_S)
            for n, p in pids.items():
                cpu[n].add(100 * (cpu_s(p) - before[n]) / (time.monotonic() - start))
                uss[n].add(own_kib(p) / 1024)


def idle_operators(bench):
    """A host of many operators that wait for messages."""
    row = bench.row("idle.host.%d.cpu" % OPERATORS[-1], "% core", target=0.5)
    for _ in bench.rounds():
        c, pids = resting(bench, idle_text(OPERATORS[-1], 1))
        with c:
            before, start = cpu_s(pids["host"]), time.monotonic()
            time.sleep(IDLE_S)
            row.add(100 * (cpu_s(pids["host"]) - before) / (time.monotonic() - start))


def memory(bench):
    """What one more takes: at the end an edge no more than before."""
    for kind, counts in (("operators", OPERATORS), ("edges", EDGES)):
        rows = [bench.row("memory.%s.%d" % (kind, n), "KiB") for n in counts]
        for _ in bench.rounds():
            for n, row in zip(counts, rows):
                c, pids = resting(
                    bench, idle_text(n, 1) if kind == "operators" else idle_text(0, n)
                )
                with c:
                    row.add(counted_kib(pids["host"]))
        steps = [(above.median - below.median) / (b - a)
                 for a, b, below, above in zip(counts, counts[1:], rows, rows[1:])]
        for a, b, step in zip(counts, counts[1:], steps):
            goal = 5 if kind == "operators" else steps[-2] * 1.1
            row = bench.row("memory.%s.%d_to_%d" % (kind, a, b), "KiB each", target=goal if step is steps[-1] else None)
            row.values.append(step)


def line_text(operators):
    """A line of operators, through which ten messages go."""
    passes = "".join("  o%d: {type: forward}\n" % i for i in range(1, operators - 1))
    flows = "".join("  - o%d -> o%d\n" % (i, i + 1) for i in range(operators - 1))
    return LINE % (passes, operators - 1, flows)


def memory_of_run(bench):
    """The most that the largest process of a run takes."""
    rows = [(bench.row("memory.run" + name, "KiB each", target=8), flags)
            for name, flags in (("", []), (".in_process", ["--in-process"]))]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as app:
        app.write(line_text(LINE_OPERATORS))
        app.flush()
        for _ in bench.rounds():
            for row, flags in rows:
                with tempfile.TemporaryFile("w+") as stderr:
                    process = subprocess.Popen(
                        [bench.path("bin/fragctl"), "run", *flags, app.name],
                        env=bench.env,
                        stdout=subprocess.DEVNULL,
                        stderr=stderr,
                    )
                    _, status, usage = os.wait4(process.pid, 0)
                    process.returncode = os.waitstatus_to_exitcode(status)
                    stderr.seek(0)
                    check_ended("a line of operators", process.returncode, stderr.read())
                row.add(usage.ru_maxrss / LINE_OPERATORS)
