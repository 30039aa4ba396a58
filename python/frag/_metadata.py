# SPDX-License-Identifier: Apache-2.0
"""Metadata of messages as a mapping."""
from _collections_abc import MutableMapping  # without the rest of collections, for a quick import


class Metadata(MutableMapping):
    """The dictionary of a tick; valid during compute. Setting a key follows the operator's policy."""

    __slots__ = ("_context",)

    def __init__(self, context):
        self._context = context

    def __getitem__(self, key):
        return self._context._metadata_get(key)

    def __setitem__(self, key, value):
        self._context._metadata_set(key, value)

    def __delitem__(self, key):
        self._context._metadata_erase(key)

    def __iter__(self):
        return iter(self._context._metadata_keys())

    def __len__(self):
        return len(self._context._metadata_keys())

    def __repr__(self):
        return "Metadata(%r)" % dict(self)

    def set(self, key, value):
        self[key] = value

    def has_key(self, key):
        return key in self

    def erase(self, key):
        """Removes a key. Returns whether it was there."""
        if key not in self:
            return False
        del self[key]
        return True
