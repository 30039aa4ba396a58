# SPDX-License-Identifier: Apache-2.0
"""Recordings survive: whatever ends a recorder, ffprobe finds what came until then in its file."""
import os
import re
import signal
import subprocess
import unittest

import cluster
from test_video import REAL, have_video

APP = """
frag: 1
application: record
arguments: {out: {}}
fragments:
  play:
    operators:
      replayer: {type: video_replayer, parameters: {path: "%s", repeat: true, frame_rate: 50}}
  keep:
    operators:
      small: {type: resize, parameters: {width: 96}}
      recorder: {type: video_recorder, parameters: {path: "${out}", flush: 200ms}}
    flows: [small.out -> recorder.input]
flows: [play.replayer.output -> keep.small.in]
""" % REAL
ENOUGH = 25  # frames, of 50 a second: some are older than `flush`


@unittest.skipUnless(have_video(), "built without FFmpeg's libraries")
class Recordings(cluster.ClusterTest):
    app_text = APP

    def frames(self, name):
        p = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                            "stream=nb_read_frames", "-of", "default=nk=1:nw=1", self.path(name)],
                           capture_output=True, text=True, timeout=60)
        counts = [int(word) for word in p.stdout.split() if word.isdigit()]
        return counts[0] if counts else 0

    def wait_frames(self, name):
        """Looks at the file once for each piece that was written."""
        sizes = [0]

        def has_enough():
            sizes.append(os.path.getsize(self.path(name)) if os.path.exists(self.path(name)) else 0)
            return sizes[-1] > sizes[-2] and self.frames(name) >= ENOUGH

        self.wait_until("frames in " + name, has_enough)

    def apart(self, name):
        driver = self.driver(self.app, "--output", "json", app_args=("--out", self.path(name)))
        play, keep = [self.worker("--once", fragments=f) for f in ("play", "keep")]
        self.wait_frames(name)
        return driver, play, keep

    def test_a_file_plays_up_to_its_last_second_while_it_is_written_and_after_a_kill(self):
        names = ["out.mp4", "out.mkv", "out.ts"]
        runs = [self.start("fragctl", "run", self.app, "--", "--out", self.path(name)) for name in names]
        for run, name in zip(runs, names):
            self.wait_frames(name)
            run.signal(signal.SIGKILL)
            run.wait()
            self.assertGreaterEqual(self.frames(name), ENOUGH)
            p = subprocess.run(["ffmpeg", "-v", "error", "-i", self.path(name), "-f", "null", "-"], capture_output=True, text=True)
            # libgcrypt, which ffmpeg loads, warns where no memory may be locked.
            said = p.stderr.replace("Warning: using insecure memory!\n", "")
            self.assertEqual((p.returncode, said), (0, ""))

    def test_a_recorder_on_a_healthy_host_finishes_its_file_whatever_ends_elsewhere(self):
        for victim in ("worker", "host", "driver"):
            driver, play, keep = self.apart(victim + ".mp4")
            if victim == "driver":
                driver.signal(signal.SIGKILL)
            elif victim == "worker":
                play.signal(signal.SIGKILL)
            else:
                os.kill(int(re.search(r"runs play \(fraghost (\d+)\)", play.stderr).group(1)), signal.SIGKILL)
            keep.wait()
            recorded = re.search(r"recorder: recorded (\d+) frames", keep.stderr)
            self.assertIsNotNone(recorded, keep.stderr)
            self.assertEqual(self.frames(victim + ".mp4"), int(recorded.group(1)))
            driver.wait()
            play.wait()
            if victim != "driver":
                flow = self.flow(self.summary(driver), "play.replayer.output")
                self.assertEqual(int(recorded.group(1)), flow["delivered"])

    def test_what_a_dead_recorder_has_kept_plays(self):
        driver, play, keep = self.apart("out.mp4")
        os.kill(int(re.search(r"runs keep \(fraghost (\d+)\)", keep.stderr).group(1)), signal.SIGKILL)
        self.assertEqual(driver.wait(), 1)
        self.assertGreaterEqual(self.frames("out.mp4"), ENOUGH)
        for worker in (play, keep):
            worker.wait()

    def test_a_closed_terminal_stops_in_order(self):
        for flags in ((), ("--workers", "2"), ("--in-process",)):
            p = self.start("fragctl", "run", *flags, self.app, "--output", "json", "--", "--out", self.path("out.mp4"))
            self.wait_until("the recording", lambda: os.path.exists(self.path("out.mp4")))
            p.signal(signal.SIGHUP)
            self.assertEqual(p.wait(), 0, p.stderr)
            self.assertEqual(self.summary(p)["result"], "stopped")
            delivered = self.flow(self.summary(p), "play.replayer.output")["delivered"]
            self.assertEqual(self.frames("out.mp4"), delivered)
            os.remove(self.path("out.mp4"))

    def test_nohup_runs_on(self):
        p = self.start("fragctl", "run", self.app, "--", "--out", self.path("out.mp4"), prefix=("nohup",))
        self.wait_until("the recording", lambda: os.path.exists(self.path("out.mp4")))
        p.signal(signal.SIGHUP)
        self.wait_frames("out.mp4")
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0, p.stderr)

    def test_a_recorder_that_is_started_again_overwrites_nothing(self):
        """Not even where it may replace the file of an earlier run, which it does first."""
        self.write("out.mp4", "of an earlier run")
        self.app = self.write("app.yaml", APP.replace("  keep:\n", "  keep:\n    on_failure: {policy: restart, backoff: 10ms}\n")
                              .replace("flush", "overwrite: true, flush"))
        driver, play, keep = self.apart("out.mp4")
        os.kill(int(re.search(r"runs keep \(fraghost (\d+)\)", keep.stderr).group(1)), signal.SIGKILL)
        self.wait_frames("out-2.mp4")
        driver.signal(signal.SIGTERM)
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertGreaterEqual(self.frames("out.mp4"), ENOUGH)
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.startswith("out")), ["out-2.mp4", "out.mp4"])
        for worker in (play, keep):
            worker.wait()

    def test_the_recipe_of_the_documents(self):
        with open(os.path.join(cluster.TOP, "docs", "OPERATORS.md")) as f:
            graph = f.read().split("## Recordings")[1].split("```yaml\n")[1].split("```")[0]
        short = {'url: "rtsp://camera.local/stream", reconnect: 1h': 'path: "%s", realtime: false, count: 45' % REAL,
                 "10min": "2s", "200GB": "900kB"}
        for old, new in short.items():
            self.assertIn(old, graph)
            graph = graph.replace(old, new)
        app = self.write("app.yaml", graph)
        for run in range(2):
            p = self.start("fragctl", "run", app, cwd=self.folder)
            self.assertEqual(p.wait(), 0, p.stderr)
        self.assertRegex(p.stderr, "removed .*/recordings/[-0-9]+.mp4 to keep within disk_limit")
        self.assertRegex(p.stdout, r"recorder: [1-9][0-9]* files removed to keep to a limit of disk")
        names = sorted(os.listdir(self.path("recordings")))
        self.assertTrue(all(re.fullmatch(r"\d{8}-\d{6}(-\d+)?\.mp4", name) for name in names), names)
        sizes = [os.path.getsize(self.path("recordings/" + name)) for name in names]
        self.assertLess(sum(sizes), 900000)
        for name in names:
            self.assertIn(self.frames("recordings/" + name), range(1, 21), name)
