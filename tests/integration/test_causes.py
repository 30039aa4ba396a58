# SPDX-License-Identifier: Apache-2.0
"""A failure names its cause: the operator, the callback, the port, the limit, the file."""
import os

import cluster

APP = """
frag: 1
application: causes
arguments:
  at: {default: compute}
  deed: {default: none}
  spare: {default: "0"}
extensions: [libculprit.so]
operators:
  good: {type: culprit}
  bad: {type: culprit, parameters: {at: "${at}", deed: "${deed}", spare: "${spare}"}}
"""
BETWEEN_HOSTS = """
frag: 1
application: causes
arguments:
  at: {default: compute}
  deed: {default: none}
  spare: {default: "0"}
extensions: [libculprit.so, libtruth.so]
fragments:
  f1:
    operators:
      bad: {type: culprit, parameters: {at: "${at}", deed: "${deed}", spare: "${spare}"}}
      tx: {type: truth_tx, parameters: {file: "%(folder)s/sent", count: 10}}
  f2:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
flows: [f1.tx.out -> f2.rx.in]
"""
OVER_UCX = BETWEEN_HOSTS.replace("[f1.tx.out -> f2.rx.in]", "[{from: f1.tx.out, to: f2.rx.in, edge: ucx}]")

WILD = """
frag: 1
application: causes
arguments: {size: {default: "8"}}
extensions: [libculprit.so, libtruth.so]
fragments:
  f1: {operators: {tx: {type: wild, parameters: {size: "${size}"}}}}
  f2: {operators: {rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}}}
flows: [f1.tx.out -> f2.rx.in]
"""


class Causes(cluster.ClusterTest):
    app_text = APP

    def outcome(self, *app_args, exit_code=1, fragments=(None,), prefix=()):
        """The failure of a run; prefix: before the first of the workers."""
        self.d = self.driver(self.app, "--output", "json", app_args=app_args)
        workers = [self.worker("--once", fragments=f, prefix=prefix if i == 0 else ())
                   for i, f in enumerate(fragments)]
        self.assertEqual(self.d.wait(), exit_code, self.d.stderr)
        for w in workers:
            w.wait()
        self.assert_nothing_left()
        return self.summary(self.d)["failure"]


class Operators(Causes):
    def test_a_crash_names_the_operator_and_the_callback(self):
        for at in ("setup", "initialize", "start", "stop", "fini"):
            with self.subTest(at=at):
                failure = self.outcome("--at", at, "--deed", "crash")
                self.assertRegex(failure["sentence"], r"crashed in %s of causes\.bad: signal 11 \(SIGSEGV\)" % at)
                self.assertEqual((failure["code"], failure["operator"]), ("host_crashed", "causes.bad"))

    def test_a_crash_in_compute_names_the_tick(self):
        failure = self.outcome("--deed", "crash")
        self.assertRegex(failure["sentence"], r"crashed in causes\.bad, tick 3: signal 11 \(SIGSEGV\)")
        self.assertEqual(failure["operator"], "causes.bad")

    def test_an_exit_names_the_operator_and_the_callback(self):
        for at in ("setup", "initialize", "start"):
            with self.subTest(at=at):
                failure = self.outcome("--at", at, "--deed", "exit")
                self.assertRegex(failure["sentence"], r"exited with status 7 in %s of causes\.bad$" % at)
                self.assertEqual((failure["code"], failure["operator"]), ("host_exited", "causes.bad"))

    def test_closing_descriptors_of_others_is_named(self):
        for at in ("setup", "compute"):
            with self.subTest(at=at):
                failure = self.outcome("--at", at, "--deed", "close_all")
                self.assertIn("something in its process closed its control socket", failure["sentence"])
                if "exited" in failure["sentence"]:  # on a slow machine workerd ends it before it sees that
                    self.assertRegex(self.d.stderr, "the control socket, descriptor 3, was closed in this process: "
                                     "an operator or a library closes descriptors that are not its own")

    def test_a_tensor_whose_memory_is_gone_names_the_operator_and_the_port(self):
        self.app = self.write("app.yaml", WILD % {"folder": self.folder})
        for size in (8, 100000, 10000000):
            with self.subTest(size=size):
                failure = self.outcome("--size", size, fragments=("f1", "f2"))
                self.assertEqual((failure["code"], failure["operator"]), ("message_refused", "f1.tx"))
                self.assertRegex(failure["sentence"], r'f1\.tx: cannot emit on port "out" in tick 1: '
                                 "a tensor's memory cannot be read")


