# SPDX-License-Identifier: Apache-2.0
"""fragctl run: an application in one host and by daemons of its own, and what ends it; how verbs
are used."""
import json
import os
import re
import shutil
import signal
import sys

import cluster

APP = """
frag: 1
application: app
arguments:
  count: {default: "0", help: how many}
  tx_fail: {default: never}
  rx_fail: {default: never}
  watchdog: {default: 60s}
extensions: [libtruth.so]
fragments:
  fragment1:
    watchdog: "${watchdog}"
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: "${count}", pause: 1ms, fail: "${tx_fail}", fail_at: 50}}
  fragment2:
    watchdog: "${watchdog}"
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received", fail: "${rx_fail}", fail_at: 50}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""

LINES = """
frag: 1
application: app
extensions: [libtruth.so]
operators: {read: {type: truth_stdin}}
"""

# Runs a command in a process group of its own.
OWN_GROUP = "import os, sys; os.setpgid(0, 0); os.execvp(sys.argv[1], sys.argv[1:])"

BROKEN = """
frag: 1
application: app
extensions: [libgood.so]
operators:
  ones: {type: source, parameters: {inputs: 3, outputs: 4}}
  twice: {type: scale, parameters: {facter: 1}}
  sink: {type: sunk}
flows: [ones -> twice, twice.outt -> sink.in0]
"""


def errors_of(run):
    """What it wrote, but for the progress of a start that takes longer than a second."""
    return re.sub(r"(?m)^(waiting for \w+|preparing|wiring)\n", "", run.stderr)


class Fragctl(cluster.ClusterTest):
    app_text = APP

    def fragctl(self, *args, **kwargs):
        return self.start("fragctl", *args, **kwargs)

    def run_app(self, *args, app_args=(), prefix=()):
        return self.fragctl("run", self.app, "--output", "json", *args, "--", *app_args,
                            prefix=prefix)

    def wait_flowing(self):
        self.wait_until("messages", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) > 20 * 8)

    def sent_and_received(self):
        return cluster.sequence(self.path("sent")), cluster.sequence(self.path("received"))


class OneHost(Fragctl):
    def test_ctrl_c_stops_in_order_and_loses_nothing(self):
        run = self.run_app("--summary", self.path("summary.json"))
        self.wait_flowing()
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["result"], "stopped")
        self.assertEqual([f["state"] for f in summary["fragments"]], ["stopped", "stopped"])
        self.assert_balanced(summary)
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["delivered"], len(received))
        with open(self.path("summary.json")) as f:
            self.assertEqual(json.load(f), summary)
        self.assert_nothing_left()

    def test_a_signal_to_the_whole_process_group_stops_in_order(self):
        """As timeout(1) and a closing terminal send it: the host must leave the end to fragctl."""
        run = self.run_app(prefix=("setsid",))
        self.wait_flowing()
        os.killpg(run.pid, signal.SIGTERM)
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["result"], "stopped")
        self.assert_balanced(summary)
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assert_nothing_left()

    def states(self):
        """Of our processes: R, S, T ..."""
        found = []
        for pid in self.ours():
            try:
                with open("/proc/%d/stat" % pid) as f:
                    found.append(f.read().rsplit(")", 1)[1].split()[0])
            except OSError:
                pass
        return found

    def test_ctrl_z_stops_the_whole_run_and_it_goes_on(self):
        for mode, processes in (((), 2), (("--in-process",), 1), (("--workers", "2"), 6)):
            with self.subTest(mode=mode):
                # A process group that is not orphaned, as a shell makes it: SIGTSTP stops no other.
                run = self.run_app(*mode, prefix=(sys.executable, "-c", OWN_GROUP))
                self.wait_flowing()
                os.killpg(run.pid, signal.SIGTSTP)
                self.wait_until("all to stop", lambda: self.states() == ["T"] * processes)
                before = os.path.getsize(self.path("received"))
                os.killpg(run.pid, signal.SIGCONT)
                self.wait_until("more messages", lambda: os.path.getsize(self.path("received")) > before)
                run.signal(signal.SIGTERM)
                self.assertEqual(run.wait(), 0, run.stderr)
                summary = self.summary(run)
                self.assertEqual(summary["result"], "stopped")
                self.assert_balanced(summary)
                sent, received = self.sent_and_received()
                self.assertEqual(received, sent)
                self.assert_nothing_left()
                os.unlink(self.path("received"))
                os.unlink(self.path("sent"))

    def test_operators_read_stdin(self):
        app = self.write("lines.yaml", LINES)
        lines = self.write("lines", "one\ntwo\n")
        for mode, expected in (((), 8), (("--in-process",), 8), (("--workers", "1"), 0)):
            with self.subTest(mode=mode):
                run = self.fragctl("run", *mode, app, prefix=("sh", "-c", 'exec "$@" <%s' % lines, "sh"))
                self.assertEqual(run.wait(), 0, run.stderr)
                self.assertIn("app.read: stdin has %d bytes\n" % expected, run.stderr + "\n")

    def test_a_program_that_is_started_without_stdin(self):
        closed = ("sh", "-c", 'exec "$@" <&-', "sh")
        run = self.fragctl("run", self.write("lines.yaml", LINES), prefix=closed)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertIn("app.read: stdin has 0 bytes", run.stderr)
        driver = self.driver(self.app, app_args=("--count", "9"), prefix=closed)
        workers = [self.worker("--once", fragments=f, prefix=closed) for f in ("fragment1", "fragment2")]
        for program in (*workers, driver):
            self.assertEqual(program.wait(), 0, program.stderr)

    def test_second_ctrl_c_ends_a_compute_that_hangs(self):
        run = self.run_app(app_args=("--rx_fail", "hang"))
        self.wait_until("the hang", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) >= 49 * 8)
        run.signal(signal.SIGTERM)
        run.wait_line("stopping")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assert_balanced(self.summary(run))
        self.assert_nothing_left()

    def test_failing_operator(self):
        run = self.run_app(app_args=("--rx_fail", "error"))
        self.assertEqual(run.wait(), 1, run.stderr)
        summary = self.summary(run)
        self.assertEqual((summary["result"], summary["exit_code"]), ("failed", 1))
        self.assertRegex(summary["reason"], r"fragment2\.rx.*the test asked for an error at message 50")
        self.assertEqual(summary["fragments"][1]["state"], "failed")
        self.assertEqual(
            len([l for l in run.stderr.splitlines() if "the test asked" in l]), 1, run.stderr
        )
        self.assert_balanced(summary)
        self.assert_nothing_left()

    def test_hanging_operator_meets_its_watchdog(self):
        run = self.run_app(app_args=("--rx_fail", "hang", "--watchdog", "500ms"))
        self.assertEqual(run.wait(), 1, run.stderr)
        summary = self.summary(run)
        self.assertRegex(summary["reason"], r"fragment2\.rx")
        self.assert_balanced(summary)
        self.assert_nothing_left()

    def assert_crashed(self, run, reason, line):
        """It ends like any failed application, with the reason, and the host's last line is there once."""
        self.assertEqual(run.wait(), 1, run.stderr)
        summary = self.summary(run)
        self.assertEqual((summary["result"], summary["exit_code"]), ("failed", 1))
        self.assertRegex(summary["reason"], reason)
        self.assertEqual({f["state"] for f in summary["fragments"]}, {"failed"})
        self.assert_balanced(summary)
        self.assertEqual(len(re.findall(line, run.stderr, re.M)), 1, run.stderr)
        self.assertIn(summary["reason"], run.stderr)
        self.assert_nothing_left()
        return summary

    def test_crash_names_operator_tick_and_signal(self):
        run = self.run_app(app_args=("--rx_fail", "crash"))
        self.assert_crashed(run, r"^fraghost \d+ crashed in .*fragment2\.rx, tick 5\d: signal 11 \(SIGSEGV\)",
                            r"^fragment2\.rx: crashed in compute, tick 5\d: SIGSEGV$")

    def test_exit_of_an_operator_is_no_orderly_end(self):
        run = self.run_app(app_args=("--rx_fail", "exit"))
        self.assert_crashed(run, r"^fraghost \d+ exited with status \d+ in .*fragment2\.rx, tick 5\d",
                            r"^fragment2\.rx: called exit in compute, tick 5\d: status \d+$")

    def test_crash_in_setup(self):
        app = self.write("setup.yaml", "frag: 1\napplication: app\nextensions: [libgood.so]\n"
                         "operators: {a: {type: sink, parameters: {fail: crash}}}\n")
        run = self.fragctl("run", "--output", "json", app)
        self.assert_crashed(run, r"^fraghost \d+ crashed in setup of app\.a: signal 11 \(SIGSEGV\)",
                            r"^app\.a: crashed in setup: SIGSEGV$")

    def test_ctrl_c_ends_a_compute_that_hangs_within_the_drains_limit(self):
        run = self.run_app(app_args=("--rx_fail", "hang"))
        self.wait_until("the hang", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) >= 49 * 8)
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 1, run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["failure"]["code"], "operator_hung")
        self.assertEqual(summary["failure"]["operator"], "fragment2.rx")
        self.assert_balanced(summary)
        self.assert_nothing_left()

    def test_killed_it_leaves_nothing(self):
        run = self.run_app()
        self.wait_flowing()
        self.assertEqual(len(self.ours()), 2)
        run.kill()
        run.wait()
        self.assert_nothing_left()

    def test_all_fragments_share_a_host(self):
        text = APP.replace("    watchdog: \"${watchdog}\"\n", "    host: a\n", 1) % {"folder": self.folder}
        run = self.fragctl("run", "--output", "json", self.write("hosts.yaml", text), "--", "--count", "5")
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual(len({f["host_pid"] for f in summary["fragments"]}), 1)
        self.assertEqual([f["worker"] for f in summary["fragments"]], [None, None])
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "inproc")

    def test_edge_ucx_within_one_host(self):
        """The graph asks for UCX: the flow leaves its process and comes back to it, over loopback."""
        text = APP.replace("  - fragment1.tx.out -> fragment2.rx.in", "  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: ucx}")
        path = self.write("loopback.yaml", text % {"folder": self.folder})
        for mode in ([], ["--in-process"]):
            run = self.fragctl("run", *mode, "--output", "json", path, "--", "--count", "50")
            self.assertEqual(run.wait(), 0, run.stderr)
            flow = self.flow(self.summary(run), "fragment1.tx.out")
            self.assertEqual((flow["edge"], flow["capacity"]), ("ucx", 4), mode)
            self.assertEqual((flow["sent"], flow["delivered"], flow["lost"]), (50, 50, 0))
            self.assertGreater(flow["latency_ns"]["p50"], 0)

    def test_libraries_by_path_and_by_flag(self):
        own = {"FRAG_LIBRARY_PATH": ""}
        text = APP % {"folder": self.folder}
        path = self.write("path.yaml", text.replace("libtruth.so", os.path.join(cluster.TEST_PLUGINS, "libtruth.so")))
        for args in ([path], ["--library-path", cluster.TEST_PLUGINS, self.app]):
            run = self.fragctl("run", *args, "--", "--count", "5", env=own)
            self.assertEqual(run.wait(), 0, run.stderr)
        run = self.fragctl("run", self.app, "--", "--count", "5", env=own)
        self.assertEqual(run.wait(), 3, run.stderr)

    def test_errors_before_the_start(self):
        run = self.fragctl("run", self.write("broken.yaml", BROKEN))
        self.assertEqual(run.wait(), 2)
        self.assertEqual(run.stdout, "")
        self.assertEqual([l[len(self.folder) + 1:] for l in errors_of(run).splitlines()], [
            'broken.yaml:6:48: app.ones: unknown parameter "outputs"; its parameters: inputs',
            'broken.yaml:7:37: app.twice: unknown parameter "facter"; did you mean "factor"?',
            'broken.yaml:8:3: app.sink: unknown operator type "sunk"; did you mean "sink"?',
            'broken.yaml:9:24: flow end app.twice.outt: no output "outt"; did you mean "out"?',
        ])

    def test_what_is_missing_is_exit_code_3(self):
        run = self.fragctl("run", "nowhere.yaml")
        self.assertEqual(run.wait(), 3)
        self.assertEqual(run.stderr, "fragctl: cannot read graph nowhere.yaml: No such file or directory; give the path "
                                     "of a file that exists")
        app = self.write("lib.yaml", "frag: 1\napplication: app\nextensions: [libnone.so]\noperators: {a: {type: b}}\n")
        run = self.fragctl("run", "--output", "json", app)
        self.assertEqual(run.wait(), 3)
        self.assertRegex(errors_of(run), r"^\S+lib.yaml:3:14: library libnone.so is not in \S+.*FRAG_LIBRARY_PATH$")
        summary = self.summary(run)
        self.assertEqual((summary["result"], summary["exit_code"]), ("failed", 3))
        self.assertEqual(summary["reason"], errors_of(run))
        self.assertIsNone(summary["failure"]["worker"])

    def test_a_graph_that_cannot_be_read_ends_with_a_summary_too(self):
        wrong = self.write("wrong.yaml", "frag: 1\napplication: app\noperators: {a: {typ: b}}\n")
        for path, code, failure in ((wrong, 2, "graph_invalid"), ("nowhere.yaml", 3, "file_missing")):
            run = self.fragctl("run", "--output", "json", "--summary", self.path("s.json"), path)
            self.assertEqual(run.wait(), code)
            summary = self.summary(run)
            self.assertEqual((summary["result"], summary["exit_code"]), ("failed", code))
            self.assertEqual(summary["failure"]["code"], failure)
            self.assertIn(summary["reason"], run.stderr)
            with open(self.path("s.json")) as f:
                self.assertEqual(json.load(f), summary)

    def test_a_graph_that_is_too_large_for_a_host(self):
        ops = "".join(" r%x: {type: ping_rx}\n" % i for i in range(66000))
        flows = "".join("- a->r%x\n" % i for i in range(66000))
        text = "frag: 1\napplication: app\noperators:\n a: {type: ping_tx}\n%sflows:\n%s" % (ops, flows)
        run = self.fragctl("run", "--output", "json", self.write("large.yaml", text))
        self.assertEqual(run.wait(), 1)
        summary = self.summary(run)
        self.assertEqual(summary["failure"]["code"], "graph_too_large")
        self.assertRegex(summary["reason"], "must fit into a message of 4 MiB, and be 65536 of each at most; divide")

    def test_a_summary_that_cannot_be_written_is_told_before_anything_runs(self):
        for more in ((), ("--workers", "1")):
            run = self.fragctl("run", *more, "--summary", self.path("none/s.json"), self.app)
            self.assertEqual(run.wait(), 3)
            self.assertRegex(run.stderr, r"^fragctl: cannot write the summary to \S+none/s.json: No such file .*--summary")
            self.assertFalse(os.path.exists(self.path("sent")))
        driver = self.start("driverd", "--summary", self.path("none/s.json"), "--app", self.app)
        self.assertEqual(driver.wait(), 3)
        self.assertRegex(driver.stderr, r"^driverd: cannot write the summary to \S+none/s.json: No such file .*--summary")

    def test_arguments_and_their_help(self):
        run = self.fragctl("run", self.app, "--", "--help")
        self.assertEqual(run.wait(), 0)
        self.assertIn("how many", run.stdout)
        run = self.run_app(app_args=("--count", "5"))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.sent_and_received()[1], [1, 2, 3, 4, 5])
        run = self.run_app(app_args=("--cuont", "5"))
        self.assertEqual(run.wait(), 2)
        self.assertIn('did you mean', run.stderr)

    def test_set_wins(self):
        run = self.run_app("--set", "fragment1.tx.count=3", app_args=("--count", "5"))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.sent_and_received()[1], [1, 2, 3])

    def test_table_is_all_that_stdout_holds(self):
        run = self.fragctl("run", "-q", self.app, "--", "--count", "5")
        self.assertEqual(run.wait(), 0, run.stderr)
        lines = run.stdout.splitlines()
        self.assertRegex(lines[0], r"^app: done in \d")
        self.assertRegex(lines[2], r"^fragment1.tx.out -> fragment2.rx.in +5 +5 +0 +0 .*inproc$")
        self.assertEqual(len(lines), 3)
        self.assertEqual(run.stderr, "")


