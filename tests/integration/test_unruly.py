# SPDX-License-Identifier: Apache-2.0
"""Operators that misbehave in a callback: they hang, end their thread, exit, or leave processes
behind. The application ends in time, the operator is named, and nothing is left."""
import os
import signal
import unittest

import cluster

APP = """
frag: 1
application: app
arguments:
  {where: {default: nowhere}, deed: {default: hang}, ticks: {default: "0"}, lasts: {default: 0s}}
extensions: [libunruly.so]
operators:
  u: {type: unruly, parameters: {where: "${where}", deed: "${deed}", ticks: "${ticks}",
                                 lasts: "${lasts}", file: "%s"}}
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
    def test_a_stop_ends_whatever_hangs(self):
        """One Ctrl-C ends it in bounded time, and what did not return is named."""
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
                self.assert_failed(run, r"app\.u: %s has run for 1\d" % run.where, "operator_hung")
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

    def test_a_stop_callback_is_limited_without_a_stop(self):
        run = self.run_app("stop", "--where", "stop", "--ticks", "6")
        self.assert_failed(run, r"app\.u: stop has run for 1\d.*, longer than the 10\.0 s", "operator_hung")
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
        runs = [self.run_app(where, "--where", where, "--deed", "last", "--lasts", "11s", "--ticks", "6")
                for where in ("setup", "initialize", "start")]
        for run in runs:
            self.assertEqual(run.wait(), 0, run.stderr)
            self.assertRegex(run.stderr, r"warn .*app\.u: %s has run for 10 s" % run.name)

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

    def test_pthread_exit_in_fini(self):
        run = self.run_app("fini", "--where", "fini", "--deed", "leave_thread", "--ticks", "6")
        self.assert_failed(run, r"exited with status 1 in app\.u", "host_exited")
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


if __name__ == "__main__":
    cluster.main()
