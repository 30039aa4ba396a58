#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the site of the documents, in BUILD/site/html, with mkdocs-material.

docs/site/nav.txt lists the sections of the site and their pages: files below docs/, `FILE whole`
that are not cut, `FILE#anchor TITLE` for a part that stands elsewhere than the rest of its file,
folders of examples, and `@NAME` for pages that are made (mk/site_made.py). A file with more than
LONG lines is cut into pages at its headings, and a part that is still long at the next ones. Links
lead to the page that a heading went to; files of the tree that are no pages are copied. Each page
is also there as Markdown, and all of them in llms.txt and llms-full.txt.

usage: mk/site.py [--build DIR] [--packages DIR] [--pages-only] [--check]
"""
import argparse
import io
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import drawing  # noqa: E402
import prose  # noqa: E402
import site_made  # noqa: E402

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LONG, SHORT = 250, 12  # lines
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.M | re.S)


class Page:
    def __init__(self, path, title, text, source):
        self.path, self.title, self.text, self.source = path, title, text.strip("\n") + "\n", source
        self.following = None


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def version():
    return re.search(r"(?m)^VERSION := (.*)$", read("Makefile")).group(1)


def anchor(heading, _="-"):
    """As GitHub makes them, so that the same links work there."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def plain(title):
    return re.sub(r"[`*]", "", title).strip()


def lines_of(text):
    """(line, whether it is outside of code) of a text."""
    fence = None
    for line in text.splitlines():
        mark = re.match(r" *(```+)", line)
        if mark and fence in (None, mark.group(1)):
            fence = None if fence else mark.group(1)
            yield line, False
        else:
            yield line, fence is None


def headings(text):
    return [re.match(r"(#+) (.*)", line).groups() for line, is_prose in lines_of(text)
            if is_prose and re.match(r"#+ ", line)]


def parts(text, level):
    """(heading, text) of what stands before the first heading of that level, and of each of them."""
    found = [[None, []]]
    for line, is_prose in lines_of(text):
        if is_prose and line.startswith("#" * level + " "):
            found.append([line[level + 1:], []])
        found[-1][1].append(line)
    return [(heading, "\n".join(lines)) for heading, lines in found]


def with_headings(text):
    """A heading before each block that a program has printed about a type or a verb, where it has
    none: then each of them can be found, and be a page."""
    out, level, last = [], 2, ""
    for line, is_prose in lines_of(text):
        mark = re.match(r"<!-- made by: fragctl (?:inspect (\w+)|(\w+) --help) -->", line)
        if is_prose and re.match(r"#+ ", line):
            level = line.index(" ")
        elif mark and not last.startswith("#"):
            out += ["#" * (level + 1) + " " + (mark.group(1) or mark.group(2)), ""]
        if line.strip():
            last = line
        out.append(line)
    return "\n".join(out) + "\n"


def raised(text, by):
    return "\n".join(line[by:] if is_prose and line.startswith("#" * (by + 1)) else line
                     for line, is_prose in lines_of(text))


def cut(folder, slug, title, text, source, level=2):
    """The pages of a text whose own heading has the level before: a page, or a list that begins
    with one."""
    below = parts(text, level)
    if text.count("\n") <= LONG or len(below) < 3:
        return Page(os.path.join(folder, slug + ".md"), title, raised(text, level - 2), source)
    stay = [below[0][1]]
    pages, taken = [], {"index"}
    for heading, body in below[1:]:
        if body.count("\n") < SHORT:
            stay.append(body)
            continue
        name = anchor(plain(heading))
        while name in taken:
            name += "-more"
        taken.add(name)
        pages.append(cut(os.path.join(folder, slug), name, plain(heading), body, source, level + 1))
    listed = "".join("- [%s](#%s)\n" % (p.title, anchor(p.title)) for p in map(head, pages))
    stay.insert(1, "The pages about it:\n\n" + listed)
    return [Page(os.path.join(folder, slug, "index.md"), title, raised("\n\n".join(stay), level - 2), source), *pages]


def head(page):
    return page[0] if isinstance(page, list) else page


