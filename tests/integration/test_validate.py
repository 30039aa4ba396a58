# SPDX-License-Identifier: Apache-2.0
"""fragctl validate: what is wrong with a graph, before anything runs."""
import os
import subprocess

from test_fragctl import APP, BROKEN, Fragctl


class Validate(Fragctl):
    def validate(self, text, *args):
        v = self.fragctl("validate", self.write("v.yaml", text), *args)
        return v.wait(), v.stdout, v.stderr.replace(self.folder + "/", "")

    def test_ok(self):
        self.assertEqual(self.validate(APP % {"folder": self.folder}),
                         (0, "%s/v.yaml: ok: 2 fragments, 2 operators, 1 flow" % self.folder, ""))

    def test_all_errors(self):
        code, out, err = self.validate(BROKEN)
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(len(err.splitlines()), 4)

    def test_errors_of_every_kind_in_one_go(self):
        """What the text alone shows, what plugins tell, what flows between fragments show; nothing
        that only follows."""
        text = """frag: 1
application: app
extensions: [libgood.so]
fragments:
  one:
    operators:
      a: {type: source, parametres: {}, parameters: {inputs: 1}}
      b: {type: scale, parameters: {facter: 1}}
      b: {type: scale}
      c: {type: sunk, watchdog: 2x}
      d: {subgraph: eyes}
    flows: [a -> b, c -> b, d -> b, a -> e]
  two:
    operators: {a: {type: sink, parameters: {inputs: 1}}}
flows:
  - one.a -> two.a.in9
  - one.c -> two.a.in0
  - one.a -> three.b
  - one.a -> two.c
"""
        expected = [
            'v.yaml:7:25: one.a: unknown key "parametres"; did you mean "parameters"?',
            'v.yaml:8:37: one.b: unknown parameter "facter"; did you mean "factor"?',
            'v.yaml:9:7: the key "b" is given twice in one map; remove one',
            'v.yaml:10:7: one.c: unknown operator type "sunk"; did you mean "sink"?',
            'v.yaml:10:33: one.c: watchdog "2x" is not a valid duration; write for example 10ms, 2s or 30hz',
            'v.yaml:11:7: one.d: unknown subgraph "eyes"; no library that is loaded has one',
            'v.yaml:16:5: flow end two.a.in9: no input "in9"; did you mean "in0"?',
            'v.yaml:18:5: flow end three.b: unknown fragment "three"; fragments: one, two',
            'v.yaml:19:5: flow end two.c: unknown operator "two.c"; operators: a',
        ]
        code, out, err = self.validate(text)
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(err.splitlines(), expected)
        run = self.fragctl("run", self.path("v.yaml"))
        self.assertEqual(run.wait(), 2)
        self.assertEqual(run.stderr.replace(self.folder + "/", "").splitlines(), expected)

    def test_a_short_time_without_a_unit_is_warned_of(self):
        text = """frag: 1
application: app
operators:
  tx: {type: ping_tx, conditions: [{type: count, count: 1}, {type: periodic, recess_period: %s}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
"""
        code, _, err = self.validate(text % "999")
        self.assertEqual(code, 0)
        self.assertRegex(err, r'warn  graph: v.yaml:4:93: app.tx: condition periodic: parameter "recess_period": 999 '
                              r'has no unit and means nanoseconds; write 999ns, or for example 999ms')
        for time in "999ns", "1000", "33333333":
            code, _, err = self.validate(text % time)
            self.assertEqual((code, err), (0, ""), time)

    def test_remarks_on_the_graph_are_logged_once(self):
        """By whichever program the person has started."""
        config = self.write("more.yaml", "config: {rate: 1}\n")
        app = self.write("r.yaml", """frag: 1
application: app
operators:
  tx: {type: ping_tx, conditions: [{type: count, count: 1}]}
  rx: {type: ping_rx}
flows: [tx -> rx]
""")
        driver = ["driverd", "--address", "127.0.0.1:0", "--start-timeout", "100ms", "--app", app]
        for code, args in ((0, ["fragctl", "validate", app]), (0, ["fragctl", "run", app]),
                           (0, ["fragctl", "run", "--workers", "1", app]), (4, driver)):
            p = self.start(*args, "--config", config)
            self.assertEqual(p.wait(), code)
            self.assertEqual(p.stderr.count("the only key of this file is config"), 1, p.stderr)

    def test_flows_between_fragments(self):
        text = APP.replace("fragment2.rx.in", "fragment2.rx.inn") % {"folder": self.folder}
        code, out, err = self.validate(text)
        self.assertEqual(code, 2)
        self.assertEqual(err, 'v.yaml:20:5: flow end fragment2.rx.inn: no input "inn"; did you mean "in"?')

    def test_a_tab_is_named(self):
        code, out, err = self.validate("frag: 1\napplication: app\noperators:\n\ta: {type: ping_rx}\n")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(":4:1: a tab; indent with spaces", err)

    def test_unconnected_input(self):
        code, out, err = self.validate("frag: 1\napplication: app\nextensions: [libgood.so]\noperators: {a: {type: scale}}\n")
        self.assertEqual(code, 2)
        self.assertEqual(err, 'v.yaml:4:13: app.a: input "in" is not connected; add a flow that ends there')

    def library(self, name, constructor):
        """A library whose constructor does something."""
        path = self.path(name)
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, "-x", "c", "-"], check=True,
                       text=True, input="#include <stdlib.h>\n#include <unistd.h>\n"
                             "__attribute__((constructor)) static void begin(void) { %s }"
                             % constructor)
        return path

    def test_a_constructor_that_hangs_or_crashes_is_named(self):
        """The library is loaded in a child, and may take 10 s."""
        hangs = self.library("libhangs.so", "for (;;) pause();")
        crashes = self.library("libcrashes.so", "abort();")
        for library, what in ((hangs, r"takes longer than 10 s to load"),
                              (crashes, r"crashed \(SIGABRT\)")):
            app = self.write("v.yaml", "frag: 1\napplication: app\nextensions: [%s]\n"
                                       "operators: {a: {type: x}}\n" % library)
            for run in (self.fragctl("validate", app), self.fragctl("inspect", library)):
                with self.subTest(library=library, command=run.command[1]):
                    self.assertEqual(run.wait(), 1, run.stderr)
                    self.assertRegex(run.stderr,
                                     r"library \S*%s %s" % (os.path.basename(library), what))
        self.assert_nothing_left()

    def test_a_fifo_is_no_from_file(self):
        os.mkfifo(self.path("fifo"))
        app = self.write("v.yaml", "frag: 1\napplication: app\nconfig: {a: {from_file: fifo}}\n"
                                   "operators: {a: {type: ping_rx}}\n")
        run = self.fragctl("validate", app)
        self.assertEqual(run.wait(), 2, run.stderr)
        self.assertRegex(run.stderr, r"fifo: it is not a regular file")

    def test_a_crash_does_not_take_it_down(self):
        code, out, err = self.validate("frag: 1\napplication: app\nextensions: [libgood.so]\n"
                                       "operators: {a: {type: sink, parameters: {fail: crash}}}\n")
        self.assertEqual(code, 1)
        self.assertEqual(err.splitlines(), [
            "app.a: crashed in setup: SIGSEGV",
            "fragctl: v.yaml: app.a: setup crashed (SIGSEGV)"])
        code, out, err = self.validate("frag: 1\napplication: app\nextensions: [libgood.so]\ncompose: failing\n"
                                       "arguments: {how: {default: crash}}\n")
        self.assertEqual(code, 1)
        self.assertEqual(err.splitlines()[0], "fragctl: crashed in a composer: SIGABRT")
