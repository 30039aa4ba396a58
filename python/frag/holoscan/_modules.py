# SPDX-License-Identifier: Apache-2.0
"""Modules that hold classes of another one, as Holoscan has them."""
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


def module_of(name, *classes):
    """Makes a module of these classes, which can be imported by its name."""
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    module.__all__ = [cls.__name__ for cls in classes]
    for cls in classes:
        setattr(module, cls.__name__, cls)
    sys.modules[name] = module
    return module