class InProcess(Fragctl):
    def run_inside(self, *app_args):
        return self.run_app("--in-process", app_args=app_args)

    def test_runs_without_a_child(self):
        run = self.run_inside()
        self.wait_flowing()
        self.assertEqual(list(self.ours()), [run.pid])
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["result"], "stopped")
        self.assertEqual({f["host_pid"] for f in summary["fragments"]}, {run.pid})
        self.assert_balanced(summary)
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assert_nothing_left()

    def test_failing_operator(self):
        run = self.run_inside("--rx_fail", "error")
        self.assertEqual(run.wait(), 1, run.stderr)
        self.assertRegex(self.summary(run)["reason"], r"fragment2\.rx.*the test asked for an error at message 50")
        self.assert_balanced(self.summary(run))

    def test_second_ctrl_c_leaves_a_compute_that_hangs_behind(self):
        run = self.run_inside("--rx_fail", "hang")
        self.wait_until("the hang", lambda: os.path.exists(self.path("received")) and
                        os.path.getsize(self.path("received")) >= 49 * 8)
        run.signal(signal.SIGTERM)
        run.wait_line("stopping")
        run.signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assert_balanced(self.summary(run))
        self.assert_nothing_left()

    def test_a_crash_ends_it(self):
        run = self.run_inside("--rx_fail", "crash")
        self.assertEqual(run.wait(), 128 + signal.SIGSEGV, run.stderr)
        self.assertRegex(run.stderr, r"(?m)^fragment2\.rx: crashed in compute, tick 5\d: SIGSEGV$")
        self.assert_nothing_left()


