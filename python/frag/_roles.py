# SPDX-License-Identifier: Apache-2.0
"""python3 app.py --driver --worker ...: the program's graph, run by frag's own driver and workers.

The graph is written beside the program and given to `fragctl run`. Hosts import the program's
modules, and make the operators of their classes and parameters.
"""
import os
import subprocess
import sys
import tempfile

from ._failure import Error
from ._component import plain
from ._operator import NativeOperator, spec_of, type_name

_HELP = """usage: %s [FLAGS]

%s
Without a role, the application runs in this process. What else the program reads from its command
line, it documents itself.

  -h, --help                    shows this text
  --driver                      be the driver: place the fragments, print the summary
  --worker                      be a worker: run fragments
  --workers N                   a driver and N workers on this machine, gone at the end
  --address HOST[:PORT]         of the driver; default: 127.0.0.1:57777
  --worker-address IP[:PORT]    at which other workers reach this one
  --fragments NAMES             of this worker, with commas between them, or all
  --start-timeout TIME          how long the driver waits for its workers
  --key-file FILE               the key of driver and workers
  --insecure                    without a key, also beyond this machine

examples:
  python3 %s --workers 2
  python3 %s --driver --worker --fragments a
"""

# and whether a value follows
FLAGS = {"--driver": False, "--worker": False, "--address": True, "--worker-address": True,
         "--fragments": True, "--workers": True, "--key-file": True, "--insecure": False,
         "--start-timeout": True}
_ROLES = ("--driver", "--worker", "--workers")


def wants_help(argv):
    """Nobody has taken the flag so far, which a parser of the program's own would have."""
    return not {"-h", "--help"}.isdisjoint(argv[:argv.index("--")] if "--" in argv else argv)


def help(app):
    """app: what the text says of it is its class's documentation, or that of its program."""
    import inspect
    program = os.path.basename(sys.argv[0])
    documented = [type(app).__dict__.get("__doc__"),
                  getattr(sys.modules["__main__"], "__doc__", None)]
    headline = next((inspect.cleandoc(text) + "\n" for text in documented if text), "")
    return _HELP % (program, headline, program, program)


def find(argv):
    """The role flags of a command line; none: the application runs in this process."""
    flags, rest = [], list(argv)
    while rest and rest[0] != "--":
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if name in FLAGS:
            flags.append(word)
            if FLAGS[name] and not equals and rest:
                flags.append(rest.pop(0))
    return flags if any(f.partition("=")[0] in _ROLES for f in flags) else []


def _file(module):
    path = getattr(sys.modules[module], "__file__", None)
    if path is None:
        raise Error("the operators of %s are in no file, which other processes need" % module)
    return os.path.realpath(path)


def _check(operator):
    """Other processes make it of its class and its parameters."""
    cls = type(operator)
    if operator.spec.rows()[0] != spec_of(cls).rows()[0]:
        raise Error("%s: its ports depend on how it was made, and other processes only know its "
                    "class" % operator.name)
    for name, value in operator.args.items():
        if name not in operator.spec.params or not plain(value):
            raise Error("%s: %s is nothing that a graph can hold, so it cannot reach other "
                        "processes" % (operator.name, name))


def graph(app, parts):
    """The text of the graph for other processes, and the folder that its paths start in."""
    folder = os.path.dirname(_file("__main__"))
    types, files = {}, []
    from ._application import python_components
    operators = [op for part in parts for op in part.operators.values()
                 if not isinstance(op, NativeOperator)]
    for item in (*operators, *python_components(parts).values()):
        _check(item)
        types[item] = type_name(type(item))
        path = os.path.relpath(_file(type(item).__module__), folder)
        files.append(path if path.startswith("..") else "./" + path)
    extensions = [os.path.abspath(os.path.join(folder, f)) if f.startswith("..") else f
                  for f in dict.fromkeys(files)]
    return app._text(parts, types, app.extensions + extensions), folder


def run(app, parts, flags):
    """Plays the roles. Returns the summary where this process drives the application."""
    text, folder = graph(app, parts)
    drives = any(flag.startswith(("--driver", "--workers")) for flag in flags)
    env = dict(os.environ)
    env.setdefault("FRAG_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as results, tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix="." + app.name, suffix=".yaml") as file:
        file.write(text)
        file.flush()
        summary = os.path.join(results, "summary.json")
        command = ["fragctl", "run", *flags, *(("--summary", summary) if drives else ()),
                   *(("--config", app._config) if app._config else ()), file.name]
        status = _call(command, env)
        if status != 0:
            raise Error("%s: fragctl run ended with exit code %d" % (app.name, status))
        if not drives:
            return {}
        import json
        with open(summary, encoding="utf-8") as result:
            return json.load(result)


def _call(command, env):
    try:
        child = subprocess.Popen(command, env=env)
    except FileNotFoundError:
        raise Error("roles need the program fragctl, which is not in PATH; install frag, of which "
                    "the wheel is a part, or add its folder to PATH") from None
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # fragctl gets it too, and ends in order
            pass
