# SPDX-License-Identifier: Apache-2.0
"""The viewer's page, as browsers and as attackers of it see it, while an application runs.

The source is the clip of tests/video, whose frames bear their number as a bar code. What the viewer
sends is decoded by the program ffmpeg.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.error
import urllib.request

import cluster

COLUMNS, ROWS, BITS, BIT_COLUMNS, BIT_ROWS = 480, 320, 12, 16, 8

APP = """
frag: 1
application: look
extensions: [libclip_source.so]
arguments:
  count: {default: 4095}
  rate: {default: 50hz}
  connections: {default: 32}
operators:
  clip:
    type: clip_source
    parameters: {count: "${count}"}
    conditions: [{type: periodic, recess_period: "${rate}"}]
  viewer: {type: viewer, parameters: {max_connections: "${connections}"}}
flows: [clip.out -> viewer.receivers]
"""

WRONG = """
frag: 1
application: look
extensions: [libclip_source.so]
operators:
  clip: {type: clip_source}
  viewer: {type: viewer, parameters: %s}
flows: [clip.out -> viewer.receivers]
"""


def have_viewer():
    return os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libviewer.so"))


def number_of(rgb, scale=1):
    """The number in the bar code of a picture of RGB, whose width is `scale` times the clip's."""
    number = 0
    for bit in range(BITS):
        x = int((bit + 0.5) * BIT_COLUMNS * scale)
        y = int(BIT_ROWS / 2 * scale)
        number = 2 * number + (rgb[(y * int(COLUMNS * scale) + x) * 3] > 128)
    return number


def decode(pictures, codec="mjpeg"):
    """The pictures as RGB, by ffmpeg."""
    done = subprocess.run(["ffmpeg", "-v", "error", "-f", "image2pipe", "-c:v", codec, "-i", "-", "-vsync",
                           "passthrough", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                          input=b"".join(pictures), capture_output=True, check=True, timeout=60)
    size = COLUMNS * ROWS * 3
    return [done.stdout[i:i + size] for i in range(0, len(done.stdout), size)]


def comment(jpeg):
    """The numbers that a picture of the viewer bears."""
    assert jpeg[:4] == b"\xff\xd8\xff\xfe", jpeg[:4]
    text = jpeg[6:4 + int.from_bytes(jpeg[4:6], "big")].decode()
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", text)}


class Stream:
    """A browser that looks at /stream: its pictures, one by one."""

    def __init__(self, url):
        self.response = urllib.request.urlopen(url + "stream", timeout=cluster.PATIENCE_S)
        kind = self.response.headers["Content-Type"]
        boundary = re.fullmatch(r"multipart/x-mixed-replace; boundary=(\S+)", kind).group(1)
        self.head = ("--%s\r\nContent-Type: image/jpeg\r\n\r\n" % boundary).encode()
        self.data = b""
        self._until(self.head)

    def _until(self, mark):
        """What comes before the mark, which is left out."""
        while mark not in self.data:
            more = self.response.read1(65536)
            assert more, "the stream has ended"
            assert len(self.data) < 1 << 20, "a megabyte without the mark"
            self.data += more
        before, _, self.data = self.data.partition(mark)
        return before

    def part(self):
        """The numbers and the JPEG of the next picture, which end with the head of the one after."""
        jpeg = self._until(b"\r\n" + self.head)
        return comment(jpeg), jpeg

    def close(self):
        self.response.close()


@unittest.skipUnless(have_viewer(), "built without libmicrohttpd or libturbojpeg")
class ViewerTest(cluster.ClusterTest):
    def look(self, **arguments):
        """Runs the application; self.url is the page."""
        words = [w for key, value in arguments.items() for w in ("--" + key, str(value))]
        self.program = self.start("fragctl", "run", "--output", "json", self.write("app.yaml", APP), "--", *words)
        self.url = self.program.wait_line(r"shows its pictures at (http://\S+/)").group(1)
        self.address = ("127.0.0.1", int(re.search(r":(\d+)/", self.url).group(1)))
        self.wait_received(1)

    def end(self):
        """Stops the application and returns its flow to the viewer."""
        self.program.signal(signal.SIGTERM)
        self.assertEqual(self.program.wait(), 0, self.program.stderr)
        summary = self.summary(self.program)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return self.flow(summary, "look.clip.out")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=cluster.PATIENCE_S) as answer:
            return answer.read()

    def status(self):
        return json.loads(self.get("status"))

    def wait_received(self, count):
        return self.wait_until("%d messages" % count, lambda: self.status()["received"] >= count and self.status())

    def connect(self, text=b"", buffer_bytes=None):
        s = socket.socket()
        self.addCleanup(s.close)
        s.settimeout(cluster.PATIENCE_S)
        if buffer_bytes:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        s.connect(self.address)
        s.sendall(text)
        return s

    def host(self):
        hosts = [pid for pid, command in self.ours().items() if "fraghost" in command.split(" ")[0]]
        return hosts[0] if hosts else self.program.pid

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.host()))


