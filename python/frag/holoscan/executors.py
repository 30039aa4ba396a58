# SPDX-License-Identifier: Apache-2.0
"""holoscan.executors"""
from ._executor import Executor

__all__ = ["GXFExecutor"]


class GXFExecutor(Executor):
    """The name of the default executor; frag has no GXF."""
    __slots__ = ()

    def __init__(self, app):
        super().__init__(app)
        self.context = object()  # Holoscan's is a pointer, which programs pass on
