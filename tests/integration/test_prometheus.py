# SPDX-License-Identifier: Apache-2.0
"""What deploy/grafana asks of Prometheus."""
import json
import os
import re
import shutil
import subprocess
import unittest

import cluster

GRAFANA = os.path.join(cluster.TOP, "deploy", "grafana")
MISSING = "prometheus is not installed; mk/deps.sh nightly does it"


def expressions(value):
    """All that the dashboard asks: (title of the panel, expression)."""
    with open(os.path.join(GRAFANA, "dashboard.json")) as f:
        dashboard = json.load(f)
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$app", ".*").replace("$__rate_interval", value)


class Rules(unittest.TestCase):
    def test_names_are_those_of_the_page(self):
        with open(os.path.join(cluster.TOP, "fragctl", "metrics.c")) as f:
            names = set(re.findall(r'\{"(frag_\w+)"', f.read()))
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
