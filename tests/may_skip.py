# SPDX-License-Identifier: Apache-2.0
"""Which tests may be skipped, by their source: those that skip themselves, or whose class, suite,
setUp or helper does, wherever they run."""
import ast
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
C_TEST = re.compile(r"^(?:Test|\w+_TEST)\((\w+),\s*(\w+)([^)]*)\)\s*\{(.*?)^\}", re.M | re.S)
C_FUNCTION = re.compile(r"^[a-z][\w \*]*?(\w+)\([^;{}]*\)\s*\{(.*?)^\}", re.M | re.S)
C_SUITE = re.compile(r"TestSuite\((\w+),[^)]*\.init\s*=\s*(\w+)")


def is_skipped_by_decorator(node):
    return any("skip" in ast.unparse(d) for d in node.decorator_list)


class Sources:
    """The classes and functions of the modules in some folders."""

    def __init__(self, folders):
        self.classes, self.functions, self.calls = {}, {}, {}
        for folder in folders:
            for f in sorted(os.listdir(os.path.join(HERE, folder))):
                if not f.endswith(".py"):
                    continue
                with open(os.path.join(HERE, folder, f), encoding="utf-8") as source:
                    for node in ast.parse(source.read()).body:
                        if isinstance(node, ast.ClassDef):
                            self.classes[f[:-3], node.name] = node
                            self.functions.update(((f[:-3], node.name), made) for made in node.body
                                                  if getattr(made, "name", "") == "__init__")
                        elif isinstance(node, ast.FunctionDef):
                            self.functions[f[:-3], node.name] = node

    def with_bases(self, module, name):
        """(module, class) of a class and of those that it inherits from."""
        node = self.classes.get((module, name))
        if node is None:
            return []
        found = [(module, node)]
        for base in node.bases:
            of, _, last = ast.unparse(base).rpartition(".")
            found += self.with_bases(of or module, last)
        return found

    def called(self, module, chain, name):
        """(module, function) that a call by that name reaches, if it is one of these."""
        of, _, last = name.rpartition(".")
        if of in ("self", "cls"):
            for module, node in chain:
                for f in node.body:
                    if isinstance(f, ast.FunctionDef) and f.name == last:
                        return module, f
            return None
        function = self.functions.get((of or module, last))
        return function and (of or module, function)

    def skips(self, module, chain, function, above=()):
        if function in above:
            return False
        if is_skipped_by_decorator(function):
            return True
        if function not in self.calls:
            self.calls[function] = {ast.unparse(call.func) for call in ast.walk(function)
                                    if isinstance(call, ast.Call)}
        for name in self.calls[function]:
            if name.endswith(("skipTest", "SkipTest")):
                return True
            reached = self.called(module, chain, name)
            if reached and self.skips(reached[0], chain, reached[1], (*above, function)):
                return True
        return False


def of_python(folders):
    """Names of tests in Python: FILE::CLASS.TEST."""
    sources = Sources(folders)
    for module, name in sources.classes:
        if not module.startswith("test_"):
            continue
        chain = sources.with_bases(module, name)
        methods = {f.name: (of, f) for of, node in reversed(chain) for f in node.body
                   if isinstance(f, ast.FunctionDef)}
        skipping = {n for n, (of, f) in methods.items() if sources.skips(of, chain, f)}
        all_do = (skipping & {"setUp", "setUpClass"} or
                  any(is_skipped_by_decorator(node) for _, node in chain))
        for method in methods:
            if method.startswith("test_") and (all_do or method in skipping):
                yield "%s::%s.%s" % (module, name, method)


def of_c():
    """Names of tests in C: SUITE::TEST."""
    for folder, _, files in os.walk(HERE):
        for f in files:
            if not (f.startswith("test_") and f.endswith(".c")):
                continue
            with open(os.path.join(folder, f), encoding="utf-8") as source:
                text = source.read()
            if "cr_skip_test" not in text and "need_descriptors" not in text:
                continue
            skipping, before = {"cr_skip_test", "need_descriptors"}, set()
            while skipping != before:
                before = set(skipping)
                words = re.compile(r"\b(%s)\b" % "|".join(skipping))
                skipping |= {n for n, body in C_FUNCTION.findall(text) if words.search(body)}
            suites = {suite for suite, init in C_SUITE.findall(text) if init in skipping}
            for suite, test, fixtures, body in C_TEST.findall(text):
                if suite in suites or words.search(fixtures + body):
                    yield "%s::%s" % (suite, test)
