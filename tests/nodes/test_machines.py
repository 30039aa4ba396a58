#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages on machines of systemd-nspawn, as docs/DEPLOY.md describes it: installed by
apt, driver and workers as units with keys, an application with video over two machines, failures of
processes and machines, an upgrade, removal and purge.

usage: tests/nodes/test_machines.py FOLDER [CLASS[.TEST]]     FOLDER has the packages (make deb)

Where there can be no such machines, every test is skipped by name.
"""
import glob
import os
import re
import shutil
import sys
import tempfile
import unittest

import machine

EXAMPLE = "/usr/share/frag/examples/video_replayer_distributed"
# Where packages leave no trace of frag: logs and the books of dpkg and apt.
NOT_COMPARED = ("/var/log", "/var/lib/dpkg", "/var/lib/apt", "/var/lib/systemd", "/var/cache", "/proc", "/sys", "/dev",
                "/run", "/tmp", "/var/tmp", "/root")
# Copies that useradd and systemd-sysusers keep.
BOOKS = {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-",
         "/etc/.pwd.lock"}
packages = []  # paths of those under test


class Machines(unittest.TestCase):
    count = 1

    def setUp(self):
        why_not = machine.missing()
        if why_not:
            self.skipTest(why_not)
        machine.call(os.path.join(machine.HERE, "root.sh"), machine.ROOT)
        self.folder = tempfile.mkdtemp(prefix="frag-nodes-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        network = machine.Network()
        self.addCleanup(network.close)
        self.nodes = []
        for number in range(1, self.count + 1):
            node = machine.Machine(network, self.folder, number)
            self.addCleanup(node.close)
            self.nodes.append(node)
            node.power_on()
            self.assertEqual(node.run("systemctl", "--failed", "--no-legend"), "")

    def install(self, node, paths=None):
        names = []
        for path in paths or packages:
            shutil.copy(path, node.path("/root"))
            names.append("/root/" + os.path.basename(path))
        node.run("apt-get", "install", "-y", *names)

    def newer(self):
        """The same packages with a higher version."""
        made = []
        for path in packages:
            tree = tempfile.mkdtemp(dir=self.folder)
            machine.call("dpkg-deb", "-R", path, tree)
            control = os.path.join(tree, "DEBIAN", "control")
            with open(control) as f:
                text = f.read()
            version = re.search(r"^Version: (.*)$", text, re.M).group(1)
            with open(control, "w") as f:
                f.write(text.replace("Version: " + version, "Version: %s+newer" % version)
                        .replace("(= %s)" % version, "(= %s+newer)" % version))
            made.append(os.path.join(self.folder, "newer-" + os.path.basename(path)))
            machine.call("dpkg-deb", "-b", tree, made[-1])
        return made

    def make_keys(self, *workers):
        """One for each worker; the driver on the first machine has all of them."""
        driver = self.nodes[0]
        for node in workers:
            key = "/root/%s.key" % node.name
            driver.run("fragctl", "key", "new", "--role", "worker", "--name", node.name, key)
            driver.shell("cat %s >>/etc/frag/driver.key" % key)
            shutil.copy(driver.path(key), node.path("/etc/frag/worker.key"))
        for node in {*workers, driver}:
            node.run("systemd-tmpfiles", "--create", "frag.conf")

    def configure(self, node, service, **settings):
        lines = ["FRAG_%s=%s" % (name.upper(), value) for name, value in settings.items()]
        node.shell("cat >>/etc/frag/%s.env <<'END'\n%s\nEND" % (service, "\n".join(lines)))
        node.run("systemctl", "enable", "--now", "frag-" + service)
        self.assertEqual(node.show("frag-" + service, "ActiveState"), "active")

    def start_video(self, fragments):
        """The example with video, without end, with its picture on the last machine: a node for
        each fragment, in their order."""
        driver, last = self.nodes[0], fragments[-1][0]
        driver.shell("mkdir -p /etc/frag && sed 's/picture: {default: \"200\"/picture: {default: \"20\"/; "
                     "s/realtime: \"${realtime}\"/&, repeat: true/' %s/app.yaml >/etc/frag/video.yaml" % EXAMPLE)
        last.run("install", "-d", "-o", "frag-worker", "/var/lib/frag-worker/out")
        for node, name in fragments:
            self.configure(node, "worker", address=driver.address, key_file="/etc/frag/worker.key", fragments=name,
                           app_root="/var/lib/frag-worker" if node is last and len(self.nodes) > 1 else EXAMPLE,
                           allow_write="/var/lib/frag-worker")
        self.picture = last.path("/var/lib/frag-worker/out/frame.png")
        self.configure(driver, "driver", address=driver.address, key_file="/etc/frag/driver.key",
                       app="/etc/frag/video.yaml")
        self.wait_video()

    def wait_video(self):
        """Waits until frames have crossed anew from the first fragment to the last one."""
        if os.path.exists(self.picture):
            os.unlink(self.picture)
        try:
            machine.Machine.wait("the picture", lambda: os.path.exists(self.picture))
        except AssertionError as e:
            raise AssertionError("%s\n%s" % (e, "\n".join(
                node.journal("frag-*")[-3000:] for node in self.nodes if node.leader))) from None

    def files(self, node):
        found = set()
        for folder, folders, names in os.walk(node.root):
            here = folder[len(node.root):]
            folders[:] = [d for d in folders if here + "/" + d not in NOT_COMPARED]
            found.update(here + "/" + name for name in (*folders, *names))
        return found

    @staticmethod
    def processes(node):
        """How many of frag's there are."""
        return node.run("pgrep", "-c", "-x", "driverd|workerd|fraghost|frag-keeper", check=False).strip()

    def purge(self, node, before):
        """Nothing is left but what tools keep of the books of users and services."""
        node.run("apt-get", "purge", "-y", "frag", "libfrag1", "frag-examples")
        self.assertEqual(self.processes(node), "0")
        self.assertEqual(self.files(node) - before - BOOKS, set())

    def restarts(self, node, service):
        return int(node.show("frag-" + service, "NRestarts"))


