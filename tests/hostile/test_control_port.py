# SPDX-License-Identifier: Apache-2.0
"""Strangers at the control port: another user of the machine connects and says nothing, or too
little, or too much. The application goes on, a worker still gets in, and the driver gives back what
they took."""
import re
import socket
import struct
import time

import victim  # first: it knows where the others are
import cluster
import strangers

# Warnings about strangers are limited to one in a second.
WARNING = r"warn .*closed the connection of "


def fill_frames(report, address):
    """Sixty-four largest frames that never end."""
    crowd = []
    for _ in range(64):
        s = victim.connect(address)
        crowd.append(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 200000))
        try:
            s.sendall(struct.pack("<I", 1 << 20) + bytes((1 << 20) - 1))
        except OSError:
            pass
    report("full")
    time.sleep(3600)


class ControlPort(victim.Victim):
    """The stranger is of a user that the driver takes; what limits him are numbers and times."""

    def begin(self, **more):
        super().begin(driver_flags=("--allow-user", str(victim.STRANGER)), **more)

    def warnings(self):
        return len(re.findall(WARNING, self.d.stderr))

    def assert_a_worker_gets_in(self):
        spare = self.worker("--name", "spare", fragments="fragment1")
        self.d.wait_line(r"worker spare joined")
        spare.kill()
        spare.wait()
        self.processes.remove(spare)

    def attack_and_watch(self, deed):
        began = time.monotonic()
        self.attack(deed, self.address).report()
        self.assert_a_worker_gets_in()
        self.assert_goes_on()
        while time.monotonic() < began + victim.ATTACK_S:
            self.assert_goes_on()
        self.d.wait_line(WARNING)
        self.assertLessEqual(self.warnings(), time.monotonic() - began + 2, self.d.stderr)
        self.end_unharmed()

    def test_a_thousand_silent_connections(self):
        self.begin()
        self.attack_and_watch(strangers.stand_silent)

    def test_beginnings_of_everything(self):
        self.begin()
        attack = self.attack(strangers.send_beginnings, self.address)
        self.assert_a_worker_gets_in()
        self.assertLess(attack.report(), 2 * 10 * cluster.times_slower())
        self.d.wait_line(WARNING)
        self.end_unharmed()

    def test_a_frame_byte_by_byte(self):
        self.begin()
        self.attack_and_watch(strangers.dribble)

    def test_a_flood(self):
        self.begin()
        self.attack_and_watch(strangers.flood)

    def test_frames_that_fill_the_memory(self):
        self.begin()
        self.attack_and_watch(fill_frames)

    def test_a_thousand_silent_connections_and_few_descriptors(self):
        self.begin(driver_prefix=("prlimit", "--nofile=64:64"))
        self.attack_and_watch(strangers.stand_silent)


class OfAnotherUser(victim.Victim):
    """The driver does not take that user: he is sent away before a byte of his is read."""

    def test_crowds_and_floods(self):
        self.begin()
        for deed in (strangers.stand_silent, strangers.send_beginnings, strangers.flood):
            self.attack(deed, self.address).report()
            self.assert_goes_on()
            self.attackers.pop().end()
        self.d.wait_line(r"warn .*closed the connection of .*does not trust user nobody")
        self.end_unharmed()
