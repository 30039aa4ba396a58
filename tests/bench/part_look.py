# SPDX-License-Identifier: Apache-2.0
"""What it costs that somebody looks: the thread that looks, in hosts of a few and of many operators
that pass messages on as fast as they can, and how often it looks; the driver of a hundred
applications, which rest or send ten messages a second each, for two pages with four windows a
second each, and for nobody; and what a scrape of a graph of 1,000 operators takes in fragctl web
and the driver. Its floor: to copy the page and to send it.
"""
import json
import os
import socket
import threading
import time
import urllib.request

from part_service import APPLICATIONS, RESTING, Service
from part_start import cpu_s

SAMPLE_S, PAGES, SIZES = 2, 2, (4, 1000)
TEN_A_SECOND = "bench_source, conditions: [{type: periodic, recess_period: 100ms}]"
SCRAPES, SCRAPE_S = 10, 0.3  # pages within 250 ms are the same


def chain(count, source="bench_source"):
    names = ["o%d" % i for i in range(count)]
    types = [source] + ["bench_pass"] * (count - 2) + ["bench_sink"]
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


def hundred(bench, text, name):
    def sample(cpu):
        before, start = cpu_s(c.d.pid), time.monotonic()
        if pages:
            read_for(pages, SAMPLE_S)
        else:
            time.sleep(SAMPLE_S)
        cpu.add(100 * (cpu_s(c.d.pid) - before) / (time.monotonic() - start))

    nobody = bench.row("look.%s.nobody.cpu" % name, "% core")
    cpu = bench.row("look.%s.driver.cpu" % name, "% core", floor=nobody, target=1)
    with Service(bench) as c:
        app = c.write("app.yaml", text)
        for i in range(APPLICATIONS):
            c.fragctl("start", app, "--name", "resting%d" % i)
        pages = []
        for _ in bench.rounds():
            sample(nobody)
        pages += [page(c) for _ in range(PAGES)]
        read_for(pages, SAMPLE_S)
        for _ in bench.rounds():
            sample(cpu)
        for stream in pages:
            stream.close()


def sent_ms(page):
    """What it takes to copy a page and to send it to another thread."""
    def read():
        with socket.create_connection(server.getsockname()) as s:
            while s.recv(1 << 18):
                pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = threading.Thread(target=read)
        reader.start()
        connection, _ = server.accept()
        with connection:
            start = time.thread_time_ns()
            connection.sendall(bytearray(page))
            took = time.thread_time_ns() - start
        reader.join()
    return took / 1e6


def scrape(bench, cpu, floor):
    """The driver's time for the reports of the hosts, which come also without a scrape, is taken away."""
    with Service(bench) as c:
        c.fragctl("start", c.write("app.yaml", chain(1000, TEN_A_SECOND)))
        server = c.start("fragctl", "web", "--listen", "127.0.0.1:0", "--address", c.address)
        url = c.line(server, r"http://\S+:\d+").group(0) + "/metrics"
        pids = (c.d.pid, server.pid)
        urllib.request.urlopen(url).read()  # the hosts measure from now on
        for _ in bench.rounds():
            start = sum(map(cpu_s, pids))
            time.sleep(SCRAPES * SCRAPE_S)
            before = sum(map(cpu_s, pids))
            for _ in range(SCRAPES):
                page = urllib.request.urlopen(url).read()
                time.sleep(SCRAPE_S)
            cpu.add(1000 * (sum(map(cpu_s, pids)) - before - (before - start)) / SCRAPES)
            floor.add(sent_ms(page))
        c.fragctl("stop", "busy")


def run(bench):
    for count in SIZES:
        cpu = bench.row("look.thread.%d.cpu" % count, "% core", target=2)
        thread(bench, count, cpu,
               bench.row("look.thread.%d.rate" % count, "1/s", more_is_better=True))
    hundred(bench, RESTING, "hundred")
    hundred(bench, RESTING.replace("1h", "100ms"), "changing")
    floor = bench.row("look.scrape.floor", "ms")
    scrape(bench, bench.row("look.scrape.cpu", "ms", floor=floor, target=5), floor)
