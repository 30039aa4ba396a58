# SPDX-License-Identifier: Apache-2.0
"""Between two hosts over ucx, operator to operator, on cores 0 and 1, beside ucx_perftest in the
same mode.

trip: half of a round trip, one message at a time. paced: the same, begun 1,000 times a second (60
from 1 MiB). stream: as many as go, with WINDOWS messages on the way, from 1 MiB on as many as a
flow gets that says nothing; ucx_perftest has as many sends under way. wide: with WIDE messages. To
ucx_perftest a short send is done when the kernel has the bytes, so only the socket's buffers bound
what is on the way: there wide binds as little. Its large sends are all of one buffer.
"""
import os
import re
import shutil
import subprocess
import time

from cluster import Cluster
from rows import pin

MODES = ("busy_poll", "event")
SIZES = {8: "8B", 1 << 10: "1KiB", 64 << 10: "64KiB", 1 << 20: "1MiB", 8 << 20: "8MiB"}
#         trips, paced, streamed
COUNTS = {
    8: (4000, 300, 40000),
    1 << 10: (4000, 300, 40000),
    64 << 10: (1000, 300, 4000),
    1 << 20: (200, 30, 400),
    8 << 20: (40, 30, 60),
}
WINDOWS = {8: 1024, 1 << 10: 1024, 64 << 10: 32, 1 << 20: 4, 8 << 20: 4}
WIDE = {8: 16384, 1 << 10: 16384, 64 << 10: 256, 1 << 20: 32, 8 << 20: 8}
SETTINGS = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_TCP_CONN_NB": "y", "UCX_TCP_TX_SEG_SIZE": "64K",
            "UCX_TCP_RX_SEG_SIZE": "256K",
            "UCX_RNDV_THRESH": "1M", "UCX_KEEPALIVE_INTERVAL": "1s", "UCX_WARN_UNUSED_ENV_VARS": "n",
            "UCX_LOG_LEVEL": "error"}

TRIP = """frag: 1
application: trip
extensions: [libbench.so]
fragments:
  f1:
    operators:
      kick: {type: bench_kick}
      ping: {type: bench_ping, parameters: {count: %(count)d, bytes: %(bytes)d, file: %(file)s}}
    flows: [kick.out -> ping.in]
    scheduler: {type: greedy}
  f2:
    operators: {pong: {type: bench_pong, parameters: {bytes: %(bytes)d}}}
    scheduler: {type: greedy}
flows:
  - {from: f1.ping.out, to: f2.pong.in, edge: ucx}
  - {from: f2.pong.out, to: f1.ping.in, edge: ucx}
"""
PACED = """frag: 1
application: paced
extensions: [libbench.so]
fragments:
  f1:
    operators:
      pacer:
        type: bench_pacer
        parameters: {count: %(count)d, bytes: %(bytes)d}
        conditions: [{type: periodic, recess_period: %(hz)dhz}]
      clock: {type: bench_clock, parameters: {count: %(count)d, file: %(file)s}}
    scheduler: {type: greedy}
  f2:
    operators: {pong: {type: bench_pong, parameters: {bytes: %(bytes)d}}}
    scheduler: {type: greedy}
flows:
  - {from: f1.pacer.out, to: f2.pong.in, edge: ucx}
  - {from: f2.pong.out, to: f1.clock.in, edge: ucx}
"""
STREAM = """frag: 1
application: stream
extensions: [libbench.so]
fragments:
  f1:
    operators: {source: {type: bench_source, parameters: {count: %(sent)d, bytes: %(bytes)d}}}
    scheduler: {type: greedy}
  f2:
    operators:
      sink: {type: bench_sink, parameters: {file: %(file)s, warm_up: %(warm_up)d, last: %(count)d}}
    scheduler: {type: greedy}
flows: [{from: f1.source.out, to: f2.sink.in, edge: ucx, capacity: %(window)d}]
"""


def warm_up(count):
    """How many messages of a stream come before those that count."""
    return count // 10 + 1


def app(bench, text, mode, size, count, window=None):
    with Cluster(bench, env={"FRAG_PUMP": mode}) as c:
        c.run(c.write("app.yaml", text % {
            "count": count, "warm_up": warm_up(count), "sent": count + warm_up(count), "bytes": size, "file": c.path("figures"), "hz": 1000 if size < 1 << 20 else 60,
            "window": window or WINDOWS[size]}))
        return c.numbers("figures")


def perftest(bench, kind, mode, size, count, rank=50):
    """The last line of ucx_perftest's table, as numbers: count, percentile, average, overall, MB/s
    twice, messages/s twice."""
    said = ""
    for _ in range(3):  # its port may be somebody's
        perftest.port = 13400 + (perftest.port - 13400 + 1) % 2000
        said = perftest_once(bench, kind, mode, size, count, rank)
        # what UCX says may follow on it
        line = re.findall(r"^(?:Final:)?((?:\s+[0-9.]+){8})", said, re.M)
        if line:
            return [float(x) for x in line[-1].split()]
    raise RuntimeError("ucx_perftest -t ucp_am_%s -s %d in mode %s: no figures; it said:\n%s" % (kind, size, mode, said[-500:]))


