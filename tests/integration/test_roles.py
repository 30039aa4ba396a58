# SPDX-License-Identifier: Apache-2.0
"""fragctl run as a driver, as a worker and as both, with the flags of Holoscan's applications."""
import signal

import cluster

APP = """
frag: 1
application: talk
arguments:
  count: {default: "3"}
  loud: {default: false, help: whether the sink is loud}
  word: {default: hello}
fragments:
  left:
    operators:
      tx: {type: ping_tx, conditions: [{type: count, count: "${count}"}]}
  right:
    operators:
      rx: {type: ping_rx}
flows: [left.tx.out -> right.rx.in]
"""


class RolesTest(cluster.ClusterTest):
    app_text = APP

    def run_as(self, *words, **keys):
        return self.start("fragctl", "run", *words, **keys)

    def sent(self, program):
        summary = self.summary(program)
        self.assert_balanced(summary)
        return self.flow(summary, "left.tx.out")["sent"]

    def listening(self, program):
        return program.wait_line(r"driver: listening on (\S+)").group(1)


class OneNode(RolesTest):
    """Both ends, and their addresses: port 0 is any free one, so that tests can run side by side."""

    def test_driver_and_worker_in_one(self):
        p = self.run_as(self.app, "--driver", "--worker", "--address", "127.0.0.1:0", "--output", "json")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.sent(p), 3)
        self.assertIn("runs in 1 host", p.stderr)
        self.assert_nothing_left()

    def test_a_second_worker_of_its_own(self):
        both = self.run_as(self.app, "--driver", "--worker", "--address", "127.0.0.1:0", "--fragments", "left",
                           "--output", "json")
        other = self.run_as(self.app, "--worker", "--address", self.listening(both), "--fragments", "right")
        self.assertEqual(both.wait(), 0, both.stderr)
        self.assertEqual(other.wait(), 0, other.stderr)
        self.assertEqual(self.sent(both), 3)
        self.assertIn("runs in 2 hosts", both.stderr)
        self.assertIn("Rx message value: 3", other.stderr)
        self.assert_nothing_left()

    def test_three_processes(self):
        driver = self.run_as(self.app, "--driver", "--address", "127.0.0.1:0", "--output", "json")
        address = self.listening(driver)
        workers = [self.run_as("--worker", self.app, "--address=" + address, "--fragments=" + name)
                   for name in ("left", "right")]
        self.assert_done(driver, workers)
        self.assertEqual(self.sent(driver), 3)
        self.assert_nothing_left()

    def test_a_worker_without_the_graph(self):
        driver = self.run_as(self.app, "--driver", "--address", "127.0.0.1:0", "--output", "json")
        worker = self.run_as("elsewhere.yaml", "--worker", "--address", self.listening(driver), cwd="/")
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertEqual(worker.wait(), 0, worker.stderr)
        self.assertEqual(self.sent(driver), 3)

    def test_a_stop_ends_all(self):
        p = self.run_as(self.app, "--driver", "--worker", "--address", "127.0.0.1:0", "--output", "json",
                        "--count", "1000000000")
        p.wait_line("runs in 1 host")
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.summary(p)["result"], "stopped")
        self.assert_nothing_left()

    def test_the_result_of_a_failure(self):
        p = self.run_as(self.app, "--driver", "--worker", "--address", "127.0.0.1:0", "--output", "json",
                        "--set", "left.tx.nothing=5")
        self.assertEqual(p.wait(), 2, p.stderr)
        self.assert_nothing_left()

    def test_a_missing_worker_ends_a_start_with_a_limit(self):
        p = self.run_as(self.app, "--driver", "--worker", "--address", "127.0.0.1:0", "--fragments", "left",
                        "--start-timeout", "500ms", "--output", "json")
        self.assertEqual(p.wait(), 4, p.stderr)
        self.assert_nothing_left()

    def test_a_graph_in_a_line(self):
        p = self.run_as("--driver", "--worker", "--address", "127.0.0.1:0", "--output", "json", "-e",
                        "ping_tx count=4 ! ping_rx")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.summary(p)["flows"][0]["delivered"], 4)


