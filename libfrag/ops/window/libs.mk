# SPDX-License-Identifier: Apache-2.0
# SDL2 is opened when a window is, so neither building nor installing needs it.
OPS_window_USES := draw
