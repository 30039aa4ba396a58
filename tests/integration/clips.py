# SPDX-License-Identifier: Apache-2.0
"""Clips whose every frame is known, encoded once by ffmpeg for all tests of a program."""
import os
import subprocess

import cluster

TOOLS = os.path.join(cluster.BUILD, "tests", "video")
RAW = "-f rawvideo -pix_fmt rgb24 -s 480x320 -r 25 -i - -c:v libx264 -crf 18 -pix_fmt yuv420p"
_made = {}


def make(path, kind, frames, *flags):
    """Writes the clip to path, whose suffix says the format, and returns its bytes. kind is for
    make_clip, flags are for ffmpeg."""
    key = (os.path.splitext(path)[1], kind, frames, *flags)
    if key in _made:
        with open(path, "wb") as f:
            f.write(_made[key])
        return _made[key]
    raw = subprocess.run([os.path.join(TOOLS, "make_clip"), kind, str(frames)],
                         capture_output=True, check=True, timeout=60).stdout
    subprocess.run(["ffmpeg", "-v", "error", "-y", *RAW.split(), *flags, path],
                   input=raw, check=True, timeout=120)
    with open(path, "rb") as f:
        return _made.setdefault(key, f.read())
