# SPDX-License-Identifier: Apache-2.0
"""fragctl swap replaces a library of a fragment while its application runs, and nothing is lost.

Ground truth is what the operators wrote: a sender writes after emit has returned, a receiver before
it does anything else. The operator between them puts the version of its library into each number.
"""
import os
import re
import signal

import cluster
from test_service import ServiceTest

APP = """
frag: 1
application: chain
arguments:
  edge: {default: auto}
  policy: {default: stop}
  library: {default: libmark1.so}
fragments:
  source:
    host: source
    extensions: [libtruth.so]
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", pause: 1ms}}
  relay:
    host: relay
    on_failure: {policy: "${policy}"}
    extensions: ["${library}"]
    operators:
      mark: {type: mark}
  sink:
    host: sink
    extensions: [libtruth.so]
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: source.tx.out, to: relay.mark, edge: "${edge}", policy: block}
  - {from: relay.mark.out, to: sink.rx.in, edge: "${edge}", policy: block}
"""

LARGE = """
frag: 1
application: large
fragments:
  source:
    host: source
    extensions: [liblarge1.so]
    operators:
      tx: {type: large_tx, conditions: [{type: periodic, recess_period: 5ms}]}
  sink:
    host: sink
    extensions: [liblarge1.so]
    operators:
      rx: {type: large_rx, parameters: {release: "%(folder)s/release"}}
flows: [{from: source.tx.out, to: sink.rx.in, edge: shm, policy: block}]
"""
# Two fragments in one host, with a flow between them in its memory; the numbers get both versions.
TWO = APP.replace("  sink:\n", """  second:
    host: relay
    extensions: ["%(second)s"]
    operators:
      mark: {type: mark}
  sink:
""", 1).replace("{from: relay.mark.out,", '''{from: relay.mark.out, to: second.mark, policy: block}
  - {from: second.mark.out,''')


