# SPDX-License-Identifier: Apache-2.0
"""The key of a worker was stolen, and the thief stands between that worker and its driver while the
key is exchanged."""
import re
import select
import signal
import threading

import victim  # first: it knows where the others are
import cluster
import middle
import thief


class Cutting(middle.Middle):
    """Ends the second connection in place of the driver's last word on it, WELCOME. While `refuses`
    is set, he is a stranger who refuses every key: `refused` has what was offered."""

    begun, refuses, refused = 0, False, b""

    def _refuse(self, worker, driver):
        self.refused += worker.recv(1 << 16)
        worker.sendall(bytes((21, 3, 3, 0, 2, 2, 51)))  # a fatal alert: decrypt_error
        self._close(worker, driver)

    def _begin(self, worker, driver):
        self.begun += 1
        if self.refuses:
            self._refuse(worker, driver)
            return
        if self.begun != 2:
            super()._begin(worker, driver)
            return
        said = 0
        while True:
            one = select.select([worker, driver], [], [])[0][0]
            data = one.recv(1 << 16)
            if one is driver and said > 1:
                self._close(worker, driver)
                return
            said += one is worker
            (worker if one is driver else driver).sendall(data)


class Exchange(victim.Keyed):
    def hangup(self, p):
        seen = p.stderr.count("SIGHUP: has read ")
        p.signal(signal.SIGHUP)
        self.wait_until("the file is read", lambda: p.stderr.count("SIGHUP: has read ") > seen)

    def line(self, path):
        with open(path) as f:
            return [line for line in f if line.startswith("frag-key-")][0]

    def ask(self, *words):
        client = self.start("fragctl", *words, "--address", self.address, "--key-file", self.key)
        self.assertEqual(client.wait(), 0, client.stderr)
        return client.stdout

    def put(self, path, *lines):
        with open(path, "w") as f:
            f.writelines(lines)

    def begin_with(self, between, knows_old=True, has_joined=True):
        """A driver and a worker, whose key is exchanged; between(driver's address, key): who stands
        between the two. Its file has the new key then, and the worker was told."""
        self.old, self.new = (self.line(self.new_key(name)) for name in ("old", "new"))
        good = self.line(self.key)
        own = self.new_key("own")
        self.put(own, self.old)
        self.put(self.key, good, *([self.old] if knows_old else []))
        self.d = self.start("driverd", "--address", "127.0.0.1:0", "--key-file", self.key)
        self.address = self.d.wait_line(r"listening on (\S+:\d+)").group(1)
        self.thief = between(self.address, self.old)
        self.addCleanup(self.thief.end)
        self.w = self.worker("--key-file", own, "--name", "w", address=self.thief.address)
        if has_joined:
            self.d.wait_line("worker w joined from .* with the key old$")
        else:
            self.assertTrue(self.thief.holds.wait(cluster.PATIENCE_S))
        self.put(self.key, good, *([self.old] if knows_old else []), self.new)
        self.hangup(self.d)
        self.put(own, self.new)
        self.hangup(self.w)
        self.without_old = (good, self.new)

    def joined(self):
        return re.findall(r"worker w joined from \S+ with the key (\S+)$", self.d.stderr, re.M)

    def test_a_relayed_exchange_gives_the_thief_nothing(self):
        """He cannot make the session that he has with the driver one by the new key."""
        self.begin_with(thief.Thief)
        why = "its session is over another connection than here, so somebody who has the key old stands between"
        self.d.wait_line("refused .*: %s; remove that one from the driver's file$" % why)
        self.w.wait_line("error keys: leaves its session for one by the key new, whose driver refuses it: " + why)
        self.d.wait_line("worker w joined from .* with the key new$")
        self.assertNotIn("goes on with the key", self.d.stderr)
        self.assertNotIn("takes the key", self.w.stderr)
        self.assertEqual(self.joined(), ["old", "new"])
        self.assertRegex(self.ask("events"), "refused .*: " + why)
        read = len(self.thief.read)
        self.assertGreater(read, 1, "he read HELLO and WELCOME")
        self.put(self.key, *self.without_old)
        self.hangup(self.d)
        self.ask("workers")
        self.assertEqual(len(self.thief.read), read, "he reads nothing of the session by the new key")

    def test_a_man_in_the_middle_without_the_key_does_not_disturb_it(self):
        self.begin_with(lambda address, key: middle.Middle(address))
        self.d.wait_line("worker w goes on with the key new in place of key old$")
        self.w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.put(self.key, *self.without_old)
        self.hangup(self.d)
        self.ask("workers")
        self.assertEqual(self.joined(), ["old"])

    def test_a_thief_who_stops_the_exchange_ends_with_the_old_key(self):
        """The worker stays with him, and says so; the driver ends what he has there."""
        class Stopping(thief.Thief):
            def _pass(self, worker, driver):
                self._close(worker, driver)

        self.begin_with(Stopping)
        self.w.wait_line("error keys: keeps the keys that it has: the key new cannot be proven to the driver: ")
        self.assertEqual(self.joined(), ["old"])
        self.put(self.key, *self.without_old)
        self.hangup(self.d)
        self.d.wait_line("closes the connection of .*: its key old is no longer in the key file$")

    def lose_the_answer(self):
        """The driver holds the session by the new key then, and the worker by the old one."""
        self.begin_with(lambda address, key: Cutting(address))
        self.d.wait_line("worker w goes on with the key new in place of key old$")
        self.w.wait_line("error keys: keeps the keys that it has: the key new cannot be proven to the driver: "
                         ".*; it is tried again with the next session, or on SIGHUP$")

    def test_an_exchange_whose_answer_is_lost_is_made_again(self):
        self.lose_the_answer()
        self.put(self.key, *self.without_old)
        self.hangup(self.d)
        self.ask("workers")
        self.hangup(self.w)
        self.w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.assertEqual(self.joined(), ["old"])

    def test_a_key_is_taken_back_after_an_answer_that_was_lost(self):
        self.lose_the_answer()
        self.put(self.path("own.key"), self.old)
        self.hangup(self.w)
        self.d.wait_line("worker w goes on with the key old in place of key new$")
        self.w.wait_line("the driver takes the key old, and the session goes on with it$")
        self.assertEqual(self.joined(), ["old"])

    def test_the_new_key_is_used_once_the_old_one_is_refused(self):
        self.lose_the_answer()
        self.put(self.key, *self.without_old)
        self.d.kill()
        self.d.wait()
        self.d = self.start("driverd", "--address", self.address, "--key-file", self.key)
        self.d.wait_line("worker w joined from .* with the key new$")

    def test_a_stranger_who_refuses_the_old_key_does_not_bring_the_new_one(self):
        """What runs belongs to a driver that the worker knows by the old one."""
        self.lose_the_answer()
        self.thief.refuses = True
        self.thief._close(*self.thief._socks)
        self.wait_until("both keys are refused", lambda: self.thief.refused.count(b"old") > 3 and
                        self.thief.refused.count(b"new") > 1)
        self.thief.refuses = False
        self.w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.assertEqual(self.joined(), ["old", "old"])

    def test_a_refused_exchange_does_not_hide_one_whose_answer_was_lost(self):
        """The driver gives the key in the worker's file to clients only, and says so after HELLO."""
        self.lose_the_answer()
        _, name, _, secret = self.line(self.new_key("third")).split()
        self.put(self.key, *self.without_old, self.old, "frag-key-1 %s client %s\n" % (name, secret))
        self.hangup(self.d)
        self.put(self.path("own.key"), "frag-key-1 %s worker %s\n" % (name, secret))
        self.hangup(self.w)
        self.w.wait_line("error keys: keeps the keys that it has: the driver does not take the key third of ")
        self.put(self.path("own.key"), self.old)
        self.hangup(self.w)
        self.d.wait_line("worker w goes on with the key old in place of key new$")
        self.assertEqual(self.joined(), ["old"])

    def test_a_file_that_is_read_while_the_session_begins_waits_for_it(self):
        """WELCOME is under way."""
        release, down = threading.Event(), []

        def change(way, data):
            down.extend([data] if way == middle.DOWN else [])
            if len(down) == 2:
                release.wait(cluster.PATIENCE_S)
            return data

        self.begin_with(lambda address, key: middle.Middle(address, change))
        self.assertNotIn("attached to", self.w.stderr)
        release.set()
        self.w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.assertEqual(self.joined(), ["old"])

    def hold_the_handshake(self, **how):
        """Of the first connection, until the worker has read its file again."""
        class Holding(middle.Middle):
            holds, release = threading.Event(), threading.Event()

            def change_first(self, way, data):
                if way == middle.DOWN:
                    self.holds.set()
                    self.release.wait(cluster.PATIENCE_S)
                return data

        def between(address, key):
            held = Holding(address)
            held.change = held.change_first
            return held

        self.begin_with(between, has_joined=False, **how)
        self.assertEqual(self.joined(), [])
        self.thief.release.set()

    def test_a_file_that_is_read_during_the_handshake_waits_for_the_session(self):
        self.hold_the_handshake()
        self.w.wait_line("the driver takes the key new, and the session goes on with it$")
        self.assertEqual(self.joined(), ["old"])

    def test_a_first_key_that_is_refused_gives_way_to_the_one_read_meanwhile(self):
        self.hold_the_handshake(knows_old=False)
        self.d.wait_line("worker w joined from .* with the key new$")
        self.assertEqual(self.joined(), ["new"])
