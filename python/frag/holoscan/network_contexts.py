# SPDX-License-Identifier: Apache-2.0
"""holoscan.network_contexts"""
from ._args import Arg, ArgElementType, ArgType
from ._component import ComponentSpecBase, GXFNetworkContext

__all__ = ["UcxContext"]


class UcxContext(GXFNetworkContext):
    """Accepted without effect: frag connects processes itself."""
    _gxf_typename = "nvidia::gxf::UcxContext"

    def __init__(self, fragment, serializer=None, name="ucx_context"):
        self._init(fragment, name)
        self.spec = ComponentSpecBase(fragment)
        if serializer is not None:
            self._args.append(Arg("serializer", serializer, ArgType(ArgElementType.RESOURCE)))
