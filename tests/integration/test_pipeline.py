# SPDX-License-Identifier: Apache-2.0
"""Graphs in a line: fragctl run -e."""
import json
import os

import cluster

CLIP = os.path.join(cluster.TOP, "examples", "data", "pedestrians.mp4")


class Pipeline(cluster.ClusterTest):
    def fragctl(self, *args, **kwargs):
        p = self.start("fragctl", *args, **kwargs)
        return p.wait(60), p

    def refused(self, line, *errors, args=()):
        """Each error is a sentence and the place of its caret."""
        code, p = self.fragctl("run", "-e", line, *args)
        wanted = []
        for sentence, at in errors:
            wanted += ["fragctl: " + sentence, "  " + line, "  " + " " * at + "^"]
        self.assertEqual(p.stderr.splitlines(), wanted)
        self.assertEqual((code, p.stdout), (2, ""))

    def test_runs(self):
        code, p = self.fragctl("run", "--output", "json", "-e", "ping_tx count=10 ! forward ! ping_rx")
        self.assertEqual(code, 0, p.stderr)
        self.assertIn("Rx message value: 10", p.stderr)
        summary = json.loads(p.stdout)
        self.assertEqual([(f["from"], f["to"], f["delivered"]) for f in summary["flows"]],
                         [("pipeline.ping_tx.out", "pipeline.forward.in", 10),
                          ("pipeline.forward.out", "pipeline.ping_rx.in", 10)])
        self.assert_nothing_left()

    def test_runs_by_daemons(self):
        code, p = self.fragctl("run", "--workers", "1", "-e", "ping_tx count=3 ! ping_rx")
        self.assertEqual(code, 0, p.stderr)
        self.assertIn("Rx message value: 3", p.stderr)
        self.assert_nothing_left()

    def test_what_is_found_later_names_the_graph(self):
        line = "ping_tx count=2 periodic=10 ! ping_rx"
        for verb in ("validate", "run"):
            code, p = self.fragctl(verb, "-e", line)
            self.assertEqual(code, 0, p.stderr)
            warnings = [l for l in p.stderr.splitlines() if "has no unit" in l]
            self.assertEqual(len(warnings), 1, p.stderr)
            self.assertIn("graph of -e:8:41: pipeline.ping_tx: condition periodic", warnings[0])

    def test_workers_warn_also_when_it_is_quiet(self):
        for flags, env in ((["-q"], {}), ([], {"FRAG_LOG_LEVEL": "warn"})):
            code, p = self.fragctl("run", "--workers", "1", *flags, "-e", "ping_tx count=2 periodic=10 ! ping_rx", env=env)
            self.assertEqual(code, 0, p.stderr)
            self.assertIn("has no unit", p.stderr)

    def test_video(self):
        if not os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")):
            self.skipTest("built without video")
        out = self.path("out.mp4")
        code, p = self.fragctl("run", "-e", "video_replayer path=%s realtime=false count=10 ! "
                               "format_converter out_dtype=uint8 ! motion_boxes ! video_recorder path=out.mp4" % CLIP,
                               cwd=self.folder)
        self.assertEqual(code, 0, p.stderr)
        self.assertGreater(os.path.getsize(out), 1000, "a relative path is relative to the working folder")

    def test_prints_the_graph(self):
        line = "PingTxOp name=t periodic=30hz count=3 t. ! forward ! ping_rx t.out ! ping_rx"
        code, p = self.fragctl("run", "--print-yaml", "-e", line)
        self.assertEqual((code, p.stderr), (0, ""))
        self.assertEqual(p.stdout, """\
frag: 1
application: pipeline
operators:
  t:
    type: ping_tx
    conditions:
      - {type: periodic, recess_period: 30hz}
      - {type: count, count: 3}
  forward:
    type: forward
  ping_rx:
    type: ping_rx
  ping_rx_2:
    type: ping_rx
flows:
  - t -> forward
  - forward -> ping_rx
  - t.out -> ping_rx_2""")
        self.write("app.yaml", p.stdout)
        code, p = self.fragctl("run", self.path("app.yaml"))
        self.assertEqual(code, 0, p.stderr)

    def test_values_are_quoted_where_yaml_needs_it(self):
        line = ("truth_tx file='a \\\"b\\\": {c}' count=2 fail=never ! "
                "truth_rx file=\"it's #1\"").replace("\\\"", '"')
        code, p = self.fragctl("run", "-e", line, cwd=self.folder)
        self.assertEqual(code, 0, p.stderr)
        self.assertEqual(cluster.sequence(self.path("it's #1")), [1, 2])
        self.assertEqual(cluster.sequence(self.path('a "b": {c}')), [1, 2])

    def test_libraries_come_from_the_library_path(self):
        code, p = self.fragctl("run", "--print-yaml", "-e", "truth_tx file=a count=1 ! truth_rx file=b")
        self.assertEqual(code, 0, p.stderr)
        self.assertIn("extensions:\n  - libtruth.so\noperators:", p.stdout)
        code, p = self.fragctl("run", "-e", "truth_tx file=a count=1", env={"FRAG_LIBRARY_PATH": ""})
        self.assertEqual(code, 2)
        self.assertIn('unknown operator type "truth_tx"', p.stderr)

    def test_set_and_config_apply(self):
        code, p = self.fragctl("run", "--set", "pipeline.ping_tx.initial_value=5", "-e", "ping_tx count=1 ! ping_rx")
        self.assertEqual(code, 2)
        self.assertIn("initial_value", p.stderr)
        code, p = self.fragctl("run", "--set", "pipeline.truth_tx.count=3", "-e",
                               "truth_tx file=a count=1 ! truth_rx file=b", cwd=self.folder)
        self.assertEqual(code, 0, p.stderr)
        self.assertEqual(cluster.sequence(self.path("b")), [1, 2, 3])

    def test_errors_point_into_the_line(self):
        self.refused("ping_tx cout=10 ! ping_rx",
                     ('"cout" is neither a parameter of ping_tx nor a condition; did you mean "count"?', 8))
        self.refused("ping_tx count=x ! ping_rx",
                     ('pipeline.ping_tx: condition count: parameter "count": "x" is not a valid integer; write a whole number such as 3', 8))
        self.refused("ping_tx ! ping_rxx ! AJASourceOp",
                     ('unknown operator type "ping_rxx"; did you mean "ping_rx"?', 10),
                     ('operator type "AJASourceOp" is not part of frag; play a recording with video_replayer, '
                      "or write an operator over the card's library", 21))
        self.refused("gr\u00fc\u00df ! ping_rx",
                     ('"gr\u00fc\u00df" is neither the type of an operator nor a reference NAME.PORT', 0))
        self.refused("ping_tx name=\u00fc ! ping_rx name=b name=c",
                     ('"\u00fc" is not a valid name of an operator', 8), ("name is given twice", 32))
        self.refused("ping_tx count=1 ! motion_boxes",
                     ('flow pipeline.ping_tx.out -> pipeline.motion_boxes.in: the output has type "i64", the '
                      'input "tensor"; connect ports of one type', 16))

    def test_errors_of_the_line_itself(self):
        self.refused("! a=1 ping_tx ! ! q. 'x",
                     ("no operator stands before this !", 0),
                     ("write an operator's type after the !", 2),
                     ("no operator stands before this !", 16),
                     ("this quote ' is not closed", 21),
                     ('no operator of this line is called "q"; name one with name=q', 18))
        self.refused("ping_tx ! ", ("no operator follows this !", 8))
        self.refused("count=1 ping_tx!ping_rx",
                     ("count=1 stands before any operator; write the operator's type first", 0),
                     ("write spaces on both sides of !", 8))
        self.refused("ping_tx name=a ! ping_rx name=a", ('two operators are called "a"', 0),
                     ('two operators are called "a"', 17))
        code, p = self.fragctl("run", "-e", "", "--print-yaml")
        self.assertEqual((code, p.stderr.splitlines()[0]), (2, "fragctl: the line names no operator"))
        code, p = self.fragctl("run", "-e", "ping_tx", "!", "ping_rx")
        self.assertEqual((code, p.stderr), (2, "fragctl run: ! stands beside -e; put the whole pipeline in quotes"))

    def test_validate(self):
        code, p = self.fragctl("validate", "-e", "ping_tx count=1 ! ping_rx")
        self.assertEqual((code, p.stdout, p.stderr), (0, "-e: ok: 1 fragment, 2 operators, 1 flow", ""))
        code, p = self.fragctl("validate", "-e", "ping_tx count=1 ! ping_tx ! ping_tx")
        self.assertEqual((code, p.stdout, p.stderr), (0, "-e: ok: 1 fragment, 3 operators, 2 flows", ""))
        code, p = self.fragctl("validate", "-e", "ping_tx ! ping_rx ! ping_rx")
        self.assertEqual(code, 2)
        self.assertIn("\n  ping_tx ! ping_rx ! ping_rx\n                    ^", p.stderr)

    def test_a_library_that_crashes_is_a_finding(self):
        code, p = self.fragctl("run", "--output", "json", "-e", "ping_tx ! sink fail=crash")
        self.assertEqual(code, 1, p.stderr)
        self.assertIn("-e: pipeline.sink: setup crashed (SIGSEGV)", p.stderr)
        self.assertEqual(json.loads(p.stdout)["reason"], "-e: pipeline.sink: setup crashed (SIGSEGV)")

    def test_the_summary_names_the_first_error(self):
        """Of the line itself, of the graph that was made of it, and of what the graph loads."""
        for line, exit_code, failure, op, reason in (
                ("nosuch ! ping_rx", 2, "graph_invalid", None, r'-e:1:1: unknown operator type "nosuch"; valid: '),
                ("ping_tx count=x ! ping_rx", 2, "graph_invalid", None,
                 r'-e:1:9: pipeline.ping_tx: condition count: parameter "count": "x" is not a valid integer; write a whole number such as 3'),
                ("ping_tx ! sink fail=word", 3, "operator_lacks_file", "pipeline.sink",
                 r"-e:1:\d+: pipeline.sink: there is no device; plug one in"),
        ):
            code, p = self.fragctl("run", "--output", "json", "-e", line)
            summary = json.loads(p.stdout)
            self.assertRegex(summary["reason"], reason)
            self.assertEqual((code, summary["exit_code"]), (exit_code, exit_code), p.stderr)
            self.assertEqual((summary["failure"]["code"], summary["failure"]["operator"]), (failure, op))
