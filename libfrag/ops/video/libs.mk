# SPDX-License-Identifier: Apache-2.0
OPS_video_PKG := libavformat libavcodec libavutil libswscale
# gcrypt.c says why.
OPS_video_LDFLAGS := -Wl,-z,initfirst
OPS_video_USES := gpu
