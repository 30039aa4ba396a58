# SPDX-License-Identifier: Apache-2.0
"""Types the pages of docs/site as a reader does, each in an empty folder and in one shell, and
looks whether the tasks of docs/tasks.md have the outcome that they name.

A block with a title is saved as that file. In a block ```console, lines that begin with `$ ` are
typed, and what follows is compared with what they print; `...` stands for what is left out, and
numbers may differ. A command ends with 0, unless the next one is `echo $?`. `make check` types
some pages, with and without daemons; `make site-check` and nightly type all. FRAG_SITE then names
the folder of the site, which Chromium opens."""
import functools
import glob
import http.server
import os
import queue
import re
import runpy
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cluster
import test_readmes

sys.path.insert(0, os.path.join(cluster.TOP, "mk"))
sys.path.insert(0, os.path.join(cluster.TOP, "tests", "bench"))
import chromium  # noqa: E402
import prose  # noqa: E402

FOLDER = os.path.join(cluster.TOP, "docs", "site")
ALWAYS = ("check", "data", "graphs", "time", "lost", "watch", "drain", "from-ros2")
BUILT = os.environ.get("FRAG_SITE")
ALL = BUILT is not None
MAKER = os.path.join(cluster.TOP, "mk", "site.py")
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
# Of each task: what must be among what its page's commands print.
OUTCOMES = {
    2: [r"Rx message value: 1\n", r"Rx message value: 3\n"],
    3: [r"(?m)^all tests passed$", r"(?m)^2 passed, 0 failed$"],
    4: [r"source\.numbers\.out -> sink\.print\.in +10 +10 +0 +0 .* shm\n"],
    5: [r"(?m)^OK$", r"(?m)^scale: 15\.0$"],
    6: [r'wrong\.yaml:4:41: .*"cuont"; did you mean "count"', r"(?m)^2$"],
    7: [r"1 passed, 0 failed\n", r"0 passed, 1 failed\n1\n"],
    8: [r"root cause: camera\.numbers is slow .* because detector\.look computes"],
    9: [r"migrated +survive detector goes on on worker c", r"survive: done in",
        r"camera\.numbers\.out -> detector\.look\.in +500\+? +\d"],
    10: [r"lost\.slow\.in +1000 +(\d+) +(\d+) +0 "],
    11: [r"camera\.clip\.output -> desk\.viewer\.receivers +20 +20 +0 +0 .* shm\n", r"(?m)^newest\.jpg$"],
    12: [r"ns i64 1\n\d+ns i64 2\n", r"ok +as_on_site: 5 messages"],
    13: [r"line: work\.scale\.factor=1000\n#\d+ +i64 \d000\n"],
    14: [r"line: source would be started again\n[\s\S]*line: source was started again\n", r"line +running +1 "],
    15: [r"#1 +i64 \d+\n#\d+ +i64 \d+\n"],
    16: [r'frag_flow_messages_sent_total\{app="watch",flow="source\.numbers\.out -> sink\.print\.in"\} [1-9]'],
    17: [r"(?m)^5$", r"source\.numbers\.out -> sink\.print\.in +10 +10 +0 +0 "],
    18: [r"\na +live +\d+ +0 .*\n +drained.*\nb +live +\d+ +1 "],
    19: [r"Rx message value: 1\n(.*\n)*.*Rx message value: 3\n"],
    20: [r"(?m)^20$"],
}
TYPED_BY_OTHERS = {1: "DEPLOY.md"}  # make nodes


def read(path):
    with open(os.path.join(FOLDER, path), encoding="utf-8") as f:
        return f.read()


PAGES = sorted(n[:-3] for n in os.listdir(FOLDER) if n.endswith(".md"))


def tasks():
    """{number: page} of docs/tasks.md."""
    return {int(n): page for n, page in re.findall(r"(?m)^\| (\d+) \| .*?\]\(([\w/.-]+)\)", read("../tasks.md"))}


def same(line):
    return re.sub(r"\d[\d.]*", "N", test_readmes.same(line))


def differences(shown, printed):
    """A line that is shown and was not printed; without a line of dots also the other way round. A
    line that ends in dots stands for all that begin so."""
    rest = [same(line) for line in printed]
    for line in shown:
        if line == "...":
            continue
        begin = same(line.removesuffix("..."))
        found = next((r for r in rest if r == begin or
                      line.endswith("...") and r.startswith(begin)), None)
        if found is None:
            return "not printed: " + line
        rest.remove(found)
    return "" if "..." in shown or not rest else "not shown: " + rest[0]


