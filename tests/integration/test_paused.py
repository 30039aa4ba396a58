# SPDX-License-Identifier: Apache-2.0
"""A worker in a virtual machine that is paused: its clock stands still, and nobody reports that."""
import json
import os
import shutil
import signal
import socket
import sys
import time
import unittest

import cluster
import test_nodes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "guest"))
import guest  # noqa: E402

HERE, THERE = "192.168.77.1", "192.168.77.2"
PAUSES_S = (0.4, 2, 6)
# What the two clocks may drift apart between the line that a host writes and the pause beside it:
# qemu's timer and the processor's counter are not one oscillator.
DRIFT_NS = 2_000_000
BOOT_S = 300
APP = """frag: 1
application: paused
fragments:
  fragment1: {operators: {tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 20hz}]}}}
  fragment2: {operators: {rx: {type: ping_rx}}}
flows: [fragment1.tx -> fragment2.rx]
"""
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /tmp /run /dev/shm
mount -t tmpfs tmp /dev/shm
for m in %(modules)s; do insmod /modules/$m.ko; done
ip link set lo up
ip addr add %(address)s/24 dev eth0
ip link set eth0 up
export %(environment)s
/frag/bin/workerd --insecure --once --name guest --address %(driver)s --fragments fragment2
poweroff -f
"""


class Guest:
    """qemu, which a socket for commands (QMP) stops and lets go on."""

    def __init__(self, test, kernel, archive, tap):
        path = test.path("qmp")
        qemu, *arguments = guest.command(kernel, archive, 1024, "rdinit=/init")
        self.process = test.start(
            shutil.which(qemu), *arguments, "-serial", "stdio", "-netdev",
            "tap,id=n,script=no,downscript=no,ifname=" + tap, "-device", "virtio-net-pci,netdev=n,romfile=", "-qmp",
            "unix:%s,server=on,wait=off" % path, prefix=test.inside)
        while not os.path.exists(path):
            test.assertIsNone(self.process.child.poll(), self.process.stderr)
            time.sleep(0.05)
        self.socket = socket.socket(socket.AF_UNIX)
        test.addCleanup(self.socket.close)
        self.socket.connect(path)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.command("qmp_capabilities")

    def command(self, name):
        self.socket.sendall(json.dumps({"execute": name}).encode())
        while True:
            said = json.loads(self.lines.readline())
            if "return" in said:
                return
            assert "error" not in said, said

    def pause(self, seconds):
        """For how long it stood still: at least and at most, in ns."""
        before = time.monotonic_ns()
        self.command("stop")
        stopped = time.monotonic_ns()
        time.sleep(seconds)
        goes_on = time.monotonic_ns()
        self.command("cont")
        return goes_on - stopped, time.monotonic_ns() - before


@unittest.skipUnless(os.environ.get("FRAG_PAUSED"), "nightly sets FRAG_PAUSED, and pauses a virtual machine")
class Paused(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        reason = guest.missing("paused")
        if reason:
            self.skipTest(reason)
        if not test_nodes.allowed():
            self.skipTest("this machine lets its user make no network namespaces")
        self.env.update({"UCX_TLS": "tcp", "FRAG_DEAD_MS": "60000"})
        name = "frag-paused-%d" % os.getpid()
        test_nodes.sh("ip", "netns", "add", name)
        self.addCleanup(test_nodes.sh, "ip", "netns", "del", name)
        self.inside = ("ip", "netns", "exec", name)
        for command in ("link set lo up", "tuntap add tap0 mode tap", "addr add %s/24 dev tap0" % HERE,
                        "link set tap0 up"):
            test_nodes.sh("ip", "-n", name, *command.split())

    def boot(self):
        build = cluster.BUILD
        programs = [os.path.join(build, name) for name in (
            "bin/workerd", "libexec/frag/fraghost", "lib/libfrag.so.1", "lib/frag/modules/ucx.so",
            "lib/frag/plugins/libbasic.so")]
        kernel = guest.fetch_kernel()
        modules = guest.needed_modules(kernel, ["virtio_pci", "virtio_net", "tcp_diag"])
        init = INIT % {"modules": guest.module_names(modules), "address": THERE, "driver": self.address,
                       "environment": " ".join("%s=%s" % (k, self.env[k]) for k in ("UCX_TLS", "FRAG_DEAD_MS"))}
        guest.lay_out(self.path("root"), build, programs, modules, {"init": init})
        guest.write_archive(self.path("root"), self.path("root.cpio"))
        return Guest(self, kernel, self.path("root.cpio"), "tap0")

    def wait_for(self, condition, what):
        end = time.monotonic() + BOOT_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.1)

    def test_a_paused_machine(self):
        """Both hosts begin to acquire and lock again, and the offset has changed by the pause."""
        driver = self.driver(self.write("app.yaml", APP), "--insecure", "--output", "json",
                             address=HERE + ":0", prefix=self.inside)
        here = self.worker("--once", "--insecure", "--name", "here", fragments="fragment1", prefix=self.inside)
        machine = self.boot()
        logs = {"here": lambda: here.stderr, "there": lambda: machine.process.stdout}
        signs = {"here": -1, "there": 1}  # of what a pause changes in the offset of the other clock

        def locks(name):
            """Offset and bound of each, in ns."""
            return [(int(a), int(b)) for a, b in test_nodes.Clocks.LOCKED.findall(logs[name]())]

        self.wait_for(lambda: all(map(locks, logs)), "no lock")
        for seconds in PAUSES_S:
            time.sleep(5)
            before = {name: locks(name) for name in logs}
            lost = {name: log().count(": acquiring, ") for name, log in logs.items()}
            least, most = machine.pause(seconds)
            for name in logs:
                with self.subTest(pause=seconds, log=name):
                    self.wait_for(lambda: len(locks(name)) > len(before[name]),
                                  "no lock after a pause of %s s" % seconds)
                    self.assertGreater(logs[name]().count(": acquiring, "), lost[name])
                    (offset, bound), (new_offset, new_bound) = before[name][-1], locks(name)[-1]
                    changed = (new_offset - offset) * signs[name]
                    room = bound + new_bound + DRIFT_NS
                    print("  paused for %.3f s: %s sees %.3f s, to within %.3f ms" % (
                        least / 1e9, name, changed / 1e9, room / 1e6))
                    self.assertLessEqual(least - room, changed)
                    self.assertLessEqual(changed, most + room)
        driver.signal(signal.SIGTERM)
        driver.wait()
        latency = self.flow(self.summary(driver), "fragment1.tx.out")["latency_ns"]
        self.assertGreater(latency["count"], 0)
        self.assertGreaterEqual(latency["p50"], 0)
        self.assertLess(latency["max"], max(PAUSES_S) * 2e9)
        self.assertGreater(latency["error"], 0)
