# SPDX-License-Identifier: Apache-2.0
"""Modules that graphs list under `extensions:`."""
import os
import sys

from ._component import Condition, Resource
from ._operator import Operator, class_type


def _import(path):
    name = os.path.basename(path).removesuffix(".py")
    main = sys.modules.get("__main__")
    if os.path.realpath(getattr(main, "__file__", None) or "") == path:
        return main
    known = sys.modules.get(name)
    if known is not None:
        if os.path.realpath(getattr(known, "__file__", None) or "") == path:
            return known
        raise ImportError("a module called %s is loaded already from %s; rename one of them"
                          % (name, getattr(known, "__file__", "the interpreter")))
    import importlib.util
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_classes(path):
    """Imports the module. Returns its operators, conditions and resources."""
    module = _import(path)
    classes = {id(x): x for x in vars(module).values()
               if isinstance(x, type) and issubclass(x, (Operator, Condition, Resource))
               and x.__module__ == module.__name__}
    return list(classes.values())


def load(path):
    """Returns a name for the plugin that the module is, and the types of its classes."""
    if "PYTHON_FRAG_PROGRAM" in os.environ:
        from .holoscan import _roles
        if _roles.is_program(path):
            return _roles.load(path)
    types = [class_type(cls) for cls in load_classes(path)]
    name = os.path.basename(path).removesuffix(".py")
    return "python_" + "".join(c if c.isascii() and c.isalnum() else "_" for c in name)[-56:], types
