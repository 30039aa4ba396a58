# SPDX-License-Identifier: Apache-2.0
"""driverd as people meet it: its command line, what it refuses before it asks anybody, and what it
prints."""
import json
import os
import re
import signal
import sqlite3
import time

import cluster
from test_ping import APP


def matches(value, schema, root, path="summary"):
    """Why value does not match the schema (the part of JSON Schema that docs/summary.schema.json
    uses); None: it does."""
    if "$ref" in schema:
        why = matches(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, path)
        if why:
            return why
    if "enum" in schema and value not in schema["enum"]:
        return "%s is %r, not one of %r" % (path, value, schema["enum"])
    if "anyOf" in schema and all(matches(value, s, root, path) for s in schema["anyOf"]):
        return "%s matches nothing of anyOf: %r" % (path, value)
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    wanted = schema.get("type")
    if wanted:
        wanted = wanted if isinstance(wanted, list) else [wanted]
        if not any(isinstance(value, kinds[k]) for k in wanted):
            return "%s is %r, not %s" % (path, value, wanted)
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        return "%s is %r" % (path, value)
    if isinstance(value, dict):
        missing = [k for k in schema.get("required", ()) if k not in value]
        if missing:
            return "%s lacks %s" % (path, missing)
        for key, item in value.items():
            if "properties" in schema and key not in schema["properties"]:
                return "%s.%s is not in the schema" % (path, key)
            part = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            why = matches(item, part, root, path + "." + key)
            if why:
                return why
    if isinstance(value, list):
        for i, item in enumerate(value):
            why = matches(item, schema.get("items", {}), root, "%s[%d]" % (path, i))
            if why:
                return why
    return None


class CommandLine(cluster.ClusterTest):
    app_text = APP

    def ended(self, *args, env=None):
        p = self.start("driverd", *args, env=env)
        return p, p.wait()

    def test_help_and_version(self):
        p, code = self.ended("--help")
        self.assertEqual(code, 0)
        for flag in ("--address", "--app", "--config", "--set", "--start-timeout", "--output", "--summary", "--insecure"):
            self.assertIn(flag, p.stdout)
        self.assertEqual(p.stderr, "")
        p, code = self.ended("--version")
        self.assertEqual(code, 0)
        self.assertRegex(p.stdout, r"^driverd \d+\.\d+\.\d+, protocol 1\.\d+$")

    def test_a_fraghost_started_by_hand_says_who_starts_it(self):
        for args, code, out in ((["--version"], 0, r"^fraghost \d+\.\d+\.\d+$"), (["--help"], 0, "workerd starts it"),
                                ([], 2, "^$"), (["app.yaml"], 2, "^$")):
            p = self.start(os.path.join(cluster.BUILD, "libexec", "frag", "fraghost"), *args)
            self.assertEqual(p.wait(), code, args)
            self.assertRegex(p.stdout, out)
            if code:
                self.assertIn("It is not started by hand: use workerd, or fragctl run.", p.stderr)

    def test_wrong_usage_is_2_and_says_what_was_meant(self):
        for args, sentence in ((["--adress", "x"], "did you mean --address"), (["--", "x"], "fragctl start"),
                               (["--app", self.app, "--output", "xml"], "table or json"),
                               (["--app", self.app, "--start-timeout", "soon"], "30s"),
                               (["--app", self.app, "--start-timeout", "45"], 'has no unit; write for example 45s'),
                               ([self.app], "did you mean --app " + self.app),
                               (["--app", self.app, "--address", "127.0.0.1:1-9"], "one port"),
                               (["--app", self.app, "--address", ":99999"], "99999")):
            p, code = self.ended(*args)
            self.assertEqual(code, 2, (args, p.stderr))
            self.assertIn(sentence, p.stderr)
            self.assertEqual(p.stdout, "")

    def test_flags_come_from_the_environment_too(self):
        p = self.start("driverd", env={"FRAG_APP": self.app, "FRAG_ADDRESS": "127.0.0.1:0", "FRAG_OUTPUT": "json"})
        p.wait_line("listening on 127.0.0.1:")
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0)
        self.assertEqual(json.loads(p.stdout)["result"], "stopped")

    def test_arguments_of_the_application_are_listed(self):
        p, code = self.ended("--app", self.app, "--", "--help")
        self.assertEqual(code, 0)
        self.assertRegex(p.stdout, r"--count")
        self.assertEqual(p.stderr, "")
        p, code = self.ended("--app", self.app, "--", "--cuont", "3")
        self.assertEqual(code, 2)
        self.assertRegex(p.stderr, "did you mean \"count")

    def test_a_graph_is_refused_with_all_its_errors_before_anything_listens(self):
        text = (APP % {"folder": self.folder}).replace("policy: \"${policy}\"", "polizy: block")
        text = text.replace("operators:\n      rx", "operatros:\n      rx")
        path = self.write("wrong.yaml", text)
        p, code = self.ended("--app", path)
        self.assertEqual(code, 2)
        places = re.findall(r"wrong\.yaml:(\d+):(\d+): ", p.stderr)
        self.assertGreaterEqual(len(places), 2, p.stderr)
        self.assertIn('did you mean "operators"', p.stderr)
        self.assertNotIn("listening", p.stderr)

    def test_a_graph_that_is_not_there_is_3(self):
        p, code = self.ended("--app", self.path("nothing.yaml"))
        self.assertEqual(code, 3)
        self.assertIn("nothing.yaml", p.stderr)

    def test_an_address_that_is_not_ours_is_3(self):
        p, code = self.ended("--app", self.app, "--insecure", "--address", "192.0.2.1:0")
        self.assertEqual(code, 3)
        self.assertIn("192.0.2.1", p.stderr)
        self.assertIn("--address", p.stderr)


