# SPDX-License-Identifier: Apache-2.0
"""The pages of the site that are made of sources: keys of graphs, the C API, the Python API."""
import ast
import glob
import json
import os
import re

import graph_index
import reference

TOP = graph_index.TOP
NO_NAMES = {"path", "title"}


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def shown(*path):
    """A file of the examples without the comment at its top."""
    return re.sub(r"\A(?:(?:# |/\*).*\n)+\n*", "", read("examples", *path))


def value(schema):
    """A value of the schema in words."""
    if schema is True or not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return {"bool": "true or false", "number": "a number", "duration": "a time", "size": "a size"}.get(
            name, "any" if name.endswith("_types") and name != "scheduler_type" else "[%s](#%s)" % (
                name.replace("_", " "), name.replace("_", "-")))
    if "enum" in schema:
        return ", ".join(dict.fromkeys("`%s`" % v for v in schema["enum"]))
    for many in ("anyOf", "allOf"):
        if many in schema:
            words = [value(s) for s in schema[many] if s.get("pattern") != r"\$\{"]
            return " or ".join(dict.fromkeys(w for w in words if w != "any")) or "any"
    kind = schema.get("type", "any")
    kinds = [k for k in (kind if isinstance(kind, list) else [kind]) if k != "null"]
    if kinds == ["array"]:
        return "a list: " + value(schema.get("items", True))
    if kinds == ["object"] and "additionalProperties" in schema:
        return "by name: " + value(schema["additionalProperties"])
    if kinds == ["integer"]:
        least, most = schema.get("minimum"), schema.get("maximum")
        return "an integer" + (" from %s" % least if least is not None else "") + (
            " to %s" % most if most is not None else "")
    if set(kinds) >= {"string", "number"}:
        return "text"
    return {"string": "text", "boolean": "true or false", "object": "keys and values"}.get(kinds[0], kinds[0])


def properties(schema):
    """The keys of a section of the schema, of all its forms."""
    found = dict(schema.get("properties", {}))
    for part in ("then", "else", "anyOf", "allOf"):
        inner = schema.get(part, [])
        for one in inner if isinstance(inner, list) else [inner]:
            if isinstance(one, dict):
                found.update(properties(one))
    return {k: v for k, v in found.items() if v is not False}


def keys(folder, page):
    schema = json.loads(read("docs", "graph.schema.json"))
    text = ("# Keys of a graph\n\nThese are all keys that a graph may hold, with what each takes. The table is made of "
            "the parser's tables; `fragctl schema` prints the same for an editor "
            "([In an editor](GRAPH.md#in-an-editor)). An argument, `${name}`, may stand for any value.\n"
            "\n```yaml\n%s```\n" % shown("ping_distributed", "app.yaml"))
    for name, part in [("the top", schema), *schema["$defs"].items()]:
        if not isinstance(part, dict) or not properties(part) and name not in ("policy", "flow"):
            if name in ("extension", "flow", "condition", "resource", "scheduler_type", "policy", "clock"):
                text += "\n## %s\n\n%s\n" % (name.replace("_", " "), value(part).capitalize() + ".")
            continue
        text += "\n## %s\n\n" % name.replace("_", " ")
        if not properties(part):
            text += value(part) + "\n"
            continue
        text += "| key | value | explained in |\n|---|---|---|\n"
        for key, what in properties(part).items():
            where = re.search(r'"(.*)"', what.get("description", "")) if isinstance(what, dict) else None
            link = "[%s](GRAPH.md#%s)" % (where.group(1), graph_index.anchor(where.group(1))) if where else ""
            text += "| `%s` | %s | %s |\n" % (key, value(what), link)
    return page(os.path.join(folder, "keys.md"), "Keys of a graph", text, "docs/keys")


def comment_text(text):
    """A comment of a header as Markdown: items of a list stay, code is indented by a tab."""
    text = re.sub(r"(?m)^((?!- |  ).+)\n(?=- )", r"\1\n\n", text)
    text = re.sub(r"(?m)^((?:- |  ).+)\n(?=[^\s-])", r"\1\n\n", text)
    text = re.sub(r"(?m)((?:^\t.*\n?)+)", lambda m: "\n```c\n%s```\n" % re.sub(
        r"(?m)^\t", "", m.group(1).rstrip("\n") + "\n"), text)
    return re.sub(r"<(?=\w)", "\\<", text)


