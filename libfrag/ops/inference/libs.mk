# SPDX-License-Identifier: Apache-2.0
OPS_inference_USES := gpu
