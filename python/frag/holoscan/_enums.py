# SPDX-License-Identifier: Apache-2.0
"""Enumerations, which print their names."""
import enum


class Enum(enum.IntEnum):
    def __str__(self):
        return "%s.%s" % (type(self).__name__, self.name)

    __format__ = object.__format__

    def __repr__(self):
        return "<%s: %d>" % (self, self.value)


def make(name, members):
    """An enumeration whose members count from 0."""
    return Enum(name, {key: number for number, key in enumerate(members.split())})
