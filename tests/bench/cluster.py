# SPDX-License-Identifier: Apache-2.0
"""driverd and two workerd as people start them, with libbench.so among the libraries."""
import os
import re
import shutil
import subprocess
import tempfile
import time

from rows import now_ns, pin


def check_ended(what, status, stderr):
    """A failure that comes once in many runs is known by what the program wrote."""
    if status != 0:
        raise RuntimeError("%s: exit status %d; it wrote:\n%s" % (what, status, stderr[-2000:]))


class Cluster:
    """One application over a driver and two workers, f1 on core 0 and f2 on core 1. Use with
    `with`."""

    def __init__(self, bench, env=None, cores=({0}, {1})):
        self.bench, self.cores = bench, cores
        self.env = dict(bench.env, FRAG_LIBRARY_PATH=bench.path("bench"), **(env or {}))
        self.folder = tempfile.mkdtemp(prefix="frag-bench-")
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for c in self.children:
            if c.poll() is None:
                c.terminate()
        for c in self.children:
            try:
                c.wait(10)
            except subprocess.TimeoutExpired:
                c.kill()
                c.wait()
        shutil.rmtree(self.folder, True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def start(self, program, *args, cores=None):
        log = open(self.path("%s%d.log" % (program, len(self.children))), "w", encoding="utf-8")
        with log:
            child = subprocess.Popen(
                [self.bench.path("bin", program), *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                preexec_fn=pin(cores),
            )
        child.log = log.name
        self.children.append(child)
        return child

    def driver(self, app, port=0, summary=None):
        child = self.start("driverd", "--address", "127.0.0.1:%d" % port, "--app", app,
                           *(["--summary", summary] if summary else []))
        self.address = self.line(child, r"listening on (\S+:\d+)").group(1)
        return child

    def worker(self, number, address=None, once=True):
        return self.start("workerd", "--address", address or self.address, "--fragments", "f%d" % number, "--name",
                          "w%d" % number, *(["--once"] if once else []), cores=self.cores[number - 1])

    def line(self, child, pattern, timeout=20):
        end = time.monotonic() + timeout
        while True:
            with open(child.log, encoding="utf-8", errors="replace") as f:
                found = re.search(pattern, f.read())
            if found:
                return found
            if time.monotonic() > end or child.poll() is not None:
                raise RuntimeError("no line with %r in time; %s" % (pattern, self.logs()))
            time.sleep(0.002)

    def logs(self):
        text = ""
        for c in self.children:
            with open(c.log, encoding="utf-8", errors="replace") as f:
                text += "%s:\n%s" % (os.path.basename(c.log), f.read()[-2000:])
        return text

    def run(self, app, timeout=60, summary=None):
        """Runs app to its end by fresh daemons. Returns when the last process was gone, in ns.
        summary: the file that gets the summary."""
        self.driver(app, summary=summary)
        self.worker(1)
        self.worker(2)
        return self.finish(timeout)

    def finish(self, timeout=60):
        end = time.monotonic() + timeout
        for c in self.children:
            if c.wait(max(0.1, end - time.monotonic())) != 0:
                raise RuntimeError("%s ended with %d; %s" % (c.args[0], c.returncode, self.logs()))
        return now_ns()

    def numbers(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return [int(x) for x in f.read().split()]
