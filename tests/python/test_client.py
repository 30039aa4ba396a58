# SPDX-License-Identifier: Apache-2.0
"""What a program has fragctl do: frag.Client, with a fragctl that is played, and roles."""
import json
import os
import pathlib
import tempfile
import unittest

import frag
from frag import _roles

PLAYED = """#!/bin/sh
if [ -e "$FRAG_PLAYED/out" ]; then
	cat "$FRAG_PLAYED/out"
else
	gap=
	printf '{"words": ['
	for word; do
		printf '%s"%s"' "$gap" "$word"
		gap=', '
	done
	echo ']}'
fi
cat "$FRAG_PLAYED/errors" >&2
exit "$(cat "$FRAG_PLAYED/code")"
"""

# What every verb begins with.
FIRST = ["--output", "json", "--quiet"]

VERBS = [
    (lambda c: c.start("a.yaml"), ["start", "a.yaml"]),
    (lambda c: c.start(pathlib.Path("a.yaml"), name="b", wait=True),
     ["start", "a.yaml", "--name", "b", "--wait"]),
    (lambda c: c.start("a.yaml", ["x", "-y"], configs=["c", "d"], sets=["e=1", "f=2"]),
     ["start", "a.yaml", "--config", "c", "--config", "d", "--set", "e=1", "--set", "f=2", "--",
      "x", "-y"]),
    (lambda c: c.start("a.yaml", library_path="l", start_timeout="3s", timeout="0s"),
     ["start", "a.yaml", "--library-path", "l", "--start-timeout", "3s", "--timeout", "0s"]),
    (lambda c: c.stop("a"), ["stop", "a"]),
    (lambda c: c.stop("a", now=True), ["stop", "a", "--now"]),
    (lambda c: c.stop(all=True), ["stop", "--all"]),
    (lambda c: c.stop(all=True, now=True, timeout="5s"),
     ["stop", "--all", "--now", "--timeout", "5s"]),
    (lambda c: c.restart("a"), ["restart", "a"]),
    (lambda c: c.restart("a", now=True, timeout="0s"), ["restart", "a", "--now", "--timeout", "0s"]),
    (lambda c: c.list(), ["list"]),
    (lambda c: c.status(), ["status", "--no-wait"]),
    (lambda c: c.status("a", measure=True), ["status", "a"]),
    (lambda c: c.set("a", "f.o.p", 5), ["set", "a", "f.o.p=5"]),
    (lambda c: c.set("a", "f.o.p", "5"), ["set", "a", "f.o.p=5"]),
    (lambda c: c.set("a", "f.o.p", [1, True]), ["set", "a", "f.o.p=[1, true]"]),
    (lambda c: list(c.events()), ["events"]),
    (lambda c: list(c.events(follow=True, since="1h", level="warn", operator="tx")),
     ["events", "--follow", "--since", "1h", "--level", "warn", "--operator", "tx"]),
]

CLIENTS = [
    ({}, []),
    ({"address": "h:1"}, ["--address", "h:1"]),
    ({"key_file": pathlib.Path("k")}, ["--key-file", "k"]),
    ({"insecure": True}, ["--insecure"]),
    ({"allow_users": (0, "frag")}, ["--allow-user", "0", "--allow-user", "frag"]),
    ({"address": "h:1", "key_file": "k", "allow_users": [5]},
     ["--address", "h:1", "--key-file", "k", "--allow-user", "5"]),
]

FAILURE = {"failure": {"code": "application_unknown", "sentence": "there is no a"}}

FAILURES = [
    (json.dumps(FAILURE), "", 5, ("there is no a", "application_unknown", 5)),
    (json.dumps(FAILURE), "fragctl: other\n", 0, ("there is no a", "application_unknown", 0)),
    ("", "info x\nfragctl: it broke\n", 3, ("it broke", "failed", 3)),
    ("", "", 7, ("fragctl has ended with 7", "failed", 7)),
    ("no document", "", 1, ("fragctl has ended with 1", "failed", 1)),
]


class Client(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fragctl = os.path.join(folder.name, "fragctl")
        with open(self.fragctl, "w") as file:
            file.write(PLAYED)
        os.chmod(self.fragctl, 0o755)
        self.folder = folder.name
        os.environ["FRAG_PLAYED"] = self.folder
        self.addCleanup(os.environ.pop, "FRAG_PLAYED")

    def play(self, out=None, errors="", code=0):
        """out: None: the words that fragctl got"""
        for name, text in (("out", out), ("errors", errors), ("code", str(code))):
            if text is not None:
                with open(os.path.join(self.folder, name), "w") as file:
                    file.write(text)

    def client(self, **options):
        return frag.Client(fragctl=self.fragctl, **options)

    def test_each_verb_has_its_words(self):
        self.play()
        for call, (verb, *words) in VERBS:
            with self.subTest(verb=verb, words=words):
                got = call(self.client())
                got = got[0] if isinstance(got, list) else got
                self.assertEqual(got["words"], [verb, *FIRST, *words])

    def test_each_client_has_its_flags(self):
        self.play()
        for options, flags in CLIENTS:
            with self.subTest(options=options):
                got = self.client(**options).list()
                self.assertEqual(got["words"], ["list", *FIRST, *flags])

    def test_what_failed_is_raised(self):
        for out, errors, code, expected in FAILURES:
            with self.subTest(out=out, errors=errors, code=code):
                self.play(out, errors, code)
                with self.assertRaises(frag.ClientError) as raised:
                    self.client().list()
                error = raised.exception
                self.assertEqual((str(error), error.kind, error.exit_code), expected)
        with self.assertRaisesRegex(frag.Error, "needs the program /no/fragctl"):
            frag.Client(fragctl="/no/fragctl").list()

    def test_events_come_until_one_is_a_failure(self):
        lines = [{"number": 1}, {"number": 2}, FAILURE]
        for count, errors, code, expected in (
            (2, "", 0, None),
            (3, "", 5, "there is no a"),
            (2, "fragctl: lost the driver\n", 3, "lost the driver"),
        ):
            with self.subTest(count=count, code=code):
                self.play("".join(json.dumps(l) + "\n" for l in lines[:count]), errors, code)
                got = []
                try:
                    got.extend(self.client().events())
                    raised = None
                except frag.ClientError as error:
                    raised = str(error)
                self.assertEqual(raised, expected)
        self.play("".join(json.dumps(l) + "\n" for l in lines))
        events = self.client().events(follow=True)
        self.assertEqual(next(events), {"number": 1})
        events.close()

    def test_workers_are_a_list(self):
        self.play(json.dumps({"workers": [{"name": "w"}]}))
        self.assertEqual(self.client().workers(), [{"name": "w"}])


class Roles(unittest.TestCase):
    """The flags of a program that says which role it plays, among those that are its own."""

    def test_flags_and_their_values(self):
        rows = [
            ([], []),
            (["--driver"], ["--driver"]),
            (["--address", "h:1"], []),
            (["own", "--driver", "--address", "h:1", "more"], ["--driver", "--address", "h:1"]),
            (["--address=h:1", "own", "--worker"], ["--address=h:1", "--worker"]),
            (["--workers=2", "--driver"], ["--workers=2", "--driver"]),
            (["--workers", "2"], ["--workers", "2"]),
            (["--worker", "--key-file"], ["--worker", "--key-file"]),
            (["--driver", "--", "--address", "h:1"], ["--driver"]),
            (["--", "--driver"], []),
            (["--drivers"], []),
        ]
        for argv, flags in rows:
            with self.subTest(argv=argv):
                self.assertEqual(_roles.find(argv), flags)


if __name__ == "__main__":
    unittest.main()
