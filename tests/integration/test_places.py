# SPDX-License-Identifier: Apache-2.0
"""What an application is and does does not depend on where its fragments run: the same graph is
accepted or refused, with the same errors, by every way to check it and to run it."""
import hashlib
import json
import os
import re
import shutil
import signal

import cluster

HEAD = "frag: 1\napplication: app\n"


class Places(cluster.ClusterTest):
    def errors_of(self, process):
        """The lines that begin with a place in the graph, in the order in which they were
        printed. A driver adds the worker that lacks a library."""
        return re.findall(r"(?m)(?:^|[ /])(v\.yaml:\d+:\d+: .*?)(?: \(worker \S+\))?$", process.stderr)

    def daemons(self, *worker_args):
        """A driver and a worker for each of the two fragments. What the text alone shows is
        reported before the driver listens."""
        try:
            driver = self.driver(self.path("v.yaml"))
        except AssertionError:
            return self.processes[-1]
        workers = [self.worker(*worker_args, fragments=name) for name in ("one", "two")]
        driver.wait()
        for worker in workers:
            worker.signal(signal.SIGTERM)
            worker.wait()
        return driver

    def everywhere(self, text, code):
        """The exit code and errors of each way, which must be the same. Returns the errors."""
        app = self.write("v.yaml", text)
        ways = {
            "validate": self.start("fragctl", "validate", app),
            "run": self.start("fragctl", "run", app),
            "run --workers": self.start("fragctl", "run", "--workers", "2", app),
            "driverd": self.daemons(),
        }
        for name, process in ways.items():
            self.assertEqual(process.wait(), code, "%s: %s" % (name, process.stderr))
        errors = self.errors_of(ways["validate"])
        for name, process in ways.items():
            self.assertEqual(self.errors_of(process), errors, name)
        return errors

    def test_a_capacity_is_good_everywhere_or_nowhere(self):
        text = HEAD + """fragments:
  one: {operators: {tx: {type: ping_tx, conditions: [{type: count, count: 3}]}}}
  two: {operators: {rx: {type: ping_rx}}}
flows: [{from: one.tx.out, to: two.rx.in, capacity: %d}]
"""
        self.assertEqual(self.everywhere(text % 65536, 0), [])
        self.assertEqual(self.everywhere(text % 65537, 2), [
            'v.yaml:6:53: capacity "65537" is not a whole number from 1 to 65536'])

    def test_what_setup_refuses_is_refused_everywhere(self):
        self.assertEqual(self.everywhere(HEAD + """fragments:
  one:
    resources: {pool: {type: block_memory_pool, block_size: 0, num_blocks: 1}}
    operators: {tx: {type: ping_tensor_tx}}
  two: {operators: {rx: {type: ping_tensor_rx}}}
flows: [one.tx -> two.rx]
""", 2), ['v.yaml:5:17: one.pool: resource "pool": block_size is 0; give the size of the '
                 'largest tensor'])

    def test_all_errors_come_at_once_in_the_order_of_the_file_and_each_once(self):
        """An error of one operator does not hide those of others, nor does an end of a flow that
        cannot be judged hide what is wrong with the other end."""
        self.assertEqual(self.everywhere(HEAD + """extensions: [libgood.so]
fragments:
  one:
    operators:
      a: {type: source, parameters: {inputs: 1}}
      b: {type: sunk}
      c: {type: scale, parameters: {facter: 1}}
      d: {type: sink, parameters: {fail: word}}
      e: {type: scale}
    flows: [a.aut -> b.in0, a -> c.on, a -> d.more, b -> e.in, e.uot -> b]
  two:
    operators:
      a: {type: sink, parameters: {inputs: 2}}
      b: {type: ping_rx}
      c: {type: scale}
flows:
  - one.b.out -> two.a.in9
  - one.a.out -> two.b.in
  - one.d.out -> two.a.in0
""", 2), [
            'v.yaml:8:7: one.b: unknown operator type "sunk"; did you mean "sink"?',
            'v.yaml:9:37: one.c: unknown parameter "facter"; did you mean "factor"?',
            "v.yaml:10:7: one.d: there is no device; plug one in",
            'v.yaml:12:13: flow end one.a.aut: no output "aut"; did you mean "out"?',
            'v.yaml:12:29: flow end one.c.on: no input "on"; its inputs: in',
            'v.yaml:12:64: flow end one.e.uot: no output "uot"; did you mean "out"?',
            'v.yaml:17:7: two.c: input "in" is not connected; add a flow that ends there',
            'v.yaml:19:5: flow end two.a.in9: no input "in9"; did you mean "in0"?',
            'v.yaml:20:5: flow one.a.out -> two.b.in: the output has type "f64", the input "i64"; '
            "connect ports of one type",
        ])

    def test_a_library_that_is_missing_for_all_is_one_error(self):
        errors = self.everywhere(HEAD + """extensions: [libnowhere.so]
fragments:
  one: {operators: {tx: {type: ping_tx}}}
  two: {operators: {rx: {type: ping_rx}}}
flows: [one.tx -> two.rx]
""", 3)
        self.assertEqual(len(errors), 1)
        self.assertRegex(errors[0], r"^v.yaml:3:14: library libnowhere.so is not in ")

    def test_the_libraries_of_one_fragment_do_not_count_in_another(self):
        """Neither their operators nor their types of values; and a name that two of them have is
        taken only within a fragment."""
        text = HEAD + """fragments:
  one:
    extensions: [libtruth.so]
    operators: {tx: {type: pose_tx}}
  two:
    extensions: [libborrower.so%s]
    operators: {rx: {type: borrower}, other: {type: %s}}
flows: [one.tx -> two.rx]
"""
        port, unknown = self.everywhere(text % ("", "pose_rx"), 2)
        self.assertEqual(port, 'v.yaml:9:17: two.rx: port "in" is of type "pose", which is not '
                         "registered; load the extension that has it")
        valid = re.fullmatch(r'v\.yaml:9:39: two\.other: unknown operator type "pose_rx"; valid: '
                             r"borrower, ((\w+, )+\w+)(, \.\.\.)?", unknown)
        self.assertTrue(valid, unknown)
        built_in = valid.group(1).split(", ")
        self.assertTrue({"ping_tx", "format_converter"} <= set(built_in), built_in)
        self.assertFalse({"pose_rx", "pose_tx"} & set(built_in), built_in)
        self.assertEqual(self.everywhere(HEAD + """fragments:
  one: {extensions: [libgood.so], operators: {a: {type: source, parameters: {inputs: 1}}}}
  two: {extensions: [libtaken.so], operators: {b: {type: ping_rx}}}
flows: [one.a -> two.b]
""", 2), ['v.yaml:6:9: flow one.a.out -> two.b.in: the output has type "f64", the input "i64"; '
          "connect ports of one type"])

    def test_a_library_beside_the_graph_is_found_everywhere(self):
        shutil.copy(os.path.join(cluster.TEST_PLUGINS, "libgood.so"), self.path("libmine.so"))
        self.everywhere(HEAD + """fragments:
  one: {extensions: [./libmine.so], operators: {a: {type: source, parameters: {inputs: 1}}}}
  two: {extensions: [%s], operators: {b: {type: sink}}}
flows: [one.a -> two.b.in0]
""" % self.path("libmine.so"), 0)

    def test_a_library_may_be_pinned_to_its_sha256(self):
        """Everywhere the same file is taken and the same one refused; the sha256 of one fragment
        holds in the other too, so that it does not matter which of them is loaded first."""
        text = HEAD + """fragments:
  one: {extensions: [libgood.so], operators: {a: {type: source, parameters: {inputs: 1}}}}
  two: {extensions: [{name: libgood.so, sha256: %s}], operators: {b: {type: sink}}}
flows: [one.a -> two.b.in0]
"""
        library = os.path.realpath(os.path.join(cluster.TEST_PLUGINS, "libgood.so"))
        with open(library, "rb") as f:
            sha256 = hashlib.sha256(f.read()).hexdigest()
        self.assertEqual(self.everywhere(text % sha256.upper(), 0), [])
        errors = self.everywhere(text % ("0" * 64), 3)
        reason = ("library libgood.so (%s) is not the one that the graph asks for: it has sha256 %s, and the graph "
                  "states %s; install that one, or, if this one is right, write its sha256 into the graph"
                  % (library, sha256, "0" * 64))
        self.assertEqual(errors, ["v.yaml:4:22: " + reason, "v.yaml:5:22: " + reason])
        run = self.start("fragctl", "run", "--output", "json", self.path("v.yaml"))
        self.assertEqual(run.wait(), 3)
        self.assertEqual(json.loads(run.stdout)["failure"]["code"], "library_differs")
