# SPDX-License-Identifier: Apache-2.0
"""video_replayer plays streams of RTSP: what cameras do well and badly. The server is threads of
the test; it sends the clip of known content as MPEG-TS in RTP, over the connection itself. The last
frame of MPEG-TS is complete when another one begins, and so may be missing."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
import urllib.request

import cluster
import test_streams

FRAMES = 59
TS_PACKET, TS_PACKETS = 188, 7  # of RTP, RFC 2250
SDP = (b"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=clip\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
       b"m=video 0 RTP/AVP 33\r\na=control:track\r\n")
UNIX_IN_NTP = 2208988800  # seconds from 1900, where NTP begins
BYE = struct.pack(">BBHI", 0x80, 201, 1, 1) + struct.pack(">BBHI", 0x81, 203, 1, 1)  # behind a report


class Server(test_streams.Server):
    """An RTSP server that does to its n-th connection what the n-th of its manners says; the last
    one counts for all that follow. "mute at X" answers everything before the request X; "over UDP"
    and "UDP is dropped" accept that, and the latter sends nothing that way."""
    URL = "rtsp://127.0.0.1:%d/clip"
    sdp = SDP

    def answer(self, connection, manner):
        data, port = b"", None
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                request, _, data = data.partition(b"\r\n\r\n")
                method = request.split(b" ")[0].decode()
                if manner in ("silent", "mute at " + method):
                    continue
                connection.sendall(self.reply(method, request, manner, self.sdp))
                if method == "SETUP":
                    port = re.search(rb"client_port=(\d+)", request)
                if method == "PLAY" and port is None:
                    self.play(connection, manner)
                elif method == "PLAY" and manner == "over UDP":
                    self.send(int(port[1]))
        except OSError:
            pass

    @staticmethod
    def reply(method, request, manner, sdp):
        number = next(l for l in request.split(b"\r\n") if l.lower().startswith(b"cseq"))
        head, body = [b"RTSP/1.0 200 OK", number, b"Session: 1;timeout=60"], b""
        if method == "OPTIONS":
            head.append(b"Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN")
        elif method == "DESCRIBE" and manner == "missing":
            head[0] = b"RTSP/1.0 404 Not Found"
        elif method == "DESCRIBE" and manner == "asks for a password":
            head[0:1] = [b"RTSP/1.0 401 Unauthorized", b'WWW-Authenticate: Basic realm="clip"']
        elif method == "DESCRIBE" and manner == "redirect":
            head[0:1] = [b"RTSP/1.0 302 Found", b"Location: file:///etc/passwd"]
        elif method == "DESCRIBE":
            body = os.urandom(len(sdp)) if manner == "garbage" else sdp
            head += [b"Content-Type: application/sdp", b"Content-Length: %d" % len(body)]
        elif method == "SETUP" and b"interleaved" in request:
            head.append(b"Transport: RTP/AVP/TCP;unicast;interleaved=0-1")
        elif method == "SETUP" and "UDP" in manner:
            head.append(b"Transport: RTP/AVP;unicast;%s;server_port=6000-6001"
                        % re.search(rb"client_port=\d+-\d+", request)[0])
        elif method == "SETUP":
            head[0] = b"RTSP/1.0 461 Unsupported Transport"
        return b"\r\n".join(head) + b"\r\n\r\n" + body

    def send(self, port):
        """Without BYE, which a busy receiver may read before the frames, on its other socket."""
        step = TS_PACKET * TS_PACKETS
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            for n, at in enumerate(range(0, len(self.content), step)):
                rtp = struct.pack(">BBHII", 0x80, 33, n & 0xffff, n * 3600, 1)
                s.sendto(rtp + self.content[at:at + step], ("127.0.0.1", port))
                time.sleep(0.002)  # no faster than a socket's buffer is read

    def play(self, connection, manner):
        step = TS_PACKET * TS_PACKETS
        whole = manner in ("good", "slow", "UDP is dropped", "pauses")
        end = len(self.content) if whole else len(self.content) // 2
        try:
            for n, at in enumerate(range(0, end, step)):
                rtp = struct.pack(">BBHII", 0x80, 33, n & 0xffff, n * 3600, 1)
                rtp += self.content[at:at + step]
                connection.sendall(struct.pack(">cBH", b"$", 0, len(rtp)) + rtp)
                if manner == "slow":
                    time.sleep(12 * step / len(self.content))  # all of it takes 12 s
                if manner == "pauses" and n == len(self.content) // step // 2:
                    time.sleep(1.2)  # what follows is late by so much
            if manner in ("good", "says bye", "UDP is dropped", "pauses"):
                connection.sendall(struct.pack(">cBH", b"$", 1, len(BYE)) + BYE)
            elif manner == "resets":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()
            elif manner == "is cut":
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Camera(Server):
    """Sends packets as ffmpeg has made them. ahead_s: of its clock, which it reports before all of
    them (RFC 3550, 6.4.1); None: it reports nothing."""

    def __init__(self, test, sdp, packets, ahead_s):
        self.sdp, self.packets, self.ahead_s = sdp, packets, ahead_s
        super().__init__(test, b"", "good")

    def play(self, connection, manner):
        now = time.time() + (self.ahead_s or 0)
        first_rtp, = struct.unpack_from(">I", self.packets[0], 4)
        ntp = int(now) + UNIX_IN_NTP, int(now % 1 * 2**32)
        report = struct.pack(">BBHIIIIII", 0x80, 200, 6, 1, *ntp, first_rtp, 0, 0)
        packets = [(1, report)] if self.ahead_s is not None else []
        for channel, packet in packets + [(0, p) for p in self.packets] + [(1, BYE)]:
            connection.sendall(struct.pack(">cBH", b"$", channel, len(packet)) + packet)


class Rtsp(test_streams.StreamTest):
    def packets(self):
        """The clip in packets of RTP, and what describes them."""
        sdp = self.path("clip.sdp")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
            s.settimeout(0.5)
            self.clip(30)
            subprocess.run(["ffmpeg", "-v", "error", "-i", self.path("clip.mkv"), "-c:v", "mpeg4", "-sdp_file", sdp,
                            "-f", "rtp", "rtp://127.0.0.1:%d?pkt_size=1000" % s.getsockname()[1]], check=True,
                           timeout=60)
            packets = []
            while True:
                try:
                    packets.append(s.recv(65536))
                except socket.timeout:
                    break
        with open(sdp, encoding="utf-8") as f:
            text = re.sub(r"m=video \d+", "m=video 0", f.read())
        return text.strip().replace("\n", "\r\n").encode() + b"\r\na=control:track\r\n", packets

    def serve(self, *manners):
        ts = self.path("clip.ts")
        if not os.path.exists(ts):
            self.clip(FRAMES + 1)
            subprocess.run(["ffmpeg", "-v", "error", "-i", self.path("clip.mkv"), "-c", "copy", "-f", "mpegts", ts],
                           check=True, timeout=60)
        with open(ts, "rb") as f:
            return Server(self, f.read(), *manners)

    def test_a_good_server_is_played_to_the_end(self):
        for scheme in ("rtsp:", "RTSP:"):
            url = self.serve("good").url.replace("rtsp:", scheme)
            self.assertGreaterEqual(self.frames(self.run_app(url)), FRAMES)

    def test_what_servers_do_badly_is_a_sentence(self):
        silence = r"play\.replayer: nothing came from rtsp://127\.0\.0\.1:\d+/clip for 0\.5 s; check the sender"
        useless = r"play\.replayer: cannot play rtsp://127\.0\.0\.1:\d+/clip: .*; check url and the sender"
        limits = ("--connect", "500ms", "--read", "500ms")
        for manner, sentence, args in (
                ("silent", silence, limits), ("mute at DESCRIBE", silence, limits),
                ("mute at SETUP", silence, limits), ("mute at PLAY", silence, limits),
                ("stalls", silence, limits),
                ("missing", useless, ()), ("redirect", useless, ()),
                ("garbage", r"rtsp://.*/clip holds no video; give the url of one that does", ()),
                ("resets", useless, ()), ("is cut", useless, ())):
            with self.subTest(manner):
                self.fails(self.serve(manner).url, sentence, *args)

    def test_a_lost_stream_is_connected_to_again(self):
        for manner in ("is cut", "resets"):
            with self.subTest(manner):
                server = self.serve(manner, "missing", "good")
                p = self.run_app(server.url, "--reconnect", "1000s")
                self.assertGreaterEqual(self.frames(p), FRAMES)
                self.assertRegex(p.stderr, r"; connects again")
                self.assertRegex(p.stderr, r"/clip plays (again )?after")

    def test_a_stall_is_left_behind(self):
        server = self.serve("stalls", "mute at PLAY", "good")
        p = self.run_app(server.url, "--reconnect", "1000s", "--connect", "2s", "--read", "500ms")
        self.assertGreaterEqual(self.frames(p), FRAMES)
        self.assertGreaterEqual(server.asked, 3)

    def test_a_stop_does_not_wait_for_a_silent_server(self):
        self.stop_silent("silent", "mute at SETUP", "stalls")

    def test_tcp_is_used_where_udp_is_dropped(self):
        server = self.serve("UDP is dropped")
        p = self.run_app(server.url, "--connect", "1500ms")
        self.assertGreaterEqual(self.frames(p), FRAMES)
        self.assertRegex(p.stderr, r"nothing came from rtsp://\S+/clip over UDP, so TCP is used; transport: tcp")
        self.assertEqual(server.asked, 2)
        self.fails(self.serve("UDP is dropped").url, r"nothing came from rtsp://.*/clip for 0\.5 s; check the sender",
                   "--connect", "500ms", "--transport", "udp")

    def test_the_example_of_four_cameras(self):
        """The page goes on with the three others where one sends nothing any more."""
        urls = [self.serve(*manners).url for manners in (("slow",), ("slow",), ("slow",), ("stalls", "silent"))]
        self.write("person-detection.xml", "engine of tests\ninput image_tensor:0 16 1 300 300 3\n"
                   "output detection_boxes:0 4 1 5 4\noutput detection_scores:0 4 1 5\n"
                   "output num_detections:0 4 1\n")
        app = os.path.join(cluster.TOP, "examples", "cameras", "app.yaml")
        p = self.start("fragctl", "run", "--output", "json", app, "--", "--source", "rtsp", "--models", self.folder,
                       "--picture", self.path("picture.jpg"), *("--url%d=%s" % x for x in enumerate(urls, 1)),
                       env={"FRAG_OPENVINO": os.path.join(cluster.BUILD, "tests", "engine")})
        page = p.wait_line(r"shows its pictures at (http://\S+)").group(1)

        def received():
            with urllib.request.urlopen(page + "status", timeout=cluster.PATIENCE_S) as answer:
                return json.load(answer)["received"]

        p.wait_line("camera4_live: nothing came from .*; connects again")
        before = received()
        self.wait_until("the page", lambda: received() > before + 2)
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0, p.stderr)
        flows = [f for f in self.summary(p)["flows"] if f["to"] == "cameras.viewer.receivers"]
        self.assertTrue(all(f["delivered"] for f in flows), flows)
        self.assertEqual(len(flows), 4)
        self.assertGreater(flows[3]["reused"], 0, flows)

    def test_the_example_of_a_network_camera(self):
        """On the page and in the recording, also after the camera was lost."""
        server = self.serve("is cut", "good", "silent")
        app = os.path.join(cluster.TOP, "examples", "network_camera", "app.yaml")
        p = self.start("fragctl", "run", app, "--summary", self.path("summary"), "--", "--url", server.url,
                       "--out", self.path("recorded"))
        page = p.wait_line(r"shows its pictures at (http://\S+)").group(1)
        with urllib.request.urlopen(page, timeout=cluster.PATIENCE_S) as answer:
            self.assertIn(b"<html", answer.read().lower())
        p.wait_line("; connects again")
        p.wait_line("plays again after")
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0, p.stderr)
        with open(self.path("summary"), encoding="utf-8") as f:
            recorded, shown = json.load(f)["flows"]
        self.assertGreater(recorded["sent"], 1)
        self.assertEqual(recorded["sent"], shown["sent"])
        self.assertEqual(recorded["delivered"] + sum(recorded["dropped"].values()), recorded["sent"])
        name, = os.listdir(self.path("recorded"))
        probe = subprocess.run(["ffprobe", "-v", "error", "-count_packets", "-show_entries",
                                "stream=nb_read_packets", "-of", "csv=p=0", self.path("recorded/" + name)],
                               capture_output=True, text=True, check=True)
        self.assertEqual(int(probe.stdout.strip().rstrip(",")), recorded["delivered"])

    def test_the_transport_that_is_wanted(self):
        for transport, manner in (("auto", "over UDP"), ("udp", "over UDP"), ("tcp", "UDP is dropped")):
            with self.subTest(transport):
                server = self.serve(manner)
                p = self.run_app(server.url, "--transport", transport, "--count", "10")
                self.assertEqual(self.frames(p), 10)
                self.assertNotIn("over UDP", p.stderr)
                self.assertEqual(server.asked, 1)

    def test_acquisition_times_are_those_of_the_camera_where_it_reports_them(self):
        app = self.write("times.yaml", """frag: 1