def flat(pages):
    for page in pages:
        if isinstance(page, list):
            yield from flat(page)
        else:
            yield page


def document(folder, path, whole=False):
    text = with_headings(read(path))
    name = os.path.basename(path.removesuffix("/README.md")).removesuffix(".md")
    title = plain(re.search(r"(?m)^# (.*)$", text).group(1))
    slug = "index" if path == "docs/site/index.md" else name.lower().replace("_", "-")
    if whole:
        return Page(os.path.join(folder, slug + ".md"), title, text, path)
    return cut(folder, slug, title, text, path)


def taken_out(tree, source, wanted):
    """Takes the page out of the tree that a heading of the source has made."""
    for i, page in enumerate(tree):
        if isinstance(page, list):
            found = taken_out(page, source, wanted)
            if found:
                return found
        elif page.source == source and anchor(page.title) == wanted:
            return tree.pop(i)
    return None


def sections():
    """[title, pages] of each section of docs/site/nav.txt."""
    found, later = [], []
    for line in read("docs/site/nav.txt").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if not line.startswith(" "):
            found.append([line.strip(), []])
            continue
        title, pages = found[-1]
        folder, (entry, *how) = title.lower(), line.split()
        if entry.startswith("@"):
            pages.append(site_made.PAGES[entry[1:]](folder, Page))
        elif "#" in entry:
            later.append((pages, len(pages), folder, *entry.split("#"), " ".join(how)))
            pages.append(None)
        elif entry.endswith("/"):
            names = sorted(n for n in os.listdir(os.path.join(TOP, entry))
                           if os.path.exists(os.path.join(TOP, entry, n, "README.md")))
            first = document(folder, entry + "README.md")
            first.path = os.path.join(folder, entry, "index.md")
            pages.append([first, *(document(os.path.join(folder, entry.rstrip("/")), entry + n + "/README.md",
                                            True) for n in names)])
        else:
            path = entry if os.path.exists(os.path.join(TOP, entry)) else "docs/" + entry
            pages.append(document("" if entry == "site/index.md" else folder, path, bool(how)))
    for pages, at, folder, entry, wanted, title in later:
        page = next(filter(None, (taken_out(p, "docs/" + entry, wanted) for _, p in found)), None)
        if page is None:
            raise SystemExit("docs/site/nav.txt: no page is made of %s#%s" % (entry, wanted))
        page.title = title or page.title
        page.path = os.path.join(folder, anchor(page.title) + ".md")
        pages[at] = page
    return found


class Links:
    """Where links of the documents lead on the site."""

    def __init__(self, pages, out):
        self.out, self.wrong, self.places = out, [], {}
        self.titles = {page.path: page.title for page in pages}
        for page in pages:
            self.places.setdefault((page.source, ""), (page.path, ""))
            for i, (_, heading) in enumerate(headings(page.text)):
                mark = anchor(heading)
                self.places.setdefault((page.source, mark), (page.path, mark if i else ""))

    def resolve(self, page, is_picture, text, target):
        if re.match(r"\w+:", target):
            return target
        path, _, mark = target.partition("#")
        source = page.source
        if path:
            source = os.path.normpath(os.path.join(os.path.dirname(source), path))
        here = os.path.dirname(page.path)
        for name in (source, os.path.join(source, "README.md"), "docs/site/index.md" if source in (
                "docs", "README.md") else ""):
            place = self.places.get((name, mark)) or (self.places.get((name, "")) if name.endswith(".h") else None)
            if place:
                return os.path.relpath(place[0], here or ".") + ("#" + place[1] if place[1] else "")
        full = os.path.join(TOP, source)
        if mark or not os.path.isfile(full) or is_picture and not text:
            self.wrong.append("%s: %s leads nowhere, or is a picture without a text" % (page.source, target))
            return target
        copy = os.path.join("files", source) + (".txt" if source.endswith(".md") else "")
        os.makedirs(os.path.dirname(os.path.join(self.out, copy)), exist_ok=True)
        shutil.copyfile(full, os.path.join(self.out, copy))
        return os.path.relpath(copy, here or ".")

    def mended(self, page):
        pieces = CODE.split(page.text)
        joined = "\0".join(pieces[::2])  # a link may hold code
        codes = iter(pieces[1::2])

        def change(m):
            text, to = m.group(2), self.resolve(page, *m.groups())
            if re.fullmatch(r"[\w/]+\.md", text):  # the name of a file, which is no page here
                path = os.path.join(os.path.dirname(page.path), to.partition("#")[0])
                text = self.titles.get(os.path.normpath(path), text)
            return "%s[%s](%s)" % (m.group(1), text, to)

        text = LINK.sub(change, joined)
        return re.sub("\0", lambda _: next(codes), text)


