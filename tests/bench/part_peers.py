# SPDX-License-Identifier: Apache-2.0
"""frag beside others that pass messages between processes, all by their packages for Python: eCAL
6.1, iceoryx2 0.10 and zenoh 1.10 from PyPI, dora 1.1 from PyPI, GStreamer from Debian.

hop: from one operator to the next in one process, where there is such a thing; in C. trip: half of
a round trip between two processes, with the processor time that both take for it. start: from the
command until the first message has come. idle: what the receiver takes while nothing comes. lost:
of 5,000 messages of 64 bytes, 1,000 a second, those that the receiver never had, those that
somebody reported, and the exit code of the sender. killed: the same where the receiver is killed
(SIGKILL) in the middle and started again.

It reports what each one does by default; what it was told otherwise is in peers/peer_*.py.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from part_start import cpu_s, own_kib

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
PACKAGES = os.path.join(HERE, "..", "..", "..", ".cache", "peers")
SIZES = {8: ("8B", 2000), 64 << 10: ("64KiB", 1000), 8 << 20: ("8MiB", 60)}
MESSAGES = 5000
HZ = 1000
REST_S = 2
PATIENCE_S = 60

DORA = """
  - id: %(role)s
    path: %(program)s
    args: dora %(role)s %(folder)s %(size)d %(count)d
    inputs: {in: %(other)s/out}
    outputs: [out]
    restart_policy: on-failure
"""
TRIP = """frag: 1
application: trip
fragments:
  one:
    extensions: [%(ends)s]
    operators:
      begin: {type: ping_tx, conditions: [{type: count, count: 1}]}
      ask: {type: "python:frag_ends.Ask", parameters: {folder: %(folder)s, size: %(size)d, count: %(count)d}}
    flows: [begin.out -> ask.in]
  two:
    extensions: [%(ends)s]
    operators: {echo: {type: "python:frag_ends.Echo", parameters: {folder: %(folder)s, count: %(count)d}}}
flows: [one.ask.out -> two.echo.in, two.echo.out -> one.ask.in]
"""
LOST = """frag: 1
application: lost
fragments:
  one:
    extensions: [%(ends)s]
    operators:
      send:
        type: "python:frag_ends.Send"
        conditions: [{type: count, count: %(count)d}, {type: periodic, recess_period: %(period)s}]
  two:
    extensions: [%(ends)s]
    on_failure: {policy: restart}
    operators: {take: {type: "python:frag_ends.Take", parameters: {folder: %(folder)s}}}
