# SPDX-License-Identifier: Apache-2.0
"""Programs with --driver and --worker, whose fragments run in other processes.

Each process composes the application, as in Holoscan. run() gives the graph to `fragctl run`; the
graph names the program as its extension. A host that loads it executes the program up to its run(),
and finds the operators that it has composed there; initialize() of an operator is called in the
host that runs it. What leaves a process does so by cloudpickle, or by pickle where that is missing.
"""
import json
import os
import sys
import tempfile

import frag
from frag._roles import _call

from . import _finder
from ._message import Message

PROGRAM = "PYTHON_FRAG_PROGRAM"  # the command line of the program, as JSON, for its hosts
_host = None  # a _Host in the processes that execute the program up to its run()


class _Composed(BaseException):
    """run() of a program in a host: the program ends there."""


class _Host:
    app = None  # whose run() was called


def _pickle():
    try:
        import cloudpickle as module
    except ImportError:
        import pickle as module
    return module


def _encode(message):
    return _pickle().dumps(message.state())


def _decode(data):
    import pickle
    return Message.of_state(pickle.loads(data))


frag.register_codec(Message, _encode, _decode, "holoscan.Message")


def run(app):
    """Plays the roles of the command line. Returns False: there are none, the caller runs it."""
    if _host is not None:
        _host.app = app
        raise _Composed()
    options = getattr(app, "options", None)
    if options is None or not (options.run_driver or options.run_worker):
        return False
    from ._run import Run
    program = os.path.realpath(sys.modules["__main__"].__file__)
    graph = Run(app, is_elsewhere=True)
    if not graph.fragments:
        raise RuntimeError("application '%s' has no operators" % app.name)
    graph.graph.extensions = ["./" + os.path.basename(program)]
    env = dict(os.environ, **{PROGRAM: json.dumps([program, *sys.argv[1:]])})
    env.setdefault("FRAG_PYTHON", sys.executable)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(program), prefix=".holoscan",
                                     suffix=".yaml") as file:
        file.write(graph.graph.to_yaml())
        file.flush()
        status = _call(["fragctl", "run", *_flags(options, graph), file.name], env)
    if status != 0:
        raise RuntimeError("%s: fragctl run ended with exit code %d" % (graph.graph.name, status))
    return True


def _flags(options, graph):
    """Those of fragctl run."""
    flags = [flag for flag, is_set in (("--driver", options.run_driver),
                                       ("--worker", options.run_worker)) if is_set]
    for flag, value in (("--address", options.driver_address),
                        ("--worker-address", options.worker_address)):
        if value:
            flags += [flag, value]
    names = {f.name: part.name for f, part in zip(graph.fragments, graph.parts)}
    if options.worker_targets:
        unknown = [name for name in options.worker_targets if name not in (*names, "all")]
        if unknown:
            raise RuntimeError("--fragments names no fragment of the application: %s; it has %s" % (
                ", ".join(unknown), ", ".join(names)))
        flags += ["--fragments", ",".join(names.get(name, name)
                                          for name in options.worker_targets)]
    return flags


def is_program(path):
    """Whether an extension of a graph is the program whose hosts these are."""
    argv = os.environ.get(PROGRAM)
    return argv is not None and json.loads(argv)[0] == path


def compose(path):
    """Executes the program up to run() of its application. Returns its Run."""
    from types import ModuleType
    global _host
    _finder.install()
    argv = json.loads(os.environ[PROGRAM])
    main = ModuleType("__main__")
    main.__file__ = path
    main.host = sys.modules["__main__"]  # which goes on
    sys.modules["__main__"] = main
    sys.argv = argv
    sys.path.insert(0, os.path.dirname(path))
    _host = _Host()
    try:
        with open(path, "rb") as file:
            exec(compile(file.read(), path, "exec"), main.__dict__)
    except (_Composed, SystemExit):
        pass
    if _host.app is None:
        raise ImportError("%s ended without run() of an application" % path)
    from ._run import Run
    return Run(_host.app, is_elsewhere=True)


def load(path):
    """What frag._load.load returns."""
    graph = compose(path)
    return "holoscan", graph.graph._graph()[1]


def types(path):
    """The types of the program's operators for frag.types: (name, class, spec)."""
    found = []
    graph = compose(path)
    for part in graph.parts:
        for operator in part.operators.values():
            make = getattr(operator, "_op_type", None)
            if make is not None:
                operator._op_type = _noting(operator, make, found)
    graph.graph._graph()
    return found


def _noting(operator, make, found):
    def op_type(name, factory):
        found.append((name, type(operator.operator), operator.spec))
        return make(name, factory)
    return op_type