class Swap(ServiceTest):
    def run_chain(self, *args, serve=(), text=APP, workers=(("w", "all"),), first=1):
        d, *_ = self.serve(*serve)
        started = [self.worker("--name", name, "--fragments", fragments) for name, fragments in workers]
        self.w = started[0]
        self.wait_until("workers", lambda: len(self.live_workers()) == len(workers))
        self.ok("start", self.write("chain.yaml", text % {"folder": self.folder}), "--", *args)
        self.wait_version(first)
        return d

    def versions(self):
        return [n // 1000000 for n in self.numbers("received")]

    def wait_version(self, version, more=20):
        goal = self.versions().count(version) + more
        self.wait_until("%d messages of version %d" % (goal, version),
                        lambda: self.versions().count(version) >= goal)

    def swap(self, library, *args, fragment="relay"):
        return self.ok("swap", "chain", fragment, "--library", library, *args)

    def changes(self):
        """The versions in the order in which their messages came, each once for a row of them."""
        versions = self.versions()
        return [v for i, v in enumerate(versions) if i == 0 or versions[i - 1] != v]

    def check_nothing_lost(self):
        self.ok("stop", "chain")
        sent, received = self.numbers("sent"), [n % 1000000 for n in self.numbers("received")]
        self.assertEqual(received, sent, "in order, none missing, none twice")
        summary = self.json("status", "chain")
        for flow in summary["flows"]:
            self.assertEqual((flow["sent"], flow["delivered"], flow["lost"], flow["in_flight"]),
                             (len(sent), len(sent), 0, 0), flow)
            self.assertTrue(flow["exact"], flow)

    def events(self):
        return [e for e in map(cluster.json.loads, self.ok("events", "-o", "json").splitlines())
                if e["kind"] == "swap" or (e["kind"] == "refused" and "swap" in e["text"])]

    def there_and_back(self, *args):
        self.run_chain(*args)
        self.assertEqual(self.swap("libmark2.so", "--probation", "0s"), "chain: relay runs with libmark2.so")
        self.wait_version(2)
        now = self.json("swap", "chain", "relay", "--library", "libmark1.so")
        self.assertEqual((now["application"], now["fragment"], now["library"], now["probation_ns"]),
                         ("chain", "relay", "libmark1.so", 10 ** 10))
        self.wait_version(1)
        self.assertEqual(self.changes(), [1, 2, 1])
        self.assertIn("mark 2 goes on behind", self.w.stderr)
        self.check_nothing_lost()

    def test_over_shm(self):
        self.there_and_back("--edge", "shm")

    def test_over_ucx(self):
        self.there_and_back("--edge", "ucx")

    def test_events_name_who_asked(self):
        self.run_chain()
        self.swap("libmark2.so")
        asked, runs = self.events()
        self.assertEqual(asked["text"], "relay: libmark2.so is prepared in place of libmark1.so")
        self.assertIn("user", asked["who"])
        self.assertEqual(runs["text"], "relay: libmark2.so runs in place of libmark1.so")
        self.check_nothing_lost()

    def test_what_cannot_be_prepared_changes_nothing(self):
        self.run_chain("--edge", "shm")
        before = self.application("chain")["hosts"]
        for code, sentence, library in (
                (3, "worker w could not prepare it: .*libnothing.so.*; nothing has changed, relay goes on with "
                    "libmark1.so", "libnothing.so"),
                (2, "mark", "libtruth.so"),
                (1, "its operators, ports or types are others than before", "libmark5_second.so")):
            with self.subTest(library=library):
                failure = self.document(self.fails(code, "", "swap", "chain", "relay", "--library", library,
                                                   "-o", "json"))
                self.assertEqual(failure["exit_code"], code)
                self.assertRegex(failure["failure"]["sentence"], sentence)
        self.assertEqual(self.application("chain")["hosts"], before)
        self.wait_version(1)
        self.assertEqual(self.changes(), [1])
        self.swap("libmark2.so")
        self.wait_version(2)
        self.check_nothing_lost()

    def test_a_failure_within_probation_brings_the_old_library_back(self):
        """Although on_failure of the fragment is stop; what has died with the new one is counted as lost."""
        self.run_chain()
        self.ctl("swap", "chain", "relay", "--library", "libmark3_crash.so", "--probation", "60s")
        self.wait_until("it returns", lambda: "returns" in self.events()[-1]["text"])
        self.wait_version(1)
        self.assertIn(self.changes(), ([1, 3, 1], [1]), "what it sent last may be lost with it")
        self.assertEqual(self.application("chain")["state"], "running")
        back = self.events()[-1]["text"]
        self.assertRegex(back, "relay: libmark3_crash.so has failed, and libmark1.so returns: .*SIGSEGV")
        self.swap("libmark2.so")
        self.wait_version(2)
        self.ok("stop", "chain")
        numbers = [n % 1000000 for n in self.numbers("received")]
        self.assertEqual(numbers, sorted(set(numbers)), "in order, none twice")
        for flow in self.json("status", "chain")["flows"]:
            self.assertEqual((flow["in_flight"], flow["delivered"] + flow["lost"]), (0, flow["sent"]), flow)

    def test_a_failure_after_probation_is_one_of_the_application(self):
        self.run_chain()
        self.ctl("swap", "chain", "relay", "--library", "libmark3_crash.so", "--probation", "0s")
        self.wait_until("the end", lambda: self.application("chain") is None)
        self.assertIn("SIGSEGV", self.failed("chain")["failure"]["sentence"])

    def test_a_host_that_has_to_leave_its_worker_goes_with_the_old_library(self):
        """The worker stops before it has heard of the swap, so the new library is never prepared."""
        d = self.run_chain(text=APP.replace('policy: "${policy}"', "policy: migrate, lease: 0s"),
                           workers=(("near", "relay"), ("ends", "source,sink")))
        self.worker("--name", "far", "--fragments", "relay")
        self.wait_until("far", lambda: len(self.live_workers()) == 3)
        self.w.signal(signal.SIGSTOP)
        swap = self.start("fragctl", "swap", "chain", "relay", "--library", "libmark2.so", "--address", self.address)
        d.wait_line("relay goes on in another process")
        self.w.kill()
        self.assertNotEqual(swap.wait(), 0)
        self.assertIn("relay goes on with libmark1.so", swap.stderr)
        self.wait_version(1)
        self.assertEqual(self.changes(), [1])
        relay = [h for h in self.application("chain")["hosts"] if h["fragments"] == "relay"][0]
        self.assertEqual(relay["worker"], "far")
        self.swap("libmark2.so", "--probation", "0s")
        self.wait_version(2)
        self.ok("stop", "chain")
        self.assert_balanced(self.json("status", "chain"))

    def areas(self, pid):
        """The memory of other hosts that a process maps."""
        with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
            return {(line.split()[3], line.split()[4]) for line in f if "memfd:" in line and line.split()[1][1] == "-"}

    def large(self):
        return [int(n) for n in re.findall(r"large (\d+)", self.w.stdout + self.w.stderr)]

    def test_a_receiver_keeps_large_tensors_of_the_old_process(self):
        """It reads all of them again at each message, also when the process that made them is gone."""
        self.serve()
        self.w = self.worker("--name", "w", "--fragments", "all")
        self.wait_until("workers", lambda: len(self.live_workers()) == 1)
        self.ok("start", self.write("large.yaml", LARGE % {"folder": self.folder}))
        self.wait_until("messages", lambda: len(self.large()) >= 10)
        host = {h["fragments"]: h["pid"] for h in self.application("large")["hosts"]}
        old = self.areas(host["sink"])
        self.ok("swap", "large", "source", "--library", "liblarge2.so", "--probation", "0s")
        self.assertFalse(os.path.exists("/proc/%d" % host["source"]))
        self.wait_until("the new one's", lambda: self.large()[-1] > 2000000)
        self.assertNotIn("lets go", self.w.stdout + self.w.stderr)
        self.assertTrue(self.areas(host["sink"]) & old, "what is held stays mapped")
        self.write("release", "")
        self.w.wait_line("large lets go")
        self.wait_until("old memory is given back", lambda: not self.areas(host["sink"]) & old)
        self.ok("stop", "large")
        summary = self.json("status", "large")
        self.assertEqual(summary["result"], "stopped", summary)
        numbers = [n % 1000000 for n in self.large()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), "in order, none missing, none twice")
        flow, = summary["flows"]
        self.assertEqual((flow["sent"], flow["delivered"], flow["lost"]), (len(numbers), len(numbers), 0), flow)

    def test_both_fragments_of_a_host_that_use_the_library(self):
        """Each message is marked twice by the same version: none is between two versions."""
        self.run_chain("--edge", "shm", text=TWO.replace("%(second)s", "${library}"), first=2)
        self.swap("libmark2.so", "--probation", "0s")
        self.wait_version(4)
        self.assertEqual(self.changes(), [2, 4])
        self.swap("libmark1.so", "--probation", "0s", fragment="second")
        self.wait_version(2)
        self.assertEqual(self.changes(), [2, 4, 2])
        self.check_nothing_lost()

    def test_one_of_two_fragments_of_a_host(self):
        """The other one has a library of its own, which it keeps; it goes on in the new process too."""
        self.run_chain("--edge", "shm", text=TWO.replace("%(second)s", "libmark4_wide.so"), first=5)
        self.swap("libmark2.so", "--probation", "0s")
        self.wait_version(6)
        self.assertEqual(self.changes(), [5, 6])
        self.assertIn("mark 4 goes on behind", self.w.stderr)
        self.check_nothing_lost()

    def test_what_is_saved_in_another_layout_is_not_restored(self):
        self.run_chain()
        self.swap("libmark4_wide.so")
        self.wait_version(4)
        self.assertNotIn("mark 4 goes on behind", self.w.stderr)
        self.check_nothing_lost()

    def test_the_next_driver_and_the_next_run_have_the_new_library(self):
        state = self.path("state")
        d = self.run_chain("--policy", "restart", serve=("--state-dir", state))
        self.swap("libmark2.so", "--probation", "0s")
        self.wait_version(2)
        port = int(self.address.rpartition(":")[2])
        d.kill()
        d.wait()
        self.serve("--state-dir", state, port=port)
        self.wait_until("adopted", lambda: (self.application("chain") or {}).get("adopted"))
        self.wait_version(2)
        self.ok("restart", "chain")
        self.wait_version(2)
        self.assertEqual(self.changes(), [1, 2])
        self.ok("stop", "chain")

    def test_a_driver_that_dies_in_a_swap(self):
        """In each of its phases: the next one ends it, with one of the two libraries, and nothing is lost."""
        state = self.path("state")
        self.env["FRAG_LOG_LEVEL"] = "debug"
        d = self.run_chain(serve=("--state-dir", state))
        port = int(self.address.rpartition(":")[2])
        versions = {1, 2}
        ends = []
        for moment in ("relay goes on in another process", ": running -> done", "done -> stopping", "prepared -> wiring",
                       "relay runs again on worker"):
            current = self.versions()[-1]
            swap = self.start("fragctl", "swap", "chain", "relay", "--library", "libmark%d.so" % (3 - current))
            d.wait_line(moment)
            d.kill()
            d.wait()
            d, *_ = self.serve("--state-dir", state, port=port)
            swap.kill()
            swap.wait()
            self.wait_until("adopted", lambda: (self.application("chain") or {}).get("state") == "running")
            count = len(self.versions())
            self.wait_until("messages flow", lambda: len(self.versions()) >= count + 50)
            self.assertLessEqual(set(self.versions()), versions)
            events = list(map(cluster.json.loads, self.ok("events", "-o", "json").splitlines()))
            adopted = max(i for i, e in enumerate(events) if e["kind"] == "adopted")
            ends.append([(e["kind"], e["text"]) for e in events[adopted + 1:] if e["kind"] in ("move", "swap")])
        ended = [("swap", "relay runs in another process on w now")]
        for events in ends:  # the old process goes on where nothing was prepared yet
            self.assertIn(events, (ended, []))
        self.assertIn(ended, ends)
        self.ok("stop", "chain")
        for flow in self.json("status", "chain")["flows"]:
            self.assertEqual((flow["in_flight"], flow["delivered"] + flow["lost"]), (0, flow["sent"]), flow)

    def test_a_stop_before_the_new_library_runs(self):
        """The swap ends as the stop does."""
        self.run_chain()
        asked = self.start("fragctl", "swap", "chain", "relay", "--library", "libmark6_hangs.so")
        self.w.wait_line("mark 6 hangs")
        self.check_nothing_lost()
        self.assertEqual(asked.wait(), 0, asked.stderr)
        self.assertEqual(asked.stdout, "chain: stopped before relay ran with libmark6_hangs.so")

    def test_bad_input(self):
        self.run_chain()
        for sentence, args in (
                ("give the name of one application, one of its fragments and --library", ("chain", "--library", "x.so")),
                ("give the name of one application, one of its fragments and --library", ("chain", "relay")),
                ("is no name of an application", ("a.b", "relay", "--library", "x.so")),
                ("is no name of a fragment", ("chain", "a.b", "--library", "x.so")),
                ("a library has a name of 1 to 255 bytes", ("chain", "relay", "--library", "")),
                ("a library has a name of 1 to 255 bytes", ("chain", "relay", "--library", "x" * 256)),
                ("is not a time from 0s to 1h", ("chain", "relay", "--library", "x.so", "--probation", "2h")),
                ("is not a time from 0s to 1h", ("chain", "relay", "--library", "x.so", "--probation", "5")),
                ('unknown fragment "rely"; did you mean "relay"?', ("chain", "rely", "--library", "x.so")),
                ("relay uses libmark1.so already", ("chain", "relay", "--library", "libmark1.so")),
                ('relay uses no library "libx.so"; it uses libmark1.so',
                 ("chain", "relay", "--library", "libmark2.so", "--replaces", "libx.so"))):
            with self.subTest(args=args):
                self.fails(2, sentence, "swap", *args)
        self.fails(3, "there is no application chian", "swap", "chian", "relay", "--library", "x.so")
        self.swap("libmark2.so", "--replaces", "libmark1.so")
        self.fails(5, "relay has libmark2.so on probation; try again when that is over",
                   "swap", "chain", "source", "--library", "x.so")
        self.check_nothing_lost()
        self.fails(3, "chain has ended already", "swap", "chain", "relay", "--library", "x.so")


del ServiceTest
