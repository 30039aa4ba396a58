# SPDX-License-Identifier: Apache-2.0
"""The unit test of an operator; run it with pytest."""
import numpy as np

from frag.testing import Harness
from smooth import Smooth


def test_a_constant_stays_as_it_is() -> None:
    with Harness(Smooth, width=5) as harness:
        harness.feed(np.full(20, 3.0))
        assert harness.tick()
        np.testing.assert_allclose(np.asarray(harness.take("out"))[2:-2], 3.0)


def test_a_peak_becomes_flat() -> None:
    with Harness(Smooth, width=4) as harness:
        harness.feed(np.array([0.0, 0.0, 8.0, 0.0, 0.0, 0.0]))
        harness.tick()
        assert np.asarray(harness.take("out")).max() == 2.0