class OneMachine(Machines):
    def test_units(self):
        """Installed, watched, judged, removed and purged."""
        node = self.nodes[0]
        before = self.files(node)
        accounts = node.read("/etc/passwd"), node.read("/etc/group")
        self.install(node)
        for service in ("driver", "worker"):
            self.assertEqual(node.show("frag-" + service, "ActiveState"), "inactive")
        self.make_keys(node)
        for service in ("driver", "worker"):
            os.makedirs(node.path("/etc/systemd/system/frag-%s.service.d" % service))
            node.write("/etc/systemd/system/frag-%s.service.d/test.conf" % service, "[Service]\nWatchdogSec=3s\n")
        node.run("systemctl", "daemon-reload")
        node.shell("sed 's/out: {default: out/out: {default: \\/var\\/lib\\/frag-worker\\/out/' -i %s/app.yaml" % EXAMPLE)
        self.start_video([(node, "all")])
        self.check_exposure(node)
        self.check_log(node)
        for service in ("worker", "driver"):
            self.check_watchdog(node, service)
        node.run("apt-get", "remove", "-y", "frag", "libfrag1", "frag-examples")
        self.assertEqual(self.processes(node), "0")
        left = {f for f in self.files(node) - before if not f.startswith(("/etc/", "/var/lib/frag-"))}
        self.assertEqual(left, set())
        node.run("rm", "-r", "/etc/systemd/system/frag-driver.service.d", "/etc/systemd/system/frag-worker.service.d")
        self.purge(node, before)
        self.assertEqual((node.read("/etc/passwd"), node.read("/etc/group")), accounts)

    def check_exposure(self, node):
        """The exposure of the units that run."""
        for service, most in (("driver", 1.0), ("worker", 2.1)):
            out = node.run("systemd-analyze", "security", "frag-" + service)
            exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", out).group(1))
            print("frag-%s.service: exposure %s" % (service, exposure))
            self.assertLessEqual(exposure, most, out)

    def check_log(self, node):
        log = node.journal("frag-driver") + node.journal("frag-worker")
        self.assertNotRegex(log, "nothing reads the variable")
        self.assertEqual(node.run("journalctl", "-q", "-p", "err", "-u", "frag-driver", "-u", "frag-worker"), "")
        for service in ("driver", "worker"):
            fields = node.run("journalctl", "-q", "-o", "cat", "-u", "frag-" + service,
                              "FRAG_APPLICATION=video_replayer_distributed")
            self.assertIn(service + " video_replayer_distributed: ", fields)

    def check_watchdog(self, node, service):
        """A daemon that hangs is restarted, and the video goes on."""
        unit, before = "frag-" + service, self.restarts(node, service)
        node.run("systemctl", "kill", "-s", "STOP", "--kill-who=main", unit)
        node.wait("systemd to notice that %s hangs" % unit, lambda: self.restarts(node, service) > before)
        self.assertIn("Watchdog timeout", node.journal(unit))
        self.wait_video()


class TwoMachines(Machines):
    count = 2

    def test_video_over_two_machines(self):
        """What breaks comes back by itself: processes, a machine, packages."""
        one, two = self.nodes
        before = [self.files(node) for node in self.nodes]
        for node in self.nodes:
            self.install(node)
        self.make_keys(one, two)
        self.start_video([(one, "fragment1"), (two, "fragment2")])
        for node in self.nodes:
            self.assertRegex(node.show("frag-worker", "StatusText"), "attached to the driver at .*, runs 1 host")
        for node in (two, one):
            count = self.restarts(node, "worker")
            node.run("systemctl", "kill", "-s", "KILL", "--kill-who=main", "frag-worker")
            node.wait("a new worker", lambda n=node, c=count: self.restarts(n, "worker") > c)
            self.wait_video()
        two.power_off(cut=True)
        one.wait("the driver to miss it", lambda: "fragment2" in one.show("frag-driver", "StatusText"))
        two.power_on()
        self.wait_video()
        pid = one.show("frag-driver", "MainPID")
        for node in self.nodes:
            self.install(node, self.newer())
        self.assertNotEqual(one.show("frag-driver", "MainPID"), pid)
        self.wait_video()
        for node, files in zip(self.nodes, before):
            self.purge(node, files)


def main():
    packages.extend(p for p in glob.glob(os.path.join(sys.argv[1], "*.deb"))
                    if not re.search(r"-dbgsym_|libfrag-dev_", os.path.basename(p)))
    assert machine.missing() or len(packages) == 3, packages
    result = unittest.main(argv=sys.argv[:1] + sys.argv[2:], exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id().split(".", 1)[1], reason))
    print("%d passed, %d failed, %d skipped" % (
        result.testsRun - len(result.failures) - len(result.errors) - len(result.skipped),
        len(result.failures) + len(result.errors), len(result.skipped)))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
