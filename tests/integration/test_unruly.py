# SPDX-License-Identifier: Apache-2.0
"""Operators that misbehave in a callback: they hang, end their thread, exit, or leave processes
behind. The application ends in time, the operator is named, and nothing is left."""
import os
import signal

import cluster

APP = """
frag: 1
application: app
arguments:
  {where: {default: nowhere}, deed: {default: hang}, ticks: {default: "0"}}
extensions: [libunruly.so]
operators:
  u: {type: unruly, parameters: {where: "${where}", deed: "${deed}", ticks: "${ticks}", file: "%s"}}
"""
CALLBACKS = ("setup", "initialize", "start", "compute", "stop", "fini")
STOP_S = 10  # for a callback, once the application is to stop


class Unruly(cluster.ClusterTest):
    def run_app(self, name, *args, flags=(), more=""):
        app = self.write(name + ".yaml", APP % self.path(name + ".met") + more)
        run = self.start("fragctl", "run", *flags, app, "--output", "json", "--", *args)
        run.name = name
        return run

    def wait_met(self, run):
        met = self.path(run.name + ".met")
        self.wait_until("the deed of %s" % run.name, lambda: run.child.poll() is not None or
                        (os.path.exists(met) and os.path.getsize(met) > 0))

    def assert_failed(self, run, sentence, code="operator_failed", operator="app.u"):
        self.assertEqual(run.wait(), 1, run.name + ": " + run.stderr)
        summary = self.summary(run)
        self.assertEqual(summary["result"], "failed", run.name)
        self.assertRegex(summary["reason"], sentence, run.name)
        self.assertEqual(summary["failure"]["code"], code, run.name)
        if operator:
            self.assertEqual(summary["failure"]["operator"], operator, run.name)
        return summary


class Hangs(Unruly):
    def test_what_never_ends_waited_by_the_clock_of_its_fragment(self):
        """The clock stands at 7 ns: the operator hangs in its first tick."""
        run = self.run_app("clock", "--where", "compute", more="clock: {type: manual, initial_timestamp: 7}\n"
                           "watchdog: 300ms\n")
        summary = self.assert_failed(run, "watchdog", code="operator_hung")
        job = summary["fragments"][0]["operators"][0]["job"]
        self.assertEqual((job["time_ns"], job["waiting_ns"]), (0, 0), job)

    def test_a_stop_ends_whatever_hangs(self):
        """One Ctrl-C ends it in bounded time, and what did not return is named. A stop callback is
        limited without it, too: beside the others, because that takes as long."""
        alone = self.run_app("alone", "--where", "stop", "--ticks", "6")
        runs = []
        for flags in ((), ("--in-process",)):
            for where in CALLBACKS:
                ticks = ("--ticks", "20") if where in ("stop", "fini") else ()
                runs.append(self.run_app(where + "".join(flags), "--where", where, *ticks,
                                         flags=flags))
                runs[-1].where = where
        for run in runs:
            self.wait_met(run)
            run.signal(signal.SIGINT)
        for run in runs:
            if run.where in ("setup", "initialize"):  # nothing ran yet
                self.assertEqual(run.wait(), 0, run.stderr)
                self.assertEqual(self.summary(run)["result"], "stopped")
            elif run.where == "start":
                self.assert_failed(run, r"START in time: app\.u has not returned", "host_late", None)
            elif run.where == "fini":
                self.assert_failed(run, r"app\.u has not returned", "operator_hung")
            else:
                self.assert_failed(run, r"app\.u: %s has run for .*, longer than the 10\.0 s" % run.where, "operator_hung")
        self.assert_failed(alone, r"app\.u: stop has run for .*, longer than the 10\.0 s", "operator_hung")
        self.assert_nothing_left()

    def test_a_second_ctrl_c_ends_at_once(self):
        runs = [self.run_app("compute" + "".join(flags), "--where", "compute", flags=flags)
                for flags in ((), ("--in-process",))]
        for run in runs:
            self.wait_met(run)
            run.signal(signal.SIGINT)
            run.wait_line("stopping")
            run.signal(signal.SIGINT)
            self.assertEqual(run.wait(STOP_S * cluster.TIMES_SLOWER), 0, run.stderr)
            self.assertEqual(self.summary(run)["result"], "stopped")
        self.assert_nothing_left()

    def test_the_watchdog_limits_setup_initialize_and_start(self):
        for where in ("setup", "initialize", "start"):
            with self.subTest(where=where):
                run = self.run_app(where, "--where", where, more="watchdog: 300ms\n")
                self.assert_failed(run, r"app\.u: %s has run for .*longer than its watchdog of 300 ms" % where,
                                   "operator_hung")
        self.assert_nothing_left()

    def test_a_slow_start_is_logged_and_awaited(self):
        """Loading a model may take minutes; who waits learns for what."""
        runs = [self.run_app(where, "--where", where, "--deed", "last", "--ticks", "6")
                for where in ("setup", "initialize", "start")]
        for run in runs:
            run.wait_line(r"warn .*app\.u: %s has run for \d+ s and goes on" % run.name)
            os.unlink(self.path(run.name + ".met"))
        for run in runs:
            self.assertEqual(run.wait(), 0, run.stderr)

    def test_the_start_timeout_covers_start(self):
        app = self.write("app.yaml", APP % self.path("met"))
        d = self.driver(app, "--output", "json", "--start-timeout", "1s", app_args=("--where", "start"))
        w = self.worker()
        self.assertEqual(d.wait(), 4, d.stderr)
        self.assertRegex(self.summary(d)["reason"], r"app\.u has not returned")
        self.assert_nothing_left(keep=[w])


