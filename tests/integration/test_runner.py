# SPDX-License-Identifier: Apache-2.0
"""What tests/run.py chooses, runs at once, and repeats of programs that failed."""
import contextlib
import io
import os
import resource
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import cluster

sys.path.insert(0, os.path.join(cluster.TOP, "tests"))
import may_skip  # noqa: E402
import run  # noqa: E402


class Again(unittest.TestCase):
    def run_all(self, outcomes, again):
        """outcomes: for each program, what each of its runs fails with, or None. Returns (what
        failed in the end, which ran twice, how often each ran)."""
        ran = {name: 0 for name in outcomes}

        def one(_, name, *__):
            result = run.Result(name)
            outcome = outcomes[name][ran[name]]
            ran[name] += 1
            (result.failed if outcome else result.passed).append(name)
            result.is_certain = outcome == "certain"
            return result

        args = types.SimpleNamespace(jobs=2, again=again)
        programs = [([], n) for n in outcomes]
        with mock.patch.object(run, "run_program", one), contextlib.redirect_stdout(io.StringIO()):
            results = run.run_programs(programs, "build", None, args, {})
        self.assertEqual(sorted(r.name for r in results), sorted(outcomes), "each counts once")
        twice = sorted(r.name for r in results if r.failed_first)
        return sorted(n for r in results for n in r.failed), twice, ran

    def test_what_failed_once_counts_as_it_ends(self):
        failed, repeated, ran = self.run_all({"a": ["failed", None], "b": ["failed", "failed"], "c": [None]}, 2)
        self.assertEqual((failed, repeated, ran), (["b"], ["a", "b"], {"a": 2, "b": 2, "c": 1}))

    def test_more_failures_than_that_are_no_accident(self):
        failed, repeated, ran = self.run_all({"a": ["failed"], "b": ["failed"], "c": [None]}, 1)
        self.assertEqual((failed, repeated, ran), (["a", "b"], [], {"a": 1, "b": 1, "c": 1}))

    def test_a_report_is_believed_at_once(self):
        failed, repeated, _ = self.run_all({"a": ["certain"], "b": [None]}, 2)
        self.assertEqual((failed, repeated), (["a"], []))

    def test_beside_a_report_others_are_repeated(self):
        failed, repeated, _ = self.run_all({"a": ["certain"], "b": ["failed", None]}, 2)
        self.assertEqual((failed, repeated), (["a"], ["b"]))

    def test_it_runs_again_after_all_others(self):
        """Two at a time: c still runs when a has failed."""
        running, seen = set(), []

        def one(_, name, *__):
            result = run.Result(name)
            running.add(name)
            seen.append(name)
            if name == "c":
                ended.wait(60)
            if seen.count("a") == 2 and name == "a":
                self.assertEqual(running, {"a"})
            (result.failed if seen.count(name) == 1 and name == "a" else result.passed).append(name)
            if name == "b":
                ended.set()
            running.discard(name)
            return result

        ended = threading.Event()
        args = types.SimpleNamespace(jobs=2, again=1)
        with mock.patch.object(run, "run_program", one), contextlib.redirect_stdout(io.StringIO()):
            results = run.run_programs([([], n) for n in "acb"], "build", None, args, {})
        self.assertEqual((seen[-1], [r.failed for r in results]), ("a", [[], [], []]))

    def test_nothing_is_repeated_unless_asked(self):
        self.assertEqual(self.run_all({"a": ["failed"], "b": [None]}, 0)[:2], (["a"], []))

    def at_once(self, jobs, most, shares):
        """The largest number of programs that ran at once while the cores were idle for these
        shares of the time. A program ends once the share was read for the last time, or no more may
        run."""
        left, at_once, most_at_once, lock = list(shares), 0, 0, threading.Lock()
        is_over = threading.Event()

        def share():
            if len(left) == 1:
                is_over.set()
            return left.pop(0) if len(left) > 1 else left[0]

        def one(_):
            nonlocal at_once, most_at_once
            with lock:
                at_once += 1
                most_at_once = max(most_at_once, at_once)
                if at_once >= most:
                    is_over.set()
            is_over.wait(60)
            with lock:
                at_once -= 1

        with mock.patch.object(run, "LOOK_S", 0.01):
            run.run_side_by_side(range(20), one, jobs, most, types.SimpleNamespace(share=share))
        return most_at_once

    def test_more_run_at_once_while_cores_are_idle(self):
        self.assertEqual(self.at_once(2, 4, [0.1] * 9), 2)
        self.assertEqual(self.at_once(2, 4, [0.1, 0.9, 0.1, 0.1]), 3)
        self.assertEqual(self.at_once(2, 4, [0.9] * 9), 4)

    def test_each_program_is_in_one_part_and_quick_ones_are_in_eight(self):
        long = ["integration/test_ping", "hostile/test_page", "tests/conformance/test_shm"]
        for name, parts, count in [*((n, 8, 1) for n in long), ("tests/unit/test_queue", 8, 8),
                                   ("tests/shared/test_cuda", 24, 8), ("tests/sim/test_sim", 2, 2)]:
            for first in (0, 1, 10 ** 8):
                turns = range(first, first + parts)
                held = sum(run.in_share(name, "%d/%d" % (turn, parts)) for turn in turns)
                self.assertEqual(held, count, name)

    def test_what_has_nothing_for_a_checker_runs_once(self):
        """Pages, headers, makefiles and packages: in check, and in no run under a sanitizer."""
        once = ["integration/test_" + n for n in ("docs", "headers", "pages", "readmes", "site", "make", "deploy",
                                                  "completion", "python", "holoscan_programs")]
        once.append("tests/scale/test_scale")
        again = ["integration/test_ping", "integration/test_make_up", "tests/unit/test_run", "hostile/test_page"]
        for flags, names in (((), once + again), (("sanitized",), again), (("threads",), again)):
            args = types.SimpleNamespace(**dict.fromkeys(("valgrind", "emulated", "share", "only", "tests"), None),
                                         **{f: f in flags for f in ("sanitized", "threads")})
            held = run.choose_programs([([], n) for n in once + again], args, {})
            self.assertEqual(sorted(n for _, n in held), sorted(names), flags)

    def test_a_reason_may_be_that_of_a_class(self):
        skips = run.Skips({"test_a::One.test_x": "x", "test_a::One.*": "all"})
        for name, reason in (("test_a::One.test_x", "x"), ("test_a::One.test_y", "all"), ("test_a::Two.test_x", None),
                             ("a::x", None)):
            self.assertEqual(skips[name] if name in skips else None, reason)

    def test_a_skipped_test_says_why_itself(self):
        """tests/skips only says what may be skipped: its reasons are for all machines."""
        result = self.program("tap('ok - s::C.x # SKIP no IPv6')\ntap('ok - s::C.y # SKIP ')\ntap('ok - s::C.z')\n")
        args = types.SimpleNamespace(tests=None, record=None)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run.report([result], run.Skips({"s::C.*": "only root can"}), args, False)
        self.assertEqual(out.getvalue(), "skipped s::C.x: no IPv6\nskipped s::C.y: only root can\n"
                                         "1 passed, 0 failed, 2 skipped\n")

    def test_what_may_be_skipped_somewhere_has_a_reason(self):
        may = {*may_skip.of_python(run.PYTHON_FOLDERS), *may_skip.of_c()}
        known = {"test_users::TwoUsers.test_ipv6",  # setUp does
                 "test_top::Screen.test_keys",  # its class
                 "test_judge::Machine.test_a_slow_disk_at_a_recorder",  # what it makes
                 "peer_user::another_user_is_told_apart", "ops_twins::results_are_those_of_the_cpu"}
        self.assertEqual(known - may, set())
        self.assertNotIn("peer_user::the_user_of_a_connecting_process_is_found", may)
        skips = run.known_skips("skips")
        self.assertEqual(sorted(n for n in may if n not in skips), [])

    def test_idle_is_what_the_kernel_counts(self):
        idle = run.Idle()
        idle.before = tuple(n - 1000 for n in idle.read())
        self.assertGreater(idle.share(), 0.9, "1000 of 1000, and what has passed since")
        idle.before = (idle.before[0], idle.before[1] - 100000)
        self.assertLess(idle.share(), 0.1)

    def program(self, text, limit_s=60):
        """The result of a program that is this text of Python; tap(LINE) writes a verdict."""
        tap = "import os\ndef tap(line): open(os.environ['FRAG_TEST_TAP'], 'a').write(line + '\\n')\n"
        with tempfile.TemporaryDirectory() as build:
            return run.run_program([sys.executable, "-c", tap + text], "a", build, limit_s=limit_s)

    def test_what_is_left_behind_by_a_test_that_failed_may_be_its_fault(self):
        leave = "open(os.environ['TMPDIR'] + '/left', 'w')\n"
        passed, failed = self.program(leave + "tap('ok - s::t')"), self.program(leave + "tap('not ok - s::t')")
        self.assertEqual((passed.failed, passed.is_certain), (["a: left files behind: left"], True))
        self.assertEqual((failed.failed, failed.is_certain), (["s::t", "a: left files behind: left"], False))

    def test_what_a_program_that_was_stopped_started_is_its_own_fault(self):
        with mock.patch.object(run, "busy", lambda: 1):
            stopped = self.program("import subprocess\nsubprocess.run(['sleep', '60'])", limit_s=1)
        self.assertEqual((stopped.failed, stopped.is_certain),
                         (["a: still running after 1 s", "a: left processes behind"], False))

    def test_the_last_line_names_what_ran_twice(self):
        result = run.Result("a")
        result.passed = ["s::t"]
        args = types.SimpleNamespace(tests=None, record=None)
        for first, above, words in (([], "", ""),
                                    (["s::t"], "ran twice: a, in which this failed first: s::t\n", ", ran twice: a")):
            result.failed_first = first
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(run.report([result], {}, args, False), 0)
            self.assertEqual(out.getvalue(), above + "1 passed, 0 failed, 0 skipped%s\n" % words)

    def test_the_last_lines_say_how_to_run_what_failed(self):
        result = run.Result("a")
        result.passed, result.failed = ["s::t"], ["s::u"]
        args = types.SimpleNamespace(tests=None, record=None, build="build-x")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(run.report([result], {}, args, False), 1)
        self.assertEqual(out.getvalue().splitlines(), [
            "failed: s::u",
            "what each wrote is above; to run one alone: python3 tests/run.py --build build-x --tests NAME",
            "1 passed, 1 failed, 0 skipped"])


    def test_too_few_descriptors_are_said_before_anything_runs(self):
        for soft, hard in ((256, 256), (64, 256), (300, 4096), (64, 255), (6, 64)):
            with mock.patch("resource.getrlimit", return_value=(soft, hard)), \
                    mock.patch("resource.setrlimit") as allow, self.subTest(soft=soft, hard=hard):
                if hard >= 256:
                    run.allow_descriptors()
                    allow.assert_called_once_with(resource.RLIMIT_NOFILE, (max(soft, 256), hard))
                    continue
                with self.assertRaisesRegex(SystemExit, "^tests need 256 descriptors, and the limit is %d;" % hard):
                    run.allow_descriptors()
                allow.assert_not_called()


class Processes(cluster.ClusterTest):
    def test_what_has_ended_holds_no_descriptor(self):
        """A test may start hundreds, where a container has few descriptors."""
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            self.assertEqual(self.start("fragctl", "--version").wait(), 0)
        self.assertEqual(os.listdir("/proc/self/fd"), before)
