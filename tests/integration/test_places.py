# SPDX-License-Identifier: Apache-2.0
"""What an application is and does does not depend on where its fragments run: the same graph is
accepted or refused, with the same errors, by every way to check it and to run it."""
import re
import signal

import cluster

HEAD = "frag: 1\napplication: app\n"


class Places(cluster.ClusterTest):
    def errors_of(self, process):
        """The lines that begin with a place in the graph, in the order in which they were
        printed."""
        return re.findall(r"(?m)(?:^|[ /])(v\.yaml:\d+:\d+: .*)$", process.stderr)

    def daemons(self, *worker_args):
        """A driver and a worker for each of the two fragments. What the text alone shows is
        reported before the driver listens."""
        try:
            driver = self.driver(self.path("v.yaml"))
        except AssertionError:
            return self.processes[-1]
        workers = [self.worker(*worker_args, fragments=name) for name in ("one", "two")]
        driver.wait()
        for worker in workers:
            worker.signal(signal.SIGTERM)
            worker.wait()
        return driver

    def everywhere(self, text, code):
        """The exit code and errors of each way, which must be the same. Returns the errors."""
        app = self.write("v.yaml", text)
        ways = {
            "validate": self.start("fragctl", "validate", app),
            "run": self.start("fragctl", "run", app),
            "run --workers": self.start("fragctl", "run", "--workers", "2", app),
            "driverd": self.daemons(),
        }
        for name, process in ways.items():
            self.assertEqual(process.wait(), code, "%s: %s" % (name, process.stderr))
        errors = self.errors_of(ways["validate"])
        for name, process in ways.items():
            self.assertEqual(self.errors_of(process), errors, name)
        return errors

    def test_a_capacity_is_good_everywhere_or_nowhere(self):
        text = HEAD + """fragments:
  one: {operators: {tx: {type: ping_tx, conditions: [{type: count, count: 3}]}}}
  two: {operators: {rx: {type: ping_rx}}}
flows: [{from: one.tx.out, to: two.rx.in, capacity: %d}]
"""
        self.assertEqual(self.everywhere(text % 65536, 0), [])
        self.assertEqual(self.everywhere(text % 65537, 2), [
            'v.yaml:6:53: capacity "65537" is no whole number from 1 to 65536'])


if __name__ == "__main__":
    cluster.main()