class LeavesThread(Unruly):
    def test_pthread_exit_fails_the_operator(self):
        for flags in ((), ("--in-process",)):
            for where in CALLBACKS[:-1]:
                with self.subTest(where=where, flags=flags):
                    run = self.run_app(where, "--where", where, "--deed", "leave_thread", "--ticks", "6",
                                       flags=flags)
                    self.assert_failed(run, r"app\.u: %s has ended its thread" % where)
        self.assert_nothing_left()

    def test_the_system_call_fails_the_operator(self):
        for flags in ((), ("--in-process",)):
            for where in ("start", "compute"):
                with self.subTest(where=where, flags=flags):
                    run = self.run_app(where, "--where", where, "--deed", "end_thread", "--ticks", "6", flags=flags)
                    self.assert_failed(run, r"app\.u: %s has ended its thread \(the system call exit\)" % where)
        self.assert_nothing_left()

    def test_pthread_exit_in_fini(self):
        run = self.run_app("fini", "--where", "fini", "--deed", "leave_thread", "--ticks", "6")
        self.assert_failed(run, r"exited with status 1 in fini of app\.u", "host_exited")
        self.assertIn("app.u: fini has ended its thread", run.stderr)
        self.assert_nothing_left()


class Exits(Unruly):
    def test_exit_0_fails_the_operator(self):
        for where in CALLBACKS:
            with self.subTest(where=where):
                run = self.run_app(where, "--where", where, "--deed", "exit", "--ticks", "6")
                self.assert_failed(run, r"exited with status 1", "host_exited",
                                   None if where in ("setup", "initialize") else "app.u")
                self.assertRegex(run.stderr, r"app\.u: called exit in %s.*: status 0" % where)
        self.assert_nothing_left()


class ReturnsPositive(Unruly):
    def test_a_positive_return_is_refused(self):
        for where, code in (("setup", 2), ("initialize", 2), ("start", 1), ("stop", 1)):
            with self.subTest(where=where):
                run = self.run_app(where, "--where", where, "--deed", "positive", "--ticks", "6")
                self.assertEqual(run.wait(), code, run.stderr)
                self.assertIn("app.u: %s returned 1; return 0 or a negative errno" % where,
                              self.summary(run)["reason"])


DISTRIBUTED = """
frag: 1
application: app
arguments: {deed: {default: exec}}
extensions: [libunruly.so, libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms}}
      u: {type: unruly, parameters: {where: compute, deed: "${deed}", file: "%(folder)s/met"}}
  fragment2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""


class StopFails(Unruly):
    def test_one_of_two_hosts(self):
        """Its application has failed, though all was done; the other host ends in order."""
        text = DISTRIBUTED.replace("where: compute, deed", "where: stop, ticks: 5, deed").replace(
            "pause: 1ms", "count: 40")
        app = self.write("app.yaml", text % {"folder": self.folder})
        run = self.start("fragctl", "run", "--workers", "2", "--output", "json", app, "--", "--deed",
                         "positive")
        run.name = "app"
        self.assert_failed(run, r"fragment1\.u: stop returned 1; return 0 or a negative errno",
                           operator="fragment1.u")
        self.assert_nothing_left()


class Strays(Unruly):
    """Processes that an operator has started end with its application, however they were started."""

    def strays(self, known):
        return set(self.ours()) - set(known)

    def test_of_one_host(self):
        for deed in ("fork", "leave", "exec"):
            for flags in ((), ("--in-process",)):
                with self.subTest(deed=deed, flags=flags):
                    run = self.run_app(deed, "--where", "compute", "--deed", deed, "--ticks", "40",
                                       flags=flags)
                    self.wait_met(run)
                    os.unlink(self.path(deed + ".met"))
                    self.assertEqual(run.wait(), 0, run.stderr)
                    self.assert_nothing_left()

    def test_of_a_host_that_is_killed(self):
        run = self.run_app("app", "--where", "compute", "--deed", "leave")
        self.wait_met(run)
        host = self.hosts() or [p for p in self.ours() if p != run.pid]
        os.kill(min(host), signal.SIGKILL)
        self.assertEqual(run.wait(), 1, run.stderr)
        self.assert_nothing_left()

    def test_of_one_of_two_workers(self):
        for deed in ("fork", "leave", "exec"):
            with self.subTest(deed=deed):
                app = self.write("app.yaml", DISTRIBUTED % {"folder": self.folder})
                d = self.driver(app, app_args=("--deed", deed))
                workers = [self.worker(fragments=f) for f in ("fragment1", "fragment2")]
                self.wait_until("the deed", lambda: os.path.exists(self.path("met")))
                self.wait_flowing(d, 50)
                os.unlink(self.path("met"))
                d.signal(signal.SIGTERM)
                self.assertEqual(d.wait(), 0, d.stderr)
                self.assert_nothing_left(keep=workers)
                for w in workers:
                    w.kill()
                    w.wait()

    def test_a_program_inherits_no_descriptor(self):
        """The next application listens on the same data port while the program still runs."""
        app = self.write("app.yaml", DISTRIBUTED % {"folder": self.folder})
        d = self.driver(app)
        for f in ("fragment1", "fragment2"):
            self.worker("--once", fragments=f)
        found = self.wait_until("the program", lambda: [p for p, command in self.ours().items()
                                                        if command == "sleep 3600"])
        # What its loader opens, it closes again; what it has inherited stays.
        self.wait_until("no other descriptors", lambda: set(os.listdir("/proc/%d/fd" % found[0])) ==
                        {"0", "1", "2"})
        self.wait_flowing(d, 50)
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assert_nothing_left()
