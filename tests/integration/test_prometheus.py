# SPDX-License-Identifier: Apache-2.0
"""What deploy/grafana asks of Prometheus: its rules fire when they should, and a real Prometheus
that scrapes a real run has data for each panel of the dashboard."""
import json
import os
import re
import shutil
import signal
import subprocess
import unittest
import urllib.parse
import urllib.request

import cluster
from test_web import WebTest

GRAFANA = os.path.join(cluster.TOP, "deploy", "grafana")
MISSING = "prometheus is not installed; mk/deps.sh nightly does it"
SLOW = """
frag: 1
application: slow
extensions: [libslow.so]
fragments:
  front:
    operators:
      tx: {type: ping_tx, deadline: 1s, conditions: [{type: periodic, recess_period: 50hz}]}
  back:
    on_failure: {policy: restart, intensity: 1000, period: 60s}
    operators:
      rx: {type: slow_rx, parameters: {sleep_ms: 60}}
flows:
  - {from: front.tx.out, to: back.rx.in, policy: pop}
"""


def expressions(value):
    """All that the dashboard asks: (title of the panel, expression)."""
    with open(os.path.join(GRAFANA, "dashboard.json")) as f:
        dashboard = json.load(f)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$app", ".*").replace("$__rate_interval", value)


class Rules(unittest.TestCase):
    def test_names_are_those_of_the_page(self):
        with open(os.path.join(cluster.TOP, "docs", "OBSERVE.md")) as f:
            names = set(re.findall(r"^\| (frag_\w+) \|", f.read(), re.M))
        with open(os.path.join(GRAFANA, "alerts.yml")) as f:
            asked = f.read() + " ".join(e for _, e in expressions("1m"))
        asked = {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"frag_\w+", asked)}
        self.assertEqual(asked - names, set())
        self.assertGreater(len(asked), 20)

    @unittest.skipUnless(shutil.which("promtool"), MISSING)
    def test_rules_fire_when_they_should(self):
        p = subprocess.run(["promtool", "test", "rules", "alerts_test.yml"], cwd=GRAFANA, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        with open(os.path.join(GRAFANA, "alerts.yml")) as f, open(os.path.join(GRAFANA, "alerts_test.yml")) as tests:
            tested = tests.read()
            for alert in re.findall(r"alert: (\w+)", f.read()):
                self.assertIn("alertname: %s\n        exp_alerts:\n          - " % alert, tested, "it is never seen to fire")


@unittest.skipUnless(shutil.which("prometheus"), MISSING)
class Dashboard(WebTest):
    def ask_prometheus(self, path, **query):
        url = "http://%s/api/v1/%s?%s" % (self.prometheus, path, urllib.parse.urlencode(query))
        with urllib.request.urlopen(url, timeout=cluster.PATIENCE_S) as reply:
            return json.load(reply)["data"]

    def begin_prometheus(self):
        self.prometheus = "127.0.0.1:%d" % self.free_port()
        with open(os.path.join(GRAFANA, "alerts.yml")) as f:
            self.write("alerts.yml", f.read())
        config = self.write("prometheus.yml", """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: frag
    static_configs: [{targets: ["%s"]}]
""" % self.at)
        with open(self.path("prometheus.log"), "w") as log:
            p = subprocess.Popen(["prometheus", "--config.file=" + config, "--storage.tsdb.path=" + self.path("tsdb"),
                                  "--web.listen-address=" + self.prometheus], stdout=log, stderr=log)
        self.addCleanup(p.wait)
        self.addCleanup(p.send_signal, signal.SIGKILL)

    def data(self, expression):
        try:
            return self.ask_prometheus("query", query=expression)["result"]
        except (OSError, urllib.error.URLError):
            return []  # it does not listen yet

    def test_no_panel_is_without_data(self):
        self.serve("--state-dir", self.path("state"), workers=("a", "b"))
        self.web()
        self.ok("start", self.write("slow.yaml", SLOW))
        self.begin_prometheus()
        empty = []

        def all_have():
            empty[:] = [(title, e) for title, e in expressions("6s") if not self.data(e)]
            return not empty
        try:
            self.wait_until("data", all_have)
        except AssertionError:
            self.fail("no data for %s" % empty)
        for title, expression in expressions("6s"):
            for series in self.data(expression):
                self.assertNotEqual(series["value"][1], "NaN", title)
        rows = self.data('histogram_quantile(0.5, rate(frag_operator_compute_seconds_bucket{operator="back.rx"}[6s]))')
        self.assertTrue(0.016 < float(rows[0]["value"][1]) < 0.27, "its ticks take 60 ms: %s" % rows)
        self.wait_until("the alert", lambda: "FragSlow" in [a["labels"]["alertname"] for a in self.ask_prometheus("alerts")["alerts"]])
        scraped = self.ask_prometheus("targets")["activeTargets"][0]
        self.assertEqual((scraped["health"], scraped["lastError"]), ("up", ""))
