# SPDX-License-Identifier: Apache-2.0
OPS_vision_PKG := libpng
OPS_vision_USES := draw gpu image
