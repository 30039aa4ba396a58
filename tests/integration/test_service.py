# SPDX-License-Identifier: Apache-2.0
"""driverd as a service, to which fragctl brings applications."""
import contextlib
import json
import os
import pwd
import re
import shutil
import signal
import socket

import cluster
import control
from test_driver import matches

ENDLESS = """
frag: 1
application: stream
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 200hz}]}
  fragment2:
    operators:
      rx: {type: ping_rx}
flows: [fragment1.tx -> fragment2.rx]
"""
SHORT = """
frag: 1
application: short
arguments: {count: {default: "20"}}
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: "${count}"}]}
      rx: {type: ping_rx}
    flows: [tx -> rx]
"""


def schema(name):
    with open(os.path.join(cluster.TOP, "docs", name + ".schema.json")) as f:
        return json.load(f)


SERVICE, SUMMARY = schema("service"), schema("summary")


class ServiceTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.endless = self.write("endless.yaml", ENDLESS)
        self.short = self.write("short.yaml", SHORT)

    def serve(self, *args, port=0, workers=(), prefix=()):
        """A driver without --app, and workers by these names."""
        d = self.start("driverd", "--address", "127.0.0.1:%d" % port, *args, prefix=prefix)
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        self.env["FRAG_ADDRESS"] = self.address
        d.wait_line("waits for applications")
        started = [self.worker("--name", name) for name in workers]
        self.wait_until("workers", lambda: {w["name"] for w in self.live_workers()} >= set(workers))
        return (d, *started)

    def numbers(self, name):
        """What an operator wrote into that file so far."""
        path = self.path(name)
        return cluster.sequence(path) if os.path.exists(path) else []

    def wait_received(self, more):
        goal = len(self.numbers("received")) + more
        self.wait_until("%d messages received" % goal, lambda: len(self.numbers("received")) >= goal)

    def ctl(self, *args):
        p = self.start("fragctl", *args)
        return p.wait(), p

    def ok(self, *args):
        code, p = self.ctl(*args)
        self.assertEqual(code, 0, p.stdout + p.stderr)
        return p.stdout

    def fails(self, code, sentence, *args):
        got, p = self.ctl(*args)
        self.assertEqual(got, code, p.stdout + p.stderr)
        self.assertIn(sentence, p.stderr)
        return p.stdout

    def json(self, *args):
        code, p = self.ctl(*args, "-o", "json")
        codes = (0, 1) if args[0] == "status" else (0,)  # 1: it has failed
        self.assertIn(code, codes, p.stdout + p.stderr)
        return self.document(p.stdout)

    def live_workers(self):
        return [w for w in self.json("workers")["workers"] if w["state"] in ("live", "suspect")]

    def failed(self, name):
        """The summary of an application that has failed, for which status exits with 1."""
        code, p = self.ctl("status", name, "-o", "json")
        self.assertEqual(code, 1, p.stdout + p.stderr)
        return self.document(p.stdout)

    def document(self, text):
        """A document that is as one of the two schemas says."""
        value = json.loads(text)
        wrong = [matches(value, s, s) for s in (SERVICE, SUMMARY)]
        self.assertIn(None, wrong, text)
        return value

    def application(self, name):
        found = [a for a in self.json("list")["applications"] if a["name"] == name]
        return found[0] if found else None

    def wait_delivered(self, name, more=20):
        before = self.application(name)["delivered"]
        self.wait_until("messages of " + name, lambda: self.application(name)["delivered"] >= before + more)