def perftest_once(bench, kind, mode, size, count, rank):
    command = ["ucx_perftest", "-t", "ucp_am_" + kind, "-s", str(size), "-n", str(count), "-w", str(warm_up(count)),
               "-p", str(perftest.port), "-e", "-f", "-H", "64", "-R", str(rank)]
    command += ["-I", "-E", "sleep"] if mode == "event" else []
    command += ["-O", str(WINDOWS[size])] if kind == "bw" else []
    env = dict(bench.env, **SETTINGS)
    server = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pin({1})
    )
    try:
        for _ in range(100):  # until it listens
            time.sleep(0.1)
            r = subprocess.run(
                [*command, "127.0.0.1"],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=60,
                preexec_fn=pin({0}),
                check=False,
            )
            if "Connection refused" not in r.stdout or server.poll() is not None:
                return r.stdout
        return "it never listened"
    except subprocess.TimeoutExpired:
        return "not done in 60 s"
    finally:
        server.kill()
        server.wait()


perftest.port = 13400 + os.getpid() % 2000


def trip_target(mode, size):
    if size <= 4096:
        return lambda floor: floor + (1 if mode == "busy_poll" else 5)
    if size >= 8 << 20:
        return lambda floor: floor * 1.1
    return (lambda floor: floor * 1.25) if size >= 1 << 20 else None


def stream_target(size):
    return lambda floor: (0.9 if size >= 8 << 20 else 0.8) * floor


def run(bench):
    have_floor = shutil.which("ucx_perftest") is not None
    if not have_floor:
        bench.lack("ucx_perftest (ucx-utils), and the targets that rest on it")
    if not os.path.exists(bench.path("lib/frag/modules/ucx.so")):
        bench.lack("edges: built without UCX")
        return
    if len(os.sched_getaffinity(0)) < 2:
        bench.lack("edges: they need two cores")
        return
    rows = {}
    for size, label in SIZES.items():
        for mode in MODES:
            key = mode, size
            name = "edge.%%s.%s.%s%%s" % (label, mode)
            for p in ("p50", "p99"):
                rows[key, "floor", p] = bench.row("ucx." + name % ("trip", "." + p), "us")
                rows[key, "trip", p] = bench.row(
                    name % ("trip", "." + p),
                    "us",
                    floor=rows[key, "floor", p],
                    target=trip_target(mode, size) if p == "p50" else None,
                )
            rows[key, "trip", "p999"] = bench.row(name % ("trip", ".p999"), "us")
            for p in ("p50", "p99", "p999"):
                rows[key, "paced", p] = bench.row(name % ("paced", "." + p), "us")
            rows[key, "floor", "stream"] = bench.row("ucx." + name % ("stream", ""), "/s")
            rows[key, "stream"] = bench.row(name % ("stream", ""), "/s", floor=rows[key, "floor", "stream"],
                                            target=stream_target(size), more_is_better=True)
            rows[key, "wide"] = bench.row(name % ("stream", ".wide"), "/s", floor=rows[key, "floor", "stream"],
                                          more_is_better=True)
    for _ in bench.rounds():
        for size in SIZES:
            for mode in MODES:
                try:
                    one_series(bench, rows, mode, size, have_floor)
                except (RuntimeError, subprocess.SubprocessError) as e:
                    bench.lack("a series of edges, %s, %s: %s" % (SIZES[size], mode, e))
        bench.save()  # this part takes long on a busy machine: what there is can be looked at


def one_series(bench, rows, mode, size, have_floor):
    trips, paced, streamed = COUNTS[size]
    key = mode, size
    if have_floor:
        floor = [perftest(bench, "lat", mode, size, trips, rank)[1] for rank in (50, 99)]
        rate = perftest(bench, "bw", mode, size, streamed)[-1]
    trip, slow = app(bench, TRIP, mode, size, trips), app(bench, PACED, mode, size, paced)
    streams = [("stream", app(bench, STREAM, mode, size, streamed)),
               ("wide", app(bench, STREAM, mode, size, streamed, WIDE[size]))]
    for i, p in enumerate(("p50", "p99", "p999")):
        rows[key, "trip", p].add(trip[1 + i] / 1e3)
        rows[key, "paced", p].add(slow[1 + i] / 1e3)
        if have_floor and i < 2:
            rows[key, "floor", p].add(floor[i])
    if have_floor:
        rows[key, "floor", "stream"].add(rate)
    for kind, (count, first, last) in streams:
        rows[key, kind].add((count - 1) * 1e9 / (last - first))
