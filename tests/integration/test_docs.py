# SPDX-License-Identifier: Apache-2.0
"""What the documents say that programs know better is made from the programs; links between documents lead somewhere."""
import os
import re
import subprocess
import sys
import unittest

import cluster


class Docs(unittest.TestCase):
    def test_made_parts_are_as_the_programs_say(self):
        r = subprocess.run([sys.executable, os.path.join(cluster.TOP, "mk", "docs.py"), "--build", cluster.BUILD,
                            "--check"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def test_links_lead_somewhere(self):
        files = ["README.md"] + ["docs/" + n for n in os.listdir(os.path.join(cluster.TOP, "docs"))
                                 if n.endswith(".md")]
        for name in files:
            with open(os.path.join(cluster.TOP, name), encoding="utf-8") as f:
                text = f.read()
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                path = os.path.join(cluster.TOP, os.path.dirname(name), target)
                self.assertTrue(os.path.exists(path), "%s links to %s" % (name, target))


if __name__ == "__main__":
    cluster.main()
