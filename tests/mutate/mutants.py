# SPDX-License-Identifier: Apache-2.0
"""Small mistakes in C sources, made by rule.

A light tokenizer is enough, because the sources are formatted by clang-format: a function's body
opens with a brace in the first column, and binary operators have a space on both sides. Nothing is
changed outside of functions, in declarations before their `=`, in preprocessor lines, comments,
strings, asserts, sizeof, case labels and log lines of level debug and trace.
"""
import hashlib
import re

TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<comment>/\*.*?\*/|//[^\n]*)
  | (?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
  | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<mark>\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S | re.M)

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
ORDERS = {"acquire", "release", "acq_rel", "seq_cst"}
# What stands in front of a declaration: its own words are not changed.
TYPES = {"const", "static", "struct", "enum", "union", "unsigned", "signed", "bool", "char", "short", "int", "long",
         "float", "double", "void", "size_t", "ssize_t", "extern", "va_list"}
# These make no program behave differently, or only say what is there.
LEFT_ALONE = re.compile(r"(static_)?assert|_Static_assert|log_debug|log_trace|sizeof|offsetof|alignof|_Alignof|typeof|"
                        r"__typeof__|__attribute__|FRAG_PRINTF|va_start|va_end|va_copy|abort")
QUIET_LEVELS = {"FRAGI_LOG_DEBUG", "FRAGI_LOG_TRACE"}
KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else", "case", "goto"}
OPEN, CLOSE = "([{", ")]}"
# Ends an operand of && and ||, together with the brackets around it.
OPERAND_ENDS = {"&&", "||", ",", ";", "?", ":", "=", "return", "+=", "-=", "|=", "&="}


class Token:
    def __init__(self, kind, text, start):
        self.kind, self.text, self.start, self.end = kind, text, start, start + len(text)
        self.partner = None  # index of the bracket on the other side


class Mutant:
    """One mistake: `text` takes the place of source[start:end]."""

    def __init__(self, path, source, rule, start, end, text):
        # The number of lines stays the same.
        text += "\n" * (source.count("\n", start, end) - text.count("\n"))
        self.path, self.rule, self.start, self.end, self.text = path, rule, start, end, text
        begin = source.rfind("\n", 0, start) + 1
        finish = source.find("\n", end)
        self.line = source.count("\n", 0, start) + 1
        self.last_line = source.count("\n", 0, end) + 1
        self.before = " ".join(source[begin:finish].split())
        self.after = " ".join((source[begin:start] + text + source[end:finish]).split())
        self.id = ""

    def key(self):
        return self.path, self.before, self.after

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]


def tokenize(source):
    tokens = [Token(m.lastgroup, m.group(), m.start()) for m in TOKEN.finditer(source)]
    tokens = [t for t in tokens if t.kind not in ("space", "comment", "directive")]
    stack = []
    for i, t in enumerate(tokens):
        if t.text in OPEN and t.kind == "mark":
            stack.append(i)
        elif t.text in CLOSE and t.kind == "mark" and stack:
            tokens[i].partner = stack.pop()
            tokens[tokens[i].partner].partner = i
    return tokens


def bodies(source, tokens):
    """(first, last) token inside each function."""
    for i, t in enumerate(tokens):
        first_column = t.start == 0 or source[t.start - 1] == "\n"
        if t.text == "{" and first_column and t.partner and tokens[i - 1].text == ")":
            yield i + 1, t.partner


def statements(tokens, first, last):
    """(first, last) of each simple statement, its `;` included; and of each head: if (...),
    for (...), while (...), switch (...)."""
    i = begin = first
    while i < last:
        t = tokens[i]
        if t.text == "{" and t.kind == "mark" and tokens[i - 1].text in (")", "else", "do", ";", "{", "}", ":") and \
                not (tokens[i - 1].text == ")" and begin < i and not is_head(tokens, begin)):
            begin = i + 1
        elif t.text == "}" and t.kind == "mark":
            begin = i + 1
        elif t.kind == "mark" and t.text in "([{" and t.partner:
            i = t.partner
            if tokens[begin].text in ("if", "while", "for", "switch") and begin + 1 == tokens[i].partner:
                yield begin, i
                begin = i + 1
        elif t.text == ";":
            yield begin, i
            begin = i + 1
        elif t.text in ("else", "do") and begin == i:
            begin = i + 1
        elif t.text == ":" and (tokens[begin].text in ("case", "default") or begin + 1 == i):
            begin = i + 1  # a label
        i += 1


