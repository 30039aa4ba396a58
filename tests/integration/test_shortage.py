# SPDX-License-Identifier: Apache-2.0
"""Where something runs out: descriptors, the disk, memory, a folder that can be written. Somebody
says so, nothing hangs or spins, and what comes free is used again.
"""
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import unittest

import cluster
import control

FLOWS = 120
APP = """
frag: 1
application: stream
arguments:
  count: {default: "100"}
  pause: {default: "0"}
extensions: [libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", pause: "${pause}"}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""
NO_NAMESPACES = "no mount namespaces here: "


def limited(files):
    """The words in front of a command that may have so many files open."""
    return ("/bin/sh", "-c", 'ulimit -n %d && exec "$0" "$@"' % files)


def on_full_disk(folder):
    """The words in front of a command for which folder is a disk with a page or two left."""
    return ("unshare", "--map-root-user", "--mount", "sh", "-c",
            'mount -t tmpfs -o size=64k frag "$0" && head -c 57344 /dev/zero >"$0/rest" && exec "$@"', folder)


class Fewest(cluster.ClusterTest):
    APP = os.path.join(cluster.TOP, "examples", "ping_distributed", "app.yaml")

    def test_with_too_few_descriptors_to_begin_programs_say_so(self):
        """libuv would abort the process; a little more, and it would wait for ever."""
        for files in (4, 5, 7, 12, 22):
            for command in (("driverd", "--address", "127.0.0.1:0"), ("workerd", "--address", "127.0.0.1:1"),
                            ("fragctl", "run", self.APP), ("fragctl", "run", "--in-process", self.APP),
                            ("fragctl", "list", "--address", "127.0.0.1:1")):
                p = self.start(*command, prefix=limited(files))
                self.assertEqual(p.wait(), 3, "%s with %d files: %s" % (command, files, p.stderr))
                self.assertIn("Too many open files (raise the limit: ulimit -n)", p.stderr)

    def test_the_driver_of_more_workers_than_its_descriptors_is_not_waited_for(self):
        lines = ["frag: 1", "application: wide", "fragments:"]
        for i in range(12):
            lines.append("  f%d: {operators: {tx: {type: ping_tx, conditions: [{type: count, count: 3}]}}}" % i)
            lines.append("  r%d: {operators: {rx: {type: ping_rx}}}" % i)
        lines += ["flows:"] + ["  - f%d.tx.out -> r%d.rx.in" % (i, i) for i in range(12)]
        app = self.write("wide.yaml", "\n".join(lines) + "\n")
        p = self.start("fragctl", "run", "--workers", "12", app, prefix=limited(35))
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assertIn("a driver of 12 workers needs 36 open files, and may have 35; raise the limit (ulimit -n), or give "
                      "fewer --workers", p.stderr)
        p = self.start("fragctl", "run", "--workers", "12", app, prefix=limited(64))
        self.assertEqual(p.wait(), 0, p.stderr)

    def test_a_run_with_few_descriptors_ends_or_says_why_it_cannot(self):
        app = self.APP
        codes = []
        for files in (*range(12, 34, 3), 64):
            p = self.start("fragctl", "run", "--workers", "2", app, prefix=limited(files))
            codes.append(p.wait())
            if codes[-1] != 0:
                self.assertEqual(codes[-1], 3, "%d files: %s" % (files, p.stderr))
                self.assertRegex(p.stderr, r"Too many open files \(raise the limit: ulimit -n\)|a driver of 2 workers needs")
        self.assertEqual((codes[0], codes[-1]), (3, 0), codes)


class Refused(cluster.ClusterTest):
    """A container, or a limit, refuses a system call."""
    RUN = ("fragctl", "run", os.path.join(cluster.TOP, "examples", "ping_distributed", "app.yaml"))

    def lacking(self, what, *command):
        p = self.start(*command, prefix=(sys.executable, os.path.join(cluster.TOP, "tests", "integration", "lacking.py"), what))
        self.assertEqual(p.wait(), 3, p.stderr)
        return p.stderr

    def test_what_nothing_runs_without_is_named(self):
        for call, error in (("memfd_create", "EPERM"), ("pidfd_open", "ENOSYS")):
            for command in (self.RUN, (*self.RUN, "--workers", "2"), ("workerd", "--address", "127.0.0.1:1")):
                self.assertRegex(self.lacking("%s=%s" % (call, error), *command),
                                 "the system refuses %s, without which nothing runs: .*; let its container allow this "
                                 "system call" % call)
        self.assertIn("refuses epoll_create1,", self.lacking("epoll_create1=EPERM", "driverd", "--address", "127.0.0.1:0"))

    def test_without_dev(self):
        without = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs frag /dev && exec "$@"', "sh")
        probe = self.start("/bin/true", prefix=without)
        if probe.wait() != 0:
            self.skipTest(NO_NAMESPACES + probe.stderr)
        for command in (self.RUN, (*self.RUN, "--workers", "2"), ("workerd", "--address", "127.0.0.1:1")):
            p = self.start(*command, prefix=without)
            self.assertEqual(p.wait(), 3, p.stderr)
            self.assertIn("the system refuses to open /dev/null, without which nothing runs: No such file or directory; "
                          "give the container a /dev", p.stderr)
        p = self.start("fragctl", "doctor", prefix=without)
        p.wait()
        self.assertRegex(p.stdout, "system_calls +wrong +the system refuses to open /dev/null")

    @unittest.skipIf({"ASAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ), "sanitizers start processes of their own")
    def test_a_limit_of_processes_is_named(self):
        for command in (self.RUN, (*self.RUN, "--workers", "2"), (*self.RUN, "--in-process"), ("fragctl", "validate", self.RUN[2])):
            told = self.lacking("clone=EAGAIN", *command)
            self.assertRegex(told, r"cannot start a (process|host): .*Resource temporarily unavailable; .*processes and "
                             r"threads.*\(\S.*\d+")
            self.assertNotIn("called exit", told)

    def test_a_container_without_users_runs_it(self):
        passwd = ("unshare", "--map-root-user", "--mount", "sh", "-c",
                  'mount --bind "$0" /etc/passwd && mount --bind "$0" /etc/nsswitch.conf && exec "$@"',
                  self.write("passwd", ""))
        probe = self.start("/bin/true", prefix=passwd)
        if probe.wait() != 0:
            self.skipTest(NO_NAMESPACES + probe.stderr)
        self.env.pop("FRAG_HOST_USER", None)
        p = self.start(*self.RUN, "--workers", "2", prefix=passwd)
        self.assertEqual(p.wait(), 0, p.stderr)

    def test_the_doctor_finds_it(self):
        p = self.start("fragctl", "doctor", prefix=(sys.executable, os.path.join(cluster.TOP, "tests", "integration", "lacking.py"),
                                                    "memfd_create,pidfd_open=EPERM"))
        p.wait()
        self.assertRegex(p.stdout, "system_calls +wrong +the system refuses memfd_create, pidfd_open")


class Short(cluster.ClusterTest):
    app_text = APP

    def workers(self, *flags, prefix=(), env=None):
        return [self.worker(*flags, fragments=f, prefix=prefix, env=env) for f in ("fragment1", "fragment2")]

    def run_to_the_end(self, driver, workers):
        self.assert_done(driver, workers)
        summary = self.summary(driver)
        self.assertEqual(summary["result"], "done")
        self.assert_balanced(summary)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 101)))
        self.assert_nothing_left()

    def cpu_s(self, pid):
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Descriptors(Short):
    LIMIT = 64

    def stranger(self, words=b""):
        host, port = self.address.split(":")
        s = socket.create_connection((host, int(port)), cluster.PATIENCE_S)
        self.addCleanup(s.close)
        s.sendall(words)
        return s

    def test_strangers_leave_room_for_workers(self):
        d = self.driver(self.app, "--output", "json", prefix=limited(self.LIMIT))
        d.wait_line(r"%d files may be open .*: at most %d connections" % (self.LIMIT, self.LIMIT // 4))
        strangers = [self.stranger() for _ in range(3 * self.LIMIT)]
        self.run_to_the_end(d, self.workers("--once"))
        del strangers

    def test_more_workers_than_descriptors(self):
        d = self.driver(self.app, "--output", "json", prefix=limited(self.LIMIT))
        taken = []
        for i in range(2 * self.LIMIT):
            s = self.stranger(control.hello(1, name=b"w%d" % i, fragments=(b"other",)))
            try:
                control.read_frame(s)
            except (AssertionError, EOFError, OSError):
                break
            taken.append(s)
        d.wait_line(r"closed the connection of 127\.0\.0\.1:\d+: this process may have %d files open" % self.LIMIT)
        self.assertGreater(len(taken), self.LIMIT // 2)
        workers = self.workers("--once")
        workers[0].wait_line("(?i)waiting for the driver")
        before = self.cpu_s(d.pid)
        try:
            d.wait(1)
        except AssertionError:
            pass
        self.assertLess(self.cpu_s(d.pid) - before, 0.5, "it spins")
        for s in taken:
            s.close()
        self.run_to_the_end(d, workers)

    def test_a_worker_without_descriptors_says_so_and_serves_when_it_has_some(self):
        port = self.free_port()
        d = self.driver(self.app, "--output", "json", address="127.0.0.1:%d" % port)
        first = self.worker(fragments="fragment1")
        first.wait_line("attached to the driver")
        _, hard = resource.prlimit(first.pid, resource.RLIMIT_NOFILE)
        open_files = len(os.listdir("/proc/%d/fd" % first.pid))
        resource.prlimit(first.pid, resource.RLIMIT_NOFILE, (open_files + 2, hard))
        second = self.worker(fragments="fragment2")
        self.assertEqual(d.wait(), 3, d.stderr)
        self.assertRegex(d.stderr, "cannot start .*: Too many open files")
        self.assert_balanced(self.summary(d))
        resource.prlimit(first.pid, resource.RLIMIT_NOFILE, (self.LIMIT, hard))
        d = self.driver(self.app, "--output", "json", address="127.0.0.1:%d" % port)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual(cluster.sequence(self.path("received")), list(range(1, 101)))
        for w in (first, second):
            w.signal(signal.SIGTERM)
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()

    def graph(self, fragments, flows, host=""):
        lines = ["frag: 1", "application: wide", "extensions: [libtruth.so]", "fragments:"]
        for i in range(fragments):
            lines += ["  f%d:" % i] + (["    host: h%d" % i] if host else []) + ["    operators:"]
            for k in range(flows):
                kind = "tx" if i % 2 == 0 else "rx"
                more = ", count: 5" if kind == "tx" else ""
                lines.append('      o%d: {type: truth_%s, parameters: {file: "%s/%s.%d.%d"%s}}' %
                             (k, kind, self.folder, kind, i // 2, k, more))
        lines.append("flows:")
        lines += ["  - f%d.o%d.out -> f%d.o%d.in" % (i, k, i + 1, k) for i in range(0, fragments, 2) for k in range(flows)]
        return self.write("wide.yaml", "\n".join(lines) + "\n")

    def test_more_edges_than_descriptors(self):
        d = self.driver(self.graph(2, FLOWS), "--output", "json", prefix=limited(self.LIMIT))
        workers = [self.worker("--once", fragments=f, prefix=limited(self.LIMIT)) for f in ("f0", "f1")]
        # Each operator of the test has a file open: what limits is their number, and they say it
        # themselves.
        self.assertEqual(d.wait(60), 1, d.stderr)
        self.assertRegex(d.stderr, r"f[01]\.o\d+: .*cannot write .*: Too many open files")
        for w in workers:
            w.wait()
        self.assert_balanced(self.summary(d))
        self.assert_nothing_left()

    def test_more_hosts_than_descriptors(self):
        d = self.driver(self.graph(30, 1, host="own"), "--output", "json")
        worker = self.worker("--once", prefix=limited(self.LIMIT))
        self.assertEqual(d.wait(60), 3, d.stderr)
        self.assertRegex(d.stderr, "cannot start .*: Too many open files")
        self.assertEqual(worker.wait(), 3, worker.stderr)
        self.assert_balanced(self.summary(d))
        self.assert_nothing_left()


class FullDisk(Short):
    def test_stdout_that_takes_no_summary(self):
        for output in ("table", "json"):
            full = ("/bin/sh", "-c", 'exec "$0" "$@" >/dev/full')
            d = self.driver(self.app, "--output", output, prefix=full)
            workers = self.workers("--once")
            self.assertEqual(d.wait(), 3, d.stderr)
            self.assertRegex(d.stderr, "cannot write the summary to stdout: No space left on device")
            self.assertEqual([w.wait() for w in workers], [0, 0])
            for where in ([], ["--in-process"]):
                p = self.start("fragctl", "run", self.app, "--output", output, *where, prefix=full)
                self.assertEqual(p.wait(), 3, p.stderr)
                self.assertRegex(p.stderr, "cannot write the summary to stdout: No space left on device")
        self.assert_nothing_left()

    def test_what_a_verb_prints_is_not_lost_in_silence(self):
        """Also what its child prints; a reader who has gone is no failure."""
        full, closed = (("/bin/sh", "-c", command) for command in ('exec "$0" "$@" >/dev/full', '"$0" "$@" | true; exit 0'))
        for args in (("help",), ("version",), ("list", "--help"), ("inspect",), ("inspect", "ping_tx", "-o", "json"), ("schema",),
                     ("describe", self.app), ("validate", self.app, "-o", "json"), ("graph", self.app),
                     ("run", "--print-yaml", "-e", "ping_tx count=1 ! ping_rx")):
            p = self.start("fragctl", *args, prefix=full)
            self.assertEqual((p.wait(), p.stderr), (3, "fragctl: cannot write to stdout: No space left on device; free space"), args)
            p = self.start("fragctl", *args, prefix=closed)
            self.assertEqual((p.wait(), p.stderr), (0, ""), args)
        p = self.start("fragctl", "validate", self.write("bad.yaml", "frag: 1\n"), prefix=full)
        self.assertEqual(p.wait(), 2, "its own failure comes first")
        p = self.start("fragctl", "version", prefix=("/bin/sh", "-c", 'exec "$0" "$@" >&-'))
        self.assertEqual((p.wait(), p.stderr), (3, "fragctl: cannot write to stdout: Bad file descriptor; open it, "
                                                "for example by >/dev/null"))

    def test_a_summary_file_that_takes_nothing(self):
        d = self.driver(self.app, "--output", "json", "--summary", "/dev/full")
        workers = self.workers("--once")
        self.assertEqual(d.wait(), 3, d.stderr)
        self.assertRegex(d.stderr, "cannot write the summary to /dev/full: No space left on device")
        self.assertEqual(self.summary(d)["result"], "done")
        self.assertEqual([w.wait() for w in workers], [0, 0])

    def test_a_log_that_takes_nothing_costs_nothing_else(self):
        full = ("/bin/sh", "-c", 'exec "$0" "$@" 2>/dev/full')
        port = self.free_port()
        d = self.start("driverd", "--address", "127.0.0.1:%d" % port, "--app", self.app, "--output", "json", prefix=full)
        self.address = "127.0.0.1:%d" % port
        self.run_to_the_end(d, self.workers("--once", prefix=full))

    def disk(self):
        folder = self.path("disk")
        os.mkdir(folder)
        probe = self.start("/bin/true", prefix=on_full_disk(folder))
        if probe.wait() != 0:
            self.skipTest(NO_NAMESPACES + probe.stderr)
        return folder

    def test_a_summary_on_a_full_disk_is_told_and_leaves_no_draft(self):
        disk = self.disk()
        # What is left is a page: a summary of many flows does not fit.
        lines = ["frag: 1", "application: wide", "extensions: [libtruth.so]", "operators:"]
        for k in range(60):
            lines.append('  t%d: {type: truth_tx, parameters: {file: "%s/sent", count: 1}}' % (k, self.folder))
            lines.append('  r%d: {type: truth_rx, parameters: {file: "%s/received"}}' % (k, self.folder))
        lines += ["flows:"] + ["  - t%d.out -> r%d.in" % (k, k) for k in range(60)]
        app = self.write("wide.yaml", "\n".join(lines) + "\n")
        prefix = on_full_disk(disk)
        prefix = prefix[:5] + (prefix[5].replace('exec "$@"', '"$@"; code=$?; ls "$0" >&2; exit $code'),) + prefix[6:]
        p = self.start("fragctl", "run", app, "--output", "json", "--summary", os.path.join(disk, "summary.json"),
                       prefix=prefix)
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assertRegex(p.stderr, "cannot write the summary to .*: No space left on device")
        self.assertEqual(p.stderr.splitlines()[-1], "rest")
        self.assertEqual(self.summary(p)["result"], "done")

    @unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")),
                         "built without FFmpeg's libraries")
    def test_a_recording_on_a_full_disk_fails_the_application(self):
        disk = self.disk()
        clip = os.path.join(cluster.TOP, "examples", "data", "pedestrians.mp4")
        for name in ("out.mp4", "out.mkv"):
            app = self.write("record.yaml", """
