# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU: gpu_bench.sh of the folder that make gpu-check-kit makes, as rows.

Floors are of the same run: kernels that copy as many bytes, copies over PCIe, TCP between the same
network namespaces, a hop of the same size in memory of the host. One series of streams takes 60 s.
"""
import os
import re
import subprocess

CONVERSIONS = ("1080p.to720p.linear.chw", "1080p.to720p.linear.hwc", "1080p.to720p.cubic.chw",
               "1080p.to720p.area.chw", "1080p.same.chw")
TWINS = ("raw.nv12", "raw.p010", "raw.yuyv", "raw.bayer_rggb", "raw.malvar", "resize.720p",
         "crop.u8", "crop.f32", "draw", "mask.sigmoid", "mask.softmax", "mask.boxes",
         "detect.8400x80")
SIZES = ("1KiB", "64KiB", "1MiB", "8MiB", "64MiB", "256MiB")


def make_rows(bench):
    rows = {}

    def row(name, unit, **more):
        rows[name] = bench.row("gpu." + name, unit, **more)
        return rows[name]

    row("open.gpu", "ms")
    row("load.kernel", "ms")
    row("floor.launch_and_wait", "us")
    row("floor.copy.64MiB", "us")
    for mib in (8, 64):
        for way in ("to_gpu", "from_gpu"):
            row("floor.pcie.%dMiB.%s" % (mib, way), "MB/s", more_is_better=True)
    for name in CONVERSIONS:
        floor = row("floor.copy." + name, "us")
        target = (lambda f: f / 0.7) if name == CONVERSIONS[0] else None
        row("convert.kernel." + name, "us", floor=floor, target=target)
        row("convert.tick." + name, "us", floor=floor)
    for name in TWINS:
        floor = row("twins." + name + ".copy", "us")
        row("twins." + name, "us", floor=floor)
        row("twins." + name + ".npp", "us", floor=floor)
    floor = row("same_host.8MiB.system", "us")
    row("same_host.8MiB.gpu", "us", floor=floor, target=lambda f: f + 2)
    row("same_host.8MiB.gpu.kernel", "us", floor=rows["floor.launch_and_wait"])
    for wait in ("adaptive", "busy_poll"):
        for size in SIZES:
            row("hosts.%s.seen.%s" % (size, wait), "us", target=5 if wait == "busy_poll" else None)
            row("hosts.%s.seen.%s.p99" % (size, wait), "us")
    for part in ("hosts", "mps"):
        for size in ("1KiB", "8MiB", "64MiB"):
            row("%s.%s.kernel" % (part, size), "us", target=300 if part == "hosts" else None)
            row("%s.%s.kernel.p99" % (part, size), "us")
    for size in ("2MiB", "8MiB", "64MiB"):
        floor = row("floor.tcp." + size, "MB/s", more_is_better=True)
        row("staged.%s.system" % size, "MB/s", floor=floor, more_is_better=True)
        # of the slower of both floors, which TCP is
        row("staged.%s.gpu" % size, "MB/s", floor=floor, target=lambda f: 0.8 * f, more_is_better=True)
        row("staged.%s.gpu.first" % size, "ms")
    row("streams.30.frames", "n")
    row("streams.30.missed", "n", target=0)
    row("streams.30.latency.worst_p50", "us")
    row("streams.30.latency.worst_p99", "us")
    row("streams.30.cpu", "cores")
    return rows


def one_series(bench, rows, parts):
    script = bench.path("gpu-check", "gpu_bench.sh")
    r = subprocess.run([script, *parts], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=900, env=bench.env, check=False)
    for line in r.stdout.splitlines():
        found = re.match(r"(\S+) \S+ ([0-9.]+)$", line)
        if line.startswith(("lacks ", "skipped: ")):
            bench.lack("gpu: " + line.split(" ", 1)[1])
        elif found and found.group(1) in rows:
            rows[found.group(1)].add(float(found.group(2)))
    return r.returncode


def run(bench):
    if not os.path.exists(bench.path("gpu-check", "gpu_bench.sh")):
        bench.lack("gpu: make gpu-check-kit makes what this part runs")
        return
    rows, parts = make_rows(bench), ["floors", "twins", "host", "hosts", "mps", "staged"]
    for i in bench.rounds():
        if one_series(bench, rows, parts) == 77:
            return
        if i in (0, bench.series + bench.drop - 1):
            one_series(bench, rows, ["streams"])
        bench.save()