class Shell:
    """A shell that is typed into; everything that it prints comes in order."""

    def __init__(self, env, folder):
        script, end = os.pipe()  # not its stdin, which what it starts would read
        self.child = subprocess.Popen(["bash", "/dev/fd/%d" % script], env=env, cwd=folder,
                                      pass_fds=[script], stdin=subprocess.DEVNULL, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        os.close(script)
        self.script = os.fdopen(end, "w")
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            if not re.search(r": line \d+: +\d+ Killed ", line):  # which bash prints some time later
                self.lines.put(line.rstrip("\n"))

    def type(self, command):
        """(exit status, lines) of a command."""
        self.script.write('%s\n_s=$?; echo; echo "=== $_s"; (exit $_s)\n' % command)
        self.script.flush()
        printed = []
        while True:
            line = self.lines.get(timeout=cluster.PATIENCE_S * 2)
            end = re.fullmatch(r"=== (\d+)", line)
            if end:
                return int(end.group(1)), printed[:-1] if printed and not printed[-1] else printed
            printed.append(line)

    def end(self):
        self.script.close()
        self.child.wait()


class Typed(cluster.ClusterTest):
    def follow(self, page):
        text = read(page + ".md")
        for library in ("libvideo.so",) if "video_" in text or "viewer}" in text or "type: viewer" in text else ():
            if not os.path.exists(os.path.join(test_readmes.PLUGINS, library)):
                self.skipTest("built without %s" % library)
        env = dict(self.env, PATH=cluster.BIN + ":" + self.env["PATH"], PYTHONDONTWRITEBYTECODE="1",
                   PKG_CONFIG_PATH=os.path.join(cluster.BUILD, "lib", "pkgconfig"),
                   PYTHONPATH=os.path.join(cluster.BUILD, "python"),
                   FRAG_ADDRESS="127.0.0.1:%d" % self.free_port(), FRAG_PYTHON=sys.executable)
        del env["FRAG_LIBRARY_PATH"]
        env = {k: v for k, v in env.items() if not k.startswith(("MAKE", "MFLAGS"))}
        folder = self.path("page")
        os.mkdir(folder)
        blocks = BLOCK.findall(text)
        for _, name, body in blocks:
            if name:
                self.write("page/" + name, body)
        port, shell, transcript = str(self.free_port()), Shell(env, folder), []
        try:
            steps = [step for kind, _, body in blocks if kind == "console"
                     for step in test_readmes.commands("```console\n%s```" % body)]
            self.assertTrue(steps or page in ("index", "choose"), "%s shows no command" % page)
            for i, (command, shown) in enumerate(steps):
                typed = command.replace(":8089", ":" + port)
                status, printed = shell.type(typed)
                deadline = time.monotonic() + cluster.PATIENCE_S
                while "/metrics" in command and printed[-1:] and printed[-1].endswith("} 0") and \
                        time.monotonic() < deadline:  # a host reports four times a second
                    status, printed = shell.type(typed)
                log = re.search(r"2>(\S+) &$", command)
                if log:  # a reader takes longer than a daemon to begin
                    path = os.path.join(folder, log.group(1))
                    self.wait_until(command, lambda p=path: os.path.exists(p) and
                                    os.path.getsize(p) > 0)
                fails = i + 1 < len(steps) and steps[i + 1][0] == "echo $?"
                self.assertEqual(status != 0, fails and steps[i + 1][1] != ["0"], "%s\n%s" % (command, "\n".join(printed)))
                self.assertEqual(differences(shown, printed), "", "%s\n%s" % (command, "\n".join(printed)))
                transcript += printed
            shell.type("kill $(jobs -p) 2>/dev/null; wait")
        finally:
            shell.end()
        self.assert_nothing_left()
        transcript = "\n".join(transcript) + "\n"
        for number, where in tasks().items():
            for pattern in OUTCOMES[number] if where == "site/%s.md" % page else ():
                self.assertRegex(transcript, pattern, "task %d" % number)
        if page == "lost":
            sums = re.search(OUTCOMES[10][0], transcript)
            self.assertEqual(int(sums.group(1)) + int(sums.group(2)), 1000)


@unittest.skipUnless(ALL, "make site-check types these pages")
class TypedToo(Typed):
    pass


for page_name in PAGES:
    setattr(Typed if page_name in ALWAYS else TypedToo, "test_" + page_name.replace("-", "_"),
            lambda self, page=page_name: self.follow(page))
    if page_name in ALWAYS:  # once
        setattr(TypedToo, "test_" + page_name.replace("-", "_"), None)


class Tasks(unittest.TestCase):
    def test_each_task_has_a_page_and_an_outcome(self):
        found = tasks()
        self.assertEqual(list(found), list(range(1, 21)))
        self.assertEqual(set(found), set(OUTCOMES) | set(TYPED_BY_OTHERS))
        for number, page in found.items():
            self.assertEqual(page in TYPED_BY_OTHERS.values(), number in TYPED_BY_OTHERS)

    def test_each_page_begins_with_a_sentence_and_names_the_next(self):
        for page in PAGES:
            text = read(page + ".md")
            self.assertRegex(text, r"\A# [^\n]+\n\n[`\w]", page)
            if page != "index":
                self.assertRegex(text, r"(?m)^Next: \[|^\[", page)

    def test_what_differs_is_found(self):
        self.assertEqual(differences(["a 1.5 ms", "..."], ["b", "a 2 ms"]), "")
        self.assertEqual(differences(["a slow ..."], ["a slow (18 of 100)"]), "")
        self.assertEqual(differences(["a slow ..."], ["a fast (18 of 100)"]), "not printed: a slow ...")
        self.assertEqual(differences(["a"], ["a", "b"]), "not shown: b")

    def test_the_pages_are_in_plain_words(self):
        paths = [path for folder in ("", "docs", FOLDER) for path in glob.glob(os.path.join(cluster.TOP, folder, "*.md"))]
        self.assertEqual(prose.wrong_in(paths), [])

    def test_words_that_are_not_plain_are_found(self):
        self.assertEqual(prose.sentences("# A b\n\nOne two. Three `f.x` four:\n\n- five\n"),
                         [["One", "two"], ["Three", "X", "four"], ["five"]])
        self.assertTrue(list(prose.wrong_words("p.md", "This is obviously easy.\n")))
        self.assertFalse(list(prose.wrong_words("p.md", "This is `obviously` easy.\n")))
        for name, text, wrong in (("p.md", "Subscribers wait.", 1), ("from-ros2.md", "Subscribers wait.", 0),
                                  ("p.md", "Receivers wait for `subscriber`.", 0)):
            self.assertEqual(len(list(prose.wrong_words(name, text))), wrong, name + text)


class Made(unittest.TestCase):
    """The pages as mk/site.py cuts them, which takes a second and needs nothing."""

    def test_every_link_leads_to_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            r = subprocess.run([sys.executable, MAKER, "--build", folder, "--pages-only"],
                               capture_output=True, text=True, check=False)
            self.assertEqual((r.returncode, r.stdout + r.stderr), (0, ""))
            pages = glob.glob(os.path.join(folder, "site", "pages", "**", "*.md"), recursive=True)
            self.assertGreater(len(pages), 300)
            longest, shown = 0, set()
            for path in pages:
                with open(path, encoding="utf-8") as f:
                    text = f.read()
                self.assertRegex(text, r"\A# [^\n]+\n+(?!The pages about)[`\w\[(*\"]", path)  # a sentence
                self.assertIn("frag 0.1.0", text, path)
                shown |= set(re.findall(r"!\[[^\]]{4,}\]\(\S*/(\w+\.\w+)\)", text))
                if "/reference/" not in path:
                    longest = max(longest, text.count("\n"))
            self.assertLess(longest, 500)
            pictures = os.listdir(os.path.join(cluster.TOP, "docs", "pictures"))
            self.assertEqual(set(pictures) - shown, set())

    def test_a_link_that_leads_nowhere_is_found(self):
        maker = runpy.run_path(MAKER)
        page = maker["Page"]("do/a.md", "A", "# A\n\n## B\n\n[b](#b) [n](NOT.md) [c](#c) ![](a.png) `[x](NOT.md)`\n", "docs/A.md")
        links = maker["Links"]([page], cluster.TOP)
        self.assertIn("[b](a.md#b)", links.mended(page))
        self.assertEqual([w.split()[1] for w in links.wrong], ["NOT.md", "#c", "a.png"])

    def test_a_long_document_is_cut_at_its_headings(self):
        maker = runpy.run_path(MAKER)
        text = "# T\n\nIntro.\n\n" + "".join("## Part %d\n\n%s### Inner\n\nend\n" % (n, "line\n" * 100) for n in range(3))
        pages = maker["cut"]("do", "t", "T", text + "## Short\n\nstays\n", "docs/T.md")
        self.assertEqual([p.path for p in pages], ["do/t/index.md", "do/t/part-0.md", "do/t/part-1.md", "do/t/part-2.md"])
        self.assertIn("stays", pages[0].text)
        self.assertRegex(pages[1].text, r"\A# Part 0\n(.*\n)*## Inner\n")
        self.assertEqual(maker["cut"]("do", "t", "T", "# T\n\n## A\n\n## B\n", "docs/T.md").path, "do/t.md")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@unittest.skipUnless(ALL, "make site-check builds the site")
class Built(cluster.ClusterTest):
    """The site that make site has built."""

    def files(self, pattern):
        found = glob.glob(os.path.join(BUILT, "**", pattern), recursive=True)
        self.assertTrue(found)
        return found

    def test_each_page_is_there_as_markdown_with_its_version(self):
        with open(os.path.join(BUILT, "llms.txt"), encoding="utf-8") as f:
            listed = re.findall(r"(?m)^- \[.*?\]\((\S+\.md)\)", f.read())
        pages = {os.path.relpath(p, BUILT)[:-5] for p in self.files("*.html")} - {"404"}
        self.assertEqual(pages, {p[:-3] for p in listed})
        with open(os.path.join(BUILT, "llms-full.txt"), encoding="utf-8") as f:
            full = f.read()
        for page in pages:
            for ending in (".html", ".md"):
                with open(os.path.join(BUILT, page + ending), encoding="utf-8") as f:
                    text = f.read()
                self.assertIn("frag 0.1.0", text, page)
            self.assertIn(text, full, page)

    def test_every_picture_has_a_text(self):
        for path in self.files("*.html"):
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for tag in re.findall(r"<img [^>]*>|<svg class=\"drawing\"[^>]*>", text):
                self.assertRegex(tag, r'(alt|aria-label)="[^"]{4,}"', path)

    def test_nothing_comes_from_elsewhere(self):
        loads = re.compile(r'<(?:script|img|iframe|source)[^>]* src="(?:https?:)?//|<link (?![^>]*rel="canonical")[^>]*href="'
                           r'(?:https?:)?//|url\((?:https?:)?//|@import')
        for path in self.files("*.html") + self.files("*.css"):
            with open(path, encoding="utf-8") as f:
                self.assertIsNone(loads.search(f.read()), path)

    @unittest.skipUnless(chromium.available(), "chromium is not installed")
    def test_a_browser_finds_pages_and_asks_nobody_else(self):
        handler = functools.partial(Quiet, directory=BUILT)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            here = "http://127.0.0.1:%d/" % server.server_port
            page = chromium.Page("about:blank", self.folder, self.env)
            try:
                self.look(page, here)
            finally:
                page.close()
                server.shutdown()

    def look(self, page, here):
        found = "document.querySelectorAll('.md-search-result__item').length > 3"
        for place, wanted, width in (
            (here + "index.html?q=migrate", found, 1300),
            ("file://%s/run/deploy/index.html?q=migrate" % BUILT, found, 1300),
            (here + "do/survive.html", "document.querySelector('.md-footer__link') !== null", 400),
            (here + "reference/keys.html", "document.querySelector('table') !== null", 400),
            (here + "inside/architecture/state-machines.html",
             "document.querySelectorAll('svg.drawing').length > 5", 400),
        ):
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                      deviceScaleFactor=1, mobile=width < 500)
            page.call("Page.navigate", url=place)
            ready = "document.readyState === 'complete' && " + wanted
            self.wait_until(place, lambda r=ready: page.run(r), 4 * cluster.PATIENCE_S)
            asked = page.run("performance.getEntriesByType('resource').map((r) => r.name)")
            self.assertTrue(len(asked) > 2 or place.startswith("file:"))  # has none
            elsewhere = [url for url in asked if not url.startswith((here, "data:"))]
            self.assertEqual(elsewhere, [], place)
            self.assertLessEqual(page.run("document.documentElement.scrollWidth"), width, place)


if __name__ == "__main__":
    unittest.main()
