# SPDX-License-Identifier: Apache-2.0
OPS_viewer_PKG := libmicrohttpd libturbojpeg
OPS_viewer_USES := draw
