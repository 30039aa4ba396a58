# SPDX-License-Identifier: Apache-2.0
"""video_replayer plays streams of a network: what servers do well and badly. The servers are
threads of the test; the clip is that of known content."""
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
import unittest

import clips
import cluster

FRAMES = 30

APP = """
frag: 1
application: stream
arguments:
  url: {}
  connect: {default: 30s}
  read: {default: 30s}
  reconnect: {default: "0"}
  count: {default: "0"}
  transport: {default: auto}
  latency: {default: normal}
fragments:
  play:
    operators:
      replayer:
        type: video_replayer
        parameters:
          url: "${url}"
          connect_timeout: "${connect}"
          read_timeout: "${read}"
          reconnect: "${reconnect}"
          count: "${count}"
          transport: "${transport}"
          latency: "${latency}"
          realtime: false
  record:
    operators:
      recorder: {type: video_recorder, parameters: {path: out.mkv, codec: ffv1, frame_rate: 25}}
flows:
  - play.replayer.output -> record.recorder.input
"""


class Server:
    """An HTTP server that does to its n-th connection what the n-th of its manners says; the last
    one counts for all that follow."""
    URL = "http://127.0.0.1:%d/clip.mkv"

    def __init__(self, test, content, *manners, tls=None, kind="x-matroska"):
        self.content, self.manners, self.asked, self.tls = content, manners, 0, tls
        self.kind = kind.encode()
        self.held = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = self.URL % self.socket.getsockname()[1]
        test.addCleanup(self.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.socket.close()
        for c in self.held:
            c.close()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            manner = self.manners[min(self.asked, len(self.manners) - 1)]
            self.asked += 1
            self.held.append(connection)
            threading.Thread(target=self.answer, args=(connection, manner), daemon=True).start()

    def answer(self, connection, manner):
        half = len(self.content) // 2
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            if manner == "silent":
                return
            while b"\r\n\r\n" not in connection.recv(65536):
                pass
            if manner == "missing":
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            elif manner == "redirect":
                connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n")
            else:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: video/%s\r\n"
                                   b"Content-Length: %d\r\n\r\n" % (self.kind, len(self.content)))
            if manner == "good":
                connection.sendall(self.content)
            elif manner == "garbage":
                connection.sendall(bytes(range(256)) * (len(self.content) // 256 + 1))
            elif manner in ("stalls", "is cut", "resets"):
                connection.sendall(self.content[:half])
            if manner == "resets":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if manner != "stalls":
                connection.close()
        except OSError:
            pass


@unittest.skipUnless(os.path.exists(os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")),
                     "built without FFmpeg's libraries")
class StreamTest(cluster.ClusterTest):
    app_text = APP

    def clip(self, frames=FRAMES):
        return clips.make(self.path("clip.mkv"), "moving", frames, "-g", "10", "-bf", "0")

    def run_app(self, url, *args):
        return self.start("fragctl", "run", "--output", "json", self.app, "--", "--url", url, *args)

    def fails(self, url, sentence, *args, code=None):
        p = self.run_app(url, *args)
        status = p.wait()
        self.assertIn(status, (1, 2, 3) if code is None else (code,), p.stderr)
        self.assertRegex(self.summary(p)["reason"], sentence)
        self.assert_nothing_left()
        return p

    def stop_silent(self, *manners):
        """A stop does not wait for a server that says nothing."""
        for manner in manners:
            with self.subTest(manner):
                server = self.serve(manner)
                p = self.run_app(server.url, "--connect", "1000s", "--read", "1000s")
                self.wait_until("the connection", lambda: server.asked)
                p.signal(signal.SIGTERM)
                self.assertEqual(p.wait(), 0, p.stderr)
                self.assertEqual(self.summary(p)["result"], "stopped")
                self.assert_nothing_left()

    def frames(self, p):
        self.assertEqual(p.wait(), 0, p.stderr)
        summary = self.summary(p)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return self.flow(summary, "play.replayer.output")["delivered"]


class Streams(StreamTest):
    def serve(self, *manners):
        return Server(self, self.clip(), *manners)

    def test_a_good_server_is_played_to_the_end(self):
        self.assertEqual(self.frames(self.run_app(self.serve("good").url)), FRAMES)
        subprocess.run([os.path.join(clips.TOOLS, "check_clip"), "indices", self.path("out.mkv"), str(FRAMES)], check=True,
                       capture_output=True, timeout=60)

    def test_a_receiver_that_is_slow_is_named_with_the_policy_that_helps(self):
        """Each tick of it is longer than three frames, and the queue takes one."""
        slow = APP.replace("type: video_recorder,", "type: video_recorder, conditions: [{type: periodic, recess_period: 200ms}],")
        for flow, is_held in (("{from: play.replayer.output, to: record.recorder.input, capacity: 1}", True),
                              ("{from: play.replayer.output, to: record.recorder.input, policy: pop, capacity: 8}", False),
                              ("{from: play.replayer.output, to: record.recorder.input, policy: latest}", False)):
            self.app = self.write("slow.yaml", slow.replace("play.replayer.output -> record.recorder.input", flow))
            server = self.serve("good")
            p = self.run_app(server.url, "--count", "6")
            self.assertEqual(p.wait(), 0, p.stderr)
            held = self.summary(p)["fragments"][0]["operators"][0]["held_back"]
            self.assertEqual(held > 0, is_held, held)
            self.assertEqual(p.stderr.count("policy latest of its flow gives the newest one"), 1 if is_held else 0, p.stderr)
            if "pop" in flow:  # the source goes on, and its frames wait in the queue
                self.assertGreater(self.summary(p)["fragments"][1]["operators"][0]["outdated"], 0)
                self.assertEqual(p.stderr.count("live frames are "), 1, p.stderr)

    def test_by_daemons_too(self):
        """Hosts are confined, and may use the network."""
        driver = self.driver(self.app, "--output", "json", app_args=("--url", self.serve("good").url))
        workers = [self.worker("--once", fragments=f) for f in ("play", "record")]
        self.assertEqual(self.frames(driver), FRAMES)
        for w in workers:
            self.assertEqual(w.wait(), 0, w.stderr)

    def test_what_servers_do_badly_is_a_sentence(self):
        short = ("--connect", "300ms", "--read", "300ms")
        for manner, sentence, limits in (
                ("silent", r"play\.replayer: nothing came from http://127\.0\.0\.1:\d+/clip\.mkv for 0\.3 s", short),
                ("stalls", r"nothing came from http://.* for 0\.3 s; check the sender", short),
                ("missing", r"cannot play http://.*: .*404.*; check url and the sender", ()),
                ("garbage", r"cannot play http://.*: .*; check url and the sender", ()),
                ("redirect", r"cannot play http://.*; check url and the sender", ())):
            with self.subTest(manner):
                self.fails(self.serve(manner).url, sentence, *limits)

    def test_a_stream_that_never_has_a_key_frame(self):
        """As that of a camera which sends few of them. FFmpeg has some lines for each frame."""
        self.clip()
        ts = self.path("long.ts")
        subprocess.run(["ffmpeg", "-v", "error", "-i", self.path("clip.mkv"), "-c:v", "libx264", "-crf", "5", "-g",
                        "1000", "-bf", "0", ts], check=True, timeout=120)
        with open(ts, "rb") as f:
            content = f.read()
        behind = content[len(content) // 3 // 188 * 188:]
        for latency in ("normal", "low"):
            p = self.fails(Server(self, behind * 2, "stalls", kind="mp2t").url,
                           r"what came from http://.* within 0\.3 s makes no picture: it stalls, or no key frame came",
                           "--connect", "300ms", "--latency", latency)
            self.assertLessEqual(p.stderr.count("non-existing PPS"), 20, p.stderr)
        url = Server(self, content, "good", kind="mp2t").url
        self.assertEqual(self.frames(self.run_app(url)), FRAMES)

    def test_a_connection_that_is_cut_is_a_failure(self):
        for manner in ("is cut", "resets"):
            with self.subTest(manner):
                self.fails(self.serve(manner).url, r"cannot play http://.*; check url and the sender")

    def test_nobody_listens(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d/x" % s.getsockname()[1]
            self.fails(url, "cannot play .*Connection refused")
            p = self.fails(url, r"Connection refused; check url and the sender; it did not begin within 0\.1 s",
                           "--reconnect", "1000s", "--connect", "100ms")
            self.assertNotIn("come back", p.stderr)

    def test_a_lost_stream_is_connected_to_again(self):
        for manner in ("is cut", "resets"):
            with self.subTest(manner):
                server = self.serve(manner, "missing", "good")
                p = self.run_app(server.url, "--reconnect", "1000s")
                self.assertGreater(self.frames(p), FRAMES)
                self.assertRegex(p.stderr, r"; connects again")
                self.assertRegex(p.stderr, r"clip\.mkv plays again after")
                self.assertEqual(server.asked, 3)

    def test_a_stall_is_left_behind(self):
        server = self.serve("stalls", "good")
        p = self.run_app(server.url, "--reconnect", "1000s", "--read", "500ms")
        self.assertGreater(self.frames(p), FRAMES)

    def test_a_stream_that_stays_away_is_a_failure(self):
        self.fails(self.serve("is cut", "missing").url, r"; then it did not come back within 0\.1 s",
                   "--reconnect", "100ms")

    def test_a_stop_does_not_wait_for_a_silent_server(self):
        self.stop_silent("silent", "stalls")

    def test_packets_of_udp(self):
        """MPEG-TS, sent again and again until the frames are played."""
        self.clip()
        here = "127.77.%d.%d" % (os.getpid() >> 8 & 255, os.getpid() & 255)
        url = "udp://%s:5004?localaddr=%s" % (here, here)
        p = self.run_app(url, "--count", "20")
        sender = self.start("/usr/bin/ffmpeg", "-v", "error", "-re", "-stream_loop", "-1", "-i", self.path("clip.mkv"),
                            "-c", "copy", "-f", "mpegts", "udp://%s:5004?pkt_size=1316" % here)
        self.assertEqual(p.wait(), 0, p.stderr)
        sender.signal(signal.SIGTERM)
        sender.wait()
        self.assertEqual(self.frames(p), 20)

    def test_what_no_url_may_be(self):
        for url in ("file:///etc/passwd", "/etc/passwd", "concat:a|b", "pipe:0"):
            self.fails(url, r"url does not begin with http://, https://, rtsp://, rtsps:// or udp://")

    def test_a_certificate_of_nobody_is_refused(self):
        pem = self.path("server.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-subj", "/CN=127.0.0.1", "-keyout", pem, "-out", pem + ".crt"], check=True,
                       capture_output=True, timeout=60)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem + ".crt", pem)
        server = Server(self, self.clip(), "good", tls=context)
        self.fails(server.url.replace("http:", "https:"), r"cannot play https://.*; check url and the sender")

    def test_a_password_is_not_shown(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            p = self.fails("http://me:secret@127.0.0.1:%d/x?key=hidden" % s.getsockname()[1],
                           r"cannot play http://127\.0\.0\.1:\d+/x: ")
        self.assertNotIn("secret", p.stderr + p.stdout)
        self.assertNotIn("hidden", p.stderr + p.stdout)
