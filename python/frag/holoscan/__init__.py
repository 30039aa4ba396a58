# SPDX-License-Identifier: Apache-2.0
"""Programs of NVIDIA Holoscan on frag. See docs/FROM_HOLOSCAN.md.

`python3 -m frag.holoscan APP.py` runs such a program; frag.holoscan.install() makes `import
holoscan` mean this package in any other one.
"""
from ._finder import install
from ._tensor import Tensor

__version__ = "3.10.0"
as_tensor = Tensor.as_tensor
from_dlpack = Tensor.from_dlpack

__all__ = ["__version__", "as_tensor", "from_dlpack", "install"]
