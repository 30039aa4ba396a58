# SPDX-License-Identifier: Apache-2.0
"""Keys of the control connection: who gets in, who does not, what both ends say, and how keys are
exchanged while daemons run."""
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import unittest

import cluster
import test_notify
import test_secrets

# sends until it is stopped
APP = """
frag: 1
application: steady
fragments:
  fragment1:
    operators:
      tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 10ms}]}
  fragment2:
    operators:
      rx: {type: ping_rx}
flows:
  - fragment1.tx.out -> fragment2.rx.in
"""


class KeyTest(cluster.ClusterTest):
    app_text = APP

    def setUp(self):
        super().setUp()
        self.key = self.new_key("frag.key")

    def new_key(self, name, *flags):
        """A key file made as the guide says; with several calls it gets several keys."""
        path = self.path(name)
        with open(path, "a") as f:
            p = subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new", *flags], stdout=f,
                               stderr=subprocess.PIPE, text=True, env=self.env, check=True)
        self.notes = p.stderr
        return path

    def lines(self, path):
        with open(path) as f:
            return f.read().splitlines(keepends=True)

    def put(self, path, lines):
        with open(path, "w") as f:
            f.writelines(lines)

    def serve(self, *flags):
        return self.driver(self.app, "--key-file", self.key, *flags)

    def refused(self, worker, *patterns):
        self.assertEqual(worker.wait(), 5, worker.stderr)
        for pattern in patterns:
            self.assertRegex(worker.stderr, pattern)

    def assert_silent(self, *processes):
        """No secret stands in what was printed."""
        secrets = {line.split()[3] for name in os.listdir(self.folder) if name.endswith(".key")
                   for line in self.lines(self.path(name))}
        for p in processes:
            for secret in secrets:
                self.assertNotIn(secret, p.stdout + p.stderr)


