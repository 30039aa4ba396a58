# SPDX-License-Identifier: Apache-2.0
"""Strangers on the network: they reach the ports of a node from another network namespace, over a
link, as somebody at the other end of a cable does."""
import time

import victim  # first: it knows where the others are
import cluster
import relay
import strangers


class Network(victim.Keyed):
    """The application runs in one namespace, and the stranger in the other one."""

    def setUp(self):
        super().setUp()
        reason = relay.why_not()
        if reason:
            self.skipTest("no network namespaces with tun devices here: " + reason)
        self.link = relay.Link(self.mark, 0)
        self.addCleanup(self.link.end)
        self.inside = ("ip", "netns", "exec", self.link.names[0])

    def driver(self, app, *flags, **more):
        more.update(address=self.link.ADDRESSES[0] + ":0", prefix=self.inside)
        return super().driver(app, *flags, *self.flags, **more)

    def worker(self, *flags, **more):
        return super().worker(*flags, *self.flags, **dict(more, prefix=self.inside))

    def test_crowds_and_floods_at_every_port(self):
        self.begin(edge="ucx")
        ports = [p for pid in self.wait_hosts(2) for p in cluster.data_ports(pid)]
        places = [self.address] + ["%s:%d" % (self.link.ADDRESSES[0], p) for p in ports]
        self.assertGreaterEqual(len(places), 3)
        for deed in (strangers.stand_silent, strangers.send_beginnings, strangers.flood):
            began = time.monotonic()
            for place in places:
                self.attack(deed, place, namespace=self.link.names[1]).report()
            self.assert_goes_on()
            while time.monotonic() < began + victim.ATTACK_S:
                self.assert_goes_on()
            while self.attackers:
                self.attackers.pop().end()
        self.d.wait_line(r"warn .*closed the connection of 10\.78\.0\.2")
        for w in self.workers:
            w.wait_line(r"warn .*refused a connection to the data port from 10\.78\.0\.2")
        self.end_unharmed()
