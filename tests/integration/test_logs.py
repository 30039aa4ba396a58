# SPDX-License-Identifier: Apache-2.0
"""Nothing that is logged or printed makes a program wait for its reader: a pager that is paused, a
terminal that is stopped, a collector that is stuck. What is lost meanwhile is counted.
"""
import fcntl
import json
import os
import pty
import re
import signal
import termios
import threading
import time

import cluster

APP = """
frag: 1
application: talk
arguments:
  lines: {default: "1"}
  ticks: {default: "1"}
  pause: {default: "0"}
  raw: {default: ""}
extensions: [libtalker.so]
operators:
  talker: {type: talker, parameters: {lines: "${lines}", ticks: "${ticks}", pause: "${pause}", raw: "${raw}"}}
"""
# More than a pipe and every buffer on the way to it can hold.
MANY = 20000
PIPE_BYTES = 65536


class Pipe:
    """A pipe that a program inherits as its stdout or stderr, and that is read when the test says."""

    def __init__(self, test, filled=False):
        self.reader, self.writer = os.pipe()
        test.addCleanup(os.close, self.reader)
        self.text = b""
        if filled:
            os.set_blocking(self.writer, False)
            try:
                while True:
                    os.write(self.writer, b"." * 4096)
            except BlockingIOError:
                pass
            os.set_blocking(self.writer, True)

    def behind(self, number):
        """The words in front of a command whose descriptor `number` is to be this pipe."""
        return ("/bin/sh", "-c", 'exec "$0" "$@" %d>&%d %d>&-' % (number, self.writer, self.writer))

    def is_full(self):
        unread = fcntl.ioctl(self.reader, termios.FIONREAD, b"\0\0\0\0")
        return int.from_bytes(unread, "little") > PIPE_BYTES - 8192

    def started(self):
        """The programs have it: its end comes with theirs."""
        os.close(self.writer)
        self.writer = -1

    def read(self, pause_s=0):
        """Reads to the end."""
        while True:
            some = os.read(self.reader, 4096)
            if not some:
                return self.text.decode()
            self.text += some
            time.sleep(pause_s)

    def read_in_background(self):
        thread = threading.Thread(target=self.read, daemon=True)
        thread.start()
        return thread


class Logs(cluster.ClusterTest):
    app_text = APP

    def start_behind(self, pipe, number, program, *args, env=None):
        p = self.start(program, *args, env=env, prefix=pipe.behind(number), pass_fds=(pipe.writer,))
        pipe.started()
        return p

    def talk(self, lines=MANY, ticks=1, pause="0"):
        return ("--lines", lines, "--ticks", ticks, "--pause", pause)

    def numbers(self, text):
        return [int(n) for n in re.findall(r"talk.talker: line (\d+) of the talker, which has much to say\n", text)]

    def dropped(self, text):
        return sum(int(n) for n in re.findall(r" (\d+) lines? w(?:as|ere) dropped: ", text))

    def assert_accounted(self, text, printed):
        """Every line that was printed was written, or is counted."""
        numbers = self.numbers(text)
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreaterEqual(len(numbers) + self.dropped(text), printed, text[-2000:])
        self.assertLess(len(numbers), printed)