flows: [{from: one.send.out, to: two.take.in, capacity: 64}]
"""


class Peer:
    """Processes of peer.py, with what they have written."""

    def __init__(self, bench, name):
        self.bench, self.name = bench, name
        self.folder = tempfile.mkdtemp(prefix="frag-bench-")
        self.children = []
        with socket.create_server(("127.0.0.1", 0)) as s, open(
            self.path("port"), "w", encoding="ascii"
        ) as f:
            f.write(str(s.getsockname()[1]))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(c.pid, signal.SIGKILL)
            c.wait()
        shutil.rmtree(self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def spawn(self, *command, **more):
        path = os.path.join(PACKAGES, "bin") + ":" + os.environ["PATH"]
        env = {**self.bench.env, "PYTHONPATH": PACKAGES, "PATH": path, **more}
        with open(self.path("log"), "a", encoding="utf-8") as log:
            self.children.append(
                subprocess.Popen(
                    [str(x) for x in command],
                    cwd=self.folder,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )
        return self.children[-1]

    def start(self, roles, size, count):
        """Returns the process whose exit code counts: the sender's, or the one that runs all."""
        if self.name == "dora":
            with open(self.path("flow.yml"), "w", encoding="utf-8") as f:
                f.write(
                    "nodes:\n"
                    + "".join(
                        DORA
                        % dict(
                            role=role,
                            other=other,
                            program=os.path.join(HERE, "peer.py"),
                            size=size,
                            folder=self.folder,
                            count=count,
                        )
                        for role, other in (roles, roles[::-1])
                    )
                )
            return self.spawn("dora", "run", "flow.yml")
        if self.name == "frag":
            with open(self.path("app.yaml"), "w", encoding="utf-8") as f:
                f.write(
                    (TRIP if "ask" in roles else LOST)
                    % dict(
                        ends=os.path.join(HERE, "frag_ends.py"),
                        folder=self.folder,
                        size=size,
                        count=count,
                        period="1h" if "rest" in roles else "%dhz" % HZ,
                    )
                )
            return self.spawn(
                self.bench.path("bin", "fragctl"),
                "run",
                "--workers",
                "2",
                "--summary",
                self.path("summary"),
                "app.yaml",
                PYTHONPATH=self.bench.path("python"),
            )
        return [self.end(role, size, count) for role in roles][0]

    def end(self, role, size, count):
        return self.spawn(
            sys.executable, os.path.join(HERE, "peer.py"), self.name, role, self.folder, size, count
        )

    def tree(self):
        """All processes that were started, and those that these have started."""
        parents = {}
        for pid in (int(x) for x in os.listdir("/proc") if x.isdigit()):
            with contextlib.suppress(OSError), open(
                "/proc/%d/stat" % pid, encoding="utf-8", errors="replace"
            ) as f:
                parents[pid] = int(f.read().rpartition(")")[2].split()[1])
        found = {c.pid for c in self.children}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def wait(self, what, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > deadline:
                with open(self.path("log"), encoding="utf-8", errors="replace") as f:
                    raise RuntimeError(
                        "%s: not within %d s: %s; %s"
                        % (self.name, PATIENCE_S, what, f.read()[-600:])
                    )
            time.sleep(0.01)

    def read(self, name):
        self.wait(name, lambda: os.path.exists(self.path(name)))
        with open(self.path(name), encoding="utf-8") as f:
            return json.load(f)

    def taken(self):
        with contextlib.suppress(FileNotFoundError), open(
            self.path("taken"), encoding="ascii"
        ) as f:
            return len(set(f.read().split()))
        return 0


def trip(bench, name, size, count):
    with Peer(bench, name) as peer:
        peer.start(("ask", "echo"), size, count)
        ask, echo = peer.read("ask.json"), peer.read("echo.json")
    return ask["p50"], ask["p99"], ask["cpu"] + echo["cpu"]


def reported(peer):
    """What the peer itself says of lost messages, at either end."""
    if peer.name == "frag":
        with open(peer.path("summary"), encoding="utf-8") as f:
            (flow,) = json.load(f)["flows"]
        return flow["lost"] + sum(flow["dropped"].values())
    said = 0
    for role in ("send", "take"):
        with contextlib.suppress(OSError), open(peer.path(role + ".json"), encoding="utf-8") as f:
            said += json.load(f)["reported"]
    return said


def lost(bench, name, is_killed):
    """Returns the time from the command to the first message in ms, and what was lost, what was
    reported of it, and the exit code."""
    with Peer(bench, name) as peer:
        begin = time.monotonic()
        child = peer.start(("send", "take"), 64, MESSAGES)
        peer.wait("the first message", lambda: peer.taken() > 0)
        first = (time.monotonic() - begin) * 1e3
        if is_killed:
            peer.wait("half of the messages", lambda: peer.taken() > MESSAGES // 4)
            with open(peer.path("take.pid"), encoding="ascii") as f:
                os.kill(int(f.read()), signal.SIGKILL)
            if name not in ("frag", "dora"):  # these start it again themselves
                peer.end("take", 64, MESSAGES)
        peer.wait("the end of the sender", lambda: child.poll() is not None)
        return first, MESSAGES - peer.taken(), reported(peer), child.returncode


def idle(bench, name):
    """Processor time in percent of a core, and memory of their own in MiB, of all processes of two
    ends that know each other, or for frag of two hosts, while nothing is sent."""
    with Peer(bench, name) as peer:
        peer.start(("rest", "take"), 64, MESSAGES)
        peer.wait("the receiver", lambda: os.path.exists(peer.path("take.pid")))
        time.sleep(REST_S)
        pids = peer.tree()
        before, begin = {pid: cpu_s(pid) for pid in pids}, time.monotonic()
        time.sleep(REST_S)
        used = sum(cpu_s(pid) - before[pid] for pid in pids)
        return 100 * used / (time.monotonic() - begin), sum(own_kib(pid) for pid in pids) / 1024


def peers_here(bench):
    names = ["frag"]
    for name, package in (
        ("ecal", "ecal"),
        ("iceoryx2", "iceoryx2"),
        ("zenoh", "zenoh"),
        ("dora", "dora"),
    ):
        if os.path.isdir(os.path.join(PACKAGES, package)):
            names.append(name)
        else:
            bench.lack("%s: its package is not there (make deps-peers)" % name)
    return names


def hops(bench):
    """frag's operators and GStreamer's elements in one process, in C."""
    hop = bench.row("peers.hop.frag", "ns")
    if os.path.exists(bench.path("bench", "gst")):
        gst = bench.row("peers.hop.gstreamer", "ns")
    else:
        gst = None
        bench.lack("GStreamer (libgstreamer1.0-dev, gstreamer1.0-plugins-base)")
    bench.lack(
        "GStreamer between processes: its shmsink and tcpserversink pass bytes one way, and count no messages"
    )
    for _ in bench.rounds():
        hop.add(bench.figures("hop", "chain", "greedy", 1000000, cores={1})[0])
        if gst is not None:
            source, chain = (
                bench.figures("gst", "identity", n, 250000, cores={1})[0] for n in (0, 10)
            )
            gst.add((chain - source) / 10)


def run(bench):
    hops(bench)
    names = peers_here(bench)
    rows = {}
    for size, (label, _) in SIZES.items():
        for name in names:
            for kind, unit in (("", "us"), (".p99", "us"), (".cpu", "us cpu")):
                rows[name, size, kind] = bench.row("peers.trip.%s.%s%s" % (label, name, kind), unit)
    for _ in bench.rounds():
        for size, (_, count) in SIZES.items():
            for name in names:
                try:
                    for kind, value in zip(("", ".p99", ".cpu"), trip(bench, name, size, count)):
                        rows[name, size, kind].add(value)
                except (OSError, RuntimeError) as e:
                    bench.lack("peers: a round trip of %d bytes by %s: %s" % (size, name, e))
        bench.save()
    for name in names:
        try:
            for kind, unit, value in zip(("cpu", "memory"), ("% core", "MiB"), idle(bench, name)):
                bench.row("peers.idle.%s.%s" % (name, kind), unit).values.append(value)
        except (OSError, RuntimeError) as e:
            bench.lack("peers: idle by %s: %s" % (name, e))
    for what in ("lost", "killed"):
        for name in names:
            try:
                figures = lost(bench, name, what == "killed")
            except (OSError, RuntimeError) as e:
                bench.lack("peers: %s by %s: %s" % (what, name, e))
                continue
            for kind, unit, value in zip(
                ("start", what, what + ".reported", what + ".exit"),
                ("ms", "of %d" % MESSAGES, "", ""),
                figures,
            ):
                if kind != "start" or what == "lost":
                    bench.row("peers.%s.%s" % (kind, name), unit).values.append(value)
        bench.save()
