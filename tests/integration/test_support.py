# SPDX-License-Identifier: Apache-2.0
"""fragctl health and fragctl snapshot: whether it is well, and what those get who help."""
import json
import os
import signal
import tarfile

import cluster
from test_service import ServiceTest

TALK = """
frag: 1
application: talk
extensions: [libtalker.so]
arguments: {source: {default: none}}
fragments:
  left:
    operators:
      talker:
        type: talker
        parameters: {ticks: 0, pause: 20ms, raw: "%s\\n"}
"""
FAILS = """
frag: 1
application: fails
extensions: [libtruth.so]
fragments:
  one:
    operators:
      tx: {type: truth_tx, parameters: {file: /dev/full/none}}
      rx: {type: ping_rx}
    flows: [tx -> rx]
"""
SECRETS = ("hunter2", "hunter3", "hunter4", "hunter5", "0123456789abcdef" * 4)


class Health(ServiceTest):
    def test_a_line_and_an_exit_code(self):
        self.serve(workers=("a",))
        self.assertEqual(self.ok("health"), "ok: 0 applications, 1 worker")
        self.ok("start", self.endless)
        self.assertEqual(self.ok("health", "stream"), "ok: stream: runs")
        self.assertEqual(self.ok("health", "stream", "--for", "250ms"), "ok: stream: runs")
        self.assertEqual(self.json("health"), {"healthy": True, "reason": None})
        self.ok("stop", "stream")
        self.assertEqual(self.ok("health", "stream"), "ok: stream: was stopped")
        self.ok("start", "--wait", self.short)
        self.assertEqual(self.ok("health", "short"), "ok: short: done")
        self.fails(3, "there is no application other", "health", "other")
        self.fails(2, "is no time from 250ms to 5s", "health", "--for", "6s")

    def test_what_is_not_well_is_named(self):
        self.serve(workers=("a",))
        waits = self.start("fragctl", "start", self.write("away.yaml", TALK.replace("left:", "left:\n    requirements: {labels: {at: home}}") % ""))
        self.wait_until("it waits", lambda: self.application("talk"))
        self.assertEqual(self.fails(1, "", "health", "talk"), "talk waits for workers that take left")
        code, p = self.ctl("health", "-o", "json")
        self.assertEqual((code, self.document(p.stdout)),
                         (1, {"healthy": False, "reason": "talk waits for workers that take left"}))
        self.ok("stop", "talk")
        waits.wait()
        self.ctl("start", "--wait", self.write("fails.yaml", FAILS))
        self.assertRegex(self.fails(1, "", "health", "fails"), "^fails failed: .*one.tx")
        self.assertEqual(self.ok("health"), "ok: 0 applications, 1 worker")

    def test_a_host_that_is_done_is_well_while_others_run(self):
        self.serve(workers=("a",))
        self.ok("start", self.write("part.yaml", """
frag: 1
application: part
fragments:
  early:
    host: x
    operators: {tx: {type: ping_tx, conditions: [{type: count, count: 2}]}, rx: {type: ping_rx}}
    flows: [tx -> rx]
  long:
    host: y
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 50ms}]}
      rx: {type: ping_rx}
    flows: [tx -> rx]
"""))
        self.wait_until("one of two is done", lambda: [
            h["state"] for h in self.application("part")["hosts"]] == ["done", "running"])
        self.assertEqual(self.ok("health", "part"), "ok: part: runs")
        self.assertEqual(self.ok("health"), "ok: 1 application, 1 worker")

    def test_a_worker_that_is_lost_is_not_well_and_one_that_left_is(self):
        _, a, b = self.serve(workers=("a", "b"))
        self.ok("health")
        a.signal(signal.SIGTERM)
        a.wait()
        self.wait_until("it has left", lambda: self.ok("health") == "ok: 0 applications, 1 worker")
        b.signal(signal.SIGKILL)
        b.wait()
        self.wait_until("it is lost", lambda: self.ctl("health")[0] == 1)
        self.assertEqual(self.fails(1, "", "health"), "worker b is lost; it ran nothing")

    def test_what_is_slow_is_not_well_when_it_is_measured(self):
        self.serve(workers=("a",))
        self.ok("start", self.write("slow.yaml", cluster.SLOW))
        self.assertEqual(self.ok("health", "slow"), "ok: slow: runs")
        # On a busy machine the cores are to blame for some windows.
        for name in ("slow",), ():
            self.wait_until("the operator", lambda: "one.rx computes" in self.fails(1, "", "health", *name, "--for", "1s"))


class Snapshot(ServiceTest):
    def take(self, *args):
        path = self.path("snapshot.tar")
        self.assertEqual(self.ok("snapshot", "-f", path, *args), path)
        with tarfile.open(path) as tar:
            files = {m.name.split("/", 1)[1]: tar.extractfile(m).read().decode() for m in tar}
            self.assertEqual(len({m.name.split("/")[0] for m in tar}), 1)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        os.unlink(path)
        return files

    def test_what_those_get_who_help(self):
        self.serve(workers=("a", "b"))
        self.env["FRAG_TEST_PASSWORD"] = SECRETS[3]
        url = "opens rtsp://admin:%s@10.0.0.7/live with token=%s and key %s" % (SECRETS[0], SECRETS[1], SECRETS[4])
        self.ok("start", self.write("talk.yaml", TALK % url), "--", "--source", "http://u:%s@x" % SECRETS[2])
        self.ok("start", "--wait", self.short)
        self.wait_until("lines", lambda: "10.0.0.7" in self.ok("logs", "talk"))
        self.assertIn(SECRETS[0], self.ok("logs", "talk"), "it is there to be left out")
        files = self.take()
        self.assertEqual(set(files), {"README.txt", "applications.json", "workers.json", "top.json", "events.jsonl",
                                      "logs-talk.jsonl", "summary-short.json", "logs-short.jsonl"})
        for name, text in files.items():
            for secret in SECRETS:
                self.assertNotIn(secret, text, name)
        self.assertRegex(files["README.txt"], "by fragctl [0-9.]+ at .*, of the driver [0-9.]+ at ")
        self.assertIn("opens rtsp://10.0.0.7/live with token=*** and key ***", files["logs-talk.jsonl"])
        state = self.document(files["applications.json"])
        self.assertEqual([a["name"] for a in state["applications"]], ["talk"])
        self.assertEqual({w["name"] for w in self.document(files["workers.json"])["workers"]}, {"a", "b"})
        self.assertEqual(self.document(files["summary-short.json"])["result"], "done")
        top = json.loads(files["top.json"])["applications"][0]
        self.assertGreater(top["window_ns"], 0)
        self.assertIn("cause", top)
        kinds = [self.document(line)["kind"] for line in files["events.jsonl"].splitlines()]
        self.assertIn("worker_joined", kinds)
        self.assertEqual(kinds.count("running"), 2)
        for line in files["logs-talk.jsonl"].splitlines():
            self.document(line)
        # of one application alone, and without waiting
        files = self.take("short", "--no-wait")
        self.assertEqual(set(files), {"README.txt", "applications.json", "workers.json", "events.jsonl",
                                      "summary-short.json", "logs-short.jsonl"})
        self.assertNotIn("talk", files["applications.json"] + files["events.jsonl"])

    def test_a_file_is_not_overwritten(self):
        self.serve()
        path = self.write("mine", "kept")
        self.fails(1, "mine cannot be written: File exists", "snapshot", "-f", path)
        with open(path) as f:
            self.assertEqual(f.read(), "kept")
        self.fails(1, "cannot be written: Not a directory", "snapshot", "-f", path + "/x")