class Running(cluster.ClusterTest):
    app_text = APP

    def launch(self, *flags, app_args=(), **kwargs):
        self.d = self.driver(self.app, *flags, app_args=app_args, **kwargs)
        self.workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]

    def wait_received(self, count):
        self.wait_written("received", count)

    def wait_written(self, side, count):
        """Until the sender or the receiver has written down so many messages."""
        self.wait_until("messages", lambda: os.path.exists(self.path(side)) and
                        os.path.getsize(self.path(side)) >= count * 8)

    def test_the_summary_matches_its_schema(self):
        with open(os.path.join(cluster.TOP, "docs", "summary.schema.json")) as f:
            schema = json.load(f)
        self.assertIsNotNone(matches({}, schema, schema), "the check itself works")
        self.launch("--output", "json")
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        summary = self.summary(self.d)
        self.assertIsNone(matches(summary, schema, schema))
        for fragment in summary["fragments"]:
            (operator,) = fragment["operators"]
            self.assertEqual(operator["ticks"], 100)
            times = operator["compute_ns"]
            self.assertTrue(0 < times["p50"] <= times["p99"] <= times["max"] < summary["duration_ns"], times)
        self.assertAlmostEqual(summary["started_unix_ns"] / 1e9, time.time(), delta=120)
        self.assertGreater(summary["first_message_ns"], 0)
        self.assertGreater(summary["duration_ns"], summary["first_message_ns"])
        failed = self.driver(self.app, "--output", "json", "--start-timeout", "100ms")
        self.assertEqual(failed.wait(), 4)
        self.assertIsNone(matches(self.summary(failed), schema, schema))

    def test_the_table_is_on_stdout_and_all_else_on_stderr(self):
        self.launch(app_args=("--count", "300", "--pause", "10ms"))
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        lines = self.d.stdout.splitlines()
        self.assertRegex(lines[0], r"^stream: done in [\d.]+ s$")
        self.assertRegex(lines[1], r"^flow +sent +delivered +dropped +lost +latency p50 +p99 +max +edge$")
        self.assertRegex(lines[2], r"^fragment1\.tx\.out -> fragment2\.rx\.in +300 +300 +0 +0 .* shm$")
        self.assertEqual(len(lines), 3)
        self.assertRegex(self.d.stderr, r"(?m)^running [\d.]+ s, \d+ messages$")

    def test_quiet_is_quiet(self):
        port = self.free_port()
        d = self.start("driverd", "-q", "--address", "127.0.0.1:%d" % port, "--app", self.app)
        for f in ("fragment1", "fragment2"):
            self.worker("--once", fragments=f, address="127.0.0.1:%d" % port)
        self.assertEqual(d.wait(), 0)
        self.assertEqual(d.stderr, "")

    def test_a_closed_terminal_ends_nothing_at_once(self):
        """Its shell and the kernel both send SIGHUP."""
        self.launch("--output", "json", app_args=("--count", "0", "--rx_pause", "300ms"))
        self.wait_received(1)
        self.wait_written("sent", 2)
        self.d.signal(signal.SIGHUP)
        self.d.wait_line("SIGHUP: stops")
        self.d.signal(signal.SIGHUP)
        self.assertEqual(self.d.wait(), 0)
        self.assertEqual(self.d.stderr.count("SIGHUP"), 1)
        summary = self.summary(self.d)
        self.assertEqual((summary["result"], self.flow(summary, "fragment1.tx.out")["lost"]), ("stopped", 0))
        for w in self.workers:
            self.assertEqual(w.wait(), 0, w.stderr)

    def test_the_second_signal_ends_at_once(self):
        """The receiver takes far longer than the drain to end by itself."""
        self.launch("--output", "json", app_args=("--count", "0", "--rx_pause", "3s"))
        self.wait_received(1)
        # Only what was sent can be lost, and a busy machine may not have sent a second one yet.
        self.wait_written("sent", 2)
        self.d.signal(signal.SIGINT)
        self.d.wait_line("SIGINT")
        self.d.signal(signal.SIGINT)
        self.assertEqual(self.d.wait(), 130)
        summary = self.summary(self.d)
        self.assertEqual((summary["result"], summary["exit_code"], summary["reason"]), ("stopped", 130, None))
        self.assert_balanced(summary)
        self.assertGreater(self.flow(summary, "fragment1.tx.out")["lost"], 0)
        for w in self.workers:
            w.wait()
        self.assert_nothing_left()

    def test_a_worker_that_ends_its_host_while_it_drains_keeps_no_other_waiting(self):
        """Killed before its operators were done, the host closes none of its edges."""
        period_s = cluster.PATIENCE_S
        app = self.write("slow.yaml", """frag: 1
application: slow
fragments:
  one:
    operators:
      tx: {type: ping_tx}
      slow: {type: forward, conditions: [{type: periodic, recess_period: %ds}]}
    flows: [tx -> slow]
  two:
    operators:
      rx: {type: ping_rx}
flows:
  - one.slow -> two.rx
""" % period_s)
        d = self.driver(app, "--output", "json")
        workers = [self.worker("--once", fragments=f) for f in ("one", "two")]
        d.wait_line("runs in 2 hosts")
        d.signal(signal.SIGTERM)
        d.wait_line("SIGTERM: stops")
        workers[0].signal(signal.SIGTERM)
        workers[0].wait_line("told to end: stops 1 host")
        workers[0].signal(signal.SIGTERM)
        self.assertEqual(workers[0].wait(), 0, workers[0].stderr)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual(workers[1].wait(), 0)
        self.assertNotIn("did not drain", d.stderr)
        summary = self.summary(d)
        self.assertEqual(summary["result"], "stopped")
        self.assert_balanced(summary)

    def test_a_cycle_over_two_hosts_that_is_dry_ends_at_once(self):
        app = self.write("dry.yaml", """frag: 1
application: dry
fragments:
  one:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: 50}]}
      f: {type: forward}
  two:
    operators:
      rx: {type: ping_rx}
      g: {type: forward}
flows:
  - one.tx -> two.rx
  - one.f -> two.g
  - two.g -> one.f
""")
        # Nobody may wait for the time of death.
        d = self.driver(app, "--output", "json", env={"FRAG_DEAD_MS": "600000"})
        workers = [self.worker("--once", fragments=f) for f in ("one", "two")]
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual([w.wait() for w in workers], [0, 0])
        summary = self.summary(d)
        self.assertEqual(summary["result"], "done")
        self.assertEqual(self.flow(summary, "one.tx.out")["delivered"], 50)
        self.assert_balanced(summary)

    def test_ipv6(self):
        self.need_ipv6()
        self.d = self.driver(self.app, address="[::1]:0")
        self.assertRegex(self.address, r"^\[::1\]:\d+$")
        worker = self.worker("--once")
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        self.assertEqual(worker.wait(), 0)
        self.assertRegex(self.d.stderr, r"worker \S+ joined from \[::1\]:\d+\n")

    def test_a_driver_that_was_stopped_judges_nobody_for_it(self):
        self.launch(app_args=("--count", "0", "--pause", "1ms"), env={"FRAG_BEAT_MS": "500", "FRAG_DEAD_MS": "10000"})
        self.wait_received(10)
        self.d.signal(signal.SIGSTOP)
        # longer than a beat, shorter than the workers' patience: the time itself is the subject
        time.sleep(1.5)
        self.d.signal(signal.SIGCONT)
        before = os.path.getsize(self.path("received")) // 8
        self.wait_received(before + 100)
        self.d.signal(signal.SIGTERM)
        self.assertEqual(self.d.wait(), 0, self.d.stderr)

    def test_a_summary_file_that_cannot_be_written_is_told(self):
        d = self.start("driverd", "--address", "127.0.0.1:0", "--app", self.app,
                       "--summary", self.path("no/such/folder/s.json"))
        self.assertEqual(d.wait(), 3)
        self.assertIn("cannot write the summary", d.stderr)
        self.assertNotIn("listening", d.stderr)

    def test_a_spare_and_a_stranger_of_a_worker_do_no_harm(self):
        self.d = self.driver(self.app, app_args=("--count", "300", "--pause", "1ms"))
        spare = self.worker("--name", "spare", fragments="fragment9")
        self.d.wait_line(r'names the fragment "fragment9", which this application does not have; did you mean')
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.wait_received(10)
        spare.kill()
        spare.wait()
        self.assertEqual(self.d.wait(), 0, self.d.stderr)
        for w in workers:
            self.assertEqual(w.wait(), 0)


