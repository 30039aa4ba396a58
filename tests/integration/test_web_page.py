# SPDX-License-Identifier: Apache-2.0
"""The page of fragctl web in headless Chromium: its numbers, what it says when something is lost,
keys, widths, contrasts, and how long a graph of 500 operators takes. `make page` runs this."""
import base64
import glob
import json
import os
import re
import shutil
import struct
import sys
import time
import unittest
import zlib

import cluster
import test_look
import test_web

sys.path.insert(0, os.path.join(cluster.TOP, "tests", "bench"))
import chromium  # noqa: E402

AXE = glob.glob(os.path.join(cluster.TOP, ".cache", "axe", "*", "axe.min.js"))
PICTURES = os.environ.get("FRAG_PICTURES")
THEATRE = """
frag: 1
application: theatre
extensions: [libslow.so]
fragments:
  capture:
    operators:
      left: {type: ping_tx, rate: 30hz, conditions: [{type: periodic, recess_period: 30hz}]}
      right: {type: ping_tx, conditions: [{type: periodic, recess_period: 30hz}]}
      rectify: {type: slow, parameters: {sleep_ms: 6}}
      denoise: {type: slow, parameters: {sleep_ms: 4}}
    flows:
      - {from: left.out, to: rectify.in, capacity: 4}
      - {from: right.out, to: denoise.in, capacity: 4}
  inference:
    operators:
      detect: {type: slow, parameters: {sleep_ms: 46}}
      track: {type: slow, parameters: {sleep_ms: 3}}
    flows: [{from: detect.out, to: track.in, capacity: 4}]
  display:
    operators:
      overlay: {type: slow, parameters: {sleep_ms: 5}}
      monitor: {type: slow_rx, parameters: {sleep_ms: 2}}
    flows: [{from: overlay.out, to: monitor.in, capacity: 2}]
  archive:
    operators:
      encode: {type: slow, parameters: {sleep_ms: 9}}
      writer: {type: slow_rx, parameters: {sleep_ms: 3}}
    flows: [{from: encode.out, to: writer.in, capacity: 8}]
flows:
  - {from: capture.rectify.out, to: inference.detect.in, capacity: 4}
  - {from: inference.track.out, to: display.overlay.in, capacity: 4}
  - {from: capture.denoise.out, to: archive.encode.in, capacity: 8, policy: pop}
"""
ROW = ("[...document.querySelectorAll('#table tbody tr')]"
       ".map((r) => [...r.children].map((c) => c.textContent))")
# What the page's picture records of the page; numbers differ from run to run.
LOOKS = ("[...document.querySelectorAll('button, h1, h2, summary, th, [role=tab], .lane text, .op .name')]"
         ".filter((e) => e.getClientRects().length).map((e) => [e, getComputedStyle(e)])"
         ".map(([e, s]) => [e.textContent.replace(/[\\d\\s]+/g, ' ').trim(), s.fontSize, s.color, s.fill, s.backgroundColor])")
# Each is a list of what is wrong.
CHECKS = ("contrasts", "nameless", "small", "twice", "overlapping")


def with_text(png, text):
    """A picture with a text in it, before its last chunk (IEND)."""
    chunk = b"tEXt" + b"frag\0" + text.encode("ascii")
    return png[:-12] + struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk)) + png[-12:]


def text_of(path):
    with open(path, "rb") as f:
        found = re.search(rb"tEXtfrag\0(.*)....\0\0\0\0IEND", f.read(), re.S)
    return found.group(1).decode() if found else "[]"


