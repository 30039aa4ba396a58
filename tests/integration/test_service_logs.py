# SPDX-License-Identifier: Apache-2.0
"""fragctl logs: what applications of a driver have written travels to their driver, within bounds."""
import signal
import time

from test_service import ServiceTest
from test_service_set import DIAL

TALK = """
frag: 1
application: talk
extensions: [libtalker.so, libdial.so]
fragments:
  left:
    operators:
      talker: {type: talker, parameters: {lines: %d, ticks: %d, pause: %s}}
      dial: {type: dial, conditions: [{type: periodic, recess_period: 5ms}]}
  right:
    operators:
      dial: {type: dial, parameters: {value: 2}, conditions: [{type: periodic, recess_period: 5ms}]}
"""


class Logs(ServiceTest):
    def lines(self, *args):
        return [self.document(line) for line in self.ok("logs", *args, "-o", "json").splitlines()]

    def texts(self, *args):
        return [line["text"] for line in self.lines(*args)]

    def talk(self, lines, ticks, pause="0s"):
        return self.write("talk.yaml", TALK % (lines, ticks, pause))

    def test_lines_of_hosts_and_of_the_driver(self):
        self.serve(workers=("a",))
        self.ok("start", self.talk(2, 1))
        self.wait_until("lines", lambda: "line 2 of the talker, which has much to say" in self.texts("talk"))
        rows = self.lines("talk")
        said = [r for r in rows if r["text"].startswith("line 1 of")][0]
        self.assertEqual((said["worker"], said["fragment"], said["operator"], said["level"]),
                         ("a", "left", "talker", "info"))
        own = [r for r in rows if r["text"] == "runs in 1 host"][0]
        self.assertEqual((own["worker"], own["fragment"], own["operator"]), (None, None, None))
        self.assertEqual(sorted(r["number"] for r in rows), [r["number"] for r in rows])
        self.assertRegex(self.ok("logs", "talk/left/talker").splitlines()[0],
                         r"^\d{4}-\d\d-\d\dT[\d:.]+Z info  a left\.talker: line 1 of the talker, which has much to say$")

    def test_a_part_of_it(self):
        self.serve(workers=("a", "b"))
        self.ok("start", self.talk(2, 1))
        self.wait_until("lines", lambda: len(self.texts("talk/left")) >= 3 and self.texts("talk/right"))
        self.assertEqual({r["fragment"] for r in self.lines("talk/left")}, {"left"})
        self.assertEqual(len(self.texts("talk/left/talker")), 2)
        self.assertEqual(self.texts("talk/right/dial"), ["begins with 2"])
        self.assertEqual(self.texts("talk/left/nobody"), [])
        for op, fragments in (("dial", {"left", "right"}), ("left.dial", {"left"}), ("right.dial", {"right"}),
                              ("right.talker", set()), ("ft.dial", set())):
            rows = self.lines("talk", "--operator", op)
            self.assertEqual(({r["fragment"] for r in rows}, {r["operator"] for r in rows} - {"dial"}), (fragments, set()))
        self.assertTrue(self.texts("talk", "--level", "info"))
        self.assertEqual(self.texts("talk", "--level", "error"), [])

    def test_follow_shows_what_comes(self):
        self.serve(workers=("a",))
        self.ok("start", self.talk(1, 1))
        follower = self.start("fragctl", "logs", "talk/right/dial", "--follow")
        follower.wait_line("begins with 2", "stdout")
        for value in (7, 9):
            self.ok("set", "talk", "right.dial.value=%d" % value)
            follower.wait_line(r"a right\.dial: now %d, soft" % value, "stdout")
        self.ok("restart", "talk")
        self.wait_until("the next run", lambda: follower.stdout.count("begins with") == 2)
        self.assertNotIn("line 1", follower.stdout)
        follower.signal(signal.SIGINT)
        follower.wait()

    def test_a_reader_that_pauses_hears_how_many_lines_it_has_missed(self):
        """Each of five hosts writes more than a fifth of what the driver keeps."""
        d, = self.serve(workers=())
        names = ["f%d" % i for i in range(5)]
        talkers = "".join("  %s: {operators: {t: {type: talker, parameters: {lines: 300, ticks: 1, pause: 60s}}}}\n" % name
                          for name in names)
        text = "frag: 1\napplication: many\nextensions: [libtalker.so]\nfragments:\n" + talkers
        starter = self.start("fragctl", "start", self.write("many.yaml", text))
        d.wait_line("many: waiting for")
        follower = self.start("fragctl", "logs", "many", "--follow")
        follower.wait_line("waiting for", "stdout")
        follower.signal(signal.SIGSTOP)
        d.wait_line("client .* left: it has not been heard")
        workers = [self.worker("--name", name, fragments=name) for name in names]
        self.wait_until("lines that are not kept", lambda: self.lines("many")[0]["number"] > 100)
        follower.signal(signal.SIGCONT)
        follower.wait_line(r"\d+ lines? (is|are) missing: the driver keeps the last ones only")
        self.assertNotIn("waiting for", follower.stdout.partition("line 1 of")[2])
        follower.signal(signal.SIGINT)
        for ended in (follower, starter):
            ended.wait()
        for worker in workers:
            worker.kill()
            worker.wait()

    def test_last_words_are_there_after_the_end(self):
        d, w = self.serve(workers=("a",))
        self.ok("start", self.write("dial.yaml", DIAL), "--name", "mine")
        self.ctl("set", "mine", "left.dial.value=13")
        self.wait_until("its end", lambda: not self.application("mine"))
        self.assertIn("crashed in left.dial", "\n".join(self.texts("mine")))
        w.kill()
        w.wait()
        self.assertIn("begins with 1", self.texts("mine/left"))

    def test_who_writes_too_much_is_cut_and_takes_nothing_from_others(self):
        """100,000 lines in a second: the host is not slowed down, its neighbour's lines are whole."""
        d, w = self.serve(workers=("a",))
        self.ok("start", self.write("dial.yaml", DIAL))
        self.ok("start", self.talk(1000, 100))
        w.wait_line("lines of its host are left out: it writes more than 1000 a second")
        self.wait_until("the cut", lambda: any("lines of left, right are left out here: they came too fast" in t
                                               for t in self.texts("talk")))
        begun = time.monotonic()
        kept = len(self.texts("talk"))
        # 100 a second come while those that are kept are printed.
        self.assertLessEqual(kept, 1024 + 100 * (1 + time.monotonic() - begun))
        self.ok("set", "dial", "left.dial.value=7")
        self.wait_until("its line", lambda: "now 7, soft" in self.texts("dial/left/dial"))
        self.assertIn("begins with 1", self.texts("dial/left/dial"))

    def test_wrong_names(self):
        self.serve()
        for more in ((), ("--follow",)):
            self.fails(3, "there is no application nobody", "logs", "nobody", *more)
        failure = self.document(self.fails(3, "", "logs", "nobody", "-o", "json"))
        self.assertEqual((failure["failure"]["code"], failure["exit_code"]), ("application_unknown", 3))
        for name in ("a.b", "a/", "/a", "a//b", "a/b/c/d", "x" * 300):
            with self.subTest(name):
                self.fails(2, "fragctl", "logs", name)
        self.fails(2, "give one NAME", "logs")