class StateFolder(cluster.ClusterTest):
    """--state-dir: epochs go on where the last driver of the folder left them."""

    app_text = APP

    def setUp(self):
        super().setUp()
        self.state = self.path("state")
        self.file = os.path.join(self.state, "state.db")

    def epoch_of_a_run(self):
        d = self.driver(self.app, "--output", "json", "--state-dir", self.state)
        workers = [self.worker("--once", fragments=f) for f in ("fragment1", "fragment2")]
        self.assertEqual(d.wait(), 0, d.stderr)
        for w in workers:
            w.wait()
        epochs = {f["epoch"] for f in self.summary(d)["fragments"]}
        self.assertEqual(len(epochs), 1)
        return epochs.pop()

    def refused(self, *prefix):
        d = self.start("driverd", "--address", "127.0.0.1:0", "--app", self.app, "--state-dir", self.state, prefix=prefix)
        self.assertEqual(d.wait(), 3, d.stderr)
        return d.stderr

    def reserved(self):
        with sqlite3.connect("file:%s?immutable=1" % self.file, uri=True) as db:
            return db.execute("SELECT epoch FROM numbers").fetchone()[0]

    def test_epochs_rise_from_run_to_run(self):
        first = self.epoch_of_a_run()
        self.assertGreaterEqual(self.reserved(), first)
        self.assertGreater(self.epoch_of_a_run(), first)
        self.assertEqual(os.listdir(self.state), ["state.db"])

    def test_no_link_that_somebody_planted_is_followed(self):
        os.mkdir(self.state)
        target = self.write("target", "untouched")
        os.symlink(target, self.file)
        self.assertIn("cannot keep state in " + self.state, self.refused())
        with open(target) as f:
            self.assertEqual(f.read(), "untouched")

    def test_the_epoch_is_there_before_a_worker_hears_of_it(self):
        d = self.driver(self.app, "--state-dir", self.state)
        w = self.worker()
        w.wait_line("runs fragment1")
        d.kill()
        d.wait()
        w.kill()
        w.wait()
        self.assertGreater(self.epoch_of_a_run(), 1)

    def test_one_driver_at_a_time(self):
        self.driver(self.app, "--state-dir", self.state)
        self.assertIn("another driverd keeps its state in " + self.state, self.refused())

    def test_a_damaged_file_is_told_and_kept(self):
        os.mkdir(self.state)
        text = "no database, but long enough to be read as the header of one\n" * 4
        with open(self.file, "w") as f:
            f.write(text)
        self.assertIn("%s/state.db is damaged, or of another program" % self.state, self.refused())
        with open(self.file) as f:
            self.assertEqual(f.read(), text)

    def test_a_folder_that_cannot_be_written_is_told(self):
        for self.state in ("/proc/sys", self.app, self.path("no/parent")):
            self.assertRegex(self.refused(), "cannot keep state in %s: .*; give --state-dir a folder" % self.state)

    def in_a_mount(self, *script):
        """What runs a command as root of a mount namespace, after a script with the state folder as $0."""
        prefix = ("unshare", "--map-root-user", "--mount", "sh", "-c", " && ".join((*script, '"$@"')), self.state)
        os.makedirs(self.state, exist_ok=True)
        probe = self.start("/bin/sh", "-c", "true", prefix=prefix)
        if probe.wait() != 0:
            self.skipTest("no mount namespaces here: " + probe.stderr)
        return prefix

    def test_a_full_disk_is_told(self):
        full = self.in_a_mount('mount -t tmpfs -o size=8k,mode=755 frag "$0"', '! head -c 9999 /dev/zero >"$0/rest"')
        self.assertRegex(self.refused(*full), "cannot keep state in %s: No space left on device; make room there" % self.state)

    def test_a_read_only_disk_is_told(self):
        read_only = self.in_a_mount('mount -t tmpfs -o ro,mode=755 frag "$0"')
        self.assertRegex(self.refused(*read_only), "cannot keep state in %s: Read-only file system; its file system is mounted read-on" % self.state)
