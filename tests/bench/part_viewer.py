# SPDX-License-Identifier: Apache-2.0
"""The viewer's page: how old a picture is when a program has it that reads the stream, and what a
core spends on one who looks.

The clip of examples/data (768 x 576) plays at 30 frames a second. The age is that of the whole
picture, from the moment at which the viewer received its messages, as the comment of the JPEG says.

For a browser each frame bears its number as a bar code, as in tests/video. A script in the page
reads it whenever the browser is about to paint, and takes the time.
"""
import concurrent.futures
import os
import re
import statistics
import subprocess
import tempfile
import time
import urllib.request

import chromium

CLIP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "data", "pedestrians.mp4")
APP = """frag: 1
application: look
operators:
  replayer: {type: video_replayer, parameters: {path: %s, frame_rate: 30, repeat: true}}
  viewer: {type: viewer}
flows: [replayer.output -> viewer.receivers]
"""
PERIOD_S = 3
FRAMES = 300  # of the clip with bar codes, which repeats
BARS, BAR_COLUMNS, BAR_ROWS = 12, 16, 8
WITH_BARS = (
    "%(make)s moving %(frames)d | ffmpeg -v error -stream_loop -1 -i %(clip)s "
    "-f rawvideo -pix_fmt rgb24 -s 480x320 -r 30 -i - "
    "-filter_complex '[0:v]setpts=N/30/TB,fps=30[street];[1:v]crop=%(columns)d:%(rows)d:0:0[bars];"
    "[street][bars]overlay=shortest=1' -frames:v %(frames)d -c:v libx264 -crf 18 -pix_fmt yuv420p %(out)s")
SHOWN = """new Promise(resolve => {
	function look() {
		const picture = document.getElementById("picture");
		if (picture !== null && picture.naturalWidth > 0)
			resolve();
		else
			setTimeout(look, 10);
	}
	look();
})"""
PAINTED = """new Promise(resolve => {
	const picture = document.getElementById("picture"), seen = [];
	const canvas = document.createElement("canvas");
	canvas.width = %(bars)d * %(columns)d;
	canvas.height = %(rows)d;
	const context = canvas.getContext("2d", {willReadFrequently: true});
	const end = Date.now() + %(seconds)d * 1000;
	function look() {
		let number = 0;
		context.drawImage(picture, 0, 0);
		const row = context.getImageData(0, %(rows)d / 2, canvas.width, 1).data;
		for (let bar = 0; bar < %(bars)d; bar++)
			number = 2 * number + (row[(bar + 0.5) * %(columns)d * 4] > 128);
		const now = performance.timeOrigin + performance.now();
		if (seen.length === 0 || seen[seen.length - 1][0] !== number)
			seen.push([number, now]);
		if (now < end)
			requestAnimationFrame(look);
		else
			resolve(seen);
	}
	look();
})""" % {"bars": BARS, "columns": BAR_COLUMNS, "rows": BAR_ROWS, "seconds": PERIOD_S}


def watch(url, seconds):
    """The pictures of so many seconds: number, when the viewer received it, and when it was here."""
    pictures, data = [], b""
    with urllib.request.urlopen(url + "stream", timeout=30) as stream:
        boundary = b"--" + stream.headers["Content-Type"].partition("boundary=")[2].encode()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            data += stream.read1(1 << 20)
            *parts, data = data.split(boundary)
            now = time.time_ns()
            pictures += [(int(n), int(t), now) for part in parts for n, t in re.findall(
                rb"^\r\n[^\xff]*\xff\xd8\xff\xfe..frag number=(\d+) received_ns=(\d+)", part, re.S)]
    return pictures


def painted_ages(page, url):
    """The ages of pictures when the browser paints them, in ms. Those that another connection saw
    too, which knows when the viewer received them."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        pictures = pool.submit(watch, url, PERIOD_S)
        painted = page.run(PAINTED)
        received = {(number - 1) % FRAMES: ns for number, ns, _ in pictures.result()}
    # The first one was painted before anybody looked at the time.
    return [ms - received[number] / 1e6 for number, ms in painted[1:] if number in received]


def cpu_s(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def host_of(pid):
    """The process that runs the operators: the child of fragctl."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return int(found.stdout.split()[0]) if found.stdout else pid


def clip_with_bars(bench, folder):
    out = os.path.join(folder, "bars.mp4")
    subprocess.run(["/bin/sh", "-ec", WITH_BARS % {
        "make": bench.path("tests", "video", "make_clip"), "frames": FRAMES, "clip": CLIP, "out": out,
        "columns": BARS * BAR_COLUMNS, "rows": BAR_ROWS}], check=True, timeout=120)
    return out


class Looked:
    """An application that shows a clip: url is its page, host the process that draws."""

    def __init__(self, bench, folder, clip):
        app = os.path.join(folder, "app.yaml")
        with open(app, "w", encoding="utf-8") as f:
            f.write(APP % os.path.abspath(clip))
        self.program = subprocess.Popen(
            [bench.path("bin", "fragctl"), "run", app], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=bench.env)
        self.url = next(m.group(1) for m in (re.search(r"shows its pictures at (\S+)", l)
                                             for l in self.program.stderr) if m)
        self.host = host_of(self.program.pid)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.program.terminate()
        self.program.communicate(timeout=30)


def run(bench):
    if not all(os.path.exists(bench.path("lib", "frag", "plugins", "lib%s.so" % n)) for n in ("viewer", "video")):
        bench.lack("viewer: built without the viewer or FFmpeg")
        return
    median = bench.row("viewer.frame.p50", "ms", target=100)
    worst = bench.row("viewer.frame.max", "ms")
    browser = bench.row("viewer.browser.p50", "ms", target=100)
    idle = bench.row("viewer.cpu.nobody_looks", "% core")
    looking = bench.row("viewer.cpu.one_looks", "% core", floor=idle)
    with tempfile.TemporaryDirectory() as folder:
        with Looked(bench, folder, CLIP) as looked:
            for _ in bench.rounds():
                before = cpu_s(looked.host)
                time.sleep(PERIOD_S)
                idle.add((cpu_s(looked.host) - before) / PERIOD_S * 100)
                before = cpu_s(looked.host)
                ages = [(now - received) / 1e6 for _, received, now in watch(looked.url, PERIOD_S)]
                looking.add((cpu_s(looked.host) - before) / PERIOD_S * 100)
                median.add(statistics.median(ages))
                worst.add(max(ages))
        if not chromium.available():
            bench.lack("viewer: there is no Chromium (mk/deps.sh nightly)")
            return
        with Looked(bench, folder, clip_with_bars(bench, folder)) as looked:
            page = chromium.Page(looked.url, folder, bench.env)
            try:
                page.run(SHOWN)
                for _ in bench.rounds():
                    browser.add(statistics.median(painted_ages(page, looked.url)))
            finally:
                page.close()
