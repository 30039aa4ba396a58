# SPDX-License-Identifier: Apache-2.0
"""What is installed for systemd: settings, units, users, manual pages, completion."""
import glob
import os
import re
import shutil
import subprocess
import unittest

import cluster

DEPLOY = os.path.join(cluster.TOP, "deploy")
SERVICES = {"driver": "driverd", "worker": "workerd", "web": "fragctl web"}  # and their programs


class Deploy(cluster.ClusterTest):
    def install(self, prefix="/usr"):
        """The folder that such an installation is in."""
        env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        r = subprocess.run(["make", "-s", "-C", cluster.TOP, "install-services", "DESTDIR=" + self.folder,
                            "prefix=" + prefix], env=env, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r.stderr)
        return self.folder

    def settings(self, service):
        with open(os.path.join(DEPLOY, service + ".env")) as f:
            return f.read()

    def test_every_setting_is_a_comment_that_a_program_reads(self):
        """A daemon warns of a variable that nothing reads."""
        variables = {}
        for service in SERVICES:
            text = self.settings(service)
            lines = [line for line in text.splitlines() if line]
            self.assertEqual([line for line in lines if not line.startswith("#")], [])
            for name, value in re.findall(r"^#(FRAG_\w+)=(.*)$", text, re.M):
                variables[name] = value
        self.assertGreater(len(variables), 25)
        # fragctl reads these itself
        p = self.start("fragctl", "run", "--help")
        self.assertEqual(p.wait(), 0)
        own = re.findall(r"--([\w-]+)", p.stdout)
        env = {name: value for name, value in variables.items()
               if name[5:].lower().replace("_", "-") not in own and name != "FRAG_LOG_LEVEL"}
        self.assertIn("FRAG_CERT_KEY", env)
        p = self.start("fragctl", "run", "-e", "ping_tx count=1 ! ping_rx",
                       env=dict(env, FRAG_NO_SUCH_SETTING="1"))
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(re.findall(r"nothing reads the variable (\w+)", p.stderr), ["FRAG_NO_SUCH_SETTING"])

    def test_units_name_what_is_installed(self):
        top = self.install("/opt/frag")
        for service in SERVICES:
            with open(os.path.join(top, "opt/frag/lib/systemd/system/frag-%s.service" % service)) as f:
                unit = f.read()
            self.assertNotIn("@", re.sub("(?m)^SystemCallFilter.*", "", unit))
            path = re.search(r"\nEnvironmentFile=-(.*)\n", unit).group(1)
            self.assertIn("\nExecStart=/opt/frag/bin/%s --env-file %s\n" % (SERVICES[service], path), unit)
            self.assertTrue(os.path.exists(top + path), path)
            for user in re.findall(r"^User=(.*)$", unit, re.M):
                with open(os.path.join(top, "opt/frag/lib/sysusers.d/frag.conf")) as f:
                    self.assertRegex(f.read(), r"(?m)^u %s -" % user)

    def test_settings_that_were_changed_are_kept(self):
        top = self.install()
        path = os.path.join(top, "etc/frag/driver.env")
        with open(path, "w") as f:
            f.write("FRAG_ADDRESS=10.0.0.1\n")
        self.install()
        with open(path) as f:
            self.assertEqual(f.read(), "FRAG_ADDRESS=10.0.0.1\n")

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_units_are_as_closed_as_they_can_be(self):
        """The exposure that systemd-analyze counts; docs/DEPLOY.md explains the rest of it."""
        top = self.install()
        for service, most in (("driver", 1.0), ("worker", 2.1), ("web", 1.2)):
            r = subprocess.run(["systemd-analyze", "security", "--offline=true", os.path.join(
                top, "usr/lib/systemd/system/frag-%s.service" % service)], capture_output=True, text=True)
            found = re.search(r"exposure level for frag-%s.service: ([\d.]+)" % service, r.stdout)
            if not found and "offline" in r.stderr:
                self.skipTest("this systemd-analyze judges no unit that is not loaded")
            self.assertLessEqual(float(found.group(1)), most, r.stdout)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_manual_pages_have_no_warnings(self):
        pages = glob.glob(os.path.join(DEPLOY, "man", "*"))
        self.assertEqual(len(pages), 3)
        for page in pages:
            r = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z", page], capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stderr), (0, ""), page)