@unittest.skipUnless(os.environ.get("FRAG_BROWSER") and shutil.which("chromium"), "make page runs it, with chromium")
class PageTest(test_web.WebTest):
    def browse(self, width=1440, height=900, url=None):
        self.page = chromium.Page("about:blank", self.path("profile%d" % len(os.listdir(self.folder))), self.env)
        self.addCleanup(self.page.close)
        self.size(width, height)
        self.page.call("Page.navigate", url=url or self.url)
        self.wait_run("document.readyState === 'complete'")

    def size(self, width, height, scale=1):
        self.page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 500)

    def wait_run(self, script, timeout=cluster.PATIENCE_S):
        return self.wait_until(script, lambda: self.page.run(script), timeout)

    def text(self, selector):
        return self.page.run("document.querySelector(%s).textContent" % json.dumps(selector))

    def key(self, key):
        code = {"Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowLeft": 37, "Tab": 9}.get(key, ord(key[0]))
        more = {"text": key if len(key) == 1 else "\r"} if len(key) == 1 or key == "Enter" else {}
        self.page.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.page.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def rows(self, tab):
        self.page.run("chooseTab(%s)" % json.dumps(tab))
        return [[cell.replace("\u202f", "") for cell in row] for row in self.page.run(ROW)]

    def assert_ledger(self):
        """Each sum on the page is that of the driver at this moment, in which nothing moves."""
        top = json.loads(self.ok("top", "quiet", "--once", "-o", "json"))["applications"][0]
        flows = {r[0]: r[6:10] for r in self.rows("flows")}
        self.assertEqual(flows, {f["from"] + " \u2192 " + f["to"]: [str(f[k + "_sum"]) for k in ("sent", "delivered", "dropped", "lost")]
                                 for f in top["flows"]})
        self.assertEqual({r[0]: r[13] for r in self.rows("operators")}, {o["name"]: str(o["compute_count"]) for o in top["operators"]})
        delivered = self.application("quiet")["delivered"]
        self.assertIn("%d messages" % delivered, self.text("#facts").replace("\u202f", ""))
        return flows


class Numbers(PageTest):
    def test_they_are_the_ledgers_after_each_loss(self):
        d, a, b = self.serve("--state-dir", self.path("state"), workers=("a", "b"))
        port = self.free_port()
        web = self.web("--every", "250ms", listen="127.0.0.1:%d" % port)
        self.browse()
        self.wait_run("!document.getElementById('empty').hidden")
        text = test_web.QUIET.replace("  back:\n", "  back:\n    on_failure: {policy: restart}\n    host: other\n") % {"folder": self.folder}
        self.ok("start", self.write("quiet.yaml", text))
        self.wait_until("50 messages", lambda: len(self.numbers("received")) == 50)
        self.wait_run("appNow() && appNow().flows.length && appNow().flows[0].delivered_sum === 50")
        self.assert_ledger()
        # kill -9 of a host
        before = self.page.run("appNow().hosts.map((h) => h.pid)")
        os.kill(before[1], 9)
        self.wait_run("appNow().hosts[1].pid && appNow().hosts[1].pid !== %d && appNow().state === 'running'" % before[1])
        self.assertEqual([r[4] for r in self.rows("hosts")], ["0", "1"])
        self.assert_ledger()
        # of the driver
        d.kill()
        d.wait()
        self.wait_run("document.getElementById('trouble').textContent.includes('driver') && document.body.classList.contains('stale')")
        self.assertEqual(self.text("#live"), "no driver")
        d = self.serve("--state-dir", self.path("state"), port=int(self.address.rsplit(":", 1)[1]))[0]
        self.wait_run("document.getElementById('trouble').hidden && appNow() && appNow().window_ns > 0")
        self.assert_ledger()
        # of the page's process: what was is in the browser
        known = "history.get('quiet\\nback.rx').spans[0].at.filter((bucket) => bucket > 0).length"
        before = self.page.run(known)
        web.kill()
        web.wait()
        self.wait_run("document.getElementById('trouble').textContent.includes('fragctl web does not answer')")
        web = self.web("--every", "250ms", listen="127.0.0.1:%d" % port)
        self.wait_run("document.getElementById('trouble').hidden")
        self.wait_run("%s > %d" % (known, before))
        self.assert_ledger()
        events = self.rows("events")
        self.assertTrue(any("driver" in " ".join(r) or "adopted" in r for r in events), events)
        self.ok("stop", "quiet")
        self.wait_run("now.frame.list.ended.length === 1")
        self.assertEqual(self.rows("runs")[0][:2], ["quiet", "stopped"])
        self.assertEqual(self.page.run("performance.getEntriesByType('resource').map((e) => e.name).filter((n) => !n.startsWith(location.origin))"), [])
        self.end(web, d, a, b)


