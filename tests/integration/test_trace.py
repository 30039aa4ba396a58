# SPDX-License-Identifier: Apache-2.0
"""Traces for Perfetto, read by a small decoder: what all hosts of an application do, in one file."""
import collections
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import unittest

import cluster
import trace_processor
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
WHOLE = """
frag: 1
application: whole
extensions: [libslow.so]
fragments:
  one:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 300}]}
      work: {type: slow, parameters: {sleep_ms: 2}}
    flows: [{from: tx.out, to: work.in, capacity: 4}]
  two:
    ON_FAILURE
    operators:
      rx: {type: slow_rx, parameters: {sleep_ms: 1, crash_at: CRASH}}
flows: [{from: one.work.out, to: two.rx.in, capacity: 4}]
"""
KILLED = """
frag: 1
application: killed
fragments:
  one:
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 1ms}]}
  two:
    operators:
      rx: {type: ping_rx}
flows: [one.tx.out -> two.rx.in]
"""
LATE = """
frag: 1
application: late
extensions: [libslow.so]
operators:
  tx: {type: ping_tx, conditions: [{type: count, count: 20}]}
  work: {type: slow_rx, parameters: {sleep_ms: 5}}
flows: [tx.out -> work.in]
deadlines: [{budget: 2ms, path: [tx, work]}]
"""
GPU = """
frag: 1
application: gpu
resources:
  gpu: {type: block_memory_pool, storage_type: 1, block_size: 4KB, num_blocks: 8}
operators:
  px:
    type: ping_tensor_tx
    parameters: {rows: 16, columns: 16, channels: 3}
    conditions: [{type: periodic, recess_period: 30ms}, {type: count, count: 20}]
  convert: {type: format_converter, parameters: {pool: $gpu, out_dtype: float32}}
  rx: {type: ping_tensor_rx}
flows: [px -> convert, convert -> rx]
"""
KERNEL_MS = 20
JUDGED = "make perfetto runs it, with Perfetto's trace processor"
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def flow_ids(event, field):
    return [struct.unpack("<Q", f)[0] for f in event.get(field, [])]


class Perfetto:
    """The packets of a trace, by the numbers of Perfetto's .proto files."""

    def __init__(self, path):
        self.processes, self.pids, self.threads, self.counters = {}, {}, {}, {}
        self.slices, self.instants = [], []  # (name, track, begin, end, sent, received)
        self.operators = {}  # what they waited for, by the number of the track: name and slices
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
            process = fields(track[3][0])
            self.processes[uuid], self.pids[uuid] = process[6][0].decode(), process[1][0]
        elif 4 in track:
            thread = fields(track[4][0])
            self.threads[uuid] = (thread[1][0], thread[2][0], thread[5][0].decode())
        elif 8 in track:
            self.counters.setdefault(uuid, (track[2][0].decode(), []))
        else:
            self.operators.setdefault(uuid, (track[2][0].decode(), []))

    def event(self, event, at, open_on):
        kind, track = event[9][0], event[11][0]
        name = event.get(23, [b""])[0].decode()
        stack = open_on.setdefault(track, [])
        if kind == BEGIN:
            assert track in self.threads or track in self.operators
            assert not stack or at >= stack[-1][2], "slices nest"
            stack.append([name, track, at, None, flow_ids(event, 47), flow_ids(event, 48)])
        elif kind == END:
            begun = stack.pop()
            assert at >= begun[2], "a slice ends after its begin"
            begun[3] = at
            if track in self.operators:
                self.operators[track][1].append((begun[0], begun[2], at))
            else:
                self.slices.append(begun)
        elif kind == COUNTER:
            self.counters[track][1].append((at, event[30][0]))
        else:
            self.instants.append((name, at))

    def process_of(self, thread):
        return next(name for uuid, name in self.processes.items()
                    if self.pids[uuid] == self.threads[thread][0])

    def waits(self, operator):
        found = [w for name, waits in self.operators.values() if name == operator for w in waits]
        return sorted(found, key=lambda w: w[1])

    def of(self, name):
        return sorted((s for s in self.slices if s[0] == name), key=lambda s: s[2])


