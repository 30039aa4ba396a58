# SPDX-License-Identifier: Apache-2.0
"""A bit of an encrypted message is changed on its way between two nodes, under a checksum that
fits. The message is not delivered, and the application ends with a sentence and an account that
balances."""
import collections

import victim  # first: it knows where the others are
import relay

RUNS = int(3 * victim.ATTACK_S)


class Damage(victim.Victim):
    """fragment1 runs on one node and fragment2 on the other; the link lies between them."""

    def setUp(self):
        super().setUp()
        reason = relay.why_not()
        if reason:
            self.skipTest("no network namespaces with tun devices here: " + reason)
        self.link = relay.Link(self.mark, 0)
        self.addCleanup(self.link.end)

    def inside(self, i):
        return ("ip", "netns", "exec", self.link.names[i])

    def driver(self, app, *flags, **more):
        more.update(address=self.link.ADDRESSES[0] + ":0", prefix=self.inside(0))
        return super().driver(app, *flags, "--insecure", **more)

    def worker(self, *flags, fragments=None, **more):
        more.update(prefix=self.inside(1 if fragments == "fragment2" else 0))
        return super().worker(*flags, "--insecure", fragments=fragments, **more)

    def test_a_changed_bit_is_noticed(self):
        codes = collections.Counter()
        for number in range(RUNS):
            with self.subTest(number=number):
                self.forget()
                self.launch(driver_flags=("--encrypt-data",), size=100000, tx_pause="2ms")
                self.link.set(control_port=int(self.address.rsplit(":", 1)[1]))
                self.wait_received(5)
                self.link.set(damage=1)
                self.assertEqual(self.d.wait(), 1, self.d.stderr)
                summary = self.summary(self.d)
                self.assert_balanced(summary)
                self.assert_truth(summary)
                codes[summary["failure"]["code"]] += 1
                for w in self.workers:
                    self.assertEqual(w.wait(), 1, w.stderr)
                self.assert_nothing_left()
                self.assert_clean_logs()
        # A bit of UCX's own headers, which are not encrypted, breaks the link.
        self.assertGreater(codes["data_tampered"], 0, codes)
