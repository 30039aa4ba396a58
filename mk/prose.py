#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the language of documents: at most WORDS_MEAN words a sentence on average in each of them,
none of the words in AVOID, none of those in OTHERS unless the page is about other systems, and with
--spelling only what hunspell knows (British English) or docs/site/words.txt lists. Code, tables'
rulers and links' targets do not count.

usage: mk/prose.py [--spelling] FILE.md...    prints sentences and words a sentence of each, and
       what is wrong
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORDS_MEAN = 25
LIST = os.path.join(TOP, "docs", "site", "words.txt")
# Words that say nothing, or that have a plainer one.
AVOID = {
    "obviously": "", "simply": "", "easily": "", "please": "", "basically": "", "seamless": "",
    "seamlessly": "", "powerful": "", "utilize": "use", "utilise": "use", "leverage": "use", "leverages": "uses",
    "facilitate": "help", "in order to": "to", "prior to": "before", "due to the fact that": "because",
    "e.g": "for example", "i.e": "that is", "etc": "name the others, or such as", "blazing": "",
}
# Words of other systems for what has a word here, so that each thing has one.
OTHERS = {
    "publisher": "sender", "subscriber": "receiver", "codelet": "operator", "component": "operator, or library",
    "actor": "operator", "vertex": "operator", "dataflow": "graph", "data flow graph": "graph", "broker": "driver",
    "coordinator": "driver", "master": "driver", "slave": "worker", "worker node": "node",
    "compute node": "node", "server node": "node", "backpressure": "a full queue",
    "back-pressure": "a full queue",
}
ABOUT_OTHERS = re.compile(r"from|benchmarks|python", re.I)
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")


def blocks(text, with_tables=True):
    """The paragraphs, items and cells of a document, without code; a code quote is `X`."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$|<!--.*?-->|<svg.*?</svg>|^<.*?>$", "\n\n", text)
    text = re.sub(r"`[^`\n]+(?:\n[^`\n]+)?`", "X", text)
    text = re.sub(r"!?\[((?:[^\[\]])*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"(?m)^#.*$|^[|: -]+$", "\n", text)
    text = re.sub(r"(?m)^ *(?:[-*]|\d+\.) ", "\n\n", text)
    text = re.sub(r"(?m)^\|(.*)\|$", lambda m: "\n\n" + (m.group(1) if with_tables else "").replace(
        " | ", "\n\n") + "\n\n", text)
    for block in re.split(r"\n\s*\n", text):
        if block.strip():
            yield " ".join(block.split())


def sentences(text):
    """The words of each sentence; cells of tables are none."""
    found = []
    for block in blocks(text, False):
        for sentence in re.split(r"(?<=[.!?:;])[)\"*]*\s+(?=[\"(*]*[A-Z0-9])", block):
            words = re.findall(r"[\w'’./+%-]*\w", sentence)
            if words:
                found.append(words)
    return found


def mean(text):
    found = sentences(text)
    return len(found), sum(map(len, found)) / max(1, len(found))


def wrong_words(name, text):
    flat = " ".join(blocks(text))
    for word, better in AVOID.items():
        if re.search(r"(?i)(?<![\w/-])%s(?![\w/-])" % re.escape(word), flat):
            yield "%s: \"%s\"%s" % (name, word, ": write \"%s\"" % better if better else " says nothing")
    for word, ours in OTHERS.items() if not ABOUT_OTHERS.search(os.path.basename(name)) else ():
        if re.search(r"(?i)(?<![\w-])%ss?(?![\w-])" % word, flat):
            yield "%s: \"%s\": the word here is \"%s\"" % (name, word, ours)


def wrong_in(paths):
    wrong = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        count, words = mean(text)
        if count and words > WORDS_MEAN:
            wrong.append("%s: %.1f words a sentence" % (path, words))
        wrong += wrong_words(path, text)
    return wrong


def misspelt(texts):
    """[(name, word)] of what hunspell does not know, nor the list."""
    with open(LIST, encoding="utf-8") as f:
        known = {line.strip().lower() for line in f if not line.startswith("#")}
    places = {}
    for name, text in texts.items():
        for word in WORD.findall(" ".join(blocks(text))):
            places.setdefault(re.sub(r"['’]s?$", "", word.strip("'’-")), name)
    r = subprocess.run(["hunspell", "-l", "-d", "en_GB", "-i", "utf-8"], input="\n".join(sorted(places)),
                       capture_output=True, text=True, check=True,
                       env=dict(os.environ, LC_ALL="C.UTF-8"))
    return [(places.get(w, ""), w) for w in sorted(set(r.stdout.split()))
            if w.lower() not in known and not re.search(r"[A-Z].*[A-Z]|_|\d", w)]


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            texts[path] = f.read()
        print("%5d sentences, %4.1f words each: %s" % (*mean(texts[path]), path))
    wrong = wrong_in(paths)
    if "--spelling" in sys.argv:
        wrong += ["%s: %s: correct it, or add it to docs/site/words.txt" % place for place in misspelt(texts)]
    print("".join(sentence + "\n" for sentence in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
