# SPDX-License-Identifier: Apache-2.0
"""driverd as a service: starting an application, asking for its state, starting a host again that
was killed, what the driver takes for a hundred applications that rest, and how long the next driver
takes to adopt them.

start: from the command until the operator has its first message. restart: from the kill of a host
to the next message on its flow. Its floor is what the new process needs: PREPARE, as the driver saw
it. lost: from when a worker and its host stop to the first message at that host on another worker.
Its floor is the time for which the driver has to wait.
"""
import json
import os
import re
import signal
import subprocess
import time

from cluster import Cluster
from part_start import RUNS, cpu_s, own_kib
from rows import now_ns

ONE = """frag: 1
application: one
extensions: [libbench.so]
operators:
  source: {type: bench_source, parameters: {count: 10}}
  sink: {type: bench_sink, parameters: {file: %s}}
flows: [source -> sink]
"""
AGAIN = """frag: 1
application: again
extensions: [libbench.so]
fragments:
  f1:
    operators:
      source: {type: bench_source, conditions: [{type: periodic, recess_period: 1ms}]}
  f2:
    on_failure: {policy: restart, backoff: 1ms}
    operators:
      sink: {type: bench_sink, parameters: {file: %s}}
flows: [{from: f1.source.out, to: f2.sink.in, edge: %s}]
"""
MOVING = """frag: 1
application: moving
extensions: [libbench.so]
fragments:
  f1:
    operators:
      source: {type: bench_source, conditions: [{type: periodic, recess_period: 1ms}]}
  f2:
    on_failure: {policy: migrate, backoff: 1ms, lease: %ds}
    operators:
      sink: {type: bench_sink, parameters: {file: %s}}
flows: [{from: f1.source.out, to: f2.sink.in, edge: ucx}]
"""
RESTING = """frag: 1
application: resting
extensions: [libbench.so]
operators:
  source: {type: bench_source, conditions: [{type: periodic, recess_period: 1h}]}
  sink: {type: bench_sink}
flows: [source -> sink]
"""
APPLICATIONS, IDLE_S, STATUS_RUNS = 100, 3, 5
DEAD_S, LEASES_S = 3, (0, 5)  # a driver gives up a worker after this silence