application: times
operators:
  camera:
    type: video_replayer
    parameters: {url: URL, transport: tcp, realtime: false, acquisition: WHOSE}
  rx: {type: ping_tensor_rx, ports: {in: {age: 3s}}}
flows: [camera -> rx]
""")
        with open(app, encoding="utf-8") as f:
            text = f.read()
        sdp, packets = self.packets()
        wrong = r"the clock of rtsp://\S+/clip is \S+ s %s that of this machine%s; its frames have no acquisition times"
        for whose, ahead_s, reason, line in (("media", 0, "clocks_not_comparable", None), ("sender", 0, None, None),
                                             ("sender", -6, "stale", None), ("sender", None, None, None),
                                             ("sender", -60, None, wrong % ("behind", "")),
                                             ("sender", 37, None, wrong % ("ahead of", ", so it shows TAI and not UTC"))):
            with self.subTest(whose=whose, ahead_s=ahead_s):
                server = Camera(self, sdp, packets, ahead_s)
                self.write("times.yaml", text.replace("URL", server.url).replace("WHOSE", whose))
                p = self.start("fragctl", "run", "--output", "json", app)
                self.assertEqual(p.wait(), 0, p.stderr)
                flow, = self.summary(p)["flows"]
                if reason is None:
                    self.assertEqual(flow["delivered"], flow["sent"], flow)
                else:
                    self.assertGreater(flow["dropped"][reason], flow["sent"] // 2, flow)
                self.assertEqual(p.stderr.count("its frames have no acquisition times"), 0 if line is None else 1)
                if line is not None:
                    self.assertRegex(p.stderr, line)
        self.write("times.yaml", text.replace("URL", "http://127.0.0.1:1/clip").replace("WHOSE", "sender"))
        p = self.start("fragctl", "run", "--output", "json", app)
        self.assertEqual(p.wait(), 2, p.stderr)
        self.assertIn("only a camera with a url of rtsp:// reports its time", self.summary(p)["reason"])

    def test_what_is_late_is_left_out_and_counted(self):
        p = self.run_app(self.serve("pauses").url, "--latency", "low", "--connect", "1000s")
        delivered = self.frames(p)
        sent, left_out, late = map(int, re.search(
            r"sent (\d+) frames of rtsp://\S+/clip; left out (\d+) because newer ones were there, "
            r"skipped (\d+) packets that were late", p.stderr).groups())
        self.assertEqual(sent, delivered)
        self.assertGreater(late, 0)
        self.assertLess(late, 10)  # key frames are 10 apart
        self.assertLessEqual(sent + left_out + late, FRAMES + 1)
        self.assertGreaterEqual(sent + left_out + late, FRAMES, "what was probed is shown too")
        self.assertGreater(sent, 0)

    def test_credentials_are_nowhere(self):
        """However a camera wants them, and whatever goes wrong."""
        secret = "hun.ter2"
        for user, manner in (("bob:%s@" % secret, "good"), ("bob:%s@" % secret, "asks for a password"),
                             ("bob:%s@" % secret, "resets"), ("bob:x/%s@" % secret, "good"), ("", "missing")):
            with self.subTest(user=user, manner=manner):
                server = self.serve(manner)
                host = server.url.split("//")[1]
                p = self.run_app("rtsp://%s%s/user=bob&password=%s&channel=1" % (user, host, secret))
                p.wait()
                self.assertNotIn(secret, p.stderr)
                self.assertNotIn(secret, str(self.summary(p)))
                if manner != "good":
                    self.assertIn(host + "/...", p.stderr)
                self.assert_nothing_left()

    def test_the_recipe_of_a_camera_of_the_network(self):
        with open(os.path.join(cluster.TOP, "docs", "OPERATORS.md"), encoding="utf-8") as f:
            part = f.read().partition("### A camera of the network\n")[2]
        app = self.write("recipe.yaml", re.search(r"^```yaml\n(.*?)^```", part, re.M | re.S)[1])
        p = self.start("fragctl", "run", "--output", "json", app, "--", "--url", self.serve("good").url,
                       "--out", self.path("newest.jpg"))
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertGreater(os.path.getsize(self.path("newest.jpg")), 1000)