def is_head(tokens, begin):
    return tokens[begin].text in ("if", "while", "for", "switch")


def left_alone(tokens, first, last):
    """Indices of the tokens inside the arguments of LEFT_ALONE, and of log calls of level debug or trace."""
    found = set()
    for i in range(first, last):
        t = tokens[i]
        if t.kind != "word" or tokens[i + 1].text != "(":
            continue
        inside = range(i, tokens[i + 1].partner + 1)
        if LEFT_ALONE.fullmatch(t.text) or (t.text.endswith("_log") and
                                            any(tokens[k].text in QUIET_LEVELS for k in inside)):
            found.update(inside)
    return found


def is_declaration(tokens, first, last):
    words = tokens[first:last + 1]
    if words[0].kind != "word" or words[0].text in KEYWORDS:
        return False
    if words[0].text in TYPES or words[0].text.endswith("_t"):
        return True
    return len(words) > 1 and words[1].kind == "word"


def initializer(tokens, first, last):
    """The first token behind the `=` of a declaration."""
    i = first
    while i < last:
        if tokens[i].text == "=":
            return i + 1
        i = tokens[i].partner if tokens[i].text in "([{" and tokens[i].partner else i + 1
    return last


def operand(tokens, at, step):
    """Where the operand of && or || at that index begins or ends, exclusively."""
    i = at + step
    while True:
        t = tokens[i]
        if t.kind == "mark" and t.text in (OPEN if step > 0 else CLOSE) and t.partner is not None:
            i = t.partner
        elif t.text in OPERAND_ENDS or t.text in OPEN + CLOSE:
            return i
        i += step


def in_expression(source, tokens, first, last, skip):
    """(rule, start, end, text) for each mistake in tokens[first..last]."""
    for i in range(first, last + 1):
        if i in skip:
            continue
        t, before, after = tokens[i], tokens[i - 1], tokens[i + 1]
        if t.kind == "mark" and t.text in COMPARISONS:
            yield "comparison", t.start, t.end, COMPARISONS[t.text]
        elif t.kind == "mark" and t.text in ("&&", "||"):
            yield "condition", t.start, t.end, "||" if t.text == "&&" else "&&"
            left, right = operand(tokens, i, -1), operand(tokens, i, 1)
            yield "condition", tokens[left + 1].start, after.start, ""
            yield "condition", before.end, tokens[right - 1].end, ""
        elif t.kind == "mark" and t.text == "!":
            yield "condition", t.start, t.end, ""
        elif t.kind == "mark" and t.text in ("+", "-") and after.text == "1" and source[t.end] == " ":
            yield "off by one", before.end, after.end, ""
        elif t.kind == "number" and re.fullmatch(r"\d+[uUlL]*", t.text):
            if before.text == "[" and after.text == "]" and t.text == "0":
                continue  # *p, for the most part
            if tokens[opened_before(tokens, i) - 1].text == "__builtin_expect" and after.text == ")":
                continue  # which way is likely
            value = int(re.match(r"\d+", t.text).group(), 0 if t.text == "0" or t.text[0] != "0" else 8)
            suffix = t.text[len(re.match(r"\d+", t.text).group()):]
            if before.text in ("+", "-") and t.text == "1" and source[before.end] == " ":
                continue  # dropped above
            if before.text == "return" and t.text == "0":
                yield "constant", t.start, t.end, "-1"
            else:
                yield "constant", t.start, t.end, "%d%s" % (0 if value == 1 else value + 1, suffix)
        elif t.text in ("true", "false"):
            yield "constant", t.start, t.end, "false" if t.text == "true" else "true"
        elif t.kind == "word" and re.fullmatch(r"E[A-Z0-9]{2,}", t.text) and before.text == "-":
            yield "constant", before.start, t.end, "0"
        elif t.kind == "word" and re.fullmatch(r"[A-Z][A-Z0-9_]*_(NS|MS|S|US|MAX|MIN|BYTES|LIMIT|SIZE|COUNT|LEN)", t.text):
            yield "constant", t.start, t.end, "(3 * %s)" % t.text
            yield "constant", t.start, t.end, "(%s / 3)" % t.text
        elif t.kind == "word" and t.text.startswith("memory_order_") and t.text[13:] in ORDERS:
            yield "memory order", t.start, t.end, "memory_order_relaxed"
        elif t.kind == "word" and after.text == "(" and t.text not in KEYWORDS and after.partner \
                and not is_symmetric(t.text, tokens[after.partner + 1].text):
            yield from swapped(source, tokens, i + 1)


