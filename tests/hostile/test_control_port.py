# SPDX-License-Identifier: Apache-2.0
"""Strangers at the control port: another user of the machine connects and says nothing, or too
little, or too much. The application goes on, a worker still gets in, and the driver gives back what
they took."""
import os
import re
import select
import socket
import struct
import time

import victim  # first: it knows where the others are
import cluster
import control

CROWD = 1000
# Warnings about strangers are limited to one in a second.
WARNING = r"warn .*closed the connection of "


def stand_silent(report, address):
    """Connects a thousand times, says nothing, and holds on."""
    crowd = [victim.connect(address) for _ in range(CROWD)]
    report(len(crowd))
    time.sleep(3600)


HALVES = (b"", b"\x10", struct.pack("<I", 1000) + b"half", struct.pack("<I", 0), struct.pack("<I", 0xffffffff) + b"x",
          b"GET / HTTP/1.1\r\n\r\n", control.hello(99)[:-1], control.envelope(control.BEAT),
          control.envelope(control.HOST_KILL, run=1, host=1, epoch=1), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")


def send_halves(report, address):
    """Sends the beginning of everything; reports how long each connection lived."""
    crowd = {}
    for data in HALVES * 8:
        s = victim.connect(address)
        try:
            s.sendall(data)
        except OSError:
            pass
        crowd[s] = time.monotonic()
    lived = []
    while crowd:
        ready, _, _ = select.select(list(crowd), [], [], 60)
        assert ready, "%d connections are still open" % len(crowd)
        for s in ready:
            try:
                data = s.recv(65536)
            except OSError:
                data = b""
            if not data:
                lived.append(time.monotonic() - crowd.pop(s))
                s.close()
    report(max(lived))


def dribble(report, address):
    """Sends a frame byte by byte, for ever, on new connections when the old ones are closed."""
    report("begun")
    while True:
        with victim.connect(address) as s:
            try:
                for byte in struct.pack("<I", 1 << 20) + b"\x10" * 100000:
                    s.sendall(bytes([byte]))
                    time.sleep(0.01)
            except OSError:
                pass


def flood(report, address):
    """Connects, sends a megabyte of something, closes, as fast as it goes."""
    report("begun")
    junk = (control.hello(99), os.urandom(1 << 16), struct.pack("<I", 1 << 20) + b"\x0a" * (1 << 20), b"")
    while True:
        for data in junk:
            try:
                with victim.connect(address) as s:
                    s.sendall(data)
            except OSError:
                pass


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
        self.attack_and_watch(stand_silent)

    def test_beginnings_of_everything(self):
        self.begin()
        attack = self.attack(send_halves, self.address)
        self.assert_a_worker_gets_in()
        self.assertLess(attack.report(), 2 * 10 * cluster.TIMES_SLOWER)
        self.d.wait_line(WARNING)
        self.end_unharmed()

    def test_a_frame_byte_by_byte(self):
        self.begin()
        self.attack_and_watch(dribble)

    def test_a_flood(self):
        self.begin()
        self.attack_and_watch(flood)

    def test_frames_that_fill_the_memory(self):
        self.begin()
        self.attack_and_watch(fill_frames)

    def test_a_thousand_silent_connections_and_few_descriptors(self):
        self.begin(driver_prefix=("prlimit", "--nofile=64:64"))
        self.attack_and_watch(stand_silent)


if __name__ == "__main__":
    cluster.main()
