# SPDX-License-Identifier: Apache-2.0
"""A bad link between two network namespaces: a process that carries every packet from one to the
other by hand, and delays, loses or withholds them as it is told. The kernel needs nothing but tun
devices for it.
"""
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
CLONE_NEWNET = 0x40000000
PACKET = 65536


def sh(*command):
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)


def open_tun(namespace, name):
    """A tun device in a namespace. The calling process stays in that namespace; it has no need of
    another."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/run/netns/" + namespace) as f:
        if libc.setns(f.fileno(), CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), "setns")
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return fd


def ports(packet):
    """The two TCP ports of an IPv4 packet."""
    head = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != 6 or len(packet) < head + 4:
        return ()
    return struct.unpack("!HH", packet[head:head + 4])


def checksum(data):
    """Of the Internet protocols (RFC 1071)."""
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data[:len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def damaged(packet, place, bit):
    """An IPv4 packet with one bit of what TCP carries changed, and a checksum that fits."""
    head = (packet[0] & 15) * 4
    tcp = bytearray(packet[head:])
    tcp[(tcp[12] >> 4) * 4 + place] ^= bit
    tcp[16:18] = b"\0\0"
    pseudo = packet[12:20] + struct.pack("!HH", 6, len(tcp))
    tcp[16:18] = struct.pack("!H", checksum(pseudo + bytes(tcp)))
    return packet[:head] + bytes(tcp)


def carried(packet):
    """How many bytes of a stream an IPv4 packet carries."""
    head = (packet[0] & 15) * 4
    return len(packet) - head - (packet[head + 12] >> 4) * 4


class Carrier:
    """The process itself: two devices, what is on the way between them, and orders from a
    socket."""

    def __init__(self, fds, orders, seed):
        self.fds, self.orders = fds, orders
        self.random = random.Random(seed)
        self.how = {"delay_s": 0.0, "loss": 0.0, "cut": [False, False], "control_port": 0, "data_only": False,
                    "damage": 0}
        self.on_the_way = []
        self.count = 0

    def is_withheld(self, packet, way):
        if self.how["data_only"] and self.how["control_port"] in ports(packet):
            return False
        return self.how["cut"][way] or self.random.random() < self.how["loss"]

    def damage(self, packet):
        """Changes a bit in each of the next `damage` packets that carry much data of hosts."""
        between = ports(packet)
        if not self.how["damage"] or not between or self.how["control_port"] in between or \
                carried(packet) < 1000:
            return packet
        self.how["damage"] -= 1
        place = self.random.randrange(200, carried(packet))
        return damaged(packet, place, 1 << self.random.randrange(8))

    def take(self, way):
        for _ in range(64):
            try:
                packet = os.read(self.fds[way], PACKET)
            except BlockingIOError:
                return
            if not self.is_withheld(packet, way):
                packet = self.damage(packet)
                self.count += 1
                heapq.heappush(
                    self.on_the_way,
                    (time.monotonic() + self.how["delay_s"], self.count, 1 - way, packet),
                )

    def deliver(self):
        while self.on_the_way and self.on_the_way[0][0] <= time.monotonic():
            _, _, to, packet = heapq.heappop(self.on_the_way)
            try:
                os.write(self.fds[to], packet)
            except OSError:
                pass  # a full or absent device loses it, as a wire would

    def run(self):
        while True:
            left = self.on_the_way[0][0] - time.monotonic() if self.on_the_way else None
            ready, _, _ = select.select(
                [*self.fds, self.orders], [], [], None if left is None else max(left, 0)
            )
            if self.orders in ready:
                order = self.orders.recv(4096)
                if not order:
                    return
                self.how.update(json.loads(order))
                self.orders.send(b"!")
            for way in (0, 1):
                if self.fds[way] in ready:
                    self.take(way)
            self.deliver()


class Link:
    """Two namespaces, 10.78.0.1 and 10.78.0.2, and what lies between them."""

    ADDRESSES = ("10.78.0.1", "10.78.0.2")

    def __init__(self, mark, seed):
        self.names = ["frag-t%d-%s" % (i, mark[:8]) for i in (0, 1)]
        self.pid = None
        self.orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.orders.settimeout(60)
        try:
            for name in self.names:
                sh("ip", "netns", "add", name)
                sh("ip", "-n", name, "link", "set", "lo", "up")
            self.pid = os.fork()
            if self.pid == 0:
                self._be_carrier(theirs, seed)
            theirs.close()
            assert self.orders.recv(16) == b"!", "the carrier of the link did not begin"
            for name, address, peer in zip(self.names, self.ADDRESSES, reversed(self.ADDRESSES)):
                sh("ip", "-n", name, "addr", "add", address, "peer", peer, "dev", "link0")
                sh("ip", "-n", name, "link", "set", "link0", "up")
        except BaseException:
            self.end()
            raise

    def _be_carrier(self, orders, seed):
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.orders.close()
            fds = [open_tun(name, "link0") for name in self.names]
            orders.send(b"!")
            Carrier(fds, orders, seed).run()
        finally:
            os._exit(0)

    def set(self, **how):
        self.orders.send(json.dumps(how).encode())
        assert self.orders.recv(16) == b"!"

    def end(self):
        self.orders.close()
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = None
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def why_not():
    """What this machine lacks for it; empty when nothing."""
    try:
        Link("try%d" % os.getpid(), 0).end()
        return ""
    except (OSError, AssertionError, subprocess.CalledProcessError) as e:
        return "%s%s" % (e, " " + e.stderr.strip() if isinstance(e, subprocess.CalledProcessError) else "")
