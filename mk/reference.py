#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the comments of the public headers readable for Doxygen, and checks what they say.

The headers are written for people who read them as they are: a comment stands before what it
describes, also before several declarations; a comment with a blank line behind it is about the
whole header; parameters are items of a list. This program writes a header with the same lines, in
which Doxygen finds all that where it wants it.

usage: mk/reference.py HEADER             writes the header for Doxygen (its INPUT_FILTER)
       mk/reference.py --check HEADER...  checks that each function says in which thread it may be
                                          called, whether it blocks, and what it returns
"""
import re
import sys

COMMENT = re.compile(r"^(\s*)/\*(?!\*)(.*)$")
TRAILING = re.compile(r"^(.*[;,}\w]\s*)/\*(?!\*)\s*(.*?)\s*\*/\s*$")
CONTRACT = [("Thread", "thread"), ("Blocks", "blocks"), ("RT-safe", "rtsafe")]
# A comment that refers to another one, whose words hold too.
REFERS = re.compile(r"\b[Tt]he same\b|\bas above\b|\bas (for|those of)? ?`?frag_|\blikewise\b")


class Comment:
    """Lines first to last of a header, and the declarations that follow without a blank line."""

    def __init__(self, lines, first):
        self.first = self.last = first
        while "*/" not in lines[self.last]:
            self.last += 1
        self.text = "\n".join(
            re.sub(r"^\s*(/\* ?|\*/|\* ?)|\s*\*/\s*$", "", line) for line in lines[first:self.last + 1]
        ).strip("\n")
        self.is_licence = "SPDX-License-Identifier" in self.text
        self.declarations = [] if self.is_licence else list(declarations(lines, self.last + 1))


def declarations(lines, at):
    """(line, text) of each declaration from a line on, up to a blank line, a comment, or the end
    of a block. Of the two branches of an #ifdef __cplusplus it is the second."""
    if at < len(lines) and lines[at] == "#ifdef __cplusplus":
        at = lines.index("#else", at) + 1
    while at < len(lines):
        line = lines[at].strip()
        if not line or line.startswith(("/*", "}", "#if", "#else", "#endif", "#include")):
            return
        if line.startswith(("FRAG_END_DECLS", "FRAG_BEGIN_DECLS")):
            return
        first, text = at, ""
        while True:
            text += lines[at].strip().rstrip("\\").strip() + " "
            at += 1
            code = re.sub(r"/\*.*?\*/", "", text).strip()
            if line.startswith("#"):
                if not lines[at - 1].endswith("\\"):
                    break
            elif code.endswith((";", "{")):
                break
            elif code.endswith(",") and code.count("(") == code.count(")") and not code.startswith("extern"):
                break  # a value of an enum
            elif at >= len(lines) or lines[at].strip().startswith("}"):
                break
        yield first, text.strip()
        if text.strip().endswith("{"):
            return


def name_of(declaration):
    """Of what a declaration declares."""
    define = re.match(r"#define (\w+)", declaration)
    if define:
        return define.group(1)
    before = re.sub(r"\(\*(\w+)\).*", r"\1", declaration) if "(*" in declaration else re.split(
        r"[(\[{;,=]", declaration)[0]
    words = re.findall(r"\w+", before)
    return words[-1] if words else ""


def is_function(declaration):
    return re.match(r"FRAG_API .*\(|static inline |typedef .*\(\*", declaration) is not None


def parameters(declaration):
    """The names of the parameters of a function or a macro."""
    text = declaration[declaration.index("("):] if "(" in declaration else ""
    if "(*" in declaration:
        text = text[text.index(")") + 1:]
    inside = re.match(r"\(([^()]*)\)", text.strip())
    if not inside:
        return set()
    return {(re.findall(r"\w+", part) or [""])[-1] for part in inside.group(1).split(",")}