class Service(Cluster):
    """A driver that serves, and a worker for whatever comes."""

    def __enter__(self):
        self.env["FRAG_LOG_LEVEL"] = "debug"
        self.d = self.start("driverd", "--address", "127.0.0.1:0", "--state-dir", self.path("state"))
        self.address = self.line(self.d, r"listening on (\S+:\d+)").group(1)
        self.w = self.start("workerd", "--address", self.address, "--fragments", "all", "--name", "w")
        self.line(self.w, r"attached to the driver")
        return self

    def fragctl(self, *args):
        r = subprocess.run(
            [self.bench.path("bin/fragctl"), *args, "--address", self.address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.env,
            timeout=120,
            check=False,
        )
        if r.returncode != 0:
            raise RuntimeError("fragctl %s: exit status %d\n%s" % (" ".join(args), r.returncode, r.stderr))
        return r.stdout

    def wait_for_messages(self, application, timeout=20):
        """Until more of them have been delivered than now."""
        def delivered():
            rows = json.loads(self.fragctl("list", "-o", "json"))["applications"]
            return next(r["delivered"] for r in rows if r["name"] == application)

        before, end = delivered(), time.monotonic() + timeout
        while delivered() <= before:
            if time.monotonic() > end:
                raise RuntimeError("%s delivers nothing in %d s; %s" % (application, timeout, self.logs()))
            time.sleep(0.01)

    def logged_ms(self, pattern):
        """When the driver logged that line last, in ms of the day."""
        with open(self.d.log, encoding="utf-8") as f:
            found = re.findall(r"T(\d+):(\d+):(\d+)\.(\d+)Z.*" + pattern, f.read())
        h, m, s, ms = (int(x) for x in found[-1][:4])
        return ((h * 60 + m) * 60 + s) * 1000 + ms


def first(bench, row):
    with Service(bench) as c:
        app = c.write("app.yaml", ONE % c.path("figures"))
        start = now_ns()
        c.fragctl("start", app, "--wait")
        row.add((c.numbers("figures")[1] - start) / 1e6)


def restart(bench, edge, row, prepare):
    with Service(bench) as c:
        app = c.write("app.yaml", AGAIN % (c.path("figures"), edge))
        c.fragctl("start", app)
        pid = sinks_host(c.w.log)
        c.wait_for_messages("again")
        start = now_ns()
        os.kill(pid, signal.SIGKILL)
        c.line(c.d, r"f2 runs again on worker")
        c.wait_for_messages("again")
        prepare.add(c.logged_ms(r"host .*: preparing -> prepared") - c.logged_ms(r"host .*: placed -> preparing"))
        c.fragctl("stop", "again")
        row.add((c.numbers("figures")[1] - start) / 1e6)


def sinks_host(log):
    with open(log, encoding="utf-8") as f:
        return int(re.findall(r"runs f2 \(fraghost (\d+)\)", f.read())[-1])


def lost(bench, lease_s, row):
    """The worker and its host stop as with a machine that is switched off: no connection breaks."""
    with Service(bench) as c:
        c.fragctl("drain", "w")
        for name, fragment in (("home", "f1"), ("near", "f2")):
            c.line(c.start("workerd", "--address", c.address, "--fragments", fragment, "--name", name),
                   r"attached to the driver")
        near = c.children[-1]
        c.fragctl("start", c.write("app.yaml", MOVING % (lease_s, c.path("figures"))))
        c.fragctl("drain", "w", "--undo")
        stopped = [near.pid, sinks_host(near.log)]
        c.wait_for_messages("moving")
        start = now_ns()
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        c.line(c.d, r"f2 runs again on worker w,")
        c.wait_for_messages("moving")
        near.kill()  # its host dies with it
        c.fragctl("stop", "moving")
        row.add((c.numbers("figures")[1] - start) / 1e6)


def adopt(c, row):
    """From the start of the next driver until it has adopted all; the one before was killed."""
    os.kill(c.d.pid, signal.SIGKILL)
    c.d.wait()
    start = now_ns()
    c.d = c.start("driverd", "--address", c.address, "--state-dir", c.path("state"))
    for i in range(APPLICATIONS):
        c.line(c.d, r"run %d: starting -> running" % (i + 1))
    row.add((now_ns() - start) / 1e6)


def hundred(bench, status, status_floor, cpu, memory, adopted):
    with Service(bench) as c:
        app = c.write("app.yaml", RESTING)
        for i in range(APPLICATIONS):
            c.fragctl("start", app, "--name", "resting%d" % i)
        for _ in range(STATUS_RUNS):
            start = now_ns()
            text = c.fragctl("status", "--no-wait", "--output", "json")
            status.add((now_ns() - start) / 1e6)
            status_floor.add(bench.figures("floor", "run", RUNS, bench.path("bin/fragctl"), "--version")[0])
        running = [a for a in json.loads(text)["applications"] if a["state"] == "running"]
        if len(running) != APPLICATIONS:
            raise RuntimeError("%d applications run, not %d" % (len(running), APPLICATIONS))
        for _ in bench.rounds():
            before, start = cpu_s(c.d.pid), time.monotonic()
            time.sleep(IDLE_S)
            cpu.add(100 * (cpu_s(c.d.pid) - before) / (time.monotonic() - start))
            memory.add(own_kib(c.d.pid) / 1024)
            adopt(c, adopted)


def run(bench):
    floor = bench.row("service.floor.fraghost", "ms")
    start = bench.row("service.start.first", "ms", floor=floor, target=100)
    prepare = {e: bench.row("service.restart.%s.prepare" % e, "ms") for e in ("shm", "ucx")}
    again = {e: bench.row("service.restart.%s" % e, "ms", floor=prepare[e], target=lambda prepare: prepare + 100)
             for e in ("shm", "ucx")}
    away = {s: bench.row("service.lost.lease%d" % s, "ms", floor=1000 * max(DEAD_S, s), target=lambda floor: floor + 500)
            for s in LEASES_S}
    status_floor = bench.row("service.floor.fragctl", "ms")
    status = bench.row("service.status", "ms", floor=status_floor)
    cpu = bench.row("service.hundred.driver.cpu", "% core", target=0.5)
    memory = bench.row("service.hundred.driver.memory", "MiB", target=15)
    adopted = bench.row("service.hundred.adopted", "ms", target=1000)
    for _ in bench.rounds():
        floor.add(bench.figures("floor", "run", RUNS, bench.path("libexec/frag/fraghost"), "--version")[0])
        first(bench, start)
        for edge in ("shm", "ucx"):
            restart(bench, edge, again[edge], prepare[edge])
        for lease_s in LEASES_S:
            lost(bench, lease_s, away[lease_s])
    hundred(bench, status, status_floor, cpu, memory, adopted)
