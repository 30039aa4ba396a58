# SPDX-License-Identifier: Apache-2.0
"""fragctl drain moves fragments to other workers while they run, and nothing is lost.

Ground truth is what the operators wrote: a sender writes after emit has returned, a receiver before
it does anything else.
"""
import json
import os
import signal

from test_service import ServiceTest

APP = """
frag: 1
application: chain
arguments:
  edge: {default: auto}
  policy: {default: block}
  encrypt: {default: false}
  tx: {default: truth_tx}
extensions: [libtruth.so]
fragments:
  source:
    host: source
    operators:
      tx: {type: "${tx}", parameters: {file: "%(folder)s/sent", pause: 1ms}}
  relay:
    host: relay
    operators:
      a: {type: forward}
      b: {type: forward}
    flows: [a -> b]
  sink:
    host: sink
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: source.tx.out, to: relay.a, edge: "${edge}", policy: "${policy}", encrypt: "${encrypt}"}
  - {from: relay.b, to: sink.rx.in, edge: "${edge}", policy: "${policy}", encrypt: "${encrypt}"}
"""


class Move(ServiceTest):
    def run_chain(self, *args, serve=()):
        d, *_ = self.serve(*serve)
        self.w = {name: self.worker("--name", name, "--fragments", fragments)
                  for name, fragments in (("ends", "source,sink"), ("a", "relay"))}
        self.wait_until("workers", lambda: len(self.live_workers()) == 2)
        app = self.write("chain.yaml", APP % {"folder": self.folder})
        self.ok("start", app, "--", *args)
        self.wait_received(20)
        return d

    def placed(self):
        hosts = self.application("chain")["hosts"]
        return {h["fragments"]: h["worker"] for h in hosts}

    def add(self, name, fragments="all"):
        self.w[name] = self.worker("--name", name, "--fragments", fragments)
        self.wait_until(name, lambda: name in {w["name"] for w in self.live_workers()})

    def check(self):
        """Every number that was sent came, once and in order, or was queued when the stop came."""
        sent, received = self.numbers("sent"), self.numbers("received")
        self.assertEqual(received, list(range(1, len(received) + 1)), "in order, none missing, none twice")
        self.assertLessEqual(len(received), len(sent) + 1)
        return sent, received

    def move_relay(self, *args):
        self.run_chain(*args)
        for frm, to in (("a", "b"), ("b", "c")):
            self.add(to)
            self.assertEqual(self.ok("drain", frm), "%s: drained, and empty" % frm)
            self.assertEqual(self.placed()["relay"], to)
            self.wait_received(20)
            self.w[frm].signal(signal.SIGTERM)
            self.assertEqual(self.w[frm].wait(), 0, self.w[frm].stderr)
            self.wait_received(20)
        self.ok("stop", "chain")
        sent, received = self.check()
        self.assertEqual(len(received), len(sent), "a stop loses nothing either")

    def test_a_relay_over_shm(self):
        self.move_relay("--edge", "shm")

    def test_a_relay_over_ucx(self):
        self.move_relay("--edge", "ucx")

    def test_encrypted(self):
        self.move_relay("--edge", "ucx", "--encrypt", "true")

    def test_both_ends(self):
        """The source goes on with the number that it saved last, the sink with the next message."""
        self.run_chain("--tx", "truth_saving_tx")
        self.add("b", "sink,source")
        code, drain = self.ctl("drain", "ends")
        self.assertEqual((code, drain.stdout), (0, "ends: drained, and empty"), drain.stderr)
        self.assertIn("waits for source of chain to leave ends", drain.stderr)
        self.assertIn("waits for sink of chain to leave ends", drain.stderr)
        self.assertEqual(self.placed(), {"source": "b", "relay": "a", "sink": "b"})
        self.wait_received(20)
        self.ok("stop", "chain")
        sent, received = self.check()
        self.assertEqual(received, sent, "the source left no number out, and sent none twice")

    def test_what_nobody_can_take_stays(self):
        self.run_chain()
        drain = self.start("fragctl", "drain", "a")
        drain.wait_line("relay of chain stays there: no worker fits relay; .*; it moves when another worker takes it, `fragctl stop chain`")
        self.wait_received(20)
        self.assertIsNone(drain.child.poll(), "it runs there")
        now = self.json("drain", "a", "--no-wait")
        self.assertEqual(now["still_there"], ["chain"])
        self.assertEqual([(s["application"], s["fragments"]) for s in now["stays"]], [("chain", "relay")])
        self.add("b")
        self.assertEqual(drain.wait(), 0, drain.stderr)
        self.assertEqual(drain.stdout, "a: drained, and empty")
        self.assertEqual(self.placed()["relay"], "b")
        self.wait_received(20)
        self.ok("stop", "chain")
        self.check()

    def test_what_stays_is_named_when_the_rest_has_left(self):
        self.run_chain()
        self.add("b", "sink")
        self.w["b"].signal(signal.SIGSTOP)
        drain = self.start("fragctl", "drain", "ends")
        drain.wait_line("waits for sink of chain to leave ends")
        self.assertEqual(self.placed()["sink"], "ends")
        self.assertNotIn("stays there", drain.stderr)
        self.w["b"].signal(signal.SIGCONT)
        drain.wait_line("source of chain stays there: no worker fits source; ")
        self.assertEqual(self.placed(), {"source": "ends", "relay": "a", "sink": "b"})
        self.add("c", "source")
        self.assertEqual(drain.wait(), 0, drain.stderr)
        self.assertEqual(drain.stderr.count("stays there"), 1, drain.stderr)
        self.ok("stop", "chain")

    def test_a_library_that_is_missing_there_changes_nothing(self):
        self.run_chain()
        empty = self.path("empty")
        os.mkdir(empty)
        self.w["b"] = self.worker("--name", "b", "--fragments", "source,sink", env={"FRAG_LIBRARY_PATH": empty})
        self.wait_until("b", lambda: "b" in {w["name"] for w in self.live_workers()})
        before = self.application("chain")["hosts"]
        drain = self.start("fragctl", "drain", "ends")
        drain.wait_line("source of chain stays there: worker b could not prepare it: .*libtruth.so")
        self.wait_received(20)
        self.assertEqual(self.application("chain")["hosts"], before)
        self.ok("stop", "chain")
        self.assertEqual(drain.wait(), 0, drain.stderr)
        self.check()

    def test_a_worker_is_upgraded(self):
        """Drained, ended, started anew and taken into use again, while messages flow."""
        self.run_chain()
        self.add("b", "relay")
        self.assertEqual(self.ok("drain", "a"), "a: drained, and empty")
        self.w["a"].signal(signal.SIGTERM)
        self.assertEqual(self.w["a"].wait(), 0, self.w["a"].stderr)
        self.add("a", "relay")
        self.assertEqual(self.ok("drain", "a", "--undo"), "a: takes fragments again; what the drain moved stays where it is, --rebalance moves it back")
        self.assertEqual(self.ok("drain", "b"), "b: drained, and empty")
        self.assertEqual(self.placed()["relay"], "a")
        self.wait_received(20)
        self.ok("stop", "chain")
        self.check()

    def die_and_return(self, d, state):
        d.kill()
        d.wait()
        port = int(self.address.rpartition(":")[2])
        return self.serve("--state-dir", state, port=port)[0]

    def test_a_driver_that_dies_in_a_move(self):
        """In each of its phases: the next one ends the move, or has its host where it was."""
        state = self.path("state")
        self.env["FRAG_LOG_LEVEL"] = "debug"
        d = self.run_chain(serve=("--state-dir", state))
        self.add("b", "relay")
        frm, to = "a", "b"
        for moment in ("relay is moved from", ": running -> done", "done -> stopping", "prepared -> wiring", "relay runs again on worker"):
            drain = self.start("fragctl", "drain", frm)
            d.wait_line(moment)
            d = self.die_and_return(d, state)
            drain.kill()
            drain.wait()
            self.wait_until("adopted", lambda: (self.application("chain") or {}).get("state") == "running")
            self.assertEqual(self.ok("drain", frm), "%s: drained, and empty" % frm)
            self.assertEqual(self.placed()["relay"], to)
            self.wait_received(20)
            self.ok("drain", frm, "--undo")
            frm, to = to, frm
        self.ok("stop", "chain")
        self.check()
        summary = self.json("status", "chain")
        for flow in summary["flows"]:
            self.assertEqual((flow["in_flight"], flow["delivered"] + flow["lost"]), (0, flow["sent"]), flow)
            self.assertTrue(flow["exact"], flow)

    def test_what_was_moved_is_adopted(self):
        """With what it had counted where it ran before, also when that worker is gone."""
        state = self.path("state")
        d = self.run_chain(serve=("--state-dir", state))
        self.add("b", "relay")
        self.assertEqual(self.ok("drain", "a"), "a: drained, and empty")
        self.w["a"].signal(signal.SIGTERM)
        self.assertEqual(self.w["a"].wait(), 0, self.w["a"].stderr)
        self.wait_received(20)
        self.die_and_return(d, state)
        self.wait_until("adopted", lambda: (self.application("chain") or {}).get("adopted"))
        self.wait_received(20)
        self.ok("stop", "chain")
        sent, received = self.check()
        self.assertEqual(len(received), len(sent))
        summary = self.json("status", "chain")
        self.assertEqual([f["sent"] for f in summary["flows"]], [len(sent)] * 3)
        for flow in summary["flows"]:
            self.assertEqual((flow["lost"], flow["in_flight"], flow["delivered"]), (0, 0, flow["sent"]))
            self.assertTrue(flow["exact"])

    def test_a_drain_survives_the_driver(self):
        """Of a driver that keeps state: it comes back, and knows of the drain, or of its end."""
        port, state = self.free_port(), self.path("state")
        d, *_ = self.serve("--state-dir", state, port=port, workers=("a",))
        self.assertEqual(self.ok("drain", "a"), "a: drained, and empty")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        d, *_ = self.serve("--state-dir", state, port=port)
        self.wait_until("a", lambda: [w["name"] for w in self.live_workers()] == ["a"])
        self.assertIn("drained: it is given no more fragments", self.ok("workers"))
        self.assertEqual(self.ok("drain", "a", "--undo"), "a: takes fragments again; what the drain moved stays where it is, --rebalance moves it back")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.serve("--state-dir", state, port=port)
        self.wait_until("a", lambda: [w["name"] for w in self.live_workers()] == ["a"])
        self.assertNotIn("drained", self.ok("workers"))


del ServiceTest
