# SPDX-License-Identifier: Apache-2.0
"""Real daemons for tests: starts them, waits for what they print, and looks for what they leave
behind.

Every process started here carries FRAG_TEST_ID in its environment, so a process that outlives its
test is found wherever it has been re-parented to.
"""
import contextlib
import importlib
import json
import os
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests"))
from busy import busy  # noqa: E402
BUILD = os.environ.get("FRAG_BUILD", os.path.join(TOP, "build"))
BIN = os.path.join(BUILD, "bin")
TEST_PLUGINS = os.path.join(BUILD, "tests", "sample_plugins")
# Bounds in tests are ten times what is promised: they catch a hang, not a slow machine.
TIMES_SLOWER = int(os.environ.get("FRAG_TEST_SLOW", "1"))
PATIENCE_S = 30 * TIMES_SLOWER
# Children inherit it, and under nohup the end of a terminal would be ignored.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# An application whose rx is why it is slow.
SLOW = """
frag: 1
application: slow
extensions: [libslow.so]
fragments:
  one:
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 50hz}]}
      rx: {type: slow_rx, parameters: {sleep_ms: 60}}
    flows: [tx.out -> rx.in]
"""


def is_over(begun, timeout):
    """Whether a wait has taken longer than it may: longer where others want the same cores."""
    took = time.monotonic() - begun
    return took > timeout and took > timeout * busy()


def times_slower():
    """How many times longer things take here and now."""
    return TIMES_SLOWER * busy()


def dead_ms(ms):
    """A time of death, in which a thread gets a core even where many want one."""
    return str(int(ms * busy()))


def report_folders():
    """Where hosts write that are built for a checker: its reports, or counts of coverage."""
    paths = re.findall(r"log_path=([^:]+)/", os.environ.get("ASAN_OPTIONS", os.environ.get("TSAN_OPTIONS", "")))
    return (*paths, BUILD) if os.path.exists(os.path.join(BUILD, "obj", "workerd", "main.gcno")) else tuple(paths)


REPORTS = report_folders()


def landlock():
    """The version of Landlock here; 0: none."""
    out = subprocess.run([os.path.join(BIN, "workerd"), "--version", "-v"], capture_output=True,
                         text=True, check=True).stdout
    found = [line for line in out.splitlines() if "has Landlock" in line]
    return int(found[0].split()[-1]) if found else 0


def own_lines(text):
    """But for the warning about Landlock, where this kernel or container has none."""
    lines = text.splitlines()
    return lines if landlock() else [line for line in lines if "lacks Landlock" not in line]


