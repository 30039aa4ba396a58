# SPDX-License-Identifier: Apache-2.0
"""Strangers at the data ports of hosts, where UCX would believe them: nothing of what they send
reaches it, they take no more than a few descriptors, and hosts still find each other."""
import socket
import struct
import threading
import time

import victim  # first: it knows where the others are
import cluster
import strangers

WARNING = r"warn .*refused a connection to the data port from 127\.0\.0\.1"
PREFACE_BYTES = 48


class Sniffer:
    """Records what is sent first on each TCP connection over loopback."""

    def __init__(self):
        self.first = {}  # (source port, destination port): bytes
        self._over = threading.Event()
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self._sock.bind(("lo", 0x0800))
        self._sock.settimeout(0.1)
        self._thread = threading.Thread(target=self._sniff, daemon=True)
        self._thread.start()

    def _sniff(self):
        while not self._over.is_set():
            try:
                packet = self._sock.recv(1 << 16)[14:]
            except TimeoutError:
                continue
            head = (packet[0] & 15) * 4
            if packet[9] != 6:
                continue
            ports = struct.unpack("!HH", packet[head:head + 4])
            data = packet[head + (packet[head + 12] >> 4) * 4:struct.unpack("!H", packet[2:4])[0]]
            if data and len(self.first.get(ports, b"")) < PREFACE_BYTES:
                self.first[ports] = self.first.get(ports, b"") + data

    def end(self):
        self._over.set()
        self._thread.join()
        self._sock.close()


class DataPort(victim.Victim):
    def begin_with_ports(self, **more):
        self.begin(edge="ucx", **more)
        self.places = ["127.0.0.1:%d" % port for pid in self.wait_hosts(2)
                       for port in cluster.data_ports(pid)]
        self.assertGreaterEqual(len(self.places), 2)

    def attack_all(self, deed, *args):
        began = time.monotonic()
        for place in self.places:
            self.attack(deed, place, *args).report()
        self.assert_goes_on()
        while time.monotonic() < began + victim.ATTACK_S:
            self.assert_goes_on()

    def test_a_thousand_silent_connections_to_each(self):
        self.begin_with_ports()
        self.attack_all(strangers.stand_silent)
        self.end_unharmed()

    def test_beginnings_of_everything(self):
        self.begin_with_ports()
        self.attack_all(strangers.send_beginnings)
        for w in self.workers:
            w.wait_line(WARNING)
        self.end_unharmed()

    def test_a_frame_byte_by_byte(self):
        self.begin_with_ports()
        self.attack_all(strangers.dribble)
        self.end_unharmed()

    def test_a_flood(self):
        self.begin_with_ports()
        self.attack_all(strangers.flood)
        for w in self.workers:
            w.wait_line(WARNING)
            self.assertLess(w.stderr.count("refused a connection"), 20 + 2 * victim.ATTACK_S)
        self.end_unharmed()

    def test_what_hosts_have_proven_is_worth_nothing_again(self):
        """The proofs of the application's own connections, recorded and sent again."""
        if victim.hindrance():
            self.skipTest(victim.hindrance())
        sniffer = Sniffer()
        self.addCleanup(sniffer.end)
        self.begin_with_ports()
        ports = {int(place.rsplit(":", 1)[1]) for place in self.places}
        heard = list(sniffer.first.items())     # a copy: the sniffer listens on
        proofs = [data[:n].hex() for (_, to), data in heard if to in ports
                  for n in (PREFACE_BYTES, len(data))]
        self.assertTrue(proofs)
        self.attack_all(strangers.send_beginnings, *proofs)
        self.end_unharmed()