def for_mkdocs(text):
    """Python-Markdown wants an empty line before lists and tables, and four blanks in lists."""
    out, last = [], ""
    for line, is_prose in lines_of(text):
        if is_prose:
            item = re.match(r"( *)([-*]|\d+\.) ", line)
            if 2 <= len(line) - len(line.lstrip(" ")) <= 3 and (item or not last.strip()):
                line = "    " + line.lstrip(" ")
            before = re.match(r" *([-*]|\d+\.) | ", last)
            if last.strip() and (item and not item.group(1) and not before
                                 or line.startswith("|") and not last.startswith("|")):
                out.append("")
        out.append(line)
        last = line
    return "\n".join(out) + "\n"


def first_sentence(text):
    for block in re.split(r"\n\s*\n", re.sub(r"(?m)^#.*\n|^<.*\n", "", text)):
        block = re.sub(r"^- ", "", block.strip())
        if block and not block.startswith(("```", "![", "|", "<")):
            sentence = re.match(r".*?[.:](?=\s|$)", block, re.S)
            words = (sentence.group(0) if sentence else block).replace("\n", " ")
            return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
    return ""


def navigation(pages):
    out = []
    for page in pages:
        if isinstance(page, list):
            out.append({page[0].title: navigation(page)})
        else:
            out.append({page.title: page.path})
    return out


