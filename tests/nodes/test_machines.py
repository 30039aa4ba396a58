#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages on machines of systemd-nspawn: set up by the commands of docs/DEPLOY.md, with
driver and workers as units with keys; applications with video, over two machines too; failures of
processes and machines, an upgrade, removal and purge.

usage: tests/nodes/test_machines.py FOLDER [CLASS[.TEST]]     FOLDER has the packages (make deb)

Where there can be no such machines, every test is skipped by name.
"""
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import guide
import machine

EXAMPLE = "/usr/share/frag/examples/video_replayer_distributed/app.yaml"
# The example under this name, without end.
ENDLESS = (EXAMPLE, "--name", "endless", "--set", "fragment1.replayer.repeat=true", "--", "--out",
           "/var/lib/frag-worker")
# A thousand messages a second, from the first machine to the second, whose worker takes fragment2.
LOAD = """{frag: 1, application: load, fragments: {
  fragment1: {operators: {
    tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 1000hz}]}}},
  fragment2: {operators: {rx: {type: ping_rx}}}}, flows: [fragment1.tx -> fragment2.rx]}
"""
# The same on the second machine alone.
ALONE = """{frag: 1, application: alone, fragments: {fragment2: {operators: {
  tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 1000hz}]}, rx: {type: ping_rx}},
  flows: [tx -> rx]}}}
