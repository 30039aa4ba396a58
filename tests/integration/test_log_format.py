# SPDX-License-Identifier: Apache-2.0
"""The formats and levels of the log of every program, and the job statistics in the summary."""
import json
import os
import subprocess
import sys

import cluster


class Format(cluster.ClusterTest):
    APP = """
frag: 1
application: app
operators:
  tx: {type: ping_tx, conditions: [{type: count, count: 3}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""

    def objects(self, run):
        """The lines of stderr, all of which are objects."""
        return [json.loads(line) for line in run.stderr.splitlines()]

    def test_every_program_writes_json(self):
        app = self.write("app.yaml", self.APP)
        env = {"FRAG_LOG_FORMAT": "json"}
        for args in ((), ("--in-process",), ("--workers", "1"), ("-v",)):
            run = self.start("fragctl", "run", *args, app, env=env)
            self.assertEqual(run.wait(), 0, run.stderr)
            lines = [o for o in self.objects(run) if o.get("topic") == "op"]
            self.assertEqual([o["text"] for o in lines], ["Rx message value: %d" % n for n in (1, 2, 3)])
            for o in lines:
                self.assertEqual((o["level"], o["application"], o["fragment"], o["operator"]),
                                 ("info", "app", "app", "rx"))
                self.assertRegex(o["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")

    def test_errors_are_objects_too(self):
        env = {"FRAG_LOG_FORMAT": "json"}
        for program, args, text in (
                ("fragctl", ("rnu",), "unknown verb"),
                ("fragctl", ("run", "--nothing"), "unknown flag --nothing"),
                ("driverd", ("--nothing",), "unknown flag --nothing"),
                ("workerd", ("--nothing",), "unknown flag --nothing"),
                ("fragctl", ("run", self.write("bad.yaml", self.APP.replace("ping_rx", "ping_rxx"))), "ping_rxx")):
            run = self.start(program, *args, env=env)
            self.assertEqual(run.wait(), 2, run.stderr)
            found = self.objects(run)
            self.assertEqual(found[-1]["level"], "error")
            self.assertIn(text, found[-1]["text"])

    def test_a_format_that_does_not_exist_is_reported(self):
        run = self.start("fragctl", "run", self.write("app.yaml", self.APP), env={"FRAG_LOG_FORMAT": "xml"})
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertIn("FRAG_LOG_FORMAT is \"xml\", which is not a format; text is used (give text or json)", run.stderr)

    def test_only_what_is_critical(self):
        run = self.start("fragctl", "run", self.write("app.yaml", self.APP), env={"FRAG_LOG_LEVEL": "critical"})
        self.assertEqual((run.wait(), run.stderr), (0, ""))

    def test_the_summary_has_the_jobs_of_operators(self):
        app = self.APP.replace("count: 3}", "count: 3}, {type: periodic, recess_period: 300ms}")
        run = self.start("fragctl", "run", "--output", "json", self.write("app.yaml", app))
        self.assertEqual(run.wait(), 0, run.stderr)
        for op in self.summary(run)["fragments"][0]["operators"]:
            job = op["job"]
            self.assertEqual(job["count"], 3)
            self.assertGreater(job["time_ns"], 0)
            self.assertLess(job["time_ns"], job["waiting_ns"])
            self.assertGreater(job["time_ns"] + job["waiting_ns"], 590e6, "two periods")

    def test_job_statistics_with_the_keys_of_holoscan(self):
        """By the program that docs/FROM_HOLOSCAN.md has for it."""
        with open(os.path.join(cluster.TOP, "docs", "FROM_HOLOSCAN.md"), encoding="utf-8") as f:
            program = f.read().partition("### Job statistics\n")[2].partition("```python\n")[2].partition("```")[0]
        run = self.start("fragctl", "run", "--summary", self.path("summary.json"), self.write("app.yaml", self.APP))
        self.assertEqual(run.wait(), 0, run.stderr)
        printed = subprocess.run([sys.executable, "-c", program], cwd=self.folder, check=True,
                                 capture_output=True)
        found = json.loads(printed.stdout)["entities"]
        self.assertEqual([(e["name"], e["count"]) for e in found], [("app.tx", 3), ("app.rx", 3)])
        for entity in found:
            self.assertGreater(entity["execution_time_ms"], 0)
            self.assertGreaterEqual(entity["execution_time_max_ms"], entity["execution_time_median_ms"])
            self.assertTrue(0 < entity["load_percentage"] <= 100, entity)