def parent(pid):
    """None: that process has just ended."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


class Trace(cluster.ClusterTest):
    def begin(self, prefix=(), name="traced"):
        app = self.write("app.yaml", APP.replace("traced", name))
        self.d = self.driver(app)
        self.worker("--once", "--name", "a", fragments="one")
        self.b = self.worker("--once", "--name", "b", fragments="two", prefix=prefix)
        self.b.wait_line("Rx message value: 50")

    def fragctl(self, *args, cwd=None):
        return subprocess.run([os.path.join(cluster.BIN, "fragctl"), *args, "--address", self.address],
                              cwd=cwd, capture_output=True, text=True, env=self.env, timeout=60)

    def trace(self, duration):
        p = self.fragctl("trace", "traced", "--for", duration, "-o", self.path("t.pftrace"))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p, self.read(p.stdout)

    def read(self, line):
        """The trace that was written with that line."""
        return Perfetto(self.path("t.pftrace"))

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

    def assert_waits(self, trace):
        """What an operator waits for lies between its ticks, and nearly all of that time has a name."""
        for op in ("one.tx", "one.near", "two.rx"):
            ticks, waits = trace.of(op), trace.waits(op)
            both = sorted([(t[2], t[3]) for t in ticks] + [w[1:] for w in waits])
            self.assertTrue(all(a[1] <= b[0] for a, b in zip(both, both[1:])), op)
            gaps = sum(b[2] - a[3] for a, b in zip(ticks, ticks[1:]))
            named = sum(w[2] - w[1] for w in waits if ticks[0][2] <= w[1] <= ticks[-1][2])
            self.assertGreater(named, gaps / 2, op)

    def test_all_hosts_are_in_one_file(self):
        apart = subprocess.run([*IN_ANOTHER_TIME, "true"], capture_output=True).returncode == 0
        self.begin(IN_ANOTHER_TIME if apart else ())
        p, trace = self.trace("1500ms")
        self.assertRegex(p.stdout, r"t\.pftrace: \d+ ticks and \d+ messages of 2 hosts, %s" %
                         ("clocks to within [1-9]" if apart else "one clock\\n"))
        self.assertEqual(p.stderr, "fragctl: traces traced for 1.5 s; an interrupt ends it earlier\n")
        self.assert_whole(trace)
        self.assertEqual(sorted(n.split(" on ")[0] for n in trace.processes.values()), ["one", "two"])
        self.assertEqual(len({pid for pid, _, _ in trace.threads.values()}), 2)
        self.assertEqual({name for name, _ in trace.counters.values()},
                         {"one.tx.out -> one.near.in: queued", "one.tx.out -> two.rx.in: queued"})
        self.assert_waits(trace)
        for _, values in trace.counters.values():
            self.assertTrue(all(0 <= v <= 64 for _, v in values))
            self.assertGreater(len(values), 100)
        ends = [s[3] for s in trace.slices]
        self.assertLess(max(ends) - min(s[2] for s in trace.slices), 60e9, "all on one clock")
        if apart:
            self.assertNotIn("within 0 ns", p.stdout)
        self.end()

    def wait_for_messages(self, count):
        received = self.b.stderr.count("Rx message")
        self.wait_until("%d messages" % count, lambda: self.b.stderr.count("Rx message") > received + count)

    def test_a_host_that_is_killed_and_started_again_is_there_twice(self):
        self.begin()
        killed = self.start("fragctl", "trace", "traced", "--for", "60s", "-o", self.path("t.pftrace"),
                            "--address", self.address)
        hosts = lambda: [pid for pid in self.hosts() if parent(pid) == self.b.pid]
        (two,) = hosts()
        killed.wait_line("traces traced for ")
        self.wait_for_messages(200)
        os.kill(two, signal.SIGKILL)
        self.wait_until("another process", lambda: any(pid != two for pid in hosts()))
        self.wait_for_messages(200)
        killed.signal(signal.SIGINT)
        self.assertEqual(killed.wait(), 0, killed.stderr)
        trace = self.read(killed.stdout)
        self.assertIn("started again", [name for name, _ in trace.instants])
        self.assertGreater(len(trace.of("one.tx")), 100)
        self.end()

    def test_a_full_disk(self):
        """The older file stays as it was, and nothing is left beside it."""
        disk = self.path("disk")
        os.mkdir(disk)
        prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c",
                  'mount -t tmpfs -o size=32k frag "$0" && echo old >"$0/t.pftrace" &&'
                  ' "$@"; code=$?; cat "$0"/* && ls -A "$0"; exit $code', disk)
        probe = self.start("/bin/sh", "-c", "true", prefix=prefix)
        if probe.wait() != 0:
            self.skipTest("no mount namespaces here: " + probe.stderr)
        self.begin()
        p = self.start("fragctl", "trace", "traced", "--for", "1s", "-o", disk + "/t.pftrace",
                       "--address", self.address, prefix=prefix)
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assertIn("cannot write %s/t.pftrace: No space left on device; nothing of the trace is "
                      "kept, and no older file of that name was changed" % disk, p.stderr)
        self.assertEqual(p.stdout.split(), ["old", "t.pftrace"])
        self.end()

    def test_the_page_is_typed(self):
        """The commands of docs/TRACE.md, and what they print."""
        with open(os.path.join(cluster.TOP, "docs", "TRACE.md")) as f:
            blocks = f.read().split("```")[1::2]
        command, printed, whole = (b.strip().split("\n")[0] for b in blocks[:3])
        self.begin(name="cam1")
        words = command.replace("--for 5s", "--for 1s").split()[1:]
        p = self.fragctl(*words, cwd=self.path("."))
        self.assertEqual(p.returncode, 0, p.stderr)
        printed = re.sub("clocks to within .*", "one clock", printed)  # it is of two machines
        shape = [re.sub(r"[\d.]+", "N", x.strip()) for x in (p.stdout, printed)]
        self.assertEqual(*shape)
        self.assertTrue(os.path.exists(self.path(words[-1])))
        self.end()
        self.write("app.yaml", WHOLE.replace("CRASH", "0").replace("ON_FAILURE", ""))
        words = whole.split()[1:]
        p = subprocess.run([os.path.join(cluster.BIN, "fragctl"), *words], cwd=self.path("."),
                           capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("app.pftrace: 900 ticks and 600 messages of ", p.stderr)

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


class Probes(cluster.ClusterTest):
    begin, end = Trace.begin, Trace.end

    def test_bpftrace_sees_what_operators_do(self):
        bpftrace = shutil.which("bpftrace")
        if bpftrace is None:
            self.skipTest("bpftrace is not installed")
        self.begin()
        library = os.path.join(cluster.BUILD, "lib", "libfrag.so.1")
        (one,) = [pid for pid in self.hosts() if parent(pid) != self.b.pid]
        probes = "usdt:%s:frag:" % library
        program = (probes + 'tick__begin { printf("%s begins\\n", str(arg0)); } '
                   + probes + 'tick__end /arg1 > 0/ { printf("%s ends\\n", str(arg0)); } '
                   + probes + 'emit { printf("%s.%s sent %d\\n", str(arg0), str(arg1), arg2); } '
                   + probes + 'receive { printf("%s.%s got %d\\n", str(arg0), str(arg1), arg2); }')
        p = self.start(bpftrace, "-B", "line", "-p", one, "-e", program)
        lines = ("one.tx begins", "one.tx ends", "one.tx.out sent 1", "one.near.in got 1", "one.near ends")
        self.wait_until("it sees ticks", lambda: all(x in p.stdout for x in lines)
                        or p.child.poll() is not None)
        if p.child.poll() is not None:
            self.skipTest("bpftrace attaches no probes here: " + p.stderr[-300:])
        p.signal(signal.SIGINT)
        p.wait()
        self.assertNotIn("two.rx", p.stdout)
        self.end()


class Run(cluster.ClusterTest):
    """fragctl run --trace: from the first tick to the last."""

    def run_traced(self, *flags, crash=0, on_failure="stop", code=0):
        app = self.write("app.yaml", WHOLE.replace("CRASH", str(crash)).replace(
            "ON_FAILURE", "on_failure: {policy: %s}" % on_failure))
        p = self.start("fragctl", "run", app, "--workers", "2", "--trace", self.path("t.pftrace"),
                       "--summary", self.path("s.json"), *flags)
        self.assertEqual(p.wait(), code, p.stderr)
        with open(self.path("s.json")) as f:
            return p, json.load(f)

    def read(self, line):
        return Perfetto(self.path("t.pftrace"))

    def line(self, p):
        return next(x for x in p.stderr.splitlines() if x.startswith(self.path("t.pftrace")))

    def test_sums_are_those_of_the_summary(self):
        p, summary = self.run_traced()
        line = self.line(p)
        trace = self.read(line)
        self.assertRegex(line, r": \d+ ticks and 600 messages of 2 hosts, one clock$")
        self.assertNotIn("missing", p.stderr)
        for fragment in summary["fragments"]:
            for op in fragment["operators"]:
                name = "%s.%s" % (fragment["name"], op["name"])
                ticks = trace.of(name)
                self.assertEqual(len(ticks), op["ticks"], name)
                took, job = sum(t[3] - t[2] for t in ticks), op["job"]["time_ns"]
                if op["type"] != "ping_tx":  # which only sends: to write the record takes as long
                    self.assertTrue(job * 0.8 < took < job * 1.01, (name, took, job))
        for flow in summary["flows"]:
            sent = [i for s in trace.of(flow["from"].rpartition(".")[0]) for i in s[4]]
            names = (flow["to"].rpartition(".")[0], "receives")
            received = [i for s in trace.slices if s[0] in names for i in s[5]]
            self.assertEqual(len(sent), flow["sent"], flow["from"])
            self.assertEqual(len(set(sent) & set(received)), flow["delivered"], flow["from"])
        self.assertIn("waits for room", {w[0] for w in trace.waits("one.tx")})
        self.assertIn("waits for a message", {w[0] for w in trace.waits("two.rx")})

    def test_it_is_kept_only_where_something_fails(self):
        p, _ = self.run_traced("--on-failure")
        self.assertIn("nothing has failed: no trace is kept", p.stderr)
        self.assertFalse(os.path.exists(self.path("t.pftrace")))
        p, summary = self.run_traced("--on-failure", crash=100, code=1)
        trace = self.read(self.line(p))
        self.assertEqual(summary["result"], "failed")
        self.assertGreater(len(trace.of("one.work")), 90)
        self.assertNotIn("missing", p.stderr)
        self.assertEqual(len(trace.of("two.rx")), 99, "all ticks before the one that crashed")
        os.unlink(self.path("t.pftrace"))
        p, _ = self.run_traced("--on-failure", crash=200, on_failure="restart")
        self.assertIn("started again", [name for name, _ in self.read(self.line(p)).instants])

    def test_what_a_killed_host_did_last_is_kept(self):
        """Also what it had not sent: each message that it printed was one of its ticks."""
        app = self.write("app.yaml", KILLED)
        p = self.start("fragctl", "run", app, "--workers", "2", "--trace", self.path("t.pftrace"),
                       "--on-failure")
        p.wait_line("Rx message value: 100")
        (two,) = [pid for pid in self.hosts() if "--fragments two" in self.ours()[parent(pid)]]
        os.kill(two, signal.SIGKILL)
        self.assertEqual(p.wait(), 1, p.stderr)
        printed = max(map(int, re.findall(r"Rx message value: (\d+)", p.stderr)))
        self.assertNotIn("missing", p.stderr)
        self.assertIn(len(self.read(self.line(p)).of("two.rx")), (printed - 1, printed))

    def test_late_messages_are_there_with_what_is_to_blame(self):
        p = self.start("fragctl", "run", self.write("late.yaml", LATE), "--trace", self.path("t.pftrace"))
        self.assertEqual(p.wait(), 0, p.stderr)
        late = [name for name, _ in Perfetto(self.path("t.pftrace")).instants if name.startswith("late ")]
        self.assertEqual(len(late), 20)
        for name in late:
            self.assertRegex(name, r"^late after [0-9.]+ m?s: late\.(tx|work) [a-z ]+$")
        self.assertTrue([name for name in late if name.endswith("late.work computed long")], late)

    def test_work_of_a_gpu_goes_on_after_its_tick(self):
        self.need_kernels()
        app = self.write("app.yaml", GPU)
        self.env.update(LD_LIBRARY_PATH=os.path.join(cluster.BUILD, "tests", "cuda"),
                        FAKE_CUDA_KERNEL_MS=str(KERNEL_MS))
        p = self.start("fragctl", "run", app, "--trace", self.path("t.pftrace"))
        self.assertEqual(p.wait(), 0, p.stderr)
        trace = self.read(self.line(p))
        ticks, works = trace.of("gpu.convert"), trace.waits("gpu.convert: GPU")
        self.assertEqual((len(ticks), len(works)), (20, 20))
        for (_, _, begin, end, _, _), (_, works_from, works_to) in zip(ticks, works):
            self.assertGreaterEqual(works_from, begin - 1000, "ticks are moved by rounding")
            self.assertGreater(works_to, end)
        took = sum(w[2] - w[1] for w in works)  # one may be seen to end with the next
        self.assertGreater(took, 20 * KERNEL_MS * 1e6 * 0.99)
        self.assertEqual(trace.waits("gpu.px: GPU"), [], "it has no stream")

    def test_what_cannot_be_is_refused(self):
        app = self.write("app.yaml", WHOLE.replace("CRASH", "0").replace("ON_FAILURE", ""))
        for flags, code, sentence in (
                (("--trace", "t", "--in-process"), 2, "--trace and --in-process exclude each other"),
                (("--trace", "t", "--driver"), 2, "--trace and --driver exclude each other; start fragctl trace"),
                (("--on-failure",), 2, "--on-failure is about the file of --trace; give --trace FILE too"),
                (("--trace", self.path("no/such")), 3, "cannot write %s: " % self.path("no/such"))):
            p = self.start("fragctl", "run", app, *flags)
            self.assertEqual(p.wait(), code, p.stderr)
            self.assertIn(sentence, p.stderr)
            self.assertEqual(p.stdout, "")


class Judge:
    """What the tests above read with their own decoder, Perfetto itself reads too."""

    def read(self, line):
        ours = super().read(line)
        perfetto = trace_processor.TraceProcessor(self.path("t.pftrace"), self.path("."), self.env)
        try:
            self.judge(line, ours, perfetto.query)
        finally:
            perfetto.close()
        return ours

    def assert_same(self, theirs, ours):
        """Of rows in any order. assertEqual would compare long lists for hours."""
        theirs, ours = collections.Counter(theirs), collections.Counter(ours)
        self.assertEqual((sorted(theirs - ours)[:9], sorted(ours - theirs)[:9]), ([], []))

    def judge(self, line, ours, query):
        self.assertEqual(query("""select name, value from stats
            where value > 0 and severity in ('error', 'data_loss')"""), [])
        slices = query("""select slice.name, ts, dur, pid, tid, thread.name, process.name
            from slice join thread_track on track_id = thread_track.id
            join thread using (utid) join process using (upid)""")
        self.assert_same(slices, (
            (name, begin, end - begin, *ours.threads[track], ours.process_of(track))
            for name, track, begin, end, _, _ in ours.slices))
        ticks = query("""select count() from slice join thread_track t on track_id = t.id
            where slice.name not in ('sends', 'receives')""")[0][0]
        arrows = query("select count() from flow")[0][0]
        begin = "%s: %d ticks and %d messages of " % (self.path("t.pftrace"), ticks, arrows)
        self.assertTrue(line.startswith(begin), (line, begin))
        self.assertEqual(query("""select count() from flow join slice s on slice_out = s.id
            join slice r on slice_in = r.id where r.ts < s.ts"""), [(0,)])
        self.assertEqual(query("""select count() from slice s join slice p on s.parent_id = p.id
            where s.ts < p.ts or s.ts + s.dur > p.ts + p.dur"""), [(0,)], "slices nest")
        self.assertEqual(query("""select count() from (select ts + dur as ends,
            lead(ts) over (partition by track_id, depth order by ts, id) as next from slice)
            where next < ends"""), [(0,)])
        counters = query("""select t.name, ts, value from counter
            join process_counter_track t on track_id = t.id""")
        self.assert_same(counters, (
            (name, at, value) for name, values in ours.counters.values() for at, value in values))
        waits = query("""select t.name, slice.name, ts, ts + dur from slice
            join process_track t on track_id = t.id where dur > 0""")
        self.assert_same(waits, (
            (name, *wait) for name, found in ours.operators.values() for wait in found))
        instants = query("""select slice.name, ts from slice
            join process_track t on track_id = t.id where dur = 0""")
        self.assert_same(instants, ours.instants)


@unittest.skipUnless(os.environ.get("FRAG_PERFETTO"), JUDGED)
class Judged(Judge, Trace):
    pass


@unittest.skipUnless(os.environ.get("FRAG_PERFETTO"), JUDGED)
class JudgedRun(Judge, Run):
    pass


if __name__ == "__main__":
    unittest.main()
