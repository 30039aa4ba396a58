# SPDX-License-Identifier: Apache-2.0
"""What the terminals of a driver and its workers show."""
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import sys
import termios

import cluster

APP = """
frag: 1
application: stream
arguments:
  count: {default: "10"}
fragments:
  fragment1:
    operators:
      tx:
        type: ping_tx
        conditions: [{type: count, count: "${count}"}, {type: periodic, recess_period: 1ms}]
  fragment2:
    operators:
      rx: {type: ping_rx}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""
TALK = """
frag: 1
application: talk
extensions: [libtalker.so]
operators:
  talker: {type: talker, parameters: {lines: 1, ticks: 100, pause: 10ms}}
"""
FOR_EVER = ("--count", "100000000")


class Workers(cluster.ClusterTest):
    app_text = APP

    def launch(self, *app_args):
        self.d = self.driver(self.app, app_args=app_args)
        self.a = self.worker("--name", "a", fragments="fragment1")
        self.b = self.worker("--name", "b", fragments="fragment2")

    def assert_clean(self, *processes):
        """Nothing that they logged looks like an error."""
        for process in processes:
            self.assertNotRegex("\n".join(cluster.own_lines(process.stderr)),
                                r"Z (warn|error)|crash|lost|peer closed")

    def test_they_show_what_they_run_and_how_it_ended(self):
        self.launch()
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        for worker, fragment in ((self.a, "fragment1"), (self.b, "fragment2")):
            worker.wait_line(r"Z info  worker stream/%s: runs %s \(fraghost \d+\)$" % (fragment, fragment))
            worker.wait_line(r"Z info  worker stream/%s: %s ended: done$" % (fragment, fragment))
        self.assert_clean(self.d, self.a, self.b)

    def test_they_show_that_a_person_stopped_it(self):
        self.launch(*FOR_EVER)
        self.b.wait_line("Rx message value: 3$")
        self.d.signal(signal.SIGINT)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.a.wait_line(r"worker stream/fragment1: fragment1 ended: (done|stopped)$")
        self.assert_clean(self.d, self.a, self.b)

    def test_they_show_why_it_failed_elsewhere(self):
        self.launch(*FOR_EVER)
        self.b.wait_line("Rx message value: 3$")
        self.b.kill()
        self.assertEqual(self.d.wait(), 1)
        self.a.wait_line(r"worker stream/fragment1: fragment1 was ended by the driver: worker b at \S+, which ran fragment2, was lost")

    def test_the_first_driver_is_not_one_to_come_back_to(self):
        port = "127.0.0.1:%d" % self.free_port()
        a = self.worker("--name", "a", address=port)
        for times, greeting in ((1, "attached to"), (2, "back at")):
            self.wait_until("it waits", lambda times=times: a.stderr.count("waiting for the driver at %s" % port) == times)
            d = self.driver(self.app, address=port)
            a.wait_line("Z info  worker: %s the driver at %s as a$" % (greeting, port))
            self.assertEqual(d.wait(), 0, d.stderr)

    def test_a_worker_without_work_leaves_in_peace(self):
        d = self.driver(self.app)
        b = self.worker("--name", "b", fragments="fragment2")
        d.wait_line("worker b joined")
        b.signal(signal.SIGTERM)
        self.assertEqual(b.wait(), 0)
        d.wait_line(r"Z info  driver: worker b left: it was told to end$")
        self.assert_clean(d, b)

    def test_a_worker_that_leaves_its_work_is_the_one_cause(self):
        self.launch(*FOR_EVER)
        self.b.wait_line("Rx message value: 3$")
        self.b.signal(signal.SIGTERM)
        self.assertEqual(self.b.wait(), 0)
        self.assertEqual(self.d.wait(), 1)
        self.b.wait_line(r"Z info  worker stream/fragment2: fragment2 was ended: this worker was told to end$")
        self.assert_clean(self.b)
        why = "worker b left while it ran fragment2: it was told to end"
        self.d.wait_line(r"Z error driver stream: %s$" % why)
        self.assertNotIn("Rx message", self.d.stderr)
        self.assertEqual(self.d.stderr.count(" error "), 1, self.d.stderr)
        self.a.wait_line(r"Z info  worker stream/fragment1: fragment1 was ended by the driver: %s$" % why)


class Operators(cluster.ClusterTest):
    """What operators print and log is their output."""

    def setUp(self):
        super().setUp()
        if cluster.REPORTS:  # not below the app folder, of which workerd would warn among the lines
            self.env["FRAG_ALLOW_WRITE"] = ":".join(cluster.REPORTS)

    LINE = r"\d{4}-\S+Z info  op stream/fragment2\.rx: Rx message value: \d+"

    def lines(self, *command, **env):
        process = self.start(*command, env=env)
        self.assertEqual(process.wait(), 0, process.stderr)
        return cluster.own_lines(process.stderr)

    def test_quiet_leaves_it_alone(self):
        app, talk = self.write("app.yaml", APP), self.write("talk.yaml", TALK)
        for flags in (("-q",), ("-qqq",), ("-q", "--in-process"), ("-q", "--workers", "2")):
            with self.subTest(flags=flags):
                lines = self.lines("fragctl", "run", *flags, app)
                self.assertEqual(len(lines), 10, lines)
                for line in lines:
                    self.assertRegex(line, "^%s$" % self.LINE)
        lines = self.lines("fragctl", "run", "-q", talk)
        self.assertEqual(len(lines), 100, lines)
        for line in lines:
            self.assertRegex(line, r"^talk\.talker: line \d+ ")

    def test_the_environment_silences_what_they_log(self):
        app = self.write("app.yaml", APP)
        self.assertEqual(self.lines("fragctl", "run", "-q", app, FRAG_LOG_LEVEL="warn"), [])


class Strangers(cluster.ClusterTest):
    """The other end of a connection is not a program of frag."""

    app_text = APP

    def listener(self):
        s = socket.create_server(("127.0.0.1", 0))
        s.settimeout(cluster.PATIENCE_S)
        self.addCleanup(s.close)
        return s, "127.0.0.1:%d" % s.getsockname()[1]

    def test_a_driver_names_what_a_browser_sent(self):
        d = self.driver(self.app)
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as s:
            s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            here = "%s:%d" % s.getsockname()
            d.wait_line(r'Z warn  driver: closed the connection of %s: it sent "GET / HTTP/1.1", so it is not a frag '
                        r'program$' % here)

    def test_a_driver_names_who_says_nothing(self):
        d = self.driver(self.app)
        host, port = self.address.rsplit(":", 1)
        with socket.create_connection((host, int(port))):
            d.wait_line(r"Z warn  driver: closed the connection of 127\S+: the peer did not say who it is in time$")

    def test_a_driver_ignores_who_only_looks(self):
        """As the health checks of load balancers do."""
        d = self.driver(self.app)
        host, port = self.address.rsplit(":", 1)
        for _ in range(3):
            socket.create_connection((host, int(port))).close()
        self.worker("--name", "a")
        d.wait_line("worker a joined")
        self.assertNotIn(" warn ", d.stderr)

    def test_a_worker_names_what_another_server_sent(self):
        s, address = self.listener()
        w = self.worker(address=address)
        peer, _ = s.accept()
        with peer:
            peer.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n")
            w.wait_line(r'worker: waiting for the driver at %s: it sent "SSH-2.0-OpenSSH_9.2p1", so it is not a frag '
                        r'program; does a driverd listen there\?$' % address)

    def test_a_worker_doubts_a_server_that_does_not_answer(self):
        s, address = self.listener()
        w = self.worker(address=address, env={"FRAG_BEAT_MS": "100", "FRAG_DEAD_MS": "400"})
        peer, _ = s.accept()
        with peer:
            w.wait_line(r"worker: waiting for the driver at %s: it has not been heard for 0.4 s; does a driverd listen "
                        r"there\?$" % address)


class OneTerminal(cluster.ClusterTest):
    """Progress is written over; whatever else comes to the same terminal stands on lines of its
    own."""

    def setUp(self):
        super().setUp()
        if cluster.REPORTS:  # not below the app folder, of which workerd would warn among the lines
            self.env["FRAG_ALLOW_WRITE"] = ":".join(cluster.REPORTS)

    def shown(self, *command, columns=200, code=0):
        """The rows of a terminal on which the command ran, and all that was written to it."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 25, columns, 0, 0))
        process = self.start(*command, env={"TERM": "xterm"}, pass_fds=(slave,),
                             prefix=("/bin/sh", "-c", 'exec "$0" "$@" >&%d 2>&%d' % (slave, slave)))
        os.close(slave)
        written = b""
        while True:
            try:
                written += os.read(master, 65536)
            except OSError:  # the last of its writers has ended
                break
        self.assertEqual(process.wait(), code, written)
        return self.rows(written.decode(), columns), written.decode()

    @staticmethod
    def rows(text, columns):
        rows, column = [""], 0
        for part in re.findall(r"\x1b\[K|.", text, re.DOTALL):
            if part == "\r":
                column = 0
            elif part not in ("\n", "\x1b[K") and column == columns:
                rows.append(part)
                column = 1
            elif part == "\n":
                rows.append("")
            elif part == "\x1b[K":  # in a full row the cursor stands on the last character
                rows[-1] = rows[-1][:min(column, columns - 1)]
            else:
                rows[-1] = rows[-1][:column].ljust(column) + part + rows[-1][column + 1:]
                column += 1
        return rows

    def test_a_closed_one_stops_the_run_in_order(self):
        app = self.write("app.yaml", APP)
        owner = "import fcntl, os, sys, termios; os.setsid(); fd = int(sys.argv[1]); " \
                "fcntl.ioctl(fd, termios.TIOCSCTTY, 0); [os.dup2(fd, n) for n in range(3)]; " \
                "os.execv(sys.argv[2], sys.argv[2:])"
        for flags in ((), ("--in-process",), ("--workers", "2")):
            master, slave = pty.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 25, 200, 0, 0))
            told = self.path("summary" + "".join(flags))
            run = self.start("fragctl", "run", "--summary", told, *flags, app, "--", *FOR_EVER, env={"TERM": "xterm"},
                             pass_fds=(slave,), prefix=(sys.executable, "-c", owner, str(slave)))
            os.close(slave)
            seen = b""
            while not re.search(rb"Rx message value: 5", seen):
                seen += os.read(master, 65536)
            os.close(master)
            self.assertEqual(run.wait(), 0, flags)
            with open(told, encoding="utf-8") as f:
                summary = json.load(f)
            self.assertEqual(summary["result"], "stopped")
            self.assertGreater(summary["flows"][0]["delivered"], 0)
            self.assertEqual(summary["flows"][0]["lost"], 0)
        self.assert_nothing_left()

    def test_who_stops_a_pipeline_misses_no_summary(self):
        app = self.write("app.yaml", APP)
        for result, code, args in (("stopped", 0, FOR_EVER), ("done", 3, ())):
            ours, theirs = os.pipe()
            os.close(ours)
            run = self.start("fragctl", "run", app, "--", *args, pass_fds=(theirs,),
                             prefix=("/bin/sh", "-c", 'exec "$0" "$@" >&%d' % theirs))
            os.close(theirs)
            run.wait_line("Rx message value: 1")
            if result == "stopped":
                run.signal(signal.SIGTERM)
            self.assertEqual(run.wait(), code, run.stderr)
            self.assertEqual("cannot write the summary" in run.stderr, code == 3, run.stderr)

    def assert_apart(self, rows, written, line):
        self.assertRegex(written, r"running [\d.]+ s, \d+ messages")
        self.assertFalse([r for r in rows if "running" in r], "progress goes when it is over")
        for row in rows:
            self.assertRegex(row, r"^(%s|\d{4}-\S+Z (info |warn ) [^\x1b]*|\w+: done in .*|flow .*|\w+\.\S+ -> .*|)$" %
                             line)

    def test_what_operators_print_and_progress(self):
        app = self.write("app.yaml", TALK)
        rows, written = self.shown("fragctl", "run", app)
        self.assert_apart(rows, written, r"talk\.talker: line \d+ of the talker, which has much to say")
        self.assertGreaterEqual(sum(r.startswith("talk.talker: ") for r in rows), 100)

    def test_a_line_that_fills_its_row_is_whole(self):
        lines = ["talk.talker: line %d of the talker, which has much to say" % n for n in range(1, 6)]
        app = self.write("app.yaml", TALK.replace("ticks: 100", "ticks: 5"))
        rows, _ = self.shown("fragctl", "run", app, columns=len(lines[0]))
        self.assertEqual([r for r in rows if r.startswith("talk.")], lines)

    def test_progress_is_cut_to_one_row(self):
        """What wraps could not be written over."""
        fragments = "".join("  fragment%d: {operators: {rx: {type: ping_rx}}}\n" % i for i in range(30))
        app = self.write("app.yaml", "frag: 1\napplication: many\nfragments:\n" + fragments)
        _, written = self.shown("driverd", "--address", "127.0.0.1:0", "--app", app, "--start-timeout", "1500ms",
                                columns=50, code=4)
        progress = re.findall(r"(waiting for [^\r\n\x1b]*)\x1b\[K\r(?!\n)", written)
        self.assertTrue(progress, written)
        for text in progress:
            self.assertLess(len(text), 50)

    def test_the_logs_of_workers_and_the_progress_of_their_driver(self):
        app = self.write("app.yaml", APP.replace("1ms", "10ms"))
        rows, written = self.shown("fragctl", "run", "--workers", "2", app, "--", "--count", "220")
        self.assert_apart(rows, written, "nothing else")
        self.assertEqual(sum("Rx message" in r for r in rows), 220)
