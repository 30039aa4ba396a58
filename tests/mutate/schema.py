# SPDX-License-Identifier: Apache-2.0
"""Sources that hold many mutants at once.

Each mutant is a copy of its function, called instead of it where PLANTED has the mutant's number. A
PLANTED of -1 - ID plants nothing: every function with mutants marks their bytes in the shared
memory of that ID (shmat, which hosts may call whatever files they may open). The variable has no
name with FRAG_, of which daemons say that they do not read it.
"""
import re

from mutants import bodies, tokenize

HEAD = r"""#ifndef MUTANT__
#define MUTANT__
extern char *getenv(const char *);
extern int atoi(const char *);
extern void *shmat(int, const void *, int);
static int mutant__planted;
static char *mutant__reached;
__attribute__((constructor(101), no_sanitize("address", "thread", "undefined"))) static void mutant__set(void)
{ const char *text = getenv("PLANTED"); mutant__planted = text ? atoi(text) : 0;
if (mutant__planted < 0) mutant__reached = shmat(-1 - mutant__planted, 0, 0);
if (mutant__reached == (char *)-1) mutant__reached = 0; }
__attribute__((unused)) static inline int mutant__is(int n)
{ if (mutant__planted == n) return 1; if (mutant__reached) mutant__reached[n] = 1; return 0; }
#endif
"""


def parameters(tokens, opened, closed):
    """The names of a function's parameters; None where `...` is one, which no copy can be given."""
    begin, i, parts = opened + 1, opened + 1, []
    while i <= closed:
        if i == closed or tokens[i].text == ",":
            parts.append(tokens[begin:i])
            begin = i + 1
        elif tokens[i].partner and tokens[i].text in "([{":
            i = tokens[i].partner
        i += 1
    names = []
    for part in parts:
        texts = [t.text for t in part]
        if texts in ([], ["void"]):
            continue
        if texts[-1] == "...":
            return None
        pointer = next((i + 2 for i in range(len(texts) - 1) if texts[i:i + 2] == ["(", "*"]), None)
        end = texts.index("[") if "[" in texts else len(texts)
        words = [t.text for t in (part[pointer:] if pointer else part[:end]) if t.kind == "word"]
        names.append(words[0] if pointer else words[-1])
    return names


def with_mutants(path, source, mutants, numbers):
    """(the source with those mutants, those of them that it cannot hold)."""
    tokens, edits, held = tokenize(source), [], set()
    for first, last in bodies(source, tokens):
        brace, closed = first - 1, first - 2
        opened = tokens[closed].partner
        own = [m for m in mutants if tokens[brace].start < m.start < tokens[last].end]
        begin = name = opened - 1
        while begin > 0 and tokens[begin - 1].text not in (";", "}"):
            begin -= 1
        names = parameters(tokens, opened, closed)
        if not own or names is None or tokens[name].kind != "word":
            continue
        words = [t.text for t in tokens[begin:name]]
        head = source[tokens[begin].start:tokens[closed].end]
        line = source.count("\n", 0, tokens[begin].start) + 1
        copies, calls = [], []
        for m in own:
            held.add(m.id)
            called = "%s__m%d" % (tokens[name].text, numbers[m.id])
            front = re.sub(r"\b(static|inline|extern|FRAG_API)\b", "", source[tokens[begin].start:tokens[name].start])
            copies.append('#line %d "mutant-%d"\n__attribute__((noinline, unused)) static %s%s%s\n%s%s%s\n' % (
                line, numbers[m.id], front, called, source[tokens[name].end:tokens[closed].end],
                source[tokens[brace].start:m.start], m.text, source[m.end:tokens[last].end]))
            call = "%s(%s);" % (called, ", ".join(names))
            no_value = "void" in words and "*" not in words
            calls.append(" if (mutant__is(%d)) %s" % (
                numbers[m.id], "{ %s return; }" % call if no_value else "return " + call))
        edits.append((tokens[brace].end, "".join(calls)))
        edits.append((tokens[begin].start, '\n%s;\n%s#line %d "%s"\n' % (head, "".join(copies), line, path)))
    for at, text in sorted(edits, reverse=True):
        source = source[:at] + text + source[at:]
    return '%s#line 1 "%s"\n%s' % (HEAD, path, source), [m for m in mutants if m.id not in held]