# Fragments of one column and of three beside each other, before and behind one of two.
STACKED = """frag: 1
application: stacked
fragments:
  source: {operators: {tx: {type: ping_tx, conditions: [{type: periodic, recess_period: 100ms}]}}}
  wide:
    operators: {one: {type: forward}, two: {type: forward}, three: {type: ping_rx}}
    flows: [one -> two.in, two -> three]
  middle: {operators: {first: {type: forward}, last: {type: ping_rx}}, flows: [first -> last]}
  left: {operators: {rx: {type: ping_rx}}}
  right: {operators: {rx: {type: ping_rx}}}
  far: {operators: {rx: {type: ping_rx}}}
flows:
  - {from: source.tx, to: [left.rx, wide.one.in, middle.first.in, right.rx]}
  - wide.two -> far.rx
"""


class Use(PageTest):
    def checks(self):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "page_checks.js")) as f:
            self.page.run(f.read())

    def test_no_box_lies_on_another(self):
        self.serve(workers=("a",))
        self.web()
        self.ok("start", self.write("stacked.yaml", STACKED))
        self.browse()
        self.wait_run("document.querySelectorAll('.fragment').length === 6")
        self.checks()
        self.assertEqual(self.page.run("checks.overlapping()"), [])
        self.page.run("document.querySelectorAll('.fragment > rect')[1].setAttribute('height', 900); 0")
        self.assertNotEqual(self.page.run("checks.overlapping()"), [], "the check sees them")

    def launch(self, *args, name="node<img src=x onerror=alert(1)>&\"'\u00e9"):
        self.odd = name
        self.serve()
        self.worker("--name", name, fragments="capture,display")
        self.worker("--name", "rack", fragments="inference,archive")
        self.wait_until("workers", lambda: len(self.live_workers()) == 2)
        self.web(*args)
        self.ok("start", self.write("theatre.yaml", THEATRE))
        self.browse()
        self.wait_run("appNow() && appNow().window_ns > 0 && appNow().cause.operator === 'inference.detect'")

    def test_keys_alone_and_a_command_that_asks(self):
        self.launch("--control")
        self.wait_run("document.querySelector('.op.guilty .name').textContent === 'detect'")
        self.assertIn("inference.detect", self.text("#sentence"))
        self.assertEqual(self.page.run("document.querySelectorAll('.op.guilty').length"), 1)
        self.assertEqual(self.page.run("document.images.length"), 0, "a name is a text")
        self.assertIn(self.odd, self.page.run("[...document.querySelectorAll('.lane text')].map((t) => t.textContent)"))
        self.key("r")
        self.assertEqual(self.text("#panel-title"), "inference.detect")
        self.wait_run("document.querySelector('.log').textContent.length > 0")
        self.key("Escape")
        self.assertTrue(self.page.run("document.getElementById('panel').hidden"))
        self.key("ArrowRight")
        self.assertEqual(self.page.run("document.activeElement.querySelector('.name').textContent"), "track")
        self.key("Enter")
        self.assertEqual(self.text("#panel-title"), "inference.track")
        self.key("Escape")
        self.key("2")
        self.assertEqual(self.page.run("document.activeElement.id"), "tab-flows")
        self.key("/")
        for letter in "detect":
            self.key(letter)
        self.assertEqual(len(self.page.run(ROW)), 2)
        self.key("Escape")
        self.assertEqual(len(self.page.run(ROW)), 8)
        self.page.run("document.querySelector('[data-key=sent]').focus()")
        self.key("Enter")
        sent = [int(r[6]) for r in self.rows("flows")]
        self.assertEqual(sent, sorted(sent, reverse=True))
        self.assertEqual(self.page.run("document.activeElement.dataset.key"), "sent")
        self.assertIn("theatre: ", self.text("#announced"))
        for address, panel in (("#theatre/operator/inference.track", "inference.track"), ("#%E0%A4%A", None)):
            self.page.run("location.hash = %s; location.reload()" % json.dumps(address))
            self.wait_run("typeof now !== 'undefined' && appNow() && appNow().window_ns > 0")
            if panel:
                self.wait_run("document.getElementById('panel-title').textContent === %s" % json.dumps(panel))
        run = self.application("theatre")["run"]
        self.page.run("document.getElementById('restart').focus()")
        self.key("Enter")
        self.assertIn("start it anew?", self.text("#ask-text"))
        self.key("Enter")
        self.assertEqual(self.application("theatre")["run"], run, "Cancel has the focus")
        self.page.run("document.getElementById('stop').click()")
        self.page.run("document.getElementById('ask-yes').click()")
        self.wait_until("its end", lambda: self.application("theatre") is None)

    def test_contrast_names_and_widths(self):
        self.launch()
        self.checks()
        for theme in range(2):
            for script in ("close()", "showCause()", "openFlow(Graph.flowKey(appNow().flows[0]))"):
                self.page.run(script)
                time.sleep(0.3)
                for name in CHECKS:
                    self.assertEqual(self.page.run("checks.%s()" % name), [], name + " " + script)
                if AXE:
                    with open(AXE[0]) as f:
                        self.page.run(f.read())
                    found = self.page.run("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
                                          ".then((r) => r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 120)).join(' ')))")
                    self.assertEqual(found, [], "axe-core, theme %d, %s" % (theme, script))
            self.page.run("close(), theme(true)")
        for width in (320, 390, 768):
            self.size(width, 844, 2)
            time.sleep(0.3)
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
            named = self.page.run("document.querySelector('#table tbody th').offsetWidth")
            self.assertGreaterEqual(named, 0.35 * min(width, 390), "a name is not broken into pieces")

    def test_the_picture_of_the_documents(self):
        """It shows the page as it is: the same buttons, headings and names in the same colours.
        `make page PICTURES=docs/pictures` makes it anew."""
        self.launch(name="theatre-1")
        self.wait_run("appNow().operators.reduce((sum, o) => sum + o.compute_count, 0) > 2000")
        shown = self.page.run(LOOKS)
        if PICTURES:
            self.wait_run("document.getElementById('sentence').textContent.includes('because inference.detect computes')", 90)
            shot = base64.b64decode(self.page.call("Page.captureScreenshot", format="png")["data"])
            with open(os.path.join(PICTURES, "web.png"), "wb") as f:
                f.write(with_text(shot, json.dumps(shown)))
        self.assertEqual(json.loads(text_of(os.path.join(cluster.TOP, "docs", "pictures", "web.png"))), shown)


