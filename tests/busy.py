# SPDX-License-Identifier: Apache-2.0
"""How busy the machine is."""
import os

MOST = 4


def busy():
    """How many times longer things take because others want the same cores, up to MOST. Bounds that
    catch a hang, and times of death, are multiplied by it."""
    return min(max(os.getloadavg()[0] / len(os.sched_getaffinity(0)), 1), MOST)
