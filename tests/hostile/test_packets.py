# SPDX-License-Identifier: Apache-2.0
"""Strangers send packets to udp_source: malformed ones, floods, forged numbers. Where the source
takes packets of its sender only, they arrive and no others. Where it takes those of everybody, each
packet is passed on or counted. The sender sends a packet again that the kernel had no room for."""
import os
import random
import re
import signal
import socket
import struct
import time

import victim  # first: it knows where the others are
import cluster

APP = """
frag: 1
application: packets
operators:
  source: {type: udp_source, parameters: {sequence: true, max_payload_size: 64, only_from: "%s"}}
  sink: {type: udp_sink, parameters: {port: %d}}
  tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 5ms}]}
  rx: {type: ping_rx}
flows: [source.output -> sink.input, tx.out -> rx.in]
"""
HEADER = struct.Struct(">QQ")
SENDER, STRANGER = "127.0.0.1", "127.66.66.66"
PACKETS = 300
FORGED = 20000
TOP = (1 << 64) - 1


def socket_of(address):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((address, 0))
    return s


def send_all(address, packets):
    """Packets of a stranger. Returns how many the network took."""
    sent = 0
    with socket_of(STRANGER) as s:
        for data in packets:
            try:
                s.sendto(data, address)
                sent += 1
            except OSError:
                pass
    return sent


def forge(report, port):
    """Numbers that would end, restart or overflow the count of somebody who believes them."""
    generator = random.Random(1)
    numbers = [0, 1, TOP, 0, TOP - 1, TOP, 1 << 63, (1 << 63) - 1, (1 << 63) + 1]
    numbers += [generator.randrange(1 << generator.randrange(1, 65)) for _ in range(FORGED)]
    numbers += [n + i & TOP for n in numbers[:1000] for i in range(3)]
    report(send_all((SENDER, port), (HEADER.pack(n, n) + b"forged" for n in numbers)))
    time.sleep(3600)


def send_malformed(report, port):
    """Of every length, above all of those at the borders."""
    lengths = [0, 1, 7, 8, 15, 16, 17, 79, 80, 81, 1472, 9000, 65507] * 20
    report(send_all((SENDER, port), (os.urandom(n) for n in lengths)))
    time.sleep(3600)


def flood(report, port):
    report("begun")
    while True:
        send_all((SENDER, port), (HEADER.pack(n, 0) + b"flood" for n in range(10000)))


class Packets(cluster.ClusterTest):
    def begin(self, only_from):
        self.receiver = socket_of(SENDER)
        self.addCleanup(self.receiver.close)
        self.receiver.settimeout(cluster.PATIENCE_S)
        self.sender = socket_of(SENDER)
        self.addCleanup(self.sender.close)
        self.program = self.start("fragctl", "run", "--output", "json", self.write(
            "app.yaml", APP % (only_from, self.receiver.getsockname()[1])))
        self.port = int(self.program.wait_line(r"receives packets on 127\.0\.0\.1:(\d+)").group(1))

    def attack(self, deed):
        if victim.hindrance():
            self.skipTest(victim.hindrance())
        attacker = victim.Attacker(deed, self.port)
        self.addCleanup(attacker.end)
        return attacker

    def send(self, number, text):
        self.sender.sendto(HEADER.pack(number, 1) + text, (SENDER, self.port))

    def crosses(self, number, text):
        """Whether a packet of the sender arrives. The kernel may have had no room for it."""
        self.receiver.settimeout(0.5)
        self.send(number, text)
        try:
            while self.receiver.recv(100) != text:
                pass
        except socket.timeout:
            return False
        return True

    def assert_crosses(self, numbers):
        """Each packet arrives before the next one is sent."""
        for n in numbers:
            self.wait_until("packet %d" % n, lambda n=n: self.crosses(n, b"%d" % n))

    def end(self):
        """Ends the application, and returns the counts that its source logged."""
        self.program.signal(signal.SIGTERM)
        self.assertEqual(self.program.wait(), 0, self.program.stderr)
        summary = self.summary(self.program)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        self.assertGreater(self.flow(summary, "packets.tx.out")["delivered"], 0)
        log = self.program.stderr
        dropped = re.search(r"received (\d+) packets of \d+ bytes; dropped (\d+) that came too fast, "
                            r"(\d+) longer than max_payload_size, (\d+) of other senders, "
                            r"(\d+) without a header", log)
        numbered = re.search(r"(\d+) are lost, (\d+) came late, (\d+) were repeated, "
                             r"(\d+) were far from the others", log)
        self.assertTrue(dropped and numbered, log)
        names = ("received", "overflowed", "longer", "strangers", "malformed")
        counts = dict(zip(names, map(int, dropped.groups())))
        counts.update(zip(("lost", "late", "repeated", "stray"), map(int, numbered.groups())))
        return counts

    def test_forged_numbers_of_a_stranger_change_nothing(self):
        self.begin(SENDER)
        self.assert_crosses(range(10))
        self.attack(forge).report()
        self.assert_crosses(range(10, PACKETS))
        counts = self.end()
        self.assertEqual((counts["received"], counts["lost"], counts["late"], counts["stray"]),
                         (PACKETS, 0, 0, 0))
        self.assertGreater(counts["strangers"], 0)

    def test_forged_numbers_are_passed_on_or_counted(self):
        """Believed, because the source takes packets of everybody."""
        self.begin("")
        self.assert_crosses(range(10))
        sent = self.attack(forge).report() + 10
        own = self.assert_heard()
        counts = self.end()
        taken = sum(counts[n] for n in ("received", "overflowed", "malformed", "longer", "repeated",
                                        "stray"))
        self.assertLessEqual(taken, sent + own)
        # Of the sender's last packets some may still be on their way when the application ends.
        self.assertGreaterEqual(taken, sent)

    def test_malformed_packets_are_counted_and_nothing_else(self):
        self.begin("")
        self.assert_crosses(range(10))
        sent = self.attack(send_malformed).report()
        self.assert_heard()
        counts = self.end()
        self.assertGreaterEqual(counts["malformed"], 1)
        self.assertGreaterEqual(counts["longer"], 1)
        self.assertLessEqual(counts["malformed"] + counts["longer"], sent)

    def assert_heard(self):
        """A sender that begins anew is heard from its second packet on. Returns how many it sent."""
        numbers = iter(range(1 << 40, 1 << 41))
        self.wait_until("the sender is heard", lambda: self.crosses(next(numbers), b"again"))
        return next(numbers) - (1 << 40)

    def test_a_flood_is_dropped_and_counted(self):
        """The sender's packets cross while it goes on, those that the kernel has room for."""
        self.begin(SENDER)
        self.assert_crosses(range(10))
        attacker = self.attack(flood)
        attacker.report()
        number, end = 10, time.monotonic() + victim.ATTACK_S
        while time.monotonic() < end:
            self.assert_crosses([number])
            number += 1
        attacker.end()
        self.assert_crosses([number])
        counts = self.end()
        self.assertEqual((counts["received"], counts["malformed"], counts["longer"]),
                         (number + 1, 0, 0))
        self.assertGreater(counts["strangers"], 0)
