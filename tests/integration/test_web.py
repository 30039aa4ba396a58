# SPDX-License-Identifier: Apache-2.0
"""fragctl web: who may ask, what is answered, and that its numbers are those of the driver. Plain
sockets; test_web_page.py looks at the page as a browser shows it."""
import base64
import contextlib
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import cluster
import control
import test_look
import test_service
import test_users

# 50 messages, then silence: the sums stand still while they are compared.
QUIET = """
frag: 1
application: quiet
extensions: [libtruth.so]
fragments:
  front:
    operators:
      tx:
        type: truth_tx
        parameters: {file: "%(folder)s/sent"}
        conditions: [{type: count, count: 50}]
      stays: {type: ping_tx, conditions: [{type: periodic, recess_period: 10min}]}
  back:
    operators:
      rx: {type: truth_rx, parameters: {file: "%(folder)s/received"}}
      rest: {type: ping_rx}
flows:
  - {from: front.tx.out, to: back.rx.in, capacity: 3}
  - front.stays -> back.rest
"""
TOKEN = "4f1c0ffee-4f1c0ffee-4f1c0ffee"
FROM_PAGE = {"X-Frag-Page": "1"}


class Unix(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.host)


class Stream:
    """What /data sends, moment after moment."""

    def __init__(self, connection):
        self.connection = connection
        connection.request("GET", "/data")
        self.reply = connection.getresponse()
        assert self.reply.status == 200, self.reply.read()

    def next(self):
        lines = []
        while True:
            line = self.reply.readline().decode()
            if not line:
                raise EOFError
            if line == "\n" and lines:
                return json.loads("\n".join(lines))
            lines.append(line.rstrip("\n").removeprefix("data: "))

    def await_frame(self, is_right, times=40):
        for _ in range(times):
            frame = self.next()
            if is_right(frame):
                return frame
        raise AssertionError("no such frame; the last one was %r" % frame)

    def close(self):
        self.connection.close()


class WebTest(test_service.ServiceTest):
    def web(self, *args, listen="127.0.0.1:0", env=None):
        p = self.start("fragctl", "web", "--listen", listen, *args, env=env)
        self.find(p)
        return p

    def find(self, p):
        self.url = p.wait_line(r"^fragctl web: (\S+)$").group(1)
        self.at = re.sub(r"^https?://(.*)/$", r"\1", self.url)

    def connect(self):
        if self.at.startswith("/"):
            return Unix(self.at, timeout=cluster.PATIENCE_S)
        return http.client.HTTPConnection(self.at, timeout=cluster.PATIENCE_S)

    def ask(self, method, path, body=None, headers=None):
        with contextlib.closing(self.connect()) as c:
            c.request(method, path, body, headers or {})
            reply = c.getresponse()
            self.headers = reply.headers
            return reply.status, reply.read().decode()

    def raw(self, *parts):
        """The status of what is answered to these bytes; None: the connection was closed."""
        host, port = self.at.rsplit(":", 1)
        with socket.create_connection((host, int(port)), cluster.PATIENCE_S) as s:
            with contextlib.suppress(ConnectionError):
                for part in parts:
                    s.sendall(part)
            with contextlib.suppress(ConnectionError):
                found = re.match(rb"HTTP/1.1 (\d+)", s.recv(4096))
                return int(found.group(1)) if found else None

    def stream(self):
        s = Stream(self.connect())
        self.addCleanup(s.close)
        return s

    def echo(self, application, flow, **more):
        return self.ask("GET", "/echo?" + urllib.parse.urlencode({"application": application, "flow": flow, **more}))

    def launch_quiet(self):
        self.ok("start", self.write("quiet.yaml", QUIET % {"folder": self.folder}))
        self.wait_until("50 messages", lambda: len(self.numbers("received")) == 50)

    def end(self, *programs):
        for p in programs:
            p.signal(15)
            self.assertEqual(p.wait(), 0, p.stderr)


def still(rows):
    """Without what is older a moment later."""
    return [{k: still(v) if isinstance(v, list) else v for k, v in row.items()
             if not k.endswith("age_ns")} for row in rows]