class Ucx(Causes):
    LINE = r"\.c:\d+ +UCX "  # as UCX prints it

    def test_its_abort_is_a_sentence_and_blames_no_operator(self):
        self.app = self.write("app.yaml", OVER_UCX % {"folder": self.folder})
        failure = self.outcome("--deed", "ucx_fatal", fragments=("f1", "f2"))
        reason = "UCX gave up at tcp_ep.c:1404: Assertion `length' failed"
        self.assertRegex(failure["sentence"], r"fraghost \d+ of f1 ended itself: " + reason)
        self.assertEqual((failure["code"], failure["operator"]), ("host_crashed", None))

    def refused(self, variable, **more):
        name, value = variable.split("=")
        self.app = self.write("app.yaml", OVER_UCX % {"folder": self.folder})
        p = self.start("fragctl", "run", "--workers", "2", "-v", self.app, env={name: value, **more})
        self.assertNotEqual(p.wait(), 0)
        self.assert_nothing_left()
        return p.stderr

    def test_what_it_prints_is_in_the_sentence_of_the_failure(self):
        for variable, reason in (
                ("UCX_RNDV_THRESH=few", "UCX does not accept its settings: Invalid value for RNDV_THRESH: 'few'"),
                ("UCX_TLS=few", r"UCX finds no device to use \(no usable transports/devices .*UCX_TLS is few")):
            with self.subTest(variable=variable):
                err = self.refused(variable)
                self.assertRegex(err, "error driver causes: " + reason)
                self.assertRegex(err, r"debug ucx causes/f[12]: UCX: .*few")
                self.assertNotRegex(err, self.LINE)

    def test_it_prints_itself_when_the_user_sets_its_level(self):
        self.assertRegex(self.refused("UCX_TLS=few", UCX_LOG_LEVEL="warn"), self.LINE)


class Limits(Causes):
    def test_too_few_descriptors_for_ucx(self):
        self.app = self.write("app.yaml", OVER_UCX % {"folder": self.folder})
        limit = ("/bin/sh", "-c", 'ulimit -n 64 && exec "$0" "$@"')
        for at, spare in (("setup", 2), ("setup", 4), ("setup", 10), ("initialize", 1), ("initialize", 4)):
            with self.subTest(at=at, spare=spare):
                failure = self.outcome("--at", at, "--deed", "open_all", "--spare", spare, exit_code=3,
                                       fragments=("f1", "f2"), prefix=limit)
                self.assertEqual(failure["code"], "system_refused")
                self.assertRegex(failure["sentence"], r"this host has \d+ descriptors left of 64, and UCX needs \d+ more")

    def test_a_limit_on_the_size_of_files(self):
        limit = ("/bin/sh", "-c", 'ulimit -f 4 && exec "$0" "$@"')
        failure = self.outcome(exit_code=3, prefix=limit)
        self.assertEqual(failure["code"], "system_refused")
        self.assertRegex(failure["sentence"], r"cannot make the page that holds the counters of this host: "
                         r"File too large; .*ulimit -f")


class Ledger(Causes):
    def test_an_operator_cannot_write_into_the_file_of_the_counters(self):
        self.app = self.write("app.yaml", BETWEEN_HOSTS % {"folder": self.folder})
        for at in ("setup", "initialize", "start", "compute", "stop"):
            with self.subTest(at=at):
                d = self.driver(self.app, "--output", "json", app_args=("--at", at, "--deed", "overwrite"))
                workers = [self.worker("--once", fragments=f) for f in ("f1", "f2")]
                self.assertEqual(d.wait(), 0, d.stderr)
                self.assertEqual([w.wait() for w in workers], [0, 0])
                summary = self.summary(d)
                flow = self.flow(summary, "f1.tx.out")
                self.assertEqual((flow["sent"], flow["delivered"], flow["lost"]), (10, 10, 0))
                self.assert_balanced(summary)
                self.assertEqual({o["name"]: o["ticks"] for o in summary["fragments"][0]["operators"]},
                                 {"bad": 5, "tx": 10})
                self.assert_nothing_left()


class Libraries(Causes):
    def test_a_library_that_is_cut_short_is_refused(self):
        with open(os.path.join(cluster.TEST_PLUGINS, "libculprit.so"), "rb") as f:
            whole = f.read()
        os.mkdir(self.path("lib"))
        self.env["FRAG_LIBRARY_PATH"] = self.path("lib")
        for size in (8192, 4096, 1000, 40, 0):
            with self.subTest(size=size):
                with open(self.path("lib/libculprit.so"), "wb") as f:
                    f.write(whole[:size])
                failure = self.outcome(exit_code=2)
                self.assertEqual(failure["code"], "library_refused")
                self.assertRegex(failure["sentence"], r"library libculprit\.so is cut short: it has %d bytes" % size)
                validate = self.start("fragctl", "validate", self.app)
                self.assertEqual(validate.wait(), 2, validate.stderr)
                self.assertIn("is cut short", validate.stderr)
