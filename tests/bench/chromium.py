# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium with one page, in which the caller runs scripts. The two talk over a pair of
pipes, as --remote-debugging-pipe says: JSON that ends with a NUL."""
import fcntl
import json
import os
import shutil
import signal
import subprocess

NEEDED_FDS = (3, 4)  # where Chromium reads and writes, by definition
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--remote-debugging-pipe")


def available():
    return shutil.which("chromium") is not None


class Page:
    """A page of a Chromium that ends with it. folder: for its files."""

    def __init__(self, url, folder, env):
        theirs_in, self.to = os.pipe()
        self.back, theirs_out = os.pipe()
        self.data, self.number = b"", 0

        def take_pipes():
            # above those that are needed, of which none may be overwritten
            held = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
            for fd, wanted in zip(held, NEEDED_FDS):
                os.dup2(fd, wanted)

        self.program = subprocess.Popen(
            ["chromium", *FLAGS, "--user-data-dir=" + os.path.join(folder, "profile"), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=dict(env, HOME=folder, TMPDIR=folder), close_fds=False, preexec_fn=take_pipes,
            process_group=0)
        os.close(theirs_in)
        os.close(theirs_out)
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.navigate", url=url)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.data:
                more = os.read(self.back, 1 << 16)
                if not more:
                    raise RuntimeError("Chromium has ended")
                self.data += more
            text, _, self.data = self.data.partition(b"\0")
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]["message"]))
                return answer["result"]

    def run(self, script):
        """The value of an expression, also of a promise."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def close(self):
        os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait()
        os.close(self.to)
        os.close(self.back)