def sums(app):
    kept = ("from", "to", "capacity_messages")
    return [{k: v for k, v in f.items() if k.endswith("_sum") or k in kept} for f in app["flows"]]


def is_measured(frame):
    apps = frame["top"]["applications"]
    return bool(apps) and apps[0]["window_ns"] > 0


class Numbers(WebTest):
    def test_they_are_those_of_the_driver_also_when_it_was_gone(self):
        d, a, b = self.serve("--state-dir", self.path("state"), workers=("a", "b"))
        web = self.web("--every", "250ms")
        self.assertEqual(self.ask("GET", "/readyz"), (200, "ok\n"))
        self.launch_quiet()
        time.sleep(0.8)  # in which a window would have begun
        self.assertEqual(self.looking_threads(), 0, "nobody looks, and something is measured")
        one, other = self.stream(), self.stream()
        frame = one.await_frame(is_measured)
        self.assertGreater(self.looking_threads(), 0)
        self.assertEqual(frame["driver"]["lost"], None)
        top = json.loads(self.ok("top", "quiet", "--once", "-o", "json"))["applications"][0]
        shown = frame["top"]["applications"][0]
        self.assertEqual(sums(shown), sums(top))
        self.assertEqual((shown["flows"][0]["sent_sum"], shown["flows"][0]["delivered_sum"]), (50, 50))
        self.assertEqual({o["name"]: o["compute_count"] for o in shown["operators"]},
                         {o["name"]: o["compute_count"] for o in top["operators"]})
        for key in ("applications", "ended"):
            self.assertEqual(still(frame["list"][key]), still(self.json("list")[key]))
        self.assertEqual(frame["workers"], self.json("workers"))
        status, text = self.ask("GET", "/events?after=0")
        self.assertEqual(status, 200)
        printed = [json.loads(line) for line in self.ok("events", "-o", "json").splitlines()]
        self.assertEqual(json.loads(text)["events"], printed)
        status, text = self.ask("GET", "/logs?application=quiet&fragment=back&after=0")
        lines = json.loads(text)
        self.assertEqual({line["fragment"] for line in lines["lines"]}, {"back"})
        self.assertEqual(self.ask("GET", "/logs?application=quiet&after=%d" % lines["last"])[1].count("text"), 0)
        self.assertIn("there is no application nobody", self.ask("GET", "/logs?application=nobody")[1])
        # The driver is killed, and comes back at the same place; its hosts run on.
        d.kill()
        d.wait()
        for stream in (one, other):
            frame = stream.await_frame(lambda f: f["driver"]["lost"])
            self.assertEqual(sums(frame["top"]["applications"][0]), sums(top), "what was known is still shown")
        self.assertEqual(self.ask("GET", "/readyz")[0], 503)
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
        self.assertIn("driver_lost", self.ask("GET", "/events")[1])
        d = self.serve("--state-dir", self.path("state"), port=int(self.address.rsplit(":", 1)[1]))[0]
        for stream in (one, other):
            new = stream.await_frame(lambda f: not f["driver"]["lost"])
            old_ns = frame["top"]["applications"][0]["unix_ns"]
            self.assertEqual([a["unix_ns"] for a in new["top"]["applications"] if a["unix_ns"] == old_ns], [])
            new = stream.await_frame(lambda f: is_measured(f) and
                                     sums(f["top"]["applications"][0]) == sums(top))
            self.assertTrue(new["list"]["applications"][0]["adopted"])
        # The page's process is killed: browsers lose it, the application does not.
        web.kill()
        web.wait()
        with self.assertRaises((EOFError, ConnectionError, http.client.IncompleteRead)):
            while True:
                one.next()
        web = self.web()
        self.assertTrue(self.stream().await_frame(is_measured))
        self.ok("stop", "quiet")
        self.end(web, d, a, b)
        self.assert_nothing_left()

    def test_commands_come_from_the_page_alone_and_only_if_they_are_allowed(self):
        d, a = self.serve(workers=("a",))
        self.ok("start", self.endless)
        web = self.web()
        self.assertEqual(self.ask("POST", "/stop", "stream", FROM_PAGE)[0], 403)
        self.end(web)
        web = self.web("--control")
        for headers in ({}, {**FROM_PAGE, "Origin": "http://evil.example"}, {**FROM_PAGE, "Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(self.ask("POST", "/stop", "stream", headers)[0], 403, headers)
        self.assertEqual(self.application("stream")["state"], "running")
        own = {**FROM_PAGE, "Origin": self.url.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        status, text = self.ask("POST", "/set", "stream\nfragment1.tx.nothing=3", own)
        self.assertEqual(status, 409)
        self.assertIn("nothing", json.loads(text)["failure"]["sentence"])
        for path, body in (("/set", "stream"), ("/set", "a b\nc=d"), ("/stop", ""), ("/stop", "a\0b"), ("/drain", "x" * 300)):
            self.assertEqual(self.ask("POST", path, body, own)[0], 400, (path, body))
        self.assertEqual(self.ask("POST", "/stop", "x" * 70000, own)[0], 413)
        self.assertEqual(self.ask("POST", "/restart", "stream", own)[0], 200)
        self.wait_until("another run", lambda: (self.application("stream") or {"run": 0})["run"] == 2)
        self.assertEqual(self.ask("POST", "/drain", "a", own)[0], 200)
        self.assertTrue(self.json("workers")["workers"][0]["drained"])
        self.assertEqual(self.ask("POST", "/undrain", "a", own)[0], 200)
        self.assertFalse(self.json("workers")["workers"][0]["drained"])
        self.assertEqual(self.ask("POST", "/stop", "stream", own)[0], 200)
        self.wait_until("its end", lambda: self.application("stream") is None)
        self.assertEqual(self.ask("POST", "/restart", "stream", own)[0], 200, "what has ended starts again")
        self.wait_until("its third run", lambda: self.application("stream"))
        self.ok("stop", "stream")
        self.end(web, d, a)
        self.assert_nothing_left()


    def test_a_page_with_the_key_of_an_observer_commands_nothing(self):
        key, keys = self.path("web.key"), self.path("driver.key")
        self.ok("key", "new", "--role", "observer", "--name", "web", key)
        with open(key) as f, open(os.open(keys, os.O_CREAT | os.O_WRONLY, 0o600), "w") as to:
            to.write(f.read())
        d, = self.serve("--key-file", keys)
        # Elsewhere, the socket of the driver's user is not found.
        web = self.web("--control", "--graphs", self.folder, "--key-file", key, env={"XDG_RUNTIME_DIR": self.scratch})
        self.assertEqual(self.ask("GET", "/events?after=0")[0], 200)
        status, text = self.ask("POST", "/stop", "stream", FROM_PAGE)
        self.assertEqual((status, json.loads(text)["failure"]["code"]), (409, "role_refused"))
        status, text = self.ask("POST", "/start", "endless.yaml", FROM_PAGE)
        self.assertEqual((status, json.loads(text)["failure"]["code"]), (409, "role_refused"))
        status, text = self.wait_until("a refusal", lambda: (lambda r: r[0] != 204 and r)(self.echo("stream", "fragment1.tx")))
        self.assertEqual((status, json.loads(text)["failure"]["code"]), (409, "role_refused"))
        self.end(web, d)
        self.assert_nothing_left()


class Graphs(WebTest):
    def test_the_page_starts_a_graph_of_one_folder(self):
        d, a = self.serve(workers=("a",))
        for args, sentence in ((("--graphs", self.folder), "needs --control"), (("--control", "--graphs", self.path("none")), "No such file")):
            self.fails(2 if "needs" in sentence else 3, sentence, "web", *args)
        self.write("not-a-graph.txt", "")
        self.write(".hidden.yaml", "")
        self.write("bad.yaml", "frag: 1\napplication: bad\nfragments: 3\n")
        self.write("open.yaml", test_service.ENDLESS)
        os.chmod(self.path("open.yaml"), 0o666)
        web = self.web("--control", "--graphs", self.folder)
        self.assertEqual(json.loads(self.ask("GET", "/graphs")[1]),
                         {"graphs": ["bad.yaml", "endless.yaml", "open.yaml", "short.yaml"], "left_out": 0})
        self.assertEqual(self.ask("POST", "/start", "endless.yaml")[0], 403, "not from the page")
        for name in ("", "../endless.yaml", self.endless, ".hidden.yaml", "not-a-graph.txt", "endless.yaml\0"):
            self.assertEqual(self.ask("POST", "/start", name, FROM_PAGE)[0], 400, name)
        for name, sentence in (("none.yaml", "none.yaml"), ("bad.yaml", "fragments"), ("open.yaml", "chmod")):
            status, text = self.ask("POST", "/start", name, FROM_PAGE)
            self.assertEqual(status, 409, text)
            self.assertIn(sentence, json.loads(text)["failure"]["sentence"])
        self.assertEqual(self.ask("POST", "/start", "endless.yaml", FROM_PAGE)[0], 200)
        self.wait_until("it runs", lambda: (self.application("stream") or {}).get("state") == "running")
        status, text = self.ask("POST", "/start", "endless.yaml", FROM_PAGE)
        self.assertEqual(status, 409)
        self.assertIn("stream", json.loads(text)["failure"]["sentence"])
        self.ok("stop", "stream")
        self.end(web, d, a)
        web = self.web("--control")
        self.assertEqual(json.loads(self.ask("GET", "/graphs")[1])["graphs"], [])
        self.assertEqual(self.ask("POST", "/start", "endless.yaml", FROM_PAGE)[0], 400)
        self.end(web)
        self.assert_nothing_left()


class Passing(WebTest):
    def newest(self, flow, **more):
        status, text = self.echo("cam", flow, **more)
        return json.loads(text) if status == 200 else None

    def test_messages_and_pictures_of_a_flow(self):
        d, a = self.serve(workers=("a",))
        self.ok("start", self.write("cam.yaml", test_look.PICTURES % {"folder": self.folder}))
        web = self.web()
        self.assertEqual(self.echo("cam", "source.tx"), (204, ""))
        first = self.wait_until("a message", lambda: self.newest("source.tx"))
        picture = first.pop("picture")
        self.assertEqual({k: picture[k] for k in ("tensor", "width", "height", "channels", "step")},
                         {"tensor": "frame", "width": 150, "height": 200, "channels": 3, "step": 2})
        pixels, tensor = base64.b64decode(picture["pixels"]), first["message"]["tensors"][0]["tensor"]
        self.assertEqual((len(pixels), set(pixels)), (150 * 200 * 3, {tensor["data"][0]}))
        printed = json.loads(self.ok("echo", "cam", "source.tx", "-n", "1", "-o", "json"))
        self.assertEqual(set(printed) - {"picture"}, set(first))
        self.assertEqual(set(printed["message"]), set(first["message"]))
        second = self.wait_until("another one", lambda: (lambda m: m["seen"] != first["seen"] and m)(self.newest("source.tx")))
        self.assertGreater(second["unix_ns"] - first["unix_ns"], 0.5e9, "one a second")
        self.wait_until("nothing new", lambda: self.echo("cam", "source.tx", seen=self.newest("source.tx")["seen"])[0] == 204)
        value = self.wait_until("a number", lambda: self.newest("count.tx.out -> sink.rx.in"))
        self.assertEqual((value["message"]["type"], value["picture"]), ("i64", None))
        # What is no flow, and more flows than can be
        for application, flow, status in (("cam", "", 400), ("", "x", 400), ("cam", "x" * 5000, 400)):
            self.assertEqual(self.echo(application, flow)[0], status)
        for application, sentence in (("cam", 'cam has no flow "none"'), ("nobody", "there is no application nobody")):
            status, text = self.wait_until("a refusal", lambda: (lambda r: r[0] != 204 and r)(self.echo(application, "none")))
            self.assertEqual(status, 409, text)
            self.assertIn(sentence, json.loads(text)["failure"]["sentence"])
        names = ["source.tx", "count.tx.out -> sink.rx.in", "source.tx.out", "count.tx"]
        self.wait_until("four", lambda: [self.echo("cam", name)[0] in (200, 204) for name in names] == [True] * 4)
        self.assertEqual(self.echo("cam", "source.tx.out -> source.rx.in")[0], 429)
        self.wait_until("others to be given up", lambda: self.echo("cam", "source.tx.out -> source.rx.in")[0] == 204)
        # Another process of the driver, and the end of the application.
        self.ok("stop", "cam")
        status, text = self.wait_until("its end", lambda: (lambda r: r[0] == 409 and r)(self.echo("cam", "count.tx")))
        self.end(d, a)
        self.wait_until("no driver", lambda: (lambda r: r[0] == 409 and "driver_lost" in r[1])(self.echo("cam", "count.tx")))
        self.end(web)
        self.assert_nothing_left()


class OneRun(WebTest):
    def test_the_page_comes_and_goes_with_the_run(self):
        self.write("xdg-open", "#!/bin/sh\necho \"$1\" >%s\n" % self.path("opened"))
        os.chmod(self.path("xdg-open"), 0o755)
        run = self.start("fragctl", "run", "--web", "-o", "json", self.endless,
                         env={"PATH": self.folder + ":" + os.environ["PATH"], "DISPLAY": ":0"})
        self.find(run)
        frame = self.stream().await_frame(is_measured)
        self.assertEqual(len(frame["top"]["applications"][0]["operators"]), 2)
        with open(self.path("opened")) as f:
            self.assertEqual(f.read(), self.url + "\n")
        run.signal(2)
        self.assertEqual(run.wait(), 0)
        self.assertEqual(self.summary(run)["result"], "stopped")
        self.assert_nothing_left()

    def test_ways_that_exclude_each_other(self):
        for way in ("--in-process", "--driver"):
            self.fails(2, "exclude each other", "run", "--web", way, self.endless)


class OtherVersion(WebTest):
    def older(self):
        """The address of a driver of another version, which knows nothing of what it is asked."""
        beats = control.number(3, 250000000) + control.number(4, 3000000000)
        welcome = control.number(1, 7) + beats + control.block(5, b"0.0.9")

        def serve():
            with contextlib.suppress(OSError, EOFError):
                while True:
                    s, _ = listener.accept()
                    with s:
                        control.read_frame(s)
                        s.sendall(control.envelope(control.WELCOME, welcome))
                        control.read_frame(s)

        listener = control.listener()
        self.addCleanup(listener.close)
        threading.Thread(target=serve, daemon=True).start()
        return "127.0.0.1:%d" % listener.getsockname()[1]

    def test_a_driver_of_another_version_that_ends_the_connection_is_named(self):
        self.address = self.older()
        both = "the driver is of frag 0.0.9 and this program of frag "
        self.env["FRAG_ADDRESS"] = self.address
        self.fails(3, both, "top", "--once")
        self.web()
        self.stream().await_frame(lambda frame: both in (frame["driver"]["lost"] or ""))


class Strangers(WebTest):
    """Without a driver: the page is there, and says so."""

    def setUp(self):
        super().setUp()
        self.env["FRAG_ADDRESS"] = "127.0.0.1:%d" % self.free_port()

    def test_what_is_no_request_for_this_page(self):
        web = self.web("--host-name", "frag.example")
        frame = self.stream().await_frame(lambda f: "there is no driver" in (f["driver"]["lost"] or ""))
        self.assertEqual(frame["top"]["applications"], [])
        for host, status in (("localhost", 200), ("127.0.0.1:80", 200), ("[::1]:8080", 200), ("frag.example", 200),
                             ("evil.example", 421), ("localhost.evil.example", 421), ("localhost:80@x", 421),
                             ("", 421), ("[::1", 421), ("127.0.0.1.evil.example", 421)):
            self.assertEqual(self.ask("GET", "/", headers={"Host": host})[0], status, host)
        get = b"GET / HTTP/1.1\r\n"
        self.assertIn(self.raw(get + b"\r\n"), (400, 421))
        self.assertIn(self.raw(get + b"Host: localhost\r\nHost: evil.example\r\n\r\n"), (400, 421))
        self.assertEqual(self.raw(b"GET /%2e%2e/etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404)
        self.assertEqual(self.raw(b"GET /" + b"a" * 60000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), 414)
        self.assertIn(self.raw(get + b"Host: localhost\r\n", *[b"X-%d: " % i + b"a" * 10000 + b"\r\n" for i in range(1000)]),
                      (431, 413, None))
        self.assertIn(self.raw(b"\x16\x03\x01" + os.urandom(3000)), (400, None))
        self.assertEqual(self.ask("PUT", "/")[0], 405)
        self.assertEqual(self.ask("POST", "/data")[0], 405)
        self.assertEqual(self.ask("GET", "/nothing")[0], 404)
        # Nothing comes from elsewhere, and nothing runs that is not a file of the page.
        for path in ("/", "/page.js", "/graph.js", "/page.css", "/icon.svg"):
            status, text = self.ask("GET", path)
            self.assertEqual(status, 200)
            self.assertIn("default-src 'none'", self.headers["Content-Security-Policy"])
            self.assertNotRegex(self.headers["Content-Security-Policy"], r"unsafe|\*|https?:")
            self.assertEqual(self.headers["X-Content-Type-Options"], "nosniff")
            self.assertIsNone(self.headers["Access-Control-Allow-Origin"])
            self.assertEqual([u for u in re.findall(r"https?://[^\s\"']+", text) if not u.startswith("http://www.w3.org/")], [])
        text = self.ask("GET", "/")[1]
        self.assertNotRegex(text, r"\son\w+=|\sstyle=|<script>|<style>")
        self.end(web)
        self.assert_nothing_left()

    def test_a_connection_has_ten_seconds_for_each_request(self):
        """Also the third one; one that brings none is closed."""
        self.serve()
        self.web()
        host, port = self.at.split(":")
        silent = socket.create_connection((host, int(port)), cluster.PATIENCE_S)
        with contextlib.closing(self.connect()) as c, silent:
            for i in range(3):
                time.sleep(6 if i > 0 else 0)
                c.request("GET", "/readyz")
                self.assertEqual(c.getresponse().read(), b"ok\n")
                first = c.sock if i == 0 else first
                self.assertIs(c.sock, first, "it is still the same connection")
            self.assertEqual(silent.recv(1), b"")

    def test_a_thousand_connections_keep_nobody_out(self):
        self.need_descriptors(1100)
        web = self.web()
        host, port = self.at.rsplit(":", 1)
        crowd = []
        beginnings = (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: loc", b"POST /stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
        for i in range(1000):
            s = socket.create_connection((host, int(port)), cluster.PATIENCE_S)
            with contextlib.suppress(ConnectionError):
                s.sendall(beginnings[i % 4])
            crowd.append(s)
        begun = time.monotonic()
        self.assertEqual(self.ask("GET", "/")[0], 200)
        self.stream().next()
        self.assertLess(time.monotonic() - begun, 5 * cluster.times_slower())
        self.assertLess(len(os.listdir("/proc/%d/fd" % web.pid)), 400)
        for s in crowd:
            s.close()
        # Pages that nobody reads: so many, and the others are refused.
        pages = [self.stream() for _ in range(63)]
        with self.assertRaises(AssertionError):
            self.stream()
        for page in pages:
            page.close()
        self.wait_until("room for another page", lambda: self.is_answered("/data"))
        self.end(web)
        self.assert_nothing_left()

    def is_answered(self, path):
        with contextlib.closing(self.connect()) as c:
            c.request("GET", path)
            return c.getresponse().status == 200

    def test_a_unix_socket(self):
        path = self.path("web.sock")
        stale = socket.socket(socket.AF_UNIX)
        stale.bind(path)
        stale.close()
        web = self.web(listen=path)
        self.assertEqual(self.ask("GET", "/healthz", headers={"Host": "localhost"}), (200, "ok\n"))
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o660)
        self.fails(3, "in use", "web", "--listen", path)
        self.end(web)
        self.assertFalse(os.path.exists(path))
        self.write("web.sock", "a file of somebody")
        self.fails(3, "exists", "web", "--listen", path)
        self.assert_nothing_left()

    def test_other_addresses_need_a_token_and_tls(self):
        token, cert, key = self.write("token", TOKEN + "\n"), self.path("cert.pem"), self.path("key.pem")
        os.chmod(token, 0o600)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key,
                        "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
        os.chmod(key, 0o600)
        needs = "is not loopback: give --token-file, --cert and --cert-key"
        self.fails(2, needs, "web", "--listen", "0.0.0.0:0")
        self.fails(2, needs, "web", "--listen", "0.0.0.0:0", "--token-file", token)
        self.fails(2, needs, "web", "--listen", "0.0.0.0:0", "--cert", cert, "--cert-key", key)
        self.fails(2, "belong together", "web", "--listen", "0.0.0.0:0", "--token-file", token, "--cert", cert)
        for text, sentence in (("short", "16 characters or more"), (TOKEN + "; x", "one line of letters")):
            bad = self.write("bad", text)
            os.chmod(bad, 0o600)
            self.fails(2, sentence, "web", "--token-file", bad)
        os.chmod(bad, 0o644)
        self.fails(3, "others may read it", "web", "--token-file", bad)
        web = self.web("--token-file", token, "--cert", cert, "--cert-key", key, listen="0.0.0.0:0")
        self.assertTrue(self.url.startswith("https://"))
        context = ssl.create_default_context(cafile=cert)
        with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", int(self.url.rsplit(":", 1)[1].rstrip("/")), timeout=20,
                                                            context=context)) as c:
            c.request("GET", "/readyz")
            self.assertEqual(c.getresponse().read(), b"there is no driver now\n")
        self.assertIn(self.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), (400, None))
        self.end(web)
        self.assert_nothing_left()


class OtherUser(WebTest):
    """Who is another user of this machine, on loopback."""

    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("only root can connect as another user")
        self.env["FRAG_ADDRESS"] = "127.0.0.1:%d" % self.free_port()

    def ask(self, *args, **more):
        with test_users.as_nobody():
            return super().ask(*args, **more)

    def test_a_stranger_sees_nothing_and_a_token_opens_the_page(self):
        web = self.web()
        self.assertEqual(self.ask("GET", "/")[0], 200, "the page alone shows nothing")
        for path in ("/data", "/events", "/logs?application=x"):
            self.assertEqual(self.ask("GET", path)[0], 403, path)
        self.end(web)
        token = self.write("token", TOKEN)
        os.chmod(token, 0o600)
        web = self.web("--token-file", token)
        self.assertEqual(self.ask("GET", "/events")[0], 401)
        for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN[:-1] + "x"):
            self.assertEqual(self.ask("GET", "/events", headers={"Authorization": "Bearer " + wrong})[0], 401, wrong)
            self.assertEqual(self.ask("POST", "/login", wrong, FROM_PAGE)[0], 401, wrong)
        self.assertEqual(self.ask("POST", "/login", TOKEN)[0], 403, "another site could have sent it")
        # 409: it went to the driver, which is not there
        self.assertEqual(self.ask("GET", "/events", headers={"Authorization": "Bearer " + TOKEN})[0], 409)
        self.assertEqual(self.ask("POST", "/login", TOKEN, FROM_PAGE)[0], 200)
        cookie = self.headers["Set-Cookie"]
        for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
            self.assertIn(word, cookie)
        kept = cookie.split(";")[0]
        self.assertEqual(self.ask("GET", "/events", headers={"Cookie": "a=b; " + kept})[0], 409)
        self.assertEqual(self.ask("GET", "/events", headers={"Cookie": kept + "x"})[0], 401)
        self.end(web)
        self.assert_nothing_left()


if __name__ == "__main__":
    cluster.main()