class Daemons(Fragctl):
    def test_two_workers_both_used(self):
        run = self.run_app("--workers", "2", app_args=("--count", "200"))
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual([f["worker"] for f in summary["fragments"]], ["worker1", "worker2"])
        self.assertEqual(self.flow(summary, "fragment1.tx.out")["edge"], "shm")
        self.assert_balanced(summary)
        self.assertEqual(self.sent_and_received()[1], list(range(1, 201)))
        self.assert_nothing_left()

    def test_edge_shm_and_a_crash(self):
        text = APP.replace("  - fragment1.tx.out -> fragment2.rx.in",
                           "  - {from: fragment1.tx.out, to: fragment2.rx.in, edge: shm}")
        path = self.write("shm.yaml", text % {"folder": self.folder})
        run = self.fragctl("run", "--workers", "2", "--output", "json", path, "--", "--rx_fail", "crash")
        self.assertEqual(run.wait(), 1, run.stderr)
        summary = self.summary(run)
        self.assert_balanced(summary)
        self.assertEqual(summary["failure"]["operator"], "fragment2.rx")
        self.assert_nothing_left()

    def test_more_workers_than_fragments(self):
        run = self.run_app("--workers", "5", app_args=("--count", "5"))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(self.sent_and_received()[1], [1, 2, 3, 4, 5])
        self.assert_nothing_left()

    def test_quiet(self):
        run = self.run_app("-qq", "--workers", "2", app_args=("--count", "5"))
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertEqual(run.stderr, "")

    def test_ctrl_c_stops_in_order_and_loses_nothing(self):
        run = self.run_app("--workers", "2")
        self.wait_flowing()
        run.signal(signal.SIGINT)
        self.assertEqual(run.wait(), 0, run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["result"], "stopped")
        sent, received = self.sent_and_received()
        self.assertEqual(received, sent)
        self.assert_nothing_left()

    def test_killed_it_leaves_nothing(self):
        run = self.run_app("--workers", "2")
        self.wait_flowing()
        run.kill()
        run.wait()
        self.assert_nothing_left()

    def test_failure_has_the_drivers_exit_code(self):
        run = self.run_app("--workers", "2", app_args=("--rx_fail", "error"))
        self.assertEqual(run.wait(), 1, run.stderr)
        self.assertRegex(self.summary(run)["reason"], "the test asked for an error at message 50")
        self.assert_nothing_left()

    def test_a_wrong_graph_starts_nothing(self):
        run = self.fragctl("run", "--workers", "2", self.write("broken.yaml", "frag: 1\napplication: a.b\n"))
        self.assertEqual(run.wait(), 2)
        self.assertNotIn("driver", run.stderr)
        self.assert_nothing_left()


