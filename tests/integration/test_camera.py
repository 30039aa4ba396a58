# SPDX-License-Identifier: Apache-2.0
"""A camera in whole applications. It is tests/camera/fake_camera.c, which is preloaded into hosts:
it shows the clip of known content, and does as badly as FAKE_CAMERA says."""
import json
import os
import re
import signal
import subprocess
import unittest

import cluster

PLUGIN = os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libcapture.so")
VIDEO = os.path.join(cluster.BUILD, "lib", "frag", "plugins", "libvideo.so")
FAKE = os.path.join(cluster.BUILD, "tests", "camera", "fake_camera.so")
CHECK = os.path.join(cluster.BUILD, "tests", "video", "check_clip")
EXAMPLE = os.path.join(cluster.TOP, "examples", "v4l2_camera", "app.yaml")
FRAMES = 40

APP = """
frag: 1
application: camera
arguments: {reconnect: {default: "0"}, stall: {default: 100ms}}
fragments:
  capture:
    operators:
      camera:
        type: v4l2_video_capture
        parameters: {device: /dev/video99, pass_through: true, reconnect: "${reconnect}", stall_timeout: "${stall}"}
  show:
    operators: {rx: {type: ping_tensor_rx}}
flows:
  - capture.camera.signal -> show.rx.in
"""


