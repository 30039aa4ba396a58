# SPDX-License-Identifier: Apache-2.0
"""Certificates of the control connection: an authority of one's own, names, roles and dates."""
import os
import re
import signal
import subprocess

import cluster
from test_keys import APP


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, text=True)


class CertificateTest(cluster.ClusterTest):
    app_text = APP

    def setUp(self):
        super().setUp()
        self.authority("ca")
        self.sign("driver", "/CN=driver", "DNS:driver.lab,IP:127.0.0.1")
        self.sign("node7", "/OU=worker/OU=laboratory/CN=node7")

    def authority(self, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj",
                "/CN=%s" % name, "-keyout", self.path(name + ".key"), "-out", self.path(name + ".pem"))

    def sign(self, name, subject, names=None, ca="ca", days="365"):
        request = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", subject,
                   "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr")]
        if names:
            request += ["-addext", "subjectAltName=" + names]
        openssl(*request)
        openssl("x509", "-req", "-in", self.path(name + ".csr"), "-CA", self.path(ca + ".pem"), "-CAkey",
                self.path(ca + ".key"), "-days", days, "-copy_extensions", "copy",
                "-out", self.path(name + ".pem"))

    def flags(self, name, ca="ca"):
        return ["--cert", self.path(name + ".pem"), "--cert-key", self.path(name + ".key"),
                "--ca", self.path(ca + ".pem")]

    def serve(self, name="driver"):
        return self.driver(self.app, *self.flags(name))

    def refused(self, worker, pattern):
        self.assertEqual(worker.wait(), 5, worker.stderr)
        self.assertRegex(worker.stderr, pattern)

    def end(self, *processes):
        for p in processes:
            p.signal(signal.SIGTERM)
            self.assertEqual(p.wait(), 0, p.stderr)


class Joining(CertificateTest):
    def test_certificates_of_one_authority_join(self):
        d = self.serve()
        w = self.worker(*self.flags("node7"))
        d.wait_line("worker .* joined from .* with the certificate node7$")
        w.wait_line(r"Rx message value: 10$")
        self.assertNotIn("expires", d.stderr + w.stderr)
        self.end(d, w)

    def test_the_driver_may_have_another_name_than_its_address(self):
        self.sign("driver", "/CN=driver", "DNS:driver.lab")
        d = self.serve()
        self.refused(self.worker(*self.flags("node7")),
                     'its certificate "driver" is not for 127.0.0.1; give --driver-name')
        d.wait_line("closed the connection of .*: it does not accept this side's certificate")
        w = self.worker(*self.flags("node7"), "--driver-name", "driver.lab")
        d.wait_line("with the certificate node7$")
        self.end(d, w)

    def test_the_certificate_of_a_worker_is_none_of_a_driver(self):
        self.serve("node7")
        self.refused(self.worker(*self.flags("node7")), 'its certificate "node7" is not for 127.0.0.1')

    def test_an_authority_of_others_is_refused_on_both_ends(self):
        self.authority("other")
        self.sign("stranger", "/OU=worker/CN=stranger", ca="other")
        self.serve()
        self.refused(self.worker(*self.flags("node7", ca="other")),
                     'its certificate "driver" is not signed by the authority of --ca .*other.pem$')
        d = self.serve() # what strangers do is logged once a second
        self.refused(self.worker(*self.flags("stranger")),
                     r"it does not accept this side's certificate \(unknown CA\); its log says why$")
        d.wait_line('its certificate "stranger" is not signed by the authority of --ca .*/ca.pem$')

    def test_an_expired_certificate_is_refused(self):
        self.sign("late", "/OU=worker/CN=late", days="-1")
        d = self.serve()
        p = self.worker(*self.flags("late"))
        self.assertEqual(p.wait(), 3, p.stderr)
        self.assertRegex(p.stderr, "the certificate .*late.pem is expired since 20.*; make a new one")
        d.signal(signal.SIGTERM)

    def test_an_expired_certificate_of_a_peer_is_refused(self):
        self.sign("late", "/OU=worker/CN=late", names="IP:127.0.0.1", days="-1")
        late = ["-cert", self.path("late.pem"), "-key", self.path("late.key"), "-CAfile", self.path("ca.pem")]
        d = self.serve()
        subprocess.run(["openssl", "s_client", "-connect", self.address, *late], stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=60, check=False)
        d.wait_line('its certificate "late" is expired since 20')
        d.signal(signal.SIGTERM)
        port = self.free_port()
        server = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:%d" % port, "-Verify", "1",
                                   *late], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
        try:
            while server.stdout.readline().strip() != b"ACCEPT":
                self.assertIsNone(server.poll(), "it does not serve")
            w = self.worker(*self.flags("node7"), address="127.0.0.1:%d" % port)
            w.wait_line('its certificate "late" is expired since 20')
            self.assertEqual(w.wait(), 5, w.stderr)
        finally:
            server.kill()
            server.communicate()

    def test_roles_are_in_the_subject(self):
        self.sign("eyes", "/OU=client/CN=eyes")
        self.sign("nobody", "/OU=laboratory/CN=nobody")
        d = self.serve()
        self.refused(self.worker(*self.flags("eyes")), "its certificate eyes is not for a worker$")
        self.refused(self.worker(*self.flags("nobody")), "its certificate nobody is not for a worker$")
        d.wait_line("refused .*: its certificate nobody is not for a worker$")

    def test_keys_and_certificates_do_not_mix(self):
        key = self.path("frag.key")
        subprocess.run([os.path.join(cluster.BIN, "fragctl"), "key", "new", key], check=True, env=self.env)
        d = self.serve()
        self.refused(self.worker("--key-file", key), 'it has a certificate in place of the key "key-')
        self.refused(self.worker(), "it wants a key")
        d.signal(signal.SIGTERM)
        d = self.driver(self.app, "--key-file", key)
        self.refused(self.worker(*self.flags("node7")), "it has a key file, and this side a certificate")
        d.wait_line("closed the connection of .*: it offered no key$")


