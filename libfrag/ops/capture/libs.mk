# SPDX-License-Identifier: Apache-2.0
OPS_capture_PKG := libturbojpeg