class Environment(Fragctl):
    def test_a_variable_that_nothing_reads_is_warned_of_once(self):
        self.env.update(FRAG_LOG_LEVL="debug", FRAG_XYZZY="1", FRAG_BEAT_MS="250", FRAG_NAME="w",
                        FRAG_STATE_DIR="", FRAG_ONCE="true", FRAG_OPENVINO="/none")
        for how in ([], ["--workers", "2"]):
            run = self.run_app(*how, app_args=("--count", "3"))
            self.assertEqual(run.wait(), 0, run.stderr)
            lines = [l.partition("environment: ")[2] for l in run.stderr.splitlines()
                     if "nothing reads" in l]
            self.assertEqual(sorted(lines), [
                "nothing reads the variable FRAG_LOG_LEVL; did you mean FRAG_LOG_LEVEL?",
                "nothing reads the variable FRAG_XYZZY"])


class OtherTree(Fragctl):
    def test_a_worker_that_cannot_start_ends_it(self):
        for part in ("bin/fragctl", "bin/driverd", "lib/libfrag.so.1"):
            os.makedirs(os.path.dirname(self.path("tree/" + part)), exist_ok=True)
            shutil.copy(os.path.join(cluster.BUILD, part), self.path("tree/" + part))
        # a status that programs have is that of the run
        runs = []
        for status, code in ((2, 2), (7, 1)):
            workerd = "#!/bin/sh\necho what it complains of >&2\nexit %d\n" % status
            os.chmod(self.write("tree/bin/workerd", workerd), 0o755)
            run = self.start(self.path("tree/bin/fragctl"), "run", "-q", "--workers", "2", self.app)
            runs.append((run, status, code))
            self.wait_until("both workers", lambda run=run: run.stderr.count("what it complains of") == 2)
        for run, status, code in runs:
            self.assertEqual(run.wait(), code, run.stderr)
            self.assertRegex(run.stderr, r"fragctl: worker[12] ended by itself \(status %d\), so the application cannot run" % status)
        self.assert_nothing_left()

    def test_missing_daemons_are_named(self):
        for part in ("bin/fragctl", "lib/libfrag.so.1"):
            os.makedirs(os.path.dirname(self.path("tree/" + part)), exist_ok=True)
            shutil.copy(os.path.join(cluster.BUILD, part), self.path("tree/" + part))
        run = self.start(self.path("tree/bin/fragctl"), "run", "--workers", "2", self.app)
        self.assertEqual(run.wait(), 3, run.stderr)
        self.assertEqual(run.stderr, "fragctl: cannot start %s: No such file or directory" % self.path("tree/bin/driverd"))


