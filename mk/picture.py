#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records make demo in a terminal (tmux) as a moving picture: an SVG that needs no script.

usage: mk/picture.py FILE.svg      after make
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from xml.sax.saxutils import escape

COLUMNS, ROWS = 134, 27
WIDTH, HEIGHT = 7.22, 15  # of a cell
SECONDS = 1.5  # that a frame is shown
COLOURS = ["#484f58", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#c9d1d9"]
SGR = re.compile(r"\x1b\[([\d;]*)m")
STYLE = """\
 svg { background: #0d1117 }
 text { font: 12px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; fill: #c9d1d9;
        white-space: pre }
 .f { visibility: hidden; animation: frame %(all)gs steps(1) infinite }
 @keyframes frame { 0%% { visibility: visible } %(share).3f%% { visibility: hidden } }
 @media (prefers-reduced-motion) {
  .f { animation: none } .f:last-of-type { visibility: visible } }
"""


def spans(line):
    """The texts of a line with their attributes."""
    bold, colour, reverse = False, None, False
    parts = SGR.split(line)
    for i, part in enumerate(parts):
        if i % 2 == 0:
            if part:
                yield part, bold, colour, reverse
            continue
        codes = [int(code or 0) for code in part.split(";")]
        for code in codes:
            if code == 0:
                bold, colour, reverse = False, None, False
            elif code in (1, 22):
                bold = code == 1
            elif code in (7, 27):
                reverse = code == 7
            elif 30 <= code <= 37 or 90 <= code <= 97:
                colour = COLOURS[code % 10]
            elif code == 39:
                colour = None


def frame(text):
    """One screen as SVG."""
    out = []
    for row, line in enumerate(text.split("\n")[:ROWS]):
        x = 0
        for part, bold, colour, reverse in spans(line):
            at = 'x="%g" y="%d"' % (10 + x * WIDTH, 22 + row * HEIGHT)
            if reverse:
                box = (10 + x * WIDTH, 11 + row * HEIGHT, len(part) * WIDTH, HEIGHT)
                out.append('<rect x="%g" y="%d" width="%g" height="%d" fill="%s"/>' % (
                    *box, colour or "#c9d1d9"))
                colour = "#0d1117"
            style = "".join(["fill: %s; " % colour if colour else "", "font-weight: bold" if bold else ""])
            style = ' style="%s"' % style if style else ""
            if part.strip():
                out.append('<text %s%s textLength="%g">%s</text>' % (
                    at, style, len(part.rstrip()) * WIDTH, escape(part.rstrip())))
            x += len(part)
    return "".join(out)


def record(folder):
    """The screens of make demo, one each second while something changes."""
    tmux = ["tmux", "-f", "/dev/null", "-L", "picture%d" % os.getpid()]
    run = "mk/demo.sh; touch %s/done; sleep 60" % folder
    subprocess.run([*tmux, "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), run], check=True)
    screens = []
    try:
        while not os.path.exists(folder + "/done"):
            time.sleep(1)
            screen = subprocess.run([*tmux, "capture-pane", "-e", "-p"], capture_output=True, text=True,
                                    check=True).stdout
            if screen.strip() and screen not in screens:
                screens.append(screen)
        time.sleep(1)
        last = subprocess.run([*tmux, "capture-pane", "-e", "-p"], capture_output=True, text=True, check=True)
        screens.append(last.stdout)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return screens


def main():
    with tempfile.TemporaryDirectory() as folder:
        screens = record(folder)
    street, killed = ([s for s in screens if "frag top" in s and name in s]
                      for name in ("video_replayer_distributed", "survives_a_dead_node"))
    chosen = street[2:8] + killed[1:] + screens[-1:] * 5
    length = SECONDS * len(chosen)
    style = STYLE % {"all": length, "share": 100 / len(chosen)}
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="%d" height="%d" role="img">\n' % (
            COLUMNS * WIDTH + 20, ROWS * HEIGHT + 20))
        f.write("<title>make demo in a terminal: fragctl top shows a street camera, then a worker is killed and "
                "the application goes on on another</title>\n<style>\n%s</style>\n" % style)
        f.write('<rect width="100%" height="100%" fill="#0d1117"/>\n')
        for i, screen in enumerate(chosen):
            f.write('<g class="f" style="animation-delay: %gs">%s</g>\n' % (i * SECONDS, frame(screen)))
        f.write("</svg>\n")


if __name__ == "__main__":
    main()