class Service(ServiceTest):
    def test_a_day(self):
        d, a, b = self.serve(workers=("a", "b"))
        self.assertEqual(self.ok("list"), "no application; `fragctl start APP.yaml` starts one")
        self.assertEqual(self.ok("start", self.endless), "stream: runs")
        self.wait_delivered("stream")
        self.fails(2, "stream runs already (running); end it with `fragctl stop stream`, start it anew with "
                      "`fragctl restart stream`, or give this one another name with --name", "start", self.endless)
        self.assertIn("root cause: it was not measured", self.ok("status", "--no-wait"))
        self.assertRegex(self.ok("status", "stream"), r"(?s)stream: running for .*\nroot cause: (?!it was not measured)")
        self.assertRegex(self.ok("list", "--cause"), r"\nstream +running .*\n    root cause: ")
        self.assertNotIn("root cause", self.ok("list"))
        for args, is_measured in ((("status",), True), (("status", "--no-wait"), False),
                                  (("list", "--cause"), True), (("list",), False)):
            app, = self.json(*args)["applications"]
            self.assertEqual(app["cause"] is not None, is_measured)
        self.assertEqual(self.ok("restart", "stream"), "stream: runs")
        self.assertRegex(self.ok("stop", "stream"), r"^stream: stopped after \d+\.\d s; `fragctl status stream` shows its summary$")
        self.assertIn("fragment1.tx.out -> fragment2.rx.in", self.ok("status", "stream"))
        summary = self.json("status", "stream")
        self.assertEqual((summary["application"], summary["result"], summary["exit_code"]), ("stream", "stopped", 0))
        self.assert_balanced(summary)
        self.fails(3, "stream has ended already", "stop", "stream")
        self.fails(3, "there is no application nobody", "stop", "nobody")
        self.fails(3, "there is no application nobody", "status", "nobody")
        self.assertEqual(self.ok("restart", "stream"), "stream: runs")
        d.signal(signal.SIGINT)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.wait_until("the end of its hosts", lambda: not self.hosts())
        for w in (a, b):
            self.assertIsNone(w.child.poll(), w.stderr)

    def test_columns_are_as_wide_as_names(self):
        """Each cell begins below its title, or ends where its title ends."""
        long = "a_name_that_is_longer_than_any_column"
        worker = "a-worker-with-a-name-of-its-own-that-is-long"
        self.serve(workers=(worker,))
        self.ok("start", self.endless, "--name", long)
        self.ok("start", self.endless, "--name", "short")

        def columns(text, *titles):
            head, *rows = text.splitlines()
            self.assertEqual(len(rows), 2 if "RUN" in titles else 1, text)
            for title in titles:
                at = re.search(r"\b%s\b" % title, head)
                for row in rows:
                    cells = [(c.start(), c.end()) for c in re.finditer(r"\S+(?: \S+)*", row)]
                    self.assertTrue(any(at.start() == b or at.end() == e for b, e in cells), text)

        columns(self.ok("list"), "NAME", "STATE", "RUN", "SINCE", "HOSTS", "MESSAGES", "STARTED BY")
        columns(self.ok("workers"), "NAME", "STATE", "CORES", "FRAGMENTS", "ADDRESS")
        self.assertIn(long, self.ok("list"))
        hosts = self.ok("status", long, "--no-wait").split("\n", 2)[2]
        columns(hosts, "HOST", "FRAGMENTS", "WORKER", "STATE", "PID")

    def test_start_waits_for_the_end_and_exits_as_the_application(self):
        self.serve(workers=("a",))
        out = self.path("summary.json")
        code, p = self.ctl("start", self.short, "--wait", "-o", "json", "--summary", out, "--", "--count", "7")
        self.assertEqual(code, 0, p.stderr)
        summary = json.loads(p.stdout)
        self.assertEqual((summary["result"], self.flow(summary, "fragment1.tx.out")["delivered"]), ("done", 7))
        with open(out) as f:
            self.assertEqual(json.load(f), summary)
        bad = self.write("bad.yaml", SHORT.replace("ping_rx}", "ping_rx, parameters: {nothing: 1}}"))
        self.fails(2, "unknown parameter", "start", bad)
        self.fails(2, "unknown parameter", "start", bad, "--wait")
        lacking = self.write("lacking.yaml", SHORT.replace("arguments", "extensions: [libnothing.so]\narguments"))
        self.fails(3, "libnothing.so", "start", lacking, "--name", "lacking")
        failure = self.document(self.fails(3, "libnothing.so", "start", lacking, "--name", "lacking", "-o", "json"))
        self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("library_missing", 3))

    def test_every_failure_is_a_document(self):
        """Also where the driver is not there, or was not asked."""
        self.serve()
        verbs = (("start", self.short), ("stop", "x"), ("stop", "--all"), ("restart", "x"), ("apply", "x", self.short),
                 ("list",), ("status",), ("status", "x"), ("events",), ("logs", "x"), ("set", "x", "a.b.c=1"),
                 ("workers",), ("drain", "x"), ("explain", "x"), ("swap", "x", "f", "--library", "x.so"))
        for verb in verbs:
            with self.subTest(verb=verb, driver="none"):
                failure = self.document(self.fails(3, "there is no driver at 127.0.0.1:1", *verb, "-o", "json",
                                                   "--address", "127.0.0.1:1"))
                self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("driver_lost", 3))
                self.assertIn("there is no driver at 127.0.0.1:1", failure["failure"]["sentence"])
        flawed = self.write("flawed.yaml", SHORT.replace("flows:", "flowz:"))
        cut = self.write("cut.yaml", "frag: [1")
        for code, name, sentence, verb in (
                (3, "file_missing", "cannot read graph nothing.yaml", ("start", "nothing.yaml")),
                (2, "graph_invalid", "flowz", ("start", flawed)),
                (2, "graph_invalid", "cut.yaml", ("start", cut)),
                (2, "usage", "--start-timeout", ("start", self.short, "--start-timeout", "3")),
                (2, "usage", "name one application", ("stop",)), (2, "usage", "name one application", ("explain",)),
                (3, "application_unknown", "there is no application x", ("status", "x")),
                (3, "application_unknown", "there is no application x", ("stop", "x"))):
            with self.subTest(verb=verb):
                failure = self.document(self.fails(code, sentence, *verb, "-o", "json"))
                self.assertEqual((failure["failure"]["code"], failure["exit_code"]), (name, code))
                self.assertIn(sentence, failure["failure"]["sentence"])

    def test_a_wrong_flag_is_a_document(self):
        for words in (("-o", "json"), ("--output", "json"), ("--output=json",), ("-ojson",)):
            failure = self.document(self.fails(2, "unknown flag --nope", "list", "--nope", *words))
            self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("usage", 2))
        self.assertEqual(self.fails(2, "unknown flag --nope", "list", "--nope", "-o", "table"), "")

    def test_a_verb_gives_up_after_its_timeout(self):
        self.serve()
        failure = self.document(self.fails(4, "gave up after 200ms (--timeout)", "start", self.short, "--timeout",
                                           "200ms", "-o", "json"))
        self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("wait_timeout", 4))
        self.assertEqual(self.application("short")["state"], "waiting")
        self.fails(2, '--timeout "3" is not a valid time', "stop", "short", "--timeout", "3")
        self.ok("stop", "short", "--timeout", "20s")

    def test_a_driver_that_is_stopped_does_not_answer(self):
        d, _ = self.serve(workers=("a",))
        d.signal(signal.SIGSTOP)
        sentence = "gave up after 200ms (--timeout): the driver at"
        try:
            self.fails(4, sentence, "status", "--timeout", "200ms")
            self.assertEqual(self.fails(4, "does not answer: its process is stopped", "list", "--timeout", "200ms"), "")
        finally:
            d.signal(signal.SIGCONT)
        self.ok("list", "--timeout", "20s")

    def test_also_a_verb_that_follows_gives_up_after_its_timeout(self):
        self.serve()
        self.fails(4, "gave up after 200ms (--timeout)", "events", "--follow", "--timeout", "200ms")
        self.ok("events", "--timeout", "20s")

    def start_at_rest(self, name):
        """Starts an application that waits for a worker, and does not wait with it."""
        def is_there():
            self.ctl("start", self.short, "--name", name, "--timeout", "50ms")
            return self.application(name)
        self.wait_until(name, is_there)

    def test_what_cannot_be_written_is_a_failure(self):
        """Of verbs that print once, and of those that look at their output as they go on."""
        self.serve(workers=("a",))
        self.ok("start", self.write("endless.yaml", ENDLESS), "--name", "endless")
        full = ("/bin/sh", "-c", 'exec "$0" "$@" >/dev/full')
        for verb, *args in (("list",), ("status", "endless"), ("workers",), ("explain", "endless", "--no-wait"), ("health",),
                            ("events",), ("events", "--follow"), ("logs", "endless", "--follow"), ("top", "--once"),
                            ("echo", "endless", "fragment1.tx")):
            p = self.start("fragctl", verb, "--address", self.address, *args, prefix=full)
            self.assertEqual((p.wait(), p.stderr), (3, "fragctl: cannot write to stdout: No space left on device; free space"),
                             (verb, *args))

    def test_stop_all_of_many(self):
        """More than a driver takes requests for between two beats."""
        self.serve()
        for i in range(70):
            self.start_at_rest("a%d" % i)
        self.assertEqual(len(self.ok("stop", "--all").splitlines()), 70)
        self.assertEqual(self.json("list")["applications"], [])

    def test_a_verb_waits_for_a_place_at_the_driver(self):
        """Until one of the clients that hold all of them has gone: those are silent, and dropped after 3 s."""
        self.serve(workers=("a",))
        host, port = self.address.split(":")
        with contextlib.ExitStack() as held:
            for _ in range(72):  # 8 of them are for administrators
                s = held.enter_context(socket.create_connection((host, int(port))))
                s.sendall(control.hello(1, role=control.CLIENT))
                control.read_frame(s)
            self.fails(4, "gave up after 200ms (--timeout): the driver at", "start", self.short, "--timeout", "200ms")
            self.ok("start", self.short)
        self.ok("list")

    def test_a_follower_that_was_paused_goes_on(self):
        d, = self.serve()
        follower = self.start("fragctl", "events", "--follow")
        self.ctl("start", self.short, "--timeout", "300ms")
        follower.wait_line(" start +short", "stdout")
        follower.signal(signal.SIGSTOP)
        d.wait_line("client fragctl(#2)? left: it has not been heard")
        follower.signal(signal.SIGCONT)
        follower.wait_line("lost the driver at .*; connects again")
        self.ok("stop", "short")
        follower.wait_line(" stopped +short", "stdout")
        follower.signal(signal.SIGINT)
        follower.wait()

    def test_since_and_a_fragment_that_there_is_not(self):
        self.serve(workers=("a",))
        self.ok("start", self.endless)
        self.assertIn("worker_joined", self.ok("events", "--since", "1h"))
        self.assertEqual(self.ok("events", "--since", "0s"), "")
        for flag in ("--since", "--until"):
            self.fails(2, flag + ' "5" is not a time', "logs", "stream", flag, "5")
        self.fails(2, '--level "loud" is no level; valid: trace, debug,', "events", "--level", "loud")
        self.assertEqual(self.ok("events", "--until", "1h"), "")
        started, = (line for line in self.ok("events").splitlines() if " start " in line)
        at = started.split()[0]
        self.assertEqual(self.ok("events", "--since", at).splitlines()[0], started)
        self.assertNotIn(" start ", self.ok("events", "--until", at))
        self.assertIn("worker_joined", self.ok("events", "--until", at))
        self.assertEqual(self.ok("events", "--level", "warn"), "")
        self.assertEqual({json.loads(line)["level"] for line in self.ok("events", "-o", "json").splitlines()}, {"info"})
        self.fails(2, "stream has no fragment fragment3", "logs", "stream/fragment3")
        self.ok("logs", "stream/fragment1")
        self.ok("stop", "stream")

    def test_status_of_what_has_failed(self):
        self.serve(workers=("a",))
        lacking = self.write("lacking.yaml", SHORT.replace("arguments", "extensions: [libnothing.so]\narguments"))
        self.fails(3, "libnothing.so", "start", lacking, "--name", "lacking")
        code, p = self.ctl("status", "lacking")
        self.assertEqual(code, 1, p.stdout + p.stderr)
        self.ok("start", self.short, "--wait")
        self.ok("status", "short")

    def test_a_start_timeout(self):
        self.serve()
        self.fails(4, "not started within 0.1 s", "start", self.short, "--start-timeout", "100ms")

    def test_a_name_is_what_logs_summaries_and_workers_see(self):
        self.serve(workers=("a",))
        self.assertEqual(self.ok("start", self.short, "--name", "mine"), "mine: runs")
        self.wait_until("its end", lambda: self.json("list")["ended"])
        self.assertEqual(self.json("status", "mine")["application"], "mine")
        self.fails(2, "is not a valid name", "start", self.short, "--name", "no.dots")

    def test_events_name_who_asked(self):
        self.serve(workers=("a",))
        follower = self.start("fragctl", "events", "--follow", "-o", "json")
        follower.wait_line("worker_joined", "stdout")
        self.ok("start", self.endless)
        self.ok("stop", "stream")
        follower.wait_line('"stopped"', "stdout")
        rows = [self.document(line) for line in self.ok("events", "-o", "json").splitlines()]
        seen = [(r["kind"], r["application"]) for r in rows]
        for kind in ("start", "running", "stop", "stopped"):
            self.assertIn((kind, "stream"), seen)
        who = "user " + pwd.getpwuid(os.geteuid()).pw_name
        self.assertEqual({r["who"] for r in rows if r["kind"] in ("start", "stop")}, {who})
        follower.signal(signal.SIGINT)
        follower.wait()

    def test_no_driver(self):
        self.fails(3, "start it (as a service: systemctl start frag-driver)", "list", "--address",
                   "127.0.0.1:%d" % self.free_port())
        self.fails(3, "there is no driver at 127.0.0.1:", "list", "--address", "127.0.0.1:%d" % self.free_port())

    def test_a_driver_with_an_application_takes_no_other(self):
        d = self.driver(self.endless)
        self.env["FRAG_ADDRESS"] = self.address
        self.fails(5, "start driverd without --app", "start", self.short)
        self.worker()
        self.wait_until("it runs", lambda: self.application("stream")["state"] == "running")
        self.ok("stop", "stream")
        self.assertEqual(d.wait(), 0)

    def test_over_tcp(self):
        self.serve(workers=("a",))
        self.env["XDG_RUNTIME_DIR"] = "/nonexistent"
        self.assertEqual(self.ok("start", self.short, "--wait", "-o", "json")[:1], "{")


