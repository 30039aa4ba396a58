# SPDX-License-Identifier: Apache-2.0
"""What tests/run.py repeats of programs that failed."""
import contextlib
import io
import os
import sys
import types
import unittest
from unittest import mock

import cluster

sys.path.insert(0, os.path.join(cluster.TOP, "tests"))
import run  # noqa: E402


class Again(unittest.TestCase):
    def run_all(self, outcomes, again):
        """outcomes: for each program, what each of its runs fails with, or None. Returns (what
        failed in the end, how many ran twice, how often each ran)."""
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
            results, repeated = run.run_programs(programs, "build", None, args, {})
        self.assertEqual(sorted(r.name for r in results), sorted(outcomes), "each counts once")
        return sorted(n for r in results for n in r.failed), repeated, ran

    def test_what_failed_once_counts_as_it_ends(self):
        failed, repeated, ran = self.run_all({"a": ["failed", None], "b": ["failed", "failed"], "c": [None]}, 2)
        self.assertEqual((failed, repeated, ran), (["b"], 2, {"a": 2, "b": 2, "c": 1}))

    def test_more_failures_than_that_are_no_accident(self):
        failed, repeated, ran = self.run_all({"a": ["failed"], "b": ["failed"], "c": [None]}, 1)
        self.assertEqual((failed, repeated, ran), (["a", "b"], 0, {"a": 1, "b": 1, "c": 1}))

    def test_a_report_is_believed_at_once(self):
        failed, repeated, _ = self.run_all({"a": ["certain"], "b": [None]}, 2)
        self.assertEqual((failed, repeated), (["a"], 0))

    def test_nothing_is_repeated_unless_asked(self):
        self.assertEqual(self.run_all({"a": ["failed"], "b": [None]}, 0)[:2], (["a"], 0))

    def test_the_last_line_counts_what_ran_twice(self):
        result = run.Result("a")
        result.passed = ["a"]
        args = types.SimpleNamespace(tests=None, record=None)
        for repeated, words in ((0, ""), (2, ", 2 programs ran twice")):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(run.report([result], repeated, {}, args, False), 0)
            self.assertEqual(out.getvalue(), "1 passed, 0 failed, 0 skipped%s\n" % words)


if __name__ == "__main__":
    cluster.main()