"""
# Where packages leave no trace of frag: logs and the books of dpkg and apt.
NOT_COMPARED = ("/var/log", "/var/lib/dpkg", "/var/lib/apt", "/var/lib/systemd", "/var/cache", "/proc", "/sys", "/dev",
                "/run", "/tmp", "/var/tmp", "/root")
# Copies that useradd and systemd-sysusers keep, and what the guide makes for others than frag.
BOOKS = {"/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-", "/etc/subuid-", "/etc/subgid-",
         "/etc/.pwd.lock", "/etc/sysctl.d/60-frag.conf"}
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

    def run(self, result=None):
        """What the machines logged comes with a failure."""
        known = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > known:
            print(self.logs, flush=True)

    logs = ""

    def tearDown(self):
        self.logs = "\n".join(
            "%s:\n%s" % (node.host_name, re.sub(r"(?m)^driver: client .*\n", "", node.journal("frag-*"))[-4000:])
            for node in self.nodes if node.leader)

    def bring(self, node, paths):
        names = []
        for path in paths:
            shutil.copy(path, node.path("/root"))
            names.append("/root/" + os.path.basename(path))
        return names

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

    def allow_ssh(self):
        """Root of the first machine reaches the others."""
        first = self.nodes[0]
        first.shell("mkdir -pm 700 .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && "
                    "echo StrictHostKeyChecking accept-new >.ssh/config")
        for node in self.nodes[1:]:
            node.shell("mkdir -pm 700 .ssh")
            shutil.copy(first.path("/root/.ssh/id_ed25519.pub"), node.path("/root/.ssh/authorized_keys"))

    def follow_guide(self, last=10):
        """Runs what docs/DEPLOY.md says, to that step, on the machines that there are."""
        self.allow_ssh()
        by_name = {node.host_name: node for node in self.nodes}
        for node in self.nodes:
            self.bring(node, packages)
        steps = guide.rows("DEPLOY.md", "guide")
        self.assertEqual(sorted({step for step, _, _ in steps}), list(range(1, 11)))
        for step, names, command in steps:
            if step > last or ("b:" in command and "b" not in by_name):
                continue
            for name in names:
                if name in by_name:
                    by_name[name].shell(command)
            if step == 1:
                for node in self.nodes:
                    for service in ("driver", "worker"):
                        self.assertEqual(node.show("frag-" + service, "ActiveState"), "inactive")

    def ask(self, *verb):
        """What fragctl prints on the first machine."""
        return json.loads(self.nodes[0].run("fragctl", *verb, "-o", "json"))

    def application(self, name):
        found = [a for a in self.ask("list")["applications"] if a["name"] == name]
        return found[0] if found else None

    def wait_flowing(self, name):
        """Waits until it delivers messages, anew. Its only source is fragment1."""
        first = []

        def flows():
            now = self.application(name)
            if now and now["state"] == "running":
                first[:] = first or [now["delivered"]]
                return now["delivered"] > first[0] + 40
            return False
        machine.Machine.wait("messages of " + name, flows)

    def processes_of(self, name):
        now = self.application(name)
        return now["run"], [(h["worker"], h["pid"]) for h in now["hosts"]]

    def check_adopted(self, name, deed):
        """While the driver is away and when it is back the same processes run."""
        before, pid = self.processes_of(name), self.nodes[0].show("frag-driver", "MainPID")
        deed()
        self.nodes[0].wait("a new driver", lambda: self.nodes[0].show("frag-driver", "MainPID") not in ("0", pid))
        machine.Machine.wait("%s to be adopted" % name, lambda: (self.application(name) or {}).get("adopted"))
        self.wait_flowing(name)
        self.assertEqual(self.processes_of(name), before)

    def check_nothing_lost(self, name):
        """It is stopped in order; every message that was sent has arrived."""
        self.nodes[0].run("fragctl", "stop", name)
        summary = self.ask("status", name)
        self.assertEqual(summary["result"], "stopped")
        for flow in summary["flows"]:
            self.assertGreater(flow["sent"], 0)
            self.assertEqual((flow["lost"], flow["in_flight"], flow["delivered"]), (0, 0, flow["sent"]), flow)
            self.assertTrue(flow["exact"], flow)

    def start(self, name, graph):
        self.nodes[0].write("/root/%s.yaml" % name, graph)
        self.nodes[0].run("fragctl", "start", "/root/%s.yaml" % name)
        self.wait_flowing(name)

    def check_restart_of_driver(self):
        """Under load, with one application more."""
        self.start("load", LOAD)
        for name in ("endless", "load"):
            self.check_adopted(name, lambda: self.nodes[0].run("systemctl", "restart", "frag-driver"))
        self.check_nothing_lost("endless")
        self.check_nothing_lost("load")

    def wait_ended(self, name, state):
        """Waits for such an end of a run; returns the run."""
        def ended():
            return next((e for e in self.ask("list")["ended"] if e["name"] == name and e["result"] == state), None)
        return machine.Machine.wait("%s to be %s" % (name, state), ended)

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
        return node.run("pgrep", "-c", "-x", "driverd|workerd|fraghost|frag-reporter|fragctl", check=False).strip()

    def purge(self, node, before):
        """Nothing is left but what tools keep of the books of users and services."""
        node.run("apt-get", "purge", "-y", "frag", "libfrag1", "frag-examples")
        self.assertEqual(self.processes(node), "0")
        self.assertEqual(self.files(node) - before - BOOKS, set())

    def restarts(self, node, service):
        return int(node.show("frag-" + service, "NRestarts"))


class OneMachine(Machines):
    def test_units(self):
        """Set up by the guide, commanded, watched, judged, removed and purged."""
        node = self.nodes[0]
        node.run("useradd", "alice")
        node.run("useradd", "mallory")
        before = self.files(node)
        accounts = node.read("/etc/passwd"), node.read("/etc/group")
        for service in ("driver", "worker"):
            os.makedirs(node.path("/etc/systemd/system/frag-%s.service.d" % service))
            node.write("/etc/systemd/system/frag-%s.service.d/test.conf" % service, "[Service]\nWatchdogSec=3s\n")
        self.follow_guide()
        self.check_units(node)
        self.wait_flowing("video_replayer_distributed")
        node.run("fragctl", "stop", "video_replayer_distributed")
        node.run("fragctl", "start", *ENDLESS)
        self.wait_flowing("endless")
        self.check_page(node)
        self.check_exposure(node)
        self.check_log(node)
        self.check_watchdog(node, "worker")
        self.wait_ended("endless", "failed")
        node.run("fragctl", "restart", "endless")
        self.wait_flowing("endless")
        self.check_adopted("endless", lambda: self.check_watchdog(node, "driver"))
        self.check_restart_of_driver()
        node.run("fragctl", "restart", "endless")
        self.check_users(node)
        node.run("apt-get", "remove", "-y", "frag", "libfrag1", "frag-examples")
        self.assertEqual(self.processes(node), "0")
        left = {f for f in self.files(node) - before if not f.startswith(("/etc/", "/var/lib/frag-"))}
        self.assertEqual(left, set())
        node.run("rm", "-r", "/etc/systemd/system/frag-driver.service.d", "/etc/systemd/system/frag-worker.service.d")
        self.purge(node, before)
        node.run("gpasswd", "-d", "alice", "frag", check=False)
        self.assertEqual((node.read("/etc/passwd"), node.read("/etc/group")), accounts)

    def check_units(self, node):
        """Keys belong to the user that reads them. The limits are the unit's; in a machine without
        CAP_SYS_RESOURCE systemd cannot raise them."""
        for limit, value in (("MEMLOCK", "infinity"), ("RTPRIO", "90"), ("NICE", "35")):
            self.assertEqual(node.show("frag-worker", "Limit" + limit), value)
        for service in ("driver", "worker"):
            self.assertEqual(node.run("stat", "-c", "%U %a", "/etc/frag/%s.key" % service).strip(),
                             "frag-%s 400" % service)

    def check_exposure(self, node):
        """The exposure of the units that run."""
        for service, most in (("driver", 1.0), ("worker", 2.1), ("web", 1.2)):
            out = node.run("systemd-analyze", "security", "frag-" + service)
            exposure = float(re.search(r"exposure level for \S+: ([\d.]+)", out).group(1))
            print("frag-%s.service: exposure %s" % (service, exposure))
            self.assertLessEqual(exposure, most, out)

    def check_page(self, node):
        """The page as the guide sets it up: a unit with a key that only looks, and a token."""
        node.shell(guide.block("DEPLOY.md", "web"))
        with open(node.path("/etc/frag/web.token")) as f:
            token = f.read().strip()

        def ask(user, path, header=""):
            script = ("exec 3<>/dev/tcp/127.0.0.1/8080 && printf '%s HTTP/1.1\\r\\nHost: localhost\\r\\n"
                      "Connection: close\\r\\n%s\\r\\n' >&3 && cat <&3" % (path, header))
            return node.run("runuser", "-u", user, "--", "bash", "-c", script, check=False)
        node.wait("the page", lambda: "200 OK" in ask("alice", "GET /readyz"))
        with_token = "Authorization: Bearer %s\\r\\n" % token
        self.assertIn("401 Unauthorized", ask("alice", "GET /metrics"))
        self.assertIn("frag_driver_up 1\n", ask("alice", "GET /metrics", with_token))
        self.assertRegex(ask("alice", "GET /metrics", with_token), r'frag_application_state\{app="endless",state="running"\} 1')
        self.assertIn("403 Forbidden", ask("alice", "POST /stop", with_token))
        self.assertEqual((node.show("frag-web", "NRestarts"), node.show("frag-web", "User")), ("0", "frag-web"))
        self.assertEqual(node.run("stat", "-c", "%U %a", "/etc/frag/web.key").strip(), "frag-web 400")
        self.assertEqual(node.run("journalctl", "-q", "-p", "warning", "-u", "frag-web"), "")

    def check_log(self, node):
        log = node.journal("frag-driver") + node.journal("frag-worker")
        self.assertNotRegex(log, "nothing reads the variable")
        self.assertEqual(node.run("journalctl", "-q", "-p", "err", "-u", "frag-driver", "-u", "frag-worker"), "")
        for service in ("driver", "worker"):
            fields = node.run("journalctl", "-q", "-o", "cat", "-u", "frag-" + service, "FRAG_APPLICATION=endless")
            self.assertIn(service + " endless: ", fields)

    def check_watchdog(self, node, service):
        """A daemon that hangs is restarted."""
        unit, before = "frag-" + service, self.restarts(node, service)
        node.run("systemctl", "kill", "-s", "STOP", "--kill-who=main", unit)
        node.wait("systemd to notice that %s hangs" % unit, lambda: self.restarts(node, service) > before)
        self.assertIn("Watchdog timeout", node.journal(unit))
        node.wait(unit, lambda: node.show(unit, "ActiveState") == "active")

    def check_users(self, node):
        """Members of the group frag command the driver once they may, and nobody else does."""
        alice, mallory = (["runuser", "-u", name, "--", "fragctl"] for name in ("alice", "mallory"))
        self.assertEqual(node.run(*alice, "list", check=False), "")
        node.shell(guide.block("DEPLOY.md", "group"))
        self.wait_flowing("endless")
        node.run(*alice, "stop", "endless")
        node.run(*alice, "start", *ENDLESS)
        self.wait_flowing("endless")
        self.assertEqual(self.application("endless")["started_by"], "user alice")
        self.assertEqual(node.run(*mallory, "stop", "endless", check=False), "")
        self.assertIsNotNone(self.application("endless"))
        node.run(*alice, "stop", "endless")


class TwoMachines(Machines):
    count = 2

    def test_video_over_two_machines(self):
        """What fails is named, and runs again: processes, a machine, packages."""
        one, two = self.nodes
        before = [self.files(node) for node in self.nodes]
        self.follow_guide()
        hosts = {h["fragments"]: h["worker"] for h in self.application("video_replayer_distributed")["hosts"]}
        self.assertEqual(hosts, {"fragment1": "a", "fragment2": "b"})
        for node in self.nodes:
            node.wait("the status of the worker", lambda n=node: re.fullmatch(
                "attached to the driver at .*, runs 1 host", n.show("frag-worker", "StatusText")))
        self.wait_ended("video_replayer_distributed", "done")
        self.assertTrue(os.path.exists(two.path("/var/lib/frag-worker/boxes.mp4")))
        one.run("fragctl", "start", *ENDLESS)
        self.wait_flowing("endless")
        self.check_restart_of_driver()
        one.run("fragctl", "restart", "endless")
        self.wait_flowing("endless")
        for node in (two, one):
            count = self.restarts(node, "worker")
            node.run("systemctl", "kill", "-s", "KILL", "--kill-who=main", "frag-worker")
            node.wait("a new worker", lambda n=node, c=count: self.restarts(n, "worker") > c)
            self.restart_application()
        two.power_off(cut=True)
        machine.Machine.wait("the driver to miss it", lambda: not self.application("endless"))
        two.power_on()
        self.restart_application()
        newer = self.newer()
        two.run("apt-get", "install", "-y", *self.bring(two, newer))
        self.restart_application()
        self.start("alone", ALONE)
        self.check_adopted("alone", lambda: one.run("apt-get", "install", "-y", *self.bring(one, newer)))
        self.assertEqual([worker for worker, _ in self.processes_of("alone")[1]], ["b"])
        self.check_nothing_lost("alone")
        # the worker of the first machine was replaced too, so the next driver starts this one again
        self.wait_flowing("endless")
        for node, files in zip(self.nodes, before):
            self.purge(node, files)

    def restart_application(self):
        """The application failed; once both workers are back it runs over both machines again."""
        self.wait_ended("endless", "failed")
        machine.Machine.wait("both workers", lambda: sum(
            worker["state"] == "live" for worker in self.ask("workers")["workers"]) == 2)
        self.nodes[0].run("fragctl", "restart", "endless")
        self.wait_flowing("endless")
        self.assertEqual([h["worker"] for h in self.application("endless")["hosts"]], ["a", "b"])

    def test_a_day(self):
        """The commands of docs/OPERATIONS.md print what it says."""
        self.follow_guide(last=9)
        by_name = {node.host_name: node for node in self.nodes}
        steps = guide.console("OPERATIONS.md")
        self.assertGreater(len(steps), 20)
        for name, command, expected, code in steps:
            printed = []

            def is_as_written(node=by_name[name], step=(command, expected, code), printed=printed):
                printed[:] = node.type(step[0])
                return printed[1] == step[2] and guide.is_like(printed[0], step[1])
            # what only looks is typed until it shows what is to come
            looks = re.match(r"fragctl (list|workers|status|events)|journalctl", command)
            try:
                machine.Machine.wait(command, is_as_written, timeout=30 if looks else 0)
            except AssertionError:
                self.fail("%s# %s\nprinted, with exit code %d:\n%s\ninstead of, with %d:\n%s" % (
                    name, command, printed[1], "\n".join(printed[0]), code, "\n".join(expected)))


def main():
    packages.extend(p for p in glob.glob(os.path.join(sys.argv[1], "*.deb"))
                    if not re.search(r"-dbgsym_|libfrag-dev_|python3-frag_", os.path.basename(p)))
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