class Pictures(PageTest):
    PIXEL = "(() => { const c = document.querySelector('.picture canvas'); return [c.width, c.height, ...c.getContext('2d').getImageData(7, 9, 1, 1).data]; })()"

    def test_a_flow_that_carries_images_shows_them(self):
        """In two browsers, of which one comes to a graph that the other has started."""
        d, a = self.serve(workers=("a",))
        self.write("cam.yaml", test_look.PICTURES % {"folder": self.folder})
        web = self.web("--control", "--graphs", self.folder)
        self.browse()
        first = self.page
        self.wait_run("now.frame && !document.getElementById('tab-graphs').hidden")
        self.key("7")
        self.wait_run("document.activeElement.id === 'tab-graphs' && [...document.querySelectorAll('#table tbody tr')].length === 3")
        self.page.run("[...document.querySelectorAll('#table tbody tr')].find((r) => r.textContent.includes('cam.yaml')).querySelector('td button').click()")
        self.assertEqual(self.text("#ask-text"), "Start the application of cam.yaml?")
        self.page.run("document.getElementById('ask-yes').click()")
        self.wait_run("appNow() && appNow().application === 'cam' && appNow().window_ns > 0")
        self.browse()
        self.wait_run("appNow() && appNow().window_ns > 0")
        for self.page in (first, self.page):
            self.page.run("openFlow('source.tx.out -> source.rx.in')")
            self.wait_run("!document.querySelector('.picture').hidden")
            width, height, red, green, blue, alpha = self.page.run(self.PIXEL)
            self.assertEqual((width, height, alpha, red == green == blue), (150, 200, 255, True))
            self.assertIn("tensor frame uint8 [400, 300, 3]", self.text(".passed"))
            self.page.run("openFlow('count.tx.out -> sink.rx.in')")
            self.wait_run("document.querySelector('.passed').textContent.includes('i64 ')")
            self.assertTrue(self.page.run("document.querySelector('.picture').hidden"))
        self.ok("stop", "cam")
        self.end(web, d, a)