frag: 1
application: record
operators:
  replayer: {type: video_replayer, parameters: {path: "%s", realtime: false, count: 300}}
  recorder: {type: video_recorder, parameters: {path: "%s/%s", flush: 1ms}}
flows: [replayer.output -> recorder.input]
""" % (clip, disk, name))
            prefix = on_full_disk(disk)
            count = ("ffprobe -v error -count_frames -select_streams v -show_entries stream=nb_read_frames -of "
                     "default=nk=1:nw=1 \"$0\"/%s >&2" % name)
            prefix = prefix[:5] + (prefix[5].replace("64k", "512k").replace('exec "$@"', '"$@"; code=$?; %s; exit $code' % count),
                                   ) + prefix[6:]
            p = self.start("fragctl", "run", app, "--output", "json", prefix=prefix)
            self.assertEqual(p.wait(), 1, p.stderr)
            kept = re.search(r"record\.recorder: cannot write to %s/%s: No space left on device; it keeps the first (\d+) frames;"
                             % (disk, name), p.stderr)
            self.assertIsNotNone(kept, p.stderr)
            self.assertGreater(int(kept.group(1)), 0)
            self.assertEqual(p.stderr.split()[-1], kept.group(1))
            self.assert_balanced(self.summary(p))
        self.assert_nothing_left()


    @unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")),
                         "built without FFmpeg's libraries")
    def test_a_picture_on_a_full_disk_says_so(self):
        disk = self.disk()
        clip = os.path.join(cluster.TOP, "examples", "data", "pedestrians.mp4")
        app = self.write("picture.yaml", """
