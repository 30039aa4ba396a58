# SPDX-License-Identifier: Apache-2.0
"""The viewer's page: how old a picture is when a program has it that reads the stream, and what a
core spends on one who looks.

The clip of examples/data (768 x 576) plays at 30 frames a second. The age is that of the whole
picture, from the moment at which the viewer received its messages, as the comment of the JPEG says.
"""
import os
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request

CLIP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "data", "pedestrians.mp4")
APP = """frag: 1
application: look
operators:
  replayer: {type: video_replayer, parameters: {path: %s, frame_rate: 30, repeat: true}}
  viewer: {type: viewer}
flows: [replayer.output -> viewer.receivers]
"""
PERIOD_S = 3


def watch(url, seconds):
    """The ages of the pictures, in ms."""
    ages, data = [], b""
    with urllib.request.urlopen(url + "stream", timeout=30) as stream:
        boundary = b"--" + stream.headers["Content-Type"].partition("boundary=")[2].encode()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            data += stream.read1(1 << 20)
            *parts, data = data.split(boundary)
            now = time.time_ns()
            ages += [(now - int(t)) / 1e6 for part in parts
                     for t in re.findall(rb"^\r\n[^\xff]*\xff\xd8\xff\xfe..frag number=\d+ received_ns=(\d+)", part, re.S)]
    return ages


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def host_of(pid):
    """The process that runs the operators: the child of fragctl."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return int(found.stdout.split()[0]) if found.stdout else pid


def run(bench):
    if not all(os.path.exists(bench.path("lib", "frag", "plugins", "lib%s.so" % n)) for n in ("viewer", "video")):
        bench.lack("viewer: built without the viewer or FFmpeg")
        return
    median = bench.row("viewer.frame.p50", "ms", target=100)
    worst = bench.row("viewer.frame.max", "ms")
    idle = bench.row("viewer.cpu.nobody_looks", "% core")
    looking = bench.row("viewer.cpu.one_looks", "% core", floor=idle)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as app:
        app.write(APP % os.path.abspath(CLIP))
        app.flush()
        program = subprocess.Popen(
            [bench.path("bin", "fragctl"), "run", app.name], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=bench.env)
        try:
            url = next(m.group(1) for m in (re.search(r"shows its pictures at (\S+)", l) for l in program.stderr) if m)
            host = host_of(program.pid)
            for _ in bench.rounds():
                before = cpu_s(host)
                time.sleep(PERIOD_S)
                idle.add((cpu_s(host) - before) / PERIOD_S * 100)
                before = cpu_s(host)
                ages = watch(url, PERIOD_S)
                looking.add((cpu_s(host) - before) / PERIOD_S * 100)
                median.add(statistics.median(ages))
                worst.add(max(ages))
        finally:
            program.terminate()
            program.communicate(timeout=30)