def escaped(text):
    """Signs that Doxygen would take for commands, but for those in code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([<>@#%\\])", r"\\\1", p) for p in parts)


def for_doxygen(comment):
    """The lines of a comment."""
    described = [text for _, text in comment.declarations]
    functions = bool(described) and is_function(described[0])
    names = [parameters(text) for text in described] or [set()]
    known = set.intersection(*names)
    # A list that also names what only some of the functions have stays a list.
    if any(word in set.union(*names) - known
           for item in re.findall(r"^- ([\w, ]+):", comment.text, re.M) for word in item.split(", ")):
        known = set()
    lines, in_item = [], False
    for line in comment.text.split("\n"):
        if line.startswith("\t"):
            lines.append(line)
            continue
        line = escaped(line)
        if known:
            item = re.match(r"- (\w+(?:, \w+)*): ?(.*)$", line)
            names = item.group(1).split(", ") if item else []
            if names and set(names) <= known:
                line = "@param %s %s" % (",".join(names), item.group(2))
                in_item = True
            elif in_item and not line.startswith("  "):
                line, in_item = ("@more " if line else "") + line, False
        if functions:
            begin = "^" if lines else "(?!^)^"  # the first words of all are the brief description
            line = re.sub(r"(%s|(?<=[.;:)] )|(?<=^@more ))Returns " % begin, r"@return ", line)
            for word, command in CONTRACT:
                line = re.sub(r"(^|(?<=[.;] ))%s:( |$)" % word, r"@%s\2" % command, line)
        lines.append(line)
    return lines


def split_declarators(lines, line, text, body):
    """Of `int line, column;` each gets the comment; what took several lines is put on one."""
    match = re.match(r"((?:extern |FRAG_API |const |struct |enum |unsigned )*\w+ )([^(){}=]*,[^(){}=]*);$", text)
    if not match:
        return
    parts = [part.strip() for part in match.group(2).split(",")]
    rest = ["/** %s */ %s%s;" % (" ".join(body), match.group(1), part) for part in parts[1:]]
    while ";" not in lines[line]:
        following = next(i for i in range(line + 1, len(lines)) if lines[i])
        lines[line] += " " + lines[following].strip()
        lines[following] = ""
    lines[line] = re.match(r"\s*", lines[line]).group(0) + " ".join([match.group(1) + parts[0] + ";"] + rest)


def filtered(text):
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not COMMENT.match(lines[at]) or (at > 0 and lines[at - 1].endswith("\\")):
            trailing = TRAILING.match(lines[at])
            if trailing and not lines[at].lstrip().startswith("#"):
                lines[at] = "%s/**< %s */" % (trailing.group(1), escaped(trailing.group(2)))
            at += 1
            continue
        comment = Comment(lines, at)
        at = comment.last + 1
        if comment.is_licence:
            lines[comment.first] = "/** @file */ " + lines[comment.first]
            continue
        indent = COMMENT.match(lines[comment.first]).group(1)
        body = for_doxygen(comment)
        first = "/** " if comment.declarations else "/** @header "
        if comment.first == comment.last:
            lines[comment.first] = "%s%s%s */" % (indent, first, body[0])
        else:
            inner = [(" * " + line).rstrip() for line in body]
            lines[comment.first:comment.last + 1] = [indent + first.strip()] + [
                indent + line for line in inner] + [indent + " */"]
            assert len(lines) == text.count("\n") + 1, "%s: a line more or less" % comment.text
        if not comment.declarations:
            continue
        again = "@copydoc " + name_of(comment.declarations[0][1])
        if indent:  # of a member or a value: short, and copydoc finds no values
            again = " ".join(body)
        for line, declaration in comment.declarations:
            split_declarators(lines, line, declaration, body)
        for line, _ in comment.declarations[1:]:
            lines[line] = "%s/** %s */ %s" % (indent, again, lines[line].lstrip())
    return "\n".join(lines)


def wrong_in(path, text):
    """Sentences about functions whose comment lacks something."""
    lines = text.split("\n")
    comments, at = [], 0
    while at < len(lines):
        if COMMENT.match(lines[at]):
            comments.append(Comment(lines, at))
            at = comments[-1].last
        at += 1
    about_all = [c.text for c in comments
                 if not c.declarations or re.match(r"struct \w+;$", c.declarations[0][1])]
    about_all = " ".join(" ".join(about_all).split())
    described = set()
    for comment in comments:
        for line, declaration in comment.declarations:
            described.add(line)
            if not is_function(declaration) or declaration.startswith("typedef"):
                continue
            text = " ".join(comment.text.split())
            if REFERS.search(text):
                continue
            place = "%s:%d: %s: its comment " % (path, line + 1, name_of(declaration))
            for word, sentence in ((r"Thread(:|, )|on its thread", "does not name the thread"),
                                   ("Blocks|None of them blocks|blocks? ", "does not say whether it blocks")):
                if not re.search(word, text) and not re.search(word, about_all):
                    yield place + sentence
            if not re.search(r"\bvoid \w+\(", declaration) and not re.search(
                    r"\b[Rr]eturns?\b|^The ", text + about_all):
                yield place + "does not say what it returns"
    for number, line in enumerate(lines):
        if line.startswith(("FRAG_API ", "static inline ")) and number not in described:
            yield "%s:%d: %s has no comment" % (path, number + 1, name_of(line))


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--check":
        wrong = []
        for path in sys.argv[2:]:
            with open(path, encoding="utf-8") as f:
                text = f.read()
            wrong += wrong_in(path, text)
            filtered(text)  # Doxygen would not notice that its filter fails
        print("".join(sentence + "\n" for sentence in wrong), end="")
        return 1 if wrong else 0
    with open(sys.argv[1], encoding="utf-8") as f:
        print(filtered(f.read()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
