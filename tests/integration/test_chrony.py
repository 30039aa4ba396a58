# SPDX-License-Identifier: Apache-2.0
"""How exactly a host knows the clock of another node, beside chrony on the same link."""
import os
import re
import shutil
import statistics
import subprocess
import time
import unittest

import test_nodes

APP = """frag: 1
application: stream
fragments:
  fragment1: {operators: {tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 30hz}]}}}
  fragment2: {operators: {rx: {type: ping_rx}}}
flows: [fragment1.tx -> fragment2.rx]
"""
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}


@unittest.skipUnless(os.environ.get("FRAG_CHRONY"), "FRAG_CHRONY: as many readings beside chrony, which it needs")
class Beside(test_nodes.TwoNodes):
    """chronyd in both namespaces, which sets no clock: it asks the other one four times a second,
    and the kernel says when packets went and came. Hosts do not wait for other programs (chrt)."""

    def chronyd(self, ns, name, line):
        folder = self.path(name)
        os.mkdir(folder, 0o750)
        config = "%s\ncmdport 0\nbindcmdaddress %s/socket\npidfile %s/pid\nuser root\n" % (line, folder, folder)
        self.write(name + "/conf", config)
        self.start(shutil.which("chronyd"), "-x", "-d", "-f", folder + "/conf", prefix=self.inside(ns))
        return folder

    def bound_of_chrony(self, folder):
        """In us, as of what NTP gives for an error at most."""
        said = subprocess.run(["chronyc", "-h", folder + "/socket", "tracking"], capture_output=True, text=True,
                              check=True).stdout
        delay, dispersion = (float(re.search("Root %s +: ([0-9.]+)" % what, said).group(1))
                             for what in ("delay", "dispersion"))
        return 1e6 * (delay / 2 + dispersion)

    def bound(self):
        """In us, the largest one of 200 ms."""
        p = self.start("fragctl", "trace", "stream", "--for", "200ms", "-o", self.path("t.pftrace"), "--address",
                       self.address, prefix=self.inside(self.a))
        self.assertEqual(p.wait(), 0, p.stderr)
        number, unit = re.search(r"clocks to within ([0-9.]+) (\S+)", p.stdout).groups()
        return float(number) * UNITS[unit]

    def test_the_bound_at_rest_is_at_most_twice_that_of_chrony(self):
        self.chronyd(self.b, "server", "local stratum 8\nallow all")
        client = self.chronyd(self.a, "client", "server %s iburst minpoll -2 maxpoll -2" % self.ADDRESSES[1])
        self.driver(self.write("app.yaml", APP), "--insecure", address=self.ADDRESSES[0] + ":0",
                    prefix=self.inside(self.a))
        first = ("chrt", "-r", "10")
        workers = [self.worker("--once", "--insecure", "--name", ns, fragments=fragment,
                               prefix=(*self.inside(ns), *first, *time_of))
                   for ns, fragment, time_of in ((self.a, "fragment1", ()), (self.b, "fragment2", test_nodes.IN_ANOTHER_TIME))]
        for worker in workers:
            worker.wait_line("the clock of .*: locked")
        time.sleep(6) # until both know the rate
        readings = []
        for _ in range(int(os.environ["FRAG_CHRONY"])):
            readings.append((self.bound(), self.bound_of_chrony(client)))
            print("  %.1f us, chrony %.1f us" % readings[-1])
            time.sleep(2)
        ours, theirs = map(statistics.median, zip(*readings))
        print("  medians: %.1f us, chrony %.1f us: %.2f" % (ours, theirs, ours / theirs))
        apart_ns = test_nodes.Clocks.apart_ns
        for worker, truth_ns in zip(workers, (apart_ns, -apart_ns)):
            for offset, bound in test_nodes.Clocks.LOCKED.findall(worker.stderr):
                self.assertLessEqual(abs(int(offset) - truth_ns), int(bound))
        self.assertLessEqual(ours, 2 * theirs)
