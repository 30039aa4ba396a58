# SPDX-License-Identifier: Apache-2.0
"""pytest for tests/holoscan/suite.py: recorder.py EVENTS DONE ARGUMENTS...

Writes a line of JSON to EVENTS when a test is found, starts and ends, so that the runner knows
which test has crashed or hangs. Tests that the file DONE names are left out.
"""
import enum
import json
import sys

import pytest
from _pytest.python import IdMaker


def name_members_alike():
    """Members of Holoscan's enumerations are named by the argument and their number."""
    plain = IdMaker._idval_from_value

    def idval_from_value(self, value):
        return None if isinstance(value, enum.Enum) else plain(self, value)

    IdMaker._idval_from_value = idval_from_value


class Recorder:
    def __init__(self, events, done):
        self.events = open(events, "a", buffering=1)
        with open(done, encoding="utf-8") as file:
            self.done = set(json.load(file))

    def write(self, event, test, **more):
        self.events.write(json.dumps({"event": event, "test": test, **more}) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid not in self.done]
        for item in items:
            self.write("found", item.nodeid)

    def pytest_collectreport(self, report):
        if report.failed:
            self.write("failed", report.nodeid, reason=self.reason(report))

    def pytest_runtest_logstart(self, nodeid):
        self.write("start", nodeid)

    def pytest_runtest_logreport(self, report):
        if report.failed or report.skipped:
            self.write(report.outcome, report.nodeid, reason=self.reason(report))
        elif report.when == "call":
            self.write(report.outcome, report.nodeid)

    @staticmethod
    def reason(report):
        if isinstance(report.longrepr, tuple):
            return report.longrepr[2]
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash else str(report.longrepr)
        if crash is None:
            text = text.strip().splitlines()[-1]
        return text[:400]


if __name__ == "__main__":
    name_members_alike()
    sys.exit(pytest.main(sys.argv[3:], plugins=[Recorder(*sys.argv[1:3])]))