class Joining(KeyTest):
    def test_a_common_key_joins(self):
        d = self.serve("-v", "-v")
        w = self.worker("--key-file", self.key, "-v", "-v", "--once")
        d.wait_line(r"worker \S+ joined from 127\.0\.0\.1:\d+ with the key key-[0-9a-f]{8}$")
        w.wait_line(r"Rx message value: 10$")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_silent(d, w)
        self.assert_nothing_left()

    def test_two_workers_with_keys_of_their_own(self):
        self.put(self.key, [])
        for name in ("one", "two"):
            self.put(self.path(name + ".key"), [])
            self.new_key(name + ".key", "--name", name, "--role", "worker")
            os.chmod(self.path(name + ".key"), 0o600)
        self.put(self.key, self.lines(self.path("one.key")) + ["# of node two\n"] + self.lines(self.path("two.key")))
        d = self.serve()
        a = self.worker("--key-file", self.path("one.key"), "--name", "a", fragments="fragment1")
        b = self.worker("--key-file", self.path("two.key"), "--name", "b", fragments="fragment2")
        d.wait_line("worker a joined .* with the key one$")
        d.wait_line("worker b joined .* with the key two$")
        b.wait_line(r"Rx message value: 10$")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        for w in (a, b):
            w.signal(signal.SIGTERM)
            self.assertEqual(w.wait(), 0, w.stderr)
        self.assert_nothing_left()

    def test_another_key_is_refused(self):
        d = self.serve()
        other = self.new_key("other.key", "--name", "other")
        self.refused(self.worker("--key-file", other),
                     'cannot attach to the driver at .*: it does not accept the key "other"')
        d.wait_line(r'closed the connection of 127\.0\.0\.1:\d+: its key "other" is not in the key file$')

    def test_a_key_of_another_role_is_refused(self):
        self.put(self.key, [])
        self.new_key("frag.key", "--name", "eyes", "--role", "client")
        d = self.serve()
        same = self.path("same.key")
        self.put(same, [self.lines(self.key)[0].replace(" client ", " worker ")])
        os.chmod(same, 0o600)
        self.refused(self.worker("--key-file", same), "refused this worker: its key eyes is not for a worker$")
        d.wait_line(r"refused 127\.0\.0\.1:\d+: its key eyes is not for a worker$")

    def client(self, key, *args):
        """fragctl over TCP, as on another machine."""
        p = self.start("fragctl", *args, "--address", self.address, "--key-file", key,
                       env={"XDG_RUNTIME_DIR": self.scratch})
        return p.wait(), p.stdout, p.stderr

    def test_an_observer_reads_and_commands_nothing(self):
        self.put(self.key, [])
        keys = {}
        for role in ("worker", "client", "observer", "observer+payload"):
            name = role.replace("+", "-")
            keys[role] = self.new_key(name + ".key", "--name", name, "--role", role)
            self.put(self.key, self.lines(self.key) + self.lines(keys[role]))
        d = self.serve()
        w = self.worker("--key-file", keys["worker"], "--once")
        w.wait_line(r"Rx message value: 1$")
        for role in ("observer", "observer+payload"):
            key = keys[role]
            code, listed, errors = self.client(key, "list")
            self.assertEqual(code, 0, errors)
            self.assertIn("steady", listed)
            for command in (("stop", "steady"), ("set", "steady", "fragment1.tx.x=1"), ("start", self.app)):
                code, out, errors = self.client(key, *command)
                self.assertEqual((code, out), (5, ""), errors)
                self.assertIn("this needs the role client, which key %s does not have" % role.replace("+", "-"), errors)
            code, out, errors = self.client(key, "echo", "steady", "fragment1.tx", "-n", "1")
            self.assertEqual((code, out != ""), (5, False) if role == "observer" else (0, True), errors)
            refused = self.worker("--key-file", key)
            self.assertEqual(refused.wait(), 2, refused.stderr)
            self.assertIn("has no key for a worker", refused.stderr)
        code, _, errors = self.client(keys["worker"], "list")
        self.assertEqual(code, 2, errors)
        self.assertIn("has no key for a client; `fragctl key new --role client` makes one", errors)
        self.assertEqual(self.client(keys["client"], "stop", "steady")[0], 0)
        self.assertEqual((d.wait(), w.wait()), (0, 0), d.stderr)
        self.assertEqual(d.stderr.count("refused `fragctl stop` of key observer:"), 1, "once a session")
        self.assert_nothing_left()

    def test_a_worker_without_a_key_is_refused(self):
        d = self.serve()
        self.refused(self.worker(), "refused this worker: it wants a key; give --key-file")
        d.wait_line("closed the connection of .*: it does not speak TLS, so it has no key")

    def test_a_driver_without_a_key_is_refused(self):
        d = self.driver(self.app)
        self.refused(self.worker("--key-file", self.key),
                     "cannot attach to the driver .*: it has no key, and this side has one; give --key-file to both sides$")
        d.wait_line("closed the connection of .*: it has a key, and this side has none")

    def test_another_program_at_the_drivers_port_is_waited_out(self):
        """What has no key cannot end a worker by closing: the driver may come later."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            w = self.worker("--key-file", self.key, address="127.0.0.1:%d" % server.getsockname()[1])
            server.accept()[0].close()
            w.wait_line("waiting for the driver at .*: .*(during the TLS handshake|reset)")
            server.accept()[0].close()
        w.signal(signal.SIGTERM)
        self.assertEqual(w.wait(), 0)


class Files(KeyTest):
    def test_a_file_of_the_shell_is_closed_to_others(self):
        self.assertEqual(os.stat(self.key).st_mode & 0o777, 0o600)
        self.assertIn("gave the file mode 0600", self.notes)

    def test_a_file_that_others_may_read_is_3(self):
        os.chmod(self.key, 0o640)
        for p in (self.start("driverd", "--app", self.app, "--address", "127.0.0.1:0", "--key-file", self.key),
                  self.start("workerd", "--key-file", self.key)):
            self.assertEqual(p.wait(), 3, p.stderr)
            self.assertIn("run: chmod 600 " + self.key, p.stderr)

    def test_a_file_without_keys_is_2(self):
        self.put(self.key, ["# later\n"])
        p = self.start("workerd", "--key-file", self.key)
        self.assertEqual(p.wait(), 2, p.stderr)
        self.assertIn("holds no key", p.stderr)

    def test_an_address_of_the_network_needs_a_key(self):
        for p in (self.start("driverd", "--app", self.app, "--address", "0.0.0.0:0"),
                  self.start("workerd", "--address", "192.0.2.1")):
            self.assertEqual(p.wait(), 2, p.stderr)
            for words in ("fragctl key new > frag.key", "scp -p frag.key NODE:", "--insecure"):
                self.assertIn(words, p.stderr)
        d = self.driver(self.app, "--key-file", self.key, address="0.0.0.0:0")
        w = self.worker("--key-file", self.key, address="127.0.0.1:" + self.address.rsplit(":", 1)[1])
        d.wait_line("joined from .* with the key")
        for p in (d, w):
            p.signal(signal.SIGTERM)

    def test_fragctl_makes_and_lists_keys(self):
        def key(*args):
            p = self.start("fragctl", "key", *args)
            return p.wait(), p.stdout, p.stderr

        path = self.path("new.key")
        self.assertEqual(key("new", path, "--name", "node7", "--role", "worker")[0], 0)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        self.assertEqual(key("new", "--name", "eyes", "--role=client", path)[0], 0)
        code, listed, _ = key("list", path)
        self.assertEqual(code, 0)
        secrets = [bytes.fromhex(line.split()[3]) for line in self.lines(path)]
        self.assertEqual([line.split() for line in listed.splitlines()],
                         [["node7", "worker", hashlib.sha256(secrets[0]).hexdigest()[:16]],
                          ["eyes", "client", hashlib.sha256(secrets[1]).hexdigest()[:16]]])
        code, document, _ = key("list", "-o", "json", path)
        self.assertEqual(json.loads(document), {"keys": [dict(zip(("name", "role", "fingerprint"), line.split()))
                                                         for line in listed.splitlines()]})
        first, second = listed.splitlines()
        self.assertEqual(first.index("worker"), second.index("client"))
        long = "a-key-with-a-name-of-thirty-and-more"
        self.assertEqual(key("new", path, "--name", long)[0], 0)
        self.assertEqual({line.index(role) for line, role in zip(key("list", path)[1].splitlines(), (" worker", " client", " any"))},
                         {len(long)})
        self.assertEqual(key("new", path, "--name", "eye2", "--role", "observer+payload")[0], 0)
        self.assertIn("observer+payload", key("list", path)[1])
        self.assertRegex(key("new")[1], r"^frag-key-1 key-[0-9a-f]{8} any [0-9a-f]{64}$")
        for wrong in (("new", "--role", "root"), ("new", "--name", "a b"), ("list",), ("list", path, "x"),
                      ("list", "--role", "any", path), ("delete",), (), ("list", "-o", "xml", path),
                      ("new", "-o", "json")):
            self.assertEqual(key(*wrong)[0], 2, wrong)
        os.chmod(path, 0o644)
        self.assertEqual(key("new", path)[0], 3)
        self.assertEqual(key("list", path)[0], 3)
        # a link that leads to a file of keys is followed, one that leads nowhere makes none there
        link, target = self.path("link.key"), self.path("target.key")
        os.symlink(target, link)
        code, _, errors = key("new", link)
        self.assertEqual((code, os.path.exists(target)), (3, False))
        self.assertIn("cannot write %s: File exists" % link, errors)
        self.assertEqual([key("new", where)[0] for where in (target, link)], [0, 0])
        self.assertEqual(len(list(self.lines(target))), 2)
        self.assertEqual(key("list", self.path("none.key"))[0], 3)


def memory(pid):
    """The readable memory of a process: (it stays out of core files, its bytes) of each mapping."""
    with open("/proc/%d/smaps" % pid) as f:
        maps = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r\S+ .*?^VmFlags: ([^\n]*)$", f.read(), re.M | re.S)
    with open("/proc/%d/mem" % pid, "rb") as f:
        for start, end, flags in maps:
            try:
                f.seek(int(start, 16))
                yield "dd" in flags.split(), f.read(int(end, 16) - int(start, 16))
            except (OSError, ValueError, OverflowError):
                pass  # of the kernel's


@unittest.skipIf("ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ,
                 "a sanitizer keeps copies of memory")
class Memory(KeyTest):
    def found(self, pid, secret):
        """Whether each place where a process holds a key stays out of core files."""
        return {hidden for hidden, held in memory(pid)
                for form in (bytes.fromhex(secret), secret.encode()) if form in held}

    def assert_kept(self, pid, secret, is_there):
        self.assertEqual(self.found(pid, secret), {True} if is_there else set(), "process %d" % pid)

    def test_keys_stay_out_of_core_files_and_children(self):
        d = self.serve()
        w = self.worker("--key-file", self.key)
        w.wait_line(r"Rx message value: 10$")
        secret = self.lines(self.key)[0].split()[3]
        for p in (d, w):
            self.assert_kept(p.pid, secret, True)
        for pid in [*self.hosts(), self.reporter_of(w)]:
            self.assert_kept(pid, secret, False)
        # what was read from a file that is gone is gone too
        self.new_key("frag.key", "--name", "second")
        second = self.lines(self.key)[1].split()[3]
        d.signal(signal.SIGHUP)
        # Behind that line it unmaps its former keys: what changes while it is read is not seen.
        self.wait_until("the second key to be there", lambda: self.found(d.pid, second) == {True})
        self.put(self.key, self.lines(self.key)[:1])
        d.signal(signal.SIGHUP)
        self.wait_until("the key to be gone", lambda: not self.found(d.pid, second))
        for p in (d, w):
            p.signal(signal.SIGTERM)
            self.assertEqual(p.wait(), 0, p.stderr)


class Rotation(KeyTest):
    def hangup(self, p):
        p.signal(signal.SIGHUP)

    def test_keys_are_exchanged_while_the_daemons_run(self):
        d = self.serve()
        w = self.worker("--key-file", self.key)
        d.wait_line("runs in 1 host")
        old = self.lines(self.key)
        self.new_key("frag.key", "--name", "second")
        self.put(self.key, self.lines(self.key)[::-1])
        self.hangup(d)  # and not the worker, whose session holds by the old key
        d.wait_line("SIGHUP: has read ")
        late = self.worker("--key-file", self.key, "--name", "late")
        d.wait_line("worker late joined .* with the key second$")
        self.assertEqual(len([l for l in d.stderr.splitlines() if " joined " in l]), 2, "the first one stays")
        self.put(self.key, [l for l in self.lines(self.key) if l not in old])
        self.hangup(d)
        name = old[0].split()[1]
        d.wait_line("closes the connection of .*: its key %s is no longer in the key file$" % name)
        self.assertEqual(d.wait(), 1, d.stderr)
        self.assertRegex(d.stderr, "its key %s is no longer in the key file" % name)
        w.wait_line("has revoked this worker: its key %s is no longer in the key file; 1 host ends" % name)
        for p in (w, late):
            p.signal(signal.SIGTERM)
            self.assertEqual(p.wait(), 0, p.stderr)
        self.assert_silent(d, w, late)
        self.assert_nothing_left()

    def test_what_runs_by_a_revoked_key_of_a_service_ends(self):
        """The worker is told so in its session; a handshake that is refused ends nothing."""
        gone = self.new_key("worker.key", "--name", "gone")
        both = self.lines(self.key) + self.lines(gone)
        self.put(self.key, both)
        d = self.start("driverd", "--address", "127.0.0.1:0", "--key-file", self.key)
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        w = self.worker("--key-file", gone)
        d.wait_line("joined from .* with the key gone$")
        client = self.start("fragctl", "start", self.app, "--address", self.address)
        self.assertEqual(client.wait(), 0, client.stderr)
        self.wait_until("its host", lambda: len(self.hosts()) == 1)
        # a driver that comes back without the key, by mistake: what runs here runs on
        host = self.hosts()
        d.kill()
        d.wait()
        self.put(self.key, both[:1])
        d = self.start("driverd", "--address", self.address, "--key-file", self.key)
        w.wait_line("waiting for the driver|lost the driver")
        d.wait_line("knows no key of that name|closed the connection")
        self.assertEqual(self.hosts(), host)
        self.put(self.key, both)
        self.hangup(d)
        w.wait_line("back at the driver")
        self.assertEqual(self.hosts(), host)
        self.put(self.key, both[:1])
        self.hangup(d)
        w.wait_line("has revoked this worker: its key gone is no longer in the key file; 1 host ends$")
        self.wait_until("the end of its host", lambda: not self.hosts())
        w.signal(signal.SIGTERM)
        self.assertEqual(w.wait(), 0, w.stderr)

    def test_a_revoked_worker_that_is_away_is_named_and_its_host_refused_by_peers(self):
        """It cannot be told. Its host runs on, beside the one that took its place: what that one
        sends is received, and nothing of the other."""
        workers = {name: self.new_key(name + ".key", "--name", name) for name in "abc"}
        keys = [line for path in (self.key, *workers.values()) for line in self.lines(path)]
        self.put(self.key, keys)
        d = self.start("driverd", "--address", "127.0.0.1:0", "--key-file", self.key)
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        cable = test_secrets.Relay(self.address)
        self.addCleanup(cable.close)
        a = self.worker("--name", "a", "--key-file", workers["a"], fragments="fragment2")
        self.worker("--name", "b", "--key-file", workers["b"], fragments="fragment1",
                    address=cable.address)
        d.wait_line("worker a joined")
        d.wait_line("worker b joined")
        app = self.write("moves.yaml", APP.replace(
            "fragment1:", "fragment1:\n    on_failure: {policy: migrate, lease: 0s}", 1))
        client = self.start("fragctl", "start", app, "--address", self.address)
        self.assertEqual(client.wait(), 0, client.stderr)
        a.wait_line("value: 20$")
        cable.close()
        d.wait_line("fragment1 waits for a worker")
        self.put(self.key, [line for line in keys if " b " not in line])
        self.hangup(d)
        d.wait_line("worker b cannot be told that its key b is no longer in the key file: this may "
                    "still run there: fragment1 of steady$")
        self.worker("--name", "c", "--key-file", workers["c"])
        d.wait_line("fragment1 runs again on worker c")
        a.wait_line("value: 60$")
        self.assertEqual(len(self.hosts()), 3, "the old one is there")
        values = [int(v) for v in re.findall(r"value: (\d+)$", a.stderr, re.M)]
        second = values.index(1, 1)
        self.assertEqual(values[:second], list(range(1, second + 1)))
        self.assertEqual(values[second:], list(range(1, len(values) - second + 1)))

    def serve_one(self):
        """A service with one application at a worker that has a key of its own, and their managers."""
        self.own = self.new_key("own.key", "--name", "old", "--role", "worker")
        self.put(self.key, self.lines(self.key) + self.lines(self.own))
        self.managers = [test_notify.Manager(self, name) for name in ("d", "w")]
        d = self.start("driverd", "--address", "127.0.0.1:0", "--key-file", self.key, env=self.managers[0].env)
        self.address = d.wait_line(r"listening on (\S+:\d+)").group(1)
        w = self.worker("--key-file", self.own, env=self.managers[1].env)
        d.wait_line("joined from .* with the key old$")
        self.ask("start", self.app)
        self.wait_until("its host", lambda: len(self.hosts()) == 1)
        self.host = self.hosts()
        return d, w

    def ask(self, *words):
        client = self.start("fragctl", *words, "--address", self.address)
        self.assertEqual(client.wait(), 0, client.stderr)
        return client.stdout

    def runs_on(self):
        self.assertEqual(self.hosts(), self.host)
        self.assertRegex(self.ask("list"), r"(?m)^steady +running ")

    def goes_on_at_the_next_driver(self, d, w):
        """It has proven the new key, and adopts what runs. Returns it."""
        d.kill()
        d.wait()
        d = self.start("driverd", "--address", self.address, "--key-file", self.key)
        d.wait_line("joined from .* with the key new$")
        w.wait_line("back at the driver")
        self.wait_until("it is adopted", lambda: re.search(r"(?m)^steady +running ", self.ask("list")))
        self.runs_on()
        return d

    def test_a_worker_exchanges_its_key_and_nothing_ends(self):
        """As OPERATIONS says it: the driver gets the new key, then the worker, and the driver forgets the old one."""
        d, w = self.serve_one()
        self.assertEqual(self.start("fragctl", "key", "new", "--role", "worker", "--name", "new", self.path("new.key")).wait(), 0)
        both = self.lines(self.key)
        self.put(self.key, both + self.lines(self.path("new.key")))
        self.hangup(d)
        d.wait_line("SIGHUP: has read ")
        self.put(self.own, self.lines(self.path("new.key")))
        self.hangup(w)
        w.wait_line("the driver takes the key new, and the session goes on with it$")
        d.wait_line("worker .* goes on with the key new in place of key old$")
        self.put(self.key, both[:-1] + self.lines(self.path("new.key")))
        self.hangup(d)
        self.wait_until("both", lambda: d.stderr.count("SIGHUP: has read ") == 2)
        self.runs_on()
        self.hangup(w)  # with nothing new
        self.wait_until("again", lambda: w.stderr.count("SIGHUP: has read ") == 2)
        d = self.goes_on_at_the_next_driver(d, w)
        self.assertEqual(w.stderr.count("the driver takes"), 1)
        self.put(self.key, both[:-1])
        self.hangup(d)
        w.wait_line("has revoked this worker: its key new is no longer in the key file; 1 host ends$")
        self.wait_until("the end of its host", lambda: not self.hosts())

    def test_the_last_of_several_files_in_a_row_holds(self):
        """The driver answers none of the exchanges until the worker has read its file for the last time."""
        d, w = self.serve_one()
        old = self.lines(self.own)
        new = self.lines(self.new_key("new.key", "--name", "new", "--role", "worker"))
        self.put(self.key, self.lines(self.key) + new)
        self.hangup(d)
        d.wait_line("SIGHUP: has read ")
        d.signal(signal.SIGSTOP)
        self.put(self.own, new)
        self.hangup(w)
        w.wait_line("SIGHUP: has read ")
        self.put(self.own, [])
        self.hangup(w)  # a file without a key changes nothing: the exchange goes on
        w.wait_line("keeps the keys that it has: .* holds no key")
        d.signal(signal.SIGCONT)
        w.wait_line("the driver takes the key new, and the session goes on with it$")
        d.wait_line("goes on with the key new in place of key old$")
        d.signal(signal.SIGSTOP)
        self.put(self.own, old)
        self.hangup(w)
        self.wait_until("the old one", lambda: w.stderr.count("SIGHUP: has read ") == 2)
        self.put(self.own, new)
        self.hangup(w)  # the driver has heard nothing of the old one
        self.wait_until("the new one", lambda: w.stderr.count("SIGHUP: has read ") == 3)
        d.signal(signal.SIGCONT)
        self.runs_on()
        self.assertNotIn("goes on with the key old", d.stderr)
        self.goes_on_at_the_next_driver(d, w)

    def test_an_exchange_that_the_death_of_the_driver_cuts_off_is_made_with_the_next_one(self):
        """The worker comes back by the old key, so the next driver adopts what runs."""
        d, w = self.serve_one()
        new = self.lines(self.new_key("new.key", "--name", "new", "--role", "worker"))
        self.put(self.key, self.lines(self.key) + new)
        d.signal(signal.SIGSTOP)
        self.put(self.own, new)
        self.hangup(w)
        w.wait_line("SIGHUP: has read ")
        d.kill()
        d.wait()
        d = self.start("driverd", "--address", self.address, "--key-file", self.key)
        d.wait_line("joined from .* with the key old$")
        d.wait_line("goes on with the key new in place of key old$")
        w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.wait_until("it is adopted", lambda: re.search(r"(?m)^steady +running ", self.ask("list")))
        self.runs_on()
        self.goes_on_at_the_next_driver(d, w)

    def test_a_key_that_is_read_while_the_driver_is_away_is_exchanged_with_the_next_one(self):
        """By another key the hosts' driver would be another one, and they would end."""
        d, w = self.serve_one()
        new = self.lines(self.new_key("new.key", "--name", "new", "--role", "worker"))
        self.put(self.key, self.lines(self.key) + new)
        d.kill()
        d.wait()
        w.wait_line("lost the driver")
        self.put(self.own, new)
        self.hangup(w)
        w.wait_line("SIGHUP: has read ")
        d = self.start("driverd", "--address", self.address, "--key-file", self.key)
        d.wait_line("joined from .* with the key old$")
        d.wait_line("goes on with the key new in place of key old$")
        self.wait_until("it is adopted", lambda: re.search(r"(?m)^steady +running ", self.ask("list")))
        self.runs_on()
        self.goes_on_at_the_next_driver(d, w)

    def test_an_exchanged_key_is_revoked_although_the_old_one_is_there(self):
        d, w = self.serve_one()
        first = self.lines(self.key)
        self.put(self.key, first + self.lines(self.new_key("new.key", "--name", "new", "--role", "worker")))
        self.hangup(d)
        d.wait_line("SIGHUP: has read ")
        self.put(self.own, self.lines(self.path("new.key")))
        self.hangup(w)
        d.wait_line("goes on with the key new in place of key old$")
        self.put(self.key, first)
        self.hangup(d)
        w.wait_line("has revoked this worker: its key new is no longer in the key file; 1 host ends$")
        self.wait_until("the end of its host", lambda: not self.hosts())

    def test_a_mistake_in_a_workers_key_file_ends_nothing(self):
        d, w = self.serve_one()
        [right] = self.lines(self.own)
        secret = right.split()[3]
        other = ("0" if secret[0] != "0" else "1") + secret[1:]
        refused = r"the driver does not take the key %s of .*: .*; correct that file, or add the key to the driver's, " \
                  "then send SIGHUP again"
        for text, why in ((right.replace(secret, secret[1:]), "line 1 has a secret that is not 64 hexadecimal digits"),
                          (right.replace("frag-key-1", "frag-key"), "line 1 is no key"),
                          (right.replace(" worker ", " client "), "has no key for a worker"),
                          ("", "holds no key"),
                          (self.lines(self.new_key("a.key", "--name", "a", "--role", "worker"))[0] + right,
                           refused % "a"),  # the first one is used
                          (right.replace(secret, other), refused % "old"),
                          (right.replace(" old ", " odl "), refused % "odl"),
                          (self.lines(self.path("a.key"))[0], refused % "a")):
            with self.subTest(text=text.replace(secret, "...")):
                seen = w.stderr.count("keeps the keys")
                self.put(self.own, text)
                self.hangup(w)
                self.wait_until("a sentence", lambda: w.stderr.count("keeps the keys") > seen)
                line = w.stderr[w.stderr.rindex("keeps the keys that it has: "):].splitlines()[0]
                self.assertRegex(line, why)
                self.runs_on()
                self.managers[1].wait("STATUS=attached to the driver at %s, runs 1 host; keeps the keys that it has: "
                                      % self.address)
        os.remove(self.own)
        self.hangup(w)
        w.wait_line("keeps the keys that it has: cannot read .*: No such file")
        self.assertRegex(self.ask("events"), "refused +a connection of 127.0.0.1: ")
        # the right one, and all is well
        self.put(self.own, right)
        os.chmod(self.own, 0o600)
        self.hangup(w)
        self.managers[1].wait("STATUS=attached to the driver at %s, runs 1 host" % self.address)
        w.wait_line("SIGHUP: has read ")
        self.runs_on()
        self.assert_silent(d, w)

    def test_a_mistake_in_the_drivers_key_file_is_an_event_and_its_status(self):
        d, w = self.serve_one()
        right = self.lines(self.key)
        for text, why in ((right[0] + right[1][:-3] + "\n", "line 2 has a secret that is not 64 hexadecimal digits"),
                          ("", "holds no key")):
            self.put(self.key, text)
            self.hangup(d)
            d.wait_line("keeps the keys that it has: .*" + why)
            self.assertRegex(self.ask("events"), "refused +keeps the keys that it has: .*" + why)
            self.managers[0].wait("STATUS=runs 1 application; keeps the keys that it has: ")
            self.runs_on()
        self.put(self.key, right)
        self.hangup(d)
        self.managers[0].wait("STATUS=runs 1 application")
        self.runs_on()

    def test_a_file_that_cannot_be_read_leaves_the_keys_as_they_are(self):
        d = self.serve()
        w = self.worker("--key-file", self.key)
        d.wait_line("runs in 1 host")
        os.chmod(self.key, 0o604)
        for p in (d, w):
            self.hangup(p)
            p.wait_line("error .*keeps the keys that it has: .* is open to other users")
        os.chmod(self.key, 0o600)
        late = self.worker("--key-file", self.key, "--name", "late")
        d.wait_line("worker late joined")
        d.signal(signal.SIGTERM)
        self.assertEqual(d.wait(), 0, d.stderr)
        for p in (w, late):
            p.signal(signal.SIGTERM)
            self.assertEqual(p.wait(), 0, p.stderr)

    def test_without_a_key_file_sighup_stops_the_driver(self):
        d = self.driver(self.app)
        self.hangup(d)
        self.assertEqual(d.wait(), 0, d.stderr)
        self.assertIn("SIGHUP: stops", d.stderr)