class WorkerThatIsNotRead(Logs):
    def launch(self, *flags, **talk):
        self.d = self.driver(self.app, "--output", "json", app_args=self.talk(**talk))
        self.pipe = Pipe(self)
        self.w = self.start_behind(self.pipe, 2, "workerd", "--address", self.address, *flags)

    def test_the_application_runs_to_its_end(self):
        self.launch("--once")
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assertEqual(self.summary(self.d)["result"], "done")
        self.assertEqual(self.w.wait(), 0)
        self.assert_nothing_left()

    def test_the_count_comes_when_somebody_reads_again(self):
        self.launch()
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        reader = self.pipe.read_in_background()
        self.wait_until("the count", lambda: self.dropped(self.pipe.text.decode()))
        self.w.signal(signal.SIGTERM)
        self.assertEqual(self.w.wait(), 0)
        reader.join(cluster.PATIENCE_S)
        self.assert_accounted(self.pipe.text.decode(), MANY)
        self.assert_nothing_left()

    def test_sigterm_ends_it_in_order(self):
        self.launch(lines=100, ticks=0, pause="1ms")
        self.wait_until("a full pipe", self.pipe.is_full)
        self.w.signal(signal.SIGTERM)
        self.assertEqual(self.w.wait(10 * cluster.TIMES_SLOWER * cluster.busy()), 0)
        self.assertEqual(self.d.wait(), 1, self.d.stderr)
        self.assert_nothing_left()

    def test_a_slow_reader_loses_nothing(self):
        self.launch("--once", lines=5000)
        text = self.pipe.read(pause_s=0.002)
        self.assertEqual(self.numbers(text), list(range(1, 5001)))
        self.assertEqual(self.dropped(text), 0)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assertEqual(self.w.wait(), 0)
        self.assert_nothing_left()


class HostOfASilentWorker(Logs):
    def test_it_ends_while_it_prints(self):
        d = self.driver(self.app, app_args=self.talk(lines=100, ticks=0, pause="1ms"))
        w = self.worker()
        w.wait_line("line 1000 ")
        w.signal(signal.SIGSTOP)
        stopped = time.monotonic()
        self.wait_until("the end of the host", lambda: not self.hosts())
        self.assertLess(time.monotonic() - stopped, 10 * cluster.times_slower())
        w.signal(signal.SIGCONT)
        self.assertEqual(d.wait(), 1, d.stderr)
        w.signal(signal.SIGTERM)
        self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()


