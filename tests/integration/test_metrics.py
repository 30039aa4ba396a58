# SPDX-License-Identifier: Apache-2.0
"""/metrics of fragctl web: its numbers are those of the driver, and go on over what happens."""
import os
import re
import shutil
import signal
import subprocess
import time

import cluster
from test_web import QUIET, WebTest

SAMPLE = re.compile(r'^(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
RESTARTS = """
frag: 1
application: restarts
extensions: [libtruth.so]
fragments:
  front:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 2ms}}
  back:
    on_failure: {policy: restart, intensity: 9, period: 60s}
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows: [front.tx.out -> back.rx.in]
"""


class Metrics(WebTest):
    def page(self):
        """{(name, labels...): number} of a page that promtool takes."""
        status, text = self.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertEqual(self.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        if shutil.which("promtool"):
            p = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            self.assertEqual((p.returncode, p.stdout + p.stderr), (0, ""))
        found = {}
        for line in text.splitlines():
            if line.startswith("# "):
                continue
            name, labels, number = SAMPLE.match(line).groups()
            key = (name, *("%s=%s" % label for label in LABEL.findall(labels or "")))
            self.assertNotIn(key, found, "a series twice")
            found[key] = float(number)
        return found

    def fresh(self, is_right=lambda page: True):
        """A page that is not the one before, when it is right."""
        found = []

        def look():
            time.sleep(0.26)  # pages within 250 ms are the same
            found[:] = [self.page()]
            return is_right(found[0])
        self.wait_until("a page", look)
        return found[0]

    def test_its_numbers_are_those_of_the_summary(self):
        self.serve("--state-dir", self.path("state"), workers=("a", "b"))
        self.web()
        self.ok("start", self.write("quiet.yaml", QUIET % {"folder": self.folder}))
        flow = ("app=quiet", "flow=front.tx.out -> back.rx.in")
        page = self.fresh(lambda page: page.get(("frag_flow_messages_delivered_total", *flow)) == 50)
        self.assertEqual(page["frag_flow_messages_sent_total", *flow], 50)
        self.assertEqual(page["frag_flow_messages_in_flight", *flow], 0)
        self.assertEqual(page["frag_flow_messages_lost_total", *flow], 0)
        self.assertEqual(page["frag_flow_capacity_messages", *flow], 3)
        self.assertEqual(page["frag_flow_messages_dropped_total", *flow, "reason=queue_full"], 0)
        self.assertEqual(page["frag_operator_ticks_total", "app=quiet", "operator=back.rx"], 50)
        self.assertEqual(page["frag_application_state", "app=quiet", "state=running"], 1)
        self.assertEqual(page["frag_worker_up", "worker=a"], 1)
        # A scrape counts as looking: the hosts measure from then on.
        page = self.fresh(lambda page: ("frag_flow_latency_seconds_count", *flow) in page)
        self.assertEqual(page["frag_flow_latency_seconds_count", *flow], 50)
        self.assertEqual(page["frag_flow_latency_seconds_bucket", *flow, "le=+Inf"], 50)
        page = self.fresh()
        self.assertGreater(page["frag_operator_time_seconds_total", "app=quiet", "operator=front.stays", "use=time"], 0.1)
        self.ok("stop", "quiet")
        page = self.fresh(lambda page: ("frag_application_ended_age_seconds", "app=quiet", "result=stopped") in page)
        self.assertEqual([key for key in page if "frag_flow" in key[0]], [], "it does not run")
        self.assertEqual(page["frag_events_total", "kind=stopped"], 1)
        disk = os.statvfs(self.path("state"))
        self.assertEqual(page["frag_driver_state_bytes",], disk.f_frsize * disk.f_blocks)
        self.assertLess(page["frag_driver_state_free_bytes",], disk.f_frsize * disk.f_blocks)

    def assert_balanced_page(self, page):
        flows = [key[1:] for key in page if key[0] == "frag_flow_messages_sent_total"]
        self.assertNotEqual(flows, [])
        for flow in flows:
            rows = [(key[0].removeprefix("frag_flow_messages_"), value)
                    for key, value in page.items() if key[1:3] == flow]
            sent = sum(value for name, value in rows if name == "sent_total")
            ends = ("delivered_total", "dropped_total", "lost_total", "in_flight")
            self.assertEqual(sent, sum(value for name, value in rows if name in ends), (flow, rows))

    def test_no_restart_takes_anything_away(self):
        self.serve(workers=("a", "b"))
        self.web()
        self.ok("start", self.write("restarts.yaml", RESTARTS % {"folder": self.folder}))
        before = self.fresh(lambda page: page.get(("frag_operator_ticks_total", "app=restarts", "operator=back.rx"), 0) > 50)
        host = ("app=restarts", "host=back")
        self.assertEqual(before["frag_host_restarts_total", *host], 0)
        for pid in [h["pid"] for h in self.application("restarts")["hosts"] if h["fragments"] == "back"]:
            os.kill(pid, signal.SIGKILL)
        pages = [before, self.fresh(), self.fresh(lambda page: page["frag_host_restarts_total", *host] == 1), self.fresh(), self.fresh()]
        for one, next_one in zip(pages, pages[1:]):
            for key in one:
                if key[0].endswith(("_total", "_count", "_sum", "_bucket")) and key[0] != "frag_host_cpu_seconds_total":
                    self.assertGreaterEqual(next_one.get(key, -1), one[key], key)
        for page in pages:
            self.assert_balanced_page(page)
        ticks = ("frag_operator_ticks_total", "app=restarts", "operator=back.rx")
        self.assertGreater(pages[-1][ticks], pages[2][ticks], "it goes on")
        run = ("frag_application_run", "app=restarts")
        self.ok("restart", "restarts")
        again = self.fresh(lambda page: page.get(run, 0) > before[run])
        self.assertLess(again.get(ticks, 0), pages[-1][ticks], "and the number of the run shows it")

    def test_a_driver_that_is_gone_is_a_number(self):
        d, _ = self.serve(workers=("a",))
        self.web()
        self.assertEqual(self.page()["frag_driver_up",], 1)
        d.signal(signal.SIGKILL)
        d.wait()
        page = self.fresh(lambda page: page["frag_driver_up",] == 0)
        self.assertEqual({key[0] for key in page}, {"frag_build_info", "frag_driver_up", "frag_left_out_rows"})
        self.serve(port=int(self.address.rsplit(":", 1)[1]))
        self.fresh(lambda page: page["frag_driver_up",] == 1
                   and page.get(("frag_worker_up", "worker=a")) == 1)

    def test_the_root_cause_is_that_of_the_time_between_two_scrapes(self):
        self.serve(workers=("a",))
        self.web()
        self.ok("start", self.write("slow.yaml", cluster.SLOW))
        # On a busy machine the cores are to blame for some windows.
        cause = ("frag_application_root_cause", "app=slow", "kind=operator", "operator=one.rx", "flow_from=")
        page = self.fresh(lambda page: page.get(cause) == 1)
        self.assertEqual(page["frag_application_slow", "app=slow"], 1)