class Arguments(RolesTest):
    """What fragctl does not know behind the graph is for the application, where a role is given."""

    ROLES = ("--driver", "--worker", "--address", "127.0.0.1:0", "--output", "json")

    def run_with(self, *words):
        p = self.run_as(*words)
        self.assertEqual(p.wait(), 0, p.stderr)
        return self.sent(p)

    def test_between_behind_and_after_the_dashes(self):
        for words in ((self.app, "--count", "7", *self.ROLES), (self.app, *self.ROLES, "--count=7"),
                      (self.app, *self.ROLES, "--", "--count", "7"), (*self.ROLES, self.app, "--count", "7"),
                      (self.app, "--loud", *self.ROLES, "--word", "-5", "--", "--count=7"),
                      (self.app, "--loud", "false", "--count", "7", *self.ROLES)):
            with self.subTest(words=words):
                self.assertEqual(self.run_with(*words), 7)

    def test_a_value_may_be_called_as_a_flag(self):
        p = self.run_as(self.app, *self.ROLES, "--word=--driver", "--count", "2")
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(self.sent(p), 2)

    def test_a_config_file_is_merged(self):
        config = self.write("more.yaml", "speed: 3\n")
        self.assertEqual(self.run_with(self.app, *self.ROLES, "--config", config, "--count", "2"), 2)

    def test_unknown_ones_are_refused_by_both_roles(self):
        for role in ("--driver", "--worker"):
            p = self.run_as(self.app, role, "--cuont", "5", "--address", "127.0.0.1:1")
            self.assertEqual(p.wait(), 2)
            self.assertIn("unknown argument --cuont", p.stderr)


class Refused(RolesTest):
    def says(self, words, sentence, code=2):
        p = self.run_as(*words)
        self.assertEqual(p.wait(), code)
        self.assertIn(sentence, p.stderr)
        self.assertEqual(p.stdout, "")

    def test_flags_without_their_role(self):
        for flag in ("--fragments", "--worker-address", "--allow-write"):
            for role in ((), ("--driver",)):
                self.says([self.app, *role, flag, "x"],
                          "fragctl: %s is of a worker; give --worker too, or leave it out" % flag)
        self.says([self.app, "--worker", "--start-timeout", "1s"],
                  "fragctl: --start-timeout is of a driver; give --driver too, or leave it out")
        self.says([self.app, "--worker", "2"], "fragctl: --worker takes no number; for a driver and 2 workers on "
                  "this machine write --workers 2")
        for flag in (["--address", ":1"], ["--key-file", "k"], ["--insecure"]):
            self.says([self.app, *flag], "fragctl: %s is of a driver or worker; give --driver, --worker or both, or "
                      "leave it out to run everything here" % flag[0])

    def test_ways_that_exclude_each_other(self):
        self.says([self.app, "--driver", "--workers", "2"], "fragctl: --workers and --driver exclude each other")
        self.says([self.app, "--worker", "--in-process"], "fragctl: --in-process and --worker exclude each other")
        self.says(["--worker", "-e", "ping_tx ! ping_rx"],
                  "fragctl: -e is for the driver, from which a worker has its graph; give APP.yaml, or --driver too")

    def test_arguments_in_front_of_the_graph(self):
        self.says(["--driver", "--count", "5", self.app],
                  "fragctl run: unknown flag --count; fragctl run --help lists the flags, and arguments of the "
                  "application follow --")
        self.says([self.app, "--count", "5"], "unknown flag --count")

    def test_an_address_of_the_network_needs_a_key(self):
        self.says([self.app, "--driver", "--worker", "--address", "0.0.0.0:0"], "without a key")

    def test_a_wrong_list_of_fragments(self):
        self.says([self.app, "--worker", "--fragments", "a b"], '"a b" is not a valid name of a fragment')