def large(pipelines, length, rate):
    text = "frag: 1\napplication: large\nfragments:\n"
    for g in range(2):
        ops = ["      tx%d: {type: ping_tx, conditions: [{type: periodic, recess_period: %s}]}\n" % (p, rate) +
               "".join("      f%d_%d: {type: forward}\n" % (p, k) for k in range(length - 2)) + "      rx%d: {type: ping_rx}\n" % p
               for p in range(pipelines // 2)]
        names = [["tx%d" % p] + ["f%d_%d" % (p, k) for k in range(length - 2)] + ["rx%d" % p] for p in range(pipelines // 2)]
        text += "  g%d:\n    operators:\n%s    flows:\n%s" % (g, "".join(ops), "".join(
            "      - %s -> %s\n" % pair for line in names for pair in zip(line, line[1:])))
    return text


class Large(PageTest):
    def cpu_ms(self):
        """CPU time of the page's thread since it was opened."""
        self.page.call("Performance.enable", timeDomain="threadTicks")
        return 1000 * next(m["value"] for m in self.page.call("Performance.getMetrics")["metrics"] if m["name"] == "TaskDuration")

    def busy_ms(self, seconds):
        """How long the page computed for each moment that it was sent."""
        self.page.run("window.moments = 0; const was = take; take = (f) => { moments++; was(f); }; 0")
        before = self.cpu_ms()
        time.sleep(seconds)
        return (self.cpu_ms() - before) / max(1, self.page.run("moments"))

    def launch(self, text):
        self.serve(workers=("a", "b"))
        self.web()
        self.ok("start", self.write("large.yaml", text))
        self.browse()
        self.wait_run("appNow() && appNow().window_ns > 0 && document.querySelectorAll('.op').length > 0")

    def test_500_operators_of_more(self):
        self.launch(large(104, 5, "2hz"))
        self.assertEqual(self.page.run("document.querySelectorAll('.op').length"), 500)
        self.assertIn("20 operators", self.text("#left-out"))
        time.sleep(3)
        self.assertLess(self.busy_ms(5), 200 * cluster.TIMES_SLOWER)
        places = "JSON.stringify([...document.querySelectorAll('.op')].map((o) => o.getAttribute('transform')))"
        begun = self.cpu_ms()
        self.page.run("new Promise((done) => { Graph.clear(); draw(); requestAnimationFrame(() => setTimeout(done, 0)); })")
        self.assertLess(self.cpu_ms() - begun, 200 * cluster.TIMES_SLOWER, "the frame in which it is laid out")
        before = self.page.run(places)
        time.sleep(2.5)
        self.assertEqual(self.page.run(places), before, "nothing moves")

    def test_50_operators_at_60_hz(self):
        self.launch(large(10, 5, "30hz"))
        begun = self.cpu_ms()
        frames = self.page.run("new Promise((done) => { let n = 0; const next = () => ++n < 180 ? requestAnimationFrame(next) : done(n); next(); })")
        self.assertLess((self.cpu_ms() - begun) / frames, 1000 / 60 * cluster.TIMES_SLOWER)


if __name__ == "__main__":
    cluster.main()
