# SPDX-License-Identifier: Apache-2.0
"""A client of a driver: what fragctl's verbs do, with Python's values."""
import json
import subprocess

from ._failure import Error


class ClientError(Error):
    """A verb has failed. kind: what failed, as "application_unknown" (docs/ERRORS.md)."""

    def __init__(self, sentence, kind, exit_code):
        super().__init__(sentence)
        self.kind = kind
        self.exit_code = exit_code


class Client:
    """Commands of a driver, which fragctl gives: it knows the protocol, keys and users.

    address: of the driver; left out: as fragctl has it. What a verb returns is the document of
    `fragctl VERB -o json` (docs/service.schema.json); ClientError is raised where it fails.
    """

    def __init__(self, address=None, *, key_file=None, insecure=False, allow_users=(),
                 fragctl="fragctl"):
        self._fragctl = fragctl
        self._flags = ["--output", "json", "--quiet"]
        if address is not None:
            self._flags += ["--address", address]
        if key_file is not None:
            self._flags += ["--key-file", str(key_file)]
        if insecure:
            self._flags += ["--insecure"]
        for user in allow_users:
            self._flags += ["--allow-user", str(user)]

    def _start(self, verb, words):
        try:
            return subprocess.Popen([self._fragctl, verb, *self._flags, *words],
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        except FileNotFoundError:
            raise Error("frag.Client needs the program %s, which is not there; install frag, of "
                        "which the wheel is a part, or give fragctl=PATH" % self._fragctl) \
                from None

    def _call(self, verb, *words):
        child = self._start(verb, words)
        try:
            out, errors = child.communicate()
        except BaseException:  # as Ctrl-C
            child.kill()
            child.communicate()
            raise
        return _document(out, errors, child.returncode)

    def start(self, graph, args=(), *, name=None, configs=(), sets=(), library_path=None,
              start_timeout=None, timeout=None, wait=False):
        """Starts the graph of a file. wait: returns when it has ended, with its summary.

        Raises ClientError too when the application that was waited for has failed.
        """
        words = [str(graph), *(("--name", name) if name else ()), *(("--wait",) if wait else ())]
        for config in configs:
            words += ["--config", str(config)]
        for text in sets:
            words += ["--set", text]
        for flag, value in (("--library-path", library_path), ("--start-timeout", start_timeout),
                            ("--timeout", timeout)):
            words += [flag, str(value)] if value is not None else []
        return self._call("start", *words, *(("--", *args) if args else ()))

    def stop(self, name=None, *, all=False, now=False, timeout=None):
        """Stops an application, or all, in order; now: at once."""
        return self._end("stop", [name] if name is not None else [], all, now, timeout)

    def restart(self, name, *, now=False, timeout=None):
        return self._end("restart", [name], False, now, timeout)

    def _end(self, verb, words, all, now, timeout):
        words += (["--all"] if all else []) + (["--now"] if now else [])
        words += ["--timeout", str(timeout)] if timeout is not None else []
        return self._call(verb, *words)

    def list(self):
        """{"applications": [...], "ended": [...], ...}"""
        return self._call("list")

    def status(self, name=None, *, measure=False):
        """The hosts of what runs; the summary of an application that has ended.

        measure: also what makes it slow, which takes a second.
        """
        return self._call("status", *([name] if name else []), *([] if measure else ["--no-wait"]))

    def set(self, name, parameter, value):
        """Changes a dynamic parameter, "fragment.operator.parameter"."""
        text = value if isinstance(value, str) else json.dumps(value)
        return self._call("set", name, "%s=%s" % (parameter, text))

    def workers(self):
        return self._call("workers")["workers"]

    def events(self, *, follow=False, since=None, level=None, operator=None):
        """What happened, an event at a time; follow: goes on until the iterator is closed."""
        words = ["--follow"] if follow else []
        for flag, value in (("--since", since), ("--level", level), ("--operator", operator)):
            words += [flag, str(value)] if value is not None else []
        child = self._start("events", words)
        try:
            for line in child.stdout:
                event = json.loads(line)
                if "failure" in event:
                    _document(line, "", event.get("exit_code", 1))
                yield event
            errors = child.stderr.read()
            if child.wait() != 0:
                _document("", errors, child.returncode)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
            child.stderr.close()


def _document(out, errors, code):
    """The document of a verb; raises what it says has failed."""
    try:
        document = json.loads(out) if out else {}
    except ValueError:
        document = {}
    failure = document.get("failure")
    if failure:
        raise ClientError(failure["sentence"], failure["code"], code)
    if code != 0:
        last = errors.strip().rsplit("\n", 1)[-1].removeprefix("fragctl: ")
        raise ClientError(last or "fragctl has ended with %d" % code, "failed", code)
    return document