frag: 1
application: picture
operators:
  replayer: {type: video_replayer, parameters: {path: "%s", realtime: false, count: 1}}
  picture: {type: image_writer, parameters: {path: "%s/frame.png"}}
flows: [replayer.output -> picture.in]
""" % (clip, disk))
        p = self.start("fragctl", "run", app, prefix=on_full_disk(disk))
        self.assertEqual(p.wait(), 1, p.stderr)
        self.assertIn("cannot write the picture %s/frame.png: No space left on device" % disk, p.stderr)
        self.assertNotIn("libpng", p.stderr)


class ReadOnly(Short):
    def test_nothing_needs_a_folder_to_write_to(self):
        env = {name: "/proc/sys" for name in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
        d = self.start("driverd", "--address", "127.0.0.1:0", "--app", self.app, "--output", "json", env=env, cwd="/proc/sys")
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        self.run_to_the_end(d, self.workers("--once", env=env))
        os.unlink(self.path("received"))
        p = self.start("fragctl", "run", self.app, "--output", "json", env=env, cwd="/proc/sys")
        self.run_to_the_end(p, [])

    def test_a_summary_into_a_folder_that_cannot_be_written(self):
        d = self.start("driverd", "--app", self.app, "--summary", "/proc/sys/summary.json")
        self.assertEqual(d.wait(), 3, d.stderr)
        self.assertRegex(d.stderr, "cannot write the summary to /proc/sys/summary.json: .*; give --summary")


class CallSites(unittest.TestCase):
    def test_some_of_every_kind_fail_once(self):
        """make faults, in proof, is all of them."""
        command = [sys.executable, os.path.join(cluster.TOP, "tests", "faults", "faults.py"), "--sample", "10"]
        if "ASAN_OPTIONS" in os.environ:
            command.append("--sanitized")
        p = subprocess.run(command, capture_output=True, text=True, timeout=200)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
