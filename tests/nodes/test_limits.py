#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits of fragments on a machine of qemu, whose kernel has control groups with controllers:
driver and worker run there as their units, from the Debian packages. A host beyond its memoryLimit
is killed, and that is reported; cpuLimit holds; nothing is left of the groups.

usage: tests/nodes/test_limits.py PACKAGES PLUGIN     folder of make deb, libhungry.so

Where there can be no such machine, every test is skipped by name.
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
import virtual

GROUPS = "/sys/fs/cgroup/system.slice/frag-worker.service"
# Driver and worker on one machine, as docs/DEPLOY.md says.
SETUP = """
fragctl key new --role worker --name a /etc/frag/worker.key
cp -p /etc/frag/worker.key /etc/frag/driver.key
for d in driver worker; do echo FRAG_KEY_FILE=/etc/frag/$d.key >>/etc/frag/$d.env; done
systemctl enable --now frag-driver frag-worker
"""
# Two hosts with the same operator, of which the first has limits.
GRAPH = """{frag: 1, application: %(name)s, extensions: [libhungry.so], fragments: {
held: {host: held, requirements: {%(limits)s},
  operators: {u: {type: hungry, parameters: {%(deed)s}}}},
free: {host: free, operators: {u: {type: hungry, parameters: {%(deed)s}}}}}}
"""
MEASURED_S = 8


class Limits(unittest.TestCase):
    def setUp(self):
        why_not = virtual.missing()
        if why_not:
            self.skipTest(why_not)
        machine.call(os.path.join(machine.HERE, "root.sh"), machine.ROOT)
        folder = tempfile.mkdtemp(prefix="frag-limits-")
        self.addCleanup(shutil.rmtree, folder, True)
        packages = [p for p in glob.glob(os.path.join(sys.argv[1], "*.deb"))
                    if re.match(r"(frag|libfrag1)_", os.path.basename(p))]
        self.assertEqual(len(packages), 2, packages)
        self.node = virtual.Machine(folder, packages, [(sys.argv[2], "/usr/lib/x86_64-linux-gnu/frag/extensions")])
        self.addCleanup(self.node.power_off)
        self.node.power_on()
        self.node.run(SETUP)
        self.node.wait("the worker", lambda: self.ask("workers")["workers"])

    def ask(self, *verb):
        text, code = self.node.type("fragctl %s -o json 2>/dev/null" % " ".join(verb))
        return json.loads(text) if code == 0 else {"workers": [], "applications": [], "ended": []}

    def start(self, name, deed, limits):
        text = GRAPH % {"name": name, "deed": deed, "limits": limits}
        return self.node.type("cat >/root/%s.yaml <<'END'\n%sEND\nfragctl start /root/%s.yaml" % (name, text, name))

    def groups(self):
        return self.node.run("cd %s; ls -d host-* 2>/dev/null || :" % GROUPS).split()

    def test_limits_hold(self):
        self.check_cores()
        self.check_memory()
        self.check_end()

    def check_cores(self):
        """A quarter of a core, beside one who takes a whole one."""
        node = self.node
        self.node.run(next(c for step, _, c in guide.rows("DEPLOY.md", "guide") if step == 8))
        out, code = self.start("cores", "busy: true", "cpuLimit: 0.25")
        self.assertEqual(code, 0, out)
        self.assertNotIn("not enforced", node.run("fragctl explain cores"))
        pids = {h["fragments"]: h["pid"] for h in self.ask("status", "cores")["applications"][0]["hosts"]}
        self.assertEqual(self.groups(), ["host-1"])
        self.assertEqual(node.run("cat %s/host-1/cgroup.procs" % GROUPS).split(), [str(pids["held"])])
        self.check_rights(pids["held"])
        used = dict.fromkeys(pids, 0.0)
        for factor in (-1, 1):
            for name, pid in pids.items():
                ticks = sum(map(int, node.run("cat /proc/%d/stat" % pid).rpartition(")")[2].split()[11:13]))
                up = float(node.run("cat /proc/uptime").split()[0])
                used[name] += factor * ticks / 100
                used[name + "_s"] = used.get(name + "_s", 0) + factor * up
            if factor < 0:
                node.run("sleep %d" % MEASURED_S)
        share = {name: used[name] / used[name + "_s"] for name in pids}
        print("limits: of a core, with cpuLimit 0.25: %.2f; without: %.2f" % (share["held"], share["free"]))
        self.assertGreater(share["held"], 0.1)
        self.assertLess(share["held"], 0.35)
        self.assertGreater(share["free"], 0.6)
        # what systemd runs beside it has a place, although the group has controllers now
        node.run("systemctl reload frag-worker")
        node.run("fragctl stop cores")
        node.wait("the end of the group", lambda: not self.groups())

    def check_rights(self, pid):
        """What the unit and the guide grant, and the machines of systemd-nspawn cannot have."""
        limits = self.node.run("cat /proc/%d/limits" % pid)
        self.assertRegex(limits, r"Max locked memory +unlimited +unlimited")
        self.assertRegex(limits, r"Max realtime priority +90 +90")
        self.assertRegex(limits, r"Max nice priority +35 +35")
        self.assertRegex(self.node.run("cat /proc/meminfo"), r"HugePages_Total: +512\b")
        self.assertIn("they may write below /var/lib/frag-worker only", self.node.run("journalctl -u frag-worker"))

    def check_memory(self):
        """The host that has a limit is killed for it; without one 256 MiB are no trouble."""
        node = self.node
        self.start("memory", "mebibytes: 256", "memoryLimit: 128Mi")
        node.wait("the end", lambda: "memory" in [e["name"] for e in self.ask("list")["ended"]])
        summary = self.ask("status", "memory")
        self.assertEqual(summary["result"], "failed")
        failure = summary["failure"]
        self.assertEqual((failure["code"], failure["scope"]), ("host_over_limit", "host"))
        self.assertRegex(failure["sentence"], "fraghost [0-9]+ was killed in held.u, tick 1: it needed more than its "
                         "memoryLimit of 128 MiB; raise the limit, or find out what takes the memory")
        node.wait("the end of the group", lambda: not self.groups())
        out, code = self.start("room", "mebibytes: 256", "memoryLimit: 512Mi")
        self.assertEqual(code, 0, out)
        pids = [h["pid"] for h in self.ask("status", "room")["applications"][0]["hosts"]]
        node.wait("both to grow", lambda: all(
            int(re.search(r"VmRSS:\s+(\d+)", node.run("cat /proc/%d/status" % p))[1]) > 256 << 10 for p in pids))
        self.assertEqual(node.run("cat %s/%s/memory.max" % (GROUPS, self.groups()[0])).strip(), str(512 << 20))

    def check_end(self):
        """With the worker its whole tree goes, while a host with limits runs."""
        self.node.run("systemctl stop frag-worker")
        self.node.run("test ! -e " + GROUPS)
        self.assertEqual(self.node.run("systemctl show frag-worker --value -p Result").strip(), "success")


def main():
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id().split(".", 1)[1], reason))
    print("%d passed, %d failed, %d skipped" % (
        result.testsRun - len(result.failures) - len(result.errors) - len(result.skipped),
        len(result.failures) + len(result.errors), len(result.skipped)))
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
