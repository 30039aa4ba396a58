# SPDX-License-Identifier: Apache-2.0
OPS_viewer_PKG := libmicrohttpd libturbojpeg libpng
OPS_viewer_USES := draw image