class StoppedTerminal(Logs):
    def test_an_application_runs_on_while_its_terminal_is_stopped(self):
        """As Ctrl-S does it."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        termios.tcflow(slave, termios.TCOOFF)
        run = self.start("fragctl", "run", self.app, "--output", "json", "--", *self.talk(lines=2000),
                         prefix=("/bin/sh", "-c", 'exec "$0" "$@" 2>&%d' % slave), pass_fds=(slave,))
        self.assertEqual(run.wait(), 0)
        self.assertEqual(self.summary(run)["result"], "done")
        termios.tcflow(slave, termios.TCOON)
        os.close(slave)
        self.assert_nothing_left()


class ResultThatIsNotRead(Logs):
    def launch(self):
        self.pipe = Pipe(self, filled=True)
        self.port = self.free_port()
        self.d = self.start_behind(self.pipe, 1, "driverd", "--address", "127.0.0.1:%d" % self.port,
                                   "--output", "json", "--app", self.app)
        self.w = self.worker("--once", address="127.0.0.1:%d" % self.port)
        # The workers need not wait for who reads the driver's result.
        self.assertEqual(self.w.wait(), 0, self.w.stderr)
        self.assertIsNone(self.d.child.poll())

    def end_by(self, process, number):
        """A signal that comes before the program waits for its reader asks for an end in order."""
        self.wait_until("the end of it", lambda: process.child.poll() is not None or
                        process.signal(number), timeout=cluster.PATIENCE_S)
        self.assertEqual(process.wait(), 3, process.stderr)
        self.assertIn("the summary on stdout is incomplete", process.stderr)

    def test_it_is_complete_once_it_is_read(self):
        self.launch()
        text = self.pipe.read().lstrip(".")
        self.assertEqual(json.loads(text)["result"], "done")
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assert_nothing_left()

    def test_a_signal_ends_the_driver(self):
        self.launch()
        self.end_by(self.d, signal.SIGTERM)
        self.assert_nothing_left()

    def test_a_signal_ends_fragctl(self):
        pipe = Pipe(self, filled=True)
        run = self.start_behind(pipe, 1, "fragctl", "run", self.app)
        run.wait_line("line 1 ")
        self.wait_until("the end of the host", lambda: not self.hosts() and len(self.ours()) == 1)
        self.end_by(run, signal.SIGINT)
        self.assert_nothing_left()


class ForgedLines(Logs):
    """What an operator writes to a descriptor of its host bears the host's name, and moves no cursor."""

    RAW = "2026-11-27T03:24:30.123Z error driver talk: forged\nplain\n\x1b[2J\x1b]0;title\x07\n"
    SHOWN = (r"(?m)^2026-11-27T03:24:30\.123Z error host talk/talk: driver talk: forged$", r"(?m)^talk/talk: plain$",
             r"(?m)^talk/talk: \\x1b\[2J\\x1b\]0;title\\x07$")

    def check(self, text):
        for shown in self.SHOWN:
            self.assertRegex(text, shown)
        self.assertNotIn("\x1b", text)

    def test_of_a_worker(self):
        d = self.driver(self.app, app_args=("--raw", self.RAW))
        w = self.worker("--once")
        self.assertEqual((d.wait(), w.wait()), (0, 0), w.stderr)
        self.check(w.stderr)

    def test_of_fragctl_run(self):
        run = self.start("fragctl", "run", self.app, "--", "--raw", self.RAW)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertRegex(run.stderr, self.SHOWN[0])
        self.assertRegex(run.stderr, r"(?m)^plain$")  # a person's own output is as it was written
        self.assertRegex(run.stderr, r"(?m)^\\x1b\[2J\\x1b\]0;title\\x07$")
        self.assertNotIn("\x1b", run.stderr)

    def test_a_flood_is_limited_in_rate(self):
        begun = time.monotonic()
        d = self.driver(self.app, app_args=("--lines", "70000"))
        w = self.worker("--once")
        self.assertEqual((d.wait(), w.wait()), (0, 0))
        self.assertRegex(w.stderr, r"warn  worker talk/talk: \d+ lines of its host are left out: it writes more than 1000 a second")
        # Those of 30 s at once, then as many as its time allows.
        most = 30000 + 1000 * (time.monotonic() - begun)
        self.assertLess(w.stderr.count(" of the talker"), most)


class ClosedStandardDescriptors(Logs):
    """As cron jobs, supervisors and `>&-` start programs."""

    def without(self, fds):
        return ("/bin/sh", "-c", 'exec "$0" "$@" ' + " ".join("%d>&-" % fd for fd in fds))

    def test_a_driver_and_a_worker(self):
        for fds in ((0,), (1,), (2,), (0, 1, 2)):
            with self.subTest(closed=fds):
                address = "127.0.0.1:%d" % self.free_port()
                d = self.start("driverd", "--address", address, "--app", self.app, "--output", "json",
                               prefix=self.without(fds))
                w = self.worker("--once", address=address, prefix=self.without(fds))
                # A result that nobody can get is reported.
                self.assertEqual(d.wait(), 3 if 1 in fds else 0, d.stderr)
                self.assertEqual(w.wait(), 0, w.stderr)
                if 1 not in fds:
                    self.assertEqual(self.summary(d)["result"], "done")
                elif 2 not in fds:
                    self.assertIn("cannot write the summary to stdout: Bad file descriptor", d.stderr)
                if 2 not in fds:
                    self.assertIn("line 1 of", w.stderr)
                self.assert_nothing_left()

    def test_fragctl_with_its_host_and_with_daemons(self):
        for flags in ((), ("--in-process",), ("--workers", "1")):
            for fds in ((0,), (1,), (2,), (0, 1, 2)):
                with self.subTest(closed=fds, flags=flags):
                    run = self.start("fragctl", "run", *flags, self.app, prefix=self.without(fds))
                    self.assertEqual(run.wait(), 3 if 1 in fds else 0, run.stderr)
                    self.assert_nothing_left()
