# SPDX-License-Identifier: Apache-2.0
"""Traces for Perfetto, read by a small decoder: what all hosts of an application do, in one file."""
import os
import signal
import struct
import subprocess

import cluster
from control import fields
from test_nodes import IN_ANOTHER_TIME

APP = """
frag: 1
application: traced
fragments:
  one:
    scheduler: {type: event_based, worker_thread_number: 2}
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 2ms}]}
      near: {type: ping_rx}
    flows: [tx.out -> near.in]
  two:
    on_failure: {policy: restart}
    operators:
      rx: {type: ping_rx}
flows: [one.tx.out -> two.rx.in]
"""
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def flow_ids(event, field):
    return [struct.unpack("<Q", f)[0] for f in event.get(field, [])]


class Perfetto:
    """The packets of a trace, by the numbers of Perfetto's .proto files."""

    def __init__(self, path):
        self.processes, self.threads, self.counters = {}, {}, {}
        self.slices, self.instants = [], []  # (name, track, begin, end, sent, received)
        open_on = {}
        with open(path, "rb") as f:
            trace = fields(f.read())
        for packet in map(fields, trace[1]):
            for track in map(fields, packet.get(60, [])):
                self.track(track)
            for event in map(fields, packet.get(11, [])):
                self.event(event, packet[8][0], open_on)
        assert not any(open_on.values()), "a slice never ends"

    def track(self, track):
        uuid = track[1][0]
        if 3 in track:
            self.processes[uuid] = fields(track[3][0])[6][0].decode()
        elif 4 in track:
            thread = fields(track[4][0])
            self.threads[uuid] = (thread[1][0], thread[2][0], thread[5][0].decode())
        else:
            self.counters[uuid] = (track[2][0].decode(), [])

    def event(self, event, at, open_on):
        kind, track = event[9][0], event[11][0]
        name = event.get(23, [b""])[0].decode()
        stack = open_on.setdefault(track, [])
        if kind == BEGIN:
            assert track in self.threads, "a slice lies on a thread"
            assert not stack or at >= stack[-1][2], "slices nest"
            stack.append([name, track, at, None, flow_ids(event, 47), flow_ids(event, 48)])
        elif kind == END:
            begun = stack.pop()
            assert at >= begun[2], "a slice ends after its begin"
            begun[3] = at
            self.slices.append(begun)
        elif kind == COUNTER:
            self.counters[track][1].append((at, event[30][0]))
        else:
            self.instants.append((name, at))

    def of(self, name):
        return sorted((s for s in self.slices if s[0] == name), key=lambda s: s[2])


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


class Trace(cluster.ClusterTest):
    def begin(self, prefix=()):
        app = self.write("app.yaml", APP)
        self.d = self.driver(app)
        self.worker("--once", "--name", "a", fragments="one")
        self.b = self.worker("--once", "--name", "b", fragments="two", prefix=prefix)
        self.b.wait_line("Rx message value: 50")

    def fragctl(self, *args):
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), *args, "--address", self.address],
                              capture_output=True, text=True, env=self.env, timeout=60)

    def trace(self, duration):
        p = self.fragctl("trace", "traced", "--for", duration, "-o", self.path("t.pftrace"))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p, Perfetto(self.path("t.pftrace"))

    def end(self):
        self.d.signal(signal.SIGTERM)
        self.d.wait()
        self.assert_nothing_left()

    def assert_whole(self, trace):
        """Each message that was sent in the middle has its arrow to each of its receivers."""
        sent = trace.of("one.tx")
        by_id = {i: s for name in ("one.near", "two.rx") for s in trace.slices
                 if s[0] in (name, "receives") for i in s[5]}
        self.assertGreater(len(sent), 100)
        # what the hosts first sent came at different times, and so did the last
        middle = sent[len(sent) // 4:len(sent) // 2]
        for one in middle:
            self.assertEqual(len(one[4]), 2, one)
            for i in one[4]:
                self.assertIn(i, by_id)
                self.assertGreaterEqual(by_id[i][2], one[2], "it is received after it was sent")
        names = {by_id[i][0] for one in middle for i in one[4]}
        self.assertTrue({"one.near", "two.rx"} <= names | {"receives"}, names)
        self.assertEqual(len({i for one in sent for i in one[4]}), sum(len(one[4]) for one in sent))

    def test_all_hosts_are_in_one_file(self):
        apart = subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode == 0
        self.begin(IN_ANOTHER_TIME if apart else ())
        p, trace = self.trace("1500ms")
        self.assertRegex(p.stdout, r"t\.pftrace: \d+ ticks and \d+ messages of 2 hosts, clocks to within ")
        self.assertEqual(p.stderr, "fragctl: traces traced for 1.5 s; an interrupt ends it before\n")
        self.assert_whole(trace)
        self.assertEqual(sorted(n.split(" on ")[0] for n in trace.processes.values()), ["one", "two"])
        self.assertEqual(len({pid for pid, _, _ in trace.threads.values()}), 2)
        self.assertEqual({name for name, _ in trace.counters.values()},
                         {"one.tx.out -> one.near.in: queued", "one.tx.out -> two.rx.in: queued"})
        for _, values in trace.counters.values():
            self.assertTrue(all(0 <= v <= 64 for _, v in values))
            self.assertGreater(len(values), 100)
        ends = [s[3] for s in trace.slices]
        self.assertLess(max(ends) - min(s[2] for s in trace.slices), 60e9, "all on one clock")
        if apart:
            self.assertNotIn("within 0 ns", p.stdout)
        self.end()

    def test_a_host_that_is_killed_and_started_again_is_there_twice(self):
        self.begin()
        killed = self.start("fragctl", "trace", "traced", "--for", "3s", "-o", self.path("t.pftrace"),
                            "--address", self.address)
        (two,) = [pid for pid in self.hosts() if parent(pid) == self.b.pid]
        killed.wait_line("traces traced for ")
        received = self.b.stderr.count("Rx message")
        self.wait_until("it is traced", lambda: self.b.stderr.count("Rx message") > received + 200)
        os.kill(two, signal.SIGKILL)
        self.assertEqual(killed.wait(), 0, killed.stderr)
        trace = Perfetto(self.path("t.pftrace"))
        self.assertIn("started again", [name for name, _ in trace.instants])
        self.assertGreater(len(trace.of("one.tx")), 100)
        self.end()

    def test_what_cannot_be_traced_is_refused_by_name(self):
        self.begin()
        p = self.fragctl("trace", "other")
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertIn("there is no application other", p.stderr)
        p = self.fragctl("trace", "traced", "--for", "5")
        self.assertEqual(p.returncode, 2)
        self.assertIn("--for \"5\" is not a time between 1ms and 1h; give it as 5s", p.stderr)
        p = self.fragctl("trace", "traced", "-o", self.path("no/such/folder"))
        self.assertEqual(p.returncode, 3)
        self.assertIn("cannot write ", p.stderr)
        ended = self.start("fragctl", "trace", "traced", "--for", "60s", "-o", self.path("e.pftrace"),
                           "--address", self.address)
        ended.wait_line("traces traced for ")
        self.d.signal(signal.SIGTERM)
        self.d.wait()
        ended.wait()
        self.assertTrue(os.path.exists(self.path("e.pftrace")), "what has come is written")
        self.assert_nothing_left()


if __name__ == "__main__":
    import unittest
    unittest.main()
