# SPDX-License-Identifier: Apache-2.0
"""One service whose processes are killed and stopped, the driver among them, while it runs several
applications. A killed driver is started again and adopts; a killed worker is started again too.

Of the four applications `calm` is a bystander: its worker is never touched, so it must lose
nothing. `plain` has no on_failure, `again` starts hosts again, `alone` is one process. What an
application may do after an attack depends on whether one of its own processes was hit: if not, the
same run goes on in the same processes; else it runs again, or it has failed with the sentence for
it. Whatever ends must agree with what its operators wrote down. Beside some attacks a user stops or
restarts an application: a stop that was acknowledged holds, and what is restarted runs again,
whatever became of the driver meanwhile.
"""
import collections
import json
import os
import random
import signal
import time

import world

STREAM = """
frag: 1
application: %(name)s
extensions: [libtruth.so]
fragments:
  %(from)s:
    operators:
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", size: %(size)d, pause: %(pause)s}}
  %(to)s:
    host: other
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: %(from)s.tx.out, to: %(to)s.rx.in, edge: %(edge)s, policy: %(policy)s,
     encrypt: %(encrypt)s}
"""
AGAIN = """
frag: 1
application: again
extensions: [libtruth.so]
fragments:
  a1:
    on_failure: {policy: restart, intensity: 1000, period: 60s, backoff: 1ms}
    operators:
      tx:
        type: truth_saving_tx
        parameters: {file: "%(folder)s/sent", size: %(size)d, pause: %(pause)s}
  b1:
    on_failure: {policy: restart, intensity: 1000, period: 60s, backoff: 1ms}
    operators:
      pass: {type: forward}
  a2:
    host: other
    on_failure: {policy: restart, intensity: 1000, period: 60s, backoff: 1ms}
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: a1.tx.out, to: b1.pass.in, edge: %(edge)s, policy: %(policy)s, encrypt: %(encrypt)s}
  - {from: b1.pass.out, to: a2.rx.in, edge: %(edge)s, policy: %(policy)s, encrypt: %(encrypt)s}
"""
ALONE = """
frag: 1
application: alone
extensions: [libtruth.so]
fragments:
  b1:
    on_failure: {policy: %(on_failure)s}
    operators:
      tx: {type: truth_saving_tx, parameters: {file: "%(folder)s/sent", pause: %(pause)s}}
  b2:
    on_failure: {policy: %(on_failure)s}
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows:
  - {from: b1.tx.out, to: b2.rx.in, policy: %(policy)s}
"""
# The workers that run an application, and the first and the last of its flows.
WORKERS = {"calm": "c", "plain": "ab", "again": "ab", "alone": "b"}
FLOWS = {"calm": ("c1.tx.out",) * 2, "plain": ("a1.tx.out",) * 2, "again": ("a1.tx.out", "b1.pass.out"),
         "alone": ("b1.tx.out",) * 2}
HOSTS = {"plain": 2, "again": 3, "alone": 1}
FRAGMENTS = {"a": "a1,a2", "b": "b1,b2", "c": "c1,c2"}
DRIVERS = ("kill", "kill", "kill", "stop", "pause", "term")
OTHERS = ("kill", "kill", "stop", "pause")
VICTIMS = ("driver", "driver", "host", "host", "host", "worker")
STOPPED_S = 1.5 * world.DEAD_MS / 1000  # until whoever is stopped has been given up
# What may be on its way to a host when it dies: the window, the queue, and a message in its hands.
HELD = 2 * 8 + 1
FURTHER = 3 * HELD  # more messages than can be on their way to the last host
RECOVERY_S = 10 * (world.DEAD_MS / 1000 + 1) + 8  # 8 s: for a worker that does not come back
FOLLOWS_S = 3  # until another run of what is restarted is there
WHY = (r"fraghost \d+ (of \S+ )?was (killed|ended)", r"worker [ab] .*was lost", r"was not heard|has not been heard",
       r"ended with its driver|not adopted|was cut off", r"lost (its|the) (data link|connection)")


class Deed:
    """One attack: whom, how, when within its blow, and how long until what was hit is back."""

    def __init__(self, rng, at_s):
        self.victim = rng.choice(VICTIMS)
        self.deed = rng.choice(DRIVERS if self.victim == "driver" else OTHERS)
        self.at_s = at_s
        self.side = rng.choice("ab")
        self.name = rng.choice(sorted(HOSTS))
        self.host = rng.randrange(HOSTS[self.name])
        self.back_s = rng.choice((0, rng.uniform(0, 0.3), rng.uniform(0, 1.2)))
        self.pause_s = rng.uniform(0.01, world.DEAD_MS / 6000)

    def whom(self):
        if self.victim == "host":
            return "host %d of %s" % (self.host + 1, self.name)
        return "driver" if self.victim == "driver" else "worker " + self.side

    def touches(self):
        """The applications that may notice."""
        if self.victim == "driver" or self.deed == "pause":
            return set()
        if self.victim == "host":
            return {self.name}
        return {name for name, workers in WORKERS.items() if self.side in workers}

    def do(self, service):
        return service.hit(self)

    def __str__(self):
        return "%s %s at %.0f ms%s" % (self.deed, self.whom(), 1e3 * self.at_s,
                                       "" if self.victim == "host" else ", back after %.0f ms" % (1e3 * self.back_s))


