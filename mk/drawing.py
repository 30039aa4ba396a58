# SPDX-License-Identifier: Apache-2.0
"""Draws the diagrams of the documents, which are text for Mermaid, as SVG inside of the page. So a
page needs no script and nothing from elsewhere. It knows what the documents use: sequences, states
and flowcharts; the last two are laid out by dot (graphviz)."""
import re
import shutil
import subprocess
from xml.sax.saxutils import escape

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
INK, FONT = "#010203", "sans-serif"  # the colour of the page's text takes the place of INK
STEP, LEFT, CHARACTER = 34, 70, 6.2


def svg(width, height, title, body, left=0):
    return ('<svg class="drawing" xmlns="http://www.w3.org/2000/svg" viewBox="%d 0 %d %d" style="max-width: %dpx" '
            'role="img" aria-label="%s"><g fill="none" stroke="currentColor" font-family="%s" font-size="12">%s</g>'
            "</svg>" % (left, width - left, height, width - left, escape(title, {'"': "&quot;"}), FONT, "".join(body)))


def label(x, y, text, anchor="middle"):
    return '<text x="%g" y="%g" text-anchor="%s" fill="currentColor" stroke="none">%s</text>' % (
        x, y, anchor, escape(text))


def sequence(lines):
    names, rows = {}, []
    for line in lines:
        who = re.match(r"participant (\w+) as (.*)|participant (\w+)", line)
        if who:
            names[who.group(1) or who.group(3)] = who.group(2) or who.group(3)
            continue
        note = re.match(r"Note (?:over|right of|left of) (\w+)(?:, *(\w+))?: *(.*)", line)
        sent = re.match(r"(\w+)(-[-x>)]*)(\w+): *(.*)", line)
        if note:
            rows.append(("note", note.group(1), note.group(2) or note.group(1), note.group(3)))
        elif sent:
            rows.append(("x" if "x" in sent.group(2) else "dash" if "--" in sent.group(2) else "line",
                         sent.group(1), sent.group(3), sent.group(4)))
    order = list(names)
    gap = [60.0] * len(order)  # to the next one
    for _, a, b, text in rows:
        first, last = sorted((order.index(a), order.index(b)))
        share = (len(text) * CHARACTER + 24) / max(1, last - first)
        for i in range(first, max(last, first + 1)):
            gap[i] = max(gap[i], share)
    for i, name in enumerate(order):
        other = names[order[min(i + 1, len(order) - 1)]]
        gap[i] = max(gap[i], (len(names[name]) + len(other)) * CHARACTER / 2 + 34)
    at = {name: LEFT + sum(gap[:i]) for i, name in enumerate(order)}
    height = 60 + STEP * len(rows)
    body = ['<path d="M%g 34V%g" stroke-opacity="0.4"/>' % (x, height - 10) for x in at.values()]
    for name, x in at.items():
        half = len(names[name]) * CHARACTER / 2 + 9
        body += ['<rect x="%g" y="10" width="%g" height="24" rx="3"/>' % (x - half, 2 * half), label(x, 26, names[name])]
    left, right = 0, at[order[-1]] + 70
    for row, (kind, a, b, text) in enumerate(rows):
        y, x, to = 66 + STEP * row, at[a], at[b]
        if kind == "note":
            half = max(len(text) * CHARACTER / 2 + 8, abs(to - x) / 2 + 12)
            left, right = min(left, (x + to) / 2 - half - 4), max(right, (x + to) / 2 + half + 4)
            body += ['<rect x="%g" y="%g" width="%g" height="20" rx="2" stroke-opacity="0.4" class="note"/>' % (
                (x + to) / 2 - half, y - 15, 2 * half), label((x + to) / 2, y - 1, text)]
        elif a == b:
            body += ['<path d="M%g %gh24v12h-20m5 -4l-5 4l5 4"/>' % (x, y - 8), label(x + 30, y + 2, text, "start")]
        else:
            sign = 1 if to > x else -1
            end = "m%d -4l8 8m0 -8l-8 8" % (-4 * sign - 4) if kind == "x" else "m%d -4l%d 4l%d 4" % (
                -6 * sign, 6 * sign, -6 * sign)
            body += ['<path d="M%g %gH%g%s"%s/>' % (x, y, to, end, ' stroke-dasharray="4 3"' if kind == "dash" else ""),
                     label((x + to) / 2, y - 5, text)]
    right = max([right] + [at[a] + 40 + len(text) * CHARACTER for _, a, b, text in rows if a == b])
    return svg(right, height, "sequence: " + ", ".join(names.values()), body, left)


NODE = re.compile(r'([\w*\[\]]+?)(?:\(\["?(.*?)"?\]\)|\["(.*?)"\]|\[((?!\*)[^\]]*)\]|\(\((.*?)\)\))?$')
ARROW = re.compile(r'\s*(<?(?:-->|---|-\.->|==>|===))\s*(?:\|"?(.*?)"?\|)?\s*|\s+(?:--|==|-\.)\s+"?(.*?)"?\s+(-->|---|==>|===|\.->)\s*')


