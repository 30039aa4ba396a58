#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the edge between processes with UCX's own figures: edge.py [BUILD] [ROUNDS].

Both run in turns, ROUNDS times, over loopback on cores 0 and 1; medians and their ratio are printed. A machine that does
anything else spoils both; the ratio suffers less than the figures.
"""
import os
import re
import statistics
import subprocess
import sys
import time

BUILD = sys.argv[1] if len(sys.argv) > 1 else "build"
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5
SETTINGS = {
    "UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_TCP_CONN_NB": "y", "UCX_TCP_TX_SEG_SIZE": "64K",
    "UCX_RNDV_THRESH": "1M", "UCX_KEEPALIVE_INTERVAL": "1s", "UCX_WARN_UNUSED_ENV_VARS": "n", "UCX_LOG_LEVEL": "error",
}
PORT = 13400 + os.getpid() % 1000


def perftest(kind, size, count, mode):
    """Percentile 50 in us, or MB/s."""
    global PORT
    PORT += 1
    env = dict(os.environ, **SETTINGS)
    command = ["ucx_perftest", "-t", "ucp_am_" + kind, "-s", str(size), "-n", str(count), "-w", str(count // 10 + 1),
               "-p", str(PORT), "-e", "-f", "-H", "64"]
    command += ["-I", "-E", "sleep"] if mode == "event" else []
    command += ["-O", "8"] if kind == "bw" else []
    server = subprocess.Popen(command + ["-c", "1"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    out = subprocess.run(command + ["-c", "0", "127.0.0.1"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         text=True, timeout=120).stdout
    server.wait(10)
    figures = re.findall(r"[0-9.]+", [l for l in out.splitlines() if l.strip()][-1])
    return float(figures[1]) if kind == "lat" else float(figures[4]) * 1.048576


def edge(kind, size, count, mode):
    env = dict(os.environ, FRAG_PUMP=mode)
    out = subprocess.run([os.path.join(BUILD, "bench/edge"), kind, str(size), str(count)], env=env, stdout=subprocess.PIPE,
                         text=True, timeout=120).stdout
    return float(out.split()[0])


def compare(kind, size, count, mode):
    floor, ours = [], []
    for _ in range(ROUNDS):
        floor.append(perftest(kind, size, count, mode))
        ours.append(edge(kind, size, count, mode))
    f, o = statistics.median(floor), statistics.median(ours)
    print("%-3s %9s %9d B   ucx %9.2f [%.2f..%.2f]   frag %9.2f [%.2f..%.2f]   difference %+.2f   ratio %.2f" %
          (kind, mode, size, f, min(floor), max(floor), o, min(ours), max(ours), o - f, o / f), flush=True)


for mode in ("busy_poll", "event"):
    for size, count in ((8, 20000), (1024, 20000), (4096, 20000), (65536, 5000), (1 << 20, 1000), (8 << 20, 100)):
        compare("lat", size, count, mode)
    for size, count in ((1024, 100000), (65536, 20000), (1 << 20, 2000), (8 << 20, 200)):
        compare("bw", size, count, mode)
