# SPDX-License-Identifier: Apache-2.0
"""Makes `import holoscan` mean frag.holoscan."""
import importlib
import importlib.abc
import importlib.util
import sys

_OURS = __name__.rpartition(".")[0]


class _Loader(importlib.abc.Loader):
    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # it stays what it is under both names


class Finder(importlib.abc.MetaPathFinder):
    """Finds holoscan and its modules in this package."""

    def find_spec(self, fullname, path=None, target=None):
        top, _, rest = fullname.partition(".")
        if top != "holoscan":
            return None
        ours = _OURS + ("." + rest if rest else "")
        try:
            found = importlib.util.find_spec(ours)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return None
        spec = importlib.util.spec_from_loader(
            fullname, _Loader(ours), is_package=found.submodule_search_locations is not None)
        return spec


def install():
    """From now on `import holoscan` means frag.holoscan, also where the wheel is installed."""
    known = sys.modules.get("holoscan")
    if known is not None and known is not sys.modules.get(_OURS):
        raise ImportError("holoscan was imported from %s before frag.holoscan could stand for it"
                          % getattr(known, "__file__", "somewhere"))
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