def c_header(path, folder, page):
    name = os.path.basename(path)
    lines = read(path).split("\n")
    text, about, at = "", "", 0
    while at < len(lines):
        if not reference.COMMENT.match(lines[at]) or lines[at].startswith(("\t", " ")):
            at += 1
            continue
        comment = reference.Comment(lines, at)
        at = comment.last + 1
        if comment.is_licence:
            continue
        if not comment.declarations:
            if text:
                text += "\n%s\n" % comment_text(comment.text)
            else:
                about += "\n%s\n" % comment_text(comment.text)
            continue
        shown = []
        for line, declaration in comment.declarations:
            if declaration.endswith("{"):  # the whole of a struct or an enum
                last = next(i for i in range(line, len(lines)) if lines[i].startswith("}"))
                shown += lines[line:last + 1]
            else:
                shown.append(re.sub(r"^FRAG_API ", "", " ".join(declaration.split())))
        names = dict.fromkeys(reference.name_of(d) for _, d in comment.declarations)
        text += "\n## %s\n\n```c\n%s\n```\n\n%s\n" % (", ".join(names), "\n".join(shown), comment_text(comment.text))
    text = "# frag/%s\n\nThe header `<frag/%s>` of the C API, made of its comments.\n%s%s" % (name, name, about, text)
    return page(os.path.join(folder, "c-api", name.replace(".h", ".md")), "frag/" + name, text, path)


def first_sentence(header):
    """Of the header's comment, or of its first declaration."""
    blocks = re.sub(r"(?ms)^```.*?^```$", "", header.text).split("\n\n")[2:]
    words = next(b for b in blocks if b.strip() and not b.lstrip("\n").startswith("#")).split()
    sentence = re.match(r".*?\.(?=\s|$)|.*", " ".join(words)).group(0)
    return sentence.rstrip(":") if len(sentence) < 140 else re.split(r"[:;] ", sentence)[0].rstrip(".") + "."


def c_api(folder, page):
    headers = glob.glob(os.path.join(TOP, "libfrag", "include", "frag", "*.h"))
    headers = sorted(os.path.relpath(path, TOP) for path in headers)
    pages = [c_header(path, folder, page) for path in headers
             if os.path.basename(path) not in ("frag.h", "check.h")]
    text = ("# C API\n\nThese are the public headers, each on a page: what a function does, its parameters and errors, "
            "in which thread it may be called, and whether it blocks. `#include <frag/frag.h>` includes what an operator "
            "needs; harness.h and run.h are for tests and programs. `make docs` makes the same with doxygen. [Your "
            "first operator](docs/OPERATORS.md) uses it, and so does examples/hello:\n\n```c\n%s```\n\n" % shown("hello", "hello.c"))
    text += "".join("- [%s](libfrag/include/frag/%s): %s\n" % (p.title, p.title[5:], first_sentence(p)) for p in pages)
    return [page(os.path.join(folder, "c-api", "index.md"), "C API", text, "c-api.md"), *pages]


def docstrings():
    """{name or Class.name: docstring} of the package's sources."""
    found = {}
    for path in glob.glob(os.path.join(TOP, "python", "frag", "*.py")):
        for node in ast.parse(read(path)).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.setdefault(node.name, ast.get_docstring(node))
                for inner in node.body if isinstance(node, ast.ClassDef) else []:
                    if isinstance(inner, ast.FunctionDef):
                        name = "%s.%s" % (node.name, inner.name)
                        found.setdefault(name, ast.get_docstring(inner))
    return found


def python_module(name, path, said):
    tree = ast.parse(read(path))
    module = ast.get_docstring(ast.parse(read(path[:-1])))
    text = "\n## %s\n\n%s\n" % (name, module or "")
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
            continue
        text += "\n### %s.%s\n\n" % (name, node.name)
        if isinstance(node, ast.FunctionDef):
            text += "```python\n%s\n```\n\n%s\n" % (ast.unparse(node).split(":\n")[0], said.get(node.name) or "")
            continue
        text += (said.get(node.name) or "") + "\n\n"
        members = []
        for inner in node.body:
            if isinstance(inner, ast.AnnAssign) and not inner.target.id.startswith("_"):
                members.append(ast.unparse(inner))
            elif isinstance(inner, ast.FunctionDef) and (not inner.name.startswith("_") or inner.name == "__init__"):
                about = (said.get("%s.%s" % (node.name, inner.name)) or "").split("\n\n")[0].split("\n")
                members += ["# " + line.strip() for line in about if line]
                members.append(re.sub(r":\s*\.\.\.$", "", ast.unparse(inner)))
        if members:
            text += "```python\n%s\n```\n" % "\n".join(members)
    return text


def python_api(folder, page):
    said = docstrings()
    text = ("# Python API\n\nThese are the classes and functions of the package `frag`, with their types, made of its "
            "stubs and docstrings. [Python](docs/PYTHON.md) shows how they are used.\n")
    for path in sorted(glob.glob(os.path.join(TOP, "python", "frag", "*.pyi"))):
        stem = os.path.basename(path)[:-4]
        text += python_module("frag" if stem == "__init__" else "frag." + stem, os.path.relpath(path, TOP), said)
    return page(os.path.join(folder, "python-api.md"), "Python API", text, "python-api.md")


PAGES = {"keys": keys, "c-api": c_api, "python-api": python_api}
