# SPDX-License-Identifier: Apache-2.0
"""Operators that attack: they share the memory of their host, so they can spoil their own
application, but nothing beside it, and what they spoil is not called exact."""
import signal

import victim  # first: it knows where the others are

SCRIBBLED = """
frag: 1
application: scribbled
arguments: {with: {default: noise}}
extensions: [libscribbler.so, libtruth.so]
fragments:
  fragment1:
    operators:
      tx: {type: scribbler, parameters: {with: "${with}", after: 300}}
      here: {type: truth_rx, parameters: {file: "%(folder)s/here"}}
    flows: [tx.out -> here.in]
  fragment2:
    operators: {rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""


class Page(victim.Victim):
    def test_a_scribbled_page_of_counts(self):
        """The workers and the driver read it, and take it for what it is."""
        self.app = self.write("app.yaml", SCRIBBLED % {"folder": self.folder})
        self.rows = ()
        self.begin_bystander()
        for pattern in ("ones", "zeros", "noise", "everything"):
            with self.subTest(pattern):
                self.launch(**{"with": pattern})
                self.workers[0].wait_line("fragment1.tx: scribbled")
                self.d.wait_line(r"warn .*counts of fragment1 on worker a contradict each other")
                self.d.signal(signal.SIGTERM)
                self.assertIn(self.d.wait(), (0, 1), self.d.stderr)
                for w in self.workers:
                    self.assertIn(w.wait(), (0, 1), w.stderr)
                summary = self.summary(self.d)
                self.assert_balanced(summary)
                for f in summary["flows"]:
                    self.assertFalse(f["exact"], f)
                    self.assertLess(f["sent"], 1 << 60)
                self.assert_nothing_left()
                # Its host may crash, as it counts where the page says; none beside it may.
                self.assert_clean_logs(but="scribbled/fragment1: ")
                self.bystander.check_goes_on()
        self.bystander.end()