class Command:
    """What a user asks for in the middle of it. May be followed by the death of the driver."""

    def __init__(self, rng, at_s):
        self.at_s, self.verb = at_s, rng.choice(("stop", "restart"))
        self.name = rng.choice(sorted(HOSTS))
        self.process = None

    def touches(self):
        return set()

    def do(self, service):
        self.process = service.start("fragctl", self.verb, self.name)
        service.processes.remove(self.process)
        return []

    def __str__(self):
        return "%s %s at %.0f ms" % (self.verb, self.name, 1e3 * self.at_s)


class Service(world.World):
    PAUSE = "1ms"  # between two messages

    def prepare(self, seed):
        self.rng = rng = random.Random(seed)
        self.setUp()
        self.env["FRAG_LOG_LEVEL"] = "debug"
        self.env.update(FRAG_BEAT_MS=str(world.BEAT_MS), FRAG_DEAD_MS=str(world.DEAD_MS))
        self.named, self.daemons, self.number = {}, {}, 0
        self.runs, self.pids, self.policy = {}, {}, {}
        self.texts = {name: self.describe(name, rng) for name in WORKERS}
        self.blows = []
        count = rng.randint(4, 8)
        while sum(map(len, self.blows)) < count:
            self.blows.append(self.plan_blow(rng))
        self.words = "seed %d: %r" % (seed, self.policy)
        self.hits = collections.Counter()
        return self

    def describe(self, name, rng):
        policy = rng.choice(("block", "block", "pop", "reject", "latest"))
        policy = "block" if name == "calm" else policy
        values = {"name": name, "folder": self.path(name), "size": rng.choice((8, 8, 4096, 300000)), "policy": policy,
                  "edge": rng.choice(("shm", "ucx")), "encrypt": rng.choice(("false", "false", "true")),
                  "on_failure": rng.choice(("stop", "restart")),
                  "pause": self.PAUSE, "from": "c1" if name == "calm" else "a1", "to": "c2" if name == "calm" else "b1"}
        self.policy[name] = "%(policy)s %(edge)s %(size)d" % values
        os.mkdir(self.path(name))
        return self.write(name + ".yaml", {"again": AGAIN, "alone": ALONE}.get(name, STREAM) % values)

    @staticmethod
    def plan_blow(rng):
        """Some attacks at about the same time."""
        at_s, blow = 0.0, []
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            blow.append(Deed(rng, at_s))
            at_s += rng.choice((0, rng.uniform(0, 0.05), rng.uniform(0, 0.6)))
        if rng.random() < 0.3:
            blow.append(Command(rng, blow[0].at_s + rng.choice((-1, 1)) * rng.uniform(0, 0.05)))
        return blow

    # The daemons

    def launch_service(self):
        self.address = "127.0.0.1:%d" % self.free_port()
        self.env["FRAG_ADDRESS"] = self.address
        self.start_driver()
        for name in FRAGMENTS:
            self.start_worker(name)
        self.wait_until("workers", lambda: len(self.live_workers()) == len(FRAGMENTS))
        for name in WORKERS:
            self.ctl("start", self.texts[name])
            self.runs[name] = 1
        self.remember()
        for name in WORKERS:
            self.come_further(name)

    def started(self, name, process):
        self.number += 1
        self.daemons[name] = self.named["%s-%d" % (name, self.number)] = process

    def start_driver(self):
        self.started("driver", self.start("driverd", "--address", self.address, "--state-dir", self.path("state")))
        self.daemons["driver"].wait_line("waits for applications")

    def start_worker(self, name):
        self.started(name, self.worker("--name", name, fragments=FRAGMENTS[name]))

    def ctl(self, *args):
        p = self.start("fragctl", *args)
        self.processes.remove(p)
        codes = (0, 1) if args[0] == "status" else (0,)  # 1: it has failed
        self.assertIn(p.wait(RECOVERY_S), codes, p.stdout + p.stderr)
        return p.stdout

    def json(self, *args):
        return json.loads(self.ctl(*args, "-o", "json"))

    def live_workers(self):
        return [w for w in self.json("workers")["workers"] if w["state"] in ("live", "suspect")]

    # The applications

    def application(self, name):
        """Its row while it runs, and that of its newest run that has ended."""
        listed = self.json("list")
        running = [a for a in listed["applications"] if a["name"] == name]
        ended = sorted((e for e in listed["ended"] if e["name"] == name), key=lambda e: e["run"])
        return running[-1] if running else None, ended[-1] if ended else None

    def remember(self):
        """Which run of each application goes on, and in which processes."""
        for a in self.json("list")["applications"]:
            self.runs[a["name"]] = a["run"]
            self.pids[a["name"]] = [h["pid"] for h in a["hosts"]]

    def count(self, name):
        try:
            return os.path.getsize(self.path(name + "/received")) // 8
        except FileNotFoundError:
            return 0

    def come_further(self, name, is_restarted=False):
        """More messages arrive than can have been on their way, and the driver has it. Returns
        None, or the row of its end. is_restarted: another run is to follow."""
        goal = self.count(name) + FURTHER
        end = time.monotonic() + RECOVERY_S
        follows_until = time.monotonic() + (FOLLOWS_S if is_restarted else 0)
        while True:
            running, ended = self.application(name)
            if running is None and ended is not None and time.monotonic() >= follows_until:
                return ended
            if running is not None and running["state"] == "running" and self.count(name) >= goal:
                return None
            if time.monotonic() > end:
                raise AssertionError("%s does not go on within %.0f s: %r" % (name, RECOVERY_S, running))
            time.sleep(0.02)

    def numbers(self, name, which):
        """What was written in the newest run: it begins anew."""
        found = self.truth(name + "/" + which)
        newest = 0
        for i in range(1, len(found)):
            if found[i] < found[i - 1] or (found[i] == found[i - 1] == 1):
                newest = i
        return found[newest:]

    # Attacks

    def hit(self, deed):
        """Returns how to undo it: [(after so many s, what)]."""
        self.hits[("driver" if deed.victim == "driver" else deed.victim) + " " + deed.deed] += 1
        if deed.victim == "host":
            pid = (self.pids[deed.name] + [0] * deed.host)[deed.host]
            if pid not in self.hosts():
                return []  # it has ended by an earlier deed, or with its worker
            return self.hit_process(deed, pid, lambda: None)
        name = "driver" if deed.victim == "driver" else deed.side
        daemon = self.daemons[name]
        if daemon.child.poll() is not None:
            return []
        return self.hit_process(deed, daemon.pid, lambda: self.start_again(name, daemon))

    def start_again(self, name, daemon):
        """In place of that one, unless an earlier attack has led to that."""
        if self.daemons[name] is not daemon:
            return
        if daemon.child.poll() is None:
            daemon.kill()
        daemon.wait()
        if name == "driver":
            self.start_driver()
        else:
            self.start_worker(name)

    def hit_process(self, deed, pid, back):
        number = {"kill": signal.SIGKILL, "term": signal.SIGTERM}.get(deed.deed, signal.SIGSTOP)
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return []  # its application has just stopped
        if number != signal.SIGSTOP:
            return [(deed.back_s, back)]
        if deed.deed == "pause":
            return [(deed.pause_s, lambda: self.go_on(pid))]
        # Stopped for good: a host is ended by its worker. A worker goes on later, or is killed; a
        # driver is killed, as its watchdog would.
        if deed.victim == "worker" and deed.back_s < 0.3:
            return [(STOPPED_S, lambda: self.go_on(pid))]
        return [(STOPPED_S, back)]

    @staticmethod
    def go_on(pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # it was killed meanwhile

    def do_blow(self, blow):
        began = time.monotonic()
        agenda = [(deed.at_s, i, deed) for i, deed in enumerate(blow)]
        undone = len(blow)
        while agenda:
            agenda.sort(key=lambda row: row[:2])
            at_s, _, what = agenda.pop(0)
            time.sleep(max(0.0, began + at_s - time.monotonic()))
            if isinstance(what, (Deed, Command)):
                for after_s, undo in what.do(self):
                    agenda.append((time.monotonic() - began + after_s, undone, undo))
                    undone += 1
            else:
                what()

    # What comes of it

    def run_it(self):
        """Returns the longest time that it took until all ran again after a blow."""
        self.launch_service()
        slowest = 0.0
        for number, blow in enumerate(self.blows):
            self.words += "; blow %d: %s" % (number + 1, ", ".join(map(str, blow)))
            touched = set().union(*(deed.touches() for deed in blow))
            self.do_blow(blow)
            began = time.monotonic()
            ended = self.see(touched, {c.name: c for c in blow if isinstance(c, Command)})
            slowest = max(slowest, time.monotonic() - began)
            self.begin_again(ended)
        self.end()
        return slowest

    def see(self, touched, commands=None):
        """What was not touched goes on as the same run in the same processes; the others run, or
        have failed. What was stopped has ended. Returns those, with the row of their end."""
        failed, commands = {}, commands or {}
        for name in sorted(WORKERS, key=lambda name: name in touched):
            command = commands.get(name)
            code = command.process.wait(RECOVERY_S) if command else None
            ended = self.come_further(name, command is not None and command.verb == "restart")
            if ended is not None and not (command and command.verb == "stop"):
                self.assertIn(name, touched, "%s has ended, though nobody touched it: %r" % (name, ended))
            if ended is None and command and command.verb == "stop":
                self.assertNotEqual(code, 0, "%s runs on, though it was stopped" % name)
            if ended is not None:
                failed[name] = ended
        listed = {a["name"]: a for a in self.json("list")["applications"]}
        for name in WORKERS:
            if name in failed:
                self.check_ended(name, failed[name], name in commands)
                continue
            row = listed[name]
            self.assertEqual(row["state"], "running")
            if name not in touched and name not in commands:
                self.assertEqual((row["run"], [h["pid"] for h in row["hosts"]]), (self.runs[name], self.pids[name]), name)
        self.remember()
        return failed

    def check_ended(self, name, ended, may_be_stopped):
        if not (may_be_stopped and ended["result"] == "stopped"):
            self.assertEqual(ended["result"], "failed", ended)
            self.assertRegex(ended["failure"]["sentence"], "|".join(WHY))
        summary = self.json("status", name)
        self.assertEqual(summary["result"], ended["result"])
        self.assert_balanced(summary)
        self.assert_accounted(name, summary)

    def begin_again(self, failed):
        """Another driver starts what ended because its worker went, and nothing else; a user starts
        the rest."""
        wanted = {name for name, ended in failed.items() if ended["wanted"]}
        if wanted and self.rng.random() < 0.5:
            self.start_again("driver", self.daemons["driver"])
            for name in WORKERS:
                if name in wanted or name not in failed:
                    self.assertIsNone(self.come_further(name), name)
            now = {a["name"]: a["run"] for a in self.json("list")["applications"]}
            self.assertEqual(set(now), set(WORKERS) - set(failed) | wanted)
            for name in now:
                self.assertEqual(now[name] > self.runs[name], name in wanted, name)
            failed = {name: ended for name, ended in failed.items() if name not in wanted}
        for name in failed:
            self.ctl("restart", name)
        self.remember()
        for name in failed:
            self.assertIsNone(self.come_further(name), name)

    def end(self):
        self.ctl("stop", "--all")
        for name in WORKERS:
            summary = self.json("status", name)
            self.assertEqual(summary["result"], "stopped", summary)
            self.assert_balanced(summary)
            self.assert_accounted(name, summary)
        for daemon in self.daemons.values():
            daemon.signal(signal.SIGTERM)
            self.assertEqual(daemon.wait(), 0, daemon.stderr)
        self.assert_nothing_left()
        self.assert_clean_logs()

    def assert_accounted(self, name, summary):
        """The counts of a run against what its operators wrote down in it."""
        if summary["started_unix_ns"] == 0:  # what is written is of the run before
            self.assertEqual([f["sent"] for f in summary["flows"] if f["sent"]], [])
            return
        first, last = (self.flow(summary, flow) for flow in FLOWS[name])
        sent, received = self.numbers(name, "sent"), self.numbers(name, "received")
        deaths = sum(f["restarts"] for f in summary["fragments"]) + (summary["result"] == "failed")
        exact = all(f["exact"] for f in summary["flows"])
        words = "%s: %d sent, %d received, %d deaths: %r" % (name, len(sent), len(received), deaths, summary["flows"])
        if exact:  # who is killed between his deed and his line has done one more than he wrote
            self.assertTrue(len(sent) <= first["sent"] <= len(sent) + deaths, words)
            self.assertTrue(len(received) <= last["delivered"] <= len(received) + deaths, words)
        self.assertEqual(received, sorted(received))
        self.assertLessEqual(len(received) - len(set(received)), deaths, words)
        for flow in summary["flows"]:
            # Where the last counts of a host are gone, what it did since is taken for lost.
            self.assertLessEqual(flow["lost"] if exact else flow["lost_at_least"], deaths * HELD, words)
            if deaths == 0:
                self.assertEqual((flow["lost"], flow["in_flight"]), (0, 0), words)
        if deaths == 0 and not any(sum(f["dropped"].values()) for f in summary["flows"]):
            self.assertEqual(received, sent, words)