class Kept(ServiceTest):
    """With --state-dir a driver that comes back knows what the last one knew, and starts it again."""

    def setUp(self):
        super().setUp()
        self.state = self.path("state")

    def keep(self, *args, port=0, **more):
        return self.serve("--state-dir", self.state, *args, port=port, **more)

    def restart_driver(self, *args, **more):
        """The next driver, where the last one was."""
        return self.keep(*args, port=int(self.address.rpartition(":")[2]), **more)[0]

    def wait_runs(self, name):
        self.wait_until(name, lambda: (self.application(name) or {}).get("state") == "running")

    def ended(self):
        return {(r["name"], r["run"]): r for r in self.json("list")["ended"]}

    def test_what_ran_runs_again_after_a_kill(self):
        d, w = self.keep(workers=("a",))
        self.ok("start", self.short, "--wait", "--", "--count", "7")
        self.ok("start", self.endless)
        self.ok("start", self.endless, "--name", "stopped")
        self.ok("stop", "stopped")
        summary = self.json("status", "short")
        epoch = self.application("stream")["epoch"]
        events = self.ok("events", "-o", "json").splitlines()
        for daemon in (d, w):
            daemon.kill()
            daemon.wait()
        d = self.restart_driver(workers=("a",))
        self.wait_runs("stream")
        self.wait_delivered("stream")
        stream = self.application("stream")
        self.assertGreater(stream["epoch"], epoch)
        self.assertEqual(stream["run"], 4)
        self.assertEqual([a["name"] for a in self.json("list")["applications"]], ["stream"])
        self.assertEqual(self.json("status", "short"), summary)
        self.assertEqual(self.ended()["stream", 2]["failure"]["code"], "driver_lost")
        self.assertEqual(self.ended()["stopped", 3]["result"], "stopped")
        self.assertEqual(self.ok("events", "-o", "json").splitlines()[:len(events)], events)
        self.assertEqual(self.ok("restart", "short"), "short: runs")
        self.wait_until("its end", lambda: ("short", 5) in self.ended())

    def test_what_ran_runs_again_when_its_driver_was_told_to_stop_it(self):
        d, w = self.keep(workers=("a",))
        self.ok("start", self.endless)
        d.signal(signal.SIGINT)
        self.assertEqual(d.wait(), 0, d.stderr)
        d = self.restart_driver()
        self.wait_runs("stream")
        self.assertEqual(self.application("stream")["run"], 2)
        self.ok("stop", "stream")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.restart_driver()
        self.assertEqual(self.json("list")["applications"], [])

    def test_what_lost_its_worker_runs_again_with_the_next_driver(self):
        d, w = self.keep(workers=("a",))
        self.ok("start", self.endless)
        self.ok("start", self.endless, "--name", "other")
        w.signal(signal.SIGTERM)
        self.wait_until("both end", lambda: len(self.ended()) == 2)
        self.assertEqual({r["wanted"] for r in self.ended().values()}, {True})
        self.assertIn("starts again with driverd, unless `fragctl stop other`", self.ok("list"))
        self.ctl("stop", "other")
        self.assertFalse(self.ended()["other", 2]["wanted"])
        d.kill()
        d.wait()
        self.restart_driver()
        self.worker("--name", "a")
        self.wait_runs("stream")
        self.assertIsNone(self.application("other"))

    def test_a_state_folder_that_is_removed(self):
        """Commands are refused with the reason, what runs goes on, and the next driver adopts it."""
        d = self.keep(workers=("a", "b"))[0]
        self.ok("start", self.endless)
        shutil.rmtree(self.state)
        self.fails(3, "stream would end and not start again", "restart", "stream")
        self.fails(3, "the state folder cannot be written", "swap", "stream", "fragment1", "--library", "libother.so")
        self.fails(3, "the state folder cannot be written", "drain", "a")
        self.fails(3, "state.db is gone: something has removed", "start", self.endless, "--name", "other")
        self.assertRegex(self.ok("events"), "refused +%s/state.db is gone" % self.state)
        self.wait_delivered("stream")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.restart_driver()
        self.wait_runs("stream")
        self.assertEqual(self.application("stream")["run"], 1)
        self.ok("stop", "stream")

    def test_a_state_folder_that_is_removed_is_noticed_without_a_command(self):
        d = self.keep(workers=("a",))[0]
        self.ok("start", self.endless)
        events = self.ok("events")
        shutil.rmtree(self.state)
        d.wait_line("error driver: %s/state.db is gone: something has removed or replaced it; restart driverd: .*; "
                    "applications run on, none can be started" % self.state)
        self.assertRegex(self.ok("events")[len(events):], r"\A\n\S+ refused +%s/state.db is gone: .*\n?\Z" % self.state)
        self.fails(3, "stream would end and not start again", "restart", "stream")
        self.wait_delivered("stream")

    def test_a_full_disk(self):
        """Nothing starts, all runs on, and what happens meanwhile is written when there is room."""
        os.mkdir(self.state)
        prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c",
                  'mount -t tmpfs -o size=6m,mode=755 frag "$0" && exec "$@"', self.state)
        probe = self.start("/bin/sh", "-c", "true", prefix=prefix)
        if probe.wait() != 0:
            self.skipTest("no mount namespaces here: " + probe.stderr)
        d, w = self.keep(workers=("a",), prefix=prefix)
        inside = "/proc/%d/root%s" % (d.child.pid, self.state)
        if not os.path.exists(os.path.join(inside, "state.db")):
            self.skipTest("the namespace of a child cannot be entered here")
        large = self.write("large.yaml", SHORT + "#" * 1500000)
        self.ok("start", self.endless)
        self.ok("start", self.endless, "--name", "other")
        filler = os.path.join(inside, "filler")

        def fill():
            with open(filler, "ab", buffering=0) as f, contextlib.suppress(OSError):
                while f.write(bytes(4096)):
                    pass

        fill()
        full = "stream would end and not start again: the state folder cannot be written; make room if its disk is full, restart driverd if the folder is gone"
        changed = self.write("changed.yaml", ENDLESS.replace("200hz", "100hz"))
        for first in (True, False):
            command = ("restart", "stream") if first else ("apply", "stream", changed)
            self.fails(3, full, *command)
            self.fails(3, full, "restart", "stream")
            self.wait_delivered("stream")
            self.assertEqual(self.application("stream")["run"], 1)
            if first:  # the other command is the first one that meets a full disk, too
                os.truncate(filler, 1000000)
                self.ok("start", self.short, "--wait")
                fill()
        self.fails(3, "No space left on device; make room there", "start", large)
        self.assertIn("the driver keeps nothing, and starts nothing: cannot keep state", self.fails(1, "", "health"))
        code, p = self.ctl("stop", "other")
        self.assertEqual((code, p.stderr), (0, "fragctl: the state folder cannot be written: if driverd ends before that "
                                            "is mended, the next driverd starts other again"))
        os.remove(filler)
        self.ok("start", large, "--wait")
        d.wait_line("state is kept again")
        self.wait_until("a driver that is well", lambda: self.ctl("health")[0] == 0)
        self.wait_delivered("stream")


