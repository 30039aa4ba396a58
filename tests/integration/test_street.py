# SPDX-License-Identifier: Apache-2.0
"""The examples track_people and empty_street, each alone, and watch_street, which joins them. With
the engine of tests, whose results are the brightness of the first pixel, and with the real one if
make deps-ai has fetched it."""
import os
import signal
import subprocess
import unittest

import cluster

EXAMPLES = os.path.join(cluster.TOP, "examples")
PLUGINS = os.path.join(cluster.BUILD, "lib", "frag", "plugins")
FAKE_ENGINE = os.path.join(cluster.BUILD, "tests", "engine")
FAKE_CAMERA = os.path.join(cluster.BUILD, "tests", "camera", "fake_camera.so")
AI = os.path.join(cluster.TOP, ".cache", "ai")
CLIP = os.path.join(EXAMPLES, "data", "pedestrians.mp4")
EMPTY, PEOPLE = "the street is empty", "people are in the street"
U8, F32 = 16, 4
# No score where the first pixel is black.
DETECTOR = """engine of tests
input image_tensor:0 %d 1 300 300 3
output detection_scores %d 1 100
output detection_boxes %d 1 100 4
output num_detections %d 1
""" % (U8, F32, F32, F32)


def example(name):
    return os.path.join(EXAMPLES, name, "app.yaml")


class StreetTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        for library in ("libvideo.so", "libviewer.so"):
            if not os.path.exists(os.path.join(PLUGINS, library)):
                self.skipTest("built without %s" % library)

    def ffmpeg(self, *args):
        subprocess.run(["ffmpeg", "-v", "error", *args], check=True, timeout=300)

    def run_alone(self, name, *args):
        p = self.start("fragctl", "run", "--output", "json", example(name), "--", "--realtime", "false", *args)
        self.assertEqual(p.wait(300), 0, p.stderr)
        return p, self.check_summary(p)

    def start_joined(self, *args, **env):
        driver = self.driver(example("watch_street"), "--output", "json",
                             app_args=("--realtime", "false", "--picture", self.path("picture.jpg"), *args))
        workers = [self.worker("--once", "--allow-write", self.folder, fragments=f, env=env)
                   for f in ("tracking", "state")]
        return driver, workers

    def end_joined(self, driver, workers):
        self.assert_done(driver, workers, 300)
        return self.check_summary(driver)

    def check_summary(self, program):
        summary = self.summary(program)
        self.assert_balanced(summary)
        self.assert_nothing_left()
        return summary

    def assert_delivered(self, summary, frames):
        for f in summary["flows"]:
            self.assertEqual((f["sent"], f["delivered"]), (frames, frames), f["from"])

    def assert_picture(self):
        with open(self.path("picture.jpg"), "rb") as f:
            self.assertEqual(f.read(2), b"\xff\xd8")


@unittest.skipUnless(os.path.exists(os.path.join(FAKE_ENGINE, "libopenvino_c.so")), "built without the engine of tests")
class Composed(StreetTest):
    FRAMES = 15

    def setUp(self):
        super().setUp()
        self.env["FRAG_OPENVINO"] = FAKE_ENGINE
        self.write("person-detection.xml", DETECTOR)
        self.models = ("--models", self.folder)

    def dark_then_bright(self, size="384x320"):
        for name in ("black", "white"):
            self.ffmpeg("-f", "lavfi", "-i", "color=%s:s=%s:r=10" % (name, size), "-frames:v", str(self.FRAMES),
                        "-y", self.path(name + ".mp4"))
        self.write("both.txt", "file black.mp4\nfile white.mp4\n")
        self.ffmpeg("-f", "concat", "-i", self.path("both.txt"), "-c", "copy", "-y", self.path("both.mp4"))
        return "--clip", self.path("both.mp4")

    def test_tracking_alone(self):
        _, summary = self.run_alone("track_people", *self.models, "--count", "5", "--picture", self.path("picture.jpg"))
        self.assert_delivered(summary, 5)
        self.assert_picture()

    def test_the_state_alone(self):
        p, summary = self.run_alone("empty_street", *self.models, *self.dark_then_bright())
        self.assert_delivered(summary, 2 * self.FRAMES)
        self.assertIn("frame 0: " + EMPTY, p.stderr)
        self.assertIn("frame %d: %s" % (self.FRAMES + 9, PEOPLE), p.stderr)

    def test_both_joined(self):
        """Frames are made larger or smaller, as the network of each wants them."""
        for size in "384x320", "320x240", "90x70":
            with self.subTest(size=size):
                driver, workers = self.start_joined(*self.models, *self.dark_then_bright(size))
                summary = self.end_joined(driver, workers)
                self.assert_delivered(summary, 2 * self.FRAMES)
                self.assertIn("frame %d: %s" % (self.FRAMES + 9, PEOPLE), workers[1].stderr)
                self.assert_picture()

    def test_both_joined_behind_a_camera(self):
        if not os.path.exists(os.path.join(PLUGINS, "libcapture.so")):
            self.skipTest("built without libturbojpeg")
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("the fake camera is preloaded, which sanitizers do not allow")
        driver, workers = self.start_joined(*self.models, "--source", "camera", "--device", "/dev/video99",
                                            FAKE_CAMERA="", LD_PRELOAD=FAKE_CAMERA)
        workers[1].wait_line("street: frame 0: ")
        driver.signal(signal.SIGTERM)
        self.end_joined(driver, workers)


@unittest.skipUnless(os.path.exists(os.path.join(AI, "openvino", "libopenvino_c.so")),
                     "make deps-ai has not fetched the engine and the models")
class Street(StreetTest):
    EMPTY_FRAMES, FRAMES = 12, 60

    def setUp(self):
        super().setUp()
        if "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ:
            self.skipTest("the engine does not run under sanitizers")
        self.env["FRAG_OPENVINO"] = os.path.join(AI, "openvino")

    def test_both_joined_see_an_empty_street_and_people(self):
        """The empty street is made of the clip: the median of each pixel over 25 seconds."""
        self.ffmpeg("-i", CLIP, "-vf", "tmedian=radius=127", "-frames:v", "1", self.path("empty.png"))
        self.ffmpeg("-loop", "1", "-framerate", "10", "-i", self.path("empty.png"), "-i", CLIP, "-filter_complex",
                    "[0:v]trim=end_frame=%d,setsar=1,format=yuv420p[e];[1:v]trim=end_frame=%d,setsar=1,format=yuv420p[p];"
                    "[e][p]concat=n=2" % (self.EMPTY_FRAMES, self.FRAMES), "-r", "10", self.path("both.mp4"))
        driver, workers = self.start_joined("--models", os.path.join(AI, "models"), "--clip", self.path("both.mp4"))
        summary = self.end_joined(driver, workers)
        self.assert_delivered(summary, self.EMPTY_FRAMES + self.FRAMES)
        self.assertIn("frame 0: " + EMPTY, workers[1].stderr)
        self.assertRegex(workers[1].stderr, r"frame (2[1-9]|[3-6]\d): " + PEOPLE)
        self.assert_picture()