class BuiltIn(Fragctl):
    """Built-in libraries of a machine on which one cannot be opened, as without FFmpeg."""

    def setUp(self):
        super().setUp()
        for part in ("bin/fragctl", "lib/libfrag.so.1", "lib/frag/plugins"):
            source, target = os.path.join(cluster.BUILD, part), self.path("tree/" + part)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            (shutil.copytree if os.path.isdir(source) else shutil.copy)(source, target)
        with open(self.path("tree/lib/frag/plugins/libvideo.so"), "wb") as f:
            f.write(b"no library\0video_replayer\0video_recorder\0" + bytes(4096))

    def run_type(self, name):
        app = self.write("one.yaml", "frag: 1\napplication: app\noperators: {a: {type: %s}}\n" % name)
        run = self.start(self.path("tree/bin/fragctl"), "run", "-q", app)
        return run.wait(), run.stderr.replace(self.folder + "/", "")

    def test_it_is_named_when_its_type_is_asked_for(self):
        self.assertEqual(self.run_type("video_replayer"), (3, (
            'one.yaml:3:13: app.a: operator type "video_replayer" is not available: library libvideo.so is no shared object: '
            "it does not begin as an ELF file; name the one that the linker has made")))

    def test_others_do_not_touch_it(self):
        app = self.write("two.yaml", "frag: 1\napplication: app\nflows: [a -> b]\noperators:\n"
                         "  a: {type: ping_tx, conditions: [{type: count}]}\n  b: {type: ping_rx}\n")
        run = self.start(self.path("tree/bin/fragctl"), "run", "-v", app)
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertIn("libbasic.so", run.stderr)
        self.assertNotIn("libvideo.so", run.stderr)

    def test_inspect_lists_the_rest(self):
        run = self.start(self.path("tree/bin/fragctl"), "inspect")
        self.assertEqual(run.wait(), 0)
        self.assertIn("ping_tx", run.stdout)
        self.assertEqual(run.stderr, "fragctl: library libvideo.so is no shared object: it does not begin as an ELF file; "
                                     "name the one that the linker has made")