def text_of(words):
    return re.sub(r"</?b>", "", words).replace("<br>", "\\n").replace('"', "'")


def dot_of(kind, lines):
    """Lines of graphviz' language for states or a flowchart."""
    out = ["digraph {", 'rankdir=%s; bgcolor=transparent; compound=true; nodesep=0.3; ranksep=0.45;' % (
        "LR" if kind.endswith("LR") else "TB"),
           'node [shape=box style=rounded fontname="%s" fontsize=11 color="%s" fontcolor="%s" height=0.3];' % (
               FONT, INK, INK), 'edge [fontname="%s" fontsize=10 color="%s" fontcolor="%s"];' % (FONT, INK, INK)]
    states = kind.startswith("state")
    groups, inside, group = {}, {}, None

    def node(words):
        words = words.strip()
        if words == "[*]":
            return None
        m = NODE.match(words)
        name = m.group(1)
        shown = next((g for g in m.groups()[1:] if g is not None), None)
        if name in groups:
            return name
        if shown is not None:
            out.append('"%s" [label="%s"];' % (name, text_of(shown)))
        if group is not None:
            inside[group].append(name)
        return name

    def end_of(name, which):
        """The node of a group that an arrow to the group ends at, and the attribute that says so."""
        return (inside[name][len(inside[name]) // 2], "%s=cluster_%s " % (which, name)) if name in groups else (name, "")

    for line in lines:
        begin = re.match(r'subgraph (\w+) \["?(.*?)"?\]', line)
        named = re.match(r'state "(.*)" as (\w+)', line)
        if begin:
            group = begin.group(1)
            groups[group], inside[group] = begin.group(2), []
        elif line == "end":
            out.append('subgraph cluster_%s { label="%s" style=rounded color="%s" fontcolor="%s" fontname="%s" fontsize=11; '
                       % (group, groups[group].strip(), INK, INK, FONT) + " ".join('"%s";' % n for n in inside[group]) + " }")
            group = None
        elif named:
            out.append('"%s" [label="%s"];' % (named.group(2), named.group(1)))
        else:
            pieces = ARROW.split(line)
            name = node(pieces[0])
            for i in range(1, len(pieces), 5):
                arrow, words, middle, tail, after = pieces[i:i + 5]
                if states and ": " in after:
                    after, words = after.split(": ", 1)
                other = node(after)
                arrow, words = (arrow or tail), (words or middle or "")
                a, lt = end_of(name, "ltail") if name else ("begin", "")
                b, lh = end_of(other, "lhead") if other else ("the end", "")
                for mark in [m for m, n in (("begin", name), ("the end", other)) if n is None]:
                    out.append('"%s" [label="" shape=circle width=0.15 height=0.15 %s];' % (
                        mark, 'style=filled fillcolor="%s"' % INK if mark == "begin" else "peripheries=2"))
                out.append('"%s" -> "%s" [%s%slabel="%s"%s%s];' % (
                    a, b, lt, lh, text_of(words), " penwidth=2" if "=" in arrow else "",
                    (" style=dashed" if "." in arrow else "") + ("" if ">" in arrow else " dir=none")))
                name = other
    return "\n".join(out + ["}"])


def laid_out(kind, lines):
    source = dot_of(kind, lines)
    r = subprocess.run(["dot", "-Tsvg"], input=source, capture_output=True, text=True, check=False)
    if r.returncode != 0:
        raise SystemExit("dot: %s\n%s" % (r.stderr, source))
    body = re.search(r"<g id=.*</g>", r.stdout, re.S).group(0)
    body = re.sub(r"<!--.*?-->|<title>.*?</title>|\n", "", body, flags=re.S)
    body = re.sub(r' (?:id|class)="[^"]*"', "", body).replace(INK, "currentColor")
    body = body.replace("<text", '<text stroke="none"').replace('font-family="sans-serif"', "")
    width, height = (float(re.search(r'%s="([\d.]+)pt"' % w, r.stdout).group(1)) for w in ("width", "height"))
    names = re.findall(r"<text[^>]*>([^<]*)</text>", body)
    what = "states: " if kind.startswith("state") else "diagram: "
    return svg(width, height, what + ", ".join(dict.fromkeys(names)), [body])


def picture(source):
    kind, *lines = [line.strip() for line in source.strip().split("\n")]
    return sequence(lines) if kind == "sequenceDiagram" else laid_out(kind, lines)


def drawn(text):
    """The text with its diagrams drawn, each on a line."""
    if BLOCK.search(text) and shutil.which("dot") is None:
        raise SystemExit("make site: dot is not installed; mk/deps.sh site does it")
    return BLOCK.sub(lambda m: picture(m.group(1)).replace("\n", ""), text)