def data_ports(pid):
    """The TCP ports that a process listens on."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    with open("/proc/%d/net/tcp" % pid) as f:
        rows = [line.split() for line in f][1:]
    return [int(row[1].split(":")[1], 16) for row in rows
            if row[3] == "0A" and "socket:[%s]" % row[9] in inodes]


class Process:
    """A child with its output read as it comes."""

    def __init__(self, command, env, cwd, prefix=(), pass_fds=()):
        self.command = list(prefix) + command
        self.started = time.monotonic()
        self.child = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            text=True,
            errors="replace",
            pass_fds=pass_fds,
        )
        self.pid = self.child.pid
        self._news = threading.Condition()
        self._lines = {"stdout": [], "stderr": []}
        self._readers = [
            threading.Thread(target=self._read, args=(n,), daemon=True) for n in self._lines
        ]
        for r in self._readers:
            r.start()

    def _read(self, name):
        with getattr(self.child, name) as lines:
            for line in lines:
                with self._news:
                    self._lines[name].append(line.rstrip("\n"))
                    self._news.notify_all()

    def text(self, name):
        with self._news:
            return "\n".join(self._lines[name])

    @property
    def stdout(self):
        return self.text("stdout")

    @property
    def stderr(self):
        return self.text("stderr")

    def wait_line(self, pattern, stream="stderr", timeout=PATIENCE_S):
        """The match of the first line that pattern is found in."""
        wanted = re.compile(pattern)
        begun = time.monotonic()
        seen = 0
        with self._news:
            while True:
                lines = self._lines[stream]
                for line in lines[seen:]:
                    m = wanted.search(line)
                    if m:
                        return m
                seen = len(lines)
                if is_over(begun, timeout):
                    raise AssertionError("%s: no line with %r within %d s; it wrote:\n%s" %
                                         (self.command[0], pattern, timeout, "\n".join(lines)))
                if self.child.poll() is not None and not any(r.is_alive() for r in self._readers):
                    raise AssertionError(
                        "%s: ended with %s without a line with %r; it wrote:\n%s"
                        % (self.command[0], self.child.returncode, pattern, "\n".join(lines))
                    )
                self._news.wait(0.2)

    def wait(self, timeout=PATIENCE_S):
        """The exit code, 128 + n for signal n."""
        self._await_exit(timeout)
        try:
            status = self.child.wait(1)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                "%s still runs after %d s; it wrote:\n%s\n%s"
                % (" ".join(self.command), timeout, self.stdout, self.stderr)
            ) from None
        for r in self._readers:
            r.join(PATIENCE_S)
        return status if status >= 0 else 128 - status

    def _await_exit(self, timeout):
        """subprocess polls, and notices an exit up to 50 ms late."""
        if self.child.poll() is None:
            exits, poll = os.pidfd_open(self.pid), select.poll()
            poll.register(exits, select.POLLIN)
            begun = time.monotonic()
            while not poll.poll(min(timeout, 1) * 1000) and not is_over(begun, timeout):
                pass
            os.close(exits)

    def signal(self, number):
        if "TSAN_OPTIONS" in os.environ:
            self._await_sleep()
        self.child.send_signal(number)

    def _await_sleep(self):
        """ThreadSanitizer keeps a signal back that comes between two system calls, and loses one of
        some hundred of them."""
        until = time.monotonic() + 1
        while self.child.poll() is None and time.monotonic() < until:
            with open("/proc/%d/stat" % self.pid) as f:
                if f.read().rpartition(")")[2].split()[0] != "R":
                    return
            time.sleep(0.001)

    def kill(self):
        self.signal(signal.SIGKILL)


class ClusterTest(unittest.TestCase):
    """A test with a folder of its own, its processes, and a look at what is left behind."""

    app_text = None  # the text of the file self.app, in which %(folder)s is that folder

    def setUp(self):
        self.mark = uuid.uuid4().hex
        self.folder = tempfile.mkdtemp(prefix="frag-it-")
        self.scratch = os.path.join(self.folder, "tmp")
        self.runtime = os.path.join(self.folder, "run")
        os.mkdir(self.scratch)
        os.mkdir(self.runtime, 0o700)
        self.env = {k: v for k, v in os.environ.items()
                    # tests/run.py sets that one
                    if not k.startswith(("FRAG_", "UCX_")) or
                    k in ("UCX_MEM_EVENTS", "FRAG_TEST_NO_SAFETY_POLL")}
        self.env.update(FRAG_TEST_ID=self.mark, TMPDIR=self.scratch, HOME=self.scratch,
                        XDG_RUNTIME_DIR=self.runtime, FRAG_TEST_OWN_DRIVERS="1",
                        FRAG_LIBRARY_PATH=TEST_PLUGINS)
        if busy() > 2:
            self.env["FRAG_DEAD_MS"] = dead_ms(3000)
        if os.geteuid() == 0:  # else workerd warns of it, and the tests run as root on purpose
            self.env["FRAG_HOST_USER"] = "root"
        if REPORTS:
            self.env["FRAG_ALLOW_WRITE"] = ":".join((self.folder, *REPORTS))
        self.processes = []
        self.others = self.all_processes()
        self.shm_before = self.shm()
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.addCleanup(self._end)
        if self.app_text is not None:
            self.app = self.write("app.yaml", self.app_text.replace("%(folder)s", self.folder))

    def need_descriptors(self, count):
        """For this test and what it starts; it is skipped where so many are not allowed."""
        soft, hard = limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft >= count:
            return
        if hard < count:
            self.skipTest("it needs %d descriptors, and the limit is %d" % (count, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)

    def need_ipv6(self):
        """Containers may have a kernel with IPv6 and no address of it."""
        try:
            with socket.socket(socket.AF_INET6) as s:
                s.bind(("::1", 0))
        except OSError:
            self.skipTest("the machine has no IPv6")

    def need_kernels(self):
        if not os.path.exists(os.path.join(BUILD, "gen", "libfrag", "ops", "vision", "kernels.ptx")):
            self.skipTest("the build has no nvcc, and so no kernels for GPUs")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def start(self, program, *args, env=None, prefix=(), cwd=None, pass_fds=()):
        full = program if os.path.isabs(program) else os.path.join(BIN, program)
        p = Process(
            [full, *map(str, args)],
            dict(self.env, **(env or {})),
            cwd or self.folder,
            prefix,
            pass_fds,
        )
        self.processes.append(p)
        return p

    def driver(self, app, *args, app_args=(), address="127.0.0.1:0", env=None, prefix=()):
        """Starts driverd on a free port; self.address is where it listens."""
        flags = ["--address", address, "--app", app, *args]
        if app_args:
            flags += ["--", *app_args]
        p = self.start("driverd", *flags, env=env, prefix=prefix)
        self.address = p.wait_line(r"listening on (\S+:\d+)").group(1)
        return p

    def worker(self, *args, fragments=None, address=None, env=None, prefix=()):
        flags = ["--address", address or self.address]
        if fragments:
            flags += ["--fragments", fragments]
        return self.start("workerd", *flags, *args, env=env, prefix=prefix)

    def free_port(self):
        """A port that nobody uses at this moment; for programs that must agree on one before either
        runs."""
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def summary(self, driver):
        """The summary of a driver that was started with --output json."""
        return json.loads(driver.stdout)

    def flow(self, summary, name_from):
        found = [f for f in summary["flows"] if f["from"] == name_from]
        self.assertEqual(len(found), 1, "flow from %s in %r" % (name_from, [f["from"] for f in summary["flows"]]))
        return found[0]

    def assert_done(self, driver, workers, timeout=PATIENCE_S):
        """They end in order."""
        for p in (driver, *workers):
            self.assertEqual(p.wait(timeout), 0, p.stderr)

    def assert_balanced(self, summary):
        for f in summary["flows"]:
            total = f["delivered"] + sum(f["dropped"].values()) + f["lost"] + f["in_flight"]
            self.assertEqual(f["sent"], total, "the ledger of %s does not balance: %r" % (f["from"], f))

    @staticmethod
    def all_processes():
        return {name for name in os.listdir("/proc") if name.isdigit()}

    def ours(self, reporters=False):
        """Processes of this test that exist now, whoever their parent is: {pid: command}. The
        reporter of a workerd that lives is a part of it and is left out, unless it is asked for."""
        mark = ("FRAG_TEST_ID=" + self.mark).encode()
        found, kept = {}, {}
        # What was there before this test is not looked at, because that takes a few ms each time.
        for pid in self.all_processes() - self.others:
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if mark not in f.read().split(b"\0"):
                        continue
                with open("/proc/%s/stat" % pid) as f:
                    name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                state, parent = rest.split()[:2]
                if state == "Z":
                    continue
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    found[int(pid)] = f.read().replace(b"\0", b" ").decode().strip()
                if name == "frag-reporter":
                    kept[int(pid)] = int(parent)
            except OSError:
                pass
        return {p: command for p, command in found.items() if reporters or kept.get(p) not in found}

    def reporter_of(self, worker):
        """The process that outlives this workerd to report what its hosts have counted."""
        for pid in self.ours(reporters=True):
            with open("/proc/%d/stat" % pid) as f:
                name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
            if name == "frag-reporter" and int(rest.split()[1]) == worker.pid:
                return pid
        raise AssertionError("workerd %d has no reporter" % worker.pid)

    def hosts(self):
        return [pid for pid, command in self.ours().items() if "fraghost" in command.split(" ")[0]]

    def looking_threads(self):
        """How many threads look in the hosts."""
        found = 0
        for pid in self.hosts():
            for tid in os.listdir("/proc/%d/task" % pid):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
                    with open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
                        found += f.read() == "frag-look\n"
        return found

    def wait_until(self, what, condition, timeout=PATIENCE_S):
        """Polls condition; its first true value is returned. what: a text, or returns one."""
        begun = time.monotonic()
        while True:
            value = condition()
            if value:
                return value
            if is_over(begun, timeout):
                told = what() if callable(what) else what
                raise AssertionError("not within %d s: %s" % (timeout, told))
            time.sleep(0.01)

    def wait_flowing(self, driver, count):
        """More than count messages have been received; a driver that ended instead is told with
        what it wrote."""
        received = self.path("received")
        self.wait_until("messages", lambda: driver.child.poll() is not None or
                        (os.path.exists(received) and os.path.getsize(received) > count * 8))
        if driver.child.poll() is not None:
            driver.wait()
            raise AssertionError("the driver has ended already:\n" + driver.stderr)

    def wait_hosts(self, count):
        return self.wait_until(
            "%d hosts" % count, lambda: len(self.hosts()) == count and self.hosts()
        )

    def assert_nothing_left(self, keep=()):
        """No process but `keep`, no file in the scratch folder, no segment of this test in
        /dev/shm."""
        alive = {p.pid for p in keep}
        self.wait_until(lambda: "all processes gone but %r: %r" % (sorted(alive), self.ours()),
                        lambda: set(self.ours()) <= alive)
        # A program that ends while ThreadSanitizer starts leaves a file of that.
        files = [f for f in os.listdir(self.scratch) if not f.startswith("tsan.rodata.")]
        self.assertEqual(files, [])
        left = self.shm() - self.shm_before
        self.assertEqual(left - self.mapped_by_others(left), set())

    @staticmethod
    def shm():
        """Segments in /dev/shm by the names that frag and UCX give; other programs have theirs
        there too."""
        return {n for n in os.listdir("/dev/shm") if n.startswith(("frag", "ucx_"))}

    def mapped_by_others(self, names):
        """Those of the segments that a process maps which is none of this test's: a test that runs
        beside this one."""
        mapped = set()
        for pid in self.all_processes() if names else ():
            try:
                with open("/proc/%s/maps" % pid) as f:
                    maps = f.read()
            except OSError:
                continue
            held = {n for n in names if "/dev/shm/" + n in maps}
            if held and int(pid) not in self.ours():
                mapped |= held
        return mapped

    def _end(self):
        for p in self.processes:
            if p.child.poll() is None:
                p.signal(signal.SIGCONT)
                p.kill()
        for p in self.processes:
            p.child.wait()
        left = self.ours()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def sequence(path):
    """The numbers that a truth operator wrote: one little-endian u64 a message."""
    with open(path, "rb") as f:
        data = f.read()
    return list(struct.unpack("<%dQ" % (len(data) // 8), data[:len(data) // 8 * 8]))


class _TapResult(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.verdicts = []

    def startTest(self, test):
        super().startTest(test)
        self.started = self._times()

    def stopTest(self, test):
        super().stopTest(test)
        took_s, of_a_core = (now - then for now, then in zip(self._times(), self.started))
        if took_s > 1:
            self.stream.writeln("  took %.1f s, %.1f s of a core: %s" % (took_s, of_a_core, self._name(test)))

    @staticmethod
    def _times():
        used = os.times()
        return time.monotonic(), sum(used[:4])

    def _name(self, test):
        return "%s::%s" % (os.path.basename(sys.argv[0]), test.id().split(".", 1)[-1])

    def addSuccess(self, test):
        super().addSuccess(test)
        self.verdicts.append("ok - " + self._name(test))

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.verdicts.append("not ok - " + self._name(test))

    def addError(self, test, err):
        super().addError(test, err)
        self.verdicts.append("not ok - " + self._name(test))

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        verdict = "not ok - " + self._name(test)
        if err is not None and verdict not in self.verdicts:
            self.verdicts.append(verdict)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.verdicts.append("ok - %s # SKIP %s" % (self._name(test), reason))


def main():
    """cluster.py FILE [CLASS.TEST...] runs tests of that file, by default in this folder, and
    writes their verdicts where the runner wants them. The file's begin() comes before them."""
    folder, file = os.path.split(sys.argv.pop(1))
    sys.path.insert(0, os.path.abspath(folder or os.path.dirname(__file__)))
    sys.argv[0] = file.removesuffix(".py")
    module = importlib.import_module(sys.argv[0])
    if hasattr(module, "begin"):
        module.begin()
    program = unittest.main(module=module, exit=False, verbosity=2,
                            testRunner=unittest.TextTestRunner(resultclass=_TapResult, verbosity=2))
    tap = os.environ.get("FRAG_TEST_TAP")
    if tap:
        with open(tap, "w") as f:
            f.writelines(v + "\n" for v in program.result.verdicts)
    sys.exit(not program.result.wasSuccessful())


if __name__ == "__main__":
    # Tests are compiled once for all runs of this build.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = os.path.join(BUILD, "pycache")
    importlib.import_module("cluster").main()