class Usage(Fragctl):
    def says(self, args, code, stderr):
        p = self.fragctl(*args)
        self.assertEqual((p.wait(), p.stdout, p.stderr), (code, "", stderr))

    def test_wrong_ones(self):
        self.says(["rnu"], 2, 'fragctl: unknown verb "rnu"; did you mean "run"?')
        self.says(["record"], 2, "fragctl: record is not built yet")
        self.says(["run"], 2, "fragctl run: name the application's graph, APP.yaml; see fragctl run --help")
        self.says(["run", "a.yaml", "--outptu", "json"], 2,
                  "fragctl run: unknown flag --outptu; did you mean --output?")
        self.says(["run", "a.yaml", "--count", "5"], 2,
                  "fragctl run: unknown flag --count; fragctl run --help lists the flags, "
                  "and arguments of the application follow --")
        self.says(["run", "a.yaml", "--output", "xml"], 2, 'fragctl: --output "xml" is neither table nor json')
        self.says(["run", "a.yaml", "--workers", "0"], 2, 'fragctl: --workers "0" is not a number from 1 to 64')
        self.says(["run", "a.yaml", "--workers", "2", "--in-process"], 2,
                  "fragctl: --in-process and --workers exclude each other")
        self.says(["run", "a.yaml", "--address", ":1"], 2,
                  "fragctl: --address is of a driver or worker; give --driver, --worker or both, or leave it out to "
                  "run everything here")

    def test_help_of_every_verb(self):
        """At most 100 columns, with an example that is of the verb."""
        overview = self.fragctl("help")
        self.assertEqual(overview.wait(), 0)
        for group in ("Build:", "Run:", "Operate:"):
            self.assertIn("\n%s\n" % group, overview.stdout)
        verbs = re.findall(r"^  (\w+) ", overview.stdout, re.M)
        self.assertEqual(len(verbs), 30)
        for verb in verbs:
            p = self.fragctl("help", verb)
            self.assertEqual(p.wait(), 0)
            self.assertIn("\nExample:\n  fragctl %s" % verb, p.stdout)
            self.assertEqual([line for line in p.stdout.splitlines() if len(line) > 100], [])
        self.says(["help", "rnu"], 2, 'fragctl: unknown verb "rnu"; did you mean "run"?')

    def test_names_that_people_know_from_elsewhere(self):
        for word, program in (("ls", "list"), ("ps", "list"), ("delete", "stop")):
            p = self.fragctl(word, "--help")
            self.assertEqual(p.wait(), 0)
            self.assertIn("usage: fragctl %s " % program, p.stdout)
        p = self.fragctl("version")
        self.assertEqual((p.wait(), p.stdout[:8]), (0, "fragctl "))
        self.says(["inspect", "replayer"], 2, 'fragctl: unknown type "replayer"; did you mean "video_replayer"?')
        self.says(["run", "ping_tx ! ping_rx"], 2,
                  'fragctl run: there is no file "ping_tx ! ping_rx"; a graph in a line stands behind -e: '
                  "fragctl run -e 'ping_tx ! ping_rx'")

    def test_escape_bytes_of_the_command_line_are_not_printed(self):
        for words in (["x\x1b[31m"], ["list", "--x\x1b[31m"], ["validate", "x\x1b[31m"]):
            p = self.fragctl(*words)
            self.assertIn("x?[31m", (p.wait(), p.stderr)[1])
            self.assertNotIn("\x1b", p.stderr)

    def test_help_and_version(self):
        for args in (["--help"], ["run", "--help"], ["validate", "-h"], ["inspect", "--help"], ["--version"],
                     ["run", "--version"]):
            p = self.fragctl(*args)
            self.assertEqual((p.wait(), p.stderr), (0, ""))
            self.assertTrue(p.stdout)
        p = self.fragctl()
        self.assertEqual((p.wait(), p.stdout), (2, ""))