def ends_switch(tokens, last):
    """Whether the statement is the last one of a switch, where `break` does nothing."""
    closing = tokens[last + 1]
    if closing.text != "}" or closing.partner is None or tokens[closing.partner - 1].text != ")":
        return False
    head = tokens[closing.partner - 1].partner
    return head is not None and tokens[head - 1].text == "switch"


def opened_before(tokens, i):
    """The bracket that is open around a token."""
    while i > 0:
        i -= 1
        if tokens[i].kind == "mark" and tokens[i].text in CLOSE and tokens[i].partner is not None:
            i = tokens[i].partner
        elif tokens[i].kind == "mark" and tokens[i].text in OPEN:
            return i
    return 0


def is_symmetric(call, behind):
    """Whether its first two arguments may change places."""
    compares = call in ("strcmp", "strcasecmp", "strncmp", "strncasecmp", "memcmp")
    return call in ("calloc", "fragi_calloc") or (compares and behind in ("==", "!="))


def swapped(source, tokens, opened):
    """Two neighbouring arguments of a call in each other's place."""
    arguments, begin, i, closed = [], opened + 1, opened + 1, tokens[opened].partner
    while i <= closed:
        if i == closed or tokens[i].text == ",":
            if begin < i:
                arguments.append((tokens[begin].start, tokens[i - 1].end))
            begin = i + 1
        elif tokens[i].text in OPEN and tokens[i].kind == "mark" and tokens[i].partner:
            i = tokens[i].partner
        i += 1
    for (a, b), (c, d) in zip(arguments, arguments[1:]):
        one, two = source[a:b], source[c:d]
        if one.split() != two.split() and '"' not in one + two:
            yield "swapped arguments", a, d, two + source[b:c] + one


def of_statement(source, tokens, first, last, skip):
    words = [t.text for t in tokens[first:last + 1]]
    if first in skip:
        return
    if is_head(tokens, first):
        if words[0] in ("if", "while") and words[2:-1] != ["true"]:
            start, end = tokens[first + 2].start, tokens[last - 1].end
            yield "condition", start, end, "!(%s)" % source[start:end]
        # `i = 0` of a for is a constant like others.
        yield from in_expression(source, tokens, first + 2, last - 1, skip)
        return
    if words == ["break", ";"] and ends_switch(tokens, last):
        return
    if words[:3] == ["(", "void", ")"] and len(words) == 5 and tokens[first + 3].kind == "word":
        return  # says that a name may be unused
    if words[0] in ("break", "continue", "goto"):
        yield "dropped statement", tokens[first].start, tokens[last].start, ""
        return
    if words[0] == "return":
        yield from in_expression(source, tokens, first + 1, last - 1, skip)
        return
    if words == [";"]:
        return
    if is_declaration(tokens, first, last):
        yield from in_expression(source, tokens, initializer(tokens, first, last), last - 1, skip)
        return
    call = tokens[first].kind == "word" and words[-2:-1] == [")"] and "=" not in outer(tokens, first, last)
    yield "removed call" if call else "dropped statement", tokens[first].start, tokens[last].start, ""
    yield from in_expression(source, tokens, first, last - 1, skip)


def outer(tokens, first, last):
    """The texts of a statement's tokens outside of all brackets."""
    texts, i = [], first
    while i <= last:
        texts.append(tokens[i].text)
        i = tokens[i].partner if tokens[i].text in OPEN and tokens[i].partner else i
        i += 1
    return texts


def mutants_of(path, source):
    """All mistakes in a file, in order, each once."""
    tokens = tokenize(source)
    found, seen = [], {}
    for first, last in bodies(source, tokens):
        skip = left_alone(tokens, first, last)
        for begin, end in statements(tokens, first, last):
            for rule, start, finish, text in of_statement(source, tokens, begin, end, skip):
                if source[start:finish] == text:
                    continue
                found.append(Mutant(path, source, rule, start, finish, text))
    result = []
    for m in found:
        if m.before == m.after:
            continue
        # The same change of an equal line further down has another number.
        seen[m.key()] = seen.get(m.key(), 0) + 1
        m.id = hashlib.sha256(repr((m.key(), seen[m.key()])).encode()).hexdigest()[:8]
        result.append(m)
    return result
