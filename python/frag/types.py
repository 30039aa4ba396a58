# SPDX-License-Identifier: Apache-2.0
"""python -m frag.types FILE: lists the types of a module, for fragctl, on stdout.

A line for each type, port and parameter, with tabs between its fields.
"""
import os
import sys

from ._component import Condition
from ._load import load_classes
from ._operator import Operator, documentation, spec_of, type_name


def field(value):
    return "" if value is None else str(value).replace("\t", " ").replace("\n", " ")


def types_of(path):
    """The name, the class and the spec of each type."""
    if "PYTHON_FRAG_PROGRAM" in os.environ:
        from .holoscan import _roles
        if _roles.is_program(path):
            return _roles.types(path)
    return [(type_name(cls), cls, spec_of(cls)) for cls in load_classes(path)]


def lines_of(name, cls, spec):
    kind = ("operator" if issubclass(cls, Operator) else
            "condition" if issubclass(cls, Condition) else "resource")
    yield [kind, name, *documentation(cls)]
    ports, params = spec.rows()
    for port in ports:
        yield ["port", *port]
    for name, kind, number, real, default, headline, flags, low, high, choices in params:
        yield ["param", name, kind, number, repr(real), None if default is None else "=" + default,
               headline, flags, repr(low), repr(high), "|".join(choices or ())]


def main(path):
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the module prints is not part of the list
    lines = [line for type in types_of(os.path.realpath(path)) for line in lines_of(*type)]
    for line in lines:
        out.write("\t".join(map(field, line)) + "\n")
    out.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