# What is refused, by verb: wrong flags, words too few and too many, names of nothing, wrong values.
REFUSED = {
    "inspect": ("--bogus", "--library-path", "nosuch", "libnosuch.so"),
    "validate": ("--bogus", "", "a b", "nothing.yaml", "bad.yaml", "good.yaml --set x", "good.yaml -- --nope 1"),
    "describe": ("--bogus", "", "nothing.yaml", "bad.yaml"),
    "test": ("--bogus", "", "a b", "nothing.yaml", "good.yaml --tests bad.yaml"),
    "run": ("--bogus", "", "a b", "nothing.yaml", "bad.yaml", "-e nosuch!x", "--workers x good.yaml",
            "--worker 2 good.yaml", "--fragments a good.yaml", "--top --in-process good.yaml",
            "good.yaml --summary /nowhere/x", "good.yaml -- --nope", "--driver --address x:y good.yaml"),
    "start": ("--bogus", "", "nothing.yaml", "bad.yaml", "-e nosuch!x", "good.yaml --start-timeout 3",
              "good.yaml --name a.b", "good.yaml --summary x"),
    "stop": ("--bogus", "", "a.b", "a b", "x --timeout 3", "x --address x:y"),
    "restart": ("--bogus", "", "a.b"),
    "apply": ("--bogus", "", "x", "x nothing.yaml", "x bad.yaml", "x -e nosuch!x", "a.b good.yaml"),
    "set": ("--bogus", "", "x", "a.b c.d.e=1"),
    "swap": ("--bogus", "", "x", "x y"),
    "list": ("--bogus", "x"),
    "status": ("--bogus", "a b", "a.b"),
    "logs": ("--bogus", "", "a.b.c", "x --since zz"),
    "events": ("--bogus", "x", "--since zz"),
    "top": ("--bogus", "a b", "a.b"),
    "explain": ("--bogus", "", "a b c d"),
    "health": ("--bogus", "a b", "--for 3"),
    "echo": ("--bogus", "", "a", "a b -n x", "a b --every 1ms"),
    "workers": ("--bogus", "x"),
    "drain": ("--bogus", "", "a b"),
    "key": ("--bogus", "", "list", "list a b", "list nothing", "new --bogus"),
    "doctor": ("--bogus", "x"),
    "cameras": ("--bogus", "x"),
}


