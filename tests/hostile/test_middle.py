# SPDX-License-Identifier: Apache-2.0
"""A man in the middle of a control connection without keys. He may do much, but what he sends is
checked: every process ends by itself, with a sentence and an account that balances."""
import os
import random

import victim  # first: it knows where the others are
import cluster
import middle

SEED = int(os.environ.get("FRAG_TEST_SEED", random.randrange(1 << 30)))
CHANGES = int(12 * victim.ATTACK_S)


class Fields(victim.Victim):
    def run_through(self, change):
        """A short application whose second worker connects through the middle. Returns what was
        sent there."""
        m = None
        self.env.update(FRAG_BEAT_MS="100", FRAG_DEAD_MS=cluster.dead_ms(1000))
        self.forget()
        self.d = self.driver(self.app, "--output", "json", "--start-timeout",
                             "%dms" % (3000 * cluster.times_slower()),
                             app_args=("--count", "30", "--tx_pause", "1ms"))
        try:
            m = middle.Middle(self.address, change, by_frame=True)
            self.workers = [self.worker("--once", "--name", "a", fragments="fragment1"),
                            self.worker("--once", "--name", "b", fragments="fragment2", address=m.address)]
            self.named = dict(zip(("driver", "a", "b"), [self.d] + self.workers))
            code = self.d.wait()
        finally:
            if m:
                m.end()
        for w in self.workers:
            w.signal(15)  # one that never served waits for another driver
            self.assertIn(w.wait(), (0, 1, 2, 3, 4, 5), w.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()
        return code, m.seen

    def test_changed_fields_end_in_a_sentence(self):
        code, seen = self.run_through(lambda way, data: data)
        self.assertEqual(code, 0, self.d.stderr)
        places = sorted({(way, site) for way, data in seen for site in middle.sites(data)})
        self.assertGreater(len(places), 100)
        rng = random.Random(SEED)
        for number in range(CHANGES):
            way, site = rng.choice(places)
            how = rng.choice(list(middle.WAYS))
            nth = rng.choice((0, 0, 0, 1, 2))
            with self.subTest(seed=SEED, number=number, way=way, site=site, how=how, nth=nth):
                self.run_changed(way, site, how, nth, rng)

    def run_changed(self, way, site, how, nth, rng):
        met = 0

        def change(w, data):
            nonlocal met
            if w == way and site in middle.sites(data):
                met += 1
                if met == nth + 1:
                    return middle.change_field(data, site, how, rng)
            return data

        code, _ = self.run_through(change)
        self.assertIn(code, (0, 1, 2, 3, 4), self.d.stderr)
        summary = self.summary(self.d)
        self.assertEqual(summary["exit_code"], code)
        self.assert_balanced(summary)
        if code != 0:
            self.assertTrue(summary["reason"], summary)