class Neighbours(ServiceTest):
    def test_a_neighbour_loses_nothing(self):
        """Two applications on the same two workers. One is killed, then fails again and again; the
        other one goes on, and at its end every message is accounted for as delivered."""
        self.serve(workers=("a", "b"))
        self.ok("start", self.endless, "--name", "quiet")
        for name in ("one", "two"):
            self.ok("start", self.endless, "--name", name)
            for host in self.application(name)["hosts"]:
                os.kill(host["pid"], signal.SIGKILL)
            self.wait_until("the end of " + name, lambda n=name: not self.application(n))
            self.wait_delivered("quiet")
        self.assertEqual([r["result"] for r in self.json("list")["ended"]], ["failed", "failed"])
        self.assertEqual(self.application("quiet")["run"], 1)
        self.ok("stop", "quiet")
        summary = self.json("status", "quiet")
        self.assertEqual(summary["result"], "stopped")
        flow = summary["flows"][0]
        self.assertEqual((flow["lost"], flow["sent"]), (0, flow["delivered"]))

    def test_a_worker_that_returns_serves_all(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.endless, "--name", "one")
        self.ok("start", self.endless, "--name", "two")
        w.kill()
        w.wait()
        self.wait_until("both end", lambda: len(self.json("list")["ended"]) == 2)
        again = [self.start("fragctl", "restart", name) for name in ("one", "two")]
        self.wait_until("both wait", lambda: len(self.json("list")["applications"]) == 2)
        self.worker("--name", "a")
        for p in again:
            self.assertEqual(p.wait(), 0, p.stderr)
        for name in ("one", "two"):
            self.wait_delivered(name)

    def test_a_worker_for_one_application_ends_with_the_first(self):
        self.serve()
        w = self.worker("--once")
        self.ok("start", self.short, "--wait")
        self.assertEqual(w.wait(), 0)