class Documents(Fragctl):
    """What is refused is a document where documents are asked for, and else as without."""

    def run_line(self, program, *words):
        p = self.start(program, *words)
        return p.wait(), p.stdout, re.sub(r"(?m)^[0-9T:.-]+Z ", "", p.stderr)

    def is_document(self, expected, program, *words):
        code, out, err = self.run_line(program, *words)
        self.assertEqual((code, err), expected)
        document = json.loads(out)
        if "valid" in document:  # of validate and describe
            self.assertEqual((document["valid"], bool(document["errors"])), (False, True))
        else:
            self.assertEqual(document["exit_code"], code)
            self.assertTrue(document["failure"]["sentence"])

    def in_both_orders(self, program, verb, line):
        words = line.split()
        with self.subTest(program=program, verb=verb, line=line):
            code, out, err = self.run_line(program, *verb, *words)
            self.assertEqual((code in (2, 3), out), (True, ""), err)
            end = words.index("--") if "--" in words else len(words)
            self.is_document((code, err), program, *verb, "-o", "json", *words)
            if line not in ("--library-path", "--address"):  # of which it would be the value
                words[end:end] = ["--output=json"]
                self.is_document((code, err), program, *verb, *words)

    def test_of_every_verb(self):
        self.write("bad.yaml", "frag: 1\napplication: app\noperatorz: {}\n")
        self.write("good.yaml", "frag: 1\napplication: app\noperators: {tx: {type: ping_tx}, rx: {type: ping_rx}}\n"
                                "flows: [tx -> rx]\n")
        self.env["FRAG_ADDRESS"] = "127.0.0.1:1"
        verbs = re.findall(r"^  (\w+) ", self.run_line("fragctl", "help")[1], re.M)
        self.assertEqual([v for v in verbs if "table|json" in self.run_line("fragctl", v, "--help")[1]], list(REFUSED))
        for verb, lines in REFUSED.items():
            for line in lines:
                self.in_both_orders("fragctl", [verb], line)

    def test_of_no_verb_and_of_verbs_without_documents(self):
        for words in (("bogus",), ("record",), ("help", "bogus"), ("--bogus",)):
            self.is_document((2, self.run_line("fragctl", *words)[2]), "fragctl", *words, "-o", "json")
        for words in ((), ("list",), ("help",)):
            code, out, err = self.run_line("fragctl", "-o", "json", *words)
            self.assertEqual((code, err), (2, "fragctl: unknown flag -o; flags follow the verb, fragctl --help lists verbs"))
            self.assertEqual(json.loads(out)["failure"]["code"], "usage")
        for words in (("graph", "x"), ("web",)):
            code, out, err = self.run_line("fragctl", *words, "-o", "json")
            self.assertEqual((code, json.loads(out)["exit_code"]), (2, 2))
            self.env["FRAG_OUTPUT"] = "json"  # not theirs
            self.assertEqual(self.run_line("fragctl", words[0], "--bogus")[:2], (2, ""))
            del self.env["FRAG_OUTPUT"]
        self.assertEqual(self.run_line("fragctl", "trace", "-o", "json")[:2], (2, ""))  # a file

    def test_of_driverd(self):
        self.write("bad.yaml", "frag: 1\n")
        for line in ("--bogus", "--address", "word", "--start-timeout 3", "--allow-user nobody-there",
                     "--app nothing.yaml", "--app bad.yaml", "--app %s --summary /nowhere/x" % self.app,
                     "--app %s --address x:y" % self.app, "--app %s --key-file /nowhere" % self.app):
            self.in_both_orders("driverd", [], line)

    def test_by_the_environment(self):
        for program, words in (("fragctl", ("bogus",)), ("fragctl", ("list", "--bogus")), ("driverd", ("--bogus",))):
            plain = self.run_line(program, *words)
            self.env["FRAG_OUTPUT"] = "json"
            self.is_document((2, plain[2]), program, *words)
            self.assertEqual(self.run_line(program, *words, "-o", "table"), plain)
            del self.env["FRAG_OUTPUT"]
