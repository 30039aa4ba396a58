# SPDX-License-Identifier: Apache-2.0
"""Executors: names only, since frag runs fragments itself."""
from ._component import unsupported


class Executor:
    """What runs a fragment."""
    __slots__ = ("fragment", "context")

    def __init__(self, fragment):
        self.fragment = fragment
        self.context = None

    @property
    def context_uint64(self):
        return 0

    def run(self, graph):
        unsupported("Executor.run", "call run() of the application")

    def interrupt(self):
        """Ends the fragment in order. Returns whether it ran."""
        if self.fragment._runner is None:
            return False
        self.fragment.stop_execution()
        return True