class Files(CertificateTest):
    def ended(self, *flags):
        p = self.start("workerd", *flags)
        return p.wait(), p.stderr

    def test_the_three_files_belong_together(self):
        code, text = self.ended(*self.flags("node7")[:4])
        self.assertEqual(code, 2)
        self.assertIn("--cert, --cert-key and --ca belong together", text)
        code, text = self.ended(*self.flags("node7"), "--key-file", "k")
        self.assertEqual(code, 2)
        self.assertIn("--key-file and --cert contradict each other", text)
        code, text = self.ended(*self.flags("node7"), "--insecure")
        self.assertEqual(code, 2)
        self.assertIn("--insecure and --cert contradict each other", text)

    def test_a_file_that_does_not_fit_is_named(self):
        self.assertEqual(self.ended("--cert", self.path("none.pem"), *self.flags("node7")[2:])[0], 3)
        mixed = self.flags("node7")
        mixed[3] = self.path("driver.key")
        code, text = self.ended(*mixed)
        self.assertEqual(code, 3)
        self.assertRegex(text, "cannot use .*driver.key as the key of the certificate .*: key values mismatch")
        os.chmod(self.path("node7.key"), 0o640)
        code, text = self.ended(*self.flags("node7"))
        self.assertEqual(code, 3)
        self.assertIn("run: chmod 600 " + self.path("node7.key"), text)

    def hangup(self, p):
        seen = p.stderr.count("SIGHUP: has read ")
        p.signal(signal.SIGHUP)
        self.wait_until("the files are read", lambda: p.stderr.count("SIGHUP: has read ") > seen)

    def test_a_worker_exchanges_its_certificate_and_nothing_ends(self):
        d = self.serve()
        w = self.worker(*self.flags("node7"))
        w.wait_line(r"Rx message value: 1$")
        own = self.path("node7.pem")
        for name in ("node8", "node8", "node7"):  # one of the same name is one too
            self.sign("node7", "/OU=worker/CN=" + name)
            seen = w.stderr.count("and the session goes on with it")
            self.hangup(w)
            self.wait_until(name, lambda n=seen: w.stderr.count("and the session goes on with it") > n)
        w.wait_line("the driver takes the certificate %s, and the session goes on with it$" % own)
        d.wait_line("goes on with the certificate node8 in place of certificate node7$")
        d.wait_line("goes on with the certificate node7 in place of certificate node8$")
        self.assertEqual(d.stderr.count("goes on with"), 2, d.stderr)
        self.assertEqual(d.stderr.count(" joined "), 1, d.stderr)
        self.end(d, w)

    def test_a_mistake_in_a_workers_certificate_ends_nothing(self):
        self.authority("other")
        d = self.serve()
        w = self.worker(*self.flags("node7"))
        w.wait_line(r"Rx message value: 1$")
        own = self.path("node7.pem")
        refused = "the driver does not take the certificate %s: .*; correct that file, then send SIGHUP again$" % own
        for subject, ca in (("/OU=worker/CN=node7", "other"), ("/OU=client/CN=node7", "ca")):
            with self.subTest(subject=subject, ca=ca):
                self.sign("node7", subject, ca=ca)
                seen = len(w.stderr)
                self.hangup(w)
                self.wait_until("a sentence", lambda n=seen: re.search(refused, w.stderr[n:], re.M))
        self.assertEqual(d.stderr.count(" joined "), 1, d.stderr)
        self.sign("node7", "/OU=worker/CN=node7")
        self.hangup(w)
        w.wait_line("the driver takes the certificate ")
        self.end(d, w)

    def test_a_certificate_that_expires_soon_is_warned_of_and_exchanged(self):
        self.sign("driver", "/CN=driver", "IP:127.0.0.1", days="8")
        d = self.serve()
        d.wait_line("warn .*the certificate .*driver.pem expires in [78] days; put a new one in its place and send SIGHUP")
        w = self.worker(*self.flags("node7"))
        d.wait_line("joined from .* with the certificate node7$")
        self.sign("driver", "/CN=driver", "IP:127.0.0.1")
        d.signal(signal.SIGHUP)
        d.wait_line("SIGHUP: has read .*driver.pem again")
        late = self.worker(*self.flags("node7"), "--name", "late")
        d.wait_line("worker late joined")
        self.assertEqual(d.stderr.count("expires in"), 1, d.stderr)
        self.end(d, w, late)
