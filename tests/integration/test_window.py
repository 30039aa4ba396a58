# SPDX-License-Identifier: Apache-2.0
"""The operator window with the real SDL2 and its driver without a screen, which saves every picture
that a person would see."""
import ctypes
import os
import struct
import unittest

import cluster
from test_viewer import BITS, COLUMNS, ROWS, number_of

SHOW = """
frag: 1
application: look
extensions: [libclip_source.so]
operators:
  clip: {type: clip_source, parameters: {count: %d}}
  window: {type: window, parameters: %s}
flows: [clip.out -> window.receivers]
"""

CLOSE = """
frag: 1
application: look
extensions: [libwindow_closer.so]
operators:
  source:
    type: window_closer
    conditions: [{type: periodic, recess_period: 5ms}]
  window: {type: window}
flows: [source.out -> window.receivers]
"""

TWO = """
frag: 1
application: look
extensions: [libclip_source.so]
operators:
  clip: {type: clip_source}
  left: {type: window}
  right: {type: window}
flows: [{from: clip.out, to: [left.receivers, right.receivers]}]
"""


REMEDY = ("run it where DISPLAY or WAYLAND_DISPLAY names one, or show the pictures in a browser with the operator "
          "viewer")


def have_sdl():
    try:
        return bool(ctypes.CDLL("libSDL2-2.0.so.0"))
    except OSError:
        return False


def read_bmp(path):
    """Columns, rows and pixels of RGB, from the top; None while the file is not complete."""
    with open(path, "rb") as f:
        data = f.read()
    if len(data) < 54:
        return None
    start, = struct.unpack_from("<I", data, 10)
    columns, rows, _, bits = struct.unpack_from("<iiHH", data, 18)
    size = bits // 8
    row_bytes = (columns * size + 3) // 4 * 4
    if len(data) < start + rows * row_bytes:
        return None
    out = bytearray()
    for y in reversed(range(rows)):
        row = data[start + y * row_bytes:start + y * row_bytes + columns * size]
        pixels = bytearray(columns * 3)
        for channel in range(3):
            pixels[channel::3] = row[2 - channel::size]
        out += pixels
    return columns, rows, bytes(out)


class WindowTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        self.env.update(SDL_VIDEODRIVER="dummy", SDL_VIDEO_DUMMY_SAVE_FRAMES="1")

    def run_app(self, text, **env):
        return self.start("fragctl", "run", "--output", "json", self.write("app.yaml", text), env=env,
                          cwd=self.folder)

    def pictures(self):
        names = sorted(n for n in os.listdir(self.folder) if n.startswith("SDL_window"))
        return [os.path.join(self.folder, n) for n in names]

    def refused(self, text, **env):
        p = self.run_app(text, **env)
        self.assertNotEqual(p.wait(), 0)
        self.assert_nothing_left()
        return p.stderr


@unittest.skipUnless(have_sdl(), "SDL2 is not installed")
class Shown(WindowTest):
    def wait_shown(self, size, number_in, number):
        """Until the newest picture has this size and this number."""
        def is_shown():
            paths = self.pictures()
            last = paths and read_bmp(paths[-1])
            return last and last[:2] == size and number_in(last[2]) == number

        self.wait_until("frame %d is shown" % number, is_shown)

    def stop(self, p):
        p.signal(15)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assert_balanced(self.summary(p))
        self.assert_nothing_left()

    def test_it_shows_the_newest_frame(self):
        count = 20
        p = self.run_app(SHOW % (count, "{}"))
        self.wait_shown((COLUMNS, ROWS), number_of, count - 1)
        numbers = [number_of(read_bmp(path)[2]) for path in self.pictures()]
        self.assertEqual(numbers, sorted(numbers), "a picture is never older than the one before")
        self.stop(p)

    def test_its_size_and_layers_are_those_of_the_parameters(self):
        layers = "{width: 240, height: 160, window_title: street, tensors: [{name: '', type: color}]}"
        p = self.run_app(SHOW % (9, layers))
        self.wait_shown((240, 160), self.small_number, 8)
        self.stop(p)

    @staticmethod
    def small_number(rgb):
        """The number in the bar code of a picture of half the size."""
        number = 0
        for bit in range(BITS):
            number = 2 * number + (rgb[(2 * 240 + bit * 8 + 4) * 3] > 128)
        return number

    def test_closing_it_ends_what_sends_to_it(self):
        p = self.run_app(CLOSE)
        self.assertEqual(p.wait(), 0, p.stderr)
        self.assertIn("look.window: its window was closed", p.stderr)
        summary = self.summary(p)
        self.assertEqual(summary["result"], "done")
        self.assert_balanced(summary)
        self.assert_nothing_left()

    def test_a_process_has_one_window(self):
        self.assertIn("this process has a window already, and SDL2 serves one; put the fragments of the windows "
                      "into different hosts (host: NAME)", self.refused(TWO))

    def test_where_there_is_no_desktop(self):
        self.env.pop("DISPLAY", None)
        self.assertRegex(self.refused(SHOW % (1, "{}"), SDL_VIDEODRIVER="x11"),
                         r"cannot reach a desktop: .*; " + REMEDY)
        if os.path.exists("/dev/dri"):
            return
        # Without a name SDL would take a driver that nobody sees.
        del self.env["SDL_VIDEODRIVER"]
        self.env.pop("WAYLAND_DISPLAY", None)
        self.assertRegex(self.refused(SHOW % (1, "{}")), r"cannot reach a desktop: .*; " + REMEDY)


class Without(WindowTest):
    def test_where_sdl_cannot_be_loaded(self):
        self.write("libSDL2-2.0.so.0", "no library")
        self.assertRegex(self.refused(SHOW % (1, "{}"), LD_LIBRARY_PATH=self.folder),
                         r"SDL2, which opens windows, cannot be loaded: .*; install the package libsdl2-2.0-0, or "
                         "show the pictures in a browser with the operator viewer")

    def test_wrong_parameters(self):
        self.assertIn("one of width and height is 0; give both or none", self.refused(SHOW % (1, "{width: 5}")))
        self.assertIn("\"circles\" is not a type of layer",
                      self.refused(SHOW % (1, "{tensors: [{name: a, type: circles}]}")))
