# SPDX-License-Identifier: Apache-2.0
"""The graphs of tests/oracle as fragctl runs them: what the oracle prints must be a graph file."""
import os
import subprocess

import cluster

ORACLE = os.path.join(cluster.BUILD, "tests", "oracle")


class Graphs(cluster.ClusterTest):
    def test_a_printed_graph_runs(self):
        for seed in (1, 2, 3, 16):
            text = subprocess.run([os.path.join(ORACLE, "oracle"), "--write", str(seed)],
                                  stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
            p = self.start("fragctl", "run", "-q", self.write("graph%d.yaml" % seed, text),
                           "--library-path", ORACLE)
            self.assertEqual(p.wait(60), 0, text)
            # Where an operator has ended, messages to it may stay.
            self.assertRegex(p.stderr, r"\A([^\n]* ends at rest with \d+ messages? that no operator can take any more: "
                             r"([^\n,]+, ){0,2}[^\n,]+( and \d+ more inputs?)?(\n|\Z))*\Z", text)
