# SPDX-License-Identifier: Apache-2.0
"""A video file played to RGB as fast as it goes, and encoded again, beside the same lines of
GStreamer: frames a second, and processor time of a frame. Played with one thread that decodes and
with as many as there are cores; encoded by x264 with one thread beside one that decodes. In one
process, and with the receiver in another."""

import os
import resource
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CLIP = os.path.join(HERE, "..", "..", "examples", "data", "pedestrians.mp4")
LAPS, FRAMES = 5, 300
CASES = ((1, "one_thread"), (0, "all_threads"), (1, "encoded"))  # threads that decode
TAKE = "{type: ping_tensor_rx}"
RECORD = "{type: video_recorder, parameters: {path: %s.mp4, overwrite: true, codec: h264}}"
APP = """frag: 1
application: play
fragments:
  camera:
    operators:
      replayer:
        type: video_replayer
        parameters: {path: %s, realtime: false, decoder_threads: %d, count: %d}
  viewer:
    operators: {take: %s}
flows: [camera.replayer.output -> viewer.take]
"""
LINE = (
    "gst-launch-1.0 -q filesrc location=%s ! qtdemux ! h264parse ! avdec_h264 max-threads=%d ! "
    "videoconvert ! video/x-raw,format=RGB ! "
)
END = "fakesink sync=false num-buffers=%d"
# As the recorder has it: RGB between the operators, x264 with the same settings, mp4 in fragments.
ENCODE = (
    "identity eos-after=%d ! queue ! videoconvert ! video/x-raw,format=I420 ! x264enc threads=1 "
    "speed-preset=veryfast tune=zerolatency pass=qual quantizer=18 ! h264parse ! "
    "mp4mux fragment-duration=1000 ! filesink location=%s.mp4"
)


def used(command, env):
    """Seconds, and milliseconds of processor time, of a program and its children."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
        env=env,
        timeout=300,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.monotonic() - begin,
        1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime),
    )


def frames_of(command_of, env):
    """Frames a second and milliseconds of a frame, without what the start takes."""
    frames = LAPS * FRAMES
    start, whole = used(command_of(1), env), used(command_of(frames), env)
    return (frames - 1) / (whole[0] - start[0]), (whole[1] - start[1]) / (frames - 1)


def has(element):
    return (
        shutil.which("gst-launch-1.0") is not None
        and subprocess.run(
            ["gst-inspect-1.0", "--exists", element],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode
        == 0
    )


def run(bench):
    if not os.path.exists(bench.path("lib", "frag", "plugins", "libvideo.so")):
        bench.lack("video: built without FFmpeg")
        return
    rows = {}
    for threads, name in CASES:
        has_gst = all(has(e) for e in ("avdec_h264", *(("x264enc",) if name == "encoded" else ())))
        gst = None
        if has_gst:
            gst = (
                bench.row("gstreamer.frames." + name, "1/s"),
                bench.row("gstreamer.cpu." + name, "ms"),
            )
        else:
            bench.lack(
                "GStreamer's decoder and x264enc (gstreamer1.0-tools, -plugins-good, "
                "-plugins-bad, -plugins-ugly and -libav)"
            )
        floors = gst or (None, None)
        frags = [
            (
                workers,
                bench.row(
                    "video.frames." + name + suffix,
                    "1/s",
                    floor=floors[0],
                    target=lambda floor: floor,
                    more_is_better=True,
                ),
                bench.row(
                    "video.cpu." + name + suffix,
                    "ms",
                    floor=floors[1],
                    target=lambda floor: 1.1 * floor,
                ),
            )
            for workers, suffix in (((), ""), (("--workers", "2"), ".two_workers"))
        ]
        rows[threads, name] = gst, frags
    with tempfile.TemporaryDirectory() as folder:
        clip, app = os.path.join(folder, "long.mp4"), os.path.join(folder, "app.yaml")
        subprocess.run(
            [
                "ffmpeg",
                "-v",
                "error",
                "-stream_loop",
                str(LAPS - 1),
                "-i",
                CLIP,
                "-an",
                "-c",
                "copy",
                clip,
            ],
            check=True,
        )

        env = dict(bench.env, FRAG_LOG_LEVEL="warn")  # no line for each frame

        def add(rate, cpu, command_of):
            for row, value in zip((rate, cpu), frames_of(command_of, env)):
                row.add(value)

        def frag(threads, name, workers, frames):
            take = RECORD % app if name == "encoded" else TAKE
            with open(app, "w", encoding="utf-8") as f:
                f.write(APP % (clip, threads, frames, take))
            return [bench.path("bin", "fragctl"), "run", "-q", *workers, app]

        def line(threads, name, frames):
            end = ENCODE % (frames, app) if name == "encoded" else END % frames
            return (LINE % (clip, threads) + end).split()

        for _ in bench.rounds():
            for (threads, name), (gst, frags) in rows.items():
                if gst is not None:
                    add(*gst, lambda frames, t=threads, n=name: line(t, n, frames))
                for workers, rate, cpu in frags:
                    add(
                        rate,
                        cpu,
                        lambda frames, t=threads, n=name, w=workers: frag(t, n, w, frames),
                    )
