# SPDX-License-Identifier: Apache-2.0
"""Configuration files: config(), from_config(), kwargs()."""
import os

from . import _log
from ._args import ArgList, arglist_to_kwargs, of_config


class Config:
    """A configuration file."""
    __slots__ = ("_file", "_prefix", "_tree")

    def __init__(self, config_file, prefix=""):
        self._file = config_file
        self._prefix = prefix
        self._tree = {}
        if config_file:
            # A number would be taken for one of the process's open files.
            config_file = os.fspath(config_file)
            if not os.path.exists(config_file):
                raise RuntimeError("Config file '%s' doesn't exist" % config_file)
            self._tree = _read(config_file)

    @property
    def config_file(self):
        return self._file

    @property
    def prefix(self):
        return self._prefix

    def find(self, key):
        """The value at a path of keys, or None."""
        node = self._tree
        for part in key.split("."):
            if isinstance(node, list) and part.isdigit() and int(part) < len(node):
                node = node[int(part)]
            elif isinstance(node, dict) and part in node:
                node = node[part]
            else:
                return None
        return node

    def keys(self):
        keys, nodes = set(), [("", self._tree)]
        while nodes:
            path, node = nodes.pop()
            for key, value in node.items() if isinstance(node, dict) else ():
                keys.add(path + str(key))
                nodes.append((path + str(key) + ".", value))
        return keys


def _read(path):
    try:
        import yaml
    except ImportError:
        raise RuntimeError("%s: configuration files need the package pyyaml: pip install pyyaml"
                           % path) from None
    with open(path, encoding="utf-8") as file:
        text, tree = file.read(), {}
        # Holoscan's parser takes a directive without the line "---" behind it, and so do its files.
        if text.startswith("%") and "\n---" not in text:
            text = "#" + text
        for document in yaml.safe_load_all(text):
            tree.update(document or {})
    for name in tree.get("extensions") or ():
        _log.warning("Programs on frag no longer require specifying the %s extension; it is not "
                     "loaded (%s)", os.path.basename(str(name)), path)
    return tree


def from_config(config, key):
    """The arguments that a key holds: an ArgList of a map, an Arg of anything else."""
    node = config.find(key)
    if node is None:
        _log.error("Unable to find the parameter item/map with key '%s'", key)
        return ArgList()
    if not isinstance(node, dict):
        return of_config(key.rpartition(".")[2], node)
    arglist = ArgList()
    for name, value in node.items():
        arglist.add(of_config(str(name), value))
    return arglist


def kwargs_of(config, key):
    found = from_config(config, key)
    if isinstance(found, ArgList):
        return arglist_to_kwargs(found)
    return {found.name: found._value}
