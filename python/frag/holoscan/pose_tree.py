# SPDX-License-Identifier: Apache-2.0
"""holoscan.pose_tree, which frag does not have."""
raise ModuleNotFoundError("holoscan.pose_tree is not supported by frag; keep poses in a service of "
                          "the fragment, or send them as messages", name=__name__)