class Page(ViewerTest):
    def test_every_picture_is_the_frame_that_was_sent(self):
        self.look()
        stream = Stream(self.url)
        parts = [stream.part() for _ in range(20)]
        stream.close()
        numbers = [head["number"] for head, _ in parts]
        self.assertEqual(numbers, sorted(set(numbers)), "each is newer than the last one")
        pictures = decode([jpeg for _, jpeg in parts])
        self.assertEqual([number_of(rgb) + 1 for rgb in pictures], numbers)
        for head, _ in parts:
            self.assertLessEqual(head["acquired_ns"], head["received_ns"])
        self.end()

    def test_the_status_is_the_ledger(self):
        self.look(count=50)
        status = self.wait_received(50)
        self.assertEqual((status["received"], status["title"]), (50, "look.viewer"))
        flow = self.end()
        self.assertEqual((flow["sent"], flow["delivered"]), (50, 50))

    def test_the_status_has_rate_and_latency(self):
        self.look(rate="20hz")
        self.wait_received(10)
        stream = Stream(self.url)
        stream.part()
        status = self.status()
        self.assertGreater(status["rate_hz"], 0)
        self.assertEqual((status["latency_from"], status["columns"], status["rows"], status["watchers"]),
                         ("acquisition", COLUMNS, ROWS, 1))
        self.assertGreater(status["latency_ms"], 0)
        stream.close()
        self.end()

    def test_nothing_is_drawn_while_nobody_looks(self):
        self.look(count=40)
        self.assertEqual(self.wait_received(40)["drawn"], 0)
        self.assertEqual(number_of(decode([self.get("picture.jpg")])[0]), 39, "the newest")
        self.assertEqual(self.status()["drawn"], 1)
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        stream = Stream(self.url)
        head, _ = stream.part()
        self.assertEqual(head["number"], 40, "the newest is there for who comes later")
        stream.close()
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        self.assertEqual(self.status()["drawn"], 2)
        self.end()

    def test_who_looks_later_is_not_shown_what_was_new_then(self):
        self.look(rate="200hz")
        for _ in range(3):
            before = self.status()["received"]
            number = comment(self.get("picture.jpg"))["number"]
            self.assertGreaterEqual(number, before)
            self.wait_received(number + 20)
        self.end()

    def test_a_second_and_a_stalled_browser_disturb_nobody(self):
        self.look(count=300, rate="100hz")
        stalled = [self.connect(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", 4096) for _ in range(3)]
        streams = [Stream(self.url) for _ in range(2)]
        last = [0, 0]

        def watch(i):
            while last[i] < 300:
                last[i] = streams[i].part()[0]["number"]

        threads = [threading.Thread(target=watch, args=(i,)) for i in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(cluster.PATIENCE_S)
        self.assertEqual(last, [300, 300], "both see the last picture")
        self.assertGreaterEqual(self.status()["watchers"], 2)
        for s in streams:
            s.close()
        flow = self.end()
        self.assertEqual((flow["sent"], flow["delivered"], sum(flow["dropped"].values())), (300, 300, 0))
        for s in stalled:
            s.close()

    def test_a_stalled_browser_is_let_go(self):
        self.look()
        stalled = self.connect(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n", 4096)
        self.wait_until("it looks", lambda: self.status()["watchers"] == 1)
        self.wait_until("it is let go", lambda: self.status()["watchers"] == 0, 4 * cluster.PATIENCE_S)
        stalled.close()
        self.end()

    def test_who_leaves_while_no_picture_comes_is_noticed(self):
        self.look(count=1)
        stream = Stream(self.url)
        stream.part()
        self.assertEqual(self.status()["watchers"], 1)
        stream.close()
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        self.end()

    def test_a_thousand_connects_leave_no_descriptor(self):
        self.look(rate="20hz")
        self.get("picture.jpg")
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        before = self.descriptors()
        for i in range(1000):
            s = socket.create_connection(self.address, timeout=cluster.PATIENCE_S)
            if i % 4 == 1:
                s.sendall(b"GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if i % 4 == 2:
                s.sendall(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if i % 4 == 3:
                s.sendall(b"\0\xff garbage \r\n\r\n")
            s.close()
        self.wait_until("all descriptors closed", lambda: self.descriptors() <= before)
        self.assertEqual(len(decode([self.get("picture.jpg")])), 1)
        self.end()

    def test_connections_beyond_the_limit_wait(self):
        self.look(connections=3)
        held = [Stream(self.url) for _ in range(3)]
        for s in held:
            s.part()
        more = self.connect(b"GET /status HTTP/1.0\r\n\r\n")
        held[0].part()
        more.settimeout(0.2)
        self.assertRaises(socket.timeout, more.recv, 1)
        held[1].close()
        more.settimeout(cluster.PATIENCE_S)
        self.assertTrue(more.recv(100).startswith(b"HTTP/1."))
        for s in held:
            s.close()
        self.end()

    def show_in_a_file(self, name, codec):
        app = self.write("app.yaml", APP.replace("{max_connections: \"${connections}\"}",
                                                 "{path: pictures/%s, path_period: 10ms}" % name))
        self.program = self.start("fragctl", "run", "--output", "json", app, "--", "--count", "30")
        newest = self.path("pictures/" + name)
        self.wait_until("the file", lambda: os.path.exists(newest))

        def shown():
            with open(newest, "rb") as f:
                return number_of(decode([f.read()], codec)[0])

        self.wait_until("the last frame", lambda: shown() == 29)
        self.end()
        self.assertEqual(os.listdir(self.path("pictures")), [name])

    def test_the_picture_is_a_file_too(self):
        self.show_in_a_file("newest.jpeg", "mjpeg")

    def test_the_file_may_be_a_png(self):
        self.show_in_a_file("newest.png", "png")


class Refused(ViewerTest):
    """Requests that are refused, floods and silence: each is bounded, and the page goes on."""

    def answer(self, text):
        s = self.connect(text)
        data = b""
        try:
            for data_next in iter(lambda: s.recv(65536), b""):
                data += data_next
        except ConnectionResetError:
            pass
        s.close()
        return data

    def assert_serves(self):
        self.assertEqual(len(decode([self.get("picture.jpg")])), 1)

    def test_requests_of_other_kinds(self):
        self.look()
        for path in ("nothing", "../etc/passwd", "stream/x", "stream%2f"):
            with self.assertRaises(urllib.error.HTTPError) as e:
                self.get(path)
            self.assertEqual(e.exception.code, 404)
            e.exception.close()
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "NONSENSE"):
            c = http.client.HTTPConnection(*self.address, timeout=cluster.PATIENCE_S)
            c.request(method, "/", body=b"x" * 1000 if method in ("POST", "PUT") else None)
            self.assertEqual(c.getresponse().status, 405, method)
            c.close()
        self.assert_serves()
        self.end()

    def test_names_that_are_not_this_machines(self):
        """A web site whose name resolves to loopback gets nothing through the browser."""
        self.look()
        for host, status in (("evil.example", 403), ("evil.example:80", 403), ("127.0.0.1.evil.example", 403),
                             ("[evil]", 403), ("", 403), ("a" * 5000, 403),
                             ("localhost", 200), ("127.0.0.1:%d" % self.address[1], 200), ("[::1]:1", 200)):
            head = self.answer(b"GET /status HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode()).split(b"\r\n")[0]
            self.assertEqual(int(head.split()[1]), status, host[:40])
        for heads in (b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host: localhost\r\nHost: evil.example\r\n",
                      b"Host: localhost:80\r\n evil.example\r\n", b"Host: localhost\r\n :80\r\n",
                      b"Host: localhost:evil\r\n", b"Host:\r\n localhost\r\n evil\r\n"):
            for version in (b"1.1", b"1.0"):
                head = self.answer(b"GET /status HTTP/%s\r\n%s\r\n" % (version, heads)).split(b"\r\n")[0]
                self.assertIn(head.split()[1], (b"400", b"403"), heads)
        head = self.answer(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertIn(b"Cross-Origin-Resource-Policy: same-origin\r\n", head)
        self.end()

    def test_garbage_and_giant_heads(self):
        self.look()
        for text in (b"\0" * 1000, b"\r\n" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", os.urandom(5000) + b"\r\n\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"):
            try:
                answer = self.answer(text)
            except BrokenPipeError:
                answer = b""
            self.assertFalse(answer.startswith(b"HTTP/1.1 200"), text[:40])
        self.assert_serves()
        self.end()

    def test_requests_that_never_end(self):
        """A byte from time to time does not hold a connection longer than silence does."""
        self.look(connections=4)
        started = time.monotonic()
        slow = [self.connect(b"GET / HTTP/1.1\r\n") for _ in range(4)]
        silent = [self.connect() for _ in range(4)]
        while slow:
            for s in slow[:]:
                s.settimeout(0.2)
                try:
                    s.sendall(b"A: b\r\n")
                    if s.recv(1000) == b"":
                        slow.remove(s)
                except socket.timeout:
                    pass
                except OSError:
                    slow.remove(s)
            self.assertLess(time.monotonic() - started, 10 * 5 * cluster.times_slower())
        self.assert_serves()
        for s in silent:
            s.close()
        self.end()


@unittest.skipUnless(shutil.which("chromium"), "chromium is not installed; mk/deps.sh nightly does it")
class Browser(ViewerTest):
    """The page in Chromium, which opens no window."""

    def chromium(self, *flags, patience_ms):
        """Ends after patience_ms, because the stream does not; returns what it wrote."""
        return subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--hide-scrollbars", "--window-size=%d,%d" % (COLUMNS, ROWS), "--timeout=%d" % patience_ms,
             "--user-data-dir=" + self.path("profile"), *flags, self.url],
            env=dict(self.env, HOME=self.folder, TMPDIR=self.folder), cwd=self.folder,
            capture_output=True, text=True, check=True,
            timeout=4 * cluster.PATIENCE_S).stdout

    def shown(self, patience_ms):
        """The number in the picture of the page's window; None: it has none yet."""
        shot = self.path("shot.png")
        self.chromium("--screenshot=" + shot, patience_ms=patience_ms)
        rgb = subprocess.run(["ffmpeg", "-v", "error", "-i", shot, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
                             capture_output=True, check=True, timeout=60).stdout
        self.assertEqual(len(rgb), COLUMNS * ROWS * 3)
        below = rgb[(ROWS - 1) * COLUMNS * 3]
        return number_of(rgb) if 50 < below < 100 else None  # the street is gray, the page black

    def overlay(self, patience_ms):
        dom = self.chromium("--dump-dom", "--virtual-time-budget=%d" % patience_ms, patience_ms=2 * patience_ms)
        return re.search(r'id="overlay">([^<]*)<', dom).group(1)

    def patiently(self, look, is_good):
        """Looks again, longer each time, where the machine was too slow to show anything."""
        for patience_ms in (2000, 8000, 30000):
            seen = look(patience_ms)
            if is_good(seen):
                break
        return seen

    def test_it_shows_the_frame_that_was_sent_and_the_ledgers_count(self):
        self.look(count=42)
        self.wait_received(42)
        shown = self.patiently(self.shown, lambda number: number is not None)
        self.assertEqual(shown, 41, "the last frame")
        overlay = self.patiently(self.overlay, lambda text: text != "connecting")
        self.assertRegex(overlay, r"^look\.viewer \u00b7 42 received \u00b7 [\d.]+ Hz \u00b7 [\d.]+ ms since acquisition$")
        self.wait_until("nobody looks", lambda: self.status()["watchers"] == 0)
        self.assertEqual(self.end()["delivered"], 42)


class Daemons(ViewerTest):
    def run_apart(self, parameters, cwd=None):
        app = self.write("app.yaml", WRONG % parameters)
        self.program = self.driver(app, "--output", "json")
        self.start("workerd", "--address", self.address, "--once", cwd=cwd)

    def test_a_host_that_is_confined_serves_the_page_and_writes_its_file(self):
        self.run_apart("{path: newest.jpg, path_period: 0}")
        worker = self.processes[-1]
        self.url = worker.wait_line(r"look.viewer: shows its pictures at (http://127.0.0.1:\d+/)").group(1)
        self.assertEqual(len(decode([self.get("picture.jpg")])), 1)
        delivered = self.end()["delivered"]
        with open(self.path("newest.jpg"), "rb") as f:
            self.assertEqual(number_of(decode([f.read()])[0]) + 1, delivered, "the last one")

    def test_where_hosts_may_not_write_the_flag_is_named(self):
        if not cluster.landlock():
            self.skipTest("this kernel has no Landlock")
        self.env.pop("FRAG_ALLOW_WRITE", None)
        os.mkdir(self.path("work"))
        self.run_apart("{path: %s/newest.jpg}" % cluster.BUILD, cwd=self.path("work"))
        self.assertEqual(self.program.wait(), 1, self.program.stderr)
        self.assertRegex(self.summary(self.program)["reason"],
                         r"look.viewer: cannot write the picture .*newest.jpg: Permission denied.*--allow-write")


class Mistakes(ViewerTest):
    def fails(self, parameters, code, sentence):
        p = self.start("fragctl", "run", self.write("app.yaml", WRONG % parameters))
        self.assertEqual(p.wait(), code, p.stderr)
        self.assertRegex(p.stderr + p.stdout, sentence)
        self.assert_nothing_left()

    def test_each_has_its_sentence(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.fails("{port: %d}" % port, 1,
                       r"look.viewer: cannot listen at 127.0.0.1 port %d: Address already in use; give another port" % port)
        self.fails("{address: localhost}", 2, r"address \"localhost\" is no IPv4 or IPv6 address; give 127.0.0.1")
        self.fails("{address: 192.0.2.1}", 1, r"cannot listen at 192.0.2.1 port 0: Cannot assign")
        self.fails("{path: a.mp4}", 2, r"path \".*a.mp4\" does not end with .jpg, .jpeg or .png; for a video connect draw to")
        self.fails("{width: 3}", 2, r"one of width and height is 0")
        self.fails("{tensors: [{name: a}]}", 2, r"line 7: layer \"a\" has no type; give color")
        self.fails("{tensors: [{type: box}]}", 2, r"line 7: \"box\" is not a type of layer; give color")
        self.fails("{tensors: [{type: color, colour: red}]}", 2, r"line 7, \"colour\": no layer has this key")
        self.fails("{tensors: [{type: color, name: video}]}", 1,
                   r"no message holds a tensor \"video\"; set tensors to the names")
        self.fails("{tensors: [{type: rectangles}]}", 1, r"tensor \"\" cannot be drawn as its layer says: it is not a tensor of f32")

    def test_an_address_of_the_network_is_told(self):
        p = self.start("fragctl", "run", self.write("app.yaml", WRONG % "{address: 0.0.0.0}"))
        p.wait_line(r"shows its pictures at http://0.0.0.0:\d+/, to everybody who reaches this address")
        p.signal(signal.SIGTERM)
        p.wait()