@unittest.skipUnless(os.path.exists(PLUGIN), "built without libturbojpeg")
class Camera(cluster.ClusterTest):
    def run_daemons(self, app, fragments, camera, *app_args):
        driver = self.driver(app, "--output", "json", app_args=app_args)
        env = {"FAKE_CAMERA": camera, "LD_PRELOAD": FAKE}
        workers = [self.worker("--once", "--allow-write", self.folder, fragments=f, env=env)
                   for f in fragments]
        return driver, workers

    def setUp(self):
        super().setUp()
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("the fake camera is preloaded, which sanitizers do not allow")

    def recipe(self, title):
        """The graph of a part of "Cameras" in OPERATORS.md."""
        with open(os.path.join(cluster.TOP, "docs", "OPERATORS.md"), encoding="utf-8") as f:
            part = f.read().partition("### %s\n" % title)[2]
        return self.write("recipe.yaml", re.search(r"^```yaml\n(.*?)^```", part, re.M | re.S)[1])

    def run_recipe(self, title, camera, *files, line="captures"):
        p = self.start("fragctl", "run", "--output", "json", self.recipe(title), "--", "--device", "/dev/video99",
                       *(a for n, f in files for a in ("--" + n, self.path(f))),
                       env={"FAKE_CAMERA": camera, "LD_PRELOAD": FAKE})
        for _, f in files:
            self.wait_until(f, lambda f=f: os.path.exists(self.path(f)))
        p.wait_line(line)
        p.signal(signal.SIGTERM)
        self.assertEqual(p.wait(), 0, p.stderr)
        return p

    def test_the_recipe_of_a_camera(self):
        self.run_recipe("A camera of this machine", "unplug=5,back=2,moves=98", ("out", "newest.jpg"),
                        line=r"the camera /dev/video99 is back after [0-9.]+ s, as /dev/video98")

    @unittest.skipUnless(os.path.exists(VIDEO), "built without FFmpeg's libraries")
    def test_the_recipe_of_a_thermal_camera(self):
        self.run_recipe("A thermal or depth camera", "formats=Y10 ", ("out", "newest.jpg"), ("raw", "raw.png"))
        for name, shown in (("newest.jpg", "480,320"), ("raw.png", "480,320,gray16be")):
            probe = subprocess.run(
                ["ffprobe", "-v", "error", "-show_entries", "stream=width,height,pix_fmt", "-of", "csv=p=0",
                 self.path(name)], capture_output=True, text=True, check=True, timeout=60)
            self.assertTrue(probe.stdout.startswith(shown), probe.stdout)

    def test_cameras_are_listed(self):
        env = {"FAKE_CAMERA": "formats=YUYV+Y10 +RGGB", "LD_PRELOAD": FAKE}
        p = self.start("fragctl", "cameras", "/dev/video99", "--controls", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertEqual(p.stdout.strip(), """/dev/video99: a camera that is not there (fake, usb-7)
  pixel_format: YUYV
    480x320 at 25
  pixel_format: Y10
    480x320 at 25
  pixel_format: RGGB
    480x320 at 25
  control brightness: 0, from -64 to 64
  control white_balance_automatic: 1, from 0 to 1
  control gain: 1, from 1 to 100
  control power_line_frequency: 0, from 0 to 2, 0: Disabled, 1: 50 Hz, 2: 60 Hz
  control exposure_time_absolute: 1, from 1 to 5000""")
        p = self.start("fragctl", "cameras", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("/dev/video99: a camera that is not there", p.stdout)
        self.assertNotIn("control", p.stdout)
        p = self.start("fragctl", "cameras", "/dev/video99", "--controls", "-o", "json", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        [camera] = json.loads(p.stdout)["cameras"]
        self.assertEqual([camera.pop(name) for name in ("device", "name", "driver", "bus", "stable_paths")],
                         ["/dev/video99", "a camera that is not there", "fake", "usb-7", []])
        sizes = [{"width": 480, "height": 320, "frame_rates": [25]}]
        self.assertEqual(camera.pop("formats"), [{"pixel_format": name, "description": None, "sizes": sizes}
                                                 for name in ("YUYV", "Y10", "RGGB")])
        controls = camera.pop("controls")
        self.assertEqual(camera, {})
        self.assertEqual(controls[0], {"name": "brightness", "value": 0, "min": -64, "max": 64, "menu": []})
        self.assertEqual(controls[3], {
            "name": "power_line_frequency", "value": 0, "min": 0, "max": 2, "menu":
            [{"value": n, "name": name} for n, name in enumerate(("Disabled", "50 Hz", "60 Hz"))]})
        self.assertEqual(len(controls), 5)
        p = self.start("fragctl", "cameras", "--output", "json", env=env)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertNotIn("controls", json.loads(p.stdout)["cameras"][-1])
        p = self.start("fragctl", "cameras", "/dev/null", "-o", "json")
        self.assertEqual(p.wait(), 3)
        self.assertEqual(json.loads(p.stdout)["failure"]["sentence"],
                         "/dev/null is no camera; fragctl cameras lists them")
        for env, device, sentence in (({}, "/dev/null", "/dev/null is no camera; fragctl cameras lists them"),
                                      ({"FAKE_CAMERA": "open=13", "LD_PRELOAD": FAKE}, "/dev/video99",
                                       "cannot open /dev/video99: Permission denied; is the user in the group video")):
            p = self.start("fragctl", "cameras", device, env=env)
            self.assertEqual(p.wait(), 3)
            self.assertIn(sentence, p.stderr)

    @unittest.skipUnless(os.path.exists(VIDEO), "built without FFmpeg's libraries")
    def test_the_example_records_what_the_camera_shows(self):
        driver, workers = self.run_daemons(
            EXAMPLE, ("capture", "record"), "formats=MJPG", "--device", "/dev/video99",
            "--count", str(FRAMES), "--out", self.folder)
        self.assert_done(driver, workers, 60)
        summary = self.summary(driver)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        flow = self.flow(summary, "capture.camera.signal")
        self.assertEqual(flow["sent"], FRAMES)
        shown = subprocess.run(
            ["ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
             "stream=nb_read_frames,width,height", "-of", "csv=p=0", self.path("camera.mp4")],
            capture_output=True, text=True, check=True, timeout=60).stdout.strip()
        self.assertEqual(shown, "480,320,%d" % flow["delivered"])
        if flow["delivered"] == FRAMES:
            check = subprocess.run([CHECK, "indices", self.path("camera.mp4"), str(FRAMES)],
                                   check=False, capture_output=True, text=True, timeout=60)
            self.assertEqual((check.returncode, check.stderr), (0, ""))

    def test_buffers_cross_to_another_host_and_come_back(self):
        """More frames than the camera has buffers."""
        driver, workers = self.run_daemons(self.write("app.yaml", APP), ("capture", "show"), "")
        workers[1].wait_line(r"rx received message 50: Tensor key: '', shape: \(320, 480, 2\)")
        driver.signal(signal.SIGTERM)
        self.assert_done(driver, workers)
        self.assert_balanced(self.summary(driver))
        self.assert_nothing_left()

    def test_a_camera_that_is_unplugged_is_the_reason_of_the_failure(self):
        driver, _ = self.run_daemons(self.write("app.yaml", APP), ("capture", "show"), "unplug=5")
        self.assertEqual(driver.wait(60), 1)
        summary = self.summary(driver)
        self.assertRegex(summary["reason"], r"capture\.camera: the camera /dev/video99 was unplugged")
        self.assert_balanced(summary)

    def test_a_camera_that_comes_back_is_used_on(self):
        driver, workers = self.run_daemons(self.write("app.yaml", APP), ("capture", "show"),
                                           "unplug=5,back=3", "--reconnect", "1000s")
        workers[0].wait_line(r"was unplugged; plug it in again; waits for it")
        workers[0].wait_line(r"the camera /dev/video99 is back after")
        workers[1].wait_line(r"rx received message 20:")
        driver.signal(signal.SIGTERM)
        self.assertEqual(driver.wait(), 0, driver.stderr)
        self.assertNotIn("for a receiver that is slower", workers[0].stderr, "nobody waited but for the camera")

    def test_a_stop_while_the_camera_is_away(self):
        driver, workers = self.run_daemons(self.write("app.yaml", APP), ("capture", "show"),
                                           "stall=5", "--reconnect", "1000s", "--stall", "1000s")
        workers[1].wait_line(r"rx received message 5:")
        driver.signal(signal.SIGTERM)
        self.assert_done(driver, workers)
        self.assert_nothing_left()