def build(packages, folder, nav, about):
    sys.path.insert(0, packages)
    from mkdocs.commands.build import build as make
    from mkdocs.config import load_config
    switch = [{"media": "(prefers-color-scheme: %s)" % scheme, "scheme": name, "primary": "indigo", "accent": "indigo",
               "toggle": {"icon": "material/" + icon, "name": "to the %s page" % other}}
              for scheme, name, icon, other in (("light", "default", "weather-night", "dark"),
                                                ("dark", "slate", "weather-sunny", "light"))]
    config = load_config(
        io.BytesIO(b"site_name: frag\n"), config_file_path=os.path.join(folder, "mkdocs.yml"),
        site_name="frag " + version(), docs_dir=os.path.join(folder, "pages"), site_dir=os.path.join(folder, "html"),
        site_description="Streaming graphs over machines", copyright=about, use_directory_urls=False, strict=True,
        nav=nav, extra_css=["site.css"],
        extra={"generator": False, "polyfills": ["iframe-worker.js"]},
        theme={"name": "material", "font": False, "language": "en", "palette": switch,
               "features": ["navigation.tabs", "navigation.indexes", "navigation.footer", "navigation.top",
                            "search.suggest", "search.highlight", "content.code.copy", "toc.follow"]},
        plugins=["search", "offline"],  # search also where pages are opened as files
        validation={"links": {"anchors": "warn", "not_found": "warn"}, "nav": {"omitted_files": "ignore"}},
        markdown_extensions=["tables", "attr_list", "pymdownx.superfences", "pymdownx.highlight", {
            "toc": {"permalink": True, "slugify": anchor, "toc_depth": 3}}])
    make(config)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", default=os.path.join(TOP, "build"))
    p.add_argument("--packages", default=os.path.join(TOP, ".cache", "site"))
    p.add_argument("--pages-only", action="store_true", help="the Markdown alone, which needs no package")
    p.add_argument("--check", action="store_true", help="also fails where sentences are too long")
    args = p.parse_args()
    folder = os.path.join(os.path.abspath(args.build), "site")
    shutil.rmtree(folder, ignore_errors=True)
    out = os.path.join(folder, "pages")
    os.makedirs(out)
    tree = sections()
    pages = list(flat(page for _, group in tree for page in group))
    paths = [page.path for page in pages]
    twice = {path for path in paths if paths.count(path) > 1}
    if twice:
        raise SystemExit("mk/site.py: two pages are called " + ", ".join(sorted(twice)))
    links = Links(pages, out)
    for page, following in zip(pages, [*pages[1:], None]):
        page.text, page.following = links.mended(page), following
    taken = {page.source for page in pages}
    links.wrong += ["docs/site/nav.txt: %s is missing" % name
                    for name in sorted(os.listdir(os.path.join(TOP, "docs")))
                    if name.endswith(".md") and "docs/" + name not in taken]
    if links.wrong:
        raise SystemExit("\n".join(links.wrong))
    of = "frag " + version()
    markdown = {}
    for page in pages:
        text = re.sub(r"(?m)^<!-- .*? -->\n", "", page.text)
        path = os.path.join(out, page.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            if not args.pages_only and page.path.startswith(("do/", "start/", "inside/")):
                f.write("---\nsearch: {boost: %s}\n---\n" % (
                    "0.5" if page.path.startswith("inside/") else "2"))
            f.write((text if args.pages_only else drawing.drawn(for_mkdocs(text))) + '\n<p class="about">%s · <a href="%s">this page as Markdown</a></p>\n' % (
                of, os.path.basename(page.path)))
        text += "\n%s" % of
        if page.following:
            text += " · Next: [%s](%s)" % (page.following.title, os.path.relpath(
                page.following.path, os.path.dirname(page.path) or "."))
        markdown[page.path] = text + "\n"
    for name in ("site.css", "iframe-worker.js"):
        shutil.copyfile(os.path.join(TOP, "docs", "site", name), os.path.join(out, name))
    wordy = ["%s: %.1f words a sentence on average; %d at most" % (page.path, words, prose.WORDS_MEAN)
             for page in pages for words in [prose.mean(page.text)[1]] if words > prose.WORDS_MEAN]
    if args.check and wordy:
        raise SystemExit("\n".join(wordy))
    if args.pages_only:
        return
    commit = subprocess.run(["git", "-C", TOP, "log", "-1", "--format=%h of %cs"], check=False,
                            capture_output=True, text=True).stdout.strip()
    nav = [{title: navigation(group)} for title, group in tree]
    build(os.path.abspath(args.packages), folder, nav, "%s%s · Apache License 2.0" % (of, " (%s)" % commit if commit else ""))
    html = os.path.join(folder, "html")
    for path, text in markdown.items():
        with open(os.path.join(html, path), "w", encoding="utf-8") as f:
            f.write(text)
    listed = "# %s\n\n> %s\n" % (of, first_sentence(markdown["index.md"]))
    for title, group in tree:
        listed += "\n## %s\n\n" % title + "".join(
            "- [%s](%s): %s\n" % (page.title, page.path, first_sentence(page.text))
            for page in flat(group))
    with open(os.path.join(html, "llms.txt"), "w", encoding="utf-8") as f:
        f.write(listed)
    with open(os.path.join(html, "llms-full.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join("<!-- %s -->\n%s" % item for item in markdown.items()))
    sources = {page.source: read(page.source) for page in pages
               if page.source.endswith(".md") and os.path.exists(os.path.join(TOP, page.source))}
    for what, texts in (("documents", sources.values()), ("pages of the site", [page.text for page in pages])):
        counts = [prose.mean(text) for text in texts]
        print("%d %s, %.0f sentences each (the longest %d), %.1f words a sentence" % (
            len(counts), what, sum(n for n, _ in counts) / len(counts), max(n for n, _ in counts),
            sum(n * words for n, words in counts) / sum(n for n, _ in counts)))
    print(os.path.join(os.path.relpath(html), "index.html"))


if __name__ == "__main__":
    main()
