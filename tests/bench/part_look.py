# SPDX-License-Identifier: Apache-2.0
"""What it costs that somebody looks: the thread that looks, in hosts of a few and of many operators
that pass messages on as fast as they can, and how often it looks; and the driver of a hundred
applications that rest, for two pages with four windows a second each.
"""
import json
import os
import time
import urllib.request

from part_service import APPLICATIONS, RESTING, Service
from part_start import cpu_s

SAMPLE_S, PAGES, SIZES = 2, 2, (4, 1000)


def chain(count):
    names = ["o%d" % i for i in range(count)]
    types = ["bench_source"] + ["bench_pass"] * (count - 2) + ["bench_sink"]
    return ("frag: 1\napplication: busy\nextensions: [libbench.so]\nscheduler: {type: greedy}\noperators:\n"
            + "".join("  %s: {type: %s}\n" % row for row in zip(names, types))
            + "flows: [%s]\n" % ", ".join("%s -> %s" % pair for pair in zip(names, names[1:])))


def look(c):
    client = c.start("fragctl", "top", "-o", "json", "--address", c.address)
    c.line(client, r'"window_ns"')
    return client


def page(c):
    """Tables four times a second, and what reads them."""
    server = c.start("fragctl", "web", "--listen", "127.0.0.1:0", "--every", "250ms", "--address", c.address)
    return urllib.request.urlopen(c.line(server, r"http://\S+:\d+").group(0) + "/data")


def read_for(pages, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for stream in pages:
            stream.read1(1 << 20)


def stop(client):
    client.kill()
    client.wait()


def looking_thread(pid):
    """Its processor time in s, and how often it ran."""
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task), encoding="utf-8") as f:
            if f.read() != "frag-look\n":
                continue
        with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as f:
            numbers = f.read().split()
        return int(numbers[0]) / 1e9, int(numbers[2])
    raise RuntimeError("nobody looks in host %d" % pid)


def thread(bench, count, cpu, rate):
    with Service(bench) as c:
        c.fragctl("start", c.write("app.yaml", chain(count)))
        client = look(c)
        pid = json.loads(c.fragctl("list", "-o", "json"))["applications"][0]["hosts"][0]["pid"]
        for _ in bench.rounds():
            (before_s, before), start = looking_thread(pid), time.monotonic()
            time.sleep(SAMPLE_S)
            (after_s, after), took = looking_thread(pid), time.monotonic() - start
            cpu.add(100 * (after_s - before_s) / took)
            rate.add((after - before) / took)
        stop(client)
        c.fragctl("stop", "busy")


def hundred(bench, cpu):
    with Service(bench) as c:
        app = c.write("app.yaml", RESTING)
        for i in range(APPLICATIONS):
            c.fragctl("start", app, "--name", "resting%d" % i)
        pages = [page(c) for _ in range(PAGES)]
        read_for(pages, SAMPLE_S)
        for _ in bench.rounds():
            before, start = cpu_s(c.d.pid), time.monotonic()
            read_for(pages, SAMPLE_S)
            cpu.add(100 * (cpu_s(c.d.pid) - before) / (time.monotonic() - start))
        for stream in pages:
            stream.close()


def run(bench):
    for count in SIZES:
        cpu = bench.row("look.thread.%d.cpu" % count, "% core", target=2)
        thread(bench, count, cpu, bench.row("look.thread.%d.rate" % count, "1/s"))
    hundred(bench, bench.row("look.hundred.driver.cpu", "% core", target=1))
